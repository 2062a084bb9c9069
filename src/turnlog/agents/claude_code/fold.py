"""The fold of one Claude Code log: records in file order -> changes of the model.

A session's log holds one line per content block, results between the blocks, context that the harness injected,
and facts about the session, all in one chain of parent ids. Here lines become messages again: blocks by message id,
results by call id, and each record's parent by the message that the parent record belongs to. What reaches beyond
what is remembered is left to the store, by id.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import UNSET

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.claude_code.assistant_messages import read_assistant
from turnlog.agents.claude_code.events import add_api_error, add_hook_error, add_record, open_compaction, read_fact
from turnlog.agents.claude_code.fold_context import Reading
from turnlog.agents.claude_code.records import Record, decode_record, read_lines
from turnlog.agents.claude_code.sources import NAME, agent_id_in
from turnlog.agents.claude_code.state import State, decode_state, encode_state
from turnlog.agents.claude_code.user_messages import add_message, read_attachment, read_user
from turnlog.agents.jsonl import count_lines


def read_system(reading: Reading, record: Record) -> None:
    """Notices, errors, compactions, and the slash commands that run without the model."""
    if reading.is_known(record):
        return
    session = reading.session_of(record)
    if record.subtype == "compact_boundary":
        open_compaction(reading, record, session)
    elif record.subtype == "api_error":
        add_api_error(reading, record, session)
    elif record.subtype == "local_command" and record.content:
        add_message(reading, record, session, record.content, None)
        reading.changes.counts.messages += 1
    elif record.hook_errors:
        add_hook_error(reading, record, session)
    else:
        add_record(reading, record, session)


_COPIES = {"assistant": read_assistant, "user": read_user}


def read_progress(reading: Reading, record: Record) -> None:
    """Signs of life of a hook, a command or a subagent; of the latter, a copy of its record, perhaps the only one."""
    copy = _copy_in(reading, record)
    if copy is None or copy.type not in _COPIES:
        add_record(reading, record, reading.session_of(record))
        return
    parent = reading.session_of(record)
    if record.uuid is not None:
        reading.state.remember_record(record.uuid, reading.parent_node(record, parent))
    child = reading.child(copy.agent_id or "")
    if record.parent_tool_use_id is not None and child.thread.leaf is None:
        reading.link_subagent(parent.id, child.id, record.parent_tool_use_id)
    _COPIES[copy.type](reading, copy)


def _copy_in(reading: Reading, record: Record) -> Record | None:
    data = record.data
    if data is None or data.agent_id is None or data.message is UNSET:
        return None
    try:
        copy = decode_record(data.message)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        reading.tell("the copied record has another shape", "error", "$.data.message")
        return None
    copy.is_sidechain, copy.agent_id = True, data.agent_id
    copy.session_id = copy.session_id or record.session_id
    copy.timestamp = copy.timestamp or record.timestamp
    reading.json = bytes(data.message)
    return copy


_READERS: dict[str, Callable[[Reading, Record], None]] = {
    "assistant": read_assistant,
    "attachment": read_attachment,
    "progress": read_progress,
    "system": read_system,
    "user": read_user,
}


class ClaudeCodeFold:
    """Reads one session's or subagent's log. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._source = source
        self._state = decode_state(state) if state is not None else State()

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        state = self._state
        reading = Reading(self._external_id(data), state, is_subagent=self._source.kind is SourceKind.SUBAGENT)
        readers = _READERS
        for record, json, position, length, number in read_lines(data, offset, state.lines + 1, reading.changes):
            reading.json = json
            reading.position = position
            reading.length = length
            reading.line_number = number
            readers.get(record.type, read_fact)(reading, record)
        state.lines += count_lines(data)
        return reading.finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)

    def _external_id(self, data: bytes) -> str:
        """Whose log this is: told by its path, else by the first record that names a session, else by its own name."""
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
