"""What the readings of logs have in common: the line they are at, what is wrong with it, and small rules of order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec import Raw

from turnlog.agents.changes import Changes, Diagnostic
from turnlog.model import ToolResult
from turnlog.model.merge import arrival_order

ValueT = TypeVar("ValueT")

REPLACED = "bytes that are not UTF-8 became U+FFFD"

_LARGEST_FIELD = 4096
_MOST_LEVELS = 100


class LineReading:
    """One feed: the line that is being read, and what all lines have brought so far."""

    def __init__(self, changes: Changes) -> None:
        """Begin before the first line."""
        self.changes = changes
        self.json = b""
        """The line's JSON."""
        self.position = 0
        """Byte offset of the line in its source."""
        self.length = 0
        self.line_number = 0

    def tell(self, reason: str, severity: Literal["error", "note"] = "error", json_path: str | None = None) -> None:
        """A diagnostic about the line."""
        self.changes.diagnostics.append(
            Diagnostic(
                offset=self.position,
                length=self.length,
                line=self.line_number,
                reason=reason,
                json_path=json_path,
                severity=severity,
            )
        )

    def tell_of_bytes(self) -> None:
        """A note where the line is not UTF-8. The typed decoder passes over such bytes in what is decoded later."""
        if self.json.isascii():
            return
        try:
            self.json.decode()
        except UnicodeDecodeError:
            self.tell(REPLACED, "note")


_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def aware(moment: datetime) -> datetime:
    """The moment in UTC; one without a zone is taken as UTC. Before the year 1 and after 9999 there is no time."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return _FIRST if moment.year == _FIRST.year else _LAST


def names_of(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The names of a record's fields, as its JSON has them."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind))


def other_fields(fields: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Metadata with those of a record's fields that are not known (R-C11): `{"other_fields": {…}}`, or nothing.

    What is larger than 4 KB stays in the archived record, and its size is told; so does what `value_of` leaves out.
    """
    others = {name: _small(value) for name, value in fields.items() if name not in known}
    found = {name: value for name, value in others.items() if value is not None}
    return {"other_fields": found} if found else {}


def _small(value: Any) -> Any:
    json = bytes(value) if isinstance(value, Raw) else msgspec.json.encode(value)
    return {"bytes": len(json)} if len(json) > _LARGEST_FIELD else value_of(json)


def value_of(json: bytes | Raw) -> Any:
    """What sound JSON says; its size where Python holds no such number, or whoever walks through it may not get out."""
    try:
        value = msgspec.json.decode(json)
    except (msgspec.DecodeError, RecursionError):
        return {"bytes": len(bytes(json))}
    return value if _levels(value) <= _MOST_LEVELS else {"bytes": len(bytes(json))}


def _levels(value: Any) -> int:
    """How deep a value is nested, up to one more than may be."""
    inside = [value]
    for level in range(_MOST_LEVELS + 1):
        if not inside:
            return level
        inside = [inner for each in inside for inner in _items(each)]
    return _MOST_LEVELS + 1


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def in_order_of_arrival(results: Sequence[ToolResult]) -> list[ToolResult]:
    """Results by the time they came; those whose time is not known last."""
    return sorted(results, key=arrival_order)


def keep_newest(window: dict[str, ValueT], key: str, value: ValueT, size: int) -> str | None:
    """Add to a window of so many entries; the key of the one that fell out, if any."""
    window[key] = value
    if len(window) <= size:
        return None
    oldest = next(iter(window))
    del window[oldest]
    return oldest
