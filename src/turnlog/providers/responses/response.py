"""A response of OpenAI's Responses API as an assistant message (R-K28).

Items keep their ids, reasoning its sealed content and answers their phase, so that `to_request` sends them back as they
came. Tools that OpenAI ran are calls with their results; items of unknown kinds are kept whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from turnlog.arguments import checked
from turnlog.model import (
    Citation,
    DataPart,
    Message,
    Part,
    ProviderData,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    UnknownPart,
    Usage,
)
from turnlog.model.codec import to_json
from turnlog.model.message import StopReason
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
    file_from_base64,
    grown,
    metadata,
    object_of,
    objects,
    require_list,
    text,
    word,
)
from turnlog.providers.streaming import part_delta, part_end, part_start, part_whole

SERVED_BY = "openai"

STOP_REASONS: dict[str, StopReason] = {
    "completed": "stop",
    "max_output_tokens": "length",
    "max_messages": "length",
    "steered": "pause",
    "content_filter": "content_filter",
    "failed": "error",
    "cancelled": "aborted",
}
"""From the reason of an incomplete response, else from its status."""

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Calls that the caller answers -> the field with their arguments."""

_OUTCOMES = ("outputs", "output", "results", "result", "error")
"""Where items of server tools have what came of them."""

_ITEM = ("id", "type", "status", "call_id", "name")
_BODY = ("id", "object", "created_at", "model", "output", "status", "usage", "error", "service_tier", "instructions")
"""`instructions`, `tools` and the like repeat the request."""

_ECHOED = (
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "text",
    "truncation",
    "store",
    "input",
)


@checked
def from_response(body: bytes | str | Mapping[str, Any], *, requested_model: str | None = None) -> Message:
    """The assistant message of a response body. Raises as `Provider.from_response` says."""
    found = object_of(body)
    error = error_of(found.get("error"))
    require_list(found, "output", error)
    parts = parts_of(objects(found.get("output")), word(found.get("id")) or UNNAMED, word(found.get("model")))
    raw_stop = word(fields(found.get("incomplete_details")).get("reason")) or word(found.get("status"))
    return answer(
        SERVED_BY,
        found,
        parts,
        requested_model=requested_model,
        stop_reason=_stop_reason(raw_stop, parts),
        raw_stop_reason=raw_stop,
        usage=usage_of(fields(found.get("usage")), word(found.get("service_tier"))),
        error=error,
        metadata=metadata(SERVED_BY, found, (*_BODY, *_ECHOED)),
    )


def _stop_reason(raw: str | None, parts: tuple[Part, ...]) -> StopReason | None:
    """A completed response waits for results, was a refusal, or is over."""
    reason = STOP_REASONS.get(raw or "")
    if reason != "stop":
        return reason
    if any(isinstance(part, ToolCallPart) and not part.provider_executed for part in parts):
        return "tool_use"
    return (
        "refusal"
        if any(SERVED_BY in part.metadata and "refusal" in part.metadata[SERVED_BY] for part in parts)
        else "stop"
    )


def parts_of(items: list[Json], message_id: str, model: str | None) -> tuple[Part, ...]:
    """The parts of all items, in order."""
    return tuple(
        [part for index, item in enumerate(items) for part in item_parts(item, f"{message_id}:{index}", model)]
    )


def item_parts(item: Json, part_id: str, model: str | None) -> list[Part]:
    """The parts of one item; their ids begin with `part_id`."""
    kind = text(item.get("type"))
    read = _ITEMS.get(kind, _server_call if kind.endswith("_call") else _unknown)
    return read(item, part_id, model)


def _provider(item: Json, model: str | None, **more: Any) -> ProviderData:
    named = {"id": word(item.get("id")), **more}
    return ProviderData(name=SERVED_BY, model=model, opaque={name: value for name, value in named.items() if value})


def _message(item: Json, part_id: str, model: str | None) -> list[Part]:
    """The first text carries the id of the item, which goes back once."""
    parts: list[Part] = []
    for index, piece in enumerate(objects(item.get("content"))):
        named = item if index == 0 else {}
        refused = piece.get("type") == "refusal"
        parts.append(
            TextPart(
                id=f"{part_id}:{index}",
                text=text(piece.get("refusal" if refused else "text")),
                citations=tuple([_citation(each) for each in objects(piece.get("annotations"))]),
                state="streaming" if OPEN in item else "done",
                provider=_provider(named, model, phase=word(item.get("phase"))),
                metadata={SERVED_BY: {"refusal": True}} if refused else {},
            )
        )
    return parts


def _citation(found: Json) -> Citation:
    known = ("title", "url", "filename", "start_index", "end_index")
    return Citation(
        title=word(found.get("title")),
        url=word(found.get("url")),
        document=word(found.get("filename")),
        start_index=count(found.get("start_index")),
        end_index=count(found.get("end_index")),
        metadata={name: value for name, value in found.items() if name not in known and value is not None},
    )


def _reasoning(item: Json, part_id: str, model: str | None) -> list[Part]:
    """The thought itself where the API shows it, else its summary; the summary goes back."""
    summary = "\n\n".join([text(piece.get("text")) for piece in objects(item.get("summary"))])
    shown = "\n\n".join([text(piece.get("text")) for piece in objects(item.get("content"))])
    sealed = word(item.get("encrypted_content"))
    return [
        ReasoningPart(
            id=f"{part_id}:0",
            text=shown or summary,
            state="streaming" if OPEN in item else "done",
            provider=_provider(item, model, encrypted_content=sealed, summary=summary if shown else None),
        )
    ]


def _call(item: Json, part_id: str, model: str | None) -> list[Part]:
    field = _CALLS[text(item.get("type"))]
    exact, unreadable = arguments(item.get(field), is_open=OPEN in item)
    return [
        ToolCallPart(
            id=f"{part_id}:0",
            tool_call_id=word(item.get("call_id")) or word(item.get("id")) or part_id,
            tool_name=text(item.get("name")),
            input=exact,
            input_text=unreadable,
            state=call_state(item),
            provider=_provider(item, model),
            metadata=metadata(SERVED_BY, item, (*_ITEM, field)),
        )
    ]


def _server_call(item: Json, part_id: str, model: str | None) -> list[Part]:
    """A call that names who answers it (`call_id`) is the caller's to run; any other has run."""
    kind = text(item.get("type")).removesuffix("_call")
    call_id = word(item.get("call_id"))
    arguments_text = item.get("action") or item.get("operation") or item.get("arguments")
    rest = {name: value for name, value in item.items() if name not in (*_ITEM, *_OUTCOMES, OPEN) and value is not None}
    exact, unreadable = arguments(arguments_text or rest, is_open=OPEN in item and isinstance(arguments_text, str))
    state = call_state(item)
    results = () if call_id or OPEN in item else (_result(item, part_id),)
    return [
        ToolCallPart(
            id=f"{part_id}:0",
            tool_call_id=call_id or word(item.get("id")) or part_id,
            tool_name=word(item.get("name")) or kind,
            input=exact,
            input_text=unreadable,
            state=state_after(state, [result.status for result in results]),
            provider_executed=call_id is None,
            provider=_provider(item, model),
            results=results,
        )
    ]


def _result(item: Json, part_id: str) -> ToolResult:
    outcome = {name: item[name] for name in _OUTCOMES if item.get(name) not in (None, [])}
    failed = item.get("status") in ("failed", "incomplete") or "error" in outcome
    content: tuple[Part, ...] = ()
    if item.get("type") == "image_generation_call":
        image = file_from_base64(f"image/{word(item.get('output_format')) or 'png'}", item.get("result"))
        content = (image,) if image and image.data else ()
    elif isinstance(output := outcome.get("output"), str):
        content = (TextPart(text=text(output)),)
    elif outcome:
        content = (DataPart(name=text(item.get("type")), data=to_json(outcome)),)
    error = error_of(outcome.get("error"))
    return ToolResult(
        id=f"{part_id}:result",
        status="error" if failed else "success",
        content=content,
        error_text=error.text if error else None,
    )


def _unknown(item: Json, part_id: str, _model: str | None) -> list[Part]:
    exact = {name: value for name, value in item.items() if name != OPEN}
    return [UnknownPart(id=f"{part_id}:0", kind=text(item.get("type")), data=to_json(exact))]


_ITEMS: dict[str, Callable[[Json, str, str | None], list[Part]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call,
    "custom_tool_call": _call,
}


def usage_of(wire: Json, tier: str | None) -> Usage | None:
    """Disjoint buckets: the cache is inside of the input, reasoning inside of the output."""
    if not wire:
        return None
    details = fields(wire.get("input_tokens_details"))
    input_tokens, output = count(wire.get("input_tokens")), count(wire.get("output_tokens"))
    cached, written = count(details.get("cached_tokens")), count(details.get("cache_write_tokens"))
    reasoning = count(fields(wire.get("output_tokens_details")).get("reasoning_tokens"))
    return Usage(
        input=None if input_tokens is None else max(input_tokens - (cached or 0) - (written or 0), 0),
        cache_read=cached,
        cache_write=written,
        output=None if output is None else max(output - (reasoning or 0), 0),
        reasoning=reasoning,
        service_tier=tier,
    )


_PIECES = {
    "response.output_text.delta": ("content", "content_index", "output_text", "text"),
    "response.refusal.delta": ("content", "content_index", "refusal", "refusal"),
    "response.reasoning_text.delta": ("content", "content_index", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "summary_text", "text"),
}
"""Deltas of pieces -> the item's list, the field with the place in it, a new piece's kind, the field that grows."""

_ARGUMENTS = {
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_BEGINNINGS = ("response.created", "response.queued", "response.in_progress")


class ResponsesAssembler:
    """Builds the body of a whole response from the events of a Responses stream."""

    def __init__(self) -> None:
        self.error: Any = None
        self.complete = False
        self._response: Json = {}
        self._items: dict[int, Json] = {}
        self._grown: dict[tuple[int, str, int], tuple[str, str, list[str]]] = {}
        self._arguments: dict[tuple[int, str], list[str]] = {}
        self._started: dict[str, Part] = {}
        self._handlers: dict[str, Callable[[Json], list[StreamEvent]]] = {
            **dict.fromkeys(_BEGINNINGS, self._begin),
            **dict.fromkeys(_ENDS, self._end),
            **dict.fromkeys(_PIECES, self._grow),
            **dict.fromkeys(_ARGUMENTS, self._argue),
            "response.output_item.added": self._open,
            "response.output_item.done": self._close,
            "error": self._fail,
        }

    def add(self, event: Json) -> list[StreamEvent]:
        """Take one event of the API."""
        handler = self._handlers.get(text(event.get("type")))
        return handler(event) if handler else []

    def body(self) -> Json:
        """The body so far; blocks that have not ended carry `body.OPEN`."""
        # The last event repeats all items; that of some servers has none.
        items = objects(self._response.get("output")) if self.complete else []
        return {**self._response, "output": items or [self._item(index) for index in sorted(self._items)]}

    def _item(self, index: int) -> Json:
        item = dict(self._items[index])
        if OPEN not in item:
            return item
        for (place, field), pieces in self._arguments.items():
            if place == index:
                item[field] = "".join(pieces)
        for (place, name, _), (kind, field, pieces) in sorted(self._grown.items()):
            if place == index:
                item[name] = [*objects(item.get(name)), {"type": kind, field: "".join(pieces)}]
        return item

    def _begin(self, event: Json) -> list[StreamEvent]:
        self._response = grown(self._response, fields(event.get("response")))
        return []

    def _end(self, event: Json) -> list[StreamEvent]:
        self._response = grown(self._response, fields(event.get("response")))
        self.complete = True
        self.error = self._response.get("error")
        return []

    def _fail(self, event: Json) -> list[StreamEvent]:
        self.error = event.get("error") or {"message": event.get("message"), "type": event.get("code")}
        return []

    def _open(self, event: Json) -> list[StreamEvent]:
        index = _place(event)
        self._items[index] = {**fields(event.get("item")), OPEN: True}
        calls = [part for part in self._parts(index) if isinstance(part, ToolCallPart)]
        return [event for call in calls for event in self._start(call)]

    def _grow(self, event: Json) -> list[StreamEvent]:
        index = _place(event)
        name, place, kind, field = _PIECES[text(event.get("type"))]
        if index not in self._items:
            return []
        at = count(event.get(place)) or 0
        first = (index, name, at) not in self._grown
        more = text(event.get("delta"))
        self._grown.setdefault((index, name, at), (kind, field, []))[2].append(more)
        part = self._part_at(index, at)
        is_next = name == "summary" and at > 0 and first
        return [*self._start(part), *part_delta(part, f"\n\n{more}" if is_next else more)]

    def _part_at(self, index: int, at: int) -> Part:
        part_id = self._part_id(index)
        if self._items[index].get("type") == "reasoning":
            return ReasoningPart(id=f"{part_id}:0", text="")
        return TextPart(id=f"{part_id}:{at}", text="")

    def _argue(self, event: Json) -> list[StreamEvent]:
        index = _place(event)
        if index not in self._items:
            return []
        more = text(event.get("delta"))
        self._arguments.setdefault((index, _ARGUMENTS[text(event.get("type"))]), []).append(more)
        known = item_parts(self._items[index], self._part_id(index), None)
        return [started for call in known for started in [*self._start(call), *part_delta(call, more)]]

    def _start(self, part: Part) -> list[StreamEvent]:
        if (part.id or "") in self._started:
            return []
        self._started[part.id or ""] = part
        return part_start(part)

    def _close(self, event: Json) -> list[StreamEvent]:
        index = _place(event)
        self._items[index] = dict(fields(event.get("item")))
        events: list[StreamEvent] = []
        for part in self._parts(index):
            events += part_end(part) if (part.id or "") in self._started else part_whole(part)
        return events

    def _part_id(self, index: int) -> str:
        return f"{self._response.get('id') or 'response'}:{index}"

    def _parts(self, index: int) -> list[Part]:
        model = self._response.get("model")
        return item_parts(self._item(index), self._part_id(index), model if isinstance(model, str) else None)


def _place(event: Json) -> int:
    return count(event.get("output_index")) or 0
