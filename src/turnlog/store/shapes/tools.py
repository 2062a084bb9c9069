"""Tool calls in lists, and how much was called and thought."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from turnlog.model import ToolKind, ToolState


class ToolCallFilter(NamedTuple):
    """Which tool calls; what is None does not matter."""

    tool: str | None = None
    kind: ToolKind | str | None = None
    state: ToolState | str | None = None
    failed: bool | None = None
    """True: ended in an error (`output-error`). An aborted or denied call did not fail."""
    since: datetime | None = None
    until: datetime | None = None
    project: str | None = None
    session: str | None = None
    path: str | None = None
    """The file that the call read or wrote."""
    agent: str | None = None


class ToolCall(NamedTuple):
    """A tool call as lists show it, without its input and output; `Store.message` has those."""

    tool_call_id: str
    tool_name: str
    kind: str
    state: str
    message_id: str
    session_id: str
    """The session that pays for the message; copies in forks are not listed again."""
    position: int
    agent: str
    started_at: datetime | None = None
    completed_at: datetime | None = None
    duration_ms: int | None = None
    exit_code: int | None = None
    path: str | None = None
    input_size: int = 0
    """Characters of the input (of JSON: bytes)."""
    output_size: int = 0


class ToolUsage(NamedTuple):
    """How often a tool was called and how that ended (R-S41)."""

    tool_name: str
    kind: str
    calls: int
    failed: int
    denied: int
    aborted: int
    unanswered: int
    """Calls that have no final result."""
    duration_ms: int
    """Sum over the calls whose duration is known."""
    unknown_durations: int


class ReasoningVolume(NamedTuple):
    """How much was thought (R-S41)."""

    parts: int
    characters: int
    """Visible ones; withheld reasoning has none."""
    messages: int
    tokens: int
    """Counted apart from output; where a log does not tell them apart they are in `output`."""


EVERY_TOOL_CALL = ToolCallFilter()
