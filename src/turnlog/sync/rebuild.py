"""Rebuild: fold the whole archive again with today's parsers, without the original files.

One transaction: other processes see the old rows until the new ones are complete. Native sessions, annotations
and tombstones are not touched. A session keeps its folder where the log does not hold it (Gemini CLI's is in a
file beside the logs, which may be gone by now).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from turnlog.agents import agents as registered_agents
from turnlog.agents.base import Agent, Source
from turnlog.errors import DamagedError
from turnlog.pricing import price_nanos, price_version
from turnlog.store.archive import Archive
from turnlog.store.connection import Connection, connect, savepoint, write_transaction
from turnlog.store.external_content import make_whole
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.sources import (
    ArchivedSource,
    archived_sources,
    known_roots,
    known_sessions,
    look_again,
    move_source,
    note_unread,
    save_fold_state,
)
from turnlog.store.sqlite.forget import empty_source
from turnlog.store.unfinished import end_forgetting
from turnlog.store.writing.batch import Batch, rebuilding
from turnlog.store.writing.transaction import SourceRow
from turnlog.sync.log_file import LOOK_AHEAD, feeds_of, is_padding, line_number
from turnlog.sync.reader import is_of_one_source
from turnlog.sync.summary import SourceProblem


class RebuildSummary(msgspec.Struct, kw_only=True):
    """The result of a rebuild."""

    sources: int = 0
    messages: int = 0
    diagnostics: int = 0
    problems: list[SourceProblem] = msgspec.field(default_factory=list[SourceProblem])
    """Archived files that could not be read to their ends. What comes before the damage is read."""
    skipped: list[str] = msgspec.field(default_factory=list[str])
    """Archived files of agents that are not installed. Their bytes stay; their sessions are missing until they are."""
    seconds: float = 0.0


def rebuild(
    store_path: Path,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    agents: Sequence[Agent] | None = None,
) -> RebuildSummary:
    """Fold the whole archive again.

    Args:
        store_path: The database.
        on_progress: Called with the files done and the files in all.
        agents: Who reads the logs; all registered ones by default.
    """
    started = time.monotonic()
    summary = RebuildSummary()
    by_name = {agent.name: agent for agent in (registered_agents() if agents is None else agents)}
    end_forgetting(store_path)
    connection = connect(store_path, checked=False)
    try:
        with write_transaction(connection), rebuilding(connection):
            for agent in by_name.values():
                _move_sources(connection, agent)
            sources = archived_sources(connection)
            for done, archived in enumerate(sources, 1):
                agent = by_name.get(archived.source.agent)
                if agent is None:
                    summary.skipped.append(archived.source.path)
                else:
                    _try(connection, agent, archived, summary)
                on_progress(done, len(sources))
    finally:
        connection.close()
    # Its documents refer to messages that were deleted: the index starts empty.
    with Indexer(store_path, search_path(store_path)) as indexer:
        indexer.reset()
        indexer.catch_up()
    summary.seconds = time.monotonic() - started
    return summary


def _try(connection: Connection, agent: Agent, archived: ArchivedSource, summary: RebuildSummary) -> None:
    """Fold a file; if that is not possible, none of it is written, and the others are read."""
    try:
        with savepoint(connection):
            _fold_again(connection, agent, archived, summary)
    except Exception as error:
        if not is_of_one_source(error):
            raise
        reason = f"{type(error).__name__}: {error}".encode(errors="replace").decode()
        summary.problems.append(SourceProblem(archived.source.path, reason))
        note_unread(connection, archived.key, reason)


def _move_sources(connection: Connection, agent: Agent) -> None:
    """Give sources whose session an older version found by another rule the one of today, as far as they are there."""
    if not agent.tells_sessions_apart:
        return
    known = known_sessions(connection, agent.name)
    roots = [Path(root) for root in known_roots(connection, agent.name)]
    found = [source for source in agent.discover(roots) if source.path in known]
    holders = Counter(known[source.path] for source in found)
    kept = {source.path: known[source.path] for source in found if _is_kept(agent, source, known[source.path], holders)}
    # A log that is gone keeps its session, and no other log gets that one.
    gone = {session for path, session in known.items() if path not in {source.path for source in found}}
    for source in agent.settled(found, kept):
        if source.session_id != known[source.path] and source.session_id not in gone:
            move_source(connection, source.path, source.session_id)


def _is_kept(agent: Agent, source: Source, session: str | None, holders: Counter[str | None]) -> bool:
    """Whether a log keeps its session: it has that one alone, and it is named after the log's own id."""
    (alone,) = agent.settled([source], {})
    return holders[session] == 1 and session is not None and session.startswith(alone.session_id or "")


def _fold_again(connection: Connection, agent: Agent, archived: ArchivedSource, summary: RebuildSummary) -> None:
    """Fold every generation of a file, oldest first: older ones hold records that a rewrite removed.

    A generation of which bytes are damaged is folded up to there.
    """
    source = archived.source
    archive = Archive(connection)
    batch = Batch(connection, price_nanos, price_version(), archive=archive)
    generations = archive.generations(archived.key)
    if not any(generation.size for generation in generations):
        # Empty, or its bytes may not be kept: the next sync reads again what it says about other sessions.
        look_again(connection, archived.key)
        return
    row = SourceRow(archived.key, agent.name, source.path, 0, source.session_id, source.kind)
    for generation in generations:
        fold = agent.fold(source)
        row = msgspec.structs.replace(row, generation=generation.number)
        batch.start_over(row, is_log=source.appendable)
        # Only the newest generation can still have a line that is being written.
        end = archived.cursor if generation is generations[-1] else generation.size
        pieces = archive.iter_whole(archived.key, generation.number)
        lines = 0
        try:
            for offset, data in _lines(pieces, end) if source.appendable else _whole(pieces):
                changes = fold.feed(data, offset)
                batch.save(row, changes, data, offset)
                lines += changes.counts.total
                del data, changes
            tail = archive.read(archived.key, generation.number, end, min(LOOK_AHEAD, generation.size - end))
        except DamagedError as error:
            tail = b""
            summary.problems.append(SourceProblem(source.path, str(error)))
            # The next sync archives the file again, if it is still there.
            if generation is generations[-1]:
                look_again(connection, archived.key, str(error))
        save_fold_state(connection, archived.key, fold.state(), agent.parser_version, lines)
        if not is_padding(tail):
            line = line_number(archive.iter_bytes(archived.key, generation.number), end)
            batch.note_tail(row, end, generation.size - end, line)
    if batch.is_forgotten(row):
        # They were archived before that was known, or a forgetting that was cut off has left them.
        make_whole(connection, (archived.key,), ())
        empty_source(connection, archived.key, int(time.time() * 1000))
    saved = batch.close()
    summary.messages += saved.messages
    summary.diagnostics += saved.diagnostics
    summary.sources += 1


def _lines(pieces: Iterator[bytes], end: int) -> Iterator[tuple[int, bytes]]:
    """The lines that were folded before: up to `end`, which may be the end of a record without its newline."""
    return feeds_of(_up_to(pieces, end), 0)


def _up_to(pieces: Iterator[bytes], end: int) -> Iterator[bytes]:
    for piece in pieces:
        yield piece[:end]
        end -= len(piece)
        if end <= 0:
            return


def _whole(pieces: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    content = b"".join(pieces)
    if content:
        yield 0, content
