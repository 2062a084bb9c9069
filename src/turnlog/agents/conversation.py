"""A conversation while it is read, for agents whose records are in the order of the conversation.

Each message follows the one before it, unless its record names another. Prompts begin turns, answers are steps of
them. What a feed must know of the feeds before it is in `ConversationState`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, EventChange, MessageChange, Placement, RecordRef, ResultChange
from turnlog.agents.decoding import LARGEST_EVENT_RECORD, LogContext, clean_json, keep_newest, state_codec
from turnlog.agents.jsonl import UNREADABLE, JsonLines, count_lines
from turnlog.agents.open_calls import OpenCall, abort_calls, message_of, open_call
from turnlog.model import (
    HistoryEvent,
    Message,
    Origin,
    RecordEvent,
    RunMetadataEvent,
    TextPart,
    ToolCallPart,
    ToolResult,
)
from turnlog.model.session import title_from

_RECENT_CALLS = 256
"""Calls that wait for their result. The store finds the call of a later result itself."""

TURN_ORIGINS = frozenset({Origin.PROMPT, Origin.COMMAND, Origin.SHELL, Origin.SUBAGENT_PROMPT})
"""Origins of messages that begin a turn."""


class ConversationState(msgspec.Struct):
    """What is remembered between two feeds."""

    lines: int = 0
    leaf: str | None = None
    """The newest message of the conversation."""
    turn: int = 0
    step: int = 0
    is_titled: bool = False
    is_branched: bool = False
    """Whether messages may have left the conversation."""
    open_calls: dict[str, OpenCall] = {}
    """Calls without a result."""
    notes: dict[str, str] = {}
    """What an agent's reader itself remembers."""


encode_state, decode_state = state_codec(ConversationState)


class ConversationContext(LogContext):
    """The context of one feed: the record that is being read, and what the feed has found so far."""

    def __init__(self, session_id: str, state: ConversationState | None = None, *, says_results: bool = False) -> None:
        """Begin before the first record; `says_results` as in `ConversationFold`."""
        super().__init__(session_id)
        self.state = ConversationState() if state is None else state
        self._says_results = says_results

    @property
    def external_id(self) -> str:
        """The session's id without the agent before it."""
        return self.session_id.partition(":")[2]

    @property
    def record(self) -> tuple[int, int]:
        """Byte offset and length of the record."""
        return self.position, self.length

    @property
    def position_id(self) -> str:
        """An id for what is of this source alone and has none in its record."""
        return f"{self.external_id}@{self.position}"

    def take(self, json: bytes, position: int, length: int) -> None:
        """Make a piece of a file the current record."""
        self.json, self.position, self.length = json, position, length

    def finish(self) -> Changes:
        """Everything that this feed has found."""
        return self.finish_branched(self.state.leaf, is_branched=self.state.is_branched)

    # -- messages

    def add(
        self,
        message: Message,
        *,
        parent: str | UnsetType | None = UNSET,
        position: int | None = None,
        is_counted: bool = True,
        is_copied: bool = False,
    ) -> None:
        """Add a message.

        Args:
            message: A prompt begins a turn and may name the session; an answer is the next step. Results of its calls
                that are in the same record come behind it, each one position further.
            parent: The message that it follows, if that need not be the newest one.
            position: Its place, if that is not the offset of the record.
            is_counted: Whether the record counts as a message; a record of several counts once.
            is_copied: The log has it from another session (a fork).
        """
        state, place = self.state, self.position if position is None else position
        if message.origin in TURN_ORIGINS:
            if self._says_results:
                self.changes.messages += abort_calls(state.open_calls, self.session_id, place)
            state.turn += 1
            state.step = 0
            self._set_title(message)
        is_answer = message.role == "assistant" and message.origin is None
        state.step += is_answer
        self._note_calls(message, is_copied=is_copied)
        before = state.leaf if isinstance(parent, UnsetType) else parent
        placement = Placement(
            session_id=self.session_id,
            position=place,
            records=((*self.record, None), *_result_records(message, place)),
            record_ids=(message.id,),
            parent_id=None if before == message.id else before,
            turn=state.turn or None,
            step=state.step if is_answer else None,
            copied=is_copied,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.changes.counts.messages += is_counted
        self.extend_times(message.created_at)
        state.leaf = message.id

    def add_again(self, message: Message, *, is_counted: bool = True) -> None:
        """Add a further reading of the newest message, from another record of it, which counts unless it has more."""
        self._note_calls(message, is_copied=False)
        records = ((*self.record, None), *_result_records(message, self.position))
        placement = Placement(session_id=self.session_id, position=self.position, records=records, step=self.state.step)
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.changes.counts.messages += is_counted
        self.extend_times(message.created_at)

    def _note_calls(self, message: Message, *, is_copied: bool) -> None:
        for part in message.parts:
            if isinstance(part, ToolCallPart) and not part.results:
                call = open_call(part, message.id, is_copied=is_copied)
                keep_newest(self.state.open_calls, part.tool_call_id, call, _RECENT_CALLS)

    def _set_title(self, message: Message) -> None:
        if self.state.is_titled:
            return
        texts = [part.text for part in message.parts if isinstance(part, TextPart) and not part.is_synthetic]
        title = title_from("\n".join(texts))
        if title:
            self.state.is_titled = True
            self.session.titles["prompt"] = title

    def add_result(
        self, call_id: str, result: ToolResult, *, position: int | None = None, record_ids: Sequence[str] = ()
    ) -> None:
        """Add the result of a call. The record is not counted, because it may have several."""
        self.changes.results.append(
            ResultChange(
                session_id=self.session_id,
                tool_call_id=call_id,
                result=result,
                position=self.position if position is None else position,
                record=self.record,
                record_ids=tuple(record_ids),
                message_id=message_of(self.state.open_calls, call_id),
            )
        )
        self.extend_times(result.completed_at)

    # -- events

    def add_event(self, event: HistoryEvent) -> None:
        """Add an event behind the newest message. The record is not counted."""
        placed = event if event.position else msgspec.structs.replace(event, position=self.position)
        self.changes.events.append(
            EventChange(session_id=self.session_id, event=placed, record=self.record, parent_id=self.state.leaf)
        )
        self.extend_times(event.created_at)

    def add_record(self, kind: str, *, known: bool = True) -> None:
        """Add the current record as an event of its own kind, and count it."""
        self.add_event(
            RecordEvent(id=f"{self.position_id}.record", kind=kind, known=known, data=_small_json(self.json))
        )
        self.changes.counts.events += 1

    def add_run_metadata(self, kind: str, *, position: int = 0) -> None:
        """Add the current record as facts about the run, and count it; `position` if that is not its offset."""
        data = _small_json(self.json)
        self.add_event(RunMetadataEvent(id=f"{self.position_id}.run", position=position, kind=kind, data=data))
        self.changes.counts.events += 1


def _result_records(message: Message, position: int) -> Iterator[RecordRef]:
    """The places of results within the record of their call: its position counted on, and no length of their own."""
    calls = (part for part in message.parts if isinstance(part, ToolCallPart))
    results = (result for call in calls for result in call.results)
    yield from ((position + number, 0, result.id) for number, result in enumerate(results, 1))


def _small_json(json: bytes) -> Raw | UnsetType:
    return Raw(clean_json(json)) if len(json) <= LARGEST_EVENT_RECORD else UNSET


BlockT = TypeVar("BlockT", bound=msgspec.Struct)


def blocks_of(content: Raw | UnsetType, kind: type[BlockT]) -> list[tuple[BlockT, Raw]]:
    """The blocks of a content, each with its JSON; a content that is a text is one block of the type `text`.

    Args:
        content: A text or a list of objects.
        kind: The struct of a block, with the fields `type` and `text`. An object of another shape is an empty one.
    """
    if isinstance(content, UnsetType):
        return []
    json = clean_json(bytes(content))
    try:
        found = msgspec.json.decode(json, type=str | list[Raw] | None)
    except UNREADABLE:
        return [(kind(), Raw(json))]
    if isinstance(found, str):
        return [(msgspec.convert({"type": "text", "text": found}, kind), Raw(json))]
    return [(_block_of(raw, kind), raw) for raw in found or ()]


def _block_of(raw: Raw, kind: type[BlockT]) -> BlockT:
    try:
        return msgspec.json.decode(raw, type=kind)
    except UNREADABLE:
        return kind()


RecordT = TypeVar("RecordT", bound=msgspec.Struct)


class ConversationFold(ABC, Generic[RecordT]):
    """A fold of lines that are records of one conversation. See `turnlog.agents.base.Fold`."""

    records: ClassVar[JsonLines[Any]]
    """Reads records of `RecordT` out of lines."""
    says_results: ClassVar[bool] = False
    """Whether the agent writes a result for each call that has ended: one without is aborted when a turn begins."""

    def __init__(self, source: Source, state: bytes | None = None) -> None:
        self._source = source
        self._state = decode_state(state) if state is not None else ConversationState()

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = ConversationContext(self.session_id(), self._state, says_results=self.says_results)
        for record in self.records.read_into(context, data, offset, self._state.lines + 1):
            self.read(context, record)
        self._state.lines += count_lines(data)
        return context.finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)

    @abstractmethod
    def session_id(self) -> str:
        """The id of the session, as far as the source and the state name it."""

    @abstractmethod
    def read(self, context: ConversationContext, record: RecordT) -> None:
        """Add what a record says, and count it."""
