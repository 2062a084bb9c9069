"""Goose: where its sessions are, how they are read, and how its program is run (`docs/formats/goose.md`).

What reads the sessions is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Colour, Detection, Fold, RowAgent, RowUpdate, Source, Version
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words

NAME: Final = "goose"

_COMMAND: Final = CommandForm(
    program="goose",
    subcommands=(("run",), ("session",), ("s",), ()),
    resume=("session", "--resume", "--session-id"),
    prompted=("run", "--resume", "--session-id", "{session}", "-i", "-"),
    prompt=words("-t --text"),
    model=words("--model"),
    system_prompt=words("--system"),
    session=words("--session-id"),
    other=words(
        "-i --instructions --recipe --params --sub-recipe -n --name --path --max-tool-repetitions --max-turns",
        "--container --with-extension --with-streamable-http-extension --with-builtin --output-format --provider",
    ),
    branch=r"-\d{6}",
)
"""Of 1.52.0."""


class Goose(RowAgent):
    """See `turnlog.agents.base.Agent` and `RowAgent`."""

    name = NAME
    display_name = "Goose"
    colour = Colour(light="#57606a", dark="#c9d1d9")
    parser_version = 1
    homes = BUILT_IN[NAME].homes
    log_folders = ("sessions", "data/sessions")
    command = _COMMAND

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Two sources for each session in the database, one for the database, and the files of older versions."""
        from turnlog.agents.goose.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A database has Goose's tables; a file of an older version begins with the facts about its session."""
        from turnlog.agents.goose.sources import detect_file

        return detect_file(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a session's rows, of what is known about it, or of a file of an older version."""
        from turnlog.agents.goose.sources import make_fold

        return make_fold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """The object that a tool returns beside its texts."""
        from turnlog.agents.goose.contents import structured_result

        return structured_result(record, tool_call_id)

    def holds_rows(self, source: Source) -> bool:
        """See `RowAgent.holds_rows`."""
        from turnlog.agents.goose.sources import holds_rows

        return holds_rows(source)

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        from turnlog.agents.goose.sources import sources_at

        return sources_at(path, root)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        from turnlog.agents.goose.sources import DATABASES

        return DATABASES.row_version(source)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.goose.sources import DATABASES

        return DATABASES.read_rows(source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.goose.database import KEYS
        from turnlog.agents.row_files import restore_database, rows_in

        return restore_database(source, rows_in(log), to, KEYS)
