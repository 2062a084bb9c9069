"""A window of a session as one JSON document made of stored frames: sent to a browser without decoding a message.

A zstd body may be many frames, one behind the other. Those of messages stand in it as they are in the store, between
constant frames that hold the punctuation; only the small rest (places and events) is compressed for each response.
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
    """What a session adds to a message."""

    position: int
    message_id: str
    turn: int | None
    step: int | None
    fate: Fate
    fate_cause: str | None
    cost: float | None
    """US dollars; 0 when another session is billed."""
    children: dict[str, str]
    """Tool call id -> id of the session it started."""
    results: list[tuple[str, int]]
    """Result id and the position at which it arrived."""


class Window(NamedTuple):
    """Messages as stored frames, and as JSON what the session adds to them."""

    frames: list[bytes]
    """zstd frames of canonical JSON, large contents as previews: of a message each, or of several, joined by commas."""
    rows: bytes
    """JSON: a `MessageRow` for each message."""
    events: bytes
    """JSON: the events between them."""
    has_before: bool
    has_after: bool

    def to_zstd(self) -> bytes:
        """The body for a client that takes `Content-Encoding: zstd`."""
        return _document(_OPEN_FRAME, _COMMA_FRAME, self.frames, zstd.compress(self._rest()))

    def to_json(self) -> bytes:
        """The same document as plain JSON."""
        return _document(_OPEN, _COMMA, [zstd.decompress(frame) for frame in self.frames], self._rest())

    def _rest(self) -> bytes:
        flags = msgspec.json.encode({"has_before": self.has_before, "has_after": self.has_after})
        return b'],"rows":%b,"events":%b,%b' % (self.rows, self.events, flags[1:])


def _document(opening: bytes, comma: bytes, messages: list[bytes], rest: bytes) -> bytes:
    # One join: a second copy of a large window costs as much as everything else.
    parts = [comma] * (2 * len(messages) + 1)
    parts[0], parts[-1] = opening, rest
    parts[1::2] = messages
    return b"".join(parts) if messages else opening + rest
