"""The projects in which Crush ran: each has a database in a folder of its own, which a list of the user's names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.files import read_regular_file

_LIST: Final = "projects.json"


class _Project(msgspec.Struct):
    path: str = ""
    data_dir: str = ""


class _Projects(msgspec.Struct):
    projects: list[_Project] = []


def project_folders(homes: Iterable[Path]) -> list[Path]:
    """The folders with the data of the projects that the lists in these homes name."""
    found: list[Path] = []
    for home in homes:
        folders = (Path(one.path, one.data_dir) for one in _projects(home / _LIST) if one.data_dir)
        found += [folder for folder in folders if folder.is_absolute()]
    return found


def _projects(path: Path) -> list[_Project]:
    json = read_regular_file(path)
    if not json:
        return []
    # Imported here because whoever asks where the homes of all agents are asks for these, and few have a list.
    from turnlog.agents.jsonl import UNREADABLE

    try:
        return msgspec.json.decode(json, type=_Projects).projects
    except UNREADABLE:
        return []
