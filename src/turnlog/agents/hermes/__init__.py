"""Hermes Agent: rows of a database that holds all sessions (`docs/formats/hermes.md`).

What reads the database is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Colour, Detection, Fold, RowAgent, RowUpdate, Source, Version
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words
from turnlog.agents.files import holds_file, holds_folder

NAME: Final = "hermes"

DATABASE: Final = "state.db"
PROFILES: Final = "profiles"
"""The folder of other profiles, each with its own database."""

_COMMAND = CommandForm(
    program="hermes",
    resume=("--resume",),
    subcommands=(("chat",), ()),
    prompt=words("-q --query"),
    model=words("-m --model"),
    session=words("-r --resume"),
    other=words("--provider --image --toolsets -t --skills -s --source --max-turns -p --profile"),
)
"""Of 0.19.0."""


class Hermes(RowAgent):
    """See `turnlog.agents.base.Agent` and `RowAgent`."""

    name = NAME
    display_name = "Hermes Agent"
    colour = Colour(light="#8a6d00", dark="#e3c04f")
    parser_version = 1
    homes = BUILT_IN[NAME].homes
    command = _COMMAND

    def roots(self) -> Sequence[Path]:
        """The homes that contain a database."""
        return [home for home in self.home_folders() if holds_file(home, DATABASE) or holds_folder(home, PROFILES)]

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Two sources for each session, its rows and what is known about it, and one for each database."""
        from turnlog.agents.hermes.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A database has the tables and columns of Hermes Agent."""
        from turnlog.agents.hermes.sources import detect_database

        return detect_database(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a session's rows, or of what is known about it."""
        from turnlog.agents.hermes.sources import is_about

        if is_about(source):
            from turnlog.agents.hermes.facts import HermesFactsFold

            return HermesFactsFold(source)
        from turnlog.agents.hermes.fold import HermesFold

        return HermesFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """The object that the text of a result is."""
        from turnlog.agents.hermes.contents import structured_result

        return structured_result(record)

    def holds_rows(self, source: Source) -> bool:
        """Every source."""
        return True

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        from turnlog.agents.hermes.sources import sources_at

        return sources_at(path, root)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        from turnlog.agents.hermes.sources import DATABASES

        return DATABASES.row_version(source)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.hermes.sources import DATABASES

        return DATABASES.read_rows(source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.hermes.row_log import restore_rows

        return restore_rows(source, log, to)
