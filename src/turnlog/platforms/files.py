"""Opening, reading, locking and owning files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
"""Flag of `os.open` that refuses a symbolic link; 0 on Windows, where only administrators make links."""

NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""Flag of `os.open` that does not wait for the other end of a pipe; 0 on Windows, whose pipes are in no folder."""

# Without it, Windows turns line ends into others, and ends a file at a Ctrl-Z.
BINARY = getattr(os, "O_BINARY", 0)
"""Flag of `os.open` that leaves the bytes as they are; 0 where they always are."""


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """At most `size` bytes from `offset` on. Where the system can, the position of the file stays as it is."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def current_user() -> int | None:
    """The number of the user who runs this process; None on Windows, where users have no number."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def is_own(status: os.stat_result) -> bool:
    """Whether a file is the user's; always on Windows, whose folders of users keep others out."""
    return status.st_uid == current_user() or not hasattr(os, "geteuid")


def give(path: Path, user: int, group: int) -> None:
    """Give a file to a user and group; does nothing on Windows. Raises OSError."""
    if hasattr(os, "chown"):
        os.chown(path, user, group)


def lock(descriptor: int) -> bool:
    """Lock an open file until it is closed or the process ends; False if another process has it locked."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
