"""A process that syncs logs into a store as they are written, so that the server stays responsive.

`python -m turnlog.server.worker STORE SECONDS` writes a JSON line for every step to standard output. A line of its
standard input is the id of a session that is to be read next. It ends when its standard input does, so that it never
outlives the server that started it. With `sample` instead of seconds it reads the bundled sample once, and ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Set
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from turnlog.errors import TurnlogError
from turnlog.platforms.processes import lower_priority
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
)
from turnlog.store.connection import Checkpointer
from turnlog.store.search.base import search_path
from turnlog.sync.syncer import Syncer
from turnlog.sync.wanted import WantedSessions
from turnlog.sync.watcher import Watcher

SHARE_OF_TIME = 10
"""After a sync that found nothing, the process sleeps for this many times its duration."""

UNWATCHED_SECONDS = 2.0
"""Minimum seconds between two syncs if only syncs notice changes, and after a failure."""

LONG_READ_SECONDS = 0.02
"""After a read that took longer, the process sleeps for as long: a session that is read whole each time it grows, such
as a database's, may be written all the time."""

NOT_WATCHED = "not watched, since a limit of the system is reached: changes are found by passes, some seconds late"

REPORT_SECONDS = 0.1
"""Seconds between two reports of progress."""

PROBLEM_LIMIT = 100
"""Maximum number of unreadable files in one report."""


class _StoppedError(BaseException):
    """The server wants the process to end.

    No `Exception`: what fails while a log is read would be noted as a problem of the log, and the next one be read.
    """


def main() -> None:
    """Run until standard input ends."""
    store_path = Path(sys.argv[1])
    # Ctrl-C in a terminal reaches every process; the server decides when this one stops.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lower_priority(5)
    output, sys.stdout = sys.stdout.buffer, sys.stderr
    stopped = threading.Event()

    def report(made: Report) -> None:
        _write(output, made)

    if sys.argv[2] == SAMPLE:
        threading.Thread(target=_take_input, args=(sys.stdin.fileno(), str, stopped.set), daemon=True).start()
        with suppress(_StoppedError):
            _read_sample(store_path, stopped, report)
        return
    seconds = float(sys.argv[2])
    wanted = WantedSessions(lambda session_id, found: report(SessionSought(session_id=session_id, found=found)))
    with _open_watcher(report) as watcher:

        def stop() -> None:
            stopped.set()
            watcher.wake()

        threading.Thread(target=_take_input, args=(sys.stdin.fileno(), wanted.add, stop), daemon=True).start()
        with suppress(_StoppedError):
            keep_reading(store_path, seconds, watcher, stopped, report, wanted)


def _read_sample(store_path: Path, stopped: threading.Event, report: Callable[[Report], None]) -> None:
    from turnlog.server.sample import read_sample

    def tell_saved(_sessions: Set[str], last_change: int) -> None:
        report(StoreSaved(sequence=last_change))

    report(PassBegan())
    try:
        read_sample(store_path, on_saved=tell_saved, on_progress=_Progress(stopped, report))
    except (TurnlogError, OSError) as error:
        report(PassFailed(reason=str(error)))
    else:
        report(PassEnded(problems=[]))


def _open_watcher(report: Callable[[Report], None]) -> Watcher:
    try:
        return Watcher()
    except TurnlogError as error:
        report(PassFailed(reason=str(error)))
        return Watcher(backend="passes")


def keep_reading(
    store_path: Path,
    seconds: float,
    watcher: Watcher,
    stopped: threading.Event,
    report: Callable[[Report], None],
    wanted: WantedSessions,
) -> None:
    """Sync, follow the watcher, and so on until `stopped`.

    Failures are reported, and tried again.
    """
    with Checkpointer([store_path, search_path(store_path)]) as checkpointer:

        def tell_saved(_sessions: Set[str], last_change: int) -> None:
            report(StoreSaved(sequence=last_change))
            checkpointer.note()

        while not stopped.is_set():
            report(PassBegan())
            rest = seconds
            try:
                with Syncer(store_path, on_saved=tell_saved, own_checkpoints=False, wanted=wanted) as syncer:
                    rest = _make_pass(syncer, seconds, watcher, _Progress(stopped, report), report)
                    _follow(syncer, watcher, rest, stopped)
            except _StoppedError:
                return
            except (TurnlogError, OSError) as error:
                report(PassFailed(reason=str(error)))
                watcher.wait(min(rest, UNWATCHED_SECONDS))


def _make_pass(
    syncer: Syncer, seconds: float, watcher: Watcher, teller: _Progress, report: Callable[[Report], None]
) -> float:
    """Sync everything; return the seconds until the next complete sync."""
    if not syncer.has_read():
        # To watch ten thousand folders takes a third of a second, for which the newest sessions do not wait. The next
        # scan finds what is written during this one.
        syncer.scan(on_progress=teller)
    watcher.cover()
    summary = syncer.scan(on_progress=teller)
    problems = [SyncProblem(path=problem.path, reason=problem.reason) for problem in summary.problems]
    problems += [SyncProblem(path=folder, reason=NOT_WATCHED) for folder in watcher.unwatched_folders]
    report(PassEnded(problems=problems[:PROBLEM_LIMIT]))
    syncer.warm_up()
    if not watcher.is_complete:
        seconds = min(seconds, UNWATCHED_SECONDS)
    return max(seconds, SHARE_OF_TIME * summary.seconds) if summary.changed == 0 else seconds


def _follow(syncer: Syncer, watcher: Watcher, seconds: float, stopped: threading.Event) -> None:
    """Read changes until the next complete sync is due or necessary; that one reports files that could not be read."""
    end = time.monotonic() + seconds
    while not stopped.is_set():
        woken = watcher.wait(end - time.monotonic())
        if woken.needs_pass or not woken.paths:
            return
        summary = watcher.read(syncer, woken.paths)
        if summary.seconds > LONG_READ_SECONDS:
            stopped.wait(summary.seconds)


class _Progress:
    """Reports progress, not too often, and ends the sync when the server wants it to."""

    def __init__(self, stopped: threading.Event, report: Callable[[Report], None]) -> None:
        self._stopped = stopped
        self._report = report
        self._phase = ""
        self._reported_at = 0.0

    def __call__(self, phase: str, done: int, total: int) -> None:
        if self._stopped.is_set():
            raise _StoppedError
        now = time.monotonic()
        if phase != self._phase or now - self._reported_at >= REPORT_SECONDS:
            self._phase, self._reported_at = phase, now
            self._report(PassMoved(phase=phase, done=done, total=total))


def _take_input(descriptor: int, want: Callable[[str], None], end: Callable[[], None]) -> None:
    # Not through the buffered stream: its lock, held here, would keep the interpreter from exiting.
    rest = b""
    while data := os.read(descriptor, 4096):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            want(line.decode(errors="surrogateescape"))
    end()


def _write(output: BinaryIO, report: Report) -> None:
    try:
        output.write(msgspec.json.encode(report) + b"\n")
        output.flush()
    except BrokenPipeError as error:  # The server was killed.
        raise _StoppedError from error


if __name__ == "__main__":
    main()
