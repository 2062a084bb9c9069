"""The state of a fold of a klaude-code log, and the context in which one feed handles its records.

The state is kept between two feeds. Compactions, rewinds and retractions name lines by number, so every line of the
active branch is remembered, without its text. What a record means is decided in `messages` and `fold`.
"""

from __future__ import annotations

from hashlib import sha256
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import (
    Changes,
    EventChange,
    Link,
    MessageChange,
    Placement,
)
from turnlog.agents.decoding import LARGEST_EVENT_RECORD, LogContext, clean_json, state_codec
from turnlog.agents.klaude import NAME
from turnlog.agents.klaude.contents import time_of
from turnlog.agents.klaude.records import KlaudeData
from turnlog.agents.klaude.sources import session_id
from turnlog.model import Fate, HistoryEvent, Message, Origin, RecordEvent, RelationshipKind, RunMetadataEvent
from turnlog.model.message import MODEL_FROM
from turnlog.model.session import title_from


class ActiveLine(msgspec.Struct, array_like=True):
    """A line of the active branch."""

    number: int
    """From 0, as klaude-code counts."""
    message: str | None = None
    """Id of its message; None if it has none of its own."""
    position: int = 0
    text_crc: int | None = None
    """Of a user's message: the checksum of its text."""


class KlaudePendingMessage(msgspec.Struct, array_like=True):
    """An answer of 1.x whose further pieces may follow in other records."""

    message: str
    response: str | None
    parts: int = 0
    has_thought: bool = False
    """The last part is a thought without a signature."""
    has_signature: bool = False
    """The last part is a signature whose thought is still to come."""


_STORED_NAMES = {"pending_message": "open"}
"""What fields of the state are called in the stores of earlier versions, which must stay readable."""


class KlaudeState(msgspec.Struct, rename=_STORED_NAMES):
    """What is remembered between two feeds."""

    session: str | None = None
    lines: int = 0
    active: list[ActiveLine] = []
    checkpoints: dict[str, int] = {}
    """Number of a checkpoint, which old rewinds name -> number of its line."""
    leaf: str | None = None
    turn: int = 0
    step: int = 0
    pending_message: KlaudePendingMessage | None = None
    branched: bool = False
    titled: bool = False
    cost: float | None = None
    unnamed: dict[str, int] = {}
    """Answer of the current task without a model -> its position."""


encode_state, decode_state = state_codec(KlaudeState)


class KlaudeContext(LogContext):
    """The context of one feed: the record that is being read, and what the feed has found so far."""

    def __init__(self, state: KlaudeState, external_id: str) -> None:
        super().__init__(session_id(external_id))
        self.state = state
        self.external_id = external_id

    def finish(self) -> Changes:
        """Everything that this feed has found."""
        return self.finish_branched(self.state.leaf, is_branched=self.state.branched)

    def update_times(self, data: KlaudeData) -> None:
        """Extend the session's first and last time by that of a record."""
        at = time_of(data.created_at)
        self.extend_times(at)
        if at is None and data.created_at is not None:
            self.report("is not a time", json_path="$.data.created_at")

    def set_title(self, text: str) -> None:
        """Make the first prompt the session's title."""
        title = title_from(text)
        if title and not self.state.titled:
            self.session.titles["prompt"] = title
            self.state.titled = True

    # -- ids

    def position_id(self) -> str:
        """An id for something that has none in the log, made of its offset."""
        return f"{self.external_id}@{self.position}"

    def message_id(self, kind: str, data: KlaudeData) -> str:
        """The id of a message: the log's own; else made of its time and content, so that a fork's copy has the same."""
        # Ids came with 2.0. Where a record has none, its content is what a copy in a fork has in common with it.
        if data.id is not None:
            return data.id
        if data.created_at is None:
            return self.position_id()
        content = "".join(bytes(part).decode(errors="replace") for part in data.parts or ()) or data.content or ""
        key = f"{kind}|{data.created_at}|{data.response_id}|{content or data.summary}"
        return sha256(key.encode(errors="replace")).hexdigest()[:32]

    # -- messages

    def add_message(self, message: Message, *, step: int | None = None, text: str | None = None) -> None:
        """Add the message of this line, which follows the newest one of the active branch.

        Args:
            message: The message.
            step: Its step.
            text: Of a user's message, its text, by which a retraction may name it.
        """
        state = self.state
        self._add(message, self.position, parent=state.leaf, step=step)
        state.leaf = message.id
        checksum = None if text is None else crc32(text.encode(errors="replace"))
        state.active.append(ActiveLine(self.line_number - 1, message.id, self.position, checksum))

    def add_beside(self, message: Message) -> None:
        """Add a message that is beside the conversation; its line has a place on the active branch nevertheless."""
        self._add(message, self.position, parent=self.state.leaf, fate=Fate.SIDECAR)
        self.add_line()

    def extend_message(self, message: Message, *, step: int | None) -> None:
        """Add another piece of an answer whose message was added before."""
        self._add(message, self.position, parent=None, step=step)
        self.add_line()

    def retract(self, line: ActiveLine) -> None:
        """Mark the message of a line as retracted by this record. Messages after it stay."""
        assert line.message is not None
        # Only the placement matters: the store merges this reading with the message, which an earlier feed may have
        # emitted.
        self._add(Message(id=line.message, role="user"), line.position, fate=Fate.RETRACTED)

    def name_answers(self, model: str, kind: str) -> None:
        """Give the answers of the task that name no model the one that the record of its end names."""
        for message_id, position in self.state.unnamed.items():
            message = Message(id=message_id, role="assistant", model=model, metadata={NAME: {MODEL_FROM: kind}})
            placement = Placement(session_id=self.session_id, position=position, record_ids=(message_id,))
            self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.state.unnamed = {}

    def add_line(self) -> None:
        """Add the line to the active branch; it has no message of its own."""
        self.state.active.append(ActiveLine(self.line_number - 1))

    def _add(
        self,
        message: Message,
        position: int,
        *,
        parent: str | None = None,
        step: int | None = None,
        fate: Fate = Fate.ACTIVE,
    ) -> None:
        placement = Placement(
            session_id=self.session_id,
            position=position,
            records=((self.position, self.length, None),),
            record_ids=(message.id,),
            # A record that repeats the newest message must not make it its own parent.
            parent_id=None if parent == message.id else parent,
            turn=(self.state.turn or None) if fate is Fate.ACTIVE else None,
            step=step,
            fate=fate,
            # A record gives its message no other fate than this.
            fate_cause=None if fate is Fate.ACTIVE else self.position_id(),
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))

    def begin_turn(self, origin: Origin) -> None:
        """Begin a turn, if a message of this origin begins one."""
        if origin is Origin.PROMPT:
            self.state.turn += 1
            self.state.step = 0
            # A task that was killed has no record of its end.
            self.state.unnamed = {}

    def next_step(self) -> int:
        """The number of a new model call."""
        self.state.step += 1
        return self.state.step

    # -- events, links and diagnostics

    def add_event(self, event: HistoryEvent) -> None:
        """Add an event at the position of its record."""
        placed = msgspec.structs.replace(event, position=self.position)
        record = (self.position, self.length)
        self.changes.events.append(EventChange(session_id=self.session_id, event=placed, record=record))
        self.changes.counts.events += 1

    def add_run_metadata(self, kind: str, data: KlaudeData) -> None:
        """Add the record as a fact about the run."""
        event = RunMetadataEvent(
            id=self.position_id(), kind=kind, created_at=time_of(data.created_at), data=Raw(clean_json(self.json))
        )
        self.add_event(event)

    def add_record(self, kind: str, data: KlaudeData | None, *, known: bool) -> None:
        """Add the record as a separate event, because it becomes nothing else."""
        json = clean_json(self.json)
        small: Raw | UnsetType = Raw(json) if json and len(json) <= LARGEST_EVENT_RECORD else UNSET
        at = None if data is None else time_of(data.created_at)
        self.add_event(RecordEvent(id=self.position_id(), kind=kind, known=known, created_at=at, data=small))

    def link(
        self, kind: RelationshipKind, *, parent: str | None = None, child: str | None = None, call: str | None = None
    ) -> None:
        """Add that this session came out of `parent`, or `child` out of this one; both are external ids."""
        self.changes.links.append(
            Link(
                kind=kind,
                parent_session_id=self.session_id if parent is None else session_id(parent),
                child_session_id=self.session_id if child is None else session_id(child),
                tool_call_id=call,
            )
        )
