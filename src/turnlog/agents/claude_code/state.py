"""What a fold of a Claude Code log remembers between two reads, and what one read has of a message so far.

`ClaudeState` is stored as JSON with the source's cursor; where a field has another name there, `name=` keeps stored
states readable. Every collection in it is bounded. Entries are dropped by the order of records alone, so the same bytes
always leave the same state, however they were divided into reads. What was dropped here is still in the store.

A draft collects the blocks, results and counts of an assistant message, and lasts for one feed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import reduce
from typing import Any
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import MessageChange, Placement, RecordRef
from turnlog.agents.claude_code import contents
from turnlog.agents.claude_code.blocks import BlockNumbers, SeenBlocks, WrittenBlock
from turnlog.agents.claude_code.contents import TOOL_KINDS, other_requests_of, usage_of
from turnlog.agents.claude_code.records import ApiMessage, ApiUsage, ClaudeRecord
from turnlog.agents.decoding import in_order_of_arrival, keep_newest, state_codec
from turnlog.anthropic_api import STOP_REASONS
from turnlog.model import (
    Approval,
    Cost,
    Fate,
    Message,
    MessageError,
    Origin,
    Part,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
    Usage,
)
from turnlog.model.merge import copy_part_id, join_mappings, join_texts, join_values
from turnlog.model.parts import STATE_OF_STATUS, state_after
from turnlog.model.usage import merge_usage

RECENT_RECORDS = 128
"""Records whose place in the tree is kept. The store finds a parent further back by its record id. The results of
parallel calls have parents some tens of records back; only a rewind reaches further."""

_MOST_MESSAGES = 24

_MOST_CALLS = 128

_MOST_SESSIONS = 16

# A node is where a record belongs in the tree of messages: a message id, or `@` and the id of a record whose message
# is not remembered, or nothing.

ROOT = ""
"""The node of a record without a parent."""

_UNRESOLVED = "@"


def unresolved_node(record_id: str) -> str:
    """The node of a record whose message is not remembered."""
    return _UNRESOLVED + record_id


def message_of_node(node: str) -> str | None:
    """The message id that a node is; None for the root and for an unresolved node."""
    return None if not node or node.startswith(_UNRESOLVED) else node


def record_of_node(node: str) -> str | None:
    """The record id in an unresolved node; None for any other."""
    return node[len(_UNRESOLVED) :] if node.startswith(_UNRESOLVED) else None


# -- what is kept between two reads


class ClaudePendingMessage(msgspec.Struct, array_like=True):
    """An assistant message that later lines may continue, and its place in the session."""

    position: int
    parent: str
    turn: int | None
    step: int | None
    blocks: SeenBlocks = msgspec.field(default_factory=SeenBlocks)
    is_copy: bool = False
    """It is known by copies in another session's log, which may leave out blocks."""
    follows: int | None = None
    """Checksum of what its parent says, if that is a prompt or context."""
    session: str | None = None
    """Session id of another session in the file that has it; None for the file's own session."""
    response_id: str | None = None
    """Its `message.id`, where that is not its id, because an earlier response has it."""
    request_id: str | None = None
    input: int = 0
    """Input tokens, those from the cache and into it included; 0 if unknown."""
    is_final: bool = False
    """The count is that of a record with a stop reason."""
    last_at: datetime | None = None
    """Time of its newest record."""


class ClaudePendingCall(msgspec.Struct, array_like=True):
    """A call without a final result."""

    message_id: str
    copied_from: str | None = None
    """External id of the session that made the call, when this one is a copy."""
    prompt: int | None = None
    """Checksum of a subagent's prompt. A sidechain in the same file is matched with its call by it."""
    name: str = ""
    number: int = 0
    session: str | None = None
    """Session id of the inline sidechain that made the call; None for the file's own session."""
    settled: bool = False
    """It has a preliminary result, or counts as aborted: the next prompt does not change it."""


class EarlyReplies(msgspec.Struct, array_like=True):
    """Assistant messages before their prompt in the log, because the model replied before the prompt was written."""

    position: int
    at: datetime
    """Time of the first one: records with an earlier time belong before it."""
    parent_record: str
    """The record that the first one names as its parent, and that has not been read yet."""
    inserted: int = 0
    """Messages that were placed before the first one so far."""


class Reached(msgspec.Struct, array_like=True):
    """How far a conversation had come."""

    leaf: str
    anchor: str | None
    turn: int
    step: int


class ClaudeSessionState(msgspec.Struct):
    """How far the reading of one session in the file has come."""

    turn: int = 0
    step: int = 0
    leaf: str | None = None
    """Id of the newest message."""
    anchor: str | None = None
    """Id of the newest message that Claude Code did not inject."""
    titled: bool = False
    opening: str = ""
    """The newest command or message of another agent to which the model has not replied. The one to which it replies
    first titles a session without a prompt: `/clear` and similar commands, which the model never sees, would say
    nothing."""
    opened: bool = False
    """The model has replied."""
    warm_up: bool = False
    """A session of 2.0.x that only filled the cache."""
    prompted_at: datetime | None = msgspec.field(name="said_at", default=None)
    """Time of the anchor when it is a prompt; None if the model wrote it."""
    prompted_by_command: bool = msgspec.field(name="commanded", default=False)
    """That prompt was a command."""
    branched: bool = False
    """A branch began since the agent last named the active leaf."""
    early_replies: EarlyReplies | None = msgspec.field(name="early", default=None)
    """Assistant messages whose prompt has not been read yet."""
    prompt_during_calls: tuple[str, str] | None = msgspec.field(name="meanwhile", default=None)
    """A message whose calls still ran when a prompt was sent, and the id of that prompt. Results of these calls come
    after the prompt."""
    compacted_at: datetime | None = None
    """Time of the newest compaction."""
    reached: Reached | None = None
    """While records from before that compaction are written again: how far the conversation had come before them."""

    def newest(self) -> str | None:
        """Id of the newest message, not counting those that are written again."""
        return self.leaf if self.reached is None else self.reached.leaf


class DeferredRejection(msgspec.Struct, array_like=True):
    """A result with the words of a rejection. A later record decides whether the user denied the call or aborted it."""

    session_id: str
    tool_call_id: str
    message_id: str | None
    record: tuple[int, int]
    record_id: str | None
    result: msgspec.Raw
    source: str | None


class PendingCompaction(msgspec.Struct):
    """A compaction whose summary was not read yet."""

    event: msgspec.Raw
    session_id: str
    position: int
    length: int
    record_id: str | None
    parent_id: str | None


class ClaudeState(msgspec.Struct):
    """What is kept between two reads."""

    session: str | None = None
    """External id of the file's own session, where the path does not have it."""
    lines: int = 0
    """Lines read so far."""
    main_session: ClaudeSessionState = msgspec.field(name="thread", default_factory=ClaudeSessionState)
    """The file's own session."""
    children: dict[str, ClaudeSessionState] = {}
    """Sessions inside the file besides its own, by session id."""
    nodes: dict[str, str] = {}
    """Record id -> the message it belongs to or hangs under."""
    texts: dict[str, int] = {}
    """Record id -> checksum of what the record says: another one with its id may say something else, and a copy with
    another id says the same."""
    sidechains: dict[str, str] = {}
    """Record id -> the session id of the inline sidechain it belongs to."""
    messages: dict[str, ClaudePendingMessage] = {}
    responses: dict[str, str] = {}
    """A `message.id` that several responses have -> the id of the newest message with it."""
    calls: dict[str, ClaudePendingCall] = {}
    tasks: dict[str, str] = {}
    """Id of a background task -> the call that started it."""
    compaction: PendingCompaction | None = None
    deferred_rejections: list[DeferredRejection] = msgspec.field(name="held", default_factory=list[DeferredRejection])
    aborted_message: str | None = msgspec.field(name="stopped", default=None)
    """Id of the message whose call was aborted last."""
    permissions_bypassed: bool = msgspec.field(name="unasked", default=False)
    """The tools of the newest turn run without permission requests."""
    logs_decisions: bool = msgspec.field(name="tells_decisions", default=False)
    """The log's version writes who decided on a call into fields of the result's record."""
    forked_from: list[str] = msgspec.field(name="origins", default_factory=list[str])
    """External ids of the sessions that records were copied from."""
    linked: bool = False
    """The link from a subagent's session to its parent was emitted."""

    def remember_record(self, record_id: str, node: str) -> None:
        """Keep where a record belongs."""
        nodes = self.nodes
        nodes[record_id] = node
        if len(nodes) > RECENT_RECORDS:
            del nodes[next(iter(nodes))]

    def remember_text(self, record_id: str, text: str) -> bool:
        """Keep what a record says; return False if another record of this id, which is remembered, says otherwise."""
        texts, key = self.texts, crc32(text.encode("utf-8", "replace"))
        known = texts.get(record_id)
        texts[record_id] = key
        if len(texts) > RECENT_RECORDS:
            del texts[next(iter(texts))]
        return known is None or known == key

    def remember_sidechain(self, record_id: str, session_id: str) -> None:
        """Keep which sidechain a record belongs to."""
        keep_newest(self.sidechains, record_id, session_id, RECENT_RECORDS)

    def remember_message(self, message_id: str, message: ClaudePendingMessage) -> str | None:
        """Keep a message that may continue; return the id of the one that was dropped for it."""
        return keep_newest(self.messages, message_id, message, _MOST_MESSAGES)

    def remember_response(self, response_id: str, message_id: str) -> None:
        """Keep that a further response has a `message.id`."""
        self.responses.pop(response_id, None)
        keep_newest(self.responses, response_id, message_id, _MOST_CALLS)

    def remember_call(self, call_id: str, call: ClaudePendingCall) -> None:
        """Keep a call until its final result is read."""
        keep_newest(self.calls, call_id, call, _MOST_CALLS)

    def remember_task(self, task_id: str, call_id: str) -> None:
        """Keep which call started a background task."""
        keep_newest(self.tasks, task_id, call_id, _MOST_CALLS)

    def child(self, session_id: str) -> ClaudeSessionState:
        """The state of another session in this file, new if there is none yet."""
        state = self.children.get(session_id)
        if state is None:
            state = ClaudeSessionState()
            keep_newest(self.children, session_id, state, _MOST_SESSIONS)
        return state


encode_state, decode_state = state_codec(ClaudeState)


# -- what one feed has read of a message

SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code itself wrote in the assistant's name."""


class ClaudeMessageDraft:
    """What one feed has read of an assistant message. `pending` is its place, which outlives the feed."""

    __slots__ = (
        "_numbers",
        "aborted",
        "completed_at",
        "copied_from",
        "cost",
        "created_at",
        "error",
        "fate",
        "handed_over",
        "id",
        "metadata",
        "model",
        "others",
        "parts",
        "pending",
        "raw_stop_reason",
        "record_ids",
        "records",
        "request_id",
        "requested_model",
        "session_id",
        "synthetic",
        "usages",
    )

    def __init__(self, message_id: str, session_id: str, pending_message: ClaudePendingMessage, fate: Fate) -> None:
        self.id = message_id
        self.session_id = session_id
        self.pending = pending_message
        self.fate = fate
        self.parts: dict[int, Part | ClaudeCallDraft] = {}
        self._numbers: BlockNumbers | None = None
        self.records: list[RecordRef] = []
        self.record_ids: list[str] = []
        self.created_at: datetime | None = None
        self.completed_at: datetime | None = None
        self.model: str | None = None
        self.requested_model: str | None = None
        self.request_id: str | None = None
        self.raw_stop_reason: str | None = None
        self.aborted = False
        self.synthetic = False
        self.copied_from: str | None = None
        self.handed_over = False
        self.usages: list[tuple[bool, ApiUsage]] = []
        self.cost: Cost | None = None
        self.error: MessageError | None = None
        self.metadata: dict[str, Any] = {}
        self.others: dict[str, Any] = {}

    def add_facts(self, record: ClaudeRecord, message: ApiMessage) -> None:
        """Add what a line says about the message as a whole: times, model, stop reason, usage, cost, error."""
        moment = record.timestamp
        if moment is not None:
            if self.created_at is None or moment < self.created_at:
                self.created_at = moment
            if self.completed_at is None or moment > self.completed_at:
                self.completed_at = moment
        # Its counts are zeros, its `model` is no model, and its id is no id of the provider.
        if message.model == SYNTHETIC:
            self.synthetic = True
            if record.is_api_error_message:
                self.error = _error_of(record, message)
        else:
            self.model = join_values(self.model, message.model)
        # Lines of 1.0.24 to 2.1.20 often have none; later versions repeat it on every line.
        self.raw_stop_reason = join_values(self.raw_stop_reason, message.stop_reason)
        self.request_id = join_values(self.request_id, record.request_id)
        self.requested_model = join_values(self.requested_model, record.requested_model)
        if record.is_aborted_mid_stream:
            self.aborted = True
        # Only 0.2 writes `costUSD`.
        if record.cost_usd is not None:
            self.cost = Cost(amount=Decimal(str(record.cost_usd)), kind="reported")
        if message.usage is not None and not self.synthetic:
            # Most lines repeat the same counts: one of them is enough to remember.
            usage = (message.stop_reason is not None, message.usage)
            if not self.usages or self.usages[-1] != usage:
                self.usages.append(usage)
        self._add_metadata(record)

    def _add_metadata(self, record: ClaudeRecord) -> None:
        # Most records have none of these.
        if record.effort is not None:
            self._join_metadata("effort", record.effort)
        if record.attribution_agent is not None:
            self._join_metadata("agent", record.attribution_agent)
        if record.attribution_skill is not None:
            self._join_metadata("skill", record.attribution_skill)
        if record.attribution_mcp_server is not None:
            self._join_metadata("mcp_server", record.attribution_mcp_server)
        if record.others:
            self.others = join_mappings(self.others, record.others)

    def _join_metadata(self, name: str, value: str) -> None:
        self.metadata[name] = join_values(self.metadata.get(name), value)

    def _usage(self) -> Usage | None:
        """The usage of the model call; None if no line has counts.

        Every line of a message repeats the counts. Lines with a stop reason have the final ones and overrule the
        others; among lines of the same kind the larger count wins.
        """
        final, counted = self._counted()
        return reduce(merge_usage, [usage_of(wire, final=final) for wire in counted], None)

    def _counted(self) -> tuple[bool, list[ApiUsage]]:
        """Whether final counts are known, and the counts that hold."""
        # 1.0.24 to 2.1.20 write the counts of the stream's start, without a stop reason, on most lines.
        final = any(final for final, _ in self.usages)
        return final, [wire for is_final, wire in self.usages if is_final is final]

    def other_calls(self) -> list[MessageChange]:
        """The model calls behind this one that have tokens of their own: another model advised it, for example.

        They have no text of their own: what an advisor said is a part of the message.
        """
        found: list[MessageChange] = []
        final, counted = self._counted()
        readings = [other_requests_of(wire, final=final) for wire in counted if wire.iterations]
        for number, (model, usage) in enumerate(max(readings, key=len, default=list[tuple[str | None, Usage]]())):
            call = Message(
                id=f"{self.id}~{number}",
                role="assistant",
                created_at=self.created_at,
                completed_at=self.completed_at,
                model=model or self.model,
                response_id=self.pending.response_id or self.id,
                request_id=self.request_id,
                raw_stop_reason=self.raw_stop_reason,
                usage=usage,
            )
            place = Placement(
                session_id=self.session_id,
                # No record begins within the line.
                position=self.pending.position + 1 + number,
                records=tuple(self.records[:1]),
                parent_id=self.id,
                turn=self.pending.turn,
                fate=Fate.SIDECAR,
                copied=self.handed_over or self.copied_from is not None,
                handed_over=self.handed_over,
            )
            found.append(MessageChange(message=call, placement=place))
        return found

    def numbers_of(self, record: ClaudeRecord, written: Sequence[WrittenBlock], *, begins_again: bool) -> list[int]:
        """The numbers of a record's blocks. See `BlockNumbers`."""
        if self._numbers is None:
            self._numbers = BlockNumbers(self.pending.blocks)
        return self._numbers.numbers_of(record.uuid, written, begins_again=begins_again)

    def part_id(self, number: int) -> str:
        """The id of the part with a number."""
        return copy_part_id(self.id, number) if self.pending.is_copy else f"{self.id}.{number}"

    def add_part(self, number: int, part: Part | ClaudeCallDraft) -> None:
        """Set the part of a number. Two readings of one text are joined as the store joins those of two feeds."""
        known = self.parts.get(number)
        if isinstance(known, TextPart | ReasoningPart) and isinstance(part, type(known)):
            self.parts[number] = join_texts(known, part)
        elif known is None or len(getattr(part, "text", "")) > len(getattr(known, "text", "")):
            self.parts[number] = part

    def change(self) -> MessageChange:
        """The message as this feed knows it. The draft cannot be used afterwards."""
        # A draft and its calls refer to each other. Emptying `parts` frees them without the garbage collector.
        parts, self.parts = self.parts, {}
        # Since 2.1.28x `apiBlockIndex` numbers blocks, and lines may be in another order.
        numbers = list(parts)
        if numbers != sorted(numbers):
            parts = dict(sorted(parts.items()))
        metadata = self.metadata | self.others
        message = Message(
            id=self.id,
            role="assistant",
            parts=tuple([part.part() if isinstance(part, ClaudeCallDraft) else part for part in parts.values()]),
            origin=Origin.HARNESS if self.synthetic else None,
            created_at=self.created_at,
            completed_at=self.completed_at,
            model=self.model,
            requested_model=self.requested_model,
            response_id=None if self.synthetic else self.pending.response_id or self.id,
            request_id=self.request_id,
            stop_reason=self._stop_reason(),
            raw_stop_reason=self.raw_stop_reason,
            usage=self._usage(),
            cost=self.cost,
            error=self.error,
            metadata={"claude-code": metadata} if metadata else {},
        )
        place = self.pending
        return MessageChange(
            message=message,
            placement=Placement(
                session_id=self.session_id,
                position=place.position,
                records=tuple(self.records),
                record_ids=tuple(dict.fromkeys(self.record_ids)),
                parent_id=message_of_node(place.parent),
                parent_record=record_of_node(place.parent),
                turn=place.turn,
                step=place.step,
                fate=self.fate,
                copied=self.handed_over or self.copied_from is not None,
                handed_over=self.handed_over,
            ),
        )

    def _stop_reason(self) -> StopReason | None:
        if self.error is not None:
            return "error"
        if self.synthetic:
            return None
        # `isAbortedMidStream` marks what had arrived before Escape, which has no stop reason.
        if self.aborted and self.raw_stop_reason is None:
            return "aborted"
        return STOP_REASONS.get(self.raw_stop_reason) if self.raw_stop_reason is not None else None


class ClaudeCallDraft:
    """A tool call in a message draft. Results are added as their records are read."""

    __slots__ = (
        "abandoned",
        "approval",
        "draft",
        "id",
        "input",
        "name",
        "part_id",
        "provider_executed",
        "results",
        "started_at",
    )

    def __init__(self, draft: ClaudeMessageDraft, part_id: str, call_id: str, name: str) -> None:
        self.draft = draft
        self.part_id = part_id
        self.id = call_id
        self.name = name
        self.input: Raw | UnsetType = UNSET
        self.provider_executed = False
        self.started_at: datetime | None = None
        self.approval: Approval | None = None
        self.abandoned = False
        self.results: dict[str, ToolResult] = {}
        """By their ids, in the order of the log."""

    def add_result(self, result: ToolResult) -> None:
        """Add a result. One with the id of a known result is a copy and changes nothing."""
        # A resume or a `progress` record copies the result's record.
        self.results.setdefault(result.id, result)

    def part(self) -> ToolCallPart:
        """The call with the results so far."""
        results = list(self.results.values())
        if not results:
            # A call without a result still runs unless the next turn has begun: see `abort_pending_calls`.
            state = ToolState.ABORTED if self.abandoned else ToolState.INPUT_AVAILABLE
        elif len(results) == 1:
            state = STATE_OF_STATUS[results[0].status]
        else:
            results = in_order_of_arrival(results)
            state = state_after(ToolState.INPUT_AVAILABLE, [result.status for result in results])
        return ToolCallPart(
            id=self.part_id,
            tool_call_id=self.id,
            tool_name=self.name,
            kind=TOOL_KINDS.get(self.name, ToolKind.OTHER),
            input=self.input,
            state=state,
            approval=self.approval,
            provider_executed=self.provider_executed,
            started_at=self.started_at,
            results=tuple(results),
        )


def _error_of(record: ClaudeRecord, message: ApiMessage) -> MessageError:
    kind = record.error if isinstance(record.error, str) else None
    return MessageError(text=contents.text_of(message.content), kind=kind, status=record.api_error_status)
