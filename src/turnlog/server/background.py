"""The process that syncs next to the server, and its progress, which `/api/status` shows."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from turnlog.platforms.processes import in_own_group
from turnlog.server.reports import (
    SAMPLE,
    PassBegan,
    PassEnded,
    PassFailed,
    PassMoved,
    Report,
    SessionSought,
    StoreSaved,
    SyncProblem,
    SyncProgress,
)


class PassProgress:
    """The newest `SyncProgress`; one thread writes it, all read it."""

    def __init__(self) -> None:
        """Start with nothing going on."""
        self._now = SyncProgress()

    def current(self) -> SyncProgress:
        """The progress now."""
        return self._now

    def begin(self) -> None:
        """A sync begins."""
        self._change(state="running", phase=None, done=0, total=0, started_at=datetime.now(UTC))

    def advance(self, phase: str, done: int, total: int) -> None:
        """The sync has reached this point of a phase."""
        self._change(state="running", phase=phase, done=done, total=total)

    def end(self, problems: list[SyncProblem]) -> None:
        """The sync is complete."""
        self._finish(state="waiting", error=None, problems=problems)

    def fail(self, reason: str) -> None:
        """The sync failed."""
        self._finish(state="failed", error=reason)

    def stop(self) -> None:
        """No sync will follow."""
        self._change(state="off", phase=None)

    def _finish(self, **facts: Any) -> None:
        self._change(phase=None, done=0, total=0, passes=self._now.passes + 1, ended_at=datetime.now(UTC), **facts)

    def _change(self, **facts: Any) -> None:
        self._now = msgspec.structs.replace(self._now, **facts)


PASS_SECONDS = 60.0
"""Seconds between two complete syncs; in between, files are read when they are written."""

STOP_SECONDS = 5.0
"""Seconds that a sync may take to end. Killing it afterwards is harmless: a transaction commits or it does not."""

FIRST_PAUSE_SECONDS = 5.0
"""Seconds until a process that ended by itself is started again; each time twice as many, up to the most."""

MOST_PAUSE_SECONDS = 300.0
"""After so many seconds of work, the next pause is the first one again."""

_decoder = msgspec.json.Decoder(Report)


WAIT_SECONDS = 10.0
"""Seconds that a request waits for a session that is read next."""

MOST_WAITING = 8
"""Requests that wait at once: each occupies a thread of the server."""


class Background:
    """The process that syncs, and a thread that reads its reports and starts it again if it ends by itself."""

    def __init__(
        self,
        store_path: Path,
        progress: PassProgress,
        seconds: float = PASS_SECONDS,
        on_saved: Callable[[], None] = lambda: None,
        *,
        sample: bool = False,
    ) -> None:
        """Start nothing yet. A `sample` is read once, and its process ends."""
        self.on_saved = on_saved
        """Called after each commit, on the thread that reads reports."""
        self._command = [sys.executable, "-P", "-m", "turnlog.server.worker", str(store_path)]
        self._command.append(SAMPLE if sample else str(seconds))
        self._progress = progress
        self._process: subprocess.Popen[bytes] | None = None
        self._listener: threading.Thread | None = None
        self._sought: dict[str, Future[bool]] = {}
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    def read_next(self, session_id: str) -> bool:
        """Have a session read that no pass has read yet, and wait for it; returns whether a log of it was found."""
        process, now = self._process, self._progress.current()
        if process is None or process.stdin is None or not (now.state == "running" or now.passes == 0):
            return False
        if "\n" in session_id:  # the process would take it for two
            return False
        with self._lock:
            if session_id not in self._sought and len(self._sought) >= MOST_WAITING:
                return False
            answer = self._sought.setdefault(session_id, Future())
        try:
            process.stdin.write(session_id.encode(errors="surrogateescape") + b"\n")
            process.stdin.flush()
            return answer.result(WAIT_SECONDS)
        except (OSError, ValueError, TimeoutError):
            return False
        finally:
            with self._lock:
                self._sought.pop(session_id, None)

    def start(self) -> None:
        """Start the first sync."""
        self._stopping.clear()
        self._progress.begin()
        self._process = self._started()
        self._listener = threading.Thread(target=self._run, args=(self._process,), daemon=True)
        self._listener.start()

    def stop(self) -> None:
        """End the process, even during a sync, and wait for it. Does nothing if none runs."""
        listener = self._listener
        if listener is None:
            return
        with self._lock:  # or another one would be started just now
            self._stopping.set()
            process, self._process, self._listener = self._process, None, None
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        listener.join()
        self._progress.stop()

    def _started(self) -> subprocess.Popen[bytes]:
        # Ctrl-C in the terminal is the server's: it ends this one, which may still be importing.
        return subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **in_own_group())

    def _run(self, process: subprocess.Popen[bytes]) -> None:
        """Listen to one process after the other: the system may end one that takes much memory."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            began = time.monotonic()
            self._listen(process)
            if self._stopping.is_set():
                return
            status = process.wait()
            if status == 0:  # the sample is read
                self._progress.stop()
                return
            self._progress.fail(f"the process that reads logs ended with status {status}")
            if time.monotonic() - began > MOST_PAUSE_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            self._stopping.wait(pause)
            pause = min(2 * pause, MOST_PAUSE_SECONDS)
            with self._lock:
                if self._stopping.is_set():
                    return
                assert process.stdin is not None
                with suppress(OSError):  # what was written to it last went nowhere
                    process.stdin.close()
                process = self._process = self._started()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._take(_decoder.decode(line))
        with self._lock:
            for answer in self._sought.values():
                if not answer.done():
                    answer.set_result(False)

    def _take(self, report: Report) -> None:
        match report:
            case PassBegan():
                self._progress.begin()
            case PassMoved(phase=phase, done=done, total=total):
                self._progress.advance(phase, done, total)
            case StoreSaved():
                self.on_saved()
            case SessionSought(session_id=session_id, found=found):
                with self._lock:
                    answer = self._sought.get(session_id)
                if answer is not None and not answer.done():
                    answer.set_result(found)
            case PassEnded(problems=problems):
                self._progress.end(problems)
            case PassFailed(reason=reason):
                self._progress.fail(reason)
