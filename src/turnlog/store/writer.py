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
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import msgspec

from turnlog.agents.base import (
    Changes,
    Diagnostic,
    EventChange,
    Link,
    MessageChange,
    Placement,
    RecordRef,
    ResultChange,
)
from turnlog.model import Message, RecordEvent, RunMetadataEvent, ToolResultEvent, Usage
from turnlog.model.codec import decode_event, encode
from turnlog.model.merge import merge_messages
from turnlog.store import bodies, lineage
from turnlog.store.blobs import BlobLoader
from turnlog.store.joining import add_late_result, join_placements, join_records
from turnlog.store.names import Names
from turnlog.store.places import pack_ids, pack_records, unpack_ids, unpack_records
from turnlog.store.rows import (
    MESSAGE_COLUMNS,
    PART_COLUMNS,
    MessageFacts,
    message_buckets,
    message_facts,
    milliseconds,
    nanos,
)
from turnlog.store.sessions import SessionRows
from turnlog.store.totals import Totals

Pricer = Callable[[Usage | None, str | None, str | None, datetime | None], int | None]
"""Usage of one call, its model, who served it, its time -> nano-dollars, or None when the price is not known."""

_LOOKUP_SIZE = 500

_MESSAGE_INSERT = (
    f"INSERT INTO messages ({', '.join(MESSAGE_COLUMNS)}) VALUES ({', '.join('?' * len(MESSAGE_COLUMNS))})"
)
_MESSAGE_UPDATE = f"UPDATE messages SET {', '.join(f'{name} = ?' for name in MESSAGE_COLUMNS[3:])} WHERE key = ?"
_PART_INSERT = f"INSERT INTO parts ({', '.join(PART_COLUMNS)}) VALUES ({', '.join('?' * len(PART_COLUMNS))})"
_MEMBER_COLUMNS = (
    "session_key",
    "position",
    "message_key",
    "source_key",
    "generation",
    "parent_id",
    "parent_record",
    "turn",
    "step",
    "fate",
    "copied",
    "records",
    "record_ids",
)
_MEMBER_INSERT = (
    f"INSERT INTO memberships ({', '.join(_MEMBER_COLUMNS)}) VALUES ({', '.join('?' * len(_MEMBER_COLUMNS))})"
)

_EVENT_ORPHAN = "orphan-result"

_EVENT_INSERT = (
    "INSERT OR IGNORE INTO events (session_key, position, external_id, type, kind, known, created_at, source_key,"
    " generation, length, record_id, parent_id, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class SourceRow(msgspec.Struct, frozen=True):
    """What the writer needs to know of a source."""

    key: int
    agent: str
    path: str
    generation: int
    session_id: str | None


class Saved(msgspec.Struct):
    """What a batch brought."""

    sessions: set[str] = msgspec.field(default_factory=set[str])
    new_sessions: int = 0
    messages: int = 0
    diagnostics: int = 0
    last_change: int = 0


class Batch:
    """Everything one transaction writes. Call `save` for each feed of each source, then `close` once."""

    def __init__(
        self, connection: sqlite3.Connection, price: Pricer, price_version: str, worker: Executor | None = None
    ) -> None:
        self._connection = connection
        self._worker = worker
        self._price = price
        self._names = Names(connection)
        self._sessions = SessionRows(connection, self._names)
        self._totals = Totals(connection, self._names, self._sessions)
        self._price_key = self._names.price_version(price_version)
        self._source = SourceRow(0, "", "", 0, None)
        self._saved = Saved()
        self._linked: set[str] = set()
        self._parents: dict[int, set[str]] = defaultdict(set)
        self._orphaned = {
            row[0]
            for row in connection.execute("SELECT DISTINCT session_key FROM events WHERE kind = ?", (_EVENT_ORPHAN,))
        }
        self._next_key = self._max_message_key() + 1

    def save(self, source: SourceRow, changes: Changes) -> None:
        """Write what one feed of a source brought."""
        self._source = source
        for change in changes.sessions.values():
            self._sessions.learn(change)
        self._save_messages(changes.messages)
        for result in changes.results:
            self._save_late_result(result)
        self._save_events(changes.events)
        for link in changes.links:
            self._save_link(link)
        for spill in changes.spills:
            self._save_spill(spill.session_id, spill.name, spill.media_type, spill.size)
        self._save_diagnostics(changes.diagnostics)

    def close(self) -> Saved:
        """Write the sessions and totals, settle what depends on whole sessions, and say what was saved."""
        self._totals.write()
        self._sessions.write()
        for key in sorted(self._sessions.relink | self._left_the_branch()):
            lineage.relink(self._connection, key)
        if self._sessions.shared:
            self._settle_shared()
        lineage.attach_parents(self._connection, self._sessions.created | self._linked)
        self._saved.sessions = self._sessions.touched
        self._saved.new_sessions = len(self._sessions.created)
        self._saved.last_change = self._sessions.last_change
        return self._saved

    # -- messages

    def _save_messages(self, changes: Sequence[MessageChange]) -> None:
        stored = self._stored_ids([change.message.id for change in changes])
        messages: list[tuple[Any, ...]] = []
        texts: list[bytes] = []
        parts: list[tuple[Any, ...]] = []
        members: list[tuple[Any, ...]] = []
        blobs: list[tuple[bodies.Blob, int]] = []
        later: list[MessageChange] = []
        for change in changes:
            session_key = self._sessions.key(change.placement.session_id)
            if session_key is None:
                continue
            if change.message.id in stored:
                later.append(change)
                continue
            key = stored[change.message.id] = self._next_key
            self._next_key += 1
            messages.append(self._new_row(key, session_key, change.message, texts, parts, blobs))
            members.append(self._member_row(session_key, key, change.placement))
        frames = self._compress(texts)
        self._connection.executemany(_PART_INSERT, parts)
        self._connection.executemany(_MEMBER_INSERT, members)
        found = frames()
        self._connection.executemany(_MESSAGE_INSERT, [(*row, found[index]) for index, row in enumerate(messages)])
        self._save_blobs(blobs)
        self._saved.messages += len(messages)
        for change in later:
            self._save_reading(stored[change.message.id], change)
        if self._orphaned:
            for session_id in {change.placement.session_id for change in changes}:
                self._adopt_orphans(session_id)

    def _stored_ids(self, ids: list[str]) -> dict[str, int]:
        """Id -> key of the messages that are there already."""
        found: dict[str, int] = {}
        for start in range(0, len(ids), _LOOKUP_SIZE):
            piece = ids[start : start + _LOOKUP_SIZE]
            rows = self._connection.execute(
                f"SELECT external_id, key FROM messages WHERE agent = ? AND external_id IN ({_marks(piece)})",
                (self._source.agent, *piece),
            )
            found.update(rows.fetchall())
        return found

    def _new_row(
        self,
        key: int,
        session_key: int,
        message: Message,
        texts: list[bytes],
        parts: list[tuple[Any, ...]],
        blobs: list[tuple[bodies.Blob, int]],
    ) -> tuple[Any, ...]:
        """The row, but for its frame, of a message that nobody has stored; JSON, parts and blobs go to the lists."""
        found: list[bodies.Blob] = []
        external = bodies.externalize(message, found)
        blobs.extend((blob, key) for blob in found)
        facts = message_facts(external, key)
        parts.extend(facts.parts)
        cost = self._cost(message)
        self._sessions.count(session_key, facts.counts, 1)
        self._totals.pay(session_key, message, cost, 1)
        body = bodies.pack_fresh(external)
        texts.append(body)
        return (
            key,
            self._source.agent,
            message.id,
            *self._columns(message, facts, cost, 1, self._sessions.sequence(session_key)),
            session_key,
            len(body),
        )

    def _compress(self, texts: list[bytes]) -> Callable[[], bodies.Frames | list[bytes]]:
        """Compress bodies, beside the caller's own work when there is a worker; call the result for the frames."""
        if not texts:
            return list
        if self._worker is None:
            return partial(bodies.compress_all, texts)
        return self._worker.submit(bodies.compress_all, texts).result

    def _columns(
        self, message: Message, facts: MessageFacts, cost: int | None, revision: int, sequence: int
    ) -> tuple[Any, ...]:
        """The columns between a message's ids and its payer, in the order of MESSAGE_COLUMNS."""
        return (
            message.role,
            message.origin,
            self._names.model(message.model),
            milliseconds(message.created_at),
            milliseconds(message.completed_at),
            message.stop_reason,
            revision,
            sequence,
            facts.has_tool_calls,
            facts.has_reasoning,
            facts.has_files,
            facts.preview,
            *message_buckets(message),
            cost,
            nanos(message.cost.amount) if message.cost else None,
            None if cost is None else self._price_key,
        )

    def _member_row(self, session_key: int, message_key: int, placement: Placement) -> tuple[Any, ...]:
        self._sessions.note_turn(session_key, placement.turn)
        if placement.parent_id is not None and self._sessions.has_branches(session_key):
            self._parents[session_key].add(placement.parent_id)
        return (
            session_key,
            placement.position,
            message_key,
            self._source.key,
            self._source.generation,
            placement.parent_id,
            placement.parent_record,
            placement.turn,
            placement.step,
            placement.fate,
            placement.copied,
            pack_records(placement.records),
            pack_ids(placement.record_ids),
        )

    def _save_reading(self, key: int, change: MessageChange) -> None:
        """Join one more reading into a message that is there, and see to its place in this session."""
        self._update_message(key, change.placement.session_id, lambda known: merge_messages(known, change.message))
        session_key = self._sessions.key(change.placement.session_id)
        assert session_key is not None
        row = self._connection.execute(
            "SELECT position, source_key, generation, parent_id, parent_record, turn, step, copied, records,"
            " record_ids FROM memberships WHERE message_key = ? AND session_key = ?",
            (key, session_key),
        ).fetchone()
        if row is None:
            self._share(session_key, key, change.placement)
        else:
            self._join_membership(session_key, key, _Place(*row), change.placement)

    def _update_message(self, key: int, session_id: str, change: Callable[[Message], Message]) -> None:
        """Store what `change` makes of a stored message, if that is anything new."""
        revision, cost, pays_key, frame = self._connection.execute(
            "SELECT revision, cost, pays_key, body FROM messages WHERE key = ?", (key,)
        ).fetchone()
        old_body = bodies.decompress(frame)
        old = bodies.resolve(bodies.decode(old_body), BlobLoader(self._connection))
        new = change(old)
        found: list[bodies.Blob] = []
        external = bodies.externalize(new, found)
        body = bodies.pack(external)
        if body == old_body:
            return
        session_key = self._sessions.key(session_id)
        assert session_key is not None
        new_cost = self._cost(new)
        before, facts = message_facts(old, key), message_facts(external, key)
        for (member,) in self._connection.execute(
            "SELECT session_key FROM memberships WHERE message_key = ?", (key,)
        ).fetchall():
            self._sessions.count(member, before.counts, -1)
            self._sessions.count(member, facts.counts, 1)
            self._sessions.sequence(member)
        if pays_key is not None:
            self._totals.pay(pays_key, old, cost, -1)
            self._totals.pay(pays_key, new, new_cost, 1)
        columns = self._columns(new, facts, new_cost, revision + 1, self._sessions.sequence(session_key))
        self._connection.execute(_MESSAGE_UPDATE, (*columns, pays_key, len(body), bodies.compress(body), key))
        self._connection.execute("DELETE FROM parts WHERE message_key = ?", (key,))
        self._connection.executemany(_PART_INSERT, facts.parts)
        self._save_blobs([(blob, key) for blob in found])

    def _share(self, session_key: int, key: int, placement: Placement) -> None:
        """Another session holds this message too."""
        self._connection.execute(_MEMBER_INSERT, self._member_row(session_key, key, placement))
        message = bodies.unpack(
            self._connection.execute("SELECT body FROM messages WHERE key = ?", (key,)).fetchone()[0]
        )
        self._sessions.count(session_key, message_facts(message, key).counts, 1)
        members = [
            row[0]
            for row in self._connection.execute("SELECT session_key FROM memberships WHERE message_key = ?", (key,))
        ]
        if len(members) > 1:
            self._sessions.share(members)

    def _join_membership(self, session_key: int, key: int, known: _Place, placement: Placement) -> None:
        """The same message again in the same session: from another feed, another file, or the file written anew.

        Offsets of two files do not mix: the place in the session's own file, as it is now, is the one that counts.
        """
        stored = known.placement(placement.session_id)
        here, there = (self._source.key, self._source.generation), (known.source_key, known.generation)
        if here == there:
            joined, origin = join_placements(stored, placement), here
        elif self._outranks(known.source_key, known.generation, placement.session_id):
            joined, origin = placement, here
        else:
            joined, origin = stored, there
        words = dict.fromkeys((*joined.record_ids, *stored.record_ids, *placement.record_ids))
        self._connection.execute(
            "UPDATE memberships SET position = ?, source_key = ?, generation = ?, parent_id = ?, parent_record = ?,"
            " turn = ?, step = ?, copied = ?, records = ?, record_ids = ? WHERE message_key = ? AND session_key = ?",
            (
                joined.position,
                *origin,
                joined.parent_id,
                joined.parent_record,
                joined.turn,
                joined.step,
                joined.copied,
                pack_records(joined.records),
                pack_ids(tuple(words)),
                key,
                session_key,
            ),
        )

    def _outranks(self, source_key: int | None, generation: int, session_id: str) -> bool:
        """Whether this source says where something of a session stands, and not the one that said so before.

        The session's own file does, of several the one whose path sorts first; of one file its newest generation.
        """
        if source_key == self._source.key:
            return self._source.generation > generation
        row = self._connection.execute("SELECT session_id, path FROM sources WHERE key = ?", (source_key,)).fetchone()
        if row is None:
            return True
        return (self._source.session_id != session_id, self._source.path) < (row[0] != session_id, row[1])

    # -- results that come later than their call, and orphans

    def _save_late_result(self, change: ResultChange) -> None:
        session_key = self._sessions.key(change.session_id)
        if session_key is None:
            return
        key = self._call_key(change)
        if key is None:
            self._save_orphan(change)
            return
        self._update_message(key, change.session_id, lambda known: add_late_result(known, change))
        row = self._connection.execute(
            "SELECT source_key, records, record_ids FROM memberships WHERE message_key = ? AND session_key = ?",
            (key, session_key),
        ).fetchone()
        if row is not None and row[0] == self._source.key:
            reference: RecordRef = (*change.record, change.result.id)
            self._connection.execute(
                "UPDATE memberships SET records = ?, record_ids = ? WHERE message_key = ? AND session_key = ?",
                (
                    pack_records(join_records(unpack_records(row[1]), (reference,))),
                    pack_ids(tuple(dict.fromkeys((*unpack_ids(row[2]), *change.record_ids)))),
                    key,
                    session_key,
                ),
            )

    def _call_key(self, change: ResultChange) -> int | None:
        """The message that holds the call: the one the fold names, else the one in this session."""
        if change.message_id is not None:
            key = self._stored_ids([change.message_id]).get(change.message_id)
            if key is not None:
                return key
        row = self._connection.execute(
            "SELECT p.message_key FROM parts p JOIN memberships m ON m.message_key = p.message_key"
            " WHERE p.tool_call_id = ? AND m.session_key = ? ORDER BY m.position DESC LIMIT 1",
            (change.tool_call_id, self._sessions.key(change.session_id)),
        ).fetchone()
        return row[0] if row else None

    def _save_orphan(self, change: ResultChange) -> None:
        event = ToolResultEvent(
            position=change.position,
            created_at=change.result.completed_at,
            tool_call_id=change.tool_call_id,
            result=change.result,
        )
        record_id = change.record_ids[0] if change.record_ids else None
        session_key = self._sessions.key(change.session_id)
        if session_key is not None:
            self._orphaned.add(session_key)
        self._save_events(
            [EventChange(session_id=change.session_id, event=event, record=change.record, record_id=record_id)]
        )

    def _adopt_orphans(self, session_id: str) -> None:
        """Give results that came before their call to it, now that it may be there."""
        session_key = self._sessions.key(session_id)
        if session_key not in self._orphaned:
            return
        rows = self._connection.execute(
            "SELECT key, position, length, record_id, body FROM events WHERE kind = ? AND session_key = ?",
            (_EVENT_ORPHAN, session_key),
        ).fetchall()
        for event_key, position, length, record_id, frame in rows:
            event = decode_event(bodies.decompress(frame))
            assert isinstance(event, ToolResultEvent)
            change = ResultChange(
                session_id=session_id,
                tool_call_id=event.tool_call_id,
                result=event.result,
                position=position,
                record=(position, length or 0),
                record_ids=(record_id,) if record_id else (),
            )
            if self._call_key(change) is not None:
                self._connection.execute("DELETE FROM events WHERE key = ?", (event_key,))
                assert session_key is not None
                self._sessions.count_events(session_key, -1)
                self._save_late_result(change)

    # -- events, links, spills, diagnostics

    def _save_events(self, changes: Iterable[EventChange]) -> None:
        rows: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        for change in changes:
            session_key = self._sessions.key(change.session_id)
            if session_key is not None:
                rows[session_key].append(self._event_row(session_key, change))
        for session_key, found in rows.items():
            self._sessions.sequence(session_key)
            cursor = self._connection.executemany(_EVENT_INSERT, found)
            self._sessions.count_events(session_key, cursor.rowcount)
            if cursor.rowcount < len(found):
                self._claim_events(session_key, found)

    def _claim_events(self, session_key: int, rows: list[tuple[Any, ...]]) -> None:
        """Let events that are there already name the file that counts as the one they stand in."""
        session_id = self._sessions.id(session_key)
        for row in rows:
            position, external_id, length = row[1], row[2], row[9]
            key, source_key, generation = self._connection.execute(
                "SELECT key, source_key, generation FROM events"
                " WHERE session_key = ? AND position = ? AND external_id = ?",
                (session_key, position, external_id),
            ).fetchone()
            is_same = (source_key, generation) == (self._source.key, self._source.generation)
            if not is_same and self._outranks(source_key, generation, session_id):
                self._connection.execute(
                    "UPDATE events SET source_key = ?, generation = ?, length = ? WHERE key = ?",
                    (self._source.key, self._source.generation, length, key),
                )

    def _event_row(self, session_key: int, change: EventChange) -> tuple[Any, ...]:
        event = change.event
        known, kind, body = True, None, None
        external_id = getattr(event, "id", None)
        if isinstance(event, RecordEvent | RunMetadataEvent):
            kind = event.kind
            known = getattr(event, "known", True)
            body = None if event.data is msgspec.UNSET else encode(event)
        else:
            body = encode(event)
        if isinstance(event, ToolResultEvent):
            kind, external_id = _EVENT_ORPHAN, f"{event.tool_call_id}:{event.result.id}"
        return (
            session_key,
            event.position,
            external_id or f"{event.position}",
            event.__struct_config__.tag,
            kind,
            known,
            milliseconds(event.created_at),
            self._source.key,
            self._source.generation,
            change.record[1] if change.record else None,
            change.record_id,
            change.parent_id,
            None if body is None else bodies.compress(body),
        )

    def _save_link(self, link: Link) -> None:
        self._linked.add(link.child_session_id)
        row = self._connection.execute(
            "SELECT tool_call_id, message_id, inferred, metadata FROM links"
            " WHERE child_id = ? AND parent_id = ? AND kind = ?",
            (link.child_session_id, link.parent_session_id, link.kind),
        ).fetchone()
        call, message, inferred, metadata = row or (None, None, 1, None)
        self._connection.execute(
            "INSERT OR REPLACE INTO links"
            " (agent, parent_id, child_id, kind, tool_call_id, message_id, inferred, metadata)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self._source.agent,
                link.parent_session_id,
                link.child_session_id,
                link.kind,
                _smaller(call, link.tool_call_id),
                _smaller(message, link.message_id),
                bool(inferred and link.inferred),
                lineage.join_link_metadata(metadata, link.metadata),
            ),
        )

    def _save_spill(self, session_id: str, name: str, media_type: str, size: int) -> None:
        session_key = self._sessions.key(session_id)
        if session_key is None:
            return
        self._connection.execute(
            "INSERT OR REPLACE INTO spills (session_id, name, source_key, media_type, size) VALUES (?, ?, ?, ?, ?)",
            (session_id, name, self._source.key, media_type, size),
        )
        # The messages that preview it have changed: their whole output is known now.
        self._connection.execute(
            "UPDATE messages SET changed_seq = ? WHERE key IN (SELECT p.message_key FROM parts p"
            " JOIN memberships m ON m.message_key = p.message_key AND m.session_key = ? WHERE p.spill = ?)",
            (self._sessions.sequence(session_key), session_key, name),
        )

    def _save_diagnostics(self, diagnostics: Sequence[Diagnostic]) -> None:
        cursor = self._connection.executemany(
            "INSERT OR IGNORE INTO diagnostics"
            " (source_key, generation, offset, length, line, json_path, severity, reason)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    self._source.key,
                    self._source.generation,
                    found.offset,
                    found.length,
                    found.line,
                    found.json_path,
                    found.severity,
                    found.reason,
                )
                for found in diagnostics
            ],
        )
        self._saved.diagnostics += max(0, cursor.rowcount)

    # -- blobs

    def _save_blobs(self, found: Sequence[tuple[bodies.Blob, int]]) -> None:
        for blob, message_key in found:
            known = self._connection.execute("SELECT 1 FROM blobs WHERE sha256 = ?", (blob.sha256,)).fetchone()
            if known is None:
                self._connection.execute(
                    "INSERT INTO blobs (sha256, size, media_type, compressed, data) VALUES (?, ?, ?, ?, ?)",
                    (blob.sha256, len(blob.data), blob.media_type, *_smallest(blob.data)),
                )
            self._connection.execute(
                "INSERT OR IGNORE INTO blob_uses (sha256, message_key) VALUES (?, ?)", (blob.sha256, message_key)
            )

    def _cost(self, message: Message) -> int | None:
        if message.usage is None or message.role != "assistant":
            return None
        provider = message.provider.name if message.provider else None
        return self._price(message.usage, message.model, provider, message.created_at)

    def _left_the_branch(self) -> set[int]:
        """Sessions with branches in which a new message follows one that was not on the active branch.

        Else what was worked out before still holds, and a line more in a long session costs no more than in a short.
        """
        found: set[int] = set()
        for session_key, parents in self._parents.items():
            if session_key in self._sessions.relink:
                continue
            rows = self._connection.execute(
                f"SELECT 1 FROM memberships s JOIN messages m ON m.key = s.message_key WHERE s.session_key = ?"
                f" AND s.fate <> 'active' AND m.agent = ? AND m.external_id IN ({_marks([*parents])}) LIMIT 1",
                (session_key, self._sessions.id(session_key).partition(":")[0], *parents),
            )
            if rows.fetchone():
                found.add(session_key)
        return found

    def _settle_shared(self) -> None:
        settled = lineage.settle(self._connection, self._sessions.shared)
        for change in settled.payers:
            self._totals.move(change.message_key, change.old, change.new)
        self._linked |= settled.session_ids
        self._totals.write()
        self._sessions.write()

    def _max_message_key(self) -> int:
        row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
        return row[0] if row else 0


class _Place(NamedTuple):
    """A membership row that is already there."""

    position: int
    source_key: int | None
    generation: int
    parent_id: str | None
    parent_record: str | None
    turn: int | None
    step: int | None
    copied: int
    records: bytes | None
    record_ids: bytes | None

    def placement(self, session_id: str) -> Placement:
        return Placement(
            session_id=session_id,
            position=self.position,
            records=unpack_records(self.records),
            record_ids=unpack_ids(self.record_ids),
            parent_id=self.parent_id,
            parent_record=self.parent_record,
            turn=self.turn,
            step=self.step,
            copied=bool(self.copied),
        )


def _smaller(one: str | None, other: str | None) -> str | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _smallest(data: bytes) -> tuple[bool, bytes]:
    """Compressed when that helps (text), as it is when not (most images)."""
    packed = bodies.compress(data)
    return (True, packed) if len(packed) < len(data) * 0.9 else (False, data)


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
