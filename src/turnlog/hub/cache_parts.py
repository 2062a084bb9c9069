"""The parts of a folder for caches: each process has one of its own, and removes those of processes that have ended."""

from __future__ import annotations

import logging
import os
import shutil
import time
from itertools import count
from pathlib import Path
from typing import Final

from turnlog.platforms.files import BINARY, lock

SECONDS_WITHOUT_OWNER: Final = 30.0
"""How long a part waits for a process to take it again, which finds what it had before it was restarted."""

_LOCK: Final = "lock"

_log = logging.getLogger(__name__)


class CachePart:
    """A part that no other process uses, until it is closed."""

    def __init__(self, folder: Path) -> None:
        """Take the first part below a folder that nobody has."""
        self._folder = folder
        self.path, self._descriptor = _first_free(folder)
        self._free_since: dict[Path, float] = {}

    def close(self) -> None:
        """Leave it to another process."""
        os.close(self._descriptor)

    def remove_others(self) -> None:
        """Remove what is in parts that had no process at any call for `SECONDS_WITHOUT_OWNER`.

        Nobody takes out of them what is forgotten.
        """
        now = time.monotonic()
        for part in sorted(self._folder.glob("search-*")):
            if part == self.path or not part.is_dir() or not any(each.name != _LOCK for each in part.iterdir()):
                continue
            descriptor = _locked(part)
            if descriptor is None:
                self._free_since.pop(part, None)
                continue
            try:
                if now - self._free_since.setdefault(part, now) >= SECONDS_WITHOUT_OWNER:
                    _empty(part)
            finally:
                os.close(descriptor)


def _first_free(folder: Path) -> tuple[Path, int]:
    for number in count():
        part = folder / f"search-{number}"
        try:
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileExistsError:
            continue  # no folder, and not ours
        descriptor = _locked(part)
        if descriptor is not None:
            return part, descriptor
    raise AssertionError("numbers do not end")


def _locked(part: Path) -> int | None:
    """The file whose lock says that a part is used; None if a process has it."""
    descriptor = os.open(part / _LOCK, os.O_RDWR | BINARY | os.O_CREAT, 0o600)
    if lock(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _empty(part: Path) -> None:
    """Remove everything but the lock: a process that opens it just now must find the same file as any other."""
    _log.info("%s is emptied: no process uses it", part.name)
    for each in part.iterdir():
        if each.name == _LOCK:
            continue
        try:
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        except OSError as error:
            _log.warning("cannot remove %s: %s", each.name, error.strerror)
