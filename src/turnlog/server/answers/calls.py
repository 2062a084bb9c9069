"""Tool calls, one by one and counted by tool."""

from __future__ import annotations

from datetime import datetime

from turnlog.server.answers.base import Answer


class ToolCall(Answer, frozen=True, kw_only=True):
    """A tool call as lists show it."""

    tool_call_id: str
    tool_name: str
    kind: str
    state: str
    message_id: str
    session_id: str
    position: int
    agent: str
    started_at: datetime | None
    completed_at: datetime | None
    duration_ms: int | None
    exit_code: int | None
    path: str | None
    input_size: int
    output_size: int


class ToolCallPage(Answer, frozen=True, kw_only=True):
    """A piece of the list of tool calls."""

    items: list[ToolCall]
    next_cursor: str | None


class ToolUsage(Answer, frozen=True, kw_only=True):
    """How often a tool was called, and how that ended."""

    tool_name: str
    kind: str
    calls: int
    failed: int
    denied: int
    aborted: int
    unanswered: int
    duration_ms: int
    unknown_durations: int


class ToolsAnswer(Answer, frozen=True, kw_only=True):
    """All tools, the most called first."""

    items: list[ToolUsage]
