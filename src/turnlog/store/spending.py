"""What was just spent. Neither dataclasses nor msgspec: importing them takes longer than a status line may."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from turnlog.store.dollars import Dollars


class SpentMoney(NamedTuple):
    """What calls cost together."""

    cost: Dollars | None
    """Of all calls of known price; None if there are only others."""
    uncounted_calls: int
    """Calls of unknown price or without tokens, which `cost` does not contain."""


class RunningBlock(NamedTuple):
    """The block of Claude's limits that is running."""

    ends_at: datetime
    spent: SpentMoney
    cost_per_hour: Dollars | None
    """At the rate since its first call."""


class Spending(NamedTuple):
    """What was spent since a time, and in the running block; None if no block is running."""

    spent: SpentMoney
    block: RunningBlock | None
