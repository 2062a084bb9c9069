"""What goes from the store with a batch: sessions that were forgotten where it comes from, or taken back.

What was forgotten stays out of the batch, too, with its files and messages: no word of it is written.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from turnlog.store.feed.keys import Keys
from turnlog.store.feed.owners import SessionOwners
from turnlog.store.feed.tables import FeedTables, in_chunks
from turnlog.store.feed.taken_back import TakenBack
from turnlog.store.feed.values import OF_SOURCE, TABLES, FeedBatch
from turnlog.store.feed.withholding import withhold
from turnlog.store.sqlite.forget import concerned, forget

if TYPE_CHECKING:
    from turnlog.store.connection import Connection


def withdraw(
    connection: Connection, session_id: str, user: str = "", kept_projects: Iterable[int] = ()
) -> Sequence[str]:
    """Delete a session that may come again; returns its id and those of what goes with it.

    The caller owns the transaction. Arguments are as of `forget`.
    """
    plan = forget(connection, session_id, user, kept_projects)
    connection.execute(
        "DELETE FROM tombstones WHERE session_id IN (SELECT value FROM json_each(?))", (json.dumps(plan.session_ids),)
    )
    return plan.session_ids


class Removal:
    """Deletes the sessions that go with one batch."""

    def __init__(
        self, connection: Connection, owners: SessionOwners, taken_back: TakenBack, user: str, store: str
    ) -> None:
        """The batch comes from the store with this id, and is this person's, or nobody's if `user` is empty."""
        self._connection = connection
        self._owners = owners
        self._taken_back = taken_back
        self._user = user
        self._store = store
        self._tables = FeedTables(connection)
        self._now = int(time.time() * 1000)
        self.forgotten: list[str] = []
        """Ids of sessions that were here and are deleted."""
        self.withdrawn: list[str] = []
        """Ids of sessions that were here and may come again."""

    def run(self, batch: FeedBatch, kept_projects: Collection[int], wait_for_writers: Callable[[], object]) -> set[str]:
        """Delete sessions, but not these projects; returns the ids of those that are forgotten, now or before."""
        outgrown = self._owners.outgrown(batch)
        if batch.forgotten or batch.withdrawn or outgrown:
            # What others write refers to contents that are about to go.
            wait_for_writers()
        self._forget(batch.forgotten, kept_projects)
        self._withdraw(batch.withdrawn, outgrown, kept_projects)
        named = {*map(":".join, batch.names.get("sessions", {}).values())}
        linked = TABLES["links"].index("child_id")
        named |= {row[linked] for row in batch.rows.get("links", ())}
        # Files come with batches that do not name their sessions.
        of_source = TABLES["sources"].index("session_id")
        named |= {row[of_source] for row in batch.rows.get("sources", ())} - {None}
        forgotten = self._owners.forgotten_ids(named)
        return self._with_subagents(batch, forgotten)

    def _forget(self, session_ids: Sequence[str], kept_projects: Collection[int]) -> None:
        unknown: list[str] = []
        for session_id in self._with_copies(session_ids):
            if self._tables.has_session(session_id):
                self._withhold(session_id)
                forget(self._connection, session_id, self._user, kept_projects)
                self.forgotten.append(session_id)
            else:
                unknown.append(session_id)
        # Nobody has pushed these yet, but another machine of the same person may still do so.
        self._bury(unknown)
        if session_ids:
            self._taken_back.drop_forgotten()

    def _withdraw(self, session_ids: Sequence[str], outgrown: Sequence[str], kept_projects: Collection[int]) -> None:
        """Delete what may come again; `outgrown` are ids under which nobody looks for it any more."""
        gone: list[str] = []
        for session_id in (*session_ids, *outgrown):
            if self._tables.has_session(session_id):  # a subagent has gone with its parent
                self._withhold(session_id)
                gone += withdraw(self._connection, session_id, self._user, kept_projects)
                if session_id not in outgrown:
                    self.withdrawn.append(session_id)
        self._taken_back.note(gone)

    def _withhold(self, session_id: str) -> None:
        if self._user:
            concerns = concerned(self._connection, session_id, self._user)
            withhold(self._connection, concerns, self._user, self._store)

    def _bury(self, session_ids: Iterable[str]) -> None:
        """Keep sessions out that are not here, unless that is so already."""
        known: set[str] = set()
        for chunk in in_chunks(wanted := sorted(session_ids)):
            query = "SELECT session_id FROM tombstones WHERE session_id IN (SELECT value FROM json_each(?))"
            known |= {session_id for (session_id,) in self._connection.execute(query, (chunk,)).fetchall()}
        self._connection.executemany(
            "INSERT OR IGNORE INTO tombstones (session_id, forgotten_at) VALUES (?, ?)",
            [(f"{self._owners.own}{session_id}", self._now) for session_id in wanted if session_id not in known],
        )

    def _with_subagents(self, batch: FeedBatch, forgotten: set[str]) -> set[str]:
        """These sessions, and subagents of them that are new here: they are forgotten as their parents were."""
        if not forgotten or not self._user:
            return forgotten
        parents = self._parents_of_new(batch)
        found = set(forgotten)
        while new := {child for child, parent in parents.items() if parent in found and child not in found}:
            found |= new
        self._bury(found - forgotten)
        return found

    def _parents_of_new(self, batch: FeedBatch) -> dict[str, str]:
        """Id of each subagent that comes for the first time -> the id here of its parent."""
        names = {key: ":".join(name) for key, name in batch.names.get("sessions", {}).items()}
        key, parent, relationship = map(TABLES["sessions"].index, ("key", "parent_key", "relationship"))
        parents = {
            names[row[key]]: names[row[parent]]
            for row in batch.rows.get("sessions", ())
            if row[relationship] == "subagent" and row[parent] in names and row[key] in names
        }
        # Where the machine has forgotten the parent itself, only the link names it.
        child, parent, kind = map(TABLES["links"].index, ("child_id", "parent_id", "kind"))
        new = {*names.values()}
        for row in batch.rows.get("links", ()):
            if row[kind] == "subagent" and row[child] in new:
                parents.setdefault(row[child], row[parent])
        stored_as = dict(
            self._connection.execute("SELECT session_id, stored_as FROM session_copies WHERE store = ?", (self._store,))
        )
        return {
            child: stored_as.get(parents[child], parents[child])
            for child in parents
            if not self._tables.has_session(child)
        }

    def _with_copies(self, session_ids: Sequence[str]) -> list[str]:
        """These sessions, and the forks under which copies of them on the owner's machines are stored."""
        found = list(session_ids)
        for chunk in in_chunks(found) if self._user else ():
            rows = self._connection.execute(
                "SELECT c.stored_as FROM session_copies c JOIN session_owners o ON o.session_id = c.stored_as"
                " WHERE c.session_id IN (SELECT value FROM json_each(?)) AND o.owner_user = ?",
                (chunk, self._user),
            )
            found += [stored_as for (stored_as,) in rows]
        return found


def without_sources(connection: Connection, batch: FeedBatch, keys: Keys, forgotten: set[str]) -> FeedBatch:
    """The batch without files of forgotten sessions alone: with their row, their bytes would be taken.

    They may be here from a batch that did not say whose they are, as that of a new subagent: then they go. `keys` has
    those of the sessions that are written.
    """
    if not forgotten:
        return batch
    sessions, rows = keys.of("sessions"), batch.rows
    kept, of_others = set[int](), set[int]()
    for table in ("memberships", "events"):
        columns = TABLES[table]
        session, source = columns.index("session_key"), columns.index("source_key")
        for row in rows.get(table, ()):
            (kept if row[session] in sessions else of_others).add(row[source])
    session_id = TABLES["sources"].index("session_id")
    out = {
        row[0]
        for row in rows.get("sources", ())
        if row[0] not in kept and (row[session_id] in forgotten or (row[session_id] is None and row[0] in of_others))
    }
    if not out:
        return batch
    rows, names = dict(rows), {**batch.names}
    for chunk in in_chunks(sorted(names["sources"][key][0] for key in out)):
        connection.execute(
            "DELETE FROM sources WHERE path IN (SELECT value FROM json_each(?))"
            " AND NOT EXISTS (SELECT 1 FROM memberships m WHERE m.source_key = sources.key)"
            " AND NOT EXISTS (SELECT 1 FROM streams t WHERE t.source_key = sources.key)",
            (chunk,),
        )
    names["sources"] = {key: name for key, name in names.get("sources", {}).items() if key not in out}
    for table, key in (("sources", "key"), *((table, "source_key") for table in OF_SOURCE)):
        at = TABLES[table].index(key)
        rows[table] = [row for row in rows.get(table, ()) if row[at] not in out]
    return msgspec.structs.replace(batch, rows=rows, names=names)


def shown_by_forgotten(batch: FeedBatch, forgotten: set[str]) -> set[int]:
    """The forgotten sessions that a batch brings because of which a message of another session came with more words."""
    names = batch.names.get("sessions", {})
    gone = {key for key, name in names.items() if ":".join(name) in forgotten}
    if not gone:
        return set()
    brought = {row[0] for row in batch.rows.get("messages", ())}
    sessions: dict[int, set[int]] = defaultdict(set)
    for table in ("memberships", "superseded"):
        for row in batch.rows.get(table, ()):
            if row[2] in brought:
                sessions[row[2]].add(row[0])
    found = set[int]()
    for each in sessions.values():
        kept = {batch.levels.get(key, "full") for key in each - gone}
        if kept and "full" not in kept:
            found |= {key for key in each & gone if batch.levels.get(key, "full") == "full"}
    return found


def without_messages(batch: FeedBatch, keys: Keys) -> FeedBatch:
    """The batch without messages of which no session is written. `keys` has those of the sessions that are."""
    sessions, names = keys.of("sessions"), batch.names
    if names.get("sessions", {}).keys() <= sessions.keys():
        return batch
    places = [row for table in ("memberships", "superseded") for row in batch.rows.get(table, ())]
    kept = {row[2] for row in places if row[0] in sessions}
    out = {row[2] for row in places} - kept
    rows = dict(batch.rows)
    for table, at in (("messages", 0), ("parts", 0), ("more_paths", 1), ("blob_uses", 1)):
        rows[table] = [row for row in rows.get(table, ()) if row[at] not in out]
    uses = {row[0] for row in rows["blob_uses"]}
    rows["blobs"] = [row for row in rows.get("blobs", ()) if row[0] in uses]
    messages = {key: name for key, name in names.get("messages", {}).items() if key not in out}
    return msgspec.structs.replace(
        batch,
        rows=rows,
        names={**names, "messages": messages},
        bodies={key: body for key, body in batch.bodies.items() if key not in out},
    )
