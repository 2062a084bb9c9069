"""Writes batches of the change feed of another store, each in one transaction of the caller.

Rows get keys of this store. Bodies, parts and places of new messages are written first; numbers of this store's change
sequence are drawn after that, because from then on other writers wait; the rows that have these numbers come last.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec

from turnlog.errors import ConflictError
from turnlog.store import zstd
from turnlog.store.feed.copies import (
    AbsenceNeededError,
    CopiesNeededError,
    Forks,
    MessagesNeededError,
    bill_once,
    settle,
)
from turnlog.store.feed.digests import MessageDigests, SessionDigests
from turnlog.store.feed.hidden_ids import HiddenIds
from turnlog.store.feed.keys import Keys, find_names, stored_keys
from turnlog.store.feed.moves import Moves, PlaceComparison
from turnlog.store.feed.owners import Owner, SessionOwners, with_own_ids
from turnlog.store.feed.progress import lock_progress, lock_setting, progress_of, save_progress
from turnlog.store.feed.removal import Removal, shown_by_forgotten, without_messages, without_sources
from turnlog.store.feed.tables import FeedTables, in_chunks
from turnlog.store.feed.taken_back import TakenBack
from turnlog.store.feed.values import OF_SOURCE, TABLES, ArchivedBytes, FeedBatch, FeedPosition, Row
from turnlog.store.frames import PLACE_COLUMNS, drop_bodies
from turnlog.store.sqlite.forget import UNUSED_PROJECT

if TYPE_CHECKING:
    from turnlog.store.connection import Connection

Insert: TypeAlias = Callable[[str, Sequence[str], Sequence[Row]], None]
"""Writes new rows of a table: name, columns, rows."""


class Taken(NamedTuple):
    """What became of a batch."""

    is_new: bool
    """False if it was taken before."""
    stored_as: Mapping[str, str] = {}
    """Id that somebody else has -> the id of the session here, of what the batch names."""
    forgotten: tuple[str, ...] = ()
    """Ids of sessions that were here and are deleted, without those that went with them."""
    withdrawn: tuple[str, ...] = ()
    """As `forgotten`, of sessions that may come again, at another level."""


_OF_MESSAGE: Final = ("parts", "more_paths", "blob_uses")
_OF_SESSION: Final = ("usage", "call_totals", "edit_totals", "streams")

_LARGEST_BODY: Final = 256 << 20
"""Bytes of a decompressed body that is taken."""


def take(
    connection: Connection,
    store: str,
    batch: FeedBatch,
    insert: Insert,
    owner: Owner | None = None,
    check_body: Callable[[bytes], object] = lambda body: None,
    wait_for_writers: Callable[[], object] = lambda: None,
    hidden: HiddenIds | None = None,
) -> Taken:
    """Write a batch of the store with this id. The caller owns the transaction: if it is undone, nothing remains.

    `owner` is None where the tables have no owners and no digests: in a file. `check_body` raises ValueError for the
    JSON of a message that is not taken; `wait_for_writers` keeps others from drawing numbers of changes. `hidden` makes
    the ids that the owner's sessions have at the level `metrics`: what is forgotten is so at every level.

    Raises ConflictError if something is missing between what was taken and this batch, or it is of an earlier
    generation; BeginAgainError if it is a part of a session that another machine has taken back.
    """
    if owner is not None and owner.user:
        # Two machines of one person may have the same new rows.
        lock_setting(connection, f"pushes of {owner.user}", "")
    lock_progress(connection, store)
    known, generation = progress_of(connection, store)
    if batch.generation < generation:
        raise ConflictError(f"the feed of {store} is in generation {generation}: {batch.generation} is over")
    # A machine begins one when its store was made anew or restored, or its levels were changed: all comes again.
    if batch.generation > generation:
        known = FeedPosition()
    # The batch was taken, but the answer was lost on the way: the machine sends it again. One that moves nothing on
    # has messages that come again before what follows.
    elif known == batch.until != batch.after or _is_behind(batch.until, known):
        return Taken(is_new=False)
    if known != batch.after:
        raise ConflictError(f"the feed of {store} was taken up to {list(known)}: {list(batch.after)} does not follow")
    taking = _Taking(connection, batch, insert, owner, store, check_body, hidden)
    taking.run(wait_for_writers, begins=known == FeedPosition())
    save_progress(connection, store, batch.until, batch.generation, "" if owner is None else owner.machine)
    return Taken(True, taking.stored_as, tuple(taking.removal.forgotten), tuple(taking.removal.withdrawn))


def _is_behind(position: FeedPosition, known: FeedPosition) -> bool:
    return position.sequence <= known.sequence and position[1:3] < known[1:3]


def take_archived(connection: Connection, archived: Sequence[ArchivedBytes], insert: Insert) -> None:
    """Write frames of the archive of sources in the place of those that are there. The caller owns the transaction."""
    keys: dict[str, int] = {}
    for chunk in in_chunks(sorted({each.path for each in archived})):
        query = "SELECT path, key FROM sources WHERE path IN (SELECT value FROM json_each(?))"
        keys |= dict(connection.execute(query, (chunk,)).fetchall())
    known = [(keys[each.path], each) for each in archived if each.path in keys]
    connection.executemany(
        "DELETE FROM archive WHERE source_key = ? AND (generation > ? OR generation = ? AND start >= ?)",
        [(key, each.generation, each.generation, each.start) for key, each in known],
    )
    columns = ("source_key", "generation", "start", "length", "data")
    insert("archive", columns, [(key, *frame) for key, each in known for frame in each.frames])


class _Taking:
    """One batch in one transaction."""

    def __init__(
        self,
        connection: Connection,
        batch: FeedBatch,
        insert: Insert,
        owner: Owner | None,
        store: str,
        check_body: Callable[[bytes], object],
        hidden: HiddenIds | None,
    ) -> None:
        self._connection = connection
        self._batch = batch
        self._sent_names = batch.names.get("sessions", {})
        self._keys = Keys()
        self._check_body = check_body
        self._insert = insert
        self._owner = owner
        self._store = store
        self._now = int(time.time() * 1000)
        self._new: dict[str, set[int]] = {"sessions": set(), "messages": set()}
        """Keys in this store of the rows that are new."""
        self._mapped: list[Row] | None = None
        self._forks = Forks()
        self._left_out: set[str] = set()
        """Ids of sessions of which nothing is written."""
        self._shared: dict[int, dict[int, int]] = {}
        """Fork -> message that is billed to its origin -> the origin."""
        self._owners = SessionOwners(connection, owner, store, hidden)
        self._taken_back = TakenBack(connection, "" if owner is None else owner.user, store)
        self._tables = FeedTables(connection)
        self.removal = Removal(connection, self._owners, self._taken_back, self._user, store)
        self.stored_as: dict[str, str] = {}
        """Id that somebody else has -> the id that the session gets instead."""
        self._sizes: dict[int, int] = {}
        """Key of a message in the batch -> the size of its body."""
        self._message_digests = MessageDigests(connection, insert, is_kept=owner is not None)
        self._session_digests = SessionDigests(connection, insert, is_kept=owner is not None)

    def run(self, wait_for_writers: Callable[[], object], *, begins: bool) -> None:
        """Write all rows. `begins` says whether this is the first batch of a feed. Raises BeginAgainError."""
        self._keys = find_names(self._connection, self._batch, wait_for_writers)
        if self._owner is not None and self._is_of_many:
            self._find_own_ids(self._owner)
            if begins:
                self._taken_back.begin()
            else:
                # What is a fork now may have been the end of the one that was taken back.
                self._taken_back.check(self._session_ids() | {*self._forks.origins.values()})
        # What is forgotten gets no key, and rows without keys are not written.
        self._owners.claim(self._batch)
        named = self._keys.of("projects").values()
        gone = self.removal.run(self._batch, named, wait_for_writers)
        if self._is_of_many and (shown := shown_by_forgotten(self._batch, gone)):
            raise AbsenceNeededError(sorted(":".join(self._sent_names[key]) for key in shown))
        self._left_out = gone | self._forks.outdated
        self._find_keys("sessions", "SELECT max(key) FROM sessions", self._left_out)
        # A file may change, and its session not.
        absent = gone | self._taken_back.gone() if self._is_of_many else gone
        self._batch = without_sources(self._connection, self._batch, self._keys, absent)
        self._save_sources()
        self._batch = without_messages(self._batch, self._keys)
        self._find_keys("messages", "SELECT seq FROM sqlite_sequence WHERE name = 'messages'", set())
        if self._is_of_many:
            self._check_places()
        self._batch = self._message_digests.without_unchanged(self._batch, self._keys, self._new["messages"])
        with ThreadPoolExecutor(1, "turnlog-bodies") as thread:  # while the database writes
            sizes = thread.submit(
                _sizes_of, self._batch.bodies, self._batch.names.get("messages", {}), self._check_body
            )
            self._save_contents()
        self._sizes = sizes.result()
        comparison = PlaceComparison(
            self._connection, self._batch, self._keys, self._new, self._places(), self._complete(), self._origins()
        )
        moves = comparison.find()
        self._shared = comparison.shared
        changed = self._session_digests.changed(self._batch, self._keys)
        numbers = self._draw_numbers(moves, changed)
        self._save_uses(wait_for_writers)
        self._save_sessions(numbers)
        self._save_messages(numbers)
        self._move(numbers, moves)
        self._save_of_sessions(changed)
        # Afterwards: what is superseded now has a place there.
        self._drop_unplaced({key for _, key in moves.removed})
        self._save_others(changed)
        self._save_forks(changed)
        self._message_digests.save(self._new["messages"])
        self._session_digests.save(changed)
        self._drop_unused_projects()

    # -- before a number is drawn

    def _drop_unused_projects(self) -> None:
        """Names are made first: those of forgotten sessions alone go again."""
        if self._batch.names.get("sessions", {}).keys() <= self._keys.of("sessions").keys():
            return
        keys = json.dumps([*self._keys.of("projects").values()])
        self._connection.execute(
            f"DELETE FROM projects WHERE key IN (SELECT value FROM json_each(?)) AND {UNUSED_PROJECT}", (keys,)
        )

    def _find_own_ids(self, owner: Owner) -> None:
        """Name the sessions so that no id is somebody else's, or that of a copy with other messages."""
        self._batch, self.stored_as = with_own_ids(self._connection, self._batch, owner.user)
        try:
            self._batch, self._forks = settle(self._connection, self._batch, self._store, owner.user, owner.machine)
        except CopiesNeededError as error:
            # The machine knows its sessions by the ids that it has sent.
            sent_as = {stored: session_id for session_id, stored in self.stored_as.items()}
            raise CopiesNeededError([sent_as.get(each, each) for each in error.session_ids]) from None
        if self._forks.origins:
            self._batch, _ = with_own_ids(self._connection, self._batch, owner.user)

    def _session_ids(self) -> set[str]:
        """Ids here of the sessions of which the batch has rows."""
        names = self._batch.names.get("sessions", {})
        return {":".join(names[row[0]]) for row in self._batch.rows.get("sessions", ())}

    def _check_places(self) -> None:
        """Raise MessagesNeededError if a place has a message that is neither here nor in the batch.

        It went with another session, of which the machine that sends it need not know.
        """
        sessions, messages = self._keys.of("sessions"), self._keys.of("messages")
        missing = self._batch.names.get("messages", {}).keys() - messages.keys()
        torn = {
            row[0]
            for table in ("memberships", "superseded")
            for row in self._batch.rows.get(table, ())
            if row[2] in missing and row[0] in sessions
        }
        if torn:
            raise MessagesNeededError(sorted(":".join(self._sent_names[key]) for key in torn))

    def _find_keys(self, table: str, last_key: str, left_out: set[str]) -> None:
        """Find the keys of rows that are here, and give keys to those that are not."""
        names = self._batch.names.get(table, {})
        wanted = sorted(names.items())
        owner = self._owner.user if table == "messages" and self._owner is not None else None
        known = stored_keys(self._connection, table, [name for _, name in wanted], owner)
        (last,) = self._connection.execute(last_key).fetchone() or (0,)
        key = last or 0
        sent = {row[0] for row in self._batch.rows.get(table, ())}
        for theirs, name in wanted:
            if ":".join(name) in left_out:
                continue
            ours = known.get(tuple(name))
            if ours is None:
                # Only named by other rows, such as links: it gets a key when its own row comes.
                if theirs not in sent:
                    continue
                key += 1
                ours = key
                self._new[table].add(ours)
            self._keys.note(table, theirs, ours)

    def _save_sources(self) -> None:
        columns = TABLES["sources"][1:]
        self._connection.executemany(
            f"INSERT INTO sources ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
            f" ON CONFLICT (path) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in columns)}",
            [row[1:] for row in sorted(self._batch.rows.get("sources", ()), key=itemgetter(2))],
        )
        names = self._batch.names.get("sources", {})
        known: dict[str, int] = {}
        for chunk in in_chunks(sorted(name[0] for name in names.values())):
            known |= dict(
                self._connection.execute(
                    "SELECT path, key FROM sources WHERE path IN (SELECT value FROM json_each(?))", (chunk,)
                ).fetchall()
            )
        for theirs, name in sorted(names.items()):
            if name[0] in known:
                self._keys.note("sources", theirs, known[name[0]])
        sent = [self._keys.of("sources")[row[0]] for row in self._batch.rows.get("sources", ())]
        kept = self._own_ids() if self._owner is not None and self._owner.user else None
        for table in OF_SOURCE:
            self._tables.delete(table, "source_key", sent)
            rows = self._keys.rows(table, self._batch.rows.get(table, ()))
            if table == "spills" and kept is not None:
                rows = [row for row in rows if row[0] in kept]
            self._insert(table, TABLES[table], rows)

    def _own_ids(self) -> set[str]:
        """Ids of the sessions that this batch may write."""
        known, names = self._keys.of("sessions"), self._batch.names.get("sessions", {})
        return {":".join(names[key]) for key in known}

    def _save_contents(self) -> None:
        """Bodies, parts and places of messages, and blobs."""
        batch, keys = self._batch, self._keys
        messages = keys.of("messages")
        changed = [messages[row[0]] for row in batch.rows.get("messages", ()) if row[0] in messages]
        stored = sorted(set(changed) - self._new["messages"])
        # Each body is a frame of its own, under the negative key of its message, as `frames.save_alone` has it.
        self._tables.delete("frames", "key", [-key for key in stored])
        for table in (*_OF_MESSAGE, *(("blob_claims",) if self._is_of_many else ())):
            self._tables.delete(table, "message_key", stored)
        self._insert("frames", ("key", "data"), [(-messages[key], body) for key, body in batch.bodies.items()])
        if not self._is_of_many:
            self._save_blobs()
        for table in ("parts", "more_paths"):
            self._insert(table, TABLES[table], keys.rows(table, batch.rows.get(table, ())))
        new = self._new["messages"]
        self._insert("memberships", TABLES["memberships"], [row for row in self._places() if row[2] in new])

    def _save_uses(self, wait_for_writers: Callable[[], object]) -> None:
        """Which messages refer to which blobs."""
        uses = self._keys.rows("blob_uses", self._batch.rows.get("blob_uses", ()))
        if self._is_of_many and uses:
            # Others who forget a session delete blobs to which nothing referred when they looked.
            wait_for_writers()
            uses = self._claim_blobs(uses)
        self._insert("blob_uses", TABLES["blob_uses"], uses)

    def _claim_blobs(self, uses: Sequence[Row]) -> list[Row]:
        """Note the references to blobs whose bytes the owner has not sent; return the others."""
        assert self._owner is not None
        user = self._owner.user
        held = {
            sha256
            for sha256 in {row[0] for row in uses}
            if self._connection.execute(
                "SELECT 1 FROM blob_holders WHERE sha256 = ? AND owner = ?", (sha256, user)
            ).fetchone()
        }
        facts = {row[0]: row[1:3] for row in self._batch.rows.get("blobs", ())}
        claims = [(key, sha256, user, *facts.get(sha256, (0, None))) for sha256, key in uses if sha256 not in held]
        self._insert("blob_claims", ("message_key", "sha256", "owner", "size", "media_type"), claims)
        return [row for row in uses if row[0] in held]

    def _save_blobs(self) -> None:
        columns = TABLES["blobs"]
        self._connection.executemany(
            f"INSERT OR IGNORE INTO blobs ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            sorted(self._batch.rows.get("blobs", ()), key=itemgetter(0)),
        )

    def _places(self) -> list[Row]:
        """All places, once the keys of sessions and messages are found."""
        if self._mapped is None:
            self._mapped = self._keys.rows("memberships", self._batch.rows.get("memberships", ()))
        return self._mapped

    def _origins(self) -> dict[int, int]:
        """Fork -> its origin, by their keys here."""
        sessions = self._keys.of("sessions")
        found: dict[int, int] = {}
        for key, session_id in self._forks.origins.items():
            row = self._connection.execute(
                "SELECT key FROM sessions WHERE agent = ? AND external_id = ?", session_id.partition(":")[::2]
            ).fetchone()
            if row is not None and key in sessions:
                found[sessions[key]] = row[0]
        return found

    def _complete(self) -> list[int]:
        """The sessions of this store of which the batch has everything."""
        sessions = self._keys.of("sessions")
        return sorted(sessions[key] for key in self._batch.complete if key in sessions)

    # -- with numbers of the change sequence

    def _draw_numbers(self, moves: Moves, changed: Collection[int]) -> dict[int, int]:
        """Session -> the number of its change, for every session that changes."""
        messages = self._keys.of("messages")
        written = {messages[row[0]] for row in self._batch.rows.get("messages", ()) if row[0] in messages}
        touched = {row[0] for row in self._places() if row[2] in written or row[2] in moves.billed}
        touched |= self._new["sessions"] | set(changed)
        touched |= {row[0] for row in (*moves.moved, *moves.removed, *moves.events, *moves.gone_events)}
        numbers: dict[int, int] = {}
        for key in sorted(touched):
            (numbers[key],) = self._connection.execute(
                "INSERT INTO changes (session_key, kind, at) VALUES (?, 'session', ?) RETURNING seq", (key, self._now)
            ).fetchone()
        return numbers

    def _save_sessions(self, numbers: dict[int, int]) -> None:
        columns = (*TABLES["sessions"], "changed_seq")
        rows = {row[0]: (*row, numbers[row[0]]) for row in self._own_keys("sessions") if row[0] in numbers}
        for key, origin in self._origins().items():
            if key in rows:
                rows[key] = _as_fork(rows[key], origin)
        new = self._new["sessions"]
        self._insert("sessions", columns, [row for key, row in sorted(rows.items()) if key in new])
        self._tables.update("sessions", columns, [row for key, row in sorted(rows.items()) if key not in new])
        if self._owner is not None and self._owner.user:
            names = {
                self._keys.of("sessions").get(key): (key, name) for key, name in self._batch.names["sessions"].items()
            }
            self._connection.executemany(
                "UPDATE session_owners SET machine = ?, store = ?, level = ? WHERE session_id = ?",
                [
                    (self._owner.machine, self._store, self._batch.levels.get(theirs, "full"), ":".join(name))
                    for theirs, name in (names[key] for key in sorted(rows))
                ],
            )

    def _save_messages(self, numbers: dict[int, int]) -> None:
        sessions: dict[int, int] = {}
        for session, _, message, *_ in self._places():
            sessions[message] = max(sessions.get(message, 0), numbers.get(session, 0))
        last = max(numbers.values(), default=0)
        columns = (*TABLES["messages"], "changed_seq", *PLACE_COLUMNS[:-1])
        own = () if self._owner is None else (self._owner.user,)
        known, bodies = self._keys.of("messages"), self._batch.bodies
        facts = {known.get(key): (size, len(bodies[key])) for key, size in self._sizes.items()}
        rows: dict[int, Row] = {}
        for row in self._own_keys("messages"):
            key = row[0]
            size, packed = facts[key]
            rows[key] = (*row[:-1], size, sessions.get(key) or last, -key, 0, packed, 0, *own)
        columns = (*columns, "owner") if own else columns
        new = self._new["messages"]
        self._insert("messages", columns, [row for key, row in rows.items() if key in new])
        self._tables.update("messages", columns, [row for key, row in sorted(rows.items()) if key not in new])

    def _own_keys(self, table: str) -> list[Row]:
        """The rows of a table with keys, with this store's keys."""
        known = self._keys.of(table)
        rows = [row for row in self._batch.rows.get(table, ()) if row[0] in known]
        return [(known[row[0]], *rest[1:]) for row, rest in zip(rows, self._keys.rows(table, rows), strict=True)]

    def _move(self, numbers: dict[int, int], moves: Moves) -> None:
        """Change the places of stored messages and events."""
        run = self._connection.executemany
        names = {
            row[0]: row[1]
            for row in self._tables.where(
                "messages", "key", sorted({key for _, key in moves.removed}), ("key", "external_id")
            )
        }
        # Read before they are deleted: who follows the changes gets where something was.
        positions = {
            (row[0], row[1]): row[2]
            for row in self._tables.where(
                "memberships", "message_key", sorted(names), ("session_key", "message_key", "position")
            )
        }
        gone = [
            (numbers[session], session, 0, positions.get((session, key), 0), names[key])
            for session, key in moves.removed
        ]
        gone += [(numbers[session], session, 1, position, name) for session, position, name in moves.gone_events]
        run(
            "DELETE FROM memberships WHERE session_key = ? AND message_key = ?",
            [*moves.removed, *((row[0], row[2]) for row in moves.moved)],
        )
        self._insert(
            "memberships", (*TABLES["memberships"], "changed_seq"), [(*row, numbers[row[0]]) for row in moves.moved]
        )
        run(
            "UPDATE messages SET billed_key = ? WHERE key = ?",
            [(ours, key) for key, ours in sorted(moves.billed.items())],
        )
        run("DELETE FROM events WHERE session_key = ? AND position = ? AND external_id = ?", moves.gone_events)
        self._insert("gone", ("seq", "session_key", "is_event", "position", "id"), gone)
        run(
            "DELETE FROM events WHERE session_key = ? AND position = ? AND external_id = ?",
            [row[:3] for row in moves.events if row[0] not in self._new["sessions"]],
        )
        self._insert("events", (*TABLES["events"], "changed_seq"), [(*row, numbers[row[0]]) for row in moves.events])

    def _drop_unplaced(self, messages: Iterable[int]) -> None:
        """Delete those of these messages that no session has any more, and every word of them."""
        gone: list[int] = []
        for chunk in in_chunks(sorted(messages)):
            gone += [
                key
                for (key,) in self._connection.execute(
                    "DELETE FROM messages WHERE key IN (SELECT value FROM json_each(?))"
                    " AND NOT EXISTS (SELECT 1 FROM memberships s WHERE s.message_key = messages.key)"
                    " AND NOT EXISTS (SELECT 1 FROM superseded s WHERE s.message_key = messages.key) RETURNING key",
                    (chunk,),
                ).fetchall()
            ]
        drop_bodies(self._connection, gone)

    def _save_of_sessions(self, changed: Collection[int]) -> None:
        batch, keys, wanted = self._batch, self._keys, set(changed)
        stored = sorted(wanted - self._new["sessions"])
        for table in ("superseded", *_OF_SESSION):
            at = TABLES[table].index("session_key")
            rows = [row for row in keys.rows(table, batch.rows.get(table, ())) if row[at] in wanted]
            self._tables.delete(table, "session_key", stored)
            self._insert(table, TABLES[table], rows)

    def _save_others(self, changed: Collection[int]) -> None:
        """Rows that have no keys of a store."""
        batch, names = self._batch, self._batch.names["sessions"]
        wanted = set(changed)
        ids = {":".join(names[theirs]) for theirs, ours in self._keys.of("sessions").items() if ours in wanted}
        # These tables name sessions by id, not by key, so `Keys.rows` does not leave theirs out.
        for table, column in (("links", "child_id"), ("annotations", "session_id"), ("answers", "session_id")):
            self._tables.delete(table, column, sorted(ids))
            at = TABLES[table].index(column)
            rows = [row for row in batch.rows.get(table, ()) if row[at] not in self._left_out]
            if self._is_of_many and table != "links":
                rows = [row for row in rows if row[at] in ids]
            if self._is_of_many and table == "answers":
                rows = self._not_of_others(table, "message_id", "session_id", rows)
            self._tables.replace(table, rows)
        runs = batch.rows.get("runs", ())
        if self._is_of_many:
            at = TABLES["runs"].index("session_id")
            own = self._own_ids()
            runs = self._not_of_others("runs", "id", "session_id", [row for row in runs if row[at] in own])
        self._tables.replace("runs", runs)
        self._save_projects()

    def _save_forks(self, changed: Collection[int]) -> None:
        """Say of forks what they are forks of, and bill nothing twice."""
        names, sessions = self._batch.names.get("sessions", {}), self._keys.of("sessions")
        self._tables.replace(
            "links",
            [
                (":".join(names[key]), origin, "fork", names[key][0], None, None, 1, None, None, None)
                for key, origin in sorted(self._forks.origins.items())
                if sessions.get(key) in changed
            ],
        )
        shared = {fork: messages for fork, messages in self._shared.items() if fork in changed}
        if shared:
            bill_once(self._connection, shared)

    @property
    def _user(self) -> str:
        """Whose the rows become; empty where one user has the store."""
        return "" if self._owner is None else self._owner.user

    @property
    def _is_of_many(self) -> bool:
        """Whether other people push to this store."""
        return self._user != ""

    def _not_of_others(self, table: str, identity: str, session: str, rows: Sequence[Row]) -> list[Row]:
        """Rows whose identity no row of another session has."""
        at, of = TABLES[table].index(identity), TABLES[table].index(session)
        known: dict[str, str] = {}
        for chunk in in_chunks(sorted(row[at] for row in rows)):
            known |= dict(
                self._connection.execute(
                    f"SELECT {identity}, {session} FROM {table} WHERE {identity} IN (SELECT value FROM json_each(?))",
                    (chunk,),
                ).fetchall()
            )
        return [row for row in rows if known.get(row[at], row[of]) == row[of]]

    def _save_projects(self) -> None:
        named = self._keys.of("projects")
        rows = [dict(zip(TABLES["projects"], row, strict=True)) for row in self._batch.rows.get("projects", ())]
        others = set[int]()
        if self._owner is not None and self._owner.user and rows:
            # What several people have in one folder stays as it is.
            for chunk in in_chunks(sorted(named[project["key"]] for project in rows)):
                others |= {
                    key
                    for (key,) in self._connection.execute(
                        "SELECT DISTINCT s.project_key FROM sessions s JOIN session_owners o"
                        " ON o.session_id = s.agent || ':' || s.external_id AND o.owner_user <> ?"
                        " WHERE s.project_key IN (SELECT value FROM json_each(?))",
                        (self._owner.user, chunk),
                    )
                }
        self._connection.executemany(
            "UPDATE projects SET name = ?, worktree = ?, repository_key = ?, merged_key = ? WHERE key = ?",
            [
                (
                    project["name"],
                    project["worktree"],
                    named.get(project["repository_key"]),
                    named.get(project["merged_key"]),
                    named[project["key"]],
                )
                for project in rows
                if named[project["key"]] not in others
            ],
        )


def _as_fork(row: Row, origin: int) -> Row:
    """The row of a session that is a fork of another one, unless it is something else already."""
    values = list(row)
    at = TABLES["sessions"].index("relationship")
    if values[at] is None:
        values[at], values[TABLES["sessions"].index("parent_key")] = "fork", origin
    return tuple(values)


def _sizes_of(
    bodies: Mapping[int, bytes], names: Mapping[int, Row], check: Callable[[bytes], object]
) -> dict[int, int]:
    """The sizes of all bodies. Raises ValueError for one that cannot be read."""
    return {key: _size_of(body, names[key][1], check) for key, body in bodies.items() if key in names}


def _size_of(body: bytes, message_id: str, check: Callable[[bytes], object]) -> int:
    """The size of a body that another machine compressed. Raises ValueError for one that cannot be read."""
    try:
        size = zstd.content_size(body)
        # A frame that says a size is not decompressed into more than that.
        if 0 < size <= _LARGEST_BODY and len(data := zstd.decompress(body)) == size:
            check(data)
            return size
    except zstd.ZstdError as error:
        raise ValueError(f"the body of message {message_id} is no zstd frame: {error}") from error
    except (ValueError, msgspec.MsgspecError) as error:
        raise ValueError(f"the body of message {message_id} is no JSON that can be read: {error}") from error
    raise ValueError(f"the body of message {message_id} does not have {size} bytes, as it claims")


def encode(batch: FeedBatch) -> bytes:
    """A batch as MessagePack."""
    return msgspec.msgpack.encode(batch)


def decode(data: bytes) -> FeedBatch:
    """The inverse of `encode`. Raises msgspec.ValidationError for anything else."""
    return msgspec.msgpack.decode(data, type=FeedBatch)
