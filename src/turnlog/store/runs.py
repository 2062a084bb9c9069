"""Runs: what was started through turnlog, how it went, and which session its log tells of.

Not derived from logs: no pass and no rebuild changes a run, and only forgetting its session removes it. A run names its
session by id and has no part in the session's totals. Starting, watching and linking runs is `turnlog.runs`.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from turnlog.model.usage import Usage
from turnlog.store.base import RunStatus

RunOrigin: TypeAlias = Literal["command", "runtime", "import"]
"""`turnlog run`, a runtime of a chat, or a record of another program that was imported."""

UNFINISHED: Final = ("pending", "running")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of an agent. What is None is not known."""

    id: str
    origin: RunOrigin
    status: RunStatus
    created_at: datetime
    agent: str | None = None
    session_id: str | None = None
    """The session that the run made or went on with; before its log is read, the one that its command names."""
    command: tuple[str, ...] = ()
    """The program and its arguments."""
    cwd: str | None = None
    prompt: str | None = None
    model: str | None = None
    system_prompt: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    """Negative: the number of the signal that ended it."""
    error: str | None = None
    """Why it failed."""
    result: str | None = None
    """The last words of the agent."""
    log_path: str | None = None
    log_problem: str | None = None
    """Why the log was not read, or the session is not known. Such a run has not failed for that."""
    usage: Usage | None = None
    """All model calls of the run, those of its subagents included."""
    cost: Decimal | None = None
    """US dollars, priced; None when no call could be priced."""
    tool_calls: int | None = None
    """Those of its subagents included."""
    pid: int | None = None
    """The process that watches over the run: while it lives, the run goes on."""
    boot_id: str | None = None
    """The boot of the machine in which `pid` is a process."""
    process_start: str | None = None
    """When that process began, in the machine's own words: the system may give the same pid to a later process."""
    metadata: dict[str, Any] = {}
    """What another program recorded of it besides, under its own names."""

    @property
    def is_finished(self) -> bool:
        """Whether it has ended."""
        return self.status not in UNFINISHED


class RunFacts(NamedTuple):
    """What the messages of a session say of one run."""

    prompt: str | None = None
    """The first prompt."""
    model: str | None = None
    """The model that wrote the last assistant message."""
    result: str | None = None
    """The text of the last assistant message that has any."""
    error: str | None = None
    """Of the last assistant message, when that was one."""
    usage: Usage | None = None
    cost: Decimal | None = None
    """US dollars, priced; None when no call could be priced."""
    tool_calls: int = 0
