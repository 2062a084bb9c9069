"""llm, Simon Willison's program: where its database is, and how it is read (`docs/formats/llm.md`).

What reads the database is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Colour, Detection, Fold, RowAgent, RowUpdate, Source, SourceKind, Version
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words
from turnlog.agents.files import holds_file

NAME: Final = "llm"

DATABASE: Final = "logs.db"

_COMMAND = CommandForm(
    program="llm",
    subcommands=(("prompt",), ("chat",), ()),
    resume=("chat", "--cid"),
    prompted=("--cid", "{session}"),
    model=words("-m --model"),
    system_prompt=words("-s --system"),
    session=words("--cid --conversation"),
    other=words(
        "-a --attachment -T --tool --functions --cl --chain-limit -o --option --schema --schema-multi -f --fragment",
        "--sf --system-fragment -t --template --key --save -q --query -d --database",
    ),
)
"""Of 0.36."""


class Llm(RowAgent):
    """See `turnlog.agents.base.Agent` and `RowAgent`."""

    name = NAME
    display_name = "llm"
    colour = Colour(light="#0f766e", dark="#5eead4")
    parser_version = 1
    homes = BUILT_IN[NAME].homes
    command = _COMMAND

    def roots(self) -> Sequence[Path]:
        """The homes that contain a database."""
        return [home for home in self.home_folders() if holds_file(home, DATABASE)]

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Two sources for each conversation, and one for the database."""
        from turnlog.agents.llm.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A database has the tables and columns of llm."""
        from turnlog.agents.llm.sources import detect_database

        return detect_database(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a conversation's rows, or of what is known about it."""
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.llm.facts import LlmFactsFold

            return LlmFactsFold(source)
        from turnlog.agents.llm.fold import LlmFold

        return LlmFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """None: results are texts."""
        return None

    def holds_rows(self, source: Source) -> bool:
        """Every source."""
        return True

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        from turnlog.agents.llm.sources import sources_at

        return sources_at(path, root)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        from turnlog.agents.llm.sources import DATABASES

        return DATABASES.row_version(source)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.llm.sources import DATABASES

        return DATABASES.read_rows(source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.llm.database import KEYS
        from turnlog.agents.row_files import restore_database, rows_in

        return restore_database(source, rows_in(log), to, KEYS)
