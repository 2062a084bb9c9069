"""Zed's own agent: where its threads are, and how they are read (`docs/formats/zed.md`).

What reads the threads is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Colour, Detection, Fold, RowAgent, RowUpdate, Source, Version
from turnlog.agents.built_in import BUILT_IN

NAME: Final = "zed"

THREADS_FOLDER: Final = "threads"

DATABASE: Final = "threads.db"


class Zed(RowAgent):
    """See `turnlog.agents.base.Agent` and `RowAgent`."""

    name = NAME
    display_name = "Zed"
    colour = Colour(light="#1d6fdc", dark="#8ab4f8")
    parser_version = 1
    homes = BUILT_IN[NAME].homes
    log_folders = (THREADS_FOLDER,)

    def find_sources(self, root: Path) -> Iterator[Source]:
        """A source for each thread, and one for the database."""
        from turnlog.agents.zed.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A database has Zed's table."""
        from turnlog.agents.zed.sources import detect_database

        return detect_database(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a thread."""
        from turnlog.agents.zed.fold import ZedFold

        return ZedFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """What a tool returned beside the text for the model, if it is an object."""
        from turnlog.agents.zed.contents import structured_result

        return structured_result(record, tool_call_id)

    def holds_rows(self, source: Source) -> bool:
        """Every source."""
        return True

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        from turnlog.agents.zed.sources import sources_at

        return sources_at(path, root)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        from turnlog.agents.zed.sources import DATABASES

        return DATABASES.row_version(source)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.zed.sources import DATABASES

        return DATABASES.read_rows(source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.zed.database import restore_rows

        return restore_rows(source, log, to)
