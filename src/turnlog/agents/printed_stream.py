"""The fold of a stream that an agent prints, for agents whose streams have no ids for messages.

An id is made of the session and all that its run printed up to the message's first line: the same bytes give the same
id, wherever they are kept. Such messages are not those of the log, and the log supersedes them in the store. What a
line means is known to the agent (`PrintedFormat.read`); recognising a stream, going from line to line, the ids and the
state between two feeds are the same for all (`PrintedFold`, `PrintedContext`).
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
"""What a stream says of a session counts less than anything a log says, and a later run more than an earlier one."""

_RUNS = 16


class PrintedMessage(msgspec.Struct, array_like=True):
    """A message that may go on in a later line."""

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
    """It has a call that the agent ran."""

    def next_part(self) -> str:
        """The id of one more part."""
        self.parts += 1
        return f"{self.id}.{self.parts - 1}"


class PrintedState(msgspec.Struct):
    """What is remembered of a stream between two feeds, whoever printed it."""

    lines: int = 0
    session: str | None = None
    """External id of the session that is being printed."""
    runs: dict[str, int] = {}
    """Session -> how many of its runs began in this stream."""
    chain: str = ""
    """Checksum of what the run has printed so far."""
    moment: int = 0
    """The latest time seen, in Unix milliseconds."""
    turn: int = 0
    step: int = 0
    leaf: str | None = None


class PrintedContext(LineContext):
    """One feed: the line that is being read, and what all lines have brought so far."""

    def __init__(self, agent: str, state: PrintedState, changes: Changes) -> None:
        super().__init__(changes)
        self.state = state
        self.at: datetime | None = None
        self._agent = agent
        self._drafts: dict[str, tuple[PrintedMessage, str, Message]] = {}
        self._refs: dict[str, list[RecordRef]] = {}

    # -- the line and its session

    def enter(self, json: bytes, position: int, length: int, line_number: int, at: datetime | None) -> None:
        """Go on to a line."""
        self.json, self.position, self.length, self.line_number = json, position, length, line_number
        self.at = None if at is None else aware(at)
        state = self.state
        if state.session is None:
            # A stream that lost its beginning: its first line names the session.
            state.session = f"stream-{hashlib.sha256(json).hexdigest()[:16]}"
        # Ids must not depend on where the stream is kept, nor on other runs in the file.
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
        # A run that resumes the session goes on counting its turns; another session begins anew.
        if state.session != external_id:
            state.turn, state.step, state.leaf = 0, 0, None
        state.session = external_id
        state.chain = _checksum(f"{external_id}:{number}", json)

    @property
    def external_id(self) -> str:
        """The session's own id."""
        return self.state.session or ""

    @property
    def session_id(self) -> str:
        """The session's id."""
        return f"{self._agent}:{self.external_id.replace('/', '_')}"

    @property
    def session(self) -> SessionChange:
        """What this feed learned about the session."""
        return self.changes.sessions.setdefault(self.session_id, SessionChange(session_id=self.session_id))

    # -- messages

    def begin_turn(self) -> None:
        """What follows is another turn."""
        self.state.turn += 1
        self.state.step = 0

    def begin_answer(self, requested_model: str | None = None) -> PrintedMessage:
        """A message of the model, which follows the one before."""
        self.state.step += 1
        return self._begin(PrintedMessage("", 0, None, None, self.state.step, requested_model=requested_model))

    def begin_prompt(self) -> PrintedMessage:
        """What somebody asked: it begins a turn."""
        self.begin_turn()
        return self._begin(PrintedMessage("", 0, None, None, None, "user", Origin.PROMPT))

    def _begin(self, message: PrintedMessage) -> PrintedMessage:
        state = self.state
        message.id = f"{self.external_id}:{state.chain}"
        message.position, message.parent, message.turn = self.position, state.leaf, state.turn or None
        state.leaf = message.id
        return message

    def show(self, message: PrintedMessage, part: Part, result_id: str | None = None) -> None:
        """The line tells this of a message; `result_id` names the result that it brings."""
        reading = Message(
            id=message.id,
            role=message.role,
            parts=(part,),
            origin=message.origin,
            requested_model=message.requested_model,
            # A result comes later than its call and must not move the start of the message.
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
        """All that this feed brought."""
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
        """Put an event where the line stands."""
        self.changes.events.append(
            EventChange(session_id=self.session_id, event=event, record=(self.position, self.length))
        )

    def add_error(self, text: str, kind: str | None) -> None:
        """Something that failed outside of any call."""
        self.add_event(
            ErrorEvent(
                id=f"{self.own_id()}:error", position=self.position, created_at=self.at, error_text=text, kind=kind
            )
        )

    def add_fact(self, kind: str, data: Raw | UnsetType = UNSET) -> None:
        """A line that says something about the run."""
        event = RunMetadataEvent(id=self.own_id(), position=self.position, created_at=self.at, kind=kind, data=data)
        self.add_event(event)

    def add_record(self, kind: str, *, known: bool) -> None:
        """A line that becomes nothing else."""
        data = Raw(clean_json(self.json)) if len(self.json) <= LARGEST_EVENT_RECORD else UNSET
        event = RecordEvent(
            id=self.own_id(), position=self.position, created_at=self.at, kind=kind, known=known, data=data
        )
        self.add_event(event)

    def own_id(self) -> str:
        """An id for what has none: made of all that was printed up to it."""
        return f"{self.external_id}@{self.state.chain}"


def _checksum(chain: str, json: bytes) -> str:
    return hashlib.sha256(chain.encode(errors="replace") + json).hexdigest()[:20]


def kept_fields(fields: dict[str, Raw], names: tuple[str, ...]) -> Raw | UnsetType:
    """Those of the fields that are named, as exact JSON; UNSET when there is none."""
    kept = [b'"%s":%s' % (name.encode(), bytes(fields[name])) for name in names if name in fields]
    return Raw(b"{%s}" % b",".join(kept)) if kept else UNSET


class PrintedRunState(msgspec.Struct):
    """What a fold of a printed stream remembers. Each agent adds its own."""

    printed: PrintedState = msgspec.field(default_factory=PrintedState)


LineT = TypeVar("LineT", bound=msgspec.Struct)
StateT = TypeVar("StateT", bound=PrintedRunState)


def _hold_nothing(state: PrintedRunState, line: msgspec.Struct, json: bytes, position: int) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class PrintedFormat(Generic[LineT, StateT]):
    """A form of stream that an agent prints."""

    agent: str
    lines: JsonLines[LineT]
    state: type[StateT]
    is_ours: Callable[[LineT], bool]
    """Whether a line can be nobody else's: one of them is enough to recognise a stream."""
    session_of: Callable[[StateT, LineT, bytes], str | None]
    """External id of the session of which a line begins a run, given the line's JSON too; None when it begins none."""
    begin_run: Callable[[StateT, LineT], None]
    """Forget what was of the run before."""
    hold: Callable[[StateT, LineT, bytes, int], bool] = _hold_nothing
    """Whether a line waits for the next one, which tells its session; it is given with its JSON and position."""
    time_of: Callable[[LineT], datetime | None]
    read: Callable[[StateT, PrintedContext, LineT], None]
    """Tell what a line says."""


def detect_printed(form: PrintedFormat[LineT, StateT], path: Path, head: bytes) -> Detection | None:
    """Whether a file begins as such a stream does; None when it does not. No line names a version."""
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
