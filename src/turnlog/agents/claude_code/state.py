"""What a fold of a Claude Code log remembers between two reads: recent records, messages and calls.

Every collection is bounded. Entries are dropped by the order of records alone, so the same bytes always leave the same
state, however they were divided into reads. What was dropped here is still in the store.

The state is stored as JSON with the source's cursor. Where a field has another name there, `name=` keeps stored states
readable.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from turnlog.agents.decoding import keep_newest, state_codec

RECENT_RECORDS = 128
"""Records whose place in the tree is kept. The store finds a parent further back by its record id. The results of
parallel calls have parents some tens of records back; only a rewind reaches further."""

_MOST_MESSAGES = 24
_MOST_CALLS = 128
_MOST_SESSIONS = 16

# A node is where a record belongs in the tree of messages: a message id, or `@` and the id of a record whose message
# is not remembered, or nothing.

ROOT = ""
"""The node of a record without a parent."""

_UNRESOLVED = "@"


def unresolved_node(record_id: str) -> str:
    """The node of a record whose message is not remembered."""
    return _UNRESOLVED + record_id


def message_of_node(node: str) -> str | None:
    """The message id that a node is; None for the root and for an unresolved node."""
    return None if not node or node.startswith(_UNRESOLVED) else node


def record_of_node(node: str) -> str | None:
    """The record id in an unresolved node; None for any other."""
    return node[len(_UNRESOLVED) :] if node.startswith(_UNRESOLVED) else None


class SeenBlock(msgspec.Struct, array_like=True):
    """A content block that was read: enough to recognise a later line that repeats or continues it."""

    number: int
    kind: str
    length: int
    key: int | str
    """A call's id, or the checksum of a text."""


class ClaudePendingMessage(msgspec.Struct, array_like=True):
    """An assistant message that later lines may continue, and its place in the session."""

    position: int
    parent: str
    turn: int | None
    step: int | None
    blocks: list[SeenBlock] = []


class ClaudePendingCall(msgspec.Struct, array_like=True):
    """A call without a final result."""

    message_id: str
    copied_from: str | None = None
    """External id of the session that made the call, when this one is a copy."""
    prompt: int | None = None
    """Checksum of a subagent's prompt. A sidechain in the same file is matched with its call by it."""
    name: str = ""
    number: int = 0
    session: str | None = None
    """Session id of the inline sidechain that made the call; None for the file's own session."""
    settled: bool = False
    """It has a preliminary result, or counts as aborted: the next prompt does not change it."""


class EarlyReplies(msgspec.Struct, array_like=True):
    """Assistant messages that stand before their prompt in the log, because the model replied before it was written."""

    position: int
    at: datetime
    """Time of the first one: records with an earlier time belong before it."""
    parent_record: str
    """The record that the first one names as its parent, and that has not been read yet."""
    inserted: int = 0
    """Messages that were placed before the first one so far."""


class SessionState(msgspec.Struct):
    """How far the reading of one session in the file has come."""

    turn: int = 0
    step: int = 0
    leaf: str | None = None
    """Id of the newest message."""
    anchor: str | None = None
    """Id of the newest message that Claude Code did not inject."""
    titled: bool = False
    warm_up: bool = False
    """A session of 2.0.x that only filled the cache."""
    prompted_at: datetime | None = msgspec.field(name="said_at", default=None)
    """Time of the anchor when it is a prompt; None when the model wrote it."""
    prompted_by_command: bool = msgspec.field(name="commanded", default=False)
    """That prompt was a command."""
    branched: bool = False
    """A branch began since the agent last named the active leaf."""
    early_replies: EarlyReplies | None = msgspec.field(name="early", default=None)
    """Assistant messages whose prompt has not been read yet."""
    prompt_during_calls: tuple[str, str] | None = msgspec.field(name="meanwhile", default=None)
    """A message whose calls still ran when a prompt was sent, and the id of that prompt. Results of these calls come
    after the prompt."""


class DeferredRejection(msgspec.Struct, array_like=True):
    """A result with the words of a rejection. A later record tells whether the user denied the call or aborted it."""

    session_id: str
    tool_call_id: str
    message_id: str | None
    record: tuple[int, int]
    record_id: str | None
    result: msgspec.Raw
    source: str | None


class PendingCompaction(msgspec.Struct):
    """A compaction whose summary was not read yet."""

    event: msgspec.Raw
    session_id: str
    position: int
    length: int
    record_id: str | None
    parent_id: str | None


class ClaudeState(msgspec.Struct):
    """What is kept between two reads."""

    session: str | None = None
    """External id of the file's own session, where the path does not have it."""
    lines: int = 0
    """Lines read so far."""
    main_session: SessionState = msgspec.field(name="thread", default_factory=SessionState)
    """The file's own session."""
    children: dict[str, SessionState] = {}
    """Sessions inside the file besides its own, by session id."""
    nodes: dict[str, str] = {}
    """Record id -> the message it belongs to or hangs under."""
    sidechains: dict[str, str] = {}
    """Record id -> the session id of the inline sidechain it belongs to."""
    messages: dict[str, ClaudePendingMessage] = {}
    calls: dict[str, ClaudePendingCall] = {}
    tasks: dict[str, str] = {}
    """Id of a background task -> the call that started it."""
    compaction: PendingCompaction | None = None
    deferred_rejections: list[DeferredRejection] = msgspec.field(name="held", default_factory=list[DeferredRejection])
    aborted_message: str | None = msgspec.field(name="stopped", default=None)
    """Id of the message whose call was aborted last."""
    permissions_bypassed: bool = msgspec.field(name="unasked", default=False)
    """The tools of the newest turn run without permission requests."""
    logs_decisions: bool = msgspec.field(name="tells_decisions", default=False)
    """The log's version writes who decided on a call into fields of the result's record."""
    forked_from: list[str] = msgspec.field(name="origins", default_factory=list[str])
    """External ids of the sessions that records were copied from."""
    linked: bool = False
    """The link from a subagent's session to its parent was emitted."""

    def remember_record(self, record_id: str, node: str) -> None:
        """Keep where a record belongs."""
        nodes = self.nodes
        nodes[record_id] = node
        if len(nodes) > RECENT_RECORDS:
            del nodes[next(iter(nodes))]

    def remember_sidechain(self, record_id: str, session_id: str) -> None:
        """Keep which sidechain a record belongs to."""
        keep_newest(self.sidechains, record_id, session_id, RECENT_RECORDS)

    def remember_message(self, message_id: str, message: ClaudePendingMessage) -> str | None:
        """Keep a message that may continue; return the id of the one that was dropped for it."""
        return keep_newest(self.messages, message_id, message, _MOST_MESSAGES)

    def remember_call(self, call_id: str, call: ClaudePendingCall) -> None:
        """Keep a call until its final result is read."""
        keep_newest(self.calls, call_id, call, _MOST_CALLS)

    def remember_task(self, task_id: str, call_id: str) -> None:
        """Keep which call started a background task."""
        keep_newest(self.tasks, task_id, call_id, _MOST_CALLS)

    def child(self, session_id: str) -> SessionState:
        """The state of another session in this file, new when there is none yet."""
        state = self.children.get(session_id)
        if state is None:
            state = SessionState()
            keep_newest(self.children, session_id, state, _MOST_SESSIONS)
        return state


encode_state, decode_state = state_codec(ClaudeState)
