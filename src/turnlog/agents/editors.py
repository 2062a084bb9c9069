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


def editor_homes(*programs: str) -> Folders:
    """Where these programs keep a user's data, and where servers do; a portable VS Code has it elsewhere."""
    own = [f"{place}/{program}/{_USER}" for program in programs for place in _PLACES]
    return Folders((*own, *(f"~/{server}/data/{_USER}" for server in _SERVERS)))


PORTABLE: Final = "VSCODE_PORTABLE"
"""The variable with the folder of a portable VS Code."""


def user_folders(homes: Folders) -> Sequence[Path]:
    """The folders that `editor_homes` names, after that of a portable VS Code; they need not exist."""
    portable = paths.file_named_by(PORTABLE, paths.home())
    named = [] if portable is None else [portable / "user-data" / _USER]
    return tuple(dict.fromkeys((*named, *paths.folders(homes))))
