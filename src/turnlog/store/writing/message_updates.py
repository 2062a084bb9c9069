"""Changes of stored messages: a source's reading of a message is merged with the stored one.

An update first subtracts what the message had added to counts and usage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from turnlog.agents.base import HOOKED_FROM
from turnlog.agents.changes import MessageChange, Placement, RecordRef, ResultChange, with_model
from turnlog.model import Fate, Message
from turnlog.model.codec import decode_event, encode
from turnlog.model.merge import OriginalBlocks, are_numbered_apart, merge_messages, with_numbers
from turnlog.store import bodies, zstd
from turnlog.store.archive import Archive
from turnlog.store.external_content import (
    BlobLoader,
    WholeBodies,
    leave_out,
    note_uses,
    replace_blobs,
)
from turnlog.store.frames import BODY_COLUMNS, PLACE_COLUMNS, BodyReader, save_alone
from turnlog.store.keys import session_id_of
from turnlog.store.packed_columns import PARENT_ID, pack_ids, pack_parent, pack_records, unpack_ids, unpack_records
from turnlog.store.reconcile.calls import ABANDONED, CallEnd, abort_open_calls
from turnlog.store.reconcile.fates import BranchTracker
from turnlog.store.reconcile.merge import (
    add_late_results,
    cause_of_records,
    fate_of_records,
    merge_placements,
    merge_records,
    with_later_turn,
)
from turnlog.store.reconcile.responses import event_with_names, named
from turnlog.store.reconcile.rewritten import as_it_is_now, compare, set_aside
from turnlog.store.rows import (
    MESSAGE_COLUMNS,
    MessageFacts,
    message_buckets,
    message_columns,
    message_facts,
)
from turnlog.store.writing.messages import MEMBER_INSERT, PackedPlace, drop_parts, insert_parts, member_row
from turnlog.store.writing.prepared import Reading, call_cost
from turnlog.store.writing.transaction import SourceRow, Transaction

_MESSAGE_UPDATE = (
    f"UPDATE messages SET {', '.join(f'{name} = ?' for name in (*MESSAGE_COLUMNS[3:], *PLACE_COLUMNS))} WHERE key = ?"
)
_SUPERSEDED_IN = "SELECT session_key FROM superseded WHERE message_key = ?"
_NAMED_IN_SESSION = tuple(
    f"UPDATE {table} SET {column} = ?1 WHERE session_key = ?2 AND {column} = ?3"
    for table, columns in (
        ("memberships", ("parent_id", "fate_cause")),
        ("superseded", ("parent_id", "fate_cause")),
        ("events", ("parent_id",)),
    )
    for column in columns
)
_EVENTS_WITH_NAMES = (
    "SELECT key, body FROM events WHERE session_key = ? AND body IS NOT NULL"
    " AND type IN ('compaction', 'interrupt', 'rewind')"
)


class MessageUpdates:
    """Merges changes of stored messages within one transaction. Call `MessageInserts.finish_write` before."""

    def __init__(self, transaction: Transaction, branches: BranchTracker, archive: Archive | None) -> None:
        self._transaction = transaction
        self._connection = transaction.connection
        self._sessions = transaction.sessions
        self._branches = branches
        self._read = BodyReader(self._connection)
        self._texts = WholeBodies(self._connection, archive)
        self.rewritten: dict[int, Rewritten] = {}
        """By key, the messages that a file has with other contents than before, until `settle_rewritten`."""
        self.numbered_apart: set[int] = set()
        """Keys of messages of which two readings number their blocks differently."""

    def merge(self, key: int, session_key: int, reading: Reading) -> None:
        """Merge another reading into a stored message and into its place in this session."""
        change = reading.change()
        row = self._connection.execute(
            f"SELECT position, source_key, generation, {PARENT_ID}, parent_record, turn, step, fate, fate_cause,"
            " copied, records, record_ids FROM memberships s WHERE message_key = ? AND session_key = ?",
            (key, session_key),
        ).fetchone()
        place = None if row is None else _Place(change.message.id, *row)

        def join(known: Message) -> Message:
            self._note_rewritten(key, place, known, change)
            merged = merge_messages(known, change.message)
            # A file that was written anew is no copy of itself: its calls are where it has them now.
            if key not in self.rewritten and are_numbered_apart(known, change.message, merged):
                self.numbered_apart.add(key)
            return merged

        self._update_message(key, change.placement.session_id, join, reading.places)
        if place is None:
            self._insert_place(session_key, key, change)
            self._branches.note_new(session_key, change.message.id, change.placement)
        else:
            self._merge_place(session_key, key, place, change.placement)

    def _note_rewritten(self, key: int, place: _Place | None, known: Message, change: MessageChange) -> None:
        """Note what the newest generation of a file says of a message that an older one says otherwise."""
        source = self._transaction.source
        begun = self.rewritten.get(key)
        if begun is not None and begun.source.key == source.key:
            begun.reading = merge_messages(begun.reading, change.message)
        # Where records have versions, as rows of some databases, the later one holds as a whole.
        if begun or place is None or change.message.updated_at is not None:
            return
        if place.source_key != source.key or place.generation == source.generation:
            return
        # What another file says too is no leftover: the message is what both say.
        if not compare(known, change.message).is_same and not self._is_elsewhere(key, source.key):
            placement = place.placement(change.placement.session_id)
            self.rewritten[key] = Rewritten(source, place.generation, placement, known, change.message)

    def _is_elsewhere(self, key: int, source_key: int) -> bool:
        """Whether a message has a place that another file gave it."""
        return any(
            self._connection.execute(
                f"SELECT 1 FROM {table} WHERE message_key = ? AND source_key IS NOT ? LIMIT 1", (key, source_key)
            ).fetchone()
            for table in ("memberships", "superseded")
        )

    def settle_rewritten(self) -> list[tuple[Rewritten, Message]]:
        """Make messages what the newest generation of their file says; return those that said something else before.

        Each with the message that it was, as one of its own. Call it when all of the file was read.
        """
        left: list[tuple[Rewritten, Message]] = []
        for key, found in self.rewritten.items():
            rewrite = compare(found.before, found.reading)
            if not rewrite.is_new:
                continue
            self._transaction.use_source(found.source)
            replaced = {what for _, _, what in found.placement.records}
            change = partial(as_it_is_now, reading=found.reading, moved=rewrite.moved, replaced=replaced)
            self._update_message(key, found.placement.session_id, change)
            if rewrite.is_edited:
                left.append((found, set_aside(found.before, found.generation)))
        self.rewritten.clear()
        return left

    def add_results(self, changes: Sequence[ResultChange], origin: tuple[int, int]) -> list[bool]:
        """Add late results from this source and generation to their calls; of each whether its call is stored.

        A message is written once, however many results it has here: it may be thousands.
        """
        keys = [self.call_key(change) for change in changes]
        added: dict[tuple[str, int], list[ResultChange]] = {}
        for key, change in zip(keys, changes, strict=True):
            if key is not None:
                added.setdefault((change.session_id, key), []).append(change)
        for (session_id, key), found in added.items():
            self._add_to_message(key, session_id, found, origin)
        return [key is not None for key in keys]

    def _add_to_message(
        self, key: int, session_id: str, changes: Sequence[ResultChange], origin: tuple[int, int]
    ) -> None:
        self._update_message(key, session_id, lambda known: add_late_results(known, changes))
        begun = self.rewritten.get(key)
        if begun is not None and begun.source.key == origin[0]:
            begun.reading = add_late_results(begun.reading, changes)
        session_key = self._sessions.key(session_id)
        assert session_key is not None
        # Claude Code writes the results of a resumed session's calls into the new file. The session with the result may
        # not contain the call's message, so there is no place for the record.
        row = self._connection.execute(
            "SELECT m.external_id, s.position, s.source_key, s.generation, s.records, s.record_ids"
            " FROM memberships s JOIN messages m ON m.key = s.message_key WHERE m.key = ? AND s.session_key = ?",
            (key, session_key),
        ).fetchone()
        if row is None:
            return
        message_id, position, *place, known, packed = row
        records = known
        new_ids = [each for change in changes for each in change.record_ids]
        self._branches.note_records(session_key, new_ids, position)
        # Offsets in two files do not mix, nor those in a file that was written anew: only what provides the place adds
        # its records.
        if tuple(place) == origin:
            references: list[RecordRef] = [(*change.record, change.result.id) for change in changes]
            records = pack_records(merge_records(unpack_records(records), references))
        ids = dict.fromkeys((*unpack_ids(packed, message_id), *new_ids))
        record_ids = pack_ids(tuple(ids), message_id)
        self._connection.execute(
            "UPDATE memberships SET records = ?, record_ids = ?, changed_seq = max(changed_seq, ?)"
            " WHERE message_key = ? AND session_key = ?",
            (records, record_ids, 0 if records == known else self._sessions.sequence(session_key), key, session_key),
        )

    def abort_open_calls(self, session_id: str, key: int, end: CallEnd = ABANDONED) -> None:
        """Abort the open calls of a message that began before this end, because they will get no result."""
        self._update_message(key, session_id, lambda known: abort_open_calls(known, end))

    def name_model(self, session_id: str, key: int, model: str) -> None:
        """Give a message this model, of which its own records say nothing."""
        agent = session_id.partition(":")[0]
        self._update_message(key, session_id, lambda known: with_model(known, agent, model))

    def load(self, key: int) -> Message:
        """The stored message with this key."""
        return bodies.resolve(bodies.decode(self._whole(key)), BlobLoader(self._connection))

    def _whole(self, key: int) -> bytes:
        return self._texts.whole(self._read.of(key))

    def rename(self, key: int, name: str) -> list[str]:
        """Give a stored message this id wherever it is named; return the ids of the sessions that have it."""
        connection = self._connection
        (old,) = connection.execute("SELECT external_id FROM messages WHERE key = ?", (key,)).fetchone()
        places = connection.execute(
            "SELECT session_key, position, record_ids FROM memberships WHERE message_key = ?", (key,)
        ).fetchall()
        holders = [holder for holder, *_ in places]
        holders += [row[0] for row in connection.execute(_SUPERSEDED_IN, (key,)).fetchall() if row[0] not in holders]
        sessions = {holder: self.session_id(holder) for holder in holders}
        self._update_message(key, next(iter(sessions.values())), lambda known: named(known, name))
        connection.execute("UPDATE messages SET external_id = ? WHERE key = ?", (name, key))
        for holder, position, packed in places:
            connection.execute(
                "UPDATE memberships SET record_ids = ? WHERE message_key = ? AND session_key = ?",
                (pack_ids(unpack_ids(packed, old), name), key, holder),
            )
            self._sessions.note_gone(holder, [(position, old)])
        for holder, session_id in sessions.items():
            for statement in _NAMED_IN_SESSION:
                connection.execute(statement, (name, holder, old))
            for column in ("message_id", "found_message_id"):
                connection.execute(
                    f"UPDATE links SET {column} = ?1 WHERE parent_id = ?2 AND {column} = ?3", (name, session_id, old)
                )
            self._rename_in_events(holder, session_id, old, name)
        return [*sessions.values()]

    def session_id(self, key: int) -> str:
        """The id of the session with this key."""
        # A session that this transaction created has no row yet.
        return self._sessions.draft(key).session_id or session_id_of(self._connection, key)

    def _rename_in_events(self, session_key: int, session_id: str, old: str, name: str) -> None:
        rows = self._connection.execute(_EVENTS_WITH_NAMES, (session_key,)).fetchall()
        for key, body in rows:
            event = decode_event(zstd.decompress(body))
            renamed = event_with_names(session_id, event, {(session_id, old): name})
            if renamed != event:
                self._connection.execute(
                    "UPDATE events SET body = ? WHERE key = ?", (zstd.compress(encode(renamed)), key)
                )

    def call_ids(self, key: int) -> list[str]:
        """The ids of the calls in a message."""
        rows = self._connection.execute(
            "SELECT tool_call_id FROM parts WHERE message_key = ? AND tool_call_id IS NOT NULL", (key,)
        )
        return [row[0] for row in rows]

    def renumber(self, session_id: str, key: int, original: OriginalBlocks) -> None:
        """Order a message as its original does, which this session has, and leave out what copies repeat."""
        self._update_message(key, session_id, lambda known: with_numbers(known, original))

    def call_key(self, change: ResultChange) -> int | None:
        """The key of the message with the call of a late result; None if it is not stored, or its session forgotten.

        It is the message that the fold names, otherwise the nearest one before the result in the session, otherwise the
        nearest after it. Some agents use a call's id more than once in a session.
        """
        session_key, source = self._sessions.key(change.session_id), self._transaction.source
        if session_key is None:
            return None
        row = self._connection.execute(
            "SELECT m.key FROM messages m JOIN parts p ON p.message_key = m.key"
            " WHERE m.agent = ? AND m.external_id = ? AND p.tool_call_id = ?",
            (source.agent, change.message_id, change.tool_call_id),
        ).fetchone()
        if row is None:
            row = self._connection.execute(
                "SELECT p.message_key FROM memberships m JOIN parts p ON p.message_key = m.message_key"
                " WHERE m.session_key = ?1 AND p.tool_call_id = ?2 AND m.position < ?4"
                # What an older generation of the file said is superseded once the newest one is read.
                " ORDER BY m.fate = 'superseded' OR (m.source_key IS ?5 AND m.generation < ?6), m.position > ?3,"
                " abs(m.position - ?3) LIMIT 1",
                (session_key, change.tool_call_id, change.position, HOOKED_FROM, source.key, source.generation),
            ).fetchone()
        return row[0] if row else None

    def _update_message(
        self,
        key: int,
        session_id: str,
        change: Callable[[Message], Message],
        places: Callable[[], dict[bytes, bytes]] = dict,
    ) -> None:
        """Store what `change` returns for a stored message, if that is new. `places` are those of its new texts."""
        revision, cost, billed_key, *place = self._connection.execute(
            f"SELECT m.revision, m.cost, m.billed_key, {BODY_COLUMNS} FROM messages m WHERE m.key = ?", (key,)
        ).fetchone()
        stored = self._read(*place)
        old_body = self._texts.whole(stored)
        old = bodies.resolve(bodies.decode(old_body), BlobLoader(self._connection))
        new = change(old)
        found: list[bodies.ExternalContent] = []
        external = bodies.externalize(new, found)
        body = bodies.pack(external)
        # Most readings add nothing: each line of an answer in Claude Code's log repeats its usage, and a rewritten file
        # is folded from its beginning. Such a reading changes neither the body nor the change sequence.
        if body == old_body:
            return
        session_key = self._sessions.key(session_id)
        assert session_key is not None
        new_cost = call_cost(new, self._transaction.price)
        before, facts = message_facts(old), message_facts(new)
        for member, fate in self._connection.execute(
            "SELECT session_key, fate FROM memberships WHERE message_key = ?", (key,)
        ).fetchall():
            draft = self._sessions.draft(member)
            if fate != Fate.SUPERSEDED:
                draft.remove_message(before.counts)
                draft.add_message(facts.counts)
            draft.is_retimed = draft.is_retimed or new.created_at != old.created_at
            self._sessions.sequence(member)
        if billed_key is not None:
            usage = self._transaction.usage
            usage.remove(billed_key, old, cost)
            usage.add(billed_key, new, new_cost)
            usage.calls.remove_stored(billed_key, usage.model_key(old.model), key)
            usage.calls.add(billed_key, usage.model_key(new.model), facts)
        sequence = self._sessions.sequence(session_key)
        columns = self._transaction.message_columns(
            message_columns(new, facts, new_cost, message_buckets(new)), new.model, revision + 1, sequence
        )
        # Places in the stored body stay valid, because the archive keeps every generation of a file.
        known = {**places(), **self._texts.places(stored)}
        body = leave_out(body, known)
        note_uses(self._connection, key, body)
        alone = save_alone(self._connection, key, body, place[0])
        self._connection.execute(_MESSAGE_UPDATE, (*columns, billed_key, *alone, key))
        drop_parts(self._connection, key)
        # A message without a place was superseded: its parts are neither searched nor counted.
        if billed_key is not None or self._has_place(key):
            insert_parts(self._connection, key, facts)
        replace_blobs(self._connection, key, found)

    def _has_place(self, key: int) -> bool:
        found = self._connection.execute("SELECT 1 FROM memberships WHERE message_key = ? LIMIT 1", (key,))
        return found.fetchone() is not None

    def _insert_place(self, session_key: int, key: int, change: MessageChange) -> None:
        """Add the message to another session."""
        placement = change.placement
        packed = PackedPlace.of(placement, change.message.id)
        row = member_row(session_key, key, self._transaction.source, placement, packed)
        self._connection.execute(MEMBER_INSERT, row)
        self._connection.execute(
            "UPDATE memberships SET changed_seq = ? WHERE message_key = ? AND session_key = ?",
            (self._sessions.sequence(session_key), key, session_key),
        )
        self._branches.note_place(session_key, placement)
        facts = message_facts(bodies.decode(self._read.of(key)))
        draft = self._sessions.draft(session_key)
        if placement.fate is not Fate.SUPERSEDED:
            draft.add_message(facts.counts)
        draft.is_retimed = True
        # An output that this session spilled may now be the whole of one that the message previews.
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
            self._restore(session_key, key, facts)

    def _restore(self, session_key: int, key: int, facts: MessageFacts) -> None:
        """Restore a message that no session contained any more because a log had superseded it."""
        insert_parts(self._connection, key, facts)
        self._transaction.usage.bill(key, None, session_key)
        self._connection.execute(
            "UPDATE messages SET changed_seq = ? WHERE key = ?", (self._sessions.sequence(session_key), key)
        )

    def _merge_place(self, session_key: int, key: int, known: _Place, placement: Placement) -> None:
        """Merge another place of a message in the same session: from another feed, another file, or a rewritten file.

        Offsets in two files do not mix, so only places in one generation of one file are merged. Of two files or
        generations, the place from the source that `Transaction.outranks` the other is used. An export from which
        somebody cut the beginning counts fewer turns than another one: of two such files the larger number counts. A
        message may go on in a later turn, but its first record decides.
        """
        stored = known.placement(placement.session_id)
        here, there = (
            (self._transaction.source.key, self._transaction.source.generation),
            (known.source_key, known.generation),
        )
        if here == there:
            merged, origin = merge_placements(stored, placement), here
        else:
            is_better = self._transaction.outranks(known.source_key, known.generation, placement.session_id)
            merged, origin = (placement, here) if is_better else (stored, there)
            given_ids, known_ids = placement.record_ids, stored.record_ids
            goes_on = bool(given_ids and known_ids) and known_ids[0] not in given_ids
            if not goes_on and self._transaction.counts_alike(known.source_key, placement.session_id):
                merged = with_later_turn(merged, stored, placement)
        fate, cause = merged.fate, merged.fate_cause
        # The fate that followed from the tree is kept until fates are recomputed.
        if fate is stored.fate is Fate.ACTIVE:
            fate, cause = Fate(known.fate), known.fate_cause
        self._sessions.count_by_fate(session_key, key, Fate(known.fate), fate)
        shown = (merged.position, merged.turn, merged.step, str(fate), cause)
        records = pack_records(merged.records)
        has_moved = (*shown, records) != (
            known.position,
            known.turn,
            known.step,
            known.fate,
            known.fate_cause,
            known.records,
        )
        if merged.copied != known.copied:
            self._sessions.draft(session_key).is_retimed = True
        self._branches.note_place(session_key, merged)
        ids = dict.fromkeys((*merged.record_ids, *stored.record_ids, *placement.record_ids))
        self._branches.note_records(session_key, ids, merged.position)
        self._connection.execute(
            "UPDATE memberships SET position = ?, source_key = ?, generation = ?, parent_id = ?, parent_record = ?,"
            " turn = ?, step = ?, fate = ?, fate_cause = ?, copied = ?, records = ?, record_ids = ?,"
            " changed_seq = max(changed_seq, ?)"
            " WHERE message_key = ? AND session_key = ?",
            (
                merged.position,
                *origin,
                pack_parent(merged.parent_id, None),
                merged.parent_record,
                merged.turn,
                merged.step,
                fate,
                cause,
                merged.copied,
                records,
                pack_ids(tuple(ids), known.message_id),
                self._sessions.sequence(session_key) if has_moved else 0,
                key,
                session_key,
            ),
        )


@dataclass
class Rewritten:
    """A message that a file, written anew, has with other contents under the same id."""

    source: SourceRow
    generation: int
    """The last one that had it before, …"""
    placement: Placement
    """… its place there, …"""
    before: Message
    """… and what was stored of it."""
    reading: Message
    """What has been read of it in the newest generation."""


class _Place(NamedTuple):
    """A stored membership of the message with this id."""

    message_id: str
    position: int
    source_key: int | None
    generation: int
    parent_id: str | None
    parent_record: str | None
    turn: int | None
    step: int | None
    fate: str
    fate_cause: str | None
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
            fate=fate_of_records(Fate(self.fate)),
            fate_cause=cause_of_records(Fate(self.fate), self.fate_cause),
            copied=bool(self.copied),
        )
