"""Numbers that agents written in JavaScript round: all of theirs are doubles."""

from __future__ import annotations

import json
import re
from typing import Final

_PERHAPS: Final = re.compile(rb"[0-9]{16}|[0-9][eE]\+?[0-9]{3}")
"""What a JSON text with such a number has, and few others."""


def has_inexact_number(text: bytes) -> bool:
    """Whether a JSON text has a whole number that no double is, or one that is too large for any."""
    if not _PERHAPS.search(text):
        return False
    rounded: list[str] = []

    def whole(digits: str) -> int:
        if format(float(digits), ".0f") != digits:
            rounded.append(digits)
        return 0

    def fraction(digits: str) -> float:
        if abs(number := float(digits)) == float("inf"):
            rounded.append(digits)
        return number

    try:
        json.loads(text, parse_int=whole, parse_float=fraction)
    except (ValueError, RecursionError):
        return False
    return bool(rounded)
