"""What every store answers: the `Store` protocol, and the names of its questions and answers (`store.shapes`).

How they are answered is `store.sqlite` and `store.queries`. Values that hold messages and sessions come from
`turnlog.model`. Importing this module imports no database and nothing of the model, so that a light question (`usage`)
starts fast.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, Unpack

from turnlog.store.shapes.changes import LONGEST_MEMORY, ChangeEntry, ChangeKind, SessionChanges, StoreStatus
from turnlog.store.shapes.files import EVERY_FILE, FileFilter, FileHistory, FileTouch, FileUse, TouchedFile
from turnlog.store.shapes.paging import Page
from turnlog.store.shapes.runs import EVERY_RUN, RunFilter
from turnlog.store.shapes.sessions import (
    EVERY_SESSION,
    Annotations,
    AnnotationsChange,
    MessagePlace,
    OutlineEntry,
    Passage,
    PlacedMessage,
    SessionFilter,
    SessionLink,
    SessionPreview,
    SessionSort,
)
from turnlog.store.shapes.sources import (
    EVERY_DIAGNOSTIC,
    BlobContent,
    DiagnosticFilter,
    RawRecord,
    RawSource,
    SourceInfo,
    StoredDiagnostic,
)
from turnlog.store.shapes.tools import EVERY_TOOL_CALL, ReasoningVolume, ToolCall, ToolCallFilter, ToolUsage
from turnlog.store.shapes.usage import (
    ALL_USAGE,
    AgentSummary,
    ModelSummary,
    ProjectSummary,
    UsageBy,
    UsageFilter,
    UsageReport,
    UsageRow,
    UsageTotals,
)

if TYPE_CHECKING:
    from turnlog.model import Fate, HistoryEvent, Membership, Message, Ownership, Session, ToolKind
    from turnlog.store.runs import Run
    from turnlog.store.states import TurnFacts
    from turnlog.store.window import Window

__all__ = [
    "ALL_USAGE",
    "EVERY_DIAGNOSTIC",
    "EVERY_FILE",
    "EVERY_RUN",
    "EVERY_SESSION",
    "EVERY_TOOL_CALL",
    "LONGEST_MEMORY",
    "AgentSummary",
    "Annotations",
    "AnnotationsChange",
    "BlobContent",
    "ChangeEntry",
    "ChangeKind",
    "DiagnosticFilter",
    "FileFilter",
    "FileHistory",
    "FileTouch",
    "FileUse",
    "MessagePlace",
    "ModelSummary",
    "OutlineEntry",
    "Page",
    "Passage",
    "PlacedMessage",
    "ProjectSummary",
    "RawRecord",
    "RawSource",
    "ReasoningVolume",
    "RunFilter",
    "SessionChanges",
    "SessionFilter",
    "SessionLink",
    "SessionPreview",
    "SessionSort",
    "SourceInfo",
    "Store",
    "StoreStatus",
    "StoredDiagnostic",
    "ToolCall",
    "ToolCallFilter",
    "ToolUsage",
    "TouchedFile",
    "UsageBy",
    "UsageFilter",
    "UsageReport",
    "UsageRow",
    "UsageTotals",
]


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
        """Sessions that came out of this one, oldest first; of a chat also those in which its agents tell of it."""
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
        structured: Container[ToolKind] = (),
        resolve_blobs: bool = True,
    ) -> list[PlacedMessage]:
        """Messages of a session in their order; `limit` counts from `after`, back from `before`, or about `around`.

        Results of calls of the kinds `structured` have the agent's own JSON, as `message` reads it.
        """
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

    def passage(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int = 40,
    ) -> Passage:
        """A passage of the history, counted in messages, with what it takes to understand it; large contents cut."""
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
