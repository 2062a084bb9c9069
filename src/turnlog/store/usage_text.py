"""What a usage report says in words: what its sums contain and what they do not; and as a table for other programs.

Imports nothing of the model: a report must start fast.
"""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import Final

from turnlog.store.base import UsageBy, UsageReport, UsageTotals

_CALLS: Final = (
    "A model call counts once, for the session that made it; copies in forks and resumes do not count again."
)
_SUBAGENTS: Final[dict[UsageBy, str]] = {
    "session": "A session's row does not contain its subagents: each has a row of its own.",
    "subagent": "The row without a name is all that no subagent did.",
}
_SUBAGENTS_IN: Final = "What subagents did is in it."

_COST: Final = (
    "Cost is computed from tokens and the prices of the day, call by call; what agents reported is beside it."
)

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet would compute."""

COLUMNS: Final = (
    "calls",
    "unknown_calls",
    "unpriced_calls",
    "lower_bound_calls",
    "tokens",
    "input",
    "cache_read",
    "cache_write_5m",
    "cache_write_1h",
    "cache_write",
    "output",
    "reasoning",
    "tool_prompt",
    "cost",
    "reported_cost",
)
"""Of the table, behind `name` and `label`: attributes of `UsageTotals`."""


def what_it_contains(by: UsageBy) -> list[str]:
    """Sentences on what the sums of a report are made of."""
    return [_CALLS, _SUBAGENTS.get(by, _SUBAGENTS_IN), _COST]


def what_is_missing(totals: UsageTotals) -> list[str]:
    """Sentences on what the sums do not contain; none where nothing is missing."""
    facts = (
        (totals.unpriced_calls, "without a known price: their tokens are counted, their cost is not"),
        (totals.unknown_calls, "without any token count: they are in no sum"),
        (totals.lower_bound_calls, "whose output is known only as \u201cat least\u201d"),
    )
    return [f"{number:,} call{'' if number == 1 else 's'} {what}." for number, what in facts if number]


def to_csv(report: UsageReport) -> str:
    """The rows of a report as CSV (RFC 4180). What is unknown is empty; money is US dollars."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow((report.by, "label", *COLUMNS))
    for row in report.rows:
        numbers = (_plain(getattr(row.totals, name)) for name in COLUMNS)
        writer.writerow((_harmless(row.name), _harmless(row.label), *numbers))
    return text.getvalue()


def _plain(value: int | Decimal | None) -> str:
    return "" if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)


def _harmless(text: str | None) -> str:
    """A text of a log that no spreadsheet takes for a formula."""
    return "" if text is None else f"'{text}" if text.startswith(_FORMULA) else text
