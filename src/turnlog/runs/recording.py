"""The row of a run, from its start to its end. Nothing here starts a process or reads a log."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from turnlog.errors import ConflictError
from turnlog.runs.output import output_path
from turnlog.runs.processes import this_process
from turnlog.store.connection import connect, write_transaction
from turnlog.store.runs import Run, RunOrigin, RunStatus, delete_run, load_run, save_run

_ASKED_TO_END: Final = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})

_SHELL_SIGNAL: Final = 128
"""What shells, and agents that end on a signal by themselves, add to its number for an exit code."""


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
    """A run that this process is about to start, and watches over; `save` it."""
    owner = this_process()
    return Run(
        id=uuid.uuid4().hex,
        origin=origin,
        status="pending",
        created_at=_milliseconds(datetime.now(UTC)),
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
    """The run, once its process is there."""
    return msgspec.structs.replace(run, status="running", started_at=_milliseconds(datetime.now(UTC)))


def ended(
    run: Run, exit_code: int | None, *, stopped: bool = False, error: str | None = None, at: datetime | None = None
) -> Run:
    """The run, once its process has ended.

    Args:
        run: What is known of it.
        exit_code: Negative for the signal that ended it; None where there was no process.
        stopped: Whether it was asked to end. One that ends well all the same is completed.
        error: Why it failed, where that is known better than by the exit code.
        at: When; now by default.
    """
    status = _status(exit_code, stopped=stopped)
    reason = None if status == "completed" else error or describe_exit(exit_code)
    return msgspec.structs.replace(
        run,
        status=status,
        ended_at=_milliseconds(at or datetime.now(UTC)),
        exit_code=exit_code,
        error=reason or run.error,
    )


def _status(exit_code: int | None, *, stopped: bool) -> RunStatus:
    if exit_code == 0:
        return "completed"
    ending = None if exit_code is None else -exit_code if exit_code < 0 else exit_code - _SHELL_SIGNAL
    return "cancelled" if stopped or ending in _ASKED_TO_END else "failed"


def _milliseconds(moment: datetime) -> datetime:
    """A time as exact as the store keeps it."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def describe_exit(exit_code: int | None) -> str | None:
    """`exit code 3`, `ended by SIGKILL`; None where there is nothing to tell."""
    if exit_code is None or exit_code >= 0:
        return f"exit code {exit_code}" if exit_code else None
    try:
        return f"ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"ended by signal {-exit_code}"


def save(store_path: Path, run: Run) -> Run:
    """Write the run into the store, which is made when it is not there; the run itself.

    Raises StoreError when that cannot be done.
    """
    with closing(connect(store_path)) as connection, write_transaction(connection):
        save_run(connection, run)
    return run


def forget_run(store_path: Path, run_id: str) -> Run:
    """Remove a run for good, so that its words are no longer in the file; its session stays. The run as it was.

    Raises:
        NotFoundError: There is no such run.
        ConflictError: It goes on.
    """
    with closing(connect(store_path)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        with write_transaction(connection):
            run = load_run(connection, run_id)
            if not run.is_finished:
                raise ConflictError(f"run {run.id} has not ended")
            delete_run(connection, run.id)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    output_path(store_path, run.id).unlink(missing_ok=True)
    return run
