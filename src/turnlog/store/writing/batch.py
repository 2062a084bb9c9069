"""Writes changes as rows. A `Batch` is one transaction with any number of feeds of any number of sources.

`save` writes the messages, events and links of a feed at once. `close` runs the passes that depend on whole sessions
(`reconcile.passes.PASSES`). The caller owns the transaction, the sources' cursors and the archive. Children are written
before their parents (parts while the bodies of their messages are still being compressed, sessions last), so the
connection must not check foreign keys (`connect(checked=False)`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from turnlog.agents.changes import Changes, Diagnostic, MessageChange, ResultChange
from turnlog.model import Fate
from turnlog.store.archive import Archive
from turnlog.store.connection import Connection, connect, write_transaction
from turnlog.store.frames import drop_bodies
from turnlog.store.keys import own_messages, session_id_of
from turnlog.store.reconcile.fates import BranchTracker
from turnlog.store.reconcile.lesser_sources import note_stream
from turnlog.store.reconcile.passes import PASSES, Reconciliation
from turnlog.store.reconcile.projects import settle_projects
from turnlog.store.sources import note_sessions
from turnlog.store.writing.call_totals import drop_totals
from turnlog.store.writing.events import (
    EventRows,
    drop_diagnostics,
    drop_older_diagnostics,
    save_diagnostics,
    save_link,
    save_spill,
)
from turnlog.store.writing.message_updates import MessageUpdates
from turnlog.store.writing.messages import MessageInserts
from turnlog.store.writing.prepared import FoldedMessage, PreparedMessage, Pricer, Reading, prepare
from turnlog.store.writing.response_names import ResponseNames
from turnlog.store.writing.transaction import SavedChanges, SourceRow, Transaction

_LOOKUP_SIZE = 500

CUT_OFF = "cut off at the end of the file"


class Batch:
    """One transaction. Call `save` for each feed of each source, then `close` once."""

    def __init__(
        self,
        connection: Connection,
        price: Pricer,
        price_version: str,
        worker: Executor | None = None,
        archive: Archive | None = None,
    ) -> None:
        """Begin an empty batch.

        Args:
            connection: The store, in a transaction.
            price: Prices a model call.
            price_version: The version of its price list.
            worker: Compresses bodies in parallel; without one, this thread compresses them.
            archive: The archive with the bytes of the sources; None if nothing is archived.
        """
        self._connection = connection
        self._transaction = Transaction(connection, price, price_version)
        self._branches = BranchTracker(self._transaction)
        self._archive = archive
        self._inserts = MessageInserts(self._transaction, self._branches, worker)
        self._updates = MessageUpdates(self._transaction, self._branches, archive)
        self._events = EventRows(self._transaction, self._branches)
        self._names = ResponseNames(self._transaction, self._updates, self._stored_keys)
        self._linked: set[str] = set()
        self._rewritten: list[SourceRow] = []
        self._sessions_of: defaultdict[int, set[str]] = defaultdict(set)
        """Source -> sessions that it describes; only kept where some session is forgotten."""

    def start_over(self, source: SourceRow, *, is_log: bool) -> None:
        """Prepare to fold a file from its beginning. If it was rewritten, delete what only its old bytes said."""
        self._settle_rewritten()
        if source.generation == 0:
            return
        self._rewritten.append(source)
        drop_older_diagnostics(self._transaction, source)
        self._transaction.sessions.leaf_titles.drop(source.key)
        if is_log:
            self._transaction.sessions.start_over(source.session_id, source.key)

    def note_tail(self, source: SourceRow, offset: int, length: int, line: int) -> None:
        """Note that a file ends within a line, which may never become a record. See `forget_tail`."""
        self._transaction.use_source(source)
        # The archive has its bytes, and its agent is probably writing the rest.
        torn = Diagnostic(offset=offset, length=length, line=line, reason=CUT_OFF, severity="note")
        save_diagnostics(self._transaction, [torn])

    def forget_tail(self, source: SourceRow, offset: int) -> None:
        """Delete the diagnostics of the bytes from `offset` on, which will be read again."""
        self._transaction.use_source(source)
        drop_diagnostics(self._transaction, offset)

    def is_forgotten(self, source: SourceRow) -> bool:
        """Whether all sessions of a source were forgotten: those saved from it in this batch, or that of its path."""
        sessions = self._transaction.sessions
        described = self._sessions_of.get(source.key) or ({source.session_id} if source.session_id else set[str]())
        return bool(described) and all(map(sessions.is_forgotten, described))

    @property
    def is_any_forgotten(self) -> bool:
        """Whether the user has forgotten any session."""
        return self._transaction.sessions.is_any_forgotten

    def names_forgotten(self, chunks: Iterable[bytes]) -> bool:
        """Whether a file mentions a session that was forgotten."""
        return self.is_any_forgotten and self._transaction.sessions.names_forgotten(b"".join(chunks))

    def save(
        self,
        source: SourceRow,
        changes: Changes,
        data: bytes = b"",
        offset: int = 0,
        prepared: Sequence[PreparedMessage] = (),
    ) -> None:
        """Write what a feed of a source found in its bytes `data` at `offset`, which are archived already.

        Another process may have `prepared` the messages; then `changes` has none.
        """
        transaction = self._transaction
        transaction.use_source(source, data, offset)
        sessions = transaction.sessions
        readings = prepared or [
            FoldedMessage(change, transaction.feed, transaction.price) for change in changes.messages
        ]
        needs_described = source.is_stream or sessions.is_any_forgotten
        described = _described_sessions(changes, readings) if needs_described else set[str]()
        if sessions.is_any_forgotten:
            self._sessions_of[source.key] |= described
        if source.is_unnamed:
            kept = (each for each in changes.sessions if not sessions.is_forgotten(each))
            note_sessions(self._connection, source.key, kept)
        for change in changes.sessions.values():
            if source.is_hooks:
                sessions.apply_from_hooks(change)
            else:
                sessions.apply(change, is_rewritten=source.generation > 0)
        # Messages of programs and hooks have ids of their own.
        if source.key and not source.is_hooks:
            self._inserts.finish_write()
            readings, changes = self._names.apply(readings, changes)
        self._save_messages(readings)
        self._save_late_results(changes.results)
        self._events.save(changes.events)
        for link in changes.links:
            self._linked.add(link.child_session_id)
            save_link(self._transaction, link)
        if changes.leaf_titles and not sessions.is_forgotten(source.session_id):
            titles = [found for found in changes.leaf_titles if not sessions.is_forgotten(found.record_id)]
            sessions.leaf_titles.save(source.agent, titles, source.key)
        for spill in changes.spills:
            # This marks the messages that preview the output as changed, in SQL.
            self._inserts.finish_write()
            save_spill(self._transaction, spill)
        save_diagnostics(self._transaction, changes.diagnostics)
        if source.is_stream:
            self._note_stream(described)
        self._transaction.end_feed()

    def include(self, session_id: str) -> None:
        """Reconcile a session in `close`, although no source of this batch describes it."""
        self._transaction.sessions.key(session_id)

    def _note_stream(self, described: set[str]) -> None:
        keys = {self._transaction.sessions.key(session_id) for session_id in described}
        source_key = self._transaction.source.key
        note_stream(self._connection, source_key, {key for key in keys if key is not None})

    def close(self) -> SavedChanges:
        """Reconcile whole sessions, write sessions and usage, and return what was saved."""
        self._settle_rewritten()
        work = Reconciliation(
            transaction=self._transaction,
            inserts=self._inserts,
            updates=self._updates,
            events=self._events,
            branches=self._branches,
            archive=self._archive,
            linked=self._linked,
            rewritten=self._rewritten,
        )
        for step in PASSES:
            step.run(work)
        saved, sessions = self._transaction.saved, self._transaction.sessions
        saved.sessions = sessions.ids
        saved.created = sessions.created_keys
        saved.last_change = sessions.last_change
        return saved

    def _save_messages(self, readings: Sequence[Reading]) -> None:
        if not readings:
            return
        self._inserts.finish_write()
        stored = self._stored_keys([reading.id for reading in readings])
        # A new message is written once per feed. Readings of stored messages, and further ones of new messages, are
        # merged after that, because merging reads the row.
        later: list[tuple[int, int, Reading]] = []
        for reading in readings:
            session_key = self._transaction.sessions.key(reading.placement.session_id)
            if session_key is None:
                continue
            key = stored.get(reading.id)
            if key is None:
                billed = not reading.placement.handed_over
                stored[reading.id] = self._inserts.add(session_key, reading.prepared(), billed=billed)
            else:
                later.append((key, session_key, reading))
        self._inserts.start_write()
        for key, session_key, reading in later:
            self._inserts.finish_write()
            self._updates.merge(key, session_key, reading)
        if self._events.orphaned:
            described = {reading.placement.session_id for reading in readings}
            for session_id in sorted(described | self._holding([key for key, *_ in later])):
                self._adopt_orphans(session_id)

    def _settle_rewritten(self) -> None:
        """Write messages as their files have them now, and keep beside them what the files said before."""
        # Most transactions rewrite nothing, and their last bodies may still be being compressed.
        if not self._updates.rewritten:
            return
        self._inserts.finish_write()
        left = self._updates.settle_rewritten()
        known = self._stored_keys([message.id for _, message in left])
        for found, message in left:
            session_key = self._transaction.sessions.key(found.placement.session_id)
            # A file that was written anew again has the same generations, and this one is here already.
            if session_key is None or message.id in known:
                continue
            self._transaction.use_source(msgspec.structs.replace(found.source, generation=found.generation))
            placement = msgspec.structs.replace(
                found.placement, record_ids=(), fate=Fate.SUPERSEDED, fate_cause=found.before.id
            )
            # The model was called once, and that is counted for what the file says now.
            change = MessageChange(message=message, placement=placement)
            self._inserts.add(session_key, prepare(change, None, self._transaction.price), billed=False)
        self._inserts.start_write()
        self._inserts.finish_write()

    def _holding(self, keys: Sequence[int]) -> set[str]:
        """Ids of the sessions that contain any of these messages and have orphan results.

        A fork's log may contain a call whose line was damaged in its parent's log.
        """
        found: set[int] = set()
        for start in range(0, len(keys), _LOOKUP_SIZE):
            chunk = keys[start : start + _LOOKUP_SIZE]
            marks = ",".join("?" * len(chunk))
            rows = self._connection.execute(
                f"SELECT DISTINCT session_key FROM memberships WHERE message_key IN ({marks})", chunk
            )
            found.update(row[0] for row in rows)
        orphaned = sorted(found & self._events.orphaned)
        # A session that this transaction created has no row yet.
        drafts = map(self._transaction.sessions.draft, orphaned)
        return {draft.session_id or session_id_of(self._connection, draft.key) for draft in drafts}

    def _stored_keys(self, ids: Sequence[str]) -> dict[str, int]:
        """Id -> key of the messages that are stored already."""
        found: dict[str, int] = {}
        for start in range(0, len(ids), _LOOKUP_SIZE):
            chunk = ids[start : start + _LOOKUP_SIZE]
            rows = self._connection.execute(
                "SELECT external_id, key FROM messages WHERE agent = ? AND external_id IN"
                f" ({','.join('?' * len(chunk))}){own_messages(self._connection)}",
                (self._transaction.source.agent, *chunk),
            )
            found.update(rows.fetchall())
        return found

    def _save_late_results(self, changes: Sequence[ResultChange]) -> None:
        if not changes:
            return
        self._inserts.finish_write()
        wanted = [change for change in changes if self._transaction.sessions.key(change.session_id) is not None]
        source = self._transaction.source
        known = self._updates.add_results(wanted, (source.key, source.generation))
        for change, is_known in zip(wanted, known, strict=True):
            if not is_known:
                self._events.save_orphan(change)

    def _adopt_orphans(self, session_id: str) -> None:
        """Add results that were read before their call, if the call is stored now."""
        self._inserts.finish_write()
        waiting: dict[tuple[int, int], list[tuple[int, ResultChange]]] = {}
        for event_key, origin, change in self._events.orphans(session_id):
            waiting.setdefault(origin, []).append((event_key, change))
        for origin, found in waiting.items():
            known = self._updates.add_results([change for _, change in found], origin)
            for (event_key, _), is_known in zip(found, known, strict=True):
                if is_known:
                    self._events.adopt(session_id, event_key)


@contextmanager
def rebuilding(connection: Connection) -> Generator[None]:
    """Delete everything derived from logs, before the body of the `with` writes it again.

    Native sessions, annotations and tombstones stay. A session keeps its owner. It also keeps its folder if its log
    does not contain it: for Gemini CLI it is in a file next to the logs that may be deleted by now. The caller owns the
    transaction.
    """
    kept = connection.execute(
        "SELECT folder_key, cwd, owner_key, agent, external_id FROM sessions"
        " WHERE native = 0 AND (folder_key IS NOT NULL OR cwd IS NOT NULL OR owner_key <> 1)"
    ).fetchall()
    _clear_derived(connection)
    yield
    connection.executemany(_KEEP, kept)
    settle_projects(connection, [key for (key,) in connection.execute("SELECT key FROM sessions").fetchall()])
    connection.execute("INSERT INTO changes (kind, at) VALUES ('rebuilt', ?)", (int(time.time() * 1000),))


_KEEP = (
    "UPDATE sessions SET folder_key = coalesce(folder_key, ?1), cwd = coalesce(cwd, ?2),"
    " owner_key = ?3 WHERE agent = ?4 AND external_id = ?5"
)


def _clear_derived(connection: Connection) -> None:
    derived = "SELECT key FROM sessions WHERE native = 0"
    for table in ("memberships", "superseded", "streams", "events", "usage"):
        connection.execute(f"DELETE FROM {table} WHERE session_key IN ({derived})")
    drop_totals(connection, derived)
    connection.execute("DELETE FROM sessions WHERE native = 0")
    # Messages in native sessions stay, even if a log has superseded them.
    gone = connection.execute(
        "DELETE FROM messages WHERE key NOT IN"
        " (SELECT message_key FROM memberships UNION ALL SELECT message_key FROM superseded) RETURNING key"
    )
    drop_bodies(connection, [key for (key,) in gone.fetchall()])
    for table in ("parts", "more_paths", "blob_uses", "archived_texts", "call_orders"):
        connection.execute(f"DELETE FROM {table} WHERE message_key NOT IN (SELECT key FROM messages)")
    connection.execute("DELETE FROM blobs WHERE sha256 NOT IN (SELECT sha256 FROM blob_uses)")
    for table in ("links", "spills", "leaf_titles", "source_sessions", "response_names"):
        connection.execute(f"DELETE FROM {table}")
    # A truncated last line comes after the folded bytes: the sync that saw it has reported it, and the report stays.
    connection.execute("DELETE FROM diagnostics WHERE reason <> ?", (CUT_OFF,))


def reconcile_session(store_path: Path, session_id: str, price: Pricer, price_version: str) -> None:
    """Run the passes for a session whose sources have not changed, because something else has, such as its run.

    Raises StoreError if the store cannot be written. `price` and its version are as for `Batch`.
    """
    with closing(connect(store_path, checked=False)) as connection, write_transaction(connection):
        batch = Batch(connection, price, price_version)
        batch.include(session_id)
        batch.close()


def _described_sessions(changes: Changes, readings: Iterable[Reading]) -> set[str]:
    """The sessions that a feed mentions."""
    described = {change.session_id for change in (*changes.results, *changes.events)}
    return described | {reading.placement.session_id for reading in readings} | set(changes.sessions)
