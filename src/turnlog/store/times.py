"""Times as people write them, in commands and in queries: `yesterday`, `last week`, `2026-11`, `7d`."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

TIMES: Final = (
    "write a day (2026-11-20), a week (2026-W47), a month (2026-11), a year, today, yesterday, this or last week, "
    "month or year, how long ago (7d, 12h, 2w) or a time (2026-11-20T14:30)"
)
"""What can be written, for errors."""


def moment_of(text: str, *, end: bool = False, zone: tzinfo | None = None) -> datetime:
    """The time that a text names, with a time zone: the beginning of a day, a month or a week, with `end` its end.

    Days, and times without a zone, are those of `zone` (None: this machine's). Raises ValueError, which says what can
    be written, for a text that names no time.
    """
    # Times of ISO 8601 may be written with a small t and z.
    written = " ".join(text.split()).upper()
    try:
        if (ago := moment_ago(written)) is not None:
            return ago
        if (days := days_of(written, datetime.now(UTC).astimezone(zone).date())) is not None:
            return _end_of(days.last, zone) if end else midnight(days.first, zone)
        moment = datetime.fromisoformat(written)
        return moment.replace(tzinfo=zone) if moment.tzinfo is None and zone is not None else moment.astimezone(zone)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a time: {TIMES}") from None


def check_period(since: datetime | None, until: datetime | None, *, may_be_empty: bool = False) -> None:
    """Raises ValueError for a period that ends before it begins: an answer would read as if nothing had happened.

    The end of yesterday is the beginning of today, so a period without any time in it is refused, too, unless it
    `may_be_empty`.
    """
    if since is not None and until is not None and (until < since or (until == since and not may_be_empty)):
        raise ValueError("the period ends before it begins: until is before since")


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
    if _WEEK.fullmatch(text):
        return _week(date.fromisoformat(text))
    if _OTHER_DATE.fullmatch(text):
        return _day(date.fromisoformat(text))
    return None


def is_day(text: str) -> bool:
    """Whether a text names a day by its date."""
    written = text.strip().upper()
    date_of = _DATE.fullmatch(written)
    return date_of[3] is not None if date_of else _OTHER_DATE.fullmatch(written) is not None


def moment_ago(text: str) -> datetime | None:
    """The moment (UTC) so long ago: `12h`, `7d`, `2w`, `3m` (of 30 days), `1y` (of 365); None for another text.

    Raises OverflowError for a moment before the year 1.
    """
    ago = _AGO.fullmatch(text)
    return None if ago is None else datetime.now(UTC) - int(ago[1]) * _LENGTHS[ago[2].lower()]


def _end_of(day: date, zone: tzinfo | None) -> datetime:
    # No day comes after the last.
    return datetime.max.replace(tzinfo=UTC) if day == date.max else midnight(day + timedelta(days=1), zone)


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

_RELATIVE = re.compile(r"(this|last)[ _-]?(week|month|year)", re.IGNORECASE)

_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?")

_WEEK = re.compile(r"\d{4}-?W\d\d")

_OTHER_DATE = re.compile(r"\d{8}|\d{4}-?W\d\d-?\d")
"""ISO 8601 writes a day so, too."""

_AGO = re.compile(r"(\d{1,9})([hdwmy])", re.IGNORECASE)
