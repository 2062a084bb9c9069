"""What Aider's answers hold: thoughts, texts with edits in them, and what the program says about them."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
from msgspec import Raw

from turnlog.agents.aider import NAME
from turnlog.model import Part, ReasoningPart, TextPart, ToolCallPart, ToolKind

_THOUGHT = re.compile(r"\A\s*<(?P<tag>thinking-content-[0-9a-f]+)>\n*(?P<text>.*?)\n*</(?P=tag)>\s*", re.DOTALL)
_OPEN_THOUGHT = re.compile(r"\A\s*<thinking-content-[0-9a-f]+>")

_EDIT = re.compile(
    r"^(?P<path>[^\s`][^\n`]*)\n(?P<fence>`{3,})\w*\n<{5,9} SEARCH\n(?P<search>.*?)^={5,9}\n(?P<replace>.*?)"
    r"^>{5,9} REPLACE\n(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
"""An edit in the format `diff`."""

_TOKENS = re.compile(
    r"Tokens: (?P<sent>\S+) sent(?:, (?P<written>\S+) cache write)?(?:, (?P<read>\S+) cache hit)?, "
    r"(?P<received>\S+) received\.(?: Cost: \$(?P<cost>[\d.]+) message)?"
)


class Counted(NamedTuple):
    """What Aider says about the tokens of an answer, rounded and counted by itself, and its cost in US dollars."""

    sent: int | None
    """Without what was read from the cache or written to it."""
    read: int | None
    written: int | None
    received: int | None
    cost: float | None

    def buckets(self) -> tuple[int | None, ...]:
        """The tokens."""
        return self[:4]


def parts_of(text: str, message_id: str) -> list[Part]:
    """The parts of an answer: its thoughts, its whole text, and a call for each edit that is written in it.

    The text only grows while an answer is read, so each reading has the beginning of the last one. No part of an open
    thought is known.
    """
    parts: list[Part] = []
    thought = _THOUGHT.match(text)
    if thought is not None:
        parts.append(ReasoningPart(id=f"{message_id}.0", text=thought["text"]))
        text = text[thought.end() :]
    elif _OPEN_THOUGHT.match(text):
        return []
    text = text.strip("\n")
    if text:
        parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=text))
    for edit in _EDIT.finditer(text):
        part_id = f"{message_id}.{len(parts)}"
        value = {"path": edit["path"].strip(), "search": edit["search"], "replace": edit["replace"]}
        parts.append(
            ToolCallPart(
                id=part_id,
                tool_call_id=part_id,
                tool_name="edit",
                kind=ToolKind.EDIT,
                input=Raw(msgspec.json.encode(value)),
                # No tool was called: the edit is a part of the text.
                metadata={NAME: {"in_text": True}},
            )
        )
    return parts


def counted_in(status: str) -> Counted | None:
    """The tokens in a line of the program; None if it has none."""
    found = _TOKENS.search(status)
    if found is None:
        return None
    sent, written, read, received = (_number(found[name]) for name in ("sent", "written", "read", "received"))
    cost = (found["cost"] or "").rstrip(".")
    return Counted(
        sent=None if sent is None else max(0, sent - (read or 0) - (written or 0)),
        read=read,
        written=written,
        received=received,
        cost=float(cost) if cost.replace(".", "", 1).isdigit() else None,
    )


def _number(text: str | None) -> int | None:
    """A number of tokens as Aider writes it: `81`, `2.5k`, `12k`."""
    if text is None:
        return None
    try:
        value = float(text.removesuffix("k")) * (1000 if text.endswith("k") else 1)
    except ValueError:
        return None
    return round(value) if 0 <= value < 1 << 50 else None
