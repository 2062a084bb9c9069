"""Folders that are made for a file, and removed with it."""

from __future__ import annotations

import contextlib
import os
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
