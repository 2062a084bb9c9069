"""What messages of a sample are made of: texts, reasoning, files, calls, results and tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.decoding import aware, list_of, object_of, text_of
from turnlog.agents.inspect_logs import NAME
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.trajectory_files.contents import TOOL_KINDS
from turnlog.model import (
    Cost,
    FilePart,
    Part,
    ReasoningPart,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    UnknownPart,
    Usage,
)
from turnlog.model.message import StopReason

_ATTACHED: Final = re.compile(r"attachment://(?P<name>[0-9a-f]{16,64})")
_DATA_URL: Final = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)

_FILES: Final = ("image", "audio", "video", "document")
"""Kinds of contents that are files, each with a field of its own name."""

_MEDIA: Final = {
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "mp4": "video/mp4",
    "mpeg": "video/mpeg",
    "mov": "video/quicktime",
}

_STOPS: Final[dict[str, StopReason]] = {
    "stop": "stop",
    "max_tokens": "length",
    "length": "length",
    "model_length": "context_window",
    "tool_calls": "tool_use",
    "content_filter": "content_filter",
}
"""Why a model stopped. Any other word is kept as it is."""

_STATUSES: Final[dict[str, ResultStatus]] = {"approval": "denied", "cancelled": "aborted"}
"""Kinds of errors of a tool; any other is an error."""

_MOST_TOKENS: Final = 1 << 53

_LARGEST: Final = 1 << 28
"""Characters of attachments that are put into messages. One may be named again and again: a small file could grow to
terabytes."""

_DEEPEST: Final = 100
"""Levels in which attachments are looked for. A hostile log may nest values until Python refuses to follow."""


def decoded(text: bytes) -> Any:
    """A value of JSON; None if it is none. Python's own decoder takes NaN, which is in some scores."""
    try:
        return msgspec.json.decode(text)
    except UNREADABLE:
        try:
            return json.loads(text.decode(errors="replace"), parse_constant=str, strict=False)
        except (ValueError, RecursionError):
            return None


class Attachments:
    """Long texts and files of a sample, which its messages name by their hash."""

    def __init__(self, texts: Mapping[str, Any]) -> None:
        self._texts = texts
        self._left = _LARGEST
        self.missing: set[str] = set()
        """Names that messages have and the sample has not, or too often."""

    def whole(self, value: Any, depth: int = 0) -> Any:
        """A value of JSON with every text as it was; what is nested deeper than any message is left as it is."""
        if isinstance(value, str):
            return _ATTACHED.sub(self._text, value) if "attachment://" in value else value
        if depth == _DEEPEST:
            return value
        if items := list_of(value):
            return [self.whole(each, depth + 1) for each in items]
        return self.fields(fields, depth + 1) if (fields := object_of(value)) else value

    def fields(self, value: dict[str, Any], depth: int = 0) -> dict[str, Any]:
        """An object with every text in it as it was."""
        return {name: self.whole(each, depth) for name, each in value.items()}

    def _text(self, match: re.Match[str]) -> str:
        found = self._texts.get(match["name"])
        if isinstance(found, str) and len(found) <= self._left:
            self._left -= len(found)
            return found
        self.missing.add(match["name"])
        return match[0]


def time_of(text: object) -> datetime | None:
    """The time in a text, UTC where it names no zone; None if it is none."""
    try:
        return aware(datetime.fromisoformat(text)) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None


def kept(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts as metadata; empty if there are none."""
    known = {name: value for name, value in facts.items() if value not in (None, {}, [], "")}
    return {NAME: known} if known else {}


def parts_of(content: Any, owner: str) -> list[Part]:
    """The parts of a content: a text, or a list of contents. Empty texts are left out."""
    items = [{"type": "text", "text": content}] if isinstance(content, str) else list_of(content)
    found = (_part(item, f"{owner}.{number}") for number, item in enumerate(items))
    return [part for part in found if not isinstance(part, TextPart) or part.text]


def _part(item: Any, part_id: str) -> Part:
    fields = object_of(item)
    kind, text = text_of(fields.get("type")) or "content", fields.get("text")
    if kind == "text" and isinstance(text, str):
        return TextPart(id=part_id, text=text)
    if kind == "reasoning" and isinstance(fields.get("reasoning"), str):
        # Of what is encrypted there is at most a summary that may be read.
        is_redacted = fields.get("redacted") is True
        said = fields["reasoning"] if not is_redacted else text_of(fields.get("summary")) or ""
        return ReasoningPart(id=part_id, text=said, redacted=is_redacted)
    place = fields.get(kind) if kind in _FILES else None
    if isinstance(place, str) and place:
        return _file(place, kind, fields, part_id)
    return UnknownPart(id=part_id, kind=kind, data=Raw(msgspec.json.encode(fields or item)))


def _file(place: str, kind: str, fields: Mapping[str, Any], part_id: str) -> FilePart:
    name = text_of(fields.get("filename"))
    found = _DATA_URL.fullmatch(place)
    if found is not None:
        data = from_base64(found["data"])
        if data is not None:
            return FilePart(id=part_id, media_type=found["type"], filename=name, data=data)
    media = text_of(fields.get("mime_type")) or _MEDIA.get(str(fields.get("format")))
    return FilePart(id=part_id, media_type=media or f"{kind}/*", filename=name, url=place)


def calls_of(message: Mapping[str, Any], owner: str, times: Mapping[str, datetime | None]) -> list[ToolCallPart]:
    """The calls of an answer; `times` has when each of them began."""
    made = list_of(message.get("tool_calls"))
    return [_call(object_of(each), f"{owner}.c{number}", times) for number, each in enumerate(made)]


def _call(call: Mapping[str, Any], part_id: str, times: Mapping[str, datetime | None]) -> ToolCallPart:
    identity, name = text_of(call.get("id")) or part_id, text_of(call.get("function")) or ""
    error = text_of(call.get("parse_error"))
    return ToolCallPart(
        id=part_id,
        tool_call_id=identity,
        tool_name=name,
        kind=TOOL_KINDS.get(name.lower(), ToolKind.OTHER),
        input=Raw(msgspec.json.encode(call["arguments"])) if "arguments" in call else msgspec.UNSET,
        started_at=times.get(identity),
        metadata=kept({"parse_error": error}),
    )


def result_of(message: Mapping[str, Any], identity: str, at: datetime | None) -> ToolResult:
    """What a tool returned, and when."""
    error = object_of(message.get("error"))
    # Before `error` there was a text.
    text = text_of(error.get("message")) or text_of(message.get("tool_error"))
    kind = text_of(error.get("type"))
    content = tuple(parts_of(message.get("content"), identity))
    failed = bool(error) or text is not None
    return ToolResult(
        id=identity,
        status=_STATUSES.get(kind or "", "error") if failed else "success",
        content=content,
        error_text=(text or "failed") if failed else None,
        completed_at=at,
        metadata=kept({"error": kind}),
    )


class ModelCall(NamedTuple):
    """What an event says of a call of the model."""

    message: str | None
    """The id of the message that it returned."""
    model: str | None
    usage: Usage | None
    cost: Cost | None
    started_at: datetime | None
    completed_at: datetime | None
    stop: str | None
    error: str | None


def model_call(event: Mapping[str, Any]) -> ModelCall:
    """A call of the model. One that a cache answered used no tokens."""
    output = object_of(event.get("output"))
    choices = list_of(output.get("choices"))
    choice = object_of(choices[0]) if choices else {}
    is_paid = event.get("cache") != "read"
    return ModelCall(
        message=text_of(object_of(choice.get("message")).get("id")),
        model=text_of(output.get("model")) or text_of(event.get("model")),
        usage=usage_of(output.get("usage")) if is_paid else None,
        cost=_cost(object_of(output.get("usage")).get("total_cost")) if is_paid else None,
        started_at=time_of(event.get("timestamp")),
        completed_at=time_of(event.get("completed")),
        stop=text_of(choice.get("stop_reason")),
        error=text_of(event.get("error")) or text_of(output.get("error")),
    )


def stop_reason(word: str | None) -> StopReason | None:
    """Why a model stopped, in the model's vocabulary."""
    return _STOPS.get(word or "")


def usage_of(value: Any) -> Usage | None:
    """Tokens in disjoint buckets; None if none are known."""
    fields = object_of(value)
    sent, output = _count(fields.get("input_tokens")), _count(fields.get("output_tokens"))
    if sent is None and output is None:
        return None
    read, written = _count(fields.get("input_tokens_cache_read")), _count(fields.get("input_tokens_cache_write"))
    thought, total = _count(fields.get("reasoning_tokens")), _count(fields.get("total_tokens"))
    beside = sum(each or 0 for each in (sent, read, written, output))
    # Most providers count reasoning as output, some beside it: the total tells.
    inside = 0 if thought is None or total == beside + thought else thought
    return Usage(
        input=sent,
        cache_read=read,
        cache_write=written,
        output=None if output is None else max(0, output - inside),
        reasoning=thought,
    )


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _cost(value: object) -> Cost | None:
    # The comparison of types, which leaves out True, tells pyright nothing.
    known = type(value) in (int, float) and 0 <= value <= 1e9  # type: ignore[operator]
    return Cost(amount=Decimal(repr(value)), kind="reported") if known else None
