"""Sessions as traces of OpenTelemetry: a trace a session, in OTLP's JSON, with the GenAI semantic conventions.

A turn is a span (`invoke_agent`); its model calls (`chat`) and their tool calls (`execute_tool`) are spans below it.
A subagent's turns are below the call that started it. Ids are made from those of the session and its messages, so that
a trace that is sent again replaces itself. Attributes that the conventions do not have begin with `turnlog.`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, cast

import msgspec

from turnlog.formats.token_counts import cache_writes, completion_tokens, prompt_tokens
from turnlog.model import (
    Cost,
    Fate,
    Membership,
    Message,
    Part,
    ReasoningPart,
    Session,
    TextPart,
    ToolCallPart,
    ToolState,
    Usage,
)
from turnlog.model.message import UNCALLED_ORIGINS

INTERNAL, CLIENT = 1, 3
"""Kinds of spans."""

FAILED: Final = 2
"""The status of a span that ended in an error."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_PROVIDERS: Final = {
    "google": "gcp.gemini",
    "gemini": "gcp.gemini",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Our names of providers -> those of the conventions, where they differ."""

_REASONS: Final = {"tool_use": "tool_call"}


class OtelConversation(NamedTuple):
    """One session, as it is written."""

    session: Session
    placed: Sequence[tuple[Message, Membership, Cost | None]]
    """Its messages with their results, and what they cost."""


def omitted(conversations: Iterable[OtelConversation], *, content: bool) -> Iterator[tuple[str, str]]:
    """What a trace has no place for: kind and place of each. What holds for every trace is said once.

    Args:
        conversations: The sessions of the trace.
        content: As for `to_otel`.
    """
    if not content:
        yield "content", "prompts, answers, inputs and outputs"
    yield "events", "what happened besides messages and results"
    for each in conversations:
        session = each.session
        if session.totals:
            yield "session total", f"{session.id} has tokens of no single call"
        elif session.reported_cost is not None and not any(cost or message.cost for message, _, cost in each.placed):
            yield "session total", f"{session.id} has a cost of no single call"
        for message, _, _ in each.placed if content else ():
            yield from _unwritten(message)


def _unwritten(message: Message) -> Iterator[tuple[str, str]]:
    for part in message.parts:
        if not isinstance(part, TextPart | ReasoningPart | ToolCallPart):
            yield part.type, f"message {message.id}"
        if isinstance(part, TextPart) and part.citations:
            yield "citations", f"message {message.id}"
        if isinstance(part, ToolCallPart):
            for result in part.results:
                for inner in result.content:
                    if not isinstance(inner, TextPart):
                        yield inner.type, f"result {result.id}"


class _Place(NamedTuple):
    """Where the spans of a session are."""

    trace: str
    parent: str | None
    session: str
    content: bool


def trace_id(session_id: str) -> str:
    """The id of the trace of a session and its subagents: 32 hexadecimal digits."""
    return _digest("trace", session_id)[:32]


def span_id(*names: str) -> str:
    """The id of a span: 16 hexadecimal digits."""
    return _digest("span", *names)[:16]


def _digest(*names: str) -> str:
    return hashlib.sha256("\0".join(names).encode(errors="surrogatepass")).hexdigest()


def to_otel(conversations: Sequence[OtelConversation], root_id: str, *, version: str, content: bool = False) -> bytes:
    """A session and its subagents' as one `ExportTraceServiceRequest`, in OTLP's JSON.

    Args:
        conversations: The session, then all that it started.
        root_id: The session that names the trace: the first one, or the one that started it.
        version: That of the program that writes it.
        content: Whether prompts, answers, inputs and outputs are attributes.
    """
    return msgspec.json.encode({"resourceSpans": resource_spans(conversations, root_id, version, content=content)})


def resource_spans(
    conversations: Sequence[OtelConversation],
    root_id: str,
    version: str,
    *,
    content: bool,
    turns: Container[int] | None = None,
) -> list[dict[str, Any]]:
    """The spans of each session with its agent as the service.

    `turns`: only spans of these turns. The turn before the first of them is needed all the same: a call that has only
    one time begins where the one before ended.
    """
    callers = {
        part.child_session_id: span_id(each.session.id, message.id, part.tool_call_id)
        for each in conversations
        for message, _, _ in each.placed
        for part in message.parts
        if isinstance(part, ToolCallPart) and part.child_session_id
    }
    made: list[dict[str, Any]] = []
    for each in conversations:
        session = each.session
        parent = callers.get(session.id) or _caller(session)
        place = _Place(trace_id(root_id), parent, session.id, content)
        resource = {"service.name": session.agent, "service.version": session.agent_version}
        made.append(
            {
                "resource": {"attributes": attributes(resource)},
                "scopeSpans": [
                    {"scope": {"name": "turnlog", "version": version}, "spans": list(_spans(each, place, turns))}
                ],
            }
        )
    return made


def _caller(session: Session) -> str | None:
    """The span of the call that started a session which is written without the session of the call."""
    for link in session.relationships:
        if link.kind == "subagent" and link.parent_message_id and link.parent_tool_call_id:
            return span_id(link.parent_session_id, link.parent_message_id, link.parent_tool_call_id)
    return None


def _spans(conversation: OtelConversation, place: _Place, wanted: Container[int] | None) -> Iterator[dict[str, Any]]:
    turns: dict[int, list[tuple[Message, Membership, Cost | None]]] = {}
    for each in conversation.placed:
        turns.setdefault(each[1].turn or 0, []).append(each)
    last = conversation.session.created_at
    for number, placed in sorted(turns.items()):
        turn = _Turn(conversation.session, place, number, last)
        for message, membership, cost in placed:
            turn.add(message, membership, cost)
        if wanted is None or number in wanted:
            yield turn.span()
            yield from turn.inner
        last = turn.latest


class _Turn:
    """The spans of one turn, as they are made."""

    def __init__(self, session: Session, place: _Place, number: int, last: datetime | None) -> None:
        self._session = session
        self._place = place
        self._number = number
        self._id = span_id(session.id, "turn", str(number))
        self._start: datetime | None = None
        self._has_times = False
        self.latest = last
        """The last time of what came before."""
        self.inner: list[dict[str, Any]] = []
        self._input: list[dict[str, Any]] = []
        """What the next model call gets that the one before did not."""
        self._first: list[dict[str, Any]] = []
        self._output: list[dict[str, Any]] = []

    def add(self, message: Message, membership: Membership, cost: Cost | None) -> None:
        if self._start is None and message.created_at is not None:
            self._start = message.created_at
            self._has_times = True
        if message.role != "assistant" or message.origin in UNCALLED_ORIGINS:
            self.latest = message.completed_at or message.created_at or self.latest
            if self._place.content:
                self._input.append(_message_json(message))
                self._first.append(self._input[-1])
            return
        self.inner.append(self._chat(message, membership, cost))
        self._input = []
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                self.inner.append(self._tool(message, part))

    def span(self) -> dict[str, Any]:
        """The span of the turn, once everything is added."""
        facts = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self._session.agent,
            "gen_ai.agent.version": self._session.agent_version,
            "gen_ai.conversation.id": self._session.id,
            "turnlog.turn": self._number,
            "turnlog.times.inferred": None if self._has_times else True,
            "gen_ai.input.messages": _json(self._first),
            "gen_ai.output.messages": _json(self._output),
        }
        ends = [int(each["endTimeUnixNano"]) for each in self.inner]
        starts = [int(each["startTimeUnixNano"]) for each in self.inner]
        start = min([_nanos(self._start or self.latest), *starts])
        return self._span(
            self._id,
            self._place.parent,
            f"invoke_agent {self._session.agent}",
            INTERNAL,
            (start, max([start, _nanos(self.latest), *ends])),
            facts,
        )

    def _chat(self, message: Message, membership: Membership, cost: Cost | None) -> dict[str, Any]:
        end = message.completed_at or message.created_at
        # Most logs write a record when its answer is complete: it began when what it answers was there.
        is_known = message.completed_at is not None and message.created_at is not None
        start = message.created_at if is_known else self.latest
        if end is None or start is None:
            start = end = end or start
        end = end if start is None or end is None or end >= start else start
        usage = (message.usage or Usage()) if membership.is_billed else Usage()
        paid = (cost or message.cost) if membership.is_billed else None
        model = message.model or message.requested_model
        if self._place.content:
            self._output = [_message_json(message)]
        facts = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _provider(message),
            "gen_ai.conversation.id": self._session.id,
            "gen_ai.agent.name": self._session.agent,
            "gen_ai.request.model": message.requested_model or message.model,
            "gen_ai.response.model": message.model,
            "gen_ai.response.id": message.response_id,
            "gen_ai.response.finish_reasons": [_REASONS.get(message.stop_reason, message.stop_reason)]
            if message.stop_reason
            else None,
            **_tokens(usage),
            "turnlog.cost.usd": float(paid.amount) if paid is not None and paid.currency == "USD" else None,
            "turnlog.cost.kind": None if paid is None else paid.kind,
            "turnlog.message.id": message.id,
            "turnlog.fate": None if membership.fate is Fate.ACTIVE else membership.fate.value,
            "turnlog.copied": None if membership.is_billed else True,
            "turnlog.times.inferred": None if is_known else True,
            "gen_ai.input.messages": _json(self._input),
            "gen_ai.output.messages": _json(self._output),
        }
        error = message.error
        if error is not None:
            facts["error.type"] = error.kind or (str(error.status) if error.status else "_OTHER")
        self.latest = end or self.latest
        return self._span(
            span_id(self._session.id, message.id),
            self._id,
            f"chat {model}" if model else "chat",
            CLIENT,
            (_nanos(start), _nanos(end)),
            facts,
            failure=None if error is None else error.text,
        )

    def _tool(self, message: Message, call: ToolCallPart) -> dict[str, Any]:
        start = call.started_at or message.completed_at or message.created_at or self.latest
        ends = [result.completed_at for result in call.results if result.completed_at is not None]
        end = max(ends, default=start)
        if start is not None and end is not None:
            start = min(start, end)
        content = self._place.content
        if content and call.results:
            response = {"type": "tool_call_response", "id": call.tool_call_id, "response": call.output_text}
            self._input.append({"role": "tool", "parts": [response]})
        failed = call.state is ToolState.OUTPUT_ERROR
        facts = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool_name,
            "gen_ai.tool.call.id": call.tool_call_id,
            "gen_ai.tool.type": "extension" if call.provider_executed else "function",
            "gen_ai.conversation.id": self._session.id,
            "turnlog.tool.kind": call.kind.value,
            "turnlog.tool.state": call.state.value,
            "turnlog.times.inferred": None if call.started_at is not None and ends else True,
            "error.type": "tool_error" if failed else None,
            "gen_ai.tool.call.arguments": _json(call.input_value()) if content else None,
            "gen_ai.tool.call.result": call.output_text if content and call.results else None,
        }
        if end is not None and (self.latest is None or end > self.latest):
            self.latest = end
        return self._span(
            span_id(self._session.id, message.id, call.tool_call_id),
            span_id(self._session.id, message.id),
            f"execute_tool {call.tool_name}",
            INTERNAL,
            (_nanos(start), _nanos(end)),
            facts,
            failure=call.output_text if failed else None,
        )

    def _span(
        self,
        identity: str,
        parent: str | None,
        name: str,
        kind: int,
        times: tuple[int, int],
        facts: Mapping[str, Any],
        failure: str | None = None,
    ) -> dict[str, Any]:
        span: dict[str, Any] = {
            "traceId": self._place.trace,
            "spanId": identity,
            "name": _text(name),
            "kind": kind,
            "startTimeUnixNano": str(times[0]),
            "endTimeUnixNano": str(times[1]),
            "attributes": attributes(facts),
        }
        if parent is not None:
            span["parentSpanId"] = parent
        if failure is not None:
            span["status"] = {"code": FAILED} | ({"message": _text(failure)} if self._place.content else {})
        return span


def _tokens(usage: Usage) -> dict[str, int | None]:
    """Input contains what caches had, and output the reasoning, as the conventions ask."""
    return {
        "gen_ai.usage.input_tokens": prompt_tokens(usage),
        "gen_ai.usage.output_tokens": completion_tokens(usage),
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": cache_writes(usage),
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }


def _provider(message: Message) -> str | None:
    if message.provider is None:
        return None
    return _PROVIDERS.get(message.provider.name, message.provider.name)


def _message_json(message: Message) -> dict[str, Any]:
    """A message as the conventions have it: a role and parts."""
    content: dict[str, Any] = {
        "role": "system" if message.role == "developer" else message.role,
        "parts": [found for part in message.parts if (found := _part(part)) is not None],
    }
    if message.stop_reason:
        content["finish_reason"] = _REASONS.get(message.stop_reason, message.stop_reason)
    return content


def _part(part: Part) -> dict[str, Any] | None:
    if isinstance(part, TextPart):
        return {"type": "text", "content": part.text}
    if isinstance(part, ReasoningPart):
        return {"type": "reasoning", "content": part.text} if part.text else None
    if isinstance(part, ToolCallPart):
        call = {"type": "tool_call", "id": part.tool_call_id, "name": part.tool_name}
        return call | {"arguments": part.input_value()}
    return None


def _json(value: Any) -> str | None:
    return json.dumps(value, ensure_ascii=False) if value not in (None, []) else None


def _nanos(time: datetime | None) -> int:
    """Nanoseconds since 1970; 0 for what has no time at all."""
    if time is None:
        return 0
    since = time - _EPOCH
    return max(0, (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000)


def attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those that are known, as OTLP has them."""
    return [{"key": name, "value": _value(value)} for name, value in facts.items() if value is not None]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in cast("list[Any]", value)]}}
    return {"stringValue": _text(str(value))}


def _text(text: str) -> str:
    """A text without halves of characters, which UTF-8 cannot have."""
    return text.encode(errors="replace").decode()


def to_protobuf(document: bytes) -> bytes:
    """What `to_otel` made, in OTLP's binary form. Raises ImportError without the extra `otel`."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = json.loads(document)
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                # OTLP's JSON has ids in hexadecimal digits, that of protobuf has bytes in base64.
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return ParseDict(request, ExportTraceServiceRequest()).SerializeToString()
