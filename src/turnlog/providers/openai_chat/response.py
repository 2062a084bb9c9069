"""Answers of Chat Completions, whoever serves them, as assistant messages (R-K28).

Reasoning keeps the field that it came in, or its details, so that `to_request` puts them back there. Fields that nobody
knows are kept as metadata. Only the first choice is read as the answer; others stay in the metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from turnlog.arguments import checked
from turnlog.model import (
    Citation,
    Cost,
    FilePart,
    Message,
    Part,
    ProviderData,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    Usage,
)
from turnlog.model.message import StopReason
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
    file_of,
    grown,
    metadata,
    object_of,
    objects,
    require_list,
    rest,
    text,
    word,
)
from turnlog.providers.request_parts import REASONING_FIELDS
from turnlog.providers.streaming import part_delta, part_end, part_start, part_whole

THOUGHTS = (*REASONING_FIELDS, "thinking")
"""Fields that may contain reasoning; `thinking` is what `flat` makes of a list."""

STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "model_context_window_exceeded": "context_window",
    "insufficient_system_resource": "error",
    "network_error": "error",
    "error": "error",
}

_BODY = ("id", "object", "created", "model", "choices", "usage", "service_tier", "error")
_CHOICE = ("index", "message", "finish_reason")
_ANSWER = (
    "role",
    "content",
    "refusal",
    "tool_calls",
    "function_call",
    "annotations",
    "images",
    "reasoning_details",
    *THOUGHTS,
)


def answer_of(body: bytes | str | Mapping[str, Any], provider: str, requested_model: str | None) -> Message:
    """The assistant message of a response body. Raises ShapeError for what is no response."""
    found = object_of(body)
    choices = objects(found.get("choices"))
    choice = choices[0] if choices else {}
    error = error_of(found.get("error")) or error_of(choice.get("error"))
    require_list(found, "choices", error)
    message = flat(fields(choice.get("message")))
    raw_stop = word(choice.get("finish_reason"))
    more = metadata(
        provider, {**found, **choice, **message, "other_choices": choices[1:]}, (*_BODY, *_CHOICE, *_ANSWER)
    )
    return answer(
        provider,
        found,
        _Reader(word(found.get("id")) or UNNAMED, provider, word(found.get("model"))).parts(message),
        requested_model=requested_model,
        stop_reason=_stop_reason(raw_stop, message),
        raw_stop_reason=raw_stop,
        usage=usage_of(fields(found.get("usage")), word(found.get("service_tier"))),
        cost=_cost(fields(found.get("usage")).get("cost")),
        error=error,
        metadata=more,
    )


def _stop_reason(raw: str | None, answer: Json) -> StopReason | None:
    """Some servers say `stop` where the model called tools, and all do where it refused."""
    reason = STOP_REASONS.get(raw or "")
    if reason == "stop" and answer.get("refusal"):
        return "refusal"
    return "tool_use" if reason == "stop" and answer.get("tool_calls") else reason


class _Reader:
    """Reads the parts of one answer: thought, said, called, drawn."""

    def __init__(self, message_id: str, provider: str, model: str | None) -> None:
        self._id = message_id
        self._provider = provider
        self._model = model

    def parts(self, answer: Json) -> tuple[Part, ...]:
        calls = [self._call(call, index) for index, call in enumerate(objects(answer.get("tool_calls")))]
        return (*self._reasoning(answer), *self._texts(answer), *calls, *self._old_call(answer), *self._images(answer))

    def _reasoning(self, answer: Json) -> list[Part]:
        """One part: the details hold the text too, where there are any."""
        details = objects(answer.get("reasoning_details"))
        field = next((name for name in THOUGHTS if text(answer.get(name))), None)
        if not details and field is None:
            return []
        opaque: Json = {"reasoning_details": details} if details else {}
        if not details and field in REASONING_FIELDS:
            opaque = {"reasoning_field": field}
        written = text(answer.get(field)) if field else "".join([_detail_text(detail) for detail in details])
        return [
            ReasoningPart(
                id=f"{self._id}:reasoning",
                text=written,
                redacted=not written,
                state="streaming" if OPEN in answer else "done",
                provider=ProviderData(name=self._provider, model=self._model, opaque=opaque),
            )
        ]

    def _texts(self, answer: Json) -> list[Part]:
        state = "streaming" if OPEN in answer else "done"
        citations = tuple([_citation(each) for each in objects(answer.get("annotations"))])
        parts: list[Part] = []
        written = text(answer.get("content"))
        if written:
            parts.append(TextPart(id=f"{self._id}:text", text=written, citations=citations, state=state))
        if refusal := text(answer.get("refusal")):
            marked = {self._provider: {"refusal": True}}
            parts.append(TextPart(id=f"{self._id}:refusal", text=refusal, state=state, metadata=marked))
        return parts

    def _call(self, call: Json, index: int) -> Part:
        kind = "custom" if call.get("type") == "custom" else "function"
        called = fields(call.get(kind))
        exact, unreadable = arguments(called.get("input" if kind == "custom" else "arguments"), is_open=OPEN in call)
        part_id = f"{self._id}:call:{index}"
        return ToolCallPart(
            id=part_id,
            tool_call_id=word(call.get("id")) or part_id,
            tool_name=text(called.get("name")),
            input=exact,
            input_text=unreadable,
            state=call_state(call),
            metadata=metadata(self._provider, call, ("id", "type", "index", "function", "custom")),
        )

    def _old_call(self, answer: Json) -> list[Part]:
        """The one call of the years before 2024, which had no id."""
        called = fields(answer.get("function_call"))
        return [self._call({"function": called, **({OPEN: True} if OPEN in answer else {})}, 0)] if called else []

    def _images(self, answer: Json) -> list[Part]:
        found = [file_of(text(fields(image.get("image_url")).get("url"))) for image in objects(answer.get("images"))]
        return [_named(file, f"{self._id}:image:{index}") for index, file in enumerate(found) if file is not None]


def _named(file: FilePart, part_id: str) -> FilePart:
    return FilePart(id=part_id, media_type=file.media_type, data=file.data, url=file.url)


def flat(message: Json) -> Json:
    """An answer or a delta, its content as text. Some servers send a list of pieces, thinking among them (Mistral)."""
    if not isinstance(message.get("content"), list):
        return message
    pieces = objects(message["content"])
    thought = "".join([text(inner.get("text")) for piece in pieces for inner in objects(piece.get("thinking"))])
    written = "".join([text(piece.get("text")) for piece in pieces])
    return {**message, "content": written, **({"thinking": thought} if thought else {})}


def _detail_text(detail: Json) -> str:
    return text(detail.get("text")) or text(detail.get("summary"))


def _citation(annotation: Json) -> Citation:
    found = fields(annotation.get("url_citation"))
    return Citation(
        title=word(found.get("title")),
        url=word(found.get("url")),
        cited_text=word(found.get("content")),
        start_index=count(found.get("start_index")),
        end_index=count(found.get("end_index")),
    )


def usage_of(wire: Json, tier: str | None) -> Usage | None:
    """Disjoint buckets: the cache is inside of the prompt, reasoning inside of the completion.

    A server whose total shows that reasoning came on top is believed.
    """
    if not wire:
        return None
    prompt_details = fields(wire.get("prompt_tokens_details"))
    prompt, output = count(wire.get("prompt_tokens")), count(wire.get("completion_tokens"))
    hits = (prompt_details.get("cached_tokens"), wire.get("prompt_cache_hit_tokens"), wire.get("cached_tokens"))
    cached = next((number for hit in hits if (number := count(hit)) is not None), None)
    written = count(prompt_details.get("cache_write_tokens"))
    reasoning = count(fields(wire.get("completion_tokens_details")).get("reasoning_tokens"))
    # The API includes reasoning in the completion; some servers add it on top, and only the total shows it.
    on_top = count(wire.get("total_tokens")) == (prompt or 0) + (output or 0) + (reasoning or 0)
    inside = 0 if on_top else reasoning or 0
    searches = count(fields(wire.get("server_tool_use")).get("web_search_requests"))
    return Usage(
        input=None if prompt is None else max(prompt - (cached or 0) - (written or 0), 0),
        cache_read=cached,
        cache_write=written,
        output=None if output is None else max(output - inside, 0),
        reasoning=reasoning,
        service_tier=tier,
        web_searches=searches,
    )


def _cost(value: Any) -> Cost | None:
    """What the server says that it cost, in dollars."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Cost(amount=Decimal(str(value)), kind="reported")


_JOINED = ("content", "refusal", *THOUGHTS)
"""Fields of a delta that lengthen the answer's."""

_LISTED = ("annotations", "images")
_CHUNK = ("choices", "object", "usage", "error")


class ChunkAssembler:
    """Puts chunks together. A part is over when the next one begins, or the answer is."""

    def __init__(self, provider: str) -> None:
        """Begin an answer of this provider."""
        self.error: Any = None
        self.complete = False
        self._provider = provider
        self._head: Json = {}
        self._choice: Json = {}
        self._grown: dict[str, list[str]] = {}
        self._lists: dict[str, list[Json]] = {}
        self._rest: Json = {}
        self._calls: dict[int, Json] = {}
        self._arguments: dict[int, list[str]] = {}
        self._places: dict[int | None, int] = {}
        """Which call the index of a delta without an id means."""
        self._details: list[Json] = []
        self._open: dict[str, ReasoningPart | TextPart | ToolCallPart] = {}

    def add(self, event: Json) -> list[StreamEvent]:
        """Take a chunk."""
        self._head = grown(self._head, rest(event, _CHUNK))
        if fields(event.get("usage")):
            self._head["usage"] = event["usage"]
        events: list[StreamEvent] = []
        # With `include_usage` the last chunk has the usage and no choices.
        for choice in objects(event.get("choices")):
            if (count(choice.get("index")) or 0) == 0:
                events += self._take(choice)
        self.error = event.get("error") or self._choice.get("error") or self.error
        return events

    def body(self) -> Json:
        """The body so far."""
        if not self._head and not self._choice:
            return {"choices": []}
        is_open = {} if self.complete else {OPEN: True}
        joined = {name: "".join(pieces) for name, pieces in self._grown.items()}
        details = {"reasoning_details": self._details} if self._details else {}
        calls = {"tool_calls": [self._call(index) for index in sorted(self._calls)]} if self._calls else {}
        answer = {"role": "assistant", **self._rest, **joined, **details, **calls, **self._lists, **is_open}
        return {**self._head, "choices": [{**self._choice, "message": answer}]}

    def _call(self, index: int) -> Json:
        call = dict(self._calls[index])
        kind, name = ("custom", "input") if call.get("type") == "custom" else ("function", "arguments")
        called = {**fields(call.get(kind)), name: "".join(self._arguments[index])}
        return {**call, kind: called, **({} if self.complete else {OPEN: True})}

    def _take(self, choice: Json) -> list[StreamEvent]:
        events = self._delta(flat(fields(choice.get("delta"))))
        self._choice |= rest(choice, ("index", "delta"))
        if word(choice.get("finish_reason")) is None or self.complete:
            return events
        self.complete = True
        return [*events, *self._finish()]

    def _delta(self, delta: Json) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for name in _JOINED:
            if more := text(delta.get(name)):
                self._grown.setdefault(name, []).append(more)
        for name in _LISTED:
            if items := objects(delta.get(name)):
                self._lists.setdefault(name, []).extend(items)
        details = objects(delta.get("reasoning_details"))
        for detail in details:
            self._add_detail(detail)
        self._rest |= rest(delta, ("role", "tool_calls", "reasoning_details", *_JOINED, *_LISTED))
        events += self._thought(delta, details)
        events += self._texts(delta)
        for call in objects(delta.get("tool_calls")):
            events += self._called(call)
        return events

    def _thought(self, delta: Json, details: list[Json]) -> list[StreamEvent]:
        written = next((more for name in THOUGHTS if (more := text(delta.get(name)))), "")
        # OpenRouter sends the text twice, in `reasoning` and in the details.
        if not any(name in self._grown for name in THOUGHTS):
            written = "".join([text(each.get("text")) or text(each.get("summary")) for each in details])
        return self._grow("reasoning", ReasoningPart(id=f"{self._id}:reasoning", text=""), written)

    def _texts(self, delta: Json) -> list[StreamEvent]:
        events = self._grow("text", TextPart(id=f"{self._id}:text", text=""), text(delta.get("content")))
        return [
            *events,
            *self._grow("refusal", TextPart(id=f"{self._id}:refusal", text=""), text(delta.get("refusal"))),
        ]

    def _grow(self, name: str, part: ReasoningPart | TextPart, more: str) -> list[StreamEvent]:
        if not more:
            return []
        started = [] if name in self._open else part_start(part)
        self._open[name] = part
        return [*started, *part_delta(part, more)]

    def _called(self, delta: Json) -> list[StreamEvent]:
        index = self._index_of(delta)
        kind, name = ("custom", "input") if delta.get("type") == "custom" else ("function", "arguments")
        known = self._calls.setdefault(index, {})
        if known.get("type") == "custom":
            kind, name = "custom", "input"
        called = fields(delta.get(kind))
        known |= _without_empty(rest(delta, ("index", "function", "custom")))
        known[kind] = {**fields(known.get(kind)), **_without_empty(rest(called, (name,)))}
        more = text(called.get(name))
        self._arguments.setdefault(index, []).append(more)
        part = ToolCallPart(
            tool_call_id=word(known.get("id")) or f"{self._id}:call:{sorted(self._calls).index(index)}",
            tool_name=text(known[kind].get("name")),
        )
        started = [] if f"call:{index}" in self._open else part_start(part)
        part = self._open.setdefault(f"call:{index}", part)
        return [*started, *part_delta(part, more)]

    def _index_of(self, delta: Json) -> int:
        """Which call is meant. Some servers leave the index out, or have one for all: a new id begins a call."""
        index, call_id = count(delta.get("index")), word(delta.get("id"))
        last = max(self._calls, default=-1)
        if call_id is None:
            return self._places.get(index, max(last, 0) if index is None else index)
        place = next((place for place, call in self._calls.items() if call.get("id") == call_id), None)
        if place is None:
            is_free = index is not None and word(self._calls.get(index, {}).get("id")) is None
            place = index if is_free and index is not None else last + 1
        self._places[index] = place
        return place

    def _add_detail(self, detail: Json) -> None:
        """Pieces of one detail are joined: same index and type."""
        last = self._details[-1] if self._details else None
        if (
            last is None
            or "index" not in detail
            or any(last.get(name) != detail.get(name) for name in ("index", "type"))
        ):
            self._details.append(dict(detail))
            return
        joined = {name: text(last.get(name)) + text(detail.get(name)) for name in ("text", "summary", "data")}
        last |= {**rest(detail, joined), **{name: value for name, value in joined.items() if value}}

    def _finish(self) -> list[StreamEvent]:
        message = answer_of(self.body(), self._provider, None)
        started = {part.id for part in self._open.values()} - {None}
        events: list[StreamEvent] = []
        for part in message.parts:
            whole = part.id not in started and not isinstance(part, ToolCallPart)
            events += part_whole(part) if whole else part_end(part)
        return events

    @property
    def _id(self) -> str:
        return word(self._head.get("id")) or UNNAMED


def _without_empty(value: Json) -> Json:
    """Without empty texts: some servers repeat `"id": ""` in every chunk, which must not replace the id."""
    return {name: item for name, item in value.items() if item != ""}


SERVED_BY = "openai"


@checked
def from_response(body: bytes | str | Mapping[str, Any], *, requested_model: str | None = None) -> Message:
    """The assistant message of a response body. Raises as `Provider.from_response` says."""
    return answer_of(body, SERVED_BY, requested_model)
