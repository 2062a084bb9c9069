"""Listing the folders of agents, and unpacking compressed logs.

Folders are listed in the same order on every system. The folders in which an agent keeps its logs (`Agent.log_folders`)
and its database may be symbolic links, because people keep them on another disk. Links below are not followed, because
whoever writes there could name any file; `collect_links` collects them. A missing folder is empty. A folder that cannot
be listed also counts as empty, and so does a home if the agent's module fails; `collect_unreadable_folders` collects
both, so that sync does not take their files for deleted.

The archive keeps a compressed log as it is. Offsets of its records are offsets in the decompressed content. Such a file
is never appended to, so it is fed whole.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias

from turnlog.platforms.files import BINARY, NO_FOLLOW, NO_WAIT

Version: TypeAlias = tuple[int, int, int, int]
"""Size in bytes (of rows estimated), time of the last change (Unix nanoseconds), and of a file its device and inode, of
rows two numbers that change with them."""

_unreadable: ContextVar[dict[str, str] | None] = ContextVar("unreadable", default=None)

_links: ContextVar[set[str] | None] = ContextVar("links", default=None)


class _Read:
    """What was read before."""

    def __init__(self, versions: Mapping[str, Version]) -> None:
        self.versions = versions
        self.unchanged: set[str] = set()
        """Paths of the files and of the rows that are still like this."""

    @cached_property
    def rows(self) -> dict[str, dict[str, Version]]:
        """Database -> path of each source in it -> version."""
        found: dict[str, dict[str, Version]] = {}
        for path, version in self.versions.items():
            if "#" in path:
                # One below a folder with such a name is found under another: it is listed in every pass.
                found.setdefault(path.partition("#")[0], {})[path] = version
        return found


_read: ContextVar[_Read | None] = ContextVar("read", default=None)


@contextmanager
def leave_out_unchanged(versions: Mapping[str, Version]) -> Generator[set[str]]:
    """Leave out what is as it was, while the body of the `with` runs; the paths of these sources.

    `versions` are those of the sources that were read before, by their paths. With most files there is nothing to do in
    a pass: it makes no source of them (`unread`), nor of the rows of a database (`are_rows_unchanged`).
    """
    read = _Read(versions)
    token = _read.set(read)
    try:
        yield read.unchanged
    finally:
        _read.reset(token)


def unread_entries(path: str) -> list[os.DirEntry[str]]:
    """The entries of a folder that `unread` leaves, sorted by name."""
    try:
        with os.scandir(path) as found:
            # Most are left out, and need not be sorted.
            return sorted(unread(found), key=_name)
    except OSError as error:
        _note(path, error)
        return []


def unread(listed: Iterable[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """These entries of a folder without files that are as they were when they were read; all, unless a pass asks."""
    read = _read.get()
    if read is None:
        return list(listed)
    # Once for each file in a pass: no call but the one to the system.
    version_of, note_unchanged, others = read.versions.get, read.unchanged.add, list[os.DirEntry[str]]()
    for entry in listed:
        path = entry.path
        version = version_of(path)
        if version is not None:
            try:
                now = entry.stat(follow_symlinks=False)
            except OSError:
                others.append(entry)
                continue
            if version == (now.st_size, now.st_mtime_ns, now.st_dev, now.st_ino):
                note_unchanged(path)
                continue
        others.append(entry)
    return others


def are_rows_unchanged(database: str, version_of: Callable[[Mapping[str, Version]], Version]) -> bool:
    """Whether a database and all sources in it are as they were when they were read; False, unless a pass asks.

    Args:
        database: Its path.
        version_of: The version that the database has if the sources in it have these versions.
    """
    read = _read.get()
    if read is None or database not in read.versions:
        return False
    rows = read.rows.get(database, {})
    if read.versions[database] != version_of(rows):
        return False
    read.unchanged.update((database, *rows))
    return True


@contextmanager
def collect_unreadable_folders() -> Generator[dict[str, str]]:
    """Collect the folders that cannot be listed while the body of the `with` runs: folder -> reason.

    At its end, what lies below another of them is left out: nobody can say whether it exists.
    """
    found: dict[str, str] = {}
    token = _unreadable.set(found)
    try:
        yield found
    finally:
        _unreadable.reset(token)
        for folder in [folder for folder in found if any(str(above) in found for above in Path(folder).parents)]:
            del found[folder]


@contextmanager
def collect_links() -> Generator[set[str]]:
    """Collect the links to files and folders that are not followed while the body of the `with` runs."""
    found: set[str] = set()
    token = _links.set(found)
    try:
        yield found
    finally:
        _links.reset(token)


def folder_below(path: str, root: str | Path, name: str) -> str | None:
    """The folder in `root/name` that contains `path`; None if it is elsewhere (R-S20)."""
    above = f"{root}{os.sep}{name}{os.sep}"
    folder, separator, _ = path[len(above) :].partition(os.sep)
    return folder if separator and path.startswith(above) else None


_name = attrgetter("name")


def entries(path: str) -> list[os.DirEntry[str]]:
    """The entries of a folder, sorted by name."""
    try:
        with os.scandir(path) as found:
            return sorted(found, key=_name)
    except OSError as error:
        _note(path, error)
        return []


def holds_folder(home: Path, *names: str) -> bool:
    """Whether a home contains one of these folders."""
    return any(stat.S_ISDIR(_mode(home / name)) for name in names)


def holds_file(home: Path, name: str) -> bool:
    """Whether a home contains a regular file with this name, or a link to one."""
    return stat.S_ISREG(_mode(home / name))


def holds_log(folder: Path, name: str) -> bool:
    """Whether a folder below an agent's top folder contains a regular file with this name. A link is not followed."""
    path = folder / name
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        _note(str(folder), error)
        return False
    found = _links.get()
    if found is not None and stat.S_ISLNK(mode):
        found.add(os.fspath(path))
    return stat.S_ISREG(mode)


def _mode(path: Path) -> int:
    """The mode of the file that a path leads to; 0 if there is none or it cannot be followed."""
    try:
        return path.stat().st_mode
    except OSError as error:
        _note(str(path.parent), error)
        return 0


def _note(folder: str, error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        note_unreadable(folder, error.strerror or str(error))


def note_unreadable(folder: str, reason: str) -> None:
    """Report to `collect_unreadable_folders` that the content of a folder is unknown."""
    found = _unreadable.get()
    if found is not None:
        found[folder] = reason


def is_nameable(path: str) -> bool:
    """Whether a path is UTF-8, as the store and JSON require. A path that is not counts as unreadable."""
    if path.isascii():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        note_unreadable(os.fsencode(path).decode(errors="backslashreplace"), "its name is not UTF-8")
        return False
    return True


def folders(path: str) -> Iterator[os.DirEntry[str]]:
    """The folders in a folder, sorted by name."""
    return filter(is_folder, entries(path))


def is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a regular file and not a link."""
    try:
        if entry.is_symlink():
            _note_link(entry, leads=entry.is_file())
            return False
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return False


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder and not a link."""
    try:
        if entry.is_symlink():
            _note_link(entry, leads=entry.is_dir())
            return False
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _note_link(entry: os.DirEntry[str], *, leads: bool) -> None:
    """Report a link to `collect_links`, if it leads to what was looked for."""
    found = _links.get()
    if found is not None and leads:
        found.add(entry.path)


_LARGEST_SMALL = 1 << 20
"""Bytes that are read of a small file."""


def read_regular_file(path: Path | str, limit: int = _LARGEST_SMALL, start: int = 0) -> bytes:
    """At most `limit` bytes (-1: all) of a regular file; empty when it is missing, a link, or anything else."""
    opened = _open_regular_file(path)
    if opened is None:
        return b""
    try:
        size = opened.size - start
        return _read_from(opened, start, size if limit < 0 or size < limit else limit)
    finally:
        os.close(opened.descriptor)


def read_ends(paths: Sequence[str], limit: int) -> Iterator[bytes]:
    """As `read_regular_file` of each path, at most `limit` bytes of its end.

    The disk is asked for many ends before the first is waited for: 24,000 logs that were not in the system's cache
    took 18 s one after the other, and 2 s so.
    """
    for first in range(0, len(paths), _OPEN_AT_ONCE):
        opened = [_open_regular_file(path) for path in paths[first : first + _OPEN_AT_ONCE]]
        try:
            for file in filter(None, opened):
                _will_need(file.descriptor, max(0, file.size - limit), limit)
            for file in opened:
                yield b"" if file is None else _read_from(file, max(0, file.size - limit), min(limit, file.size))
        finally:
            for file in filter(None, opened):
                os.close(file.descriptor)


_OPEN_AT_ONCE = 64
"""Some systems let a process have 256 files."""


class _OpenFile(NamedTuple):
    # A file object costs more than opening and reading: a first import looks into ten thousands of ends.
    descriptor: int
    size: int


def _open_regular_file(path: Path | str) -> _OpenFile | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | BINARY | NO_WAIT | NO_FOLLOW)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return _OpenFile(descriptor, status.st_size)
    except OSError:
        pass
    os.close(descriptor)
    return None


def _will_need(descriptor: int, start: int, size: int) -> None:
    """Have the system read something into its cache; not every system can be asked."""
    with suppress(AttributeError, OSError):
        os.posix_fadvise(descriptor, start, size, os.POSIX_FADV_WILLNEED)


def _read_from(file: _OpenFile, start: int, size: int) -> bytes:
    if size <= 0:
        return b""
    try:
        if start:
            os.lseek(file.descriptor, start, os.SEEK_SET)
        return _read_exactly(file.descriptor, size)
    except OSError:
        return b""


def _read_exactly(descriptor: int, size: int) -> bytes:
    """So many bytes; fewer if the file has become shorter."""
    data = os.read(descriptor, size)
    while len(data) < size and (more := os.read(descriptor, size - len(data))):
        data += more
    return data


# -- compressed logs

SUFFIX = ".zst"

_PIECE = 1 << 16


class Decompressed(NamedTuple):
    """The content of a compressed file."""

    data: bytes
    problem: str | None = None
    """Why the content is incomplete; None if it is complete."""


def is_compressed(path: str) -> bool:
    """Whether a file is compressed, judged by its name."""
    return path.endswith(SUFFIX)


def decompress(path: str, data: bytes) -> Decompressed:
    """The content of a file: `data` itself, or as much of its zstd frames as can be decompressed."""
    if not is_compressed(path):
        return Decompressed(data)
    # Imported here because few logs are compressed, and every sync looks at many files.
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
