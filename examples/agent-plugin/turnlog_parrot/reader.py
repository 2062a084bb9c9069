"""Finds, recognises and reads Parrot's logs: a record a line, each a prompt, an answer or a result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.base import Detection, Source
from turnlog.agents.changes import Changes, EventChange, MessageChange, Placement, ResultChange
from turnlog.agents.decoding import Count, LogContext, aware, keep_newest, state_codec
from turnlog.agents.files import entries, is_file
from turnlog.agents.jsonl import JsonLines, whole_lines
from turnlog.agents.line_fold import LineFold
from turnlog.model import Message, Origin, RecordEvent, TextPart, ToolCallPart, ToolKind, ToolResult, Usage
from turnlog.model.message import Role
from turnlog.model.session import title_from
from turnlog_parrot import NAME, TALKS

_VERSION = "1"
"""Parrot's records do not name a version."""

_KINDS = {"look": ToolKind.READ, "peck": ToolKind.EDIT, "whistle": ToolKind.EXECUTE}

_CALLS_KEPT = 64


class Tokens(msgspec.Struct):
    """Tokens of one model call."""

    input: Count | None = msgspec.field(name="in", default=None)
    output: Count | None = msgspec.field(name="out", default=None)


class Call(msgspec.Struct):
    """A call in an answer."""

    id: str = ""
    tool: str = ""
    input: Raw | UnsetType = UNSET


class Record(msgspec.Struct):
    """A line of a log."""

    talk: str = ""
    id: str = ""
    kind: str = ""
    at: datetime | None = None
    text: str = ""
    calls: list[Call] = []
    call: str = ""
    failed: bool = False
    model: str | None = None
    tokens: Tokens | None = None
    cwd: str | None = None


class State(msgspec.Struct):
    """What is remembered between two feeds."""

    lines: int = 0
    turn: int = 0
    step: int = 0
    last: str | None = None
    """The newest message."""
    calls: dict[str, str] = {}
    """Calls without a result -> their message."""


_LINES = JsonLines(Record, first_keys=("talk",), plausible=lambda record: bool(record.talk and record.kind))
_encode, _decode = state_codec(State)


def find_sources(root: Path) -> Iterator[Source]:
    """Every log below a home."""
    for entry in entries(os.fspath(root / TALKS)):
        if is_file(entry) and entry.name.endswith(".jsonl"):
            yield _source(Path(entry.path), root, Path(entry.path).stem)


def detect(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning; the first record names the session."""
    records = [record for record, *_ in _LINES.read(whole_lines(head), 0, 1, Changes())]
    if not records or not (records[0].talk and records[0].id and records[0].kind in _HANDLERS):
        return Detection(reason="no record of a talk")
    place = path.absolute()
    return Detection(agent=NAME, version=_VERSION, source=_source(place, place.parent, records[0].talk))


def _source(path: Path, root: Path, talk: str) -> Source:
    return Source(agent=NAME, path=os.fspath(path), root=os.fspath(root), session_id=f"{NAME}:{talk}")


class Context(LogContext):
    """One feed: the changes so far, and what is remembered."""

    def __init__(self, session_id: str, state: State) -> None:
        super().__init__(session_id)
        self.state = state

    def add(self, record: Record, role: Role, step: int | None, **more: Any) -> None:
        """Add the message of a record."""
        text = (TextPart(id=f"{record.id}.0", text=record.text),) if record.text else ()
        calls = tuple(self._call(record, call, number) for number, call in enumerate(record.calls, len(text)))
        placement = Placement(
            session_id=self.session_id,
            position=self.position,
            records=((self.position, self.length, None),),
            record_ids=(record.id,),
            parent_id=self.state.last,
            turn=self.state.turn or None,
            step=step,
        )
        message = Message(id=record.id, role=role, parts=(*text, *calls), created_at=record.at, **more)
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.changes.counts.messages += 1
        self.state.last = record.id

    def _call(self, record: Record, call: Call, number: int) -> ToolCallPart:
        keep_newest(self.state.calls, call.id, record.id, _CALLS_KEPT)
        return ToolCallPart(
            id=f"{record.id}.{number}",
            tool_call_id=call.id,
            tool_name=call.tool,
            kind=_KINDS.get(call.tool, ToolKind.OTHER),
            input=call.input,
            started_at=record.at,
        )


class ParrotFold(LineFold[State, Context, Record]):
    """Reads one log. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        super().__init__(source, State() if state is None else _decode(state), _encode, _LINES)

    def begin(self, data: bytes, offset: int) -> Context:
        """See `LineFold.begin`."""
        return Context(self._source.session_id or f"{NAME}:", self._state)

    def read(self, context: Context, record: Record) -> None:
        """See `LineFold.read`."""
        if record.at is not None:
            record.at = aware(record.at)
        context.extend_times(record.at)
        _HANDLERS.get(record.kind, _read_unknown)(context, record)


def _read_prompt(context: Context, record: Record) -> None:
    context.state.turn, context.state.step = context.state.turn + 1, 0
    context.session.cwd = context.session.project_path = record.cwd
    title = title_from(record.text)
    if title and context.state.turn == 1:
        context.session.titles["prompt"] = title
    context.add(record, "user", None, origin=Origin.PROMPT)


def _read_answer(context: Context, record: Record) -> None:
    context.state.step += 1
    tokens = record.tokens
    usage = None if tokens is None else Usage(input=tokens.input, output=tokens.output)
    context.add(record, "assistant", context.state.step, model=record.model, usage=usage)


def _read_result(context: Context, record: Record) -> None:
    result = ToolResult(
        id=f"{record.call}.result",
        status="error" if record.failed else "success",
        content=(TextPart(text=record.text),),
        error_text=record.text if record.failed else None,
        completed_at=record.at,
    )
    context.changes.results.append(
        ResultChange(
            session_id=context.session_id,
            tool_call_id=record.call,
            result=result,
            position=context.position,
            record=(context.position, context.length),
            record_ids=(record.id,),
            message_id=context.state.calls.pop(record.call, None),
        )
    )
    context.changes.counts.results += 1


def _read_unknown(context: Context, record: Record) -> None:
    event = RecordEvent(
        id=record.id or f"{context.session_id}@{context.position}",
        position=context.position,
        created_at=record.at,
        kind=record.kind,
        known=False,
        data=Raw(context.json),
    )
    place = (context.position, context.length)
    change = EventChange(session_id=context.session_id, event=event, record=place, parent_id=context.state.last)
    context.changes.events.append(change)
    context.changes.counts.events += 1


_HANDLERS: dict[str, Callable[[Context, Record], None]] = {
    "asked": _read_prompt,
    "said": _read_answer,
    "did": _read_result,
}
