"""`Changes`: what a fold returns for one feed and the store writes.

The same message may be emitted several times, each time with what one feed knows of it; the store joins these readings.
`turnlog.agents.base` has the rules that make the result independent of how the bytes are split and of the order of
sources.
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
    SessionTotal,
    ToolResult,
)
from turnlog.model.message import MODEL_FROM, SESSION, UNCALLED_ORIGINS
from turnlog.model.session import TitleSource

RecordRef: TypeAlias = tuple[int, int, int | str | None]
"""A record that contributed to a message: byte offset, length in bytes, and what it contributed: a block index (`int`),
the id of a result (`str`), or None for the message as a whole. If positions are not offsets, a result within its
message's own record has its position as the offset, and the length 0."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a message in a session, as far as one feed knows it. Times, turns and parents are per session."""

    session_id: str
    position: int
    """Byte offset of the message's first record in the session's own file; for rows, computed from their content."""
    records: tuple[RecordRef, ...] = ()
    """All records of this feed that contributed to the message, including those of results, in file order."""
    record_ids: tuple[str, ...] = ()
    """Ids by which later records may name the message as their parent."""
    parent_id: str | None = None
    """Id of the parent message; None for the first message, or if only `parent_record` is known."""
    parent_record: str | None = None
    """Record id of a parent that this fold no longer remembers; the store looks up its message."""
    turn: int | None = None
    step: int | None = None
    fate: Fate = Fate.ACTIVE
    fate_cause: str | None = None
    """Id of the event that gives the message this fate."""
    copied: bool = False
    """A record says that it was copied from another session (a fork): the message is not billed here."""
    handed_over: bool = False
    """turnlog wrote it from a session of another agent, which is billed for it: it is billed to no session. `copied` is
    set too."""


class MessageChange(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of a message, with its place in the session."""

    message: Message
    placement: Placement


class ResultChange(msgspec.Struct, frozen=True, kw_only=True):
    """A result of a call that this feed did not emit.

    `message_id` is None if the fold does not know the call. The store then looks for the call in the session, and keeps
    the result as an orphan event if there is none.
    """

    session_id: str
    tool_call_id: str
    result: ToolResult
    position: int
    record: tuple[int, int]
    record_ids: tuple[str, ...] = ()
    message_id: str | None = None
    approval: Approval | None = None
    """Who allowed or denied the call, if the log says so only with the result; the store adds it to the call."""


class EventChange(msgspec.Struct, frozen=True, kw_only=True):
    """An event. Every record that does not become part of a message ends up here or as a diagnostic."""

    session_id: str
    event: HistoryEvent
    record: tuple[int, int] | None = None
    record_id: str | None = None
    """Its id in the chain of records, if it has one."""
    parent_id: str | None = None
    """The message that it follows, across other events. Records that name this event as their parent follow that
    message."""


class SessionChange(msgspec.Struct, kw_only=True):
    """What this feed says about a session. None means nothing. The value with the later position wins."""

    session_id: str
    position: int = 0
    """Position of the newest record that contributed."""
    project_path: str | None = None
    """The working directory in the first record of this feed that has one."""
    project_at: datetime | None = None
    """The time of that record. If several files describe the session, the earliest one decides its project."""
    titled_at: datetime | None = None
    """The time of the prompt in `titles`; the earliest one counts."""
    cwd: str | None = None
    git_branch: str | None = None
    git_commit: str | None = None
    agent_version: str | None = None
    titles: dict[TitleSource, str] = {}
    first_at: datetime | None = None
    last_at: datetime | None = None
    reported_cost: float | None = None
    """In US dollars: the running total that the agent computed."""
    totals: dict[str, SessionTotal] = {}
    """Id -> tokens of the whole session, where no record has those of a single call. Ids are unique in the session."""
    active_leaf: str | None = None
    """The record id that the agent itself marks as the end of the active branch; "" for the beginning of the
    session."""
    has_branches: bool = False
    """A branch or compaction appeared: the store must recompute fates over the tree of the session."""
    metadata: dict[str, Any] = {}
    task: str | None = None
    """The task that the agent's environment names; only hooks see it."""


NAMED_AFTER = "named_after"
"""In `SessionChange.metadata`: the id of the session from which this one takes its name (a `LeafTitle` with that
id)."""

ANSWERED_BY = "answered_by"
"""In `SessionChange.metadata`: the model of those answers of the session whose own records name none."""


def with_model(message: Message, agent: str, model: str) -> Message:
    """An answer with the model of its session (`ANSWERED_BY`), where its own records name none."""
    if message.model is not None or message.origin in UNCALLED_ORIGINS:
        return message
    facts = {**message.metadata.get(agent, {}), MODEL_FROM: SESSION}
    return msgspec.structs.replace(message, model=model, metadata={**message.metadata, agent: facts})


SHARES_BEFORE = "shares_before"
"""In the `Link.metadata` of a fork that copies no history: it shares those messages of its parent whose first record
has a smaller number. Messages have that number among their record ids, as `#<number>`; one without it goes with the
message before it."""


ENDED_AT = "ended_at"
"""In a subagent's `Link.metadata`: Unix milliseconds by which, according to its parent's log, the process that ran it
had ended. Calls that were unfinished then will never get a result."""

RUN = "run"
"""In a subagent's `Link.metadata` and in `ToolResult.metadata`, under the agent's name: the id of a run. One call may
start any number of subagents in one run."""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A relationship of two sessions, stated by either one. Links between the same pair are merged field by field."""

    kind: RelationshipKind
    parent_session_id: str
    child_session_id: str
    tool_call_id: str | None = None
    message_id: str | None = None
    inferred: bool = False
    metadata: dict[str, Any] = {}


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """What could not be read, where, and why. The archive has the bytes in any case."""

    offset: int
    length: int
    reason: str
    line: int | None = None
    """Line number in the file, from 1."""
    json_path: str | None = None
    severity: Literal["error", "note"] = "error"
    """`error`: something in the record was lost. `note`: it was repaired or is unusual, and nothing was lost."""


class LineCounts(msgspec.Struct, kw_only=True):
    """How many records of a feed became what. The sum is the number of records (R-S34)."""

    messages: int = 0
    results: int = 0
    events: int = 0
    blank: int = 0
    unreadable: int = 0
    duplicates: int = 0
    """Records that repeat one that was read already, with the same bytes or the same id."""

    @property
    def total(self) -> int:
        """The number of records."""
        return self.messages + self.results + self.events + self.blank + self.unreadable + self.duplicates


class Spill(msgspec.Struct, frozen=True, kw_only=True):
    """The file of an output of which a result has only a preview. Joined by session and `ToolResult.spilled_to`."""

    session_id: str
    name: str
    media_type: str
    size: int


class LeafTitle(msgspec.Struct, frozen=True, kw_only=True):
    """A title that one file gives to a session of another file, named by its newest record or by its id.

    With a session's id it is the name that the user gave to that session, and to those `NAMED_AFTER` it. The last title
    in a file wins.
    """

    record_id: str
    title: str


class Changes(msgspec.Struct, kw_only=True):
    """The changes of one feed of a source."""

    sessions: dict[str, SessionChange] = msgspec.field(default_factory=dict[str, SessionChange])
    messages: list[MessageChange] = msgspec.field(default_factory=list[MessageChange])
    results: list[ResultChange] = msgspec.field(default_factory=list[ResultChange])
    events: list[EventChange] = msgspec.field(default_factory=list[EventChange])
    links: list[Link] = msgspec.field(default_factory=list[Link])
    spills: list[Spill] = msgspec.field(default_factory=list[Spill])
    leaf_titles: list[LeafTitle] = msgspec.field(default_factory=list[LeafTitle])
    diagnostics: list[Diagnostic] = msgspec.field(default_factory=list[Diagnostic])
    counts: LineCounts = msgspec.field(default_factory=LineCounts)
