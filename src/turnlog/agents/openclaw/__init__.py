"""OpenClaw and QClaw: pi's records in a database, before that in files (`docs/formats/openclaw.md`).

What reads the logs is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Colour, Detection, Fold, RowAgent, RowUpdate, Source, Version, is_database_itself
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.pi import Pi

NAME: Final = "openclaw"
QCLAW: Final = "qclaw"


class OpenClaw(RowAgent):
    """See `turnlog.agents.base.Agent` and `RowAgent`."""

    name = NAME
    display_name = "OpenClaw"
    colour = Colour(light="#b5382a", dark="#f28881")
    parser_version = Pi.parser_version + 3  # Pi's reader reads the records, and its state is kept.
    homes = BUILT_IN[NAME].homes
    log_folders = ("agents",)

    def find_sources(self, root: Path) -> Iterator[Source]:
        """A source for each session in a database, for each database, and for each older log."""
        from turnlog.agents.openclaw.sources import find_sources, owner_of

        # The homes of both programs look the same: of any other folder only its path says whose it is.
        if root not in self.home_folders() and owner_of(root) != self.name:
            return iter(())
        return find_sources(self.name, root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A database has the table of records; an older log has pi's header and is in a home."""
        from turnlog.agents.openclaw.sources import detect_file

        return detect_file(self.name, path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a session's rows, of a database itself, or of an older log."""
        if is_database_itself(source):
            from turnlog.agents.strays import StraysFold

            return StraysFold()
        if self.holds_rows(source):
            from turnlog.agents.openclaw.fold import OpenClawFold

            return OpenClawFold(source, state)
        from turnlog.agents.openclaw.fold import OpenClawLogFold

        return OpenClawLogFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`details` of the record with the call's result."""
        from turnlog.agents.openclaw.row_log import event_of
        from turnlog.agents.pi.messages import structured_result

        return structured_result(event_of(record), tool_call_id)

    def holds_rows(self, source: Source) -> bool:
        """All but older logs."""
        from turnlog.agents.openclaw.sources import holds_rows

        return holds_rows(source)

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        from turnlog.agents.openclaw.sources import sources_at

        return sources_at(self.name, path, root)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        from turnlog.agents.openclaw.sources import DATABASES

        return DATABASES.row_version(source)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.openclaw.sources import DATABASES

        return DATABASES.read_rows(source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.openclaw.row_log import restore_rows

        return restore_rows(source, log, to)


class QClaw(OpenClaw):
    """See `turnlog.agents.base.Agent`."""

    name = QCLAW
    display_name = "QClaw"
    colour = Colour(light="#8c3fa3", dark="#db90ec")
    homes = BUILT_IN[QCLAW].homes
