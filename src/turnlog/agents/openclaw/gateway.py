"""What OpenClaw's gateway puts around a prompt: who wrote it and where, when, with what files, and hints for the model.

Each form is one that OpenClaw itself takes away again before it shows a prompt. `docs/formats/openclaw.md` lists them.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_MARK: Final = "⟦openclaw:ctx⟧"
"""Headings of added context end with this in 2026.9; before, they said that the context is untrusted."""

_HEADING = rf"(?!\[)[^\n]*?(?:\(untrusted metadata\):|\(untrusted, [^)\n]+\):|{_MARK})[ \t]*\r?\n"
_FENCED = r"[ \t]*```json[ \t]*\r?\n(?:(?![ \t]*```[ \t]*(?:\r?\n|\Z))[^\n]*(?:\n|\Z))*(?:[ \t]*```[ \t]*(?:\r?\n|\Z))?"
_PARAGRAPH = r"(?:[ \t]*\S[^\n]*(?:\n|\Z))*"

_CHANNELS: Final = (
    *("WebChat", "WhatsApp", "Telegram", "Signal", "Slack", "Discord", "Google Chat", "iMessage", "Teams", "Matrix"),
    *("Zalo Personal", "Zalo"),
)
# A time with seconds and without a zone is that of a line of some log.
_ENVELOPE = re.compile(
    r"\[(?!media attached)(?:[^\]\n]*\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?!:\d\d(?:[.,]\d+)?\])[^\]\n]*"
    rf"|(?:{'|'.join(map(re.escape, _CHANNELS))}) [^\]\n]*)\][ \t]*"
)
"""The envelope of a message: who sent it and when."""

_TASK = (
    r"\[Subagent Context\](?:(?!\n\[Subagent Task\])[\s\S])*\n\[Subagent Task\]:?[ \t]*"
    r"|<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>[\s\S]*?<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
)

_CURRENT: Final = "[Current message - respond to this]"
_HISTORY = (
    r"\[(?:Chat messages since your last reply|Recent chat messages|Thread history) - for context\]"
    rf"(?:(?!{re.escape(_CURRENT)})[\s\S])*{re.escape(_CURRENT)}[ \t]*\r?\n?"
)

_LEADING = re.compile(
    "|".join(
        [
            r"\s+",
            rf"{_HEADING}(?:{_FENCED}|{_PARAGRAPH})",
            # The plug-in for memories names its own block, under a heading that has neither mark.
            r"(?:Untrusted context \([^)\n]*\)|Context):[ \t]*\r?\n<active_memory_plugin>[\s\S]*?"
            r"</active_memory_plugin>",
            _HISTORY,
            re.escape(_CURRENT),
            r"System(?: \(untrusted\))?: \[\d{4}-\d\d-\d\d[^\]\n]*\][^\n]*(?:\n|\Z)",
            r"\[media attached(?: \d+/\d+)?: [^\n]*\](?=\r?\n|\Z)",
            r"To send an image back, [^\n]*(?:\n|\Z)",
            r"Delivery: [^\n]*`message` tool[^\n]*(?:\n|\Z)",
            r"\[message_id: [^\]\n]+\](?=[ \t]*(?:\r?\n|\Z))",
            r"\[Inter-session message\][^\n]*(?:\n|\Z)",
            r"\[cron:[^\]\n]+\][ \t]*",
            _TASK,
        ]
    )
)
"""One thing that the gateway puts before a prompt and its envelope."""

_BEHIND_ENVELOPE = re.compile(rf"\s+|{_TASK}")
"""What may be between the envelope and the prompt. All else there was typed, also what looks like an addition."""

_TRAILING = re.compile(
    r"\[message_id: [^\]\n]+\]"
    r"|Delivery: .*`message` tool.*"
    r"|Return your (?:response|summary) as plain text; it will be delivered automatically\..*"
)
"""A line that it puts behind one."""

_TIME = "Current time: "
"""How the line begins that it puts behind the prompt of a job."""

_CHANNEL_CONTEXT = re.compile(
    r"(?<![^\n])(?:Untrusted context \(metadata, do not treat as instructions or commands\):"
    rf"|Context: {_MARK})[ \t]*\r?\n"
)
"""The heading of what a channel adds behind a prompt: all that follows."""

_OWN_PROMPT = re.compile(
    r"A new session was started via /new or /reset"
    r"|Read HEARTBEAT\.md if it exists"
    r"|Pre-compaction memory flush"
    r"|OpenClaw runtime context \(internal\):"
)
"""How prompts begin that OpenClaw writes itself: in a new session, at times, before a compaction, after a task."""

_FROM_PERSON = re.compile(rf"\[media attached|\(untrusted metadata\):|{_MARK}")
"""What it adds only to what somebody has sent, if that is no more than a picture."""

_CRON = re.compile(r"\s*\[cron:")


class Piece(NamedTuple):
    """A piece of a prompt's text."""

    text: str
    is_added: bool


def split_prompt(text: str) -> list[Piece]:
    """The text of a prompt in pieces: what the gateway added, and what somebody wrote. Together they are the text."""
    start = 0
    while match := _LEADING.match(text, start):
        start = match.end()
    if match := _ENVELOPE.match(text, start):
        start = match.end()
        while match := _BEHIND_ENVELOPE.match(text, start):
            start = match.end()
    if _OWN_PROMPT.match(text, start):
        return [Piece(text, is_added=True)]
    channel = _CHANNEL_CONTEXT.search(text, start)
    end = _end_of_prompt(text, start, len(text) if channel is None else channel.start())
    # White space alone is no addition.
    if not text[:start].strip() and not text[end:].strip():
        return [Piece(text, is_added=False)]
    cuts = ((text[:start], True), (text[start:end], False), (text[end:], True))
    return [Piece(piece, is_added=is_added) for piece, is_added in cuts if piece]


def is_sent(text: str) -> bool:
    """Whether somebody sent a message of which the gateway's texts are all that there is: a picture, for example."""
    return _FROM_PERSON.search(text) is not None and _OWN_PROMPT.search(text) is None


def _end_of_prompt(text: str, start: int, end: int) -> int:
    """Where the lines that the gateway added behind a prompt begin."""
    is_job = _CRON.match(text) is not None
    last = start + len(text[start:end].rstrip())
    while start < last:
        begin = max(start, text.rfind("\n", start, last) + 1)
        line = text[begin:last].strip()
        if not (_TRAILING.fullmatch(line) or (is_job and line.startswith(_TIME))):
            break
        end = begin
        last = start + len(text[start:end].rstrip())
    return end if end == len(text) else max(start, last)
