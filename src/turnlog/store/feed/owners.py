"""Whose the sessions of a feed are: nobody's batch touches what somebody else has.

Ids are a person's own. Where somebody else was first with an id, the session is stored beside theirs, with the pusher's
own id behind it, so that nobody is kept out and nobody's session is written over.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from turnlog.errors import StoreBusyError
from turnlog.store.feed.hidden_ids import HiddenIds
from turnlog.store.feed.tables import in_chunks
from turnlog.store.feed.values import TABLES, FeedBatch, Row

if TYPE_CHECKING:
    from turnlog.store.connection import Connection

_SESSION_IDS: Final[dict[str, tuple[str, ...]]] = {
    "links": ("child_id", "parent_id"),
    "annotations": ("session_id",),
    "answers": ("session_id", "log_id"),
    "runs": ("session_id",),
    "spills": ("session_id",),
    "sources": ("session_id",),
}
"""Table -> the columns with ids of sessions."""


class Owner(NamedTuple):
    """Whose rows a batch has. Nobody's batch touches what somebody else has."""

    user: str = ""
    """Empty for stores that one user has."""
    machine: str = ""


NOBODY: Final = Owner()


class OwnIds(NamedTuple):
    """A batch whose ids are its owner's own."""

    batch: FeedBatch
    stored_as: dict[str, str]
    """Id that somebody else has -> the id of the owner's session here, of what the batch names."""


def with_own_ids(connection: Connection, batch: FeedBatch, user: str) -> OwnIds:
    """Name the sessions of a batch so that none is somebody else's."""
    taken = _of_others(connection, _ids_of(batch), user)
    if not taken:
        return OwnIds(batch, {})
    stored_as: dict[str, str] = {}
    number = 1
    while taken:
        ending = f"~{user}" if number == 1 else f"~{user}~{number}"
        wanted = {f"{session_id}{ending}": session_id for session_id in taken}
        # Somebody may have guessed this one, too.
        taken = {wanted[name] for name in _of_others(connection, wanted, user)}
        stored_as |= {session_id: name for name, session_id in wanted.items() if session_id not in taken}
        number += 1
    return OwnIds(renamed(batch, stored_as), stored_as)


_ENDINGS: Final = re.compile(r"(~u-[0-9a-f]{16}(~[0-9]+)?|~m-[0-9a-f]{16})+\Z")
"""What a hub puts behind an id: its person, or its machine where copies of a session part (`copies`)."""


def agents_own_id(external_id: str) -> str:
    """The id that a session of a hub has on the machine that pushed it."""
    return _ENDINGS.sub("", external_id)


def _ids_of(batch: FeedBatch) -> set[str]:
    """Every session that a batch names."""
    found = {*map(":".join, batch.names.get("sessions", {}).values()), *batch.forgotten, *batch.withdrawn}
    for table, columns in _SESSION_IDS.items():
        rows = batch.rows.get(table, ())
        for column in columns if rows else ():
            at = TABLES[table].index(column)
            found |= {row[at] for row in rows}
    return found - {None}


def _of_others(connection: Connection, session_ids: Iterable[str], user: str) -> set[str]:
    """Those of these sessions that somebody else has."""
    found: set[str] = set()
    # Sessions that programs write here may have no row among the owners.
    native = "SELECT agent || ':' || external_id FROM sessions WHERE native = 1 AND agent || ':' || external_id"
    for chunk in in_chunks(sorted(session_ids)):
        rows = connection.execute(
            "SELECT session_id FROM session_owners WHERE session_id IN (SELECT value FROM json_each(?))"
            f" AND owner_user <> ? UNION ALL {native} IN (SELECT value FROM json_each(?)) AND NOT EXISTS"
            " (SELECT 1 FROM session_owners o WHERE o.session_id = agent || ':' || external_id)",
            (chunk, user, chunk),
        )
        found |= {session_id for (session_id,) in rows}
    return found


def renamed(batch: FeedBatch, stored: Mapping[str, str]) -> FeedBatch:
    """The batch with other ids for these sessions."""
    names = dict(batch.names.get("sessions", {}))
    rows = dict(batch.rows)
    changed: dict[int, str] = {}
    for key, name in names.items():
        new = stored.get(":".join(name))
        if new is not None:
            changed[key] = new.partition(":")[2]
            names[key] = (name[0], changed[key])
    at = TABLES["sessions"].index("external_id")
    rows["sessions"] = [
        (*row[:at], changed[row[0]], *row[at + 1 :]) if row[0] in changed else row for row in rows.get("sessions", ())
    ]
    for table, columns in _SESSION_IDS.items():
        places = [TABLES[table].index(column) for column in columns]
        rows[table] = [_with_ids(row, places, stored) for row in rows.get(table, ())]
    return msgspec.structs.replace(
        batch,
        rows=rows,
        names={**batch.names, "sessions": names},
        forgotten=[stored.get(session_id, session_id) for session_id in batch.forgotten],
        withdrawn=[stored.get(session_id, session_id) for session_id in batch.withdrawn],
    )


def _with_ids(row: Row, places: Sequence[int], stored: Mapping[str, str]) -> Row:
    if not any(row[at] in stored for at in places):
        return row
    values: list[Any] = list(row)
    for at in places:
        values[at] = stored.get(values[at], values[at])
    return tuple(values)


class SessionOwners:
    """The owners of the sessions of one batch."""

    def __init__(
        self, connection: Connection, owner: Owner | None, store: str, hidden: HiddenIds | None = None
    ) -> None:
        """`owner` sends the batch, from the store with this id; None where the tables have no owners.

        `hidden` makes the ids under which the owner's sessions come at the level `metrics`.
        """
        self._hidden = hidden
        self._connection = connection
        self._owner = owner
        self._store = store

    def claim(self, batch: FeedBatch) -> None:
        """Make new sessions the owner's. Raises StoreBusyError if somebody else was first just now."""
        owner = self._owner
        if owner is None or not owner.user:
            return
        sent = {row[0] for row in batch.rows.get("sessions", ())}
        names = {key: ":".join(name) for key, name in batch.names.get("sessions", {}).items() if key in sent}
        known = self._owners(sorted(names.values()))
        new = [key for key in sorted(names, key=names.__getitem__) if names[key] not in known]
        if new:
            self._connection.executemany(
                "INSERT OR IGNORE INTO session_owners (session_id, owner_user, machine, store, level)"
                " VALUES (?, ?, ?, ?, ?)",
                [(names[key], owner.user, owner.machine, self._store, batch.levels.get(key, "full")) for key in new],
            )
            known |= self._owners([names[key] for key in new])
        if any(user != owner.user for user in known.values()):
            # When the batch comes again, it is stored under an id of its own.
            raise StoreBusyError("somebody else has just pushed a session with the id of one of this batch")

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

    def outgrown(self, batch: FeedBatch) -> list[str]:
        """Ids at the level `metrics` of sessions that come under another one now.

        Those of a higher level were sent so by this machine, whose store may have another id since then, as with
        another host name. Those at `metrics` had an earlier id, from whichever machine.
        """
        owner = self._owner
        if owner is None or not owner.user or self._hidden is None:
            return []
        names = batch.names.get("sessions", {})
        sent = {row[0]: self._sent_id(":".join(names[row[0]])) for row in batch.rows.get("sessions", ())}
        at_metrics = {name for key, name in sent.items() if batch.levels.get(key) == "metrics"}
        higher = {*sent.values()} - at_metrics
        hidden = sorted({name(each) for each in higher for name in (self._hidden.session, self._hidden.earlier)})
        found: list[str] = []
        for chunk in in_chunks(hidden):
            rows = self._connection.execute(
                "SELECT session_id FROM session_owners WHERE session_id IN (SELECT value FROM json_each(?))"
                " AND owner_user = ? AND (store = ? OR machine = ?) AND level = 'metrics' AND session_key IS NOT NULL",
                (chunk, owner.user, self._store, owner.machine),
            )
            found += [session_id for (session_id,) in rows]
        return found + (self._earlier(at_metrics) if at_metrics else [])

    def _earlier(self, session_ids: Collection[str]) -> list[str]:
        """Ids of the owner's sessions at `metrics` that have one of these ids now."""
        assert self._owner is not None
        assert self._hidden is not None
        rows = self._connection.execute(
            "SELECT session_id FROM session_owners"
            " WHERE owner_user = ? AND level = 'metrics' AND session_key IS NOT NULL",
            (self._owner.user,),
        )
        known = {session_id: self._sent_id(session_id) for (session_id,) in rows.fetchall()}
        return [
            session_id
            for session_id, name in known.items()
            if name not in session_ids and self._hidden.renewed(name) in session_ids
        ]

    def forgotten_ids(self, session_ids: Iterable[str]) -> set[str]:
        """Ids of sessions that are kept out: forgotten here, or by this owner.

        Those of `session_ids` are among them that were forgotten under the id of another upload level, unless they are
        here: one machine may send numbers and another all, and forgetting the one leaves the other. So are earlier ids
        of sessions that are here under the id of now: a machine with an older turnlog sends them.
        """
        found = {row[0] for row in self._connection.execute("SELECT session_id FROM tombstones")}
        found |= {name.removeprefix(self.own) for name in found if self.own and name.startswith(self.own)}
        if self._hidden is None:
            return found
        renewed = {each: self._hidden.renewed(self._sent_id(each)) for each in session_ids}
        here = self._stored(renewed.values())
        replaced = {each for each, name in renewed.items() if name in here and name != each}
        if not found:
            return replaced
        elsewhere = {name for each in self._own_forgotten() for name in self._other_ids(each)}
        others = {each for each in renewed if each in elsewhere or not found.isdisjoint(self._other_ids(each))}
        return found | replaced | (others - self._stored(others))

    def _other_ids(self, session_id: str) -> tuple[str, ...]:
        """Ids that a session with this id has, or had, at the level `metrics`."""
        assert self._hidden is not None
        name = self._sent_id(session_id)
        return self._hidden.session(name), self._hidden.earlier(name), self._hidden.renewed(name)

    def _stored(self, session_ids: Iterable[str]) -> set[str]:
        found: set[str] = set()
        for chunk in in_chunks(sorted(session_ids)):
            rows = self._connection.execute(
                "SELECT session_id FROM session_owners WHERE session_id IN (SELECT value FROM json_each(?))"
                " AND session_key IS NOT NULL",
                (chunk,),
            )
            found |= {session_id for (session_id,) in rows.fetchall()}
        return found

    def _sent_id(self, session_id: str) -> str:
        """The id under which the owner's machines send a session that may be beside somebody else's, or a fork."""
        assert self._owner is not None
        user, machine = map(re.escape, self._owner)
        return re.sub(rf"(~{user}(~[0-9]+)?|~{machine})+\Z", "", session_id)

    def _own_forgotten(self) -> set[str]:
        """Ids of sessions that this owner had here, or forgot before anybody pushed them."""
        assert self._owner is not None
        rows = self._connection.execute(
            "SELECT t.session_id FROM tombstones t JOIN session_owners o ON o.session_id = t.session_id"
            " WHERE o.owner_user = ? UNION ALL SELECT substr(session_id, ?) FROM tombstones"
            " WHERE substr(session_id, 1, ?) = ?",
            (self._owner.user, len(self.own) + 1, len(self.own), self.own),
        )
        return {session_id for (session_id,) in rows.fetchall()}

    @property
    def own(self) -> str:
        """Before the id of a session that its owner forgot before anybody pushed it: others may have one of this id."""
        return f"{self._owner.user}/" if self._owner is not None and self._owner.user else ""
