"""The context in which one feed of a session's row log handles its lines.

It knows the line that is being read and the session, and collects what was found. What a line means is decided in
`fold`.
"""

from __future__ import annotations

from typing import Any

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, Diagnostic, EventChange, Link, SessionChange
from turnlog.agents.opencode.rows import NAME, Line, Row, document_of, object_of, session_id, time_position, to_int
from turnlog.agents.opencode.snapshot import documents_of, is_session_message
from turnlog.model import Provenance, RecordEvent
from turnlog.model.codec import to_json


class OpenCodeContext:
    """The context of one feed."""

    def __init__(self, source: Source, version: str) -> None:
        """Begin before the first line, with the version of OpenCode that made the session ("" when not known)."""
        self.changes = Changes()
        self.version = version
        self.source = source
        self.session_id = source.session_id or ""
        self.external = self.session_id.partition(":")[2]
        self.record: tuple[int, int] = (0, 0)
        """Byte offset and length of the line in its source."""
        self._session: SessionChange | None = None

    def documents(self, line: Line) -> tuple[Row, list[Row]]:
        """The JSON of a message and that of its parts. What has none is empty, and becomes a diagnostic."""
        if not is_session_message(line.row):
            return self._document(line.row, "row"), [self._part(row, number) for number, row in enumerate(line.parts)]
        try:
            return documents_of(line.row, ())
        except (ValueError, RecursionError) as error:
            self.add_diagnostic(f"not a JSON object: {error}", "$.row")
            return {}, []

    def _document(self, row: Row, path: str) -> Row:
        try:
            return document_of(row) if row else {}
        except (ValueError, RecursionError) as error:
            self.add_diagnostic(f"not a JSON object: {error}", f"$.{path}")
            return {}

    def _part(self, row: Row, number: int) -> Row:
        """The JSON of a part with its id, which a database keeps in a column."""
        part = self._document(row, f"parts[{number}]")
        return part if "id" in part or "id" not in row else part | {"id": row["id"]}

    def add_record(self, line: Line, kind: str, *, known: bool) -> None:
        """Add a row that is no message as an event with its JSON."""
        data = object_of(_document_or_none(line.row)) or line.row
        event = RecordEvent(
            id=f"{line.table}.{line.key}",
            kind=kind,
            known=known,
            position=_position_of_row(line.row, data),
            data=to_json(data),
            records=self.provenance(line),
        )
        self.add_event(event, counted=True)

    def add_event(self, event: Any, *, counted: bool) -> None:
        """Add an event to the session. `counted`: it is what became of the line, so the line counts as an event."""
        self.changes.events.append(EventChange(session_id=self.session_id, event=event))
        self.changes.counts.events += counted

    def provenance(self, line: Line) -> tuple[Provenance, ...]:
        """The provenance of what is read from the line."""
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
        """Add that `parent` (an id of the model, or OpenCode's own) led to the session `child` (an id of the model)."""
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

    def merge_session(self, change: SessionChange) -> None:
        """Merge facts into the feed's change of the session; those with the greater position win."""
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
            metadata=_merge_metadata(older.metadata, newer.metadata),
            **joined,
        )

    def add_diagnostic(self, reason: str, path: str | None = None) -> None:
        """Add a diagnostic about the line, with the JSON path in it."""
        offset, length = self.record
        self.changes.diagnostics.append(Diagnostic(offset=offset, length=length, reason=reason, json_path=path))


def _position_of_row(row: Row, data: Row) -> int:
    known = row.get("time_created") or object_of(data.get("time")).get("created") or data.get("time")
    return time_position(to_int(known))


def _document_or_none(row: Row) -> Row | None:
    try:
        return document_of(row)
    except (ValueError, RecursionError):
        return None


def _merge_metadata(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    joined = {**older, **newer}
    for name in older.keys() & newer.keys():
        if isinstance(older[name], dict) and isinstance(newer[name], dict):
            joined[name] = _merge_metadata(older[name], newer[name])
    return joined
