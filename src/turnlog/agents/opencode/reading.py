"""What one feed of a session's row log has brought so far, and the place of the line that is being read.

What a line means is read in `fold`.
"""

from __future__ import annotations

from typing import Any

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, Diagnostic, EventChange, Link, SessionChange
from turnlog.agents.opencode.ids import NAME, session_id, time_position, whole
from turnlog.agents.opencode.rows import Line, Row, document_of, object_of
from turnlog.agents.opencode.session_messages import documents_of, is_session_message
from turnlog.model import Provenance, RecordEvent
from turnlog.model.codec import to_json


class SessionReading:
    """One feed: the line that is being read, and what all lines have brought so far."""

    def __init__(self, source: Source, version: str) -> None:
        """Begin with nothing but the version of OpenCode that made the session."""
        self.changes = Changes()
        self.version = version
        self.source = source
        self.session_id = source.session_id or ""
        self.external = self.session_id.partition(":")[2]
        self.record = (0, 0)
        self._session: SessionChange | None = None

    def documents(self, line: Line) -> tuple[Row, list[Row]]:
        """A message's JSON and that of its parts."""
        if not is_session_message(line.row):
            return self._document(line.row, "row"), [self._part(row, at) for at, row in enumerate(line.parts)]
        try:
            return documents_of(line.row, ())
        except (ValueError, RecursionError) as error:
            self.cannot_read(f"not a JSON object: {error}", "$.row")
            return {}, []

    def _document(self, row: Row, path: str) -> Row:
        try:
            return document_of(row) if row else {}
        except (ValueError, RecursionError) as error:
            self.cannot_read(f"not a JSON object: {error}", f"$.{path}")
            return {}

    def _part(self, row: Row, index: int) -> Row:
        """A part's JSON, with its id, which a database keeps in a column."""
        part = self._document(row, f"parts[{index}]")
        return part if "id" in part or "id" not in row else part | {"id": row["id"]}

    def keep(self, line: Line, kind: str, *, known: bool) -> None:
        """A row that is no message, as it is."""
        data = object_of(_lenient(line.row)) or line.row
        event = RecordEvent(
            id=f"{line.table}.{line.key}",
            kind=kind,
            known=known,
            position=_when(line.row, data),
            data=to_json(data),
            records=self.provenance(line),
        )
        self.event(event, counted=True)

    def event(self, event: Any, *, counted: bool) -> None:
        """Put an event into the session; whether the line is counted as one."""
        self.changes.events.append(EventChange(session_id=self.session_id, event=event))
        self.changes.counts.events += counted

    def provenance(self, line: Line) -> tuple[Provenance, ...]:
        """Where the line stands, for what was read of it."""
        offset, length = self.record
        key = f"{line.table}/{line.key}" if line.key else line.table
        return (Provenance(source=self.source.path, offset=offset, length=length, key=key),)

    def link(
        self,
        kind: Any,
        parent: str,
        child: str,
        call: str | None = None,
        message: str | None = None,
        *,
        inferred: bool = False,
    ) -> None:
        """Say that a session came out of another."""
        parent = parent if parent.startswith(f"{NAME}:") else session_id(parent)
        self.changes.links.append(
            Link(
                kind=kind,
                parent_session_id=parent,
                child_session_id=child,
                tool_call_id=call,
                message_id=message,
                inferred=inferred,
            )
        )

    def learn(self, change: SessionChange) -> None:
        """Join a fact into what this feed tells of the session; a later position wins."""
        known = self._session
        if known is None:
            self._session = self.changes.sessions[self.session_id] = change
            return
        older, newer = sorted((known, change), key=lambda fact: fact.position)
        joined = {
            name: getattr(newer, name) if getattr(newer, name) is not None else getattr(older, name)
            for name in ("project_path", "cwd", "agent_version", "reported_cost", "active_leaf")
        }
        self._session = self.changes.sessions[self.session_id] = SessionChange(
            session_id=self.session_id,
            position=newer.position,
            titles={**older.titles, **newer.titles},
            first_at=min((at for at in (older.first_at, newer.first_at) if at), default=None),
            last_at=max((at for at in (older.last_at, newer.last_at) if at), default=None),
            relink=older.relink or newer.relink,
            metadata=_joined(older.metadata, newer.metadata),
            **joined,
        )

    def cannot_read(self, reason: str, path: str | None = None) -> None:
        """A diagnostic about the line."""
        offset, length = self.record
        self.changes.diagnostics.append(Diagnostic(offset=offset, length=length, reason=reason, json_path=path))


def _when(row: Row, data: Row) -> int:
    known = row.get("time_created") or object_of(data.get("time")).get("created") or data.get("time")
    return time_position(whole(known))


def _lenient(row: Row) -> Row | None:
    try:
        return document_of(row)
    except (ValueError, RecursionError):
        return None


def _joined(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    joined = {**older, **newer}
    for name in older.keys() & newer.keys():
        if isinstance(older[name], dict) and isinstance(newer[name], dict):
            joined[name] = _joined(older[name], newer[name])
    return joined
