"""What a pass says of itself."""

from __future__ import annotations

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """A source that could not be read in this pass."""

    path: str
    reason: str


class SyncSummary(msgspec.Struct, kw_only=True):
    """What a pass found and brought."""

    sources: int = 0
    changed: int = 0
    vanished: int = 0
    bytes: int = 0
    """Bytes read, in what changed."""
    sessions: int = 0
    """Sessions that got something new."""
    new_sessions: int = 0
    messages: int = 0
    """Messages that were not there before."""
    diagnostics: int = 0
    problems: list[Problem] = msgspec.field(default_factory=list[Problem])
    seconds: float = 0.0
