"""The values that a store returns besides the model's own: facts about sessions, tool calls, files, sources, runs.

The server and the CLI encode these frozen structs directly. Times are UTC with a time zone, sizes are bytes.
`store.usage_report` has usage and summaries of agents, models and projects, `store.session_state` the state of a
session, `store.window` windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypedDict, TypeVar

import msgspec

from turnlog.arguments import checked_fields
from turnlog.model import Cost, Fate, HistoryEvent, Membership, Message, Ownership, Part, Provenance, Relationship
from turnlog.model.usage import Usage
from turnlog.store.choices import RunStatus

ItemT = TypeVar("ItemT")

CHAT_AGENT: Final = "turnlog"
"""The agent of chats: their ids are `turnlog:<name>`. Other programs may use other names."""


class StoreValue(msgspec.Struct, frozen=True):
    """A value of a store. Its JSON always has all fields; null means unknown."""


class Page(StoreValue, Generic[ItemT], frozen=True):
    """One page of a list, and the cursor of the next page."""

    items: tuple[ItemT, ...]
    next_cursor: str | None = None
    """Opaque; None on the last page. It stays valid while sessions are added or deleted."""
    total: int | None = None
    """Number of items on all pages, if it was requested."""


UploadLevel: TypeAlias = Literal["metrics", "redacted", "full"]
"""How much of a session has left its machine; `none` is not here, because nothing has."""


class SessionPreview(StoreValue, frozen=True):
    """What a list shows of a session in addition to its own fields."""

    first_prompt: str | None
    """The first 200 characters of the first prompt with text; None if no prompt has any."""
    children: int
    """Number of child sessions: subagents, forks, continuations."""
    cost_with_subagents: Cost | None = None
    """Of the session and of all subagents below it; None if it has no subagents, or no call could be priced."""
    unpriced_with_subagents: int = 0
    """Model calls whose cost is unknown and not in `cost_with_subagents`."""
    active_ms: int | None = None
    """Milliseconds between its own messages, without gaps of more than ten minutes; None if none has a time."""
    upload_level: UploadLevel | None = None
    """On a hub, how much of the session its machine has sent; None elsewhere."""


class SessionLink(StoreValue, frozen=True):
    """A relationship of a session, from the point of view of either side."""

    child_session_id: str
    relationship: Relationship


class Annotations(StoreValue, frozen=True):
    """The user's annotations of a session. A rebuild keeps them."""

    title: str | None = None
    starred: bool = False
    archived: bool = False
    tags: tuple[str, ...] = ()
    note: str | None = None
    pins: tuple[str, ...] = ()
    """Ids of pinned messages."""
    changed_at: datetime | None = None


class AnnotationsChange(TypedDict, total=False):
    """A change of annotations. Missing fields stay as they are; None and empty values clear them."""

    title: str | None
    starred: bool
    archived: bool
    tags: Sequence[str]
    note: str | None
    pins: Sequence[str]


class SessionFacts(TypedDict, total=False):
    """The facts that a program gives to a native session. Missing fields and None stay as they are."""

    ownership: Ownership
    """The owner, replaced as a whole."""
    title: str | None
    """Without a title, the beginning of the first prompt is used."""
    cwd: str | None
    """The session's folder, which the first time also becomes its project."""
    git_branch: str | None
    git_commit: str | None
    created_at: datetime | None
    """The earliest value given; now, for a new session."""
    updated_at: datetime | None
    """The latest value given; now, for a new session."""
    metadata: Mapping[str, Any]
    """JSON values by name, merged with the stored ones."""


class Task(StoreValue, frozen=True):
    """A task: sessions that belong together, of one or several agents."""

    id: str
    """What `ownership.task` of its sessions is."""
    name: str
    """As people call it; the id, where nobody has named it."""
    user: str | None
    """Who created it."""
    sessions: int
    """Without subagents."""
    created_at: datetime | None
    """None where only sessions name it."""
    updated_at: datetime | None
    """The last activity of its sessions."""


class PlacedMessage(StoreValue, frozen=True):
    """A message, its place in the session, and what it cost there."""

    message: Message
    membership: Membership
    cost: Cost | None = None
    """Computed from its usage, even if another session is billed; None if the price is unknown."""


class StoredPart(StoreValue, frozen=True):
    """A part of a message, and its id in the store."""

    id: str
    """See `turnlog.model.message.part_ids`."""
    message_id: str
    sequence: int
    """Its index in the message's parts."""
    part: Part


class MessagePlace(StoreValue, frozen=True):
    """The position of a message in a session, and its role."""

    position: int
    message_id: str
    role: str


class Passage(StoreValue, frozen=True):
    """What happened between two positions of a session, with the context that it needs."""

    events: list[HistoryEvent]
    """In causal order, including items around and before the passage on which its meaning depends."""
    first: int
    end: int
    """The bounds of the passage itself: positions from `first` up to and excluding `end`."""
    interrupted: frozenset[str]
    """Ids of messages that the user stopped, according to any record of the session."""
    before: int | None = None
    """The previous passage ends at this position; None at the beginning."""
    after: int | None = None
    """The next passage begins after this position; None at the end."""


class LookedAt(NamedTuple):
    """Which messages, or which events, of a session were looked at for secrets."""

    new: frozenset[int]
    """Positions of those that were not, or that changed since."""
    found: dict[int, int]
    """Position -> what was found there (`turnlog.redact.Learned`), of those that have any."""


class SecretPlaces(NamedTuple):
    """Where a session has secrets, as far as that was kept."""

    until: int | None
    """The number of the last change that is in what has to be looked at now; None: nothing can be kept."""
    messages: LookedAt
    events: LookedAt


class OutlineEntry(StoreValue, frozen=True):
    """A landmark of a session: a prompt, a compaction, a rewind, an error that is not a tool's, or a pinned message."""

    position: int
    kind: str
    """The origin of the message (`prompt`, `command`, `shell`, `subagent_prompt`), `compaction`, `rewind`, `error`, or
    `pin` for a message that the user has pinned."""
    text: str
    message_id: str | None = None
    turn: int | None = None
    created_at: datetime | None = None
    fate: Fate | None = None


class ToolCall(StoreValue, frozen=True):
    """A tool call in lists, without its input and output, which `Store.message` has."""

    tool_call_id: str
    tool_name: str
    kind: str
    state: str
    message_id: str
    session_id: str
    """The session that is billed for the message; copies in forks are not listed."""
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
    """Characters of the output's text."""


class ToolUsage(StoreValue, frozen=True):
    """How often a tool was called, and the outcomes."""

    tool_name: str
    kind: str
    calls: int
    failed: int
    denied: int
    aborted: int
    unanswered: int
    """Calls without a final result."""
    duration_ms: int
    """Sum over the calls with a known duration."""
    unknown_durations: int


class ReasoningVolume(StoreValue, frozen=True):
    """The amount of reasoning."""

    parts: int
    characters: int
    """Characters that are visible; withheld reasoning has none."""
    messages: int
    tokens: int
    """Tokens counted apart from output; if a log does not separate them, they are in `output`."""


class TouchedFile(StoreValue, frozen=True):
    """A file, with counts of what was done to it."""

    path: str
    sessions: int
    calls: int
    edits: int
    """The number of these calls that changed it: edits, deletions and moves that did not fail."""
    last_at: datetime | None


class FileUse(StoreValue, frozen=True):
    """What one session did to a file."""

    session_id: str
    calls: int
    edits: int
    """The number of these calls that changed it: edits, deletions and moves that did not fail."""
    kinds: tuple[str, ...]
    first_at: datetime | None
    last_at: datetime | None


class FileTouch(StoreValue, frozen=True):
    """A call that read or changed a file, with the index of its part."""

    path: str
    """Absolute path of the file, if the session's folder is known."""
    call: ToolCall
    part: int
    """Index in the message's parts."""


class FileHistory(StoreValue, frozen=True):
    """Everything that was done to a file."""

    uses: tuple[FileUse, ...]
    """By session, last used first."""
    touches: Page[FileTouch]
    """By call, newest first."""


class SourceInfo(StoreValue, frozen=True):
    """A source that was read."""

    path: str
    agent: str
    kind: str
    session_id: str | None
    size: int
    """Bytes at the last sync."""
    generation: int
    cursor: int
    """Bytes that were read."""
    lines: int
    read_at: datetime | None
    vanished_at: datetime | None
    problem: str | None
    """Why the last sync could not read it."""


class StoredDiagnostic(StoreValue, frozen=True):
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


class DiagnosticCount(StoreValue, frozen=True):
    """The number of an agent's diagnostics with the same JSON path."""

    agent: str
    severity: str
    json_path: str | None
    count: int


class UnknownKind(StoreValue, frozen=True):
    """Records of a kind that this version does not know. They are stored unchanged."""

    agent: str
    kind: str
    count: int


class AgentVersion(StoreValue, frozen=True):
    """A version of an agent, with the number of sessions that it was the last to write."""

    version: str
    sessions: int


class RawRecord(StoreValue, frozen=True):
    """The bytes of one record, as the agent wrote them."""

    provenance: Provenance
    data: bytes


class RawSource(StoreValue, frozen=True):
    """The bytes of one source of a session, in pieces."""

    source: SourceInfo
    pieces: Iterator[bytes]


class RestoredFile(StoreValue, frozen=True):
    """A file that was written from the archive."""

    path: Path
    source: str
    """The path from which it was read."""
    size: int
    """Bytes."""


class Forgetting(StoreValue, frozen=True, kw_only=True):
    """What forgetting a session deletes, as a plan or afterwards."""

    session_ids: tuple[str, ...]
    """The session, its subagents, and the chats that it answered."""
    messages: int
    """Messages that no other session contains."""
    files: tuple[str, ...]
    """Paths of archived files that are deleted from the store; the agent's own files are never touched."""
    archived_bytes: int
    """Bytes deleted from the archive."""
    shared: dict[str, int]
    """Other session -> number of messages shared with this one; they stay there."""


class BlobContent(StoreValue, frozen=True):
    """A large or binary content."""

    data: bytes
    media_type: str | None


LONGEST_MEMORY: Final = 10_000
"""Number of changes for which the store remembers what has left a session."""

ChangeKind: TypeAlias = Literal["session", "forgotten", "rebuilt"]
"""`session`: something was added to a session, changed in it or left it. The others name no session."""


class ChangeEntry(StoreValue, frozen=True):
    """An entry of the change sequence."""

    sequence: int
    session_id: str | None
    kind: ChangeKind
    at: datetime


class SessionChanges(StoreValue, frozen=True):
    """What changed in a session between two numbers of the change sequence, as JSON for a browser."""

    messages: list[bytes]
    """JSON of each new or changed message, large contents as previews."""
    rows: bytes
    """JSON: a `store.window.MessageRow` for each of these messages, then for those with only a new place."""
    events: bytes
    """JSON: new and changed events."""
    gone_messages: list[str]
    """Ids of messages that left the session."""
    gone_events: list[tuple[int, str]]
    """Position and id of events that left the session; for an orphan result, `<call id>:<result id>`."""


class StoreCounts(StoreValue, frozen=True, kw_only=True):
    """How much a store contains, and when it was last synced."""

    path: str
    schema_version: int
    file_size: int | None
    """Bytes on disk, including the write-ahead log; None on a hub, where others' are among them."""
    sessions: int
    subagents: int
    messages: int
    sources: int
    source_bytes: int
    """Bytes of all logs at the last sync."""
    archive_bytes: int
    """Bytes of the compressed archive."""
    vanished: int
    """Sources whose file was deleted; the store still has them."""
    unreadable: int
    """Sources with a problem at the last sync."""
    diagnostics: int
    last_sync_at: datetime | None


class StoreStatus(StoreCounts, frozen=True, kw_only=True):
    """The counts, with the number of the last change that they include."""

    change_sequence: int


# -- runs

RunOrigin: TypeAlias = Literal["command", "runtime", "import"]
"""`turnlog run`, a runtime of a chat, or an imported record of another program."""

UNFINISHED: Final = ("pending", "running")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run of an agent that was started through turnlog. None means unknown.

    Runs are not derived from logs: no sync and no rebuild changes one, and only forgetting its session deletes it. A
    run refers to its session by id and is not part of the session's totals. `turnlog.runs` starts, watches and links
    runs.
    """

    id: str
    origin: RunOrigin
    status: RunStatus
    created_at: datetime
    agent: str | None = None
    session_id: str | None = None
    """The session that the run created or resumed; until its log is read, the one that its command names."""
    command: tuple[str, ...] = ()
    """The program and its arguments."""
    cwd: str | None = None
    prompt: str | None = None
    model: str | None = None
    system_prompt: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    """Negative: the number of the signal that ended it."""
    error: str | None = None
    """The error, if it failed."""
    result: str | None = None
    """The agent's last text."""
    log_path: str | None = None
    log_problem: str | None = None
    """Why the log was not read or the session is unknown. The run itself may have succeeded."""
    usage: Usage | None = None
    """All model calls of the run, including those of subagents."""
    cost: Decimal | None = None
    """US dollars, computed from prices; None if no call could be priced."""
    tool_calls: int | None = None
    """Including those of subagents."""
    pid: int | None = None
    """The process that watches the run: while it lives, the run is going on."""
    boot_id: str | None = None
    """The boot of the machine to which `pid` belongs."""
    process_start: str | None = None
    """The system's own value for the start time of that process: the same pid may be used again later."""
    metadata: dict[str, Any] = {}
    """Further values in another program's record, under their own names."""

    @property
    def is_finished(self) -> bool:
        """Whether it has ended."""
        return self.status not in UNFINISHED


class RunFacts(NamedTuple):
    """The facts about a run in the messages of its session."""

    prompt: str | None = None
    """The first prompt."""
    model: str | None = None
    """The model of the last assistant message."""
    result: str | None = None
    """The last non-empty text of an assistant message."""
    error: str | None = None
    """The error of the last message, if that is an assistant message."""
    usage: Usage | None = None
    cost: Decimal | None = None
    """US dollars, computed from prices; None if no call could be priced."""
    tool_calls: int = 0


# -- chats


@checked_fields
class AgentAnswer(NamedTuple):
    """An agent's message that is also a message of a chat."""

    log_id: str
    """The agent's session."""
    run_id: str | None = None
    """The run that made it."""
