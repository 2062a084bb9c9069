"""A window of a session as one JSON document made of stored frames, sent to a browser without decoding messages.

A zstd body may consist of many frames. The frames of messages are copied as they are stored, between constant frames
with the punctuation; only the small rest (places and events) is compressed for each response.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from turnlog.model import Fate
from turnlog.store import zstd

_OPEN = b'{"items":['
_COMMA = b","
_OPEN_FRAME = zstd.compress(_OPEN)
_COMMA_FRAME = zstd.compress(_COMMA)


class MessageRow(msgspec.Struct, frozen=True, gc=False):
    """The facts about a message that depend on the session."""

    position: int
    message_id: str
    turn: int | None
    step: int | None
    fate: Fate
    fate_cause: str | None
    cost: float | None
    """US dollars; 0 if another session is billed."""
    children: dict[str, str]
    """Tool call id -> id of the session that the call started."""
    results: list[tuple[str, int]]
    """Result id and the position at which the result arrived."""


class FrameWindow(NamedTuple):
    """Messages as stored frames, with their places and the events as JSON."""

    frames: list[bytes]
    """zstd frames of canonical JSON, large contents as previews: one message each, or several joined by commas."""
    rows: bytes
    """JSON: a `MessageRow` for each message."""
    events: bytes
    """JSON: the events between them."""
    has_before: bool
    has_after: bool

    def to_zstd(self) -> bytes:
        """The response body for a client that accepts `Content-Encoding: zstd`."""
        return _document(_OPEN_FRAME, _COMMA_FRAME, self.frames, zstd.compress(self._rest()))

    def to_json(self) -> bytes:
        """The same document as plain JSON."""
        return _document(_OPEN, _COMMA, [zstd.decompress(frame) for frame in self.frames], self._rest())

    def _rest(self) -> bytes:
        flags = msgspec.json.encode({"has_before": self.has_before, "has_after": self.has_after})
        return b'],"rows":%b,"events":%b,%b' % (self.rows, self.events, flags[1:])


def _document(opening: bytes, comma: bytes, messages: list[bytes], rest: bytes) -> bytes:
    # One join: another copy of a large window costs as much as everything else.
    parts = [comma] * (2 * len(messages) + 1)
    parts[0], parts[-1] = opening, rest
    parts[1::2] = messages
    return b"".join(parts) if messages else opening + rest
