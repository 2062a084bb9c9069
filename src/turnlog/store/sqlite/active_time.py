"""How long sessions were active on each day: the time between their messages, without long gaps.

Most sessions are of one day, and the store knows how long each was active. Only of the others the times of messages are
read. Subagents are left out: the session that started them waits meanwhile.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Any, Final

from turnlog.store.periods import LONGEST_GAP
from turnlog.store.sqlite.usage_rows import quarter_hours
from turnlog.store.usage_filter import UsageFilter

_CONDITIONS: Final = {
    "agent": "s.agent = ?",
    "project": "s.project_key IN (SELECT key FROM projects WHERE path = ? OR name = ?)",
    "session": "s.agent || ':' || s.external_id = ?",
    **{
        name: f"s.owner_key IN (SELECT key FROM owners WHERE {name} = ?)"
        for name in ("user", "team", "task", "machine")
    },
}

_QUARTER_HOUR: Final = 900_000
"""Milliseconds."""

_LIMIT: Final = LONGEST_GAP // timedelta(milliseconds=1)

# One row of a JSON array for each session: the module `sqlite3` takes longer for a row than SQLite to find it, and a
# window of SQL twice as long as the loop over them.
_TIMES: Final = (
    "SELECT (SELECT json_group_array(m.created_at) FROM memberships x CROSS JOIN messages m ON m.key = x.message_key"
    " WHERE x.session_key = s.key AND x.copied = 0 AND m.created_at IS NOT NULL)"
    " FROM sessions s WHERE s.key IN (SELECT value FROM json_each(?))"
)


def active_by_day(connection: sqlite3.Connection, wanted: UsageFilter, zone: tzinfo | None) -> Mapping[date, int]:
    """Day of a zone (None: this machine's) -> milliseconds, of all sessions that a filter chooses together.

    A filter by model chooses calls, and is not looked at. Its times count by quarter hours, as in all of a report.
    """
    since, until = quarter_hours(wanted)
    first = _BEFORE_ALL if since is None else since * _QUARTER_HOUR
    last = _AFTER_ALL if until is None else until * _QUARTER_HOUR
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
    for quarter_hour, milliseconds in _by_quarter_hour(connection, of_several_days).items():
        if first <= quarter_hour * _QUARTER_HOUR < last:
            found[day_of(quarter_hour * _QUARTER_HOUR)] += milliseconds
    return found


def _by_quarter_hour(connection: sqlite3.Connection, keys: Iterable[int]) -> Mapping[int, int]:
    """Quarter hour since 1970 -> milliseconds between the messages of these sessions, without long gaps."""
    found: defaultdict[int, int] = defaultdict(int)
    asked = json.dumps(list(keys))
    for (listed,) in connection.execute(_TIMES, (asked,)) if asked != "[]" else ():
        times: list[int] = json.loads(listed or "[]")
        times.sort()
        for begin, end in pairwise(times):
            gap = end - begin
            if 0 < gap <= _LIMIT:
                quarter_hour, passed = divmod(end, _QUARTER_HOUR)
                # A gap is within two quarter hours at most.
                if gap > passed:
                    found[quarter_hour - 1] += gap - passed
                    gap = passed
                found[quarter_hour] += gap
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
