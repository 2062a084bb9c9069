"""The JSON that commands write with `--json`, one type per command. Fields are added, never renamed or redefined.

It equals the HTTP API's JSON where both have the same (docs/reference/http-api.md): values of the store and the model
are used unchanged. In all other fields null means unknown, times are ISO 8601 in UTC, sizes are bytes, money is US
dollars. Commands import this module for the type checker only, because it loads the model.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

from turnlog.commits.links import LineRange, OriginLink
from turnlog.server.responses import RunResponse
from turnlog.store.insights import Insights
from turnlog.store.usage_report import ProjectSummary, UsageReport
from turnlog.store.values import AgentVersion, Annotations, StoreStatus, Task, TouchedFile, UnknownKind

InsightsDocument: TypeAlias = Insights
"""`turnlog insights`."""

UsageDocument: TypeAlias = UsageReport
"""`turnlog usage`."""

RunDocument: TypeAlias = RunResponse
"""`turnlog runs show` and `turnlog runs link`."""


class AnnotationsDocument(Annotations, frozen=True, kw_only=True):
    """`turnlog annotate`."""

    session: str
    task: str | None


ProjectDocument: TypeAlias = ProjectSummary
"""`turnlog project rename`, `merge` and `split`: the project as it is now."""


class ProjectsDocument(TypedDict):
    """`turnlog project`."""

    items: list[ProjectSummary]


TaskDocument: TypeAlias = Task
"""`turnlog task rename`: the task as it is now; `delete`: as it was."""


class TasksDocument(TypedDict):
    """`turnlog task`."""

    items: list[Task]


class FileUseDocument(TypedDict):
    """What one session did to a file, with the session."""

    session: str
    calls: int
    edits: int
    kinds: list[str]
    first_at: str | None
    last_at: str | None


class FilesDocument(TypedDict):
    """`turnlog files`: the sessions that touched the given file, or without one the files."""

    sessions: list[FileUseDocument]
    files: list[TouchedFile]


class RunsDocument(TypedDict):
    """`turnlog runs`."""

    items: list[RunDocument]
    next_cursor: str | None
    total: int | None


class SessionsDocument(TypedDict):
    """`turnlog sessions`: items are the model's sessions, each with its `state` (`store.session_state`), or null."""

    items: list[dict[str, Any]]
    next_cursor: str | None
    total: int | None


class ShowDocument(TypedDict):
    """`turnlog show`: the model's session and history events."""

    session: dict[str, Any]
    events: list[dict[str, Any]]


class PlaceDocument(TypedDict):
    """A session that contains the message of a hit, and its place there."""

    session_id: str
    position: int
    title: str | None
    project: str | None
    project_name: str | None


class CommitDocument(TypedDict):
    """What git says of a commit."""

    hash: str
    subject: str
    author: str
    email: str
    authored_at: str | None
    committed_at: str | None
    is_by_bot: bool


class WhyDocument(TypedDict):
    """`turnlog why`: the sessions that a file, line, commit or pull request came from, the best link first."""

    subject: str
    commit: CommitDocument | None
    """The commit, or that of the line; null for a whole file, a pull request, and a line that is not committed."""
    links: list[OriginLink]
    lines: list[LineRange]
    """For a file: where each line came from."""


class HitDocument(TypedDict):
    """A part that matches the query; `marks` are offsets in the snippet, in characters."""

    message_id: str
    agent: str
    role: str
    part: int
    field: str
    tool_name: str | None
    created_at: str | None
    snippet: str
    marks: list[list[int]]
    places: list[PlaceDocument]


class SearchDocument(TypedDict):
    """`turnlog search`. `unindexed`: number of messages that are not searchable yet."""

    hits: list[HitDocument]
    next_cursor: str | None
    total: int | None
    total_is_exact: bool
    unindexed: int
    suggestion: str | None
    note: str | None


class FoundNameDocument(TypedDict):
    """Something that a session is called by, in which words of the query are."""

    field: str
    text: str
    marks: list[list[int]]


class SessionHitsDocument(TypedDict):
    """A session that fits the query; without a hit, words are in its names only."""

    session_id: str
    agent: str
    title: str | None
    project: str | None
    project_name: str | None
    updated_at: str | None
    names: list[FoundNameDocument]
    hit: HitDocument | None
    matches: int
    matches_is_exact: bool


class SessionSearchDocument(TypedDict):
    """`turnlog search` by sessions; `SearchDocument` lists hits."""

    sessions: list[SessionHitsDocument]
    next_cursor: str | None
    total: int | None
    total_is_exact: bool
    unindexed: int
    suggestion: str | None
    note: str | None


class ProblemDocument(TypedDict):
    """A file or folder that could not be read."""

    path: str
    reason: str


class SyncDocument(TypedDict):
    """`turnlog sync`."""

    sources: int
    changed: int
    vanished: int
    bytes: int
    sessions: int
    new_sessions: int
    """Without subagents."""
    new_subagents: int
    messages: int
    diagnostics: int
    problems: list[ProblemDocument]
    seconds: float


class ImportDocument(TypedDict):
    """`turnlog import`."""

    agent: str
    version: str | None
    kind: str
    path: str
    bytes: int
    is_new: bool
    sessions: list[str]
    new_sessions: int
    """Without subagents."""
    new_subagents: int
    messages: int
    diagnostics: int
    problems: list[ProblemDocument]
    seconds: float


class RunImportDocument(TypedDict):
    """`turnlog runs import`; the path of a problem is its place in the imported file."""

    runs: int
    new_runs: int
    linked: int
    histories: int
    problems: list[ProblemDocument]


class AgentSettingsDocument(TypedDict):
    """What was done to one agent's settings. After a failure `problem` has the reason, and nothing was changed."""

    agent: str
    path: str | None
    state: str | None
    changed: bool
    diff: str
    problem: str | None


class HooksDocument(TypedDict):
    """`turnlog hooks install`, `status` and `remove`."""

    hooks: list[AgentSettingsDocument]


class McpDocument(TypedDict):
    """`turnlog mcp install`, `status` and `remove`."""

    servers: list[AgentSettingsDocument]


class ResumeDocument(TypedDict):
    """`turnlog resume --print`."""

    session_id: str
    command: list[str]
    folder: str
    missing: list[str]


class HandoffLossDocument(TypedDict):
    """Something that is not carried, or carried otherwise; `kind` is one of those in docs/reference/handoff.md."""

    kind: str
    message_id: str
    tool_call_id: str | None
    detail: str


HandoffDocument = TypedDict(
    "HandoffDocument",
    {
        "from": str,
        "to": str,
        "session_id": str | None,
        "paths": list[str],
        "size": int,
        "folder": str,
        "command": list[str],
        "turns": int,
        "messages": int,
        "tool_calls": int,
        "tokens": int,
        "notes": list[str],
        "losses": list[HandoffLossDocument],
    },
)
"""`turnlog handoff`. `size` is in bytes, `tokens` an estimate.

Only a session that was written has an id. Without one, `paths` are the folders of its files, and `command` has
`NEW-SESSION` in the place of the id.
"""


class HandoffUndoDocument(TypedDict):
    """`turnlog handoff undo`."""

    session_id: str
    removed: list[str]


class RestoredFileDocument(TypedDict):
    """A file that was written, and the path from which it was archived."""

    path: str
    source: str
    size: int


class RestoreDocument(TypedDict):
    """`turnlog restore`."""

    files: list[RestoredFileDocument]


class ForgetDocument(TypedDict):
    """`turnlog forget`; `shared` is the number of messages that stay because other sessions contain them."""

    forgotten: bool
    session_ids: list[str]
    messages: int
    files: list[str]
    archived_bytes: int
    shared: dict[str, int]


class RebuildDocument(TypedDict):
    """`turnlog rebuild`."""

    sources: int
    messages: int
    diagnostics: int
    problems: list[ProblemDocument]
    skipped: list[str]
    seconds: float


class DatabaseDocument(TypedDict):
    """`turnlog db path`."""

    path: str
    exists: bool


class CompactedFileDocument(TypedDict):
    """A file of the store; sizes are in bytes."""

    path: str
    size_before: int
    size: int


class CompactDocument(TypedDict):
    """`turnlog db compact`."""

    files: list[CompactedFileDocument]
    is_dry_run: bool
    """Nothing was changed: `size` is what the file would have."""


class AgentKindDocument(TypedDict):
    """The number of an agent's records of an unknown kind."""

    kind: str
    count: int


class AgentDocument(TypedDict):
    """An agent, its homes on this machine, and its counts in the store."""

    agent: str
    display_name: str | None
    roots: list[str]
    """Its homes that hold logs."""
    home_folders: list[str]
    """Where its homes are looked for."""
    sources: int
    sessions: int
    subagents: int
    updated_at: str | None
    versions: list[AgentVersion]
    unknown_kinds: list[AgentKindDocument]


class AgentsDocument(TypedDict):
    """`turnlog agents`."""

    items: list[AgentDocument]


class RootDocument(TypedDict):
    """An agent's home, its number of files, and how many of them are new or changed since the last sync.

    `retention_days`: days after which the agent deletes its logs; null if it never does or that is unknown.
    """

    path: str
    sources: int
    pending: int
    retention_days: int | None


class ContextDocument(TypedDict):
    """`turnlog context`: the page is Markdown."""

    project: str
    page: str


class FoundAgentDocument(TypedDict):
    """An agent and its homes on this machine."""

    agent: str
    display_name: str
    roots: list[RootDocument]


class DiagnosticDocument(TypedDict):
    """A file that could not be read (without a line), or a record in it."""

    path: str
    line: int | None
    offset: int | None
    json_path: str | None
    severity: str
    reason: str


class VersionsDocument(TypedDict):
    """Versions of turnlog and of what it runs on."""

    turnlog: str
    python: str
    sqlite: str
    prices: str


class DoctorDocument(TypedDict):
    """`turnlog doctor`.

    `unindexed`: number of messages that are not searchable yet; null without a store, or if the index cannot be read.
    `links_not_followed`: paths of symbolic links below agents' folders.
    """

    versions: VersionsDocument
    store: StoreStatus | None
    unindexed: int | None
    agents: list[FoundAgentDocument]
    links_not_followed: list[str]
    diagnostics: list[DiagnosticDocument]
    diagnostics_total: int
    unknown_kinds: list[UnknownKind]
    warnings: list[str]


class HubPushDocument(TypedDict):
    """`turnlog hub push`. `sent`: false if this is what would be sent. `sessions`: id -> upload level.

    `in_full`: session at `redacted` -> how many of its messages leave with their secrets.
    """

    sent: bool
    messages: int
    sessions: dict[str, str]
    masked: dict[str, int]
    in_full: dict[str, int]
    refused: list[str]
    taken_back: list[str]
    lowered: list[str]


class HubBudgetDocument(TypedDict):
    """A budget of the hub. `spent`, `unpriced_calls`: null where they are unknown, or not for this person."""

    scope: Literal["team", "project", "person"]
    project: str | None
    month: str
    limit: float
    spent: float | None
    unpriced_calls: int | None
    state: Literal["within", "nearly spent", "exceeded"] | None


class HubStatusDocument(TypedDict):
    """`turnlog hub status`: what is to be sent, and the last problem.

    `behind`: changes that are not sent yet; `contents` and `files`: large contents and log files of changes that are.
    Null while the hub does not answer. `levels_changed`: whether the next push takes back and sends all again.
    """

    url: str
    user: str
    machine: str
    agreed: bool
    levels_changed: bool
    behind: int | None
    contents: int | None
    files: int | None
    pushed_at: str | None
    problem: str | None
    budgets: list[HubBudgetDocument]
