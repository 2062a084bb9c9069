"""Parrot, an invented agent: the description by which turnlog knows it.

Every command that lists the agents imports this module. What reads logs is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from turnlog.agents.base import Agent, Colour, Detection, Fold, Source
from turnlog.agents.commands import CommandForm, words
from turnlog.paths import Folders

NAME = "parrot"

TALKS = "talks"
"""The folder of logs in a home."""


class Parrot(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Parrot"
    colour = Colour(light="#1c7c3c", dark="#7fdc9f")
    parser_version = 1
    homes = Folders(("~/.parrot",), variable="PARROT_HOME")
    log_folders = (TALKS,)
    command = CommandForm(program="parrot", resume=("--talk",), session=words("--talk"), model=words("--model"))

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Every log below a home."""
        from turnlog_parrot.reader import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log's first record has a talk and a kind."""
        from turnlog_parrot.reader import detect

        return detect(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log."""
        from turnlog_parrot.reader import ParrotFold

        return ParrotFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """None: results are texts."""
        return None
