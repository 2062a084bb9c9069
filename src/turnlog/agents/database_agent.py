"""Agents whose sessions are rows of SQLite databases, with what reads them in a module of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from turnlog.agents.base import Detection, Fold, RowAgent, RowUpdate, Source, Version, is_database_itself

if TYPE_CHECKING:
    from turnlog.agents.databases import DatabaseReader


class DatabaseAgent(RowAgent):
    """An agent that reads nothing but databases, or whose other files the functions of its reader know."""

    reader: ClassVar[str]
    """The module whose `READER` reads the databases. Every command makes the agents; only those that find something to
    read may pay for its import."""

    def find_sources(self, root: Path) -> Iterator[Source]:
        """See `Agent.find_sources`."""
        return self._reader().find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """See `Agent.detect`. A database is opened: its first page need not have the names of its tables."""
        return self._reader().detect(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a source of a session, or of a database itself."""
        if is_database_itself(source):
            from turnlog.agents.strays import StraysFold

            return StraysFold()
        return self.session_fold(source, state)

    @abstractmethod
    def session_fold(self, source: Source, state: bytes | None) -> Fold:
        """A fold of a source of a session; see `Agent.fold`."""

    def holds_rows(self, source: Source) -> bool:
        """Every source."""
        return True

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """See `RowAgent.sources_at`. A database may be named by its write-ahead log."""
        return self._reader().sources_at(path, root)

    def row_version(self, source: Source) -> Version:
        """See `RowAgent.row_version`."""
        return self._reader().databases.row_version(source)

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """See `RowAgent.read_rows`."""
        return self._reader().databases.read_rows(source, log)

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """See `RowAgent.restore_rows`."""
        return self._reader().restore_rows(source, log, to)

    def _reader(self) -> DatabaseReader:
        return import_module(self.reader).READER
