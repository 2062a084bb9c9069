"""Where the background's reading of logs stands, as `/api/status` tells it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from turnlog.server.responses import SyncProblem, SyncProgress


class Progress:
    """The newest `SyncProgress`; written by one thread, read by all."""

    def __init__(self) -> None:
        """Start with nothing going on."""
        self._now = SyncProgress()

    def current(self) -> SyncProgress:
        """What is known now."""
        return self._now

    def begin(self) -> None:
        """A pass begins."""
        self._change(state="running", phase=None, done=0, total=0, started_at=datetime.now(UTC))

    def advance(self, phase: str, done: int, total: int) -> None:
        """The pass is in this phase, and so far in it."""
        self._change(state="running", phase=phase, done=done, total=total)

    def end(self, problems: list[SyncProblem]) -> None:
        """The pass is over."""
        self._finish(state="waiting", error=None, problems=problems)

    def fail(self, reason: str) -> None:
        """The pass could not be finished."""
        self._finish(state="failed", error=reason)

    def stop(self) -> None:
        """No pass will follow."""
        self._change(state="off", phase=None)

    def _finish(self, **facts: Any) -> None:
        self._change(phase=None, done=0, total=0, passes=self._now.passes + 1, ended_at=datetime.now(UTC), **facts)

    def _change(self, **facts: Any) -> None:
        self._now = msgspec.structs.replace(self._now, **facts)
