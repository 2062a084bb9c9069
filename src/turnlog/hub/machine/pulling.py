"""Writes the log files of a session that the hub sends."""

from __future__ import annotations

import io
import os
import re
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

import msgspec

from turnlog.agents import agents, find_sources
from turnlog.agents.base import Agent, RowAgent
from turnlog.errors import ConflictError, NotFoundError, StoreError
from turnlog.hub.sync.wire import MISSING_LOGS
from turnlog.paths import folders
from turnlog.platforms.files import BINARY
from turnlog.store import zstd

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
    """The log files of a session, as the hub sends them."""

    def __init__(self, packed: bytes) -> None:
        """Raises StoreError for an archive that is none, or that leads out of a folder."""
        try:
            with tarfile.open(fileobj=io.BytesIO(zstd.decompress(packed))) as archive:
                self._files = [
                    (_relative(member), _read(archive, member), _changed_at(member)) for member in archive.getmembers()
                ]
                missing = archive.pax_headers.get(MISSING_LOGS, "[]")
            self.missing = tuple(msgspec.json.decode(missing, type=list[MissingLog]))
        except (tarfile.TarError, zstd.ZstdError, msgspec.DecodeError) as error:
            raise StoreError(f"the hub sends no log files: {error}") from error

    def refuse_other_than_logs(self, agent: Agent) -> None:
        """Raise NoLogError if a file is in no place where the agent keeps logs.

        Whoever shares a session, and the hub, choose the names of its files: a home also has settings, whose hooks the
        agent would run. An agent without a home, such as a service whose exports are imported, has none.
        """
        if agent.homes is None:
            return
        with tempfile.TemporaryDirectory(prefix="turnlog-pulled-") as folder:
            home = Path(folder)
            for path, data, _ in self._files:
                (home / path).parent.mkdir(parents=True, exist_ok=True)
                (home / path).write_bytes(data)
            logs = {source.path for _, source in find_sources([agent], [home])}
            others = [
                path
                for path, *_ in self._files
                if str(home / path) not in logs
                and not (isinstance(agent, RowAgent) and any(agent.sources_at(home / path, home)))
            ]
        if others:
            raise NoLogError(f"the hub sends something that is no log of {agent.display_name}: {others[0]}")

    def write(self, to: Path) -> Iterator[tuple[Path, int]]:
        """Write the files below a folder and return each with its size; only the user can read them.

        A file that is there with the same bytes is left. Raises ConflictError if one with other bytes is, before
        anything is written.
        """
        contents = [(to / path, data, changed_at) for path, data, changed_at in self._files]
        for path, data, _ in contents:
            if path.is_symlink() or (path.exists() and (not path.is_file() or path.read_bytes() != data)):
                raise ConflictError(f"{path} is there already with other content")
        for path, data, changed_at in contents:
            if not path.exists():
                _write(path, data, changed_at)
            yield path, len(data)


def _relative(member: tarfile.TarInfo) -> PurePosixPath:
    path = PurePosixPath(member.name)
    if not member.isfile() or member.issparse() or path.is_absolute() or ".." in path.parts or not path.parts:
        raise StoreError(f"the hub sends something that is no log file: {member.name[:200]}")
    return path


def _changed_at(member: tarfile.TarInfo) -> float:
    """Seconds since 1970, of a year that a date can have."""
    if not 0 <= member.mtime < _LATEST:  # also of NaN
        raise StoreError(f"the hub sends a file of no time: {member.name[:200]}")
    return member.mtime


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def _write(path: Path, data: bytes, changed_at: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # O_EXCL follows no link; the rename shows the whole file or none.
        with os.fdopen(os.open(partial, os.O_WRONLY | BINARY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for start in range(0, len(data), _PIECE):
                file.write(data[start : start + _PIECE])
        os.utime(partial, (changed_at, changed_at))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
