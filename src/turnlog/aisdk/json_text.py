"""JSON text as a JavaScript client reads it, for texts that come from outside, and tool outputs that are JSON text.

The differences to Python's readers that matter here: lone surrogates are text like any other, `NaN` and `Infinity`
are no JSON, and AI SDK refuses objects that would reach JavaScript's prototypes (`secureJsonParse` of
`@ai-sdk/provider-utils`). Numbers stay exact, where JavaScript would round them.

`parse_output` reads the `output` of a UI part: JSON is parsed, any other text stays as it is (R-H8). A text that holds
JSON becomes that JSON without being written anew.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, NoReturn, TypeGuard, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

_decoder = msgspec.json.Decoder()


def parse_json(text: str | bytes, *, unsafe_keys: bool = False) -> Any:
    """Plain Python values; raise ValueError where AI SDK's parser of streams throws.

    With `unsafe_keys` it takes keys that reach prototypes, as JavaScript's own parser does that reads requests.

    A number beyond every float becomes an infinity, as in JavaScript; `encode` writes it as null, as that does.
    """
    try:
        value = _decoder.decode(text)
    except (ValueError, RecursionError):
        value = _parse_leniently(text)
    if not unsafe_keys and may_hold_unsafe_key(text) and holds_unsafe_key(value):
        raise ValueError("object contains a forbidden prototype property")
    return value


def _parse_leniently(text: str | bytes) -> Any:
    if isinstance(text, bytes):
        # As browsers and servers decode a body: what is no UTF-8 becomes U+FFFD and is no error.
        text = text.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_int=_parse_int)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _parse_int(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def may_hold_unsafe_key(text: str | bytes) -> bool:
    """Whether it is worth looking inside: a cheap test without false negatives.

    Each such key holds `proto`: `__proto__`, and the `prototype` of a `constructor`.
    """
    if isinstance(text, bytes):
        # Asked for every chunk that is sent; of bytes, `find` takes half the time of `in`.
        return text.find(b"proto") >= 0 or text.find(b"\\u00") >= 0
    return "proto" in text or "\\u00" in text


def holds_unsafe_key(value: Any) -> bool:
    """Whether any object in it has a key `__proto__`, or a `constructor` that has a key `prototype`."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            if "__proto__" in fields or _has_prototype(fields.get("constructor")):
                return True
            pending.extend(fields.values())
        elif isinstance(item, list | tuple):
            pending.extend(cast("list[Any]", item))
    return False


def ends_in_half_character(text: str) -> bool:
    """Whether it ends in the first half of a character whose second half may follow."""
    return "\ud800" <= text[-1:] <= "\udbff"


def join_surrogates(text: str) -> str:
    """The text with both halves of a character made one, where a stream had split them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def without_unsafe_keys(value: Any) -> Any:
    """The value without those keys, at any depth; the same object where there are none."""
    if not holds_unsafe_key(value):
        return value
    if isinstance(value, dict):
        return {
            key: without_unsafe_keys(item)
            for key, item in cast("dict[str, Any]", value).items()
            if key != "__proto__" and not (key == "constructor" and _has_prototype(item))
        }
    return [without_unsafe_keys(item) for item in cast("list[Any]", value)]


def _has_prototype(value: Any) -> bool:
    return isinstance(value, dict) and "prototype" in value


def same_json(one: Any, other: Any) -> bool:
    """Whether two plain values are the same JSON; unlike in Python, true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        these, those = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return these.keys() == those.keys() and all(same_json(item, those[key]) for key, item in these.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        items, others = cast("list[Any]", one), cast("list[Any]", other)
        return len(items) == len(others) and all(map(same_json, items, others))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def is_json_string(json: Raw | UnsetType) -> TypeGuard[Raw]:
    """Whether exact JSON is there and is a string (not null)."""
    return json is not UNSET and bytes(memoryview(json)[:1]) == b'"'


_SPACE = rb"(?:\\[nrt]| )*"
_CONTAINER = re.compile(rb'"' + _SPACE + rb"[\[{]")
_NUMBER = rb"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?(?:[eE][-+]?\d\d?)?"
_SCALAR = re.compile(rb'"' + _SPACE + rb"(?:true|false|null|" + _NUMBER + rb'|\\".*)' + _SPACE + rb'"')
"""Numbers of up to 15 digits: JavaScript would change longer ones, so that they stay text."""

_CLOSED = re.compile(rb'[\]}](?:\\[nrt]| )*"$')
_TAIL = 64
"""Bytes at the end of a text that must hold its last bracket."""

_FRAGILE = re.compile(r'\d[.eE]|\d{16}|"\d+":')
"""What may come back differently from a JavaScript program: some numbers, and the order of keys that are numbers."""

_UNSAFE_KEYS = ("__proto__", "constructor")
"""Keys for which AI SDK may refuse a whole value; a text that names one stays text."""


class Parsed(NamedTuple):
    """The JSON in a text."""

    value: Raw
    exact: bool
    """Whether the text can be made anew from the value, also after another program has read and written it."""


def parse_output(text: Raw) -> Parsed | None:
    """The JSON inside a JSON string; None when its text is no JSON."""
    if not _may_be_json(text):
        return None
    try:
        plain = msgspec.json.decode(text, type=str)
        value = msgspec.json.decode(plain)
    except (msgspec.DecodeError, RecursionError):
        return None
    if any(key in plain for key in _UNSAFE_KEYS):
        return None
    return Parsed(Raw(plain.encode()), not isinstance(value, str) and _is_plain(plain, value))


def output_text(output: Raw) -> Raw:
    """The JSON string of the text that an output was made of, where that was exact or no JSON."""
    if is_json_string(output):
        return output
    return Raw(msgspec.json.encode(msgspec.json.encode(msgspec.json.decode(output)).decode()))


def _may_be_json(text: Raw) -> bool:
    if _CONTAINER.match(text):
        return _CLOSED.search(bytes(memoryview(text)[-_TAIL:])) is not None
    return _SCALAR.fullmatch(text) is not None


def _is_plain(plain: str, value: object) -> bool:
    return _FRAGILE.search(plain) is None and msgspec.json.encode(value).decode() == plain
