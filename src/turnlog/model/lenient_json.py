"""Plain values from JSON as agents write it, which no strict parser reads: see `turnlog.model.codec`."""

from __future__ import annotations

import json
import math
from typing import Any


def parse_json(data: bytes | str) -> Any:
    """Plain Python values from JSON as agents write it: lone surrogates, NaN and numbers of any size are accepted.

    Raises ValueError (json.JSONDecodeError) if it is not JSON at all, RecursionError when nested too deep.
    """
    return json.loads(data, parse_constant=str, parse_float=_parse_float, parse_int=_parse_int)


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
