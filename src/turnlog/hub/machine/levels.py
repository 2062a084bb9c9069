"""Upload levels: how much of a project leaves this machine. The user chooses; the hub cannot raise one."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath, PurePosixPath
from typing import Final, Literal, NamedTuple, TypeAlias

from turnlog.errors import SettingsError
from turnlog.paths import folds_case, home

Level: TypeAlias = Literal["none", "metrics", "redacted", "full"]

LEVELS: Final[tuple[Level, ...]] = ("none", "metrics", "redacted", "full")
"""From least to most."""

DEFAULT: Final[Level] = "redacted"

MEANINGS: Final[dict[Level, str]] = {
    "none": "nothing leaves",
    "metrics": "numbers, models and names of tools; no title, path or word",
    "redacted": "everything without secrets, images and log files",
    "full": "everything, with log files byte for byte",
}


_WAY: Final = 2
"""A higher one sends everything again: levels are found in another way."""

_DRIVE: Final = re.compile(r"(?://[?.]/|/)?(?P<drive>[A-Za-z]):(?P<rest>/.*)?", re.DOTALL)
_ENDING: Final = re.compile(r"(?<=[^/ .])[ .]+(?=/|\Z)")
"""Windows leaves dots and spaces at the end of a name out."""

_MOUNTED: Final = re.compile(r"/(?:mnt/|cygdrive/)?(?P<drive>[A-Za-z])(?P<rest>/.*)?", re.DOTALL)
"""A drive of Windows, as Linux on it, Cygwin and Git Bash write it."""


def is_lower(level: str, than: str) -> bool:
    """Whether less leaves at a level than at another one."""
    ranks: dict[str, int] = {each: rank for rank, each in enumerate(LEVELS)}
    return ranks[level] < ranks[than]


class Place(NamedTuple):
    """Where a session is."""

    project: str | None
    """The path of its project, None without one."""
    cwd: str | None = None
    """The folder that the agent worked in: another one in a worktree, or below the project."""


class Levels:
    """The level of every folder: that of the nearest folder above it that has one.

    A folder is the same under every spelling: through a link, with `//`, `/./`, `..` or a slash at the end, in the
    other case where names have none, as a drive of Windows or a mount of it. Where two of its names have rules of which
    neither is above the other, the lower level holds; so it does for the project of a session and its own folder.
    """

    def __init__(self, default: Level, chosen: Mapping[str, str]) -> None:
        """`chosen` is folder -> level. Raises SettingsError for a level that there is not."""
        self._default: Level = default
        self._chosen: dict[str, Level] = {}
        self._rules: dict[str, Level] = {}
        """The same by every spelling of a folder; of two rules for one folder the lower."""
        self._files: dict[tuple[int, int], set[str]] = {}
        """The spellings of each folder with a rule, by its number on the disk: of one folder they are all known."""
        self._known: dict[Place, Level] = {}
        for path, level in chosen.items():
            if level not in LEVELS:
                raise SettingsError(f"the upload level of {path} is {level!r}: it is one of {', '.join(LEVELS)}")
            self._chosen[path] = level
            names = spellings(path)
            for name in names:
                known = self._rules.get(name, level)
                self._rules[name] = known if is_lower(known, level) else level
            file = _file(path)
            if file is not None:
                self._files.setdefault(file, set()).update(names)

    def of(self, project: str | None, cwd: str | None = None) -> Level:
        """The level of a session; without a project the default, or that of all folders if that is lower.

        A rule for the folder that it worked in holds, too, if it is not above the project: there the project's own is
        nearer.
        """
        if not self._rules:
            return self._default
        place = Place(project, cwd)
        if place not in self._known:
            self._known[place] = self._found(place)
        return self._known[place]

    def _found(self, place: Place) -> Level:
        project = self._nearest(place.project)
        above = {each for name in spellings(place.project or "") for each in (name, *_above(name))}
        own = {rule for rule in self._nearest(place.cwd) if rule not in above}
        # A rule for all folders also holds for what is in none of them.
        others = () if project else (self._default, self._rules.get("/", self._default))
        return _least([*others, *map(self._rules.__getitem__, project | own)])

    def _nearest(self, path: str | None) -> set[str]:
        """The rules that are nearest to a folder under one of its names, and not above another one of these."""
        if not path:
            return set()
        chains = [(name, *_above(name)) for name in spellings(path)]
        found = {rule for chain in chains if (rule := next((each for each in chain if each in self._rules), None))}
        for folder in _real_chain(path) if self._files else ():
            file = _file(folder)
            if file in self._files:
                found |= self._files[file]
                break
        return found - {above for rule in found for above in _above(rule)}

    @property
    def differ(self) -> bool:
        """Whether one folder may have another level than the next."""
        return not {*self._chosen.values()} <= {self._default}

    def lowest(self, places: Iterable[Place]) -> Level:
        """The lowest level of sessions at these places; `none` without any."""
        return _least([self.of(*place) for place in places] or ["none"])

    def digest(self) -> str:
        """Another one for other levels, and for another way to find them."""
        text = json.dumps([_WAY, self._default, sorted(self._chosen.items())])
        return hashlib.sha256(text.encode()).hexdigest()


def _least(levels: Iterable[Level]) -> Level:
    """The level of these at which least leaves."""
    return min(levels, key=LEVELS.index)


def spellings(path: str) -> frozenset[str]:
    """What a folder is called: as it is written, without detours, and where its links lead now."""
    if not path:
        return frozenset()
    texts = {_expanded(path)}
    texts |= {os.path.realpath(text) for text in texts if _is_here(text)}
    return frozenset(name for text in texts for name in _names(text))


def _names(text: str) -> Iterator[str]:
    text = unicodedata.normalize("NFC", text)
    slashes = text.replace("\\", "/")
    drive = _DRIVE.fullmatch(slashes) or _MOUNTED.fullmatch(posixpath.normpath(re.sub("^/+", "/", slashes)))
    if drive is not None:
        # Names on these disks have no case.
        rest = posixpath.normpath("/" + (drive["rest"] or "")).replace("//", "/")
        yield f"{drive['drive']}:{_ENDING.sub('', rest)}".casefold()
    if drive is None or drive.re is _MOUNTED:
        name = posixpath.normpath(slashes if sys.platform == "win32" else re.sub("^/+", "/", text))
        yield name.casefold() if folds_case() else name


def _above(name: str) -> Iterator[str]:
    """The folders above one, the nearest first."""
    yield from map(str, PurePosixPath(name).parents)


def _real_chain(path: str) -> Iterator[str]:
    """The folder and those above it, as the disk has them."""
    text = _expanded(path)
    if _is_here(text):
        real = PurePath(os.path.realpath(text))
        yield from map(str, (real, *real.parents))


def _expanded(path: str) -> str:
    """The path below the user's home if it begins with `~/`."""
    return f"{home()}{path[1:]}" if path == "~" or path.startswith(("~/", "~\\")) else path


def _is_here(path: str) -> bool:
    """Whether a path may be on this machine: to look at one on another would sign in there."""
    is_on_network = sys.platform == "win32" and path.startswith(("//", "\\\\"))
    return PurePath(path).is_absolute() and "\0" not in path and not is_on_network


def _file(path: str) -> tuple[int, int] | None:
    """The number of a folder on the disk, which is one under all its names; None if it is not there."""
    if not _is_here(path):
        return None
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if found.st_ino else None
