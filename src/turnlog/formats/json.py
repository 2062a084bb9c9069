"""A session in our own schema: one JSON document, or a line for each event. Nothing is lost on the way back.

The document is `{"session": Session, "events": [HistoryEvent, …]}`; the lines are those of `turnlog.history.lines`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from turnlog.history import encode_lines
from turnlog.model import HistoryEvent, Session
from turnlog.model.codec import encode


def to_json(session: Session, events: Iterable[HistoryEvent]) -> Iterator[bytes]:
    """One document, piece by piece, each event at the beginning of a line."""
    yield b'{"session":%b,"events":[' % encode(session)
    separator = b"\n"
    for event in events:
        yield separator + encode(event)
        separator = b",\n"
    yield b"\n]}\n"


def to_json_lines(events: Iterable[HistoryEvent]) -> Iterator[bytes]:
    """One event a line; `turnlog.history.decode_lines` reads them."""
    return encode_lines(events)
