"""Writes batches of the change feed of another store, each in one transaction of the caller.

Rows get keys of this store. Bodies, parts and places of new messages are written first; numbers of this store's change
sequence are drawn after that, because from then on other writers wait; the rows that have these numbers come last.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from turnlog.errors import ConflictError
from turnlog.store import zstd
from turnlog.store.feed.values import (
    IDENTITY,
    KEYS,
    TABLES,
    UNKNOWN_MODEL,
    ArchivedBytes,
    FeedBatch,
    FeedPosition,
    Row,
)
from turnlog.store.frames import PLACE_COLUMNS
from turnlog.store.sqlite.forget import forget

if TYPE_CHECKING:
    from turnlog.store.connection import Connection

Insert: TypeAlias = Callable[[str, Sequence[str], Sequence[Row]], None]
"""Writes new rows of a table: name, columns, rows."""

_NAMED_FIRST: Final = ("models", "price_versions", "owners", "projects")
"""Tables whose rows are found or made before the transaction, so that no two transactions wait for each other's."""

_OF_MESSAGE: Final = ("parts", "more_paths", "blob_uses")
_OF_SESSION: Final = ("usage", "call_totals", "edit_totals", "streams")
_OF_SOURCE: Final = ("diagnostics", "generations", "spills")

_LARGEST_BODY: Final = 256 << 20
"""Bytes of a decompressed body that is taken."""


class Keys:
    """Keys of the other store -> keys of this one, by table."""

    def __init__(self) -> None:
        self._known: dict[str, dict[int, int]] = {table: {} for table in IDENTITY}

    def note(self, table: str, theirs: int, ours: int) -> None:
        """Note the key of a row in this store."""
        self._known[table][theirs] = ours

    def of(self, table: str) -> dict[int, int]:
        """All keys of a table."""
        return self._known[table]

    def rows(self, table: str, rows: Iterable[Row]) -> list[Row]:
        """Rows with this store's keys; rows that name something that is not here are left out."""
        places = [(at, self._known[KEYS[name]]) for at, name in enumerate(TABLES[table]) if name in KEYS]
        required = {at for at, name in enumerate(TABLES[table]) if name in _REQUIRED}
        found: list[Row] = []
        for row in rows:
            values = list(row)
            for at, known in places:
                key = values[at]
                if key is not None and not (key == UNKNOWN_MODEL and known is self._known["models"]):
                    values[at] = known.get(key)
                    if values[at] is None and at in required:
                        break
            else:
                found.append(tuple(values))
        return found


_REQUIRED: Final = frozenset({"session_key", "message_key"})
"""Columns without which a row is of nothing."""


def position_of(connection: Connection, store: str) -> FeedPosition:
    """How far the store with this id was taken."""
    row = connection.execute("SELECT value FROM settings WHERE name = ?", (_setting(store),)).fetchone()
    return FeedPosition() if row is None else FeedPosition(*json.loads(row[0]))


def find_names(connection: Connection, batch: FeedBatch) -> Keys:
    """The keys of what many sessions share: each statement is a transaction of its own."""
    keys = Keys()
    for table in _NAMED_FIRST:
        columns = TABLES[table]
        rows = {row[0]: row for row in batch.rows.get(table, ())}
        identity = IDENTITY[table]
        for theirs, name in sorted(batch.names.get(table, {}).items(), key=itemgetter(1)):
            given = dict(zip(columns, rows[theirs], strict=True)) if theirs in rows else {}
            values = {**dict(zip(identity, name, strict=True)), **_own_values(table, given)}
            connection.execute(
                f"INSERT OR IGNORE INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
                tuple(values.values()),
            )
            keys.note(table, theirs, _find(connection, table, name))
    return keys


def _own_values(table: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a row has besides its identity and its references."""
    return {name: value for name, value in given.items() if name not in (*IDENTITY[table], "key", *KEYS)}


def _find(connection: Connection, table: str, name: Row) -> int:
    conditions = " AND ".join([f"{column} = ?" for column in IDENTITY[table]])
    (key,) = connection.execute(f"SELECT key FROM {table} WHERE {conditions}", name).fetchone()
    return key


def take(connection: Connection, store: str, batch: FeedBatch, keys: Keys, insert: Insert) -> bool:
    """Write a batch of the store with this id; False if it was taken before. The caller owns the transaction.

    Raises ConflictError if something is missing between what was taken and this batch.
    """
    name = _setting(store)
    connection.execute("INSERT OR IGNORE INTO settings (name, value) VALUES (?, ?)", (name, json.dumps(FeedPosition())))
    # Keeps others from taking batches of the same store meanwhile.
    connection.execute("UPDATE settings SET value = value WHERE name = ?", (name,))
    known = position_of(connection, store)
    if known == batch.until or _is_behind(batch.until, known):
        return False
    if known != batch.after:
        raise ConflictError(f"the feed of {store} was taken up to {list(known)}: {list(batch.after)} does not follow")
    _Taking(connection, batch, keys, insert).run()
    connection.execute("UPDATE settings SET value = ? WHERE name = ?", (json.dumps(batch.until), name))
    return True


def _is_behind(position: FeedPosition, known: FeedPosition) -> bool:
    return position.sequence <= known.sequence and position[1:3] < known[1:3]


def take_archived(connection: Connection, archived: ArchivedBytes, insert: Insert) -> None:
    """Write frames of the archive of a source in the place of those that are there. The caller owns the transaction."""
    row = connection.execute("SELECT key FROM sources WHERE path = ?", (archived.path,)).fetchone()
    if row is None:
        return
    connection.execute(
        "DELETE FROM archive WHERE source_key = ? AND (generation > ? OR generation = ? AND start >= ?)",
        (row[0], archived.generation, archived.generation, archived.start),
    )
    columns = ("source_key", "generation", "start", "length", "data")
    insert("archive", columns, [(row[0], *frame) for frame in archived.frames])


def _setting(store: str) -> str:
    return f"feed of {store}"


class _Moves(msgspec.Struct):
    """What changes of messages that are here already."""

    moved: list[Row] = []
    """Places that are new or other than before."""
    removed: list[tuple[int, int]] = []
    """Session and message of places that are gone."""
    gone_events: list[Row] = []
    """Session, position and id."""
    billed: dict[int, int | None] = {}
    """Message -> the session that is billed for it from now on."""


class _Taking:
    """One batch in one transaction."""

    def __init__(self, connection: Connection, batch: FeedBatch, keys: Keys, insert: Insert) -> None:
        self._connection = connection
        self._batch = batch
        self._keys = keys
        self._insert = insert
        self._now = int(time.time() * 1000)
        self._new: dict[str, set[int]] = {"sessions": set(), "messages": set()}
        """Keys in this store of the rows that are new."""

    def run(self) -> None:
        """Write all rows."""
        self._forget()
        self._save_sources()
        self._find_keys("sessions", "SELECT max(key) FROM sessions", self._forgotten_ids())
        self._find_keys("messages", "SELECT seq FROM sqlite_sequence WHERE name = 'messages'", set())
        self._save_contents()
        moves = self._compare_places()
        numbers = self._draw_numbers()
        self._save_sessions(numbers)
        self._save_messages(numbers)
        self._move(numbers, moves)
        self._save_of_sessions(numbers)
        self._save_others()

    # -- before a number is drawn

    def _forget(self) -> None:
        gone = self._forgotten_ids()
        for session_id in self._batch.forgotten:
            agent, _, external_id = session_id.partition(":")
            found = self._connection.execute(
                "SELECT 1 FROM sessions WHERE agent = ? AND external_id = ?", (agent, external_id)
            ).fetchone()
            if found is not None:
                forget(self._connection, session_id)
            elif session_id not in gone:
                self._connection.execute(
                    "INSERT OR IGNORE INTO tombstones (session_id, forgotten_at) VALUES (?, ?)", (session_id, self._now)
                )

    def _forgotten_ids(self) -> set[str]:
        return {row[0] for row in self._connection.execute("SELECT session_id FROM tombstones")}

    def _find_keys(self, table: str, last_key: str, forgotten: set[str]) -> None:
        """Find the keys of rows that are here, and give keys to those that are not."""
        names = self._batch.names.get(table, {})
        wanted = sorted(names.items())
        known: dict[Row, int] = {}
        for agent in sorted({name[0] for name in names.values()}):
            ids = [name[1] for _, name in wanted if name[0] == agent]
            for start in range(0, len(ids), 1000):
                rows = self._connection.execute(
                    f"SELECT agent, external_id, key FROM {table} WHERE agent = ?"
                    " AND external_id IN (SELECT value FROM json_each(?))",
                    (agent, json.dumps(ids[start : start + 1000])),
                )
                known |= {(row[0], row[1]): row[2] for row in rows}
        (last,) = self._connection.execute(last_key).fetchone() or (0,)
        key = last or 0
        sent = {row[0] for row in self._batch.rows.get(table, ())}
        for theirs, name in wanted:
            if ":".join(name) in forgotten:
                continue
            ours = known.get(tuple(name))
            if ours is None:
                if theirs not in sent:
                    continue
                key += 1
                ours = key
                self._new[table].add(ours)
            self._keys.note(table, theirs, ours)

    def _save_sources(self) -> None:
        columns = TABLES["sources"][1:]
        for row in sorted(self._batch.rows.get("sources", ()), key=itemgetter(2)):
            self._connection.execute(
                f"INSERT INTO sources ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
                f" ON CONFLICT (path) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in columns)}",
                row[1:],
            )
        for theirs, name in sorted(self._batch.names.get("sources", {}).items()):
            row = self._connection.execute("SELECT key FROM sources WHERE path = ?", name).fetchone()
            if row is not None:
                self._keys.note("sources", theirs, row[0])
        sent = [self._keys.of("sources")[row[0]] for row in self._batch.rows.get("sources", ())]
        for table in _OF_SOURCE:
            self._delete(table, "source_key", sent)
            self._insert(table, TABLES[table], self._keys.rows(table, self._batch.rows.get(table, ())))

    def _save_contents(self) -> None:
        """Bodies, parts and places of messages, and blobs."""
        batch, keys = self._batch, self._keys
        messages = keys.of("messages")
        changed = [messages[row[0]] for row in batch.rows.get("messages", ()) if row[0] in messages]
        stored = sorted(set(changed) - self._new["messages"])
        self._delete("frames", "key", [-key for key in stored])
        for table in _OF_MESSAGE:
            self._delete(table, "message_key", stored)
        self._insert("frames", ("key", "data"), [(-messages[key], body) for key, body in batch.bodies.items()])
        self._save_blobs()
        for table in _OF_MESSAGE:
            self._insert(table, TABLES[table], keys.rows(table, batch.rows.get(table, ())))
        new = self._new["messages"]
        self._insert("memberships", TABLES["memberships"], [row for row in self._places() if row[2] in new])

    def _save_blobs(self) -> None:
        columns = TABLES["blobs"]
        self._connection.executemany(
            f"INSERT OR IGNORE INTO blobs ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            sorted(self._batch.rows.get("blobs", ()), key=itemgetter(0)),
        )

    def _places(self) -> list[Row]:
        return self._keys.rows("memberships", self._batch.rows.get("memberships", ()))

    def _compare_places(self) -> _Moves:
        """What changes among the places that are here, and the events that whole sessions have no more."""
        sent = {(row[0], row[2]): row for row in self._places() if row[2] not in self._new["messages"]}
        every = {(row[0], row[2]) for row in self._places()}
        messages, sessions = self._keys.of("messages"), self._keys.of("sessions")
        billed = {
            messages[key]: sessions.get(theirs or 0) for key, theirs in self._batch.billed.items() if key in messages
        }
        stored = {row[0]: row[1] for row in self._where("messages", "key", sorted(billed), ("key", "billed_key"))}
        billed = {key: ours for key, ours in billed.items() if key in stored and stored[key] != ours}
        complete = [key for key in self._complete() if key not in self._new["sessions"]]
        moves = _Moves(billed=billed)
        for row in self._where("memberships", "session_key", complete, TABLES["memberships"]):
            place = (row[0], row[2])
            if place not in every:
                moves.removed.append(place)
            elif sent.get(place) == row and row[2] not in billed:
                del sent[place]
        moves.moved = list(sent.values())
        self._find_gone_events(moves)
        return moves

    def _find_gone_events(self, moves: _Moves) -> None:
        whole = [self._keys.of("sessions").get(key, 0) for key in self._batch.whole]
        kept = {(row[0], row[1], row[2]) for row in self._keys.rows("events", self._batch.rows.get("events", ()))}
        stored = self._where("events", "session_key", whole, ("session_key", "position", "external_id"))
        moves.gone_events = [row for row in stored if tuple(row) not in kept]

    def _complete(self) -> list[int]:
        """The sessions of this store of which the batch has everything."""
        sessions = self._keys.of("sessions")
        return sorted(sessions[key] for key in self._batch.complete if key in sessions)

    # -- with numbers of the change sequence

    def _draw_numbers(self) -> dict[int, int]:
        """Session -> the number of its change, for every session that changes."""
        touched = {*self._complete(), *(row[0] for row in self._places())}
        numbers: dict[int, int] = {}
        for key in sorted(touched):
            (numbers[key],) = self._connection.execute(
                "INSERT INTO changes (session_key, kind, at) VALUES (?, 'session', ?) RETURNING seq", (key, self._now)
            ).fetchone()
        return numbers

    def _save_sessions(self, numbers: dict[int, int]) -> None:
        columns = (*TABLES["sessions"], "changed_seq")
        rows = {
            row[0]: (*row, numbers.get(row[0], 0))
            for row in self._own_keys("sessions")
            if row[0] in self._new["sessions"] or row[0] in numbers
        }
        new = self._new["sessions"]
        self._insert("sessions", columns, [row for key, row in sorted(rows.items()) if key in new])
        self._update("sessions", columns, [row for key, row in sorted(rows.items()) if key not in new])

    def _save_messages(self, numbers: dict[int, int]) -> None:
        sessions: dict[int, int] = {}
        for session_key, _, message_key, *_ in self._places():
            sessions[message_key] = max(sessions.get(message_key, 0), numbers[session_key])
        last = max(numbers.values(), default=0)
        columns = (*TABLES["messages"], "changed_seq", *PLACE_COLUMNS[:-1])
        bodies = {self._keys.of("messages").get(key): body for key, body in self._batch.bodies.items()}
        rows: dict[int, Row] = {}
        for row in self._own_keys("messages"):
            key, body = row[0], bodies[row[0]]
            size = _size_of(body, row[2])
            rows[key] = (*row[:-1], size, sessions.get(key, last), -key, 0, len(body), 0)
        new = self._new["messages"]
        self._insert("messages", columns, [row for key, row in rows.items() if key in new])
        self._update("messages", columns, [row for key, row in sorted(rows.items()) if key not in new])

    def _own_keys(self, table: str) -> list[Row]:
        """The rows of a table with keys, with this store's keys."""
        known = self._keys.of(table)
        rows = [row for row in self._batch.rows.get(table, ()) if row[0] in known]
        return [(known[row[0]], *rest[1:]) for row, rest in zip(rows, self._keys.rows(table, rows), strict=True)]

    def _move(self, numbers: dict[int, int], moves: _Moves) -> None:
        """Change the places of stored messages, and delete what has left a session."""
        run = self._connection.executemany
        names = {
            row[0]: row[1]
            for row in self._where("messages", "key", sorted({key for _, key in moves.removed}), ("key", "external_id"))
        }
        positions = {
            (row[0], row[1]): row[2]
            for row in self._where(
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
        # A message that no session has any more.
        run(
            "DELETE FROM messages WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM memberships s WHERE s.message_key = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM superseded s WHERE s.message_key = ?1)",
            [(key,) for key in sorted(names)],
        )

    def _save_of_sessions(self, numbers: dict[int, int]) -> None:
        batch, keys, complete = self._batch, self._keys, set(self._complete())
        stored = sorted(complete - self._new["sessions"])
        for table in ("superseded", *_OF_SESSION):
            at = TABLES[table].index("session_key")
            rows = [row for row in keys.rows(table, batch.rows.get(table, ())) if row[at] in complete]
            self._delete(table, "session_key", stored)
            self._insert(table, TABLES[table], rows)
        events = keys.rows("events", batch.rows.get("events", ()))
        self._connection.executemany(
            "DELETE FROM events WHERE session_key = ? AND position = ? AND external_id = ?",
            [row[:3] for row in events if row[0] not in self._new["sessions"]],
        )
        self._insert("events", (*TABLES["events"], "changed_seq"), [(*row, numbers.get(row[0], 0)) for row in events])

    def _save_others(self) -> None:
        """Rows that have no keys of a store."""
        batch = self._batch
        known = self._keys.of("sessions")
        ids = [":".join(batch.names["sessions"][key]) for key in batch.complete if key in known]
        forgotten = self._forgotten_ids()
        for table, column in (("links", "child_id"), ("annotations", "session_id"), ("answers", "session_id")):
            self._delete(table, column, ids)
            at = TABLES[table].index(column)
            self._replace(table, [row for row in batch.rows.get(table, ()) if row[at] not in forgotten])
        self._replace("runs", batch.rows.get("runs", ()))
        for row in batch.rows.get("projects", ()):
            project = dict(zip(TABLES["projects"], row, strict=True))
            named = self._keys.of("projects")
            self._connection.execute(
                "UPDATE projects SET name = ?, worktree = ?, repository_key = ?, merged_key = ? WHERE key = ?",
                (
                    project["name"],
                    project["worktree"],
                    named.get(project["repository_key"]),
                    named.get(project["merged_key"]),
                    named[project["key"]],
                ),
            )

    # -- statements

    def _where(self, table: str, column: str, values: Sequence[int], columns: Sequence[str]) -> list[Row]:
        """Columns of the rows with one of these values."""
        found: list[Row] = []
        for start in range(0, len(values), 1000):
            found += self._connection.execute(
                f"SELECT {', '.join(columns)} FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))",
                (json.dumps(values[start : start + 1000]),),
            ).fetchall()
        return found

    def _delete(self, table: str, column: str, values: Collection[int] | Collection[str]) -> None:
        if values:
            self._connection.execute(
                f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))", (json.dumps(list(values)),)
            )

    def _update(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        assignments = ", ".join([f"{name} = ?" for name in columns[1:]])
        self._connection.executemany(
            f"UPDATE {table} SET {assignments} WHERE key = ?", [(*row[1:], row[0]) for row in rows]
        )

    def _replace(self, table: str, rows: Sequence[Row]) -> None:
        columns = TABLES[table]
        self._connection.executemany(
            f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", rows
        )


def _size_of(body: bytes, message_id: str) -> int:
    """The size of a body that another machine compressed. Raises ValueError for one that cannot be read."""
    try:
        size = zstd.content_size(body)
        # A frame that says a size is not decompressed into more than that.
        if 0 < size <= _LARGEST_BODY and len(zstd.decompress(body)) == size:
            return size
    except zstd.ZstdError as error:
        raise ValueError(f"the body of message {message_id} is no zstd frame: {error}") from error
    raise ValueError(f"the body of message {message_id} does not have {size} bytes, as it claims")


def encode(batch: FeedBatch) -> bytes:
    """A batch as MessagePack."""
    return msgspec.msgpack.encode(batch)


def decode(data: bytes) -> FeedBatch:
    """The inverse of `encode`. Raises msgspec.ValidationError for anything else."""
    return msgspec.msgpack.decode(data, type=FeedBatch)
