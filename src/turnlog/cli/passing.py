"""Running a program in this one's place: its input, output, errors, signals and end are those of the program.

Standard input and error are the program's own. So is standard output where it is a terminal; elsewhere its bytes come
through here, unchanged and at once, so that somebody may keep them. A signal is passed on, unless the terminal sent it:
then the program has it already.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Final, NamedTuple, NoReturn

_STDOUT: Final = 1

_PIECE: Final = 65_536

_PASSED: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)

_FROM_KERNEL: Final = 0x80
"""`si_code` of a signal that no process sent: a terminal did."""


class Ending(NamedTuple):
    """How the program ended."""

    exit_code: int
    """Negative: the number of the signal that ended it."""
    stopped: bool
    """Whether it was sent a signal that asks to end."""
    at: datetime


def run_through(
    command: Sequence[str], keep: Callable[[bytes], None], on_started: Callable[[], None] = lambda: None
) -> Ending:
    """Run a program to its end.

    Args:
        command: The program and its arguments.
        keep: Given what the program writes to standard output, unless that is a terminal.
        on_started: Called once the program runs, in a thread beside it; done when this returns.

    Raises OSError when it cannot be started.
    """
    output = None if os.isatty(_STDOUT) else subprocess.PIPE
    early: list[int] = []
    with _noted(early):
        process = subprocess.Popen(command, stdout=output)
        with _Passing(process, early) as passing:
            beside = threading.Thread(target=on_started)
            beside.start()
            if process.stdout is not None:
                _pass_output(process, process.stdout.fileno(), keep)
            ending = Ending(process.wait(), passing.stopped, datetime.now(UTC))
            beside.join()
    return ending


def leave(exit_code: int) -> NoReturn:
    """End as the program ended: with its exit code, or by the same signal."""
    if exit_code >= 0:
        sys.exit(exit_code)
    number = -exit_code
    # One core file is enough.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(128 + number)


# -- output


def _pass_output(process: subprocess.Popen[bytes], source: int, keep: Callable[[bytes], None]) -> None:
    """Pass on what comes until nobody can write any more, or the program has ended."""
    ended, wake = os.pipe()
    watching = threading.Thread(target=_wake_at_end, args=(process, wake), daemon=True)
    watching.start()
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        is_over = False
        while True:
            ready = {key.fd for key, _ in selector.select(0 if is_over else None)}
            if source in ready:
                if not _pass_piece(source, keep):
                    break
            elif is_over:
                _leave_to_others(source)
                break
            if ended in ready and not is_over:
                is_over = True
                selector.unregister(ended)
    assert process.stdout is not None
    process.stdout.close()
    watching.join()
    os.close(ended)
    os.close(wake)


def _wake_at_end(process: subprocess.Popen[bytes], wake: int) -> None:
    process.wait()
    os.write(wake, b"\0")


def _pass_piece(source: int, keep: Callable[[bytes], None]) -> bool:
    """Pass a piece on; False where there is no more, or nobody who reads it: the program will notice by itself."""
    piece = os.read(source, _PIECE)
    rest = memoryview(piece)
    try:
        while rest:
            rest = rest[os.write(_STDOUT, rest) :]
    except OSError:
        return False
    keep(piece)
    return bool(piece)


def _leave_to_others(source: int) -> None:
    """What the program has started still holds its output: that goes on without this process, as it would have."""
    with suppress(OSError):
        subprocess.Popen(["cat"], stdin=source, stderr=subprocess.DEVNULL)


# -- signals


@contextmanager
def _noted(early: list[int]) -> Generator[None]:
    """Note the signals to be passed on while there is no program yet; those that are ignored stay so, for it too."""

    def note(number: int, frame: object) -> None:
        early.append(number)

    before = {each: signal.getsignal(each) for each in _PASSED}
    taken = {each: handler for each, handler in before.items() if handler is not signal.SIG_IGN}
    for each in taken:
        signal.signal(each, note)
    try:
        yield
    finally:
        for each, handler in taken.items():
            signal.signal(each, handler)


class _Passing:
    """Passes signals on, in a thread of its own that waits for them."""

    def __init__(self, process: subprocess.Popen[bytes], early: Sequence[int]) -> None:
        self.stopped = False
        self._process = process
        self._early = early
        self._ended = False
        self._ignored = {each for each in _PASSED if signal.getsignal(each) is signal.SIG_IGN}
        self._thread = threading.Thread(target=self._pass, daemon=True)

    def __enter__(self) -> _Passing:
        signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED)
        for each in self._ignored:
            # The program has begun by ignoring it, and may have changed its mind.
            signal.signal(each, signal.SIG_DFL)
        for number in self._early:
            self._send(number)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended = True
        assert self._thread.ident is not None
        signal.pthread_kill(self._thread.ident, signal.SIGUSR1)
        self._thread.join()
        for each in self._ignored:
            signal.signal(each, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED)

    def _pass(self) -> None:
        while True:
            number, is_from_terminal = _next_signal()
            if self._ended:
                return
            self._note(number)
            if not is_from_terminal:
                self._send(number)

    def _send(self, number: int) -> None:
        self._note(number)
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def _note(self, number: int) -> None:
        self.stopped |= number not in (signal.SIGUSR1, signal.SIGUSR2, *self._ignored)


def _next_signal() -> tuple[int, bool]:
    """The next signal, and whether a terminal sent it."""
    if sys.platform == "darwin":
        # Nothing there tells who sent it.
        number = signal.sigwait(_PASSED)
        return number, number in (signal.SIGINT, signal.SIGQUIT) and _is_in_foreground()
    found = signal.sigwaitinfo(_PASSED)
    return found.si_signo, found.si_code == _FROM_KERNEL


def _is_in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
