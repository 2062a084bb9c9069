"""The lines that a session's rows are kept as, whichever form OpenCode had them in.

A line is one version of one row: `table` and `key` say of what, `row` holds the columns (SQLite) or the file (JSON
storage) exactly, and a message's line holds its parts too, because a message is read as a whole. Beside them stands
what only the rows around it tell: `place`, and `leaf` where the session was reverted.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from turnlog.agents.opencode.ids import whole
from turnlog.model.codec import parse_json, to_json

Row = dict[str, Any]
"""Columns by name; a file's `file`, `text`, `mode` and `mtime_ns`.

Text that is not UTF-8 is `{"$text": …}` and binary data `{"$blob": …}`, both in base64.
"""

MESSAGE, SESSION, TO_DOS, PROJECT, EVENT = "message", "session", "todo", "project", "event"

_TEXT, _BLOB = "$text", "$blob"


class Place(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a message stands among the others, and what they tell of it."""

    position: int
    turn: int | None = None
    step: int | None = None
    parent: str | None = None
    """The message before it."""
    origin: str | None = None
    """What its role does not tell, see `turnlog.model.Origin`."""
    over: bool = False
    """The agent has gone on since: what is open in it stays so."""
    compacts: int | None = None
    """Of a summary: the position before which the context is compacted, …"""
    automatic: bool | None = None
    kept: tuple[str, ...] = ()
    """… but for these messages."""
    copy_of: str | None = None
    """Of a fork's copy: the message it was copied from, …"""
    copied_from: str | None = None
    """… and the session that one is of."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A version of a row."""

    table: str
    key: str = ""
    place: Place | None = None
    leaf: str | None = None
    """Of a reverted session: the last message that still counts; "" when none does."""
    leaf_at: int | None = None
    """The position of the first that does not."""
    restored: bool = False
    """Of a session that once was reverted and is no longer."""
    at: int | None = None
    """Of the session, its project and its list of things to do: the position from which on this holds. A later version
    has a greater one, also where OpenCode does not touch the row's time: a new title does not in 1.18."""
    deleted: bool = False
    """The row is gone; `row` is how it last was."""
    row: Row = {}
    parts: tuple[Row, ...] = ()
    rows: tuple[Row, ...] = ()
    """Of a list that is kept as a whole (`todo`)."""


class _Key(msgspec.Struct):
    table: str
    key: str = ""


_encoder = msgspec.json.Encoder()
_line_decoder = msgspec.json.Decoder(Line)
_key_decoder = msgspec.json.Decoder(_Key)


def encode_line(line: Line) -> bytes:
    """The line with its newline."""
    return _encoder.encode(line) + b"\n"


def decode_line(data: bytes) -> Line:
    """The inverse; raises `msgspec.MsgspecError` for what is no such line."""
    return _line_decoder.decode(data)


def newest_lines(log: Iterable[bytes]) -> dict[tuple[str, str], bytes]:
    """The last version of every row in a log, by table and key, in the order in which rows first came."""
    newest: dict[tuple[str, str], bytes] = {}
    for line in split_lines(log):
        try:
            found = _key_decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        newest[found.table, found.key] = line
    return newest


def split_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their newlines, out of pieces that are cut anywhere."""
    pending = b""
    for piece in pieces:
        *lines, pending = (pending + piece).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if pending:
        yield pending


def as_text(data: bytes) -> str | dict[str, str]:
    """Text as a row holds it, from its bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {_TEXT: base64.b64encode(data).decode()}


def as_blob(data: bytes) -> dict[str, str]:
    """Binary data as a row holds it."""
    return {_BLOB: base64.b64encode(data).decode()}


def bytes_of(value: object) -> bytes | None:
    """The bytes of what `as_text` or `as_blob` made; None for any other value."""
    if isinstance(value, str):
        return value.encode()
    packed = _packed(value)
    return None if packed is None else base64.b64decode(packed[1])


def is_blob(value: object) -> bool:
    """Whether `as_blob` made it."""
    packed = _packed(value)
    return packed is not None and packed[0] == _BLOB


def _packed(value: object) -> tuple[str, str] | None:
    found = object_of(value)
    names = found.keys() & {_TEXT, _BLOB}
    if len(found) != 1 or not names:
        return None
    name = names.pop()
    return (name, found[name]) if isinstance(found[name], str) else None


def object_of(value: object) -> Row:
    """A value of JSON that should be an object; an empty one for anything else."""
    return cast("Row", value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """A value of JSON that should be an array; an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def text_of(value: object) -> str | None:
    """A value of JSON that should be a text with something in it; None for anything else."""
    return value if isinstance(value, str) and value else None


def time_of(document: Mapping[str, Any], name: str) -> int:
    """A time in an object's `time` (Unix milliseconds); 0 when it is not there."""
    return whole(object_of(document.get("time")).get(name))


def document_of(row: Mapping[str, Any]) -> Row:
    """The JSON object that a row holds: its `data` column, or the text of its file. Raises ValueError for no object."""
    data = bytes_of(row.get("data", row.get("text")))
    if data is None:
        raise ValueError("no JSON text")
    try:
        found: object = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = msgspec.json.decode(to_json(parse_json(data.decode(errors="replace"))))
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return cast("Row", found)
