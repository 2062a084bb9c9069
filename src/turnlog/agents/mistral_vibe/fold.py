"""The fold of one session's rows (`turnlog.agents.mistral_vibe.row_log`).

Each row says all that is known of its message, so a later one only adds to what was read before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, EventChange, Link, MessageChange, Placement, RecordRef
from turnlog.agents.decoding import LogContext, branch_of, object_of, state_codec, text_of
from turnlog.agents.jsonl import JsonLines, count_lines
from turnlog.agents.mistral_vibe import NAME
from turnlog.agents.mistral_vibe.contents import STOP_REASONS, began_at, parts_of, raw, time_of, usage_of
from turnlog.agents.mistral_vibe.rows import (
    ANSWER,
    COMPACTION,
    FILE,
    KINDS,
    OTHER,
    PROMPT,
    SESSION,
    TURN,
    VibeRow,
    position_at,
)
from turnlog.agents.mistral_vibe.sources import session_id
from turnlog.agents.mistral_vibe.store import Json
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    HistoryEvent,
    InterruptEvent,
    Message,
    Origin,
    RecordEvent,
    RewindEvent,
    RunMetadataEvent,
    SessionTotal,
    TextPart,
    ToolCallPart,
    Usage,
)
from turnlog.model.session import title_from, title_given

_LINES = JsonLines(VibeRow, first_keys=("row",), plausible=lambda row: row.row in KINDS)

TOTAL = "tokenUsage"
"""The id of the total of a session: what no call has of it."""


class VibeState(msgspec.Struct):
    """What is remembered between two feeds."""

    lines: int = 0
    is_titled: bool = False
    leaf: str | None = None
    newest: int = 0
    """Position of the leaf, which is the newest message."""
    is_branched: bool = False
    counted: tuple[int, ...] = (0, 0, 0)
    """The tokens that the program counts for the session, as `used` has those of a message. They only grow."""
    model: str | None = None
    used: dict[str, list[int]] = {}
    """Message -> its tokens: input with what was cached, cached, output."""


encode_state, decode_state = state_codec(VibeState)


class VibeFold:
    """Reads one session's rows. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._state = decode_state(state) if state is not None else VibeState()
        self._session_id = source.session_id or session_id("")

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = _Context(self._state, self._session_id)
        for row in _LINES.read_into(context, data, offset, self._state.lines + 1):
            reader = _READERS.get(row.row)
            if reader is None:
                context.report("the line is no row of a session")
                context.changes.counts.unreadable += 1
            else:
                reader(context, row)
        self._state.lines += count_lines(data)
        return context.finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)


class _Context(LogContext):
    """The context of one feed."""

    def __init__(self, state: VibeState, session: str) -> None:
        super().__init__(session)
        self.state = state

    def add_event(self, event: HistoryEvent, row: VibeRow) -> None:
        """Add an event at the place of its row."""
        placed = msgspec.structs.replace(event, position=row.position)
        record = (self.position, self.length)
        self.changes.events.append(
            EventChange(session_id=self.session_id, event=placed, record=record, parent_id=row.parent)
        )

    def add_message(self, message: Message, row: VibeRow, *, step: int | None) -> None:
        """Add a message after the one before it."""
        self.extend_times(message.created_at)
        placement = Placement(
            session_id=self.session_id,
            position=row.position,
            records=((self.position, self.length, None), *_result_records(message, row)),
            record_ids=(message.id,),
            parent_id=row.parent,
            turn=row.turn or None,
            step=step,
        )
        self.changes.messages.append(MessageChange(message=message, placement=placement))
        self.changes.counts.messages += 1
        # A row that has changed is appended again, behind newer ones: its position is its place, not its line.
        if row.position >= self.state.newest:
            self.state.newest, self.state.leaf = row.position, message.id

    def finish(self) -> Changes:
        """Everything that this feed has found."""
        _add_total(self)
        return self.finish_branched(self.state.leaf, is_branched=self.state.is_branched)


def _result_records(message: Message, row: VibeRow) -> Iterator[RecordRef]:
    """The place of each result: after its message, in the order of their times."""
    for part in message.parts:
        for result in part.results if isinstance(part, ToolCallPart) else ():
            at = position_at(result.completed_at.timestamp() * 1000) if result.completed_at is not None else 0
            # Where a clock was set back, a result would come before its call.
            yield max(at, row.position + 1), 0, result.id


def _read_file(context: _Context, row: VibeRow) -> None:
    """The bytes of a file, for the archive: rows say what is in them."""
    context.changes.counts.duplicates += 1


def _read_prompt(context: _Context, row: VibeRow) -> None:
    entry = object_of(row.entries[0]) if row.entries else {}
    parts = tuple(parts_of(row))
    title = title_from("\n".join(part.text for part in parts if isinstance(part, TextPart)))
    if title and not context.state.is_titled:
        context.state.is_titled = True
        context.session.titles["prompt"] = title
    # The first prompt of a subagent is its task, which the model of its parent wrote.
    is_subagent = "child-" in context.session_id and row.turn == 1
    message = Message(
        id=row.id,
        role="user",
        parts=parts,
        origin=Origin.SUBAGENT_PROMPT if is_subagent else Origin.PROMPT,
        created_at=time_of(entry.get("createdAt")),
        metadata=_metadata_of(entry),
    )
    context.add_message(message, row, step=None)


def _read_answer(context: _Context, row: VibeRow) -> None:
    entry = object_of(row.entries[0]) if row.entries else {}
    usage = usage_of(row.usage)
    outcome = object_of(entry.get("outcome"))
    is_discarded = outcome.get("type") == "discarded"
    # The program does not count an answer that it discards. An earlier row may be older than that decision.
    if is_discarded:
        context.state.used.pop(row.id, None)
    elif row.usage is not None:
        context.state.used[row.id] = _counts_of(row.usage)
    # Vibe also discards what a broken stream left, and an answer that was too long, and asks again.
    is_stopped = is_discarded and outcome.get("cause") in (None, "interrupt")
    message = Message(
        id=row.id,
        role="assistant",
        parts=tuple(parts_of(row)),
        created_at=began_at(row),
        model=row.model,
        stop_reason=STOP_REASONS.get(row.finish or "") or ("aborted" if is_stopped else None),
        raw_stop_reason=row.finish,
        usage=usage,
        metadata={NAME: {"calls_guessed": True}} if row.guessed else {},
    )
    context.add_message(message, row, step=row.step)
    if is_stopped:
        event = InterruptEvent(
            id=f"{row.id}.interrupt", created_at=time_of(entry.get("updatedAt")), during="answer", message_id=row.id
        )
        context.add_event(event, row)


def _metadata_of(entry: Json) -> dict[str, Any]:
    source = text_of(entry.get("source"))
    return {NAME: {"source": source}} if source not in (None, "turn_start") else {}


def _read_compaction(context: _Context, row: VibeRow) -> None:
    entry = object_of(row.entries[0]) if row.entries else {}
    details, at = object_of(entry.get("details")), time_of(entry.get("createdAt"))
    summary = Message(
        id=f"{row.id}.summary",
        role="developer",
        parts=(TextPart(id=f"{row.id}.summary.0", text=row.text),) if row.text else (),
        origin=Origin.COMPACTION,
        created_at=at,
    )
    event = CompactionEvent(
        id=row.id,
        trigger=text_of(details.get("trigger")),
        replacement=(summary,) if row.text else (),
        created_at=at,
        metadata={NAME: details} if details else {},
    )
    context.add_event(event, row)
    context.state.is_branched = True
    context.changes.counts.events += 1


_REWIND = "checkpoint.rewind"


def _read_other(context: _Context, row: VibeRow) -> None:
    entry = object_of(row.entries[0]) if row.entries else {}
    kind = ".".join(filter(None, (text_of(entry.get("type")), text_of(entry.get("kind")))))
    at, details = time_of(entry.get("createdAt")), object_of(entry.get("details"))
    if kind == _REWIND:
        # What was taken back is no longer in the store.
        event = RewindEvent(id=row.id, created_at=at, to_message_id=context.state.leaf, metadata={NAME: details})
    else:
        event = RecordEvent(id=row.id, kind=kind, known=False, created_at=at, data=raw(entry))
    context.add_event(event, row)
    context.changes.counts.events += 1


def _read_turn(context: _Context, row: VibeRow) -> None:
    facts, status = row.facts, text_of(row.facts.get("status"))
    started, ended = time_of(facts.get("startedAt")), time_of(facts.get("completedAt"))
    context.add_event(RunMetadataEvent(id=f"{row.id}.start", kind="turn_started", created_at=started), row)
    error = object_of(facts.get("error"))
    if error:
        code = object_of(error.get("details")).get("httpStatus")
        event = ErrorEvent(
            id=f"{row.id}.error",
            created_at=ended,
            error_text=text_of(error.get("message")) or "",
            kind=text_of(error.get("code")),
            status=code if isinstance(code, int) and not isinstance(code, bool) else None,
        )
        context.add_event(event, row)
    if status == "interrupted":
        context.add_event(InterruptEvent(id=f"{row.id}.interrupt", created_at=ended), row)
    if status not in (None, "in_progress"):
        data = Raw(msgspec.json.encode(facts))
        context.add_event(RunMetadataEvent(id=f"{row.id}.end", kind=f"turn_{status}", created_at=ended, data=data), row)
    context.extend_times(ended or started)
    context.changes.counts.events += 1


def _read_session(context: _Context, row: VibeRow) -> None:
    meta, about = object_of(row.facts.get("meta")), object_of(row.facts.get("session"))
    runtime, identity = object_of(row.facts.get("runtime")), object_of(row.facts.get("identity"))
    change = context.session
    folder = text_of(object_of(meta.get("environment")).get("working_directory")) or text_of(runtime.get("cwd"))
    if folder:
        change.cwd = folder
        change.project_path = text_of(meta.get("origin_directory")) or folder
    change.git_branch, change.git_commit = branch_of(text_of(meta.get("git_branch"))), text_of(meta.get("git_commit"))
    title = text_of(meta.get("title")) or text_of(about.get("title"))
    if title:
        is_given = "manual" in (meta.get("title_source"), about.get("titleSource"))
        change.titles["custom" if is_given else "generated"] = title_given(title)
    context.extend_times(time_of(about.get("createdAt")))
    facts = {
        "archived_at": meta.get("archived_at"),
        "pinned_at": meta.get("pinned_at"),
        "agent": runtime.get("agent_name"),
    }
    known = {name: value for name, value in facts.items() if value is not None}
    if known:
        change.metadata = {NAME: known}
    counted = _counts_of(object_of(about.get("tokenUsage")))
    context.state.counted = tuple(max(pair) for pair in zip(counted, context.state.counted, strict=True))
    context.state.model = row.model
    _add_link(context, identity, runtime)
    context.changes.counts.events += 1


def _counts_of(usage: Json) -> list[int]:
    names = (
        ("input_tokens", "inputTokens"),
        ("cached_input_tokens", "cachedInputTokens"),
        ("output_tokens", "outputTokens"),
    )
    found = (usage.get(one, usage.get(other)) for one, other in names)
    return [value if isinstance(value, int) and value >= 0 else 0 for value in found]


def _add_total(context: _Context) -> None:
    """Count what the program counts for the session and no call has: calls whose journal is gone, and summaries.

    A journal may arrive later than the count. So the total is given anew with whatever is read.
    """
    state = context.state
    if not any(state.counted):
        return
    known = [sum(counts) for counts in zip(*state.used.values(), strict=True)] or [0, 0, 0]
    rest = [max(0, one - other) for one, other in zip(state.counted, known, strict=True)]
    usage = usage_of({"input_tokens": rest[0], "cached_input_tokens": rest[1], "output_tokens": rest[2]}, exact=False)
    # A total that is left out would keep its earlier value in the store.
    nothing = Usage(input=0, cache_read=0, output=0, exactness="estimated")
    context.session.totals[TOTAL] = SessionTotal(model=state.model, usage=usage or nothing)


def _add_link(context: _Context, identity: Json, runtime: Json) -> None:
    parent = text_of(identity.get("parent_session_id")) or text_of(runtime.get("parent_session_id"))
    kind = identity.get("kind")
    if parent is None or kind not in ("subagent", "fork"):
        return
    context.changes.links.append(
        Link(
            kind="subagent" if kind == "subagent" else "fork",
            parent_session_id=session_id(parent),
            child_session_id=context.session_id,
            tool_call_id=text_of(runtime.get("subagent_spawn_key")),
        )
    )


_READERS: dict[str, Callable[[_Context, VibeRow], None]] = {
    FILE: _read_file,
    PROMPT: _read_prompt,
    ANSWER: _read_answer,
    COMPACTION: _read_compaction,
    OTHER: _read_other,
    TURN: _read_turn,
    SESSION: _read_session,
}
"""Kind of a row -> its reader."""
