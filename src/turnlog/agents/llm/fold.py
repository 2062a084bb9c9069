"""The fold of one conversation's rows: those that belong to a model call come first, then the call itself."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, MessageChange, Placement, ResultChange
from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.databases import Row
from turnlog.agents.decoding import LogContext, aware, keep_newest, object_of, state_codec, text_of
from turnlog.agents.jsonl import UNREADABLE, count_lines
from turnlog.agents.llm import NAME
from turnlog.agents.llm.database import (
    ATTACHMENTS,
    CALLS,
    FRAGMENTS,
    KEYS,
    MESSAGES,
    OUTPUT,
    PARTS,
    RESPONSES,
    RESULTS,
    TURNS,
)
from turnlog.agents.llm.sources import session_id
from turnlog.agents.row_files import ROWS, RowLine, row_of
from turnlog.model import (
    FilePart,
    Message,
    Origin,
    Part,
    ProviderData,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    UnknownPart,
    Usage,
)
from turnlog.model.session import title_from

TOOL_KINDS: dict[str, ToolKind] = {"llm_time": ToolKind.OTHER, "llm_version": ToolKind.READ}
"""The tools that come with llm. All others are a user's or a plugin's, of kind `other`."""

STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "tool_calls": "tool_use",
    "length": "length",
    "content_filter": "content_filter",
}

_RECENT_CALLS = 256


class LlmPending(msgspec.Struct):
    """A message whose parts are being read."""

    role: str = ""
    is_output: bool = False
    parts: list[Row] = []


class LlmState(msgspec.Struct):
    """What is remembered between two feeds."""

    lines: int = 0
    turn: int = 0
    step: int = 0
    leaf: str | None = None
    is_titled: bool = False
    pending: list[LlmPending] = []
    """Messages of the turn whose row is still to come."""
    beside: list[tuple[str, str, str | None]] = []
    """Rows that belong to the next one: the table, the row as JSON, and what they are attached to."""
    calls: dict[str, str] = {}
    """Calls without a result -> their message."""


encode_state, decode_state = state_codec(LlmState)


class LlmFold:
    """Reads one conversation. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._state = decode_state(state) if state is not None else LlmState()
        self._session_id = source.session_id or session_id(source.path.rpartition("#")[2])

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = _Context(self._state, self._session_id)
        for line in ROWS.read_into(context, data, offset, self._state.lines + 1):
            context.read(line)
        self._state.lines += count_lines(data)
        return context.changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)


class _Context(LogContext):
    """The context of one feed."""

    def __init__(self, state: LlmState, session: str) -> None:
        super().__init__(session)
        self.state = state
        self.at: datetime | None = None
        self.place = 0
        """How many messages and results the line has brought."""

    def read(self, line: RowLine) -> None:
        """Read a row, or keep it until the row that it belongs to."""
        row = row_of(line)
        if line.table not in KEYS or not row:
            self.report("the line is no row of a conversation")
            self.changes.counts.unreadable += 1
            return
        reader = _CALLS.get(line.table)
        if reader is not None:
            self.at = _time_of(row.get("datetime_utc"))
            self.extend_times(self.at)
            self.place = 0
            reader(self, row)
            self.changes.counts.messages += 1
            self.state.pending, self.state.beside = [], []
            return
        self.changes.counts.events += 1
        if line.table == MESSAGES:
            self.state.pending.append(LlmPending(str(row.get("role")), line.note == OUTPUT))
        elif line.table == PARTS and self.state.pending:
            self.state.pending[-1].parts.append(row | {"beside": self._take_beside()})
        elif line.table in (ATTACHMENTS, FRAGMENTS, CALLS, RESULTS):
            self.state.beside.append((line.table, _encoded(row), line.note))

    def _take_beside(self) -> list[tuple[str, str, str | None]]:
        found, self.state.beside = self.state.beside, []
        return found

    @property
    def _external(self) -> str:
        return self.session_id.partition(":")[2]

    def add_message(self, message: Message, *, step: int | None = None, is_copied: bool = False) -> None:
        """Add a message after the newest one."""
        placement = Placement(
            session_id=self.session_id,
            # Messages of one line are placed within it, in their order.
            position=self.position + self.place,
            records=((self.position, self.length, None),),
            record_ids=(message.id,),
            parent_id=self.state.leaf,
            turn=self.state.turn or None,
            step=step,
            copied=is_copied,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.state.leaf = message.id
        self.place += 1

    def add_prompt(self, identity: str, parts: list[Part]) -> None:
        """Add what a person asked."""
        self.state.turn, self.state.step = self.state.turn + 1, 0
        title = title_from("\n".join(part.text for part in parts if isinstance(part, TextPart)))
        if title and not self.state.is_titled:
            self.state.is_titled = True
            self.session.titles["prompt"] = title
        self.add_message(
            Message(id=identity, role="user", parts=tuple(parts), origin=Origin.PROMPT, created_at=self.at)
        )

    def add_system(self, identity: str, parts: list[Part]) -> None:
        """Add instructions."""
        self.add_message(
            Message(id=identity, role="developer", parts=tuple(parts), origin=Origin.HARNESS, created_at=self.at)
        )

    def add_answer(self, identity: str, parts: list[Part], row: Row) -> None:
        """Add what the model answered, with the tokens of its row."""
        self.state.step += 1
        for part in parts:
            if isinstance(part, ToolCallPart):
                keep_newest(self.state.calls, part.tool_call_id, identity, _RECENT_CALLS)
        answered = object_of(_json(row.get("response_json")))
        reason = text_of(answered.get("finish_reason")) or text_of(answered.get("stop_reason"))
        duration = row.get("duration_ms")
        self.add_message(
            Message(
                id=identity,
                role="assistant",
                parts=tuple(parts),
                created_at=self.at,
                model=text_of(row.get("resolved_model")) or text_of(row.get("model")),
                response_id=text_of(answered.get("id")),
                stop_reason=STOP_REASONS.get(reason or ""),
                raw_stop_reason=reason,
                usage=usage_of(row),
                metadata={NAME: {"duration_ms": duration}} if duration is not None else {},
            ),
            step=self.state.step,
        )

    def add_result(self, call_id: str, output: object, exception: object) -> None:
        """Add the result of a call."""
        identity, text = f"{call_id}.result", text_of(output) or ""
        failed = text_of(exception)
        result = ToolResult(
            id=identity,
            status="error" if failed else "success",
            content=(TextPart(id=f"{identity}.0", text=text),) if text else (),
            error_text=failed,
            completed_at=self.at,
        )
        self.changes.results.append(
            ResultChange(
                session_id=self.session_id,
                tool_call_id=call_id,
                result=result,
                position=self.position + self.place,
                record=(self.position, self.length),
                message_id=self.state.calls.pop(call_id, None),
            )
        )
        self.place += 1


# -- turns of a thread


def _read_turn(context: _Context, turn: Row) -> None:
    identity = str(turn.get("id") or context.position)
    answer: list[Part] = []
    for number, message in enumerate(context.state.pending):
        name = f"{identity}.{number}"
        if message.role == "tool":
            for place, payload in enumerate(_payloads(message)):
                call_id = text_of(payload.get("tool_call_id")) or f"{name}.{place}"
                context.add_result(call_id, payload.get("output"), payload.get("exception"))
        elif message.is_output:
            answer += _parts_of(message, identity, len(answer), context.at)
        elif message.role == "user":
            context.add_prompt(name, list(_parts_of(message, name, 0, context.at)))
        elif message.role == "assistant":
            # The beginning of a fork: what another thread's model answered.
            parts = tuple(_parts_of(message, name, 0, context.at))
            context.add_message(Message(id=name, role="assistant", parts=parts, created_at=context.at), is_copied=True)
        else:
            context.add_system(name, list(_parts_of(message, name, 0, context.at)))
    context.add_answer(identity, answer, turn)


def _payloads(message: LlmPending) -> Iterator[dict[str, Any]]:
    return (object_of(_json(part.get("payload"))) for part in message.parts)


def _parts_of(message: LlmPending, identity: str, first: int, at: datetime | None) -> Iterator[Part]:
    number = first
    for row in message.parts:
        for part in _part_of(row, f"{identity}.{number}", at):
            yield part
            number += 1


def _part_of(row: Row, part_id: str, at: datetime | None) -> Iterator[Part]:
    payload = object_of(_json(row.get("payload")))
    text = text_of(row.get("text")) or ""
    match row.get("type"):
        case "text":
            yield TextPart(id=part_id, text=text)
        case "reasoning":
            opaque = {name: value for name, value in payload.items() if name != "redacted"}
            provider = ProviderData(name="unknown", opaque=opaque) if opaque else None
            yield ReasoningPart(id=part_id, text=text, redacted=not text, provider=provider)
        case "tool_call":
            name = text_of(payload.get("name")) or text_of(row.get("tool_name")) or ""
            yield _call_part(name, payload.get("arguments"), text_of(payload.get("tool_call_id")), part_id, at)
        case "attachment":
            yield from _files_in(row.get("beside"), part_id)
        case kind:
            known = {name: value for name, value in row.items() if name != "beside"}
            yield UnknownPart(id=part_id, kind=str(kind), data=Raw(msgspec.json.encode(known)))


def _call_part(name: str, arguments: object, call_id: str | None, part_id: str, at: datetime | None) -> ToolCallPart:
    return ToolCallPart(
        id=part_id,
        tool_call_id=call_id or part_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=Raw(msgspec.json.encode(arguments)) if arguments is not None else UNSET,
        started_at=at,
    )


def _files_in(beside: Any, part_id: str, only: str | None = None) -> Iterator[FilePart]:
    found = [_json(text) for table, text, owner in beside or () if table == ATTACHMENTS and owner in (only or owner,)]
    for number, row in enumerate(map(object_of, found)):
        path = text_of(row.get("path"))
        content = object_of(row.get("content")).get("base64")
        yield FilePart(
            id=part_id if not number else f"{part_id}.{number}",
            media_type=text_of(row.get("type")) or "application/octet-stream",
            filename=path,
            url=text_of(row.get("url")),
            data=_bytes_of(content),
        )


def _bytes_of(text: object) -> bytes | None:
    return from_base64(text) if isinstance(text, str) else None


# -- responses of a conversation


def _read_response(context: _Context, row: Row) -> None:
    identity = str(row.get("id") or context.position)
    beside = context.state.beside
    results = [object_of(_json(text)) for table, text, _ in beside if table == RESULTS]
    for number, result in enumerate(results):
        call_id = text_of(result.get("tool_call_id")) or f"{identity}.{number}"
        context.add_result(call_id, result.get("output"), result.get("exception"))
    system = _texts(beside, "system", row.get("system"), f"{identity}.system")
    if system and context.state.leaf is None:
        context.add_system(f"{identity}.system", system)
    prompt = _texts(beside, "prompt", row.get("prompt"), f"{identity}.prompt")
    prompt += _files_in(beside, f"{identity}.prompt.{len(prompt)}", "prompt")
    if prompt:
        context.add_prompt(f"{identity}.prompt", prompt)
    context.add_answer(identity, _answer_of(context, row, identity), row)


def _texts(beside: list[tuple[str, str, str | None]], owner: str, text: object, identity: str) -> list[Part]:
    pieces = [
        text_of(object_of(_json(row)).get("content")) for table, row, of in beside if table == FRAGMENTS and of == owner
    ]
    known = [piece for piece in (*pieces, text_of(text)) if piece]
    return [TextPart(id=f"{identity}.{number}", text=piece) for number, piece in enumerate(known)]


def _answer_of(context: _Context, row: Row, identity: str) -> list[Part]:
    parts: list[Part] = []
    for text, kind in ((row.get("reasoning"), ReasoningPart), (row.get("response"), TextPart)):
        if isinstance(text, str) and text:
            parts.append(kind(id=f"{identity}.{len(parts)}", text=text))
    for table, encoded, _ in context.state.beside:
        if table == CALLS:
            call = object_of(_json(encoded))
            part_id = f"{identity}.{len(parts)}"
            name, made = text_of(call.get("name")) or "", text_of(call.get("tool_call_id"))
            parts.append(_call_part(name, _json(call.get("arguments")), made, part_id, context.at))
    return parts


_CALLS: dict[str, Callable[[_Context, Row], None]] = {TURNS: _read_turn, RESPONSES: _read_response}
"""The tables whose rows are a model call -> their reader."""


# -- values of columns


def usage_of(row: Row) -> Usage | None:
    """Tokens in disjoint buckets; None if none were counted. What a plugin counts apart is in `token_details`."""
    given, made = row.get("input_tokens"), row.get("output_tokens")
    prompt = given if type(given) is int and given >= 0 else None
    output = made if type(made) is int and made >= 0 else None
    if prompt is None and output is None:
        return None
    details = object_of(_json(row.get("token_details")))
    inside = _count(object_of(details.get("prompt_tokens_details")).get("cached_tokens"))
    thought = _count(object_of(details.get("completion_tokens_details")).get("reasoning_tokens"))
    read, written = (_count(details.get(name)) for name in ("cache_read_input_tokens", "cache_creation_input_tokens"))
    return Usage(
        # OpenAI's API counts what was cached in the input, Anthropic's beside it.
        input=None if prompt is None else max(0, prompt - (inside or 0)),
        cache_read=inside if inside is not None else read,
        cache_write=written,
        output=None if output is None else max(0, output - (thought or 0)),
        reasoning=thought,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _json(text: object) -> Any:
    if not isinstance(text, str):
        return None
    try:
        return msgspec.json.decode(text.encode(errors="replace"))
    except UNREADABLE:
        return None


def _encoded(row: Row) -> str:
    known = {
        name: {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
        for name, value in row.items()
    }
    return msgspec.json.encode(known).decode()


def _time_of(value: object) -> datetime | None:
    try:
        return aware(datetime.fromisoformat(str(value)))
    except ValueError:
        return None
