"""What a fold of a Claude Code log remembers between two reads: a few recent records, messages and calls.

Everything is bounded, and is dropped by the order of records alone, so that the same bytes leave the same state
however they were cut. What it has forgotten the store still knows.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from turnlog.agents.reading import keep_newest
from turnlog.agents.states import codec_of

RECENT_RECORDS = 128
"""A parent further back than this is named by its record id, for the store to find. Parallel calls hang back by
tens of records; only a rewind reaches further."""

_OPEN_MESSAGES = 24
_OPEN_CALLS = 128
_THREADS = 16

ROOT = ""
"""The node of a record that hangs under nothing."""

_UNRESOLVED = "@"


def unresolved(record_id: str) -> str:
    """The node of a record whose message is not remembered."""
    return _UNRESOLVED + record_id


def message_in(node: str) -> str | None:
    """The message id in a node."""
    return None if not node or node.startswith(_UNRESOLVED) else node


def record_in(node: str) -> str | None:
    """The record id in a node whose message is not remembered."""
    return node[len(_UNRESOLVED) :] if node.startswith(_UNRESOLVED) else None


class BlockMark(msgspec.Struct, array_like=True):
    """What is remembered of a block: enough to see that a later line repeats or continues it."""

    number: int
    kind: str
    length: int
    key: int | str
    """A call's id, or the checksum of a text."""


class OpenMessage(msgspec.Struct, array_like=True):
    """An assistant message that may go on on a later line."""

    position: int
    parent: str
    turn: int | None
    step: int | None
    blocks: list[BlockMark] = []


class OpenCall(msgspec.Struct, array_like=True):
    """A call without a final result."""

    message_id: str
    origin: str | None = None
    """External id of the session that made the call, when this one copied it."""
    prompt: int | None = None
    """Checksum of a subagent's prompt, by which an inline sidechain finds its call."""
    name: str = ""
    number: int = 0
    session: str | None = None
    """Id of the inline sidechain that made the call; None for the file's own session."""
    settled: bool = False
    """It got a first answer, or was given up: the next prompt changes nothing about it."""


class Early(msgspec.Struct, array_like=True):
    """Answers that a log begins with, because the model was quicker than the writing of the prompt."""

    position: int
    at: datetime
    """Of the first of them: what is older was said before it."""
    awaited: str
    """The record that it hangs under."""
    late: int = 0
    """Messages that were found to stand before it so far."""


class Thread(msgspec.Struct):
    """How far one session in the file has come."""

    turn: int = 0
    step: int = 0
    leaf: str | None = None
    """The newest message."""
    anchor: str | None = None
    """The newest message that is not the harness's."""
    titled: bool = False
    warm_up: bool = False
    said_at: datetime | None = None
    """When a person said the anchor; None when the model did."""
    commanded: bool = False
    """That was a command."""
    branched: bool = False
    """A branch began since the agent last named the active leaf."""
    early: Early | None = None
    """Answers whose prompt has not come yet."""
    meanwhile: tuple[str, str] | None = None
    """A message whose calls still ran when a prompt came, and that prompt: what comes of the calls is behind it."""


class HeldAnswer(msgspec.Struct, array_like=True):
    """A user's no, of which the log has not said yet whether it stopped the tool or forbade it."""

    session_id: str
    tool_call_id: str
    message_id: str | None
    record: tuple[int, int]
    record_id: str | None
    result: msgspec.Raw
    source: str | None


class OpenCompaction(msgspec.Struct):
    """A compaction whose summary is still to come."""

    event: msgspec.Raw
    session_id: str
    position: int
    length: int
    record_id: str | None
    parent_id: str | None


class State(msgspec.Struct):
    """All of it."""

    session: str | None = None
    """External id of the file's own session, where the path does not tell."""
    lines: int = 0
    thread: Thread = msgspec.field(default_factory=Thread)
    children: dict[str, Thread] = {}
    """Sessions inside the file besides its own, by session id."""
    nodes: dict[str, str] = {}
    """Record id -> the message it belongs to or hangs under."""
    sidechains: dict[str, str] = {}
    """Record id -> the session id of the inline sidechain it belongs to."""
    messages: dict[str, OpenMessage] = {}
    calls: dict[str, OpenCall] = {}
    tasks: dict[str, str] = {}
    """Id of a background task -> the call that started it."""
    compaction: OpenCompaction | None = None
    held: list[HeldAnswer] = []
    stopped: str | None = None
    """The message of the call that was aborted last."""
    unasked: bool = False
    """The tools of the newest turn ask nobody for leave."""
    tells_decisions: bool = False
    """A call that was refused says so in fields."""
    origins: list[str] = []
    """External ids of the sessions that records were copied from."""
    linked: bool = False
    """A subagent's own link to its parent was told."""

    def remember_record(self, record_id: str, node: str) -> None:
        """Keep where a record belongs."""
        nodes = self.nodes
        nodes[record_id] = node
        if len(nodes) > RECENT_RECORDS:
            del nodes[next(iter(nodes))]

    def remember_sidechain(self, record_id: str, session_id: str) -> None:
        """Keep which sidechain a record belongs to."""
        keep_newest(self.sidechains, record_id, session_id, RECENT_RECORDS)

    def remember_message(self, message_id: str, message: OpenMessage) -> str | None:
        """Keep a message open; return the id of the one that is open no more."""
        return keep_newest(self.messages, message_id, message, _OPEN_MESSAGES)

    def remember_call(self, call_id: str, call: OpenCall) -> None:
        """Keep a call until its result comes."""
        keep_newest(self.calls, call_id, call, _OPEN_CALLS)

    def remember_task(self, task_id: str, call_id: str) -> None:
        """Keep which call started a background task."""
        keep_newest(self.tasks, task_id, call_id, _OPEN_CALLS)

    def child(self, session_id: str) -> Thread:
        """The thread of another session in this file."""
        thread = self.children.get(session_id)
        if thread is None:
            thread = Thread()
            keep_newest(self.children, session_id, thread, _THREADS)
        return thread


encode_state, decode_state = codec_of(State)
