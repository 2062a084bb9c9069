"""Writes the log files of a session that the hub sends."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

import msgspec

from turnlog.errors import ConflictError, NotFoundError, StoreError
from turnlog.hub.sync.wire import MISSING_LOGS
from turnlog.platforms.files import BINARY
from turnlog.store import zstd

_PIECE: Final = 1 << 20


def agent_home(session_id: str) -> Path:
    """The home of a session's agent on this machine. Raises NotFoundError for an agent that is not known."""
    from turnlog.agents import agents
    from turnlog.paths import folders

    name = session_id.partition(":")[0]
    found = next((agent for agent in agents() if agent.name == name), None)
    if found is None or found.homes is None:
        raise NotFoundError(f"there is no agent {name!r} here: say with --to where the files go")
    return folders(found.homes)[0]


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
                    (_relative(member), _read(archive, member), member.mtime) for member in archive.getmembers()
                ]
                missing = archive.pax_headers.get(MISSING_LOGS, "[]")
            self.missing = tuple(msgspec.json.decode(missing, type=list[MissingLog]))
        except (tarfile.TarError, zstd.ZstdError, msgspec.DecodeError) as error:
            raise StoreError(f"the hub sends no log files: {error}") from error

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
    if not member.isfile() or path.is_absolute() or ".." in path.parts or not path.parts:
        raise StoreError(f"the hub sends something that is no log file: {member.name[:200]}")
    return path


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
