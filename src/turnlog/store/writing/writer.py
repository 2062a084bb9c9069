"""Changes -> rows. One `Batch` is what one transaction writes: any number of feeds of any number of sources.

Joins readings of a message by `model.merge`, keeps totals by difference (what a message added before is taken out
before what it adds now goes in), and hands what depends on whole sessions to `lineage`. The caller owns the
transaction, the sources' cursors and the archive. Children are written before their parents (parts while the bodies
of their messages are still being compressed, sessions last), so the connection must not check foreign keys
(`connect(checked=False)`).
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor

from turnlog.agents.changes import Changes, Diagnostic, MessageChange, ResultChange
from turnlog.store.archive import Archive
from turnlog.store.writing import answers, hooked, lineage, streams
from turnlog.store.writing.asked import find_asking_calls
from turnlog.store.writing.branches import Branches
from turnlog.store.writing.event_rows import EventRows
from turnlog.store.writing.left_open import find_left_open, settle_subagents
from turnlog.store.writing.link_rows import (
    drop_diagnostics,
    drop_older_diagnostics,
    save_diagnostics,
    save_link,
    save_spill,
)
from turnlog.store.writing.new_messages import NewMessages
from turnlog.store.writing.readings import Readings
from turnlog.store.writing.splices import splice_forks
from turnlog.store.writing.transaction import Pricer, Saved, SourceRow, Transaction

_LOOKUP_SIZE = 500

CUT_OFF = "cut off at the end of the file"


class Batch:
    """Everything one transaction writes. Call `save` for each feed of each source, then `close` once."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        price: Pricer,
        price_version: str,
        worker: Executor | None = None,
        archive: Archive | None = None,
    ) -> None:
        """`archive` is where what is read goes, if anything is; with a `worker`, bodies are compressed beside."""
        self._connection = connection
        self._transaction = Transaction(connection, price, price_version)
        self._branches = Branches(self._transaction)
        self._new = NewMessages(self._transaction, self._branches, worker)
        self._readings = Readings(self._transaction, self._branches, archive)
        self._events = EventRows(self._transaction, self._branches)
        self._linked: set[str] = set()
        self._rewritten: list[SourceRow] = []
        self._told: defaultdict[int, set[str]] = defaultdict(set)
        """Source -> sessions that it told of, as long as some session is forgotten."""

    def start_over(self, source: SourceRow, *, is_log: bool) -> None:
        """A file will be folded from its start. When it was written anew, what only its old bytes said gives way."""
        if source.generation == 0:
            return
        self._rewritten.append(source)
        drop_older_diagnostics(self._transaction, source)
        self._transaction.sessions.leaf_titles.drop(source.key)
        if is_log and source.session_id is not None:
            self._transaction.sessions.start_over(source.session_id)

    def note_tail(self, source: SourceRow, offset: int, length: int, line: int) -> None:
        """The file ends within a line: no record yet, perhaps never. `forget_tail` before it is read again."""
        self._transaction.turn_to(source)
        save_diagnostics(self._transaction, [Diagnostic(offset=offset, length=length, line=line, reason=CUT_OFF)])

    def forget_tail(self, source: SourceRow, offset: int) -> None:
        """What stands from `offset` on is about to be read again."""
        self._transaction.turn_to(source)
        drop_diagnostics(self._transaction, offset)

    def is_forgotten(self, source: SourceRow) -> bool:
        """Whether all that a source is about was forgotten: told by its path, else by what was saved of it here."""
        sessions = self._transaction.sessions
        told = self._told.get(source.key) or ({source.session_id} if source.session_id else set[str]())
        return bool(told) and all(map(sessions.is_forgotten, told))

    def names_forgotten(self, pieces: Iterable[bytes]) -> bool:
        """Whether a file names a session that was forgotten."""
        sessions = self._transaction.sessions
        return sessions.is_any_forgotten and sessions.names_forgotten(b"".join(pieces))

    def save(self, source: SourceRow, changes: Changes, data: bytes = b"", offset: int = 0) -> None:
        """Write what one feed of a source brought: its bytes `data` from `offset` on, which the archive has by now."""
        self._transaction.turn_to(source, data, offset)
        sessions = self._transaction.sessions
        if sessions.is_any_forgotten:
            self._told[source.key] |= _told_of(changes)
        for change in changes.sessions.values():
            (sessions.learn_from_hooks if source.is_hooks else sessions.learn)(change)
        self._save_messages(changes.messages)
        for result in changes.results:
            self._save_late_result(result)
        self._events.save(changes.events)
        for link in changes.links:
            self._linked.add(link.child_session_id)
            save_link(self._transaction, link)
        if changes.leaf_titles and not sessions.is_forgotten(source.session_id):
            titles = [found for found in changes.leaf_titles if not sessions.is_forgotten(found.record_id)]
            sessions.leaf_titles.give(source.agent, titles, source.key)
        for spill in changes.spills:
            self._new.land()
            save_spill(self._transaction, spill)
        save_diagnostics(self._transaction, changes.diagnostics)
        if source.is_stream:
            self._note_stream(changes)

    def look_at(self, session_id: str) -> None:
        """Settle what there is to settle about a session, though nothing is told of it."""
        self._transaction.sessions.key(session_id)

    def _note_stream(self, changes: Changes) -> None:
        keys = {self._transaction.sessions.key(session_id) for session_id in _told_of(changes)}
        source_key = self._transaction.source.key
        streams.note_stream(self._connection, source_key, {key for key in keys if key is not None})

    def close(self) -> Saved:
        """Write the sessions and totals, settle what depends on whole sessions, and say what was saved."""
        transaction, sessions = self._transaction, self._transaction.sessions
        self._new.land()
        for source in self._rewritten:
            self._events.drop_moved(source)
        transaction.totals.write()
        sessions.write()
        logged = streams.give_way(self._connection, sessions, transaction.totals)
        changed = hooked.give_way(self._connection, sessions, transaction.totals)
        changed |= answers.give_way(self._connection, sessions, transaction.totals)
        if changed or logged:
            transaction.totals.write()
            sessions.write()
        spliced = splice_forks(transaction)
        for key in sorted(sessions.relink | self._branches.left() | logged | spliced):
            lineage.relink(self._connection, key, sessions.sequence(key))
        sessions.write()
        shared = sessions.shared | lineage.sharing(self._connection, self._linked)
        relinked = self._settle_shared(shared) if shared else set[str]()
        lineage.attach_parents(self._connection, sessions.created | self._linked, relinked)
        find_asking_calls(self._connection, sessions.touched | self._linked)
        if settle_subagents(self._connection, sessions.touched | self._linked, self._readings.give_up):
            transaction.totals.write()
            sessions.write()
        saved = transaction.saved
        saved.sessions = sessions.touched
        saved.new_sessions = len(sessions.created)
        saved.last_change = sessions.last_change
        return saved

    def _save_messages(self, changes: Sequence[MessageChange]) -> None:
        if not changes:
            return
        self._new.land()
        stored = self._stored_keys([change.message.id for change in changes])
        later: list[tuple[int, int, MessageChange]] = []
        for change in changes:
            session_key = self._transaction.sessions.key(change.placement.session_id)
            if session_key is None:
                continue
            key = stored.get(change.message.id)
            if key is None:
                stored[change.message.id] = self._new.add(session_key, change)
            else:
                later.append((key, session_key, change))
        self._new.send()
        for key, session_key, change in later:
            self._new.land()
            self._readings.join(key, session_key, change)
        if self._events.orphaned:
            told = {change.placement.session_id for change in changes}
            for session_id in sorted(told | self._holding([key for key, *_ in later])):
                self._adopt_orphans(session_id)

    def _holding(self, keys: Sequence[int]) -> set[str]:
        """The sessions that hold any of these messages: a fork may have a call whose line another has lost."""
        found: set[int] = set()
        for start in range(0, len(keys), _LOOKUP_SIZE):
            piece = keys[start : start + _LOOKUP_SIZE]
            marks = ",".join("?" * len(piece))
            rows = self._connection.execute(
                f"SELECT DISTINCT session_key FROM memberships WHERE message_key IN ({marks})", piece
            )
            found.update(row[0] for row in rows)
        orphaned = sorted(found & self._events.orphaned)
        known = self._transaction.sessions.keys
        return {self._transaction.sessions.id(key) if key in known else self._stored_id(key) for key in orphaned}

    def _stored_id(self, session_key: int) -> str:
        return self._connection.execute(
            "SELECT agent || ':' || external_id FROM sessions WHERE key = ?", (session_key,)
        ).fetchone()[0]

    def _stored_keys(self, ids: list[str]) -> dict[str, int]:
        """Id -> key of the messages that are there already."""
        found: dict[str, int] = {}
        for start in range(0, len(ids), _LOOKUP_SIZE):
            piece = ids[start : start + _LOOKUP_SIZE]
            rows = self._connection.execute(
                "SELECT external_id, key FROM messages WHERE agent = ? AND external_id IN"
                f" ({','.join('?' * len(piece))})",
                (self._transaction.source.agent, *piece),
            )
            found.update(rows.fetchall())
        return found

    def _save_late_result(self, change: ResultChange) -> None:
        self._new.land()
        if self._transaction.sessions.key(change.session_id) is None:
            return
        if not self._readings.add_result(change, self._transaction.source.key):
            self._events.save_orphan(change)

    def _adopt_orphans(self, session_id: str) -> None:
        """Give results that came before their call to it, now that it may be there."""
        self._new.land()
        for event_key, source_key, change in self._events.orphans(session_id):
            if self._readings.call_key(change) is not None:
                self._events.adopt(session_id, event_key)
                self._readings.add_result(change, source_key)

    def _settle_shared(self, session_keys: set[int]) -> set[str]:
        """Let the right session pay for each shared message; the sessions that this relates to others."""
        transaction = self._transaction
        settled = lineage.settle(self._connection, session_keys)
        for change in settled.payers:
            transaction.totals.move(change.message_key, change.old, change.new)
            self._note_payer(change)
        for session_id, message_key in find_left_open(self._connection, session_keys):
            self._readings.give_up(session_id, message_key)
        transaction.totals.write()
        transaction.sessions.write()
        return settled.session_ids

    def _note_payer(self, change: lineage.PayerChange) -> None:
        """What the message costs in each of the two sessions has changed."""
        for session_key in (change.old, change.new):
            if session_key is not None:
                self._connection.execute(
                    "UPDATE memberships SET changed_seq = ? WHERE message_key = ? AND session_key = ?",
                    (self._transaction.sessions.sequence(session_key), change.message_key, session_key),
                )


def _told_of(changes: Changes) -> set[str]:
    """The sessions that one feed says something of."""
    told = {change.session_id for change in (*changes.results, *changes.events)}
    return told | {change.placement.session_id for change in changes.messages} | set(changes.sessions)
