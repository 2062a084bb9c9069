"""The folds of the rows of one session: pi's records, each in a line, and what other tables say about the session."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes
from turnlog.agents.decoding import fields_of, state_codec, value_of
from turnlog.agents.jsonl import JsonLines, count_lines
from turnlog.agents.openclaw.database import EVENTS, NODES, WINDOWS
from turnlog.agents.openclaw.row_log import OpenClawRowLine
from turnlog.agents.pi.fold import read_record
from turnlog.agents.pi.fold_context import PiContext, PiState
from turnlog.agents.pi.records import LINES
from turnlog.model.session import title_line

_LINES = JsonLines(OpenClawRowLine, first_keys=("table",), plausible=lambda line: line.table in (EVENTS, WINDOWS))

_WINDOW_FIELDS = ("session_key", "chat_type", "channel", "previous_session_id", "reason", "status", "spawned_by")
"""What is kept of a window in the session's metadata."""

encode_state, decode_state = state_codec(PiState)


class OpenClawFold:
    """Reads one session's rows. See `turnlog.agents.base.Fold`."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._source = source
        self._state = decode_state(state) if state is not None else PiState()

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = PiContext(self._state, self._source)
        for line, json, position, length, number in _LINES.read(data, offset, self._state.lines + 1, context.changes):
            context.position, context.length, context.line_number = position, length, number
            if line.table == EVENTS:
                self._read_event(context, line)
            elif line.table == WINDOWS:
                _read_facts(context, line)
            else:
                context.json = json
                context.report("the line is no row of a session")
                context.changes.counts.unreadable += 1
        self._state.lines += count_lines(data)
        return context.finish()

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return encode_state(self._state)

    def _read_event(self, context: PiContext, line: OpenClawRowLine) -> None:
        json = bytes(line.event) if line.text is None else line.text.encode()
        context.json = json
        found = LINES.decode(json)
        if isinstance(found, str):
            context.report(found)
            context.changes.counts.unreadable += 1
            return
        for problem in found.problems:
            context.report(problem.reason, problem.severity, problem.json_path)
        read_record(context, found.record, found.json, self._source)


def _read_facts(context: PiContext, line: OpenClawRowLine) -> None:
    """Read what other tables say about the session: its title, and the channel that its messages come from."""
    tables = fields_of(line.facts)
    window, node = (_values(tables.get(name)) for name in (WINDOWS, NODES))
    change = context.session
    title = title_line(str(node.get("label") or node.get("display_name") or window.get("display_name") or ""))
    if title:
        change.titles["custom"] = title
    known = {name: window[name] for name in _WINDOW_FIELDS if name in window}
    known |= {name: node[name] for name in ("created_via", "parent_session_key") if name in node}
    if known:
        change.metadata[context.agent] = known
    context.changes.counts.events += 1


def _values(row: Raw | None) -> dict[str, Any]:
    return {} if row is None else {name: value_of(value) for name, value in fields_of(row).items()}
