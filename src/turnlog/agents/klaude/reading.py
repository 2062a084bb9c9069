"""What one feed of a log has brought so far: messages, results, events, and facts about the session."""

from __future__ import annotations

from hashlib import sha256
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import (
    Changes,
    EventChange,
    Link,
    MessageChange,
    Placement,
    SessionChange,
)
from turnlog.agents.decoding import clean_json
from turnlog.agents.klaude.contents import time_of
from turnlog.agents.klaude.records import Data
from turnlog.agents.klaude.sources import session_id
from turnlog.agents.klaude.state import Line, State
from turnlog.agents.reading import LineReading
from turnlog.model import Fate, HistoryEvent, Message, Origin, RecordEvent, RelationshipKind, RunMetadataEvent

_SMALL = 4096
"""Bytes up to which the event of a record that becomes nothing else carries the record."""
_TITLE_LENGTH = 200


class Reading(LineReading):
    """One feed."""

    def __init__(self, state: State, external_id: str) -> None:
        super().__init__(Changes())
        self.state = state
        self.external_id = external_id
        self.session_id = session_id(external_id)

    @property
    def session(self) -> SessionChange:
        """What this feed learned about the session."""
        change = self.changes.sessions.get(self.session_id)
        if change is None:
            change = self.changes.sessions[self.session_id] = SessionChange(session_id=self.session_id)
        change.position = self.position
        return change

    def finish(self) -> Changes:
        """All that this feed brought."""
        change = self.changes.sessions.get(self.session_id)
        if change is not None and self.state.branched:
            change.relink = True
            change.active_leaf = self.state.leaf or ""
        return self.changes

    def note_time(self, data: Data) -> None:
        """The session is at least as old and as new as this."""
        change, at = self.session, time_of(data.created_at)
        if at is not None:
            change.first_at = at if change.first_at is None else min(change.first_at, at)
            change.last_at = at if change.last_at is None else max(change.last_at, at)
        elif data.created_at is not None:
            self.tell("is not a time", json_path="$.data.created_at")

    def note_title(self, text: str) -> None:
        """What the first prompt said."""
        title = " ".join(text.split())[:_TITLE_LENGTH]
        if title and not self.state.titled:
            self.session.titles["prompt"] = title
            self.state.titled = True

    # -- ids

    def own_id(self) -> str:
        """An id for what has none in the log: made of its place."""
        return f"{self.external_id}@{self.position}"

    def message_id(self, kind: str, data: Data) -> str:
        """A message's id: the log's own, else made of when and what was said, so that a fork's copy has the same."""
        if data.id is not None:
            return data.id
        if data.created_at is None:
            return self.own_id()
        said = "".join(bytes(part).decode(errors="replace") for part in data.parts or ()) or data.content or ""
        key = f"{kind}|{data.created_at}|{data.response_id}|{said or data.summary}"
        return sha256(key.encode(errors="replace")).hexdigest()[:32]

    # -- messages

    def add_message(self, message: Message, *, step: int | None = None, said: str | None = None) -> None:
        """A message that this line tells; it follows the newest that stands."""
        state = self.state
        self._add(message, self.position, parent=state.leaf, step=step)
        state.leaf = message.id
        checksum = None if said is None else crc32(said.encode(errors="replace"))
        state.active.append(Line(self.line_number - 1, message.id, self.position, checksum))

    def add_piece(self, message: Message, *, step: int | None) -> None:
        """More of the answer that is being told."""
        self._add(message, self.position, parent=None, step=step)
        self.stand()

    def retract(self, line: Line) -> None:
        """The user took a message back: only it goes."""
        assert line.message is not None
        self._add(Message(id=line.message, role="user"), line.position, fate=Fate.RETRACTED)

    def stand(self) -> None:
        """The line stands, and is no message of its own."""
        self.state.active.append(Line(self.line_number - 1))

    def _add(
        self,
        message: Message,
        position: int,
        *,
        parent: str | None = None,
        step: int | None = None,
        fate: Fate = Fate.ACTIVE,
    ) -> None:
        placement = Placement(
            session_id=self.session_id,
            position=position,
            records=((self.position, self.length, None),),
            record_ids=(message.id,),
            parent_id=None if parent == message.id else parent,
            turn=(self.state.turn or None) if fate is Fate.ACTIVE else None,
            step=step,
            fate=fate,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))

    def begin_turn(self, origin: Origin) -> None:
        """A message of this origin is there."""
        if origin is Origin.PROMPT:
            self.state.turn += 1
            self.state.step = 0

    def next_step(self) -> int:
        """The number of a new model call."""
        self.state.step += 1
        return self.state.step

    # -- events, links and diagnostics

    def add_event(self, event: HistoryEvent) -> None:
        """Put an event where its record stands."""
        placed = msgspec.structs.replace(event, position=self.position)
        record = (self.position, self.length)
        self.changes.events.append(EventChange(session_id=self.session_id, event=placed, record=record))
        self.changes.counts.events += 1

    def add_fact(self, kind: str, data: Data) -> None:
        """A record that says something about the run."""
        event = RunMetadataEvent(
            id=self.own_id(), kind=kind, created_at=time_of(data.created_at), data=Raw(clean_json(self.json))
        )
        self.add_event(event)

    def add_record(self, kind: str, data: Data | None, *, known: bool) -> None:
        """A record that becomes nothing else."""
        json = clean_json(self.json)
        small: Raw | UnsetType = Raw(json) if json and len(json) <= _SMALL else UNSET
        at = None if data is None else time_of(data.created_at)
        self.add_event(RecordEvent(id=self.own_id(), kind=kind, known=known, created_at=at, data=small))

    def link(
        self, kind: RelationshipKind, *, parent: str | None = None, child: str | None = None, call: str | None = None
    ) -> None:
        """This session came out of another, or another out of this."""
        self.changes.links.append(
            Link(
                kind=kind,
                parent_session_id=self.session_id if parent is None else session_id(parent),
                child_session_id=self.session_id if child is None else session_id(child),
                tool_call_id=call,
            )
        )
