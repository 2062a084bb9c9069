"""One pass: find every source of every agent, read what is new into the store, let the search index follow.

Newest files come first, so that today's sessions are there at once. A second pass over unchanged files costs a
directory scan and one comparison per file: the modules that read sources are imported when something has changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from turnlog.agents import agents as registered_agents
from turnlog.agents import agents_here, find_sources
from turnlog.agents.base import Agent, Source, reads_rows
from turnlog.agents.files import collect_unreadable_folders, is_nameable, leave_out_unchanged
from turnlog.garbage_collection import garbage_collection_paused
from turnlog.store.connection import Connection, connect, write_transaction
from turnlog.store.keys import count_sessions, own_sessions
from turnlog.store.limited_agent import note_limited_agent
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.sources import (
    Fingerprint,
    is_any_forgotten,
    is_any_known,
    known_paths,
    known_roots,
    known_sessions,
    known_versions,
    load_known,
    mark_vanished,
    next_source_key,
    unreadable_paths,
)
from turnlog.store.unfinished import end_forgetting
from turnlog.sync.spools import drop_old_spools, find_spools
from turnlog.sync.summary import SourceProblem, SyncSummary
from turnlog.sync.wanted import WantedSessions, is_source_of
from turnlog.sync.workers import (
    LARGE_IMPORT,
    ImportWorkers,
    folding_processes,
    import_workers,
    indexing,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from turnlog.sync.reader import GroupResult, ReadAhead, SourceReader


Phase = Literal["find", "read", "index"]

Progress = Callable[[Phase, int, int], None]
"""Called with a phase, how much of it is done, and how much there is (files, bytes, messages)."""

OnSaved = Callable[[Set[str], int], None]
"""Called after a commit with the ids of the sessions that changed, and the last number of the change sequence."""

COMMIT_SIZE = 8 << 20
"""Bytes of logs in one transaction, more only for a single large file: about a tenth of a second of work."""

COMMIT_SOURCES = 100

FIRST_SIZE = 512 << 10
FIRST_SOURCES = 10
"""Bounds of the first transaction: the newest sessions are there while other processes are still starting."""


def sync(
    store_path: Path,
    *,
    roots: Sequence[Path] | None = None,
    agents: Sequence[Agent] | None = None,
    on_progress: Progress = lambda phase, done, total: None,
) -> SyncSummary:
    """Bring the store at `store_path` up to date with the logs: one pass of a `Syncer`."""
    with Syncer(store_path, agents=agents) as syncer:
        return syncer.scan(roots=roots, on_progress=on_progress)


class Syncer:
    """Keeps a store up to date over one connection. Not for two threads at once."""

    def __init__(
        self,
        store_path: Path,
        *,
        agents: Sequence[Agent] | None = None,
        on_saved: OnSaved = lambda sessions, last_change: None,
        own_checkpoints: bool = True,
        wanted: WantedSessions | None = None,
    ) -> None:
        """Open the store, which is made when it is not there.

        Args:
            store_path: The database.
            agents: The agents to look for; all registered ones by default.
            on_saved: Called after every commit that changed sessions.
            own_checkpoints: As in `store.connection.connect`, for both databases.
            wanted: Sessions that a pass reads before all others.
        """
        self._wanted = wanted or WantedSessions()
        self._own_checkpoints = own_checkpoints
        self._on_saved = on_saved
        self._path = store_path
        self._given = None if agents is None else list(agents)
        self._connection = connect(store_path, checked=False, own_checkpoints=own_checkpoints)
        self._indexer: Indexer | None = None

    def __enter__(self) -> Self:
        """The syncer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._indexer is not None:
            self._indexer.close()
        self._connection.close()

    def has_read(self) -> bool:
        """Whether a pass has ever found a source."""
        return is_any_known(self._connection)

    def scan(
        self, *, roots: Sequence[Path] | None = None, on_progress: Progress = lambda phase, done, total: None
    ) -> SyncSummary:
        """One pass over all sources.

        Args:
            roots: Homes to look in instead of each agent's own.
            on_progress: Called in the phases `find` (files), `read` (bytes) and `index` (messages).
        """
        started = time.monotonic()
        summary = SyncSummary()
        end_forgetting(self._path)
        with garbage_collection_paused(), collect_unreadable_folders() as out_of_reach:
            known = known_versions(self._connection)
            looked_for = self._looked_for(roots)
            # Below a root that several agents would read, each says what it would read.
            with leave_out_unchanged(known if roots is None else {}) as unchanged:
                found = list(fingerprinted(self._sources(looked_for, roots)))
        summary.problems += [SourceProblem(folder, reason) for folder, reason in out_of_reach.items()]
        present = unchanged.union(item.source.path for item in found)
        summary.sources = len(present)
        on_progress("find", len(present), len(present))
        changed = [item for item in found if known.get(item.source.path) != item.fingerprint]
        if len(changed) > 1:
            from turnlog.sync.order import newest_first

            changed = [changed[place] for place in newest_first((item.source, item.fingerprint) for item in changed)]
        total = sum(item.fingerprint.size for item in changed)
        if total >= LARGE_IMPORT:
            _warn_of_full_disk(self._path, total)
        with _indexing(self._path, total, on_progress):
            if changed:
                with import_workers(self._connection, self._path, total) as workers, garbage_collection_paused():
                    self._read_all(changed, total, workers, summary, on_progress)
            self._wanted.refuse_all()
            # A pass over other homes leaves the spools alone: it did not look at them.
            if roots is None:
                drop_old_spools(self._connection, self._path)
            summary.vanished = mark_missing(self._connection, known.keys() - present, present, roots, summary.problems)
        note_limited_agent(self._connection, looked_for)
        summary.seconds = time.monotonic() - started
        return summary

    def _read_all(
        self,
        changed: list[FoundSource],
        total: int,
        workers: ImportWorkers,
        summary: SyncSummary,
        on_progress: Progress,
    ) -> None:
        def count(read: int) -> None:
            summary.bytes += read
            on_progress("read", summary.bytes, max(total, summary.bytes))

        sessions: set[str] = set()
        created: list[int] = []
        reader = _reader(self._connection, count, workers.worker)

        def note(result: GroupResult) -> None:
            nonlocal sessions, created
            workers.note_commit()
            _add_up(summary, result)
            sessions |= result.saved.sessions
            created += result.saved.created
            if result.saved.sessions:
                self._on_saved(result.saved.sessions, result.saved.last_change)

        def read(group: list[FoundSource]) -> None:
            self._read_wanted(changed, reader, note)
            note(reader.read([(item.agent, item.source) for item in group]))

        first, *others = _groups(changed)
        # The newest sessions are there before other processes have started.
        read(first)
        unread = [item.source for item in changed[len(first) :]]
        with self._wanted.among(unread), self._read_ahead(changed[len(first) :]) as reader.ahead:
            for group in others:
                read(group)
        summary.sessions = len(own_sessions(self._connection, sessions))
        # A subagent may be read in an earlier transaction than the session that it belongs to.
        summary.new_sessions, summary.new_subagents = count_sessions(self._connection, created)

    def _read_wanted(
        self, changed: list[FoundSource], reader: SourceReader, note: Callable[[GroupResult], None]
    ) -> None:
        """Read the sessions first that somebody waits for."""
        while (session_id := self._wanted.take()) is not None:
            found = [(item.agent, item.source) for item in changed if is_source_of(item.source, session_id)]
            if found:
                note(reader.read_early(found))
            self._wanted.answer(session_id, found=bool(found))

    @contextmanager
    def _read_ahead(self, changed: list[FoundSource]) -> Generator[ReadAhead]:
        """The processes that fold new sources, if there is much to fold."""
        from turnlog.sync.reader import ReadAhead

        # Nearly every pass is small: it imports and asks nothing for this.
        if not folding_processes(sum(item.fingerprint.size for item in changed)):
            yield ReadAhead()
            return
        from turnlog.sync.folding import FoldingProcesses, FoldingTask, FoldRequest, is_foldable

        known = known_paths(self._connection)
        key = next_source_key(self._connection)
        keys = {
            item.source.path: key + number
            for number, item in enumerate(each for each in changed if each.source.path not in known)
        }
        foldable = {agent.name for agent in {item.agent for item in changed} if is_foldable(agent)}
        tasks = [
            FoldingTask(FoldRequest(item.source, keys[item.source.path]), item.fingerprint.size)
            for item in changed
            if item.source.path in keys and item.agent.name in foldable and not reads_rows(item.agent, item.source)
        ]
        count = folding_processes(sum(task.size for task in tasks))
        # A forgotten session must be recognised before anything of it is read.
        if not count or is_any_forgotten(self._connection):
            yield ReadAhead()
            return
        with FoldingProcesses(count, tasks) as folding:
            yield ReadAhead(keys, folding)

    def _settled(self, agent: Agent, source: Source) -> Source:
        """A source that no pass has read, with its session, which a log of another home may have, too."""
        if not agent.tells_sessions_apart:
            return source
        known = known_sessions(self._connection, agent.name)
        if source.session_id not in known.values():
            return source
        roots = [Path(root) for root in known_roots(self._connection, agent.name)]
        found = {each.path: each for each in (source, *agent.discover(roots))}
        return next(each for each in agent.settled(list(found.values()), known) if each.path == source.path)

    def warm_up(self) -> None:
        """Import the modules that reading needs, so that the first new line does not wait for them."""
        import_module("turnlog.store.search.batch")
        import_module("turnlog.model.titles")
        import_module("turnlog.plain_text")
        _reader(self._connection)
        for agent in self._agents:
            # An agent that fails here fails again in the pass, which reports it.
            with suppress(Exception):
                if agent.roots():
                    agent.fold(Source(agent=agent.name, path="", root=""))

    def _sources(self, looked_for: Sequence[Agent], roots: Sequence[Path] | None) -> Iterator[tuple[Agent, Source]]:
        """The sources of these agents, and without `roots` also the spools of hook events next to the store."""
        together: dict[str, tuple[Agent, list[Source]]] = {}
        for agent, source in find_sources(looked_for, roots):
            if agent.tells_sessions_apart:
                together.setdefault(agent.name, (agent, []))[1].append(source)
            else:
                yield agent, source
        for agent, found in together.values():
            known = known_sessions(self._connection, agent.name)
            yield from ((agent, source) for source in agent.settled(found, known))
        if roots is None:
            yield from find_spools(self._path, self._given)

    def _looked_for(self, roots: Sequence[Path] | None) -> Sequence[Agent]:
        """The agents that may have something there; without `roots`, on this machine."""
        if self._given is not None:
            return self._given
        return agents_here() if roots is None else registered_agents()

    @cached_property
    def _agents(self) -> Sequence[Agent]:
        """All agents: what has changed may be of any."""
        return registered_agents() if self._given is None else self._given

    def unknown(self, paths: Iterable[Path]) -> set[Path]:
        """Those of these files that no sync has read."""
        return {path for path in paths if is_nameable(str(path)) and load_known(self._connection, str(path)) is None}

    def read(self, paths: Iterable[Path], new: Iterable[tuple[Agent, Source]] = ()) -> SyncSummary:
        """Read what is new in `paths` and in `new` sources, and index it: milliseconds, when changed files are known.

        Args:
            paths: Files that an earlier pass has read; files that hold sessions as rows (a database, its write-ahead
                log, a file of one message) lead to the rows that changed.
            new: Sources that no pass has read.
        """
        from turnlog.sync.reader import find_changed_rows

        started = time.monotonic()
        by_name = {agent.name: agent for agent in self._agents}
        paths = [path for path in paths if is_nameable(str(path))]
        known = [source for path in paths if (source := load_known(self._connection, str(path))) is not None]
        sources = {
            source.path: source for source in (*known, *find_changed_rows(self._connection, self._agents, paths))
        }
        found = [(by_name[source.agent], source) for source in sources.values() if source.agent in by_name]
        found += [(agent, self._settled(agent, source)) for agent, source in new if source.path not in sources]
        result = _reader(self._connection).read(found)
        # Viewers need not wait until the change is searchable.
        if result.saved.sessions:
            self._on_saved(result.saved.sessions, result.saved.last_change)
        if self._indexer is None:
            self._indexer = Indexer(self._path, search_path(self._path), own_checkpoints=self._own_checkpoints)
        self._indexer.catch_up()
        summary = SyncSummary(sources=len(found), sessions=len(own_sessions(self._connection, result.saved.sessions)))
        _add_up(summary, result)
        summary.new_sessions, summary.new_subagents = count_sessions(self._connection, result.saved.created)
        summary.seconds = time.monotonic() - started
        return summary


class FoundSource(NamedTuple):
    """A source, its agent, and its fingerprint now."""

    agent: Agent
    source: Source
    fingerprint: Fingerprint


_UNREADABLE = Fingerprint(0, 0, 0, 0)
"""The fingerprint of a file whose `stat` fails: opening the file will report why."""


def fingerprinted(sources: Iterable[tuple[Agent, Source]]) -> Iterator[FoundSource]:
    """The sources that still exist, with their fingerprints."""
    for agent, source in sources:
        if source.version is not None:
            yield FoundSource(agent, source, Fingerprint(*source.version))
            continue
        try:
            yield FoundSource(agent, source, Fingerprint.of(os.stat(source.path)))  # noqa: PTH116  # a path object costs more than the call
        except FileNotFoundError:
            continue  # deleted since it was listed: the next pass marks it as vanished
        except OSError:
            yield FoundSource(agent, source, _UNREADABLE)


def mark_missing(
    connection: Connection,
    missing: Set[str],
    present: Set[str],
    roots: Sequence[Path] | None,
    problems: Iterable[SourceProblem],
) -> int:
    """Mark known files that no longer exist as vanished; returns how many were marked.

    `missing` are those that a pass did not find, but not those that could not be read, and `present` what it found.

    Files outside the roots of this pass and below folders that could not be read are left alone. So are rows of a
    database that this pass did not open: it was imported from elsewhere.
    """
    missing = {*missing, *(path for path in unreadable_paths(connection) if path not in present)}
    # Nearly every pass ends here.
    if not missing:
        return 0
    looked_into = {_database(path) for path in present}
    unreadable = tuple(f"{problem.path}{end}" for problem in problems for end in ("#", os.sep))
    folders = None if roots is None else tuple(f"{root.absolute()}{os.sep}" for root in roots)
    gone = [
        path
        for path in sorted(missing)
        if (folders is None or path.startswith(folders))
        # Files below a folder that cannot be listed may still exist.
        and not path.startswith(unreadable)
        # It may exist although discovery left it out.
        and not os.path.lexists(path)
        and (_database(path) in looked_into or not Path(_database(path)).is_file())
    ]
    if gone:
        with write_transaction(connection):
            mark_vanished(connection, gone, int(time.time() * 1000))
    return len(gone)


def _database(path: str) -> str:
    """The file that holds a source: the database of rows (`<database>#<key>`), else the path itself."""
    return path.rpartition("#")[0] or path


def _warn_of_full_disk(store_path: Path, total: int) -> None:
    """Say before a long import that it will probably not end. What is written until then stays."""
    from turnlog.store.disk import missing_room

    missing = missing_room(store_path, total)
    if missing:
        import logging

        logging.getLogger(__name__).warning(
            "turnlog: the disk of %s will probably be full: about %.1f GB are missing", store_path, missing / 1e9
        )


def _add_up(summary: SyncSummary, result: GroupResult) -> None:
    summary.changed += result.changed
    summary.problems += result.problems
    summary.messages += result.saved.messages
    summary.diagnostics += result.saved.diagnostics


def _indexing(store_path: Path, total: int, on_progress: Progress) -> AbstractContextManager[None]:
    """Index what the pass commits, also when it finds nothing new: the index may be missing or behind."""
    most = 0

    def note(pending: int) -> None:
        nonlocal most
        most = max(most, pending)
        on_progress("index", most - pending, most)

    return indexing(store_path, total, note)


def _reader(
    connection: Connection,
    on_bytes: Callable[[int], None] = lambda count: None,
    worker: Executor | None = None,
) -> SourceReader:
    from turnlog.pricing import price_nanos, price_version
    from turnlog.sync.reader import SourceReader

    return SourceReader(connection, price_nanos, price_version(), on_bytes, worker)


def _groups(changed: list[FoundSource]) -> Iterator[list[FoundSource]]:
    """Sources that are committed together: many small ones or one large one.

    Every commit rewrites the hot pages of all indexes; one commit per small file would cost more than reading it.
    """
    group: list[FoundSource] = []
    size = 0
    most_size, most_sources = min(FIRST_SIZE, COMMIT_SIZE), min(FIRST_SOURCES, COMMIT_SOURCES)
    for item in changed:
        group.append(item)
        size += item.fingerprint.size
        if size >= most_size or len(group) >= most_sources:
            yield group
            group, size = [], 0
            most_size, most_sources = COMMIT_SIZE, COMMIT_SOURCES
    if group:
        yield group
