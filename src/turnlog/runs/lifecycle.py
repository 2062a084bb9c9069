"""The row of a run from its start to its end, and what the run printed until its log is found.

A run is written before its process starts, so that a killed machine leaves a trace. Its row names the process that
watches over it; a row whose watching process is gone is closed by the next command that looks
(`runs.abandoned`). Nothing here starts a process or reads a log: `runs.sessions` does the latter.
"""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from turnlog.platforms.files import BINARY
from turnlog.platforms.processes import this_process
from turnlog.platforms.programs import ENDING_SIGNALS
from turnlog.store import open_store
from turnlog.store.choices import RunStatus
from turnlog.store.values import Run, RunOrigin

MAX_TEXT_BYTES: Final = 65_536
"""How much of an output that is text for people is kept."""


def output_path(store_path: Path, run_id: str) -> Path:
    """The file in which the output of a run is kept."""
    return store_path.absolute().parent / "runs" / f"{run_id}.out"


class OutputKeeper:
    """Writes what a run prints to a file, as it comes.

    Machine-readable output (JSON lines) is kept whole, since it may be all there is of a session; of text for people
    the first `MAX_TEXT_BYTES`. An error while writing ends the keeping, never the run.
    """

    def __init__(self, path: Path) -> None:
        """Keep output in this file, which is created with the first bytes."""
        self._path = path
        self._file: int | None = None
        self._remaining: int | None = None
        """How many more bytes are kept; None for all."""
        self._is_closed = False

    def add(self, data: bytes) -> None:
        """Keep some more bytes."""
        if data and not self._is_closed:
            try:
                self._write(data)
            except OSError:
                self.close()

    def close(self) -> None:
        """Close the file; later bytes are dropped."""
        self._is_closed = True
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_WRONLY | BINARY | os.O_CREAT | os.O_EXCL, 0o600)
            self._remaining = None if data.lstrip()[:1] in (b"{", b"[") else MAX_TEXT_BYTES
        rest = memoryview(data if self._remaining is None else data[: self._remaining])
        if self._remaining is not None:
            self._remaining -= len(rest)
        while rest:
            rest = rest[os.write(self._file, rest) :]


_SHELL_SIGNAL: Final = 128
"""Shells, and agents that handle a signal, exit with this plus the signal's number."""


def new_run(
    origin: RunOrigin,
    *,
    agent: str | None = None,
    command: Sequence[str] = (),
    cwd: str | None = None,
    prompt: str | None = None,
    model: str | None = None,
    system_prompt: str | None = None,
    session_id: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> Run:
    """A pending run that this process is about to start and watches over. It is not yet stored: see `save`."""
    owner = this_process()
    return Run(
        id=uuid.uuid4().hex,
        origin=origin,
        status="pending",
        created_at=to_milliseconds(datetime.now(UTC)),
        agent=agent,
        command=tuple(command),
        cwd=cwd,
        prompt=prompt,
        model=model,
        system_prompt=system_prompt,
        session_id=session_id,
        metadata=metadata or {},
        pid=owner.pid,
        boot_id=owner.boot_id,
        process_start=owner.start,
    )


def started(run: Run) -> Run:
    """The run with status `running`, started now."""
    return msgspec.structs.replace(run, status="running", started_at=to_milliseconds(datetime.now(UTC)))


def ended(
    run: Run, exit_code: int | None, *, stopped: bool = False, error: str | None = None, at: datetime | None = None
) -> Run:
    """The run with its end: status, time, exit code and error.

    Args:
        run: The run as it was.
        exit_code: Negative for the signal that ended it; None if the process never started.
        stopped: Whether it was asked to end. A run that exits with 0 all the same is `completed`.
        error: Why it failed, if that is known better than by the exit code.
        at: When it ended; now by default.
    """
    status = _status(exit_code, stopped=stopped)
    reason = None if status == "completed" else error or describe_exit(exit_code)
    return msgspec.structs.replace(
        run,
        status=status,
        ended_at=to_milliseconds(at or datetime.now(UTC)),
        exit_code=exit_code,
        error=reason or run.error,
    )


def _status(exit_code: int | None, *, stopped: bool) -> RunStatus:
    if exit_code == 0:
        return "completed"
    ending = None if exit_code is None else -exit_code if exit_code < 0 else exit_code - _SHELL_SIGNAL
    return "cancelled" if stopped or ending in ENDING_SIGNALS else "failed"


def to_milliseconds(moment: datetime) -> datetime:
    """A time rounded down to milliseconds, as the store keeps it."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def describe_exit(exit_code: int | None) -> str | None:
    """`exit code 3` or `ended by SIGKILL`; None for 0 and for no exit code."""
    if exit_code is None or exit_code >= 0:
        return f"exit code {exit_code}" if exit_code else None
    try:
        return f"ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"ended by signal {-exit_code}"


def save(store_path: Path, run: Run) -> Run:
    """Write the run into the store, which is created if it does not exist; return the run.

    Raises:
        StoreError: It cannot be written.
    """
    with open_store(store_path, create=True) as store:
        store.save_run(run)
    return run


def forget_run(store_path: Path, run_id: str) -> Run:
    """Remove a run and its text from the database file; its session stays. Return the run as it was.

    Raises:
        NotFoundError: There is no such run.
        ConflictError: It has not ended.
    """
    with open_store(store_path, create=True) as store:
        run = store.forget_run(run_id)
    output_path(store_path, run.id).unlink(missing_ok=True)
    return run
