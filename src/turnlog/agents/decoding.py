"""One JSON object as a struct: what it says besides is kept, and what has another shape is left out and told.

Every field of these structs has a default. Which bytes are an object is `turnlog.agents.jsonl`'s business.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin

import msgspec

from turnlog.agents.reading import names_of, other_fields

RecordT = TypeVar("RecordT", bound=msgspec.Struct)


class Problem(NamedTuple):
    """What of an object is not as it should be."""

    reason: str
    json_path: str | None
    severity: Literal["error", "note"]


class KeepingDecoder(Generic[RecordT]):
    """Decodes records, and keeps what of them is not declared: see `turnlog.agents.jsonl.JsonLines`."""

    def __init__(self, kind: type[RecordT], complete: type[RecordT]) -> None:
        self._decode_complete = msgspec.json.Decoder(complete).decode
        self._decode_lenient = msgspec.json.Decoder(kind).decode
        self._names = names_of(complete)

    def decode(self, text: bytes | msgspec.Raw) -> RecordT:
        """A sound record; raises what `msgspec` raises for any other text."""
        try:
            return self._decode_complete(text)
        except msgspec.ValidationError:
            return self.with_others(self._decode_lenient(text), text)

    def with_others(self, record: RecordT, text: bytes | msgspec.Raw) -> RecordT:
        """The record with what else its JSON says."""
        fields = _decode_fields(clean_json(bytes(text)))
        return msgspec.structs.replace(record, others=other_fields(fields, self._names) or None)


_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def clean_json(text: bytes) -> bytes:
    """JSON that the typed decoder has passed over, fit to be decoded or kept.

    It checks the grammar of what it passes over, escapes included, but not that the bytes are UTF-8.
    """
    if text.isascii():
        return text
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode(errors="replace").encode()
    return text


MISSING: Any = object()
"""Of an object that has nothing of the shape."""


def salvage(data: bytes | msgspec.Raw, kind: Any, path: str, problems: list[Problem]) -> Any:
    """Decode as much of `data` as has the shape of `kind`; each field or item that has not is told and left out."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        reason = str(error).partition(" - at ")[0]
    first = bytes(data).lstrip()[:1]
    struct = _option(kind, msgspec.Struct)
    if struct is not None and first == b"{":
        return _salvage_struct(data, struct, path, problems)
    item = _list_item(kind)
    if item is not None and first == b"[":
        items = msgspec.json.decode(data, type=list[msgspec.Raw])
        read = [salvage(raw, item, f"{path}[{index}]", problems) for index, raw in enumerate(items)]
        empty = _option(item, msgspec.Struct)
        return [empty() if value is MISSING and empty else value for value in read if value is not MISSING or empty]
    problems.append(Problem(reason, path, "error"))
    return MISSING


def _salvage_struct(data: bytes | msgspec.Raw, struct: Any, path: str, problems: list[Problem]) -> Any:
    raw_fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        if field.encode_name in raw_fields:
            place = f"{path}.{field.encode_name}"
            values[field.name] = salvage(raw_fields[field.encode_name], field.type, place, problems)
    return struct(**{name: value for name, value in values.items() if value is not MISSING})


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is not list and get_args(kind) else (kind,)


def _option(kind: Any, base: type) -> Any:
    return next((option for option in _options(kind) if isinstance(option, type) and issubclass(option, base)), None)


def _list_item(kind: Any) -> Any:
    lists = [option for option in _options(kind) if get_origin(option) is list]
    return get_args(lists[0])[0] if lists else None


def raw_at(record: bytes | msgspec.Raw, *path: str | int) -> msgspec.Raw:
    """The exact JSON at a place of a record, which has this place."""
    raw = msgspec.Raw(clean_json(bytes(record)))
    for step in path:
        if isinstance(step, str):
            raw = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])[step]
        else:
            raw = msgspec.json.decode(raw, type=list[msgspec.Raw])[step]
    return raw
