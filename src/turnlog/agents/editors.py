"""Where editors that are made from VS Code keep what belongs to a user; extensions have folders there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from turnlog import paths
from turnlog.paths import Folders

VSCODE: Final = ("Code", "Code - Insiders", "VSCodium")
"""VS Code, and builds of its source under another name."""

DESCENDANTS: Final = ("Cursor", "Windsurf", "Trae", "Kiro", "Positron")
"""Editors of others that run its extensions."""

_PLACES: Final = ("$XDG_CONFIG_HOME", "~/Library/Application Support", "~/AppData/Roaming")
"""Linux, macOS, Windows."""

_SERVERS: Final = (
    ".vscode-server",
    ".vscode-server-insiders",
    ".vscodium-server",
    ".cursor-server",
    ".windsurf-server",
)
"""Of editors that work on another machine, on that machine."""

_USER: Final = "User"


def user_folders(*programs: str) -> Sequence[Path]:
    """The folders of a user's data of these programs, and of servers; they need not exist.

    `VSCODE_PORTABLE` names the folder of a portable VS Code.
    """
    rule = Folders(tuple(f"{place}/{program}/{_USER}" for program in programs for place in _PLACES))
    portable = paths.file_named_by("VSCODE_PORTABLE", paths.home())
    found = [] if portable is None else [portable / "user-data" / _USER]
    found += paths.folders(rule)
    found += [paths.home() / server / "data" / _USER for server in _SERVERS]
    return tuple(dict.fromkeys(found))
