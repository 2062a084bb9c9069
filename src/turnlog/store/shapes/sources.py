"""Where it all was read from: files, their bytes, and what could not be read of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from turnlog.model import Provenance


class SourceInfo(NamedTuple):
    """A file that was read."""

    path: str
    agent: str
    kind: str
    session_id: str | None
    size: int
    """Bytes as of the last pass."""
    generation: int
    cursor: int
    """Bytes that are read."""
    lines: int
    read_at: datetime | None
    vanished_at: datetime | None
    problem: str | None
    """Why it could not be read on the last pass."""


class DiagnosticFilter(NamedTuple):
    """Which diagnostics."""

    agent: str | None = None
    session: str | None = None
    path: str | None = None
    severity: Literal["error", "note"] | None = None


class StoredDiagnostic(NamedTuple):
    """What could not be read, where, and why."""

    path: str
    agent: str
    session_id: str | None
    offset: int
    length: int
    line: int | None
    json_path: str | None
    severity: str
    reason: str


class RawRecord(NamedTuple):
    """The bytes of one record, as the agent wrote them."""

    provenance: Provenance
    data: bytes


class RawSource(NamedTuple):
    """The bytes of one source of a session, in pieces."""

    source: SourceInfo
    pieces: Iterator[bytes]


class BlobContent(NamedTuple):
    """A large or binary content."""

    data: bytes
    media_type: str | None


EVERY_DIAGNOSTIC = DiagnosticFilter()
