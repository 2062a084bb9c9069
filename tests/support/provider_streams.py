"""Ways to feed recorded response streams: cut at every byte, cut short, parsed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from turnlog.model import Message, Part, ToolCallPart
from turnlog.model.codec import to_json
from turnlog.model.stream import StreamEvent
from turnlog.providers.streaming import ResponseStream

Event = dict[str, Any]


def sse(events: Iterable[Event], *, named: bool = False, done: bool = False) -> bytes:
    """Events as an API writes them."""
    data = [
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
        for event in events
    ]
    return "".join([*data, "data: [DONE]\n\n" if done else ""]).encode()


def byte_by_byte(stream: ResponseStream, data: bytes) -> list[StreamEvent]:
    """Everything that a stream yields when it is cut at every byte."""
    events = [event for index in range(len(data)) for event in stream.feed(data[index : index + 1])]
    return [*events, *stream.finish()]


def pieces(text: str, size: int = 5) -> list[str]:
    """A text in pieces."""
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]


def plain(message: Message) -> Message:
    """The message with the JSON of its arguments written one way: a body and a stream differ in white space."""
    return msgspec.structs.replace(message, parts=tuple([_plain(part) for part in message.parts]))


def _plain(part: Part) -> Part:
    if not isinstance(part, ToolCallPart) or part.input is UNSET:
        return part
    return msgspec.structs.replace(part, input=to_json(part.input_value()))
