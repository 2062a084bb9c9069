"""Tool calls: their kinds, their states with the one transition table, and how a result changes them.

`advance()` is the only judge of a state change. Aborted is not failed is not denied, here and everywhere.
The states up to `output-denied` are AI SDK's (R-S10); `aborted` is ours (R-K9) and has no AI SDK twin.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Literal

from turnlog.model.base import Value


class ToolKind(StrEnum):
    """What a tool does, whatever its agent calls it (the kinds of the Agent Client Protocol)."""

    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    SUBAGENT = "subagent"
    ASK = "ask"
    SWITCH_MODE = "switch_mode"
    OTHER = "other"


class ToolState(StrEnum):
    """Where a call stands. The last four are final, though a later result may still replace a final state."""

    INPUT_STREAMING = "input-streaming"
    INPUT_AVAILABLE = "input-available"
    APPROVAL_REQUESTED = "approval-requested"
    APPROVAL_RESPONDED = "approval-responded"
    OUTPUT_AVAILABLE = "output-available"
    OUTPUT_ERROR = "output-error"
    OUTPUT_DENIED = "output-denied"
    ABORTED = "aborted"


_OUTCOMES = frozenset({ToolState.OUTPUT_AVAILABLE, ToolState.OUTPUT_ERROR, ToolState.OUTPUT_DENIED, ToolState.ABORTED})

OPEN_STATES = frozenset(ToolState) - _OUTCOMES
"""What has neither an output nor an end."""

TRANSITIONS: dict[ToolState, frozenset[ToolState]] = {
    ToolState.INPUT_STREAMING: frozenset({ToolState.INPUT_AVAILABLE}) | _OUTCOMES,
    ToolState.INPUT_AVAILABLE: frozenset({ToolState.APPROVAL_REQUESTED}) | _OUTCOMES,
    ToolState.APPROVAL_REQUESTED: frozenset({ToolState.APPROVAL_RESPONDED}) | _OUTCOMES,
    ToolState.APPROVAL_RESPONDED: _OUTCOMES,
    # An async call answers twice ("launched", then its report), and a preliminary output precedes the final one.
    ToolState.OUTPUT_AVAILABLE: _OUTCOMES,
    ToolState.OUTPUT_ERROR: _OUTCOMES,
    ToolState.OUTPUT_DENIED: frozenset(),
    # A killed agent may come back: the next run appends a late result for the call it had left open.
    ToolState.ABORTED: _OUTCOMES,
}
"""From each state, the states that may follow. Staying in a state is always allowed."""


def can_advance(current: ToolState, following: ToolState) -> bool:
    """Whether `following` may come after `current`."""
    return following == current or following in TRANSITIONS[current]


def advance(current: ToolState, following: ToolState) -> ToolState:
    """Return `following`; raise ValueError when the table does not allow it after `current`."""
    if not can_advance(current, following):
        raise ValueError(f"a tool call cannot go from {current} to {following}")
    return following


ResultStatus = Literal["success", "error", "aborted", "denied"]

STATE_OF_STATUS: dict[ResultStatus, ToolState] = {
    "success": ToolState.OUTPUT_AVAILABLE,
    "error": ToolState.OUTPUT_ERROR,
    "aborted": ToolState.ABORTED,
    "denied": ToolState.OUTPUT_DENIED,
}


class Approval(Value, frozen=True, kw_only=True):
    """Who allowed or refused a call, and why, as far as the log says."""

    id: str | None = None
    approved: bool | None = None
    """None while the question is open."""
    source: str | None = None
    """What decided: `config`, `user`, `hook`, … in the agent's own word."""
    reason: str | None = None
    metadata: dict[str, Any] = {}


def state_after(current: ToolState, statuses: Iterable[ResultStatus]) -> ToolState:
    """The state of a call after results of these statuses: that of the last one that the table allows."""
    for status in statuses:
        following = STATE_OF_STATUS[status]
        if can_advance(current, following):
            current = following
    return current
