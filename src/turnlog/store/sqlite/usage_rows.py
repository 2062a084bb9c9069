"""Rows of the table `usage`, the totals that every write updates: what a filter chooses, their sums, and blocks.

It imports neither dataclasses nor msgspec: a status line is asked for after every answer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from turnlog.store.periods import BLOCK, QUARTER_HOUR
from turnlog.store.sqlite.reading import aware_milliseconds
from turnlog.store.usage_filter import UsageFilter

_QUARTER_HOUR_MILLISECONDS: Final = QUARTER_HOUR // timedelta(milliseconds=1)

COLUMNS: dict[str, str] = {
    "calls": "calls",
    "unknown_calls": "unknown_calls",
    "covered_calls": "covered_calls",
    "session_totals": "session_totals",
    "unpriced_calls": "unpriced_calls",
    "lower_bound_calls": "lower_bound",
    "input": "input",
    "cache_read": "cache_read",
    "cache_write_5m": "cache_write_5m",
    "cache_write_1h": "cache_write_1h",
    "cache_write": "cache_write",
    "output": "output",
    "reasoning": "reasoning",
    "tool_prompt": "tool_prompt",
    "cost": "cost",
    "reported_cost": "reported_cost",
}
"""Field of `UsageTotals` -> column of `usage`, which has nano-dollars."""

SUMS = ", ".join(f"sum(u.{column})" for column in COLUMNS.values())


BUCKETS: Final = tuple(COLUMNS)[[*COLUMNS].index("input") : [*COLUMNS].index("tool_prompt") + 1]
"""The columns with tokens; each token is counted in only one of them."""

PROJECTS = " LEFT JOIN projects p ON p.key = {of}.project_key"
MODELS = " LEFT JOIN models d ON d.key = u.model_key"
_OWNERS = " JOIN owners o ON o.key = {of}.owner_key"

_CONDITIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "agent": ("{of}.agent = ?", ()),
    "project": ("(p.path = ? OR p.name = ?)", (PROJECTS,)),
    "model": ("d.name = ?", (MODELS,)),
    "session": ("{of}.agent || ':' || {of}.external_id = ?", ()),
    "user": ("o.user = ?", (_OWNERS,)),
    "team": ("o.team = ?", (_OWNERS,)),
    "task": ("o.task = ?", (_OWNERS,)),
    "machine": ("o.machine = ?", (_OWNERS,)),
}
"""Fields of `UsageFilter` that compare with one value, and the tables they need beside `Rows`."""


class Rows(NamedTuple):
    """What is added up, as `u` with the columns of `usage`. In SQL, `{of}` is what has the columns of its session."""

    table: str
    of: str
    sessions: str
    """The join that is needed for `{of}`."""
    is_in_time: bool
    """It holds only what is in the time of the filter."""

    def joined(self, *needing: str) -> str:
        """The table, and the joins that these parts of a statement need."""
        tables = [each for each in needing if each in _JOINS]
        needs_session = any("{of}" in each for each in needing)
        return "".join((self.table, self.sessions if needs_session else "", *dict.fromkeys(tables)))


_JOINS: Final = frozenset({PROJECTS, MODELS, _OWNERS})

EVERY_ROW: Final = Rows("usage u", "s", " JOIN sessions s ON s.key = u.session_key", is_in_time=False)

IS_ESTIMATED: Final = "m.exactness = 'estimated' AND coalesce(m.billed_key, 0) <> 0"
"""SQL: a message `m` is a model call whose tokens are estimated; `usage` does not count these apart."""

ESTIMATED_ROWS: Final = Rows(
    "(SELECT m.billed_key AS session_key, m.model_key AS model_key,"
    f" coalesce(m.created_at / {_QUARTER_HOUR_MILLISECONDS}, 0) AS quarter_hour"
    f" FROM messages m WHERE {IS_ESTIMATED}) u",
    "s",
    " JOIN sessions s ON s.key = u.session_key",
    is_in_time=False,
)
"""One row for each of these calls."""

HAS_OWN_COST: Final = "s.reported_cost IS NOT NULL AND s.cost = 0"
"""SQL: the agent of a session `s` reported a cost, and no price of a call is known. An index has these sessions."""

_ALL: Final = 2**63 - 1

OWN_COSTS: Final = Rows(
    "(SELECT s.key AS session_key, s.agent AS agent, s.external_id AS external_id, s.title AS title,"
    " s.relationship AS relationship, s.project_key AS project_key, s.owner_key AS owner_key,"
    " s.reported_cost AS reported_cost,"
    " (SELECT iif(min(n.model_key) = max(n.model_key), max(n.model_key), 0) FROM usage n WHERE n.session_key = s.key)"
    " AS model_key,"
    " coalesce((SELECT max(n.quarter_hour) FROM usage n WHERE n.session_key = s.key),"
    f" s.updated_at / {_QUARTER_HOUR_MILLISECONDS}, 0) AS quarter_hour"
    f" FROM sessions s WHERE {HAS_OWN_COST} AND (s.relationship IS NULL OR s.relationship = 'subagent')"
    " AND NOT EXISTS (SELECT 1 FROM usage n WHERE n.session_key = s.key AND n.reported_cost <> 0)"
    # Found by themselves, with their index: SQLite would walk all sessions in the order that a report groups by.
    f" LIMIT {_ALL}) u",
    "u",
    "",
    is_in_time=False,
)
"""One row for each session whose agent reported a cost of the whole session, where no call of it has a known cost.

It is at the last call of the session, or at its end if it has none. The session of a fork may begin with the cost of
its origin: it is in no sum.
"""


def estimated_calls(connection: sqlite3.Connection, session_keys: Sequence[int]) -> dict[int, int]:
    """How many calls of each session are estimated; a session without one has no entry."""
    rows = connection.execute(
        f"SELECT m.billed_key, count(*) FROM messages m WHERE {IS_ESTIMATED}"
        f" AND m.billed_key IN ({', '.join('?' * len(session_keys))}) GROUP BY m.billed_key",
        session_keys,
    )
    return dict(rows.fetchall())


Sums: TypeAlias = tuple[int, ...]
"""In the order of `COLUMNS`; empty for no calls."""


class Where(NamedTuple):
    """The conditions of a filter, with `{of}` as in `Rows`."""

    conditions: list[str]
    parameters: list[Any]
    joins: list[str]


def where(wanted: UsageFilter, rows: Rows = EVERY_ROW) -> Where:
    """What a filter chooses of these rows."""
    found = Where([], [], [])
    for name, (condition, tables) in _CONDITIONS.items():
        value = getattr(wanted, name)
        if value is not None:
            found.conditions.append(condition)
            found.parameters.extend([value] * condition.count("?"))
            found.joins.extend(tables)
    if not rows.is_in_time:
        since, until = quarter_hours(wanted)
        if since is not None:
            found.conditions.append(f"u.quarter_hour >= {since:d}")
        if until is not None:
            found.conditions.append(f"u.quarter_hour < {until:d}")
    return found


def quarter_hours(wanted: UsageFilter) -> tuple[int | None, int | None]:
    """The first quarter hour of a filter, and that after its last; `until` within one includes it."""
    since = None if wanted.since is None else _quarter_hour(wanted.since, up=False)
    until = None if wanted.until is None else _quarter_hour(wanted.until, up=True)
    # 0 stands for an unknown time, which is not before any date.
    return 1 if since is None and until is not None else since, until


def _quarter_hour(moment: datetime, *, up: bool) -> int:
    milliseconds = aware_milliseconds(moment)
    return -(-milliseconds // _QUARTER_HOUR_MILLISECONDS) if up else milliseconds // _QUARTER_HOUR_MILLISECONDS


def select(
    connection: sqlite3.Connection,
    columns: str,
    wanted: UsageFilter,
    rows: Rows = EVERY_ROW,
    *,
    joins: Sequence[str] = (),
    condition: str = "1",
    rest: str = "",
) -> list[tuple[Any, ...]]:
    """Columns of what a filter chooses; `rest` of the statement comes after its conditions."""
    found = where(wanted, rows)
    chosen = " AND ".join((condition, *found.conditions))
    tables = rows.joined(*joins, *found.joins, columns, chosen, rest)
    return connection.execute(
        f"SELECT {columns} FROM {tables} WHERE {chosen} {rest}".replace("{of}", rows.of), found.parameters
    ).fetchall()


def read_sums(connection: sqlite3.Connection, wanted: UsageFilter) -> dict[str, int]:
    """The sums of what a filter chooses, by the keys of `COLUMNS`."""
    (sums,) = select(connection, SUMS, wanted)
    return dict(zip(COLUMNS, [total or 0 for total in sums], strict=True))


def used_quarter_hours(connection: sqlite3.Connection, agent: str | None, since: datetime | None = None) -> list[int]:
    """When calls of an agent were made, ascending, as far back as blocks from `since` on depend on it.

    Where a block begins depends on those before it, up to a pause that is as long as a block.
    """
    # CROSS JOIN: they are read in the order of the key, so that nothing is sorted and reading can end early.
    found = connection.execute(
        "SELECT DISTINCT u.quarter_hour FROM usage u CROSS JOIN sessions s ON s.key = u.session_key"
        " WHERE s.agent = ? AND u.quarter_hour <> 0 ORDER BY 1 DESC",
        (agent,),
    )
    first = None if since is None else _quarter_hour(since, up=False)
    used: list[int] = []
    for (quarter_hour,) in found:
        if first is not None and quarter_hour < first and quarter_hour + BLOCK // QUARTER_HOUR <= (used or [first])[-1]:
            break
        used.append(quarter_hour)
    return used[::-1]


def first_call(connection: sqlite3.Connection, quarter_hour: int, agent: str | None) -> datetime:
    """When an agent made the first call of a quarter hour in which it made one."""
    begin = quarter_hour * _QUARTER_HOUR_MILLISECONDS
    # Of the sessions that were used then, which are few, all messages are read: none is found by its time.
    (at,) = connection.execute(
        "SELECT min(m.created_at) FROM memberships h JOIN messages m ON m.key = h.message_key"
        " WHERE h.session_key IN (SELECT u.session_key FROM usage u JOIN sessions s ON s.key = u.session_key"
        " WHERE u.quarter_hour = ? AND s.agent = ?) AND m.billed_key = h.session_key AND m.role = 'assistant'"
        " AND (m.stop_reason IS NOT 'error' OR m.exactness IS NOT NULL) AND m.created_at >= ? AND m.created_at < ?",
        (quarter_hour, agent, begin, begin + _QUARTER_HOUR_MILLISECONDS),
    ).fetchone()
    # The total of a session that has no calls is no message.
    return datetime.fromtimestamp((begin if at is None else at) / 1000, UTC)
