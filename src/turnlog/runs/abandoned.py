"""Runs whose watching process is gone: they are closed, and linked to what their agents logged."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from turnlog.errors import TurnlogError
from turnlog.platforms.processes import ProcessIdentity, is_alive
from turnlog.runs.lifecycle import output_path
from turnlog.store import open_store
from turnlog.store.values import Run

ABANDONED = "turnlog was killed while the run went on: how it ended is not known"


def close_abandoned_runs(store_path: Path) -> list[Run]:
    """Close the runs whose watching process is gone, and link them to their logs; return them.

    Their status is `failed`, since nobody knows how they ended. Without a store there are none.
    """
    if not store_path.exists():
        return []
    with open_store(store_path, create=True) as store:
        closed = store.change_unfinished_runs(
            lambda run: _end_abandoned(store_path, run) if _is_abandoned(run) else None
        )
    return [_link_abandoned(store_path, run) for run in closed]


def _is_abandoned(run: Run) -> bool:
    return run.pid is None or not is_alive(ProcessIdentity(run.pid, run.boot_id, run.process_start))


def _end_abandoned(store_path: Path, run: Run) -> Run:
    try:
        last = output_path(store_path, run.id).stat().st_mtime
    except OSError:
        last = None
    last_output_at = None if last is None else datetime.fromtimestamp(last, UTC)
    return msgspec.structs.replace(run, status="failed", error=ABANDONED, ended_at=last_output_at)


def _link_abandoned(store_path: Path, run: Run) -> Run:
    # Imported here: reading logs takes long to import, and there is hardly ever a run to close.
    from turnlog.runs.sessions import link_run

    try:
        return link_run(store_path, run)
    except TurnlogError:
        # It is closed all the same; `turnlog runs link` tries again.
        return run
