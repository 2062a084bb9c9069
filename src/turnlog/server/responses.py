"""The bodies of the server's responses, encoded by msgspec and described in OpenAPI under their own names.

Where a body is a value of the store or of the model, or a list of them, that value is encoded as it is: the types here
only add what the wire adds. Their fields are always there (null is unknown); the model's own values inside them leave
out their defaults.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self, TypeAlias

import msgspec

from turnlog.commits.links import LineRange
from turnlog.model import (
    CompactionEvent,
    Cost,
    ErrorEvent,
    InterruptEvent,
    Membership,
    Message,
    Provenance,
    RecordEvent,
    RewindEvent,
    Role,
    RunMetadataEvent,
    Session,
    ToolCallPart,
    ToolResultEvent,
    Usage,
)
from turnlog.replay.events import ReplayEvent
from turnlog.server.reports import SyncProgress
from turnlog.store.choices import RunStatus
from turnlog.store.insights import ContextStep
from turnlog.store.search.base import SearchField
from turnlog.store.session_state import SessionState
from turnlog.store.usage_report import ModelSummary, ProjectSummary
from turnlog.store.values import (
    Annotations,
    OutlineEntry,
    PlacedMessage,
    Run,
    RunOrigin,
    SessionPreview,
    StoreCounts,
    StoredDiagnostic,
    StoreValue,
    Task,
    ToolCall,
    ToolUsage,
    TouchedFile,
    UploadLevel,
)
from turnlog.store.window import MessageRow

PlacedEvent: TypeAlias = (
    ToolResultEvent | CompactionEvent | RewindEvent | InterruptEvent | ErrorEvent | RunMetadataEvent | RecordEvent
)
"""What a session holds besides messages."""


class ResponseBody(StoreValue, frozen=True, kw_only=True):
    """A value that only this server's clients see."""

    @classmethod
    def of(cls, value: object, **given: Any) -> Self:
        """Make it of the attributes of the same names, but for those that are given."""
        return cls(**{name: given[name] if name in given else getattr(value, name) for name in cls.__struct_fields__})


# -- sessions


class SessionPosition(ResponseBody, frozen=True, kw_only=True):
    """A place in a session."""

    session_id: str
    position: int


class FoundSession(ResponseBody, frozen=True, kw_only=True):
    """A session in which something was found."""

    id: str
    agent: str
    title: str | None
    project: str | None
    """Path of its project."""


class SearchedSession(FoundSession, frozen=True, kw_only=True):
    """A session that a search found."""

    project_name: str | None = None
    """Name of its project: the user's, or that of the folder."""
    user: str | None = None
    """Id of the person whose it is, on a hub."""


class ResumeCommand(ResponseBody, frozen=True, kw_only=True):
    """How the agent goes on with a session."""

    folder: str | None
    """Where it must be started."""
    command: list[str]
    """The program and its arguments, none of them quoted."""
    problem: str | None
    """Why it cannot be started there; null if nothing is known."""


class SessionItem(Session, frozen=True, kw_only=True):
    """A session, what the user said about it, what it is doing, and what a list shows besides."""

    annotations: Annotations | None = None
    state: SessionState | None = None
    resume: ResumeCommand | None = None
    first_prompt: str | None = None
    children: int = 0
    cost_with_subagents: Cost | None = None
    """Of the session and of all subagents below it; null if it has no subagents, or no call could be priced."""
    unpriced_with_subagents: int = 0
    active_ms: int | None = None
    """Milliseconds between its own messages, without gaps of more than ten minutes; null if none has a time."""
    upload_level: UploadLevel | None = None
    """On a hub, how much of the session its machine has sent; null elsewhere, and where no machine has sent it."""

    @classmethod
    def of(
        cls,
        session: Session,
        annotations: Annotations | None,
        preview: SessionPreview | None,
        state: SessionState | None,
        resume: ResumeCommand | None,
    ) -> Self:
        """The session with what is known of it besides; `resume` is how its agent goes on."""
        return cls(
            **msgspec.structs.asdict(session),
            annotations=annotations,
            state=state,
            resume=resume,
            first_prompt=preview.first_prompt if preview else None,
            children=preview.children if preview else 0,
            cost_with_subagents=preview.cost_with_subagents if preview else None,
            unpriced_with_subagents=preview.unpriced_with_subagents if preview else 0,
            active_ms=preview.active_ms if preview else None,
            upload_level=preview.upload_level if preview and not session.native else None,
        )


class FileLinesResponse(ResponseBody, frozen=True, kw_only=True):
    """Where the lines of a file came from."""

    path: str
    lines: list[LineRange]
    """In their order; all lines of the file, as it is in the working tree."""


class HandoffTarget(ResponseBody, frozen=True, kw_only=True):
    """An agent that a session can be handed to."""

    agent: str
    display_name: str
    is_installed: bool


class HandoffTargetsResponse(ResponseBody, frozen=True, kw_only=True):
    """The agents that a session can be handed to, those that are installed first."""

    items: list[HandoffTarget]


class HandoffResponse(ResponseBody, frozen=True, kw_only=True):
    """A session that was handed over."""

    session_id: str
    """The new session. It is there once its log was read."""
    losses: list[str]
    """What was not carried, in sentences."""
    notes: list[str]
    """What else the user should know, in sentences."""


class ForgetResponse(ResponseBody, frozen=True, kw_only=True):
    """What was removed, or what would be."""

    forgotten: bool
    """False for a dry run."""
    session_ids: tuple[str, ...]
    """The session, its subagents, and the chats that it answered."""
    messages: int
    """Messages that no other session has."""
    files: tuple[str, ...]
    """Paths of archived files that go from the store; the agent's own files stay."""
    archived_bytes: int
    shared: dict[str, int]
    """Other session -> number of messages shared with it; they stay there."""


class MembershipsResponse(ResponseBody, frozen=True, kw_only=True):
    """Places of messages in their session."""

    items: list[Membership]


class SessionPage(ResponseBody, frozen=True, kw_only=True):
    """A piece of the list of sessions."""

    items: list[SessionItem]
    next_cursor: str | None
    total: int | None
    """How many there are on all pages; null with `status`, which is read off each session."""
    change_sequence: int
    """What is shown here is at least as new as this number: changes after it are still to come."""


class SessionResponse(ResponseBody, frozen=True, kw_only=True):
    """A session and its relatives."""

    session: SessionItem
    parent: SessionItem | None
    children: list[SessionItem]
    """Subagents, oldest first."""
    forks: list[SessionItem]
    """Forks and continuations, oldest first."""
    first_position: int | None
    last_position: int | None
    change_sequence: int
    """What is shown here is at least as new as this number: changes after it are still to come."""


class OutlineResponse(ResponseBody, frozen=True, kw_only=True):
    """The landmarks of a session, in order."""

    items: list[OutlineEntry]


class ContextResponse(ResponseBody, frozen=True, kw_only=True):
    """The model calls of a session, in order."""

    items: list[ContextStep]


# -- what a session holds


class WindowPage(ResponseBody, frozen=True, kw_only=True):
    """A piece of a session: made of stored frames, so this class only describes it."""

    items: list[Message]
    rows: list[MessageRow]
    events: list[PlacedEvent]
    has_before: bool
    has_after: bool


class MessageResponse(ResponseBody, frozen=True, kw_only=True):
    """A message with everything that is known of it, and its place in each session."""

    message: Message
    memberships: list[Membership]


class RecordText(ResponseBody, frozen=True, kw_only=True):
    """A record as the agent wrote it."""

    source: str
    offset: int | None
    length: int | None
    text: str
    exact: bool
    """False when the bytes are not UTF-8 and `text` is repaired."""

    @classmethod
    def of_bytes(cls, place: Provenance, data: bytes) -> Self:
        """A record as text; bytes that are no UTF-8 become U+FFFD, and are owned up to."""
        text = data.decode("utf-8", "replace")
        return cls.of(place, text=text, exact="\ufffd" not in text or text.encode() == data)


class RecordsResponse(ResponseBody, frozen=True, kw_only=True):
    """Records in the order of the log."""

    items: list[RecordText]


class EventRecord(ResponseBody, frozen=True, kw_only=True):
    """An event, and what the log says of it."""

    event: PlacedEvent
    records: list[RecordText]


class EventRecords(ResponseBody, frozen=True, kw_only=True):
    """The events at one position."""

    items: list[EventRecord]


class UIMessageLoss(ResponseBody, frozen=True, kw_only=True):
    """What these UI messages cannot say."""

    feature: str
    path: str
    """Its place: the number of the message counts the stored ones of the page."""
    reason: str


class UIMessagePage(ResponseBody, frozen=True, kw_only=True):
    """A piece of a session as AI SDK's UI messages: made of stored bodies, so this class only describes it."""

    messages: list[dict[str, Any]]
    has_more: bool
    next_cursor: str | None
    losses: list[UIMessageLoss]


class ReplayedEvent(ResponseBody, frozen=True, kw_only=True):
    """An event of a replay, and how long to wait before it."""

    delay: float
    """Seconds, scaled and capped as the request says."""
    event: ReplayEvent


class ReplayPage(ResponseBody, frozen=True, kw_only=True):
    """A piece of a replay."""

    items: list[ReplayedEvent]
    before: int | None
    """The cursor of the page before; null at the start."""
    after: int | None
    """The cursor of the next page; null at the end."""


# -- tool calls and files


class ToolCallPage(ResponseBody, frozen=True, kw_only=True):
    """A piece of the list of tool calls."""

    items: list[ToolCall]
    next_cursor: str | None


class ToolsResponse(ResponseBody, frozen=True, kw_only=True):
    """All tools, the most called first."""

    items: list[ToolUsage]


class FileUseItem(ResponseBody, frozen=True, kw_only=True):
    """What one session did to a file."""

    session: FoundSession
    calls: int
    edits: int
    kinds: list[str]
    first_at: datetime | None
    last_at: datetime | None


class FileTouchItem(ResponseBody, frozen=True, kw_only=True):
    """A call that read or changed a file."""

    path: str
    """The file, from anywhere."""
    call: ToolCall
    index: int
    """Of its part in the message."""
    part: ToolCallPart | None
    """The call itself, where it changed the file: its input says how. Large contents are previews."""


class FileHistoryResponse(ResponseBody, frozen=True, kw_only=True):
    """Everything that was done to a file."""

    path: str
    sessions: list[FileUseItem]
    """The last first."""
    items: list[FileTouchItem]
    """Call by call, the newest first."""
    next_cursor: str | None


class TouchedFiles(ResponseBody, frozen=True, kw_only=True):
    """Files, the last touched first."""

    items: list[TouchedFile]


# -- runs and prompts


class RunResponse(ResponseBody, frozen=True, kw_only=True):
    """What was started through turnlog, and how it went; of the stored run only what others may use."""

    id: str
    origin: RunOrigin
    status: RunStatus
    agent: str | None
    session_id: str | None
    command: list[str]
    cwd: str | None
    prompt: str | None
    model: str | None
    system_prompt: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None
    """Negative: the number of the signal that ended it."""
    error: str | None
    result: str | None
    log_path: str | None
    log_problem: str | None
    """Why its log was not read."""
    tokens: int | None
    usage: Usage | None
    cost: float | None
    """US dollars."""
    tool_calls: int | None
    pid: int | None
    boot_id: str | None
    metadata: dict[str, Any]

    @classmethod
    def of_run(cls, run: Run) -> Self:
        """Make it of what the store has."""
        return cls.of(
            run,
            command=list(run.command),
            tokens=run.usage.total if run.usage else None,
            cost=None if run.cost is None else float(run.cost),
        )


class RunPage(ResponseBody, frozen=True, kw_only=True):
    """A piece of the list of runs."""

    items: list[RunResponse]
    next_cursor: str | None
    total: int


class RunMessagePage(ResponseBody, frozen=True, kw_only=True):
    """A piece of the messages of a run, in their order."""

    items: list[PlacedMessage]
    next_cursor: str | None


class PermissionRequest(ResponseBody, frozen=True, kw_only=True):
    """A tool call for which the agent requests permission."""

    id: str
    tool_call_id: str
    tool_name: str | None
    input: Any
    """Its arguments; null if the agent gives none."""
    reason: str | None
    """Why the agent wants to make the call, in its words."""


class PromptResponse(ResponseBody, frozen=True, kw_only=True):
    """Whether a session goes on from the page."""

    can_go_on: bool
    """Whether it may: the server takes prompts, and the agent goes on with sessions."""
    can_ask: bool
    """Whether its agent can request permission here; one that cannot does without what its settings do not allow."""
    running: bool
    """Whether its agent answers a prompt."""
    problem: str | None
    """Why the last prompt failed."""
    permission_requests: list[PermissionRequest]
    """Its open permission requests, oldest first."""


# -- what there is


class ProjectsResponse(ResponseBody, frozen=True, kw_only=True):
    """All projects, the last used first."""

    items: list[ProjectSummary]


class TasksResponse(ResponseBody, frozen=True, kw_only=True):
    """All tasks, the last used first."""

    items: list[Task]


class AgentColour(ResponseBody, frozen=True, kw_only=True):
    """The colour of an agent's mark on light and on dark surfaces, as `#rrggbb`."""

    light: str
    dark: str


class AgentItem(ResponseBody, frozen=True, kw_only=True):
    """An agent, how it is shown, and how much of it there is."""

    agent: str
    display_name: str
    """Its name in ids, where the agent is not installed."""
    colour: AgentColour | None
    """None: any neutral one."""
    sessions: int
    subagents: int
    sources: int
    updated_at: datetime | None


class AgentsResponse(ResponseBody, frozen=True, kw_only=True):
    """All agents of which there is anything."""

    items: list[AgentItem]


class ModelsResponse(ResponseBody, frozen=True, kw_only=True):
    """All models, the most called first."""

    items: list[ModelSummary]


class DiagnosticPage(ResponseBody, frozen=True, kw_only=True):
    """A piece of the list of diagnostics."""

    items: list[StoredDiagnostic]
    next_cursor: str | None
    total: int


# -- search


class SnippetPiece(ResponseBody, frozen=True, kw_only=True):
    """A piece of a snippet; the marked ones are what was found."""

    text: str
    marked: bool


class SearchHit(ResponseBody, frozen=True, kw_only=True):
    """A part of a message in which the query was found."""

    message_id: str
    position: int
    part: int
    """Index in the message's parts."""
    field: SearchField
    role: Role
    tool_name: str | None
    created_at: datetime | None
    snippet: list[SnippetPiece]
    also_in: list[SessionPosition]
    """Other sessions that hold the same message."""


class FoundName(ResponseBody, frozen=True, kw_only=True):
    """Something that a session is called by, in which words of the query are."""

    field: str
    """`title`, `tag`, `project`, `branch` or `file`."""
    text: list[SnippetPiece]


class SearchGroup(ResponseBody, frozen=True, kw_only=True):
    """The hits of one session on one page."""

    session: SearchedSession
    hits: list[SearchHit]
    """The best one if sessions are ranked; none if words are in its names only."""
    names: list[FoundName]
    """Empty unless sessions are ranked."""
    matches: int | None
    """Parts of the session in which all of the query is; None unless sessions are ranked."""
    matches_is_exact: bool
    """False: there may be more."""


class SearchResponse(ResponseBody, frozen=True, kw_only=True):
    """A page of sessions or hits; hits are grouped by session, in the order of their first hit."""

    items: list[SearchGroup]
    next_cursor: str | None
    total: int | None
    """Of `counted`; on the first page only."""
    total_is_exact: bool
    counted: Literal["sessions", "hits"]
    """What the page lists."""
    unindexed: int
    """Messages that are not searchable yet."""
    suggestion: str | None
    """If nothing was found: the query with misspelt words replaced."""
    note: str | None
    """What the query means that people may not expect of it."""


# -- status and changes


class SearchProgress(ResponseBody, frozen=True, kw_only=True):
    """How far search is behind the store."""

    unindexed: int | None
    """Messages that are not searchable yet; None when the index cannot be read."""


class StatusResponse(ResponseBody, frozen=True, kw_only=True):
    """What the server is and does."""

    version: str
    sample: bool
    prompts: bool
    """Whether sessions may go on from the page."""
    hub: bool
    """Whether the sessions are of several people, about whom `/hub/v1` answers."""
    change_sequence: int
    unwritable: str | None
    """Why the store cannot be written now; null if it can, if it is for reading only, and on a hub."""
    sync: SyncProgress
    search: SearchProgress
    store: StoreCounts


class ChangePlace(ResponseBody, frozen=True, kw_only=True):
    """A place in the change sequence, and nothing else: `ready`, `resync`, `gone`."""

    sequence: int


class SessionsUpdate(ResponseBody, frozen=True, kw_only=True):
    """Sessions that are new or of which anything has changed."""

    sequence: int
    items: list[SessionItem]


class SessionUpdate(ResponseBody, frozen=True, kw_only=True):
    """What changed in a session: made of stored bodies, so this class only describes it."""

    sequence: int
    session: SessionItem
    items: list[Message]
    """Messages that are new or have changed, each whole, in their order."""
    rows: list[MessageRow]
    """One for each of these messages, then those of messages whose place or fate alone has changed."""
    events: list[PlacedEvent]
    """Events that are new or changed."""
    gone_messages: list[str]
    """Ids of messages that are no longer part of the session."""
    gone_events: list[tuple[int, str]]
    """Position and id of events that are no longer there."""
    children: list[SessionItem]
    """Subagents of which anything has changed."""


class HookResponse(ResponseBody, frozen=True, kw_only=True):
    """That a hook event is kept."""

    session_id: str
    """The session that the event is about."""


class SignInResponse(ResponseBody, frozen=True, kw_only=True):
    """What signs a browser in."""

    key: str
    """To be sent as `Authorization: Bearer` with every request."""


class SignInLinkResponse(ResponseBody, frozen=True, kw_only=True):
    """A link to the page, which signs one browser in."""

    address: str
    """The page, with a code in its fragment; without one, where the server asks for no token."""
    file: str | None
    """A page that leads there, to be opened in its place where a list of processes would show others the address."""
