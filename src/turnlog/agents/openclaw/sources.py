"""Where OpenClaw's sessions are, and whether a file holds some.

Each of its agents has a database below `agents/<agent>/agent`, and had a folder of logs, `agents/<agent>/sessions`. A
session in a database is a separate source, named `<database>#<session>`. Each database is also a source by itself,
and so is what other tables say about a session.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.databases import SessionDatabases, database_of, is_database, session_place
from turnlog.agents.files import entries, folders, holds_file, is_file
from turnlog.agents.jsonl import whole_lines
from turnlog.agents.openclaw import NAME, QCLAW
from turnlog.agents.openclaw.database import BELONGINGS, EVENTS, list_sessions, open_database, tables_of
from turnlog.agents.openclaw.row_log import new_facts, new_lines
from turnlog.agents.pi.records import LINES

DATABASE: Final = "openclaw-agent.sqlite"
_LOG = re.compile(
    r"(?!.*\.trajectory\.jsonl)(?P<id>[^/]+?)(?:\.checkpoint\.[^/]+?)?\.jsonl(?:\.(?:deleted|reset)\..+|\.full\.bak)?"
)
"""The name of an older log; one that was deleted or reset keeps its records under another name. A checkpoint is a copy
of the log from before a compaction. A trajectory is a trace of a run, and none of the conversation."""

_MAIN: Final = "main"

DATABASES: Final = SessionDatabases(open_database, list_sessions, new_lines, new_facts, BELONGINGS)


def owner_of(path: Path) -> str:
    """Which of the two programs a folder or file belongs to, by its path: nothing in it says so."""
    return QCLAW if {".qclaw", QCLAW} & set(path.parts) else NAME


def session_id(agent: str, owner: str, session: str) -> str:
    """The id of a session in the model. Ids are unique for one of its agents; that of `main` is left out."""
    external = session if owner == _MAIN else f"{session}@{owner}"
    return f"{agent}:{external.replace('/', '_')}"


def find_sources(agent: str, root: Path) -> Iterator[Source]:
    """Every session below a home."""
    for owner in folders(os.fspath(root / "agents")):
        database = Path(owner.path, "agent", DATABASE)
        if holds_file(database.parent, DATABASE):
            yield from _database_sources(agent, database, root)
        for entry in filter(is_file, entries(os.fspath(Path(owner.path, "sessions")))):
            if _LOG.fullmatch(entry.name):
                yield _log_source(agent, Path(entry.path), root)


def sources_at(agent: str, path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`. A database may be named by its write-ahead log."""
    database = database_of(path)
    if database.name == DATABASE and holds_file(database.parent, DATABASE):
        yield from _database_sources(agent, database, root)
    elif _LOG.fullmatch(path.name) and path.parent.name == "sessions":
        yield _log_source(agent, path, root)


def _database_sources(agent: str, database: Path, root: Path) -> Iterator[Source]:
    return DATABASES.find_sources(database, root, agent, partial(session_id, agent, _owner_in(database)))


def _owner_in(path: Path) -> str:
    """The agent of OpenClaw whose folder contains a file; `main` if none does."""
    parents = list(path.parents)
    return next((one.name for one, above in pairwise(parents) if above.name == "agents"), _MAIN)


def _log_source(agent: str, path: Path, root: Path) -> Source:
    named = _LOG.fullmatch(path.name)
    session = named["id"] if named else path.stem
    return Source(agent=agent, path=str(path), root=str(root), session_id=session_id(agent, _owner_in(path), session))


# -- the rows of a source


def holds_rows(source: Source) -> bool:
    """Whether a source is a session in a database, or the database itself."""
    return source.kind is SourceKind.SIDECAR or _is_row_path(source.path)


def _is_row_path(path: str) -> bool:
    return session_place(path) is not None and not _LOG.fullmatch(Path(path).name)


# -- what a file is


def detect_file(agent: str, path: Path, head: bytes) -> Detection:
    """See `Agent.detect`. A database is opened, because its first page need not have the names of its tables."""
    absolute = path.absolute()
    if owner_of(absolute) != agent:
        return Detection(reason="it is not in a home of this program")
    if is_database(head):
        return _detect_database(agent, absolute)
    records = [record for record, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]
    header = records[0] if records and records[0].type == "session" else None
    is_in_home = absolute.parent.name == "sessions" and absolute.parent.parent.parent.name == "agents"
    # Only version 4 is OpenClaw's own; before, its logs are pi's.
    if header is None or not (is_in_home or header.version == 4):
        return Detection(reason="neither a database of sessions nor a log in a home")
    found = _log_source(agent, absolute, absolute.parent)
    return Detection(agent=agent, version=str(header.version or 1), source=found)


def _detect_database(agent: str, path: Path) -> Detection:
    to_id = partial(session_id, agent, _owner_in(path))
    return DATABASES.detect(path, agent, to_id, version_of=_version_of)


def _version_of(connection: sqlite3.Connection) -> str | None:
    return "4" if EVENTS in tables_of(connection) else None
