"""What was started through turnlog."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from turnlog.model import Usage
from turnlog.server.answers.base import Answer
from turnlog.store import runs as stored


class Run(Answer, frozen=True, kw_only=True):
    """What was started through turnlog, and how it went."""

    id: str
    origin: stored.RunOrigin
    status: stored.RunStatus
    agent: str | None
    session_id: str | None
    command: list[str]
    cwd: str | None
    prompt: str | None
    model: str | None
    system_prompt: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None
    """Negative: the number of the signal that ended it."""
    error: str | None
    result: str | None
    log_path: str | None
    log_problem: str | None
    """Why its log was not read."""
    tokens: int | None
    usage: Usage | None
    cost: float | None
    """US dollars."""
    tool_calls: int | None
    pid: int | None
    boot_id: str | None
    metadata: dict[str, Any]

    @classmethod
    def of_run(cls, run: stored.Run) -> Self:
        """Make it of what the store has."""
        return cls.of(
            run,
            command=list(run.command),
            tokens=run.usage.total if run.usage else None,
            cost=None if run.cost is None else float(run.cost),
        )


class PromptAnswer(Answer, frozen=True, kw_only=True):
    """Whether a session goes on from the page."""

    can_go_on: bool
    """Whether it may: the server takes prompts, and the agent goes on with sessions."""
    can_ask: bool
    """Whether its agent can request permission here; one that cannot does without what its settings do not allow."""
    running: bool
    """Whether its agent answers a prompt."""
    problem: str | None
    """Why the last prompt failed."""
    permission_requests: list[PermissionRequest]
    """Its open permission requests, oldest first."""


class PermissionRequest(Answer, frozen=True, kw_only=True):
    """A tool call for which the agent requests permission."""

    id: str
    tool_call_id: str
    tool_name: str | None
    input: Any
    """Its arguments; null if the agent gives none."""
    reason: str | None
    """Why the agent wants to make the call, in its words."""


class RunPage(Answer, frozen=True, kw_only=True):
    """A piece of the list of runs."""

    items: list[Run]
    next_cursor: str | None
    total: int
