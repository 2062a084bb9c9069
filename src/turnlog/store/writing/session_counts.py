"""What a transaction adds to the numbers of sessions: differences, summed up once at its end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from turnlog.store.rows import MESSAGE_COUNTS, USAGE_COUNTS

COUNTS = (*MESSAGE_COUNTS, "events", *USAGE_COUNTS)
"""Columns of `sessions` that are sums."""

_EVENTS = len(MESSAGE_COUNTS)
_PAID = _EVENTS + 1
"""Where events and the paid counts begin among them."""


class SessionCounts:
    """Differences to the counts of sessions, by their keys, and the newest turns that messages stand in."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._totals: dict[int, list[int]] = defaultdict(lambda: [0] * len(COUNTS))
        self._added: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        """Counts of messages that are not in `_totals` yet."""
        self._turns: dict[int, int] = {}

    def add(self, key: int, counts: tuple[int, ...], sign: int) -> None:
        """Add what a message is (`rows.MESSAGE_COUNTS`) to a session that holds it, or take it out."""
        self._added[key].append(counts if sign > 0 else tuple([-count for count in counts]))

    def add_paid(self, key: int, counts: Sequence[int]) -> None:
        """Add what calls used and cost (`rows.USAGE_COUNTS` and more behind) to the session that pays for them."""
        totals = self._totals[key]
        for index in range(_PAID, len(COUNTS)):
            totals[index] += counts[index - _PAID]

    def add_events(self, key: int, count: int) -> None:
        """Add to the number of events."""
        self._totals[key][_EVENTS] += count

    def note_turn(self, key: int, turn: int | None) -> None:
        """A message of this turn is there."""
        if turn is not None and turn > self._turns.get(key, 0):
            self._turns[key] = turn

    def take(self) -> dict[int, tuple[int, list[int]]]:
        """By session the newest turn (0: none) and the `COUNTS`, of all that was added since it was last taken."""
        for key, added in self._added.items():
            totals = self._totals[key]
            for index, column in enumerate(zip(*added, strict=True)):
                totals[index] += sum(column)
        taken = {key: (self._turns.get(key, 0), self._totals[key]) for key in {*self._totals, *self._turns}}
        for pending in (self._added, self._totals, self._turns):
            pending.clear()
        return taken
