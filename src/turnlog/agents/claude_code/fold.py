"""The fold of one Claude Code log: records in file order -> changes of the model.

A log has one line per content block, with results, injected context and facts about the session between the blocks,
all in one chain of parent ids. The fold makes messages of them again: blocks are joined by message id, results with
their calls by call id, and the parent of a message is the message that its parent record belongs to. What refers to
records that are no longer remembered is left to the store, by id.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import UNSET

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.claude_code.assistant_messages import read_assistant
from turnlog.agents.claude_code.events import (
    add_api_error,
    add_hook_error,
    add_record_event,
    begin_compaction,
    read_session_fact,
)
from turnlog.agents.claude_code.fold_context import ClaudeContext
from turnlog.agents.claude_code.records import Record, decode_record, read_lines
from turnlog.agents.claude_code.sources import NAME, agent_id_in
from turnlog.agents.claude_code.state import ClaudeState, decode_state, encode_state
from turnlog.agents.claude_code.user_messages import add_message, read_attachment, read_user
from turnlog.agents.jsonl import count_lines


class ClaudeCodeFold:
    """Reads one session's or subagent's log. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._source = source
        self._state = decode_state(state) if state is not None else ClaudeState()

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        state = self._state
        context = ClaudeContext(self._external_id(data), state, is_subagent=self._source.kind is SourceKind.SUBAGENT)
        readers = _READERS
        for record, json, position, length, number in read_lines(data, offset, state.lines + 1, context.changes):
            context.json = json
            context.position = position
            context.length = length
            context.line_number = number
            readers.get(record.type, read_session_fact)(context, record)
        state.lines += count_lines(data)
        return context.finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)

    def _external_id(self, data: bytes) -> str:
        """The session of the log: from its path, else from the first record that names one, else the file's name."""
        if self._source.session_id is not None:
            return self._source.session_id.removeprefix(f"{NAME}:")
        if self._state.session is None:
            self._state.session = _session_named_in(data, agent_id_in(self._source.path))
        return self._state.session or Path(self._source.path).stem


def _session_named_in(data: bytes, agent_id: str | None) -> str | None:
    for line in data.split(b"\n"):
        if b'"sessionId"' not in line:
            continue
        try:
            record = decode_record(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if record.session_id:
            agent = agent_id or (record.agent_id if record.is_sidechain else None)
            return f"{record.session_id}.{agent}" if agent else record.session_id
    return None


def read_system(context: ClaudeContext, record: Record) -> None:
    """Read a `system` record: a notice, an error, a compaction, or a slash command that ran without the model."""
    if context.is_known(record):
        return
    session = context.session_of(record)
    if record.subtype == "compact_boundary":
        begin_compaction(context, record, session)
    elif record.subtype == "api_error":
        add_api_error(context, record, session)
    elif record.subtype == "local_command" and record.content:
        add_message(context, record, session, record.content, None)
        context.changes.counts.messages += 1
    elif record.hook_errors:
        add_hook_error(context, record, session)
    else:
        add_record_event(context, record, session)


_COPY_READERS = {"assistant": read_assistant, "user": read_user}


def read_progress(context: ClaudeContext, record: Record) -> None:
    """Read a `progress` record of a hook, a command or a subagent.

    For a subagent it holds a copy of the subagent's own record. It may be the only one there is, so it is
    read as a record of the subagent's session.
    """
    copy = _copy_in(context, record)
    if copy is None or copy.type not in _COPY_READERS:
        add_record_event(context, record, context.session_of(record))
        return
    parent = context.session_of(record)
    if record.uuid is not None:
        context.state.remember_record(record.uuid, context.parent_node(record, parent))
    child = context.child(copy.agent_id or "")
    if record.parent_tool_use_id is not None and child.state.leaf is None:
        context.link_subagent(parent.id, child.id, record.parent_tool_use_id)
    _COPY_READERS[copy.type](context, copy)


def _copy_in(context: ClaudeContext, record: Record) -> Record | None:
    data = record.data
    if data is None or data.agent_id is None or data.message is UNSET:
        return None
    try:
        copy = decode_record(data.message)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        context.report("the copied record has another shape", "error", "$.data.message")
        return None
    copy.is_sidechain, copy.agent_id = True, data.agent_id
    copy.session_id = copy.session_id or record.session_id
    copy.timestamp = copy.timestamp or record.timestamp
    context.json = bytes(data.message)
    return copy


_READERS: dict[str, Callable[[ClaudeContext, Record], None]] = {
    "assistant": read_assistant,
    "attachment": read_attachment,
    "progress": read_progress,
    "system": read_system,
    "user": read_user,
}
"""Readers by the `type` of a record. Every other record is a fact about the session, or of an unknown kind."""
