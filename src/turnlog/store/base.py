"""The `Store` protocol: every query of a store, and the filters and words that narrow one.

Values are the model's own, and those of `store.values`, `store.usage_report`, `store.session_state` and
`store.window`. The engine is `store.sqlite`. Importing this module imports no database, no msgspec and nothing of the
model: a usage report must start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self, TypeAlias, Unpack, get_args

if TYPE_CHECKING:
    from pathlib import Path

    from turnlog.model import (
        Fate,
        HistoryEvent,
        Json,
        Membership,
        Message,
        Ownership,
        RelationshipKind,
        Session,
        ToolCallPart,
        ToolKind,
        ToolState,
    )
    from turnlog.store.session_state import TurnFacts
    from turnlog.store.sources import Fingerprint
    from turnlog.store.usage_report import AgentSummary, ModelSummary, ProjectSummary, UsageReport
    from turnlog.store.values import (
        AgentAnswer,
        AgentVersion,
        Annotations,
        AnnotationsChange,
        BlobContent,
        ChangeEntry,
        DiagnosticCount,
        FileHistory,
        Forgetting,
        MessagePlace,
        OutlineEntry,
        Page,
        Passage,
        PlacedMessage,
        RawRecord,
        RawSource,
        ReasoningVolume,
        RestoredFile,
        Run,
        RunFacts,
        SessionChanges,
        SessionFacts,
        SessionLink,
        SessionPreview,
        SourceInfo,
        StoredDiagnostic,
        StoredPart,
        StoreStatus,
        ToolCall,
        ToolUsage,
        TouchedFile,
        UnknownKind,
    )
    from turnlog.store.window import Window

SessionSort: TypeAlias = Literal["updated", "created", "cost", "tokens", "messages"]
"""All newest, dearest or largest first; sessions for which it is unknown come last."""

UsageBy: TypeAlias = Literal["day", "model", "project", "session", "agent", "subagent"]
"""`subagent`: a row for each subagent, and one without a name for all that no subagent did."""

RunStatus: TypeAlias = Literal["pending", "running", "completed", "failed", "cancelled"]

SESSION_SORTS: tuple[SessionSort, ...] = get_args(SessionSort)

USAGE_BY: tuple[UsageBy, ...] = get_args(UsageBy)

RUN_STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)


class SessionFilter(NamedTuple):
    """Which sessions; a field that is None does not matter, here and in the other filters.

    Times bound the last (`since`, included) and the first (`until`, excluded) activity.
    """

    agent: str | None = None
    project: str | None = None
    """Path of the project, or its name."""
    model: str | None = None
    branch: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    title: str | None = None
    """Text that the title contains, in any case."""
    relationship: RelationshipKind | None = None
    parent: str | None = None
    """Id of the session they came out of."""
    user: str | None = None
    team: str | None = None
    task: str | None = None
    machine: str | None = None
    native: bool | None = None
    """True: only those that programs wrote through turnlog, also chats whose every answer is in an agent's own log."""
    imported: bool | None = None
    """True: only those of runs that were imported; a chat is none."""
    starred: bool | None = None
    archived: bool | None = None
    tag: str | None = None
    subagents: bool = False
    """Whether subagent sessions are listed too. `parent` and `relationship` list them in any case."""


class ToolCallFilter(NamedTuple):
    """Which tool calls. Times bound their start: `since` is included, `until` is not."""

    tool: str | None = None
    kind: ToolKind | str | None = None
    state: ToolState | str | None = None
    failed: bool | None = None
    """True: ended in an error (`output-error`). An aborted or denied call did not fail."""
    since: datetime | None = None
    until: datetime | None = None
    project: str | None = None
    session: str | None = None
    path: str | None = None
    """The file that the call read or wrote."""
    agent: str | None = None
    call: str | None = None
    """The id that the agent gave the call; several sessions may have one of it."""
    message: str | None = None
    """Id of the message that made the call."""


class FileFilter(NamedTuple):
    """Which files."""

    text: str | None = None
    """What the path contains, in any case."""
    session: str | None = None
    project: str | None = None
    agent: str | None = None
    changed: bool | None = None
    """True: only files that some call changed."""


class UsageFilter(NamedTuple):
    """Whose usage. Days are UTC; `since` is the first day and `until` the first that is out."""

    since: datetime | None = None
    until: datetime | None = None
    agent: str | None = None
    project: str | None = None
    model: str | None = None
    session: str | None = None
    user: str | None = None
    team: str | None = None
    task: str | None = None


class RunFilter(NamedTuple):
    """Which runs; times bound when they were made."""

    agent: str | None = None
    status: str | None = None
    """One of `RUN_STATUSES`; any other is a ValueError."""
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class DiagnosticFilter(NamedTuple):
    """Which diagnostics."""

    agent: str | None = None
    session: str | None = None
    path: str | None = None
    severity: Literal["error", "note"] | None = None


EVERY_SESSION = SessionFilter()
EVERY_TOOL_CALL = ToolCallFilter()
EVERY_FILE = FileFilter()
ALL_USAGE = UsageFilter()
EVERY_RUN = RunFilter()
EVERY_DIAGNOSTIC = DiagnosticFilter()


class Store(Protocol):
    """A store of sessions: read by many threads at once, closed once.

    Times are UTC and aware. Every method that takes the id of a session or a message raises NotFoundError when there
    is none of that id; every method raises StoreError when the database cannot be read. What a method answers is of
    one state of the store, even if somebody writes meanwhile. `limit` counts items; a `cursor` is the `next_cursor` of
    the page before, of the same method and filter, and ValueError is raised for any other.

    An engine is one class that has these methods (`store.sqlite`), and `open_store` knows its URLs. Whoever reads a
    store knows nothing else of it. What else a second engine needs is in docs/explanation/architecture.md.
    """

    def __enter__(self) -> Self:
        """The store itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        ...

    def close(self) -> None:
        """Close every connection. Whatever is read afterwards is a StoreError."""
        ...

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
        """Sessions, page by page; `count` fills in the page's `total`.

        A session that a user would not recognize is not listed: one that only an agent's stream or hooks tell of and
        that another session stands for.
        """
        ...

    def session(self, session_id: str) -> Session:
        """One session."""
        ...

    def find_session(self, agent: str, external_id: str) -> Session | None:
        """The session that an agent knows by this id."""
        ...

    def children(self, session_id: str) -> list[Session]:
        """Sessions that came out of this one, oldest first; of a chat also the logs of the agents that answered it."""
        ...

    def relationships(self, session_id: str) -> list[SessionLink]:
        """Every relationship in which the session is child or parent, those as child first."""
        ...

    def previews(self, session_ids: Iterable[str]) -> Mapping[str, SessionPreview]:
        """Session id -> what lists show of it besides itself. One that is not stored is left out."""
        ...

    def turn_facts(self, session_ids: Iterable[str]) -> Mapping[str, TurnFacts]:
        """Session id -> what its last records say of its last turn. One that is not stored is left out."""
        ...

    def annotations(self, session_ids: Iterable[str]) -> Mapping[str, Annotations]:
        """Session id -> what the user said about it. One about which nothing was said is left out."""
        ...

    def annotate(self, session_id: str, **change: Unpack[AnnotationsChange]) -> Annotations:
        """Change what the user says about a session; all of it as it is then.

        Raises StoreBusyError when somebody else has been writing for too long, StoreError when it cannot be written.
        """
        ...

    def parents(self, session_ids: Iterable[str]) -> Mapping[str, str]:
        """Id -> id of the parent, of those of these sessions that are subagents and whose parent is stored."""
        ...

    # -- native sessions: written here, and nowhere else

    def save_session(self, session_id: str, **facts: Unpack[SessionFacts]) -> Session:
        """Make a session, or change what is known of it; the session as it is then.

        Saving the same again changes nothing. The id is `<agent>:<name>`: the agent is any word in small letters that
        is no agent whose logs turnlog reads, the name holds no slash.

        Raises ValueError for an id that cannot be one, ConflictError for a session that logs tell of or that was
        forgotten, StoreBusyError when somebody else has been writing for too long, StoreError when it cannot be
        written. So do the next two methods.
        """
        ...

    def save_messages(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        retracted: Collection[str] = (),
        answers: Mapping[str, AgentAnswer] | None = None,
    ) -> None:
        """Write messages, each in place of the one of its id or at the end, and retract others by their ids.

        All of it is one transaction. The session is made if it is new. A message that equals the stored one changes
        nothing. Another one replaces it, unless its `updated_at` is earlier; calls and results that only the stored one
        has are kept. Ids are unique in their agent. `answers` says, by the ids of messages, which of them an agent
        tells of in a log of its own: where that has them, they count there.

        Raises ConflictError for a message that another session holds.
        """
        ...

    def save_tool_call(self, session_id: str, message_id: str, call: ToolCallPart) -> Message:
        """Write a call in place of the one of its id, or as the last part of its message; the message as it is then.

        Raises NotFoundError for a message that the session does not hold, ConflictError for one that no assistant said.
        """
        ...

    def change_owner(self, session_id: str, ownership: Ownership) -> Session:
        """Say whose a session is, also one that logs tell of; a rebuild keeps it."""
        ...

    # -- messages and history of one session

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
        """Messages of a session in their order, by position.

        Args:
            session_id: The session.
            after: Only those behind this position; `limit` counts from here.
            before: Only those before this position; without `after`, `limit` counts back from here.
            around: Half of `limit` before this position, the rest from it on. ValueError beside the other two.
            limit: How many; all by default.
            fates: Only messages of these fates.
            structured: Kinds of tools whose results have the agent's own JSON, as `message` reads it.
            resolve_blobs: Whether large contents are read in; references to them otherwise.
        """
        ...

    def message(
        self, message_id: str, *, session_id: str | None = None, structured: bool = False, resolve_blobs: bool = True
    ) -> Message:
        """One message; `structured` reads the agent's own JSON of its results from the archive.

        Places of results and child sessions are those of `session_id`, or of the session that is billed.
        """
        ...

    def part(self, part_id: str, *, session_id: str | None = None) -> StoredPart:
        """One part, whole, by its id in the store; its results have the agent's own JSON.

        Ids are those of `turnlog.model.message.part_ids`. A re-sync, a rebuild and further records leave them as they
        are; forks share a part with its message. `session_id` is that of `message`. Raises NotFoundError when there is
        no part of this id.
        """
        ...

    def memberships(self, message_id: str) -> list[Membership]:
        """The place of a message in each session that holds it, the billed session first."""
        ...

    def records(self, message_id: str, *, session_id: str | None = None) -> list[RawRecord]:
        """The records that a message was made from, in the order of the log, none twice."""
        ...

    def places(
        self, session_id: str, *, fates: Iterable[Fate], since: int | None = None, limit: int = 1000
    ) -> list[MessagePlace]:
        """The messages of these fates in their order, from a position on, without their contents."""
        ...

    def bodies(
        self, session_id: str, first: int, last: int, *, fates: Iterable[Fate], resolve_blobs: bool = True
    ) -> dict[str, bytes]:
        """Message id -> canonical JSON as its own records say it, of the messages between two positions, both in."""
        ...

    def child_sessions(self, session_id: str) -> Mapping[str, str]:
        """Tool call id -> id of the subagent session that the call started."""
        ...

    def history(self, session_id: str, *, resolve_blobs: bool = True) -> list[HistoryEvent]:
        """Everything in a session in causal order: messages, results as events of their own, and other events."""
        ...

    def events(self, session_id: str, *, position: int | None = None, type: str | None = None) -> list[HistoryEvent]:
        """What is neither a message nor the result of a known call, in order.

        Of one position, or of one type (`tool-result`: results whose call is not known), where one is named.
        """
        ...

    def passage(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int = 40,
    ) -> Passage:
        """A passage of the history, counted in messages, with what it takes to understand it; large contents cut.

        The bounds are those of `messages`.
        """
        ...

    def outline(self, session_id: str) -> list[OutlineEntry]:
        """Prompts, compactions, rewinds and failures, in order."""
        ...

    def window(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int = 40,
    ) -> Window:
        """A piece of a session as JSON for a browser, without decoding a message. Its bounds: see `messages`."""
        ...

    # -- tool calls, files and figures of many sessions

    def tool_calls(
        self,
        filter: ToolCallFilter = EVERY_TOOL_CALL,
        *,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[ToolCall]:
        """Tool calls, newest first; those of one session in their order."""
        ...

    def tool_usage(self, filter: ToolCallFilter = EVERY_TOOL_CALL) -> list[ToolUsage]:
        """How often each tool was called and failed, the most called first."""
        ...

    def reasoning(self, session_id: str | None = None) -> ReasoningVolume:
        """How much reasoning one session holds, or all; a message of several sessions counts once for all."""
        ...

    def file_history(
        self, path: str, *, changed: bool = False, limit: int = 50, cursor: str | None = None
    ) -> FileHistory:
        """What was done to a file, named by its path, or to every file whose path ends with this one.

        A path that a session wrote without its folder is understood from the session's. `changed` leaves out calls
        that only read. An unknown path has no history.
        """
        ...

    def touched_files(self, filter: FileFilter = EVERY_FILE, *, limit: int = 200) -> list[TouchedFile]:
        """Files that calls read or changed, the last touched first."""
        ...

    def usage(self, by: UsageBy = "day", filter: UsageFilter = ALL_USAGE) -> UsageReport:
        """Tokens and cost, from the totals kept at every write. Days run forwards, all else from dear to cheap."""
        ...

    def projects(self) -> list[ProjectSummary]:
        """All projects, the last used first."""
        ...

    def models(self) -> list[ModelSummary]:
        """All models, the most called first."""
        ...

    def agents(self) -> list[AgentSummary]:
        """All agents of which there is anything, by name."""
        ...

    def agent_versions(self) -> Mapping[str, list[AgentVersion]]:
        """Agent -> its versions that wrote sessions, the most common first."""
        ...

    # -- runs

    def runs(self, filter: RunFilter = EVERY_RUN, *, limit: int = 50, cursor: str | None = None) -> Page[Run]:
        """What was started through turnlog, newest first, with the `total`. Raises ValueError for an unknown status."""
        ...

    def run(self, run_id: str) -> Run:
        """One run, by its id or a beginning that no other run's id has; NotFoundError for none and for several."""
        ...

    def run_messages(
        self, run_id: str, *, limit: int = 50, cursor: str | None = None, resolve_blobs: bool = True
    ) -> Page[PlacedMessage]:
        """The messages that a run added to its session, in their order; none while its session is not stored.

        They are those from the run's start to its end, or to the session's next run where nobody saw the end; of an
        imported run all of the session. Messages of subagents are in sessions of their own. `run_id` is that of `run`.
        """
        ...

    def newest_runs(self, session_ids: Iterable[str]) -> Mapping[str, Run]:
        """Session id -> its newest run. One that turnlog did not start is left out."""
        ...

    def run_facts(
        self, session_id: str, since: datetime | None, until: datetime | None, *, stream: str | None = None
    ) -> RunFacts:
        """What a session says of a run that lasted from `since` to `until`, None for an end that is not known.

        With `stream`, the path of what the run printed: what that says, whenever it was. Usage, cost and calls are
        those of the session and its subagents.
        """
        ...

    def save_run(self, run: Run) -> None:
        """Write a run in place of the one of its id. Raises StoreError when it cannot be written."""
        ...

    def change_unfinished_runs(self, change: Callable[[Run], Run | None]) -> list[Run]:
        """Write what `change` makes of each run that has not ended, but for None; these runs as they are then.

        No other process can end them meanwhile. When `change` returns None for all, nothing is written.
        """
        ...

    def forget_run(self, run_id: str) -> Run:
        """Remove a run for good, so that its words are no longer in the file; the run as it was. Its session stays.

        Raises NotFoundError for none and for several, ConflictError for one that has not ended.
        """
        ...

    # -- what was read

    def sources(self, session_id: str | None = None) -> list[SourceInfo]:
        """Sources of one session, its log first, or of all, by path."""
        ...

    def fingerprints(self) -> Mapping[str, Fingerprint]:
        """Path -> fingerprint of every source that was read without a problem and is not gone."""
        ...

    def diagnostics(
        self,
        filter: DiagnosticFilter = EVERY_DIAGNOSTIC,
        *,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[StoredDiagnostic]:
        """What could not be read, by path and place, with the `total`."""
        ...

    def diagnostic_counts(self, *, limit: int = 40) -> list[DiagnosticCount]:
        """How many diagnostics are about the same place in records, the most frequent first."""
        ...

    def unknown_kinds(self) -> list[UnknownKind]:
        """Kinds of records that this version does not know, the most frequent first."""
        ...

    def unknown_record(self, agent: str, kind: str) -> Json | None:
        """One record of an unknown kind as plain values; None where no event has it."""
        ...

    def record(self, source: str, offset: int, length: int) -> bytes:
        """Bytes of a source by its path, as they were read. Raises NotFoundError for what the store does not hold."""
        ...

    def raw(self, session_id: str) -> Iterator[RawSource]:
        """The bytes of every source of a session, its log first, also when the files are gone."""
        ...

    def restore(self, session_id: str, to: Path) -> list[RestoredFile]:
        """Write every file of a session and of its subagents under `to`, laid out as under the agent's home.

        Files that hooks wrote are not the agent's, and are left out. Where several homes have a file at one place, each
        with bytes of its own, those of the later homes lie under the whole path of their home. A source of rows is
        written as its agent keeps rows.

        Raises NotFoundError for a session that has no files, ConflictError when a file is there already with other
        bytes, StoreError for a path that would leave `to`.
        """
        ...

    def plan_forgetting(self, session_id: str) -> Forgetting:
        """What `forget` would remove. Nothing is removed."""
        ...

    def forget(self, session_id: str) -> Forgetting:
        """Remove a session for good, so that its words are in no file of the store any more; a tombstone stays.

        Messages that other sessions share stay with those. The agent's own files are not touched. Raises StoreBusyError
        where another process reads for so long that the bytes cannot be overwritten.
        """
        ...

    def spill(self, session_id: str, name: str) -> bytes:
        """The whole of an output that its result only previews (`ToolResult.spilled_to`)."""
        ...

    def blob(self, sha256: str) -> BlobContent:
        """A large or binary content by the hexadecimal hash in its reference. Raises NotFoundError for an unknown."""
        ...

    # -- changes and status

    def changes(self, after: int, limit: int = 1000) -> list[ChangeEntry]:
        """What changed after this number of the change sequence, in the order of the commits."""
        ...

    def last_change(self) -> int:
        """The number of the last change; 0 before the first."""
        ...

    def session_changes(self, session_id: str, after: int, until: int, *, limit: int = 200) -> SessionChanges | None:
        """What changed in a session after `after` and up to `until`; both are the last number of some commit.

        None when more than `limit` messages or events did, or everything was made anew: it must be read again.
        """
        ...

    def status(self) -> StoreStatus:
        """Counts, sizes and freshness."""
        ...
