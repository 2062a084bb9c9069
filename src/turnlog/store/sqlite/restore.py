"""Restoring the files of a session from the archive, byte for byte, or the rows of a source that is not a file.

Writes only inside the given folder.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from pathlib import Path, PurePath, PurePosixPath

from turnlog.agents.base import RowAgent, Source, SourceKind
from turnlog.atomic_files import make_folders, refuse_other_than_file
from turnlog.errors import ConflictError, NotFoundError, StoreError
from turnlog.platforms.files import BINARY
from turnlog.store.archive import Archive
from turnlog.store.keys import family, session_key
from turnlog.store.reconcile.lineage import session_ids
from turnlog.store.sqlite.copies import find_copies
from turnlog.store.values import RestoredFile


def restore_files(
    connection: sqlite3.Connection, session_id: str, to: Path, *, copies: bool = True
) -> list[RestoredFile]:
    """Write all files of a session and its subagents below `to`, laid out as below the agent's home.

    Only the user may read the files, as it is with the store.

    `copies`: also files all of whose messages other files have. Not those with the bytes of another one, nor spools of
    hooks. If several homes have different files at the same relative path, those of the later homes are written below
    the whole path of their home.

    Raises NotFoundError if the session is not stored or has no files, ConflictError if a file with other bytes exists,
    StoreError if a path would leave `to`, OSError if a file cannot be written: also if a symbolic link, or anything
    but a folder, is on the way.
    """
    sources = sources_of_session(connection, session_id, copies=copies)
    archive = Archive(connection)
    to = to.absolute()
    restored: list[RestoredFile] = []
    homes: dict[Path, str] = {}
    for key, source in sources:
        below, root = to, source.root
        if row_agent(source) is None:
            target = to / place_of(source)
            if homes.setdefault(target, root) != root and not _is_equal(archive, key, target):
                below = to / PurePath(root).relative_to(PurePath(root).anchor)
        restored += restore_source(archive, key, source, below, to)
    return list({file.path: file for file in restored}.values())


def restore_source(archive: Archive, key: int, source: Source, below: Path, to: Path) -> list[RestoredFile]:
    """Write one source below a folder, which is `to` or below it, laid out as below the agent's home.

    Raises as `restore_files`.
    """
    if (agent := row_agent(source)) is not None:
        return _restore_rows(archive, key, agent, source, below)
    return [_restore_file(archive, key, Path(source.path), below / place_of(source), to)]


def place_of(source: Source) -> PurePosixPath:
    """The path of a source relative to its agent's home. Raises StoreError if it does not lie under that."""
    place = PurePosixPath(os.path.relpath(source.path, source.root))
    if place.is_absolute() or ".." in place.parts:
        raise StoreError(f"{source.path} does not lie under {source.root}: it has no place below another folder")
    return place


def sources_of_session(connection: sqlite3.Connection, session_id: str, *, copies: bool) -> list[tuple[int, Source]]:
    """The keys and files of a session and its subagents; `copies` as of `restore_files`.

    Raises NotFoundError if the session is not stored or has no files.
    """
    keys = family(connection, session_key(connection, session_id))
    ids = session_ids(connection, set(keys))
    marks = ",".join("?" * len(keys))
    rows = connection.execute(
        f"SELECT key FROM sources WHERE session_id IN ({marks})"
        f" UNION SELECT source_key FROM memberships WHERE session_key IN ({marks})"
        f" UNION SELECT source_key FROM events WHERE session_key IN ({marks})",
        (*ids, *keys, *keys),
    )
    found = {key for (key,) in rows if key is not None}
    if copies and (others := find_copies(connection, keys)):
        archive = Archive(connection)
        known = {_last_hash(archive, key) for key in found}
        found |= {key for key in others if _last_hash(archive, key) not in known}
    rows = connection.execute(
        "SELECT key, path, root, agent, kind FROM sources WHERE kind <> 'hooks'"
        f" AND key IN ({','.join('?' * len(found))}) ORDER BY path",
        tuple(found),
    ).fetchall()
    if not rows:
        raise NotFoundError(f"session {session_id} was not read from files")
    return [
        (key, Source(agent=agent, path=path, root=root, kind=SourceKind(kind))) for key, path, root, agent, kind in rows
    ]


def _last_hash(archive: Archive, key: int) -> bytes:
    """A hash of the newest generation of a file."""
    digest = hashlib.sha256()
    for piece in archive.iter_bytes(key, archive.generations(key)[-1].number):
        digest.update(piece)
    return digest.digest()


def row_agent(source: Source) -> RowAgent | None:
    """The agent that can restore a source of rows; None for a file."""
    # Agents of other packages are found through entry points, which is slow: import only when needed.
    from turnlog.agents import agents

    reader = next((found for found in agents() if found.name == source.agent), None)
    return reader if isinstance(reader, RowAgent) and reader.holds_rows(source) else None


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
        # O_EXCL follows no link, and nobody else can read the file from its first byte on. The rename then shows the
        # whole file or none.
        with os.fdopen(os.open(partial, os.O_WRONLY | BINARY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for piece in archive.iter_bytes(key, last.number):
                file.write(piece)
        if last.mtime_ns is not None:
            os.utime(partial, ns=(last.mtime_ns, last.mtime_ns))
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    return RestoredFile(target, str(path), last.size)


def _is_equal(archive: Archive, key: int, target: Path) -> bool:
    """Whether an existing file has the archived bytes."""
    try:
        refuse_other_than_file(target)
    except OSError as error:
        raise ConflictError(f"{target}: {error.strerror}") from error
    with target.open("rb") as file:
        pieces = archive.iter_bytes(key, archive.generations(key)[-1].number)
        return all(file.read(len(piece)) == piece for piece in pieces) and not file.read(1)
