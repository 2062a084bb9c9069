"""Usage reports and summaries of agents, models and projects: totals, explanatory sentences, and CSV.

These are dataclasses, without msgspec and the model: a report must start fast, and importing either takes longer than
making a report.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Final, Literal

from turnlog.plain_text import csv_cell
from turnlog.store.choices import BudgetPeriod, UsageBy
from turnlog.store.dollars import Dollars, counted, exactness_of, per_hour, rounded
from turnlog.store.periods import DATE_PERIODS

_CALLS: Final = (
    "A model call counts once, for the session that made it; copies in forks and resumes do not count again."
)
_SUBAGENTS: Final[dict[UsageBy, str]] = {
    "session": "A session's row does not contain its subagents: each has its own row.",
    "subagent": "The row without a name is all that no subagent did.",
}
_SUBAGENTS_INCLUDED: Final = "The calls of subagents are included."

_BLOCKS: Final = (
    "A block is five hours from the full hour (UTC) of its first call."
    " The rate of the running block is over the time since its first call."
    " Without an agent, it contains only calls of the agent whose usage is limited by blocks."
)

_COST: Final = (
    "Cost is computed from tokens and the prices of the day, call by call; what agents reported is beside it."
    " What one reported only for a whole session counts at its last call, where no call of it has a known cost."
)


@dataclass(frozen=True)
class UsageTotals:
    """Tokens and US dollars of many model calls, and how many calls these sums do not contain."""

    calls: int = 0
    unknown_calls: int = 0
    """Calls without any token count; no sum contains them."""
    covered_calls: int = 0
    """Calls without their own token count: the totals of their sessions contain them."""
    session_totals: int = 0
    """Totals of whole sessions, in place of their calls. Each counts at the last time of its session."""
    unpriced_calls: int = 0
    """Calls, or totals of sessions, with tokens but without a known price; `cost` does not contain them."""
    lower_bound_calls: int = 0
    """Calls, or totals of sessions, whose output tokens are a lower bound in the log: so is their cost."""
    estimated_calls: int = 0
    """Calls whose tokens are estimated in the log: so is their cost."""
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
    """As agents reported it for single calls, or for whole sessions without a known cost; not part of `cost`. None if
    they reported none."""

    @property
    def exactness(self) -> Literal["exact", "lower_bound", "estimated"]:
        """How exact the tokens are, and what is computed from them."""
        return exactness_of(self.estimated_calls, self.lower_bound_calls, self.session_totals)

    @property
    def tells_cache(self) -> bool:
        """Whether logs say how many tokens were read from a cache and written to one.

        Estimated tokens, and totals of whole sessions, without any of these do not count them: it is not known that
        there were none.
        """
        cached = self.cache_read or self.cache_write_5m or self.cache_write_1h or self.cache_write
        return bool(cached) or not self.tokens or not (self.estimated_calls or self.session_totals)

    @property
    def has_tokens(self) -> bool:
        """Whether any call, or any session as a whole, has a count. Otherwise all sums are 0, and nothing is known.

        Without calls nothing was used, unless it is unknown what was.
        """
        return bool(counted(vars(self))) or not (self.calls or self.session_totals or self.cost is None)


@dataclass(frozen=True)
class UsagePart:
    """What one thing, such as a model, has of the usage of a row."""

    name: str | None
    label: str | None
    totals: UsageTotals


@dataclass(frozen=True)
class UsageBlock:
    """One of the five-hour windows of Claude's limits. What it will be is known only of the one that is running."""

    start: datetime
    end: datetime
    is_running: bool = False
    tokens_per_minute: float | None = None
    """All tokens, over the minutes since the first call of the block, also those without calls."""
    cost_per_hour: Dollars | None = None
    projected_tokens: int | None = None
    """At the end of the block, if it goes on like this."""
    projected_cost: Dollars | None = None


@dataclass(frozen=True)
class UsageRow:
    """The usage of one hour, day, week, month, block, model, project, session, agent or subagent."""

    name: str | None
    """The period: an hour (`2026-11-20T14:00Z`), a day (`2026-11-20`), the Monday of a week, a month (`2026-11`).
    Otherwise the model, the path of the project, or the session's id. None if the log does not say, and for usage
    outside of subagents."""
    label: str | None
    """The display name if it differs: the title of a session, the name of a project."""
    totals: UsageTotals
    parts: tuple[UsagePart, ...] = ()
    """What the row is divided into; periods ascending, others descending by cost."""
    block: UsageBlock | None = None
    active_ms: int | None = None
    """Of a day, week or month: milliseconds between the messages of sessions, without gaps of more than ten minutes.
    What ran at the same time adds up; subagents are left out. None where no log has two times, for other rows, and with
    a filter by model."""


@dataclass(frozen=True)
class UsageBudget:
    """What the running day, week or month has cost of the user's budget for it, whatever the report is about."""

    period: BudgetPeriod
    name: str
    """Of the period: `2026-11-20`, the Monday of a week, `2026-11`."""
    limit: Dollars
    spent: Dollars
    """The cost of all calls of known price."""
    unpriced_calls: int
    """Calls of unknown price or without tokens, which `spent` does not contain."""
    is_exceeded: bool


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
    then_by: UsageBy | None = None
    """What each row is divided by."""
    budgets: tuple[UsageBudget, ...] = ()
    """Those that the user has set."""
    active_ms: int | None = None
    """The sum of the rows' that are known; None if there are rows and none is."""


@dataclass(frozen=True)
class ProjectSummary:
    """A project with its counts, subagents not included."""

    path: str
    name: str
    """The last folder of its path, unless the user has renamed it."""
    sessions: int
    updated_at: datetime | None
    merged: tuple[str, ...] = ()
    """Paths of the projects that the user has merged into it."""


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


def with_activity(report: UsageReport, days: Mapping[date, int]) -> UsageReport:
    """The report with the active time of its days, weeks or months; one without a call of a model has no row.

    No session was active for no time: of a period that no session's times say it for, it is unknown.
    """
    active: Counter[str] = Counter()
    for day, milliseconds in days.items():
        active[DATE_PERIODS[report.by](day)] += milliseconds
    rows = tuple(replace(row, active_ms=active.get(row.name or "")) for row in report.rows)
    known = [row.active_ms for row in rows if row.active_ms is not None]
    if rows and not known:
        return report
    return replace(report, rows=rows, active_ms=sum(known), contains=(*report.contains, _ACTIVE))


_ACTIVE: Final = (
    "Active is the time between the messages of sessions, without gaps of more than ten minutes and without subagents;"
    " what ran at the same time adds up."
)


def usage_report(
    by: UsageBy,
    rows: Sequence[UsageRow],
    totals: UsageTotals,
    zone: tzinfo | None,
    then_by: UsageBy | None = None,
    unpriced: Sequence[str] = (),
    undated: int = 0,
) -> UsageReport:
    """A report of these rows, with the sentences that apply.

    `unpriced` are the models without a known price, `undated` are calls that a period leaves out without a time.
    """
    name = "local" if zone is None else str(zone)
    if undated and not (totals.calls or totals.session_totals):
        # All that could be in the period has no time: what it cost is not known to be nothing.
        totals = replace(totals, cost=None)
    missing = (*_omissions(totals, unpriced), *_undated(undated))
    return UsageReport(by, tuple(rows), totals, _contents(by, then_by), missing, name, then_by)


def running_block(start: datetime, first: datetime, end: datetime, now: datetime, totals: UsageTotals) -> UsageBlock:
    """The block that is running, with its rate since the first call, and what it comes to at that rate."""
    passed, left = (now - first) / _MINUTE, (end - now) / _MINUTE
    if passed < 1:
        return UsageBlock(start, end, is_running=True)
    ahead = left / passed
    cost = totals.cost
    return UsageBlock(
        start,
        end,
        is_running=True,
        tokens_per_minute=round(totals.tokens / passed, 2),
        cost_per_hour=per_hour(cost, first, now),
        projected_tokens=round(totals.tokens * (1 + ahead)),
        projected_cost=None if cost is None else rounded(float(cost) * (1 + ahead)),
    )


_MINUTE: Final = timedelta(minutes=1)


def _contents(by: UsageBy, then_by: UsageBy | None) -> tuple[str, ...]:
    blocks = (_BLOCKS,) if "block" in (by, then_by) else ()
    return (_CALLS, _SUBAGENTS.get(by, _SUBAGENTS_INCLUDED), _COST, *blocks)


_COVERED: Final = (
    "without their own token count: their agent counts whole sessions, and each total is in the sums as if all of"
    " it had been used at the end of the session"
)


def _omissions(totals: UsageTotals, unpriced: Sequence[str]) -> tuple[str, ...]:
    facts = (
        (totals.unknown_calls, "without any token count: they are in no sum"),
        (totals.lower_bound_calls, "whose output is known only as \u201cat least\u201d"),
        (totals.estimated_calls, "whose tokens are estimated"),
        (totals.covered_calls, _COVERED),
    )
    missing = tuple(f"{number:,} call{'' if number == 1 else 's'} {what}." for number, what in facts if number)
    return (*_unpriced(totals, unpriced), *missing)


def _unpriced(totals: UsageTotals, models: Sequence[str]) -> Iterator[str]:
    number = totals.unpriced_calls
    if number:
        things = f"call{'' if number == 1 else 's'}" + (" or totals of sessions" if totals.session_totals else "")
        names = f" ({', '.join(models)})" if models else ""
        yield f"{number:,} {things} without a known price: their tokens are counted, their cost is not{names}."


def _undated(number: int) -> Iterator[str]:
    if number:
        calls = "call has no time: it is" if number == 1 else "calls have no time: they are"
        yield f"{number:,} {calls} in no period, and not in these sums."


def to_csv(report: UsageReport) -> str:
    """The rows of a report as CSV (RFC 4180). Unknown values are empty; money is US dollars."""
    text = io.StringIO()
    # All names are quoted, so that a name stays one cell even in a spreadsheet that splits at semicolons.
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    columns = tuple(UsageTotals.__dataclass_fields__)
    inner = () if report.then_by is None else (report.then_by, f"{report.then_by} label")
    writer.writerow((report.by, "label", *inner, *columns))
    for names, totals in _csv_rows(report):
        numbers = (_cell(getattr(totals, name)) for name in columns)
        writer.writerow((*(csv_cell(name or "") for name in names), *numbers))
    return text.getvalue()


def _csv_rows(report: UsageReport) -> Iterator[tuple[tuple[str | None, ...], UsageTotals]]:
    """Names and totals of each row, or of each part if rows are divided: a column adds up to the whole."""
    for row in report.rows:
        if report.then_by is None:
            yield (row.name, row.label), row.totals
        for part in row.parts:
            yield (row.name, row.label, part.name, part.label), part.totals


def _cell(value: int | Decimal | None) -> str | int:
    return "" if value is None else f"{value:f}" if isinstance(value, Decimal) else value
