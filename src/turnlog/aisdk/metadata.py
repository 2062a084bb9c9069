"""Merging what chunks say of a message's metadata, as AI SDK does: objects deeply, everything else by replacement.

Metadata are meant to be objects; what JavaScript makes of others is kept here too, so that a reader agrees with the
client even about odd streams.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, cast

from msgspec import UNSET

from turnlog.errors import StreamStateError

_SKIPPED = frozenset({"__proto__", "constructor", "prototype"})


def merge_metadata(base: Any, update: Any) -> Any:
    """The metadata after an update; missing and null updates change nothing.

    Raises:
        StreamStateError: The metadata so far are text, a number or a flag, and the update has keys.
    """
    if update is UNSET or update is None:
        return base
    if base is UNSET or base is None:
        return update
    return _merge(base, update)


def _merge(base: Any, update: Any) -> dict[str, Any]:
    merged = _as_object(base)
    changes = {key: item for key, item in _as_object(update).items() if key not in _SKIPPED}
    if changes and not isinstance(base, dict | list):
        key = min(changes, key=_javascript_order)
        raise StreamStateError(
            f"Cannot use 'in' operator to search for '{key}' in {_shown(base)}", chunk_type="message-metadata"
        )
    for key, item in changes.items():
        before = merged.get(key)
        merged[key] = _merge(before, item) if isinstance(before, dict) and isinstance(item, dict) else item
    return merged


def _javascript_order(key: str) -> tuple[bool, int]:
    """Where JavaScript puts a key of an object: positions first, the rest as they came."""
    is_position = key.isascii() and key.isdecimal() and str(int(key)) == key and int(key) < 2**32 - 1
    return (not is_position, int(key) if is_position else 0)


def _as_object(value: Any) -> dict[str, Any]:
    """What JavaScript's spread makes of a value: texts and lists by position, numbers and flags of nothing."""
    if isinstance(value, dict):
        return dict(cast("dict[str, Any]", value))
    if isinstance(value, str):
        return {str(position): unit for position, unit in enumerate(_utf16_units(value))}
    if isinstance(value, list | tuple):
        return {str(position): item for position, item in enumerate(cast("list[Any]", value))}
    return {}


def _utf16_units(text: str) -> list[str]:
    data = text.encode("utf-16-le", "surrogatepass")
    return [data[start : start + 2].decode("utf-16-le", "surrogatepass") for start in range(0, len(data), 2)]


def _shown(value: Any) -> str:
    """A value as JavaScript shows it in a message."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else _shown_number(float(value))


def _shown_number(value: float) -> str:
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return f"{Decimal(repr(value + 0.0)).normalize():f}"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value).replace("e-0", "e-")
