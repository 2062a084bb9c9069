"""What files there are now, as a look from outside tells, and what is no longer there."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from turnlog.agents.base import Agent, Source
from turnlog.store.connection import write_transaction
from turnlog.store.sources import Fingerprint, mark_vanished, present_paths
from turnlog.sync.summary import Problem


class Found(NamedTuple):
    """A source, whose it is, and how it looks from outside."""

    agent: Agent
    source: Source
    fingerprint: Fingerprint


_UNREADABLE = Fingerprint(0, 0, 0, 0)
"""Of a file that cannot even be looked at: reading it will tell why."""


def find(sources: Iterable[tuple[Agent, Source]]) -> Iterator[Found]:
    """Look at every source that is still there."""
    for agent, source in sources:
        if source.version is not None:
            yield Found(agent, source, Fingerprint(*source.version))
            continue
        try:
            yield Found(agent, source, Fingerprint.of(os.stat(source.path)))  # noqa: PTH116  # a path object costs more than the look
        except FileNotFoundError:
            continue  # gone between the scan and the look: the next pass will note it
        except OSError:
            yield Found(agent, source, _UNREADABLE)


def note_vanished(
    connection: sqlite3.Connection, found: list[Found], roots: Sequence[Path] | None, problems: Iterable[Problem]
) -> int:
    """Note known files that are no longer there; a pass over some roots says nothing about the others.

    Nor does one that could not look where they lie, nor, of a database's rows, one that did not look into the
    database: it was imported from elsewhere. Returns how many were noted.
    """
    present = {item.source.path for item in found}
    looked_into = {_database(path) for path in present}
    unreadable = tuple(f"{problem.path}{end}" for problem in problems for end in ("#", os.sep))
    folders = None if roots is None else tuple(f"{root.absolute()}{os.sep}" for root in roots)
    gone = [
        path
        for path in present_paths(connection)
        if path not in present
        and (folders is None or path.startswith(folders))
        and not path.startswith(unreadable)
        and not os.path.lexists(path)
        and (_database(path) in looked_into or not Path(_database(path)).is_file())
    ]
    if gone:
        with write_transaction(connection):
            mark_vanished(connection, gone, int(time.time() * 1000))
    return len(gone)


def _database(path: str) -> str:
    """The file that a source lies in: of rows (`<database>#<key>`) their database, else the path itself."""
    return path.rpartition("#")[0] or path
