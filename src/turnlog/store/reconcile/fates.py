"""The fates of a session's messages, computed from the tree of its records: branches, rewinds and compactions.

Fates are a function of all placements and events of a session (`merge.place_messages`). `BranchTracker` knows which
sessions must be recomputed: only those with branches that did not simply continue after their newest message. For all
others the stored fates still hold, so a new line costs the same in a long session as in a short one.

A message that only an older generation of a file contains is replaced: the file was rewritten without it. It stays in
the history, but is not part of the tree, which is that of the current file.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from turnlog.agents.base import HOOKED_FROM
from turnlog.agents.changes import EventChange, Placement
from turnlog.model import Fate, RecordEvent
from turnlog.model.codec import decode_event
from turnlog.model.tree import Placed
from turnlog.store import zstd
from turnlog.store.keys import session_id_of
from turnlog.store.packed_columns import PARENT_ID, unpack_ids
from turnlog.store.reconcile.forks import shared_compactions
from turnlog.store.reconcile.merge import (
    cause_of_records,
    fate_of_records,
    messages_of_records,
    parents_of,
    place_messages,
)
from turnlog.store.writing.transaction import Transaction


class BranchTracker:
    """What one transaction adds to sessions with branches."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._chains: dict[int, list[tuple[int, str, str | None]]] = defaultdict(list)
        """Session -> position, id and parent of each message that is new in it."""
        self._records: dict[int, dict[str | None, int | None]] = defaultdict(dict)
        """Session -> record id -> position of its message; None for an event's."""

    def note_place(self, session_key: int, placement: Placement) -> None:
        """Note a message's place in a session."""
        draft = self._transaction.sessions.draft(session_key)
        draft.note_turn(placement.turn)
        if draft.facts.has_branches:
            self._records[session_key].update(dict.fromkeys(placement.record_ids, placement.position))
        # The fold has forgotten the message of the parent's record, so the store must look it up.
        if placement.parent_id is None and placement.parent_record is not None:
            draft.needs_fates = True

    def note_new(self, session_key: int, message_id: str, placement: Placement) -> None:
        """Note a message that is new in a session."""
        # Messages from hooks and from sidecars are not part of the tree.
        is_logged = placement.position < HOOKED_FROM and placement.fate is not Fate.SIDECAR
        if is_logged and self._transaction.sessions.draft(session_key).facts.has_branches:
            self._chains[session_key].append((placement.position, message_id, placement.parent_id))

    def note_records(self, session_key: int, record_ids: Iterable[str], position: int | None) -> None:
        """Note records of the message at this position (None: of an event). One of them may end the active branch."""
        if self._transaction.sessions.draft(session_key).facts.has_branches:
            self._records[session_key].update(dict.fromkeys(record_ids, position))

    def changed(self) -> set[int]:
        """The sessions with branches that did not simply continue after their newest message."""
        # A new line nearly always continues the active branch: the fates of all other messages stay, and are not read.
        touched = {*self._chains, *self._records} - self._transaction.sessions.without_fates
        return {key for key in touched if not self._goes_straight_on(key) or self._ends_elsewhere(key)}

    def _goes_straight_on(self, session_key: int) -> bool:
        """Whether the new messages form a chain after the newest active message."""
        chain = sorted(self._chains[session_key])
        if not chain:
            return True
        before = self._transaction.connection.execute(
            "SELECT m.external_id, s.fate FROM memberships s JOIN messages m ON m.key = s.message_key"
            " WHERE s.session_key = ? AND s.position < ? AND s.fate <> 'sidecar' ORDER BY s.position DESC LIMIT 1",
            (session_key, chain[0][0]),
        ).fetchone()
        newest, fate = before or (None, "active")
        parents = [parent for _, _, parent in chain]
        return fate == "active" and parents == [newest, *(message_id for _, message_id, _ in chain[:-1])]

    def _ends_elsewhere(self, session_key: int) -> bool:
        """Whether the end of the active branch is a record of anything but its newest message."""
        records = self._records[session_key]
        leaf = self._transaction.sessions.draft(session_key).facts.active_leaf
        if leaf not in records:
            return False
        newest = self._transaction.connection.execute(
            "SELECT position, fate FROM memberships WHERE session_key = ? AND position < ? AND fate <> 'sidecar'"
            " ORDER BY position DESC LIMIT 1",
            (session_key, HOOKED_FROM),
        ).fetchone()
        return newest != (records[leaf], "active")


class _Member(NamedTuple):
    """The columns of a membership on which fates depend."""

    message_key: int
    external_id: str
    position: int
    parent_id: str | None
    parent_record: str | None
    record_ids: bytes | None
    fate: str
    fate_cause: str | None
    is_replaced: int
    """Its file was written anew without it."""

    def placement(self, session_id: str) -> Placement:
        return Placement(
            session_id=session_id,
            position=self.position,
            parent_id=self.parent_id,
            parent_record=self.parent_record,
            record_ids=unpack_ids(self.record_ids, self.external_id),
            fate=fate_of_records(Fate(self.fate)),
            fate_cause=cause_of_records(Fate(self.fate), self.fate_cause),
        )


def update_fates(connection: sqlite3.Connection, session_key: int, sequence: int) -> list[tuple[int, Fate, Fate]]:
    """Look up parents that a fold had forgotten, and recompute the fates of all messages of a session.

    Messages with a new fate get this number of the change sequence. Returns their keys, the fates they had and the new
    ones.
    """
    session_id = session_id_of(connection, session_key)
    members = _members(connection, session_key)
    placements = {member.external_id: member.placement(session_id) for member in members if not member.is_replaced}
    events = _events(connection, session_key, session_id)
    active_leaf, has_branches = connection.execute(
        "SELECT active_leaf, has_branches FROM sessions WHERE key = ?", (session_key,)
    ).fetchone()
    # A fold forgets records after a while and then names a parent by its record only, which may be that of an event.
    message_of = messages_of_records(placements, events)
    # Only forks without copies have negative positions. Messages that the parent compacted before the fork are
    # compacted in the fork too.
    shared = shared_compactions(connection, session_key, session_id) if members and members[0].position < 0 else []
    placed = place_messages(placements, [*shared, *events], message_of, active_leaf) if has_branches or shared else {}
    parents = parents_of(placements, message_of)
    placed |= _place_replaced([member for member in members if member.is_replaced], placed, parents)
    changed: list[tuple[str | None, str, str | None, int, int, int]] = []
    fated: list[tuple[int, Fate, Fate]] = []
    for member in members:
        parent = parents.get(member.external_id, member.parent_id)
        at = placed.get(member.external_id) or Placed(fate=Fate(member.fate), cause=member.fate_cause)
        if (parent, at.fate, at.cause) != (member.parent_id, member.fate, member.fate_cause):
            # A window shows fates but no parents, so a new parent alone is no change for its viewers.
            has_changed = (at.fate, at.cause) != (member.fate, member.fate_cause)
            changed.append((parent, at.fate, at.cause, sequence if has_changed else 0, session_key, member.message_key))
            # The counts of a session depend on fates alone, not on their causes.
            if at.fate != member.fate:
                fated.append((member.message_key, Fate(member.fate), at.fate))
    # A parent that is the message before is stored as an empty text (`packed_columns`) and stays so.
    connection.executemany(
        f"UPDATE memberships AS s SET parent_id = iif({PARENT_ID} IS ?1, parent_id, ?1), fate = ?2, fate_cause = ?3,"
        " changed_seq = max(changed_seq, ?4) WHERE session_key = ?5 AND message_key = ?6",
        changed,
    )
    return fated


def replaced_in(connection: sqlite3.Connection, source_keys: Iterable[int], besides: Container[int] = ()) -> set[int]:
    """Keys of the sessions that hold messages which only an older generation of these files has.

    Args:
        connection: The store.
        source_keys: The files.
        besides: Sessions that are of no interest. To find out that one has no such message takes all of its messages;
            a session of which the files say nothing any more has nothing else.
    """
    found: set[int] = set()
    for source_key in source_keys:
        # From session to session along the index: a file has few sessions, and any number of messages.
        session_key: int | None = -1
        while (session_key := _next_session(connection, source_key, session_key)) is not None:
            if session_key not in besides and _has_replaced(connection, source_key, session_key):
                found.add(session_key)
    return found


def _next_session(connection: sqlite3.Connection, source_key: int, after: int) -> int | None:
    """The next session with messages from a file."""
    query = "SELECT min(session_key) FROM memberships WHERE source_key = ? AND session_key > ?"
    found: int | None = connection.execute(query, (source_key, after)).fetchone()[0]
    return found


def _has_replaced(connection: sqlite3.Connection, source_key: int, session_key: int) -> bool:
    query = (
        "SELECT 1 FROM memberships s JOIN sources f ON f.key = s.source_key WHERE s.source_key = ?"
        " AND s.session_key = ? AND s.generation < f.generation AND s.position < ? LIMIT 1"
    )
    return connection.execute(query, (source_key, session_key, HOOKED_FROM)).fetchone() is not None


def _place_replaced(
    replaced: Sequence[_Member], placed: Mapping[str, Placed], parents: Mapping[str, str | None]
) -> dict[str, Placed]:
    """The fates of messages that a file no longer holds, by those of what it holds.

    A branch that leaves a message which is still there was rewound, as if its records were there too. Everything else
    is superseded by the file's present content.
    """
    parent_of = {member.external_id: member.parent_id for member in replaced}
    standing = (Fate.ACTIVE, Fate.COMPACTED)
    next_of = {parents[id]: id for id, at in placed.items() if at.fate in standing}
    found: dict[str, Placed] = {}
    for member in replaced:
        # With a cause, it is what the file said of a message that it still has: see `reconcile.rewritten`.
        is_edited = member.fate == Fate.SUPERSEDED and member.fate_cause is not None
        if is_edited or member.fate in (Fate.RETRACTED, Fate.SIDECAR):
            continue
        left, seen = member.parent_id, set[str | None]()
        # Parents of replaced messages come from several generations, and nothing keeps them from forming a circle.
        while left in parent_of and left not in seen:
            seen.add(left)
            left = parent_of[left]
        # The branch did not leave a message that is still there, so no rewind explains its end.
        if left is None or left not in placed:
            found[member.external_id] = Placed(fate=Fate.SUPERSEDED)
        else:
            cause = next_of.get(left) if placed[left].fate in standing else placed[left].cause
            found[member.external_id] = Placed(fate=Fate.REWOUND, cause=cause)
    return found


def _members(connection: sqlite3.Connection, session_key: int) -> list[_Member]:
    rows = connection.execute(
        f"SELECT m.key, m.external_id, s.position, {PARENT_ID}, s.parent_record, s.record_ids, s.fate, s.fate_cause,"
        " coalesce(s.generation < f.generation, 0)"
        " FROM memberships s JOIN messages m ON m.key = s.message_key LEFT JOIN sources f ON f.key = s.source_key"
        " WHERE s.session_key = ? AND s.position < ? ORDER BY s.position",
        (session_key, HOOKED_FROM),
    )
    return [_Member(*row) for row in rows]


def _events(connection: sqlite3.Connection, session_key: int, session_id: str) -> list[EventChange]:
    """The events on which the tree depends: links in the chain of records, and compactions, of the current file."""
    rows = connection.execute(
        "SELECT e.position, e.record_id, e.parent_id, CASE e.type WHEN 'compaction' THEN e.body END"
        " FROM events e LEFT JOIN sources f ON f.key = e.source_key"
        " WHERE e.session_key = ? AND (e.record_id IS NOT NULL OR e.type = 'compaction')"
        " AND coalesce(e.generation >= f.generation, 1)",
        (session_key,),
    )
    return [
        EventChange(
            session_id=session_id,
            event=decode_event(zstd.decompress(body)) if body else RecordEvent(id="", kind="", position=position),
            record_id=record_id,
            parent_id=parent_id,
        )
        for position, record_id, parent_id, body in rows
    ]
