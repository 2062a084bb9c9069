"""Chunks <-> bytes of server-sent events, as the AI SDK writes and reads them (`JsonToSseTransformStream`).

An event is one line of JSON and a blank line; `[DONE]` is the last one. `Frames` buffers encoded events until a reader
takes them. `turnlog.aisdk.streaming` iterates and sends; the writer produces a valid order of chunks.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET

from turnlog.aisdk.chunks import ReasoningDeltaChunk, TextDeltaChunk, ToolInputDeltaChunk, UIMessageChunk
from turnlog.aisdk.codec import encode_chunk, parse_chunk
from turnlog.aisdk.versions import Version
from turnlog.arguments import checked
from turnlog.errors import ShapeError
from turnlog.sse import END_OF_STREAM, SseDecoder

HEADERS: Final = MappingProxyType(
    {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "connection": "keep-alive",
        "x-vercel-ai-ui-message-stream": "v1",
        # nginx would buffer the stream.
        "x-accel-buffering": "no",
    }
)
"""Headers of a response with a UI message stream."""

DONE: Final = b"data: " + END_OF_STREAM + b"\n\n"
STREAM_OPEN: Final = b": stream-open\n\n"
KEEP_ALIVE: Final = b": keep-alive\n\n"

_MOST_PREFIXES = 256
_DELTA_END = b"}\n\n"
_NEWLINE, _RETURN = b"\n\r"
_encode_text = msgspec.json.Encoder().encode


class SseEncoder:
    """Encodes the chunks of one stream, with a fast path for deltas, which are nearly all of it."""

    def __init__(self) -> None:
        """Know no part yet."""
        self._prefixes: dict[tuple[type, str], bytes] = {}
        self._kind: type | None = None
        self._id: str | None = None
        self._prefix = b""
        """How the frames of the part begin that grew last."""

    def encode(self, chunk: UIMessageChunk) -> bytes:
        """Encode an event. Raises ShapeError for a chunk that no client can read."""
        # This runs for every delta of every stream, and `isinstance` with a union takes a third of it.
        if type(chunk) is TextDeltaChunk or type(chunk) is ReasoningDeltaChunk:
            part_id, delta = chunk.id, chunk.delta
            if chunk.provider_metadata is not UNSET:
                return _encode_event(chunk)
        elif type(chunk) is ToolInputDeltaChunk:
            part_id, delta = chunk.tool_call_id, chunk.input_text_delta
        else:
            return _encode_event(chunk)
        if chunk.extra:
            return _encode_event(chunk)
        if part_id != self._id or type(chunk) is not self._kind:
            self._use_part(chunk, part_id)
        if type(delta) is not str:
            raise ShapeError(f"a {chunk.type} chunk without text", json_path="$.delta")
        try:
            return b"".join((self._prefix, _encode_text(delta), _DELTA_END))  # half the time of a format
        except UnicodeEncodeError:  # half a character, whose other half is in the next delta
            return _encode_event(chunk)

    def _use_part(self, chunk: TextDeltaChunk | ReasoningDeltaChunk | ToolInputDeltaChunk, part_id: str) -> None:
        if type(part_id) is not str:
            raise ShapeError(f"a {chunk.type} chunk without an id", json_path="$.id")
        key = type(chunk), part_id
        prefix = self._prefixes.get(key)
        if prefix is None:
            if len(self._prefixes) >= _MOST_PREFIXES:
                self._prefixes.clear()
            prefix = self._prefixes[key] = b"data: " + encode_chunk(_without_text(chunk)).removesuffix(b'""}')
        self._kind, self._id, self._prefix = type(chunk), part_id, prefix


def _without_text(chunk: TextDeltaChunk | ReasoningDeltaChunk | ToolInputDeltaChunk) -> UIMessageChunk:
    if isinstance(chunk, ToolInputDeltaChunk):
        return ToolInputDeltaChunk(tool_call_id=chunk.tool_call_id, input_text_delta="")
    return type(chunk)(id=chunk.id, delta="")


def _encode_event(chunk: UIMessageChunk) -> bytes:
    data = encode_chunk(chunk)
    if _NEWLINE in data or _RETURN in data:
        # Exact JSON may have line breaks between its tokens; inside of strings they are escaped.
        data = data.replace(b"\n", b" ").replace(b"\r", b" ")
    return b"".join((b"data: ", data, b"\n\n"))


@checked
async def read_chunks(
    data: AsyncIterable[bytes], *, version: Version = 7, strict: bool = True
) -> AsyncGenerator[UIMessageChunk, None]:
    """Yield the chunks in a stream of bytes. Raises ShapeError where the client of this release would stop."""
    decoder = SseDecoder()
    async for received in data:
        for event in decoder.feed(received):
            if event != END_OF_STREAM:
                yield parse_chunk(event, version=version, strict=strict)


@checked
def decode_chunks(data: bytes, *, version: Version = 7, strict: bool = True) -> list[UIMessageChunk]:
    """The chunks of a whole stream, as `read_chunks` yields them."""
    return [
        parse_chunk(event, version=version, strict=strict)
        for event in SseDecoder().feed(data)
        if event != END_OF_STREAM
    ]


DeltaChunk: TypeAlias = TextDeltaChunk | ReasoningDeltaChunk
"""The delta event of the part that grows."""

_encode_lines = msgspec.json.Encoder().encode_lines


class Frames:
    """A buffer of encoded chunks between a writer and a reader."""

    def __init__(self, begin: Callable[[], None]) -> None:
        """Begin empty; `begin` is called whenever something is added to an empty buffer."""
        self.deltas: list[str] = []
        """Of the part that grows, none of them empty, behind all that is encoded. `begin` comes before the first."""
        self._begin = begin
        self._encode = SseEncoder().encode
        self._encoded: list[bytes] = []
        self._number = self._size = 0
        """Of what is encoded: frames and bytes."""
        self._part: DeltaChunk = TextDeltaChunk(id="", delta="")
        self._head = self._between = b""
        """The bytes before its delta in a frame, and between two deltas."""
        self._grown = 0
        """How many deltas of the part are encoded."""

    def __bool__(self) -> bool:
        """Whether it is not empty."""
        return bool(self._encoded or self.deltas)

    def put(self, chunk: UIMessageChunk) -> int:
        """Add a chunk; return the size of the buffer in bytes. Raises ShapeError for one that no client can read."""
        return self.put_frame(self._encode(chunk))

    def put_frame(self, frame: bytes) -> int:
        """Add an encoded chunk; return the size of the buffer in bytes."""
        self.begin()
        self._settle()
        self._add(1, frame)
        return self._size

    def begin(self) -> int:
        """Prepare for adding; return the size of the encoded bytes."""
        if not self._encoded and not self.deltas:
            self._begin()
        return self._size

    def start_deltas(self, part: DeltaChunk) -> int:
        """Take the following deltas for deltas of this part; return the size of a frame without its delta."""
        self._part = part
        self._head = b"data: " + encode_chunk(part).removesuffix(b'""}')
        self._between = _DELTA_END + self._head
        return len(self._between) + len(b'""')

    def end_deltas(self) -> int:
        """The part is complete: return the number of deltas that it got."""
        self._settle()
        grown, self._grown = self._grown, 0
        return grown

    def take(self) -> tuple[int, bytes]:
        """Empty the buffer; return the number of frames and their bytes."""
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
        # Encoded JSON has line breaks only between its lines.
        return b"".join((self._head, lines[:-1].replace(b"\n", self._between), _DELTA_END))
