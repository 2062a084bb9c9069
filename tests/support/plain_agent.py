"""An agent whose log is the model's own JSON, a record a line: tests write exactly the history they want.

A home holds `<session>.jsonl` files, and in `<session>/spills` outputs that were too large for the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnlog.agents.base import Agent, Colour, Detection, Source, SourceKind
from turnlog.agents.changes import (
    Changes,
    Diagnostic,
    EventChange,
    Link,
    MessageChange,
    Placement,
    ResultChange,
    SessionChange,
    Spill,
)
from turnlog.model import HistoryEvent, Message, ToolResult
from turnlog.model.codec import decode_event, decode_message, encode
from turnlog.store.reconcile.merge import merge_session_changes

NAME = "plain"


def session_id(name: str) -> str:
    return f"{NAME}:{name}"


class Line(msgspec.Struct, omit_defaults=True):
    """A record: one of `message`, `result`, `event`, `session` and `link`, and what belongs to it."""

    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    place: dict[str, Any] = {}
    result: ToolResult | None = None
    call: str = ""
    message_id: str | None = None
    structured: Any = None
    event: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    record_id: str | None = None
    parent_id: str | None = None
    session: dict[str, Any] | None = None
    link: Link | None = None


class Log:
    """Writes a session's log, and knows where each record went."""

    def __init__(self, home: Path, name: str) -> None:
        self.path = home / f"{name}.jsonl"
        self.session_id = session_id(name)
        self.size = self.path.stat().st_size if self.path.exists() else 0

    def message(self, message: Message, *, record_id: str | None = None, **place: Any) -> int:
        return self.line(Line(message=msgspec.Raw(encode(message)), place=place, record_id=record_id))

    def result(self, call: str, result: ToolResult, *, message_id: str | None = None, structured: Any = None) -> int:
        return self.line(Line(result=result, call=call, message_id=message_id, structured=structured))

    def event(self, event: HistoryEvent, *, record_id: str | None = None, parent_id: str | None = None) -> int:
        return self.line(Line(event=msgspec.Raw(encode(event)), record_id=record_id, parent_id=parent_id))

    def session(self, **facts: Any) -> int:
        return self.line(Line(session=facts))

    def link(self, link: Link) -> int:
        return self.line(Line(link=link))

    def line(self, line: Line | bytes) -> int:
        """Append a record; return its offset."""
        data = (line if isinstance(line, bytes) else msgspec.json.encode(line)) + b"\n"
        with self.path.open("ab") as file:
            file.write(data)
        offset, self.size = self.size, self.size + len(data)
        return offset

    def spill(self, name: str, data: bytes) -> None:
        folder = self.path.with_suffix("") / "spills"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


class PlainFold:
    """Folds one file; it needs to remember nothing."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._session_id = source.session_id or ""

    def state(self) -> bytes:
        return b""

    def feed(self, data: bytes, offset: int) -> Changes:
        changes = Changes()
        if self._source.kind is SourceKind.SPILL:
            name = Path(self._source.path).name
            changes.spills.append(
                Spill(session_id=self._session_id, name=name, media_type="text/plain", size=len(data))
            )
            return changes
        for data_line in data.splitlines(keepends=True):
            self._read(data_line, offset, changes)
            offset += len(data_line)
        return changes

    def _read(self, data: bytes, offset: int, changes: Changes) -> None:
        try:
            line = msgspec.json.decode(data, type=Line)
        except msgspec.MsgspecError as error:
            changes.diagnostics.append(Diagnostic(offset=offset, length=len(data), reason=str(error)))
            changes.counts.unreadable += 1
            return
        if line.message is not msgspec.UNSET:
            self._add_message(decode_message(line.message), line, offset, len(data), changes)
        if line.result is not None:
            self._add_result(line.result, line, offset, len(data), changes)
        if line.event is not msgspec.UNSET:
            self._add_event(decode_event(line.event), line, offset, len(data), changes)
        if line.link is not None:
            changes.links.append(line.link)
        if line.session is not None:
            self._add_session(line.session, offset, changes)

    def _add_message(self, message: Message, line: Line, offset: int, length: int, changes: Changes) -> None:
        place: dict[str, Any] = {
            "session_id": self._session_id,
            "position": offset,
            "records": [(offset, length, None)],
            "record_ids": [line.record_id] if line.record_id else [],
            **line.place,
        }
        changes.messages.append(MessageChange(message=message, placement=msgspec.convert(place, Placement)))
        changes.counts.messages += 1
        self._add_session({"first_at": message.created_at, "last_at": message.created_at}, offset, changes)

    def _add_result(self, result: ToolResult, line: Line, offset: int, length: int, changes: Changes) -> None:
        changes.results.append(
            ResultChange(
                session_id=self._session_id,
                tool_call_id=line.call,
                result=result,
                position=offset,
                record=(offset, length),
                message_id=line.message_id,
            )
        )
        changes.counts.results += 1

    def _add_event(self, event: HistoryEvent, line: Line, offset: int, length: int, changes: Changes) -> None:
        changes.events.append(
            EventChange(
                session_id=self._session_id,
                event=msgspec.structs.replace(event, position=offset),
                record=(offset, length),
                record_id=line.record_id,
                parent_id=line.parent_id,
            )
        )
        changes.counts.events += 1

    def _add_session(self, facts: dict[str, Any], offset: int, changes: Changes) -> None:
        change = msgspec.convert({"session_id": self._session_id, "position": offset, **facts}, SessionChange)
        known = changes.sessions.get(self._session_id)
        changes.sessions[self._session_id] = change if known is None else merge_session_changes(known, change)


class PlainAgent(Agent):
    """The agent of these logs."""

    name = NAME
    display_name = "Plain"
    colour = Colour(light="#3d6b4f", dark="#8fd0a8")
    parser_version = 1

    def __init__(self, home: Path | None = None) -> None:
        self._home = home

    def roots(self) -> Sequence[Path]:
        return () if self._home is None else (self._home,)

    def find_sources(self, root: Path) -> Iterator[Source]:
        for path in sorted(root.rglob("*")):
            source = self.source_of(path, root) if path.is_file() else None
            if source is not None:
                yield source

    def source_of(self, path: Path, root: Path | None = None) -> Source | None:
        if path.parent.name == "spills":
            kind, name = SourceKind.SPILL, path.parent.parent.name
        elif path.suffix == ".jsonl":
            kind, name = SourceKind.SESSION, path.stem
        else:
            return None
        return Source(
            agent=NAME,
            path=str(path),
            root=str(root or path.parent),
            kind=kind,
            session_id=session_id(name),
            appendable=kind is SourceKind.SESSION,
        )

    def detect(self, path: Path, head: bytes) -> Detection:
        return Detection(reason="only tests write it")

    def fold(self, source: Source, state: bytes | None = None) -> PlainFold:
        return PlainFold(source)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        structured = msgspec.json.decode(record, type=Line).structured
        return None if structured is None else msgspec.Raw(msgspec.json.encode(structured))
