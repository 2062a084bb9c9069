"""`turnlog run`: run an agent in this process's place, and record the run.

The agent keeps its standard input and standard error. It also keeps standard output if that is a terminal; otherwise
its bytes are copied through this process, unchanged and at once, so that they can be kept. Signals are forwarded,
except those of a terminal: the agent has received these already.
"""

from __future__ import annotations

import errno
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
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import click
import msgspec

from turnlog import paths
from turnlog.cli.options import examples, store_option
from turnlog.errors import TurnlogError
from turnlog.hooks.send import TASK_VARIABLE, task_of
from turnlog.plain_text import plain
from turnlog.store.write_lock import reporting_waits

if TYPE_CHECKING:
    from turnlog.store.values import Run


_STDOUT: Final = 1

_READ_SIZE: Final = 65_536

_FORWARDED: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)

_FROM_KERNEL: Final = 0x80
"""`si_code` of a signal that the kernel sent for a terminal, not a process."""


class Ending(NamedTuple):
    """How the program ended."""

    exit_code: int
    """Negative: the number of the signal that ended it."""
    stopped: bool
    """Whether it was sent a signal that asks to end."""
    at: datetime


def run_process(
    command: Sequence[str], keep: Callable[[bytes], None], on_started: Callable[[], None] = lambda: None
) -> Ending:
    """Run a program to its end.

    Args:
        command: The program and its arguments.
        keep: Given what the program writes to standard output, unless that is a terminal.
        on_started: Called once the program runs, in a thread of its own, which has ended when this function returns.

    Raises OSError when it cannot be started.
    """
    output = None if os.isatty(_STDOUT) else subprocess.PIPE
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
    # One core file is enough.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(128 + number)


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

    before = {each: signal.getsignal(each) for each in _FORWARDED}
    handlers = {each: handler for each, handler in before.items() if handler is not signal.SIG_IGN}
    for each in handlers:
        signal.signal(each, collect)
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


NOT_FOUND, NOT_STARTED = 127, 126
"""Exit codes of shells for a program that does not exist or cannot be run."""


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=examples(
        "turnlog run -- claude -p 'fix the tests'",
        "turnlog run -- codex exec --json 'fix the tests' | jq .",
        "turnlog run --agent claude-code -- ./nightly.sh",
        "turnlog runs                               # what became of them",
    ),
)
@click.option("--agent", "agent_name", help="Record this agent, if the command does not show which it is.")
@click.option("--task", envvar="TURNLOG_TASK", help="The task that the session belongs to, also that of hooks.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@store_option
def run(command: tuple[str, ...], agent_name: str | None, task: str | None, store_path: Path) -> None:
    """Run COMMAND, an agent without a terminal interface, and record the run.

    Input, output, errors, signals and the exit code are those of COMMAND, byte for byte. When it has ended, turnlog
    reads the log that the agent wrote and links the run to its session.
    """
    # Standard error is the command's.
    with reporting_waits(None):
        _run_recorded(command, agent_name, task_of(task or ""), store_path)


def _run_recorded(command: tuple[str, ...], agent_name: str | None, task: str, store_path: Path) -> None:
    from turnlog.runs.lifecycle import OutputKeeper, ended, new_run, output_path

    if agent_name is not None:
        _check_agent(agent_name)
    if task:
        # The agent inherits it, and its hooks from the agent.
        paths.set_variable(TASK_VARIABLE, task)
    record = _Record(store_path, new_run("command", agent=agent_name, command=command, cwd=_cwd()))
    keeper = OutputKeeper(output_path(store_path, record.run.id))
    try:
        ending = run_process(command, keeper.add if record.is_kept else _discard, record.note_start)
    except OSError as error:
        click.echo(f"turnlog: {plain(command[0])}: {error.strerror}", err=True)
        record.keep(ended(record.run, None, error=f"{command[0]}: {error.strerror}"))
        exit_like(NOT_FOUND if error.errno == errno.ENOENT else NOT_STARTED)
    finally:
        keeper.close()
    record.keep(ended(record.run, ending.exit_code, stopped=ending.stopped, at=ending.at))
    record.link()
    record.join(task)
    exit_like(ending.exit_code)


def _discard(data: bytes) -> None:
    """Keep nothing."""


def _check_agent(name: str) -> None:
    from turnlog.agents import agent

    try:
        agent(name)
    except TurnlogError as error:
        raise click.UsageError(str(error)) from error


def _cwd() -> str | None:
    with suppress(OSError):
        return str(Path.cwd())
    return None


class _Record:
    """The stored run. An error is reported once and never delays the agent."""

    def __init__(self, store_path: Path, run: Run) -> None:
        self.run = run
        self.is_kept = True
        self._store_path = store_path
        self.keep(run)

    def keep(self, run: Run) -> None:
        """Write the row."""
        from turnlog.runs.lifecycle import save

        self.run = run
        if self.is_kept:
            try:
                save(self._store_path, run)
            except TurnlogError as error:
                self.is_kept = False
                click.echo(f"turnlog: this run is not recorded: {plain(str(error))}", err=True)

    def note_start(self) -> None:
        """Record the start, and what the command line shows; the agent is already working meanwhile."""
        from turnlog.agents import started_agent
        from turnlog.runs.lifecycle import started

        run = started(self.run)
        found = started_agent(run.command)
        if found is not None:
            agent, facts = found
            run = msgspec.structs.replace(
                run,
                agent=run.agent or agent.name,
                prompt=facts.prompt,
                model=facts.model,
                system_prompt=facts.system_prompt,
                session_id=f"{agent.name}:{facts.session}" if facts.session else None,
            )
        self.keep(run)

    def link(self) -> None:
        """Find the session of the run."""
        from turnlog.runs.sessions import link_run

        if self.is_kept:
            with suppress(TurnlogError):
                # The run is stored without its session; `turnlog runs link` can look again.
                self.run = link_run(self._store_path, self.run)

    def join(self, task: str) -> None:
        """Put the session of the run into a task; nothing for an empty one."""
        from turnlog.store import open_store

        if task and self.run.session_id is not None:
            with suppress(TurnlogError), open_store(self._store_path) as store:
                # An agent that does not start has no session.
                session = store.session(self.run.session_id)
                store.change_owner(session.id, msgspec.structs.replace(session.ownership, task=task))
