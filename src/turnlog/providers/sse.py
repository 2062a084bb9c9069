"""Server-sent events as JSON values, from bytes that may be cut anywhere. Knows no provider.

Fields other than `data` are left out: every provider repeats the event's name inside of the data. What is no JSON
object is given back as text, for the caller to judge.
"""

from __future__ import annotations

import re
from typing import Any, cast

from turnlog.model.codec import parse_json

_LINE_END = re.compile(rb"\r\n|\n|\r")
_LAST = "[DONE]"
"""What OpenAI's servers send behind the last event."""


class SseDecoder:
    """Takes bytes, gives the events that are complete."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._rest = b""
        self._data: list[str] = []
        self.done = False
        """Whether `[DONE]` came."""

    def feed(self, data: bytes) -> list[dict[str, Any] | str]:
        """The events that these bytes complete, in order; a text is data that is no JSON object."""
        events: list[dict[str, Any] | str] = []
        *lines, self._rest = self._lines(self._rest + data)
        for line in lines:
            events += self._take(line)
        return events

    def finish(self) -> list[dict[str, Any] | str]:
        """The event that stands unclosed at the end of the bytes, if all of it is there."""
        events = [*self.feed(b"\n"), *self._dispatch()]
        return [event for event in events if not isinstance(event, str)]

    def _lines(self, data: bytes) -> list[bytes]:
        # A CR at the very end may be the first half of CR LF.
        if data.endswith(b"\r"):
            lines = _LINE_END.split(data[:-1])
            return [*lines[:-1], lines[-1] + b"\r"]
        return _LINE_END.split(data)

    def _take(self, line: bytes) -> list[dict[str, Any] | str]:
        if not line:
            return self._dispatch()
        name, _, value = line.decode(errors="replace").removeprefix("\ufeff").partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        return []

    def _dispatch(self) -> list[dict[str, Any] | str]:
        data, self._data = "\n".join(self._data), []
        if not data.strip():
            return []
        if data.strip() == _LAST:
            self.done = True
            return []
        try:
            value: Any = parse_json(data)
        except (ValueError, RecursionError):
            return [data]
        return [cast("dict[str, Any]", value) if isinstance(value, dict) else data]
