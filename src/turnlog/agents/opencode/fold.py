"""The fold of one session's row log: each line is a message with its parts, the session, or something about it.

A line tells all that it needs (`rows.Place`), so nothing has to be remembered between lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes, MessageChange, Placement, RecordRef, SessionChange
from turnlog.agents.opencode.ids import NAME, moment, session_id, whole
from turnlog.agents.opencode.kinds import TABLES, becomes, event_kind
from turnlog.agents.opencode.messages import ABORTED, ReadMessage, newest_time, read_message
from turnlog.agents.opencode.reading import SessionReading
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
    list_of,
    object_of,
    text_of,
)
from turnlog.agents.opencode.sessions import project_facts, read_session, todo_facts
from turnlog.model import (
    CompactionEvent,
    Fate,
    InterruptEvent,
    Message,
    Origin,
    RewindEvent,
    TextPart,
    ToolCallPart,
)
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


class Reading(SessionReading):
    """What the lines of one feed bring."""

    def read(self, data: bytes, record: tuple[int, int]) -> None:
        """One line, and the bytes of the source that it stands in (offset and length)."""
        self.record = record
        try:
            line = decode_line(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.cannot_read(str(error))
            self.changes.counts.unreadable += 1
            return
        reader = self._readers.get(line.table)
        if reader is not None:
            self._read_by(reader, line)
        elif TABLES.get(line.table) == "nothing":
            self.changes.counts.duplicates += 1
        else:
            self.keep(line, line.table, known=line.table in TABLES)

    def _read_by(self, reader: Callable[[Reading, Line], None], line: Line) -> None:
        try:
            reader(self, line)
        except RecursionError:
            self.cannot_read("nested too deep")
            self.changes.counts.unreadable += 1

    # -- messages

    def _read_message(self, line: Line) -> None:
        place = line.place or Place(position=0)
        info, parts = self.documents(line)
        parts = parts or [object_of(part) for part in list_of(info.get("parts"))]
        if info.get("role") not in ("user", "assistant"):
            self.keep(line, MESSAGE, known=True)
            return
        updated = None if place.copy_of else _updated(line) or newest_time(info, parts)
        for read in read_message(line.key, info, parts, place, version=self.version, updated_at=updated):
            self._tell(read, line, place)
        self.changes.counts.messages += 1
        folder = text_of(object_of(info.get("path")).get("cwd"))
        if folder is not None and _HAS_NO_DIRECTORY.match(self.version or ""):
            self.learn(SessionChange(session_id=self.session_id, project_path=folder, cwd=folder))
        self._tell_of_compaction(line, place, info)
        self._tell_of_interruption(place, info, parts)

    def _tell(self, read: ReadMessage, line: Line, place: Place) -> None:
        offset, length = self.record
        records: list[RecordRef] = [(offset, length, None)]
        records += [(position, 0, name) for name, position in read.results]
        fate = Fate.RETRACTED if line.deleted else Fate.ACTIVE
        placement = Placement(
            session_id=self.session_id,
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
        self.learn(
            SessionChange(
                session_id=self.session_id,
                position=read.position,
                first_at=None if place.copy_of else at,
                last_at=last,
                titles=_title(read.message) if place.turn == 1 else {},
            )
        )
        if place.copied_from is not None:
            self.link("fork", place.copied_from, self.session_id, inferred=True)
        for child in read.children if place.copy_of is None else ():
            self.link("subagent", self.session_id, session_id(child.session), child.tool_call_id, read.message.id)

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
            records=self.provenance(line),
        )
        self.event(event, counted=False)
        self.learn(SessionChange(session_id=self.session_id, relink=True))

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
        self.event(event, counted=False)

    # -- the session and what belongs to it

    def _read_session(self, line: Line) -> None:
        self.changes.counts.events += 1
        read = read_session(line.row, self.session_id)
        if read is None:
            self.cannot_read("the session's JSON cannot be read")
            return
        change, parent = read
        self.version = change.agent_version or self.version
        change.position = change.position if line.at is None else line.at
        change.active_leaf = self.external if line.leaf is None else line.leaf
        change.relink = line.restored
        if line.leaf is not None and line.leaf_at is not None:
            change.relink = True
            event = RewindEvent(
                id=f"{self.external}.revert.{line.leaf_at}",
                position=line.leaf_at,
                created_at=change.last_at,
                to_message_id=line.leaf or None,
                records=self.provenance(line),
            )
            self.event(event, counted=False)
        self.learn(change)
        if parent:
            self.link("subagent", session_id(parent), self.session_id)

    def _read_todo(self, line: Line) -> None:
        self.changes.counts.events += 1
        position, facts = todo_facts(line.rows)
        position = position if line.at is None else line.at
        self.learn(SessionChange(session_id=self.session_id, position=position, metadata={NAME: {"todo": facts}}))

    def _read_project(self, line: Line) -> None:
        self.changes.counts.events += 1
        facts = {NAME: {"project": project_facts(line.row)}}
        self.learn(SessionChange(session_id=self.session_id, position=line.at or 0, metadata=facts))

    def _read_event(self, line: Line) -> None:
        kind = event_kind(str(line.row.get("type")))
        result = becomes(kind)
        if result == "duplicate" or (result == "row" and self.source.kind is not SourceKind.STREAM):
            self.changes.counts.duplicates += 1
        else:
            self.keep(line, kind, known=result is not None)

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
