"""Questions about what was read: files, their bytes, large contents, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from turnlog.store.shapes.paging import Page
from turnlog.store.shapes.sources import (
    EVERY_DIAGNOSTIC,
    BlobContent,
    DiagnosticFilter,
    RawSource,
    SourceInfo,
    StoredDiagnostic,
)

if TYPE_CHECKING:
    pass


class SourceQuestions(Protocol):
    """What a store answers about what was read."""

    def sources(self, session_id: str | None = None) -> list[SourceInfo]:
        """Files that were read, of one session or all, by path."""
        ...

    def diagnostics(
        self,
        filter: DiagnosticFilter = EVERY_DIAGNOSTIC,
        *,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[StoredDiagnostic]:
        """What could not be read, by path and place; `total` says how many there are."""
        ...

    def record(self, source: str, offset: int, length: int) -> bytes:
        """Bytes of a source by its path, as they were read."""
        ...

    def raw(self, session_id: str) -> Iterator[RawSource]:
        """The bytes of every source of a session, its log first, also when the files are gone."""
        ...

    def spill(self, session_id: str, name: str) -> bytes:
        """The whole of an output that its result only previews (`ToolResult.spilled_to`)."""
        ...

    def blob(self, sha256: str) -> BlobContent:
        """A large or binary content by the hash in its reference."""
        ...
