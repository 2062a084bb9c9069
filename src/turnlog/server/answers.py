"""What the server says: one struct an answer, encoded by msgspec and described in OpenAPI under the same name.

Fields of an answer are always there (None is unknown); the model's own values inside it leave out their defaults.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Self

import msgspec

from turnlog.model import Fate, HistoryEvent, Membership, Message, Provenance, Role, Session, ToolCallPart, Usage
from turnlog.replay.events import ReplayEvent
from turnlog.store import base, states
from turnlog.store import runs as stored
from turnlog.store.search.base import SearchField


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A value that only this server's clients see."""

    @classmethod
    def of(cls, value: object, **given: Any) -> Self:
        """Make it of the attributes of the same names, but for those that are given."""
        return cls(**{name: given[name] if name in given else getattr(value, name) for name in cls.__struct_fields__})


# -- sessions


class Annotations(Answer, frozen=True, kw_only=True):
    """What the user said about a session."""

    title: str | None
    starred: bool
    archived: bool
    tags: list[str]
    note: str | None
    changed_at: datetime | None


class OpenCall(Answer, frozen=True, kw_only=True):
    """A tool call without a final result."""

    tool_call_id: str
    tool_name: str
    kind: str
    state: str
    started_at: datetime | None
    summary: str | None
    """A command, a path, a question: its first 200 characters."""


class SessionState(Answer, frozen=True, kw_only=True):
    """What a session was doing when it was asked about, and how that is known."""

    state: states.StateName
    evidence: states.Evidence
    detail: str | None
    since: datetime | None
    quiet_at: datetime | None
    """Of `running` by records alone: when it counts as quiet unless something comes."""
    doing: OpenCall | None

    @classmethod
    def of_state(cls, state: states.SessionState) -> Self:
        """The same with its call as an answer."""
        return cls.of(state, doing=None if state.doing is None else OpenCall.of(state.doing))


class ResumeCommand(Answer, frozen=True, kw_only=True):
    """How the agent goes on with a session."""

    folder: str | None
    """Where it must be started."""
    command: list[str]
    """The program and its arguments, none of them quoted."""


class SessionItem(Session, frozen=True, kw_only=True):
    """A session, what the user said about it, what it is doing, and what a list shows besides."""

    annotations: Annotations | None = None
    state: SessionState | None = None
    resume: ResumeCommand | None = None
    first_prompt: str | None = None
    children: int = 0

    @classmethod
    def of(
        cls,
        session: Session,
        said: base.Annotations | None,
        preview: base.SessionPreview | None,
        state: states.SessionState | None,
        resume: list[str] | None,
    ) -> Self:
        """Join them."""
        facts: dict[str, Any] = {name: getattr(session, name) for name in session.__struct_fields__}
        return cls(
            **facts,
            annotations=None if said is None else Annotations.of(said),
            state=None if state is None else SessionState.of_state(state),
            resume=None if resume is None else ResumeCommand(folder=session.cwd, command=resume),
            first_prompt=preview.first_prompt if preview else None,
            children=preview.children if preview else 0,
        )


class SessionPage(Answer, frozen=True, kw_only=True):
    """A piece of the list of sessions."""

    items: list[SessionItem]
    next_cursor: str | None
    total: int
    change_sequence: int
    """What is shown here is at least as new as this number: changes after it are still to come."""


class SessionAnswer(Answer, frozen=True, kw_only=True):
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


class OutlineEntry(Answer, frozen=True, kw_only=True):
    """A landmark of a session: a prompt, a compaction, a rewind."""

    position: int
    kind: str
    text: str
    message_id: str | None
    turn: int | None
    created_at: datetime | None
    fate: Fate | None


class OutlineAnswer(Answer, frozen=True, kw_only=True):
    """The landmarks of a session, in order."""

    items: list[OutlineEntry]


class Placement(Answer, frozen=True, kw_only=True):
    """What a session adds to a message."""

    position: int
    message_id: str
    turn: int | None
    step: int | None
    fate: Fate
    fate_cause: str | None
    cost: float | None
    """US dollars; 0 when another session pays."""
    children: dict[str, str]
    """Tool call id -> id of the session it started."""
    results: list[tuple[str, int]]
    """Result id and the position at which it arrived."""


class WindowPage(Answer, frozen=True, kw_only=True):
    """A piece of a session: made of stored frames, so this class only describes it."""

    items: list[Message]
    rows: list[Placement]
    events: list[HistoryEvent]
    has_before: bool
    has_after: bool


class UIMessagePage(Answer, frozen=True, kw_only=True):
    """A piece of a session as AI SDK's UI messages: made of stored bodies, so this class only describes it."""

    messages: list[dict[str, Any]]
    has_more: bool
    next_cursor: str | None
    losses: list[UIMessageLoss]


class UIMessageLoss(Answer, frozen=True, kw_only=True):
    """What these UI messages cannot say."""

    feature: str
    path: str
    """Where it stands: the number of the message counts the stored ones of the page."""
    reason: str


class RawRecord(Answer, frozen=True, kw_only=True):
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


class RawRecords(Answer, frozen=True, kw_only=True):
    """Records in the order of the log."""

    items: list[RawRecord]


class EventRecord(Answer, frozen=True, kw_only=True):
    """An event, and what the log says of it."""

    event: HistoryEvent
    records: list[RawRecord]


class EventRecords(Answer, frozen=True, kw_only=True):
    """The events at one position."""

    items: list[EventRecord]


# -- replay


class ReplayedEvent(Answer, frozen=True, kw_only=True):
    """An event of a replay, and how long to wait before it."""

    delay: float
    """Seconds, scaled and capped as was asked for."""
    event: ReplayEvent


class ReplayPage(Answer, frozen=True, kw_only=True):
    """A piece of a replay."""

    items: list[ReplayedEvent]
    start: int
    """Number of the first of these among all."""
    total: int
    next_start: int | None
    """Where the next page begins; null at the end."""


# -- changes


class ChangePlace(Answer, frozen=True, kw_only=True):
    """A place in the change sequence, and nothing else: `ready`, `resync`, `gone`."""

    sequence: int


class SessionsChange(Answer, frozen=True, kw_only=True):
    """Sessions that are new or of which anything has changed."""

    sequence: int
    items: list[SessionItem]


class SessionChange(Answer, frozen=True, kw_only=True):
    """What changed in a session: made of stored bodies, so this class only describes it."""

    sequence: int
    session: SessionItem
    items: list[Message]
    """Messages that are new or have changed, each whole, in their order."""
    rows: list[Placement]
    """One for each of these messages, then those of messages whose place or fate alone has changed."""
    events: list[HistoryEvent]
    """Events that are new or told anew."""
    gone_messages: list[str]
    """Ids of messages that are no longer part of the session."""
    gone_events: list[tuple[int, str]]
    """Position and id of events that are no longer there."""
    children: list[SessionItem]
    """Subagents of which anything has changed."""


# -- runs


class Run(Answer, frozen=True, kw_only=True):
    """What was started through turnlog, and how it went."""

    id: str
    origin: stored.RunOrigin
    status: stored.RunStatus
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
    def of_run(cls, run: stored.Run) -> Self:
        """Make it of what the store has."""
        return cls.of(
            run,
            command=list(run.command),
            tokens=run.usage.total if run.usage else None,
            cost=None if run.cost is None else float(run.cost),
        )


class RunPage(Answer, frozen=True, kw_only=True):
    """A piece of the list of runs."""

    items: list[Run]
    next_cursor: str | None
    total: int


# -- messages


class MessageAnswer(Answer, frozen=True, kw_only=True):
    """A message with everything that is known of it, and its place in each session."""

    message: Message
    memberships: list[Membership]


class ToolCall(Answer, frozen=True, kw_only=True):
    """A tool call as lists show it."""

    tool_call_id: str
    tool_name: str
    kind: str
    state: str
    message_id: str
    session_id: str
    position: int
    agent: str
    started_at: datetime | None
    completed_at: datetime | None
    duration_ms: int | None
    exit_code: int | None
    path: str | None
    input_size: int
    output_size: int


class ToolCallPage(Answer, frozen=True, kw_only=True):
    """A piece of the list of tool calls."""

    items: list[ToolCall]
    next_cursor: str | None


class FileUse(Answer, frozen=True, kw_only=True):
    """What one session did to a file."""

    session: FoundSession
    calls: int
    edits: int
    kinds: list[str]
    first_at: datetime | None
    last_at: datetime | None


class FileTouch(Answer, frozen=True, kw_only=True):
    """A call that read or changed a file."""

    path: str
    """The file, from anywhere."""
    call: ToolCall
    part: ToolCallPart | None
    """The call itself, where it changed the file: its input says how. Large contents are previews."""


class FileAnswer(Answer, frozen=True, kw_only=True):
    """Everything that was done to a file."""

    path: str
    sessions: list[FileUse]
    """The last first."""
    items: list[FileTouch]
    """Call by call, the newest first."""
    next_cursor: str | None


class TouchedFile(Answer, frozen=True, kw_only=True):
    """A file, and how much was done to it."""

    path: str
    sessions: int
    calls: int
    edits: int
    last_at: datetime | None


class TouchedFiles(Answer, frozen=True, kw_only=True):
    """Files, the last touched first."""

    items: list[TouchedFile]


class ToolUsage(Answer, frozen=True, kw_only=True):
    """How often a tool was called, and how that ended."""

    tool_name: str
    kind: str
    calls: int
    failed: int
    denied: int
    aborted: int
    unanswered: int
    duration_ms: int
    unknown_durations: int


class ToolsAnswer(Answer, frozen=True, kw_only=True):
    """All tools, the most called first."""

    items: list[ToolUsage]


# -- search


class SnippetPiece(Answer, frozen=True, kw_only=True):
    """A piece of a snippet; the marked ones are what was found."""

    text: str
    marked: bool


class SessionPosition(Answer, frozen=True, kw_only=True):
    """A place in a session."""

    session_id: str
    position: int


class SearchHit(Answer, frozen=True, kw_only=True):
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


class FoundSession(Answer, frozen=True, kw_only=True):
    """A session in which something was found."""

    id: str
    agent: str
    title: str | None
    project: str | None
    """Path of its project."""


class SearchGroup(Answer, frozen=True, kw_only=True):
    """The hits of one session on one page."""

    session: FoundSession
    hits: list[SearchHit]


class SearchAnswer(Answer, frozen=True, kw_only=True):
    """A page of hits, by session in the order of their first hit."""

    items: list[SearchGroup]
    next_cursor: str | None
    total: int | None
    """Counted for the first page only."""
    total_is_exact: bool
    pending: int
    """Messages that are not searchable yet."""


# -- usage


class UsageTotals(Answer, frozen=True, kw_only=True):
    """Tokens and US dollars of many model calls, and what these sums do not contain."""

    calls: int
    unknown_calls: int
    unpriced_calls: int
    lower_bound_calls: int
    tokens: int
    input: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    cache_write: int
    output: int
    reasoning: int
    tool_prompt: int
    cost: float | None
    reported_cost: float | None

    @classmethod
    def of_totals(cls, totals: base.UsageTotals) -> Self:
        """Totals with their money as numbers."""
        return cls.of(totals, cost=_dollars(totals.cost), reported_cost=_dollars(totals.reported_cost))


class UsageRow(Answer, frozen=True, kw_only=True):
    """The usage of one day, model, project, session, agent or subagent."""

    name: str | None
    label: str | None
    totals: UsageTotals


class UsageAnswer(Answer, frozen=True, kw_only=True):
    """Usage by something, and in all."""

    by: base.UsageBy
    rows: list[UsageRow]
    totals: UsageTotals
    contains: list[str]
    """Sentences on what the sums are made of."""
    missing: list[str]
    """Sentences on what they do not contain."""


# -- what there is


class ProjectSummary(Answer, frozen=True, kw_only=True):
    """A project and how much of it there is."""

    path: str
    name: str
    sessions: int
    updated_at: datetime | None


class ProjectsAnswer(Answer, frozen=True, kw_only=True):
    """All projects, the last used first."""

    items: list[ProjectSummary]


class AgentSummary(Answer, frozen=True, kw_only=True):
    """An agent and how much of it there is."""

    agent: str
    sessions: int
    subagents: int
    sources: int
    updated_at: datetime | None


class AgentsAnswer(Answer, frozen=True, kw_only=True):
    """All agents of which there is anything."""

    items: list[AgentSummary]


class ModelSummary(Answer, frozen=True, kw_only=True):
    """A model and how often it was called."""

    name: str
    calls: int
    sessions: int


class ModelsAnswer(Answer, frozen=True, kw_only=True):
    """All models, the most called first."""

    items: list[ModelSummary]


class Diagnostic(Answer, frozen=True, kw_only=True):
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


class DiagnosticPage(Answer, frozen=True, kw_only=True):
    """A piece of the list of diagnostics."""

    items: list[Diagnostic]
    next_cursor: str | None
    total: int


# -- status


class SyncProblem(Answer, frozen=True, kw_only=True):
    """A file that the last pass could not read."""

    path: str
    reason: str


class HookAnswer(Answer, frozen=True, kw_only=True):
    """That what a hook told is kept."""

    session_id: str
    """Of which session it tells."""


class SyncProgress(Answer, frozen=True, kw_only=True):
    """Where the background's reading of logs stands."""

    state: str = "off"
    """`off`, `running`, `waiting` (between two passes) or `failed`."""
    phase: str | None = None
    """`find`, `read` or `index`, of the running pass."""
    done: int = 0
    total: int = 0
    passes: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    problems: list[SyncProblem] = []


class SearchProgress(Answer, frozen=True, kw_only=True):
    """How far search is behind the store."""

    pending: int | None
    """Messages that are not searchable yet; None when the index cannot be read."""


class StoreCounts(Answer, frozen=True, kw_only=True):
    """How much the store holds, and how fresh it is."""

    path: str
    schema_version: int
    file_size: int
    sessions: int
    subagents: int
    messages: int
    sources: int
    source_bytes: int
    archive_bytes: int
    vanished: int
    unreadable: int
    diagnostics: int
    last_sync_at: datetime | None


class StatusAnswer(Answer, frozen=True, kw_only=True):
    """What the server is and does."""

    version: str
    sample: bool
    change_sequence: int
    sync: SyncProgress
    search: SearchProgress
    store: StoreCounts


def _dollars(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)
