"""What a team used: sums over all its sessions, also those that nobody but their owner reads.

A row is made of the sessions of at least so many people as the team decided; smaller ones are added up into one without
a name, and larger ones with them while that one is still too small, so that no difference tells of fewer people.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec

from turnlog.hub.people.tables import Row, Tables
from turnlog.store.dollars import NANO
from turnlog.store.postgres.database import Database

FiguresBy: TypeAlias = Literal["person", "project", "model", "day"]

_OF_CALLS: Final[Mapping[FiguresBy, str]] = {"model": "u.model_key", "day": "u.quarter_hour / 96"}
"""What calls are added up by; `person` and `project` are the same for all calls of a session."""

_OF_SESSIONS: Final[Mapping[FiguresBy, str]] = {
    "person": "o.owner_user",
    # At this level, a project is a hash that each machine makes in its own way.
    "project": "CASE WHEN o.level <> 'metrics' THEN s.project_key END",
}

_NAMES: Final[Mapping[FiguresBy, str]] = {
    "project": "SELECT key, path FROM turnlog.projects WHERE team_key = $1",
    "model": "SELECT key, name FROM turnlog.models WHERE team_key = $1",
}
"""Queries of the names of keys."""

_TOKENS: Final = (
    "u.input + u.cache_read + u.cache_write_5m + u.cache_write_1h + u.cache_write + u.output + u.reasoning"
    " + u.tool_prompt"
)

_SUMS: Final = ("calls", "unknown", "unpriced", "tokens", "output", "cost")

# Of a session first, which leaves a fifth of the rows to be joined. Sums of sums are of `bigint` again: PostgreSQL adds
# `numeric`, which a sum is, much more slowly.
_QUERY: Final = f"""
WITH used AS MATERIALIZED (
    SELECT u.session_key, {{of_calls}} AS name, sum(u.calls)::bigint AS calls, sum(u.unknown_calls)::bigint AS unknown,
        sum(u.unpriced_calls)::bigint AS unpriced, sum({_TOKENS})::bigint AS tokens, sum(u.output)::bigint AS output,
        sum(u.cost)::bigint AS cost
    FROM turnlog.usage u WHERE u.team_key = $1 AND u.quarter_hour >= $2 AND u.quarter_hour < $3
    GROUP BY 1, 2
)
SELECT {{of_sessions}} AS name, o.owner_user, count(*), {", ".join(f"sum(u.{name})" for name in _SUMS)}
FROM used u
JOIN turnlog.sessions s ON s.team_key = $1 AND s.key = u.session_key
JOIN turnlog.session_owners o ON o.team_key = $1 AND o.session_key = u.session_key
GROUP BY 1, 2
"""

_SESSIONS: Final = """
SELECT count(*) FROM (SELECT DISTINCT u.session_key FROM turnlog.usage u
    WHERE u.team_key = $1 AND u.quarter_hour >= $2 AND u.quarter_hour < $3) used
JOIN turnlog.session_owners o ON o.team_key = $1 AND o.session_key = used.session_key
"""

FRESH_SECONDS: Final = 60.0
"""For how long an answer is given again: sums over all that a team ever did are worth some work, and change little."""

_MOST_KEPT: Final = 100


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


class _Group:
    """The usage of one name, by person."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.people: set[str] = set()
        self._sums = [0] * 6
        self._cost: int | None = None

    def add(self, row: Row) -> None:
        """Add the usage of one person."""
        self.people.add(row[1])
        for at, value in enumerate(row[2:8]):
            self._sums[at] += value or 0
        if (row[3] or 0) > (row[4] or 0) + (row[5] or 0) or row[8]:
            self._cost = (self._cost or 0) + (row[8] or 0)

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
        """What a team used in a time, in groups of at least so many people."""
        first = 0 if since is None else int(since.astimezone(UTC).timestamp() // 900)
        last = 1 << 40 if until is None else int(-(-until.astimezone(UTC).timestamp() // 900))
        asked = (team, by, smallest_group, first, last)
        counted, found = self._known.get(asked, (-math.inf, None))
        if found is None or time.monotonic() - counted > self._fresh_seconds:
            found = self._count(*asked)
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[asked] = time.monotonic(), found
        return found

    def _count(self, team: int, by: FiguresBy, smallest_group: int, first: int, last: int) -> TeamUsage:
        query = _QUERY.format(of_calls=_OF_CALLS.get(by, "NULL::bigint"), of_sessions=_OF_SESSIONS.get(by, "u.name"))
        with self._transaction() as transaction:
            # The sums fit into memory; compiling the query would take longer than running it.
            transaction.run("SET LOCAL work_mem = '64MB'")
            transaction.run("SET LOCAL jit = off")
            rows = transaction.rows(query, team, first, last)
            names = dict(transaction.rows(_NAMES[by], team)) if by in _NAMES else None
            row = transaction.row(_SESSIONS, team, first, last)
        groups: dict[str | None, _Group] = {}
        whole = _Group(None)
        for each in rows:
            name = _day(each[0]) if by == "day" else each[0] if names is None else names.get(each[0])
            groups.setdefault(name, _Group(name)).add(each)
            whole.add(each)
        shown, folded = _fold(list(groups.values()), smallest_group)
        enough = len(whole.people) >= smallest_group
        is_apart = by in _OF_SESSIONS
        return TeamUsage(
            by=by,
            smallest_group=smallest_group,
            rows=[TeamRow(name=each.name, sums=each.sums(each.sessions)) for each in shown] if enough else [],
            folded=folded.sums(folded.sessions if is_apart else None) if folded is not None and enough else None,
            totals=whole.sums(0 if row is None else row[0]) if enough else None,
            counted_at=datetime.now(UTC),
        )


def _day(number: int) -> str | None:
    # Quarter hour 0 is an unknown time.
    return (date(1970, 1, 1) + timedelta(days=number)).isoformat() if number else None


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
