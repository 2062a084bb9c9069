"""Sessions that their owners have deleted, and may take out again for some days. Nobody sees them meanwhile."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from turnlog.errors import NotFoundError
from turnlog.hub.people.sharing import announce_changed, end_links, family_of
from turnlog.hub.people.tables import HubTransaction, Tables, moment, now

TRASH_DAYS: Final = 30
"""Days after which what is in the trash is forgotten."""

_KEPT: Final = timedelta(days=TRASH_DAYS)


class TrashedSession(msgspec.Struct, frozen=True):
    """A session in the trash."""

    id: str
    title: str | None
    trashed_at: datetime
    forgotten_at: datetime
    """When it is forgotten for good."""


class Trash(Tables):
    """The sessions that are in the trash, in the table of owners of sessions."""

    def put(self, team: int, session_id: str, user: str) -> TrashedSession:
        """Put a session, with its subagents, into the trash. Its links end.

        Raises NotFoundError, or ConflictError for a subagent, which goes with its parent.
        """
        with self._transaction() as transaction:
            family = family_of(transaction, team, session_id)
            _mark(transaction, team, family, now())
            end_links(transaction, team, session_id)
            announce_changed(transaction, team, family)
        return self._one(team, session_id, user)

    def take_out(self, team: int, session_id: str, user: str) -> None:
        """Show a session again to whom it was shown, but for links. Raises NotFoundError if it is not in the trash."""
        self._one(team, session_id, user)
        with self._transaction() as transaction:
            family = family_of(transaction, team, session_id)
            _mark(transaction, team, family, None)
            announce_changed(transaction, team, family)

    def of(self, team: int, user: str) -> list[TrashedSession]:
        """What a person has in the trash, the newest first, without subagents."""
        with self._transaction() as transaction:
            rows = transaction.rows(
                "SELECT o.session_id, s.title, o.trashed_at FROM turnlog.session_owners o"
                " JOIN turnlog.sessions s ON s.team_key = o.team_key AND s.key = o.session_key"
                " WHERE o.team_key = $1 AND o.owner_user = $2 AND o.trashed_at IS NOT NULL"
                " AND s.relationship IS DISTINCT FROM 'subagent' ORDER BY o.trashed_at DESC, o.session_id",
                *(team, user),
            )
        return [_trashed(*row) for row in rows]

    def outdated(self, team: int, most: int) -> list[tuple[str, str]]:
        """Ids and owners of sessions that have been in the trash for too long, the oldest first, at most so many."""
        limit = now() - int(_KEPT.total_seconds() * 1000)
        with self._transaction() as transaction:
            rows = transaction.rows(
                "SELECT session_id, owner_user FROM turnlog.session_owners"
                " WHERE team_key = $1 AND trashed_at < $2 AND session_key IS NOT NULL ORDER BY trashed_at LIMIT $3",
                *(team, limit, most),
            )
        return [(row[0], row[1]) for row in rows]

    def teams(self) -> list[int]:
        """All teams."""
        with self._transaction() as transaction:
            return [row[0] for row in transaction.rows("SELECT team_key FROM turnlog.teams ORDER BY team_key")]

    def teams_with_garbage(self) -> list[int]:
        """Teams with large contents beside the database that no message uses any more."""
        with self._transaction() as transaction:
            return [row[0] for row in transaction.rows("SELECT DISTINCT team_key FROM turnlog.blob_garbage")]

    def _one(self, team: int, session_id: str, user: str) -> TrashedSession:
        for each in self.of(team, user):
            if each.id == session_id:
                return each
        raise NotFoundError(f"there is no session {session_id} in the trash")


def _mark(transaction: HubTransaction, team: int, family: list[str], at: int | None) -> None:
    transaction.run(
        "UPDATE turnlog.session_owners SET trashed_at = $3 WHERE team_key = $1 AND session_id = ANY($2)",
        *(team, family, at),
    )


def _trashed(session_id: str, title: str | None, at: int) -> TrashedSession:
    trashed = moment(at)
    assert trashed is not None
    return TrashedSession(session_id, title, trashed, trashed + _KEPT)
