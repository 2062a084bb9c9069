"""How long sessions were active on each day: the time between their messages, without long gaps.

Most sessions are of one day, and the store knows how long each was active. The others are added up by quarter hours
from the times of their messages, and these sums are kept until the session changes (`kept_activity`). Subagents are
left out: the session that started them waits meanwhile.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import date, timedelta, tzinfo
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from turnlog.store.connection import can_be_written, open_file
from turnlog.store.periods import LONGEST_GAP, shifts
from turnlog.store.sqlite.usage_rows import quarter_hours
from turnlog.store.usage_filter import UsageFilter
from turnlog.store.write_lock import begin

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

_OF_DAY: Final = 96

_EPOCH: Final = date(1970, 1, 1).toordinal()
_FIRST_DAY: Final = date.min.toordinal() - _EPOCH
_LAST_DAY: Final = date.max.toordinal() - _EPOCH

_LIMIT: Final = LONGEST_GAP // timedelta(milliseconds=1)

_FEW: Final = 8
"""Sessions that are added up anew, because they have just changed, and not kept."""

# One row of a JSON array for each session: the module `sqlite3` takes longer for a row than SQLite to find it, and a
# window of SQL twice as long as the loop over them.
_TIMES: Final = (
    "SELECT s.key, s.changed_seq, (SELECT json_group_array(m.created_at) FROM memberships x CROSS JOIN messages m"
    " ON m.key = x.message_key WHERE x.session_key = s.key AND x.copied = 0 AND m.created_at IS NOT NULL)"
    " FROM sessions s WHERE s.key IN (SELECT value FROM json_each(?))"
)

_KEPT: Final = (
    "SELECT s.key, k.quarter_hours FROM kept_activity k CROSS JOIN sessions s ON s.key = k.session_key"
    " WHERE k.changed_seq = s.changed_seq AND k.session_key IN (SELECT value FROM json_each(?))"
)


class Activity(NamedTuple):
    """What `active_by_day` has found."""

    by_day: Mapping[date, int]
    """Day -> milliseconds."""
    added_up: Sequence[tuple[int, int, str]]
    """Rows of `kept_activity` that it did not find there."""


def active_by_day(
    connection: sqlite3.Connection, wanted: UsageFilter, zone: tzinfo | None, *, reads_kept: bool
) -> Activity:
    """Time of all sessions that a filter chooses together, by day of a zone (None: this machine's).

    A filter by model chooses calls, and is not looked at. Its times count by quarter hours, as in all of a report.
    """
    since, until = quarter_hours(wanted)
    first = _BEFORE_ALL if since is None else since
    last = _AFTER_ALL if until is None else until
    day_of = _Days(zone)
    found: defaultdict[int, int] = defaultdict(int)
    of_several_days: list[int] = []
    for key, created_at, updated_at, active in _sessions(connection, wanted):
        if created_at is None or updated_at is None:
            of_several_days.append(key)
            continue
        begun, ended = created_at // _QUARTER_HOUR, updated_at // _QUARTER_HOUR
        if begun < last and ended >= first:
            day = day_of[begun]
            if begun >= first and ended < last and day == day_of[ended]:
                found[day] += active
            else:
                of_several_days.append(key)
    kept = dict(connection.execute(_KEPT, (json.dumps(of_several_days),)).fetchall()) if reads_kept else {}
    added_up = list(_add_up(connection, [key for key in of_several_days if key not in kept]))
    for listed in (*kept.values(), *(sums for _, _, sums in added_up)):
        sums: list[int] = json.loads(listed)
        for quarter_hour, milliseconds in zip(sums[::2], sums[1::2], strict=True):
            if first <= quarter_hour < last:
                found[day_of[quarter_hour]] += milliseconds
    return Activity({date.fromordinal(_EPOCH + day): active for day, active in found.items()}, added_up)


def is_worth_keeping(activity: Activity) -> bool:
    """Whether so many sessions were added up that the next report should find their sums."""
    return len(activity.added_up) > _FEW


def keep(path: Path, activity: Activity) -> None:
    """Keep what was added up for the next report, unless the store cannot be written now."""
    if not can_be_written(path):
        return
    with suppress(sqlite3.Error), closing(open_file(path, "rw")) as connection:
        connection.execute("PRAGMA synchronous = NORMAL")
        # Whoever asks waits for no other writer.
        begin(connection, 0)
        # A session may have been changed or forgotten since.
        connection.executemany(
            "INSERT OR REPLACE INTO kept_activity (session_key, changed_seq, quarter_hours) SELECT key, changed_seq, ?3"
            " FROM sessions WHERE key = ?1 AND changed_seq = ?2",
            activity.added_up,
        )
        connection.execute("COMMIT")


def _add_up(connection: sqlite3.Connection, keys: Sequence[int]) -> Iterator[tuple[int, int, str]]:
    """Rows of `kept_activity`: milliseconds between the messages of each session, without long gaps."""
    for key, changed_seq, listed in connection.execute(_TIMES, (json.dumps(keys),)) if keys else ():
        found: defaultdict[int, int] = defaultdict(int)
        times: list[int] = json.loads(listed)
        times.sort()
        for begun, ended in pairwise(times):
            gap = ended - begun
            if 0 < gap <= _LIMIT:
                quarter_hour, passed = divmod(ended, _QUARTER_HOUR)
                # A gap is within two quarter hours at most.
                if gap > passed:
                    found[quarter_hour - 1] += gap - passed
                    gap = passed
                found[quarter_hour] += gap
        yield key, changed_seq, json.dumps([each for pair in found.items() for each in pair])


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


class _Days(dict[int, int]):
    """Quarter hour since 1970 -> day since 1970, as the clocks of a zone show it."""

    def __init__(self, zone: tzinfo | None) -> None:
        super().__init__()
        self._zone = zone
        self._clocks: dict[int, list[tuple[int, int]]] = {}

    def __missing__(self, quarter_hour: int) -> int:
        utc_day = quarter_hour // _OF_DAY
        try:
            clocks = self._clocks.get(utc_day) or self._clocks.setdefault(utc_day, shifts((utc_day,), self._zone))
            shift = next(shift for begin, shift in reversed(clocks) if begin <= quarter_hour)
            day = (quarter_hour + shift) // _OF_DAY
        except OverflowError:  # of a damaged log
            day = _LAST_DAY
        if not _FIRST_DAY <= day <= _LAST_DAY:
            day = _LAST_DAY
        self[quarter_hour] = day
        return day
