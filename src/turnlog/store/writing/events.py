"""Rows for everything but messages: events, orphan results, links, spilled outputs, diagnostics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from turnlog.agents.changes import Diagnostic, EventChange, Link, ResultChange, Spill
from turnlog.model import RecordEvent, RunMetadataEvent, ToolResultEvent
from turnlog.model.codec import decode_event
from turnlog.store import zstd
from turnlog.store.packed_columns import pack_event
from turnlog.store.reconcile.fates import BranchTracker
from turnlog.store.reconcile.lineage import drop_inferred
from turnlog.store.reconcile.merge import merge_links
from turnlog.store.rows import milliseconds
from turnlog.store.writing.transaction import SourceRow, Transaction

_ORPHAN = "orphan-result"

_COLUMNS = (
    "type",
    "kind",
    "known",
    "created_at",
    "source_key",
    "generation",
    "start",
    "length",
    "record_id",
    "parent_id",
    "body",
    "data",
    "changed_seq",
)
_INSERT = (
    f"INSERT OR IGNORE INTO events (session_key, position, external_id, {', '.join(_COLUMNS)})"
    f" VALUES ({', '.join('?' * (3 + len(_COLUMNS)))})"
)
_UPDATE = (
    f"UPDATE events SET {', '.join(f'{name} = ?' for name in _COLUMNS)}"
    " WHERE session_key = ? AND position = ? AND external_id = ?"
)
_MOVED = (
    "SELECT key, position, external_id FROM events AS old"
    " WHERE session_key = ? AND source_key = ? AND generation < ? AND EXISTS"
    " (SELECT 1 FROM events AS new WHERE new.session_key = old.session_key AND new.source_key = old.source_key"
    " AND new.generation = ? AND new.kind IS old.kind AND new.type = old.type AND new.record_id IS old.record_id"
    " AND new.length IS old.length AND new.created_at IS old.created_at)"
)
"""SQL: events of earlier generations of a file that are at another place in the newest generation."""


class EventRows:
    """Writes the events of one transaction."""

    def __init__(self, transaction: Transaction, branches: BranchTracker) -> None:
        self._transaction = transaction
        self._branches = branches
        self._rewritten: dict[int, set[int]] = defaultdict(set)
        """Source -> sessions of which a rewritten generation of it has events."""
        self.orphaned = {
            row[0]
            for row in transaction.connection.execute(
                "SELECT DISTINCT session_key FROM events WHERE kind = ?", (_ORPHAN,)
            )
        }
        """Keys of the sessions with results that no call was found for."""

    def save(self, changes: Iterable[EventChange]) -> None:
        """Write the events of a feed. A stored event is replaced if the source outranks the stored one's."""
        rows: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        for change in changes:
            session_key = self._transaction.sessions.key(change.session_id)
            if session_key is not None:
                rows[session_key].append(self._event_row(session_key, change))
                self._branches.note_records(session_key, (change.record_id,) if change.record_id else (), None)
        for session_key, found in rows.items():
            self._transaction.sessions.sequence(session_key)
            if self._transaction.source.generation:
                # Only a later generation can have moved events, so a log that just grows costs no query.
                self._rewritten[self._transaction.source.key].add(session_key)
            cursor = self._transaction.connection.executemany(_INSERT, found)
            self._transaction.sessions.draft(session_key).events += cursor.rowcount
            # The insert ignores events that are stored already.
            if cursor.rowcount < len(found):
                self._replace(session_key, found)

    def drop_moved(self, source: SourceRow) -> None:
        """Delete events of a rewritten file that its newest generation has at another place.

        Other events of earlier generations stay: an agent that rewrites its log may drop what happened.
        """
        for session_key in self._rewritten[source.key]:
            place = (session_key, source.key, source.generation, source.generation)
            moved = self._transaction.connection.execute(_MOVED, place).fetchall()
            self._transaction.connection.executemany("DELETE FROM events WHERE key = ?", [(key,) for key, *_ in moved])
            self._transaction.sessions.draft(session_key).events -= len(moved)
            places = [(position, id) for _, position, id in moved]
            self._transaction.sessions.note_gone(session_key, places, events=True)

    def save_orphan(self, change: ResultChange) -> None:
        """Save a result whose call is not stored as an event."""
        event = ToolResultEvent(
            position=change.position,
            created_at=change.result.completed_at,
            tool_call_id=change.tool_call_id,
            result=change.result,
            approval=change.approval,
        )
        record_id = change.record_ids[0] if change.record_ids else None
        session_key = self._transaction.sessions.key(change.session_id)
        if session_key is not None:
            self.orphaned.add(session_key)
        self.save([EventChange(session_id=change.session_id, event=event, record=change.record, record_id=record_id)])

    def orphans(self, session_id: str) -> list[tuple[int, tuple[int, int], ResultChange]]:
        """The orphan results of a session, with the keys of their events, and the sources and generations of these."""
        session_key = self._transaction.sessions.key(session_id)
        if session_key not in self.orphaned:
            return []
        rows = self._transaction.connection.execute(
            "SELECT key, source_key, generation, position, coalesce(start, position), length, record_id, body"
            " FROM events WHERE kind = ? AND session_key = ?",
            (_ORPHAN, session_key),
        ).fetchall()
        return [
            (key, (source_key, generation), _orphan_of(session_id, *found))
            for key, source_key, generation, *found in rows
        ]

    def adopt(self, session_id: str, event_key: int) -> None:
        """Delete an orphan result, because its call is stored now and contains it."""
        session_key = self._transaction.sessions.key(session_id)
        assert session_key is not None
        gone = self._transaction.connection.execute(
            "DELETE FROM events WHERE key = ? RETURNING position, external_id", (event_key,)
        ).fetchall()
        self._transaction.sessions.draft(session_key).events -= 1
        self._transaction.sessions.note_gone(session_key, gone, events=True)

    def _replace(self, session_key: int, rows: Iterable[tuple[Any, ...]]) -> None:
        """Replace stored events by a later, more complete record of the same file, or by a file that outranks it."""
        session_id = self._transaction.sessions.draft(session_key).session_id
        here = (self._transaction.source.key, self._transaction.source.generation)
        for _, position, external_id, *columns in rows:
            place = (session_key, position, external_id)
            source_key, generation = self._transaction.connection.execute(
                "SELECT source_key, generation FROM events WHERE session_key = ? AND position = ? AND external_id = ?",
                place,
            ).fetchone()
            if (source_key, generation) == here or self._transaction.outranks(source_key, generation, session_id):
                self._transaction.connection.execute(_UPDATE, (*columns, *place))

    def _event_row(self, session_key: int, change: EventChange) -> tuple[Any, ...]:
        event = change.event
        start, length = change.record or (event.position, None)
        known, kind = True, None
        external_id = getattr(event, "id", None)
        if isinstance(event, RecordEvent | RunMetadataEvent):
            kind = event.kind
            known = getattr(event, "known", True)
        if isinstance(event, ToolResultEvent):
            kind, external_id = _ORPHAN, f"{event.tool_call_id}:{event.result.id}"
        return (
            session_key,
            event.position,
            external_id or f"{event.position}",
            event.__struct_config__.tag,
            kind,
            known,
            milliseconds(event.created_at),
            self._transaction.source.key,
            self._transaction.source.generation,
            # Positions are not offsets only for agents whose sessions continue in several files.
            None if start == event.position else start,
            length,
            change.record_id,
            change.parent_id,
            *pack_event(event),
            self._transaction.sessions.sequence(session_key),
        )


def _orphan_of(
    session_id: str, position: int, start: int, length: int | None, record_id: str | None, frame: bytes
) -> ResultChange:
    event = decode_event(zstd.decompress(frame))
    assert isinstance(event, ToolResultEvent)
    return ResultChange(
        session_id=session_id,
        tool_call_id=event.tool_call_id,
        result=event.result,
        position=position,
        record=(start, length or 0),
        record_ids=(record_id,) if record_id else (),
        approval=event.approval,
    )


def save_link(transaction: Transaction, link: Link) -> None:
    """Merge a link with what is stored of the two sessions."""
    # The store's own inference about a session holds only until a source says how the session began.
    drop_inferred(transaction.connection, link.child_session_id)
    row = transaction.connection.execute(
        "SELECT tool_call_id, message_id, inferred, metadata FROM links"
        " WHERE child_id = ? AND parent_id = ? AND kind = ?",
        (link.child_session_id, link.parent_session_id, link.kind),
    ).fetchone()
    if row is not None:
        call, message, inferred, metadata = row
        known = msgspec.structs.replace(
            link,
            tool_call_id=call,
            message_id=message,
            inferred=bool(inferred),
            metadata=msgspec.json.decode(metadata) if metadata else {},
        )
        link = merge_links(known, link)
    transaction.connection.execute(
        "INSERT OR REPLACE INTO links"
        " (agent, parent_id, child_id, kind, tool_call_id, message_id, inferred, metadata)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            transaction.source.agent,
            link.parent_session_id,
            link.child_session_id,
            link.kind,
            link.tool_call_id,
            link.message_id,
            link.inferred,
            msgspec.json.encode(link.metadata, order="sorted").decode() if link.metadata else None,
        ),
    )


def save_spill(transaction: Transaction, spill: Spill) -> None:
    """Record the file that contains a whole output."""
    session_key = transaction.sessions.key(spill.session_id)
    if session_key is None:
        return
    transaction.connection.execute(
        "INSERT OR REPLACE INTO spills (session_id, name, source_key, media_type, size) VALUES (?, ?, ?, ?, ?)",
        (spill.session_id, spill.name, transaction.source.key, spill.media_type, spill.size),
    )
    # The messages with a preview of it have changed: their whole output is known now.
    transaction.connection.execute(
        "UPDATE messages SET changed_seq = ? WHERE key IN (SELECT p.message_key FROM parts p"
        " JOIN memberships m ON m.message_key = p.message_key AND m.session_key = ? WHERE p.spill = ?)",
        (transaction.sessions.sequence(session_key), session_key, spill.name),
    )


def _told_apart(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The same diagnostics, no two of one offset with the same reason, since the table has one of each.

    A later one has its place in the record in its reason too. Those that have no place, or the same, are counted. All
    of a record are saved together.
    """
    counts: Counter[tuple[int, str, str | None]] = Counter()
    found: dict[tuple[int, str, str | None], Diagnostic] = {}
    for each in diagnostics:
        key = each.offset, each.reason, each.json_path
        counts[key] += 1
        found.setdefault(key, each)
    named: set[tuple[int, str]] = set()
    for (offset, reason, json_path), each in found.items():
        is_first = (offset, reason) not in named
        named.add((offset, reason))
        times = counts[offset, reason, json_path]
        place = "" if is_first or json_path is None else f", at {json_path}"
        count = f", {times} times" if times > 1 else ""
        yield msgspec.structs.replace(each, reason=f"{reason}{place}{count}") if place or count else each


def save_diagnostics(transaction: Transaction, diagnostics: Sequence[Diagnostic]) -> None:
    """Write the diagnostics of the source."""
    cursor = transaction.connection.executemany(
        "INSERT OR IGNORE INTO diagnostics"
        " (source_key, generation, offset, length, line, json_path, severity, reason)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                transaction.source.key,
                transaction.source.generation,
                found.offset,
                found.length,
                found.line,
                found.json_path,
                found.severity,
                found.reason,
            )
            for found in _told_apart(diagnostics)
        ],
    )
    transaction.saved.diagnostics += max(0, cursor.rowcount)


def drop_diagnostics(transaction: Transaction, offset: int) -> None:
    """Delete the source's diagnostics from byte `offset` on, because those bytes will be read again."""
    source = transaction.source
    transaction.connection.execute(
        "DELETE FROM diagnostics WHERE source_key = ? AND generation = ? AND offset >= ?",
        (source.key, source.generation, offset),
    )


def drop_older_diagnostics(transaction: Transaction, source: SourceRow) -> None:
    """Delete the diagnostics of earlier generations of a file."""
    transaction.connection.execute(
        "DELETE FROM diagnostics WHERE source_key = ? AND generation < ?", (source.key, source.generation)
    )
