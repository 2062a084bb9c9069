"""The hours, days, weeks and months of a time zone, and the blocks of Claude's limits, for usage reports."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

QUARTER_HOUR: Final = timedelta(minutes=15)
"""Every zone of today is a whole number of these from UTC, so its hours and days are made of whole ones."""

BLOCK: Final = timedelta(hours=5)
"""Claude limits what is used in so long, from the full hour of the first call."""

LONGEST_GAP: Final = timedelta(minutes=10)
"""The longest time between two messages in which a session counts as active."""

_HOUR: Final = timedelta(hours=1)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_FIRST: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // QUARTER_HOUR
_LAST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // QUARTER_HOUR
"""A damaged log may have a time that no calendar has: it counts as the first or last of all."""


def date_of(day: int) -> date:
    """The date of a day since 1970; the first or the last that a calendar has for one beyond."""
    return date.fromordinal(min(max(_EPOCH.toordinal() + day, date.min.toordinal()), date.max.toordinal()))


def start_of(quarter_hour: int, zone: tzinfo | None) -> datetime:
    """When a quarter hour since 1970 begins, in a zone (None: this machine's)."""
    start = _EPOCH + min(max(quarter_hour, _FIRST), _LAST) * QUARTER_HOUR
    try:
        return start.astimezone(zone)
    except OverflowError:  # in the years 1 and 9999
        return start


def shifts(days: Iterable[int], zone: tzinfo | None) -> list[tuple[int, int]]:
    """By how many quarter hours the clocks of a zone (None: this machine's) are ahead of UTC.

    For days since 1970 (UTC, ascending): the first quarter hour and the shift from then on, for all quarter hours of
    these days.
    """
    found: list[tuple[int, int]] = []
    for day in days:
        first, last = day * _OF_DAY, day * _OF_DAY + _OF_DAY - 1
        begin, end = _shift(first, zone), _shift(last, zone)
        if not found or found[-1][1] != begin:
            found.append((first, begin))
        if begin != end:
            changed = bisect_left(range(first, last), True, key=lambda each: _shift(each, zone) != begin)
            found.append((first + changed, end))
    return found


def shown(quarter_hour: str, shifts: Sequence[tuple[int, int]]) -> str:
    """SQL: the quarter hour that the clocks of a zone show; `shifts` are those of the function above."""
    # A zone changes its clocks a few times a year, so one CASE is enough for all rows.
    *others, (_, last) = shifts or [(0, 0)]
    starts = [start for start, _ in shifts[1:]]
    cases = " ".join(
        f"WHEN {quarter_hour} < {until} THEN {shift}" for (_, shift), until in zip(others, starts, strict=True)
    )
    return f"({quarter_hour} + {f'CASE {cases} ELSE {last} END' if cases else last})"


_OF_DAY: Final = timedelta(days=1) // QUARTER_HOUR


def _shift(quarter_hour: int, zone: tzinfo | None) -> int:
    return (start_of(quarter_hour, zone).utcoffset() or timedelta()) // QUARTER_HOUR


def _hour(at: datetime) -> str:
    return block_name(at.replace(minute=0))


def block_name(start: datetime) -> str:
    """The name of the block that begins then: at a full hour of UTC, which is none in every zone."""
    # The offset tells apart the two hours of the night in which summer time ends.
    return start.isoformat(timespec="minutes").replace("+00:00", "Z")


def _week(day: date) -> str:
    return date.fromordinal(day.toordinal() - day.weekday()).isoformat()


def _month(day: date) -> str:
    return day.isoformat()[:7]


DATE_PERIODS: Final[dict[str, Callable[[date], str]]] = {"day": date.isoformat, "week": _week, "month": _month}
"""Kind of period made of days -> the name of the one that contains a day."""

PERIODS: Final[dict[str, Callable[[datetime], str]]] = {
    "hour": _hour,
    **{kind: lambda at, name=name: name(at.date()) for kind, name in DATE_PERIODS.items()},
}
"""Kind of period -> the name of the one that contains a time of its zone."""


def block_starts(quarter_hours: Iterable[int]) -> list[int]:
    """The first quarter hour of each block, given in ascending order those in which calls were made."""
    starts: list[int] = []
    for quarter_hour in quarter_hours:
        if not starts or quarter_hour >= starts[-1] + BLOCK // QUARTER_HOUR:
            starts.append(quarter_hour - quarter_hour % (_HOUR // QUARTER_HOUR))
    return starts
