"""What the running day, week and month have cost of the user's budgets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Final, Literal, TypeAlias

from turnlog.store.base import Store, UsageFilter
from turnlog.store.choices import BudgetPeriod
from turnlog.store.dollars import Dollars
from turnlog.store.periods import PERIODS
from turnlog.store.usage_report import UsageBudget, UsageTotals

BudgetState: TypeAlias = Literal["within", "nearly spent", "exceeded"]

_NEARLY: Final = Decimal("0.8")
"""The share of a budget from which it is nearly spent, and warned of."""

_LONGEST = timedelta(days=32)


def budget_state(spent: Dollars, limit: Dollars) -> BudgetState:
    """How far a budget is spent."""
    return "exceeded" if spent > limit else "nearly spent" if spent >= limit * _NEARLY else "within"


def spent_budgets(store: Store, limits: Mapping[BudgetPeriod, float], zone: tzinfo | None) -> tuple[UsageBudget, ...]:
    """Each budget (US dollars) with what its running period of a zone (None: this machine's) has cost."""
    now = datetime.now(UTC)
    return tuple(_spent(store, period, Dollars(str(limit)), zone, now) for period, limit in limits.items())


def _spent(store: Store, period: BudgetPeriod, limit: Dollars, zone: tzinfo | None, now: datetime) -> UsageBudget:
    name = PERIODS[period](now.astimezone(zone))
    rows = store.usage(period, UsageFilter(since=now - _LONGEST), zone=zone).rows
    totals = next((row.totals for row in rows if row.name == name), UsageTotals())
    spent = totals.cost or Dollars(0)
    return UsageBudget(period, name, limit, spent, totals.unpriced_calls + totals.unknown_calls, spent > limit)
