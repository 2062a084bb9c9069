"""Whose a session is, and who may read it besides."""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import datetime
from typing import Final, Literal, TypeAlias

import msgspec

from turnlog.errors import ConflictError, NotFoundError
from turnlog.hub.callers import LINK
from turnlog.hub.people.secrets import Secret, Secrets
from turnlog.hub.people.tables import HubTransaction, Tables, announce, now
from turnlog.hub.readers import SharedSession
from turnlog.plain_text import one_line
from turnlog.store.postgres.database import Database
from turnlog.store.postgres.visibility import ALLOWED, VIEWER

Visibility: TypeAlias = Literal["private", "people", "team", "link"]

Level: TypeAlias = Literal["none", "metrics", "redacted", "full"]


class ShareLink(msgspec.Struct, frozen=True):
    """A link with which anybody reads a session."""

    id: str
    created_at: datetime
    expires_at: datetime | None


class SessionSharing(msgspec.Struct, frozen=True, kw_only=True):
    """Whose a session is, and who may read it besides."""

    owner: str
    machine: str | None
    level: Level
    visibility: Visibility
    people: list[str]
    """Ids of the people that it is shown to; with the visibility `people`."""
    links: list[ShareLink]


class Pusher(msgspec.Struct, frozen=True):
    """A person of whom somebody sees sessions."""

    id: str
    name: str
    machines: list[str]
    """Names of the machines that these sessions are from."""
    sessions: int
    """Without subagents."""


class Owned(msgspec.Struct, frozen=True):
    """Whose a session is."""

    owner: str
    machine: str | None
    level: Level
    visibility: Visibility


class Sharing(Tables):
    """The tables of owners and readers of sessions."""

    def __init__(self, database: Database, secrets: Secrets) -> None:
        """Use the connections of this database, and these secrets."""
        super().__init__(database)
        self._secrets = secrets

    def claim(self, team: int, session_id: str, user: str, machine: str | None = None, level: Level = "full") -> None:
        """Make a person the owner of a session that has none. Raises ConflictError if it is another's."""
        with self._transaction() as transaction:
            transaction.run(
                "INSERT INTO turnlog.session_owners (team_key, session_id, owner_user, machine, level)"
                " VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
                *(team, session_id, user, machine, level),
            )
            if _owned(transaction, team, session_id).owner != user:
                raise ConflictError("this id is in use")

    def owned(self, team: int, session_id: str) -> Owned:
        """Whose a session is. Raises NotFoundError."""
        with self._transaction() as transaction:
            return _owned(transaction, team, session_id)

    def owners(self, team: int, session_ids: Collection[str]) -> dict[str, Owned]:
        """Session id -> whose it is, for those that are anybody's."""
        with self._transaction() as transaction:
            rows = transaction.rows(
                "SELECT session_id, owner_user, machine, level, visibility FROM turnlog.session_owners"
                " WHERE team_key = $1 AND session_id = ANY($2)",
                *(team, list(session_ids)),
            )
        return {row[0]: Owned(*row[1:]) for row in rows}

    def may_read(self, team: int, viewer: str, session_id: str) -> bool:
        """Whether somebody may read a session; the same work for one that is not there."""
        with self._transaction() as transaction:
            transaction.row(f"SELECT set_config('{VIEWER}', $1, true)", viewer)
            row = transaction.row(
                "SELECT 1 FROM turnlog.session_owners o"
                f" WHERE o.team_key = $1 AND o.session_id = $2 AND o.session_key IS NOT NULL AND {ALLOWED}",
                *(team, session_id),
            )
        return row is not None

    def visible(self, team: int, viewer: str) -> frozenset[str]:
        """Ids of all sessions that somebody may read."""
        with self._transaction() as transaction:
            transaction.row(f"SELECT set_config('{VIEWER}', $1, true)", viewer)
            rows = transaction.rows(
                "SELECT session_id FROM turnlog.session_owners o"
                f" WHERE o.team_key = $1 AND o.session_key IS NOT NULL AND {ALLOWED}",
                team,
            )
        return frozenset(row[0] for row in rows)

    def pushers(self, team: int, viewer: str) -> list[Pusher]:
        """The people of whom somebody sees sessions, by name."""
        with self._transaction() as transaction:
            transaction.row(f"SELECT set_config('{VIEWER}', $1, true)", viewer)
            rows = transaction.rows(_PUSHERS, team)
        found: dict[str, Pusher] = {}
        for id, name, machine, sessions in rows:
            known = found.get(id, Pusher(id, name or id, [], 0))
            machines = [*known.machines, machine] if machine else known.machines
            found[id] = Pusher(id, known.name, machines, known.sessions + sessions)
        return list(found.values())

    def shared(self, team: int, user: str) -> list[SharedSession]:
        """The sessions of a person that others may read, without subagents, by id.

        Also sessions that were taken back: they are shown to the same people when they come again. Of those it is not
        known any more which are subagents.
        """
        with self._transaction() as transaction:
            rows = transaction.rows(_SHARED, team, user, now())
        found: dict[str, SharedSession] = {}
        for session_id, visibility, reader in rows:
            known = found.setdefault(session_id, SharedSession(id=session_id, visibility=visibility, people=[]))
            if visibility == "people" and reader:
                known.people.append(reader)
        return list(found.values())

    def titles(self, team: int, viewer: str, session_ids: Collection[str]) -> dict[str, str]:
        """Session -> its title, or its id without one, of those that somebody may read."""
        with self._transaction() as transaction:
            transaction.row(f"SELECT set_config('{VIEWER}', $1, true)", viewer)
            rows = transaction.rows(_TITLES, team, sorted(session_ids))
        return {row[0]: one_line(row[1]) for row in rows}

    def sharing(self, team: int, session_id: str) -> SessionSharing:
        """Whose a session is and who may read it. Raises NotFoundError."""
        with self._transaction() as transaction:
            owned = _owned(transaction, team, session_id)
            rows = transaction.rows(
                "SELECT reader FROM turnlog.session_readers WHERE team_key = $1 AND session_id = $2 ORDER BY reader",
                *(team, session_id),
            )
        readers = [row[0] for row in rows]
        links = [each for each in self._secrets.all_of(team, ["link"]) if f"{LINK}{each.id}" in readers]
        return SessionSharing(
            owner=owned.owner,
            machine=owned.machine,
            level=owned.level,
            visibility=owned.visibility,
            people=[reader for reader in readers if not reader.startswith(LINK)],
            links=[ShareLink(each.id, each.created_at, each.expires_at) for each in links],
        )

    def share(self, team: int, session_id: str, visibility: Visibility, people: Collection[str] = ()) -> None:
        """Decide who may read a session, with its subagents. Links end where the visibility is another.

        Raises NotFoundError, or ConflictError for a subagent, which is shown with its parent.
        """
        with self._transaction() as transaction:
            family = family_of(transaction, team, session_id)
            _set_visibility(transaction, team, family, visibility)
            kept = f"{LINK}%" if visibility == "link" else ""
            transaction.run(
                "DELETE FROM turnlog.session_readers WHERE team_key = $1 AND session_id = ANY($2)"
                " AND reader NOT LIKE $3",
                *(team, family, kept),
            )
            if visibility != "link":
                end_links(transaction, team, session_id)
            if visibility == "people":
                for person in sorted(set(people)):
                    _add_reader(transaction, team, family, person)
            announce_changed(transaction, team, family)

    def make_link(
        self, team: int, session_id: str, user: str, seconds: float | None, *, made_by: str | None = None
    ) -> tuple[str, Secret]:
        """A link to a session and its subagents, and what is kept of it; the visibility is `link` from now on.

        `made_by` as for `Secrets.make`. Raises as `share` does.
        """
        with self._transaction() as transaction:
            family = family_of(transaction, team, session_id)
            text, link = self._secrets.make(
                "link",
                team=team,
                user=user,
                session=session_id,
                seconds=seconds,
                made_by=made_by,
                within=transaction,
            )
            transaction.run(
                "DELETE FROM turnlog.session_readers WHERE team_key = $1 AND session_id = ANY($2)"
                " AND reader NOT LIKE $3",
                *(team, family, f"{LINK}%"),
            )
            _set_visibility(transaction, team, family, "link")
            _add_reader(transaction, team, family, f"{LINK}{link.id}")
            announce_changed(transaction, team, family)
        return text, link

    def end_link(self, team: int, session_id: str, id: str) -> bool:
        """Make a link invalid; False if the session has none of this id."""
        with self._transaction() as transaction:
            ended = transaction.run(
                "UPDATE turnlog.secrets SET ended_at = $4 WHERE team_key = $1 AND id = $2 AND kind = 'link'"
                " AND session_id = $3 AND ended_at IS NULL",
                *(team, id, session_id, now()),
            )
            transaction.run(
                "DELETE FROM turnlog.session_readers WHERE team_key = $1 AND reader = $2", team, f"{LINK}{id}"
            )
            announce(transaction, team)
        return bool(ended)


_PUSHERS: Final = f"""
SELECT o.owner_user, u.name, w.machine, count(*) FILTER (WHERE s.relationship IS DISTINCT FROM 'subagent')
FROM turnlog.session_owners o
JOIN turnlog.sessions s ON s.team_key = o.team_key AND s.key = o.session_key
JOIN turnlog.owners w ON w.team_key = s.team_key AND w.key = s.owner_key
LEFT JOIN turnlog.users u ON u.id = o.owner_user
WHERE o.team_key = $1 AND {ALLOWED}
GROUP BY 1, 2, 3 ORDER BY lower(u.name), 1, 3
"""

_SHARED: Final = """
SELECT o.session_id, o.visibility, coalesce(u.name, r.reader) FROM turnlog.session_owners o
LEFT JOIN turnlog.sessions s ON s.team_key = o.team_key AND s.key = o.session_key
LEFT JOIN turnlog.session_readers r ON r.team_key = o.team_key AND r.session_id = o.session_id
LEFT JOIN turnlog.users u ON u.id = r.reader
LEFT JOIN turnlog.secrets k ON k.team_key = o.team_key AND r.reader = 'link:' || k.id
    AND k.ended_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $3)
WHERE o.team_key = $1 AND o.owner_user = $2 AND o.trashed_at IS NULL
    AND s.relationship IS DISTINCT FROM 'subagent'
    AND (o.visibility = 'team' OR o.visibility = 'people' AND u.id IS NOT NULL
        OR o.visibility = 'link' AND k.id IS NOT NULL)
ORDER BY o.session_id, lower(u.name), r.reader
"""

_TITLES: Final = f"""
SELECT o.session_id, coalesce(a.title, s.title, o.session_id) FROM turnlog.session_owners o
JOIN turnlog.sessions s ON s.team_key = o.team_key AND s.key = o.session_key
LEFT JOIN turnlog.annotations a ON a.team_key = o.team_key AND a.session_id = o.session_id
WHERE o.team_key = $1 AND o.session_id = ANY ($2) AND {ALLOWED}
"""

_FAMILY: Final = """
WITH RECURSIVE below (key) AS (
    SELECT session_key FROM turnlog.session_owners WHERE team_key = $1 AND session_id = $2
    UNION SELECT s.key FROM turnlog.sessions s JOIN below b ON s.parent_key = b.key
    WHERE s.team_key = $1 AND s.relationship = 'subagent'
)
SELECT o.session_id FROM turnlog.session_owners o JOIN below b ON b.key = o.session_key
WHERE o.team_key = $1 AND o.owner_user = $3
"""

_PARENT: Final = """
SELECT p.session_id FROM turnlog.session_owners o
JOIN turnlog.sessions s ON s.team_key = o.team_key AND s.key = o.session_key AND s.relationship = 'subagent'
JOIN turnlog.session_owners p
    ON p.team_key = o.team_key AND p.session_key = s.parent_key AND p.owner_user = o.owner_user
WHERE o.team_key = $1 AND o.session_id = $2
"""


def _owned(transaction: HubTransaction, team: int, session_id: str) -> Owned:
    row = transaction.row(
        "SELECT owner_user, machine, level, visibility FROM turnlog.session_owners"
        " WHERE team_key = $1 AND session_id = $2",
        *(team, session_id),
    )
    if row is None:
        raise NotFoundError(f"there is no session {session_id}")
    return Owned(*row)


def family_of(transaction: HubTransaction, team: int, session_id: str) -> list[str]:
    """Ids of a session and of all subagents below it, locked."""
    transaction.rows(
        "SELECT 1 FROM turnlog.session_owners WHERE team_key = $1 AND session_id = $2 FOR UPDATE", team, session_id
    )
    owned = _owned(transaction, team, session_id)
    parent = transaction.row(_PARENT, team, session_id)
    if parent is not None:
        raise ConflictError(f"a subagent is shared with the session that started it, {parent[0]}")
    return sorted({session_id, *(row[0] for row in transaction.rows(_FAMILY, team, session_id, owned.owner))})


def _set_visibility(transaction: HubTransaction, team: int, family: list[str], visibility: Visibility) -> None:
    transaction.run(
        "UPDATE turnlog.session_owners SET visibility = $3, changed_at = $4"
        " WHERE team_key = $1 AND session_id = ANY($2)",
        *(team, family, visibility, now()),
    )


def _add_reader(transaction: HubTransaction, team: int, family: list[str], reader: str) -> None:
    transaction.run(
        "INSERT INTO turnlog.session_readers SELECT $1, unnest($2::text[]), $3 ON CONFLICT DO NOTHING",
        *(team, family, reader),
    )


def end_links(transaction: HubTransaction, team: int, session_id: str) -> None:
    """Make all links to a session invalid."""
    transaction.run(
        "UPDATE turnlog.secrets SET ended_at = $3 WHERE team_key = $1 AND session_id = $2 AND kind = 'link'"
        " AND ended_at IS NULL",
        *(team, session_id, now()),
    )


def announce_changed(transaction: HubTransaction, team: int, family: list[str]) -> None:
    """Tell readers that the sessions have changed: for some of them they are new."""
    transaction.run(
        "INSERT INTO turnlog.changes (team_key, session_key, kind, at)"
        " SELECT team_key, session_key, 'session', $3 FROM turnlog.session_owners"
        " WHERE team_key = $1 AND session_id = ANY($2) AND session_key IS NOT NULL ORDER BY session_key",
        *(team, family, int(time.time() * 1000)),
    )
