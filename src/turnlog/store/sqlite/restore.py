"""Giving back the files of a session, byte for byte, from the archive; of what is no file, equal rows.

Writes only inside the folder it is given.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path, PurePath, PurePosixPath

from turnlog.agents.base import RowAgent, Source
from turnlog.atomic_files import make_folders, refuse_other_than_file
from turnlog.errors import ConflictError, NotFoundError, StoreError
from turnlog.store.archive import Archive
from turnlog.store.keys import family, session_key
from turnlog.store.values import RestoredFile


def restore_files(connection: sqlite3.Connection, session_id: str, to: Path) -> list[RestoredFile]:
    """Write every file of a session and of its subagents under `to`, laid out as under the agent's home.

    Only the user can read what is made, as the store that it comes from.

    What hooks told is none of the agent's files. Where several homes have a file at one place, each with bytes of its
    own, those of the later homes lie under the whole path of their home.

    Raises NotFoundError for a session that is not stored or has no files, ConflictError when a file is there already
    with other bytes, StoreError for a path that would leave `to`, OSError where nothing can be made: also where a
    symbolic link, or what is no folder, is on the way.
    """
    sources = _sources(connection, session_id)
    if not sources:
        raise NotFoundError(f"session {session_id} was not read from files")
    archive = Archive(connection)
    to = to.absolute()
    restored: list[RestoredFile] = []
    homes: dict[Path, str] = {}
    for key, path, root, agent in sources:
        if (rows := _rows_of(agent, path, root)) is not None:
            restored += _restore_rows(archive, key, *rows, to)
        else:
            target = _inside(to, Path(path), Path(root))
            if homes.setdefault(target, root) != root and not _is_equal(archive, key, target):
                target = _inside(to / PurePath(root).relative_to(PurePath(root).anchor), Path(path), Path(root))
            restored.append(_restore_file(archive, key, Path(path), target, to))
    return list({file.path: file for file in restored}.values())


def _sources(connection: sqlite3.Connection, session_id: str) -> list[tuple[int, str, str, str]]:
    keys = family(connection, session_key(connection, session_id))
    marks = ",".join("?" * len(keys))
    rows = connection.execute(
        f"SELECT DISTINCT s.key, s.path, s.root, s.agent FROM sources s LEFT JOIN sessions own"
        f" ON s.session_id = own.agent || ':' || own.external_id WHERE s.kind <> 'hooks' AND (own.key IN ({marks})"
        f" OR s.key IN (SELECT source_key FROM memberships WHERE session_key IN ({marks}))"
        f" OR s.key IN (SELECT source_key FROM events WHERE session_key IN ({marks}))) ORDER BY s.path",
        (*keys, *keys, *keys),
    )
    return rows.fetchall()


def _rows_of(agent: str, path: str, root: str) -> tuple[RowAgent, Source] | None:
    """Who can give back a source that is no file, and the source; None for a file."""
    # Agents are found through the entry points of all installed packages: only where they are wanted.
    from turnlog.agents import agents

    source = Source(agent=agent, path=path, root=root)
    reader = next((found for found in agents() if found.name == agent), None)
    return (reader, source) if isinstance(reader, RowAgent) and reader.holds_rows(source) else None


def _restore_rows(archive: Archive, key: int, agent: RowAgent, source: Source, to: Path) -> list[RestoredFile]:
    log = archive.iter_bytes(key, archive.generations(key)[-1].number)
    return [RestoredFile(path, source.path, path.stat().st_size) for path in agent.restore_rows(source, log, to)]


def _restore_file(archive: Archive, key: int, path: Path, target: Path, to: Path) -> RestoredFile:
    last = archive.generations(key)[-1]
    if target.is_symlink() or target.exists():
        if not _is_equal(archive, key, target):
            raise ConflictError(f"{target} is there already with other content")
        return RestoredFile(target, str(path), last.size)
    make_folders(target.parent, to)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for piece in archive.iter_bytes(key, last.number):
                file.write(piece)
        if last.mtime_ns is not None:
            os.utime(partial, ns=(last.mtime_ns, last.mtime_ns))
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    return RestoredFile(target, str(path), last.size)


def _inside(to: Path, path: Path, root: Path) -> Path:
    """Where a file goes: its place under the agent's home, under `to`."""
    relative = PurePosixPath(os.path.relpath(path, root))
    if relative.is_absolute() or ".." in relative.parts:
        raise StoreError(f"{path} does not lie under {root}: it has no place in {to}")
    return to / relative


def _is_equal(archive: Archive, key: int, target: Path) -> bool:
    """Whether the file that is there holds the archived bytes."""
    try:
        refuse_other_than_file(target)
    except OSError as error:
        raise ConflictError(f"{target}: {error.strerror}") from error
    with target.open("rb") as file:
        pieces = archive.iter_bytes(key, archive.generations(key)[-1].number)
        return all(file.read(len(piece)) == piece for piece in pieces) and not file.read(1)
