"""Answers about what was read: files, their bytes, large contents, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from turnlog.store.shapes.paging import Page
from turnlog.store.shapes.sources import (
    EVERY_DIAGNOSTIC,
    BlobContent,
    DiagnosticFilter,
    RawSource,
    SourceInfo,
    StoredDiagnostic,
)
from turnlog.store.sqlite.snapshots import Snapshots

if TYPE_CHECKING:
    pass


class SourceAnswers(Snapshots):
    """What `SourceQuestions` asks."""

    def sources(self, session_id: str | None = None) -> list[SourceInfo]:
        """Files that were read."""
        from turnlog.store.queries.sources import load_sources

        with self._snapshot() as connection:
            return load_sources(connection, session_id)

    def diagnostics(
        self, filter: DiagnosticFilter = EVERY_DIAGNOSTIC, *, limit: int = 100, cursor: str | None = None
    ) -> Page[StoredDiagnostic]:
        """A page of what could not be read."""
        from turnlog.store.queries.sources import load_diagnostics

        with self._snapshot() as connection:
            return load_diagnostics(connection, filter, limit, cursor)

    def record(self, source: str, offset: int, length: int) -> bytes:
        """Bytes of a source."""
        from turnlog.store.queries.sources import load_record

        with self._snapshot() as connection:
            return load_record(connection, source, offset, length)

    def raw(self, session_id: str) -> Iterator[RawSource]:
        """The bytes of every source of a session."""
        from turnlog.store.queries.sources import iter_raw

        return iter_raw(self._connection(), session_id)

    def spill(self, session_id: str, name: str) -> bytes:
        """The whole of an output that its result only previews."""
        from turnlog.store.blobs import load_spill

        with self._snapshot() as connection:
            return load_spill(connection, session_id, name)

    def blob(self, sha256: str) -> BlobContent:
        """A large or binary content."""
        from turnlog.store.blobs import load_blob

        with self._snapshot() as connection:
            return load_blob(connection, sha256)
