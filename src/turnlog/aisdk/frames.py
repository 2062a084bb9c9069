"""What a stream has told and nobody has taken yet, each an event of server-sent events.

The deltas of the part that grows wait as text: all that come before they are taken are encoded at once, in a fraction
of the time of encoding each. What is told, and in which order, is the writer's knowledge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from turnlog.aisdk.chunks import ReasoningDeltaChunk, TextDeltaChunk, UIMessageChunk
from turnlog.aisdk.codec import encode_chunk
from turnlog.aisdk.sse import SseEncoder

Growing: TypeAlias = TextDeltaChunk | ReasoningDeltaChunk
"""A delta of the part that grows."""

_TAIL: Final = b"}\n\n"
_encode_lines = msgspec.json.Encoder().encode_lines


class Frames:
    """Chunks on their way from one writer to whoever takes them."""

    def __init__(self, begin: Callable[[], None]) -> None:
        """Hold nothing; `begin` is called whenever something is put where nothing was."""
        self.deltas: list[str] = []
        """Of the part that grows, none of them empty, behind all that is encoded. `begin` comes before the first."""
        self._begin = begin
        self._encode = SseEncoder().encode
        self._encoded: list[bytes] = []
        self._number = self._size = 0
        """Of what is encoded: frames and bytes."""
        self._part: Growing = TextDeltaChunk(id="", delta="")
        self._head = self._between = b""
        """What stands before its delta in a frame, and between two deltas."""
        self._grown = 0
        """How many deltas of the part are encoded."""

    def __bool__(self) -> bool:
        """Whether there is anything to take."""
        return bool(self._encoded or self.deltas)

    def put(self, chunk: UIMessageChunk) -> int:
        """Add a chunk; return the bytes that are there. Raise ShapeError for one that no client could read."""
        return self.put_frame(self._encode(chunk))

    def put_frame(self, frame: bytes) -> int:
        """Add an encoded one; return the bytes that are there."""
        self.begin()
        self._settle()
        self._add(1, frame)
        return self._size

    def begin(self) -> int:
        """Something is about to be put; return the bytes that are encoded."""
        if not self._encoded and not self.deltas:
            self._begin()
        return self._size

    def grow(self, part: Growing) -> int:
        """Let the deltas from here on be of this part; return the size of a frame beside its delta."""
        self._part = part
        self._head = b"data: " + encode_chunk(part).removesuffix(b'""}')
        self._between = _TAIL + self._head
        return len(self._between) + len(b'""')

    def stop_growing(self) -> int:
        """The part gets no more deltas: return how many it got."""
        self._settle()
        grown, self._grown = self._grown, 0
        return grown

    def take(self) -> tuple[int, bytes]:
        """Everything that is there: the number of frames, and their bytes."""
        if not self._encoded:
            return self._take_deltas()
        self._settle()
        number, data = self._number, b"".join(self._encoded)
        self._encoded.clear()
        self._number = self._size = 0
        return number, data

    def _take_deltas(self) -> tuple[int, bytes]:
        if not self.deltas:
            return 0, b""
        number, data = len(self.deltas), self._encode_deltas()
        self.deltas.clear()
        self._grown += number
        return number, data

    def _settle(self) -> None:
        number, data = self._take_deltas()
        if number:
            self._add(number, data)

    def _add(self, number: int, data: bytes) -> None:
        self._encoded.append(data)
        self._number += number
        self._size += len(data)

    def _encode_deltas(self) -> bytes:
        try:
            lines = _encode_lines(self.deltas)
        except UnicodeEncodeError:  # half a character, whose other half is in the next delta
            return b"".join([self._encode(type(self._part)(id=self._part.id, delta=delta)) for delta in self.deltas])
        # Inside of JSON there is no line break but between its lines.
        return b"".join((self._head, lines[:-1].replace(b"\n", self._between), _TAIL))
