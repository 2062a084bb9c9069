"""What has changed, and how the store is."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

ChangeKind: TypeAlias = Literal["session", "forgotten", "rebuilt"]
"""`session`: something of it was added, has changed or has left it. The others name no session."""

LONGEST_MEMORY = 10_000
"""Numbers of the change sequence over which is remembered what has left a session."""


class ChangeEntry(NamedTuple):
    """An entry of the change sequence."""

    sequence: int
    session_id: str | None
    kind: ChangeKind
    at: datetime


class SessionChanges(NamedTuple):
    """What changed in a session between two numbers of the change sequence, as JSON for a browser."""

    messages: list[bytes]
    """JSON of each message that is new or has changed, large contents as previews."""
    rows: bytes
    """JSON: a `store.window.Placement` for each of these messages, then of those whose place alone has changed."""
    events: bytes
    """JSON: the events that are new or told anew."""
    gone_messages: list[str]
    """Ids of messages that are no longer part of the session."""
    gone_events: list[tuple[int, str]]
    """Position and id of events that are no longer there; of a result without its call, `<call's id>:<result's id>`."""


class StoreStatus(NamedTuple):
    """How much the store holds, and how fresh it is."""

    path: str
    schema_version: int
    file_size: int
    """Bytes on disk, the write-ahead log included."""
    sessions: int
    subagents: int
    messages: int
    sources: int
    source_bytes: int
    """Bytes of all logs as of the last pass."""
    archive_bytes: int
    """Bytes of the compressed archive."""
    vanished: int
    """Sources whose file is gone; the store still has them."""
    unreadable: int
    """Sources with a problem on the last pass."""
    diagnostics: int
    last_sync_at: datetime | None
    change_sequence: int
