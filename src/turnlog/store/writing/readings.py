"""Readings of messages that are stored: joined into what is there, with their place in each session that holds them.

What a message added to totals before is taken out before what it adds now goes in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from turnlog.agents.base import HOOKED_FROM
from turnlog.agents.changes import MessageChange, Placement, RecordRef, ResultChange
from turnlog.model import Fate, Message
from turnlog.model.merge import merge_messages
from turnlog.store import bodies
from turnlog.store.archive import Archive
from turnlog.store.archived_texts import WholeBodies, leave_out, note_uses
from turnlog.store.blobs import BlobLoader, replace_blobs
from turnlog.store.ended import GIVEN_UP, CallEnd, give_up_open_calls
from turnlog.store.frames import BODY_COLUMNS, PLACE_COLUMNS, BodyReader, save_alone
from turnlog.store.joining import add_late_result, join_placements, join_records, told_fate
from turnlog.store.places import PARENT_ID, pack_ids, pack_parent, pack_records, unpack_ids, unpack_records
from turnlog.store.rows import MESSAGE_COLUMNS, MessageFacts, message_facts
from turnlog.store.writing.branches import Branches
from turnlog.store.writing.new_messages import MEMBER_INSERT, drop_parts, insert_parts, member_row
from turnlog.store.writing.transaction import Transaction

_MESSAGE_UPDATE = (
    f"UPDATE messages SET {', '.join(f'{name} = ?' for name in (*MESSAGE_COLUMNS[3:], *PLACE_COLUMNS))} WHERE key = ?"
)


class Readings:
    """Joins what one transaction has to say of stored messages. New ones must have landed before."""

    def __init__(self, transaction: Transaction, branches: Branches, archive: Archive | None) -> None:
        self._transaction = transaction
        self._connection = transaction.connection
        self._sessions = transaction.sessions
        self._branches = branches
        self._read = BodyReader(self._connection)
        self._texts = WholeBodies(self._connection, archive)

    def join(self, key: int, session_key: int, change: MessageChange) -> None:
        """Join one more reading into a message that is there, and see to its place in this session."""
        self._update_message(
            key,
            change.placement.session_id,
            lambda known: merge_messages(known, change.message),
            lambda: self._transaction.archived_places(change),
        )
        row = self._connection.execute(
            f"SELECT position, source_key, generation, {PARENT_ID}, parent_record, turn, step, fate, copied, records,"
            " record_ids FROM memberships s WHERE message_key = ? AND session_key = ?",
            (key, session_key),
        ).fetchone()
        if row is None:
            self._share(session_key, key, change)
            self._branches.lengthen(session_key, change.message.id, change.placement)
        else:
            self._join_membership(session_key, key, _Place(change.message.id, *row), change.placement)

    def add_result(self, change: ResultChange, result_source: int | None) -> bool:
        """Give a result, which this source told of, to its call; False when that is not there."""
        session_key = self._sessions.key(change.session_id)
        key = self.call_key(change)
        if session_key is None or key is None:
            return False
        self._update_message(key, change.session_id, lambda known: add_late_result(known, change))
        row = self._connection.execute(
            "SELECT m.external_id, s.position, s.source_key, s.records, s.record_ids"
            " FROM memberships s JOIN messages m ON m.key = s.message_key WHERE m.key = ? AND s.session_key = ?",
            (key, session_key),
        ).fetchone()
        if row is None:
            return True
        message_id, position, source_key, known, packed = row
        records = known
        self._branches.note_records(session_key, change.record_ids, position)
        if source_key == result_source:
            reference: RecordRef = (*change.record, change.result.id)
            records = pack_records(join_records(unpack_records(records), (reference,)))
        words = dict.fromkeys((*unpack_ids(packed, message_id), *change.record_ids))
        record_ids = pack_ids(tuple(words), message_id)
        self._connection.execute(
            "UPDATE memberships SET records = ?, record_ids = ?, changed_seq = max(changed_seq, ?)"
            " WHERE message_key = ? AND session_key = ?",
            (records, record_ids, 0 if records == known else self._sessions.sequence(session_key), key, session_key),
        )
        return True

    def give_up(self, session_id: str, key: int, end: CallEnd = GIVEN_UP) -> None:
        """Nobody answers the calls of this message any more that began before this end."""
        self._update_message(key, session_id, lambda known: give_up_open_calls(known, end))

    def call_key(self, change: ResultChange) -> int | None:
        """The message that holds the call: the one the fold names, else the nearest before the result, else behind."""
        row = self._connection.execute(
            "SELECT m.key FROM messages m JOIN parts p ON p.message_key = m.key"
            " WHERE m.agent = ? AND m.external_id = ? AND p.tool_call_id = ?",
            (self._transaction.source.agent, change.message_id, change.tool_call_id),
        ).fetchone()
        if row is None:
            row = self._connection.execute(
                "SELECT p.message_key FROM memberships m JOIN parts p ON p.message_key = m.message_key"
                " WHERE m.session_key = ?1 AND p.tool_call_id = ?2 AND m.position < ?4"
                " ORDER BY m.position > ?3, abs(m.position - ?3) LIMIT 1",
                (self._sessions.key(change.session_id), change.tool_call_id, change.position, HOOKED_FROM),
            ).fetchone()
        return row[0] if row else None

    def _update_message(
        self,
        key: int,
        session_id: str,
        change: Callable[[Message], Message],
        places: Callable[[], dict[bytes, bytes]] = dict,
    ) -> None:
        """Store what `change` makes of a stored message, if that is anything new; `places` are those of new texts."""
        revision, cost, pays_key, *place = self._connection.execute(
            f"SELECT m.revision, m.cost, m.pays_key, {BODY_COLUMNS} FROM messages m WHERE m.key = ?", (key,)
        ).fetchone()
        stored = self._read(*place)
        old_body = self._texts.whole(stored)
        old = bodies.resolve(bodies.decode(old_body), BlobLoader(self._connection))
        new = change(old)
        found: list[bodies.Blob] = []
        external = bodies.externalize(new, found)
        body = bodies.pack(external)
        if body == old_body:
            return
        session_key = self._sessions.key(session_id)
        assert session_key is not None
        new_cost = self._transaction.cost(new)
        before, facts = message_facts(old, key), message_facts(new, key)
        for (member,) in self._connection.execute(
            "SELECT session_key FROM memberships WHERE message_key = ?", (key,)
        ).fetchall():
            self._sessions.counts.add(member, before.counts, -1)
            self._sessions.counts.add(member, facts.counts, 1)
            self._sessions.sequence(member)
        if pays_key is not None:
            self._transaction.totals.pay(pays_key, old, cost, -1)
            self._transaction.totals.pay(pays_key, new, new_cost, 1)
        columns = self._transaction.message_columns(
            new, facts, new_cost, revision + 1, self._sessions.sequence(session_key)
        )
        known = {**places(), **self._texts.places(stored)}
        body = leave_out(body, known)
        note_uses(self._connection, key, body)
        alone = save_alone(self._connection, key, body, place[0])
        self._connection.execute(_MESSAGE_UPDATE, (*columns, pays_key, *alone, key))
        drop_parts(self._connection, key)
        if pays_key is not None:
            insert_parts(self._connection, facts)
        replace_blobs(self._connection, key, found)

    def _share(self, session_key: int, key: int, change: MessageChange) -> None:
        """Another session holds this message too."""
        placement = change.placement
        row = member_row(session_key, key, change.message.id, self._transaction.source, placement)
        self._connection.execute(MEMBER_INSERT, row)
        self._connection.execute(
            "UPDATE memberships SET changed_seq = ? WHERE message_key = ? AND session_key = ?",
            (self._sessions.sequence(session_key), key, session_key),
        )
        self._branches.note_place(session_key, placement)
        facts = message_facts(bodies.decode(self._read.of(key)), key)
        self._sessions.counts.add(session_key, facts.counts, 1)
        # What this session spilled may now be the whole of an output that the message previews.
        self._connection.execute(
            "UPDATE messages SET changed_seq = ?1 WHERE key = ?2 AND EXISTS"
            " (SELECT 1 FROM parts WHERE message_key = ?2 AND spill IS NOT NULL)",
            (self._sessions.sequence(session_key), key),
        )
        members = [
            row[0]
            for row in self._connection.execute("SELECT session_key FROM memberships WHERE message_key = ?", (key,))
        ]
        if len(members) > 1:
            self._sessions.share(members)
        else:
            self._count_again(session_key, key, facts)

    def _count_again(self, session_key: int, key: int, facts: MessageFacts) -> None:
        """A message that no session held any more, since a log had taken its place, is held again."""
        self._transaction.totals.move(key, None, session_key)
        insert_parts(self._connection, facts)
        self._connection.execute(
            "UPDATE messages SET changed_seq = ? WHERE key = ?", (self._sessions.sequence(session_key), key)
        )

    def _join_membership(self, session_key: int, key: int, known: _Place, placement: Placement) -> None:
        """The same message again in the same session: from another feed, another file, or the file written anew.

        Offsets of two files do not mix: the place in the file that counts for the session, as it is now, is taken.
        """
        stored = known.placement(placement.session_id)
        here, there = (
            (self._transaction.source.key, self._transaction.source.generation),
            (known.source_key, known.generation),
        )
        if here == there:
            joined, origin = join_placements(stored, placement), here
        elif self._transaction.outranks(known.source_key, known.generation, placement.session_id):
            joined, origin = placement, here
        else:
            joined, origin = stored, there
        fate = known.fate if joined.fate is stored.fate else joined.fate
        shown = (joined.position, joined.turn, joined.step, str(fate))
        records = pack_records(joined.records)
        has_moved = (*shown, records) != (known.position, known.turn, known.step, known.fate, known.records)
        self._branches.note_place(session_key, joined)
        words = dict.fromkeys((*joined.record_ids, *stored.record_ids, *placement.record_ids))
        self._branches.note_records(session_key, words, joined.position)
        self._connection.execute(
            "UPDATE memberships SET position = ?, source_key = ?, generation = ?, parent_id = ?, parent_record = ?,"
            " turn = ?, step = ?, fate = ?, copied = ?, records = ?, record_ids = ?, changed_seq = max(changed_seq, ?)"
            " WHERE message_key = ? AND session_key = ?",
            (
                joined.position,
                *origin,
                pack_parent(joined.parent_id, None),
                joined.parent_record,
                joined.turn,
                joined.step,
                fate,
                joined.copied,
                records,
                pack_ids(tuple(words), known.message_id),
                self._sessions.sequence(session_key) if has_moved else 0,
                key,
                session_key,
            ),
        )


class _Place(NamedTuple):
    """A membership row that is already there, of the message with this id."""

    message_id: str
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
            record_ids=unpack_ids(self.record_ids, self.message_id),
            parent_id=self.parent_id,
            parent_record=self.parent_record,
            turn=self.turn,
            step=self.step,
            fate=told_fate(Fate(self.fate)),
            copied=bool(self.copied),
        )
