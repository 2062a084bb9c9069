"""The chunks of a Chat Completions stream, put together to the body that they stand for."""

from __future__ import annotations

from typing import Any

from turnlog.model import ReasoningPart, TextPart, ToolCallPart
from turnlog.model.stream import StreamEvent
from turnlog.providers.body import OPEN, UNNAMED, Json, count, fields, grown, objects, rest, text, word
from turnlog.providers.openai_chat.answers import THOUGHTS, answer_of, flat
from turnlog.providers.streaming import part_delta, part_end, part_start, part_whole

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
        told: list[StreamEvent] = []
        for choice in objects(event.get("choices")):
            if (count(choice.get("index")) or 0) == 0:
                told += self._take(choice)
        self.error = event.get("error") or self._choice.get("error") or self.error
        return told

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
        told = self._delta(flat(fields(choice.get("delta"))))
        self._choice |= rest(choice, ("index", "delta"))
        if word(choice.get("finish_reason")) is None or self.complete:
            return told
        self.complete = True
        return [*told, *self._finish()]

    def _delta(self, delta: Json) -> list[StreamEvent]:
        told: list[StreamEvent] = []
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
        told += self._thought(delta, details)
        told += self._said(delta)
        for call in objects(delta.get("tool_calls")):
            told += self._called(call)
        return told

    def _thought(self, delta: Json, details: list[Json]) -> list[StreamEvent]:
        written = next((more for name in THOUGHTS if (more := text(delta.get(name)))), "")
        # Details repeat what a field of its own tells.
        if not any(name in self._grown for name in THOUGHTS):
            written = "".join([text(each.get("text")) or text(each.get("summary")) for each in details])
        return self._grow("reasoning", ReasoningPart(id=f"{self._id}:reasoning", text=""), written)

    def _said(self, delta: Json) -> list[StreamEvent]:
        said = self._grow("text", TextPart(id=f"{self._id}:text", text=""), text(delta.get("content")))
        return [*said, *self._grow("refusal", TextPart(id=f"{self._id}:refusal", text=""), text(delta.get("refusal")))]

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
        known |= _said(rest(delta, ("index", "function", "custom")))
        known[kind] = {**fields(known.get(kind)), **_said(rest(called, (name,)))}
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
        told: list[StreamEvent] = []
        for part in message.parts:
            whole = part.id not in started and not isinstance(part, ToolCallPart)
            told += part_whole(part) if whole else part_end(part)
        return told

    @property
    def _id(self) -> str:
        return word(self._head.get("id")) or UNNAMED


def _said(told: Json) -> Json:
    """Without empty words: where some servers repeat `"id": ""`, they say nothing new."""
    return {name: value for name, value in told.items() if value != ""}
