"""What a pass reports: how much was new, and which sources could not be read."""

from __future__ import annotations

import msgspec


class SourceProblem(msgspec.Struct, frozen=True):
    """A source that could not be read in this pass."""

    path: str
    reason: str


class SyncSummary(msgspec.Struct, kw_only=True):
    """The result of a sync."""

    sources: int = 0
    changed: int = 0
    vanished: int = 0
    bytes: int = 0
    """Bytes read from changed sources."""
    sessions: int = 0
    """Sessions that changed."""
    new_sessions: int = 0
    """Without subagents."""
    new_subagents: int = 0
    messages: int = 0
    """New messages."""
    diagnostics: int = 0
    problems: list[SourceProblem] = msgspec.field(default_factory=list[SourceProblem])
    seconds: float = 0.0
