"""Values of `StreamEvent`s as the JSON that chunks carry: what is not JSON to a browser never gets into a chunk.

Also what the modules of the writer share: its types, and how an event is refused.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.aisdk.base import ProviderMetadata
from turnlog.aisdk.chunks import FinishReason, UIMessageChunk
from turnlog.aisdk.codec import to_plain
from turnlog.aisdk.json_text import holds_unsafe_key, may_hold_unsafe_key, parse_json, parse_output, without_unsafe_keys
from turnlog.aisdk.metadata import to_sdk_keys
from turnlog.model.base import ProviderData, RawJson
from turnlog.model.codec import encode
from turnlog.model.message import StopReason
from turnlog.model.parts import FilePart, Part, TextPart, ToolResult
from turnlog.model.usage import Usage

FAILED: Final = "An error occurred."
"""The error text for a client where there is none, or none that it may see."""

Chunks: TypeAlias = list[UIMessageChunk]

AddLoss: TypeAlias = Callable[[str, str], None]
"""Notes a loss at the event that is being written: feature, reason."""


class RefusedEvent(Exception):
    """An event that is not possible in its place."""


FINISH_REASONS: dict[StopReason, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "context_window": "length",
    "tool_use": "tool-calls",
    "error": "error",
    "aborted": "other",
    "pause": "other",
    "refusal": "content-filter",
    "content_filter": "content-filter",
}
"""Stop reason -> AI SDK's finish reason. These are fewer, so `metadata.steps` keeps ours."""

_ADDRESS = re.compile(r"https?://[^/\s]|data:[^,]*,", re.IGNORECASE)


class UnusableValue(ValueError):
    """An event holds something that no chunk can carry."""


def plain_json(value: Any) -> Any:
    """A value of any JSON without the keys that end a stream in the browser; exact JSON stays exact where it can."""
    if isinstance(value, Raw):
        return _checked_json(value)
    try:
        return without_unsafe_keys(msgspec.to_builtins(value, str_keys=True))
    except (TypeError, ValueError, RecursionError) as error:
        raise UnusableValue(f"no JSON: {error}") from error


def _checked_json(raw: Raw) -> Any:
    """The same JSON where it is valid, without the forbidden keys where it has any."""
    data = bytes(raw)
    try:
        value = _decode(data)
    except (ValueError, RecursionError) as error:
        raise UnusableValue(f"no JSON: {error}") from error
    if may_hold_unsafe_key(data) and holds_unsafe_key(value):
        return without_unsafe_keys(value)
    return raw


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:  # half a character is JSON to a browser
        return parse_json(data)


def input_of(exact: RawJson, text: str | None, streamed: str) -> Any:
    """The input of a call: its JSON, its text where it is none, else what was streamed; no input is an empty object."""
    if exact is not UNSET:
        return plain_json(exact)
    if text is not None and text.strip():
        return text
    if text is not None or not streamed.strip():
        return {}
    try:
        return without_unsafe_keys(parse_json(streamed))
    except (ValueError, RecursionError):
        return streamed


def output_of(result: ToolResult) -> Any:
    """The output of a tool: JSON is parsed, other text stays as it is, several contents are a list of UI parts (R-H8).

    A result without content is its structured outcome.
    """
    if not result.content:
        return None if result.structured is UNSET else plain_json(result.structured)
    first = result.content[0]
    if len(result.content) > 1 or not isinstance(first, TextPart) or first.citations:
        return [_content_of(part) for part in result.content]
    parsed = parse_output(Raw(encode(first.text)))
    return first.text if parsed is None else plain_json(parsed.value)


def _content_of(part: Part) -> dict[str, Any]:
    """A part inside an output, as the part of a UI message."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    address = address_of(part) if isinstance(part, FilePart) else None
    if isinstance(part, FilePart) and address is not None:
        name = {} if part.filename is None else {"filename": part.filename}
        return {"type": "file", "mediaType": part.media_type, "url": address, **name}
    return {"type": "data-turnlog-part", "data": plain_json(Raw(encode(part)))}


def metadata_of(provider: ProviderData | None) -> ProviderMetadata | UnsetType:
    """What a provider wants back, under its name, with AI SDK's keys."""
    if provider is None or not provider.opaque:
        return UNSET
    fields = to_sdk_keys(provider.name, provider.opaque)
    return cast("ProviderMetadata", plain_json({provider.name: provider.opaque if fields is None else fields})) or UNSET


def address_of(file: FilePart) -> str | None:
    """Where a browser gets a file: an http(s) or data URL; None where there is none."""
    if file.data is not None:
        return f"data:{file.media_type};base64,{base64.b64encode(file.data).decode('ascii')}"
    return file.url if file.url is not None and _ADDRESS.match(file.url) else None


def usage_json(usage: Usage) -> dict[str, Any]:
    """A usage as JSON, also with fields that this version does not know; raise UnusableValue where that is no JSON."""
    return cast("dict[str, Any]", to_plain(plain_json(Raw(encode(usage)))))


def check_fields(event: msgspec.Struct) -> None:
    """Raise UnusableValue for a field of another type than its declaration, at any depth. Others build events."""
    for name, classes, holds_values in _field_classes(type(event)):
        value = getattr(event, name)
        if not isinstance(value, classes):
            raise UnusableValue(f"{name} is a {type(value).__name__}")
        if holds_values:
            _check_inside(name, value)


def _check_inside(name: str, value: object) -> None:
    if isinstance(value, msgspec.Struct):
        check_fields(value)
    elif isinstance(value, tuple):
        for item in cast("tuple[object, ...]", value):
            if not isinstance(item, msgspec.Struct):
                raise UnusableValue(f"{name} holds a {type(item).__name__}")
            check_fields(item)


@cache
def _field_classes(event: type[msgspec.Struct]) -> tuple[tuple[str, tuple[type, ...], bool], ...]:
    """Of each field its name, its types, and whether there are fields in it."""
    hints = get_type_hints(event)
    classes = {name: tuple(_classes(hints[name])) for name in event.__struct_fields__}
    return tuple(
        (name, types, any(issubclass(found, msgspec.Struct | tuple) for found in types))
        for name, types in classes.items()
    )


def _classes(hint: Any) -> list[type]:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return [found for option in get_args(hint) for found in _classes(option)]
    if origin is Literal:
        return [type(option) for option in get_args(hint)]
    if hint is Any:
        return [object]
    return [origin or hint]
