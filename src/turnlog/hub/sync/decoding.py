"""Decodes what machines send in bounded memory, and checks every value of it before anything is written.

A body of a few kilobytes may say that it has gigabytes. So nothing is decompressed beyond a limit, and how many values
something has is read from its beginning, before one of them is made. Rows are decoded with the kinds of their columns.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
import zstandard
from msgspec import Meta, Raw

from turnlog.hub.sync.columns import KINDS
from turnlog.store import zstd
from turnlog.store.feed.values import IDENTITY, TABLES, ArchivedBytes, FeedBatch, FeedPosition, Row

MOST_UNPACKED: Final = 96 << 20
"""Bytes of a body without its encoding."""

MOST_VALUES: Final = 4_000_000
"""Values of all rows of a batch."""

BYTES_OF_VALUE: Final = 64
"""Of memory, besides the bytes that it was decoded from."""

LARGEST_WINDOW: Final = 8 << 20
"""Bytes that a decompressor keeps at most: machines need a sixteenth of it."""

MOST_OF_BODIES: Final = 256 << 20
"""Bytes of all bodies of a batch, decompressed."""

LARGEST_BODY: Final = 64 << 20

MOST_FILES: Final = 10_000
"""Of one request with bytes of log files."""

MOST_FRAMES: Final = 200_000

LARGEST_FRAME: Final = 64 << 20
"""Bytes of a log file in one frame, decompressed."""

Weigh: TypeAlias = Callable[[int], None]
"""Is told how many bytes of memory are about to be taken; raises if these are too many."""

_PIECE: Final = 1 << 20


class WrongBatchError(ValueError):
    """A batch that cannot be written as it is."""


class TooLargeError(ValueError):
    """More than is taken at once."""


def unpack(data: bytes, weigh: Weigh, most: int = MOST_UNPACKED) -> bytearray:
    """The data of a zstd stream. Raises TooLargeError if it has more bytes, WrongBatchError if it is torn or none."""
    unpacked = bytearray()
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW).stream_reader(io.BytesIO(data))
        with reader:
            while piece := reader.read(_PIECE):
                if len(unpacked) + len(piece) > most:
                    raise TooLargeError(f"a body has at most {most} bytes")
                weigh(len(piece))
                unpacked += piece
    except zstandard.ZstdError as error:
        raise WrongBatchError("the body is no zstd, or needs more memory than is given to it") from error
    return unpacked  # as it is: a copy would take as much again


# -- batches


class _Outline(msgspec.Struct):
    """A batch of which nothing large is decoded yet."""

    after: FeedPosition
    until: FeedPosition
    has_more: bool
    rows: Raw = Raw()
    names: Raw = Raw()
    bodies: Raw = Raw()
    complete: Raw = Raw()
    whole: Raw = Raw()
    billed: Raw = Raw()
    forgotten: Raw = Raw()
    withdrawn: Raw = Raw()
    generation: int = 0
    copies: Raw = Raw()
    levels: Raw = Raw()


# Types that are made of tables, which a type checker cannot read.
_dict: Final[Any] = dict
_list: Final[Any] = list
_tuple: Final[Any] = tuple
_literal: Final[Any] = Literal

_KEY: Final[Any] = KINDS["sessions"]["key"].type
_IDS: Final[Any] = _list[KINDS["links"]["child_id"].type]

_outline: Final = msgspec.msgpack.Decoder(_Outline)
_tables: Final = msgspec.msgpack.Decoder(_dict[_literal[tuple(TABLES)], Raw])
_named_tables: Final = msgspec.msgpack.Decoder(_dict[_literal[tuple(IDENTITY)], Raw])

_rows: Final = {
    table: msgspec.msgpack.Decoder(_list[_tuple[tuple([KINDS[table][column].type for column in columns])]])
    for table, columns in TABLES.items()
}
_names: Final = {
    table: msgspec.msgpack.Decoder(_dict[_KEY, _tuple[tuple([KINDS[table][column].type for column in columns])]])
    for table, columns in IDENTITY.items()
}
_others: Final = {
    "bodies": msgspec.msgpack.Decoder(_dict[_KEY, bytes]),
    "complete": msgspec.msgpack.Decoder(_list[_KEY]),
    "whole": msgspec.msgpack.Decoder(_list[_KEY]),
    "billed": msgspec.msgpack.Decoder(_dict[_KEY, _KEY | None]),
    "forgotten": msgspec.msgpack.Decoder(_IDS),
    "withdrawn": msgspec.msgpack.Decoder(_IDS),
    "copies": msgspec.msgpack.Decoder(_dict[_KEY, bytes]),
    "levels": msgspec.msgpack.Decoder(_dict[_KEY, Literal["metrics", "redacted", "full"]]),
}
"""Field of a batch -> what decodes it, besides rows and names."""


def decode_batch(data: bytes | bytearray, weigh: Weigh) -> FeedBatch:
    """The batch with these bytes, of which every value is what its column may have.

    Raises TooLargeError for too many values, WrongBatchError, which names table, row and column, for a wrong one.
    """
    outline = _decoded("the batch", _outline, data)
    rows, names = _outline_of(outline.rows, "rows", _tables), _outline_of(outline.names, "names", _named_tables)
    others = {name: raw for name in _others if len(memoryview(raw := getattr(outline, name)))}
    values = sum(_length(raw) * len(TABLES[table]) for table, raw in rows.items())
    values += sum(_length(raw) * (len(IDENTITY[table]) + 1) for table, raw in names.items())
    values += sum(_length(raw) * 2 for raw in others.values()) + len(memoryview(outline.copies)) // 8
    if values > MOST_VALUES:
        raise TooLargeError(f"a batch has at most {MOST_VALUES} values")
    weigh(values * BYTES_OF_VALUE)
    return FeedBatch(
        after=_checked_position(outline.after),
        until=_checked_position(outline.until),
        has_more=outline.has_more,
        generation=_checked_position((outline.generation,))[0],
        rows={table: _rows_of(table, rows[table]) if table in rows else [] for table in TABLES},
        names={table: _names_of(table, names[table]) if table in names else {} for table in IDENTITY},
        **{name: _decoded(name, _others[name], raw) for name, raw in others.items()},
    )


def _outline_of(raw: Raw, what: str, decoder: msgspec.msgpack.Decoder[Any]) -> dict[str, Raw]:
    return _decoded(what, decoder, raw) if len(memoryview(raw)) else {}


def _length(raw: bytes | bytearray | Raw) -> int:
    """How many elements an array, or pairs a map, of MessagePack says that it has."""
    head = bytes(memoryview(raw)[:5])
    first = head[0] if head else 0
    if 0x80 <= first <= 0x9F:
        return first & 0x0F
    size = {0xDC: 2, 0xDE: 2, 0xDD: 4, 0xDF: 4}.get(first, 0)
    return int.from_bytes(head[1 : 1 + size], "big")


def _decoded(what: str, decoder: msgspec.msgpack.Decoder[Any], raw: bytes | bytearray | Raw) -> Any:
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WrongBatchError(f"{what}: {error}") from error


_LARGEST_POSITION: Final = 1 << 63


def _checked_position(position: Any) -> Any:
    if min(position) < 0 or max(position) >= _LARGEST_POSITION:
        raise WrongBatchError("positions are numbers from 0 to 2^63")
    return position


def _rows_of(table: str, raw: Raw) -> list[Row]:
    columns = TABLES[table]
    try:
        rows: list[Row] = _rows[table].decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WrongBatchError(_said_of_row(table, columns, raw, error)) from error
    for at, column in enumerate(columns):
        _check_values(table, column, range(len(rows)), [row[at] for row in rows] if _is_checked(table, column) else ())
    return rows


def _names_of(table: str, raw: Raw) -> dict[int, Row]:
    names: dict[int, Row] = _decoded(f"names of {table}", _names[table], raw)
    for at, column in enumerate(IDENTITY[table]):
        if _is_checked(table, column):
            _check_values(table, column, list(names), [name[at] for name in names.values()])
    return names


def _is_checked(table: str, column: str) -> bool:
    return KINDS[table][column].wrong is not None


def _check_values(table: str, column: str, rows: Sequence[int], values: Sequence[Any]) -> None:
    """`rows` are the numbers, or the keys, of the rows that have these values."""
    find = KINDS[table][column].wrong
    wrong = None if find is None else find(values)
    if wrong is not None:
        raise WrongBatchError(f"row {rows[wrong]} of {table}: {column} has a value that it may not have")


_PLACE: Final = re.compile(r"(?P<reason>.*?)(?: - at `\$(?:\[(?P<row>\d+)\](?:\[(?P<column>\d+)\])?)?.*`)?", re.DOTALL)


def _said_of_row(table: str, columns: Sequence[str], raw: Raw, error: Exception) -> str:
    """What is wrong, with its table, row and column."""
    if isinstance(error, UnicodeDecodeError):
        error = _not_utf8(table, raw) or error
    found = _PLACE.fullmatch(str(error))
    if found is None or found["row"] is None:
        return f"{table}: {error}"
    column = "" if found["column"] is None else f" {columns[int(found['column'])]}:"
    return f"row {found['row']} of {table}:{column} {found['reason']}"


def _not_utf8(table: str, raw: Raw) -> ValueError | None:
    """The same error with its place, which the decoder does not say of a text that is no UTF-8."""
    for number, row in enumerate(_rows_of_values.decode(raw)):
        for at, value in enumerate(row):
            try:
                msgspec.msgpack.decode(value)
            except UnicodeDecodeError:
                return ValueError(f"a text is not UTF-8 - at `$[{number}][{at}]`")
    return None


_rows_of_values: Final = msgspec.msgpack.Decoder(list[list[Raw]])


# -- bodies of messages


def check_bodies(bodies: Mapping[int, bytes]) -> None:
    """Raise WrongBatchError for a body that does not say its size, TooLargeError for too many bytes of all of them."""
    size = 0
    for key, body in bodies.items():
        try:
            declared = zstd.content_size(body)
        except zstd.ZstdError as error:
            raise WrongBatchError(f"the body of message {key} is no zstd frame") from error
        if declared <= 0:
            raise WrongBatchError(f"the body of message {key} does not say its size")
        size += declared
        if declared > LARGEST_BODY:
            raise TooLargeError(f"a body has at most {LARGEST_BODY} bytes, decompressed")
        if size > MOST_OF_BODIES:
            raise TooLargeError(f"the bodies of a batch have at most {MOST_OF_BODIES} bytes, decompressed")


# -- bytes of log files


class _OutlineOfFile(msgspec.Struct):
    path: str
    generation: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    start: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    frames: Raw


_file_outlines: Final = msgspec.msgpack.Decoder(_list[Raw])
_file_outline: Final = msgspec.msgpack.Decoder(_OutlineOfFile)
_frames: Final = msgspec.msgpack.Decoder(_list[_tuple[_KEY, _KEY, _KEY, bytes]])


def decode_archived(data: bytes | bytearray, weigh: Weigh) -> list[ArchivedBytes]:
    """Frames of log files. Raises TooLargeError for too many, WrongBatchError for one that is not what it says."""
    if _length(data) > MOST_FILES:
        raise TooLargeError(f"a request has bytes of at most {MOST_FILES} files")
    files: list[_OutlineOfFile] = [
        _decoded("a file", _file_outline, raw) for raw in _decoded("files", _file_outlines, data)
    ]
    count = sum(_length(file.frames) for file in files)
    if count > MOST_FRAMES:
        raise TooLargeError(f"a request has at most {MOST_FRAMES} frames")
    weigh(count * 5 * BYTES_OF_VALUE)
    found = [
        ArchivedBytes(each.path, each.generation, each.start, _decoded("frames", _frames, each.frames))
        for each in files
    ]
    for archived in found:
        for _, _, length, frame in archived.frames:
            _check_frame(length, frame)
    return found


def _check_frame(length: int, frame: bytes) -> None:
    if length > LARGEST_FRAME:
        raise TooLargeError(f"a frame has at most {LARGEST_FRAME} bytes, decompressed")
    try:
        size = zstd.content_size(frame)
    except zstd.ZstdError as error:
        raise WrongBatchError("a frame of a log file is no zstd") from error
    if size != length:
        raise WrongBatchError(f"a frame of a log file says that it has {size} bytes, and its row {length}")
