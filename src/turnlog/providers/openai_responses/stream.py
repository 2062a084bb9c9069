"""The stream of a Responses response, put together to the body that it stands for.

The API repeats every item when it is done, and the whole response at the end; deltas matter to who watches, and where
the stream ends early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from turnlog.model import Part, ReasoningPart, TextPart, ToolCallPart
from turnlog.model.stream import StreamEvent
from turnlog.providers.body import OPEN, Json, count, fields, grown, objects, text
from turnlog.providers.openai_responses.response import from_response, item_parts
from turnlog.providers.streaming import ResponseStream, StreamReading, part_delta, part_end, part_start, part_whole

_PIECES = {
    "response.output_text.delta": ("content", "content_index", "output_text", "text"),
    "response.refusal.delta": ("content", "content_index", "refusal", "refusal"),
    "response.reasoning_text.delta": ("content", "content_index", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "summary_text", "text"),
}
"""Deltas of pieces -> the item's list, where the place in it stands, a new piece's kind, the field that grows."""

_ARGUMENTS = {
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_BEGINNINGS = ("response.created", "response.queued", "response.in_progress")


def open_stream(*, requested_model: str | None = None) -> ResponseStream:
    """A response that is fed as it comes."""
    return ResponseStream(_Assembler(), lambda body: from_response(body, requested_model=requested_model))


def read_stream(pieces: Iterable[bytes | Mapping[str, Any]], *, requested_model: str | None = None) -> StreamReading:
    """The events of a response stream, then its message."""
    return StreamReading(open_stream(requested_model=requested_model), pieces)


class _Assembler:
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
        handler = self._handlers.get(text(event.get("type")))
        return handler(event) if handler else []

    def body(self) -> Json:
        """Where the last word of the API has no items (some servers'), those that were told one by one."""
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
        return [told for call in calls for told in self._start(call)]

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
        return [told for call in known for told in [*self._start(call), *part_delta(call, more)]]

    def _start(self, part: Part) -> list[StreamEvent]:
        if (part.id or "") in self._started:
            return []
        self._started[part.id or ""] = part
        return part_start(part)

    def _close(self, event: Json) -> list[StreamEvent]:
        index = _place(event)
        self._items[index] = dict(fields(event.get("item")))
        told: list[StreamEvent] = []
        for part in self._parts(index):
            told += part_end(part) if (part.id or "") in self._started else part_whole(part)
        return told

    def _part_id(self, index: int) -> str:
        return f"{self._response.get('id') or 'response'}:{index}"

    def _parts(self, index: int) -> list[Part]:
        model = self._response.get("model")
        return item_parts(self._item(index), self._part_id(index), model if isinstance(model, str) else None)


def _place(event: Json) -> int:
    return count(event.get("output_index")) or 0
