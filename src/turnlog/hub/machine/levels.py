"""Upload levels: how much of a project leaves this machine. The user chooses; the hub cannot raise one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Final, Literal, TypeAlias

from turnlog.errors import SettingsError

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


def is_lower(level: str, than: str) -> bool:
    """Whether less leaves at a level than at another one."""
    ranks: dict[str, int] = {each: rank for rank, each in enumerate(LEVELS)}
    return ranks[level] < ranks[than]


class Levels:
    """The level of every folder: that of the nearest folder above it that has one."""

    def __init__(self, default: Level, chosen: Mapping[str, str]) -> None:
        """`chosen` is folder -> level. Raises SettingsError for a level that there is not."""
        self._default: Level = default
        self._chosen: dict[str, Level] = {}
        for path, level in chosen.items():
            if level not in LEVELS:
                raise SettingsError(f"the upload level of {path} is {level!r}: it is one of {', '.join(LEVELS)}")
            self._chosen[path] = level

    def of(self, path: str | None) -> Level:
        """The level of a project; of sessions without one, the default, or that of all folders if that is lower."""
        if path is None:
            everywhere = self._chosen.get("/", self._default)
            return everywhere if is_lower(everywhere, self._default) else self._default
        if not self._chosen:
            return self._default
        for folder in (path, *map(str, PurePath(path).parents)):
            if folder in self._chosen:
                return self._chosen[folder]
        return self._default

    @property
    def differ(self) -> bool:
        """Whether one folder may have another level than the next."""
        return not {*self._chosen.values()} <= {self._default}

    def lowest(self, paths: Iterable[str | None]) -> Level:
        """The lowest level of these projects; `none` without any."""
        found = {self.of(path) for path in paths}
        lowest: Level = "none"
        for level in reversed(LEVELS):
            lowest = level if level in found else lowest
        return lowest

    def digest(self) -> str:
        """Another one for other levels."""
        text = json.dumps([self._default, sorted(self._chosen.items())])
        return hashlib.sha256(text.encode()).hexdigest()
