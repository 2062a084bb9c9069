"""A git folder without settings, through which git reads a clone's objects.

A clone's configuration, attributes and hooks can name programs, and its copy may hold a folder that git would take for
a repository with a configuration of its own. git therefore never gets a folder of the clone as its repository: it gets
one that is made here. That has the clone's refs, its work tree and the place of its objects, and nothing that names a
program. The clone is only read.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from turnlog.errors import NotFoundError
from turnlog.paths import without_git_places

_ENVIRONMENT: Final = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}

_SETTINGS: Final = "[core]\n\trepositoryFormatVersion = 1\n\tquotePath = false\n\tlongPaths = true\n"

_POINTER = re.compile(r"gitdir: (?P<folder>[^\n]+)\n*")

_LARGEST_POINTER: Final = 8192
"""Bytes of a file that holds one path or one ref."""

_MOST_OBJECT_FOLDERS: Final = 100
"""Folders of objects that a clone may have."""

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

_REF = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]+")

_MOST_NAMES: Final = 5
"""Refs that name one another; git follows no more."""

_HEAD = re.compile(rf"ref: {_REF.pattern}|{_HASH.pattern}")


class Clone(NamedTuple):
    """Where a clone keeps its things."""

    root: Path
    """The folder of the work tree."""
    git: Path
    """What this work tree has for itself: its `HEAD`."""
    common: Path
    """What all its work trees share: refs, objects, configuration."""

    @property
    def work_trees(self) -> Iterator[str]:
        """The folders of all its work trees, as they are named where git keeps them."""
        yield str(self.common.parent if self.common.name == ".git" else self.common)
        for each in sorted(self.common.glob("worktrees/*")):
            pointer = _text(each / "gitdir", _LARGEST_POINTER)
            if pointer:
                yield str(Path(os.path.normpath(each / pointer.strip("\n"))).parent)


def find_clone(folder: Path) -> Clone:
    """The clone that a folder is in. Raises NotFoundError if it is in none.

    A folder that looks like a repository without a work tree is passed over: it may be a part of the clone.
    """
    place = Path(os.path.realpath(folder))
    for root in (place, *place.parents):
        git = _git_of(root)
        if git is not None:
            shared = _text(git / "commondir", _LARGEST_POINTER)
            common = git if shared is None else Path(os.path.normpath(git / shared.strip("\n")))
            if _is_network(str(common)) or not (common / "objects").is_dir():
                raise NotFoundError(f"{root} is no git repository that can be read")
            _check_objects(common / "objects", set())
            return Clone(root, git, common)
    raise NotFoundError(f"{folder} is in no git repository that can be read")


class GitFolder:
    """A temporary git folder that shows a clone's commits. It is deleted with this object."""

    def __init__(self, clone: Clone) -> None:
        """Make the folder. Raises NotFoundError for a clone whose refs cannot be read."""
        self._clone = clone
        self.path = Path(tempfile.mkdtemp(prefix="turnlog-git-"))
        self._end = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        for name in ("objects", "refs"):
            (self.path / name).mkdir()
        head = (_text(clone.git / "HEAD", _LARGEST_POINTER) or "").strip()
        if _HEAD.fullmatch(head) is None:
            raise NotFoundError(f"{clone.root} is no git repository that can be read: its HEAD names no commit")
        refs = _refs(clone.common)
        self._write("HEAD", f"{head}\n")
        self._write("packed-refs", "".join(f"{refs[name]} {name}\n" for name in sorted(refs)))
        self._write("shallow", _hashes(clone.common / "shallow"))
        self._write("MERGE_HEAD", _hashes(clone.git / "MERGE_HEAD"))
        self._write("config", _SETTINGS + "".join(self._extensions([*refs.values(), head])))

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which git reads the clone through this folder, and no settings of anyone."""
        return {
            **without_git_places(),
            **_ENVIRONMENT,
            "GIT_DIR": str(self.path),
            "GIT_OBJECT_DIRECTORY": str(self._clone.common / "objects"),
            "GIT_WORK_TREE": str(self._clone.root),
            # Versions before 2.32 know no variable for the user's settings.
            "HOME": str(self.path),
            "XDG_CONFIG_HOME": str(self.path),
        }

    def _extensions(self, names: list[str]) -> Iterator[str]:
        """The settings that say how refs and objects are written, as the clone's files show it."""
        yield "[extensions]\n"
        if any(len(name) == 64 and _HASH.fullmatch(name) for name in names):
            yield "\tobjectFormat = sha256\n"
        tables = self._clone.common / "reftable"
        if tables.is_dir():
            shutil.copytree(tables, self.path / "reftable")
            yield "\trefStorage = reftable\n"

    def _write(self, name: str, text: str) -> None:
        if text:
            (self.path / name).write_bytes(os.fsencode(text))


def is_plain_file(path: Path) -> bool:
    """Whether a file can be read without waiting: no pipe, no device."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _git_of(root: Path) -> Path | None:
    """The git folder that a folder's `.git` is or names; None if there is none."""
    place = root / ".git"
    if (place / "HEAD").exists():
        return place
    found = _POINTER.fullmatch(_text(place, _LARGEST_POINTER) or "")
    if found is None or _is_network(found["folder"]):
        return None
    git = Path(os.path.normpath(root / found["folder"]))
    return git if (git / "HEAD").exists() else None


def _check_objects(objects: Path, seen: set[Path]) -> None:
    """Raise NotFoundError for a folder of objects that names others on another machine, or that git would wait for."""
    seen.add(objects)
    place = objects / "info" / "alternates"
    if os.access(place, os.R_OK) and not is_plain_file(place):
        raise NotFoundError(f"{place} is no file")
    if len(seen) > _MOST_OBJECT_FOLDERS:
        raise NotFoundError(f"{place} names too many places of objects")
    for line in (_text(place) or "").split("\n"):
        name = line.removeprefix('"')
        if _is_network(name) or (name != line and "\\" in name):
            raise NotFoundError(f"{place} names objects on another machine")
        other = Path(os.path.normpath(objects / name.removesuffix('"')))
        if line and not line.startswith("#") and other not in seen:
            _check_objects(other, seen)


def _is_network(path: str) -> bool:
    """Whether a path may be on another machine: to look at it would sign in there."""
    return path.startswith(("//", "\\\\"))


def _refs(common: Path) -> dict[str, str]:
    """Name -> hash of each ref, as its file has it, or else the list of packed ones."""
    found: dict[str, str] = {}
    for line in (_text(common / "packed-refs") or "").split("\n"):
        commit, _, name = line.partition(" ")
        if _HASH.fullmatch(commit) and _REF.fullmatch(name):
            found[name] = commit
    others: dict[str, str] = {}
    for folder, _, files in os.walk(common / "refs"):
        for file in files:
            path = Path(folder, file)
            name, text = path.relative_to(common).as_posix(), (_text(path, _LARGEST_POINTER) or "").strip()
            if _HASH.fullmatch(text) and _REF.fullmatch(name):
                found[name] = text
            elif _HEAD.fullmatch(text) and _REF.fullmatch(name):
                others[name] = text.removeprefix("ref: ")
    for name, other in others.items():
        for _ in range(_MOST_NAMES):
            other = others.get(other, other)
        if other in found:
            found[name] = found[other]
    return found


def _hashes(path: Path) -> str:
    """The hashes in a file, one a line."""
    lines = (_text(path) or "").split("\n")
    return "".join(f"{line}\n" for line in lines if _HASH.fullmatch(line))


def _text(path: Path, most: int = -1) -> str | None:
    """The beginning of a file; None if there is none that can be read."""
    if not is_plain_file(path):
        return None
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(most))
    except OSError:
        return None
