"""Model <-> JSON. The one place where the canonical model is encoded, decoded and described by a schema.

Decoding is strict and fast first; a value with fields or kinds that this version does not know takes the careful
way, keeps them (`extra`, `UnknownPart`) and writes them back where they stood. Text that no JSON can hold has one
representation: a lone surrogate becomes U+FFFD; NaN and infinities become the strings "NaN", "Infinity",
"-Infinity"; the raw record keeps the original.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar, cast, get_args

import msgspec

from turnlog.model.base import Value, field_default
from turnlog.model.events import HistoryEvent
from turnlog.model.message import Membership, Message
from turnlog.model.parts import Part, UnknownPart
from turnlog.model.session import Session
from turnlog.model.stream import StreamEvent

ValueT = TypeVar("ValueT", bound=Value)

_encoder = msgspec.json.Encoder()
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def encode(value: Any) -> bytes:
    """JSON of any value of the model, unknown fields back where they stood, text repaired as the module says."""
    if isinstance(value, Value) and _has_extra(value):
        value = _plain(value)
    return encode_known(value)


def encode_known(value: Any) -> bytes:
    """`encode` without the look inside, for values that hold nothing unknown (as agents' modules build them)."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_without_surrogates(value))


def decode_message(data: bytes | msgspec.Raw) -> Message:
    """A message from its JSON; raise msgspec.ValidationError when a known field has the wrong shape."""
    return _decode(data, Message)


def decode_part(data: bytes | msgspec.Raw) -> Part:
    """A part from its JSON; a kind that is not ours becomes an UnknownPart."""
    return cast("Part", _decode(data, Part))


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
    return msgspec.Raw(_dump(text))


def parse_json(data: bytes | str) -> Any:
    """Plain Python values from JSON as agents write it: lone surrogates, NaN and huge integers are accepted.

    Raises ValueError (json.JSONDecodeError) when it is not JSON at all, RecursionError when nested too deep.
    """
    return json.loads(data, parse_constant=str)


def json_schema() -> dict[str, Any]:
    """JSON Schema of the whole model, one definition a type."""
    types: list[Any] = [Session, Message, Membership, HistoryEvent, StreamEvent, Part]
    _, definitions = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


def _dump(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, OverflowError):
        text = json.dumps(_without_surrogates(value), ensure_ascii=False, separators=(",", ":"))
        return text.encode()


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        return {_without_surrogates(key): _without_surrogates(item) for key, item in mapping.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in cast("list[Any]", value)]
    if isinstance(value, Value):
        return _without_surrogates(_plain(value))
    return value


_strict: dict[Any, msgspec.json.Decoder[Any]] = {}


def _decode(data: bytes | msgspec.Raw, kind: Any) -> Any:
    decoder = _strict.get(kind)
    if decoder is None:
        decoder = _strict[kind] = msgspec.json.Decoder(kind)
    try:
        return decoder.decode(data)
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
    types = {field.encode_name: (field.name, field.type) for field in msgspec.structs.fields(struct)}
    known: dict[str, Any] = {}
    extra: dict[str, msgspec.Raw] = {}
    for name, raw in fields.items():
        if name in types:
            attribute, field_type = types[name]
            known[attribute] = _decode_field(raw, field_type)
        elif name != struct.__struct_config__.tag_field:
            extra[name] = raw.copy()
    if extra:
        known["extra"] = {**known.get("extra", {}), **extra}
    return struct(**known)


def _decode_field(raw: msgspec.Raw, field_type: Any) -> Any:
    """Decode one field, careful again below it where values of the model stand."""
    try:
        return msgspec.json.decode(raw, type=field_type)
    except msgspec.ValidationError:
        item_type = _item_type(field_type)
        if item_type is None:
            raise
        if msgspec.json.decode(raw) is None:
            return None
        if str(field_type).startswith("tuple"):
            items = msgspec.json.decode(raw, type=list[msgspec.Raw])
            return tuple(_decode(item, item_type) for item in items)
        return _decode(raw, item_type)


def _item_type(field_type: Any) -> Any:
    """The model type inside `X`, `X | None` or `tuple[X, ...]`; None when there is none."""
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


def _has_extra(value: Any) -> bool:
    if isinstance(value, Value):
        return bool(value.extra) or any(_has_extra(getattr(value, name)) for name in value.__struct_fields__)
    return isinstance(value, tuple) and any(_has_extra(item) for item in cast("tuple[Any, ...]", value))


def _plain(value: Any) -> Any:
    """The value as mappings and lists, with the content of every `extra` lifted to where it was read."""
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[Any, ...]", value)]
    if not isinstance(value, Value):
        return value
    config = value.__struct_config__
    plain: dict[str, Any] = {} if config.tag is None else {str(config.tag_field): config.tag}
    for field in msgspec.structs.fields(value):
        item = getattr(value, field.name)
        if field.name != "extra" and (field.required or item != field_default(field)):
            plain[field.encode_name] = _plain(item)
    return {**plain, **value.extra}
