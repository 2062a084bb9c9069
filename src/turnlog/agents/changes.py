"""What one feed of a source brings: the changes that a fold tells, and that the store's writer takes.

The same message may be told many times, each time with what one feed knows of it: readings are joined. The rules that
keep any split of the bytes and any order of sources equal are those of `turnlog.agents.base`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

from turnlog.model import (
    Approval,
    Fate,
    HistoryEvent,
    Message,
    RelationshipKind,
    ToolResult,
)
from turnlog.model.session import TitleSource

RecordRef: TypeAlias = tuple[int, int, int | str | None]
"""A record that contributed to a message: byte offset, length in bytes, and what it brought: a block index
(`int`), the id of a result (`str`), or None for the message as a whole. A result that stands in its message's own
record where positions are no offsets has its position for an offset, and the length 0."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where a message stands in a session, as far as one feed knows. Times, turns and parents are per session."""

    session_id: str
    position: int
    """Byte offset of the message's first record in the session's own file; for rows, made from what the row says."""
    records: tuple[RecordRef, ...] = ()
    """Every record of this feed that contributed to the message, results included, in file order."""
    record_ids: tuple[str, ...] = ()
    """The ids that later records may name as their parent."""
    parent_id: str | None = None
    """Message id of the parent; None when it is the first or when only `parent_record` is known."""
    parent_record: str | None = None
    """Record id of a parent that this fold no longer remembers; the store finds its message."""
    turn: int | None = None
    step: int | None = None
    fate: Fate = Fate.ACTIVE
    fate_cause: str | None = None
    """Id of the event whose record gives the message this fate."""
    copied: bool = False
    """A record says that another session made it (a fork's copy): it does not pay here."""


class MessageChange(msgspec.Struct, frozen=True, kw_only=True):
    """A reading of a message, and its place."""

    message: Message
    placement: Placement


class ResultChange(msgspec.Struct, frozen=True, kw_only=True):
    """A result for a call that this feed did not emit.

    `message_id` is None when the fold does not know the call: the store looks for it in the session, and keeps the
    result as an orphan event when there is none.
    """

    session_id: str
    tool_call_id: str
    result: ToolResult
    position: int
    record: tuple[int, int]
    record_ids: tuple[str, ...] = ()
    message_id: str | None = None
    approval: Approval | None = None
    """Who let the call run or refused it, where the log tells that only with the result: belongs to the call."""


class EventChange(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not a message: every record that became none ends here or as a diagnostic."""

    session_id: str
    event: HistoryEvent
    record: tuple[int, int] | None = None
    record_id: str | None = None
    """Its id in the chain of records, when it has one."""
    parent_id: str | None = None
    """The message it hangs under (through other events): resolves parents that name this event."""


class SessionChange(msgspec.Struct, kw_only=True):
    """What this feed learned about a session. None: nothing. Later values win over earlier, by position."""

    session_id: str
    position: int = 0
    """Position of the newest record that contributed."""
    project_path: str | None = None
    """The working directory of the first record of this feed that names one."""
    project_at: datetime | None = None
    """When that was, where several files may tell of the session: of several projects the earliest counts."""
    titled_at: datetime | None = None
    """The same of the prompt among the titles."""
    cwd: str | None = None
    git_branch: str | None = None
    git_commit: str | None = None
    agent_version: str | None = None
    titles: dict[TitleSource, str] = {}
    first_at: datetime | None = None
    last_at: datetime | None = None
    reported_cost: float | None = None
    """US dollars, the agent's own running total."""
    active_leaf: str | None = None
    """Record id that the agent itself names as the end of the active branch; "" when it names the very start."""
    has_branches: bool = False
    """A branch or compaction appeared: fates must be worked out anew over the session's tree."""
    metadata: dict[str, Any] = {}


NAMED_AFTER = "named_after"
"""In `SessionChange.metadata`: the id of the session whose name (a `LeafTitle` with its id) is this one's too."""

SHARES_BEFORE = "shares_before"
"""In a fork's `Link.metadata`: it holds none of its parent's history, but shares the messages whose first record has a
number below this. Messages tell theirs among their record ids, as `#<number>`; one without follows the one before."""


ENDED_AT = "ended_at"
"""In a subagent's `Link.metadata`: Unix milliseconds at which, as its parent's log shows, the process that ran it was
gone. What it had left open by then gets no result any more."""

RUN = "run"
"""In a subagent's `Link.metadata` and in `ToolResult.metadata`, under the agent's name: the id of the run in which one
call started any number of subagents."""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """That two sessions belong together, said by either side. Links about one pair are joined field by field."""

    kind: RelationshipKind
    parent_session_id: str
    child_session_id: str
    tool_call_id: str | None = None
    message_id: str | None = None
    inferred: bool = False
    metadata: dict[str, Any] = {}


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """What could not be read, where, and why. The bytes are in the archive all the same."""

    offset: int
    length: int
    reason: str
    line: int | None = None
    """1-based line of the file."""
    json_path: str | None = None
    severity: Literal["error", "note"] = "error"
    """`error`: something of the record is not modelled. `note`: repaired or odd, nothing lost."""


class LineCounts(msgspec.Struct, kw_only=True):
    """What became of the records of a feed. Their sum is the number of records (R-S34)."""

    messages: int = 0
    results: int = 0
    events: int = 0
    blank: int = 0
    unreadable: int = 0
    duplicates: int = 0
    """Records that repeat one already read, byte for byte or by id."""

    @property
    def total(self) -> int:
        """How many records there were."""
        return self.messages + self.results + self.events + self.blank + self.unreadable + self.duplicates


class Spill(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of an output that its result only previews. Joined to `ToolResult.spilled_to` by session and name."""

    session_id: str
    name: str
    media_type: str
    size: int


class LeafTitle(msgspec.Struct, frozen=True, kw_only=True):
    """A title that one file gives to the conversation of another, named by its newest record or its session's id.

    With a session's id it is the name that the user gave it, and those that are `NAMED_AFTER` it. The last title that a
    file gives counts.
    """

    record_id: str
    title: str


class Changes(msgspec.Struct, kw_only=True):
    """What one feed of a source brings."""

    sessions: dict[str, SessionChange] = msgspec.field(default_factory=dict[str, SessionChange])
    messages: list[MessageChange] = msgspec.field(default_factory=list[MessageChange])
    results: list[ResultChange] = msgspec.field(default_factory=list[ResultChange])
    events: list[EventChange] = msgspec.field(default_factory=list[EventChange])
    links: list[Link] = msgspec.field(default_factory=list[Link])
    spills: list[Spill] = msgspec.field(default_factory=list[Spill])
    leaf_titles: list[LeafTitle] = msgspec.field(default_factory=list[LeafTitle])
    diagnostics: list[Diagnostic] = msgspec.field(default_factory=list[Diagnostic])
    counts: LineCounts = msgspec.field(default_factory=LineCounts)
