"""Whose the sessions of a feed are: nobody's batch touches what somebody else has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from turnlog.store.feed.tables import in_chunks
from turnlog.store.feed.values import FeedBatch

if TYPE_CHECKING:
    from turnlog.store.connection import Connection


class Owner(NamedTuple):
    """Whose rows a batch has. Nobody's batch touches what somebody else has."""

    user: str = ""
    """Empty for stores that one user has."""
    machine: str = ""


NOBODY: Final = Owner()


class SessionOwners:
    """The owners of the sessions of one batch."""

    def __init__(self, connection: Connection, owner: Owner | None, store: str) -> None:
        """`owner` sends the batch, from the store with this id; None where the tables have no owners."""
        self._connection = connection
        self._owner = owner
        self._store = store
        self.refused = set[str]()
        """Ids of sessions that somebody else has."""

    def claim(self, batch: FeedBatch) -> None:
        """Make new sessions the owner's, and note which of these sessions somebody else has."""
        owner = self._owner
        if owner is None or not owner.user:
            return
        sent = {row[0] for row in batch.rows.get("sessions", ())}
        names = {key: ":".join(name) for key, name in batch.names.get("sessions", {}).items()}
        gone = (*batch.forgotten, *batch.withdrawn)
        ids = sorted({*names.values(), *gone, *(row[0] for row in batch.rows.get("links", ()))})
        # Sessions that programs write here have no row of their own among the owners.
        native = "SELECT agent || ':' || external_id FROM sessions WHERE native = 1 AND agent || ':' || external_id"
        self.refused |= {
            session_id
            for chunk in in_chunks(ids)
            for (session_id,) in self._connection.execute(
                f"{native} IN (SELECT value FROM json_each(?)) AND NOT EXISTS"
                " (SELECT 1 FROM session_owners o WHERE o.session_id = agent || ':' || external_id)",
                (chunk,),
            )
        }
        known = self._owners(ids)
        new = [key for key in sorted(sent & names.keys(), key=names.__getitem__) if names[key] not in known]
        if new:
            self._connection.executemany(
                "INSERT OR IGNORE INTO session_owners (session_id, owner_user, machine, store, level)"
                " VALUES (?, ?, ?, ?, ?)",
                [(names[key], owner.user, owner.machine, self._store, batch.levels.get(key, "full")) for key in new],
            )
            # Somebody else may have been first.
            known |= self._owners([names[key] for key in new])
        self.refused |= {session_id for session_id, user in known.items() if user != owner.user}

    def _owners(self, ids: Sequence[str]) -> dict[str, str]:
        """Session -> whose it is."""
        found: dict[str, str] = {}
        for chunk in in_chunks(ids):
            found |= dict(
                self._connection.execute(
                    "SELECT session_id, owner_user FROM session_owners"
                    " WHERE session_id IN (SELECT value FROM json_each(?))",
                    (chunk,),
                ).fetchall()
            )
        return found

    def forgotten_ids(self) -> set[str]:
        """Ids of sessions that are kept out: forgotten here, or by this owner."""
        found = {row[0] for row in self._connection.execute("SELECT session_id FROM tombstones")}
        return found | {name.removeprefix(self.own) for name in found if self.own and name.startswith(self.own)}

    @property
    def own(self) -> str:
        """Before the id of a session that its owner forgot before anybody pushed it: others may have one of this id."""
        return f"{self._owner.user}/" if self._owner is not None and self._owner.user else ""
