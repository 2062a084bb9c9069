"""The `Store` protocol: all queries of a store, with the filters that they take.

The values are those of `turnlog.model`, `store.values`, `store.usage_report`, `store.session_state` and `store.window`.
`store.sqlite` is the engine. This module imports no database, no msgspec and no model, because a usage report must
start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self, Unpack

from turnlog.arguments import check_methods, checked_fields
from turnlog.store.choices import SessionHaving, SessionSort, UsageBy
from turnlog.store.usage_filter import ALL_USAGE, UsageFilter

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
    from turnlog.store.insights import ContextStep, Insights
    from turnlog.store.session_state import TurnFacts
    from turnlog.store.sources import Fingerprint
    from turnlog.store.spending import Spending
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
        SecretPlaces,
        SessionChanges,
        SessionFacts,
        SessionLink,
        SessionPreview,
        SourceInfo,
        StoredDiagnostic,
        StoredPart,
        StoreStatus,
        Task,
        ToolCall,
        ToolUsage,
        TouchedFile,
        UnknownKind,
    )
    from turnlog.store.window import FrameWindow


@checked_fields
class HourOfWeek(NamedTuple):
    """An hour of every week, as the clocks of a zone show it."""

    weekday: int
    """1 is Monday, 7 is Sunday."""
    hour: int
    """0 to 23."""
    zone: tzinfo | None = UTC
    """None is the zone of this machine."""


@checked_fields
class SessionFilter(NamedTuple):
    """A filter of sessions. None matches everything, in this filter and in the others.

    Times compare with the last (`since`, inclusive) and the first (`until`, exclusive) activity.
    """

    agent: str | None = None
    project: str | None = None
    """Path or name of the project."""
    model: str | None = None
    branch: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    title: str | None = None
    """Text that the title contains; case is ignored."""
    relationship: RelationshipKind | None = None
    parent: str | None = None
    """Id of the parent session."""
    user: str | None = None
    team: str | None = None
    task: str | None = None
    machine: str | None = None
    owned: bool | None = None
    """True: only sessions of a user, a team or a task. False: only those that nobody owns."""
    native: bool | None = None
    """True: only native sessions, including chats whose answers are all in logs of agents."""
    imported: bool | None = None
    """True: only sessions of imported runs, which no chat is."""
    starred: bool | None = None
    archived: bool | None = None
    tag: str | None = None
    having: SessionHaving | None = None
    """Only sessions with at least one of these."""
    hour: HourOfWeek | None = None
    """Only sessions in which something happened in this hour of a week, also in their subagents."""
    subagents: bool = False
    """Also list subagent sessions. `parent` and `relationship` list them in any case."""


@checked_fields
class ToolCallFilter(NamedTuple):
    """A filter of tool calls. Times compare with their start: `since` is inclusive, `until` exclusive."""

    tool: str | None = None
    kind: ToolKind | str | None = None
    state: ToolState | str | None = None
    failed: bool | None = None
    """True: only calls that ended with an error (`output-error`). Aborted and denied calls did not fail."""
    since: datetime | None = None
    until: datetime | None = None
    project: str | None = None
    session: str | None = None
    path: str | None = None
    """A file that the call read or wrote."""
    agent: str | None = None
    call: str | None = None
    """The agent's id of the call; calls in several sessions may have the same id."""
    message: str | None = None
    """Id of the message that contains the call."""


@checked_fields
class FileFilter(NamedTuple):
    """A filter of files."""

    text: str | None = None
    """Text that the path contains; case is ignored."""
    session: str | None = None
    project: str | None = None
    agent: str | None = None
    changed: bool | None = None
    """True: only files that a call changed."""


@checked_fields
class InsightFilter(NamedTuple):
    """A filter of insights. `since` is inclusive, `until` exclusive; a quarter hour that they cut is counted whole."""

    since: datetime | None = None
    until: datetime | None = None
    agent: str | None = None
    project: str | None = None


@checked_fields
class RunFilter(NamedTuple):
    """A filter of runs. Times compare with their creation."""

    agent: str | None = None
    status: str | None = None
    """One of `RUN_STATUSES`; ValueError otherwise."""
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@checked_fields
class DiagnosticFilter(NamedTuple):
    """A filter of diagnostics."""

    agent: str | None = None
    session: str | None = None
    path: str | None = None
    severity: Literal["error", "note"] | None = None


EVERY_SESSION = SessionFilter()
EVERY_TOOL_CALL = ToolCallFilter()
EVERY_FILE = FileFilter()
ALL_INSIGHTS = InsightFilter()
EVERY_RUN = RunFilter()
EVERY_DIAGNOSTIC = DiagnosticFilter()


def check_arguments(engine: type) -> None:
    """Let the methods of an engine refuse arguments of the wrong type, as `Store` annotates them."""
    check_methods(engine, Store, ("turnlog.model", "turnlog.store.session_state", "turnlog.store.sources", _VALUES))


_VALUES = "turnlog.store.values"


class Store(Protocol):
    """A store of sessions. Any number of threads may read it.

    Times are UTC with a time zone. Methods that take the id of a session or message raise NotFoundError if it does not
    exist, and all methods raise StoreError if the database cannot be read. The result of a call describes one state of
    the store, even if another process writes at the same time. `limit` counts items. `cursor` is the `next_cursor` of
    the previous page with the same method and filter; any other value raises ValueError.

    An engine is one class with these methods (`store.sqlite`), and `open_store` knows its URLs. Readers of a store know
    nothing else about it. docs/explanation/architecture.md has what else a second engine needs.
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
        """Close all connections. Later calls raise StoreError."""
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
        """One page of sessions; `count` also sets the page's `total`.

        Sessions that a user would not recognise are left out: those known only from a stream or hooks that another
        session replaces.
        """
        ...

    def session(self, session_id: str) -> Session:
        """One session."""
        ...

    def find_session(self, agent: str, external_id: str) -> Session | None:
        """The session with this id of its agent; None if it is not stored."""
        ...

    def ids_beginning(self, beginnings: Iterable[str]) -> list[tuple[str, bool]]:
        """The ids of all sessions whose agents' own ids begin so, and whether each is a subagent; sorted."""
        ...

    def children(self, session_id: str) -> list[Session]:
        """Child sessions, oldest first. For a chat also the sessions of agents that answered it."""
        ...

    def relationships(self, session_id: str) -> list[SessionLink]:
        """All relationships of the session, first those to its parents."""
        ...

    def previews(self, session_ids: Iterable[str]) -> Mapping[str, SessionPreview]:
        """Session id -> what lists show in addition to the session. Ids that are not stored are left out."""
        ...

    def turn_facts(self, session_ids: Iterable[str]) -> Mapping[str, TurnFacts]:
        """Session id -> facts about its last turn. Ids that are not stored are left out."""
        ...

    def annotations(self, session_ids: Iterable[str]) -> Mapping[str, Annotations]:
        """Session id -> annotations. Sessions without any are left out."""
        ...

    def annotate(self, session_id: str, **change: Unpack[AnnotationsChange]) -> Annotations:
        """Change the user's annotations of a session; return them.

        Raises StoreBusyError if another process writes for too long, StoreError if the store cannot be written.
        """
        ...

    def parents(self, session_ids: Iterable[str]) -> Mapping[str, str]:
        """Session id -> id of its parent, for those that are subagents with a stored parent."""
        ...

    # -- native sessions, which only programs write

    def save_session(self, session_id: str, **facts: Unpack[SessionFacts]) -> Session:
        """Create or update a session, and return it.

        Saving the same values again changes nothing. The id is `<agent>:<name>`. The agent is a word in lower case that
        is not an agent whose logs turnlog reads; the name contains no slash.

        Raises ValueError for an invalid id, ConflictError if the session is read from logs or was forgotten,
        StoreBusyError if another process writes for too long, StoreError if the store cannot be written. So do the next
        two methods.
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
        """Insert or replace messages by id, new ones at the end, and retract messages by their ids.

        This is one transaction, and creates the session if it does not exist. A message equal to the stored one changes
        nothing. Otherwise it replaces the stored one, unless its `updated_at` is earlier; calls and results that only
        the stored one has are kept. Ids are unique within an agent. `answers` maps ids of messages to the agent's
        session that also logs them; once that log has them, they count there only. A `user` message without an origin
        is a prompt.

        Raises ConflictError for a message of another session, NotFoundError if there is neither the session nor a
        message, TypeError for a message that could not be read again, ValueError for an unknown role or a time without
        a time zone.
        """
        ...

    def save_tool_call(self, session_id: str, message_id: str, call: ToolCallPart) -> Message:
        """Insert or replace a call by its id, a new one as the last part of its message; return the message.

        Raises NotFoundError if the session does not contain the message, ConflictError if it is not an assistant
        message.
        """
        ...

    def change_owner(self, session_id: str, ownership: Ownership) -> Session:
        """Set the owner of any session, native or read from logs. A rebuild keeps it."""
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
        """Messages of a session, ordered by position.

        Args:
            session_id: The session.
            after: Only messages after this position; `limit` then counts from there.
            before: Only messages before this position; without `after`, `limit` counts backwards from there.
            around: Half of `limit` before this position and half from it on. ValueError together with `after` or
                `before`.
            limit: The number of messages; None for all.
            fates: Only messages with these fates.
            structured: Kinds of tools for whose results to read the agent's own JSON, as `message` does.
            resolve_blobs: Load large contents; otherwise parts have references to them.
        """
        ...

    def message(
        self, message_id: str, *, session_id: str | None = None, structured: bool = False, resolve_blobs: bool = True
    ) -> Message:
        """One message. `structured` reads the agent's own JSON of its results from the archive.

        Positions of results and child sessions are those in `session_id`, by default in the session that is billed.
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
        """The memberships of a message in all sessions that contain it, that of the billed session first."""
        ...

    def records(self, message_id: str, *, session_id: str | None = None) -> list[RawRecord]:
        """The distinct records from which a message was made, in the order of the log."""
        ...

    def places(
        self, session_id: str, *, fates: Iterable[Fate], since: int | None = None, limit: int = 1000
    ) -> list[MessagePlace]:
        """The places of messages with these fates, from a position on, in order, without contents."""
        ...

    def bodies(
        self, session_id: str, first: int, last: int, *, fates: Iterable[Fate], resolve_blobs: bool = True
    ) -> dict[str, bytes]:
        """Message id -> canonical JSON of the message from its own records, between two positions, both inclusive."""
        ...

    def child_sessions(self, session_id: str) -> Mapping[str, str]:
        """Tool call id -> id of the subagent session that the call started."""
        ...

    def history(self, session_id: str, *, resolve_blobs: bool = True) -> list[HistoryEvent]:
        """Everything in a session in causal order: messages, arrivals of results, and other events."""
        ...

    def events(self, session_id: str, *, position: int | None = None, type: str | None = None) -> list[HistoryEvent]:
        """The events of a session, in order; results of known calls are not among them.

        Optionally only those at one position, or of one type (`tool-result`: orphan results).
        """
        ...

    def messages_at(
        self, session_id: str, positions: Collection[int], *, structured: Container[ToolKind] = ()
    ) -> list[PlacedMessage]:
        """The messages of a session at these positions, in order; `messages` describes `structured`."""
        ...

    def secret_places(self, session_id: str, rules: str) -> SecretPlaces:
        """Where a session has secrets, as far as it was kept for these rules, and what has to be looked at."""
        ...

    def keep_secret_places(self, session_id: str, rules: str, places: SecretPlaces) -> None:
        """Keep where a session has secrets: positions, and no secret. A store that cannot be written keeps nothing."""
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
        """A passage of the history with the context that it needs; `limit` counts messages, and large contents are cut.

        `messages` describes the bounds.
        """
        ...

    def outline(self, session_id: str) -> list[OutlineEntry]:
        """The landmarks of a session in order: prompts, compactions, rewinds and errors."""
        ...

    def context_steps(self, session_id: str) -> list[ContextStep]:
        """The model calls of a session in order, each with the size of its context."""
        ...

    def window(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int = 40,
    ) -> FrameWindow:
        """A window of a session as JSON for a browser, made without decoding. `messages` describes the bounds."""
        ...

    def extent(self, session_id: str) -> tuple[int, int] | None:
        """Positions of the first and of the last message of a session; None if it has no messages."""
        ...

    # -- tool calls, files and figures of many sessions

    def tool_calls(
        self,
        filter: ToolCallFilter = EVERY_TOOL_CALL,
        *,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[ToolCall]:
        """Tool calls, newest first; those of a single session in their own order."""
        ...

    def tool_usage(self, filter: ToolCallFilter = EVERY_TOOL_CALL) -> list[ToolUsage]:
        """Calls and failures of each tool, most called first."""
        ...

    def reasoning(self, session_id: str | None = None) -> ReasoningVolume:
        """The reasoning of one session, or of all: a message that several sessions share counts once."""
        ...

    def file_history(
        self, path: str, *, changed: bool = False, limit: int = 50, cursor: str | None = None
    ) -> FileHistory:
        """What was done to a file, given its path, or to all files whose path ends with it.

        Relative paths are resolved with the session's folder. `changed` leaves out calls that only read. An unknown
        path has an empty history.
        """
        ...

    def touched_files(self, filter: FileFilter = EVERY_FILE, *, limit: int = 200) -> list[TouchedFile]:
        """Files that calls read or changed, last touched first."""
        ...

    def usage(
        self,
        by: UsageBy = "day",
        filter: UsageFilter = ALL_USAGE,
        *,
        then_by: UsageBy | None = None,
        zone: tzinfo | None = UTC,
        active: bool = False,
    ) -> UsageReport:
        """Tokens and cost, from totals that every write updates; `then_by` divides each row again.

        Without an agent in the filter, blocks contain only calls of Claude Code.

        Hours, days, weeks and months are those of `zone` (None: of this machine), ascending; other rows are descending
        by cost. With `active`, days, weeks and months have the time in which sessions were active, which takes longer.
        Raises ValueError if a report is divided twice by the same.
        """
        ...

    def spending(self, since: datetime) -> Spending:
        """What was spent since a time, rounded down to a quarter hour, and in the block of Claude's limits that runs.

        As `usage` has it, but without importing what makes reports.
        """
        ...

    def insights(
        self, filter: InsightFilter = ALL_INSIGHTS, *, zone: tzinfo | None = UTC, limit: int | None = None
    ) -> Insights:
        """When the user works, what it costs where, how tools and models behave, and what went wrong.

        Hours, days and weeks are those of `zone` (None: of this machine). `limit` bounds the lists of files and errors
        (None: all rows); of commands, half as many are listed by time, by failures and by calls.
        """
        ...

    def projects(self) -> list[ProjectSummary]:
        """All projects, last used first."""
        ...

    def rename_project(self, project: str, name: str | None) -> ProjectSummary:
        """Give the project with this path or name another name; None or an empty one restores the folder's.

        A rebuild keeps it. Raises NotFoundError if there is no such project, and ConflictError if several have this
        name or another one has the new name.
        """
        ...

    def merge_projects(self, project: str, into: str) -> ProjectSummary:
        """Count all sessions of `project` (path or name), present and future, to the project `into`; return this one.

        A rebuild keeps it; `split_project` undoes it. Raises NotFoundError for a project that does not exist, and
        ConflictError if both are the same or several have the name.
        """
        ...

    def split_project(self, project: str) -> ProjectSummary:
        """Undo `merge_projects` for the project with this path. Raises NotFoundError if it is not merged."""
        ...

    def tasks(self) -> list[Task]:
        """All tasks, last used first: those that were created, and those that sessions name."""
        ...

    def task(self, task_id: str) -> Task:
        """One task. Raises NotFoundError if nobody created it and no session names it."""
        ...

    def create_task(self, name: str, *, task_id: str | None = None, user: str | None = None) -> Task:
        """Create a task of a user (None: of nobody), with a new id where none is given.

        Raises ConflictError if it was created before.
        """
        ...

    def rename_task(self, task_id: str, name: str, *, user: str | None = None) -> Task:
        """Show a task under another name; an empty one restores its id.

        With a `user`, raises ConflictError if another user created it.
        """
        ...

    def delete_task(self, task_id: str, *, user: str | None = None) -> None:
        """Delete a task; its sessions stay, in no task. With a `user`, only what is this user's is changed."""
        ...

    def models(self) -> list[ModelSummary]:
        """All models, most called first."""
        ...

    def agents(self) -> list[AgentSummary]:
        """All agents with stored sources or sessions, sorted by name."""
        ...

    def agent_versions(self) -> Mapping[str, list[AgentVersion]]:
        """Agent -> the versions that wrote its sessions, most common first."""
        ...

    # -- runs

    def runs(self, filter: RunFilter = EVERY_RUN, *, limit: int = 50, cursor: str | None = None) -> Page[Run]:
        """Runs, newest first, with the `total`. Raises ValueError for an unknown status."""
        ...

    def run(self, run_id: str) -> Run:
        """The run with this id, or with an id that begins so. Raises NotFoundError if none or several match."""
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
        """Session id -> its newest run. Sessions without a run are left out."""
        ...

    def run_facts(
        self, session_id: str, since: datetime | None, until: datetime | None, *, stream: str | None = None
    ) -> RunFacts:
        """What a session says about a run that lasted from `since` to `until` (None if it has not ended).

        With `stream`, the path of the run's saved output, the facts are those in the output at any time. Usage, cost
        and calls include those of subagents.
        """
        ...

    def save_run(self, run: Run) -> None:
        """Insert or replace a run by its id. Raises StoreError if the store cannot be written."""
        ...

    def change_unfinished_runs(self, change: Callable[[Run], Run | None]) -> list[Run]:
        """Replace each unfinished run by the result of `change`, unless that is None; return the new values.

        No other process can end them meanwhile. If `change` always returns None, nothing is written.
        """
        ...

    def forget_run(self, run_id: str) -> Run:
        """Delete a run so that its text is no longer in the file, and return it. Its session stays."""
        ...

    # -- what was read

    def sources(self, session_id: str | None = None) -> list[SourceInfo]:
        """The sources of one session, its log first, or all sources, sorted by path."""
        ...

    def fingerprints(self) -> Mapping[str, Fingerprint]:
        """Path -> fingerprint, for sources that were read without a problem and still exist."""
        ...

    def diagnostics(
        self,
        filter: DiagnosticFilter = EVERY_DIAGNOSTIC,
        *,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[StoredDiagnostic]:
        """Diagnostics, sorted by path and place, with the `total`."""
        ...

    def unread_logs(self) -> tuple[int, int]:
        """The number of sources that could not be read, and of those with records that could not be.

        Sources that are gone from the disk do not count: nothing can be done about them.
        """
        ...

    def diagnostic_counts(self, *, limit: int = 40) -> list[DiagnosticCount]:
        """The number of diagnostics per JSON path, most frequent first."""
        ...

    def unknown_kinds(self) -> list[UnknownKind]:
        """Kinds of records that this version does not know, most frequent first."""
        ...

    def unknown_record(self, agent: str, kind: str) -> Json | None:
        """One record of an unknown kind as plain values; None if no event has that kind."""
        ...

    def record(self, source: str, offset: int, length: int) -> bytes:
        """Bytes of a source, given its path, as archived. Raises NotFoundError if the store does not have them."""
        ...

    def raw(self, session_id: str) -> Iterator[RawSource]:
        """The archived bytes of all sources of a session, its log first."""
        ...

    def restore(self, session_id: str, to: Path, *, copies: bool = True) -> list[RestoredFile]:
        """Write the files of a session and its subagents below `to`, laid out as below the agent's home.

        `copies`: also files all of whose messages other files have, such as an older export. Files with the bytes of
        another one, and spools of hooks, are not restored. If several homes have different files at the same relative
        path, those of the later homes are written below the whole path of their home. A source of rows is written in
        the agent's own form.

        Raises NotFoundError if the session has no files, ConflictError if a file with other bytes exists, StoreError if
        a path would leave `to`.
        """
        ...

    def plan_forgetting(self, session_id: str) -> Forgetting:
        """What `forget` would remove. Removes nothing."""
        ...

    def forget(self, session_id: str) -> Forgetting:
        """Remove a session so that its text is in no file of the store any more; a tombstone remains.

        Its words are in no answer any more; a process may still overwrite them in the file of a large search index.
        Messages that other sessions share stay in those. The agent's own files are not touched. Raises StoreBusyError
        if another process reads for so long that the bytes cannot be overwritten.
        """
        ...

    def spill(self, session_id: str, name: str) -> bytes:
        """The whole of a spilled output (`ToolResult.spilled_to`)."""
        ...

    def blob(self, sha256: str) -> BlobContent:
        """A large or binary content, given its SHA-256 in hexadecimal. Raises NotFoundError if it is not stored."""
        ...

    # -- changes and status

    def changes(self, after: int, limit: int = 1000) -> list[ChangeEntry]:
        """The changes after this number of the change sequence, in the order of their commits."""
        ...

    def last_change(self) -> int:
        """The number of the last change; 0 if there is none."""
        ...

    def session_changes(self, session_id: str, after: int, until: int, *, limit: int = 200) -> SessionChanges | None:
        """What changed in a session after `after` and up to `until`, which are both last numbers of a commit.

        None if more than `limit` messages or events changed, or the session was rebuilt: then it must be read again.
        """
        ...

    def status(self) -> StoreStatus:
        """Counts, sizes and the time of the last sync."""
        ...
