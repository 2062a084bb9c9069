"""Quarter hours as the clocks of a zone show them, and the sessions that were active in an hour of the week."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import Final

from turnlog.store.base import HourOfWeek
from turnlog.store.insights import Granularity
from turnlog.store.periods import shifts, shown
from turnlog.store.sqlite.call_figures import QUARTER_HOUR, Chosen
from turnlog.store.sqlite.reading import aware_milliseconds


class Clock:
    """Expressions of SQL for the hour, day and week of a quarter hour, as the clocks of a zone show it.

    Quarter hours are positive: SQLite rounds towards zero.
    """

    def __init__(self, connection: sqlite3.Connection, chosen: Chosen, zone: tzinfo | None) -> None:
        self._shifts = shifts(_days(connection, chosen._replace(sessions=None)), zone)

    @property
    def name(self) -> str:
        """The same for all clocks that show the same."""
        return str([self._shifts[0][1], *self._shifts[1:]] if self._shifts else [])

    def shown(self, quarter_hour: str) -> str:
        """The quarter hour that clocks show."""
        return shown(quarter_hour, self._shifts)

    def hour_of_week(self, quarter_hour: str) -> str:
        """0 is the first hour of Monday."""
        return f"({self.shown(quarter_hour)} / 4 + {_THURSDAY * 24}) % 168"

    def period(self, quarter_hour: str, granularity: Granularity) -> str:
        """The day since 1970, or the Monday of the week."""
        day = f"({self.shown(quarter_hour)} / 96)"
        return day if granularity == "day" else f"({day} - ({day} + {_THURSDAY}) % 7)"


def _days(connection: sqlite3.Connection, in_time: Chosen) -> Iterable[int]:
    """Days since 1970 that hold all that a report shows, ascending; those without anything may be among them."""
    times = ("created_at", 96 * QUARTER_HOUR, f"messages WHERE {TYPED} AND {in_time.of_times('', 'created_at')}")
    totals = ("quarter_hour", 96, f"usage WHERE quarter_hour > 0 AND {in_time.of_totals()}")
    # One subquery an end: SQLite looks up a single minimum or maximum in an index.
    ends = [
        f"(SELECT {end}({time}) FROM {rows}) / {unit}" for time, unit, rows in (times, totals) for end in ("min", "max")
    ]
    known = [day for day in connection.execute(f"SELECT {', '.join(ends)}").fetchone() if day is not None]
    if not known or max(known) - min(known) < _CENTURY:
        return range(min(known), max(known) + 1) if known else ()
    # A damaged log may have any time, and the days between are too many to look at.
    union = " UNION ".join(f"SELECT {time} / {unit} FROM {rows}" for time, unit, rows in (times, totals))
    return [day for (day,) in connection.execute(f"{union} ORDER BY 1")]


_CENTURY: Final = 36_525
"""Days."""

_THURSDAY: Final = 3
"""The weekday of 1970-01-01, from Monday."""

TYPED: Final = "(origin = 'prompt' OR origin = 'command' OR origin = 'shell') AND created_at > 0"
"""Messages that a person typed, as the index of them says it."""


def in_quarter_hours(since: datetime | None, until: datetime | None) -> Chosen:
    """All sessions, from a quarter hour up to another."""
    return Chosen(
        sessions=None,
        since=None if since is None else aware_milliseconds(since) // QUARTER_HOUR,
        # Rounded up: totals have no finer times, so a quarter hour that has begun counts whole.
        until=None if until is None else -(-aware_milliseconds(until) // QUARTER_HOUR),
        values={},
    )


def active_in(connection: sqlite3.Connection, hour: HourOfWeek, chosen: Chosen) -> str:
    """A query of the keys of the sessions that have a prompt or a model call in this hour of a week."""
    clock = Clock(connection, chosen, hour.zone)
    wanted = (hour.weekday - 1) * 24 + hour.hour
    called, typed = clock.hour_of_week("quarter_hour"), clock.hour_of_week(f"(created_at / {QUARTER_HOUR})")
    return (
        f"SELECT session_key FROM usage WHERE quarter_hour > 0 AND calls > 0 AND {chosen.of_totals()}"
        f" AND {called} = {wanted:d} UNION SELECT billed_key FROM messages WHERE {TYPED} AND billed_key IS NOT NULL"
        f" AND {chosen.of_times('billed_key', 'created_at')} AND {typed} = {wanted:d}"
    )
