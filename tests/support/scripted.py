"""Recorded runs of an agent beside the script that the model followed: what both say, in one form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from support.claude_files import Gathered, gather
from turnlog.agents.base import Agent, Source, reads_rows
from turnlog.agents.changes import Changes
from turnlog.model import Message, ReasoningPart, TextPart, ToolCallPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.sync.syncer import sync

Turns = list[dict[str, Any]]
Blocks = list[tuple[str, Any]]


class Recordings:
    """The recorded homes of an agent in a folder of cases, and the scripts next to them."""

    def __init__(self, agent: Agent, folder: Path) -> None:
        self.agent = agent
        self.folder = folder

    @property
    def cases(self) -> list[str]:
        """The folders of cases, relative to that of all."""
        return sorted(str(case.relative_to(self.folder)) for case in self.folder.glob("*/*") if case.is_dir())

    def sources(self, case: str) -> list[Source]:
        return list(self.agent.discover([self.folder / case]))

    def log_of(self, source: Source) -> bytes:
        """The bytes of a log, or the lines that its agent makes of rows."""
        if reads_rows(self.agent, source):
            return b"".join(self.agent.read_rows(source, ()).lines)
        return Path(source.path).read_bytes()

    def read(self, case: str) -> Gathered:
        """What all sources of a case bring."""
        feeds = (self.agent.fold(source).feed(self.log_of(source), 0) for source in self.sources(case))
        return gather(*feeds)

    def script(self, name: str) -> Turns:
        """The answers that the model gave in the step with that name."""
        return json.loads((self.folder / f"{name}.script.json").read_text())["main"]

    def stored(self, case: str, folder: Path) -> Store:
        sync(folder / "store.db", roots=[self.folder / case], agents=[self.agent])
        return open_store(folder / "store.db")

    def restored(self, case: str, folder: Path) -> dict[str, bytes]:
        """The files that a store writes back, by their names below the home."""
        found: dict[str, bytes] = {}
        with self.stored(case, folder) as store:
            for session in store.sessions(SessionFilter(subagents=True)).items:
                for file in store.restore(session.id, folder / "restored"):
                    found[file.path.name] = file.path.read_bytes()
        return found


def in_order(found: Gathered) -> list[Message]:
    """The messages by their positions."""
    placed = sorted(found.placements.items(), key=lambda item: item[1].position)
    return [found.messages[identity] for (_, identity), _ in placed]


def answers(found: Gathered) -> list[Message]:
    return [message for message in in_order(found) if message.role == "assistant"]


def calls(messages: Iterable[Message]) -> dict[str, ToolCallPart]:
    parts = (part for message in messages for part in message.parts)
    return {part.tool_call_id: part for part in parts if isinstance(part, ToolCallPart)}


def blocks(message: Message) -> Blocks:
    """The parts of a message as a script names them."""
    found: Blocks = []
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            found.append(("thinking", part.text))
        elif isinstance(part, TextPart):
            found.append(("text", part.text))
        elif isinstance(part, ToolCallPart):
            found.append(("tool", (part.tool_name, part.tool_call_id, part.input_value())))
    return found


def scripted(turns: Turns, *, without: frozenset[str] = frozenset()) -> list[Blocks]:
    """The parts of each turn of a script, without those of a kind that the agent does not log."""
    return [
        [
            (each["type"], (each["name"], each["id"], each["input"]) if "name" in each else each["text"])
            for each in turn["blocks"]
            if each["type"] not in without
        ]
        for turn in turns
    ]


Tokens = tuple[int, int, int, int]
"""Input without cached tokens, cached ones, output with thoughts, and thoughts."""


def tokens(turns: Turns) -> Iterator[Tokens]:
    """The tokens of each turn of a script."""
    for turn in turns:
        usage = turn["usage"]
        yield usage["in"], usage.get("cached", 0), usage["out"], usage.get("reasoning", 0)


def used(messages: Iterable[Message]) -> list[Tokens]:
    """The tokens of each answer that has some."""
    found = [message.usage for message in messages if message.usage is not None]
    return [
        (one.input or 0, one.cache_read or 0, (one.output or 0) + (one.reasoning or 0), one.reasoning or 0)
        for one in found
    ]


def in_pieces(agent: Agent, source: Source, data: bytes) -> Gathered:
    """What a log brings line by line, each read by a fold that takes up the state of the one before."""
    pieces: list[Changes] = []
    state, offset = None, 0
    for line in data.splitlines(keepends=True):
        fold = agent.fold(source, state)
        pieces.append(fold.feed(line, offset))
        state, offset = fold.state(), offset + len(line)
    return gather(*pieces)
