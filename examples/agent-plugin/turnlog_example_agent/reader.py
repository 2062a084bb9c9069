"""Finds, recognises and reads logs: a record a line, each a prompt, an answer or a result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.base import Detection, Source
from turnlog.agents.changes import Changes, EventChange, ResultChange
from turnlog.agents.decoding import LARGEST_EVENT_RECORD, LogContext, aware, clean_json, keep_newest, state_codec
from turnlog.agents.files import entries, is_file
from turnlog.agents.jsonl import whole_lines
from turnlog.agents.line_fold import LineFold
from turnlog.model import Message, Origin, RecordEvent, TextPart, ToolCallPart, ToolKind, ToolResult, Usage
from turnlog.model.message import Role
from turnlog.model.session import title_from
from turnlog_example_agent import NAME, SESSIONS
from turnlog_example_agent.records import LINES, Call, Record, Tokens

_VERSION = "1"
"""The records name no version, so this names the format."""

_TOOL_KINDS = {"read": ToolKind.READ, "write": ToolKind.EDIT, "run": ToolKind.EXECUTE}

_MOST_CALLS = 64
"""How many calls without a result are remembered: the state stays small whatever a log contains."""


class State(msgspec.Struct):
    """What is remembered between two feeds."""

    lines: int = 0
    turn: int = 0
    step: int = 0
    last: str | None = None
    """The newest message."""
    is_titled: bool = False
    calls: dict[str, str] = {}
    """Calls without a result -> their message."""


_encode, _decode = state_codec(State)


def find_sources(root: Path) -> Iterator[Source]:
    """Every log below a home. The name of the file is the session's id."""
    for entry in entries(os.fspath(root / SESSIONS)):
        if is_file(entry) and entry.name.endswith(".jsonl"):
            yield _source(Path(entry.path), root, Path(entry.path).stem)


def detect(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning. An imported file has another name, so the first record names the session."""
    records = [record for record, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]
    if not records or not (records[0].session and records[0].type in _HANDLERS):
        return Detection(reason="no record with a session and a type")
    place = path.absolute()
    return Detection(agent=NAME, version=_VERSION, source=_source(place, place.parent, records[0].session))


def _source(path: Path, root: Path, session: str) -> Source:
    # A slash separates the parts of a path, and ids are in the paths of the page.
    identity = f"{NAME}:{session.replace('/', '_')}"
    return Source(agent=NAME, path=os.fspath(path), root=os.fspath(root), session_id=identity)


class Context(LogContext):
    """One feed: the changes so far, and what is remembered."""

    def __init__(self, session_id: str, state: State) -> None:
        super().__init__(session_id)
        self.state = state

    def name(self, record: Record) -> str:
        """The id of a message or event. Records are numbered anew in each session, and some may have no id."""
        session = self.session_id.partition(":")[2]
        return f"{session}.{record.id}" if record.id else f"{session}@{self.position}"

    def add_message(self, record: Record, role: Role, step: int | None, **more: Any) -> None:
        """Add the message of a record behind the newest one."""
        identity = self.name(record)
        text = (TextPart(id=f"{identity}.0", text=record.text),) if record.text else ()
        calls = tuple(self._call(identity, record, call, at) for at, call in enumerate(record.calls, len(text)))
        metadata = {NAME: record.others} if record.others else {}
        message = Message(
            id=identity, role=role, parts=(*text, *calls), created_at=record.at, metadata=metadata, **more
        )
        # A record that was written twice is one message, and not its own parent.
        parent = self.state.last if self.state.last != identity else None
        self.add_to_branch(message, parent, turn=self.state.turn or None, step=step)
        self.state.last = identity

    def _call(self, message_id: str, record: Record, call: Call, number: int) -> ToolCallPart:
        part_id = f"{message_id}.{number}"
        if call.id:
            keep_newest(self.state.calls, call.id, message_id, _MOST_CALLS)
        return ToolCallPart(
            id=part_id,
            tool_call_id=call.id or part_id,
            tool_name=call.tool,
            kind=_TOOL_KINDS.get(call.tool, ToolKind.OTHER),
            # The decoder does not look into what it keeps as it is: the bytes may not be UTF-8.
            input=Raw(clean_json(bytes(call.input))) if isinstance(call.input, Raw) else UNSET,
            started_at=record.at,
        )


class ExampleFold(LineFold[State, Context, Record]):
    """Reads one log. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        super().__init__(source, State() if state is None else _decode(state), _encode, LINES)

    def begin(self, data: bytes, offset: int) -> Context:
        """See `LineFold.begin`."""
        return Context(self._source.session_id or f"{NAME}:{Path(self._source.path).stem}", self._state)

    def read(self, context: Context, record: Record) -> None:
        """See `LineFold.read`."""
        if record.at is not None:
            record.at = aware(record.at)
        context.extend_times(record.at)
        _HANDLERS.get(record.type, _read_unknown)(context, record)


def _read_prompt(context: Context, record: Record) -> None:
    state = context.state
    state.turn, state.step = state.turn + 1, 0
    if record.cwd:
        context.session.cwd = context.session.project_path = record.cwd
    title = title_from(record.text)
    if title and not state.is_titled:
        state.is_titled = True
        context.session.titles["prompt"] = title
    context.add_message(record, "user", None, origin=Origin.PROMPT)


def _read_answer(context: Context, record: Record) -> None:
    context.state.step += 1
    context.add_message(record, "assistant", context.state.step, model=record.model, usage=_usage_of(record.tokens))


def _usage_of(tokens: Tokens | None) -> Usage | None:
    """None if nothing was counted: unknown is not zero."""
    if tokens is None or (tokens.input is None and tokens.output is None):
        return None
    return Usage(input=tokens.input, output=tokens.output)


def _read_result(context: Context, record: Record) -> None:
    if not record.call:
        _read_unknown(context, record)
        return
    result = ToolResult(
        id=f"{record.call}.result",
        status="error" if record.failed else "success",
        content=(TextPart(text=record.text),) if record.text else (),
        error_text=record.text if record.failed else None,
        completed_at=record.at,
        metadata={NAME: record.others} if record.others else {},
    )
    context.changes.results.append(
        ResultChange(
            session_id=context.session_id,
            tool_call_id=record.call,
            result=result,
            position=context.position,
            record=(context.position, context.length),
            record_ids=(context.name(record),),
            message_id=context.state.calls.pop(record.call, None),
        )
    )
    context.changes.counts.results += 1


def _read_unknown(context: Context, record: Record) -> None:
    event = RecordEvent(
        id=context.name(record),
        position=context.position,
        created_at=record.at,
        kind=record.type,
        known=False,
        # The archive has the record whatever its size.
        data=Raw(clean_json(context.json)) if len(context.json) <= LARGEST_EVENT_RECORD else UNSET,
    )
    context.changes.events.append(
        EventChange(
            session_id=context.session_id,
            event=event,
            record=(context.position, context.length),
            parent_id=context.state.last,
        )
    )
    context.changes.counts.events += 1


_HANDLERS: dict[str, Callable[[Context, Record], None]] = {
    "prompt": _read_prompt,
    "answer": _read_answer,
    "result": _read_result,
}
