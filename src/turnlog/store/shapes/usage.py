"""What was used, and by what."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal, NamedTuple, TypeAlias

UsageBy: TypeAlias = Literal["day", "model", "project", "session", "agent", "subagent"]
"""`subagent`: a row for each subagent, and one without a name for all that no subagent did."""


class UsageFilter(NamedTuple):
    """Whose usage. Days are UTC; `since` is the first day and `until` the first that is out."""

    since: datetime | None = None
    until: datetime | None = None
    agent: str | None = None
    project: str | None = None
    model: str | None = None
    session: str | None = None
    user: str | None = None
    team: str | None = None
    task: str | None = None


class UsageTotals(NamedTuple):
    """Tokens and money of many model calls, and what these sums do not contain."""

    calls: int = 0
    unknown_calls: int = 0
    """Calls without any token count; they are in no sum."""
    unpriced_calls: int = 0
    """Calls with tokens for which no price is known; they are not in `cost`."""
    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    tool_prompt: int = 0
    lower_bound_calls: int = 0
    """Calls whose output the log states only as "at least"."""
    cost: Decimal | None = None
    """US dollars, priced; None when no call could be priced."""
    reported_cost: Decimal | None = None
    """US dollars as the agents wrote them at single calls, never added to `cost`; None when they wrote none."""

    @property
    def tokens(self) -> int:
        """All tokens that are known."""
        return sum(self[3:11])


class UsageRow(NamedTuple):
    """The usage of one day (`2026-11-20`), model, project (path), session (id), agent or subagent (session id)."""

    name: str | None
    """None where the log does not tell, and for what no subagent did."""
    totals: UsageTotals
    label: str | None = None
    """What people call it, where that is not the name: a project's or session's title."""


class UsageReport(NamedTuple):
    """Usage by something, and in all."""

    by: UsageBy
    rows: tuple[UsageRow, ...]
    totals: UsageTotals


class ProjectSummary(NamedTuple):
    """A project and how much of it there is (subagents not counted)."""

    path: str
    name: str
    sessions: int
    updated_at: datetime | None


class ModelSummary(NamedTuple):
    """A model and how often it was called."""

    name: str
    calls: int
    sessions: int


class AgentSummary(NamedTuple):
    """An agent and how much of it there is."""

    agent: str
    sessions: int
    subagents: int
    sources: int
    updated_at: datetime | None


ALL_USAGE = UsageFilter()
