"""A process that reads logs into a store, pass after pass, for a server that must stay quick meanwhile.

`python -m turnlog.server.worker STORE SECONDS`: writes a JSON line for every step to standard output, and ends when its
standard input does, so that it never outlives the server that started it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from turnlog.errors import TurnlogError
from turnlog.server.reports import Began, Ended, Failed, Moved, Problem, Report
from turnlog.sync.scan import sync

SHARE_OF_TIME = 10
"""A pass that finds nothing is followed by a rest of this many times its length, so that looking stays cheap."""

REPORT_SECONDS = 0.1
"""Time between two reports of progress."""

PROBLEM_LIMIT = 100
"""Files that could not be read, in one report."""


class _StoppedError(Exception):
    """The server wants the process to end."""


def main() -> None:
    """Run until standard input ends."""
    store_path, seconds = Path(sys.argv[1]), float(sys.argv[2])
    # Ctrl-C in a terminal reaches every process; the server decides when this one stops.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
    output, sys.stdout = sys.stdout.buffer, sys.stderr
    stopped = threading.Event()
    threading.Thread(target=_wait_for_end, args=(sys.stdin.fileno(), stopped), daemon=True).start()
    keep_reading(store_path, seconds, stopped, lambda report: _write(output, report))


def keep_reading(store_path: Path, seconds: float, stopped: threading.Event, report: Callable[[Report], None]) -> None:
    """Make a pass, rest, and so on until `stopped`; a pass that fails is reported and tried again."""
    while not stopped.is_set():
        rest = seconds
        report(Began())
        try:
            summary = sync(store_path, on_progress=_Teller(stopped, report))
        except _StoppedError:
            return
        except (TurnlogError, OSError) as error:
            report(Failed(reason=str(error)))
        else:
            problems = [Problem(path=problem.path, reason=problem.reason) for problem in summary.problems]
            report(Ended(problems=problems[:PROBLEM_LIMIT]))
            if summary.changed == 0:
                rest = max(seconds, SHARE_OF_TIME * summary.seconds)
        stopped.wait(rest)


class _Teller:
    """Passes progress on, not too often, and ends the pass when the server wants it to."""

    def __init__(self, stopped: threading.Event, report: Callable[[Report], None]) -> None:
        self._stopped = stopped
        self._report = report
        self._phase = ""
        self._told = 0.0

    def __call__(self, phase: str, done: int, total: int) -> None:
        if self._stopped.is_set():
            raise _StoppedError
        now = time.monotonic()
        if phase != self._phase or now - self._told >= REPORT_SECONDS:
            self._phase, self._told = phase, now
            self._report(Moved(phase=phase, done=done, total=total))


def _wait_for_end(descriptor: int, ended: threading.Event) -> None:
    # Not by the buffered stream: its lock, held here, would stop the interpreter from ending by itself.
    while os.read(descriptor, 4096):
        pass
    ended.set()


def _write(output: BinaryIO, report: Report) -> None:
    output.write(msgspec.json.encode(report) + b"\n")
    output.flush()


if __name__ == "__main__":
    main()
