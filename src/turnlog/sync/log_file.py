"""One open log file: whether it is the file that was read before, which bytes are new, and those bytes in pieces.

Every byte that is read is archived on the way.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import BytesIO, FileIO
from types import TracebackType
from typing import Protocol, Self

import msgspec

from turnlog.errors import DamagedError
from turnlog.platforms.files import BINARY, NO_WAIT, read_at
from turnlog.store.sources import SAMPLE_SIZE, Fingerprint, SourceState, sample_hash

LOOK_AHEAD = 4096
"""Bytes after the last line that are examined to see whether another line begins there."""

# NUL: a crash of the system can leave zeros where an appended line should be.
_EDGES = b" \t\r\n\0"
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"[ \t\r\0]*\n")

CHUNK_SIZE = 4 << 20
"""Bytes read at a time: memory stays the same however large a file is."""

MOST_LINES = 4096
"""Lines folded at a time: what a fold makes of a record of ten bytes takes a thousand."""

_SOME_LINES = re.compile(rb"(?:[^\n]*+\n){1,%d}+" % MOST_LINES)


class LogArchive(Protocol):
    """What receives the bytes of a log, as `store.archive.Archive` does."""

    def append(self, source_key: int, generation: int, start: int, data: bytes) -> None:
        """Append `data`, which begins at byte `start` of the file, to the generation."""
        ...

    def begin(self, source_key: int, generation: int, shared_prefix: int, now: int) -> None:
        """Start a generation that shares its first `shared_prefix` bytes with the previous one."""
        ...

    def iter_bytes(self, source_key: int, generation: int) -> Iterator[bytes]:
        """The archived bytes of a generation."""
        ...


class LogFile:
    """An open file, what is known of it, and the archive that its bytes go to."""

    def __init__(self, path: str, state: SourceState, archive: LogArchive, on_bytes: Callable[[int], None]) -> None:
        """Open a regular file. Raises OSError when it cannot be read or is not a regular file.

        Args:
            path: The file.
            state: What the store knows of it; updated while reading.
            archive: Receives the new bytes.
            on_bytes: Called with the size of each piece that is read.
        """
        self._file = FileIO(path, opener=_open_regular)
        self.state = state
        self._archive = archive
        self._on_bytes = on_bytes
        self._scanned = 0
        """Up to here, bytes behind the cursor are known to end no line."""

    def __enter__(self) -> Self:
        """The file itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self._file.close()

    def status(self) -> os.stat_result:
        """Its status in the file system."""
        return os.fstat(self._file.fileno())

    def resume_offset(self, fingerprint: Fingerprint, parser_version: int, now: int, *, appendable: bool) -> int | None:
        """The offset to read from (0 after opening a new generation), or None when nothing is new."""
        state = self.state
        if state.archived == 0:
            return 0 if fingerprint.size else None
        # A touch, a copy or a restore changes the fingerprint and no bytes: a new generation would fold everything
        # again.
        if fingerprint.size == state.archived and self._same_bytes():
            return None if state.parser_version else 0  # a rebuild could not read it
        if appendable and fingerprint.size > state.archived and self._grew(fingerprint):
            # The fold state of another parser version cannot be read by this one.
            if state.parser_version != parser_version:
                return 0
            self._scanned = state.archived
            return state.cursor
        # The file was rewritten or truncated. The new generation refers to the common prefix, so a large log that lost
        # its tail is not archived twice.
        shared = self._shared_prefix()
        state.generation += 1
        state.archived = shared
        self._archive.begin(state.key, state.generation, shared, now)
        return 0

    def _grew(self, fingerprint: Fingerprint) -> bool:
        """Whether the file still begins with the archived bytes: by samples, by all bytes when the inode changed."""
        state = self.state
        if self.samples(state.archived) != (state.head_hash, state.tail_hash):
            return False
        # Samples may miss a change in the middle. A file with the same inode is taken to have grown; another inode may
        # be an edited copy.
        is_same_file = fingerprint[2:] == state.fingerprint[2:]
        return is_same_file or self._same_bytes()

    def _same_bytes(self) -> bool:
        return self._shared_prefix() == self.state.archived

    def _shared_prefix(self) -> int:
        """How many bytes from its start the file has in common with what is archived."""
        shared = 0
        # What is damaged in the archive is archived again, as if the file had another content there.
        with suppress(DamagedError):
            for piece in self._archive.iter_bytes(self.state.key, self.state.generation):
                found = self._read(len(piece), shared)
                if found != piece:
                    return shared + _common_length(found, piece)
                shared += len(piece)
        return shared

    def iter_lines(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines from the cursor on, in pieces; all bytes up to the end go into the archive, the torn tail too."""
        start = self._line_start()
        # A last line of any size may grow by a few bytes at a time: it is read again when it may be complete.
        if start < self._scanned and not self._may_be_complete():
            return iter(())
        return feeds_of(self._archived(start), start)

    def _may_be_complete(self) -> bool:
        """Whether what was appended to a last line may end it; if not, it is archived."""
        offset, last = self._scanned, b""
        while piece := self._read(CHUNK_SIZE, offset):
            if b"\n" in piece:
                return True
            self._archive_new(offset, piece)
            offset += len(piece)
            last = piece.rstrip(_EDGES)[-1:] or last
        return last in (b"}", b"]")

    def whole(self) -> Iterator[tuple[int, bytes]]:
        """All bytes of a file that is written whole."""
        content = BytesIO()
        content.writelines(self._archived(0))
        yield 0, content.getvalue()

    def _archived(self, offset: int) -> Iterator[bytes]:
        """All bytes from `offset` on, each piece archived before it is returned."""
        while piece := self._read(CHUNK_SIZE, offset):
            self._archive_new(offset, piece)
            offset += len(piece)
            yield piece

    def _line_start(self) -> int:
        """The cursor, past the end of a last line that the pass before took without its newline."""
        offset = self.state.cursor
        # The newline may have been written since. It belongs to the record that was read, and is no blank line.
        if offset and self._read(1, offset - 1) != b"\n":
            ending = _LINE_END.match(self._read(LOOK_AHEAD, offset))
            if ending:
                self._archive_new(offset, ending[0])
                self.state.cursor = offset = offset + len(ending[0])
        return offset

    def _archive_new(self, offset: int, piece: bytes) -> None:
        """Archive what of `piece` is not archived yet."""
        state = self.state
        self._on_bytes(len(piece))
        known = max(0, state.archived - offset)
        if known < len(piece):
            self._archive.append(state.key, state.generation, offset + known, piece[known:])
            state.archived = offset + len(piece)

    def samples(self, size: int) -> tuple[bytes, bytes]:
        """Hashes of the first and of the last bytes of the file's first `size` bytes."""
        length = min(SAMPLE_SIZE, size)
        return sample_hash(self._read(length, 0)), sample_hash(self._read(length, size - length))

    def has_torn_line(self, offset: int) -> bool:
        """Whether the bytes from `offset` on begin a record, which is not all there yet."""
        return not is_padding(self._read(LOOK_AHEAD, offset))

    def line_number(self, offset: int) -> int:
        """The number, from 1, of the line that holds byte `offset`."""
        return line_number(self._pieces(), offset)

    def _pieces(self) -> Iterator[bytes]:
        offset = 0
        while piece := self._read(CHUNK_SIZE, offset):
            yield piece
            offset += len(piece)

    def _read(self, size: int, offset: int) -> bytes:
        return read_at(self._file.fileno(), size, offset)


def is_padding(data: bytes) -> bool:
    """Whether the bytes after the last line begin no other line: blanks, or the NULs that a crash leaves."""
    return not data.strip(_EDGES)


def is_complete(line: bytes) -> bool:
    """Whether a last line without a newline is a whole record already (a torn object never parses)."""
    line = line.strip(_EDGES).removeprefix(_BOM)
    # Nothing of a large line that is still being written is decoded, and of a sound one there is no copy.
    if line[:1] + line[-1:] not in (b"{}", b"[]"):
        return False
    try:
        _skip(line)
        return line.isascii() or bool(line.decode())
    except msgspec.DecodeError as error:
        # To decode a line of any size into objects takes several times its size, and says the same of a torn one.
        return str(error) != _TRUNCATED and _is_lenient_json(line)
    except RecursionError:
        return _is_lenient_json(line)
    except UnicodeDecodeError:
        return False


def _is_lenient_json(line: bytes) -> bool:
    """Whether Python's own decoder takes it, which knows NaN."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


_skip = msgspec.json.Decoder(msgspec.Raw).decode

_TRUNCATED = "Input data was truncated"


def feeds_of(pieces: Iterable[bytes], offset: int) -> Iterator[tuple[int, bytes]]:
    """The whole lines of a file that is read from `offset` on, each feed with where it begins.

    A feed has at most about the size of a piece, or is one line, and has at most `MOST_LINES`. While a line is put
    together, it is in memory once.
    """
    # What has no line end yet. A BytesIO grows in place, and gives its bytes away without a copy.
    pending = BytesIO()
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        if not cut:
            pending.write(piece)
            continue
        rest = memoryview(piece)
        pending.write(rest[:cut])
        data = pending.getvalue()
        pending = BytesIO()
        pending.write(rest[cut:])
        yield from _cut(data, offset)
        offset += len(data)
        del data
    # A writer may leave out the last newline. Nothing more may ever come, so the record is read now if it parses.
    last = pending.getvalue()
    if last and is_complete(last):
        yield offset, last


def _cut(data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines, cut where they are too many for a feed."""
    if data.count(b"\n") <= MOST_LINES:
        yield offset, data
        return
    for some in _SOME_LINES.finditer(data):
        yield offset + some.start(), some[0]


def line_number(pieces: Iterable[bytes], offset: int) -> int:
    """The number, from 1, of the line that holds byte `offset` of a file in pieces."""
    line = 1
    for piece in pieces:
        line += piece.count(b"\n", 0, offset)
        offset -= len(piece)
        if offset <= 0:
            break
    return line


def _common_length(one: bytes, other: bytes) -> int:
    """How many bytes two pieces share from their start: halving, so that a megabyte costs twenty comparisons."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _open_regular(path: str, flags: int) -> int:
    """Open a regular file without blocking on a pipe that nobody writes to."""
    descriptor = os.open(path, flags | BINARY | NO_WAIT)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "not a plain file", path)
