"""Plain values from JSON as agents write it, which no strict parser reads: see `turnlog.model.codec`."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

_SURROGATES: Final = re.compile(
    rb"\\(?<!\\\\)(?:\\\\)*u[dD](?:[89abAB][0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|[c-fC-F][0-9a-fA-F]{2})"
)
"""Escapes of surrogates, behind an odd number of backslashes; the group is there if they are a pair."""


def parse_json(data: bytes | str) -> Any:
    """Plain Python values from JSON as agents write it: lone surrogates, NaN and numbers of any size are accepted.

    Raises ValueError (json.JSONDecodeError) if it is not JSON at all, RecursionError when nested too deep.
    """
    return json.loads(data, parse_constant=str, parse_float=_parse_float, parse_int=_parse_int)


def without_lone_surrogates(data: bytes | memoryview) -> bytearray:
    """JSON with the escape of U+FFFD for each lone surrogate, so that a strict parser reads it. Its length stays."""
    replaced = bytearray(data)
    for found in _SURROGATES.finditer(data):
        if found[1] is None:
            replaced[found.end() - 4 : found.end()] = b"fffd"
    return replaced


def _parse_float(digits: str) -> float | str:
    value = float(digits)
    return value if math.isfinite(value) else name_of(value)


def _parse_int(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:
        return digits


def name_of(value: float) -> str:
    """The string that replaces NaN or an infinity."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
