"""Reading sources: what is new since the cursor goes through the fold into the archive and the store.

A source is read completely or not at all. A file that only grew is read from where the last pass ended; one that was
rewritten becomes a new generation and is folded from its start (messages merge by id, so nothing doubles). Rows of a
database are read by their agent; their versions are kept as lines of a log that only the archive has (`read_rows`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import NamedTuple

import msgspec

from turnlog.agents.base import Agent, RowAgent, Source, SourceKind, reads_rows
from turnlog.errors import DamagedError, NotFoundError, SourceError, StoreError
from turnlog.store.archive import Archive
from turnlog.store.connection import REFUSED_VALUE_ERRORS, Connection, DatabaseError, write_transaction
from turnlog.store.external_content import make_whole
from turnlog.store.sources import (
    Fingerprint,
    SourceState,
    is_source_key,
    known_roots,
    known_versions,
    load_source,
    next_source_key,
    save_source,
)
from turnlog.store.writing.batch import Batch
from turnlog.store.writing.prepared import Pricer
from turnlog.store.writing.transaction import SavedChanges, SourceRow
from turnlog.sync.folding import FoldedSource, FoldingFailed, FoldingProcesses
from turnlog.sync.log_file import LogFile
from turnlog.sync.summary import SourceProblem


class GroupResult(msgspec.Struct, kw_only=True):
    """The outcome of reading a group of sources in one transaction."""

    saved: SavedChanges = msgspec.field(default_factory=SavedChanges)
    changed: int = 0
    """Number of sources with new content."""
    problems: list[SourceProblem] = msgspec.field(default_factory=list[SourceProblem])
    forgotten: set[str] = msgspec.field(default_factory=set[str])
    """Paths of sources of which nothing is stored, because the user has forgotten their sessions."""


class ReadAhead(NamedTuple):
    """What a large import does before the writer gets to a source."""

    keys: Mapping[str, int] = {}
    """Path -> key of the sources that no pass has read: what other processes prepare contains it."""
    folding: FoldingProcesses | None = None
    """The processes that fold some of them."""

    def folded(self, path: str) -> FoldedSource | None:
        """The source at this path, if another process folds it; only once."""
        return None if self.folding is None else self.folding.take(path)


class SourceReader:
    """Reads sources into one store connection, which must be one that does not check foreign keys."""

    def __init__(
        self,
        connection: Connection,
        price: Pricer,
        price_version: str,
        on_bytes: Callable[[int], None] = lambda count: None,
        worker: Executor | None = None,
    ) -> None:
        self._connection = connection
        self.ahead = ReadAhead()
        """What other processes prepare of the sources that come next."""
        self._early: set[str] = set()
        self._worker = worker
        self._archive = Archive(connection, worker)
        self._price = price
        self._price_version = price_version
        self._on_bytes = on_bytes

    def read(self, group: Sequence[tuple[Agent, Source]]) -> GroupResult:
        """Bring the store up to date with some sources, in one transaction.

        A source that cannot be opened becomes a problem in the result; the others are read. When one fails while it is
        read, the transaction is rolled back and every source is read in its own transaction.
        """
        try:
            with write_transaction(self._connection):
                return self._read_together(group)
        except Exception as error:
            # The store failed and not a source: reading them one by one would fail as well.
            if not is_of_one_source(error):
                raise
            # The transaction was rolled back, so frames that still wait for the worker must not be stored.
            self._archive.discard()
            if len(group) == 1 and not isinstance(error, FoldingFailed):
                return self._with_problem(group[0][1], error)
        # Now without what other processes have folded.
        for _, source in group:
            if (folded := self.ahead.folded(source.path)) is not None:
                folded.skip()
        result = GroupResult()
        for item in group:
            _add(result, self.read([item]))
        return result

    def read_early(self, group: Sequence[tuple[Agent, Source]]) -> GroupResult:
        """Read sources before their turn, without other processes, which give what they fold in order.

        What cannot be read now is left to its turn.
        """
        try:
            with write_transaction(self._connection):
                result = self._read_together(group, take_folded=False)
        except Exception as error:  # Whatever is wrong with a source becomes a problem in its turn.
            if not is_of_one_source(error):
                raise
            self._archive.discard()
            return GroupResult()
        self._early |= {source.path for _, source in group}
        return result

    def _read_together(self, group: Sequence[tuple[Agent, Source]], *, take_folded: bool = True) -> GroupResult:
        batch = Batch(self._connection, self._price, self._price_version, self._worker, self._archive)
        result = GroupResult()
        now = int(time.time() * 1000)
        for agent, source in group:
            if reads_rows(agent, source):
                self._read_rows(agent, source, batch, result, now)
                continue
            folded = self.ahead.folded(source.path) if take_folded else None
            # Somebody opened its session, so it was read before its turn: what a process folded of it is outdated.
            if folded is not None and source.path in self._early:
                folded.skip()
            elif folded is not None:
                result.changed += self._read_folded(folded, agent, source, batch, now)
                continue
            try:
                file = LogFile(source.path, self._load(source), self._archive, self._on_bytes)
            except FileNotFoundError:
                continue  # deleted since it was found: the next pass marks it as vanished
            except OSError as error:
                result.problems.append(self._note_problem(source, error, now))
                continue
            with file:
                result.changed += self._read_source(file, agent, source, batch, result.forgotten, now)
        self._archive.flush()
        result.saved = batch.close()
        return result

    def _read_rows(self, agent: Agent, source: Source, batch: Batch, result: GroupResult, now: int) -> None:
        """Bring the store up to date with rows, which the agent reads itself."""
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
        self, file: LogFile, agent: Agent, source: Source, batch: Batch, forgotten: set[str], now: int
    ) -> bool:
        """Bring the store up to date with one open file; returns whether it had new content."""
        state, status = file.state, file.status()
        fingerprint = Fingerprint.of(status)
        row = SourceRow(state.key, agent.name, source.path, state.generation, source.session_id, source.kind)
        # Its path names the session: nothing needs to be read to know that nothing may be kept.
        if not state.archived and batch.is_forgotten(row):
            forgotten.add(source.path)
            self._discard(source, state, fingerprint, now)
            return False
        start = file.resume_offset(fingerprint, agent.parser_version, now, appendable=source.appendable)
        if start is not None:
            row = msgspec.structs.replace(row, generation=state.generation)
            if start == 0:
                state.cursor, state.lines, state.state, state.parser_version = 0, 0, None, agent.parser_version
                batch.start_over(row, is_log=source.appendable)
            self._fold_new_lines(file, agent, source, row, batch)
            # Here only the records name the forgotten session, so the bytes were archived before that was known.
            if start == state.generation == 0 and batch.is_forgotten(row):
                forgotten.add(source.path)
                batch.forget_tail(row, 0)
                self._discard(source, state, fingerprint, now)
                return False
            state.head_hash, state.tail_hash = file.samples(state.archived)
        state.fingerprint, state.problem = fingerprint, None
        mode, mtime_ns = status.st_mode, status.st_mtime_ns
        self._archive.settle(state.key, state.generation, state.archived, mode, mtime_ns, now)
        if start is not None and self._names_forgotten_session(source, state, batch):
            self._discard(source, state, fingerprint, now)
        else:
            save_source(self._connection, source, state, now)
        return start is not None

    def _read_folded(self, folded: FoldedSource, agent: Agent, source: Source, batch: Batch, now: int) -> bool:
        """Write what another process has read of a source; returns whether there was anything."""
        reason = ""
        if self._load(source).key != folded.key:
            reason = "another process has read the source, or has taken its key"
        elif batch.is_any_forgotten:
            reason = "a session was forgotten since the import began: what was folded may be of it"
        if reason:
            folded.skip()
            raise FoldingFailed(reason)
        row = SourceRow(folded.key, agent.name, source.path, 0, source.session_id, source.kind)
        batch.start_over(row, is_log=source.appendable)
        for feed in folded.feeds():
            self._on_bytes(feed.size)
            self._archive.store(folded.key, 0, feed.frames)
            batch.save(row, feed.changes, prepared=feed.messages)
            # Or the next feed would be received while this one is still in memory.
            del feed
        end = folded.end
        assert end is not None
        state = end.state
        self._archive.store(folded.key, 0, end.frames)
        if end.torn_line is not None:
            batch.note_tail(row, state.cursor, state.archived - state.cursor, end.torn_line)
        self._archive.settle(state.key, 0, state.archived, end.mode, state.fingerprint.mtime_ns, now)
        save_source(self._connection, source, state, now)
        return state.fingerprint.size > 0

    def _fold_new_lines(self, file: LogFile, agent: Agent, source: Source, row: SourceRow, batch: Batch) -> None:
        """Fold everything after the cursor."""
        state = file.state
        fold = agent.fold(source, state.state)
        # The torn line that the last sync reported may be complete by now.
        batch.forget_tail(row, state.cursor)
        for offset, data in (file.iter_lines if source.appendable else file.whole)():
            changes = fold.feed(data, offset)
            batch.save(row, changes, data, offset)
            state.cursor = offset + len(data)
            state.lines += changes.counts.total
            # Or the next feed would be read while this one, which may be a line of any size, is still in memory.
            del data, changes
        state.state = fold.state()
        torn = state.archived - state.cursor
        # A spilled output consists of any text and has no records that could be torn.
        if torn and source.kind is not SourceKind.SPILL and file.has_torn_line(state.cursor):
            batch.note_tail(row, state.cursor, torn, file.line_number(state.cursor))

    def _names_forgotten_session(self, source: Source, state: SourceState, batch: Batch) -> bool:
        """Whether a sidecar of many sessions (an index) names a forgotten one, so that its bytes must not stay."""
        if source.kind is not SourceKind.SIDECAR or source.session_id is not None:
            return False
        self._archive.flush()
        return batch.names_forgotten(self._archive.iter_all(state.key))

    def _discard(self, source: Source, state: SourceState, fingerprint: Fingerprint, now: int) -> None:
        """Keep the fingerprint, so that the file is not read again before it changes, and none of its bytes."""
        # Bodies may refer to texts in the archived bytes that are deleted next.
        make_whole(self._connection, (state.key,), ())
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
            key = self.ahead.keys.get(source.path)
            if key is None or is_source_key(self._connection, key):
                key = next_source_key(self._connection)
            state = SourceState(key=key, fingerprint=Fingerprint(0, 0, 0, 0), is_new=True)
        return state

    def _with_problem(self, source: Source, error: Exception) -> GroupResult:
        with write_transaction(self._connection):
            return GroupResult(problems=[self._note_problem(source, error, int(time.time() * 1000))])

    def _note_problem(self, source: Source, error: Exception, now: int) -> SourceProblem:
        """Store why a source could not be read, and return it."""
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
        else:
            reason = error.reason if isinstance(error, SourceError) else f"{type(error).__name__}: {error}"
        # It may quote a record, and half an emoji cannot be stored.
        reason = reason.encode(errors="replace").decode()
        state = self._load(source)
        state.problem = reason
        if state.is_new:
            self._archive.begin(state.key, 0, 0, now)
        save_source(self._connection, source, state, now)
        return SourceProblem(source.path, reason)


def is_of_one_source(error: Exception) -> bool:
    """Whether an error says nothing of other sources: the store itself can be read and written."""
    if isinstance(error, (DamagedError, NotFoundError, *REFUSED_VALUE_ERRORS)):
        return True
    return not isinstance(error, DatabaseError | StoreError)


def _add(total: GroupResult, result: GroupResult) -> None:
    total.changed += result.changed
    total.problems += result.problems
    total.forgotten |= result.forgotten
    total.saved.sessions |= result.saved.sessions
    total.saved.created += result.saved.created
    total.saved.messages += result.saved.messages
    total.saved.diagnostics += result.saved.diagnostics
    total.saved.last_change = max(total.saved.last_change, result.saved.last_change)


_FEED_SIZE = 4 << 20
"""Bytes folded at a time."""

# Rows have no mode of a file: what is restored from them is for the user alone.
_MODE = 0o600


def read_rows(
    connection: Connection,
    archive: Archive,
    agent: Agent,
    source: Source,
    state: SourceState,
    batch: Batch,
    now: int,
) -> int:
    """Bring the store up to date with a source of rows; return how many bytes its log has grown by.

    Raises OSError or SourceError, with nothing written, when the rows cannot be read.
    """
    assert reads_rows(agent, source)
    version = source.version or agent.row_version(source)
    row = SourceRow(state.key, agent.name, source.path, state.generation, source.session_id)
    if not state.archived and batch.is_forgotten(row):
        state.fingerprint, state.problem = Fingerprint(*version), None
        archive.settle(state.key, 0, 0, _MODE, state.fingerprint.mtime_ns, now)
        save_source(connection, source, state, now)
        return 0
    pieces = _unread(archive, agent, source, state, now)
    row = msgspec.structs.replace(row, generation=state.generation)
    if state.cursor == 0:
        state.lines, state.state, state.parser_version = 0, None, agent.parser_version
        batch.start_over(row, is_log=source.appendable)
    fold = agent.fold(source, state.state)
    # Rows have no file of their own: what the archive grew by is what was new.
    known = state.archived
    for data in _feeds(pieces):
        end = state.cursor + len(data)
        # Before they are folded, so that a worker may compress them meanwhile.
        if end > state.archived:
            # With another parser version the first pieces come from the archive itself: append only what it lacks.
            archive.append(state.key, state.generation, state.archived, data[state.archived - end :])
            state.archived = end
        changes = fold.feed(data, state.cursor)
        batch.save(row, changes, data, state.cursor)
        state.cursor = end
        state.lines += changes.counts.total
    state.state = fold.state()
    state.fingerprint, state.problem = Fingerprint(*version), None
    archive.settle(state.key, state.generation, state.archived, _MODE, state.fingerprint.mtime_ns, now)
    save_source(connection, source, state, now)
    return state.archived - known


def _unread(archive: Archive, agent: RowAgent, source: Source, state: SourceState, now: int) -> list[bytes]:
    """The lines to fold: the new ones, or the whole log after a rewrite or with another parser version."""
    log = list(archive.iter_bytes(state.key, state.generation)) if state.archived else []
    update = agent.read_rows(source, log)
    lines = list(update.lines)
    if update.anew and state.archived:
        state.generation += 1
        archive.begin(state.key, state.generation, 0, now)
        state.archived = state.cursor = 0
    # Earlier versions of rows exist in the archived log alone, so all of it is folded again.
    elif state.parser_version != agent.parser_version:
        state.cursor = 0
        return [*log, *lines]
    return lines


def _changed_at(reader: RowAgent, path: Path, root: Path) -> list[Source]:
    """The sources of rows in a changed file; none if it cannot be read, which the next whole pass reports."""
    try:
        return list(reader.sources_at(path, root))
    except Exception:  # One database must not keep the others from being read.
        return []


def find_changed_rows(connection: Connection, agents: Iterable[Agent], paths: Sequence[Path]) -> Iterator[Source]:
    """Sources whose rows in these files have changed, below homes that an earlier pass has seen."""
    readers = [agent for agent in agents if isinstance(agent, RowAgent)]
    homes = [(reader, Path(root)) for reader in readers for root in known_roots(connection, reader.name)]
    found = {
        source.path: source
        for reader, root in homes
        for path in paths
        if path.is_relative_to(root)
        for source in _changed_at(reader, path, root)
    }
    known = known_versions(connection) if found else {}
    for source in found.values():
        if source.version is None or known.get(source.path) != Fingerprint(*source.version):
            yield source


def _feeds(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, cut at line ends into pieces of a few megabytes."""
    pending: list[bytes] = []
    size = 0
    for piece in pieces:
        pending.append(piece)
        size += len(piece)
        if size >= _FEED_SIZE:
            joined = b"".join(pending)
            end = joined.rfind(b"\n") + 1
            # What ends with a line is not copied: one line may have a hundred megabytes.
            pending, size = [joined[end:]], len(joined) - end
            if end:
                yield joined[:end]
            del joined
    if size:
        yield b"".join(pending)
