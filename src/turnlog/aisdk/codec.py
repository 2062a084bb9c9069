"""JSON <-> types: parsing strictly for a version or leniently for any, and writing exact JSON.

Parsing keeps everything: unknown keys in `extra`, and leniently also parts and chunks of unknown type or shape. A value
with the known shape is decoded in one call. Any other is built field by field: what does not fit a field goes into
`extra`, from which `to_plain` puts it back. Written JSON contains every required null and no optional one, no NaN
(null, as JavaScript writes it), lone surrogates as escapes, and, in chunks, no key that the AI SDK's parser refuses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast, get_args

import msgspec
from msgspec import UNSET

from turnlog.aisdk.base import JSON_PROPERTY, UIValue, type_of
from turnlog.aisdk.checks import check_at, chunk_check, known_chunks, known_finish_reasons, message_check
from turnlog.aisdk.chunks import (
    FinishChunk,
    SteeringMessageChunk,
    TaggedChunk,
    TextEndChunk,
    UIMessageChunk,
    UnknownChunk,
    chunk_class,
)
from turnlog.aisdk.json_text import holds_unsafe_key, may_hold_unsafe_key, parse_json
from turnlog.aisdk.parts import (
    DocumentCitationSource,
    DynamicToolUIPart,
    SteeringMessageUIPart,
    TextUIPart,
    ToolApproval,
    ToolUIPart,
    UICitation,
    UIMessage,
    UIMessagePart,
    UIRole,
    UnknownUIPart,
    UrlCitationSource,
    part_class,
)
from turnlog.aisdk.versions import SdkVersion, Version, sdk_version, supports
from turnlog.arguments import checked, refusal
from turnlog.errors import ShapeError

JsonInput: TypeAlias = bytes | str | dict[str, Any]
"""JSON text, or the result of a JSON parser."""

_encode_exactly = msgspec.json.Encoder().encode
_chunk_decoder: msgspec.json.Decoder[TaggedChunk] = msgspec.json.Decoder(TaggedChunk)
_EXTRA_KEY = JSON_PROPERTY.encode()


@checked
def parse_ui_message(
    data: JsonInput, *, version: Version = 7, strict: bool = True, require_id: bool = True
) -> UIMessage:
    """Parse a message (R-S1, R-S2, R-S13).

    Strict accepts what `validateUIMessages` of this version accepts, but keeps unknown keys. Lenient accepts any
    version: parts of unknown type or shape become UnknownUIParts.

    Args:
        data: The message's JSON.
        version: The AI SDK version.
        strict: See above.
        require_id: Whether a message must have an id, as for `validateUIMessages`. `convertToModelMessages` and
            `readUIMessageStream` accept messages without one; such a message gets the id "".

    Raises:
        ShapeError: It is invalid; in lenient mode, its id, role or list of parts is.
    """
    return _message_from(
        _plain_input(data, unsafe_keys=True), sdk_version(version), strict=strict, require_id=require_id
    )


@checked
def parse_ui_messages(
    data: bytes | str | Sequence[dict[str, Any]], *, version: Version = 7, strict: bool = True, require_id: bool = True
) -> list[UIMessage]:
    """Parse a JSON array of messages like `parse_ui_message`."""
    values = _plain_input(data, unsafe_keys=True)
    if not isinstance(values, list | tuple):
        raise ShapeError("expected a list of messages")
    release = sdk_version(version)

    def parse(value: Any) -> UIMessage:
        return _message_from(value, release, strict=strict, require_id=require_id)

    return [check_at(position, parse, value) for position, value in enumerate(cast("list[Any]", values))]


def parse_chunk(data: JsonInput, *, version: Version = 7, strict: bool = True) -> UIMessageChunk:
    """Parse a chunk.

    Strict accepts what the client of this release accepts. Lenient accepts any version: a chunk of unknown shape
    becomes an UnknownChunk.

    Raises:
        ShapeError: It is not JSON (as the AI SDK parses it) or, in strict mode, the client would refuse it.
    """
    release = sdk_version(version)
    # Older releases end the stream at one unknown key, so every key must be checked.
    chunk = _decode_common_chunk(data, release) if supports(release, "unknown-keys") else None
    if chunk is not None:
        return chunk
    value = _plain_input(data)
    if strict:
        chunk_check(release)(value)
    return build_chunk(value)


def encode(value: UIValue | Sequence[UIValue]) -> bytes:
    """Exact JSON of a message, part or chunk, or of a list of them. Raises TypeError for anything else."""
    if not isinstance(value, UIValue):
        if not isinstance(value, list | tuple):
            raise refusal("value", value, "messages, parts or chunks: parse JSON first")
        return b"[" + b",".join([encode(item) for item in value]) + b"]"
    if not has_unknown_keys(value):
        try:
            return _encode_exactly(value)
        except UnicodeEncodeError:
            pass  # A lone surrogate is valid text in JavaScript, but cannot be encoded as UTF-8.
    return _encode_plain(to_plain(value))


def encode_chunk(chunk: UIMessageChunk) -> bytes:
    """Exact JSON of a chunk. Raises ShapeError if it contains a key at which the AI SDK's parser would end the stream.

    `json_text.without_unsafe_keys` removes such keys from a value.
    """
    data = encode(chunk)
    if may_hold_unsafe_key(data) and holds_unsafe_key(json.loads(data)):
        raise ShapeError(f"a {chunk.type} chunk holds a key that reaches JavaScript's prototypes")
    return data


def _message_from(value: Any, release: SdkVersion, *, strict: bool, require_id: bool) -> UIMessage:
    if not require_id and isinstance(value, dict) and "id" not in value:
        value = {"id": "", **cast("dict[str, Any]", value)}
    if strict:
        message_check(release.major)(value)
    return build_message(value)


def _plain_input(data: Any, *, unsafe_keys: bool = False) -> Any:
    if not isinstance(data, bytes | str):
        return data
    try:
        return parse_json(data, unsafe_keys=unsafe_keys)
    except ValueError as error:
        raise ShapeError(f"not JSON: {error}") from error


def _decode_common_chunk(data: JsonInput, release: SdkVersion) -> UIMessageChunk | None:
    """The chunk, decoded in one call if it has the common shape; None if that is not certain."""
    if isinstance(data, dict):
        return None
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if not isinstance(data, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may have no types
        raise refusal("data", data, "JSON of a chunk as bytes, text or a dict")
    if may_hold_unsafe_key(data) or _EXTRA_KEY in data:
        return None
    try:
        chunk = _chunk_decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return chunk if _is_surely_valid(chunk, release) else None


def _is_surely_valid(chunk: TaggedChunk, release: SdkVersion) -> bool:
    """Whether the client of this release certainly accepts a chunk with the newest shape."""
    if chunk.type not in known_chunks(release):
        return False
    if isinstance(chunk, FinishChunk):
        return chunk.finish_reason is UNSET or chunk.finish_reason in known_finish_reasons(release)
    # The client checks more than the struct in citations (their indexes) and in steering parts (which fields they
    # have).
    if isinstance(chunk, TextEndChunk):
        return chunk.citations is UNSET
    return not isinstance(chunk, SteeringMessageChunk)


def _encode_plain(plain: Any) -> bytes:
    try:
        return _encode_exactly(plain)
    except UnicodeEncodeError:
        return json.dumps(_finite(plain), separators=(",", ":"), allow_nan=False).encode("ascii")


def _finite(plain: Any) -> Any:
    """The value with null in place of NaN and infinities."""
    if isinstance(plain, float):
        return plain if math.isfinite(plain) else None
    if isinstance(plain, dict):
        return {key: _finite(item) for key, item in cast("dict[str, Any]", plain).items()}
    return [_finite(item) for item in cast("list[Any]", plain)] if isinstance(plain, list) else plain


ValueT = TypeVar("ValueT", bound=UIValue)


def build(struct: type[ValueT], fields: dict[str, Any]) -> ValueT:
    """Build a value of this type. Raises ShapeError if a required field is missing or wrong."""
    if JSON_PROPERTY not in fields:
        try:
            return msgspec.convert(fields, struct)
        except ValueError:
            # Also for input that msgspec cannot inspect, such as a lone surrogate in a key.
            pass
    return _build_field_by_field(struct, fields)


def build_part(value: Any) -> UIMessagePart:
    """Build a part; an UnknownUIPart if no shape fits."""
    struct = part_class(type_of(value))
    try:
        return UnknownUIPart(value=value) if struct is None else cast("UIMessagePart", build(struct, value))
    except ShapeError:
        return UnknownUIPart(value=value)


def build_chunk(value: Any) -> UIMessageChunk:
    """Build a chunk; an UnknownChunk if no shape fits."""
    struct = chunk_class(type_of(value))
    try:
        return UnknownChunk(value=value) if struct is None else cast("UIMessageChunk", build(struct, value))
    except ShapeError:
        return UnknownChunk(value=value)


def build_message(value: Any) -> UIMessage:
    """Build a message. Raises ShapeError if its id, role or list of parts is invalid."""
    if not isinstance(value, dict):
        raise ShapeError("a message is an object")
    fields = cast("dict[str, Any]", value)
    # Not with `msgspec.convert`: `tool-<name>` and `data-<name>` are prefixes, which cannot be tags of a union.
    for name, is_right in _MESSAGE_FIELDS.items():
        if not is_right(fields.get(name)):
            raise ShapeError("this key is missing or wrong", json_path=f"$.{name}")
    return UIMessage(
        id=fields["id"],
        role=fields["role"],
        parts=tuple([build_part(part) for part in fields["parts"]]),
        metadata=fields.get("metadata", UNSET),
        extra={name: item for name, item in fields.items() if name not in _MESSAGE_FIELDS and name != "metadata"},
    )


def to_plain(value: Any) -> Any:
    """The JSON of a value as dicts, lists and scalars; `msgspec.Raw` inside it is decoded."""
    if isinstance(value, UIValue):
        return _plain_fields(value)
    if isinstance(value, msgspec.Raw):
        return parse_json(bytes(value), unsafe_keys=True)
    if isinstance(value, dict) and _needs_unwrapping(value):
        return {key: to_plain(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple) and _needs_unwrapping(value):
        return [to_plain(item) for item in cast("list[Any]", value)]
    return cast("Any", value)


def _needs_unwrapping(value: Any) -> bool:
    """Whether anything inside is not plain JSON. Not recursive, because JSON may be very deep."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, UIValue | msgspec.Raw | tuple):
            return True
        if isinstance(item, dict):
            pending.extend(cast("dict[str, Any]", item).values())
        elif isinstance(item, list):
            pending.extend(cast("list[Any]", item))
    return False


def has_unknown_keys(value: UIValue) -> bool:
    """Whether it contains unknown keys, which only `to_plain` writes back in their places."""
    if value.extra:
        return True
    nested = _NESTED_NAMES.get(type(value), ())
    if not nested:
        return nested is None
    return any([_holds_unknown_keys(getattr(value, name)) for name in nested])


def _holds_unknown_keys(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(has_unknown_keys(item) for item in cast("tuple[UIValue, ...]", value))
    return isinstance(value, UIValue) and has_unknown_keys(value)


def _plain_fields(value: UIValue) -> Any:
    if isinstance(value, UnknownUIPart | UnknownChunk):
        return to_plain(value.value)
    config = value.__struct_config__
    plain: dict[str, Any] = {} if config.tag is None else {str(config.tag_field): config.tag}
    for name, encoded in _json_names(type(value)):
        item = getattr(value, name)
        if item is not UNSET:
            plain[encoded] = to_plain(item)
    for name, item in value.extra.items():
        plain[name] = to_plain(item)
    return plain


@cache
def _json_names(struct: type[UIValue]) -> tuple[tuple[str, str], ...]:
    names = zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    return tuple((name, encoded) for name, encoded in names if encoded != JSON_PROPERTY)


@cache
def _json_fields(struct: type[UIValue]) -> dict[str, msgspec.structs.FieldInfo]:
    """JSON name -> field."""
    return {field.encode_name: field for field in msgspec.structs.fields(struct) if field.encode_name != JSON_PROPERTY}


def _build_field_by_field(struct: type[ValueT], fields: dict[str, Any]) -> ValueT:
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    infos = _json_fields(struct)
    tag_field = struct.__struct_config__.tag_field
    for name, item in fields.items():
        if name == tag_field:
            continue
        info = infos.get(name)
        value = UNSET if info is None else _build_field(struct, info, item)
        if info is None or value is UNSET:
            extra[name] = item
        else:
            known[info.name] = value
    for info in infos.values():
        if info.required and info.name not in known:
            raise ShapeError("this key is missing or wrong", json_path=f"$.{info.encode_name}")
    return struct(**known, extra=extra)


def _build_field(struct: type[UIValue], info: msgspec.structs.FieldInfo, item: Any) -> Any:
    """The value of a field; UNSET if this does not fit it."""
    nested = _NESTED.get(struct, {}).get(info.name)
    try:
        return nested(item) if nested else msgspec.convert(item, info.type)
    except (ValueError, ShapeError):
        return UNSET


def _object_builder(struct: type[UIValue]) -> Callable[[Any], Any]:
    def build_object(value: Any) -> UIValue:
        if not isinstance(value, dict):
            raise ShapeError("expected an object")
        return build(struct, cast("dict[str, Any]", value))

    return build_object


def _list_builder(build_item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def build_list(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise ShapeError("expected a list")
        return tuple(build_item(item) for item in cast("list[Any]", value))

    return build_list


def _build_source(value: Any) -> Any:
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    kind = fields.get("sourceType")
    if kind not in ("url", "document"):
        raise ShapeError("unknown kind of source")
    return build(UrlCitationSource if kind == "url" else DocumentCitationSource, fields)


def _build_user_part(value: Any) -> Any:
    if type_of(value) not in ("text", "file"):
        raise ShapeError("no part of a user's message")
    return build(cast("type[UIValue]", part_class(type_of(value))), value)


_approval = {"approval": _object_builder(ToolApproval)}
_citations = {"citations": _list_builder(_object_builder(UICitation))}
_user_parts = {"parts": _list_builder(_build_user_part)}

_NESTED: dict[type[UIValue], dict[str, Callable[[Any], Any]]] = {
    ToolUIPart: _approval,
    DynamicToolUIPart: _approval,
    TextUIPart: _citations,
    TextEndChunk: _citations,
    UICitation: {"source": _build_source},
    SteeringMessageUIPart: _user_parts,
    SteeringMessageChunk: _user_parts,
}
"""Fields that contain other values of this module, with the functions that build them."""

_MESSAGE_FIELDS: dict[str, Callable[[Any], bool]] = {
    "id": lambda value: isinstance(value, str),
    "role": lambda value: isinstance(value, str) and value in get_args(UIRole),
    "parts": lambda value: isinstance(value, list | tuple),
}

_NESTED_NAMES: dict[type[UIValue], tuple[str, ...] | None] = {
    **{struct: tuple(fields) for struct, fields in _NESTED.items()},
    UIMessage: ("parts",),
    UnknownUIPart: None,
    UnknownChunk: None,
}
"""All such fields; None for values of unknown shape."""
