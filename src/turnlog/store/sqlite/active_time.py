"""How long sessions were active on each day: the time between their messages, without long gaps.

Most sessions are of one day, and the store knows how long each was active. Only of the others the times of messages are
read. Subagents are left out: the session that started them waits meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final

from turnlog.store.periods import LONGEST_GAP
from turnlog.store.sqlite.reading import aware_milliseconds
from turnlog.store.usage_filter import UsageFilter

_LIMIT: Final = LONGEST_GAP // timedelta(milliseconds=1)

_CONDITIONS: Final = {
    "agent": "s.agent = ?",
    "project": "s.project_key IN (SELECT key FROM projects WHERE path = ? OR name = ?)",
    "session": "s.agent || ':' || s.external_id = ?",
    **{
        name: f"s.owner_key IN (SELECT key FROM owners WHERE {name} = ?)"
        for name in ("user", "team", "task", "machine")
    },
}

_TIMES: Final = (
    "SELECT x.session_key, m.created_at FROM json_each(?) k CROSS JOIN memberships x ON x.session_key = k.value"
    " CROSS JOIN messages m ON m.key = x.message_key WHERE x.copied = 0 AND m.created_at IS NOT NULL ORDER BY 1, 2"
)


def active_by_day(connection: sqlite3.Connection, wanted: UsageFilter, zone: tzinfo | None) -> Mapping[date, int]:
    """Day of a zone (None: this machine's) -> milliseconds, of all sessions that a filter chooses together.

    A filter by model chooses calls, and is not looked at.
    """
    since = None if wanted.since is None else aware_milliseconds(wanted.since)
    until = None if wanted.until is None else aware_milliseconds(wanted.until)
    first, last = since or _BEFORE_ALL, _AFTER_ALL if until is None else until
    day_of = _days(zone)
    found: Counter[date] = Counter()
    of_several_days: list[int] = []
    for key, begin, end, active in _sessions(connection, wanted):
        if begin is None or end is None:
            of_several_days.append(key)
        elif begin < last and end >= first:
            if begin >= first and end < last and day_of(begin) == day_of(end):
                found[day_of(begin)] += active
            else:
                of_several_days.append(key)
    for begin, end in _stretches(connection, of_several_days):
        begin, end = max(begin, first), min(end, last)
        if begin < end:
            _add(found, begin, end, day_of, zone)
    return found


_BEFORE_ALL, _AFTER_ALL = -(1 << 62), 1 << 62


def _sessions(connection: sqlite3.Connection, wanted: UsageFilter) -> list[tuple[int, int | None, int | None, int]]:
    """Key, first and last time, and active time of sessions without subagents."""
    conditions = ["s.active_ms IS NOT NULL", "s.relationship IS NOT 'subagent'"]
    parameters: list[Any] = []
    for name, condition in _CONDITIONS.items():
        value = getattr(wanted, name)
        if value is not None:
            conditions.append(condition)
            parameters += [value] * condition.count("?")
    return connection.execute(
        f"SELECT s.key, s.created_at, s.updated_at, s.active_ms FROM sessions s WHERE {' AND '.join(conditions)}",
        parameters,
    ).fetchall()


def _stretches(connection: sqlite3.Connection, keys: Iterable[int]) -> Iterable[tuple[int, int]]:
    """The times of neighbouring messages of each session between which it was active."""
    last_key = last_time = -1
    for key, time in connection.execute(_TIMES, (f"[{','.join(map(str, keys))}]",)):
        if key == last_key and 0 < time - last_time <= _LIMIT:
            yield last_time, time
        last_key, last_time = key, time


def _add(found: Counter[date], begin: int, end: int, day_of: Callable[[int], date], zone: tzinfo | None) -> None:
    """Add a stretch, which is shorter than a day, to the day or the two days that it is in."""
    first, last = day_of(begin), day_of(end)
    if first != last:
        midnight = int(_midnight(last, zone).timestamp() * 1000)
        found[first] += midnight - begin
        begin = midnight
    found[last] += end - begin


def _midnight(day: date, zone: tzinfo | None) -> datetime:
    start = datetime(day.year, day.month, day.day, tzinfo=zone)  # None is this machine's zone
    return start.astimezone() if zone is None else start


def _days(zone: tzinfo | None) -> Callable[[int], date]:
    """The day of a time, as the clocks of a zone show it. Remembered by quarter hours: every zone has whole ones."""
    known: dict[int, date] = {}

    def day_of(time: int) -> date:
        quarter_hour = time // _QUARTER_HOUR
        day = known.get(quarter_hour)
        if day is None:
            try:
                at = datetime.fromtimestamp(quarter_hour * _QUARTER_HOUR / 1000, UTC)
                day = at.astimezone(zone).date()
            except (ValueError, OverflowError, OSError):  # of a damaged log
                day = date.max
            known[quarter_hour] = day
        return day

    return day_of


_QUARTER_HOUR: Final = 900_000
