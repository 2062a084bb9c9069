"""What every store answers: the `Store` protocol, and the values of its questions and pages.

Only the shapes; how they are answered is `store.sqlite` and `store.queries`. Values that hold messages and sessions
come from `turnlog.model`. Importing this module imports no database and nothing of the model, so that a light
question (`usage`) starts fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Protocol, Self, TypeAlias, TypedDict, TypeVar, Unpack

if TYPE_CHECKING:
    from turnlog.model import (
        Cost,
        Fate,
        HistoryEvent,
        Membership,
        Message,
        Ownership,
        Provenance,
        Relationship,
        RelationshipKind,
        Session,
        ToolKind,
        ToolState,
    )
    from turnlog.store.runs import Run
    from turnlog.store.states import TurnFacts
    from turnlog.store.window import Window

ItemT = TypeVar("ItemT")

SessionSort: TypeAlias = Literal["updated", "created", "cost", "tokens", "messages"]
"""All newest, dearest or largest first; sessions for which it is unknown come last."""

ChangeKind: TypeAlias = Literal["session", "forgotten", "rebuilt"]
"""`session`: something of it was added, has changed or has left it. The others name no session."""

LONGEST_MEMORY = 10_000
"""Numbers of the change sequence over which is remembered what has left a session."""

UsageBy: TypeAlias = Literal["day", "model", "project", "session", "agent", "subagent"]
"""`subagent`: a row for each subagent, and one without a name for all that no subagent did."""


class Page(NamedTuple, Generic[ItemT]):
    """A piece of a list, and where the next one begins."""

    items: tuple[ItemT, ...]
    next_cursor: str | None = None
    """Opaque; None on the last page. It stays good while sessions come and go."""
    total: int | None = None
    """How many items all pages hold, where it was asked for."""


class SessionFilter(NamedTuple):
    """Which sessions; what is None does not matter. Times bound the last (`since`) and first (`until`) activity."""

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
    starred: bool | None = None
    archived: bool | None = None
    tag: str | None = None
    subagents: bool = False
    """Whether subagent sessions are listed too. `parent` and `relationship` list them in any case."""


class SessionPreview(NamedTuple):
    """What a list shows of a session besides itself."""

    first_prompt: str | None
    """The first 200 characters of what it was asked first; None when no prompt has text."""
    children: int
    """How many sessions came out of it: subagents, forks, continuations."""


class SessionLink(NamedTuple):
    """One relationship, seen from either side."""

    child_session_id: str
    relationship: Relationship


class PlacedMessage(NamedTuple):
    """A message, its place in the session, and what it cost there."""

    message: Message
    membership: Membership
    cost: Cost | None = None
    """Priced from its usage, also where the membership does not pay; None when the price is unknown."""


class MessagePlace(NamedTuple):
    """Where a message stands in a session, and who speaks."""

    position: int
    message_id: str
    role: str


class ToolCallFilter(NamedTuple):
    """Which tool calls; what is None does not matter."""

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


class ToolCall(NamedTuple):
    """A tool call as lists show it, without its input and output; `Store.message` has those."""

    tool_call_id: str
    tool_name: str
    kind: str
    state: str
    message_id: str
    session_id: str
    """The session that pays for the message; copies in forks are not listed again."""
    position: int
    agent: str
    started_at: datetime | None = None
    completed_at: datetime | None = None
    duration_ms: int | None = None
    exit_code: int | None = None
    path: str | None = None
    input_size: int = 0
    """Characters of the input (of JSON: bytes)."""
    output_size: int = 0


class ToolUsage(NamedTuple):
    """How often a tool was called and how that ended (R-S41)."""

    tool_name: str
    kind: str
    calls: int
    failed: int
    denied: int
    aborted: int
    unanswered: int
    """Calls that have no final result."""
    duration_ms: int
    """Sum over the calls whose duration is known."""
    unknown_durations: int


class ReasoningVolume(NamedTuple):
    """How much was thought (R-S41)."""

    parts: int
    characters: int
    """Visible ones; withheld reasoning has none."""
    messages: int
    tokens: int
    """Counted apart from output; where a log does not tell them apart they are in `output`."""


class FileUse(NamedTuple):
    """What one session did to a file."""

    session_id: str
    calls: int
    edits: int
    """Calls of these that changed it: edits, deletions, moves."""
    kinds: tuple[str, ...]
    first_at: datetime | None
    last_at: datetime | None


class FileTouch(NamedTuple):
    """A call that read or changed a file, and the part of its message that it is."""

    path: str
    """The file, from anywhere."""
    call: ToolCall
    part: int
    """Index in the message's parts."""


class FileHistory(NamedTuple):
    """Everything that was done to a file."""

    uses: tuple[FileUse, ...]
    """By session, the last first."""
    touches: Page[FileTouch]
    """Call by call, the newest first."""


class FileFilter(NamedTuple):
    """Which files; what is None does not matter."""

    text: str | None = None
    """What the path contains, in any case."""
    session: str | None = None
    project: str | None = None
    agent: str | None = None
    changed: bool | None = None
    """True: only files that some call changed."""


class TouchedFile(NamedTuple):
    """A file, and how much was done to it."""

    path: str
    sessions: int
    calls: int
    edits: int
    last_at: datetime | None


class UsageTotals(NamedTuple):
    """Tokens and money of many model calls, and what these sums do not contain."""

    calls: int = 0
    unknown_calls: int = 0
    """Calls without any token count; they are in no sum."""
    unpriced_calls: int = 0
    """Calls with tokens for which no price is known; they are not in `cost`."""
    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    tool_prompt: int = 0
    lower_bound_calls: int = 0
    """Calls whose output the log states only as "at least"."""
    cost: Decimal | None = None
    """US dollars, priced; None when no call could be priced."""
    reported_cost: Decimal | None = None
    """US dollars as the agents wrote them at single calls, never added to `cost`; None when they wrote none."""

    @property
    def tokens(self) -> int:
        """All tokens that are known."""
        return sum(self[3:11])


class UsageRow(NamedTuple):
    """The usage of one day (`2026-11-20`), model, project (path), session (id), agent or subagent (session id)."""

    name: str | None
    """None where the log does not tell, and for what no subagent did."""
    totals: UsageTotals
    label: str | None = None
    """What people call it, where that is not the name: a project's or session's title."""


class UsageReport(NamedTuple):
    """Usage by something, and in all."""

    by: UsageBy
    rows: tuple[UsageRow, ...]
    totals: UsageTotals


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


class ProjectSummary(NamedTuple):
    """A project and how much of it there is (subagents not counted)."""

    path: str
    name: str
    sessions: int
    updated_at: datetime | None


class ModelSummary(NamedTuple):
    """A model and how often it was called."""

    name: str
    calls: int
    sessions: int


class AgentSummary(NamedTuple):
    """An agent and how much of it there is."""

    agent: str
    sessions: int
    subagents: int
    sources: int
    updated_at: datetime | None


class SourceInfo(NamedTuple):
    """A file that was read."""

    path: str
    agent: str
    kind: str
    session_id: str | None
    size: int
    """Bytes as of the last pass."""
    generation: int
    cursor: int
    """Bytes that are read."""
    lines: int
    read_at: datetime | None
    vanished_at: datetime | None
    problem: str | None
    """Why it could not be read on the last pass."""


class StoredDiagnostic(NamedTuple):
    """What could not be read, where, and why."""

    path: str
    agent: str
    session_id: str | None
    offset: int
    length: int
    line: int | None
    json_path: str | None
    severity: str
    reason: str


class DiagnosticFilter(NamedTuple):
    """Which diagnostics."""

    agent: str | None = None
    session: str | None = None
    path: str | None = None
    severity: Literal["error", "note"] | None = None


class RunFilter(NamedTuple):
    """Which runs; times bound when they were made."""

    agent: str | None = None
    status: str | None = None
    """One of `turnlog.store.runs.RunStatus`."""
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class RawRecord(NamedTuple):
    """The bytes of one record, as the agent wrote them."""

    provenance: Provenance
    data: bytes


class RawSource(NamedTuple):
    """The bytes of one source of a session, in pieces."""

    source: SourceInfo
    pieces: Iterator[bytes]


class OutlineEntry(NamedTuple):
    """A landmark of a session: a prompt, a compaction, a rewind, a failure that is no tool's."""

    position: int
    kind: str
    """The message's origin (`prompt`, `command`, `shell`, `subagent_prompt`), `compaction`, `rewind` or `error`."""
    text: str
    message_id: str | None = None
    turn: int | None = None
    created_at: datetime | None = None
    fate: Fate | str | None = None


class Annotations(NamedTuple):
    """What the user said about a session. It outlives a rebuild."""

    title: str | None = None
    starred: bool = False
    archived: bool = False
    tags: tuple[str, ...] = ()
    note: str | None = None
    changed_at: datetime | None = None


class AnnotationsChange(TypedDict, total=False):
    """What is to be said of a session from now on; what is left out stays as it is, None and nothing empty it."""

    title: str | None
    starred: bool
    archived: bool
    tags: Sequence[str]
    note: str | None


class BlobContent(NamedTuple):
    """A large or binary content."""

    data: bytes
    media_type: str | None


class ChangeEntry(NamedTuple):
    """An entry of the change sequence."""

    sequence: int
    session_id: str | None
    kind: ChangeKind
    at: datetime


class SessionChanges(NamedTuple):
    """What changed in a session between two numbers of the change sequence, as JSON for a browser."""

    messages: list[bytes]
    """JSON of each message that is new or has changed, large contents as previews."""
    rows: bytes
    """JSON: a placement row for each of these messages, then of those whose place alone has changed."""
    events: bytes
    """JSON: the events that are new or told anew."""
    gone_messages: list[str]
    """Ids of messages that are no longer part of the session."""
    gone_events: list[tuple[int, str]]
    """Position and id of events that are no longer there; of a result without its call, `<call's id>:<result's id>`."""


class StoreStatus(NamedTuple):
    """How much the store holds, and how fresh it is."""

    path: str
    schema_version: int
    file_size: int
    """Bytes on disk, the write-ahead log included."""
    sessions: int
    subagents: int
    messages: int
    sources: int
    source_bytes: int
    """Bytes of all logs as of the last pass."""
    archive_bytes: int
    """Bytes of the compressed archive."""
    vanished: int
    """Sources whose file is gone; the store still has them."""
    unreadable: int
    """Sources with a problem on the last pass."""
    diagnostics: int
    last_sync_at: datetime | None
    change_sequence: int


EVERY_SESSION = SessionFilter()
EVERY_TOOL_CALL = ToolCallFilter()
EVERY_DIAGNOSTIC = DiagnosticFilter()
EVERY_FILE = FileFilter()
ALL_USAGE = UsageFilter()
EVERY_RUN = RunFilter()


class Store(Protocol):
    """A store of sessions: read by many threads at once, closed once.

    Times in answers are UTC and aware. Every method that takes the id of a session or message raises NotFoundError
    when there is none of that id, and StoreError when the database cannot be read.
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
        """Close every connection. The store answers nothing afterwards."""
        ...

    def sessions(
        self,
        filter: SessionFilter = EVERY_SESSION,
        *,
        sort: SessionSort = "updated",
        limit: int = 50,
        cursor: str | None = None,
        count: bool = False,
    ) -> Page[Session]:
        """Sessions, page by page; `count` fills in the page's `total`. Raises ValueError for a foreign cursor."""
        ...

    def session(self, session_id: str) -> Session:
        """One session."""
        ...

    def find_session(self, agent: str, external_id: str, ownership: Ownership | None = None) -> Session | None:
        """The session an agent knows by this id, of one owner when several have it (R-C12, R-C13)."""
        ...

    def children(self, session_id: str) -> list[Session]:
        """Sessions that came out of this one, oldest first."""
        ...

    def previews(self, session_ids: Iterable[str]) -> Mapping[str, SessionPreview]:
        """What lists show of these sessions besides themselves; one that is not stored is left out."""
        ...

    def turn_facts(self, session_ids: Iterable[str]) -> Mapping[str, TurnFacts]:
        """How the last turn of these sessions stands; one that is not stored is left out."""
        ...

    def newest_runs(self, session_ids: Iterable[str]) -> Mapping[str, Run]:
        """The newest run of each of these sessions; one that turnlog did not start is left out."""
        ...

    def relationships(self, session_id: str) -> list[SessionLink]:
        """Every relationship in which the session is parent or child."""
        ...

    def messages(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int | None = None,
        fates: Iterable[Fate] | None = None,
        resolve_blobs: bool = True,
    ) -> list[PlacedMessage]:
        """Messages of a session in their order; `limit` counts from `after`, back from `before`, or about `around`."""
        ...

    def places(
        self, session_id: str, *, fates: Iterable[Fate], since: int | None = None, limit: int = 1000
    ) -> list[MessagePlace]:
        """The messages of these fates in their order, from a position on, without their contents."""
        ...

    def bodies(
        self, session_id: str, first: int, last: int, *, fates: Iterable[Fate], resolve_blobs: bool = True
    ) -> dict[str, bytes]:
        """Message id -> canonical JSON as its own records say it, of the messages between two positions."""
        ...

    def child_sessions(self, session_id: str) -> Mapping[str, str]:
        """Tool call id -> id of the subagent session that the call started."""
        ...

    def history(self, session_id: str, *, resolve_blobs: bool = True) -> list[HistoryEvent]:
        """All that happened, in the order in which it arrived, results as events of their own."""
        ...

    def events(self, session_id: str, *, position: int | None = None, type: str | None = None) -> list[HistoryEvent]:
        """What happened besides messages and results of known calls, in order.

        Of one position, or of one type (`tool-result`: results whose call is not known), where one is named.
        """
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
        """A piece of a session as JSON for a browser, without decoding a message."""
        ...

    def message(
        self, message_id: str, *, session_id: str | None = None, structured: bool = False, resolve_blobs: bool = True
    ) -> Message:
        """One message; `structured` reads the agent's own JSON of its results from the archive.

        Places of results and child sessions are those of `session_id`, or of the session that pays.
        """
        ...

    def memberships(self, message_id: str) -> list[Membership]:
        """The sessions that hold a message, and its place in each."""
        ...

    def records(self, message_id: str, *, session_id: str | None = None) -> list[RawRecord]:
        """The records that a message was made from, in the order of the log."""
        ...

    def tool_calls(
        self,
        filter: ToolCallFilter = EVERY_TOOL_CALL,
        *,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[ToolCall]:
        """Tool calls, newest first; those of one session in their order (R-S27, R-C12)."""
        ...

    def tool_usage(self, filter: ToolCallFilter = EVERY_TOOL_CALL) -> list[ToolUsage]:
        """How often each tool was called and failed, the most called first (R-S41)."""
        ...

    def reasoning(self, session_id: str | None = None) -> ReasoningVolume:
        """How much was thought, in one session or in all (R-S41)."""
        ...

    def file_history(
        self, path: str, *, changed: bool = False, limit: int = 50, cursor: str | None = None
    ) -> FileHistory:
        """What was done to a file, told by its path, or to every file whose path ends with this one.

        A path that a session wrote without its folder is understood from the session's. `changed` leaves out calls
        that only read. An unknown path has no history. Raises ValueError for a foreign cursor.
        """
        ...

    def touched_files(self, filter: FileFilter = EVERY_FILE, *, limit: int = 200) -> list[TouchedFile]:
        """Files that calls read or changed, the last touched first."""
        ...

    def usage(self, by: UsageBy = "day", filter: UsageFilter = ALL_USAGE) -> UsageReport:
        """Tokens and cost, from the totals kept at every write."""
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

    def sources(self, session_id: str | None = None) -> list[SourceInfo]:
        """Files that were read, of one session or all, by path."""
        ...

    def diagnostics(
        self,
        filter: DiagnosticFilter = EVERY_DIAGNOSTIC,
        *,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[StoredDiagnostic]:
        """What could not be read, by path and place; `total` says how many there are."""
        ...

    def record(self, source: str, offset: int, length: int) -> bytes:
        """Bytes of a source by its path, as they were read."""
        ...

    def raw(self, session_id: str) -> Iterator[RawSource]:
        """The bytes of every source of a session, its log first, also when the files are gone."""
        ...

    def spill(self, session_id: str, name: str) -> bytes:
        """The whole of an output that its result only previews (`ToolResult.spilled_to`)."""
        ...

    def blob(self, sha256: str) -> BlobContent:
        """A large or binary content by the hash in its reference."""
        ...

    def outline(self, session_id: str) -> list[OutlineEntry]:
        """Prompts, compactions and rewinds, in order."""
        ...

    def runs(self, filter: RunFilter = EVERY_RUN, *, limit: int = 50, cursor: str | None = None) -> Page[Run]:
        """What was started through turnlog, newest first (R-S35)."""
        ...

    def run(self, run_id: str) -> Run:
        """One run, by its id or a beginning that no other run's id has."""
        ...

    def annotations(self, session_ids: Iterable[str]) -> Mapping[str, Annotations]:
        """What the user said about these sessions; one about which nothing was said is left out."""
        ...

    def annotate(self, session_id: str, **change: Unpack[AnnotationsChange]) -> Annotations:
        """Change what the user says about a session; gives back all of it with its time."""
        ...

    def changes(self, after: int, limit: int = 1000) -> list[ChangeEntry]:
        """What changed after this number of the change sequence, in the order of the commits."""
        ...

    def last_change(self) -> int:
        """The number of the last change; 0 before the first."""
        ...

    def parents(self, session_ids: Iterable[str]) -> Mapping[str, str]:
        """Of those of these sessions that are subagents: the session that each came out of, where it is stored."""
        ...

    def session_changes(self, session_id: str, after: int, until: int, *, limit: int = 200) -> SessionChanges | None:
        """What changed in a session after `after` and up to `until`; both are the last number of some commit.

        None when more than `limit` messages or events did, or everything was made anew: it must be read again.
        """
        ...

    def status(self) -> StoreStatus:
        """Counts, sizes and freshness."""
        ...
