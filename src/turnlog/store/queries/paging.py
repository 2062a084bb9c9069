"""Keyset paging: a cursor names the last row that was seen, so a page costs the same wherever it is in the list.

Lists run from large to small, rows whose sort value is unknown come last. SQLite can seek an index for
`value <= ?` but not for an OR with `value IS NULL`, so a page is asked for in up to two phases.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import datetime
from types import UnionType
from typing import Any, NamedTuple, cast

_LARGEST = 1 << 63
"""One more than an integer of SQLite can be."""


class Phase(NamedTuple):
    """A condition that selects some of the rows behind the cursor, and its parameters."""

    condition: str
    parameters: tuple[Any, ...]


def encode_cursor(kind: str, *values: Any) -> str:
    """An opaque cursor: what list it belongs to, and the sort values of the last row."""
    return base64.urlsafe_b64encode(json.dumps([kind, *values]).encode()).decode().rstrip("=")


def decode_cursor(kind: str, shape: Sequence[type | UnionType], cursor: str | None) -> list[Any] | None:
    """The values in a cursor, of these types; raise ValueError when it is none of this list, whoever made it up."""
    if cursor is None:
        return None
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{cursor!r} is not a cursor") from error
    values = cast("list[Any]", found) if isinstance(found, list) else []
    fits = len(values) == len(shape) + 1 and all(map(_fits, values[1:], shape))
    if not fits or values[0] != kind:
        raise ValueError(f"{cursor!r} is not a cursor of this list")
    return values[1:]


def _fits(value: Any, kind: type | UnionType) -> bool:
    """Whether a value has its type, and SQLite takes it."""
    if isinstance(value, int):
        return isinstance(value, kind) and -_LARGEST <= value < _LARGEST
    return isinstance(value, kind) and not (
        isinstance(value, str) and any("\ud800" <= each <= "\udfff" for each in value)
    )


def phases(value: str, tie: str, last: list[Any] | None) -> list[Phase]:
    """The conditions that select, one after the other, what comes after `last` (sort value, then ties).

    Args:
        value: SQL of the sort value, which falls along the list.
        tie: SQL condition that holds for later rows of an equal sort value, with a `?` for each tie.
        last: Sort value and ties of the last row seen; None at the start.
    """
    if last is None:
        return [Phase(f"{value} IS NOT NULL", ()), Phase(f"{value} IS NULL", ())]
    known, *ties = last
    if known is None:
        return [Phase(f"{value} IS NULL AND {tie}", tuple(ties))]
    return [
        Phase(f"{value} <= ? AND ({value} < ? OR {tie})", (known, known, *ties)),
        Phase(f"{value} IS NULL", ()),
    ]


def aware_milliseconds(moment: datetime) -> int:
    """A time in a filter as the store keeps it; raise ValueError when it does not name its time zone."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} needs a time zone")
    return round(moment.timestamp() * 1000)
