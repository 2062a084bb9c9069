"""The fold of one klaude-code log: a line for each event of a session, appended and never changed.

A line that cannot be read costs only itself (R-K11), but keeps its number: later records count lines.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes
from turnlog.agents.decoding import clean_json
from turnlog.agents.jsonl import count_lines
from turnlog.agents.klaude.contents import cost_of, time_of
from turnlog.agents.klaude.kinds import KINDS, Becomes
from turnlog.agents.klaude.marks import read_compaction, read_fork_summary, read_retraction, read_rewind
from turnlog.agents.klaude.messages import read_assistant, read_developer, read_result, read_system, read_user
from turnlog.agents.klaude.pieces import read_piece
from turnlog.agents.klaude.reading import Reading
from turnlog.agents.klaude.records import DATA, LINES, Data, Record
from turnlog.agents.klaude.state import State, decode_state, encode_state
from turnlog.model import ErrorEvent, InterruptEvent

_Reader = Callable[[Reading, str, Data], None]


def _read_interrupt(reading: Reading, kind: str, data: Data) -> None:
    at = time_of(data.created_at)
    reading.add_event(InterruptEvent(id=reading.own_id(), created_at=at, message_id=reading.state.leaf))
    reading.stand()


def _read_error(reading: Reading, kind: str, data: Data) -> None:
    at = time_of(data.created_at)
    reading.add_event(ErrorEvent(id=reading.own_id(), created_at=at, error_text=data.error or "", kind="stream"))
    reading.stand()


def _read_fact(reading: Reading, kind: str, data: Data) -> None:
    if kind == "SpawnSubAgentEntry" and data.session_id:
        reading.link("subagent", child=data.session_id)
    if kind == "TaskMetadataItem":
        _note_cost(reading, data)
    reading.add_fact(kind, data)
    reading.stand()


def _note_cost(reading: Reading, data: Data) -> None:
    """klaude-code's own costs, task by task: a running total in dollars."""
    tasks = [data.main_agent, *(data.sub_agent_task_metadata or ())]
    costs = [cost_of(task.usage) for task in tasks if task is not None]
    known = [float(cost.amount) for cost in costs if cost is not None and cost.currency == "USD"]
    if known:
        reading.state.cost = (reading.state.cost or 0.0) + sum(known)
        reading.session.reported_cost = reading.state.cost


def _read_record(reading: Reading, kind: str, data: Data) -> None:
    reading.add_record(kind, data, known=True)
    reading.stand()


_BY_KIND: dict[str, _Reader] = {
    "SystemMessage": read_system,
    "SystemMessageItem": read_system,
    "DeveloperMessage": read_developer,
    "DeveloperMessageItem": read_developer,
    "UserMessage": read_user,
    "UserMessageItem": read_user,
    "AssistantMessage": read_assistant,
    "ForkSummaryEntry": read_fork_summary,
}

_BY_RESULT: dict[Becomes, _Reader] = {
    Becomes.PIECE: read_piece,
    Becomes.RESULT: read_result,
    Becomes.COMPACTION: read_compaction,
    Becomes.REWIND: read_rewind,
    Becomes.RETRACTION: read_retraction,
    Becomes.INTERRUPT: _read_interrupt,
    Becomes.ERROR: _read_error,
    Becomes.RUN_METADATA: _read_fact,
    Becomes.RECORD: _read_record,
}

_PASSING = frozenset({"StartItem", "ToolCallStartItem", "AssistantMessageDelta", "ReasoningTextDelta"})
"""Records that do not end the answer that is being told."""


class KlaudeFold:
    """Reads one session's log. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._source = source
        self._state = decode_state(state) if state is not None else State()

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        state = self._state
        external = (self._source.session_id or "").partition(":")[2]
        reading = Reading(state, external)
        for record, json, position, length, number in LINES.read(data, offset, state.lines + 1, reading.changes):
            reading.json, reading.position, reading.length, reading.line_number = json, position, length, number
            reading.tell_of_bytes()
            _read(reading, record)
        state.lines += count_lines(data)
        return reading.finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)


def _read(reading: Reading, record: Record) -> None:
    becomes = KINDS.get(record.type)
    reading.json = clean_json(bytes(record.data)) if isinstance(record.data, Raw) else b"{}"
    found = DATA.decode(reading.json)
    if becomes is None or isinstance(found, str):
        if becomes is not None:
            reading.tell(f"data: {found}", json_path="$.data")
        reading.add_record(record.type, None, known=becomes is not None)
        return
    for problem in found.problems:
        path = problem.json_path.replace("$", "$.data", 1) if problem.json_path else "$.data"
        reading.tell(problem.reason, problem.severity, path)
    if becomes is not Becomes.PIECE and record.type not in _PASSING:
        reading.state.open = None
    reading.note_time(found.record)
    _BY_KIND.get(record.type, _BY_RESULT.get(becomes, _read_record))(reading, record.type, found.record)
