"""Writes the log files of a session that the hub sends."""

from __future__ import annotations

import filecmp
import io
import os
import re
import shutil
import tarfile
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from pathlib import Path, PurePosixPath
from typing import IO, Final, NamedTuple, cast

import msgspec

from turnlog.agents import agents, find_sources
from turnlog.agents.base import Agent, RowAgent, Source, SourceKind
from turnlog.agents.databases import HEADER_SIZE, is_database
from turnlog.agents.row_files import is_restored
from turnlog.atomic_files import make_folders
from turnlog.errors import ConflictError, NotFoundError, SourceError, StoreError
from turnlog.hub.sync.wire import MISSING_LOGS
from turnlog.paths import folders
from turnlog.platforms.files import BINARY
from turnlog.store import zstd

MOST_UNPACKED: Final = 4 << 30
"""Bytes of the log files of a session, unpacked: they are on the disk twice until they are written."""

MOST_OF_HEADERS: Final = 64 << 20
"""Bytes of what says which files there are, for some 25,000 of them."""

OBEYED: Final = "its agent would run it or obey it, and others may have written it"
ALONE: Final = "the log of its session does not come with it"

_BESIDE: Final = (SourceKind.SIDECAR, SourceKind.SPILL)
"""Kinds of files that are beside a log."""

_PIECE: Final = 1 << 20

_BEHIND: Final = re.compile(r"~[A-Za-z0-9~-]+\Z")

_LATEST: Final = 253402300800
"""The year 10000, in seconds since 1970."""


def agent_of(session_id: str) -> Agent:
    """The agent of a session. Raises NotFoundError for one that is not known here."""
    name = session_id.partition(":")[0]
    found = next((agent for agent in agents() if agent.name == name), None)
    if found is None:
        raise NotFoundError(f"there is no agent {name!r} here, which could say which files are its logs")
    return found


def folder_of(session_id: str) -> str:
    """The name of the folder in which all sessions of an agent are, or one that a hub keeps beside them.

    A session that went on on two machines has its file at one place on both: what the hub puts behind an id tells them
    apart. Raises NotFoundError as `agent_of`: the hub says the id, and it leads nowhere else.
    """
    behind = _BEHIND.search(session_id)
    return agent_of(session_id).name + (behind[0] if behind else "")


def home_of(agent: Agent) -> Path:
    """The home of an agent on this machine. Raises NotFoundError if it has none."""
    if agent.homes is None:
        raise NotFoundError(f"{agent.display_name} has no home here: say with --to where the files go")
    return folders(agent.homes)[0]


class NoLogError(StoreError):
    """A hub, or who shares a session, sends something that no log of its agent is."""


class MissingLog(NamedTuple):
    """A log file that the hub does not send, or of which it sends a shorter copy."""

    path: str
    """Relative to the home of its agent."""
    reason: str


class PulledLogs:
    """The log files of a session, as the hub sends them, unpacked into a temporary folder while this object is there.

    An answer of a few kilobytes may say that it has gigabytes: no file is held in memory.
    """

    def __init__(self, packed: bytes) -> None:
        """Raises StoreError for an archive that is none, leads out of a folder or is larger than `MOST_UNPACKED`."""
        self._above = Path(tempfile.mkdtemp(prefix="turnlog-pulled-"))
        weakref.finalize(self, shutil.rmtree, self._above, ignore_errors=True)
        self._folder = self._above / "files"
        self._folder.mkdir()
        self._files: list[_PulledFile] = []
        self._databases: dict[PurePosixPath, _Rows] = {}
        try:
            with tempfile.TemporaryFile() as unpacked:
                _unpack(packed, unpacked)
                missing = self._extract(unpacked)
            self.missing = tuple(msgspec.json.decode(missing, type=list[MissingLog]))
        except (tarfile.TarError, zstd.ZstdError, msgspec.DecodeError, ValueError, OverflowError) as error:
            raise StoreError(f"the hub sends no log files: {error}") from error
        except RecursionError as error:
            raise StoreError("the hub sends no log files: headers of headers") from error
        except OSError as error:
            raise StoreError(f"cannot unpack what the hub sends: {error.strerror}") from error

    def _extract(self, unpacked: IO[bytes]) -> str:
        """Write the files of a tar into the folder, and return what it says of those that are missing."""
        # Only without compression: a second one would not be bounded.
        with tarfile.open(fileobj=cast("IO[bytes]", _Headers(unpacked)), mode="r:") as archive:
            members = archive.getmembers()
            missing = archive.pax_headers.get(MISSING_LOGS, "[]")
        for member in members:
            file = _PulledFile(_relative(member), member.size, _changed_at(member))
            path = self._folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            unpacked.seek(member.offset_data)
            with path.open("xb") as written:
                for start in range(0, member.size, _PIECE):
                    written.write(unpacked.read(min(_PIECE, member.size - start)))
            self._files.append(file)
        return missing

    def refuse_other_than_logs(self, agent: Agent) -> None:
        """Raise NoLogError if a file is in no place where the agent keeps logs.

        Whoever shares a session, and the hub, choose the names of its files: a home also has settings, whose hooks the
        agent would run. An agent without a home, such as a service whose exports are imported, has none. What is kept
        beside a log is left out, and is among `missing`, if the agent would obey it, or without its session's log.
        """
        if agent.homes is None:
            return
        home = self._move_below(home_of(agent))
        found = {source.path: source for _, source in find_sources([agent], [home])}
        logs = _sessions_of(found.values())
        databases: dict[str, list[Source]] = defaultdict(list)
        for source in found.values():
            database, separator, _ = source.path.partition("#")
            if separator:
                databases[database].append(source)
        left_out: list[MissingLog] = []
        for path, *_ in self._files:
            sources = _sources_of(agent, found, home, home / path)
            if not sources:
                raise NoLogError(f"the hub sends something that is no log of {agent.display_name}: {path}")
            rows = databases[str(home / path)]
            if isinstance(agent, RowAgent) and rows and _is_database(home / path):
                self._databases[path] = _Rows(agent, rows)
            reason = _reason_against(agent, sources, logs, home / path)
            if reason is not None:
                left_out.append(MissingLog(str(path), reason))
        out = {each.path for each in left_out}
        self._files = [file for file in self._files if str(file.path) not in out]
        self.missing = (*self.missing, *left_out)

    def refuse_databases(self, agent: Agent) -> None:
        """Raise StoreError if a file is a database: the agent may not start with one that others have written.

        It has the tables that its rows need, without the agent's record of how it has made them.
        """
        for path in self._databases:
            raise StoreError(
                f"{agent.display_name} may not start with a database that turnlog has written ({path}): name a folder"
                " for it with --to, and read it with `turnlog import`"
            )

    def databases(self, to: Path) -> list[Path]:
        """The databases that `write` writes below a folder."""
        return [to.absolute() / path for path in self._databases]

    def _move_below(self, home: Path) -> Path:
        """Of programs with the same files, each looks only into homes that are called like its own."""
        named = self._above.joinpath("homes", *home.absolute().parts[1:])
        if self._folder != named:
            named.parent.mkdir(parents=True, exist_ok=True)
            self._folder = self._folder.rename(named)
        return named

    def write(self, to: Path) -> Iterator[tuple[Path, int]]:
        """Write the files below a folder and return each with its size; only the user can read them.

        A file that is there with the same bytes is left. A database that was pulled before gets the rows of this one,
        too. Raises ConflictError if anything else with other bytes is there, before anything is written, and StoreError
        for what cannot be written: also if a symbolic link is on the way.
        """
        to = to.absolute()
        merged = {path for path, *_ in self._files if self._is_other(path, to / path)}
        for path in merged:
            if path not in self._databases or not is_restored(to / path):
                raise ConflictError(f"{to / path} is there already with other content")
        for path, size, changed_at in self._files:
            target = to / path
            try:
                if path in merged:
                    self._add_rows(path, to)
                elif not target.exists():
                    make_folders(target.parent, to)
                    _write(self._folder / path, target, changed_at)
            except OSError as error:
                raise StoreError(f"{error.filename or target}: {error.strerror}") from error
            yield target, target.stat().st_size if path in merged else size

    def _is_other(self, path: PurePosixPath, target: Path) -> bool:
        if target.is_symlink():
            raise ConflictError(f"{target} is there already with other content")
        return target.exists() and not filecmp.cmp(self._folder / path, target, shallow=False)

    def _add_rows(self, path: PurePosixPath, to: Path) -> None:
        """Write the rows of a database into the one below a folder. Raises ConflictError if that has others of them."""
        agent, sources = self._databases[path]
        try:
            for source in sources:
                agent.restore_rows(source, agent.read_rows(source, ()).lines, to)
        except SourceError as error:
            raise StoreError(f"the hub sends a database that cannot be read: {error}") from error


def _sources_of(agent: Agent, found: Mapping[str, Source], home: Path, path: Path) -> list[Source]:
    """The sources of a home to which a file belongs: none if the agent does not look for it there."""
    if str(path) in found:
        return [found[str(path)]]
    if not isinstance(agent, RowAgent):
        return []
    return [found[each.path] for each in agent.sources_at(path, home) if each.path in found]


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return is_database(file.read(HEADER_SIZE))


def _sessions_of(sources: Collection[Source]) -> set[str] | None:
    """The sessions whose logs are among these; None where the place of a log does not say whose it is."""
    if any(source.kind is SourceKind.SESSION and source.session_id is None for source in sources):
        return None
    return {source.session_id for source in sources if source.kind not in _BESIDE and source.session_id is not None}


def _reason_against(agent: Agent, sources: Sequence[Source], logs: Set[str] | None, path: Path) -> str | None:
    """Why the file at a path, which belongs to these sources, is not written.

    `logs` are the sessions whose logs come with it.
    """
    beside = [source for source in sources if source.kind in _BESIDE]
    # Of a log that is made of many files, any may be one that the agent obeys.
    asked = sources if isinstance(agent, RowAgent) else beside
    if any(agent.obeys(msgspec.structs.replace(source, path=str(path))) for source in asked):
        return OBEYED
    sessions = {source.session_id for source in beside}
    is_alone = logs is not None and len(beside) == len(sources) and None not in sessions and not sessions & logs
    return ALONE if is_alone else None


class _PulledFile(NamedTuple):
    path: PurePosixPath
    size: int
    changed_at: float


class _Rows(NamedTuple):
    """The rows of a database that are an agent's sessions, or facts about them."""

    agent: RowAgent
    sources: list[Source]


class _Headers:
    """A tar of which only the headers are read, which are held in memory: no more than `MOST_OF_HEADERS`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = MOST_OF_HEADERS
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise StoreError(f"the hub sends more than {MOST_OF_HEADERS >> 20} MB of names of log files")
        return self._file.read(size)


def _unpack(packed: bytes, to: IO[bytes]) -> None:
    """Write the tar, and go to its beginning. Raises StoreError if it is too large, or not as long as it says."""
    for piece in zstd.decompress_in_pieces(io.BytesIO(packed)):
        if to.tell() + len(piece) > MOST_UNPACKED:
            raise StoreError(f"the hub sends more than {MOST_UNPACKED >> 20} MB of log files: too large to be pulled")
        to.write(piece)
    if to.tell() != zstd.content_size(packed):
        raise StoreError("the hub sends no log files: they are cut off")
    to.seek(0)


def _relative(member: tarfile.TarInfo) -> PurePosixPath:
    path = PurePosixPath(member.name)
    is_file = member.isfile() and not member.issparse() and member.size >= 0
    if not is_file or path.is_absolute() or ".." in path.parts or not path.parts or "\0" in member.name:
        raise StoreError(f"the hub sends something that is no log file: {member.name[:200]}")
    return path


def _changed_at(member: tarfile.TarInfo) -> float:
    """Seconds since 1970, of a year that a date can have."""
    if not 0 <= member.mtime < _LATEST:  # also of NaN
        raise StoreError(f"the hub sends a file of no time: {member.name[:200]}")
    return member.mtime


def _write(unpacked: Path, path: Path, changed_at: float) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # O_EXCL follows no link; the rename shows the whole file or none.
        descriptor = os.open(partial, os.O_WRONLY | BINARY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file, unpacked.open("rb") as source:
            shutil.copyfileobj(source, file, _PIECE)
        os.utime(partial, (changed_at, changed_at))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
