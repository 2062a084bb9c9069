"""Server-sent events: from bytes that may be cut anywhere to the data of each event.

Providers answer in this form and AI SDK streams messages in it. What the data means is its reader's business.
"""

from __future__ import annotations

from typing import Final

from turnlog.arguments import refusal

END_OF_STREAM: Final = b"[DONE]"
"""The data of the last event, of OpenAI's servers and of AI SDK: a word, while all other data is JSON."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class SseDecoder:
    """Takes the bytes of a stream and gives the data of each event that is complete.

    Follows the standard (WHATWG HTML, 9.2.6): comments, fields other than `data`, three kinds of line ends, and data of
    several lines.
    """

    def __init__(self) -> None:
        """Start before the first byte."""
        self._buffer = bytearray()
        self._held = b""
        """A carriage return at the end: half of a line end where a newline follows. The real clients wait, too."""
        self._at_start = True

    def feed(self, data: bytes) -> list[bytes]:
        """The data of the events that these bytes complete, in order."""
        if not isinstance(data, bytes | bytearray):  # pyright: ignore[reportUnnecessaryIsInstance]  # no types there
            raise refusal("data", data, "bytes")
        if self._held or b"\r" in data:
            data = self._held + data
            self._held = b"\r" if data.endswith(b"\r") else b""
            data = data.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        known = max(0, len(self._buffer) - 1)
        self._buffer += data
        return self._complete_events(known)

    def finish(self) -> list[bytes]:
        """The data of the event at the end that no blank line closes.

        By the standard it is no event. A provider's last event may come so, and is worth a look.
        """
        found = self.feed(b"\n\n")
        self._buffer.clear()
        return found

    def _complete_events(self, known: int) -> list[bytes]:
        end = self._buffer.rfind(b"\n\n", known)
        if end < 0:
            return []
        complete = bytes(self._buffer[:end])
        if self._at_start:
            self._at_start = False
            complete = complete.removeprefix(_BYTE_ORDER_MARK)
        del self._buffer[: end + 2]
        found = [_data_of(event) for event in complete.split(b"\n\n")]
        return [data for data in found if data is not None]


def _data_of(event: bytes) -> bytes | None:
    lines = [value for name, value in map(_field, event.split(b"\n")) if name == b"data"]
    return b"\n".join(lines) if lines else None


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name, value.removeprefix(b" ")
