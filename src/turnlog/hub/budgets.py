"""What a hub says of budgets: read by the machine's side too, which has no database of the hub."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from turnlog.store.budgets import BudgetState

BudgetScope: TypeAlias = Literal["team", "project", "person"]


class TeamBudget(msgspec.Struct, frozen=True, kw_only=True):
    """A budget, and what of it the caller may know of the running month."""

    id: str
    scope: BudgetScope
    subject: str | None
    """Path of the project, or id of the person; None for the team."""
    limit: float
    """US dollars."""
    month: str
    """The running month of UTC: `2026-11`."""
    spent: float | None = None
    """The cost of all calls of known price, at list prices; None where it is unknown, or not for the caller."""
    unpriced_calls: int | None = None
    """Calls of unknown price or without tokens, which `spent` does not contain; None if that is not for the caller."""
    state: BudgetState | None = None
    """`nearly spent` from 80 % on; None where what was spent is unknown, or of too few people."""


class Budgets(msgspec.Struct, frozen=True):
    """Budgets that concern the caller."""

    items: list[TeamBudget]
    note: str | None = None
    """What is odd about the budget that was just made: nothing that the caller sees is in its project."""
