"""The folds of the rows of one session: pi's records, each in a line, and what other tables say about the session."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from turnlog.agents.base import Source
from turnlog.agents.decoding import fields_of, state_codec, text_of, value_of
from turnlog.agents.jsonl import JsonLines
from turnlog.agents.line_fold import LineFold
from turnlog.agents.openclaw.database import EVENTS, NODES, SPAWN, WINDOWS
from turnlog.agents.openclaw.row_log import OpenClawRowLine
from turnlog.agents.pi.fold import read_record
from turnlog.agents.pi.fold_context import PiContext, PiState
from turnlog.agents.pi.records import LINES
from turnlog.model.session import title_line

_LINES = JsonLines(OpenClawRowLine, first_keys=("table",), plausible=lambda line: line.table in (EVENTS, WINDOWS))

_WINDOW_FIELDS = ("session_key", "chat_type", "channel", "previous_session_id", "reason", "status", "spawned_by")
"""What is kept of a window in the session's metadata."""

encode_state, decode_state = state_codec(PiState)


class OpenClawFold(LineFold[PiState, PiContext, OpenClawRowLine]):
    """Reads one session's rows. The records are pi's, so its state and its context are enough."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        super().__init__(source, decode_state(state) if state is not None else PiState(), encode_state, _LINES)

    def begin(self, data: bytes, offset: int) -> PiContext:
        """See `LineFold.begin`."""
        return PiContext(self._state, self._source)

    def read(self, context: PiContext, record: OpenClawRowLine) -> None:
        """See `LineFold.read`."""
        if record.table == EVENTS:
            self._read_event(context, record)
        elif record.table == WINDOWS:
            _read_facts(context, record)
        else:
            context.report("the line is no row of a session")
            context.changes.counts.unreadable += 1

    def _read_event(self, context: PiContext, line: OpenClawRowLine) -> None:
        # `text` holds a record that is no JSON or has several lines; it is read, and reported, like a damaged line of
        # pi's logs.
        json = bytes(line.event) if line.text is None else line.text.encode()
        context.json = json
        found = LINES.decode(json)
        if isinstance(found, str):
            context.report(found)
            context.changes.counts.unreadable += 1
            return
        for problem in found.problems:
            context.report(problem.reason, problem.severity, problem.json_path)
        context.json = found.json
        read_record(context, found.record, self._source)


def _read_facts(context: PiContext, line: OpenClawRowLine) -> None:
    """Read what other tables say about the session: its title, and the channel that its messages come from."""
    tables = fields_of(line.facts)
    window, node = (_values(tables.get(name)) for name in (WINDOWS, NODES))
    change = context.session
    title = title_line(str(node.get("label") or node.get("display_name") or window.get("display_name") or ""))
    # Of a session that nobody named, the end of its key is shown.
    if title and not str(window.get("session_key", "")).endswith(title):
        change.titles["custom"] = title
    known = {name: window[name] for name in _WINDOW_FIELDS if name in window}
    # `_WINDOW_FIELDS` has the columns of a window; a node has these two besides.
    known |= {name: node[name] for name in ("created_via", "parent_session_key") if name in node}
    if known:
        change.metadata[context.agent] = known
    spawn = _values(tables.get(SPAWN))
    if spawn.get("session_id"):
        # The id of the parent in the model ends as this one does: both are sessions of one of OpenClaw's agents.
        _, separator, owner = context.session_id.partition("@")
        context.link("subagent", f"{spawn['session_id']}{separator}{owner}", tool_call_id=text_of(spawn.get("call")))
    # The line is read but is no event of the conversation; counting it keeps the sum of counts equal to the number of
    # lines.
    context.changes.counts.events += 1


def _values(row: Raw | None) -> dict[str, Any]:
    return {} if row is None else {name: value_of(value) for name, value in fields_of(row).items()}
