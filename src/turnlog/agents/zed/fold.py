"""The fold of a thread: its row first, then a line for each message."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from turnlog.agents.changes import Link
from turnlog.agents.conversation import ConversationContext, ConversationFold
from turnlog.agents.databases import Row
from turnlog.agents.decoding import aware, list_of, object_of, text_of, value_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import ROWS, RowLine, json_in, row_of
from turnlog.agents.zed import NAME
from turnlog.agents.zed.contents import agent_parts, call_part, tagged, thought, usage_of, user_parts
from turnlog.agents.zed.database import MESSAGES, THREADS, message_of, session_id
from turnlog.model import Message, Origin, Part, SessionTotal, TextPart, ToolCallPart, UnknownPart
from turnlog.model.session import title_given

_MODEL, _NUMBER, _CHILD = "model", "number", "child"
"""Notes: the model of the thread, how many messages were read, and whether it is a subagent's."""

_SUBAGENT = "spawn_agent"

_RESUME = "Resume"
"""A message that is only this word: the user let the agent go on."""


class ZedFold(ConversationFold[RowLine]):
    """Reads a thread."""

    records = ROWS
    says_results = True

    def session_id(self) -> str:
        """The path of the source names it."""
        return self._source.session_id or session_id(self._source.path.rpartition("#")[2])

    def read(self, context: ConversationContext, record: RowLine) -> None:
        """See `ConversationFold.read`."""
        if record.table == THREADS:
            _read_thread(context, record)
        elif record.table == MESSAGES:
            _read_message(context, message_of(row_of(record)))
        else:
            context.report("the line is no part of a thread")
            context.changes.counts.unreadable += 1


# -- the row


def _read_thread(context: ConversationContext, record: RowLine) -> None:
    row, facts = row_of(record), object_of(value_of(json_in(record, "data") or b"null"))
    if isinstance(row.get("data"), bytes):
        context.report("the thread cannot be decompressed or is no JSON")
        context.changes.counts.unreadable += 1
        return
    change = context.session
    folder = (text_of(row.get("folder_paths")) or "").partition("\n")[0] or None
    change.cwd = change.project_path = folder
    title = title_given(text_of(row.get("summary")) or text_of(facts.get("title")) or "")
    if title:
        change.titles["generated"] = title
    context.extend_times(_time_of(row.get("created_at")))
    context.extend_times(_time_of(row.get("updated_at")))
    model = object_of(facts.get("model"))
    named, provider = text_of(model.get("model")), text_of(model.get("provider"))
    context.state.notes[_MODEL] = named or ""
    usage = usage_of(object_of(facts.get("cumulative_token_usage")), provider)
    if usage is not None:
        change.totals[""] = SessionTotal(model=named, usage=usage)
    kept = {"provider": provider, "profile": facts.get("profile"), "imported": facts.get("imported") or None}
    known = {name: value for name, value in kept.items() if value is not None}
    change.metadata = {NAME: known} if known else {}
    _add_parent(context, row, facts)
    context.changes.counts.events += 1


def _add_parent(context: ConversationContext, row: Row, facts: dict[str, Any]) -> None:
    started = object_of(facts.get("subagent_context"))
    parent = text_of(started.get("parent_thread_id")) or text_of(row.get("parent_id"))
    if parent is None or session_id(parent) == context.session_id:
        return
    context.state.notes[_CHILD] = parent
    context.changes.links.append(
        Link(kind="subagent", parent_session_id=session_id(parent), child_session_id=context.session_id)
    )


def _time_of(value: object) -> datetime | None:
    try:
        return aware(datetime.fromisoformat(str(value)))
    except ValueError:
        return None


# -- messages


def _read_message(context: ConversationContext, text: str) -> None:
    number = int(context.state.notes.get(_NUMBER, "0"))
    context.state.notes[_NUMBER] = str(number + 1)
    try:
        message: Any = msgspec.json.decode(text.encode(errors="replace"))
    except UNREADABLE:
        context.report("the message is no JSON")
        context.changes.counts.unreadable += 1
        return
    kind, value = tagged(message)
    identity = f"{context.external_id}.{number}"
    if "role" in object_of(message):
        _read_old(context, object_of(message), identity)
    elif kind == "User":
        named = text_of(object_of(value).get("id"))
        parts = tuple(user_parts(object_of(value).get("content"), named or identity))
        _add_prompt(context, named or identity, parts)
    elif kind == "Agent":
        _add_answer(context, identity, tuple(agent_parts(object_of(value), identity)), object_of(value))
    else:
        context.add_record(kind, known=kind == _RESUME)


def _add_prompt(context: ConversationContext, identity: str, parts: tuple[Part, ...]) -> None:
    is_task = _CHILD in context.state.notes and not context.state.turn
    origin = Origin.SUBAGENT_PROMPT if is_task else Origin.PROMPT
    context.add(Message(id=identity, role="user", parts=parts, origin=origin))


def _add_answer(context: ConversationContext, identity: str, parts: tuple[Part, ...], message: dict[str, Any]) -> None:
    model = context.state.notes.get(_MODEL) or None
    context.add(Message(id=identity, role="assistant", parts=parts, model=model))
    answered = object_of(message.get("tool_results"))
    for part in parts:
        if isinstance(part, ToolCallPart) and part.tool_name == _SUBAGENT:
            output = object_of(object_of(answered.get(part.tool_call_id)).get("output"))
            child = text_of(output.get("session_id"))
            if child is not None:
                context.changes.links.append(
                    Link(
                        kind="subagent",
                        parent_session_id=context.session_id,
                        child_session_id=session_id(child),
                        tool_call_id=part.tool_call_id,
                    )
                )


def _read_old(context: ConversationContext, message: dict[str, Any], identity: str) -> None:
    """Read a message of versions before 0.3 of the format: segments, calls and results apart."""
    parts = tuple(_old_parts(message, identity))
    role = message.get("role")
    if role == "user":
        _add_prompt(context, identity, parts)
    elif role == "assistant":
        _add_answer(context, identity, parts, {})
    else:
        context.add(Message(id=identity, role="developer", parts=parts, origin=Origin.HARNESS))


def _old_parts(message: dict[str, Any], identity: str) -> Iterator[Part]:
    number = 0
    for segment in map(object_of, list_of(message.get("segments"))):
        part_id = f"{identity}.{number}"
        kind = str(segment.get("type"))
        if kind == "text":
            yield TextPart(id=part_id, text=str(segment.get("text") or ""))
        elif kind in ("thinking", "redacted_thinking"):
            yield thought(segment, part_id)
        else:
            yield UnknownPart(id=part_id, kind=kind, data=msgspec.Raw(msgspec.json.encode(segment)))
        number += 1
    results = {str(one.get("tool_use_id")): one for one in map(object_of, list_of(message.get("tool_results")))}
    for called in map(object_of, list_of(message.get("tool_uses"))):
        answered = results.get(str(called.get("id")), {})
        known = answered | {"tool_name": called.get("name")} if answered else {}
        yield call_part(called, known, f"{identity}.{number}")
        number += 1
