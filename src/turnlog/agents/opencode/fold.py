"""The fold of one session's row log: each line is a message with its parts, the session, or something about it.

A line tells all that it needs (`rows.Place`), so nothing has to be remembered between lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from turnlog.agents.base import (
    Changes,
    Diagnostic,
    EventChange,
    Link,
    MessageChange,
    Placement,
    RecordRef,
    SessionChange,
    Source,
    SourceKind,
)
from turnlog.agents.opencode.ids import NAME, moment, session_id, time_position, whole
from turnlog.agents.opencode.kinds import TABLES, becomes, event_kind
from turnlog.agents.opencode.messages import ABORTED, ReadMessage, newest_time, read_message
from turnlog.agents.opencode.rows import (
    EVENT,
    MESSAGE,
    PROJECT,
    SESSION,
    TO_DOS,
    Line,
    Place,
    Row,
    decode_line,
    document_of,
    list_of,
    object_of,
    text_of,
)
from turnlog.agents.opencode.session_messages import documents_of, is_session_message
from turnlog.agents.opencode.sessions import project_facts, read_session, todo_facts
from turnlog.model import (
    CompactionEvent,
    Fate,
    InterruptEvent,
    Message,
    Origin,
    Provenance,
    RecordEvent,
    RewindEvent,
    TextPart,
    ToolCallPart,
)
from turnlog.model.codec import to_json
from turnlog.model.session import TitleSource

_TITLE_LENGTH = 100
_HAS_NO_DIRECTORY = re.compile(r"0\.[0-5]\.")
"""Versions whose sessions do not say where they ran; their answers do."""


class OpenCodeFold:
    """Reads one session's rows. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        """Begin at the start of the log, or where the state left off: the version is all that it says."""
        self._source = source
        self._version = state.decode() if state else ""

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        reading = Reading(self._source, self._version)
        for line in data.split(b"\n"):
            if line:
                reading.read(line, (offset, len(line)))
            offset += len(line) + 1
        self._version = reading.version
        return reading.changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return self._version.encode()


class Reading:
    """What the lines of one feed bring."""

    def __init__(self, source: Source, version: str) -> None:
        """Begin with nothing but the version of OpenCode that made the session."""
        self.changes = Changes()
        self.version = version
        self._source = source
        self._session_id = source.session_id or ""
        self._external = self._session_id.partition(":")[2]
        self._record = (0, 0)
        self._session: SessionChange | None = None

    def read(self, data: bytes, record: tuple[int, int]) -> None:
        """One line, and the bytes of the source that it stands in (offset and length)."""
        self._record = record
        try:
            line = decode_line(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._cannot_read(str(error))
            self.changes.counts.unreadable += 1
            return
        reader = self._readers.get(line.table)
        if reader is not None:
            reader(self, line)
        elif TABLES.get(line.table) == "nothing":
            self.changes.counts.duplicates += 1
        else:
            self._keep(line, line.table, known=line.table in TABLES)

    # -- messages

    def _read_message(self, line: Line) -> None:
        place = line.place or Place(position=0)
        info, parts = self._documents(line)
        parts = parts or [object_of(part) for part in list_of(info.get("parts"))]
        if info.get("role") not in ("user", "assistant"):
            self._keep(line, MESSAGE, known=True)
            return
        self.changes.counts.messages += 1
        updated = None if place.copy_of else _updated(line) or newest_time(info, parts)
        for read in read_message(line.key, info, parts, place, version=self.version, updated_at=updated):
            self._tell(read, line, place)
        folder = text_of(object_of(info.get("path")).get("cwd"))
        if folder is not None and _HAS_NO_DIRECTORY.match(self.version or ""):
            self._learn(SessionChange(session_id=self._session_id, project_path=folder, cwd=folder))
        self._tell_of_compaction(line, place, info)
        self._tell_of_interruption(place, info, parts)

    def _tell(self, read: ReadMessage, line: Line, place: Place) -> None:
        offset, length = self._record
        records: list[RecordRef] = [(offset, length, None)]
        records += [(position, 0, name) for name, position in read.results]
        fate = Fate.RETRACTED if line.deleted else Fate.ACTIVE
        placement = Placement(
            session_id=self._session_id,
            position=read.position,
            records=tuple(records),
            record_ids=(read.message.id,),
            parent_id=read.parent,
            turn=place.turn,
            step=read.step,
            fate=fate,
            copied=place.copy_of is not None,
        )
        self.changes.messages.append(MessageChange(message=read.message, placement=placement))
        at = read.message.created_at
        last = read.message.completed_at or at
        self._learn(
            SessionChange(
                session_id=self._session_id,
                position=read.position,
                first_at=None if place.copy_of else at,
                last_at=last,
                titles=_title(read.message) if place.turn == 1 else {},
            )
        )
        if place.copied_from is not None:
            self._link("fork", place.copied_from, self._session_id, inferred=True)
        for child in read.children if place.copy_of is None else ():
            self._link("subagent", self._session_id, session_id(child.session), child.tool_call_id, read.message.id)

    def _tell_of_compaction(self, line: Line, place: Place, info: Row) -> None:
        if place.compacts is None:
            return
        message_id = place.copy_of or line.key
        event = CompactionEvent(
            id=f"{message_id}.compaction",
            position=place.compacts,
            created_at=moment(whole(object_of(info.get("time")).get("created"))),
            trigger="auto" if place.automatic else "manual",
            summary_message_id=message_id,
            kept_message_ids=place.kept,
            records=self._provenance(line),
        )
        self._event(event, counted=False)
        self._learn(SessionChange(session_id=self._session_id, relink=True))

    def _tell_of_interruption(self, place: Place, info: Row, parts: list[Row]) -> None:
        if object_of(info.get("error")).get("name") != ABORTED:
            return
        message = self.changes.messages[-1].message
        ran = any(isinstance(part, ToolCallPart) and part.state == "aborted" for part in message.parts)
        event = InterruptEvent(
            id=f"{message.id}.interrupt",
            position=place.position + 1,
            created_at=message.completed_at,
            during="tool" if ran else "answer",
            message_id=message.id,
            derived=True,
        )
        self._event(event, counted=False)

    # -- the session and what belongs to it

    def _read_session(self, line: Line) -> None:
        self.changes.counts.events += 1
        read = read_session(line.row, self._session_id)
        if read is None:
            self._cannot_read("the session's JSON cannot be read")
            return
        change, parent = read
        self.version = change.agent_version or self.version
        change.active_leaf = self._external if line.leaf is None else line.leaf
        change.relink = line.restored
        if line.leaf is not None and line.leaf_at is not None:
            change.relink = True
            event = RewindEvent(
                id=f"{self._external}.revert.{line.leaf_at}",
                position=line.leaf_at,
                created_at=change.last_at,
                to_message_id=line.leaf or None,
                records=self._provenance(line),
            )
            self._event(event, counted=False)
        self._learn(change)
        if parent:
            self._link("subagent", session_id(parent), self._session_id)

    def _read_todo(self, line: Line) -> None:
        self.changes.counts.events += 1
        position, facts = todo_facts(line.rows)
        self._learn(SessionChange(session_id=self._session_id, position=position, metadata={NAME: {"todo": facts}}))

    def _read_project(self, line: Line) -> None:
        self.changes.counts.events += 1
        self._learn(SessionChange(session_id=self._session_id, metadata={NAME: {"project": project_facts(line.row)}}))

    def _read_event(self, line: Line) -> None:
        kind = event_kind(str(line.row.get("type")))
        result = becomes(kind)
        if result == "duplicate" or (result == "row" and self._source.kind is not SourceKind.STREAM):
            self.changes.counts.duplicates += 1
        else:
            self._keep(line, kind, known=result is not None)

    # -- shared

    def _documents(self, line: Line) -> tuple[Row, list[Row]]:
        """A message's JSON and that of its parts."""
        if not is_session_message(line.row):
            return self._document(line.row, "row"), [self._part(row, at) for at, row in enumerate(line.parts)]
        try:
            return documents_of(line.row, ())
        except (ValueError, RecursionError) as error:
            self._cannot_read(f"not a JSON object: {error}", "$.row")
            return {}, []

    def _document(self, row: Row, path: str) -> Row:
        try:
            return document_of(row) if row else {}
        except (ValueError, RecursionError) as error:
            self._cannot_read(f"not a JSON object: {error}", f"$.{path}")
            return {}

    def _part(self, row: Row, index: int) -> Row:
        """A part's JSON, with its id, which a database keeps in a column."""
        part = self._document(row, f"parts[{index}]")
        return part if "id" in part or "id" not in row else part | {"id": row["id"]}

    def _keep(self, line: Line, kind: str, *, known: bool) -> None:
        """A row that is no message, as it is."""
        data = object_of(_lenient(line.row)) or line.row
        event = RecordEvent(
            id=f"{line.table}.{line.key}",
            kind=kind,
            known=known,
            position=_when(line.row, data),
            data=to_json(data),
            records=self._provenance(line),
        )
        self._event(event, counted=True)

    def _event(self, event: Any, *, counted: bool) -> None:
        self.changes.events.append(EventChange(session_id=self._session_id, event=event))
        self.changes.counts.events += counted

    def _provenance(self, line: Line) -> tuple[Provenance, ...]:
        offset, length = self._record
        key = f"{line.table}/{line.key}" if line.key else line.table
        return (Provenance(source=self._source.path, offset=offset, length=length, key=key),)

    def _link(
        self,
        kind: Any,
        parent: str,
        child: str,
        call: str | None = None,
        message: str | None = None,
        *,
        inferred: bool = False,
    ) -> None:
        parent = parent if parent.startswith(f"{NAME}:") else session_id(parent)
        self.changes.links.append(
            Link(
                kind=kind,
                parent_session_id=parent,
                child_session_id=child,
                tool_call_id=call,
                message_id=message,
                inferred=inferred,
            )
        )

    def _learn(self, change: SessionChange) -> None:
        """Join a fact into what this feed tells of the session; a later position wins."""
        known = self._session
        if known is None:
            self._session = self.changes.sessions[self._session_id] = change
            return
        older, newer = sorted((known, change), key=lambda fact: fact.position)
        joined = {
            name: getattr(newer, name) if getattr(newer, name) is not None else getattr(older, name)
            for name in ("project_path", "cwd", "agent_version", "reported_cost", "active_leaf")
        }
        self._session = self.changes.sessions[self._session_id] = SessionChange(
            session_id=self._session_id,
            position=newer.position,
            titles={**older.titles, **newer.titles},
            first_at=min((at for at in (older.first_at, newer.first_at) if at), default=None),
            last_at=max((at for at in (older.last_at, newer.last_at) if at), default=None),
            relink=older.relink or newer.relink,
            metadata=_joined(older.metadata, newer.metadata),
            **joined,
        )

    def _cannot_read(self, reason: str, path: str | None = None) -> None:
        offset, length = self._record
        self.changes.diagnostics.append(Diagnostic(offset=offset, length=length, reason=reason, json_path=path))

    _readers: ClassVar[dict[str, Callable[[Reading, Line], None]]] = {
        MESSAGE: _read_message,
        SESSION: _read_session,
        TO_DOS: _read_todo,
        PROJECT: _read_project,
        EVENT: _read_event,
    }


def _title(message: Message) -> dict[TitleSource, str]:
    """What a session is called that has no title: its first prompt."""
    if message.origin not in (Origin.PROMPT, Origin.SUBAGENT_PROMPT):
        return {}
    texts = (part.text for part in message.parts if isinstance(part, TextPart) and not part.metadata)
    words = " ".join(" ".join(texts).split())
    return {"prompt": words[:_TITLE_LENGTH].rstrip()} if words else {}


def _updated(line: Line) -> Any:
    """When a database last wrote to the message or one of its parts."""
    return moment(max((whole(row.get("time_updated")) for row in (line.row, *line.parts)), default=0) or None)


def _when(row: Row, data: Row) -> int:
    known = row.get("time_created") or object_of(data.get("time")).get("created") or data.get("time")
    return time_position(whole(known))


def _lenient(row: Row) -> Row | None:
    try:
        return document_of(row)
    except (ValueError, RecursionError):
        return None


def _joined(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    joined = {**older, **newer}
    for name in older.keys() & newer.keys():
        if isinstance(older[name], dict) and isinstance(newer[name], dict):
            joined[name] = _joined(older[name], newer[name])
    return joined
