"""Model <-> JSON. The one place where the canonical model is encoded, decoded and described by a schema.

Decoding is strict and fast first; a value with fields or kinds that this version does not know takes the careful
way, keeps them (`extra`, `UnknownPart`) and writes them back to their place. What no JSON can hold has one
representation: a lone surrogate becomes U+FFFD; NaN and infinities (also written as 1e999) become the strings "NaN",
"Infinity", "-Infinity"; an integer of more digits than Python reads becomes the string of its digits; the raw record
keeps the original.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar, cast, get_args

import msgspec

from turnlog.model.base import Value, field_default
from turnlog.model.events import HistoryEvent
from turnlog.model.lenient_json import name_of
from turnlog.model.message import Membership, Message
from turnlog.model.parts import Part, UnknownPart
from turnlog.model.session import Session
from turnlog.model.stream import StreamEvent

ValueT = TypeVar("ValueT", bound=Value)

_encoder = msgspec.json.Encoder(order="deterministic")
"""Keys of mappings are sorted, so that equal values have equal bytes."""

_exact_encoder = msgspec.json.Encoder()
_HARMLESS = frozenset({type(None), bool, int, str, bytes, datetime, msgspec.Raw, msgspec.UnsetType})
"""Types of values that need no care."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

_EXTRA = next(field.encode_name for field in msgspec.structs.fields(Value) if field.name == "extra")


def encode(value: Any) -> bytes:
    """JSON of any value of the model, unknown fields at their old place, repaired as the module says."""
    return _encode_careful(value) if _needs_care(value) else encode_known(value)


def encode_known(value: Any) -> bytes:
    """`encode` without the look inside, for values that hold no unknown field and no NaN (as agents' modules build)."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encode_careful(value)


def _encode_careful(value: Any) -> bytes:
    return _exact_encoder.encode(_plain(value, sort=True))


def repair_text(text: str) -> str:
    """The text with every lone surrogate replaced, so that it has a UTF-8 form."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def decode_message(data: bytes | msgspec.Raw, *, strict: bool = False) -> Message:
    """A message from its JSON; raise msgspec.ValidationError when a known field has the wrong shape.

    `strict` raises it for kinds and fields that this version does not know, too (R-K1).
    """
    return _strict_decoder(Message).decode(data) if strict else _decode(data, Message)


def decode_part(data: bytes | msgspec.Raw, *, strict: bool = False) -> Part:
    """A part from its JSON; a kind that is not ours becomes an UnknownPart, or with `strict` raises as a message's."""
    return cast("Part", _strict_decoder(Part).decode(data) if strict else _decode(data, Part))


def decode_session(data: bytes | msgspec.Raw) -> Session:
    """A session from its JSON."""
    return _decode(data, Session)


def decode_membership(data: bytes | msgspec.Raw) -> Membership:
    """A membership from its JSON."""
    return _decode(data, Membership)


def decode_event(data: bytes | msgspec.Raw) -> HistoryEvent:
    """A history event from its JSON (R-K11)."""
    return cast("HistoryEvent", _decode(data, HistoryEvent))


def decode_stream_event(data: bytes | msgspec.Raw) -> StreamEvent:
    """A stream event from its JSON."""
    return cast("StreamEvent", _decode(data, StreamEvent))


def to_json(text: str | int | float | bool | list[Any] | dict[str, Any] | None) -> msgspec.Raw:
    """Exact JSON of plain Python values, in the representation that the module describes."""
    return msgspec.Raw(_exact_encoder.encode(_plain(text, sort=False)))


def to_plain_json(value: Any) -> Any:
    """Plain Python values as JSON can hold them, in the representation that the module describes."""
    return _plain(value, sort=False)


def json_schema() -> dict[str, Any]:
    """JSON Schema of the whole model, one definition a type. Fields that it does not name are allowed and kept."""
    types: list[Any] = [Session, Message, Membership, HistoryEvent, StreamEvent, Part]
    _, definitions = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    for definition in definitions.values():
        definition.pop("additionalProperties", None)
        definition.get("properties", {}).pop(_EXTRA, None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


_strict: dict[Any, msgspec.json.Decoder[Any]] = {}


def _strict_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    decoder = _strict.get(kind)
    if decoder is None:
        decoder = _strict[kind] = msgspec.json.Decoder(kind)
    return decoder


def _decode(data: bytes | msgspec.Raw, kind: Any) -> Any:
    try:
        return _strict_decoder(kind).decode(data)
    except msgspec.ValidationError:
        return _decode_careful(data, kind)


_members: dict[Any, dict[str, type[Value]]] = {}


def _union_members(kind: Any) -> dict[str, type[Value]]:
    """Tag -> type of a tagged union."""
    if kind not in _members:
        options = cast("tuple[type[Value], ...]", get_args(kind))
        _members[kind] = {str(option.__struct_config__.tag): option for option in options}
    return _members[kind]


def _decode_careful(data: bytes | msgspec.Raw, kind: Any) -> Any:
    """Decode one level by hand: known fields by their own type, unknown ones into `extra`."""
    fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    struct = kind
    if not isinstance(kind, type):
        tag = msgspec.json.decode(fields["type"], type=str) if "type" in fields else ""
        struct = _union_members(kind).get(tag)
        if struct is None and kind is Part:
            return UnknownPart(kind=tag, data=msgspec.Raw(bytes(data)))
        if struct is None:
            raise msgspec.ValidationError(f"unknown kind {tag!r}")
    return _build(struct, fields)


def _build(struct: type[Value], fields: dict[str, msgspec.Raw]) -> Value:
    known: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        if field.encode_name in fields:
            known[field.name] = _decode_field(fields[field.encode_name], field.type)
        elif field.required:
            raise msgspec.ValidationError(f"Object missing required field `{field.encode_name}`")
    names = {*struct.__struct_encode_fields__, struct.__struct_config__.tag_field}
    extra = {name: raw.copy() for name, raw in fields.items() if name not in names}
    return struct(**{**known, "extra": {**known.get("extra", {}), **extra}})


def _decode_field(raw: msgspec.Raw, field_type: Any) -> Any:
    """Decode one field, careful again below it if it contains values of the model."""
    try:
        return msgspec.json.decode(raw, type=field_type)
    except msgspec.ValidationError:
        item_type = _item_type(field_type)
        if item_type is None:
            raise
        if str(field_type).startswith("tuple"):
            items = msgspec.json.decode(raw, type=list[msgspec.Raw])
            return tuple(_decode(item, item_type) for item in items)
        return _decode(raw, item_type)


def _item_type(field_type: Any) -> Any:
    """The model type inside `X`, `X | None` or `tuple[X, ...]`; None if there is none."""
    if _is_value_type(field_type):
        return field_type
    options: list[Any] = [option for option in get_args(field_type) if option not in (type(None), Ellipsis)]
    if len(options) == 1:
        return options[0] if str(field_type).startswith("tuple") else _item_type(options[0])
    if options and all(_is_value_type(option) for option in options):
        return field_type
    return None


def _is_value_type(option: Any) -> bool:
    return isinstance(option, type) and issubclass(option, Value)


def _needs_care(value: Any) -> bool:
    """Whether JSON would lose something of a value: fields that are not its own, numbers that are none."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Value):
        if value.extra:
            return True
        items: Iterable[Any] = [getattr(value, name) for name in value.__struct_fields__]
    elif isinstance(value, dict):
        items = cast("dict[str, Any]", value).values()
    elif isinstance(value, tuple | list):
        items = cast("list[Any]", value)
    else:
        return False
    # A call for each would take most of the time: nearly all are of these types.
    return any(type(item) not in _HARMLESS and _needs_care(item) for item in items)


def _plain(value: Any, *, sort: bool) -> Any:
    """The value as mappings and lists: repaired, and the content of every `extra` lifted to where it was read."""
    # A request has thousands of short texts: what most values are comes first, without a call for each.
    kind = cast("type[Any]", type(value))
    if kind is str:
        return value if value.isascii() else repair_text(value)
    if kind is dict and not sort:
        return {
            key if type(key) is str and key.isascii() else _plain(key, sort=sort): item
            if type(item) is str and item.isascii()
            else _plain(item, sort=sort)
            for key, item in cast("dict[Any, Any]", value).items()
        }
    if isinstance(value, str):
        return repair_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else name_of(value)
    if isinstance(value, tuple | list):
        return [_plain(item, sort=sort) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = [
            (_plain(key, sort=sort), _plain(item, sort=sort)) for key, item in cast("dict[Any, Any]", value).items()
        ]
        return dict(sorted(items, key=_key) if sort else items)
    return _plain_fields(value, sort=sort) if isinstance(value, Value) else value


def _key(item: tuple[Any, Any]) -> Any:
    return item[0]


def _plain_fields(value: Value, *, sort: bool) -> dict[str, Any]:
    config = value.__struct_config__
    plain: dict[str, Any] = {} if config.tag is None else {str(config.tag_field): config.tag}
    for field in msgspec.structs.fields(value):
        item = getattr(value, field.name)
        if field.name != "extra" and (field.required or item != field_default(field)):
            plain[field.encode_name] = _plain(item, sort=sort)
    return {**plain, **dict(sorted(value.extra.items(), key=_key))}
