"""The fold of a stream that an agent prints, for agents whose streams have no message ids.

An id is made of the session and everything that its run printed up to the first line of the message, so the same bytes
give the same id in any file. The messages of the log have other ids, and the log supersedes these in the store. The
agent knows what a line means (`PrintedFormat.read`). Recognising a stream, reading line by line, ids and the state
between two feeds are the same for all agents (`PrintedFold`, `PrintedContext`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import (
    Changes,
    EventChange,
    MessageChange,
    Placement,
    RecordRef,
    SessionChange,
)
from turnlog.agents.decoding import LARGEST_EVENT_RECORD, LineContext, aware, clean_json
from turnlog.agents.jsonl import JsonLines, count_lines, whole_lines
from turnlog.model import ErrorEvent, HistoryEvent, Message, Origin, Part, RecordEvent, RunMetadataEvent
from turnlog.model.merge import merge_messages
from turnlog.model.message import Role

_LONG_AGO = 1 << 53
"""Subtracted from the positions of session facts: those of any log win, and those of a later run win over an earlier
one."""

_RUNS = 16


class PrintedMessage(msgspec.Struct, array_like=True):
    """A message that a later line may continue."""

    id: str
    position: int
    parent: str | None
    turn: int | None
    step: int | None
    role: Role = "assistant"
    origin: Origin | None = None
    requested_model: str | None = None
    parts: int = 0
    answered: bool = False
    """One of its calls has ended."""
    called: bool = False
    """It has a call that the agent ran itself."""

    def next_part(self) -> str:
        """A new part id."""
        self.parts += 1
        return f"{self.id}.{self.parts - 1}"


class PrintedState(msgspec.Struct):
    """What the fold of any printed stream remembers between two feeds."""

    lines: int = 0
    session: str | None = None
    """External id of the session whose output is being read."""
    runs: dict[str, int] = {}
    """Session -> number of its runs in this stream."""
    chain: str = ""
    """Checksum of everything that the run has printed so far."""
    moment: int = 0
    """The latest time so far, in Unix milliseconds."""
    turn: int = 0
    step: int = 0
    leaf: str | None = None


class PrintedContext(LineContext):
    """One feed: the current line, and the changes of the lines so far."""

    def __init__(self, agent: str, state: PrintedState, changes: Changes) -> None:
        super().__init__(changes)
        self.state = state
        self.at: datetime | None = None
        self._agent = agent
        self._drafts: dict[str, tuple[PrintedMessage, str, Message]] = {}
        self._refs: dict[str, list[RecordRef]] = {}

    # -- the line and its session

    def enter(self, json: bytes, position: int, length: int, line_number: int, at: datetime | None) -> None:
        """Make a line the current one."""
        self.json, self.position, self.length, self.line_number = json, position, length, line_number
        self.at = None if at is None else aware(at)
        state = self.state
        if state.session is None:
            # The stream lost its beginning: the first line identifies the session.
            state.session = f"stream-{hashlib.sha256(json).hexdigest()[:16]}"
        # Ids must not depend on the name of the file, or on other runs in it.
        state.chain = _checksum(state.chain, json)
        change = self.session
        if self.at is not None:
            state.moment = max(state.moment, round(self.at.timestamp() * 1000))
            change.first_at = min(change.first_at or self.at, self.at)
            change.last_at = max(change.last_at or self.at, self.at)
        change.position = max(state.moment, 0 if state.moment else position + length) - _LONG_AGO

    def begin_run(self, external_id: str, json: bytes) -> None:
        """The next line begins a run of a session."""
        state = self.state
        number = state.runs.pop(external_id, 0) + 1
        state.runs[external_id] = number
        if len(state.runs) > _RUNS:
            del state.runs[next(iter(state.runs))]
        # A run that resumes the session continues its turn numbers; another session begins at 0.
        if state.session != external_id:
            state.turn, state.step, state.leaf = 0, 0, None
        state.session = external_id
        state.chain = _checksum(f"{external_id}:{number}", json)

    @property
    def external_id(self) -> str:
        """The agent's own id of the session."""
        return self.state.session or ""

    @property
    def session_id(self) -> str:
        """The id of the session in the model."""
        return f"{self._agent}:{self.external_id.replace('/', '_')}"

    @property
    def session(self) -> SessionChange:
        """The session's change in this feed."""
        return self.changes.sessions.setdefault(self.session_id, SessionChange(session_id=self.session_id))

    # -- messages

    def begin_turn(self) -> None:
        """Begin another turn."""
        self.state.turn += 1
        self.state.step = 0

    def begin_answer(self, requested_model: str | None = None) -> PrintedMessage:
        """Begin a message of the model, which follows the newest message."""
        self.state.step += 1
        return self._begin(PrintedMessage("", 0, None, None, self.state.step, requested_model=requested_model))

    def begin_prompt(self) -> PrintedMessage:
        """Add a prompt, which begins a turn."""
        self.begin_turn()
        return self._begin(PrintedMessage("", 0, None, None, None, "user", Origin.PROMPT))

    def _begin(self, message: PrintedMessage) -> PrintedMessage:
        state = self.state
        message.id = f"{self.external_id}:{state.chain}"
        message.position, message.parent, message.turn = self.position, state.leaf, state.turn or None
        state.leaf = message.id
        return message

    def show(self, message: PrintedMessage, part: Part, result_id: str | None = None) -> None:
        """Add what the line says about a message. `result_id` is the id of the result that it contains."""
        reading = Message(
            id=message.id,
            role=message.role,
            parts=(part,),
            origin=message.origin,
            requested_model=message.requested_model,
            # A result comes after its call and must not change the time at which the message began.
            created_at=self.at if result_id is None else None,
        )
        known = self._drafts.get(message.id)
        whole = reading if known is None else merge_messages(known[2], reading)
        self._drafts[message.id] = (message, self.session_id, whole)
        ref: RecordRef = (self.position, self.length, result_id)
        refs = self._refs.setdefault(message.id, [])
        if ref not in refs:
            refs.append(ref)

    def finish(self) -> Changes:
        """The changes of this feed."""
        for message, session_id, whole in self._drafts.values():
            placement = Placement(
                session_id=session_id,
                position=message.position,
                records=tuple(self._refs[message.id]),
                record_ids=(message.id,),
                parent_id=message.parent,
                turn=message.turn,
                step=message.step,
            )
            self.changes.messages.append(MessageChange(message=whole, placement=placement))
        return self.changes

    # -- events and diagnostics

    def add_event(self, event: HistoryEvent) -> None:
        """Add an event at the position of the line."""
        self.changes.events.append(
            EventChange(session_id=self.session_id, event=event, record=(self.position, self.length))
        )

    def add_error(self, text: str, kind: str | None) -> None:
        """Add an error that is not the failure of a call."""
        self.add_event(
            ErrorEvent(
                id=f"{self.own_id()}:error", position=self.position, created_at=self.at, error_text=text, kind=kind
            )
        )

    def add_fact(self, kind: str, data: Raw | UnsetType = UNSET) -> None:
        """Add the line as a fact about the run."""
        event = RunMetadataEvent(id=self.own_id(), position=self.position, created_at=self.at, kind=kind, data=data)
        self.add_event(event)

    def add_record(self, kind: str, *, known: bool) -> None:
        """Add the line as a separate event, because it becomes nothing else."""
        data = Raw(clean_json(self.json)) if len(self.json) <= LARGEST_EVENT_RECORD else UNSET
        event = RecordEvent(
            id=self.own_id(), position=self.position, created_at=self.at, kind=kind, known=known, data=data
        )
        self.add_event(event)

    def own_id(self) -> str:
        """An id for something without one, made of everything printed so far."""
        return f"{self.external_id}@{self.state.chain}"


def _checksum(chain: str, json: bytes) -> str:
    return hashlib.sha256(chain.encode(errors="replace") + json).hexdigest()[:20]


def kept_fields(fields: dict[str, Raw], names: tuple[str, ...]) -> Raw | UnsetType:
    """The named fields as exact JSON; UNSET if the record has none of them."""
    kept = [b'"%s":%s' % (name.encode(), bytes(fields[name])) for name in names if name in fields]
    return Raw(b"{%s}" % b",".join(kept)) if kept else UNSET


class PrintedRunState(msgspec.Struct):
    """What the fold of a printed stream remembers. Each agent adds its own fields."""

    printed: PrintedState = msgspec.field(default_factory=PrintedState)


LineT = TypeVar("LineT", bound=msgspec.Struct)
StateT = TypeVar("StateT", bound=PrintedRunState)


def _hold_nothing(state: PrintedRunState, line: msgspec.Struct, json: bytes, position: int) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class PrintedFormat(Generic[LineT, StateT]):
    """A format of stream that an agent prints."""

    agent: str
    lines: JsonLines[LineT]
    state: type[StateT]
    is_ours: Callable[[LineT], bool]
    """Whether only this agent writes such a line: one of them identifies the stream."""
    session_of: Callable[[StateT, LineT, bytes], str | None]
    """The external id of the session whose run begins with this line and JSON; None if no run begins."""
    begin_run: Callable[[StateT, LineT], None]
    """Forget what belongs to the run before."""
    hold: Callable[[StateT, LineT, bytes, int], bool] = _hold_nothing
    """Whether to keep this line (with its JSON and position) until the next one, which names its session."""
    time_of: Callable[[LineT], datetime | None]
    read: Callable[[StateT, PrintedContext, LineT], None]
    """Read a line."""


def detect_printed(form: PrintedFormat[LineT, StateT], path: Path, head: bytes) -> Detection | None:
    """Detect whether a file begins like such a stream; None if it does not. No line has a version."""
    lines = form.lines.read(whole_lines(head), 0, 1, Changes())
    if not any(form.is_ours(line) for line, *_ in lines):
        return None
    place = path.absolute()
    source = Source(agent=form.agent, path=str(place), root=str(place.parent), kind=SourceKind.STREAM)
    return Detection(agent=form.agent, source=source)


class PrintedFold(Generic[LineT, StateT]):
    """Reads one stream. See `turnlog.agents.base.Fold`."""

    def __init__(self, form: PrintedFormat[LineT, StateT], state: bytes | None) -> None:
        self._form = form
        self._state = form.state() if state is None else msgspec.json.decode(state, type=form.state)

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return msgspec.json.encode(self._state)

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        form, state, changes = self._form, self._state, Changes()
        remembered = state.printed
        printed = PrintedContext(form.agent, remembered, changes)
        for line, json, position, length, number in form.lines.read(data, offset, remembered.lines + 1, changes):
            if form.hold(state, line, json, position):
                changes.counts.events += 1
                continue
            session = form.session_of(state, line, json)
            if session is not None:
                form.begin_run(state, line)
                printed.begin_run(session, json)
            printed.enter(json, position, length, number, form.time_of(line))
            form.read(state, printed, line)
        remembered.lines += count_lines(data)
        return printed.finish()
