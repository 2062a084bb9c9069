"""Files that are written as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


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
        os.chown(new, status.st_uid, status.st_gid)
    new.chmod(status.st_mode & 0o7777 if mode is None else mode)
