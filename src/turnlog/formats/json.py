"""A session in our own schema: one JSON document, or a line for each event. Nothing is lost on the way back.

The document is `{"session": Session, "events": [HistoryEvent, …]}`, with `"outputs": {name: text}` where results only
preview outputs that the agent wrote to files of their own (`ToolResult.spilled_to`). The lines are those of
`turnlog.history.lines`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from turnlog.history import encode_lines
from turnlog.model import HistoryEvent, Session
from turnlog.model.codec import encode


def to_json(
    session: Session, events: Iterable[HistoryEvent], outputs: Mapping[str, str] | None = None
) -> Iterator[bytes]:
    """One document, piece by piece, each event at the beginning of a line."""
    yield b'{"session":%b,"events":[' % encode(session)
    separator = b"\n"
    for event in events:
        yield separator + encode(event)
        separator = b",\n"
    yield b"\n]"
    if outputs:
        yield b',"outputs":%b' % encode(dict(outputs))
    yield b"}\n"


def to_json_lines(events: Iterable[HistoryEvent]) -> Iterator[bytes]:
    """One event a line; `turnlog.history.decode_lines` reads them."""
    return encode_lines(events)
