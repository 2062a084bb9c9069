"""The process that reads logs beside the server, and how far it is, as `/api/status` shows it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from turnlog.server.responses import SyncProblem, SyncProgress
from turnlog.server.worker import PassBegan, PassEnded, PassFailed, PassMoved, Report, StoreSaved


class PassProgress:
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


PASS_SECONDS = 60.0
"""Time between two passes over everything; in between, files are read as they are written."""

STOP_SECONDS = 5.0
"""How long a pass may take to notice that it should end. Killing it then harms nothing: it commits or it does not."""

_decoder = msgspec.json.Decoder(Report)


class Background:
    """The process that reads logs, and a thread that listens to it."""

    def __init__(
        self,
        store_path: Path,
        progress: PassProgress,
        seconds: float = PASS_SECONDS,
        on_saved: Callable[[], None] = lambda: None,
    ) -> None:
        """Start nothing yet. `on_saved` is called after each commit, on the thread that listens."""
        self._command = [sys.executable, "-m", "turnlog.server.worker", str(store_path), str(seconds)]
        self._progress = progress
        self._on_saved = on_saved
        self._process: subprocess.Popen[bytes] | None = None
        self._listener: threading.Thread | None = None

    def start(self) -> None:
        """Begin the first pass."""
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listener.start()

    def stop(self) -> None:
        """End the process, in the middle of a pass too, and wait until it is gone. Does nothing when none runs."""
        process, listener = self._process, self._listener
        if process is None or listener is None:
            return
        self._process = None
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        listener.join()
        self._progress.stop()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._take(_decoder.decode(line))
        if self._process is not None:
            self._progress.fail(f"the process that reads logs ended with status {process.wait()}")

    def _take(self, report: Report) -> None:
        match report:
            case PassBegan():
                self._progress.begin()
            case PassMoved(phase=phase, done=done, total=total):
                self._progress.advance(phase, done, total)
            case StoreSaved():
                self._on_saved()
            case PassEnded(problems=problems):
                self._progress.end(problems)
            case PassFailed(reason=reason):
                self._progress.fail(reason)
