"""Tokens and cost of many model calls."""

from __future__ import annotations

from decimal import Decimal
from typing import Self

from turnlog.server.answers.base import Answer
from turnlog.store import base


class UsageTotals(Answer, frozen=True, kw_only=True):
    """Tokens and US dollars of many model calls, and what these sums do not contain."""

    calls: int
    unknown_calls: int
    unpriced_calls: int
    lower_bound_calls: int
    tokens: int
    input: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    cache_write: int
    output: int
    reasoning: int
    tool_prompt: int
    cost: float | None
    reported_cost: float | None

    @classmethod
    def of_totals(cls, totals: base.UsageTotals) -> Self:
        """Totals with their money as numbers."""
        return cls.of(totals, cost=_dollars(totals.cost), reported_cost=_dollars(totals.reported_cost))


class UsageRow(Answer, frozen=True, kw_only=True):
    """The usage of one day, model, project, session, agent or subagent."""

    name: str | None
    label: str | None
    totals: UsageTotals


class UsageAnswer(Answer, frozen=True, kw_only=True):
    """Usage by something, and in all."""

    by: base.UsageBy
    rows: list[UsageRow]
    totals: UsageTotals
    contains: list[str]
    """Sentences on what the sums are made of."""
    missing: list[str]
    """Sentences on what they do not contain."""


def _dollars(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)
