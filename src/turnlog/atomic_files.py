"""Files that are written as a whole or not at all, and paths where something else than a file may be.

A pipe keeps who opens it waiting, a device may never end, and a symbolic link leads elsewhere. Each is found before
anything is opened or made.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO

from turnlog.platforms.files import BINARY, NO_WAIT, give

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def refuse_other_than_file(path: Path, *, follow: bool = False) -> None:
    """Raise OSError, which says what is there, unless it is a file or nothing; with `follow` at the end of links."""
    with contextlib.suppress(FileNotFoundError):
        _refuse(path, (path.stat() if follow else path.lstat()).st_mode)


def _refuse(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        what = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise OSError(errno.EINVAL, f"this is {what}, not a file", os.fspath(path))


def open_file(path: Path) -> BinaryIO:
    """Open a file to read it, also through links. Raises OSError for what is no file, without waiting for it."""
    refuse_other_than_file(path, follow=True)
    # It may have become something else by now: that must not keep us waiting.
    descriptor = os.open(path, os.O_RDONLY | BINARY | NO_WAIT)
    file = os.fdopen(descriptor, "rb")
    try:
        _refuse(path, os.fstat(descriptor).st_mode)
    except OSError:
        file.close()
        raise
    return file


def read_file(path: Path, limit: int) -> bytes:
    """The bytes of a file, also through links. Raises OSError for what is no file, and for more bytes than `limit`."""
    with open_file(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"has more than {limit} bytes", os.fspath(path))
    return data


def refuse_device(file: BinaryIO, name: str) -> None:
    """Raise OSError, which names it so, for an open device, which may never end. A terminal does."""
    try:
        mode = os.fstat(file.fileno()).st_mode
    except (OSError, ValueError):
        return  # bytes in memory
    if (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and not file.isatty():
        raise OSError(errno.EINVAL, "this is a device, not a file", name)


def make_folders(folder: Path, top: Path) -> None:
    """Make a folder below `top`, and what is missing above it, for the user alone.

    Raises OSError for a symbolic link between them, before anything is made, and for what is no folder.
    """
    between = [each for each in (folder, *folder.parents) if each != top and each.is_relative_to(top)]
    for each in between:
        if each.is_symlink():
            raise OSError(errno.ELOOP, "a symbolic link is there, which could lead elsewhere", os.fspath(each))
    for each in reversed([folder, *folder.parents]):
        # A link that leads nowhere would seem to be a folder that another process has just made.
        if not each.exists() and not each.is_symlink():
            each.mkdir(0o700, exist_ok=True)
        if not each.is_dir():
            raise OSError(errno.ENOTDIR, "is no folder", os.fspath(each))


def write_atomically(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file anew in one step, with this mode, or else with the mode and owner of the one that was there."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _dress(Path(name), path, mode)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def _dress(new: Path, old: Path, mode: int | None) -> None:
    try:
        status = old.stat()
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        new.chmod(0o666 & ~umask if mode is None else mode)
        return
    with contextlib.suppress(OSError):
        give(new, status.st_uid, status.st_gid)
    new.chmod(status.st_mode & 0o7777 if mode is None else mode)
