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
from turnlog.model import Fate, Message, RecordEvent, RunMetadataEvent, ToolResultEvent, Usage
from turnlog.model.codec import decode_event, encode
from turnlog.model.merge import merge_messages
from turnlog.store import bodies, lineage
from turnlog.store.blobs import BlobLoader
from turnlog.store.joining import add_late_result, join_links, join_placements, join_records, told_fate
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

CUT_OFF = "cut off at the end of the file"

_EVENT_COLUMNS = (
    "type",
    "kind",
    "known",
    "created_at",
    "source_key",
    "generation",
    "length",
    "record_id",
    "parent_id",
    "body",
)
_EVENT_INSERT = (
    f"INSERT OR IGNORE INTO events (session_key, position, external_id, {', '.join(_EVENT_COLUMNS)})"
    f" VALUES ({', '.join('?' * (3 + len(_EVENT_COLUMNS)))})"
)
_EVENT_UPDATE = (
    f"UPDATE events SET {', '.join(f'{name} = ?' for name in _EVENT_COLUMNS)}"
    " WHERE session_key = ? AND position = ? AND external_id = ?"
)
_MOVED_EVENTS = (
    "SELECT key FROM events AS old WHERE session_key = ? AND source_key = ? AND generation < ? AND EXISTS"
    " (SELECT 1 FROM events AS new WHERE new.session_key = old.session_key AND new.source_key = old.source_key"
    " AND new.generation = ? AND new.kind IS old.kind AND new.type = old.type AND new.record_id IS old.record_id"
    " AND new.length IS old.length AND new.created_at IS old.created_at)"
)
"""Events of earlier lives of a file that stand elsewhere in its newest."""


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
        self._chains: dict[int, list[tuple[int, str, str | None]]] = defaultdict(list)
        self._named: dict[int, dict[str | None, int | None]] = defaultdict(dict)
        self._relinked: set[str] = set()
        self._rewritten: list[SourceRow] = []
        self._told_anew: dict[int, set[int]] = defaultdict(set)
        self._paths: dict[int, tuple[str | None, str]] = {}
        self._orphaned = {
            row[0]
            for row in connection.execute("SELECT DISTINCT session_key FROM events WHERE kind = ?", (_EVENT_ORPHAN,))
        }
        self._next_key = self._max_message_key() + 1

    def start_over(self, source: SourceRow, *, is_log: bool) -> None:
        """A file will be folded from its start. When it was written anew, what only its old bytes said gives way."""
        if source.generation == 0:
            return
        self._rewritten.append(source)
        self._connection.execute(
            "DELETE FROM diagnostics WHERE source_key = ? AND generation < ?", (source.key, source.generation)
        )
        if is_log and source.session_id is not None:
            self._sessions.start_over(source.session_id)

    def note_tail(self, source: SourceRow, offset: int, length: int, line: int) -> None:
        """The file ends within a line: no record yet, perhaps never. `forget_tail` before it is read again."""
        self._source = source
        self._save_diagnostics([Diagnostic(offset=offset, length=length, line=line, reason=CUT_OFF)])

    def forget_tail(self, source: SourceRow, offset: int) -> None:
        """What stands from `offset` on is about to be read again."""
        self._connection.execute(
            "DELETE FROM diagnostics WHERE source_key = ? AND generation = ? AND offset >= ?",
            (source.key, source.generation, offset),
        )

    def save(self, source: SourceRow, changes: Changes) -> None:
        """Write what one feed of a source brought."""
        self._source = source
        self._paths[source.key] = (source.session_id, source.path)
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
        for source in self._rewritten:
            self._drop_moved_events(source)
        self._totals.write()
        self._sessions.write()
        for key in sorted(self._sessions.relink | self._left_the_branch()):
            lineage.relink(self._connection, key)
        shared = self._sessions.shared | lineage.sharing(self._connection, self._linked)
        if shared:
            self._settle_shared(shared)
        lineage.attach_parents(self._connection, self._sessions.created | self._linked, self._relinked)
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
            self._lengthen(session_key, change)
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
        facts = message_facts(message, key)
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
        self._note_place(session_key, placement)
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

    def _note_place(self, session_key: int, placement: Placement) -> None:
        self._sessions.note_turn(session_key, placement.turn)
        self._note_records(session_key, placement.record_ids, placement.position)
        if placement.parent_id is None and placement.parent_record is not None:
            self._sessions.relink.add(session_key)

    def _lengthen(self, session_key: int, change: MessageChange) -> None:
        """A message is new in a session: in one with branches, see at the end whether it just follows the last."""
        place = change.placement
        if self._sessions.has_branches(session_key) and place.fate is not Fate.SIDECAR:
            self._chains[session_key].append((place.position, change.message.id, place.parent_id))

    def _note_records(self, session_key: int, record_ids: Iterable[str], position: int | None) -> None:
        """These records are of the message at this place, or of none: one of them may end the active branch."""
        if self._sessions.has_branches(session_key):
            self._named[session_key].update(dict.fromkeys(record_ids, position))

    def _save_reading(self, key: int, change: MessageChange) -> None:
        """Join one more reading into a message that is there, and see to its place in this session."""
        self._update_message(key, change.placement.session_id, lambda known: merge_messages(known, change.message))
        session_key = self._sessions.key(change.placement.session_id)
        assert session_key is not None
        row = self._connection.execute(
            "SELECT position, source_key, generation, parent_id, parent_record, turn, step, fate, copied, records,"
            " record_ids FROM memberships WHERE message_key = ? AND session_key = ?",
            (key, session_key),
        ).fetchone()
        if row is None:
            self._share(session_key, key, change.placement)
            self._lengthen(session_key, change)
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
        before, facts = message_facts(old, key), message_facts(new, key)
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
        self._replace_blobs(key, found)

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

        Offsets of two files do not mix: the place in the file that counts for the session, as it is now, is taken.
        """
        stored = known.placement(placement.session_id)
        here, there = (self._source.key, self._source.generation), (known.source_key, known.generation)
        if here == there:
            joined, origin = join_placements(stored, placement), here
        elif self._outranks(known.source_key, known.generation, placement.session_id):
            joined, origin = placement, here
        else:
            joined, origin = stored, there
        self._note_place(session_key, joined)
        words = dict.fromkeys((*joined.record_ids, *stored.record_ids, *placement.record_ids))
        self._note_records(session_key, words, joined.position)
        self._connection.execute(
            "UPDATE memberships SET position = ?, source_key = ?, generation = ?, parent_id = ?, parent_record = ?,"
            " turn = ?, step = ?, fate = ?, copied = ?, records = ?, record_ids = ?"
            " WHERE message_key = ? AND session_key = ?",
            (
                joined.position,
                *origin,
                joined.parent_id,
                joined.parent_record,
                joined.turn,
                joined.step,
                known.fate if joined.fate is stored.fate else joined.fate,
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
        if source_key is None:
            return True
        if source_key not in self._paths:
            self._paths[source_key] = self._connection.execute(
                "SELECT session_id, path FROM sources WHERE key = ?", (source_key,)
            ).fetchone() or (None, "")
        owner, path = self._paths[source_key]
        return (self._source.session_id != session_id, self._source.path) < (owner != session_id, path)

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
            "SELECT position, source_key, records, record_ids FROM memberships"
            " WHERE message_key = ? AND session_key = ?",
            (key, session_key),
        ).fetchone()
        if row is None:
            return
        position, source_key, records, record_ids = row
        self._note_records(session_key, change.record_ids, position)
        if source_key == self._source.key:
            reference: RecordRef = (*change.record, change.result.id)
            records = pack_records(join_records(unpack_records(records), (reference,)))
        record_ids = pack_ids(tuple(dict.fromkeys((*unpack_ids(record_ids), *change.record_ids))))
        self._connection.execute(
            "UPDATE memberships SET records = ?, record_ids = ? WHERE message_key = ? AND session_key = ?",
            (records, record_ids, key, session_key),
        )

    def _call_key(self, change: ResultChange) -> int | None:
        """The message that holds the call: the one the fold names, else the nearest before the result, else behind."""
        row = self._connection.execute(
            "SELECT m.key FROM messages m JOIN parts p ON p.message_key = m.key"
            " WHERE m.agent = ? AND m.external_id = ? AND p.tool_call_id = ?",
            (self._source.agent, change.message_id, change.tool_call_id),
        ).fetchone()
        if row is None:
            row = self._connection.execute(
                "SELECT p.message_key FROM memberships m JOIN parts p ON p.message_key = m.message_key"
                " WHERE m.session_key = ? AND p.tool_call_id = ? ORDER BY m.position > ?, abs(m.position - ?) LIMIT 1",
                (self._sessions.key(change.session_id), change.tool_call_id, change.position, change.position),
            ).fetchone()
        return row[0] if row else None

    def _save_orphan(self, change: ResultChange) -> None:
        event = ToolResultEvent(
            position=change.position,
            created_at=change.result.completed_at,
            tool_call_id=change.tool_call_id,
            result=change.result,
            approval=change.approval,
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
                approval=event.approval,
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
                self._note_records(session_key, (change.record_id,) if change.record_id else (), None)
        for session_key, found in rows.items():
            self._sessions.sequence(session_key)
            if self._source.generation:
                self._told_anew[self._source.key].add(session_key)
            cursor = self._connection.executemany(_EVENT_INSERT, found)
            self._sessions.count_events(session_key, cursor.rowcount)
            if cursor.rowcount < len(found):
                self._tell_again(session_key, found)

    def _tell_again(self, session_key: int, rows: Iterable[tuple[Any, ...]]) -> None:
        """Events that were there already: a later record of their file has more to say, or a file that counts more."""
        session_id = self._sessions.id(session_key)
        here = (self._source.key, self._source.generation)
        for _, position, external_id, *told in rows:
            place = (session_key, position, external_id)
            source_key, generation = self._connection.execute(
                "SELECT source_key, generation FROM events WHERE session_key = ? AND position = ? AND external_id = ?",
                place,
            ).fetchone()
            if (source_key, generation) == here or self._outranks(source_key, generation, session_id):
                self._connection.execute(_EVENT_UPDATE, (*told, *place))

    def _drop_moved_events(self, source: SourceRow) -> None:
        """Events of a rewritten file stand where its newest life has them, and only there."""
        for session_key in self._told_anew[source.key]:
            place = (session_key, source.key, source.generation, source.generation)
            moved = self._connection.execute(_MOVED_EVENTS, place).fetchall()
            self._connection.executemany("DELETE FROM events WHERE key = ?", moved)
            self._sessions.count_events(session_key, -len(moved))

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
        lineage.drop_inferred(self._connection, link.child_session_id)
        row = self._connection.execute(
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
            link = join_links(known, link)
        self._connection.execute(
            "INSERT OR REPLACE INTO links"
            " (agent, parent_id, child_id, kind, tool_call_id, message_id, inferred, metadata)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self._source.agent,
                link.parent_session_id,
                link.child_session_id,
                link.kind,
                link.tool_call_id,
                link.message_id,
                link.inferred,
                msgspec.json.encode(link.metadata, order="sorted").decode() if link.metadata else None,
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

    def _replace_blobs(self, message_key: int, found: Sequence[bodies.Blob]) -> None:
        """The message's large contents are these now; one that nobody uses any more goes."""
        uses = self._connection.execute("SELECT sha256 FROM blob_uses WHERE message_key = ?", (message_key,))
        gone = {row[0] for row in uses} - {blob.sha256 for blob in found}
        self._connection.executemany(
            "DELETE FROM blob_uses WHERE message_key = ? AND sha256 = ?", [(message_key, sha256) for sha256 in gone]
        )
        self._connection.executemany(
            "DELETE FROM blobs WHERE sha256 = ?1 AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE sha256 = ?1)",
            [(sha256,) for sha256 in gone],
        )
        self._save_blobs([(blob, message_key) for blob in found])

    def _cost(self, message: Message) -> int | None:
        if message.usage is None or message.role != "assistant":
            return None
        provider = message.provider.name if message.provider else None
        return self._price(message.usage, message.model, provider, message.created_at)

    def _left_the_branch(self) -> set[int]:
        """Sessions with branches that went on in any other way than from each message to the next behind it.

        Else what was worked out before still holds, and a line more in a long session costs no more than in a short.
        """
        touched = {*self._chains, *self._named} - self._sessions.relink
        return {key for key in touched if not self._goes_straight_on(key) or self._ends_elsewhere(key)}

    def _goes_straight_on(self, session_key: int) -> bool:
        """Whether the new messages hang under each other, and the first of them under the newest active one."""
        chain = sorted(self._chains[session_key])
        if not chain:
            return True
        before = self._connection.execute(
            "SELECT m.external_id, s.fate FROM memberships s JOIN messages m ON m.key = s.message_key"
            " WHERE s.session_key = ? AND s.position < ? AND s.fate <> 'sidecar' ORDER BY s.position DESC LIMIT 1",
            (session_key, chain[0][0]),
        ).fetchone()
        newest, fate = before or (None, "active")
        parents = [parent for _, _, parent in chain]
        return fate == "active" and parents == [newest, *(message_id for _, message_id, _ in chain[:-1])]

    def _ends_elsewhere(self, session_key: int) -> bool:
        """Whether the record at the end of the active branch came with anything but its newest message."""
        named = self._named[session_key]
        leaf = self._sessions.active_leaf(session_key)
        if leaf not in named:
            return False
        newest = self._connection.execute(
            "SELECT position, fate FROM memberships WHERE session_key = ? AND fate <> 'sidecar'"
            " ORDER BY position DESC LIMIT 1",
            (session_key,),
        ).fetchone()
        return newest != (named[leaf], "active")

    def _settle_shared(self, session_keys: set[int]) -> None:
        settled = lineage.settle(self._connection, session_keys)
        for change in settled.payers:
            self._totals.move(change.message_key, change.old, change.new)
        self._relinked = settled.session_ids
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
    fate: str
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
            fate=told_fate(Fate(self.fate)),
            copied=bool(self.copied),
        )


def _smallest(data: bytes) -> tuple[bool, bytes]:
    """Compressed when that helps (text), as it is when not (most images)."""
    packed = bodies.compress(data)
    return (True, packed) if len(packed) < len(data) * 0.9 else (False, data)


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
