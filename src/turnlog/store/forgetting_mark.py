"""What is just being forgotten, in a file beside the store: whoever is killed over it, the next command ends it.

Words, rows and copies of logs are in several files, which no transaction deletes together. So the session is written
down before anything of it is deleted, and the paths of copies before the rows that name them are. The file is locked by
the process that is at work, and is gone when nothing of the session is left.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import Final, NamedTuple

from turnlog.errors import StoreBusyError, StoreError
from turnlog.platforms.files import BINARY, lock

_POLL_SECONDS: Final = 0.02


class Unfinished(NamedTuple):
    """A session of which something may be left."""

    session_id: str
    copies: list[str]
    """Files of turnlog's own to delete when the rows are."""
    session_ids: list[str] = []
    """All sessions that go with it, once they have tombstones: from then on their rows may be gone."""
    sources: list[str] = []
    """Paths of the sources that only contain these sessions."""


class ForgettingMark:
    """The open and locked file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self) -> Unfinished | None:
        """What another process was at when it ended; None if there is nothing left to do."""
        import msgspec  # every command imports this module, and nearly no store has a mark

        size = os.fstat(self._descriptor).st_size
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        found = None
        # A line that was not written to its end is of a step that was not begun.
        for line in os.read(self._descriptor, size).splitlines():
            with suppress(msgspec.MsgspecError, ValueError, RecursionError):
                found = msgspec.json.decode(line, type=Unfinished)
        return found

    def write(self, unfinished: Unfinished) -> None:
        """Note what is about to be deleted, so that it is on the disk when this returns."""
        os.lseek(self._descriptor, 0, os.SEEK_END)
        # A line of its own, also after one that was not written to its end.
        os.write(self._descriptor, b"\n" + json.dumps(unfinished).encode() + b"\n")
        os.fsync(self._descriptor)

    def clear(self) -> None:
        """Note that nothing is left."""
        os.ftruncate(self._descriptor, 0)


def mark_path(store_path: Path) -> Path:
    """The file, which exists only while something is being forgotten or was not ended."""
    return store_path.with_name(f"{store_path.name}-forgetting")


@contextmanager
def locked_mark(store_path: Path, seconds: float) -> Generator[ForgettingMark]:
    """The file, made if it is not there; at the end it is deleted if it is empty.

    Raises StoreBusyError if another process is forgetting for longer than `seconds`, and StoreError if something else
    has the file's name.
    """
    path = mark_path(store_path)
    end = time.monotonic() + seconds
    while (descriptor := _lock(path)) is None:
        if time.monotonic() >= end:
            raise StoreBusyError(f"another process is forgetting a session of {store_path} for too long")
        time.sleep(_POLL_SECONDS)
    try:
        yield ForgettingMark(descriptor)
    finally:
        if not os.fstat(descriptor).st_size:
            with suppress(OSError):  # Windows deletes no file that is open; an empty one does no harm
                path.unlink()
        os.close(descriptor)


def _lock(path: Path) -> int | None:
    """The descriptor of the file, locked; None if another process has it."""
    try:
        descriptor = os.open(path, os.O_RDWR | BINARY | os.O_CREAT, 0o600)
    except IsADirectoryError:
        raise _misplaced(path) from None
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _misplaced(path)
    # The file may have been deleted by whoever had the lock until now.
    with suppress(FileNotFoundError):
        if lock(descriptor) and os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    os.close(descriptor)
    return None


def _misplaced(path: Path) -> StoreError:
    return StoreError(f"{path} is no file of turnlog's: move it away, then forgetting can be ended there")
