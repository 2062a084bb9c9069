"""The projects in which Crush ran: each has a database in a folder of its own, which a list of the user's names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.files import read_regular_file
from turnlog.agents.jsonl import UNREADABLE

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
        try:
            listed = msgspec.json.decode(read_regular_file(home / _LIST), type=_Projects)
        except (OSError, *UNREADABLE):
            continue
        folders = (Path(project.path, project.data_dir) for project in listed.projects if project.data_dir)
        found += [folder for folder in folders if folder.is_absolute()]
    return found
