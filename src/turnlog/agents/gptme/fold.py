"""The fold of one conversation's log: a message a line, without ids. A message is named by its time.

Times have no zone. A line at the beginning says which one the clock had.
"""

from __future__ import annotations

import re
import zlib
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, EventChange, ResultChange
from turnlog.agents.decoding import LogContext, aware, keep_newest, state_codec
from turnlog.agents.gptme import NAME
from turnlog.agents.gptme.contents import TOOL_KINDS, AnswerPiece, Outcome, outcome_of, pieces_of
from turnlog.agents.gptme.records import LINES, ROLES, GptmeMessage, GptmeUsage
from turnlog.agents.gptme.sources import session_id
from turnlog.agents.jsonl import count_lines
from turnlog.model import (
    CompactionEvent,
    Cost,
    Message,
    Origin,
    Part,
    ReasoningPart,
    RecordEvent,
    RunMetadataEvent,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    Usage,
)
from turnlog.model.session import title_from

_ZONE = re.compile(r"\*\*Local date:\*\* \S+ UTC(?P<sign>[+-])(?P<hours>\d\d):(?P<minutes>\d\d)")

_OWN_WORDS = "<system>"
"""How a message of the role `user` begins that gptme writes."""

_INTRODUCTION = "intro"
"""What the metadata of the message in front of a summary says."""

_RECENT_CALLS = 64


class GptmeState(msgspec.Struct):
    """What is remembered between two feeds."""

    lines: int = 0
    turn: int = 0
    step: int = 0
    leaf: str | None = None
    is_titled: bool = False
    ahead: int | None = None
    """By how many minutes the clock is ahead of UTC; None until a line says so."""
    calls: dict[str, str] = {}
    """Calls without a result -> their message."""
    blocks: list[str] = []
    """Calls of the newest answer that have no id of the model, and no result yet."""
    blocks_of: str = ""
    """The answer that they are in."""
    is_summarized: bool = False
    """The next message of the role `assistant` is a summary."""
    is_branched: bool = False
    """What was said before a summary is not in the context."""


encode_state, decode_state = state_codec(GptmeState)


class GptmeFold:
    """Reads one conversation. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._state = decode_state(state) if state is not None else GptmeState()
        self._session_id = source.session_id or session_id("")

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = _Context(self._state, self._session_id)
        for message in LINES.read_into(context, data, offset, self._state.lines + 1):
            context.read(message)
        self._state.lines += count_lines(data)
        return context.finish_branched(self._state.leaf, is_branched=self._state.is_branched)

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)


class _Context(LogContext):
    """The context of one feed."""

    def __init__(self, state: GptmeState, session: str) -> None:
        super().__init__(session)
        self._state = state

    def read(self, message: GptmeMessage) -> None:
        """Read one message."""
        # Times are local, without a zone. Only the program's own words about the day name it.
        zone = _ZONE.search(message.content or "") if message.role == "system" else None
        if zone is not None:
            minutes = int(zone["hours"]) * 60 + int(zone["minutes"])
            self._state.ahead = minutes if zone["sign"] == "+" else -minutes
        if message.hide and message.role == "system":
            self._add_facts(message)
        elif message.role == "assistant" and self._state.is_summarized:
            self._add_summary(message)
        elif message.role == "assistant":
            self._add_answer(message)
        elif message.role == "system" and (message.call_id or self._state.blocks):
            self._add_result(message)
        elif message.role in ROLES:
            self._add_input(message)
        else:
            event = RecordEvent(id=self._name(message), kind=message.role, known=False, data=Raw(self.json))
            self._add_event(event)

    @property
    def _external(self) -> str:
        return self.session_id.partition(":")[2]

    def _name(self, message: GptmeMessage) -> str:
        """The name of a message. A fork repeats those of its origin with their times: its own name is no part of it."""
        if not message.timestamp:
            return f"{self._external}@{self.position}"
        sign = zlib.crc32(f"{message.role} {message.content}".encode(errors="replace"))
        return f"{message.timestamp}-{sign:08x}"

    def _time(self, message: GptmeMessage) -> datetime | None:
        try:
            local = datetime.fromisoformat(message.timestamp or "")
        except ValueError:
            return None
        if local.tzinfo is None:
            try:
                local -= timedelta(minutes=self._state.ahead or 0)
            except OverflowError:
                return None
        at = aware(local)
        self.extend_times(at)
        return at

    def _add_event(self, event: RecordEvent | RunMetadataEvent | CompactionEvent, *, is_counted: bool = True) -> None:
        placed = msgspec.structs.replace(event, position=self.position)
        record = (self.position, self.length)
        self.changes.events.append(
            EventChange(session_id=self.session_id, event=placed, record=record, parent_id=self._state.leaf)
        )
        self.changes.counts.events += int(is_counted)

    def _add_facts(self, message: GptmeMessage) -> None:
        """Add what the program says to the model before the conversation; its time may be before its zone is known."""
        data = Raw(msgspec.json.encode({"content": message.content, "files": message.files or []}))
        at = self._time(message) if self._state.ahead is not None else None
        event = RunMetadataEvent(id=f"{self._name(message)}.{self.position}", kind="system", created_at=at, data=data)
        self._add_event(event)

    def _add(self, message: Message, *, step: int | None) -> None:
        self.add_to_branch(message, self._state.leaf, turn=self._state.turn or None, step=step)
        self._state.leaf = message.id

    def _add_input(self, message: GptmeMessage) -> None:
        identity, text = self._name(message), message.content or ""
        is_prompt = message.role == "user" and not text.startswith(_OWN_WORDS)
        facts = message.metadata
        self._state.is_summarized = facts is not None and facts.compaction_artifact == _INTRODUCTION
        self._state.blocks = []
        if is_prompt:
            self._state.turn, self._state.step = self._state.turn + 1, 0
            title = title_from(text)
            if title and not self._state.is_titled:
                self._state.is_titled = True
                self.session.titles["prompt"] = title
        self._add(
            Message(
                id=identity,
                role="user" if is_prompt else "developer",
                parts=(TextPart(id=f"{identity}.0", text=text),) if text else (),
                origin=Origin.PROMPT if is_prompt else Origin.HARNESS,
                created_at=self._time(message),
                metadata=_metadata_of(message),
            ),
            step=None,
        )

    def _add_summary(self, message: GptmeMessage) -> None:
        """Add what takes the place of the messages before. Its tokens are not logged."""
        identity, at, text = self._name(message), self._time(message), message.content or ""
        self._state.is_summarized, self._state.is_branched = False, True
        event = CompactionEvent(id=f"{identity}.compaction", created_at=at, summary_message_id=identity)
        self._add_event(event, is_counted=False)
        self._add(
            Message(
                id=identity,
                role="developer",
                parts=(TextPart(id=f"{identity}.0", text=text),) if text else (),
                origin=Origin.COMPACTION,
                created_at=at,
                metadata=_metadata_of(message),
            ),
            step=None,
        )

    def _add_answer(self, message: GptmeMessage) -> None:
        identity, at = self._name(message), self._time(message)
        parts = [
            _part_of(piece, f"{identity}.{number}", at) for number, piece in enumerate(pieces_of(message.content or ""))
        ]
        # Blocks of an answer before that have no result yet will get none: results come before the next answer.
        self._state.blocks, self._state.blocks_of = [], identity
        for part in parts:
            if not isinstance(part, ToolCallPart):
                continue
            # A block of code in the text has no id of the model, so it has that of its part.
            if part.tool_call_id == part.id:
                self._state.blocks.append(part.tool_call_id)
            else:
                keep_newest(self._state.calls, part.tool_call_id, identity, _RECENT_CALLS)
        self._state.step += 1
        facts = message.metadata
        self._add(
            Message(
                id=identity,
                role="assistant",
                parts=tuple(parts),
                created_at=at,
                model=(facts.served_model or facts.model) if facts is not None else None,
                requested_model=facts.model if facts is not None and facts.served_model else None,
                usage=usage_of(facts.usage) if facts is not None else None,
                cost=Cost(amount=Decimal(str(facts.cost)), kind="reported")
                if facts is not None and facts.cost
                else None,
                metadata=_metadata_of(message),
            ),
            step=self._state.step,
        )

    def _add_result(self, message: GptmeMessage) -> None:
        state, text = self._state, message.content or ""
        is_named = message.call_id is not None
        # A block of code has no id: its result is the next message of the program.
        call_id = message.call_id or state.blocks.pop(0)
        outcome = outcome_of(text)
        self.changes.results.append(
            ResultChange(
                session_id=self.session_id,
                tool_call_id=call_id,
                result=_result_of(call_id, text, outcome, self._time(message)),
                position=self.position,
                record=(self.position, self.length),
                record_ids=(self._name(message),),
                message_id=state.calls.pop(call_id, None) if is_named else state.blocks_of,
            )
        )
        self.changes.counts.results += 1


def _metadata_of(message: GptmeMessage) -> dict[str, Any]:
    facts = {**({"files": message.files} if message.files else {}), **(message.others or {})}
    return {NAME: facts} if facts else {}


def _part_of(piece: AnswerPiece, part_id: str, at: datetime | None) -> Part:
    if piece.kind == "thinking":
        return ReasoningPart(id=part_id, text=piece.text)
    if piece.kind == "text":
        return TextPart(id=part_id, text=piece.text)
    return ToolCallPart(
        id=part_id,
        tool_call_id=piece.call_id or part_id,
        tool_name=piece.name,
        kind=TOOL_KINDS.get(piece.name, ToolKind.OTHER),
        input=piece.input,
        input_text=piece.text if isinstance(piece.input, msgspec.UnsetType) else None,
        started_at=at,
        metadata={NAME: {"in_text": True}} if piece.kind == "block" else {},
    )


def _result_of(call_id: str, text: str, outcome: Outcome, at: datetime | None) -> ToolResult:
    identity = f"{call_id}.result"
    return ToolResult(
        id=identity,
        status=outcome.status,
        content=(TextPart(id=f"{identity}.0", text=text),) if text else (),
        error_text=text if outcome.status != "success" else None,
        exit_code=outcome.exit_code,
        completed_at=at,
    )


def usage_of(counted: GptmeUsage | None) -> Usage | None:
    """Tokens in disjoint buckets; None if none were counted."""
    if counted is None or (counted.input_tokens is None and counted.output_tokens is None):
        return None
    thought = counted.reasoning_tokens or None
    return Usage(
        input=counted.input_tokens,
        cache_read=counted.cache_read_tokens,
        cache_write=counted.cache_creation_tokens,
        output=None if counted.output_tokens is None else max(0, counted.output_tokens - (thought or 0)),
        reasoning=thought,
    )
