"""The whole store in PostgreSQL: the queries of all subjects, over connections of a pool."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from turnlog.store.base import Store, check_arguments
from turnlog.store.feed.hidden_ids import HiddenIds
from turnlog.store.feed.long_texts import shorten_all
from turnlog.store.feed.owners import NOBODY, Owner
from turnlog.store.feed.progress import begin_again, position_of, progress_of
from turnlog.store.feed.reading import archived_sizes
from turnlog.store.feed.taken_back import BeginAgainError
from turnlog.store.feed.taking import Taken, take
from turnlog.store.feed.values import ArchivedBytes, ArchivedSizes, FeedBatch, FeedPosition
from turnlog.store.feed.withholding import withhold
from turnlog.store.postgres import blobs, schema
from turnlog.store.postgres.archives import take_sent
from turnlog.store.postgres.connection import TeamConnection
from turnlog.store.postgres.database import Database
from turnlog.store.postgres.dialect import SCHEMA
from turnlog.store.postgres.files import KeptFiles
from turnlog.store.rows import moment
from turnlog.store.sqlite.forget import concerned, forget
from turnlog.store.sqlite.reading import Connections
from turnlog.store.sqlite.sources import SHOWN_DIAGNOSTICS
from turnlog.store.sqlite.store import SqliteStore
from turnlog.store.values import Forgetting, RawSource, SessionPreview, StoreStatus

if TYPE_CHECKING:
    from pathlib import Path

    from turnlog.store.connection import Connection
    from turnlog.store.postgres.logs import SessionLogs
    from turnlog.store.writing.native import NativeSessions

_COUNTS: Final = (
    # Each table is read once. Only what sessions have in common is counted message by message.
    "SELECT s.sessions, s.subagents, s.messages + (SELECT count(DISTINCT m.message_key) FROM memberships m"
    " JOIN sessions x ON x.key = m.session_key WHERE x.shares = 1), f.sources, f.size,"
    " (SELECT coalesce(sum(length(data)), 0) FROM archive), f.vanished, f.problems,"
    f" (SELECT count(*){SHOWN_DIAGNOSTICS}),"
    " f.read_at FROM (SELECT coalesce(sum(relationship IS NOT 'subagent'), 0) AS sessions,"
    " coalesce(sum(relationship IS 'subagent'), 0) AS subagents,"
    " coalesce(sum(iif(shares = 0, messages, 0)), 0) AS messages FROM sessions) s CROSS JOIN"
    " (SELECT count(*) AS sources, coalesce(sum(size), 0) AS size, count(vanished_at) AS vanished,"
    " count(problem) AS problems, max(read_at) AS read_at FROM sources) f"
)
_LAST_SEEN: Final = "SELECT seq FROM changes WHERE seq > ? ORDER BY seq DESC LIMIT 1"

_SIZE: Final = (
    "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c"
    f" WHERE c.relkind = 'r' AND c.relnamespace = '{SCHEMA}'::regnamespace"
)

ONLY_TEAM: Final = 1
"""The team of a store that one user opens."""


class PostgresConnections(Connections):
    """The connections of a store, from a pool. Any number of threads may use it."""

    def __init__(
        self, url: str | Database, *, team: int = ONLY_TEAM, viewer: str | None = None, create: bool = False
    ) -> None:
        """Connect, and bring the schema up; or use the connections of a database that is open, and stays so.

        With a `viewer` (of a hub: the id of a person, or of a link), reading sees what this one may see, and no more.

        Raises SchemaTooNewError for a store of a newer turnlog, StoreError if there is no store (and `create` is False)
        or the database cannot be used.
        """
        self.team = team
        self.viewer = viewer
        self._opened = None if isinstance(url, Database) else Database(url, create=create)
        self.database = url if isinstance(url, Database) else cast("Database", self._opened)
        self.url, self.name = self.database.url, self.database.name
        self._snapshots = threading.local()
        self._seen = (0, 0)
        """Up to which change the viewer's changes were looked for, and the last of them."""
        if self._opened is not None:
            _ = self.id  # a store that cannot be read is an error now

    @cached_property
    def id(self) -> str:
        """Of the store in this database, which another one in its place has not."""
        with self._snapshot() as queries:
            return queries.execute("SELECT value FROM settings WHERE name = 'store id'").fetchone()[0]

    def close(self) -> None:
        """Close the connections of all threads, if this store has opened them."""
        if self._opened is not None:
            self._opened.close()

    @contextmanager
    def _team_connection(self, writer: str | None = None) -> Generator[TeamConnection]:
        """A connection that nobody else uses meanwhile."""
        with self.database.connection() as connection:
            load = self.database.load_outside
            load_outside = None if load is None else partial(load, self.team)
            yield TeamConnection(connection, self.team, self.name, load_outside, writer)

    @contextmanager
    def _snapshot(self) -> Generator[Connection]:
        known: TeamConnection | None = getattr(self._snapshots, "connection", None)
        if known is not None:
            yield _for_queries(known)
            return
        with self._team_connection() as connection:
            connection.begin_snapshot(self.viewer)
            self._snapshots.connection = connection
            try:
                yield _for_queries(connection)
            finally:
                self._snapshots.connection = None
                connection.roll_back()

    @contextmanager
    def _writing(self, *, forgetting: bool = False) -> Generator[Connection]:
        with self._team_connection() as connection:
            connection.begin_writing()
            try:
                yield _for_queries(connection)
                connection.commit()
            except BaseException:
                connection.roll_back()
                raise

    @contextmanager
    def _native(self) -> Generator[NativeSessions]:
        from turnlog.pricing import price_nanos, price_version
        from turnlog.store.writing.native import NativeSessions

        with self._team_connection(self.viewer) as connection:
            yield NativeSessions(_for_queries(connection), price_nanos, price_version())


def _owner_of(connection: Connection, session_id: str) -> str:
    """Id of the person whose a session is; empty where sessions have no owners."""
    row = connection.execute("SELECT owner_user FROM session_owners WHERE session_id = ?", (session_id,)).fetchone()
    return "" if row is None else row[0]


def _for_queries(connection: TeamConnection) -> Connection:
    """The connection as the queries know it: it has the methods of `sqlite3.Connection` that they use."""
    return cast("Connection", connection)


class PostgresStore(PostgresConnections, KeptFiles, SqliteStore):
    """A `Store` in PostgreSQL: all queries of a store in a file, over other connections.

    Any number of threads and processes may use it at once.
    """

    _keeps_days = False
    _keeps_sums = False
    _keeps_secret_places = False
    _walks_in_steps = True

    def raw(self, session_id: str) -> Iterator[RawSource]:
        """The archived bytes of a session's sources."""
        for source in self.sources(session_id):
            yield RawSource(source, iter([self._archived(source.path)]))

    def forget(
        self, session_id: str, *, note: Callable[[TeamConnection], None] = lambda connection: None
    ) -> Forgetting:
        """Remove a session; its bytes leave the database's files as PostgreSQL writes over them.

        Messages that others share keep no words that came because of it: their machines send all again. `note` writes
        in the same transaction who did it.
        """
        with self._writing() as connection:
            owner = _owner_of(connection, session_id)
            if owner:
                withhold(connection, concerned(connection, session_id, owner), owner, "")
            plan = forget(connection, session_id, owner)
            note(cast("TeamConnection", connection))
            return plan

    def status(self) -> StoreStatus:
        """Counts, sizes and the time of the last sync."""
        with self._snapshot() as connection:
            counts = connection.execute(_COUNTS).fetchone()
            # Tables have the rows of all teams, and the name of the database is none of a reader's business.
            size = cast("TeamConnection", connection).read(_SIZE)[0][0] if self.viewer is None else None
            last = self.last_change()
        sessions, subagents, messages, sources, source_bytes, archived, vanished, unreadable, diagnostics, at = counts
        return StoreStatus(
            path=self.name if self.viewer is None else "",
            schema_version=schema.schema_version(),
            file_size=size,
            sessions=sessions,
            subagents=subagents,
            messages=messages,
            sources=sources,
            source_bytes=source_bytes,
            archive_bytes=archived,
            vanished=vanished,
            unreadable=unreadable,
            diagnostics=diagnostics,
            last_sync_at=moment(at),
            change_sequence=last,
        )

    def last_change(self) -> int:
        """The number of the last change; with a viewer, of the last that this one may see."""
        last = self.last_change_of_all()
        if self.viewer is None:
            return last
        # The database may be a backup that was brought back.
        looked, seen = self._seen if last >= self._seen[0] else (0, 0)
        if last != looked:
            with self._snapshot() as connection:
                last = self.last_change_of_all()
                found = connection.execute(_LAST_SEEN, (looked,)).fetchone()
            seen = found[0] if found is not None else seen
            self._seen = last, seen
        return seen

    def last_change_of_all(self) -> int:
        """The number of the team's last change, whoever may see it. It tells that others work: show it to nobody."""
        return super().last_change()

    def owners_of_blob(self, sha256: str) -> dict[str, str]:
        """The sessions that use a content and that the viewer may read, and for each the id of who has it."""
        with self._snapshot() as connection:
            rows = connection.execute(
                "SELECT DISTINCT s.agent || ':' || s.external_id, o.owner_user FROM blob_uses u"
                " JOIN memberships m ON m.message_key = u.message_key JOIN sessions s ON s.key = m.session_key"
                " JOIN session_owners o ON o.session_key = s.key WHERE u.sha256 = ?",
                (bytes.fromhex(sha256),),
            ).fetchall()
        return dict(rows)

    def messages_after(self, position: FeedPosition | None, besides: Collection[int] = ()) -> int:
        """How many messages the viewer may read that have changed after a position of the feed, or have these keys."""
        conditions: list[str] = []
        values: list[Any] = []
        if position is not None:
            conditions.append("changed_seq > ? OR (changed_seq = ? AND key > ?)")
            values += [position.message_sequence, position.message_sequence, position.message_key]
        if besides:
            conditions.append("key IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(sorted(besides)))
        if not conditions:
            return 0
        with self._snapshot() as connection:
            rows = connection.execute(f"SELECT count(*) FROM messages WHERE {' OR '.join(conditions)}", tuple(values))
            return rows.fetchone()[0]

    # -- the change feed, of this store and of others

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection that sees one state of the store, for `feed.reading`."""
        return self._snapshot()

    def feed_position(self, store: str) -> FeedPosition:
        """How far the store with this id was taken."""
        with self._snapshot() as connection:
            return position_of(connection, store)

    def feed_progress(self, store: str) -> tuple[FeedPosition, int]:
        """How far the store with this id was taken, and in which generation."""
        with self._snapshot() as connection:
            return progress_of(connection, store)

    def ids_secret(self, user: str) -> str:
        """What the machines of a person hash ids with at the level `metrics`."""
        with self._transaction() as connection:
            return _ids_secret(_for_queries(connection), user)

    def take(
        self,
        store: str,
        batch: FeedBatch,
        owner: Owner = NOBODY,
        *,
        note: Callable[[TeamConnection, Taken], None] = lambda connection, taken: None,
        check_body: Callable[[bytes], object] = lambda body: None,
    ) -> Taken:
        """Write a batch of the change feed of the store with this id, as rows of `owner`.

        Sessions that somebody else has are left as they are. `note` writes in the same transaction what became of it.
        `check_body` raises ValueError for the JSON of a message that is not taken: then nothing is written.
        Raises ConflictError if something is missing between what was taken and this batch, or it is of an earlier
        generation; BeginAgainError if all is to be sent again.
        """
        batch = shorten_all(batch)
        try:
            with self._transaction() as connection:
                queries = _for_queries(connection)
                taken = take(
                    *(queries, store, batch, connection.copy, owner, check_body),
                    wait_for_writers=connection.wait_for_writers,
                    hidden=_hidden_ids(queries, connection.team, owner.user) if owner.user else None,
                )
                note(connection, taken)
                return taken
        except BeginAgainError:
            with self._transaction() as connection:
                begin_again(_for_queries(connection), store)
            raise

    def session_logs(self, session_id: str, to: Path) -> SessionLogs:
        """Write the log files of a session of which every byte is here below `to`: see `restore_logs`."""
        from turnlog.store.postgres.logs import restore_logs

        with self._snapshot() as connection:
            return restore_logs(connection, session_id, to)

    def previews(self, session_ids: Iterable[str]) -> dict[str, SessionPreview]:
        """As `Store.previews`, with the upload levels of sessions that have an owner."""
        ids = list(session_ids)
        with self._snapshot() as connection:
            found = super().previews(ids)
            levels = connection.execute(
                "SELECT session_id, level FROM session_owners"
                " WHERE session_id IN (SELECT value FROM json_each(?)) AND level <> 'none'",
                (json.dumps(ids),),
            ).fetchall()
        for session_id, level in levels:
            if session_id in found:
                found[session_id] = msgspec.structs.replace(found[session_id], upload_level=level)
        return found

    def upload_level(self, session_id: str) -> str | None:
        """How much of a session its machine has sent; None for one that no machine has."""
        with self._snapshot() as connection:
            row = connection.execute("SELECT level FROM session_owners WHERE session_id = ?", (session_id,)).fetchone()
            return None if row is None else row[0]

    def pushed_sessions(self, owner: Owner) -> dict[str, bool]:
        """Id of each session that this owner's machines have sent, without subagents -> whether log files are here."""
        with self._snapshot() as connection:
            rows = connection.execute(
                "SELECT o.session_id, EXISTS"
                " (SELECT 1 FROM sources f JOIN archive a ON a.source_key = f.key WHERE f.session_id = o.session_id)"
                " FROM session_owners o JOIN sessions s ON s.key = o.session_key"
                " WHERE o.owner_user = ? AND s.native = 0 AND s.relationship IS NOT 'subagent'"
                " ORDER BY o.session_id",
                (owner.user,),
            )
            return {session_id: bool(has_logs) for session_id, has_logs in rows}

    def missing_blobs(self, owner: Owner, most: int = 1000, after: str = "") -> list[tuple[str, int]]:
        """SHA-256 and size of blobs to which messages of this owner refer, and whose bytes he has not sent.

        In the order of their SHA-256, those after the one that is given.
        """
        with self._snapshot() as connection:
            return blobs.missing_blobs(connection, owner.user, most, after)

    def claimed_size(self, owner: Owner, sha256: str) -> int:
        """The size that messages of this owner say of a blob. Raises NotFoundError if none refers to it."""
        with self._snapshot() as connection:
            return blobs.claimed_size(connection, owner.user, sha256)

    def save_blob(self, owner: Owner, sha256: str, data: bytes, keep: Callable[[bytes], None] | None = None) -> None:
        """Keep the bytes of a blob for messages of this owner; `keep` writes them beside the database.

        Raises NotFoundError if no message refers to it, ValueError if the bytes have another hash.
        """
        blobs.check_hash(sha256, data)
        if keep is None:
            with self._transaction() as connection:
                connection.wait_for_writers()
                blobs.save_blob(connection, owner.user, sha256, data)
            return
        is_saved = False
        while not is_saved:
            with self._transaction() as connection:
                blobs.announce(connection, owner.user, sha256)
            with self._transaction() as connection:
                is_saved = blobs.save_outside(connection, owner.user, sha256, data, keep)

    def drop_garbage(self, delete: Callable[[str], None]) -> None:
        """Delete the bytes of blobs beside the database that no message names any more."""
        while self._drop_one(delete):
            pass

    def _drop_one(self, delete: Callable[[str], None]) -> bool:
        with self._transaction() as connection:
            return blobs.drop_garbage(connection, delete)

    def archived_sizes(self, paths: Collection[str]) -> ArchivedSizes:
        """How much of the bytes of these sources is here."""
        with self._snapshot() as connection:
            return archived_sizes(connection, paths)

    def take_archived(self, archived: Iterable[ArchivedBytes]) -> None:
        """Write bytes of sources, in one transaction."""
        with self._transaction() as connection:
            take_sent(_for_queries(connection), list(archived), connection.copy)

    @contextmanager
    def _transaction(self) -> Generator[TeamConnection]:
        """A transaction that waits for others only where both write the same rows."""
        with self._team_connection() as connection:
            connection.begin()
            try:
                yield connection
                connection.commit()
            except BaseException:
                connection.roll_back()
                raise

    def _archived(self, path: str) -> bytes:
        from turnlog.store.archive import Archive

        with self._snapshot() as connection:
            key, generation = connection.execute(
                "SELECT key, generation FROM sources WHERE path = ?", (path,)
            ).fetchone()
            return b"".join(Archive(connection).iter_bytes(key, generation))


def _hidden_ids(connection: Connection, team: int, user: str) -> HiddenIds:
    return HiddenIds.of_person(team, user, _ids_secret(connection, user))


def _ids_secret(connection: Connection, user: str) -> str:
    """The secret of a person's ids, which is drawn if there is none yet."""
    query = "SELECT secret FROM id_secrets WHERE user_id = ?"
    row = connection.execute(query, (user,)).fetchone()
    if row is None:
        drawn = secrets.token_hex(32)
        connection.execute("INSERT OR IGNORE INTO id_secrets (user_id, secret) VALUES (?, ?)", (user, drawn))
        row = connection.execute(query, (user,)).fetchone()
    return row[0]


check_arguments(PostgresStore)


if TYPE_CHECKING:
    # Lets the type checker compare the engine with the protocol.
    _opens_a_store: Callable[[str], Store] = PostgresStore
