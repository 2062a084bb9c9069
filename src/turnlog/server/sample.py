"""The bundled sample: recorded sessions in a store of their own, so that there is something to see on a new machine.

It is offered only where there is nothing else: no agent's log on the machine, no session in the user's store. The
user's store is asked and takes nothing from it; `src/turnlog/sample` holds the logs, one folder an agent.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import turnlog
from turnlog.agents import agents, find_sources
from turnlog.agents.base import SourceKind
from turnlog.store import open_store
from turnlog.sync.syncer import sync

LOGS = Path(turnlog.__file__).parent / "sample"
"""The recorded logs; each folder in it is laid out like an agent's home."""

_MADE_FROM = "made-from"
"""A file beside the sample's store: which installation's logs are in it."""


def is_sample_due(store_path: Path) -> bool:
    """Whether the user's own store would be an empty page: it has no session, and there is no log to read.

    Raises:
        StoreError: The store is there and cannot be opened.
    """
    return not _has_sessions(store_path) and not _has_logs()


def ensure_sample(store_path: Path) -> None:
    """Make the sample's store at `store_path`, or bring it up to date.

    Its folder is emptied first when another installation of turnlog made it: what it read would only stand beside
    the same sessions of this one.

    Raises:
        StoreError: The store cannot be written.
    """
    folder = store_path.parent
    installation = f"{turnlog.__version__} {LOGS}"
    mark = folder / _MADE_FROM
    if not mark.is_file() or mark.read_text() != installation:
        shutil.rmtree(folder, ignore_errors=True)
    # Before the folder in it is made: that would leave it open to others.
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    sync(store_path, roots=sample_roots())
    mark.write_text(installation)


def sample_roots() -> list[Path]:
    """The homes of the agents that the sample is of."""
    return sorted(folder for folder in LOGS.iterdir() if folder.is_dir())


def _has_sessions(store_path: Path) -> bool:
    if not store_path.exists():
        return False
    with open_store(store_path) as store:
        return store.status().sessions > 0


def _has_logs() -> bool:
    kinds = (SourceKind.SESSION, SourceKind.SUBAGENT)
    return any(source.kind in kinds for _, source in find_sources(agents()))
