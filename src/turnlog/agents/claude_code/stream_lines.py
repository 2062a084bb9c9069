"""A line of a printed stream as the record that the session's log has of it, and what is remembered between lines."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from turnlog.agents.claude_code.drafts import SYNTHETIC
from turnlog.agents.claude_code.reading import Reading
from turnlog.agents.claude_code.records import Record, WireUsage
from turnlog.agents.claude_code.state import State
from turnlog.agents.claude_code.stream_records import StreamRecord
from turnlog.agents.reading import keep_newest

_AGENTS = 64


class OpenAnswer(msgspec.Struct):
    """A message whose pieces are being printed."""

    message_id: str
    model: str | None = None
    usage: WireUsage | None = None
    block: int | None = None
    kind: str = ""
    text: str = ""
    """Of the block, as long as the block was not printed whole."""


class StreamState(msgspec.Struct):
    """What a fold of a stream remembers."""

    lines: int = 0
    session: str | None = None
    """External id of the session that the last line named."""
    sessions: dict[str, State] = {}
    answers: dict[str, OpenAnswer] = {}
    """By the call that started the subagent; "" for the main agent."""
    agents: dict[str, str] = {}
    """Call -> the id of the subagent it started."""
    moment: int = 0
    """The latest time seen, in Unix milliseconds."""


def as_logged(state: StreamState, record: StreamRecord) -> Record:
    """The line as the session's log has it."""
    message = record.wire_message
    is_failure = message is not None and message.model == SYNTHETIC and isinstance(record.error, str)
    logged = Record(
        type=record.type,
        subtype=record.subtype,
        message=message,
        uuid=record.uuid,
        timestamp=record.timestamp,
        session_id=record.session_id,
        request_id=record.request_id,
        tool_use_result=record.tool_use_result,
        thinking_duration_ms=record.thinking_duration_ms,
        is_aborted_mid_stream=record.aborted,
        is_meta=record.is_synthetic,
        cwd=record.cwd,
        version=record.claude_code_version,
        error=record.error if is_failure else None,
        is_api_error_message=is_failure or None,
        compact_metadata=record.compact_metadata.as_logged() if record.compact_metadata else None,
        logical_parent_uuid=record.logical_parent_uuid,
        parent_uuid=None if record.compact_metadata else UNSET,
    )
    for fact in record.tool_result_meta or ():
        # A line brings one result.
        logged.tool_denial_kind = fact.non_execution_kind
        logged.permission_decision = fact.permission_decision.as_logged() if fact.permission_decision else None
    call = record.parent_tool_use_id
    if call is not None:
        logged.is_sidechain = True
        logged.agent_id = record.agent_id or state.agents.get(call, call)
    return logged


def note_agent(state: StreamState, reading: Reading, record: StreamRecord, logged: Record) -> None:
    """A subagent's first line tells which call started it."""
    call, agent = record.parent_tool_use_id, logged.agent_id
    if call is None or agent is None:
        return
    child = reading.child(agent)
    if child.thread.leaf is None:
        reading.link_subagent(reading.main.id, child.id, call)


def remember_agent(state: StreamState, record: StreamRecord) -> None:
    """A task that starts tells the id of the subagent that a call has started."""
    if record.task_id and record.tool_use_id:
        keep_newest(state.agents, record.tool_use_id, record.task_id, _AGENTS)
