"""A response of the Anthropic Messages API as an assistant message (R-K28).

Thinking keeps its signature, citations of web searches their index, and tools that Anthropic ran their results, so
that `to_request` sends them back as they came. Unknown blocks are kept whole, unknown fields as metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from turnlog.anthropic_api import STOP_REASONS, UNKNOWN_REGION
from turnlog.arguments import checked
from turnlog.model import (
    Citation,
    DataPart,
    Message,
    Part,
    ProviderData,
    ReasoningPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    UnknownPart,
    Usage,
)
from turnlog.model.codec import to_json
from turnlog.model.parts import state_after
from turnlog.model.stream import StreamEvent
from turnlog.providers.body import (
    OPEN,
    UNNAMED,
    Json,
    answer,
    arguments,
    call_state,
    count,
    error_of,
    fields,
    grown,
    metadata,
    object_of,
    objects,
    require_list,
    rest,
    text,
    word,
)
from turnlog.providers.streaming import (
    part_delta,
    part_end,
    part_start,
    tool_output,
)

SERVED_BY = "anthropic"

_RESULT = "_tool_result"
_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_BODY = ("id", "type", "role", "model", "content", "stop_reason", "usage", "error")


@checked
def from_response(body: bytes | str | Mapping[str, Any], *, requested_model: str | None = None) -> Message:
    """The assistant message of a response body. Raises as `Provider.from_response` says."""
    found = object_of(body)
    error = error_of(found.get("error"))
    require_list(found, "content", error)
    raw_stop = word(found.get("stop_reason"))
    parts = parts_of(objects(found.get("content")), word(found.get("id")) or UNNAMED, word(found.get("model")))
    return answer(
        SERVED_BY,
        found,
        parts,
        requested_model=requested_model,
        stop_reason=STOP_REASONS.get(raw_stop or ""),
        raw_stop_reason=raw_stop,
        usage=usage_of(fields(found.get("usage")), final=raw_stop is not None),
        error=error,
        metadata=metadata(SERVED_BY, found, _BODY),
    )


def parts_of(blocks: list[Json], message_id: str, model: str | None) -> tuple[Part, ...]:
    """The parts of an answer; results of server tools join their calls."""
    parts: list[Part] = []
    for index, block in enumerate(blocks):
        part = part_of(block, f"{message_id}:{index}", model)
        call = _place_of(block, parts)
        if call is None:
            parts.append(part)
        else:
            parts[call] = with_result(parts[call], block)
    return tuple(parts)


def _place_of(block: Json, parts: list[Part]) -> int | None:
    """The position of a result block's call."""
    if not is_result(block):
        return None
    wanted = block.get("tool_use_id")
    calls = [index for index, part in enumerate(parts) if getattr(part, "tool_call_id", None) == wanted]
    return calls[0] if calls else None


def is_result(block: Json) -> bool:
    """Whether a block is the result of a tool that Anthropic ran."""
    return text(block.get("type")).endswith(_RESULT)


def part_of(block: Json, part_id: str, model: str | None) -> Part:
    """One block as a part."""
    read = _PARTS.get(text(block.get("type")), _unknown)
    return read(block, part_id, model)


def with_result(part: Part, block: Json) -> Part:
    """A call with the result of its server tool."""
    if not isinstance(part, ToolCallPart):
        return part
    result = result_of(block, part.tool_call_id)
    results = (*part.results, result)
    return msgspec.structs.replace(part, results=results, state=state_after(part.state, [result.status]))


def result_of(block: Json, call_id: str) -> ToolResult:
    """The result of a server tool: pages of a web search as sources, anything else as it is."""
    content = block.get("content")
    pages = objects(content)
    if pages and all(page.get("type") == "web_search_result" for page in pages):
        parts: tuple[Part, ...] = tuple([_page(page, f"{call_id}:{index}") for index, page in enumerate(pages)])
    else:
        parts = (DataPart(id=f"{call_id}:0", name=text(block.get("type")), data=to_json(content)),)
    failed = block.get("is_error") is True or text(fields(content).get("type")).endswith("_error")
    return ToolResult(
        id=f"{call_id}:result",
        status="error" if failed else "success",
        content=parts,
        error_text=word(fields(content).get("error_code")) if failed else None,
        metadata=metadata(SERVED_BY, block, ("type", "tool_use_id", "content", "is_error")),
    )


def _page(page: Json, part_id: str) -> SourceUrlPart:
    url = text(page.get("url"))
    opaque = rest(page, ("type", "url", "title"))
    provider = ProviderData(name=SERVED_BY, opaque=opaque) if opaque else None
    return SourceUrlPart(id=part_id, source_id=url, url=url, title=word(page.get("title")), provider=provider)


def _text(block: Json, part_id: str, _model: str | None) -> Part:
    return TextPart(
        id=part_id,
        text=text(block.get("text")),
        citations=tuple([_citation(citation) for citation in objects(block.get("citations"))]),
        state="streaming" if OPEN in block else "done",
        metadata=metadata(SERVED_BY, block, ("type", "text", "citations")),
    )


def _citation(found: Json) -> Citation:
    known = ("title", "url", "document_title", "cited_text", "start_char_index", "end_char_index")
    return Citation(
        title=word(found.get("title")),
        url=word(found.get("url")),
        document=word(found.get("document_title")),
        cited_text=word(found.get("cited_text")),
        start_index=count(found.get("start_char_index")),
        end_index=count(found.get("end_char_index")),
        metadata=rest(found, known),
    )


def _thinking(block: Json, part_id: str, model: str | None) -> Part:
    redacted = block.get("type") == "redacted_thinking"
    name = "data" if redacted else "signature"
    proof = word(block.get(name))
    return ReasoningPart(
        id=part_id,
        text=text(block.get("thinking")),
        redacted=redacted,
        state="streaming" if OPEN in block else "done",
        provider=ProviderData(name=SERVED_BY, model=model, opaque={name: proof} if proof else {}),
        metadata=metadata(SERVED_BY, block, ("type", "thinking", name)),
    )


def _call(block: Json, part_id: str, _model: str | None) -> Part:
    exact, unreadable = arguments(block.get("input"), is_open=OPEN in block)
    return ToolCallPart(
        id=part_id,
        tool_call_id=word(block.get("id")) or part_id,
        tool_name=text(block.get("name")),
        input=exact,
        input_text=unreadable,
        state=call_state(block),
        provider_executed=block.get("type") in _SERVER_CALLS,
        metadata=metadata(SERVED_BY, block, ("type", "id", "name", "input")),
    )


def _unknown(block: Json, part_id: str, _model: str | None) -> Part:
    return UnknownPart(
        id=part_id,
        kind=text(block.get("type")),
        data=to_json({name: value for name, value in block.items() if name != OPEN}),
    )


_PARTS: dict[str, Callable[[Json, str, str | None], Part]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _thinking,
    "tool_use": _call,
    "server_tool_use": _call,
    "mcp_tool_use": _call,
}


def usage_of(wire: Json, *, final: bool) -> Usage | None:
    """Disjoint buckets. `input_tokens` excludes the cache; `output_tokens` includes thinking, which is subtracted.

    Without a stop reason (`final` is False) the counts are those of the stream's start: lower bounds.
    """
    if not wire:
        return None
    output = count(wire.get("output_tokens"))
    thinking = count(fields(wire.get("output_tokens_details")).get("thinking_tokens"))
    server = fields(wire.get("server_tool_use"))
    region = word(wire.get("inference_geo"))
    return Usage(
        input=count(wire.get("input_tokens")),
        cache_read=count(wire.get("cache_read_input_tokens")),
        **_cache_writes(wire),
        output=output if output is None else max(output - (thinking or 0), 0),
        reasoning=thinking,
        service_tier=word(wire.get("service_tier")),
        speed=word(wire.get("speed")),
        region=None if region == UNKNOWN_REGION else region,
        web_searches=count(server.get("web_search_requests")),
        web_fetches=count(server.get("web_fetch_requests")),
        exactness="exact" if final else "lower_bound",
    )


def _cache_writes(wire: Json) -> dict[str, Any]:
    total, split = count(wire.get("cache_creation_input_tokens")), fields(wire.get("cache_creation"))
    if not split:
        return {"cache_write": total}
    short, long = count(split.get("ephemeral_5m_input_tokens")), count(split.get("ephemeral_1h_input_tokens"))
    # The split may be older than the total that a stream sent later.
    left = (total or 0) - (short or 0) - (long or 0)
    return {"cache_write_5m": short, "cache_write_1h": long, "cache_write": left if left > 0 else None}


_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""Deltas that lengthen a block -> the field with the text."""


class _Block:
    """One block that grows. `part` is what it began as."""

    def __init__(self, start: Json, part: Part) -> None:
        self.start = dict(start)
        self.part = part
        self.grown: dict[str, list[str]] = {}
        self.citations: list[Json] = []
        self.unknown: list[Json] = []
        self.is_open = True

    def json(self) -> Json:
        """The block as the whole body would have it; arguments as the text that came."""
        block = dict(self.start)
        for name, pieces in self.grown.items():
            field = "input" if name == "partial_json" else name
            before, more = block.get(field), "".join(pieces)
            # A call without arguments begins with `{}`, and one empty piece is all that follows.
            if more or self.is_open:
                block[field] = (before if isinstance(before, str) else "") + more
        if self.citations:
            block["citations"] = [*objects(block.get("citations")), *self.citations]
        more = {"unknown_deltas": self.unknown} if self.unknown else {}
        return {**block, **more, **({OPEN: True} if self.is_open else {})}


class AnthropicAssembler:
    """Builds the body of a whole response from the events of an Anthropic stream."""

    def __init__(self) -> None:
        self.error: Any = None
        self.complete = False
        self._message: Json = {}
        self._blocks: dict[int, _Block] = {}
        self._handlers: dict[str, Callable[[Json], list[StreamEvent]]] = {
            "message_start": self._start,
            "content_block_start": self._open,
            "content_block_delta": self._grow,
            "content_block_stop": self._close,
            "message_delta": self._change,
            "message_stop": self._stop,
            "error": self._fail,
        }

    def add(self, event: Json) -> list[StreamEvent]:
        """Take one event of the API."""
        handler = self._handlers.get(text(event.get("type")))
        return handler(event) if handler else []

    def body(self) -> Json:
        """The body so far; blocks that have not ended carry `body.OPEN`."""
        blocks = [self._blocks[index].json() for index in sorted(self._blocks)]
        return {**self._message, "content": blocks}

    def _start(self, event: Json) -> list[StreamEvent]:
        """Begin, perhaps with calls that a program made before and that only waited for their results."""
        message = fields(event.get("message"))
        self._message = grown(self._message, message)
        if self._blocks:
            return []
        given = enumerate(objects(message.get("content")))
        return [each for index, block in given for each in [*self._begin(index, block), *self._end(index)]]

    def _open(self, event: Json) -> list[StreamEvent]:
        start = fields(event.get("content_block"))
        if start.get("type") == "fallback":
            # Another model takes over in the middle of the answer, and `model` of `message_start` is the first one's.
            model = word(fields(start.get("to")).get("model"))
            self._message |= {"model": model} if model else {}
        return self._begin(count(event.get("index")) or 0, start)

    def _begin(self, index: int, start: Json) -> list[StreamEvent]:
        block = _Block(start, self._part(index, start))
        self._blocks[index] = block
        written = text(start.get("text")) or text(start.get("thinking"))
        return [] if is_result(start) else [*part_start(block.part), *part_delta(block.part, written)]

    def _part(self, index: int, block: Json) -> Part:
        message_id = word(self._message.get("id")) or UNNAMED
        return part_of(block, f"{message_id}:{index}", word(self._message.get("model")))

    def _grow(self, event: Json) -> list[StreamEvent]:
        block = self._blocks.get(count(event.get("index")) or 0)
        if block is None:
            return []
        delta = fields(event.get("delta"))
        kind = text(delta.get("type"))
        name = _GROWING.get(kind)
        if name is not None:
            more = text(delta.get(name))
            block.grown.setdefault(name, []).append(more)
            return part_delta(block.part, more)
        if kind == "signature_delta":
            block.start |= {"signature": delta.get("signature")}
        elif kind == "compaction_delta":
            block.start |= {name: value for name, value in delta.items() if name != "type"}
        elif kind == "citations_delta":
            block.citations.append(fields(delta.get("citation")))
        else:
            block.unknown.append(delta)
        return []

    def _close(self, event: Json) -> list[StreamEvent]:
        return self._end(count(event.get("index")) or 0)

    def _end(self, index: int) -> list[StreamEvent]:
        block = self._blocks.get(index)
        if block is None:
            return []
        block.is_open = False
        whole = block.json()
        return self._result(whole) if is_result(whole) else part_end(self._part(index, whole))

    def _result(self, block: Json) -> list[StreamEvent]:
        calls = [each.part for each in self._blocks.values() if isinstance(each.part, ToolCallPart)]
        call = next((part for part in calls if part.tool_call_id == block.get("tool_use_id")), None)
        return tool_output(call, result_of(block, call.tool_call_id)) if call else []

    def _change(self, event: Json) -> list[StreamEvent]:
        usage = {**fields(self._message.get("usage")), **rest(fields(event.get("usage")), ())}
        self._message |= rest(event, ("type", "delta", "usage"))
        self._message |= {**rest(fields(event.get("delta")), ()), "usage": usage}
        return []

    def _stop(self, _event: Json) -> list[StreamEvent]:
        self.complete = True
        return []

    def _fail(self, event: Json) -> list[StreamEvent]:
        self.error = event.get("error") or event
        return []
