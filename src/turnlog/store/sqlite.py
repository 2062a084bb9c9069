"""The store in one SQLite file: connections, snapshots, and where each question is answered.

The answers are made in `turnlog.store.queries`. Each of its modules is imported when it is first asked, so that a
usage report does not wait for what decodes messages.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Container, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from turnlog.errors import SchemaTooNewError, StoreError
from turnlog.store.base import (
    ALL_USAGE,
    EVERY_DIAGNOSTIC,
    EVERY_FILE,
    EVERY_RUN,
    EVERY_SESSION,
    EVERY_TOOL_CALL,
    AgentSummary,
    Annotations,
    AnnotationsChange,
    BlobContent,
    ChangeEntry,
    DiagnosticFilter,
    FileFilter,
    FileHistory,
    MessagePlace,
    ModelSummary,
    OutlineEntry,
    Page,
    Passage,
    PlacedMessage,
    ProjectSummary,
    RawRecord,
    RawSource,
    ReasoningVolume,
    RunFilter,
    SessionChanges,
    SessionFilter,
    SessionLink,
    SessionPreview,
    SessionSort,
    SourceInfo,
    StoredDiagnostic,
    StoreStatus,
    ToolCall,
    ToolCallFilter,
    ToolUsage,
    TouchedFile,
    UsageBy,
    UsageFilter,
    UsageReport,
)
from turnlog.store.connection import connect, write_transaction

if TYPE_CHECKING:
    from turnlog.model import Fate, HistoryEvent, Membership, Message, Ownership, Session, ToolKind
    from turnlog.store.queries.passage import ArrivalCache
    from turnlog.store.queries.states import TurnCache
    from turnlog.store.runs import Run
    from turnlog.store.states import TurnFacts
    from turnlog.store.window import Window


class SqliteStore:
    """A `Store` in an SQLite file. Any number of threads may ask at once; each has a connection of its own."""

    def __init__(self, path: Path) -> None:
        """Open the file, made or brought up to the newest schema where that is needed.

        Raises SchemaTooNewError for a store of a newer turnlog, StoreError for a file that is none.
        """
        self.path = path
        self._lock = threading.Lock()
        self._connections: dict[threading.Thread, sqlite3.Connection] = {}
        self._closed = False
        self._turns: TurnCache | None = None
        self._arrivals: ArrivalCache | None = None
        try:
            self._connection()
        except SchemaTooNewError:
            raise
        except StoreError:
            # It is not there, or of an older schema: opening it for writing makes it, brings it up, or says why not.
            connect(path).close()

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()

    def close(self) -> None:
        """Close every thread's connection."""
        with self._lock:
            self._closed = True
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()

    # -- sessions

    def sessions(
        self,
        filter: SessionFilter = EVERY_SESSION,
        *,
        sort: SessionSort = "updated",
        limit: int = 50,
        cursor: str | None = None,
        count: bool = False,
    ) -> Page[Session]:
        """A page of sessions."""
        from turnlog.store.queries.sessions import load_sessions

        with self._snapshot() as connection:
            return load_sessions(connection, filter, sort, limit, cursor, count)

    def session(self, session_id: str) -> Session:
        """One session."""
        from turnlog.store.queries.sessions import load_session

        with self._snapshot() as connection:
            return load_session(connection, session_id)

    def find_session(self, agent: str, external_id: str, ownership: Ownership | None = None) -> Session | None:
        """The session an agent knows by this id."""
        from turnlog.store.queries.sessions import find_session

        with self._snapshot() as connection:
            return find_session(connection, agent, external_id, ownership)

    def children(self, session_id: str) -> list[Session]:
        """Sessions that came out of this one."""
        from turnlog.store.queries.sessions import load_children

        with self._snapshot() as connection:
            return load_children(connection, session_id)

    def previews(self, session_ids: Iterable[str]) -> Mapping[str, SessionPreview]:
        """What lists show of these sessions besides themselves."""
        from turnlog.store.queries.previews import load_previews

        with self._snapshot() as connection:
            return load_previews(connection, session_ids)

    def turn_facts(self, session_ids: Iterable[str]) -> Mapping[str, TurnFacts]:
        """How the last turn of these sessions stands."""
        if self._turns is None:
            from turnlog.store.queries.states import TurnCache

            self._turns = TurnCache()
        with self._snapshot() as connection:
            return self._turns.load(connection, session_ids)

    def newest_runs(self, session_ids: Iterable[str]) -> Mapping[str, Run]:
        """The newest run of each of these sessions."""
        from turnlog.store.runs import load_newest_runs

        with self._snapshot() as connection:
            return load_newest_runs(connection, session_ids)

    def relationships(self, session_id: str) -> list[SessionLink]:
        """Relationships in which the session is child or parent."""
        from turnlog.store.queries.sessions import load_relationships

        with self._snapshot() as connection:
            return load_relationships(connection, session_id)

    # -- messages

    def messages(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int | None = None,
        fates: Iterable[Fate] | None = None,
        structured: Container[ToolKind] = (),
        resolve_blobs: bool = True,
    ) -> list[PlacedMessage]:
        """Messages of a session in order."""
        from turnlog.store.queries.messages import Span, load_messages

        span = Span(after, before, around, limit)
        with self._snapshot() as connection:
            return load_messages(
                connection, session_id, span, fates, structured=structured, resolve_blobs=resolve_blobs
            )

    def places(
        self, session_id: str, *, fates: Iterable[Fate], since: int | None = None, limit: int = 1000
    ) -> list[MessagePlace]:
        """Messages of a session without their contents."""
        from turnlog.store.queries.pages import load_places

        with self._snapshot() as connection:
            return load_places(connection, session_id, fates, since, limit)

    def bodies(
        self, session_id: str, first: int, last: int, *, fates: Iterable[Fate], resolve_blobs: bool = True
    ) -> dict[str, bytes]:
        """Canonical JSON of messages."""
        from turnlog.store.queries.pages import load_bodies

        with self._snapshot() as connection:
            return load_bodies(connection, session_id, (first, last), fates, resolve_blobs=resolve_blobs)

    def child_sessions(self, session_id: str) -> Mapping[str, str]:
        """The subagent sessions that calls started."""
        from turnlog.store.queries.pages import load_child_sessions

        with self._snapshot() as connection:
            return load_child_sessions(connection, session_id)

    def history(self, session_id: str, *, resolve_blobs: bool = True) -> list[HistoryEvent]:
        """All that happened, in causal order."""
        from turnlog.store.queries.history import load_history

        with self._snapshot() as connection:
            return load_history(connection, session_id, resolve_blobs=resolve_blobs)

    def passage(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int = 40,
    ) -> Passage:
        """A passage of the history, with what it takes to understand it."""
        from turnlog.store.queries.messages import Span
        from turnlog.store.queries.passage import ArrivalCache, load_passage

        if self._arrivals is None:
            self._arrivals = ArrivalCache()
        with self._snapshot() as connection:
            arrivals = self._arrivals.load(connection, session_id)
            return load_passage(connection, session_id, Span(after, before, around, limit), arrivals)

    def events(self, session_id: str, *, position: int | None = None, type: str | None = None) -> list[HistoryEvent]:
        """What happened besides messages and results of known calls."""
        from turnlog.store.queries.history import load_events

        with self._snapshot() as connection:
            return load_events(connection, session_id, position, type)

    def window(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int = 40,
    ) -> Window:
        """A piece of a session for a browser."""
        from turnlog.store.queries.messages import Span
        from turnlog.store.queries.window import load_window

        with self._snapshot() as connection:
            return load_window(connection, session_id, Span(after, before, around, limit))

    def message(
        self, message_id: str, *, session_id: str | None = None, structured: bool = False, resolve_blobs: bool = True
    ) -> Message:
        """One message."""
        from turnlog.store.queries.messages import load_message

        with self._snapshot() as connection:
            return load_message(connection, message_id, session_id, structured=structured, resolve_blobs=resolve_blobs)

    def memberships(self, message_id: str) -> list[Membership]:
        """The place of a message in each session that holds it."""
        from turnlog.store.queries.messages import load_memberships

        with self._snapshot() as connection:
            return load_memberships(connection, message_id)

    def records(self, message_id: str, *, session_id: str | None = None) -> list[RawRecord]:
        """The records that a message was made from."""
        from turnlog.store.queries.messages import load_records

        with self._snapshot() as connection:
            return load_records(connection, message_id, session_id)

    def outline(self, session_id: str) -> list[OutlineEntry]:
        """Prompts, compactions and rewinds."""
        from turnlog.store.queries.history import load_outline

        with self._snapshot() as connection:
            return load_outline(connection, session_id)

    # -- over many sessions

    def tool_calls(
        self, filter: ToolCallFilter = EVERY_TOOL_CALL, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ToolCall]:
        """A page of tool calls."""
        from turnlog.store.queries.tool_calls import load_tool_calls

        with self._snapshot() as connection:
            return load_tool_calls(connection, filter, limit, cursor)

    def tool_usage(self, filter: ToolCallFilter = EVERY_TOOL_CALL) -> list[ToolUsage]:
        """How often each tool was called, and how that ended."""
        from turnlog.store.queries.tool_calls import load_tool_usage

        with self._snapshot() as connection:
            return load_tool_usage(connection, filter)

    def reasoning(self, session_id: str | None = None) -> ReasoningVolume:
        """How much was thought."""
        from turnlog.store.queries.tool_calls import load_reasoning

        with self._snapshot() as connection:
            return load_reasoning(connection, session_id)

    def file_history(
        self, path: str, *, changed: bool = False, limit: int = 50, cursor: str | None = None
    ) -> FileHistory:
        """What was done to a file."""
        from turnlog.store.queries.files import load_file_history

        with self._snapshot() as connection:
            return load_file_history(connection, path, changed, limit, cursor)

    def touched_files(self, filter: FileFilter = EVERY_FILE, *, limit: int = 200) -> list[TouchedFile]:
        """Files that calls read or changed."""
        from turnlog.store.queries.files import load_touched_files

        with self._snapshot() as connection:
            return load_touched_files(connection, filter, limit)

    def usage(self, by: UsageBy = "day", filter: UsageFilter = ALL_USAGE) -> UsageReport:
        """Tokens and cost."""
        from turnlog.store.queries.usage import load_usage

        with self._snapshot() as connection:
            return load_usage(connection, by, filter)

    def projects(self) -> list[ProjectSummary]:
        """All projects."""
        from turnlog.store.queries.sources import load_projects

        with self._snapshot() as connection:
            return load_projects(connection)

    def models(self) -> list[ModelSummary]:
        """All models."""
        from turnlog.store.queries.sources import load_models

        with self._snapshot() as connection:
            return load_models(connection)

    def agents(self) -> list[AgentSummary]:
        """All agents."""
        from turnlog.store.queries.sources import load_agents

        with self._snapshot() as connection:
            return load_agents(connection)

    # -- what was read

    def sources(self, session_id: str | None = None) -> list[SourceInfo]:
        """Files that were read."""
        from turnlog.store.queries.sources import load_sources

        with self._snapshot() as connection:
            return load_sources(connection, session_id)

    def diagnostics(
        self, filter: DiagnosticFilter = EVERY_DIAGNOSTIC, *, limit: int = 100, cursor: str | None = None
    ) -> Page[StoredDiagnostic]:
        """A page of what could not be read."""
        from turnlog.store.queries.sources import load_diagnostics

        with self._snapshot() as connection:
            return load_diagnostics(connection, filter, limit, cursor)

    def record(self, source: str, offset: int, length: int) -> bytes:
        """Bytes of a source."""
        from turnlog.store.queries.sources import load_record

        with self._snapshot() as connection:
            return load_record(connection, source, offset, length)

    def raw(self, session_id: str) -> Iterator[RawSource]:
        """The bytes of every source of a session."""
        from turnlog.store.queries.sources import iter_raw

        return iter_raw(self._connection(), session_id)

    def spill(self, session_id: str, name: str) -> bytes:
        """The whole of an output that its result only previews."""
        from turnlog.store.blobs import load_spill

        with self._snapshot() as connection:
            return load_spill(connection, session_id, name)

    def blob(self, sha256: str) -> BlobContent:
        """A large or binary content."""
        from turnlog.store.blobs import load_blob

        with self._snapshot() as connection:
            return load_blob(connection, sha256)

    # -- what was started through turnlog

    def runs(self, filter: RunFilter = EVERY_RUN, *, limit: int = 50, cursor: str | None = None) -> Page[Run]:
        """A page of runs."""
        from turnlog.store.runs import load_runs

        with self._snapshot() as connection:
            return load_runs(connection, filter, limit, cursor)

    def run(self, run_id: str) -> Run:
        """One run."""
        from turnlog.store.runs import load_run

        with self._snapshot() as connection:
            return load_run(connection, run_id)

    # -- what the user said, and what changed

    def annotations(self, session_ids: Iterable[str]) -> Mapping[str, Annotations]:
        """What the user said about these sessions."""
        from turnlog.store.queries.annotations import load_annotations

        with self._snapshot() as connection:
            return load_annotations(connection, session_ids)

    def annotate(self, session_id: str, **change: Unpack[AnnotationsChange]) -> Annotations:
        """Change what the user says about a session."""
        from turnlog.store.queries.annotations import change_annotations

        connection = connect(self.path)
        try:
            with write_transaction(connection):
                return change_annotations(connection, session_id, change)
        finally:
            connection.close()

    def changes(self, after: int, limit: int = 1000) -> list[ChangeEntry]:
        """What changed after a number of the change sequence."""
        from turnlog.store.queries.changes import load_changes

        with self._snapshot() as connection:
            return load_changes(connection, after, limit)

    def last_change(self) -> int:
        """The number of the last change."""
        from turnlog.store.queries.changes import load_last_change

        with self._snapshot() as connection:
            return load_last_change(connection)

    def parents(self, session_ids: Iterable[str]) -> Mapping[str, str]:
        """The sessions that subagents came out of."""
        from turnlog.store.queries.changes import load_parents

        with self._snapshot() as connection:
            return load_parents(connection, session_ids)

    def session_changes(self, session_id: str, after: int, until: int, *, limit: int = 200) -> SessionChanges | None:
        """What changed in a session."""
        from turnlog.store.queries.changes import load_session_changes

        with self._snapshot() as connection:
            return load_session_changes(connection, session_id, after, until, limit)

    def status(self) -> StoreStatus:
        """Counts, sizes and freshness."""
        from turnlog.store.queries.status import load_status

        with self._snapshot() as connection:
            return load_status(connection, self.path)

    # -- connections

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection, opened when it first asks."""
        thread = threading.current_thread()
        connection = self._connections.get(thread)
        if connection is not None:
            return connection
        with self._lock:
            if self._closed:
                raise StoreError(f"the store {self.path} is closed")
            for ended in [known for known in self._connections if not known.is_alive()]:
                self._connections.pop(ended).close()
            connection = connect(self.path, read_only=True)
            connection.create_function("casefold", 1, _casefold, deterministic=True)
            self._connections[thread] = connection
        return connection

    @contextmanager
    def _snapshot(self) -> Generator[sqlite3.Connection]:
        """A connection that sees one state of the store, however many questions an answer takes."""
        connection = self._connection()
        try:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(f"cannot read the store {self.path}: {error}") from error


def _casefold(text: str | None) -> str | None:
    return None if text is None else text.casefold()
