"""The stream of an Anthropic Messages response, put together to the body it stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from turnlog.model import Part, ToolCallPart
from turnlog.model.stream import StreamEvent
from turnlog.providers.anthropic.response import from_response, is_result, part_of, result_of
from turnlog.providers.body import OPEN, UNNAMED, Json, count, fields, grown, objects, rest, text, word
from turnlog.providers.streaming import (
    ResponseStream,
    StreamReading,
    part_delta,
    part_end,
    part_start,
    tool_output,
)

_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""Deltas that lengthen a block -> where the text stands in them."""


def open_stream(*, requested_model: str | None = None) -> ResponseStream:
    """A response that is fed as it comes."""
    return ResponseStream(_Assembler(), lambda body: from_response(body, requested_model=requested_model))


def read_stream(pieces: Iterable[bytes | Mapping[str, Any]], *, requested_model: str | None = None) -> StreamReading:
    """The events of a response stream, then its message."""
    return StreamReading(open_stream(requested_model=requested_model), pieces)


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


class _Assembler:
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
        handler = self._handlers.get(text(event.get("type")))
        return handler(event) if handler else []

    def body(self) -> Json:
        blocks = [self._blocks[index].json() for index in sorted(self._blocks)]
        return {**self._message, "content": blocks}

    def _start(self, event: Json) -> list[StreamEvent]:
        """Begin, perhaps with calls that a program made before and that only waited for their results."""
        told = fields(event.get("message"))
        self._message = grown(self._message, told)
        if self._blocks:
            return []
        given = enumerate(objects(told.get("content")))
        return [each for index, block in given for each in [*self._begin(index, block), *self._end(index)]]

    def _open(self, event: Json) -> list[StreamEvent]:
        start = fields(event.get("content_block"))
        if start.get("type") == "fallback":
            # Another model goes on, and is the one that answered.
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
