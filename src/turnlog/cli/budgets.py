"""Says on standard error that a budget is nearly spent, or more."""

from __future__ import annotations

from decimal import Decimal

import click

from turnlog.cli import formatting
from turnlog.plain_text import one_line
from turnlog.store.budgets import BudgetState


def write_budget_warning(
    whose: str, state: BudgetState | None, spent: Decimal | None, limit: Decimal, unpriced_calls: int
) -> None:
    """Warn of the budget of a period or a group, unless it is within its limit. `spent` is None for the unknown."""
    if state is None or state == "within":
        return
    figures = "" if spent is None else f"{formatting.money(spent, unpriced_calls)} of "
    part = "" if spent is None else f" ({formatting.share(float(spent / limit))})"
    click.echo(f"Budget of {one_line(whose)} {state}: {figures}{formatting.money(limit)}{part}.", err=True)
