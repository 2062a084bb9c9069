"""The working object of one feed of a Codex rollout, `CodexContext`, and the drafts of what it has read.

It holds the line that is being read, the session, the current assistant message, and the changes found so far. All
functions that read records take it and keep nothing of their own. What must outlive the feed is in `CodexState`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import (
    ENDED_AT,
    SHARES_BEFORE,
    Changes,
    EventChange,
    Link,
    MessageChange,
    Placement,
    RecordRef,
    SessionChange,
)
from turnlog.agents.codex import NAME
from turnlog.agents.codex.record_kinds import KEPT_FIELDS, RECORD_KINDS, CodexRecordOutcome
from turnlog.agents.codex.sources import session_id, thread_of
from turnlog.agents.codex.state import CodexPendingMessage, CodexState, next_turn_key
from turnlog.agents.decoding import LARGEST_EVENT_RECORD, LineContext, aware, clean_json, fields_of, in_order_of_arrival
from turnlog.model import (
    Fate,
    HistoryEvent,
    Message,
    Origin,
    Part,
    ProviderData,
    ReasoningPart,
    RecordEvent,
    RunMetadataEvent,
    StopReason,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
    Usage,
)
from turnlog.model.parts import STATE_OF_STATUS, state_after

_RANDOM_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

_IMPORTED_TURN = re.compile(r"external-import-turn-\d+")
"""Id of a turn that Codex copied from a session of another agent."""

TURN_ORIGINS = frozenset({Origin.PROMPT, Origin.COMMAND, Origin.SHELL, Origin.SUBAGENT_PROMPT})
"""Origins of messages that begin a turn: a person wrote them, or for a subagent its parent."""

CountedAs: TypeAlias = Literal["messages", "results", "duplicates", "events"]
"""Which field of `LineCounts` counts a record."""


class CodexContext(LineContext):
    """One feed of one rollout. `finish` returns the changes."""

    def __init__(self, external_id: str, state: CodexState) -> None:
        super().__init__(Changes())
        self.state = state
        self.external_id = external_id
        self.session_id = session_id(external_id)
        self.session = SessionChange(session_id=self.session_id)
        self.new_messages: list[CodexMessageDraft | MessageChange] = []
        self.drafts: dict[str, CodexMessageDraft] = {}
        self.calls: dict[str, CodexCallDraft] = {}
        self.payload: Raw | bytes = b""
        """The JSON of the line's payload; the line itself where it has no envelope."""
        self.written_at: datetime | None = None
        """When the line was written."""
        self.item_started: float | None = None
        """When the call of an `item_completed` began, in Unix seconds."""
        self.ordinal: int | None = None
        """The line's ordinal in its thread, where lines have one."""

    def finish(self) -> Changes:
        """The changes of this feed, messages in the order in which the feed met them first."""
        changes, session = self.changes, self.session
        changes.messages = [item if isinstance(item, MessageChange) else item.change() for item in self.new_messages]
        # Without a leaf the store shows the newest message, which a rollback may have left behind.
        if self.state.rolled_back and session.active_leaf is None:
            session.active_leaf = self.state.leaf
        if session != SessionChange(session_id=self.session_id):
            changes.sessions[self.session_id] = session
        return changes

    def set_time(self, moment: datetime | None) -> None:
        """Set the time of the line, and widen the session's times by it."""
        if moment is not None and moment.tzinfo is not UTC:
            moment = aware(moment)
        self.written_at = moment
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
        """The thread that wrote the current record first: in a copy, the thread that was copied."""
        return self.state.origin or self.external_id

    @property
    def id_prefix(self) -> str:
        """What ids of messages begin with: the thread, or a turn whose id is unique and says nothing of the thread.

        No record of a copied turn says which of several threads wrote it. An id with a time in it does
        (`session.read_turn_id`).
        """
        turn_id = self.state.turn_id
        return turn_id if turn_id is not None and _RANDOM_UUID.fullmatch(turn_id) else self.thread

    def is_about_this_thread(self, thread: str | None) -> bool:
        """Whether an event happened in this thread. Events of a review's thread are repeated here."""
        return thread is None or thread in (thread_of(self.external_id), self.thread)

    # -- messages
    def next_place(self, message_id: str) -> CodexPendingMessage:
        """The place of a new message, after the newest. The message becomes the newest."""
        state = self.state
        next_place = CodexPendingMessage(self.position, state.leaf, state.turn or None, None, state.origin is not None)
        state.leaf = message_id
        return next_place

    @property
    def reads_carried(self) -> bool:
        """Whether the line was handed over from a session of another agent."""
        return self.line_number <= self.state.carried_lines

    @property
    def is_handed_over(self) -> bool:
        """Whether the record comes from a session of another agent, by turnlog or by Codex's own import."""
        return self.reads_carried or self.state.is_imported

    @property
    def is_own(self) -> bool:
        """Whether the record is this thread's own and not a copy of another thread's."""
        return self.state.origin is None

    def add_message(self, message: Message) -> None:
        """Add a message that is one record."""
        state = self.state
        if message.origin in TURN_ORIGINS:
            state.remember_turn(state.leaf)
            state.turn += 1
            state.step = 0
        self.close_message()
        next_place = self.next_place(message.id)
        self.new_messages.append(
            MessageChange(
                message=message,
                placement=Placement(
                    session_id=self.session_id,
                    position=next_place.position,
                    records=((self.position, self.length, None),),
                    record_ids=self._record_ids(message.id),
                    parent_id=next_place.parent,
                    turn=next_place.turn,
                    fate=Fate.ACTIVE,
                    copied=next_place.copied or self.is_handed_over,
                    handed_over=self.is_handed_over,
                ),
            )
        )

    def emit_again(self, message: Message, position: int) -> None:
        """Emit a message that was emitted before, read from a second record: the store joins both by id."""
        self.new_messages.append(
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

    def begin_message(self, message_id: str) -> CodexMessageDraft:
        """Begin an assistant message, which is a new response of the model."""
        self.close_message()
        state = self.state
        state.step += 1
        state.usage_recorded = False
        next_place = self.next_place(message_id)
        next_place.step = state.step
        next_place.handed_over = self.is_handed_over
        next_place.service_tier = state.service_tier
        forgotten = state.remember_message(message_id, next_place)
        if forgotten is not None:
            self.drafts.pop(forgotten, None)
        state.current_message = state.assistant_message = message_id
        state.assistant_text_key = state.assistant_response = None
        draft = self._draft(message_id, next_place)
        draft.record_ids = self._record_ids(message_id)
        draft.model = state.model
        draft.provider = state.provider
        if state.effort is not None:
            draft.metadata["effort"] = state.effort
        return draft

    def draft_of(self, message_id: str) -> CodexMessageDraft | None:
        """The draft of an assistant message; None if the message is no longer remembered."""
        draft = self.drafts.get(message_id)
        if draft is not None:
            return draft
        next_place = self.state.messages.get(message_id)
        return None if next_place is None else self._draft(message_id, next_place)

    def _draft(self, message_id: str, next_place: CodexPendingMessage) -> CodexMessageDraft:
        draft = CodexMessageDraft(message_id, self.session_id, next_place, (message_id,))
        self.drafts[message_id] = draft
        self.new_messages.append(draft)
        return draft

    def current_draft(self) -> CodexMessageDraft | None:
        """The draft of the current assistant message; None if the next item begins another."""
        message_id = self.state.current_message
        if message_id is None:
            return None
        return self.drafts.get(message_id) or self.draft_of(message_id)

    def close_message(self) -> None:
        """End the current assistant message: the next item begins another."""
        message_id, self.state.current_message = self.state.current_message, None
        place = self.state.messages.get(message_id) if message_id is not None else None
        if message_id is not None and place is not None and place.sections:
            self._add_sections(message_id, place)

    def _add_sections(self, message_id: str, place: CodexPendingMessage) -> None:
        """Add sections of reasoning without an item as parts: a line was damaged, or Codex was killed."""
        draft = self.draft_of(message_id)
        for number, text in place.sections.items():
            if draft is not None and text:
                draft.parts[number] = ReasoningPart(id=f"{message_id}.{number}", text=text)
        place.sections = {}

    def _record_ids(self, message_id: str) -> tuple[str, ...]:
        """The names that later records may use for a message: its id, and the ordinal of its first record."""
        return (message_id,) if self.ordinal is None else (message_id, f"#{self.ordinal}")

    def set_turn(self, turn_id: str | None, prompt: str | None) -> None:
        """Begin another turn, if this id or prompt does. Ids that are made of texts contain the turn's key."""
        state = self.state
        if turn_id is not None:
            if turn_id == state.turn_id:
                return
            state.turn_id = state.turn_key = turn_id
            state.is_imported = _IMPORTED_TURN.fullmatch(turn_id) is not None
        elif prompt is not None and state.turn_id is None:
            state.turn_key = next_turn_key(state.turn_key, prompt)
        else:
            return
        state.text_counts = {}

    # -- events and links
    def position_id(self) -> str:
        """An id for a record that has none in the log, made of its byte offset."""
        return f"{self.session_id}@{self.position}"

    def add_event(self, event: HistoryEvent) -> None:
        """Add the event that a record is, and count the record."""
        self.add_extra_event(event)
        self.changes.counts.events += 1

    def add_record_event(self, kind: str, payload: bytes | Raw) -> None:
        """Add the event that `RECORD_KINDS` has for a record; a record of an unknown kind is kept as such."""
        outcome = RECORD_KINDS.get(kind)
        event: HistoryEvent
        if outcome is CodexRecordOutcome.RUN_METADATA or kind == "event_msg/token_count":
            event = RunMetadataEvent(
                id=self.position_id(),
                position=self.position,
                created_at=self.written_at,
                kind=kind,
                data=_kept_fields(kind, payload),
            )
        else:
            event = RecordEvent(
                id=self.position_id(),
                position=self.position,
                created_at=self.written_at,
                kind=kind,
                known=outcome is not None,
                data=self._small_record() if outcome is None else _kept_fields(kind, payload),
            )
        self.add_event(event)

    def _small_record(self) -> Raw | UnsetType:
        return Raw(clean_json(self.json)) if len(self.json) <= LARGEST_EVENT_RECORD else UNSET

    def add_extra_event(self, event: HistoryEvent) -> None:
        """Add a further event of a record that is also something else. The record is not counted."""
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
        """Add a link from thread `parent` to `child`. A fork shares the parent's records before an ordinal."""
        # A subagent runs in the process of its parent: it ends with it, also where its own log has no end.
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
        """Add the time by which this thread's process had ended, and with it the threads that it started."""
        children, self.state.children = self.state.children, []
        if self.written_at is None:
            return
        ended = {ENDED_AT: int(self.written_at.timestamp() * 1000)}
        for child in children:
            self.changes.links.append(
                Link(
                    kind="subagent",
                    parent_session_id=self.session_id,
                    child_session_id=session_id(child),
                    metadata=ended,
                )
            )


def _kept_fields(kind: str, payload: bytes | Raw) -> Raw | UnsetType:
    wanted = KEPT_FIELDS.get(kind)
    if not wanted:
        return UNSET
    found = fields_of(payload)
    kept = [b'"%s":%s' % (name.encode(), bytes(found[name])) for name in wanted if name in found]
    return Raw(b"{%s}" % b",".join(kept)) if kept else UNSET


# -- messages and calls while their records are read: what one feed has of them


class CodexMessageDraft(msgspec.Struct, eq=False):
    """What one feed has read of an assistant message. `pending` is its place, which outlives the feed."""

    id: str
    session_id: str
    pending: CodexPendingMessage
    record_ids: tuple[str, ...]
    parts: dict[int, Part | CodexCallDraft] = {}
    records: list[RecordRef] = []
    in_order: bool = True
    """Whether the records are in file order."""
    created_at: datetime | None = None
    completed_at: datetime | None = None
    model: str | None = None
    provider: str | None = None
    origin: Origin | None = None
    response_id: str | None = None
    stop_reason: StopReason | None = None
    usage: Usage | None = None
    metadata: dict[str, Any] = {}

    def add_time(self, moment: datetime | None) -> None:
        """Widen the message's times by that of a record."""
        if moment is None:
            return
        if self.created_at is None or self.completed_at is None:
            self.created_at = self.completed_at = moment
        elif moment > self.completed_at:
            self.completed_at = moment
        elif moment < self.created_at:
            self.created_at = moment

    def change(self) -> MessageChange:
        """The message as this feed knows it. The draft cannot be used afterwards."""
        place = self.pending
        # A draft and its calls refer to each other. Emptying `parts` frees them without the garbage collector.
        parts, self.parts = self.parts, {}
        numbers = list(parts)
        if numbers != sorted(numbers):
            parts = dict(sorted(parts.items()))
        message = Message(
            id=self.id,
            role="assistant",
            parts=tuple([part.part() if isinstance(part, CodexCallDraft) else part for part in parts.values()]),
            origin=self.origin,
            created_at=self.created_at,
            # The records of a copy have the time of the copying. Only the original has the time of the end.
            completed_at=None if place.copied else self.completed_at,
            model=self.model,
            response_id=self.response_id,
            stop_reason=self.stop_reason,
            usage=self.usage,
            provider=None if self.provider is None else ProviderData(name=self.provider),
            metadata={NAME: self.metadata} if self.metadata else {},
        )
        if not self.in_order:
            self.records.sort(key=itemgetter(0))
        return MessageChange(
            message=message,
            placement=Placement(
                session_id=self.session_id,
                position=place.position,
                records=tuple(self.records),
                record_ids=self.record_ids,
                parent_id=place.parent,
                turn=place.turn,
                step=place.step,
                copied=place.copied or place.handed_over,
                handed_over=place.handed_over,
            ),
        )


class CodexCallDraft(msgspec.Struct, eq=False):
    """A tool call in a message draft. Results are added as their records are read."""

    draft: CodexMessageDraft
    number: int
    id: str
    name: str
    kind: ToolKind
    input: Raw | UnsetType = UNSET
    input_text: str | None = None
    provider: ProviderData | None = None
    provider_executed: bool = False
    parent: str | None = None
    started_at: datetime | None = None
    state: ToolState = ToolState.INPUT_AVAILABLE
    metadata: dict[str, Any] = {}
    results: dict[str, ToolResult] = {}
    """By their ids, in the order of the log."""

    def add_result(self, result: ToolResult) -> None:
        """Add a result. One with the id of a known result changes nothing."""
        self.results.setdefault(result.id, result)

    def part(self) -> ToolCallPart:
        """The call with the results so far."""
        results, state = list(self.results.values()), self.state
        if len(results) == 1:
            state = STATE_OF_STATUS[results[0].status]
        elif results:
            results = in_order_of_arrival(results)
            state = state_after(ToolState.INPUT_AVAILABLE, [result.status for result in results])
        return ToolCallPart(
            id=f"{self.draft.id}.{self.number}",
            provider=self.provider,
            metadata={NAME: self.metadata} if self.metadata else {},
            tool_call_id=self.id,
            tool_name=self.name,
            kind=self.kind,
            input=self.input,
            input_text=self.input_text,
            state=state,
            provider_executed=self.provider_executed,
            parent_tool_call_id=self.parent,
            started_at=self.started_at,
            results=tuple(results),
        )
