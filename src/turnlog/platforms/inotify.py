"""Changes in folders as the Linux kernel reports them (`inotify(7)`), through ctypes: no thread, no debounce.

Every change in a watched folder is reported once, in order, or `Mask.OVERFLOW` says that some were lost. Folders below
a watched one are not included: `turnlog.sync.watcher` watches each of them.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from enum import IntFlag
from pathlib import Path
from typing import NamedTuple

AVAILABLE = sys.platform == "linux"

_MOST_WATCHES = Path("/proc/sys/fs/inotify/max_user_watches")

# `struct inotify_event`: watch, mask, cookie, and the length of the name, which is padded with NUL.
_HEADER = struct.Struct("iIII")
_READ_SIZE = 1 << 16


class Mask(IntFlag):
    """Kinds of events, and flags of a watch (`linux/inotify.h`)."""

    MODIFY = 0x2
    MOVED_FROM = 0x40
    MOVED_TO = 0x80
    CREATE = 0x100
    OVERFLOW = 0x4000
    IGNORED = 0x8000
    ONLY_FOLDERS = 0x01000000
    IS_FOLDER = 0x40000000


# MODIFY, because agents keep their logs open while they write. Files that are deleted are found by the next pass.
_WATCHED = Mask.MODIFY | Mask.MOVED_FROM | Mask.MOVED_TO | Mask.CREATE | Mask.ONLY_FOLDERS


def most_watches() -> int:
    """How many watches the kernel allows a user, in all programs; 0 if it does not say."""
    try:
        return int(_MOST_WATCHES.read_text())
    except (OSError, ValueError):
        return 0


class InotifyEvent(NamedTuple):
    """A change. `name` is the entry in the watched folder; empty if the folder itself changed."""

    watch: int
    mask: Mask
    name: str


class Inotify:
    """A queue of events and its watches."""

    def __init__(self) -> None:
        """Open the queue. Raises OSError when the user has too many."""
        self._library = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._checked(self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, folder: str) -> int:
        """Watch a folder; return the number in its events. Raises OSError (ENOSPC at the kernel's limit)."""
        return self._checked(self._library.inotify_add_watch(self.descriptor, os.fsencode(folder), int(_WATCHED)))

    def remove(self, watch: int) -> None:
        """Stop watching. A watch that no longer exists is no error."""
        self._library.inotify_rm_watch(self.descriptor, watch)

    def read(self) -> list[InotifyEvent]:
        """The events since the last call, oldest first; empty if there are none."""
        events: list[InotifyEvent] = []
        while True:
            try:
                data = os.read(self.descriptor, _READ_SIZE)
            except BlockingIOError:
                return events
            events += _parse_events(data)

    def close(self) -> None:
        """Close the queue and remove all watches."""
        os.close(self.descriptor)

    def _checked(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result


def _parse_events(data: bytes) -> list[InotifyEvent]:
    events: list[InotifyEvent] = []
    start = 0
    while start < len(data):
        watch, mask, _, length = _HEADER.unpack_from(data, start)
        start += _HEADER.size
        events.append(InotifyEvent(watch, Mask(mask), os.fsdecode(data[start : start + length].rstrip(b"\0"))))
        start += length
    return events
