"""Git worktrees: the repository to which a folder belongs.

The path says it where agents make worktrees, also after they were deleted and for folders of other machines. For any
other folder the disk says it, as long as the worktree is there.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

_MADE_BY_AGENTS = re.compile(
    r"(?P<repository>.*?[^/\\])[/\\](?:\.claude[/\\]|\.)worktrees[/\\](?P<name>[^/\\]+)(?:[/\\]|$)"
)
_OF_REPOSITORY = re.compile(r"gitdir: (?P<git>.+)[/\\]worktrees[/\\][^/\\]+\s*")

_LARGEST_POINTER = 8192
"""Bytes of a `.git` file that are read; it holds one path."""


class Worktree(NamedTuple):
    """A folder in a git worktree."""

    repository: str
    """The folder of the repository."""
    name: str
    """The name of the worktree's folder."""


def worktree_in(path: str) -> Worktree | None:
    """What the path itself says: `<repository>/.worktrees/<name>` or `<repository>/.claude/worktrees/<name>`."""
    found = _MADE_BY_AGENTS.match(path)
    return None if found is None else Worktree(found["repository"], found["name"])


def find_worktree(path: str) -> Worktree | None:
    """What the path says, otherwise the disk. None: the folder is in no worktree, or is not on this machine."""
    return worktree_in(path) or _on_disk(path)


def _on_disk(path: str) -> Worktree | None:
    # Logs may name any path: to look at a share of a network would sign in there.
    folder = Path(path)
    if not folder.is_absolute() or path.startswith(("//", "\\\\")):
        return None
    for place in (folder, *folder.parents):
        pointer = place / ".git"
        try:
            mode = os.lstat(pointer).st_mode
        except (OSError, ValueError):
            continue
        return _pointed(place, pointer) if stat.S_ISREG(mode) else None
    return None


def _pointed(folder: Path, pointer: Path) -> Worktree | None:
    """The worktree whose file `.git` this is; None if it points elsewhere, as that of a submodule does."""
    try:
        with pointer.open("rb") as file:
            text = os.fsdecode(file.read(_LARGEST_POINTER))
    except OSError:
        return None
    found = _OF_REPOSITORY.fullmatch(text)
    if found is None:
        return None
    git = Path(os.path.normpath(folder / found["git"]))
    # A bare repository has no folder of its own: worktrees are beside `.bare`, or anywhere for `shop.git`.
    return Worktree(str(git.parent if git.name.startswith(".") else git), folder.name)
