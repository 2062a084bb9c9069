"""What the readings of logs have in common: the line they are at, what is wrong with it, and small rules of order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, TypeVar

from turnlog.agents.base import Changes, Diagnostic
from turnlog.model import ToolResult

ValueT = TypeVar("ValueT")


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


_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def aware(moment: datetime) -> datetime:
    """The moment in UTC; one without a zone is taken as UTC. Before the year 1 and after 9999 there is no time."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return _FIRST if moment.year == _FIRST.year else _LAST


def in_order_of_arrival(results: Sequence[ToolResult]) -> list[ToolResult]:
    """Results by the time they came; those whose time is not known last."""
    return sorted(results, key=_arrival)


def _arrival(result: ToolResult) -> tuple[bool, float, str]:
    moment = result.completed_at
    return (moment is None, moment.timestamp() if moment else 0.0, result.id)


def keep_newest(window: dict[str, ValueT], key: str, value: ValueT, size: int) -> str | None:
    """Add to a window of so many entries; the key of the one that fell out, if any."""
    window[key] = value
    if len(window) <= size:
        return None
    oldest = next(iter(window))
    del window[oldest]
    return oldest
