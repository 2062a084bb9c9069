"""What is known about a session of Crush beside its messages: its row."""

from __future__ import annotations

import msgspec

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, Link, SessionChange
from turnlog.agents.crush import NAME
from turnlog.agents.crush.contents import time_of
from turnlog.agents.crush.database import SESSIONS, CostNote, call_in, session_id
from turnlog.agents.crush.sources import project_of
from turnlog.agents.decoding import text_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import ROWS, RowLine, row_of
from turnlog.model.session import title_given

_FACTS = ("prompt_tokens", "completion_tokens")
"""Columns that are kept as metadata: what the context held at the newest call, and no sum."""

_UNTITLED = "Untitled Session"


class CrushFactsFold(StatelessFold):
    """Reads a line that is written anew each time."""

    def __init__(self, source: Source) -> None:
        """Read the facts of one session."""
        self._session_id = source.session_id or session_id("")
        self._project = project_of(source)

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        for line, *_ in ROWS.read(data, offset, 1, changes):
            changes.counts.events += 1
            if line.table == SESSIONS:
                self._read(changes, line)
        return changes

    def _read(self, changes: Changes, line: RowLine) -> None:
        row = row_of(line)
        kept = {name: row[name] for name in _FACTS if row.get(name)}
        change = SessionChange(
            session_id=self._session_id,
            cwd=self._project,
            project_path=self._project,
            first_at=time_of(row.get("created_at")),
            last_at=time_of(row.get("updated_at")),
            metadata={NAME: kept} if kept else {},
        )
        title = title_given(text_of(row.get("title")) or "")
        if title and title != _UNTITLED:
            change.titles["generated"] = title
        cost = row.get("cost")
        if isinstance(cost, int | float) and 0 < cost < 1e9:
            change.reported_cost = max(0.0, cost - _note_in(line).cost_of_children) or None
        changes.sessions[self._session_id] = change
        parent = text_of(row.get("parent_session_id"))
        if parent is not None and session_id(parent) != self._session_id:
            changes.links.append(
                Link(
                    kind="subagent",
                    parent_session_id=session_id(parent),
                    child_session_id=self._session_id,
                    tool_call_id=call_in(str(row.get("id"))),
                )
            )


def _note_in(line: RowLine) -> CostNote:
    try:
        return msgspec.json.decode(line.note or "{}", type=CostNote)
    except UNREADABLE:
        return CostNote()
