"""The files of agents: their folders are listed, and compressed logs are unpacked.

Folders are listed in the same order everywhere and without following symbolic links. What is missing is empty. A folder
that cannot be listed counts as empty too, and so does one that an agent's module failed on, but both are collected
(`collect_unreadable_folders`): files in there are neither found nor deleted.

An archive keeps a compressed log as it is. Offsets of its records are offsets in what stands inside. Such a file is
never appended to, so it is fed whole.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

_unreadable: ContextVar[dict[str, str] | None] = ContextVar("unreadable", default=None)


@contextmanager
def collect_unreadable_folders() -> Generator[dict[str, str]]:
    """Folder -> why it could not be listed, of all folders that the body of the `with` met."""
    found: dict[str, str] = {}
    token = _unreadable.set(found)
    try:
        yield found
    finally:
        _unreadable.reset(token)


def folder_below(path: str, root: Path, name: str) -> str | None:
    """The folder in `root/name` that `path` lies in; None when it lies somewhere else (R-S20)."""
    above = f"{root}{os.sep}{name}{os.sep}"
    folder, separator, _ = path[len(above) :].partition(os.sep)
    return folder if separator and path.startswith(above) else None


def entries(path: str) -> list[os.DirEntry[str]]:
    """What is in a folder, by name."""
    try:
        with os.scandir(path) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        _note(path, error)
        return []


def holds_folder(home: Path, *names: str) -> bool:
    """Whether one of these folders is in a home."""
    return any(stat.S_ISDIR(_mode(home / name)) for name in names)


def holds_file(home: Path, name: str) -> bool:
    """Whether a plain file of this name is in a home, perhaps by a link."""
    return stat.S_ISREG(_mode(home / name))


def _mode(path: Path) -> int:
    """What a path leads to; 0 when it leads nowhere or cannot be followed."""
    try:
        return path.stat().st_mode
    except OSError as error:
        _note(str(path.parent), error)
        return 0


def _note(folder: str, error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        note_unreadable(folder, error.strerror or str(error))


def note_unreadable(folder: str, reason: str) -> None:
    """Say that the content of a folder is not known, to `collect_unreadable_folders`."""
    found = _unreadable.get()
    if found is not None:
        found[folder] = reason


def is_nameable(path: str) -> bool:
    """Whether a path is UTF-8, as the store and JSON need it; one that is not counts as unreadable."""
    if path.isascii():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        note_unreadable(os.fsencode(path).decode(errors="backslashreplace"), "its name is not UTF-8")
        return False
    return True


def folders(path: str) -> Iterator[os.DirEntry[str]]:
    """The folders in a folder, by name."""
    return filter(is_folder, entries(path))


def is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a plain file itself."""
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return False


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder itself."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


# -- compressed logs

SUFFIX = ".zst"

_PIECE = 1 << 16


class Decompressed(NamedTuple):
    """What stands inside of a file."""

    data: bytes
    problem: str | None = None
    """Why this is not all of it."""


def is_compressed(path: str) -> bool:
    """Whether a file is compressed, by its name."""
    return path.endswith(SUFFIX)


def decompress(path: str, data: bytes) -> Decompressed:
    """The content of a file: `data` itself, or what its frames of zstd hold as far as they are sound."""
    if not is_compressed(path):
        return Decompressed(data)
    # Imported here because few logs are compressed, and many are looked at.
    from zstandard import ZstdDecompressor, ZstdError

    pieces: list[bytes] = []
    rest = data
    try:
        while rest:
            frame = ZstdDecompressor().decompressobj()
            for start in range(0, len(rest), _PIECE):
                pieces.append(frame.decompress(rest[start : start + _PIECE]))
                if frame.eof:
                    rest = frame.unused_data + rest[start + _PIECE :]
                    break
            else:
                return Decompressed(b"".join(pieces), "cut off at the end of the file")
    except ZstdError as error:
        return Decompressed(b"".join(pieces), str(error))
    return Decompressed(b"".join(pieces))
