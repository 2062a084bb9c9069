"""Looking into an agent's folders, in the same order everywhere and without following symbolic links.

Whatever is missing or may not be read holds nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator


def entries(path: str) -> list[os.DirEntry[str]]:
    """What is in a folder, by name."""
    try:
        with os.scandir(path) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


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
