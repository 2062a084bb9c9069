"""What a tool answered, as the `output` of a UI part: JSON is parsed, any other text stays as it is (R-H8).

Works on exact JSON: a text that holds JSON becomes that JSON without being written anew.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
from msgspec import Raw

from turnlog.aisdk.pieces import is_text

_SPACE = rb"(?:\\[nrt]| )*"
_CONTAINER = re.compile(rb'"' + _SPACE + rb"[\[{]")
_NUMBER = rb"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?(?:[eE][-+]?\d\d?)?"
_SCALAR = re.compile(rb'"' + _SPACE + rb"(?:true|false|null|" + _NUMBER + rb'|\\".*)' + _SPACE + rb'"')
"""Numbers of up to 15 digits: JavaScript would change longer ones, so that they stay text."""

_CLOSED = re.compile(rb'[\]}](?:\\[nrt]| )*"$')
_TAIL = 64
"""Bytes at the end of a text in which its last bracket must stand."""

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
    """The JSON that stands in a JSON string; None when the text in it is none."""
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
    if is_text(output):
        return output
    return Raw(msgspec.json.encode(msgspec.json.encode(msgspec.json.decode(output)).decode()))


def _may_be_json(text: Raw) -> bool:
    if _CONTAINER.match(text):
        return _CLOSED.search(bytes(memoryview(text)[-_TAIL:])) is not None
    return _SCALAR.fullmatch(text) is not None


def _is_plain(plain: str, value: object) -> bool:
    return _FRAGILE.search(plain) is None and msgspec.json.encode(value).decode() == plain
