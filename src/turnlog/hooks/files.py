"""Files that are written as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def make_folders(folder: Path) -> list[str]:
    """Make a folder; those that were missing, outermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return [os.fspath(each) for each in reversed(missing)]


def remove_folders(folders: list[str]) -> None:
    """Remove folders, innermost first, as far as they are empty."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()


def replace(path: Path, data: bytes, mode: int | None = None) -> None:
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
