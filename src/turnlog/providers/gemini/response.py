"""A response of Gemini (`generateContent`) as an assistant message (R-K28).

Signatures stay on the part that brought them, so that `to_request` sends them back there. Texts that follow each other
unsigned are one: a stream cuts them anywhere. Only the first candidate is read; others stay in the metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from turnlog.arguments import checked
from turnlog.model import (
    FilePart,
    Message,
    MessageError,
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
from turnlog.model.message import StopReason
from turnlog.model.parts import state_after
from turnlog.model.stream import StreamEvent
from turnlog.providers.body import (
    OPEN,
    UNNAMED,
    Json,
    answer,
    arguments,
    count,
    error_of,
    fields,
    file_from_base64,
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
    part_whole,
    tool_output,
)

SERVED_BY = "google"

STOP_REASONS: dict[str, StopReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "pause",
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "MODEL_ARMOR",
            "JAILBREAK",
            "ESCALATION",
            "PUP_LIMITED_DISABLED",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
        ),
        "content_filter",
    ),
    **dict.fromkeys(
        (
            "MALFORMED_FUNCTION_CALL",
            "UNEXPECTED_TOOL_CALL",
            "TOO_MANY_TOOL_CALLS",
            "MISSING_THOUGHT_SIGNATURE",
            "MALFORMED_RESPONSE",
            "NO_IMAGE",
            "IMAGE_OTHER",
            "OTHER",
        ),
        "error",
    ),
}

_BODY = ("candidates", "usageMetadata", "modelVersion", "responseId", "createTime", "error", "promptFeedback")
_CANDIDATE = ("content", "finishReason", "index", "finishMessage")
_PART = ("thought", "thoughtSignature")

_ADDRESSES = {"web": "uri", "image": "sourceUri", "retrievedContext": "uri", "maps": "uri"}
"""Kinds of what grounds an answer -> where each has the address of its page."""

_WEB = re.compile("https?://", re.IGNORECASE)

Reader: TypeAlias = Callable[[Any, str], Part | None]


@checked
def from_response(body: bytes | str | Mapping[str, Any], *, requested_model: str | None = None) -> Message:
    """The assistant message of a response body. Raises as `Provider.from_response` says."""
    found = object_of(body)
    candidates = objects(found.get("candidates"))
    candidate = candidates[0] if candidates else {}
    blocked = word(fields(found.get("promptFeedback")).get("blockReason"))
    error = error_of(found.get("error"))
    require_list(found, "candidates", error, blocked)
    message_id, model = word(found.get("responseId")) or UNNAMED, word(found.get("modelVersion"))
    parts = parts_of(objects(fields(candidate.get("content")).get("parts")), message_id, model, OPEN in candidate)
    raw_stop = word(candidate.get("finishReason")) or blocked
    reason: StopReason | None = "content_filter" if blocked else STOP_REASONS.get(raw_stop or "")
    said_why = word(candidate.get("finishMessage"))
    if error is None and reason == "error" and said_why is not None:
        error = MessageError(text=said_why, kind=raw_stop)
    others = {**found, **candidate, "other_candidates": candidates[1:], "promptFeedback": found.get("promptFeedback")}
    return answer(
        SERVED_BY,
        found,
        (*parts, *_sources(candidate, message_id)),
        named=("responseId", "modelVersion"),
        requested_model=requested_model,
        stop_reason="tool_use" if reason == "stop" and _waits(parts) else reason,
        raw_stop_reason=raw_stop,
        usage=usage_of(fields(found.get("usageMetadata"))),
        error=error,
        metadata=metadata(SERVED_BY, others, (*_BODY[:-1], *_CANDIDATE)),
    )


def _waits(parts: tuple[Part, ...]) -> bool:
    return any(isinstance(part, ToolCallPart) and not part.provider_executed for part in parts)


def joined(parts: list[Json]) -> list[Json]:
    """The parts, with unsigned texts of one kind that follow each other as one, and without empty ones."""
    whole: list[Json] = []
    for part in parts:
        last = whole[-1] if whole else None
        if is_plain(part) and not part["text"]:
            continue
        if last is not None and is_plain(last) and is_plain(part) and _thought(last) == _thought(part):
            whole[-1] = {**last, "text": text(last.get("text")) + text(part.get("text"))}
        else:
            whole.append(part)
    return whole


def is_plain(part: Json) -> bool:
    """Whether a part is a text without a signature."""
    return isinstance(part.get("text"), str) and set(part) <= {"text", "thought"}


def _thought(part: Json) -> bool:
    return part.get("thought") is True


def parts_of(wire: list[Json], message_id: str, model: str | None, is_open: bool) -> tuple[Part, ...]:
    """The parts of a candidate. What a program printed is the result of the program before it."""
    parts: list[Part] = []
    whole = joined(wire)
    for index, found in enumerate(whole):
        last = parts[-1] if parts else None
        if "codeExecutionResult" in found and isinstance(last, ToolCallPart) and last.provider_executed:
            parts[-1] = with_output(last, fields(found["codeExecutionResult"]))
            continue
        streaming = is_open and index == len(whole) - 1
        parts.append(part_of(found, f"{message_id}:{index}", model, streaming))
    return tuple(parts)


def part_of(found: Json, part_id: str, model: str | None, is_open: bool) -> Part:
    """One part of a content."""
    provider = _signed(found, model)
    if isinstance(found.get("text"), str):
        kind = ReasoningPart if _thought(found) else TextPart
        state = "streaming" if is_open else "done"
        return kind(id=part_id, text=text(found.get("text")), state=state, provider=provider)
    for name, read in _READERS.items():
        part = read(found.get(name), part_id) if name in found else None
        if part is not None:
            return msgspec.structs.replace(part, provider=provider)
    return UnknownPart(id=part_id, kind=next((name for name in found if name not in _PART), ""), data=to_json(found))


def _signed(found: Json, model: str | None) -> ProviderData | None:
    signature = word(found.get("thoughtSignature"))
    return ProviderData(name=SERVED_BY, model=model, opaque={"thought_signature": signature}) if signature else None


def _call(value: Any, part_id: str) -> Part:
    """Calls of the Gemini API itself have no id."""
    found = fields(value)
    exact, unreadable = arguments(found.get("args"))
    return ToolCallPart(
        id=part_id,
        tool_call_id=word(found.get("id")) or part_id,
        tool_name=text(found.get("name")),
        input=exact,
        input_text=unreadable,
        metadata=metadata(SERVED_BY, found, ("id", "name", "args")),
    )


def _program(value: Any, part_id: str) -> Part:
    exact, _ = arguments(fields(value))
    return ToolCallPart(
        id=part_id, tool_call_id=part_id, tool_name="code_execution", input=exact, provider_executed=True
    )


def with_output(call: ToolCallPart, found: Json) -> ToolCallPart:
    """A program that Gemini ran, with what it printed."""
    succeeded = found.get("outcome") == "OUTCOME_OK"
    result = ToolResult(
        id=f"{call.tool_call_id}:result:{len(call.results)}",
        status="success" if succeeded else "error",
        content=(TextPart(text=text(found.get("output"))),),
        error_text=None if succeeded else word(found.get("outcome")),
    )
    state = state_after(call.state, [result.status])
    return msgspec.structs.replace(call, results=(*call.results, result), state=state)


def _inline(value: Any, part_id: str) -> Part | None:
    found = fields(value)
    file = file_from_base64(text(found.get("mimeType")), found.get("data"))
    return file and msgspec.structs.replace(file, id=part_id)


def _file(value: Any, part_id: str) -> Part:
    found = fields(value)
    return FilePart(id=part_id, media_type=text(found.get("mimeType")), url=text(found.get("fileUri")))


_READERS: dict[str, Reader] = {
    "functionCall": _call,
    "executableCode": _program,
    "inlineData": _inline,
    "fileData": _file,
}


def _sources(candidate: Json, message_id: str) -> list[Part]:
    """The pages that grounded the answer; which passage rests on which stays in the metadata."""
    chunks = objects(fields(candidate.get("groundingMetadata")).get("groundingChunks"))
    pages = [(fields(chunk.get(kind)), name) for chunk in chunks for kind, name in _ADDRESSES.items()]
    known = [(address, page) for page, name in pages if _WEB.match(address := text(page.get(name)))]
    return [
        SourceUrlPart(
            id=f"{message_id}:source:{index}",
            source_id=address,
            url=address,
            title=word(page.get("title")),
        )
        for index, (address, page) in enumerate(known)
    ]


def usage_of(wire: Json) -> Usage | None:
    """Disjoint buckets: the prompt includes the cache; thoughts and prompts of tools are counted separately."""
    if not wire:
        return None
    prompt, cached = count(wire.get("promptTokenCount")), count(wire.get("cachedContentTokenCount"))
    return Usage(
        input=None if prompt is None else max(prompt - (cached or 0), 0),
        cache_read=cached,
        output=count(wire.get("candidatesTokenCount")),
        reasoning=count(wire.get("thoughtsTokenCount")),
        tool_prompt=count(wire.get("toolUsePromptTokenCount")),
    )


class GeminiAssembler:
    """Builds the body of a whole response from the events of a Gemini stream."""

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
        """Take one event of the API."""
        self.error = event.get("error")
        self._head = grown(self._head, rest(event, ("candidates", "error")), "responseId")
        feedback = fields(event.get("promptFeedback"))
        self.complete = self.complete or word(feedback.get("blockReason")) is not None
        events: list[StreamEvent] = []
        for candidate in objects(event.get("candidates")):
            if not candidate.get("index"):
                events += self._take(candidate)
        return events

    def body(self) -> Json:
        """The body so far; blocks that have not ended carry `body.OPEN`."""
        if not self._candidate and not self._parts:
            return self._head
        mark = {} if self.complete else {OPEN: True}
        content = {"role": "model", "parts": self._parts}
        return {**self._head, "candidates": [{**self._candidate, "content": content, **mark}]}

    def _take(self, candidate: Json) -> list[StreamEvent]:
        self._candidate |= rest(candidate, ("content",))
        events = [event for part in objects(fields(candidate.get("content")).get("parts")) for event in self._add(part)]
        if word(candidate.get("finishReason")) is None or self.complete:
            return events
        self.complete = True
        # What grounds the answer may come with the last chunk only.
        sources = [part for part in from_response(self.body()).parts if isinstance(part, SourceUrlPart)]
        return [*events, *self._close(), *[event for part in sources for event in part_end(part)]]

    def _add(self, found: Json) -> list[StreamEvent]:
        before = len(self._parts)
        self._parts[-1:] = joined([*self._parts[-1:], found])
        part_id = f"{word(self._head.get('responseId')) or 'response'}:{len(self._parts) - 1}"
        part = part_of(found, part_id, word(self._head.get("modelVersion")), False)
        if len(self._parts) == before:
            return part_delta(part, text(found.get("text")))
        events = self._close()
        if is_plain(found):
            self._open = part
            return [*events, *part_start(part), *part_delta(part, text(found["text"]))]
        if "codeExecutionResult" in found and self._program is not None:
            self._program = with_output(self._program, fields(found["codeExecutionResult"]))
            return [*events, *tool_output(self._program, self._program.results[-1])]
        self._program = part if isinstance(part, ToolCallPart) and part.provider_executed else None
        return [*events, *part_whole(part)]

    def _close(self) -> list[StreamEvent]:
        part, self._open = self._open, None
        return part_end(part) if part is not None else []
