"""The bundled sample: recorded sessions in their own store, so that a new machine has something to show.

It is offered only if there is nothing else: no log of an agent on the machine, and no session in the user's store.
Nothing of it is written to the user's store. `src/turnlog/sample` contains the logs, one folder per agent.
"""

from __future__ import annotations

import os
import shutil
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import turnlog
from turnlog.agents import agents_here, find_sources
from turnlog.agents.base import Agent, Source, SourceKind, is_database_itself, reads_rows
from turnlog.errors import SourceError
from turnlog.store import open_store
from turnlog.sync.spools import find_spools

if TYPE_CHECKING:
    from turnlog.sync.syncer import OnSaved, Progress

LOGS = Path(turnlog.__file__).parent / "sample"
"""The folder of recorded logs; each folder in it is laid out like an agent's home."""

_MADE_FROM = "made-from"
"""A file next to the sample's store that names the installation whose logs it contains."""


def is_sample_due(store_path: Path) -> bool:
    """Whether the user's own store would be an empty page: it has no session, and there is nothing to read.

    Raises:
        StoreError: The store exists and cannot be opened.
    """
    return not _has_sessions(store_path) and not has_own_sessions(store_path)


def ensure_sample(store_path: Path) -> None:
    """Create the sample's store at `store_path`, or update it.

    Raises:
        StoreError: The store cannot be written.
    """
    empty_other_sample(store_path)
    read_sample(store_path)


def empty_other_sample(store_path: Path) -> None:
    """Empty the sample's folder if another installation of turnlog created it: the same sessions would appear twice."""
    folder = store_path.parent
    mark = folder / _MADE_FROM
    if not mark.is_file() or mark.read_bytes() != _installation():
        shutil.rmtree(folder, ignore_errors=True)
    # Before the folder within it is created, which would make this one readable for others.
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def read_sample(
    store_path: Path,
    *,
    on_saved: OnSaved = lambda sessions, last_change: None,
    on_progress: Progress = lambda phase, done, total: None,
) -> None:
    """Read the sample's logs into its store; callbacks are those of `sync.syncer.Syncer`.

    Raises:
        StoreError: The store cannot be written.
    """
    # Imported here: there is hardly ever a sample to make, and the server waits for every import.
    from turnlog.sync.syncer import Syncer

    with Syncer(store_path, on_saved=on_saved) as syncer:
        syncer.scan(roots=sample_roots(), on_progress=on_progress)
    (store_path.parent / _MADE_FROM).write_bytes(_installation())


def _installation() -> bytes:
    return os.fsencode(f"{turnlog.__version__} {LOGS}")


def sample_roots() -> list[Path]:
    """The homes of the agents in the sample."""
    return sorted(folder for folder in LOGS.iterdir() if folder.is_dir())


def _has_sessions(store_path: Path) -> bool:
    if not store_path.exists():
        return False
    with open_store(store_path) as store:
        return store.status().sessions > 0


def has_own_sessions(store_path: Path) -> bool:
    """Whether any agent has logged a session on this machine, or a hook has reported one.

    A database whose rows belong to no session counts: the user's own store has the diagnostic.
    """
    kinds = (SourceKind.SESSION, SourceKind.SUBAGENT, SourceKind.HOOKS)
    found = chain(find_spools(store_path), find_sources(agents_here()))
    return any(source.kind in kinds or _has_strays(agent, source) for agent, source in found)


def _has_strays(agent: Agent, source: Source) -> bool:
    if not (reads_rows(agent, source) and is_database_itself(source)):
        return False
    try:
        return bool(agent.read_rows(source, ()).lines)
    except (OSError, SourceError):
        return False
