"""Usage reports and what a store holds in figures: totals, what they contain in words, and a table for spreadsheets.

Dataclasses and not msgspec's structs, and nothing of the model: a report must start fast, and loading either takes
longer than making one.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from turnlog.plain_text import csv_cell
from turnlog.store.base import UsageBy

_CALLS: Final = (
    "A model call counts once, for the session that made it; copies in forks and resumes do not count again."
)
_SUBAGENTS: Final[dict[UsageBy, str]] = {
    "session": "A session's row does not contain its subagents: each has a row of its own.",
    "subagent": "The row without a name is all that no subagent did.",
}
_SUBAGENTS_INCLUDED: Final = "What subagents did is in it."

_COST: Final = (
    "Cost is computed from tokens and the prices of the day, call by call; what agents reported is beside it."
)

NANO: Final = 1_000_000_000
"""Nano-dollars in a dollar. Columns of money hold nano-dollars: integers, so that sums are exact."""


class Dollars(Decimal):
    """An exact amount of US dollars. In JSON it is a number (`to_json_number`), as a float shows it."""


def to_json_number(value: object) -> float:
    """`Dollars` as JSON has them; the hook of encoders. Raises NotImplementedError for anything else.

    Nano-dollars of less than a million dollars are exact to the last digit in a float.
    """
    if isinstance(value, Dollars):
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


@dataclass(frozen=True)
class UsageTotals:
    """Tokens and US dollars of many model calls, and what these sums do not contain."""

    calls: int = 0
    unknown_calls: int = 0
    """Calls without any token count; they are in no sum."""
    unpriced_calls: int = 0
    """Calls with tokens for which no price is known; they are not in `cost`."""
    lower_bound_calls: int = 0
    """Calls whose output the log states only as "at least"."""
    tokens: int = 0
    """All tokens that are known: the sum of the eight buckets below."""
    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    tool_prompt: int = 0
    cost: Dollars | None = None
    """Priced; None when no call could be priced."""
    reported_cost: Dollars | None = None
    """As the agents wrote them at single calls, never added to `cost`; None when they wrote none."""


@dataclass(frozen=True)
class UsageRow:
    """The usage of one day, model, project, session, agent or subagent."""

    name: str | None
    """The day (`2026-11-20`), the model, the path of the project, or the session's id. None where the log does not
    tell, and for what no subagent did."""
    label: str | None
    """What people call it, where that is not the name: a project's or session's title."""
    totals: UsageTotals


@dataclass(frozen=True)
class UsageReport:
    """Usage by something, and in all."""

    by: UsageBy
    rows: tuple[UsageRow, ...]
    totals: UsageTotals
    contains: tuple[str, ...]
    """Sentences on what the sums are made of."""
    missing: tuple[str, ...]
    """Sentences on what they do not contain; none where nothing is missing."""


@dataclass(frozen=True)
class ProjectSummary:
    """A project and how much of it there is; subagents are not counted."""

    path: str
    name: str
    sessions: int
    updated_at: datetime | None


@dataclass(frozen=True)
class AgentSummary:
    """An agent and how much of it there is."""

    agent: str
    sessions: int
    subagents: int
    sources: int
    updated_at: datetime | None


@dataclass(frozen=True)
class ModelSummary:
    """A model and how often it was called."""

    name: str
    calls: int
    sessions: int


def usage_report(by: UsageBy, rows: Sequence[UsageRow], totals: UsageTotals) -> UsageReport:
    """The report of these rows, with the sentences that belong to it."""
    return UsageReport(by, tuple(rows), totals, _contents(by), _omissions(totals))


def _contents(by: UsageBy) -> tuple[str, ...]:
    return (_CALLS, _SUBAGENTS.get(by, _SUBAGENTS_INCLUDED), _COST)


def _omissions(totals: UsageTotals) -> tuple[str, ...]:
    facts = (
        (totals.unpriced_calls, "without a known price: their tokens are counted, their cost is not"),
        (totals.unknown_calls, "without any token count: they are in no sum"),
        (totals.lower_bound_calls, "whose output is known only as \u201cat least\u201d"),
    )
    return tuple(f"{number:,} call{'' if number == 1 else 's'} {what}." for number, what in facts if number)


def to_csv(report: UsageReport) -> str:
    """The rows of a report as CSV (RFC 4180). What is unknown is empty; money is US dollars."""
    text = io.StringIO()
    # Quoted as a whole, a name stays one cell also where a spreadsheet takes a semicolon for the end of one.
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    columns = tuple(UsageTotals.__dataclass_fields__)
    writer.writerow((report.by, "label", *columns))
    for row in report.rows:
        numbers = (_cell(getattr(row.totals, name)) for name in columns)
        writer.writerow((csv_cell(row.name or ""), csv_cell(row.label or ""), *numbers))
    return text.getvalue()


def _cell(value: int | Decimal | None) -> str | int:
    return "" if value is None else f"{value:f}" if isinstance(value, Decimal) else value
