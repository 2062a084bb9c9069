"""Recorded files of Claude Code, and what their folds bring, joined as a store joins it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from turnlog.agents import fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import (
    Changes,
    Diagnostic,
    EventChange,
    LineCounts,
    Link,
    Placement,
    ResultChange,
    SessionChange,
    Spill,
)
from turnlog.agents.claude_code import ClaudeCode
from turnlog.model import Message, ToolCallPart
from turnlog.model.merge import merge_messages
from turnlog.store.reconcile.merge import add_late_result, merge_links, merge_placements, merge_session_changes

DATA = Path(__file__).parents[1] / "data" / "claude_code"
AGENT = ClaudeCode()
SESSION = "11111111-1111-4111-8111-111111111111"


@dataclass
class Gathered:
    """The changes of any number of feeds as one."""

    messages: dict[str, Message] = field(default_factory=dict[str, Message])
    placements: dict[tuple[str, str], Placement] = field(default_factory=dict[tuple[str, str], Placement])
    events: dict[str, EventChange] = field(default_factory=dict[str, EventChange])
    sessions: dict[str, SessionChange] = field(default_factory=dict[str, SessionChange])
    links: dict[tuple[str, str, str], Link] = field(default_factory=dict[tuple[str, str, str], Link])
    late: list[ResultChange] = field(default_factory=list[ResultChange])
    spills: list[Spill] = field(default_factory=list[Spill])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    counts: LineCounts = field(default_factory=LineCounts)

    def add(self, changes: Changes) -> None:
        for change in changes.messages:
            message, place = change.message, change.placement
            known = self.messages.get(message.id)
            self.messages[message.id] = message if known is None else merge_messages(known, message)
            key = place.session_id, message.id
            self.placements[key] = merge_placements(self.placements[key], place) if key in self.placements else place
        self.late += changes.results
        self.late = [change for change in self.late if not self._join(change)]
        for change in changes.events:
            # Every event of this agent has an id.
            self.events[change.event.id] = change  # type: ignore[union-attr]
        for name, change in changes.sessions.items():
            known_change = self.sessions.get(name)
            self.sessions[name] = change if known_change is None else merge_session_changes(known_change, change)
        for link in changes.links:
            key3 = link.kind, link.parent_session_id, link.child_session_id
            self.links[key3] = merge_links(self.links[key3], link) if key3 in self.links else link
        self.spills += changes.spills
        self.diagnostics += changes.diagnostics
        for name in LineCounts.__struct_fields__:
            setattr(self.counts, name, getattr(self.counts, name) + getattr(changes.counts, name))

    def _join(self, change: ResultChange) -> bool:
        message_id = change.message_id or self._message_of(change)
        if message_id not in self.messages:
            return False
        self.messages[message_id] = add_late_result(self.messages[message_id], change)
        key = change.session_id, message_id
        record = (*change.record, change.result.id)
        place = msgspec.structs.replace(self.placements[key], records=(record,), record_ids=change.record_ids)
        self.placements[key] = merge_placements(self.placements[key], place)
        return True

    def _message_of(self, change: ResultChange) -> str:
        found = (
            message.id
            for message in self.messages.values()
            for call in calls_of(message)
            if call.tool_call_id == change.tool_call_id
        )
        return next(found, "")

    def in_order(self, session_id: str) -> list[Message]:
        """The messages of a session in file order."""
        places = [place for (session, _), place in self.placements.items() if session == session_id]
        ids = {(place.session_id, place.position): key[1] for key, place in self.placements.items()}
        return [
            self.messages[ids[session_id, place.position]] for place in sorted(places, key=lambda place: place.position)
        ]

    def place(self, message_id: str) -> Placement:
        """The placement of a message that is in one session only."""
        (found,) = [place for (_, name), place in self.placements.items() if name == message_id]
        return found

    def calls(self) -> list[ToolCallPart]:
        return [call for message in self.messages.values() for call in calls_of(message)]

    def as_json(self) -> Any:
        """Everything, comparable."""
        return json.loads(
            msgspec.json.encode(
                {
                    "messages": dict(sorted(self.messages.items())),
                    "placements": {"/".join(key): _sorted_ids(place) for key, place in sorted(self.placements.items())},
                    "events": dict(sorted(self.events.items())),
                    "sessions": {
                        name: msgspec.structs.replace(change, position=0)
                        for name, change in sorted(self.sessions.items())
                    },
                    "links": [link for _, link in sorted(self.links.items())],
                    "late": self.late,
                    "diagnostics": self.diagnostics,
                    "counts": self.counts,
                }
            )
        )


def _sorted_ids(place: Placement) -> Placement:
    """Record ids are names that lead to the message: their order means nothing."""
    return msgspec.structs.replace(place, record_ids=tuple(sorted(place.record_ids)))


def calls_of(message: Message) -> list[ToolCallPart]:
    return [part for part in message.parts if isinstance(part, ToolCallPart)]


def gather(*pieces: Changes) -> Gathered:
    gathered = Gathered()
    for changes in pieces:
        gathered.add(changes)
    return gathered


def sources(*parts: str) -> list[Source]:
    """Every source below a folder of the recorded files."""
    return list(AGENT.discover([DATA.joinpath(*parts)]))


def read(found: Iterable[Source]) -> Gathered:
    return gather(*(fold_bytes(AGENT, source, Path(source.path).read_bytes()) for source in found))


def session_source(external_id: str = SESSION) -> Source:
    return Source(
        agent="claude-code",
        path=f"/home/dev/{external_id}.jsonl",
        root="/home/dev",
        session_id=f"claude-code:{external_id}",
    )


def lines(*records: dict[str, Any] | bytes) -> bytes:
    """A log of these records; bytes are taken as they are."""
    return b"".join(
        (record if isinstance(record, bytes) else json.dumps(record, separators=(",", ":")).encode()) + b"\n"
        for record in records
    )


def fold(*records: dict[str, Any] | bytes, kind: SourceKind = SourceKind.SESSION) -> Gathered:
    """What a log of these records brings."""
    source = session_source()
    if kind is SourceKind.SUBAGENT:
        source = Source(agent="claude-code", path="/home/dev/agent-a1.jsonl", root="/home/dev", kind=kind)
    return gather(fold_bytes(AGENT, source, lines(*records)))


class Log:
    """Makes records that hang under each other as Claude Code's do."""

    def __init__(self, version: str = "2.1.329", **envelope: Any) -> None:
        self.envelope: dict[str, Any] = {
            "isSidechain": False,
            "cwd": "/home/dev/proj",
            "sessionId": SESSION,
            "version": version,
            "gitBranch": "main",
            **envelope,
        }
        self.last: str | None = None
        self.count = 0

    def record(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.count += 1
        uuid = f"00000000-0000-4000-8000-{self.count:012d}"
        moment = f"2026-11-21T10:{self.count // 60:02d}:{self.count % 60:02d}.000Z"
        made = {"parentUuid": self.last, **self.envelope, "type": kind, "uuid": uuid, "timestamp": moment, **fields}
        self.last = made["uuid"]
        return made

    def user(self, content: Any, **fields: Any) -> dict[str, Any]:
        return self.record("user", message={"role": "user", "content": content}, **fields)

    def result(
        self, call: str, content: Any = "done", *, is_error: bool | None = None, **fields: Any
    ) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        return self.user([block if is_error is None else {**block, "is_error": is_error}], **fields)

    def assistant(
        self,
        message_id: str,
        *content: dict[str, Any],
        stop: str | None = "end_turn",
        usage: dict[str, Any] | None = None,
        model: str = "claude-opus-5-5",
        **fields: Any,
    ) -> dict[str, Any]:
        message = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": list(content),
            "stop_reason": stop,
            "usage": usage or {"input_tokens": 1, "output_tokens": 2},
        }
        return self.record("assistant", message=message, **fields)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(call_id: str, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
