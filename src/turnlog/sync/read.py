"""Reading sources: what is new since the cursor goes through the fold into the archive and the store.

A source is read whole or not at all. A file that only grew is read from where the last pass ended; one that was
written anew becomes a new generation and is folded from its start (readings join, so nothing doubles). What is no
file is read by its agent: `sync.rows`.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from io import FileIO

import msgspec

from turnlog.agents.base import Agent, Source, SourceKind, are_rows
from turnlog.errors import SourceError, StoreError
from turnlog.store.archive import Archive
from turnlog.store.connection import write_transaction
from turnlog.store.sources import (
    SAMPLE_SIZE,
    Fingerprint,
    SourceState,
    load_source,
    next_source_key,
    sample_hash,
    save_source,
)
from turnlog.store.writing.transaction import Pricer, Saved, SourceRow
from turnlog.store.writing.writer import Batch
from turnlog.sync.rows import read_rows
from turnlog.sync.summary import Problem

LOOK_AHEAD = 4096
"""Bytes behind the last line that tell whether another one begins there."""

_EDGES = b" \t\r\n\0"
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"[ \t\r\0]*\n")

CHUNK_SIZE = 4 << 20
"""Bytes read and folded at a time: memory stays the same however large a file is."""


class GroupResult(msgspec.Struct, kw_only=True):
    """What reading a group of sources brought."""

    saved: Saved = msgspec.field(default_factory=Saved)
    changed: int = 0
    """Sources that had something new."""
    problems: list[Problem] = msgspec.field(default_factory=list[Problem])
    forgotten: set[str] = msgspec.field(default_factory=set[str])
    """Paths of sources of which nothing is kept, because the user has forgotten what they are about."""


class Reader:
    """Reads sources into one store connection, which must be one that does not check foreign keys."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        price: Pricer,
        price_version: str,
        on_bytes: Callable[[int], None] = lambda count: None,
        worker: Executor | None = None,
    ) -> None:
        self._connection = connection
        self._worker = worker
        self._archive = Archive(connection, worker)
        self._price = price
        self._price_version = price_version
        self._on_bytes = on_bytes

    def read(self, group: Sequence[tuple[Agent, Source]]) -> GroupResult:
        """Bring the store up to date with some sources, in one transaction.

        A source that cannot be opened is a problem in the result and does not hold up the others. One that fails
        while it is read takes nothing with it: the others are then read each in a transaction of its own.
        """
        try:
            with write_transaction(self._connection):
                return self._read_together(group)
        except (sqlite3.Error, StoreError):
            raise
        except Exception as error:
            self._archive.discard()
            if len(group) == 1:
                return self._with_problem(group[0][1], error)
        result = GroupResult()
        for item in group:
            _add(result, self.read([item]))
        return result

    def _read_together(self, group: Sequence[tuple[Agent, Source]]) -> GroupResult:
        batch = Batch(self._connection, self._price, self._price_version, self._worker)
        result = GroupResult()
        now = int(time.time() * 1000)
        for agent, source in group:
            if are_rows(agent, source):
                self._read_rows(agent, source, batch, result, now)
                continue
            try:
                file = FileIO(source.path, opener=_open_file)
            except FileNotFoundError:
                continue  # it went away meanwhile: the next pass will note it
            except OSError as error:
                result.problems.append(self._note_problem(source, error, now))
                continue
            with file:
                result.changed += self._read_source(file, agent, source, batch, result.forgotten, now)
        self._archive.flush()
        result.saved = batch.close()
        return result

    def _read_rows(self, agent: Agent, source: Source, batch: Batch, result: GroupResult, now: int) -> None:
        """Bring the store up to date with what the agent reads itself."""
        try:
            grown = read_rows(self._connection, self._archive, agent, source, self._load(source), batch, now)
        except FileNotFoundError:
            return
        except (OSError, SourceError) as error:
            result.problems.append(self._note_problem(source, error, now))
            return
        self._on_bytes(grown)
        result.changed += grown > 0

    def _read_source(
        self, file: FileIO, agent: Agent, source: Source, batch: Batch, forgotten: set[str], now: int
    ) -> bool:
        """Bring the store up to date with one open file; whether there was anything new."""
        state = self._load(source)
        status = os.fstat(file.fileno())
        fingerprint = Fingerprint.of(status)
        row = SourceRow(state.key, agent.name, source.path, state.generation, source.session_id, source.kind)
        if not state.archived and batch.is_forgotten(row):
            forgotten.add(source.path)
            self._keep_nothing(source, state, fingerprint, now)
            return False
        start = self._where_to_go_on(file, agent, source, state, fingerprint, now)
        if start is not None:
            row = msgspec.structs.replace(row, generation=state.generation)
            if start == 0:
                state.cursor, state.lines, state.state, state.parser_version = 0, 0, None, agent.parser_version
                batch.start_over(row, is_log=source.appendable)
            self._read_from(file, agent, source, state, row, batch)
            if start == state.generation == 0 and batch.is_forgotten(row):
                forgotten.add(source.path)
                batch.forget_tail(row, 0)
                self._keep_nothing(source, state, fingerprint, now)
                return False
            state.head_hash, state.tail_hash = _samples(file, state.archived)
        state.fingerprint, state.problem = fingerprint, None
        mode, mtime_ns = status.st_mode, status.st_mtime_ns
        self._archive.settle(state.key, state.generation, state.archived, mode, mtime_ns, now)
        if start is not None and self._is_list_with_forgotten(source, state, batch):
            self._keep_nothing(source, state, fingerprint, now)
        else:
            save_source(self._connection, source, state, now)
        return start is not None

    def _read_from(
        self, file: FileIO, agent: Agent, source: Source, state: SourceState, row: SourceRow, batch: Batch
    ) -> None:
        """What stands behind the cursor goes through the fold."""
        fold = agent.fold(source, state.state)
        batch.forget_tail(row, state.cursor)
        for offset, data in (self._iter_lines if source.appendable else self._whole)(file, state):
            changes = fold.feed(data, offset)
            batch.save(row, changes)
            state.cursor = offset + len(data)
            state.lines += changes.counts.total
        state.state = fold.state()
        torn = state.archived - state.cursor
        if torn and not is_padding(os.pread(file.fileno(), LOOK_AHEAD, state.cursor)):
            batch.note_tail(row, state.cursor, torn, line_number(_pieces_of(file), state.cursor))

    def _is_list_with_forgotten(self, source: Source, state: SourceState, batch: Batch) -> bool:
        """Whether it is about many sessions, one of which was forgotten: what it says of the others is known now."""
        if source.kind is not SourceKind.SIDECAR or source.session_id is not None:
            return False
        self._archive.flush()
        return batch.names_forgotten(self._archive.iter_all(state.key))

    def _keep_nothing(self, source: Source, state: SourceState, fingerprint: Fingerprint, now: int) -> None:
        """Know the file again, so that it is not read before it changes, and nothing of what stands in it."""
        self._archive.drop(state.key)
        self._archive.begin(state.key, 0, 0, now)
        state.generation = 0
        state.archived = state.cursor = state.lines = 0
        state.state = state.head_hash = state.tail_hash = state.problem = None
        state.fingerprint = fingerprint
        save_source(self._connection, source, state, now)

    def _load(self, source: Source) -> SourceState:
        state = load_source(self._connection, source.path)
        if state is None:
            key = next_source_key(self._connection)
            state = SourceState(key=key, fingerprint=Fingerprint(0, 0, 0, 0), is_new=True)
        return state

    def _with_problem(self, source: Source, error: Exception) -> GroupResult:
        with write_transaction(self._connection):
            return GroupResult(problems=[self._note_problem(source, error, int(time.time() * 1000))])

    def _note_problem(self, source: Source, error: Exception, now: int) -> Problem:
        """Keep why a source could not be read."""
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
        else:
            reason = error.reason if isinstance(error, SourceError) else f"{type(error).__name__}: {error}"
        state = self._load(source)
        state.problem = reason
        if state.is_new:
            self._archive.begin(state.key, 0, 0, now)
        save_source(self._connection, source, state, now)
        return Problem(source.path, reason)

    # -- is it the file we know?

    def _where_to_go_on(
        self, file: FileIO, agent: Agent, source: Source, state: SourceState, fingerprint: Fingerprint, now: int
    ) -> int | None:
        """The offset to read from (0 after opening a new generation), or None when nothing is new."""
        if state.archived == 0:
            return 0 if fingerprint.size else None
        if fingerprint.size == state.archived and self._same_bytes(file, state):
            return None
        if source.appendable and fingerprint.size > state.archived and self._grew(file, state, fingerprint):
            # What another version of the parser remembers is of no use to this one.
            return state.cursor if state.parser_version == agent.parser_version else 0
        shared = self._shared_prefix(file, state)
        state.generation += 1
        state.archived = shared
        self._archive.begin(state.key, state.generation, shared, now)
        return 0

    def _grew(self, file: FileIO, state: SourceState, fingerprint: Fingerprint) -> bool:
        """Whether what was archived is still there: judged by its first and last bytes, by all when it was replaced."""
        if _samples(file, state.archived) != (state.head_hash, state.tail_hash):
            return False
        is_same_file = fingerprint[2:] == state.fingerprint[2:]
        return is_same_file or self._same_bytes(file, state)

    def _same_bytes(self, file: FileIO, state: SourceState) -> bool:
        return self._shared_prefix(file, state) == state.archived

    def _shared_prefix(self, file: FileIO, state: SourceState) -> int:
        """How many bytes from its start the file has in common with what is archived."""
        shared = 0
        for piece in self._archive.iter_bytes(state.key, state.generation):
            found = os.pread(file.fileno(), len(piece), shared)
            if found != piece:
                return shared + _common_length(found, piece)
            shared += len(piece)
        return shared

    # -- reading

    def _iter_lines(self, file: FileIO, state: SourceState) -> Iterator[tuple[int, bytes]]:
        """Whole lines from the cursor on, in pieces; all bytes up to the end go into the archive, the torn tail too."""
        offset = self._behind_newline(file, state)
        pending = b""
        while piece := os.pread(file.fileno(), CHUNK_SIZE, offset + len(pending)):
            self._keep(state, offset + len(pending), piece)
            data = pending + piece if pending else piece
            cut = data.rfind(b"\n") + 1
            if cut:
                yield offset, data[:cut] if cut < len(data) else data
                offset += cut
            pending = data[cut:]
        if pending and is_complete(pending):
            yield offset, pending

    def _whole(self, file: FileIO, state: SourceState) -> Iterator[tuple[int, bytes]]:
        """All bytes of a file that is written whole."""
        pieces: list[bytes] = []
        offset = 0
        while piece := os.pread(file.fileno(), CHUNK_SIZE, offset):
            self._keep(state, offset, piece)
            pieces.append(piece)
            offset += len(piece)
        yield 0, b"".join(pieces)

    def _behind_newline(self, file: FileIO, state: SourceState) -> int:
        """The cursor, past the end of a last line that the pass before took without its newline."""
        offset = state.cursor
        if offset and os.pread(file.fileno(), 1, offset - 1) != b"\n":
            ending = _LINE_END.match(os.pread(file.fileno(), LOOK_AHEAD, offset))
            if ending:
                self._keep(state, offset, ending[0])
                state.cursor = offset = offset + len(ending[0])
        return offset

    def _keep(self, state: SourceState, offset: int, piece: bytes) -> None:
        """Archive what of `piece` is not archived yet."""
        self._on_bytes(len(piece))
        known = max(0, state.archived - offset)
        if known < len(piece):
            self._archive.append(state.key, state.generation, offset + known, piece[known:])
            state.archived = offset + len(piece)


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


def _samples(file: FileIO, size: int) -> tuple[bytes, bytes]:
    """Hashes of the first and of the last bytes of the file's first `size` bytes."""
    length = min(SAMPLE_SIZE, size)
    head = os.pread(file.fileno(), length, 0)
    tail = os.pread(file.fileno(), length, size - length)
    return sample_hash(head), sample_hash(tail)


def _add(total: GroupResult, result: GroupResult) -> None:
    total.changed += result.changed
    total.problems += result.problems
    total.forgotten |= result.forgotten
    total.saved.sessions |= result.saved.sessions
    total.saved.new_sessions += result.saved.new_sessions
    total.saved.messages += result.saved.messages
    total.saved.diagnostics += result.saved.diagnostics
    total.saved.last_change = max(total.saved.last_change, result.saved.last_change)


def is_padding(data: bytes) -> bool:
    """Whether bytes behind the last line are no beginning of another: blanks, or the NULs that a crash leaves."""
    return not data.strip(_EDGES)


def is_complete(line: bytes) -> bool:
    """Whether a last line without a newline is a whole record already (a torn object never parses)."""
    line = line.strip(_EDGES).removeprefix(_BOM)
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return line[:1] in (b"{", b"[")


def line_number(pieces: Iterable[bytes], offset: int) -> int:
    """The number, from 1, of the line of a file in which byte `offset` stands."""
    line = 1
    for piece in pieces:
        line += piece.count(b"\n", 0, offset)
        offset -= len(piece)
        if offset <= 0:
            break
    return line


def _pieces_of(file: FileIO) -> Iterator[bytes]:
    offset = 0
    while piece := os.pread(file.fileno(), CHUNK_SIZE, offset):
        yield piece
        offset += len(piece)


def _open_file(path: str, flags: int) -> int:
    """Open a plain file, and never wait for somebody to write to a pipe."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "not a plain file", path)
