"""Which diagnostics."""

from __future__ import annotations

from typing import Literal

from turnlog.server.parameters.base import LongPage, QueryParameters
from turnlog.store.base import DiagnosticFilter


class DiagnosticQuery(QueryParameters):
    """Which diagnostics."""

    agent: str | None = None
    session: str | None = None
    path: str | None = None
    severity: Literal["error", "note"] | None = None
    limit: LongPage = 100
    cursor: str | None = None

    def to_filter(self) -> DiagnosticFilter:
        """The same for the store."""
        return DiagnosticFilter(**self.model_dump(exclude={"limit", "cursor"}))
