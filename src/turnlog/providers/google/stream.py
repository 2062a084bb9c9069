"""The stream of a Gemini response (`streamGenerateContent`), put together to the body that it stands for.

Each event is a response with the next parts. A text is over when another kind of part comes, or the stream ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from turnlog.model import Part, SourceUrlPart, ToolCallPart
from turnlog.model.stream import StreamEvent
from turnlog.providers.body import OPEN, Json, fields, grown, objects, rest, text, word
from turnlog.providers.google.response import from_response, is_plain, joined, part_of, with_output
from turnlog.providers.streaming import (
    ResponseStream,
    StreamReading,
    part_delta,
    part_end,
    part_start,
    part_whole,
    tool_output,
)


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
        self._head: Json = {"candidates": []}
        self._candidate: Json = {}
        self._parts: list[Json] = []
        self._open: Part | None = None
        """The text that may still grow."""
        self._program: ToolCallPart | None = None

    def add(self, event: Json) -> list[StreamEvent]:
        self.error = event.get("error")
        self._head = grown(self._head, rest(event, ("candidates", "error")), "responseId")
        feedback = fields(event.get("promptFeedback"))
        self.complete = self.complete or word(feedback.get("blockReason")) is not None
        told: list[StreamEvent] = []
        for candidate in objects(event.get("candidates")):
            if not candidate.get("index"):
                told += self._take(candidate)
        return told

    def body(self) -> Json:
        if not self._candidate and not self._parts:
            return self._head
        mark = {} if self.complete else {OPEN: True}
        content = {"role": "model", "parts": self._parts}
        return {**self._head, "candidates": [{**self._candidate, "content": content, **mark}]}

    def _take(self, candidate: Json) -> list[StreamEvent]:
        self._candidate |= rest(candidate, ("content",))
        told = [event for part in objects(fields(candidate.get("content")).get("parts")) for event in self._add(part)]
        if word(candidate.get("finishReason")) is None or self.complete:
            return told
        self.complete = True
        sources = [part for part in from_response(self.body()).parts if isinstance(part, SourceUrlPart)]
        return [*told, *self._close(), *[event for part in sources for event in part_end(part)]]

    def _add(self, found: Json) -> list[StreamEvent]:
        before = len(self._parts)
        self._parts[-1:] = joined([*self._parts[-1:], found])
        part_id = f"{word(self._head.get('responseId')) or 'response'}:{len(self._parts) - 1}"
        part = part_of(found, part_id, word(self._head.get("modelVersion")), False)
        if len(self._parts) == before:
            return part_delta(part, text(found.get("text")))
        told = self._close()
        if is_plain(found):
            self._open = part
            return [*told, *part_start(part), *part_delta(part, text(found["text"]))]
        if "codeExecutionResult" in found and self._program is not None:
            self._program = with_output(self._program, fields(found["codeExecutionResult"]))
            return [*told, *tool_output(self._program, self._program.results[-1])]
        self._program = part if isinstance(part, ToolCallPart) and part.provider_executed else None
        return [*told, *part_whole(part)]

    def _close(self) -> list[StreamEvent]:
        part, self._open = self._open, None
        return part_end(part) if part is not None else []
