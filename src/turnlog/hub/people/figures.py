"""What a team used: sums over all its sessions, also those that nobody but their owner reads.

A row is made of the sessions of at least so many people as the team decided; smaller ones are added up into one without
a name, and larger ones with them while that one is still too small, so that no difference tells of fewer people.
"""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

import msgspec

from turnlog.hub.people.tables import HubTransaction, Row, Tables
from turnlog.plain_text import csv_cell
from turnlog.store.dollars import NANO
from turnlog.store.periods import date_of
from turnlog.store.postgres.database import Database

FiguresBy: TypeAlias = Literal["person", "project", "model", "day"]

_NAME: Final[Mapping[FiguresBy, str]] = {
    "person": "owner_user",
    "project": "project_key",
    "model": "model_key",
    "day": "day",
}
"""The column that rows are added up by."""

_APART: Final = frozenset({"person", "project"})
"""Groups of which no session is in two."""

_NAMES: Final[Mapping[FiguresBy, str]] = {
    "project": "SELECT key, path FROM turnlog.projects WHERE team_key = $1",
    "model": "SELECT key, name FROM turnlog.models WHERE team_key = $1",
}
"""Queries of the names of keys."""

_SUMS: Final = ("calls", "unknown_calls", "unpriced_calls", "tokens", "output", "cost")

# A session is counted on the first of its days. Sums are of `bigint` again: PostgreSQL adds `numeric`, which a sum of
# sums is, much more slowly.
_COUNTED: Final = "count(*) FILTER (WHERE day_before IS NULL OR day_before < $2)::bigint"
_MOST: Final = 1 << 62
"""What a machine says may be as large as a column is: sums stop here, and end no other figures."""

_ADDED: Final = ", ".join(f"least(greatest(sum({name}), -{_MOST}), {_MOST})::bigint AS {name}" for name in _SUMS)

_DAYS: Final = (
    "FROM turnlog.usage_days WHERE team_key = $1 AND {models} AND day >= $2 AND day < $3 AND session_key <> ALL ($4)"
)
_ALL_MODELS: Final = "model_key = -1"
_EACH_MODEL: Final = "model_key >= 0"

# Who is in a group is one text: as rows, they take longer to fetch than to add up.
_OF_FEW: Final = f"""
SELECT name, string_agg(owner_user, ','), sum(sessions)::bigint, {_ADDED} FROM (
    SELECT {{name}} AS name, owner_user, {_COUNTED} AS sessions, {_ADDED} {_DAYS} GROUP BY 1, 2
) of_people GROUP BY 1
"""
"""For names that have many rows of one person."""

_OF_MANY: Final = f"SELECT {{name}}, string_agg(owner_user, ','), count(*), {_ADDED} {_DAYS} GROUP BY 1"
"""For days, on which most people have few sessions."""

_SESSIONS: Final = f"SELECT {_COUNTED} {_DAYS.format(models=_ALL_MODELS)}"

_COPIES: Final = """
WITH named AS (
    SELECT o.session_key, m.left_at IS NOT NULL AS is_left, CASE
        WHEN right(o.session_id, length(o.owner_user) + 1) = '~' || o.owner_user
        THEN left(o.session_id, -length(o.owner_user) - 1) ELSE o.session_id END AS name
    FROM turnlog.session_owners o
    JOIN turnlog.members m ON m.team_key = o.team_key AND m.user_id = o.owner_user
    WHERE o.team_key = $1 AND o.session_key IS NOT NULL AND o.trashed_at IS NULL
), ranked AS (
    SELECT n.session_key, n.is_left, row_number() OVER copies AS place, first_value(n.is_left) OVER copies AS is_of_left
    FROM named n JOIN turnlog.sessions s ON s.team_key = $1 AND s.key = n.session_key
    WHERE n.name IN (SELECT name FROM named WHERE is_left)
    WINDOW copies AS (PARTITION BY n.name ORDER BY s.messages DESC, n.is_left, n.session_key DESC)
)
SELECT session_key FROM ranked WHERE place > 1 AND (is_left OR is_of_left)
"""
"""Sessions of which another person has a copy, where one of the two has left the team: the longest is counted.

Who was removed and came back as somebody new has sent everything again.
"""

FRESH_SECONDS: Final = 60.0
"""For how long an answer is given again: sums over all that a team ever did are worth some work, and change little."""

_MOST_KEPT: Final = 100

_DAY: Final = 86_400
"""Seconds."""


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """What some people used."""

    people: int = 0
    sessions: int | None = None
    """None for groups together of which a session may be in several."""
    calls: int = 0
    unknown_calls: int = 0
    """Calls without any token count; no sum contains them."""
    unpriced_calls: int = 0
    """Calls with tokens but without a known price; `cost` does not contain them."""
    tokens: int = 0
    output: int = 0
    cost: float | None = None
    """US dollars; None if no call could be priced."""


class TeamRow(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of one person, project, model or day."""

    name: str | None
    """Id of the person, path of the project, name of the model, or the day; None where no log says it."""
    sums: Sums


class TeamUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a team used."""

    by: FiguresBy
    smallest_group: int
    rows: list[TeamRow]
    folded: Sums | None
    """All groups of fewer people together; None if there is none."""
    totals: Sums | None
    """None if the whole team has fewer people than a group may have."""
    counted_at: datetime
    """When: an answer is given again for a minute."""


FOLDED: Final = "smaller groups together"


def to_csv(usage: TeamUsage) -> str:
    """The rows as CSV (RFC 4180), with smaller groups together. Unknown values are empty; money is US dollars."""
    text = io.StringIO()
    # Names are quoted, so that one stays a cell even in a spreadsheet that splits at semicolons.
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    columns = Sums.__struct_fields__
    writer.writerow((usage.by, "label", *columns))
    rows = [(row.name or "", "", row.sums) for row in usage.rows]
    if usage.folded is not None:
        rows.append(("", FOLDED, usage.folded))
    for name, label, sums in rows:
        numbers = (getattr(sums, column) for column in columns)
        writer.writerow((csv_cell(name), label, *("" if number is None else number for number in numbers)))
    return text.getvalue()


class _Group:
    """The usage of one name."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.people: set[str] = set()
        self._sums = [0] * 6
        self._cost: int | None = None

    def add(self, row: Row) -> None:
        """Add what some people used."""
        self.people.update(row[1].split(","))
        for at, value in enumerate(row[2:8]):
            self._sums[at] += value
        if row[3] > row[4] + row[5] or row[8]:
            self._cost = (self._cost or 0) + row[8]

    def join(self, other: _Group) -> None:
        """Add another group."""
        self.people |= other.people
        self._sums = [one + two for one, two in zip(self._sums, other._sums, strict=True)]
        if other._cost is not None:
            self._cost = (self._cost or 0) + other._cost

    @property
    def sessions(self) -> int:
        """In how many sessions; one that is in two of these groups counts twice."""
        return self._sums[0]

    @property
    def order(self) -> tuple[int, int, str]:
        """The most expensive first."""
        return -(self._cost or 0), -self._sums[4], self.name or ""

    def sums(self, sessions: int | None) -> Sums:
        """What all of them used."""
        _, calls, unknown, unpriced, tokens, output = self._sums
        return Sums(
            people=len(self.people),
            sessions=sessions,
            calls=calls,
            unknown_calls=unknown,
            unpriced_calls=unpriced,
            tokens=tokens,
            output=output,
            cost=None if self._cost is None else float(self._cost / NANO),
        )


class Figures(Tables):
    """Sums over the sessions of teams."""

    def __init__(self, database: Database, fresh_seconds: float = FRESH_SECONDS) -> None:
        """Use the connections of this database."""
        super().__init__(database)
        self._fresh_seconds = fresh_seconds
        self._known: dict[tuple[int, FiguresBy, int, int, int], tuple[float, TeamUsage]] = {}

    def usage(
        self, team: int, by: FiguresBy, smallest_group: int, since: datetime | None, until: datetime | None
    ) -> TeamUsage:
        """What a team used on the days (of UTC) of a time, in groups of at least so many people."""
        first = 0 if since is None else int(since.astimezone(UTC).timestamp() // _DAY)
        last = 1 << 40 if until is None else int(-(-until.astimezone(UTC).timestamp() // _DAY))
        asked = (team, by, smallest_group, first, last)
        counted, found = self._known.get(asked, (-math.inf, None))
        if found is None or time.monotonic() - counted > self._fresh_seconds:
            found = self._count(*asked)
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[asked] = time.monotonic(), found
        return found

    def _count(self, team: int, by: FiguresBy, smallest_group: int, first: int, last: int) -> TeamUsage:
        query = (_OF_MANY if by == "day" else _OF_FEW).format(
            name=_NAME[by], models=_EACH_MODEL if by == "model" else _ALL_MODELS
        )
        with self._transaction() as transaction:
            # The sums fit into memory; compiling the query, or starting others to help, would take longer than it does.
            transaction.run("SET LOCAL work_mem = '64MB'")
            transaction.run("SET LOCAL jit = off")
            transaction.run("SET LOCAL max_parallel_workers_per_gather = 0")
            copies = [row[0] for row in transaction.rows(_COPIES, team)] if _somebody_left(transaction, team) else []
            rows = transaction.rows(query, team, first, last, copies)
            names = dict(transaction.rows(_NAMES[by], team)) if by in _NAMES else None
            row = None if by in _APART else transaction.row(_SESSIONS, team, first, last, copies)
        groups: dict[str | None, _Group] = {}
        whole = _Group(None)
        for each in rows:
            name = _day(each[0]) if by == "day" else each[0] if names is None else names.get(each[0])
            groups.setdefault(name, _Group(name)).add(each)
            whole.add(each)
        shown, folded = _fold(list(groups.values()), smallest_group)
        enough = len(whole.people) >= smallest_group
        sessions = whole.sessions if row is None else row[0]
        return TeamUsage(
            by=by,
            smallest_group=smallest_group,
            rows=[TeamRow(name=each.name, sums=each.sums(each.sessions)) for each in shown] if enough else [],
            folded=folded.sums(folded.sessions if by in _APART else None) if folded is not None and enough else None,
            totals=whole.sums(sessions) if enough else None,
            counted_at=datetime.now(UTC),
        )


def _somebody_left(transaction: HubTransaction, team: int) -> bool:
    return (
        transaction.row("SELECT 1 FROM turnlog.members WHERE team_key = $1 AND left_at IS NOT NULL", team) is not None
    )


def _day(number: int) -> str | None:
    # Day 0 is an unknown time.
    return date_of(number).isoformat() if number else None


def _fold(groups: list[_Group], smallest: int) -> tuple[list[_Group], _Group | None]:
    """The groups that are shown, the largest first, and the others as one."""
    ordered = sorted(groups, key=lambda each: each.order)
    shown = [each for each in ordered if len(each.people) >= smallest]
    small = [each for each in ordered if len(each.people) < smallest]
    if not small:
        return shown, None
    folded = _Group(None)
    for each in small:
        folded.join(each)
    while len(folded.people) < smallest and shown:
        folded.join(shown.pop())
    return shown, folded
