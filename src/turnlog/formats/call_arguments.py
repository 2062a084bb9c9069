"""The input of a tool call for formats in which arguments are an object."""

from __future__ import annotations

import math
import re
from itertools import accumulate
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from turnlog.model import ToolCallPart
from turnlog.model.lenient_json import without_lone_surrogates


class CallArguments(NamedTuple):
    """An object, as exact JSON."""

    json: Raw
    is_wrapped: bool
    """The model sent something else, which is the only field of the object: `input`."""
    loss: str | None = None
    """Why they are a text with the exact JSON, in the field `input`; None where they are not."""


def readable_arguments(call: ToolCallPart) -> CallArguments:
    """The arguments of a call, for readers with bounds: a text with the exact JSON of what they would refuse."""
    made = call_arguments(call)
    reason = unreadable(bytes(made.json))
    if reason is None:
        return made
    text = bytes(made.json).decode(errors="replace")
    return CallArguments(Raw(b'{"input":%b}' % msgspec.json.encode(text)), made.is_wrapped, reason)


def unreadable(json: bytes) -> str | None:
    """Why strict readers with bounds, such as pydantic's and yajl, refuse sound JSON; None if they read it."""
    if _MAYBE.search(json) is None and json.count(b"[") + json.count(b"{") <= _MOST_LEVELS:
        return None
    tokens = [match[0] for match in _TOKEN.finditer(json)]
    if bytes(without_lone_surrogates(json)) != json:
        return "half of a surrogate pair"
    if any(token in (b"NaN", b"Infinity", b"-Infinity") or _is_too_large(token) for token in tokens):
        return "a number beyond 64 bits"
    steps = ((token in b"[{") - (token in b"]}") for token in tokens if token in (b"[", b"{", b"]", b"}"))
    deepest = max(accumulate(steps), default=0)
    return f"nested {deepest} levels deep" if deepest > _MOST_LEVELS else None


_MOST_LEVELS: Final = 190
"""Levels of arguments: pydantic reads 200 of a whole document, of which others are around them."""

_MAYBE: Final = re.compile(rb"\d{19}|\d[eE]|NaN|Infinity|\\u[dD]")
"""What is in JSON with anything but too many levels that a reader refuses, and in some other."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]|-?(?:\d[\d.eE+-]*|NaN|Infinity)', re.DOTALL)

_DIGITS: Final = 20
"""No number of 64 bits has more, and Python reads a few thousand only."""


def _is_too_large(token: bytes) -> bool:
    if token[:1] not in b"-0123456789" or not token:
        return False
    if any(mark in token for mark in b".eE"):
        return math.isinf(float(token))
    return len(token.lstrip(b"-")) > _DIGITS or not -(1 << 63) <= int(token) < 1 << 63


def call_arguments(call: ToolCallPart) -> CallArguments:
    """The arguments of a call."""
    if call.input is not UNSET and bytes(call.input).lstrip()[:1] == b"{":
        return CallArguments(Raw(call.input), is_wrapped=False)
    whole = b"null" if call.input is UNSET else bytes(call.input)
    value = whole if call.input_text is None else msgspec.json.encode(call.input_text)
    return CallArguments(Raw(b'{"input":%b}' % value), is_wrapped=True)
