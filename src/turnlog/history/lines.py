"""A history as lines of JSON, one event a line, and back (R-K11).

A line that is no event is reported with its place and reason, and does not affect the others. What
JSON cannot hold is repaired as `turnlog.model.codec` says. An event whose exact JSON spans lines (a model's arguments
may be indented) is one line that holds it as a string: `{"$event": "…"}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from turnlog.model import HistoryEvent
from turnlog.model.codec import decode_event, encode, to_json
from turnlog.model.lenient_json import parse_json

_WRAPPED = "$event"
_WRAPPED_START = b'{"$event":'


class BadLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that is no event."""

    line: int
    """Counted from 1."""
    offset: int
    """Byte at which it begins, counted from 0."""
    reason: str


class HistoryLines(msgspec.Struct, frozen=True, kw_only=True):
    """The events of some lines in their order, and the lines that are not events."""

    events: tuple[HistoryEvent, ...]
    bad_lines: tuple[BadLine, ...] = ()


def encode_lines(events: Iterable[HistoryEvent]) -> Iterator[bytes]:
    """One line of JSON for each event, with its newline."""
    for event in events:
        line = encode(event)
        yield (msgspec.json.encode({_WRAPPED: line.decode()}) if b"\n" in line or b"\r" in line else line) + b"\n"


def decode_lines(lines: bytes | Iterable[bytes]) -> HistoryLines:
    """The events of lines of JSON: of a whole text, or of lines with or without their newlines.

    Blank lines are nothing; offsets count the bytes of the lines as they are given.
    """
    events: list[HistoryEvent] = []
    bad: list[BadLine] = []
    offset = 0
    for number, line in enumerate(_split(lines) if isinstance(lines, bytes) else lines, start=1):
        if line.strip():
            try:
                events.append(_decode(line))
            except (ValueError, RecursionError) as error:
                bad.append(BadLine(line=number, offset=offset, reason=str(error) or type(error).__name__))
        offset += len(line)
    return HistoryLines(events=tuple(events), bad_lines=tuple(bad))


def _split(data: bytes) -> list[bytes]:
    """Lines with their ends. Only a newline ends one: JSON may hold every other separator."""
    return [line + b"\n" for line in data.split(b"\n")]


def _decode(line: bytes) -> HistoryEvent:
    if line.startswith(_WRAPPED_START):
        line = msgspec.json.decode(line, type=dict[str, str])[_WRAPPED].encode()
    try:
        return decode_event(line)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Other writers escape lone surrogates and write NaN; the codec says what that means.
        return decode_event(to_json(parse_json(line)))
