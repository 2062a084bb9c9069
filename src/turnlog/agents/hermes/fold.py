"""The fold of one session's messages: a line for each row, after a line with facts about all of them.

Rows are marked as compacted or taken back; `turnlog.agents.hermes.row_log` says which repeat others.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, EventChange, MessageChange, Placement, ResultChange
from turnlog.agents.decoding import LogContext, clean_json, keep_newest, other_fields, state_codec
from turnlog.agents.hermes import NAME
from turnlog.agents.hermes.contents import call_parts, content_parts, reasoning_part, result_of, time_of
from turnlog.agents.hermes.database import MESSAGES, SESSIONS, Row, row_of
from turnlog.agents.hermes.row_log import COMPACTION, HermesRowLine, is_summary, message_id
from turnlog.agents.hermes.sources import session_id
from turnlog.agents.jsonl import JsonLines
from turnlog.agents.line_fold import LineFold
from turnlog.agents.open_calls import OpenCall, abort_calls, message_of, open_call
from turnlog.model import (
    CompactionEvent,
    HistoryEvent,
    InterruptEvent,
    Message,
    Origin,
    Part,
    RecordEvent,
    RewindEvent,
    StopReason,
    TextPart,
    ToolCallPart,
)
from turnlog.model.session import title_from

_LINES = JsonLines(
    HermesRowLine, first_keys=("table",), plausible=lambda line: line.table in (MESSAGES, SESSIONS, COMPACTION)
)

STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "tool_calls": "tool_use",
    "length": "length",
    "content_filter": "refusal",
}
"""`finish_reason` of an answer -> why the model stopped."""

COLUMNS: frozenset[str] = frozenset(
    {
        *("id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp"),
        *("finish_reason", "reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items"),
        *("codex_message_items", "active", "compacted"),
    }
)
"""The columns of a message that are read. Others are metadata."""

_NOTHING: dict[str, Any] = {"observed": 0}
"""Columns whose usual value says nothing."""

_OWN_WORDS = ("[System: ", "[System note: ", "[IMPORTANT: ")
"""How messages of the role `user` begin that Hermes Agent writes."""

_RECENT_CALLS = 64


class HermesState(msgspec.Struct):
    """What is remembered between two feeds."""

    lines: int = 0
    is_subagent: bool = False
    model: str | None = None
    leaf: str | None = None
    """The newest message that was not taken back."""
    tip: str | None = None
    """The newest message."""
    calls: dict[str, OpenCall] = {}
    """Calls without a result."""
    turn: int = 0
    step: int = 0
    is_titled: bool = False
    is_branched: bool = False


encode_state, decode_state = state_codec(HermesState)


class _Context(LogContext):
    """The context of one feed: the line that is being read, and what the feed has found so far."""

    def __init__(self, state: HermesState, session: str) -> None:
        super().__init__(session)
        self.state = state

    def finish(self) -> Changes:
        """Everything that this feed has found."""
        state = self.state
        # After an `/undo` with nothing behind it there is no rewind yet, but the newest row is not the end of the
        # branch.
        return self.finish_branched(state.leaf, is_branched=state.is_branched or state.tip != state.leaf)

    def add_event(self, event: HistoryEvent) -> None:
        """Add an event at the position of the line."""
        placed = msgspec.structs.replace(event, position=self.position)
        record = (self.position, self.length)
        self.changes.events.append(
            EventChange(session_id=self.session_id, event=placed, record=record, parent_id=self.state.leaf)
        )

    def add_message(self, message: Message, *, is_taken_back: bool, is_copied: bool, step: int | None) -> None:
        """Add a message after the newest one, or after the newest one that was not taken back."""
        state = self.state
        # Rows that were taken back follow each other; what is written afterwards follows the message before all of
        # them.
        parent = state.tip if is_taken_back else state.leaf
        # No row records the `/undo`: the first message behind rows that were taken back shows that there was one.
        if not is_taken_back and state.tip != state.leaf:
            state.is_branched = True
            self.add_event(
                RewindEvent(id=f"{message.id}.rewind", created_at=message.created_at, to_message_id=state.leaf)
            )
        placement = Placement(
            session_id=self.session_id,
            position=self.position,
            records=((self.position, self.length, None),),
            record_ids=(message.id,),
            parent_id=None if parent == message.id else parent,
            turn=state.turn or None,
            step=step,
            copied=is_copied,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.changes.counts.messages += 1
        state.tip = message.id
        if not is_taken_back:
            state.leaf = message.id


class HermesFold(LineFold[HermesState, _Context, HermesRowLine]):
    """Reads one session's messages."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        super().__init__(source, decode_state(state) if state is not None else HermesState(), encode_state, _LINES)

    def begin(self, data: bytes, offset: int) -> _Context:
        """See `LineFold.begin`."""
        return _Context(self._state, self._source.session_id or session_id(self._source.path.rpartition("#")[2]))

    def read(self, context: _Context, record: HermesRowLine) -> None:
        """See `LineFold.read`."""
        _read_line(context, record)


def _read_line(context: _Context, line: HermesRowLine) -> None:
    if line.table == MESSAGES:
        _read_row(context, line)
    elif line.table == COMPACTION:
        _read_compaction(context, line)
    elif line.table == SESSIONS:
        # The row of the session is at hand only where the log is made, so that its first line carries what the messages
        # need of it.
        context.state.is_subagent, context.state.model = line.is_subagent, line.model
        context.changes.counts.events += 1
    else:
        context.report("the line is no row of a session")
        context.changes.counts.unreadable += 1


def _read_compaction(context: _Context, line: HermesRowLine) -> None:
    """Read a compaction: the summary takes the place of the messages that are not kept."""
    external = context.session_id.partition(":")[2]
    summary = None if line.summary is None else message_id(external, line.summary)
    identity = message_id(external, line.first)
    context.add_event(
        CompactionEvent(id=f"{identity}.compaction", summary_message_id=summary, kept_message_ids=line.kept)
    )
    context.changes.counts.events += 1
    context.state.is_branched = True


def _read_row(context: _Context, line: HermesRowLine) -> None:
    row = row_of(line.row)
    if not isinstance(row.get("id"), int):
        context.report("the row has no number")
        context.changes.counts.unreadable += 1
        return
    external = context.session_id.partition(":")[2]
    # A copy within the session was written by a compaction, one of another session by a fork.
    is_copied = line.copy_of is not None and not line.copy_of.startswith(f"{external}.")
    if line.copy_of is not None and not is_copied:
        # What a compaction kept: the original is there.
        context.changes.counts.duplicates += 1
        return
    at = time_of(row.get("timestamp"))
    context.extend_times(at)
    reader = _READERS.get(str(row.get("role")))
    if reader is None:
        event = RecordEvent(
            id=message_id(external, row["id"]),
            kind=str(row.get("role")),
            known=False,
            data=Raw(clean_json(bytes(line.row))),
        )
        context.add_event(event)
        context.changes.counts.events += 1
        return
    reader(context, row, line.copy_of or message_id(external, row["id"]), is_copied)


def _is_taken_back(row: Row) -> bool:
    # A compacted row is inactive too, but still part of the conversation.
    return row.get("active") == 0 and not row.get("compacted")


def _metadata(row: Row) -> dict[str, Any]:
    others = {name: value for name, value in row.items() if name not in _NOTHING or value != _NOTHING[name]}
    found = other_fields(others, COLUMNS)
    return {NAME: found} if found else {}


# -- messages


def _read_input(context: _Context, row: Row, identity: str, is_copied: bool) -> None:
    """Read a prompt, or what the program wrote in a person's place."""
    state, parts = context.state, tuple(content_parts(row.get("content"), identity))
    origin = _origin_of(context, row, parts)
    if origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT):
        context.changes.messages += abort_calls(state.calls, context.session_id, context.position)
        state.turn += 1
        state.step = 0
        _set_title(context, row, parts)
    message = Message(
        id=identity,
        role="user" if origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT) else "developer",
        parts=parts,
        origin=origin,
        created_at=time_of(row.get("timestamp")),
        metadata=_metadata(row),
    )
    context.add_message(message, is_taken_back=_is_taken_back(row), is_copied=is_copied, step=None)


def _origin_of(context: _Context, row: Row, parts: tuple[Part, ...]) -> Origin:
    if is_summary(row):
        return Origin.COMPACTION
    text = next((part.text for part in parts if isinstance(part, TextPart)), "")
    # Rows of the roles `system` and `developer` are always the program's.
    if row.get("role") != "user" or text.startswith(_OWN_WORDS):
        return Origin.HARNESS
    return Origin.SUBAGENT_PROMPT if context.state.is_subagent and not context.state.turn else Origin.PROMPT


def _set_title(context: _Context, row: Row, parts: tuple[Part, ...]) -> None:
    title = title_from("\n".join(part.text for part in parts if isinstance(part, TextPart)))
    if title and not context.state.is_titled and not _is_taken_back(row):
        context.session.titles["prompt"] = title
        context.state.is_titled = True


def _read_answer(context: _Context, row: Row, identity: str, is_copied: bool) -> None:
    """Read an answer: one model call, with its parts in order. Its tokens are known only in the session's totals."""
    # 0.19.0 wrote summaries with the role `user` and with `assistant`.
    if is_summary(row):
        _read_input(context, row, identity, is_copied)
        return
    state, at = context.state, time_of(row.get("timestamp"))
    parts = tuple(_answer_parts(row, identity, state.model))
    for part in parts:
        if isinstance(part, ToolCallPart):
            call = open_call(part, identity, is_copied=is_copied)
            keep_newest(state.calls, part.tool_call_id, call, _RECENT_CALLS)
    state.step += 1
    reason = row.get("finish_reason")
    message = Message(
        id=identity,
        role="assistant",
        parts=parts,
        created_at=at,
        model=state.model,
        stop_reason=STOP_REASONS.get(str(reason)),
        raw_stop_reason=None if reason is None else str(reason),
        metadata=_metadata(row),
    )
    context.add_message(message, is_taken_back=_is_taken_back(row), is_copied=is_copied, step=state.step)
    # An answer that is stopped has what came until then, and no reason. A fork's copies have none either.
    if reason is None and not is_copied and not row.get("tool_calls"):
        event = InterruptEvent(
            id=f"{identity}.interrupt", created_at=at, during="answer", message_id=identity, derived=True
        )
        context.add_event(event)


def _answer_parts(row: Row, identity: str, model: str | None) -> list[Part]:
    thought = reasoning_part(row, f"{identity}.0", model)
    parts: list[Part] = [] if thought is None else [thought]
    parts += content_parts(row.get("content"), identity, len(parts))
    if row.get("tool_calls"):
        parts += call_parts(row["tool_calls"], identity, len(parts), time_of(row.get("timestamp")))
    return parts


# -- results


def _read_result(context: _Context, row: Row, identity: str, is_copied: bool) -> None:
    call_id = str(row.get("tool_call_id") or "")
    result = result_of(row, call_id)
    metadata = _metadata(row)
    context.changes.results.append(
        ResultChange(
            session_id=context.session_id,
            tool_call_id=call_id,
            result=msgspec.structs.replace(result, metadata=metadata) if metadata else result,
            position=context.position,
            record=(context.position, context.length),
            record_ids=(identity,),
            message_id=message_of(context.state.calls, call_id),
        )
    )
    context.changes.counts.results += 1


_READERS = {
    "user": _read_input,
    "system": _read_input,
    "developer": _read_input,
    "assistant": _read_answer,
    "tool": _read_result,
}
"""Role of a row -> its reader."""

ROLES = frozenset(_READERS)
"""The roles that are known."""
