"""What an insights report contains: when the user works, what it costs where, and how tools and models behave.

Times are UTC with a time zone; money is US dollars, computed from prices. Null means unknown.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from turnlog.model import Fate
from turnlog.plain_text import csv_cell
from turnlog.store.dollars import Dollars
from turnlog.store.values import StoreValue, ToolUsage

LONGEST_LIST: Final = 50
"""Files and kinds of errors that a page lists at most; of commands, half as many by time, failures and calls each."""

Granularity: TypeAlias = Literal["day", "week"]


class ActivityHour(StoreValue, frozen=True):
    """What happened in one hour of one day of the week, over all weeks."""

    weekday: int
    """1 is Monday, 7 is Sunday."""
    hour: int
    """0 to 23."""
    prompts: int
    """What a person typed: prompts, commands and shell commands."""
    calls: int
    """Model calls, including those of subagents."""


class ProjectPeriod(StoreValue, frozen=True):
    """What one project used in one day or week."""

    period: str
    """The day, or the Monday of the week: `2026-11-20`."""
    project: str | None
    """The path of the project."""
    label: str | None
    sessions: int
    """Sessions with a model call in this period, without subagents."""
    calls: int
    cost: Dollars | None
    """Includes subagents; None if no call could be priced."""
    unpriced_calls: int
    """Calls that `cost` does not contain."""


class CommandFigures(StoreValue, frozen=True):
    """All calls that ran commands with the same head, such as `git push`."""

    command: str | None
    """The program and its subcommand. None: the call names no command, none of a program, or an earlier version stored
    it."""
    calls: int
    failed: int
    duration_ms: int
    """Sum over the calls with a known duration."""
    median_ms: float | None
    longest_ms: int | None
    unknown_durations: int
    longest_session_id: str | None
    """The session with the longest call, or the newest one if no duration is known."""
    longest_message_id: str | None


class EditedFile(StoreValue, frozen=True):
    """A file that calls changed."""

    path: str
    edits: int
    """Edits, deletions and moves that did not fail."""
    sessions: int
    last_at: datetime | None


class ModelFigures(StoreValue, frozen=True):
    """How one model was used. Figures per prompt are approximate: see `compared_sessions`."""

    model: str | None
    calls: int
    sessions: int
    cost: Dollars | None
    unpriced_calls: int
    """Calls that `cost` does not contain."""
    cache_share: float | None
    """The share of all input tokens that came from the cache, 0 to 1."""
    output_per_call: float | None
    """Output tokens, including reasoning, per call with known usage."""
    is_lower_bound: bool
    """Of some calls the output is known only as "at least"."""
    failed_tool_calls: int
    compared_sessions: int
    """The sessions from which the next two come: those of this model alone, without copies. They count whole, even if
    they began before the report's time, and without their subagents."""
    cost_per_prompt: Dollars | None
    """None if no such session has a known cost."""
    steps_per_prompt: float | None
    """Model calls from a prompt to the next."""


class SubagentShare(StoreValue, frozen=True):
    """What subagents have of the whole."""

    sessions: int
    calls: int
    total_calls: int
    cost: Dollars | None
    total_cost: Dollars | None
    share: float | None
    """Of the known cost, 0 to 1."""


class CompactionFigures(StoreValue, frozen=True):
    """How often an agent replaced its context by a summary."""

    agent: str
    trigger: str | None
    """In the agent's words: `auto`, `manual`."""
    compactions: int
    sessions: int
    median_tokens_before: float | None
    """Tokens in the context before; None if no record says so."""


class ErrorFigures(StoreValue, frozen=True):
    """Errors outside of tool calls, as an agent records them: model calls that failed, limits, hooks."""

    agent: str
    kind: str | None
    """In the agent's words: `rate_limit`."""
    label: str | None
    """What the kind is in plain words; None if it has none, and for an agent's word that is not known."""
    status: int | None
    """HTTP status."""
    is_limit: bool
    """A rate or usage limit, according to its status, kind or text."""
    errors: int
    sessions: int
    last_at: datetime | None
    last_session_id: str | None
    last_message_id: str | None
    """The message in the place of the answer; None if the last one is an event."""


_ERROR_LABELS: Final = {
    **dict.fromkeys(("api", "api_error", "api_req_failed", "APIError", "stream"), "model request failed"),
    **dict.fromkeys(("stream_error", "response_stream_disconnected"), "connection lost"),
    **dict.fromkeys(("http_connection_failed", "response_stream_connection_failed"), "no connection"),
    **dict.fromkeys(("overloaded", "overloaded_error", "server_overloaded"), "service overloaded"),
    **dict.fromkeys(("server_error", "internal_server_error"), "service failed"),
    **dict.fromkeys(("rate_limit", "rate_limit_error"), "rate limit reached"),
    **dict.fromkeys(("authentication_failed", "authentication_error", "ProviderAuthError"), "not signed in"),
    **dict.fromkeys(("invalid_request", "invalid_request_error", "bad_request"), "request refused"),
    **dict.fromkeys(("context_window_exceeded", "ContextOverflowError"), "context too long"),
    **dict.fromkeys(("max_output_tokens", "MessageOutputLengthError"), "answer too long"),
    **dict.fromkeys(("error", "unknown", "other", "UnknownError", "cli"), "error of no known kind"),
    "response_too_many_failed_attempts": "too many retries",
    "usage_limit_exceeded": "usage limit reached",
    "unauthorized": "not signed in",
    "billing_error": "payment needed",
    "condense_context_error": "compaction failed",
    "diff_error": "edit could not be applied",
    "sandbox_error": "sandbox failed",
    "hook": "hook failed",
    "subagent": "subagent failed",
    "turn": "turn failed",
}
"""A kind of error, in an agent's words -> what it is in plain words."""


_IGNORED_FILE: Final = "ignore_error"
"""The end of a kind that is named after an agent's list of files that it must not open, such as `.rooignore`."""


def error_label(kind: str | None) -> str | None:
    """What a kind of error is in plain words; None for a kind that is not known here, and for none."""
    if kind is not None and kind.endswith(_IGNORED_FILE):
        return "file not allowed"
    return None if kind is None else _ERROR_LABELS.get(kind)


class ContextStep(StoreValue, frozen=True):
    """A model call of one session, with the size of what the model was sent."""

    position: int
    message_id: str
    turn: int | None
    created_at: datetime | None
    model: str | None
    context: int | None
    """Tokens of everything that was sent, from the cache or not."""
    cached: int | None
    """Those of them that came from the cache."""
    output: int | None
    """Includes reasoning."""
    is_compacted: bool
    """Since the step before, the context was replaced by a summary."""
    fate: Fate


class Insights(StoreValue, frozen=True, kw_only=True):
    """An insights report. Each list is empty if there is nothing to report."""

    zone: str
    """The time zone of hours, days and weeks: `UTC`, `Europe/Berlin`, or `local` for this machine's."""
    granularity: Granularity
    """Of `projects`: days up to three months, else weeks."""
    activity: list[ActivityHour]
    undated_calls: int
    """Model calls without a time, which neither `activity` nor `projects` contains."""
    projects: list[ProjectPeriod]
    tools: list[ToolUsage]
    commands: list[CommandFigures]
    """By time. If not all are listed: those with the most time, those with the most failures and the most called."""
    commands_found: int
    """How many there are, listed or not."""
    files: list[EditedFile]
    """The most edited ones first."""
    files_found: int
    models: list[ModelFigures]
    subagents: SubagentShare
    compactions: list[CompactionFigures]
    errors: list[ErrorFigures]
    """The most frequent ones first."""
    errors_found: int
    notes: list[str]
    """Sentences about what is approximate or left out."""


Section: TypeAlias = Literal[
    "activity", "projects", "tools", "commands", "files", "models", "subagents", "compactions", "errors"
]

SECTIONS: Final[tuple[Section, ...]] = (
    *("activity", "projects", "tools", "commands", "files", "models", "subagents", "compactions", "errors"),
)


def section_rows(report: Insights, section: Section) -> list[StoreValue]:
    """The rows of one section."""
    found: Any = getattr(report, section)
    return [found] if isinstance(found, StoreValue) else list(found)


_ROWS: Final[dict[Section, type[StoreValue]]] = {
    "activity": ActivityHour,
    "projects": ProjectPeriod,
    "tools": ToolUsage,
    "commands": CommandFigures,
    "files": EditedFile,
    "models": ModelFigures,
    "subagents": SubagentShare,
    "compactions": CompactionFigures,
    "errors": ErrorFigures,
}


def to_csv(report: Insights, section: Section) -> str:
    """One section as CSV (RFC 4180), one column a field. Unknown values are empty; money is US dollars."""
    return _csv(_ROWS[section], section_rows(report, section))


def context_to_csv(steps: Iterable[ContextStep]) -> str:
    """The steps of a session as CSV, as `to_csv` writes sections."""
    return _csv(ContextStep, steps)


def _csv(kind: type[StoreValue], rows: Iterable[StoreValue]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    columns = kind.__struct_fields__
    writer.writerow(columns)
    writer.writerows(_cells(row, columns) for row in rows)
    return text.getvalue()


def _cells(row: StoreValue, columns: Iterable[str]) -> list[Any]:
    return [_cell(getattr(row, name)) for name in columns]


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Dollars):
        return f"{value:f}"
    # A text that begins like a formula would be executed by a spreadsheet.
    return csv_cell(value) if isinstance(value, str) else value
