"""Running a program in this process's place: its output is copied, signals reach it, and its end is passed on."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Final, NamedTuple, NoReturn

_STDOUT: Final = 1

_READ_SIZE: Final = 65_536

CAN_FORWARD: Final = hasattr(signal, "pthread_sigmask")
"""Whether signals can be waited for and passed on; not on Windows, where Ctrl-C reaches every program of a console."""

_FORWARDED: Final[tuple[signal.Signals, ...]] = tuple(
    getattr(signal, name)
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)

_FROM_KERNEL: Final = 0x80
"""`si_code` of a signal that the kernel sent for a terminal, not a process."""

ENDING_SIGNALS: Final = frozenset(
    getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)
)
"""Signals that ask a program to end."""


class Ending(NamedTuple):
    """How the program ended."""

    exit_code: int
    """Negative: the number of the signal that ended it."""
    stopped: bool
    """Whether it was sent a signal that asks to end."""
    at: datetime


def run_process(
    command: Sequence[str],
    keep: Callable[[bytes], None],
    on_started: Callable[[], None] = lambda: None,
    *,
    forward: bool = CAN_FORWARD,
) -> Ending:
    """Run a program to its end.

    Args:
        command: The program and its arguments.
        keep: Given what the program writes to standard output, unless that is a terminal.
        on_started: Called once the program runs, in a thread of its own, which has ended when this function returns.
        forward: Whether signals are forwarded; otherwise those of the terminal only do not end this process.

    Raises OSError when it cannot be started.
    """
    output = None if os.isatty(_STDOUT) else subprocess.PIPE
    if not forward:
        return _run_in_console(command, output, keep, on_started)
    pending: list[int] = []
    with _collected(pending):
        process = subprocess.Popen(command, stdout=output)
        with _SignalForwarding(process, pending) as forwarding:
            notifier = threading.Thread(target=on_started)
            notifier.start()
            if process.stdout is not None:
                _forward_output(process, process.stdout.fileno(), keep)
            ending = Ending(process.wait(), forwarding.stopped, datetime.now(UTC))
            notifier.join()
    return ending


def exit_like(exit_code: int) -> NoReturn:
    """End like the program: with its exit code, or by the same signal."""
    if exit_code >= 0:
        sys.exit(exit_code)
    number = -exit_code
    with suppress(ImportError):
        import resource

        # One core file is enough.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(128 + number)


def _run_in_console(
    command: Sequence[str], output: int | None, keep: Callable[[bytes], None], on_started: Callable[[], None]
) -> Ending:
    stopped = False

    def note(number: int, frame: object) -> None:
        nonlocal stopped
        stopped = True

    with _handled(ENDING_SIGNALS, note):
        process = subprocess.Popen(command, stdout=output)
        notifier = threading.Thread(target=on_started)
        notifier.start()
        if process.stdout is not None:
            with process.stdout as pipe:
                while _forward_once(pipe.fileno(), keep):
                    pass
        exit_code = process.wait()
        notifier.join()
    return Ending(exit_code, stopped, datetime.now(UTC))


# -- output


def _forward_output(process: subprocess.Popen[bytes], source: int, keep: Callable[[bytes], None]) -> None:
    """Copy the output until its last writer has closed it or the program has ended."""
    ended, wake = os.pipe()
    watcher = threading.Thread(target=_wake_at_end, args=(process, wake), daemon=True)
    watcher.start()
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        is_over = False
        while True:
            ready = {key.fd for key, _ in selector.select(0 if is_over else None)}
            if source in ready:
                if not _forward_once(source, keep):
                    break
            elif is_over:
                _hand_over_output(source)
                break
            if ended in ready and not is_over:
                is_over = True
                selector.unregister(ended)
    assert process.stdout is not None
    process.stdout.close()
    watcher.join()
    os.close(ended)
    os.close(wake)


def _wake_at_end(process: subprocess.Popen[bytes], wake: int) -> None:
    process.wait()
    os.write(wake, b"\0")


def _forward_once(source: int, keep: Callable[[bytes], None]) -> bool:
    """Copy what can be read now. False at the end, or if our reader has gone: the program will notice that itself."""
    data = os.read(source, _READ_SIZE)
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(_STDOUT, rest) :]
    except OSError:
        return False
    keep(data)
    return bool(data)


def _hand_over_output(source: int) -> None:
    """Let `cat` copy the rest: processes that the program started may still write to its output after this one ends."""
    with suppress(OSError):
        subprocess.Popen(["cat"], stdin=source, stderr=subprocess.DEVNULL)


# -- signals


@contextmanager
def _collected(pending: list[int]) -> Generator[None]:
    """Collect signals until the program has started. Ignored signals stay ignored, and the program inherits that."""

    def collect(number: int, frame: object) -> None:
        pending.append(number)

    with _handled(_FORWARDED, collect):
        yield


@contextmanager
def _handled(numbers: Iterable[signal.Signals], handle: Callable[[int, object], None]) -> Generator[None]:
    """Handle signals, except those that are ignored."""
    before = {each: signal.getsignal(each) for each in numbers}
    handlers = {each: handler for each, handler in before.items() if handler is not signal.SIG_IGN}
    for each in handlers:
        signal.signal(each, handle)
    try:
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)


class _SignalForwarding:
    """Forwards signals to the program, from a thread that waits for them."""

    def __init__(self, process: subprocess.Popen[bytes], pending: Sequence[int]) -> None:
        self.stopped = False
        self._process = process
        self._pending = pending
        self._ended = False
        self._ignored = {each for each in _FORWARDED if signal.getsignal(each) is signal.SIG_IGN}
        self._thread = threading.Thread(target=self._forward, daemon=True)

    def __enter__(self) -> _SignalForwarding:
        signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
        for each in self._ignored:
            # The program inherited that the signal is ignored, but may have installed a handler since.
            signal.signal(each, signal.SIG_DFL)
        for number in self._pending:
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
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)

    def _forward(self) -> None:
        while True:
            number, is_from_terminal = _next_signal()
            if self._ended:
                return
            self._note_stop(number)
            if not is_from_terminal:
                self._send(number)

    def _send(self, number: int) -> None:
        self._note_stop(number)
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def _note_stop(self, number: int) -> None:
        self.stopped |= number not in (signal.SIGUSR1, signal.SIGUSR2, *self._ignored)


def _next_signal() -> tuple[int, bool]:
    """The number of the next signal, and whether a terminal sent it."""
    if sys.platform == "darwin":
        # macOS does not report the sender of a signal.
        number = signal.sigwait(_FORWARDED)
        return number, number in (signal.SIGINT, signal.SIGQUIT) and _is_in_foreground()
    found = signal.sigwaitinfo(_FORWARDED)
    return found.si_signo, found.si_code == _FROM_KERNEL


def _is_in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
