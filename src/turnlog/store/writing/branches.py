"""Which sessions went on in another way than from each message to the next: their fates are worked out anew.

Else what was worked out before still holds, and a line more in a long session costs no more than in a short one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from turnlog.agents.base import HOOKED_FROM
from turnlog.agents.changes import Placement
from turnlog.model import Fate
from turnlog.store.writing.transaction import Transaction


class Branches:
    """What one transaction adds to sessions that have branches."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._chains: dict[int, list[tuple[int, str, str | None]]] = defaultdict(list)
        self._named: dict[int, dict[str | None, int | None]] = defaultdict(dict)

    def note_place(self, session_key: int, placement: Placement) -> None:
        """A message stands here in a session."""
        self._transaction.sessions.counts.note_turn(session_key, placement.turn)
        self.note_records(session_key, placement.record_ids, placement.position)
        if placement.parent_id is None and placement.parent_record is not None:
            self._transaction.sessions.relink.add(session_key)

    def lengthen(self, session_key: int, message_id: str, place: Placement) -> None:
        """A message is new in a session: in one with branches, see at the end whether it just follows the last."""
        is_logged = place.position < HOOKED_FROM and place.fate is not Fate.SIDECAR
        if is_logged and self._transaction.sessions.has_branches(session_key):
            self._chains[session_key].append((place.position, message_id, place.parent_id))

    def note_records(self, session_key: int, record_ids: Iterable[str], position: int | None) -> None:
        """These records are of the message at this place, or of none: one of them may end the active branch."""
        if self._transaction.sessions.has_branches(session_key):
            self._named[session_key].update(dict.fromkeys(record_ids, position))

    def left(self) -> set[int]:
        """Sessions with branches that went on in any other way than from each message to the next behind it."""
        touched = {*self._chains, *self._named} - self._transaction.sessions.relink
        return {key for key in touched if not self._goes_straight_on(key) or self._ends_elsewhere(key)}

    def _goes_straight_on(self, session_key: int) -> bool:
        """Whether the new messages hang under each other, and the first of them under the newest active one."""
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
        """Whether the record at the end of the active branch came with anything but its newest message."""
        named = self._named[session_key]
        leaf = self._transaction.sessions.active_leaf(session_key)
        if leaf not in named:
            return False
        newest = self._transaction.connection.execute(
            "SELECT position, fate FROM memberships WHERE session_key = ? AND position < ? AND fate <> 'sidecar'"
            " ORDER BY position DESC LIMIT 1",
            (session_key, HOOKED_FROM),
        ).fetchone()
        return newest != (named[leaf], "active")
