"""Times as people write them, in commands and in queries: `yesterday`, `last week`, `2026-11`, `7d`."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

TIMES: Final = (
    "write a day (2026-11-20), a month (2026-11), a year, today, yesterday, this or last week, month or year, "
    "how long ago (7d, 12h, 2w) or a time (2026-11-20T14:30)"
)
"""What can be written, for errors."""


class Days(NamedTuple):
    """A day, a week, a month or a year."""

    first: date
    last: date


def days_of(text: str, today: date) -> Days | None:
    """The days that a text names; None if it names none. Weeks begin on Monday.

    Raises ValueError for a month or a day that no calendar has.
    """
    if relative := _RELATIVE.fullmatch(text):
        around = _AROUND[relative[2].lower()]
        days = around(today)
        return around(days.first - timedelta(days=1)) if relative[1].lower() == "last" else days
    if text.lower() in _DAYS_AGO:
        return _day(today - timedelta(days=_DAYS_AGO[text.lower()]))
    if written := _DATE.fullmatch(text):
        year, month, day = written.groups()
        around = _day if day else _month if month else _year
        return around(date(int(year), int(month or 1), int(day or 1)))
    return None


def moment_ago(text: str) -> datetime | None:
    """The moment (UTC) so long ago: `12h`, `7d`, `2w`, `3m` (of 30 days), `1y` (of 365); None for another text.

    Raises OverflowError for a moment before the year 1.
    """
    ago = _AGO.fullmatch(text)
    return None if ago is None else datetime.now(UTC) - int(ago[1]) * _LENGTHS[ago[2].lower()]


def midnight(day: date, zone: tzinfo | None = None) -> datetime:
    """When a day begins in a zone (None: this machine's). Raises OverflowError beside the years 1 and 9999."""
    start = datetime.combine(day, time(), zone)
    if zone is not None:
        return start
    shown = start.astimezone()
    # Where the clocks are put forward at midnight, Python takes it for an hour before the day.
    return shown if shown.date() == day else start.replace(fold=1).astimezone()


def _day(day: date) -> Days:
    return Days(day, day)


def _week(day: date) -> Days:
    monday = day - timedelta(days=day.weekday())
    return Days(monday, monday + timedelta(days=6))


def _month(day: date) -> Days:
    return Days(day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1]))


def _year(day: date) -> Days:
    return Days(date(day.year, 1, 1), date(day.year, 12, 31))


_AROUND: Final[dict[str, Callable[[date], Days]]] = {"week": _week, "month": _month, "year": _year}
"""Unit -> the one that a day is in."""

_DAYS_AGO: Final = {"today": 0, "yesterday": 1}

_LENGTHS: Final = {
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "m": timedelta(days=30),
    "y": timedelta(days=365),
}

_RELATIVE = re.compile(r"(this|last)[ -]?(week|month|year)", re.IGNORECASE)

_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?")

_AGO = re.compile(r"(\d{1,9})([hdwmy])", re.IGNORECASE)
