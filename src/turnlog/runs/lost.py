"""Runs that nobody watches over any more: the process that did was killed, or the machine went down."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from turnlog.errors import TurnlogError
from turnlog.runs.output import output_path
from turnlog.runs.processes import ProcessIdentity, is_alive
from turnlog.store import open_store
from turnlog.store.connection import connect, write_transaction
from turnlog.store.runs import Run, load_unfinished, save_run

REASON = "turnlog was killed while the run went on: how it ended is not known"


def close_lost_runs(store_path: Path) -> list[Run]:
    """End the runs whose watching process is gone, and link them to their logs; these runs.

    They have failed, since nobody can say how they ended. A store that is not there has none.
    """
    if not store_path.exists():
        return []
    open_store(store_path).close()  # one of an older schema is brought up to what is asked below
    with closing(connect(store_path, read_only=True)) as connection:
        if not _lost(load_unfinished(connection)):
            return []
    with closing(connect(store_path)) as connection, write_transaction(connection):
        # Looked at again, now that no other process can end them.
        closed = [_closed(store_path, run) for run in _lost(load_unfinished(connection))]
        for run in closed:
            save_run(connection, run)
    return [_linked(store_path, run) for run in closed]


def _lost(runs: list[Run]) -> list[Run]:
    return [run for run in runs if run.pid is None or not is_alive(_owner(run, run.pid))]


def _owner(run: Run, pid: int) -> ProcessIdentity:
    return ProcessIdentity(pid, run.boot_id, run.process_start)


def _closed(store_path: Path, run: Run) -> Run:
    try:
        last = output_path(store_path, run.id).stat().st_mtime
    except OSError:
        last = None
    heard = None if last is None else datetime.fromtimestamp(last, UTC)
    return msgspec.structs.replace(run, status="failed", error=REASON, ended_at=heard)


def _linked(store_path: Path, run: Run) -> Run:
    # Reading logs takes long to import, and there is hardly ever a run to close.
    from turnlog.runs.linking import link_run

    try:
        return link_run(store_path, run)
    except TurnlogError:
        # It is closed; linking can be asked for again.
        return run
