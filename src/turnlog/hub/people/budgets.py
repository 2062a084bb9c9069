"""What a team, a project or a person may cost in a month, and what the running month has cost.

Of what was spent, nobody is told more than team figures say: nothing of a group of fewer people than the team decided,
besides to the person whose own budget it is.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from turnlog.errors import NotFoundError
from turnlog.hub.budgets import BudgetScope, TeamBudget
from turnlog.hub.people.figures import Figures, FiguresBy, Sums
from turnlog.hub.people.tables import Row, Tables
from turnlog.store.budgets import budget_state
from turnlog.store.dollars import NANO, Dollars, dollars
from turnlog.store.names import unknown_name
from turnlog.store.postgres.database import Database
from turnlog.store.postgres.visibility import ALLOWED, VIEWER

_COLUMNS: Final = "budget_id, scope, subject, amount"

_BY: Final[Mapping[BudgetScope, FiguresBy]] = {"team": "project", "project": "project", "person": "person"}
"""The figures that a budget is compared with."""

# A budget of somebody who has left is kept for when they come back, and shown to nobody.
_THERE: Final = """(b.scope <> 'person' OR EXISTS (
    SELECT 1 FROM turnlog.members m WHERE m.team_key = b.team_key AND m.user_id = b.subject AND m.left_at IS NULL
))"""

_ALL: Final = f"SELECT {_COLUMNS} FROM turnlog.budgets b WHERE team_key = $1 AND {_THERE} ORDER BY scope DESC, subject"

_PROJECTS_OF: Final = """
SELECT DISTINCT p.path FROM turnlog.session_owners o
JOIN turnlog.sessions s ON s.team_key = o.team_key AND s.key = o.session_key
JOIN turnlog.projects p ON p.team_key = s.team_key AND p.key = s.project_key
WHERE o.team_key = $1 AND o.owner_user = $2 AND p.path = ANY ($3)
"""


_PROJECTS_SEEN: Final = f"""
SELECT DISTINCT p.path FROM turnlog.session_owners o
JOIN turnlog.sessions s ON s.team_key = o.team_key AND s.key = o.session_key
JOIN turnlog.projects p ON p.team_key = s.team_key AND p.key = s.project_key
WHERE o.team_key = $1 AND {ALLOWED}
"""


class _Budget(NamedTuple):
    id: str
    scope: BudgetScope
    subject: str
    limit: Dollars


class TeamBudgets(Tables):
    """The budgets of teams."""

    def __init__(self, database: Database, figures: Figures) -> None:
        """Take what was spent from these figures."""
        super().__init__(database)
        self.figures = figures

    def set(self, team: int, scope: BudgetScope, subject: str, limit: float) -> str:
        """Make a budget (US dollars a month), or change the one that there is; its id.

        Raises NotFoundError for a person who is not in the team. Whether there is a project, nobody is told: `unseen`.
        """
        with self._transaction() as transaction:
            if scope == "person" and not transaction.row(
                "SELECT 1 FROM turnlog.members WHERE team_key = $1 AND user_id = $2 AND left_at IS NULL", team, subject
            ):
                raise NotFoundError("there is no such person in the team")
            row = transaction.row(
                f"INSERT INTO turnlog.budgets (team_key, {_COLUMNS}) VALUES ($1, $2, $3, $4, $5)"
                " ON CONFLICT (team_key, scope, subject) DO UPDATE SET amount = excluded.amount RETURNING budget_id",
                *(team, secrets.token_hex(8), scope, subject, int(Decimal(str(limit)) * NANO)),
            )
        assert row is not None
        return row[0]

    def unseen(self, team: int, user: str, smallest_group: int, project: str) -> str | None:
        """That an admin sees no project of this path, with the near ones that they see; None if they do.

        They see those of the team's figures, and of sessions that they may read. Others may be there.
        """
        figures = self.figures.usage(team, "project", smallest_group, None, None)
        with self._transaction() as transaction:
            transaction.row(f"SELECT set_config('{VIEWER}', $1, true)", user)
            seen = {str(row[0]) for row in transaction.rows(_PROJECTS_SEEN, team)}
        seen |= {row.name for row in figures.rows if row.name is not None}
        return None if project in seen else unknown_name("project", project, sorted(seen))

    def drop(self, team: int, budget_id: str) -> None:
        """Have no such budget any more. Raises NotFoundError."""
        with self._transaction() as transaction:
            if not transaction.run(
                "DELETE FROM turnlog.budgets WHERE team_key = $1 AND budget_id = $2", team, budget_id
            ):
                raise NotFoundError("there is no such budget")

    def for_admin(self, team: int, smallest_group: int) -> list[TeamBudget]:
        """All budgets of a team, with what groups of at least so many people spent."""
        with self._transaction() as transaction:
            budgets = [_budget(row) for row in transaction.rows(_ALL, team)]
        return self._spent(team, budgets, smallest_group)

    def for_member(self, team: int, user: str, smallest_group: int) -> list[TeamBudget]:
        """The person's own budget, and the state of those of the team and of projects where they have sessions."""
        with self._transaction() as transaction:
            budgets = [_budget(row) for row in transaction.rows(_ALL, team)]
            paths = [each.subject for each in budgets if each.scope == "project"]
            theirs = {str(row[0]) for row in transaction.rows(_PROJECTS_OF, team, user, paths)}
        shared = [each for each in budgets if each.scope == "team" or each.subject in theirs]
        own = [each for each in budgets if each.scope == "person" and each.subject == user]
        return [
            *(
                msgspec.structs.replace(each, spent=None, unpriced_calls=None)
                for each in self._spent(team, shared, smallest_group)
            ),
            *self._spent(team, own, 1),
        ]

    def measured(self) -> list[tuple[int, TeamBudget]]:
        """Every budget of every team of which something may be known, as the team's admins see it."""
        with self._transaction() as transaction:
            teams = transaction.rows("SELECT team_key, smallest_group FROM turnlog.teams ORDER BY team_key")
        return [(team, each) for team, smallest in teams for each in self.for_admin(team, smallest)]

    def _spent(self, team: int, budgets: list[_Budget], smallest_group: int) -> list[TeamBudget]:
        since = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        month = f"{since:%Y-%m}"
        groups: set[FiguresBy] = {_BY[each.scope] for each in budgets}
        usages = {by: self.figures.usage(team, by, smallest_group, since, None) for by in groups}
        found: list[TeamBudget] = []
        for each in budgets:
            usage = usages[_BY[each.scope]]
            rows = {row.name: row.sums for row in usage.rows}
            sums = usage.totals if each.scope == "team" else rows.get(each.subject)
            if sums is None and smallest_group <= 1:
                sums = Sums(cost=0.0)  # nobody used anything
            budget = TeamBudget(
                id=each.id, scope=each.scope, subject=each.subject or None, limit=float(each.limit), month=month
            )
            found.append(budget if sums is None else _with(budget, each.limit, sums))
        return found


def _with(budget: TeamBudget, limit: Dollars, sums: Sums) -> TeamBudget:
    return msgspec.structs.replace(
        budget,
        spent=sums.cost,
        unpriced_calls=sums.unpriced_calls + sums.unknown_calls,
        state=None if sums.cost is None else budget_state(Dollars(str(sums.cost)), limit),
    )


def _budget(row: Row) -> _Budget:
    return _Budget(row[0], row[1], row[2], dollars(row[3]))
