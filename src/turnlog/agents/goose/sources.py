"""Where Goose's sessions are, and whether a file holds some.

The rows of a session are a source of their own, named `<database>#<id>`, and so is what other tables say about it,
`<database>#<id>#about`. Versions before 1.10 wrote a file for each session; the database took over what was in them.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Detection, Fold, Source, SourceKind
from turnlog.agents.databases import DatabaseReader, SessionDatabases, database_of, is_database, session_place
from turnlog.agents.files import entries, holds_file, is_file
from turnlog.agents.goose import NAME
from turnlog.agents.goose.database import (
    BELONGINGS,
    KEYS,
    READ_COLUMNS,
    is_own,
    list_sessions,
    new_facts,
    new_lines,
    open_database,
    session_id,
)
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import restore_database, rows_in

DATABASE: Final = "sessions.db"

_FOLDERS: Final = ("sessions", "data/sessions")
"""Where sessions are below a home; the second one below the folder that `GOOSE_PATH_ROOT` names."""

_ENDING: Final = ".jsonl"

DATABASES: Final = SessionDatabases(open_database, list_sessions, new_lines, new_facts, BELONGINGS)


def find_sources(root: Path) -> Iterator[Source]:
    """Every session below a home."""
    for folder in (root / name for name in _FOLDERS):
        if holds_file(folder, DATABASE):
            yield from DATABASES.find_sources(folder / DATABASE, root, NAME, session_id)
        yield from _files_in(folder, root)


def _files_in(folder: Path, root: Path) -> Iterator[Source]:
    for entry in filter(is_file, entries(os.fspath(folder))):
        if entry.name.endswith(_ENDING):
            yield _file_source(Path(entry.path), root)


def _file_source(path: Path, root: Path) -> Source:
    return Source(
        agent=NAME,
        path=os.fspath(path),
        root=os.fspath(root),
        # A newer version copies such files into its database once, and goes on there.
        kind=SourceKind.STREAM,
        session_id=session_id(path.stem),
        appendable=False,
    )


def sources_at(path: Path, root: Path) -> Iterator[Source]:
    """See `RowAgent.sources_at`. A database may be named by its write-ahead log."""
    database = database_of(path)
    if database.parent not in [root / name for name in _FOLDERS]:
        return
    if database.name == DATABASE and holds_file(database.parent, DATABASE):
        yield from DATABASES.find_sources(database, root, NAME, session_id)
    elif path.suffix == _ENDING and holds_file(path.parent, path.name):
        yield _file_source(path, root)


def holds_rows(source: Source) -> bool:
    """Whether a source is a session in a database, or a database itself."""
    return session_place(source.path) is not None or Path(source.path).name == DATABASE


def make_fold(source: Source, state: bytes | None) -> Fold:
    """The fold of a source."""
    if source.kind is SourceKind.SIDECAR:
        from turnlog.agents.goose.facts import GooseFactsFold

        return GooseFactsFold(source)
    if source.kind is SourceKind.STREAM:
        from turnlog.agents.goose.old_files import GooseFileFold

        return GooseFileFold(source)
    from turnlog.agents.goose.fold import GooseFold

    return GooseFold(source, state)


# -- what a file is


def detect_file(path: Path, head: bytes) -> Detection:
    """See `Agent.detect`."""
    if is_database(head):
        return DATABASES.detect(path, NAME, session_id, version_of=_version_of)
    return _detect_old_file(path.absolute(), head)


def _version_of(connection: sqlite3.Connection) -> str | None:
    # No row names the version of the program, only that of its tables.
    return "2" if is_own(connection) else None


class _FirstLine(msgspec.Struct):
    working_dir: str
    description: str
    message_count: int


def _detect_old_file(path: Path, head: bytes) -> Detection:
    try:
        msgspec.json.decode(head.partition(b"\n")[0], type=_FirstLine)
    except UNREADABLE:
        return Detection(reason="no first line with the folder and the number of messages")
    return Detection(agent=NAME, version="1", source=_file_source(path, path.parent))


def _restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    return restore_database(source, rows_in(log), to, KEYS, READ_COLUMNS)


READER: Final = DatabaseReader(DATABASES, find_sources, sources_at, detect_file, _restore_rows)
