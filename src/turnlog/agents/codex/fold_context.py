"""One reading of a rollout under way: the line, the session, the message being written, and what came of it.

The readers of the several kinds of records share it and keep nothing of their own. What outlives a feed is `State`;
the rest begins anew with each.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, TypeAlias

from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import (
    ENDED_AT,
    SHARES_BEFORE,
    Changes,
    EventChange,
    Link,
    MessageChange,
    Placement,
    SessionChange,
)
from turnlog.agents.codex import identity
from turnlog.agents.codex.drafts import CallDraft, MessageDraft
from turnlog.agents.codex.record_kinds import KEPT_FIELDS, KINDS, Becomes
from turnlog.agents.codex.records import fields_of
from turnlog.agents.codex.sources import session_id, thread_of
from turnlog.agents.codex.state import OpenMessage, State
from turnlog.agents.decoding import clean_json
from turnlog.agents.reading import LineReading, aware
from turnlog.model import Fate, HistoryEvent, Message, Origin, RecordEvent, RunMetadataEvent

TURNS_BEGIN = frozenset({Origin.PROMPT, Origin.COMMAND, Origin.SHELL, Origin.SUBAGENT_PROMPT})
"""Origins of what a person (or, to a subagent, the parent) said, which begins a turn."""


_SMALL_RECORD = 4096
"""Bytes up to which the event of an unknown record carries the record."""

Told: TypeAlias = Literal["messages", "results", "duplicates", "events"]
"""What a record is counted as (see `LineCounts`)."""


class Reading(LineReading):
    """See the module."""

    def __init__(self, external_id: str, state: State) -> None:
        super().__init__(Changes())
        self.state = state
        self.external_id = external_id
        self.session_id = session_id(external_id)
        self.session = SessionChange(session_id=self.session_id)
        self.order: list[MessageDraft | MessageChange] = []
        self.drafts: dict[str, MessageDraft] = {}
        self.calls: dict[str, CallDraft] = {}
        self.payload: Raw | bytes = b""
        """The JSON of what the line is about: the line itself where it has no envelope."""
        self.at: datetime | None = None
        """When the line was written."""
        self.item_began: float | None = None
        """When what an item tells of began, in seconds."""
        self.number: int | None = None
        """The line's number in the thread, where lines have one."""

    def finish(self) -> Changes:
        """All that this feed brought."""
        changes, session = self.changes, self.session
        changes.messages = [item if isinstance(item, MessageChange) else item.change() for item in self.order]
        if self.state.rolled_back and session.active_leaf is None:
            session.active_leaf = self.state.leaf
        if session != SessionChange(session_id=self.session_id):
            changes.sessions[self.session_id] = session
        return changes

    def note_time(self, moment: datetime | None) -> None:
        """The line's time is one of the session's."""
        if moment is not None and moment.tzinfo is not UTC:
            moment = aware(moment)
        self.at = moment
        session = self.session
        session.position = self.position
        if moment is None:
            return
        if session.first_at is None or session.last_at is None:
            session.first_at = session.last_at = moment
        elif moment > session.last_at:
            session.last_at = moment
        elif moment < session.first_at:
            session.first_at = moment

    @property
    def thread(self) -> str:
        """The thread in which what is being read was first said."""
        return self.state.origin or self.external_id

    def is_of_thread(self, thread: str | None) -> bool:
        """Whether what a line tells happened here: what a thread that reviews does is in its own log, and told here."""
        return thread is None or thread in (thread_of(self.external_id), self.thread)

    # Messages

    def place(self, message_id: str) -> OpenMessage:
        """The place of a new message, behind the newest."""
        state = self.state
        place = OpenMessage(self.position, state.leaf, state.turn or None, None, state.origin is not None)
        state.leaf = message_id
        return place

    @property
    def is_own(self) -> bool:
        """Whether the line is this thread's own, not a copy of another's."""
        return self.state.origin is None

    def add_message(self, message: Message) -> None:
        """A message that is one record."""
        state = self.state
        if message.origin in TURNS_BEGIN:
            state.remember_turn(state.leaf)
            state.turn += 1
            state.step = 0
        self.close_message()
        place = self.place(message.id)
        self.order.append(
            MessageChange(
                message=message,
                placement=Placement(
                    session_id=self.session_id,
                    position=place.position,
                    records=((self.position, self.length, None),),
                    record_ids=self._record_ids(message.id),
                    parent_id=place.parent,
                    turn=place.turn,
                    fate=Fate.ACTIVE,
                    copied=place.copied,
                ),
            )
        )

    def add_again(self, message: Message, position: int) -> None:
        """Another reading of a message that began at `position`."""
        self.order.append(
            MessageChange(
                message=message,
                placement=Placement(
                    session_id=self.session_id,
                    position=position,
                    records=((self.position, self.length, None),),
                    record_ids=(message.id,),
                ),
            )
        )

    def begin_message(self, message_id: str) -> MessageDraft:
        """A response of the model begins."""
        state = self.state
        state.step += 1
        state.recorded = False
        place = self.place(message_id)
        place.step = state.step
        forgotten = state.remember_message(message_id, place)
        if forgotten is not None:
            self.drafts.pop(forgotten, None)
        state.open = state.answer = message_id
        state.answer_key = state.answer_response = None
        draft = self._draft(message_id, place)
        draft.record_ids = self._record_ids(message_id)
        draft.model = state.model
        draft.provider = state.provider
        if state.effort is not None:
            draft.metadata["effort"] = state.effort
        return draft

    def draft_of(self, message_id: str) -> MessageDraft | None:
        """What this feed has of an assistant message; None when it is forgotten."""
        draft = self.drafts.get(message_id)
        if draft is not None:
            return draft
        place = self.state.messages.get(message_id)
        return None if place is None else self._draft(message_id, place)

    def _draft(self, message_id: str, place: OpenMessage) -> MessageDraft:
        draft = MessageDraft(message_id, self.session_id, place, (message_id,))
        self.drafts[message_id] = draft
        self.order.append(draft)
        return draft

    def open_draft(self) -> MessageDraft | None:
        """The response that is being written."""
        message_id = self.state.open
        if message_id is None:
            return None
        return self.drafts.get(message_id) or self.draft_of(message_id)

    def close_message(self) -> None:
        """What follows is of another response."""
        self.state.open = None

    def _record_ids(self, message_id: str) -> tuple[str, ...]:
        """What later records may call a message: its id, and the number of its first record."""
        return (message_id,) if self.number is None else (message_id, f"#{self.number}")

    def begin_turn_key(self, turn_id: str | None, prompt: str | None) -> None:
        """Another turn: what is said in it is not what was said before."""
        state = self.state
        if turn_id is not None:
            if turn_id == state.turn_id:
                return
            state.turn_id = state.turn_key = turn_id
        elif prompt is not None and state.turn_id is None:
            state.turn_key = identity.next_turn_key(state.turn_key, prompt)
        else:
            return
        state.said = {}

    # What belongs to no message

    def own_id(self) -> str:
        """An id for what has none in the log: made of its place."""
        return f"{self.session_id}@{self.position}"

    def add_event(self, event: HistoryEvent) -> None:
        """Put an event where its record stands, and count the record."""
        self.event_beside(event)
        self.changes.counts.events += 1

    def add_record_event(self, kind: str, payload: bytes | Raw) -> None:
        """Add the event that `KINDS` has for a record; a record of an unknown kind is kept as such."""
        handling = KINDS.get(kind)
        event: HistoryEvent
        if handling is Becomes.RUN_METADATA or kind == "event_msg/token_count":
            event = RunMetadataEvent(
                id=self.own_id(),
                position=self.position,
                created_at=self.at,
                kind=kind,
                data=_kept_fields(kind, payload),
            )
        else:
            event = RecordEvent(
                id=self.own_id(),
                position=self.position,
                created_at=self.at,
                kind=kind,
                known=handling is not None,
                data=self._small_record() if handling is None else _kept_fields(kind, payload),
            )
        self.add_event(event)

    def _small_record(self) -> Raw | UnsetType:
        return Raw(clean_json(self.json)) if len(self.json) <= _SMALL_RECORD else UNSET

    def event_beside(self, event: HistoryEvent) -> None:
        """An event that the line tells beside what it is itself."""
        self.changes.events.append(
            EventChange(session_id=self.session_id, event=event, record=(self.position, self.length))
        )

    def link(
        self,
        kind: Literal["subagent", "fork"],
        parent: str,
        child: str,
        call_id: str | None = None,
        shares_before: int | None = None,
    ) -> None:
        """Say that the thread `child` came out of `parent`, and that it shares its records before a number."""
        if kind == "subagent" and parent == self.external_id and self.is_own:
            self.state.remember_child(child)
        if parent != child:
            self.changes.links.append(
                Link(
                    kind=kind,
                    parent_session_id=session_id(parent),
                    child_session_id=session_id(child),
                    tool_call_id=call_id,
                    metadata={} if shares_before is None else {SHARES_BEFORE: shares_before},
                )
            )

    def end_process(self) -> None:
        """Say that the process that wrote the log was gone by now, and with it the threads that it had started."""
        children, self.state.children = self.state.children, []
        if self.at is None:
            return
        told = {ENDED_AT: int(self.at.timestamp() * 1000)}
        for child in children:
            self.changes.links.append(
                Link(
                    kind="subagent",
                    parent_session_id=self.session_id,
                    child_session_id=session_id(child),
                    metadata=told,
                )
            )


def _kept_fields(kind: str, payload: bytes | Raw) -> Raw | UnsetType:
    wanted = KEPT_FIELDS.get(kind)
    if not wanted:
        return UNSET
    found = fields_of(payload)
    kept = [b'"%s":%s' % (name.encode(), bytes(found[name])) for name in wanted if name in found]
    return Raw(b"{%s}" % b",".join(kept)) if kept else UNSET
