"""Reading one source: what is new since the cursor goes through the fold into the archive and the store.

A source is read whole or not at all. A file that only grew is read from where the last pass ended; one that was
becomes a new generation and is folded from its start (readings join, so nothing doubles).
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from io import FileIO

import msgspec

from turnlog.agents.base import Agent, Changes, Fold, Source
from turnlog.store.archive import Archive
from turnlog.store.connection import savepoint
from turnlog.store.sources import SAMPLE_SIZE, Fingerprint, SourceState, ensure_source, sample_hash, save_source
from turnlog.store.writer import Batch, Pricer, Saved, SourceRow

CHUNK_SIZE = 4 << 20
"""Bytes read and folded at a time: memory stays the same however large a file is."""


class Reader:
    """Reads sources into one store connection."""

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

    def read(self, agent: Agent, source: Source) -> Saved | None:
        """Bring the store up to date with one source; None when there was nothing new.

        Runs in a savepoint of the caller's transaction: it is read whole or not at all. Raises OSError when the file
        cannot be read.
        """
        with FileIO(source.path) as file, savepoint(self._connection):
            now = int(time.time() * 1000)
            state = ensure_source(self._connection, source, now)
            status = os.fstat(file.fileno())
            fingerprint = Fingerprint.of(status)
            start = self._where_to_go_on(file, source, state, fingerprint, now)
            saved = None
            lines = 0
            if start is not None:
                try:
                    saved, lines = self._read_from(start, file, agent, source, state)
                    self._archive.flush()
                except BaseException:
                    self._archive.discard()
                    raise
                self._archive.settle(state.key, state.generation, state.archived, status.st_mode, status.st_mtime_ns)
                state.head_hash, state.tail_hash = _samples(file, state.archived)
            state.fingerprint, state.problem = fingerprint, None
            save_source(self._connection, state, lines=lines, now=now)
            return saved

    def _read_from(
        self, start: int, file: FileIO, agent: Agent, source: Source, state: SourceState
    ) -> tuple[Saved, int]:
        """What is new goes through the fold; also how many records it was."""
        if start == 0:
            state.parser_version = agent.parser_version
        fold = agent.fold(source, state.state if start else None)
        row = SourceRow(state.key, agent.name, source.kind, state.generation, source.session_id)
        batch = Batch(self._connection, row, self._price, self._price_version, self._worker)
        if source.appendable:
            lines = self._read_lines(file, fold, batch, state)
        else:
            lines = self._read_whole(file, fold, batch, state)
        state.state = fold.state()
        return batch.close(), lines

    def note_problem(self, source: Source, problem: str) -> None:
        """Keep why a source could not be read."""
        now = int(time.time() * 1000)
        state = ensure_source(self._connection, source, now)
        state.problem = problem
        save_source(self._connection, state, lines=0, now=now)

    # -- is it the file we know?

    def _where_to_go_on(
        self, file: FileIO, source: Source, state: SourceState, fingerprint: Fingerprint, now: int
    ) -> int | None:
        """The offset to read from (0 after opening a new generation), or None when nothing is new."""
        if state.archived == 0:
            return 0 if fingerprint.size else None
        if fingerprint.size == state.archived and self._same_bytes(file, state):
            return None
        if source.appendable and fingerprint.size > state.archived and self._grew(file, state):
            return state.cursor
        shared = self._shared_prefix(file, state)
        state.generation += 1
        state.archived, state.cursor, state.state = shared, 0, None
        self._archive.begin(state.key, state.generation, shared, now)
        return 0

    def _grew(self, file: FileIO, state: SourceState) -> bool:
        """Whether what was archived is still there, judged by its first and its last bytes."""
        return _samples(file, state.archived) == (state.head_hash, state.tail_hash)

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

    def _read_lines(self, file: FileIO, fold: Fold, batch: Batch, state: SourceState) -> int:
        lines = 0
        for offset, data in self._iter_records(file, state):
            changes = fold.feed(data, offset)
            batch.save(changes)
            state.cursor = offset + len(data)
            lines += _record_count(changes)
        return lines

    def _iter_records(self, file: FileIO, state: SourceState) -> Iterator[tuple[int, bytes]]:
        """Whole lines from the cursor on, in pieces; all bytes up to the end go into the archive, the torn tail too."""
        offset = self._behind_newline(file, state)
        pending = b""
        while piece := os.pread(file.fileno(), CHUNK_SIZE, offset + len(pending)):
            self._keep(state, offset + len(pending), piece)
            self._on_bytes(len(piece))
            data = pending + piece if pending else piece
            cut = data.rfind(b"\n") + 1
            if cut:
                yield offset, data[:cut] if cut < len(data) else data
                offset += cut
            pending = data[cut:]
        if pending and _is_complete(pending):
            yield offset, pending

    def _behind_newline(self, file: FileIO, state: SourceState) -> int:
        """The cursor, past the newline of a last line that the pass before took without it."""
        offset = state.cursor
        if offset and os.pread(file.fileno(), 1, offset - 1) != b"\n" and os.pread(file.fileno(), 1, offset) == b"\n":
            self._keep(state, offset, b"\n")
            state.cursor = offset = offset + 1
        return offset

    def _read_whole(self, file: FileIO, fold: Fold, batch: Batch, state: SourceState) -> int:
        pieces: list[bytes] = []
        offset = 0
        while piece := os.pread(file.fileno(), CHUNK_SIZE, offset):
            self._keep(state, offset, piece)
            self._on_bytes(len(piece))
            pieces.append(piece)
            offset += len(piece)
        changes = fold.feed(b"".join(pieces), 0)
        batch.save(changes)
        state.cursor = offset
        return _record_count(changes)

    def _keep(self, state: SourceState, offset: int, piece: bytes) -> None:
        """Archive what of `piece` is not archived yet."""
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


def _record_count(changes: Changes) -> int:
    return sum(msgspec.structs.astuple(changes.counts))


def _is_complete(line: bytes) -> bool:
    """Whether a last line without a newline is a whole record already (a torn object never parses)."""
    try:
        json.loads(line.strip(b"\0 \r\n\t"))
    except (ValueError, RecursionError):
        return False
    return line.lstrip()[:1] in (b"{", b"[")
