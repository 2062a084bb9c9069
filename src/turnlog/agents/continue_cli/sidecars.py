"""The list of all sessions: the only place with a time of each."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from turnlog.agents.base import StatelessFold
from turnlog.agents.changes import Changes, Diagnostic, SessionChange
from turnlog.agents.continue_cli.sources import session_id
from turnlog.agents.jsonl import UNREADABLE
from turnlog.model.session import title_given

UNTITLED = "Untitled Session"
"""The title of a session that has none."""


class ListedSession(msgspec.Struct, rename="camel"):
    """A session in the list."""

    session_id: str | None = None
    title: str | None = None
    date_created: str | float | None = None
    workspace_directory: str | None = None


class ContinueListFold(StatelessFold):
    """Reads the list."""

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        try:
            listed = msgspec.json.decode(data, type=list[ListedSession])
        except UNREADABLE as error:
            changes.counts.unreadable = 1
            changes.diagnostics.append(Diagnostic(offset=0, length=len(data), line=1, reason=str(error)))
            return changes
        changes.counts.events = 1
        for session in listed:
            if session.session_id:
                change = _facts_of(session, session_id(session.session_id))
                changes.sessions[change.session_id] = change
        return changes


def _facts_of(session: ListedSession, identity: str) -> SessionChange:
    at = _time_of(session.date_created)
    change = SessionChange(session_id=identity, first_at=at, last_at=at)
    if session.title and session.title != UNTITLED:
        change.titles["generated"] = title_given(session.title)
    return change


def _time_of(milliseconds: str | float | None) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(milliseconds or "") / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
