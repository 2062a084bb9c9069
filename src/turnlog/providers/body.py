"""What the readers of all providers' responses share: JSON that somebody else wrote, as values of the model.

A field of the wrong kind counts as missing, never as a crash; fields that nobody asked for are kept as metadata.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET

from turnlog.errors import ShapeError
from turnlog.model import FilePart, Message, MessageError, Part, ProviderData
from turnlog.model.base import RawJson
from turnlog.model.codec import repair_text, to_json
from turnlog.model.lenient_json import parse_json
from turnlog.model.message import StopReason
from turnlog.model.parts import ToolState

OPEN = "$open"
"""Marks a block of a stream that has not ended."""

UNNAMED = "response"
"""The id of a response that has none."""

Json = dict[str, Any]


def object_of(body: bytes | str | Mapping[str, Any]) -> Json:
    """The body as an object; raise ShapeError if it is not one."""
    try:
        value: Any = parse_json(body) if isinstance(body, bytes | str) else body
    except (ValueError, RecursionError) as error:
        raise ShapeError(f"the response is not JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise ShapeError("the response is not an object")
    return dict(cast("Mapping[str, Any]", value))


def require_list(found: Json, name: str, *instead: object) -> None:
    """Raise ShapeError for what is no response: it has no list of this name, and nothing `instead` of it."""
    if not isinstance(found.get(name), list) and all(excuse is None for excuse in instead):
        raise ShapeError(f"the response has no list `{name}`", json_path=f"$.{name}")


def text(value: Any) -> str:
    """A text; empty for anything else."""
    return repair_text(value) if isinstance(value, str) else ""


def word(value: Any) -> str | None:
    """A text that is not empty; None for everything else."""
    return text(value) or None


def count(value: Any) -> int | None:
    """A number of tokens; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def fields(value: Any) -> Json:
    """An object; empty for anything else."""
    return cast("Json", value) if isinstance(value, dict) else {}


def objects(value: Any) -> list[Json]:
    """The objects of a list."""
    return [fields(item) for item in cast("list[Any]", value) if isinstance(item, dict)] if _is_list(value) else []


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def rest(value: Json, known: Iterable[str]) -> Json:
    """The fields of a block that are neither known nor empty."""
    left_out = {*known, OPEN}
    return {name: item for name, item in value.items() if name not in left_out and item not in (None, [], {})}


def grown(head: Json, more: Json, name: str = "id") -> Json:
    """The fields of a response so far. Later values replace earlier ones, but not the id that names the parts."""
    return {**head, **more, **({name: head[name]} if word(head.get(name)) else {})}


def metadata(provider: str, value: Json, known: Iterable[str]) -> Json:
    """`rest` under the provider's name; empty if there is nothing."""
    more = rest(value, known)
    return {provider: more} if more else {}


def arguments(value: Any, *, is_open: bool = False) -> tuple[RawJson, str | None]:
    """The arguments of a call: exact JSON, or the text when it is no JSON (or not all of it has come)."""
    if not isinstance(value, str):
        return to_json({} if value is None else value), None
    value = repair_text(value)
    if is_open:
        return UNSET, value
    try:
        parse_json(value)
        # Exact text first: numbers and the order of keys stay as the model wrote them. NaN is JSON in Python only.
        return msgspec.Raw(msgspec.json.encode(msgspec.Raw(_strict(value)))), None
    except (ValueError, RecursionError):
        return UNSET, value


def _strict(value: str) -> bytes:
    data = value.encode()
    msgspec.json.decode(data)
    return data


def call_state(block: Json) -> ToolState:
    """The state of a call that has no result yet."""
    return ToolState.INPUT_STREAMING if OPEN in block else ToolState.INPUT_AVAILABLE


def error_of(value: Any) -> MessageError | None:
    """A provider's error object, or its text; None if there is none."""
    if isinstance(value, str) and value:
        return MessageError(text=text(value))
    found = fields(value)
    if not found:
        return None
    status = count(found.get("code"))
    kind = word(found.get("type")) or word(found.get("status")) or word(found.get("code"))
    return MessageError(text=text(found.get("message")) or kind or "error", kind=kind, status=status)


def answer(
    provider: str,
    found: Json,
    parts: tuple[Part, ...],
    *,
    named: tuple[str, str] = ("id", "model"),
    stop_reason: StopReason | None,
    error: MessageError | None,
    **more: Any,
) -> Message:
    """The message of a response, from what the provider's reader found in it.

    Args:
        provider: The name of the provider, as in `ProviderData`.
        found: The body.
        parts: The parts of the message.
        named: The fields of the body that hold the response's id and the model.
        stop_reason: Why the model stopped. With an `error` it is `error`.
        error: The API's error, if there is one.
        more: Further fields of the message.
    """
    response_id, model = (word(found.get(name)) for name in named)
    return Message(
        id=response_id or UNNAMED,
        role="assistant",
        parts=parts,
        model=model,
        response_id=response_id,
        stop_reason="error" if error else stop_reason,
        error=error,
        provider=ProviderData(name=provider, model=model),
        **more,
    )


def file_of(url: str) -> FilePart | None:
    """A file by its address or `data:` URL; None for what is neither."""
    head, comma, data = url.partition(",")
    if not url.startswith("data:"):
        return FilePart(media_type="image/*", url=url) if url else None
    media_type = head.removeprefix("data:").removesuffix(";base64")
    return file_from_base64(media_type, data) if comma and head.endswith(";base64") else None


def file_from_base64(media_type: str, data: Any) -> FilePart | None:
    """A file from its Base64; None where it cannot be read."""
    try:
        return FilePart(media_type=media_type, data=base64.b64decode(text(data), validate=True))
    except ValueError:
        return None
