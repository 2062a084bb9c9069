"""A session straight from its log: what a store would hold of it, without a store.

Reads the log and what the agent wrote beside it for the same session: subagents, titles, spilled outputs. Sessions
elsewhere that share messages with it are not looked for; a store finds them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from turnlog.errors import NotFoundError
from turnlog.history.order import order_history
from turnlog.logs.beside import is_empty, read_file, source_of
from turnlog.logs.facts import session_counts, session_of
from turnlog.logs.reading import SessionFiles
from turnlog.model import HistoryEvent, Membership, Message, Session, ToolCallPart, ToolResult
from turnlog.store.base import StoredDiagnostic


class SessionHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A session with everything that is in it."""

    session: Session
    messages: tuple[Message, ...]
    """In the order of the log, those off the active branch too: see `memberships`."""
    memberships: tuple[Membership, ...]
    """The place of each message, in the same order."""
    events: tuple[HistoryEvent, ...]
    """All that happened in causal order: messages, results as they arrived, compactions, interrupts, other records."""
    children: tuple[SessionHistory, ...] = ()
    """The subagents' sessions, in the order in which they began."""
    diagnostics: tuple[StoredDiagnostic, ...] = ()
    """What could not be read, in this session's files."""
    spills: dict[str, str] = {}
    """Name (`ToolResult.spilled_to`) -> path of the file with the whole output."""

    def read_spill(self, name: str) -> bytes:
        """The whole of an output that its result only previews.

        Raises NotFoundError when no such file lies beside the log, SourceError when it cannot be read.
        """
        if name not in self.spills:
            raise NotFoundError(f"session {self.session.id} has no output file {name}")
        return read_file(Path(self.spills[name]))


def read_session(path: str | Path, *, structured: bool = False) -> SessionHistory:
    """Read a session from its log.

    Args:
        path: A log of any agent that is known; which one is told by what stands in it. Of a database with several
            sessions, `<database>#<session>`.
        structured: Fill in `ToolResult.structured`, the agent's own JSON of each result.

    Raises:
        FormatError: It is no agent's log, or holds several sessions (which the error names).
        SourceError: It cannot be read. One bad record does not raise: it is among the `diagnostics`.
    """
    files = SessionFiles(source_of(Path(path)))
    files.read_beside()
    return _history(files, files.session_id, structured=structured, seen=set())


def parse_log_file(path: str | Path) -> list[Message]:
    """The messages of the session in a log, in its order; none for an empty file (R-S31).

    Raises as `read_session` does, which also tells what could not be read, and has the subagents.
    """
    file = Path(path)
    if is_empty(file):
        return []
    return list(read_session(file).messages)


def extract_tool_calls(messages: Iterable[Message]) -> list[ToolCallPart]:
    """Every tool call of the messages with its state, input and results, in order (R-S33)."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]


def _history(files: SessionFiles, session_id: str, *, structured: bool, seen: set[str]) -> SessionHistory:
    """What was read of one session, with the sessions it started."""
    seen.add(session_id)
    placed = files.gathering.placed(session_id)
    if structured:
        placed = [(_with_structured(files, message, place), place) for message, place in placed]
    events = files.gathering.events(session_id)
    diagnostics = _diagnostics(files, session_id)
    children = [
        _history(files, link.child_session_id, structured=structured, seen=seen)
        for link in files.gathering.links.of(parent=session_id)
        if link.kind == "subagent" and link.child_session_id in files.gathering.sessions.keys() - seen
    ]
    messages = tuple(message for message, _ in placed)
    memberships = tuple(membership for _, membership in placed)
    counts = session_counts(messages, memberships, events=len(events), diagnostics=len(diagnostics))
    links = files.gathering.links.of(child=session_id)
    return SessionHistory(
        session=session_of(files.gathering.sessions[session_id], links, placed, counts),
        messages=messages,
        memberships=memberships,
        events=tuple(order_history(placed, events)),
        children=tuple(sorted(children, key=lambda child: _beginning(child.session))),
        diagnostics=diagnostics,
        spills={name: path for (owner, name), path in files.gathering.spills.items() if owner == session_id},
    )


def _with_structured(files: SessionFiles, message: Message, membership: Membership) -> Message:
    ranges = {record.offset: record for record in membership.records}

    def fill(part: ToolCallPart, result: ToolResult) -> ToolResult:
        record = ranges.get(result.sequence) if result.sequence is not None else None
        if record is None or record.offset is None or record.length is None:
            return result
        found = files.agent.structured_result(files.read_record(record), part.tool_call_id)
        return result if found is None else msgspec.structs.replace(result, structured=found)

    parts = tuple(
        msgspec.structs.replace(part, results=tuple(fill(part, result) for result in part.results))
        if isinstance(part, ToolCallPart)
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def _diagnostics(files: SessionFiles, session_id: str) -> tuple[StoredDiagnostic, ...]:
    """What could not be read in the files of a session; a file that names none belongs to the one asked for."""
    return tuple(
        StoredDiagnostic(
            source.path,
            source.agent,
            source.session_id,
            found.offset,
            found.length,
            found.line,
            found.json_path,
            found.severity,
            found.reason,
        )
        for source, found in files.gathering.diagnostics
        if (source.session_id or files.session_id) == session_id
    )


def _beginning(session: Session) -> tuple[bool, Any, str]:
    return (session.created_at is None, session.created_at, session.id)
