"""What a store returns besides the model's own values: sessions' surroundings, tool calls, files, sources, runs.

Frozen structs that the server and the CLI encode as they are. Times are UTC and aware, sizes bytes. Usage and the
summaries of agents, models and projects are in `store.usage_report`, what a session is doing in `store.session_state`,
windows in `store.window`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypedDict, TypeVar

import msgspec

from turnlog.model import Cost, Fate, HistoryEvent, Membership, Message, Ownership, Part, Provenance, Relationship
from turnlog.model.usage import Usage
from turnlog.store.base import RunStatus

ItemT = TypeVar("ItemT")


class StoreValue(msgspec.Struct, frozen=True):
    """A value of a store. Its JSON always has every field: null where nothing is known."""


class Page(StoreValue, Generic[ItemT], frozen=True):
    """A piece of a list, and where the next one begins."""

    items: tuple[ItemT, ...]
    next_cursor: str | None = None
    """Opaque; None on the last page. It stays good while sessions come and go."""
    total: int | None = None
    """How many items all pages hold, where that was counted."""


class SessionPreview(StoreValue, frozen=True):
    """What a list shows of a session besides itself."""

    first_prompt: str | None
    """The first 200 characters of its first prompt that has text; None when no prompt has any."""
    children: int
    """How many sessions came out of it: subagents, forks, continuations."""


class SessionLink(StoreValue, frozen=True):
    """One relationship, seen from either side."""

    child_session_id: str
    relationship: Relationship


class Annotations(StoreValue, frozen=True):
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


class SessionFacts(TypedDict, total=False):
    """What a program says of a session that it writes itself; what is left out, or None, stays as it is."""

    ownership: Ownership
    """Whose it is. All of it is replaced."""
    title: str | None
    """Without one, the beginning of the first prompt is the title."""
    cwd: str | None
    """The folder that it was about; the session's project too, if it is the first."""
    git_branch: str | None
    git_commit: str | None
    created_at: datetime | None
    """The earliest that was said; now, for a new session."""
    updated_at: datetime | None
    """The latest that was said; now, for a new session."""
    metadata: Mapping[str, Any]
    """JSON by name, added to what is there."""


class PlacedMessage(StoreValue, frozen=True):
    """A message, its place in the session, and what it cost there."""

    message: Message
    membership: Membership
    cost: Cost | None = None
    """Priced from its usage, also where another session is billed for it; None when the price is unknown."""


class StoredPart(StoreValue, frozen=True):
    """A part of a message, and its id in the store."""

    id: str
    """See `turnlog.model.message.part_ids`."""
    message_id: str
    sequence: int
    """Its index in the message's parts."""
    part: Part


class MessagePlace(StoreValue, frozen=True):
    """Where a message is in a session, and its role."""

    position: int
    message_id: str
    role: str


class Passage(StoreValue, frozen=True):
    """What happened between two positions of a session, and what it takes to understand it alone."""

    events: list[HistoryEvent]
    """In causal order; also those around and before the passage on which its meaning depends."""
    first: int
    end: int
    """The passage itself: from the position `first` up to, and without, `end`."""
    interrupted: frozenset[str]
    """Ids of the messages that the user stopped, as any record of the session says."""
    before: int | None = None
    """The passage before this one ends at this position; None at the start."""
    after: int | None = None
    """The next passage begins after this position; None at the end."""


class OutlineEntry(StoreValue, frozen=True):
    """A landmark of a session: a prompt, a compaction, a rewind, a failure that is no tool's."""

    position: int
    kind: str
    """The message's origin (`prompt`, `command`, `shell`, `subagent_prompt`), `compaction`, `rewind` or `error`."""
    text: str
    message_id: str | None = None
    turn: int | None = None
    created_at: datetime | None = None
    fate: Fate | None = None


class ToolCall(StoreValue, frozen=True):
    """A tool call as lists show it, without its input and output; `Store.message` has those."""

    tool_call_id: str
    tool_name: str
    kind: str
    state: str
    message_id: str
    session_id: str
    """The session that is billed for the message; copies in forks are not listed again."""
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
    """How often a tool was called, and how that ended."""

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


class ReasoningVolume(StoreValue, frozen=True):
    """How much reasoning there is."""

    parts: int
    characters: int
    """Visible ones; withheld reasoning has none."""
    messages: int
    tokens: int
    """Counted apart from output; where a log does not tell them apart they are in `output`."""


class TouchedFile(StoreValue, frozen=True):
    """A file, and how much was done to it."""

    path: str
    sessions: int
    calls: int
    edits: int
    """Calls of these that changed it: edits, deletions, moves."""
    last_at: datetime | None


class FileUse(StoreValue, frozen=True):
    """What one session did to a file."""

    session_id: str
    calls: int
    edits: int
    """Calls of these that changed it: edits, deletions, moves."""
    kinds: tuple[str, ...]
    first_at: datetime | None
    last_at: datetime | None


class FileTouch(StoreValue, frozen=True):
    """A call that read or changed a file, and the part of its message that it is."""

    path: str
    """The file's absolute path, as far as the session's folder tells it."""
    call: ToolCall
    part: int
    """Index in the message's parts."""


class FileHistory(StoreValue, frozen=True):
    """Everything that was done to a file."""

    uses: tuple[FileUse, ...]
    """By session, the last first."""
    touches: Page[FileTouch]
    """Call by call, the newest first."""


class SourceInfo(StoreValue, frozen=True):
    """A source that was read."""

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
    """How many diagnostics of one agent are about the same place in its records."""

    agent: str
    severity: str
    json_path: str | None
    count: int


class UnknownKind(StoreValue, frozen=True):
    """Records of a kind that this version does not know; they are kept as they are."""

    agent: str
    kind: str
    count: int


class AgentVersion(StoreValue, frozen=True):
    """A version of an agent, and how many sessions it wrote last."""

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
    """Where it lay when it was read."""
    size: int
    """Bytes."""


class Forgetting(StoreValue, frozen=True, kw_only=True):
    """What is removed with a session: the same of a plan and of what was done."""

    session_ids: tuple[str, ...]
    """The session, its subagents, and the chats that it answered."""
    messages: int
    """Messages that no other session holds."""
    files: tuple[str, ...]
    """Paths of archived files that go; the agent's own files on disk are never touched."""
    archived_bytes: int
    """Bytes of the archive that go."""
    shared: dict[str, int]
    """Other session -> how many messages of this one it holds too; those stay there."""


class BlobContent(StoreValue, frozen=True):
    """A large or binary content."""

    data: bytes
    media_type: str | None


LONGEST_MEMORY: Final = 10_000
"""Numbers of the change sequence over which is remembered what has left a session."""

ChangeKind: TypeAlias = Literal["session", "forgotten", "rebuilt"]
"""`session`: something of it was added, has changed or has left it. The others name no session."""


class ChangeEntry(StoreValue, frozen=True):
    """An entry of the change sequence."""

    sequence: int
    session_id: str | None
    kind: ChangeKind
    at: datetime


class SessionChanges(StoreValue, frozen=True):
    """What changed in a session between two numbers of the change sequence, as JSON for a browser."""

    messages: list[bytes]
    """JSON of each message that is new or has changed, large contents as previews."""
    rows: bytes
    """JSON: a `store.window.MessageRow` for each of these messages, then of those whose place alone has changed."""
    events: bytes
    """JSON: the events that are new or have changed."""
    gone_messages: list[str]
    """Ids of messages that are no longer part of the session."""
    gone_events: list[tuple[int, str]]
    """Position and id of events that are no longer there; of a result without its call, `<call's id>:<result's id>`."""


class StoreCounts(StoreValue, frozen=True, kw_only=True):
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


class StoreStatus(StoreCounts, frozen=True, kw_only=True):
    """The counts, and the number of the last change that is in them."""

    change_sequence: int


# -- runs

RunOrigin: TypeAlias = Literal["command", "runtime", "import"]
"""`turnlog run`, a runtime of a chat, or a record of another program that was imported."""

UNFINISHED: Final = ("pending", "running")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of an agent that was started through turnlog. What is None is not known.

    Not derived from logs: no pass and no rebuild changes a run, and only forgetting its session removes it. A run names
    its session by id and has no part in the session's totals. Starting, watching and linking runs is `turnlog.runs`.
    """

    id: str
    origin: RunOrigin
    status: RunStatus
    created_at: datetime
    agent: str | None = None
    session_id: str | None = None
    """The session that the run made or went on with; before its log is read, the one that its command names."""
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
    """Why it failed."""
    result: str | None = None
    """The last words of the agent."""
    log_path: str | None = None
    log_problem: str | None = None
    """Why the log was not read, or the session is not known. Such a run has not failed for that."""
    usage: Usage | None = None
    """All model calls of the run, those of its subagents included."""
    cost: Decimal | None = None
    """US dollars, priced; None when no call could be priced."""
    tool_calls: int | None = None
    """Those of its subagents included."""
    pid: int | None = None
    """The process that watches over the run: while it lives, the run goes on."""
    boot_id: str | None = None
    """The boot of the machine in which `pid` is a process."""
    process_start: str | None = None
    """When that process began, in the machine's own words: the system may give the same pid to a later process."""
    metadata: dict[str, Any] = {}
    """What another program recorded of it besides, under its own names."""

    @property
    def is_finished(self) -> bool:
        """Whether it has ended."""
        return self.status not in UNFINISHED


class RunFacts(NamedTuple):
    """What the messages of a session say of one run."""

    prompt: str | None = None
    """The first prompt."""
    model: str | None = None
    """The model that wrote the last assistant message."""
    result: str | None = None
    """The text of the last assistant message that has any."""
    error: str | None = None
    """Of the last assistant message, when that was one."""
    usage: Usage | None = None
    cost: Decimal | None = None
    """US dollars, priced; None when no call could be priced."""
    tool_calls: int = 0


# -- chats


class AgentAnswer(NamedTuple):
    """Who else has a message of a chat."""

    log_id: str
    """The agent's session."""
    run_id: str | None = None
    """The run that made it."""
