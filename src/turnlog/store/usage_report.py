"""Usage reports and summaries of agents, models and projects: totals, explanatory sentences, and CSV.

These are dataclasses, without msgspec and the model: a report must start fast, and importing either takes longer than
making a report.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
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
"""Nano-dollars in a dollar. Columns with money are integers of nano-dollars, so sums are exact."""


class Dollars(Decimal):
    """An exact amount of US dollars. In JSON it is a number (`to_json_number`), exact as far as a float is."""


def to_json_number(value: object) -> float:
    """`Dollars` as a JSON number; a hook of encoders. Raises NotImplementedError for other types.

    A float represents nano-dollars exactly for amounts below a million dollars.
    """
    if isinstance(value, Dollars):
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


@dataclass(frozen=True)
class UsageTotals:
    """Tokens and US dollars of many model calls, and how many calls these sums do not contain."""

    calls: int = 0
    unknown_calls: int = 0
    """Calls without any token count; no sum contains them."""
    unpriced_calls: int = 0
    """Calls with tokens but without a known price; `cost` does not contain them."""
    lower_bound_calls: int = 0
    """Calls whose output tokens are a lower bound in the log."""
    tokens: int = 0
    """All known tokens: the sum of the eight buckets below."""
    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    tool_prompt: int = 0
    cost: Dollars | None = None
    """Computed from prices; None if no call could be priced."""
    reported_cost: Dollars | None = None
    """As agents reported it for single calls, not part of `cost`; None if they reported none."""


@dataclass(frozen=True)
class UsageRow:
    """The usage of one hour, day, week, month, model, project, session, agent or subagent."""

    name: str | None
    """The period: an hour (`2026-11-20T14:00Z`), a day (`2026-11-20`), the Monday of a week, a month (`2026-11`).
    Otherwise the model, the path of the project, or the session's id. None if the log does not say, and for usage
    outside of subagents."""
    label: str | None
    """The display name if it differs: the title of a session, the name of a project."""
    totals: UsageTotals


@dataclass(frozen=True)
class UsageReport:
    """Usage by something, and in all."""

    by: UsageBy
    rows: tuple[UsageRow, ...]
    totals: UsageTotals
    contains: tuple[str, ...]
    """Sentences that explain the sums."""
    missing: tuple[str, ...]
    """Sentences about what the sums lack; empty if nothing is missing."""
    zone: str = "UTC"
    """The time zone of hours, days, weeks and months: `UTC`, `Europe/Berlin`, or `local` for this machine's."""


@dataclass(frozen=True)
class ProjectSummary:
    """A project with its counts, subagents not included."""

    path: str
    name: str
    sessions: int
    updated_at: datetime | None


@dataclass(frozen=True)
class AgentSummary:
    """An agent with its counts, subagents not included."""

    agent: str
    sessions: int
    subagents: int
    sources: int
    updated_at: datetime | None


@dataclass(frozen=True)
class ModelSummary:
    """A model with the number of its calls."""

    name: str
    calls: int
    sessions: int


def usage_report(by: UsageBy, rows: Sequence[UsageRow], totals: UsageTotals, zone: tzinfo | None) -> UsageReport:
    """A report of these rows, with the sentences that apply."""
    name = "local" if zone is None else str(zone)
    return UsageReport(by, tuple(rows), totals, _contents(by), _omissions(totals), name)


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
    """The rows of a report as CSV (RFC 4180). Unknown values are empty; money is US dollars."""
    text = io.StringIO()
    # All names are quoted, so that a name stays one cell even in a spreadsheet that splits at semicolons.
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    columns = tuple(UsageTotals.__dataclass_fields__)
    writer.writerow((report.by, "label", *columns))
    for row in report.rows:
        numbers = (_cell(getattr(row.totals, name)) for name in columns)
        writer.writerow((csv_cell(row.name or ""), csv_cell(row.label or ""), *numbers))
    return text.getvalue()


def _cell(value: int | Decimal | None) -> str | int:
    return "" if value is None else f"{value:f}" if isinstance(value, Decimal) else value
