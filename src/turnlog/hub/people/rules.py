"""Rules of a team: what it takes at most, to whom new sessions are shown, and how long they are kept."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec

from turnlog.errors import NotFoundError
from turnlog.hub.people.tables import Row, Tables, moment, now

HighestLevel: TypeAlias = Literal["metrics", "redacted", "full"]

NewVisibility: TypeAlias = Literal["private", "team"]

LEVELS: Final[tuple[HighestLevel, ...]] = ("metrics", "redacted", "full")
"""From least to most."""

Untouched = msgspec.UnsetType


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a team."""

    highest_level: HighestLevel
    """The upload level above which the hub takes nothing."""
    visibility: NewVisibility
    """To whom new sessions are shown at first; `team` only those of people who have agreed to it."""
    retention_days: int | None
    """Sessions without any activity for so long are forgotten; None: never."""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule about age forgets."""

    sessions: int
    """With their subagents."""
    people: int
    oldest: datetime | None


class Rulebook(Tables):
    """The rules in the table of teams, and who agreed to them."""

    def rules(self, team: int) -> Rules:
        """The rules of a team. Raises NotFoundError."""
        with self._transaction() as transaction:
            row = transaction.row(
                "SELECT highest_level, new_visibility, retention_days FROM turnlog.teams WHERE team_key = $1", team
            )
        if row is None:
            raise NotFoundError("there is no such team")
        return _rules(row)

    def change(
        self,
        team: int,
        *,
        highest_level: HighestLevel | None = None,
        visibility: NewVisibility | None = None,
        retention_days: int | Untouched | None = msgspec.UNSET,
    ) -> Rules:
        """Change what is given. With another visibility, everybody is asked again whether they agree."""
        with self._transaction() as transaction:
            transaction.run(
                "UPDATE turnlog.teams SET highest_level = coalesce($2, highest_level),"
                " visibility_changed_at = CASE WHEN $3 <> new_visibility THEN $4 ELSE visibility_changed_at END,"
                " new_visibility = coalesce($3, new_visibility) WHERE team_key = $1",
                *(team, highest_level, visibility, now()),
            )
            if not isinstance(retention_days, Untouched):
                transaction.run(
                    "UPDATE turnlog.teams SET retention_days = $2 WHERE team_key = $1", team, retention_days
                )
        return self.rules(team)

    def has_agreed(self, team: int, user: str) -> bool:
        """Whether a person has agreed to the visibility that is the rule now."""
        with self._transaction() as transaction:
            row = transaction.row(
                "SELECT m.agreed_at >= t.visibility_changed_at FROM turnlog.members m"
                " JOIN turnlog.teams t ON t.team_key = m.team_key WHERE m.team_key = $1 AND m.user_id = $2",
                *(team, user),
            )
        return row is not None and bool(row[0])

    def agree(self, team: int, user: str, *, agrees: bool) -> None:
        """Note that a person agrees, or does not any more: it counts for sessions that come from now on."""
        with self._transaction() as transaction:
            transaction.run(
                "UPDATE turnlog.members SET agreed_at = $3 WHERE team_key = $1 AND user_id = $2 AND left_at IS NULL",
                *(team, user, now() if agrees else None),
            )

    # -- age

    def outdated(self, team: int, days: int) -> Retention:
        """What a rule of so many days forgets now."""
        with self._transaction() as transaction:
            row = transaction.row(
                f"SELECT count(*), count(DISTINCT owner_user), min(at) {_OUTDATED}", *_age(team, days)
            )
        assert row is not None
        return Retention(sessions=row[0], people=row[1], oldest=moment(row[2]))

    def outdated_ids(self, team: int, days: int, most: int) -> list[tuple[str, str]]:
        """Ids and owners of the sessions that a rule of so many days forgets now, the oldest first, at most so many."""
        with self._transaction() as transaction:
            rows = transaction.rows(
                f"SELECT session_id, owner_user {_OUTDATED} ORDER BY at, session_id LIMIT $3", *_age(team, days), most
            )
        return [(row[0], row[1]) for row in rows]

    def with_retention(self) -> list[tuple[int, int]]:
        """The teams that have such a rule, and its days."""
        with self._transaction() as transaction:
            rows = transaction.rows("SELECT team_key, retention_days FROM turnlog.teams WHERE retention_days > 0")
        return [(row[0], row[1]) for row in rows]


# A session counts as active when one of its subagents is. One whose log says no time is as old as its row here: that is
# when it came, or when its owner last chose who sees it.
_OUTDATED: Final = """FROM (
    WITH RECURSIVE tree (top, key) AS (
        SELECT s.key, s.key FROM turnlog.sessions s
        WHERE s.team_key = $1 AND (s.relationship IS DISTINCT FROM 'subagent' OR s.parent_key IS NULL)
            AND coalesce(s.updated_at, s.created_at, 0) < $2
        UNION SELECT t.top, s.key FROM tree t
        JOIN turnlog.sessions s ON s.team_key = $1 AND s.parent_key = t.key AND s.relationship = 'subagent'
    )
    SELECT o.session_id, o.owner_user, coalesce(max(coalesce(s.updated_at, s.created_at)), o.changed_at) AS at
    FROM tree t
    JOIN turnlog.sessions s ON s.team_key = $1 AND s.key = t.key
    JOIN turnlog.session_owners o ON o.team_key = $1 AND o.session_key = t.top
    GROUP BY 1, 2, o.changed_at HAVING coalesce(max(coalesce(s.updated_at, s.created_at)), o.changed_at) < $2
) outdated"""


def _age(team: int, days: int) -> tuple[int, int]:
    limit = datetime.now(UTC) - timedelta(days=days)
    return team, int(limit.timestamp() * 1000)


def _rules(row: Row) -> Rules:
    return Rules(highest_level=row[0], visibility=row[1], retention_days=row[2])


def is_above(level: str, highest: HighestLevel) -> bool:
    """Whether an upload level is above the highest that a team takes."""
    return level in LEVELS and LEVELS.index(level) > LEVELS.index(highest)


def changes_of(given: dict[str, object]) -> str:
    """Changes of rules as the audit log has them."""
    return json.dumps(given, sort_keys=True)
