"""OpenCode: where its histories lie and how they are read. `docs/formats/opencode.md` has the evidence.

What reads them is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from turnlog import paths
from turnlog.agents.base import Detection, Fold, Source, SourceKind, Version
from turnlog.agents.folders import holds_file
from turnlog.agents.opencode.command import COMMAND
from turnlog.agents.opencode.database import open_database
from turnlog.agents.opencode.ids import NAME
from turnlog.agents.opencode.sources import find_sources, in_database, in_storage, is_home, sources_at
from turnlog.agents.opencode.storage import FileRows, version_of
from turnlog.agents.opencode.tables import TableRows, list_sessions
from turnlog.agents.opencode.turn_signs import TURN_SIGNS
from turnlog.agents.row_agent import RowUpdate
from turnlog.errors import SourceError


class OpenCode:
    """See `turnlog.agents.base.Agent` and `RowAgent`."""

    name = NAME
    display_name = "OpenCode"
    parser_version = 12
    command = COMMAND
    turn_signs = TURN_SIGNS

    def roots(self) -> Sequence[Path]:
        """The data folders that hold histories, and the folders of databases that the environment names."""
        named = [path.parent for path in _named_databases()]
        return [root for root in dict.fromkeys((*paths.opencode_roots(), *named)) if root in named or is_home(root)]

    def discover(self, roots: Iterable[Path] | None = None) -> Iterator[Source]:
        """A source for each session and each spilled output, and one for each database."""
        named = _named_databases() if roots is None else []
        for root in self.roots() if roots is None else roots:
            yield from find_sources(root, [path for path in named if path.parent == root])

    def detect(self, path: Path, head: bytes) -> Detection:
        """A database has the tables, a file of the storage its place, an export its `info` and `messages`."""
        from turnlog.agents.opencode.detection import detect_file

        return detect_file(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a session's rows, of a spilled output, of a stream or of an export."""
        if source.kind is SourceKind.SPILL:
            from turnlog.agents.opencode.outputs import OutputFold

            return OutputFold(source)
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.hooked import HookFold
            from turnlog.agents.opencode.hooks import HOOKS

            return HookFold(HOOKS, source, state)
        if source.kind is SourceKind.STREAM:
            from turnlog.agents.opencode.stream import StreamFold

            return StreamFold(source)
        if not source.appendable:
            from turnlog.agents.opencode.export import ExportFold

            return ExportFold(source)
        from turnlog.agents.opencode.fold import OpenCodeFold

        return OpenCodeFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`state.metadata` of the call's part."""
        from turnlog.agents.opencode.structured import structured_result

        return structured_result(record, tool_call_id)

    def holds_rows(self, source: Source) -> bool:
        """All but exports and spilled outputs."""
        is_session = in_database(source.path) is not None or in_storage(source) is not None
        return is_session or source.kind is SourceKind.SIDECAR

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`."""
        return sources_at(path, root)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        place = in_database(source.path)
        if place is not None:
            found = list_sessions(place[0], place[1])
            if not found:
                raise FileNotFoundError(source.path)
            return found[0].version
        files = in_storage(source)
        if files is not None:
            return version_of(files)
        return (0, 0, 0, 0)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        from turnlog.agents.opencode.update import update_of

        place = in_database(source.path)
        if place is not None:
            with open_database(place[0]) as connection:
                return update_of(TableRows(connection, place[1]), log)
        files = in_storage(source)
        if files is not None:
            return update_of(FileRows(files), log)
        try:
            list_sessions(Path(source.path))
        except SourceError as error:
            raise OSError(error.reason) from error
        return RowUpdate()

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        from turnlog.agents.opencode.restore import restore_rows

        return restore_rows(source, log, to)


def _named_databases() -> list[Path]:
    """The databases that the environment names and that are there."""
    return [path for path in paths.opencode_databases() if holds_file(path.parent, path.name)]
