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

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.claude_code.assistant import read_assistant
from turnlog.agents.claude_code.facts import read_fact
from turnlog.agents.claude_code.harness import read_attachment, read_progress, read_system
from turnlog.agents.claude_code.lines import decode_record, read_lines
from turnlog.agents.claude_code.reading import Reading
from turnlog.agents.claude_code.records import Record
from turnlog.agents.claude_code.sources import NAME, agent_id_in
from turnlog.agents.claude_code.state import State, decode_state, encode_state
from turnlog.agents.claude_code.user import read_user
from turnlog.agents.jsonl import count_lines

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
