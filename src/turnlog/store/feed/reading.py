"""Reads the change feed of a store: what has changed after a position, as it is now.

A batch is limited by its messages. Messages come in the order of their last change; what belongs to a session as a
whole comes with the batch that has the last of its changes. A row that changes while batches are read comes again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from turnlog.errors import NotFoundError
from turnlog.store import zstd
from turnlog.store.connection import connect
from turnlog.store.damaged import DAMAGE, report
from turnlog.store.external_content import WholeBodies, load_outside, smallest
from turnlog.store.feed.values import (
    IDENTITY,
    KEYS,
    OF_SOURCE,
    TABLES,
    UNKNOWN_MODEL,
    ArchivedBytes,
    ArchivedSizes,
    FeedBatch,
    FeedPosition,
    Row,
)
from turnlog.store.frames import BODY_COLUMNS, PLACE
from turnlog.store.packed_columns import PARENT_ID
from turnlog.store.values import LONGEST_MEMORY

if TYPE_CHECKING:
    from turnlog.store.connection import Connection

MOST_MESSAGES: Final = 1000
MOST_BYTES: Final = 8 << 20
"""Of bodies, before they are compressed, and of blobs. One message may have more."""

_MESSAGES: Final = ", ".join([f"m.{name}" for name in TABLES["messages"]])
_SELECT: Final = f"SELECT m.changed_seq, {_MESSAGES}, {BODY_COLUMNS} FROM messages m"
_WITH_KEY: Final = f"{_SELECT} WHERE m.key IN (SELECT value FROM json_each(?)) ORDER BY m.key"
_SAME_CHANGE: Final = f"{_SELECT} WHERE m.changed_seq = ? AND m.key > ? ORDER BY m.key LIMIT ?"
_LATER_CHANGE: Final = f"{_SELECT} WHERE m.changed_seq > ? ORDER BY m.changed_seq, m.key LIMIT ?"

_OF_SESSION: Final = ("usage", "call_totals", "edit_totals", "streams")
"""Tables of which a batch has all rows of a session."""


def read_batch(
    connection: Connection,
    after: FeedPosition,
    *,
    most_messages: int = MOST_MESSAGES,
    most_bytes: int = MOST_BYTES,
    skip_damaged: bool = False,
) -> FeedBatch | None:
    """What has changed after a position; None if nothing has. The connection is in a snapshot.

    With `skip_damaged`, a body that cannot be read is reported, and is empty in the batch.
    """
    found, is_all = _messages(connection, after, most_messages, most_bytes)
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM changes").fetchone()
    sequence, message_sequence, message_key = last, after.message_sequence, after.message_key
    if found:
        message_sequence, message_key = found[-1][0], found[-1][1]
    if is_all:
        message_sequence, message_key = max(last, message_sequence), message_key if message_sequence >= last else 0
    else:
        # Of the change whose messages did not all fit, the rest comes later.
        sequence = max(after.sequence, message_sequence - 1)
    now = time.time_ns() // 1_000_000
    since = 0 if after.read_at > now else after.read_at  # the clock was ahead
    read_at = max(_newest(connection, now), since) if is_all else after.read_at
    until = FeedPosition(sequence, message_sequence, message_key, read_at)
    if until == after and not found:
        return None
    batch = FeedBatch(after=after, until=until, has_more=not is_all)
    _Reader(connection, batch, since if is_all else None, skip_damaged=skip_damaged).read(found)
    return batch


def read_messages(
    connection: Connection,
    at: FeedPosition,
    keys: Sequence[int],
    *,
    sessions: Collection[int] | None = None,
    most_messages: int = MOST_MESSAGES,
) -> FeedBatch:
    """The first of these messages with their places, in a batch that moves nobody on from where he is.

    They need not have changed: another store takes them again. With `sessions`, only their places in these come. The
    connection is in a snapshot.
    """
    found: list[Row] = []
    for chunk in _chunks(sorted(keys)[:most_messages]):
        found += connection.execute(_WITH_KEY, (chunk,)).fetchall()
    some, _ = _bounded(found, most_messages, MOST_BYTES)
    batch = FeedBatch(after=at, until=at, has_more=True)
    within = "1" if sessions is None else f"s.session_key IN ({', '.join(str(int(key)) for key in sorted(sessions))})"
    _Reader(connection, batch, None, skip_damaged=False).read(some, within)
    return batch


def _goes_on(batch: FeedBatch) -> bool:
    """Whether the batch before had more, so that sessions may have waited for messages of this one."""
    return batch.after.sequence < batch.after.message_sequence and batch.after != batch.until


class Shared(NamedTuple):
    """Where messages of a batch are that were read before it, and that several sessions have."""

    places: list[tuple[int, int, bool]] = []
    """Message, session, and whether the place is new since then."""
    sessions: dict[int, tuple[str, str | None, str | None]] = {}
    """Session -> its id, the path of its project and its folder, None for a session without."""


def shared_messages(connection: Connection, batch: FeedBatch) -> Shared:
    """Every place of those messages of a batch that it does not bring anew. The connection is in the same snapshot."""
    shares, read = TABLES["sessions"].index("shares"), {row[0] for row in batch.rows.get("messages", ())}
    sharing = {row[0] for row in batch.rows.get("sessions", ()) if row[shares]}
    placed = [row for table in ("memberships", "superseded") for row in batch.rows.get(table, ())]
    wanted = sorted({row[2] for row in placed if row[0] in sharing} - read)
    found = Shared([], {})
    waited = {*batch.complete} if _goes_on(batch) else set[int]()
    for chunk in _chunks(wanted):
        # What is superseded was read when it became that, and a message with the places that it had at its last change.
        found.places.extend(
            (message, session, changed > read and (changed > batch.after.sequence or session in waited))
            for message, session, changed, read in connection.execute(
                "SELECT s.message_key, s.session_key, s.changed_seq, m.changed_seq FROM memberships s"
                " JOIN messages m ON m.key = s.message_key"
                " WHERE s.message_key IN (SELECT value FROM json_each(?1)) UNION ALL"
                " SELECT message_key, session_key, 0, 0 FROM superseded"
                " WHERE message_key IN (SELECT value FROM json_each(?1))",
                (chunk,),
            )
        )
    for chunk in _chunks(sorted({session for _, session, _ in found.places})):
        query = (
            "SELECT s.key, s.agent || ':' || s.external_id, p.path, s.cwd FROM sessions s"
            " LEFT JOIN projects p ON p.key = s.project_key WHERE s.key IN (SELECT value FROM json_each(?))"
        )
        found.sessions.update({key: tuple(said) for key, *said in connection.execute(query, (chunk,))})
    return found


@contextmanager
def snapshot(path: Path) -> Generator[Connection]:
    """A connection to a store in a file that sees one state of it."""
    with closing(connect(path, read_only=True)) as connection:
        connection.execute("BEGIN")
        yield connection


def read_archived(connection: Connection, have: ArchivedSizes, path: str) -> ArchivedBytes | None:
    """The archived bytes of a source that another store lacks; None if it has all. The connection is in a snapshot."""
    row = connection.execute("SELECT key FROM sources WHERE path = ?", (path,)).fetchone()
    if row is None:
        return None
    generation, size = have.ends.get(path, (0, 0))
    # A last frame that is small is written anew when more follows.
    frames = connection.execute(
        "SELECT generation, start, length, data FROM archive WHERE source_key = ?"
        " AND (generation > ? OR generation = ? AND start + length > ?) ORDER BY generation, start",
        (row[0], generation, generation, size),
    ).fetchall()
    if not frames:
        return None
    return ArchivedBytes(path, frames[0][0], frames[0][1], frames)


def archived_sizes(connection: Connection, paths: Collection[str]) -> ArchivedSizes:
    """How much of the bytes of these sources a store has."""
    rows = connection.execute(
        "SELECT s.path, a.generation, max(a.start + a.length) FROM sources s JOIN archive a ON a.source_key = s.key"
        " WHERE s.path IN (SELECT value FROM json_each(?)) GROUP BY s.path, a.generation ORDER BY a.generation",
        (json.dumps(list(paths)),),
    )
    return ArchivedSizes({path: (generation, end) for path, generation, end in rows})


def stored_blobs(connection: Connection, hashes: Collection[str]) -> set[str]:
    """Those of these SHA-256 of large contents that a store has."""
    query = "SELECT 1 FROM blobs WHERE sha256 = ?"
    return {each for each in hashes if connection.execute(query, (bytes.fromhex(each),)).fetchone() is not None}


def projects_of_paths(connection: Connection, paths: Collection[str]) -> dict[str, set[tuple[str | None, str | None]]]:
    """As `projects_of_sources`, for sources with these paths."""
    query = "SELECT key, path FROM sources WHERE path IN (SELECT value FROM json_each(?))"
    sources: dict[int, str] = dict(connection.execute(query, (json.dumps(list(paths)),)).fetchall())
    return {sources[key]: found for key, found in projects_of_sources(connection, sources).items()}


def projects_of_sources(connection: Connection, keys: Collection[int]) -> dict[int, set[tuple[str | None, str | None]]]:
    """Source -> project and folder of each session of which it says something; None for a session without."""
    found: dict[int, set[tuple[str | None, str | None]]] = {key: set() for key in keys}
    places = " UNION ".join(
        [
            f"SELECT source_key, session_key FROM {table} WHERE source_key IN (SELECT value FROM json_each(?1))"
            for table in ("memberships", "events", "streams")
        ]
    )
    named = (
        "SELECT f.key, s.key FROM sources f JOIN sessions s ON s.agent = substr(f.session_id, 1,"
        " instr(f.session_id, ':') - 1) AND s.external_id = substr(f.session_id, instr(f.session_id, ':') + 1)"
        " WHERE f.key IN (SELECT value FROM json_each(?1))"
    )
    query = (
        f"SELECT DISTINCT x.source_key, p.path, s.cwd FROM ({places} UNION {named}) x"
        " JOIN sessions s ON s.key = x.session_key LEFT JOIN projects p ON p.key = s.project_key"
    )
    for key, path, cwd in connection.execute(query, (json.dumps(sorted(keys)),)):
        found[key].add((path, cwd))
    return found


def projects_of_sessions(connection: Connection) -> list[tuple[str, str | None, str | None]]:
    """Every session, the path of its project and its folder, None for a session without."""
    return connection.execute(
        "SELECT s.agent || ':' || s.external_id, p.path, s.cwd FROM sessions s"
        " LEFT JOIN projects p ON p.key = s.project_key"
    ).fetchall()


def message_ids(connection: Connection, session_id: str) -> list[str]:
    """The ids of all messages of a session."""
    agent, _, external_id = session_id.partition(":")
    rows = connection.execute(
        "SELECT m.external_id FROM sessions s JOIN memberships p ON p.session_key = s.key"
        " JOIN messages m ON m.key = p.message_key WHERE s.agent = ? AND s.external_id = ?",
        (agent, external_id),
    )
    return [name for (name,) in rows]


def bodies_of(connection: Connection, session_keys: Collection[int]) -> Iterator[bytes]:
    """The JSON of all messages of sessions, large contents left out."""
    whole = WholeBodies(connection)
    for chunk in _chunks(sorted(session_keys)):
        for place in connection.execute(
            f"SELECT DISTINCT {BODY_COLUMNS} FROM memberships p JOIN messages m ON m.key = p.message_key"
            " WHERE p.session_key IN (SELECT value FROM json_each(?)) ORDER BY m.key",
            (chunk,),
        ):
            yield whole(*place)


def last_change(connection: Connection) -> int:
    """The last number of the change sequence."""
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM changes").fetchone()
    return last


def time_of_change(connection: Connection, sequence: int) -> int | None:
    """When a change was, in Unix milliseconds; None if there is none of this number."""
    row = connection.execute("SELECT at FROM changes WHERE seq = ?", (sequence,)).fetchone()
    return None if row is None else row[0]


def _messages(connection: Connection, after: FeedPosition, most: int, most_bytes: int) -> tuple[list[Row], bool]:
    """The changed messages, and whether these are all."""
    rows = connection.execute(_SAME_CHANGE, (after.message_sequence, after.message_key, most + 1)).fetchall()
    if len(rows) <= most:
        rows += connection.execute(_LATER_CHANGE, (after.message_sequence, most + 1 - len(rows))).fetchall()
    return _bounded(rows, most, most_bytes)


def _bounded(rows: list[Row], most: int, most_bytes: int) -> tuple[list[Row], bool]:
    """The first of these messages, at least one, and whether these are all."""
    size = 0
    for number, row in enumerate(rows):
        size += row[-1]
        if number == most or (number and size > most_bytes):
            return rows[:number], False
    return rows, True


def _newest(connection: Connection, now: int) -> int:
    """The newest time until now at which a source was read, or a run changed."""
    (newest,) = connection.execute(
        "SELECT max(at) FROM (SELECT read_at AS at FROM sources UNION ALL SELECT vanished_at FROM sources"
        " UNION ALL SELECT created_at FROM runs UNION ALL SELECT coalesce(ended_at, started_at) FROM runs) times"
        " WHERE at <= ?",
        (now,),
    ).fetchone()
    return newest or 0


_EMPTY: Final = b"{}"


class _Reader:
    """Fills one batch."""

    def __init__(self, connection: Connection, batch: FeedBatch, since: int | None, *, skip_damaged: bool) -> None:
        """`since` is the time from which on sources and runs are new; they come with a later batch if it is None."""
        self._skip_damaged = skip_damaged
        self._connection = connection
        self._batch = batch
        self._since = since
        self._named: dict[str, set[int]] = {table: set() for table in IDENTITY}

    def read(self, found: Sequence[Row], within: str = "1") -> None:
        """Read everything that belongs to these messages, and to the sessions that are complete.

        `within` is a condition for the places of the messages.
        """
        batch = self._batch
        self._add("messages", [row[1 : PLACE.start] for row in found])
        batch.bodies = self._bodies(found)
        keys = [row[1] for row in found]
        for table in ("parts", "more_paths", "blob_uses"):
            self._add(table, self._where(table, "message_key", keys))
        self._add("memberships", self._places("memberships", "message_key", keys, within))
        self._add("superseded", self._places("superseded", "message_key", keys, within))
        self._read_blobs()
        self._read_sessions()
        self._read_sources()
        self._read_named()

    def _bodies(self, found: Sequence[Row]) -> dict[int, bytes]:
        """A frame for each body. Those that are alone in their frames are read together, and sent as they are."""
        alone: dict[int, bytes] = {}
        for chunk in _chunks([row[PLACE][0] for row in found if row[PLACE][0] < 0]):
            query = "SELECT key, data FROM frames WHERE key IN (SELECT value FROM json_each(?))"
            alone |= dict(self._connection.execute(query, (chunk,)).fetchall())
        whole = WholeBodies(self._connection)
        bodies: dict[int, bytes] = {}
        for row in found:
            try:
                bodies[row[1]] = self._body(whole, row[PLACE], alone.get(row[PLACE][0]))
            except (*DAMAGE, zstd.ZstdError) as error:
                if not self._skip_damaged:
                    raise
                report(f"message {row[1]}", error)
                bodies[row[1]] = zstd.compress(_EMPTY)
        return bodies

    @staticmethod
    def _body(whole: WholeBodies, place: Row, frame: bytes | None) -> bytes:
        if frame is None or len(frame) != place[2]:
            return zstd.compress(whole(*place))
        body = zstd.decompress(frame)
        full = whole.whole(body)
        return frame if full is body else zstd.compress(full)

    def _read_sessions(self) -> None:
        batch, connection = self._batch, self._connection
        first, last = batch.after.sequence, batch.until.sequence
        changes = connection.execute(
            "SELECT DISTINCT session_key, kind FROM changes WHERE seq > ? AND seq <= ?", (first, last)
        ).fetchall()
        kinds = {kind for _, kind in changes}
        # Said before the messages that stay of it come again: those of its number.
        kinds |= {
            kind
            for (kind,) in connection.execute(
                "SELECT kind FROM changes WHERE seq = ? AND kind = 'forgotten'", (batch.until.message_sequence,)
            )
        }
        keys = {key for key, _ in changes if key is not None}
        if "rebuilt" in kinds:
            keys |= {key for (key,) in connection.execute("SELECT key FROM sessions")}
        if "forgotten" in kinds:
            batch.forgotten = [row[0] for row in connection.execute("SELECT session_id FROM tombstones ORDER BY 1")]
            batch.remaining = [
                row[0] for row in connection.execute("SELECT agent || ':' || external_id FROM sessions ORDER BY 1")
            ]
        if _goes_on(batch):
            # They may have waited for these messages.
            keys |= {row[0] for table in ("memberships", "superseded") for row in batch.rows[table]}
        known = {row[0] for row in self._where("sessions", "key", sorted(keys), columns=("key",))}
        batch.complete = sorted(known)
        is_all = "rebuilt" in kinds or not first or last - first > LONGEST_MEMORY or _goes_on(batch)
        left = connection.execute("SELECT DISTINCT session_key FROM gone WHERE seq > ? AND seq <= ?", (first, last))
        batch.whole = batch.complete if is_all else sorted(known & {key for (key,) in left})
        self._read_places()
        for table in _OF_SESSION:
            self._add(table, self._where(table, "session_key", batch.complete))
        ids = self._ids(batch.complete)
        for table, column in (("links", "child_id"), ("annotations", "session_id"), ("answers", "session_id")):
            self._add(table, self._where(table, column, ids))
        # A child may not be stored, or not yet.
        children = {row[0] for row in batch.rows["links"]}
        self._add("links", [row for row in self._where("links", "parent_id", ids) if row[0] not in children])

    def _read_places(self) -> None:
        """All places of the complete sessions, and their events. No number says that only a place's file changed."""
        batch = self._batch
        known = {(row[0], row[2]) for row in batch.rows["memberships"]}
        places = self._places("memberships", "session_key", batch.complete)
        replaced = self._places("superseded", "session_key", batch.complete)
        later = self._later({row[2] for row in (*places, *replaced)})
        waiting = {row[0] for row in (*places, *replaced) if row[2] in later}
        batch.complete = [key for key in batch.complete if key not in waiting]
        batch.whole = [key for key in batch.whole if key not in waiting]
        self._add("memberships", [row for row in places if row[0] not in waiting and (row[0], row[2]) not in known])
        there = {(row[0], row[2]) for row in batch.rows["superseded"]}
        self._add("superseded", [row for row in replaced if row[0] not in waiting and (row[0], row[2]) not in there])
        # A message that is superseded is billed to nobody any more.
        messages = sorted({row[2] for table in ("memberships", "superseded") for row in batch.rows[table]})
        batch.billed = dict(self._where("messages", "key", messages, columns=("key", "billed_key")))
        self._named["sessions"] |= {key for key in batch.billed.values() if key is not None}
        parted = sorted(set(batch.complete) - set(batch.whole))
        events = self._where("events", "session_key", batch.whole)
        events += self._where("events", "session_key", parted, f"changed_seq > {int(batch.after.sequence)}")
        self._add("events", events)

    def _later(self, keys: set[int]) -> set[int]:
        """Which of these messages come in a later batch."""
        if not self._batch.has_more:
            return set()
        found, until = set[int](), self._batch.until
        for chunk in _chunks(sorted(keys)):
            rows = self._connection.execute(
                "SELECT key FROM messages WHERE key IN (SELECT value FROM json_each(?))"
                " AND (changed_seq > ? OR changed_seq = ? AND key > ?)",
                (chunk, until.message_sequence, until.message_sequence, until.message_key),
            )
            found |= {key for (key,) in rows}
        return found

    def _read_sources(self) -> None:
        """Sources and runs that changed since the last reading, with everything that is said of them.

        Sources of what has changed come whatever their times are: a clock may be set back. The others come with the
        last batch: before it, their sessions may not have come.
        """
        named = {
            row[TABLES[table].index("source_key")]
            for table in ("memberships", "events", "streams")
            for row in self._batch.rows[table]
        }
        keys = sorted(self._changed_sources() | named - {None})
        self._add("sources", self._where("sources", "key", keys))
        for table in OF_SOURCE:
            self._add(table, self._where(table, "source_key", keys))
        self._add("runs", self._changed_runs())

    def _changed_sources(self) -> set[int]:
        if self._since is None:
            return set()
        rows = self._connection.execute(
            "SELECT key FROM sources WHERE coalesce(read_at, 0) >= ?1 OR coalesce(vanished_at, 0) >= ?1",
            (self._since,),
        )
        return {key for (key,) in rows.fetchall()}

    def _changed_runs(self) -> list[Row]:
        if self._since is None:
            return []
        columns = ", ".join(TABLES["runs"])
        return self._connection.execute(
            f"SELECT {columns} FROM runs WHERE max(created_at, coalesce(ended_at, started_at, 0)) >= ? ORDER BY key",
            (self._since,),
        ).fetchall()

    def _read_blobs(self) -> None:
        hashes = sorted({row[0] for row in self._batch.rows["blob_uses"]})
        columns = ", ".join(TABLES["blobs"])
        query = f"SELECT {columns} FROM blobs WHERE sha256 = ?"
        rows = [self._connection.execute(query, (sha256,)).fetchone() for sha256 in hashes]
        self._add("blobs", [self._with_data(row) for row in rows if row is not None])

    def _with_data(self, row: Row) -> Row:
        sha256, size, media_type, _, data = row
        if data or not size:
            return row
        # On a hub it may be beside the database.
        try:
            return (sha256, size, media_type, *smallest(load_outside(self._connection, sha256.hex())))
        except NotFoundError:
            return row

    def _read_named(self) -> None:
        """The rows that others name by their keys, and their names. Sessions name parents, these their own parents."""
        for table in ("sessions", "owners", "projects", "models", "price_versions"):
            self._read_missing(table)
        for table, identity in IDENTITY.items():
            columns = TABLES[table]
            places = [columns.index(name) for name in identity]
            names = {row[0]: tuple([row[at] for at in places]) for row in self._batch.rows.get(table, ())}
            missing = sorted(self._named[table] - names.keys())
            rows = self._where(table, "key", missing, columns=("key", *identity))
            self._batch.names[table] = names | {row[0]: tuple(row[1:]) for row in rows}

    def _read_missing(self, table: str) -> None:
        if table == "sessions":
            self._named[table] |= set(self._batch.complete)
        known = {row[0] for row in self._batch.rows.get(table, ())}
        while missing := sorted(self._named[table] - known):
            known |= set(missing)
            self._add(table, self._where(table, "key", missing))

    def _add(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows, and note the keys that they have."""
        added = list(rows)
        self._batch.rows.setdefault(table, []).extend(added)
        for at, name in enumerate(TABLES[table]):
            if name in KEYS:
                self._named[KEYS[name]] |= {row[at] for row in added} - {None}
        self._named["models"].discard(UNKNOWN_MODEL)

    def _ids(self, keys: Sequence[int]) -> list[str]:
        rows = self._where("sessions", "key", keys, columns=("agent", "external_id"))
        return [f"{agent}:{external_id}" for agent, external_id in rows]

    def _where(
        self,
        table: str,
        column: str,
        values: Sequence[int] | Sequence[str],
        condition: str = "1",
        *,
        columns: Sequence[str] = (),
    ) -> list[Row]:
        """The rows of a table with one of these values in a column."""
        found: list[Row] = []
        select = ", ".join(columns or TABLES[table])
        # Events at one position and time keep the order of their keys.
        ending = f"{condition} ORDER BY key" if table == "events" else condition
        for chunk in _chunks(values):
            found += self._connection.execute(
                f"SELECT {select} FROM {table} WHERE {column} IN (SELECT value FROM json_each(?)) AND {ending}",
                (chunk,),
            ).fetchall()
        return found

    def _places(self, table: str, column: str, values: Sequence[int], condition: str = "1") -> list[Row]:
        """Places in sessions. The parent of most is the message with the key before: its id is put there."""
        found: list[Row] = []
        select = ", ".join([PARENT_ID if name == "parent_id" else f"s.{name}" for name in TABLES[table]])
        for chunk in _chunks(values):
            found += self._connection.execute(
                f"SELECT {select} FROM {table} s WHERE s.{column} IN (SELECT value FROM json_each(?)) AND {condition}",
                (chunk,),
            ).fetchall()
        return found


def _chunks(values: Sequence[Any]) -> list[str]:
    """Values as arrays of JSON, of which each is one parameter."""
    return [json.dumps(values[start : start + 1000]) for start in range(0, len(values), 1000)]
