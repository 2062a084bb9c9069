"""Import of one file, pipe or export: kept next to the store, recognised by its content, read like any source.

The bytes go into `imports/` next to the store, named by their hash, before they are examined. So a pipe can be read as
well as a file, the same file given twice is one source, and the original may be deleted. A file of no known agent is
not kept. Neither is a database or an export, which may hold secrets besides sessions: only rows of sessions are stored.
A log that a sync reads where it lies is read there, as the session that the sync finds.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import msgspec

from turnlog.agents import agent as registered_agent
from turnlog.agents import agents, detect
from turnlog.agents.base import Detection, Source, SourceKind, reads_rows
from turnlog.atomic_files import open_file, refuse_device, refuse_other_than_file
from turnlog.errors import FormatError
from turnlog.garbage_collection import garbage_collection_paused
from turnlog.pricing import price_nanos, price_version
from turnlog.store.connection import connect
from turnlog.store.keys import count_sessions, own_sessions
from turnlog.store.sources import imports_folder, load_known
from turnlog.store.unfinished import end_forgetting
from turnlog.sync.reader import SourceReader
from turnlog.sync.summary import SourceProblem
from turnlog.sync.syncer import Progress
from turnlog.sync.workers import import_workers, indexing

_CHUNK_SIZE = 1 << 20

_MOST_ENDINGS = 2
"""Endings of a file's name that are kept: `.jsonl.zst`."""

_INPUT = "standard input"
"""What errors call a stream without a name."""

_FORGOTTEN = "its session was forgotten"


class ImportSummary(msgspec.Struct, kw_only=True):
    """What became of the file."""

    path: str
    """The path of the kept bytes; for rows, the path from which they were read."""
    agent: str
    version: str | None
    kind: str
    """Its role: an `agents.base.SourceKind`."""
    bytes: int
    is_new: bool
    """False: it had been imported before and has not changed."""
    sessions: tuple[str, ...] = ()
    """Ids of the sessions that changed."""
    new_sessions: int = 0
    """Without subagents."""
    new_subagents: int = 0
    messages: int = 0
    """Number of new messages."""
    diagnostics: int = 0
    problems: Sequence[SourceProblem] = ()
    seconds: float = 0.0


def import_file(store_path: Path, path: Path, on_progress: Progress = lambda phase, done, total: None) -> ImportSummary:
    """Read a file into the store; from a database, or the folder of an export, all its sessions.

    Raises OSError if it cannot be opened or is a pipe or a device, and FormatError as `import_stream` does, also for a
    folder without an export.
    """
    started = time.monotonic()
    is_folder = path.is_dir()
    if not is_folder:
        refuse_other_than_file(path, follow=True)
    detection = _detect_folder(path) if is_folder else detect(path)
    if not is_folder and not _rows_of(detection):
        place = _place_of(store_path, str(path.absolute())) if _sources_of(detection) else None
        if place is None:
            with open_file(path) as file:
                return import_stream(store_path, file, str(path), on_progress)
        version = detection.version if detection.agent == place.agent else None
        path, detection = Path(place.path), Detection(agent=place.agent, version=version, source=place)
    store_path.absolute().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    summary = _read(store_path, path.absolute(), detection, on_progress)
    summary.seconds = time.monotonic() - started
    return summary


def _place_of(store_path: Path, path: str) -> Source | None:
    """The log at this path as a sync finds it: the store knows it, or it is in a home of an agent on this machine.

    Only there does a path say whose log it is. Another folder may look like a home, or hold a copy of one.
    """
    found = _known_place(store_path, path)
    if found is None:
        homes = [(each, home) for each in agents() for home in each.roots() if Path(path).is_relative_to(home)]
        sources = (source for each, home in homes for source in each.find_sources(home))
        found = next((source for source in sources if source.path == path), None)
    return found if found is not None and found.kind in (SourceKind.SESSION, SourceKind.SUBAGENT) else None


def _known_place(store_path: Path, path: str) -> Source | None:
    if not store_path.exists():
        return None
    with closing(connect(store_path, checked=False)) as connection:
        return load_known(connection, path)


def _detect_folder(folder: Path) -> Detection:
    """The sessions of an export that was unpacked into a folder or is in it. Raises FormatError if there are none."""
    found = {each.name: sources for each in agents() if (sources := tuple(each.sources_in(folder.absolute())))}
    sources = tuple(source for each in found.values() for source in each)
    sessions = {source.agent: source for source in sources if source.session_id is not None}
    if not sources:
        hint = "`turnlog sync --root` reads the home of an agent"
        raise FormatError(f"a folder without an export that is read here; {hint}", path=folder)
    if not sessions:
        raise FormatError(detect(Path(sources[0].path)).reason or "no session in it", path=Path(sources[0].path))
    if len(sessions) > 1:
        raise FormatError(f"exports of {' and '.join(sessions)}: import each of them by itself", path=folder)
    [(name, session)] = sessions.items()
    version = detect(Path(_file_of(session))).version
    return Detection(agent=name, version=version, sources=tuple(sorted(found[name], key=_is_file)))


def _is_file(source: Source) -> bool:
    return source.session_id is None


def _file_of(source: Source) -> str:
    """The path of the file that a source is in, or is."""
    inner, _, _ = source.path.rpartition("#")
    # The path of a session may be longer than that of a file can be: `Path.is_file` raises for it.
    is_file = _is_file(source) or not inner or os.path.isfile(source.path)  # noqa: PTH113
    return source.path if is_file else inner


def import_stream(
    store_path: Path, stream: BinaryIO, name: str = "", on_progress: Progress = lambda phase, done, total: None
) -> ImportSummary:
    """Read a file or a pipe into the store.

    Args:
        store_path: The store, created if it does not exist.
        stream: The bytes, read to their end.
        name: The name of the file, for its endings and for errors.
        on_progress: Called in the phases `read` (bytes) and `index` (messages).

    Raises OSError for a device, which may never end, and FormatError for a file of no known agent; its `of_agents` has
    the reason of each agent.
    """
    started = time.monotonic()
    refuse_device(stream, name or _INPUT)
    folder = imports_folder(store_path)
    path, was_there = _keep(stream, name, folder)
    detection = detect(path)
    if not _sources_of(detection):
        # The same bytes may have been imported when an agent for them was installed: those are kept.
        if not was_there:
            path.unlink()
        if detection.is_damaged and detection.agent is None:
            raise FormatError(f"cannot be read: {detection.reason}", path=Path(name or "-"))
        whose = "of no agent that turnlog reads" if detection.agent is None else f"of {detection.agent}, but no session"
        why = "" if detection.reasons else f" ({detection.reason})"
        raise FormatError(whose + why, path=Path(name or "-"), of_agents=detection.reasons)
    try:
        summary = _read(store_path, path, detection, on_progress)
    finally:
        # The rows are stored, and the rest of the database may hold secrets.
        if _rows_of(detection):
            path.unlink()
    summary.seconds = time.monotonic() - started
    return summary


def _sources_of(detection: Detection) -> tuple[Source, ...]:
    return detection.sources or (() if detection.source is None else (detection.source,))


def _rows_of(detection: Detection) -> tuple[Source, ...]:
    """The sessions in a file that their agent reads itself."""
    sources = _sources_of(detection)
    return tuple(source for source in sources if reads_rows(registered_agent(source.agent), source))


def _keep(stream: BinaryIO, name: str, folder: Path) -> tuple[Path, bool]:
    """Write the bytes under their hash, with the endings of the name; return whether they existed already."""
    ending = "".join(Path(name).suffixes[-_MOST_ENDINGS:])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.sha256()
    # In the same folder: a rename within a file system is atomic, and the hash is known only at the end.
    descriptor, incoming = tempfile.mkstemp(dir=folder, prefix="incoming-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            while piece := _read_piece(stream, name):
                digest.update(piece)
                _write_piece(file, piece, folder)
        path = folder / f"{digest.hexdigest()}{ending}"
        was_there = path.exists()
        if not was_there:
            Path(incoming).replace(path)
    finally:
        Path(incoming).unlink(missing_ok=True)
    return path, was_there


def _write_piece(file: BinaryIO, piece: bytes, folder: Path) -> None:
    """Write all of the next bytes. The system does not say which disk is full."""
    try:
        file.write(piece)
        file.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(folder)) from error


def _read_piece(stream: BinaryIO, name: str) -> bytes:
    """The next bytes. The system does not say which file cannot be read."""
    try:
        return stream.read(_CHUNK_SIZE)
    except OSError as error:
        raise OSError(error.errno, error.strerror, name or _INPUT) from error


def _read(store_path: Path, path: Path, detection: Detection, on_progress: Progress) -> ImportSummary:
    assert detection.agent is not None
    sources = (*_sources_of(detection), *detection.beside)
    # Several sources may be in one file, such as the sessions of a database: its bytes count once.
    files = {_file_of(each) for each in sources} if path.is_dir() else {os.fspath(path)}
    size = sum(Path(file).stat().st_size for file in files)
    read = 0

    def count(piece: int) -> None:
        nonlocal read
        read += piece
        on_progress("read", read, max(size, read))

    end_forgetting(store_path)
    connection = connect(store_path, checked=False)
    try:
        with (
            indexing(store_path, size, lambda pending: on_progress("index", 0 if pending else 1, 1)),
            import_workers(connection, store_path, size) as workers,
            garbage_collection_paused(),
        ):
            reader = SourceReader(connection, price_nanos, price_version(), count, workers.worker)
            result = reader.read([(registered_agent(source.agent), source) for source in sources])
            workers.note_commit()
            changed = own_sessions(connection, result.saved.sessions) if result.changed else []
            new_sessions, new_subagents = count_sessions(connection, result.saved.created)
    finally:
        connection.close()
    # The copy is turnlog's own: kept, it would hold what the user wanted to be forgotten.
    if result.forgotten and path.parent == imports_folder(store_path):
        path.unlink()
    return ImportSummary(
        path=str(path),
        agent=detection.agent,
        version=detection.version,
        kind=sources[0].kind,
        bytes=size,
        is_new=result.changed > 0,
        sessions=tuple(changed),
        new_sessions=new_sessions,
        new_subagents=new_subagents,
        messages=result.saved.messages,
        diagnostics=result.saved.diagnostics,
        problems=[
            *result.problems,
            *(SourceProblem(each, "its session was forgotten") for each in sorted(result.forgotten)),
        ],
    )
