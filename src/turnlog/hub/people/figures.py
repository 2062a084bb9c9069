"""What a team used: sums over all its sessions, also those that nobody but their owner reads.

A row is made of the sessions of at least so many people as the team decided; smaller ones are added up into one without
a name, and larger ones with them while that one is still too small, so that no difference tells of fewer people.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

import msgspec

from turnlog.hub.people.tables import Row, Tables
from turnlog.store.dollars import NANO

FiguresBy: TypeAlias = Literal["person", "project", "model", "day"]

_NAMES: Final[Mapping[FiguresBy, str]] = {
    "person": "o.owner_user",
    "project": "(SELECT p.path FROM turnlog.projects p WHERE p.team_key = s.team_key AND p.key = s.project_key)",
    "model": "(SELECT d.name FROM turnlog.models d WHERE d.team_key = u.team_key AND d.key = u.model_key)",
    "day": "to_char(to_timestamp(u.quarter_hour * 900) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
}

_TOKENS: Final = (
    "u.input + u.cache_read + u.cache_write_5m + u.cache_write_1h + u.cache_write + u.output + u.reasoning"
    " + u.tool_prompt"
)

_QUERY: Final = f"""
SELECT {{name}}, o.owner_user, count(DISTINCT u.session_key), sum(u.calls), sum(u.unknown_calls),
    sum(u.unpriced_calls), sum({_TOKENS}), sum(u.output), sum(u.cost)
FROM turnlog.usage u
JOIN turnlog.sessions s ON s.team_key = u.team_key AND s.key = u.session_key
JOIN turnlog.session_owners o ON o.team_key = u.team_key AND o.session_key = u.session_key
WHERE u.team_key = $1 AND u.quarter_hour >= $2 AND u.quarter_hour < $3
GROUP BY 1, 2
"""


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """What some people used."""

    people: int = 0
    sessions: int = 0
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
    def order(self) -> tuple[int, int, str]:
        """The most expensive first."""
        return -(self._cost or 0), -self._sums[4], self.name or ""

    def sums(self) -> Sums:
        """What all of them used."""
        sessions, calls, unknown, unpriced, tokens, output = self._sums
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

    def usage(
        self, team: int, by: FiguresBy, smallest_group: int, since: datetime | None, until: datetime | None
    ) -> TeamUsage:
        """What a team used in a time, in groups of at least so many people."""
        first = 0 if since is None else int(since.astimezone(UTC).timestamp() // 900)
        last = 1 << 40 if until is None else int(-(-until.astimezone(UTC).timestamp() // 900))
        with self._transaction() as transaction:
            rows = transaction.rows(_QUERY.format(name=_NAMES[by]), team, first, last)
        groups: dict[str | None, _Group] = {}
        whole = _Group(None)
        for row in rows:
            groups.setdefault(row[0], _Group(row[0])).add(row)
            whole.add(row)
        shown, folded = _fold(list(groups.values()), smallest_group)
        enough = len(whole.people) >= smallest_group
        return TeamUsage(
            by=by,
            smallest_group=smallest_group,
            rows=[TeamRow(name=each.name, sums=each.sums()) for each in shown] if enough else [],
            folded=folded.sums() if folded is not None and enough else None,
            totals=whole.sums() if enough else None,
        )


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
