"""What one feed of a log has brought so far: messages, results, events, and facts about the session.

Knows the place in the file and the session. What a record means is read in `messages` and `lists`.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import (
    Changes,
    EventChange,
    Link,
    MessageChange,
    Placement,
    RecordRef,
    ResultChange,
    SessionChange,
)
from turnlog.agents.decoding import clean_json
from turnlog.agents.gemini_cli.sources import session_id
from turnlog.agents.gemini_cli.state import Entry, State
from turnlog.agents.reading import LineReading, aware
from turnlog.model import HistoryEvent, Message, RecordEvent, RunMetadataEvent, ToolResult

_SMALL = 4096
"""Bytes up to which the event of an unknown record carries the record."""

_OFFSET_BITS = 30
_LARGEST_OFFSET = (1 << _OFFSET_BITS) - 1
_LATEST = (1 << 63 - _OFFSET_BITS) - 1
"""The last second that a place has room for, in the year 2242."""


class Reading(LineReading):
    """One feed."""

    def __init__(
        self, state: State, *, unnamed: str, is_subagent: bool, parent: str | None, project: str | None, place: int
    ) -> None:
        super().__init__(Changes())
        self.state = state
        self.is_subagent = is_subagent or state.parent is not None
        self.is_whole = False
        """Whether this is a file of JSON, whose messages count as records."""
        self.merges_rounds = False
        """Whether an answer may hold the calls of several requests: see `rounds`."""
        self.previous_end = 0
        """Where the record before this one ended."""
        self._unnamed = unnamed
        self._parent = parent or state.parent
        self._project = project
        self._first_place = place

    # -- the session

    @property
    def external_id(self) -> str:
        """The session's own id; until a record tells it (headers may be damaged) the file's name, no other has it."""
        return self.state.session or self._unnamed

    @property
    def session_id(self) -> str:
        """The session's id."""
        return session_id(self.external_id)

    @property
    def session(self) -> SessionChange:
        """What this feed learned about the session."""
        change = self.changes.sessions.get(self.session_id)
        if change is None:
            change = SessionChange(session_id=self.session_id, project_path=self._project, cwd=self._project)
            self.changes.sessions[self.session_id] = change
        return change

    def enter(self, external_id: str) -> None:
        """A record names the session: mostly the one that is being read."""
        state = self.state
        if state.parent == external_id and state.session is not None:
            external_id = state.session
        if state.session != external_id and (state.session is not None or state.entries or state.last_at):
            self._leave(self.previous_end)
            self.state = State(lines=state.lines, file=state.file)
        self.state.session = external_id
        if self._parent is not None and self._parent != external_id:
            self.changes.links.append(
                Link(kind="subagent", parent_session_id=session_id(self._parent), child_session_id=self.session_id)
            )

    def enter_subagent(self, parent: str) -> None:
        """A header names the session that started what is being read: a session that is called by its beginning."""
        self.is_subagent, self._parent = True, parent
        self.enter(f"{parent}.{self.state.file.rstrip('.')}")
        self.state.parent = parent

    def go_on_from(self, before: State, leaf: str) -> None:
        """What follows continues what was read of the same session, whose newest message this is."""
        self.state.session = before.session
        self.state.turn, self.state.step, self.state.titled = before.turn, before.step, before.titled
        self.state.leaf, self.state.entries = leaf, {leaf: before.entries[leaf]}

    def note_times(self, *moments: datetime | None) -> None:
        """The session is at least as old and as new as these."""
        change = self.session
        for moment in moments:
            if moment is not None:
                at = aware(moment)
                change.first_at = at if change.first_at is None else min(change.first_at, at)
                change.last_at = at if change.last_at is None else max(change.last_at, at)
                self.state.last_at = max(self.state.last_at, int(at.timestamp()))

    def note_folder(self, path: str) -> None:
        """The folder that the session works in, as a record tells."""
        change = self.session
        change.project_path = change.cwd = path

    def finish(self) -> Changes:
        """All that this feed brought."""
        self._leave(self.position + self.length)
        return self.changes

    def _leave(self, end: int) -> None:
        """What the records of a session up to a place have made of it."""
        state = self.state
        change = self.changes.sessions.get(self.session_id)
        if change is not None:
            # Files of one session are ordered by time; a file of JSON has no offsets that last.
            change.position = (min(state.last_at, _LATEST) << _OFFSET_BITS) + min(end, _LARGEST_OFFSET)
            change.relink = state.branched
            if state.turn or state.branched:
                change.active_leaf = "" if state.leaf is None else self.message_id(state.leaf)

    # -- messages and results

    def message_id(self, key: str) -> str:
        """A message's id: the log's own ids are the same in every session, and for two messages of one."""
        return f"{self.external_id}:{key}"

    def add_message(self, key: str, message: Message, entry: Entry, refs: tuple[RecordRef, ...]) -> None:
        """A reading of a message; where it is new it follows the newest message of the list."""
        state = self.state
        is_new = key not in state.entries
        parent = state.leaf if is_new else None
        self.changes.messages.append(
            MessageChange(
                message=message,
                placement=Placement(
                    session_id=self.session_id,
                    position=self._first_place + refs[0][0],
                    records=refs,
                    record_ids=(message.id,),
                    parent_id=None if parent is None else self.message_id(parent),
                    turn=entry.turn,
                    step=entry.step,
                ),
            )
        )
        if is_new:
            state.leaf = key

    def add_late_result(self, call_id: str, result: ToolResult, position: int, length: int) -> None:
        """A result whose call stands in another record."""
        self.changes.results.append(
            ResultChange(
                session_id=self.session_id,
                tool_call_id=call_id,
                result=result,
                position=self._first_place + position,
                record=(position, length),
            )
        )

    # -- events and diagnostics

    def own_id(self, position: int) -> str:
        """An id for what has none in the log: made of its place."""
        return f"{self.external_id}@{self.state.file}{position}"

    def add_event(self, event: HistoryEvent, position: int | None = None, length: int | None = None) -> None:
        """Put an event where its record stands."""
        place = (self.position if position is None else position, self.length if length is None else length)
        self.changes.events.append(
            EventChange(
                session_id=self.session_id,
                event=msgspec.structs.replace(event, position=self._first_place + place[0]),
                record=place,
            )
        )

    def add_fact(self, kind: str, created_at: datetime | None, data: Raw | UnsetType = UNSET) -> None:
        """A record that says something about the run."""
        self.add_event(RunMetadataEvent(id=self.own_id(self.position), kind=kind, created_at=created_at, data=data))

    def add_record(self, kind: str, created_at: datetime | None, *, known: bool) -> None:
        """A record that becomes nothing else."""
        json = clean_json(self.json)
        data = Raw(json) if len(json) <= _SMALL else UNSET
        self.add_event(
            RecordEvent(id=self.own_id(self.position), kind=kind, known=known, created_at=created_at, data=data)
        )


def aware_or_none(moment: datetime | None) -> datetime | None:
    """The moment in UTC, where there is one."""
    return None if moment is None else aware(moment)
