"""What a fold of a Codex rollout remembers between two reads: the step under way, and a few recent messages and calls.

Everything is bounded (what is counted within one turn by that turn), and is dropped by the order of records alone, so
that the same bytes leave the same state however they were cut. What it has forgotten the store still knows.
"""

from __future__ import annotations

import msgspec

from turnlog.agents.codex.records import WireUsage
from turnlog.agents.reading import keep_newest
from turnlog.agents.states import codec_of

_OPEN_MESSAGES = 24
_OPEN_CALLS = 128
_TURNS = 64
_HEARD = 8
_CHILDREN = 63


class OpenMessage(msgspec.Struct, array_like=True):
    """An assistant message that may go on in a later record: one response of the model."""

    position: int
    parent: str | None
    turn: int | None
    step: int | None
    copied: bool
    parts: int = 0
    """How many parts it has so far."""
    items: int = 0
    """How many items of the response there were: not what only a user interface was told."""
    counted: bool = False
    """Its tokens are known."""
    counted_first: bool = False
    """They were told before its items, as up to about 0.4x."""
    answered: bool = False
    """One of its calls has its output."""
    newest: int = -1
    """The number of the newest part that an item told."""
    section: int = -1
    """The part that is a thought of which only the other stream has told so far."""
    twins: dict[str, int] = {}
    """Stream and item id or checksum of a text -> number of the part, until the other stream tells the same."""
    unnumbered: list[tuple[str, bool]] = []
    """What a text is found again by, and whether it is a section of a thought: told while the order of the log was not
    known (see `State.layout_open`)."""


class Outcome(msgspec.Struct, array_like=True, omit_defaults=True):
    """What `item_completed` or an event told of a call before its output came."""

    position: int
    length: int
    status: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None
    output: str | None = None
    """Only as long as it takes to see whether the output comes at all."""


class OpenCall(msgspec.Struct, array_like=True):
    """A call that may still be answered."""

    message_id: str
    name: str
    number: int
    answered: bool = False
    running: bool = False
    """Its output said that it goes on."""
    aborted: bool = False
    outcome: Outcome | None = None
    began: float | None = None
    """When it was logged, in seconds: code only."""
    ended: float | None = None
    """When its first output was: code only."""


class State(msgspec.Struct, omit_defaults=True):
    """All of it."""

    thread: str | None = None
    """External id of the file's own session, where the path does not tell."""
    lines: int = 0
    named: bool = False
    """The file's own `session_meta` was read."""
    origin: str | None = None
    """Thread whose history is being copied; None in what is this thread's own."""
    bases: tuple[str, ...] = ()
    """Threads whose history this one goes on from without a copy of it."""
    created: float | None = None
    """When the thread began, in seconds."""
    last: float | None = None
    """Time of the newest record, in seconds, while a copy is read."""
    is_subagent: bool = False
    version: str | None = None
    """Of the program that began the thread."""
    pairwise: bool = False
    """Each call is written with its output, before the next call of the same response."""
    told_first: bool = False
    """A user interface is told all texts of a response before its items are logged."""
    layout_open: bool = False
    """Which of these two holds, no record told yet: a copy in a log that was migrated, where the version is missing."""
    model: str | None = None
    provider: str | None = None
    effort: str | None = None
    turn_id: str | None = None
    turn_key: str = ""
    turn: int = 0
    step: int = 0
    titled: bool = False
    leaf: str | None = None
    """The newest message."""
    answer: str | None = None
    """The newest assistant message."""
    answer_key: str | None = None
    """What its last text is found again by."""
    answer_response: str | None = None
    """The id of its response."""
    open: str | None = None
    """The assistant message that is being written."""
    messages: dict[str, OpenMessage] = {}
    calls: dict[str, OpenCall] = {}
    said: dict[str, int] = {}
    """How often a text without an id was said in this turn."""
    heard: dict[str, str] = {}
    """Side and checksum of a prompt that only one of the two streams has told -> its message."""
    prompts: dict[str, str] = {}
    """A prompt -> the checksum of its text: a compaction may keep it under another id, or none."""
    turns: list[str | None] = []
    """The message before each turn: where a rollback goes."""
    totals: WireUsage | None = None
    """The thread's running totals, as the log tells them."""
    recorded: bool = False
    """The newest response was counted by a `token_usage_record`: a `token_count` tells the same once more."""
    reviewing: bool = False
    """A review is under way."""
    reviewed_apart: bool = False
    """Another thread makes it, and what the log hears of it is in that one's log."""
    reviewed: bool = False
    """A review has just ended: an answer that is the next item is what it found."""
    attached: int = 0
    """Images that tools attached and of which the messages have still to come."""
    trigger: bool = False
    """The next message between agents begins a turn."""
    rolled_back: bool = False
    by_person: bool = False
    """No turn of another thread began the turn that this subagent is in."""
    in_turn: bool = False
    """A turn has begun of which no record told the end yet."""
    children: list[str] = []
    """Threads that this one has started since its process began."""

    def remember_message(self, message_id: str, message: OpenMessage) -> str | None:
        """Keep a message open; return the id of the one that is open no more."""
        return keep_newest(self.messages, message_id, message, _OPEN_MESSAGES)

    def remember_call(self, call_id: str, call: OpenCall) -> None:
        """Keep a call until it can get no more results."""
        keep_newest(self.calls, call_id, call, _OPEN_CALLS)

    def remember_heard(self, key: str, message_id: str) -> None:
        """Keep a prompt until the other stream tells it too."""
        keep_newest(self.heard, key, message_id, _HEARD)

    def remember_prompt(self, message_id: str, key: str) -> None:
        """Keep a prompt until a compaction may keep it."""
        keep_newest(self.prompts, message_id, key, _TURNS)

    def remember_child(self, thread: str) -> None:
        """Keep a thread that ends with the process of this one."""
        if thread not in self.children:
            self.children = [*self.children[-_CHILDREN:], thread]

    def remember_turn(self, parent: str | None) -> None:
        """Keep what stands before a turn."""
        self.turns.append(parent)
        if len(self.turns) > _TURNS:
            del self.turns[0]


encode_state, decode_state = codec_of(State)
