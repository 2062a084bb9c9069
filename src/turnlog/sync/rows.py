"""Reading sources that are no files: what the agent says is new goes through the fold into the archive.

The log of such a source is in the archive alone; the agent is shown it to tell what is new. So a pass costs as much as
the session is large, and never more than that session.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from turnlog.agents.base import Agent, Source
from turnlog.agents.row_agent import RowAgent, are_rows
from turnlog.store.archive import Archive
from turnlog.store.sources import Fingerprint, SourceState, known_fingerprints, known_roots, save_source
from turnlog.store.writing.transaction import SourceRow
from turnlog.store.writing.writer import Batch

_FEED_SIZE = 4 << 20
"""Bytes folded at a time."""

_MODE = 0o600


def read_rows(
    connection: sqlite3.Connection,
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
    assert are_rows(agent, source)
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
        batch.start_over(row, is_log=True)
    fold = agent.fold(source, state.state)
    known = state.archived
    for data in _feeds(pieces):
        changes = fold.feed(data, state.cursor)
        end = state.cursor + len(data)
        if end > state.archived:
            archive.append(state.key, state.generation, state.archived, data[state.archived - end :])
            state.archived = end
        batch.save(row, changes, data, state.cursor)
        state.cursor = end
        state.lines += changes.counts.total
    state.state = fold.state()
    state.fingerprint, state.problem = Fingerprint(*version), None
    archive.settle(state.key, state.generation, state.archived, _MODE, state.fingerprint.mtime_ns, now)
    save_source(connection, source, state, now)
    return state.archived - known


def _unread(archive: Archive, agent: RowAgent, source: Source, state: SourceState, now: int) -> list[bytes]:
    """What is to be folded: what is new, and the whole log where it is told anew or by a newer parser."""
    log = list(archive.iter_bytes(state.key, state.generation)) if state.archived else []
    update = agent.read_rows(source, log)
    lines = list(update.lines)
    if update.anew and state.archived:
        state.generation += 1
        archive.begin(state.key, state.generation, 0, now)
        state.archived = state.cursor = 0
    elif state.parser_version != agent.parser_version:
        state.cursor = 0
        return [*log, *lines]
    return lines


def find_changed_rows(
    connection: sqlite3.Connection, agents: Iterable[Agent], paths: Sequence[Path]
) -> Iterator[Source]:
    """What has changed of the rows in these files, of agents' homes that a pass has seen before."""
    readers = [agent for agent in agents if isinstance(agent, RowAgent)]
    homes = [(reader, Path(root)) for reader in readers for root in known_roots(connection, reader.name)]
    found = {
        source.path: source
        for reader, root in homes
        for path in paths
        if path.is_relative_to(root)
        for source in reader.sources_at(path, root)
    }
    known = known_fingerprints(connection) if found else {}
    for source in found.values():
        if source.version is None or known.get(source.path) != Fingerprint(*source.version):
            yield source


def _feeds(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of whole lines, a few megabytes each."""
    pending: list[bytes] = []
    size = 0
    for piece in pieces:
        pending.append(piece)
        size += len(piece)
        if size >= _FEED_SIZE:
            whole, _, rest = b"".join(pending).rpartition(b"\n")
            if whole:
                yield whole + b"\n"
            pending, size = [rest], len(rest)
    if size:
        yield b"".join(pending)
