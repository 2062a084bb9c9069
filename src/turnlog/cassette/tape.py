"""The cassette: requests to a model, in words that every API has, and its answers, as one JSON file.

`docs/how-to/cassettes.md` describes the fields. A field that is not described there is an error, so that a slip in a
file that was edited by hand does not pass for a recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from turnlog.errors import FormatError, SourceError
from turnlog.model import Message, Part
from turnlog.model.base import Value
from turnlog.model.codec import encode

VERSION = 1


class AskedText(Value, frozen=True, kw_only=True, tag="text"):
    """What was said to the model."""

    text: str | None
    """None: the log does not say; anything will do."""
    optional: bool = False
    """The agent's own addition: a request may be without it."""


class AskedFile(Value, frozen=True, kw_only=True, tag="file"):
    """An image or another file that was shown to the model."""

    media_type: str


class AskedResult(Value, frozen=True, kw_only=True, tag="result"):
    """What came of a call."""

    tool_call_id: str
    text: str | None = None
    """None: whatever the agent says of it (the call was never answered, or was aborted)."""
    media_types: tuple[str, ...] = ()
    """Of the files in it."""


class EarlierAnswer(Value, frozen=True, kw_only=True, tag="answer"):
    """What a model had said before this conversation, or before its context was replaced."""

    parts: tuple[Part, ...]


Entry: TypeAlias = AskedText | AskedFile | AskedResult | EarlierAnswer


class Exchange(Value, frozen=True, kw_only=True):
    """One call of the model."""

    keeps: int | None = None
    """How many entries of the context so far remain before `asks`; None: all of them."""
    asks: tuple[Entry, ...] = ()
    """What came since the last answer."""
    answer: Message


class Track(Value, frozen=True, kw_only=True):
    """One conversation: the session, or that of one of its subagents."""

    session: str
    agent: str
    title: str | None = None
    exchanges: tuple[Exchange, ...]


class Cassette(Value, frozen=True, kw_only=True):
    """All that is played: tracks are independent of each other, exchanges of one follow each other."""

    cassette: Literal[1]
    """The version of this format."""
    tracks: tuple[Track, ...]


def context_after(entries: Sequence[Entry], exchange: Exchange) -> tuple[Entry, ...]:
    """The context of an exchange's request, given the context of the answer before it."""
    kept = entries if exchange.keeps is None else entries[: exchange.keeps]
    return (*kept, *exchange.asks)


def answered(entries: Sequence[Entry], exchange: Exchange) -> tuple[Entry, ...]:
    """The context with the exchange's answer."""
    return (*entries, EarlierAnswer(parts=exchange.answer.parts))


def requests_of(track: Track) -> Iterator[tuple[tuple[Entry, ...], Exchange]]:
    """The context that each request of a track must have, and the exchange that it is of."""
    entries: tuple[Entry, ...] = ()
    for exchange in track.exchanges:
        context = context_after(entries, exchange)
        yield context, exchange
        entries = answered(context, exchange)


def to_json(cassette: Cassette) -> bytes:
    """The file: one line an entry and one an answer, so that people can read, edit and compare it.

    Not indented further, since the arguments of calls stay exactly as they were written.
    """
    tracks = b",\n".join([_track_lines(track) for track in cassette.tracks])
    return b'{"cassette":%d,"tracks":[\n%s\n]}\n' % (cassette.cassette, tracks)


def _track_lines(track: Track) -> bytes:
    exchanges = b",\n".join([_exchange_lines(exchange) for exchange in track.exchanges])
    head = encode(msgspec.structs.replace(track, exchanges=())).removesuffix(b"[]}")
    return head + b"[\n%s\n]}" % exchanges


def _exchange_lines(exchange: Exchange) -> bytes:
    keeps = b"" if exchange.keeps is None else b'"keeps":%d,' % exchange.keeps
    asks = b",\n".join([b"   " + encode(entry) for entry in exchange.asks])
    return b' {%s"asks":[\n%s\n  ],\n  "answer":%s}' % (keeps, asks, encode(exchange.answer))


def parse_cassette(data: bytes | str, path: Path | None = None) -> Cassette:
    """A cassette from its JSON.

    Raises:
        FormatError: It is no cassette, or of an unknown version.
    """
    try:
        return msgspec.json.decode(data, type=Cassette)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"it is not a cassette of version {VERSION}: {error}", path=path) from error


def load_cassette(path: Path | str) -> Cassette:
    """A cassette from its file.

    Raises:
        SourceError: The file cannot be read.
        FormatError: It is no cassette.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"it cannot be read: {error.strerror}", path=path) from error
    return parse_cassette(data, path)
