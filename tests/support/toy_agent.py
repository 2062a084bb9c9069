"""An agent with a small log format of its own, read the hard way: everything the fold contract allows, it does.

A record is a line of JSON. A message is spread over lines, one block each, and may go on after others have begun.
Results come late, early, twice or for no call; records hang under each other, so that rewinds leave branches; a
record may end the context, name the active branch, start a subagent, say that it was copied, or be unreadable.

    home/<session>.log        a session                 home/<session>.sub      a subagent
    home/<session>.facts      facts, rewritten whole    home/<session>.spills/  outputs that were too large

Within a feed the fold joins what belongs to one message, as real agents' folds do, so a log that was read in other
pieces comes in other changes. `grouped=False` returns every record by itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec

from turnlog.agents.base import Agent, Detection, Source, SourceKind
from turnlog.agents.changes import (
    Changes,
    Diagnostic,
    EventChange,
    Link,
    MessageChange,
    Placement,
    ResultChange,
    SessionChange,
    Spill,
)
from turnlog.model import (
    Approval,
    CompactionEvent,
    Fate,
    InterruptEvent,
    Message,
    Origin,
    Part,
    ReasoningPart,
    RecordEvent,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    Usage,
)
from turnlog.model.base import ProviderData
from turnlog.model.codec import decode_event, encode, to_json
from turnlog.model.merge import merge_messages
from turnlog.store.reconcile.merge import add_late_result, merge_placements, merge_records, merge_session_changes

NAME = "toy"

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

_REMEMBERED_CALLS = 3
"""A fold's state stays small: calls before the last few are found by the store."""

KINDS = {
    ".log": SourceKind.SESSION,
    ".sub": SourceKind.SUBAGENT,
    ".facts": SourceKind.SIDECAR,
    ".stream": SourceKind.STREAM,
}


def session_id(name: str) -> str:
    return f"{NAME}:{name}"


def moment(minutes: float | None) -> datetime | None:
    return None if minutes is None else START + timedelta(minutes=minutes)


class Record(msgspec.Struct, omit_defaults=True):
    """A line of a log."""

    kind: str = ""
    id: str | None = None
    parent: str | None = None
    message: str = ""
    block: int = 0
    text: str = ""
    at: float | None = None
    model: str | None = None
    stop: str | None = None
    tokens: tuple[int, int] | None = None
    call: str = ""
    tool: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")
    status: Any = "success"
    spill: str | None = None
    proof: str = ""
    kept: tuple[str, ...] = ()
    leaf: str = ""
    session: str = ""
    link: Any = "subagent"
    guess: bool = False
    source: Any = "custom"
    cwd: str | None = None
    branch: str | None = None
    version: str | None = None
    mode: str | None = None
    approved: bool | None = None
    summary: bool = False
    copied: bool = False
    fate: Fate = Fate.ACTIVE


class OpenMessage(msgspec.Struct):
    """Where the message that is being written is."""

    id: str
    position: int
    turn: int
    step: int | None
    parent_id: str | None
    parent_record: str | None


class OpenCompaction(msgspec.Struct):
    """A compaction whose summary is still to come."""

    event: msgspec.Raw
    record: tuple[int, int]
    record_id: str | None
    parent_id: str | None


class State(msgspec.Struct):
    """What a fold remembers between feeds."""

    line: int = 0
    end: int = 0
    ended: bool = True
    tail: str | None = None
    tail_message: str | None = None
    turn: int = 0
    step: int = 0
    open: OpenMessage | None = None
    calls: dict[str, str] = {}
    compaction: OpenCompaction | None = None
    titled: bool = False


class ToyFold:
    """The reading of one log."""

    def __init__(self, source: Source, state: bytes | None, grouped: bool) -> None:
        self.session = source.session_id or ""
        self._state = msgspec.json.decode(state, type=State) if state else State()
        self._grouped = grouped
        self._changes = Changes()
        self._readers: dict[str, Callable[[Record], object]] = {
            "prompt": self._read_message,
            "text": self._read_message,
            "thought": self._read_message,
            "call": self._read_message,
            "result": self._read_result,
            "compact": self._read_compaction,
            "interrupt": self._read_interrupt,
            "leaf": self._read_leaf,
            "spawn": self._read_spawn,
            "origin": self._read_origin,
            "title": self._read_title,
            "facts": lambda record: self._add_event(self._record_event(record), record),
        }

    def state(self) -> bytes:
        return msgspec.json.encode(self._state)

    def feed(self, data: bytes, offset: int) -> Changes:
        changes = self._changes = Changes()
        end = offset + len(data)
        if offset == self._state.end and offset and not self._state.ended:
            self._state.line -= 1  # a record was taken before its line had ended: this is the rest of the line
        lines = data.split(b"\n")
        for line in lines if lines[-1] else lines[:-1]:
            self._state.line += 1
            self._read_line(line, offset)
            offset += len(line) + 1
        self._state.end, self._state.ended = end, data.endswith(b"\n")
        if self._grouped:
            changes.messages = list(_group(changes))
        return changes

    def _read_line(self, line: bytes, offset: int) -> None:
        """Every object on the line; what is none is reported."""
        text = line.decode("latin-1")
        position = _skip(text, 0)
        if position == len(text):
            self._changes.counts.blank += 1
        while position < len(text):
            try:
                _, end = json.JSONDecoder().raw_decode(text, position)
                record = msgspec.json.decode(line[position:end], type=Record)
            except (ValueError, msgspec.MsgspecError):
                self._give_up(offset + position, len(line.rstrip()) - position)
                return
            self._offset, self._length = offset + position, end - position
            self._read(record)
            position = _skip(text, end)

    def _give_up(self, offset: int, length: int) -> None:
        found = Diagnostic(offset=offset, length=length, line=self._state.line, reason="not a record")
        self._changes.diagnostics.append(found)
        self._changes.counts.unreadable += 1

    def _read(self, record: Record) -> None:
        self._note(
            SessionChange(
                session_id=self.session,
                position=self._offset,
                project_path=record.cwd,
                cwd=record.cwd,
                git_branch=record.branch,
                agent_version=record.version,
                first_at=moment(record.at),
                last_at=moment(record.at),
                metadata={NAME: {"mode": record.mode, "seen": {record.mode: True}}} if record.mode else {},
            )
        )
        self._readers.get(record.kind, self._read_other)(record)

    def _note(self, change: SessionChange) -> None:
        known = self._changes.sessions.get(self.session)
        self._changes.sessions[self.session] = change if known is None else merge_session_changes(known, change)

    def _change(self) -> SessionChange:
        return self._changes.sessions[self.session]

    # -- the chain

    def _advance(self, record: Record, message: str | None) -> None:
        """The record is the newest of the chain, and the end of the active branch until another is named."""
        if record.id is not None:
            self._state.tail, self._state.tail_message = record.id, message
            self._change().active_leaf = record.id

    def _parent(self, record: Record) -> tuple[str | None, str | None]:
        """The parent of a new message: its id, or its record when another message has come in between."""
        if record.parent is None and self._state.tail is None:
            return None, None
        if record.parent == self._state.tail:
            return self._state.tail_message, None
        self._change().has_branches = True
        return None, record.parent

    # -- messages and results

    def _read_message(self, record: Record) -> None:
        state = self._state
        if state.open is None or state.open.id != record.message:
            self._open(record)
        assert state.open is not None
        if record.kind == "call":
            state.calls = dict([*state.calls.items(), (record.call, record.message)][-_REMEMBERED_CALLS:])
        self._advance(record, record.message)
        place = state.open
        placement = Placement(
            session_id=self.session,
            position=place.position,
            records=((self._offset, self._length, record.block),),
            record_ids=(record.id,) if record.id else (),
            parent_id=place.parent_id,
            parent_record=place.parent_record,
            turn=place.turn,
            step=place.step,
            fate=record.fate,
            copied=record.copied,
        )
        self._changes.messages.append(MessageChange(message=_message(record), placement=placement))
        self._changes.counts.messages += 1

    def _open(self, record: Record) -> None:
        state = self._state
        is_prompt = record.kind == "prompt"
        state.turn += is_prompt
        state.step = 0 if is_prompt else state.step + 1
        parent_id, parent_record = self._parent(record)
        step = None if is_prompt else state.step
        state.open = OpenMessage(record.message, self._offset, state.turn, step, parent_id, parent_record)
        if record.summary and state.compaction is not None:
            self._close_compaction(state.compaction, record.message)
        if is_prompt and not state.titled:
            state.titled = True
            self._change().titles["prompt"] = record.text[:20]

    def _read_result(self, record: Record) -> None:
        message = self._state.calls.get(record.call)
        status: Any = sys.intern(record.status)
        self._advance(record, message or self._state.tail_message)
        self._changes.results.append(
            ResultChange(
                session_id=self.session,
                tool_call_id=record.call,
                result=ToolResult(
                    id=record.id or f"{self._offset}",
                    status=status,
                    content=(TextPart(text=record.text),),
                    completed_at=moment(record.at),
                    spilled_to=record.spill,
                ),
                position=self._offset,
                record=(self._offset, self._length),
                record_ids=(record.id,) if record.id else (),
                message_id=message,
                approval=None if record.approved is None else Approval(approved=record.approved, source="user"),
            )
        )
        self._changes.counts.results += 1

    # -- everything else

    def _read_compaction(self, record: Record) -> None:
        self._change().has_branches = True
        event = CompactionEvent(
            id=record.id or f"{self._offset}",
            position=self._offset,
            created_at=moment(record.at),
            kept_message_ids=record.kept,
        )
        change = self._add_event(event, record)
        self._state.compaction = OpenCompaction(
            event=msgspec.Raw(encode(event)),
            record=(self._offset, self._length),
            record_id=record.id,
            parent_id=change.parent_id,
        )

    def _close_compaction(self, told: OpenCompaction, summary: str) -> None:
        """The summary has come: the compaction is returned again, with it."""
        self._state.compaction = None
        event = decode_event(told.event)
        assert isinstance(event, CompactionEvent)
        self._changes.events = [change for change in self._changes.events if change.event != event]
        self._changes.events.append(
            EventChange(
                session_id=self.session,
                event=msgspec.structs.replace(event, summary_message_id=summary),
                record=told.record,
                record_id=told.record_id,
                parent_id=told.parent_id,
            )
        )

    def _read_interrupt(self, record: Record) -> None:
        self._add_event(InterruptEvent(id=record.id or f"{self._offset}", position=self._offset), record)

    def _read_leaf(self, record: Record) -> None:
        self._add_event(self._record_event(record), record)
        self._change().active_leaf = record.leaf
        self._change().has_branches = True

    def _read_spawn(self, record: Record) -> None:
        self._changes.links.append(
            Link(
                kind="subagent",
                parent_session_id=self.session,
                child_session_id=record.session,
                tool_call_id=record.call,
                metadata={"seen by": "parent"},
            )
        )
        self._add_event(self._record_event(record), record)

    def _read_origin(self, record: Record) -> None:
        self._changes.links.append(
            Link(
                kind=record.link,
                parent_session_id=record.session,
                child_session_id=self.session,
                inferred=record.guess,
                metadata={"depth": record.block} if record.block else {},
            )
        )
        self._add_event(self._record_event(record), record)

    def _read_title(self, record: Record) -> None:
        self._change().titles[record.source] = record.text
        self._add_event(self._record_event(record), record)

    def _read_other(self, record: Record) -> None:
        self._add_event(self._record_event(record, known=record.kind == "note"), record)

    def _record_event(self, record: Record, *, known: bool = True) -> RecordEvent:
        return RecordEvent(
            id=record.id or f"{self._offset}",
            position=self._offset,
            created_at=moment(record.at),
            kind=record.kind,
            known=known,
        )

    def _add_event(self, event: RecordEvent | CompactionEvent | InterruptEvent, record: Record) -> EventChange:
        message = self._state.tail_message if record.parent == self._state.tail else None
        change = EventChange(
            session_id=self.session,
            event=event,
            record=(self._offset, self._length),
            record_id=record.id,
            parent_id=message,
        )
        self._changes.events.append(change)
        if record.id is not None:
            if record.parent != self._state.tail:
                self._change().has_branches = True
            self._advance(record, message)
        self._changes.counts.events += 1
        return change


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\0":
        position += 1
    return position


def _message(record: Record) -> Message:
    """What one line says of its message."""
    is_prompt = record.kind == "prompt"
    return Message(
        id=record.message,
        role="user" if is_prompt else "assistant",
        origin=Origin.PROMPT if is_prompt else None,
        parts=(_part(record),),
        created_at=moment(record.at),
        completed_at=None if is_prompt else moment(record.at),
        model=record.model,
        raw_stop_reason=record.stop,
        usage=Usage(input=record.tokens[0], output=record.tokens[1]) if record.tokens else None,
    )


def _part(record: Record) -> Part:
    part_id = f"{record.message}.{record.block}"
    if record.kind == "call":
        return ToolCallPart(
            id=part_id,
            tool_call_id=record.call,
            tool_name=record.tool,
            kind=ToolKind.READ if record.tool == "Read" else ToolKind.EXECUTE,
            input=record.input,
            started_at=moment(record.at),
        )
    if record.kind == "thought":
        proof = record.proof or (record.text[::-1] if record.stop else "")
        signature = ProviderData(name="toy", opaque={"signature": proof}) if proof else None
        return ReasoningPart(id=part_id, text=record.text, provider=signature)
    return TextPart(id=part_id, text=record.text)


def _group(changes: Changes) -> Iterator[MessageChange]:
    """One change a message, with the results of this feed that belong to its calls."""
    grouped: dict[str, MessageChange] = {}
    for change in changes.messages:
        known = grouped.get(change.message.id)
        grouped[change.message.id] = change if known is None else _join(known, change)
    late: list[ResultChange] = []
    for result in changes.results:
        owner = grouped.get(result.message_id or "")
        if owner is None or not _has_call(owner.message, result.tool_call_id):
            late.append(result)
        else:
            grouped[owner.message.id] = _with_result(owner, result)
    changes.results = late
    yield from grouped.values()


def _join(one: MessageChange, other: MessageChange) -> MessageChange:
    return MessageChange(
        message=merge_messages(one.message, other.message),
        placement=merge_placements(one.placement, other.placement),
    )


def _has_call(message: Message, call: str) -> bool:
    return any(isinstance(part, ToolCallPart) and part.tool_call_id == call for part in message.parts)


def _with_result(change: MessageChange, result: ResultChange) -> MessageChange:
    place = msgspec.structs.replace(
        change.placement,
        records=merge_records(change.placement.records, ((*result.record, result.result.id),)),
        record_ids=(*change.placement.record_ids, *result.record_ids),
    )
    return MessageChange(message=add_late_result(change.message, result), placement=place)


class FactsFold:
    """Reads a sidecar: `{"title": …}`, rewritten whole."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def state(self) -> bytes:
        return b""

    def feed(self, data: bytes, offset: int) -> Changes:
        changes = Changes()
        session = self._source.session_id or ""
        if self._source.kind is SourceKind.SPILL:
            name = Path(self._source.path).name
            changes.spills.append(Spill(session_id=session, name=name, media_type="text/plain", size=len(data)))
            return changes
        try:
            facts = msgspec.json.decode(data, type=dict[str, str])
        except msgspec.MsgspecError as error:
            changes.diagnostics.append(Diagnostic(offset=0, length=len(data), reason=str(error)))
            changes.counts.unreadable += 1
            return changes
        titles: Any = {name: text for name, text in facts.items() if name in ("user", "custom", "generated")}
        rest = {name: text for name, text in facts.items() if name not in titles}
        changes.sessions[session] = SessionChange(session_id=session, titles=titles, metadata=rest)
        return changes


class ToyAgent(Agent):
    """The agent of these logs."""

    name = NAME
    display_name = "Toy"

    def __init__(self, home: Path | None = None, *, grouped: bool = True, parser_version: int = 1) -> None:
        self._home = home
        self._grouped = grouped
        self.parser_version = parser_version

    def roots(self) -> Sequence[Path]:
        return () if self._home is None else (self._home,)

    def find_sources(self, root: Path) -> Iterator[Source]:
        for path in sorted(root.rglob("*")):
            source = self.source_of(path, root)
            if source is not None:
                yield source

    def detect(self, path: Path, head: bytes) -> Detection:
        return Detection(reason="only tests write it")

    def source_of(self, path: Path, root: Path | None = None) -> Source | None:
        """The source at a path; None for what is no log of this agent."""
        is_spill = path.parent.suffix == ".spills"
        kind = SourceKind.SPILL if is_spill else KINDS.get(path.suffix)
        if kind is None:
            return None
        return Source(
            agent=NAME,
            path=str(path),
            root=str(root or path.parent),
            kind=kind,
            session_id=session_id(path.parent.stem if is_spill else path.stem),
            appendable=kind in (SourceKind.SESSION, SourceKind.SUBAGENT, SourceKind.STREAM),
        )

    def fold(self, source: Source, state: bytes | None = None) -> ToyFold | FactsFold:
        return ToyFold(source, state, self._grouped) if source.appendable else FactsFold(source)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        return None


def line(**fields: Any) -> bytes:
    """A record as it is written."""
    known = {name: value for name, value in fields.items() if value is not None}
    return bytes(to_json(known)) + b"\n"


def log(*lines: bytes) -> bytes:
    return reduce(bytes.__add__, lines, b"")
