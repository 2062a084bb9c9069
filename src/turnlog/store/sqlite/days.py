"""Usage by day: days that were added up before are read as sums (`usage_by_day`), all others row by row.

A day of the table is as it was added up: triggers delete what a write changes, in the transaction of that write.
Whoever has read many days row by row keeps them for the next one. The clocks of a zone are a whole number of quarter
hours ahead of UTC, and zones with equal clocks share their days; a day on which clocks change is never kept.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import closing, suppress
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Final, NamedTuple

from turnlog.store.connection import can_be_written, open_file
from turnlog.store.periods import shifts
from turnlog.store.sqlite.usage_rows import COLUMNS, Rows
from turnlog.store.write_lock import begin

_QUARTER_HOURS: Final = 96
"""Of a day."""

_CENTURY: Final = 36_525
"""Days. A damaged log may have any time, and the days between are too many to look at."""

_FEW: Final = 8
"""Days that are read row by row, because they have just changed, and not kept."""

_GROUPS: Final = ("model_key", "project_key", "owner_key", "agent")
_SUMMED: Final = tuple(COLUMNS.values())
_COLUMNS: Final = ", ".join(("level", "shift", "day", *_GROUPS, *_SUMMED))

_OF_SESSION: Final = "u.model_key, coalesce(s.project_key, 0), s.owner_key, s.agent"
"""`_GROUPS` of a row of `usage`."""

_LEVELS: Final[dict[str, int]] = {"model_key": 1, "project_key": 2}
"""The only column that is grouped by -> the level of these rows."""

_MERGED: Final = {**dict.fromkeys(_GROUPS, "0"), "agent": "''"}
"""The value of a column that is not grouped by."""


class Stretch(NamedTuple):
    """Quarter hours in which the clocks of a zone are the same number of quarter hours ahead of UTC."""

    begin: int
    end: int
    """Exclusive."""
    shift: int

    @property
    def whole_days(self) -> range:
        """The days of the zone that lie within."""
        first = -(-(self.begin + self.shift) // _QUARTER_HOURS)
        return range(first, max(first, (self.end + self.shift) // _QUARTER_HOURS))

    def start_of(self, day: int) -> int:
        """The quarter hour in which a day begins."""
        return day * _QUARTER_HOURS - self.shift


class Days(NamedTuple):
    """What a report reads."""

    kept: list[tuple[int, int, int]]
    """Shift, first and last day: what of these is in `usage_by_day`."""
    others: list[Stretch]
    """Read row by row."""
    missing: list[tuple[int, int]]
    """Shift and day of the whole days in `others` that have usage."""
    has_undated: bool

    def rows(self, needed: Set[str]) -> Rows:
        """The sums and the other rows as one table, with the column `day`, NULL where the time is unknown.

        Columns that name a model, project, owner or agent say so only if they are `needed`.
        """
        level = next((level for name, level in _LEVELS.items() if needed <= {name}), 0)
        summed = ", ".join(f"u.{name}" for name in _SUMMED)
        shown = "(u.quarter_hour + w.shift)"
        tables = [
            f"SELECT u.day, {', '.join(f'u.{name}' for name in _GROUPS)}, {summed}"
            f" FROM {_table(self.kept, 'shift', 'first_day', 'last_day')} w CROSS JOIN usage_by_day u"
            f" ON u.level = {level} AND u.shift = w.shift AND u.day BETWEEN w.first_day AND w.last_day",
            # SQLite rounds towards zero, and a time may lie before 1970.
            f"SELECT ({shown} - ({shown} % 96 + 96) % 96) / 96, {_OF_SESSION}, {summed}"
            f" FROM {_table(self.others, 'begin', 'until', 'shift')} w CROSS JOIN usage u"
            " ON u.quarter_hour >= w.begin AND u.quarter_hour < w.until AND u.quarter_hour <> 0"
            " CROSS JOIN sessions s ON s.key = u.session_key",
        ]
        if self.has_undated:
            tables.append(
                f"SELECT NULL, {_OF_SESSION}, {summed} FROM usage u CROSS JOIN sessions s ON s.key = u.session_key"
                " WHERE u.quarter_hour = 0"
            )
        return Rows(f"({' UNION ALL '.join(tables)}) u", "u", "", is_in_time=True)


def _table(rows: Sequence[tuple[int, ...]], *names: str) -> str:
    """SQL: rows as a table with these columns."""
    columns = ", ".join(f"json_extract(value, '$[{index}]') AS {name}" for index, name in enumerate(names))
    return f"(SELECT {columns} FROM json_each('{json.dumps(rows)}'))"


def find_days(connection: sqlite3.Connection, zone: tzinfo | None, since: int | None, until: int | None) -> Days | None:
    """What to read of usage from a quarter hour up to another; None if its days are too many to look at."""
    has_undated = (since is None or since <= 0) and (until is None or until > 0)
    stretches = _stretches(connection, zone, since, until)
    if stretches is None:
        return None
    found = Days([], [], [], has_undated)
    for stretch in stretches:
        days = stretch.whole_days
        if not days:
            found.others.append(stretch)
            continue
        known = _known(connection, stretch.shift, days)
        found.kept.append((stretch.shift, days[0], days[-1]))
        found.others.extend(_without(stretch, known))
        found.missing.extend((stretch.shift, day) for day in _used(connection, stretch, known))
    return found


def _stretches(
    connection: sqlite3.Connection, zone: tzinfo | None, since: int | None, until: int | None
) -> list[Stretch] | None:
    ends = _ends(connection)
    if ends is None:
        return []
    first, last = ends
    if last - first > _CENTURY * _QUARTER_HOURS:
        return None
    if since is not None:
        first = max(first, since)
    if until is not None:
        last = min(last, until - 1)
    if last < first:
        return []
    days = range(first // _QUARTER_HOURS - 1, last // _QUARTER_HOURS + 2)
    changes = [(days[0] * _QUARTER_HOURS, 0)] if zone is UTC else shifts(days, zone)
    begins = [begin for begin, _ in changes]
    ends_at = [*begins[1:], days[-1] * _QUARTER_HOURS + _QUARTER_HOURS]
    found = [Stretch(begin, end, shift) for (begin, shift), end in zip(changes, ends_at, strict=True)]
    # A day that a filter cuts is not a whole one; one that only ends after the last call is.
    if since is not None:
        found = [each._replace(begin=max(each.begin, since)) for each in found]
    if until is not None:
        found = [each._replace(end=min(each.end, until)) for each in found]
    return [each for each in found if each.begin < each.end]


def _ends(connection: sqlite3.Connection) -> tuple[int, int] | None:
    """The first and the last quarter hour with usage."""
    # 0 stands for an unknown time. SQLite looks up each of these at an end of the key.
    first, second, third, last = connection.execute(
        "SELECT (SELECT min(quarter_hour) FROM usage WHERE quarter_hour < 0),"
        " (SELECT min(quarter_hour) FROM usage WHERE quarter_hour > 0),"
        " (SELECT max(quarter_hour) FROM usage WHERE quarter_hour < 0),"
        " (SELECT max(quarter_hour) FROM usage WHERE quarter_hour > 0)"
    ).fetchone()
    begin = second if first is None else first
    end = third if last is None else last
    return None if begin is None else (begin, end)


def _known(connection: sqlite3.Connection, shift: int, days: range) -> list[int]:
    """The days that are kept, ascending."""
    found = connection.execute(
        "SELECT DISTINCT day FROM usage_by_day WHERE level = 1 AND shift = ? AND day BETWEEN ? AND ? ORDER BY day",
        (shift, days[0], days[-1]),
    )
    return [day for (day,) in found]


def _without(stretch: Stretch, known: Iterable[int]) -> Iterator[Stretch]:
    """What is left of a stretch without these days."""
    begin = stretch.begin
    for day in known:
        start = stretch.start_of(day)
        if begin < start:
            yield stretch._replace(begin=begin, end=start)
        begin = start + _QUARTER_HOURS
    if begin < stretch.end:
        yield stretch._replace(begin=begin)


def _used(connection: sqlite3.Connection, stretch: Stretch, known: Sequence[int]) -> list[int]:
    """The whole days with usage that are not kept."""
    missing = sorted({*stretch.whole_days}.difference(known))
    found = connection.execute(
        "SELECT w.value FROM json_each(?1) w WHERE EXISTS (SELECT 1 FROM usage u WHERE u.quarter_hour <> 0"
        " AND u.quarter_hour >= w.value * 96 - ?2 AND u.quarter_hour < w.value * 96 - ?2 + 96)",
        (json.dumps(missing), stretch.shift),
    )
    return [day for (day,) in found]


def is_worth_keeping(days: Days) -> bool:
    """Whether so many days were read row by row that the next report should find their sums."""
    return len(days.missing) > _FEW


def keep(path: Path, days: Days) -> None:
    """Keep the sums of the missing days for the next report, unless the store cannot be written now."""
    if not can_be_written(path):
        return
    with suppress(sqlite3.Error), closing(open_file(path, "rw")) as connection:
        connection.execute("PRAGMA synchronous = NORMAL")
        # Whoever asks waits for no other writer.
        begin(connection, 0)
        _add_up(connection, days.missing)
        connection.execute("COMMIT")


def _add_up(connection: sqlite3.Connection, missing: Sequence[tuple[int, int]]) -> None:
    """Add up the missing days as they are now."""
    sums = ", ".join(f"sum(u.{name})" for name in _SUMMED)
    days = _table(missing, "shift", "day")
    # Another process may have kept a day since it was found missing.
    connection.execute(
        f"INSERT INTO usage_by_day ({_COLUMNS}) SELECT 0, w.shift, w.day, {_OF_SESSION}, {sums} FROM {days} w"
        " CROSS JOIN usage u ON u.quarter_hour >= w.day * 96 - w.shift AND u.quarter_hour < w.day * 96 - w.shift + 96"
        " AND u.quarter_hour <> 0 CROSS JOIN sessions s ON s.key = u.session_key"
        " WHERE NOT EXISTS (SELECT 1 FROM usage_by_day k WHERE (k.level, k.shift, k.day) = (0, w.shift, w.day))"
        f" GROUP BY w.shift, w.day, {_OF_SESSION}"
    )
    for name, level in _LEVELS.items():
        groups = ", ".join(f"u.{each}" if each == name else _MERGED[each] for each in _GROUPS)
        connection.execute(
            f"INSERT INTO usage_by_day ({_COLUMNS}) SELECT {level}, w.shift, w.day, {groups}, {sums} FROM {days} w"
            " CROSS JOIN usage_by_day u ON (u.level, u.shift, u.day) = (0, w.shift, w.day) WHERE NOT EXISTS"
            f" (SELECT 1 FROM usage_by_day k WHERE (k.level, k.shift, k.day) = ({level}, w.shift, w.day))"
            f" GROUP BY w.shift, w.day, u.{name}"
        )
