"""The name of a conversation, and the thread that it was forked from."""

from __future__ import annotations

import msgspec

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, Diagnostic, Link, SessionChange
from turnlog.agents.decoding import text_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.llm.database import CONVERSATIONS, THREADS
from turnlog.agents.llm.sources import session_id
from turnlog.agents.row_files import RowLine, row_of
from turnlog.model.session import title_given


class LlmFactsFold(StatelessFold):
    """Reads what is known about a conversation."""

    def __init__(self, source: Source) -> None:
        """Read the facts of one conversation."""
        self._session_id = source.session_id or session_id("")

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        for number, line in enumerate(filter(None, data.split(b"\n")), 1):
            try:
                found = msgspec.json.decode(line, type=RowLine)
                self._read(found, changes)
            except UNREADABLE as error:
                changes.counts.unreadable += 1
                changes.diagnostics.append(Diagnostic(offset=0, length=len(line), line=number, reason=str(error)))
        return changes

    def _read(self, line: RowLine, changes: Changes) -> None:
        row = row_of(line)
        changes.counts.events += 1
        if line.table not in (THREADS, CONVERSATIONS):
            return
        change = changes.sessions.setdefault(self._session_id, SessionChange(session_id=self._session_id))
        # llm names a conversation by the beginning of its first prompt, until the user gives it another name.
        name = text_of(row.get("name"))
        if name is not None:
            change.titles["generated"] = title_given(name)
        origin = text_of(row.get("forked_from"))
        if origin is not None:
            changes.links.append(
                Link(kind="fork", parent_session_id=session_id(origin), child_session_id=self._session_id)
            )
