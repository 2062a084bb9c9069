"""The fixed words of the store's queries and values: orders, groupings, periods, statuses.

They are below the protocol and the values, which both use them, and import nothing: a usage report must start fast.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

SessionSort: TypeAlias = Literal["updated", "created", "cost", "tokens", "messages"]
"""Each order begins with the newest, most expensive or largest; sessions without that value come last."""

SessionHaving: TypeAlias = Literal["compaction", "error", "failed-call", "subagent"]
"""What a session or one of its subagents had. An error is one outside of tool calls, a failed call one of a tool that
ended in an error."""

SessionStatus: TypeAlias = Literal["running", "waiting", "done", "failed", "stopped", "killed", "idle"]
"""The states of sessions as people read them.

`idle` is `quiet`, `stopped` is `done` by an interrupt, `failed` by an error."""

UsageBy: TypeAlias = Literal[
    "hour", "day", "week", "month", "block", "model", "project", "session", "agent", "subagent"
]
"""A week begins on Monday. A block is one of the five-hour windows of Claude's limits.

`subagent` has a row for each subagent, and one without a name for everything else."""

BudgetPeriod: TypeAlias = Literal["day", "week", "month"]

RunStatus: TypeAlias = Literal["pending", "running", "completed", "failed", "cancelled"]

SESSION_SORTS: tuple[SessionSort, ...] = get_args(SessionSort)

SESSION_HAVINGS: tuple[SessionHaving, ...] = get_args(SessionHaving)

SESSION_STATUSES: tuple[SessionStatus, ...] = get_args(SessionStatus)

USAGE_BY: tuple[UsageBy, ...] = get_args(UsageBy)

RUN_STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)
