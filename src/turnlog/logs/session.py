"""A session straight from its log: what a store would hold of it, without a store.

Reads the log and what the agent wrote beside it for the same session: subagents, titles, spilled outputs. Sessions
elsewhere that share messages with it are not looked for; a store finds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnlog.agents import agent as agent_named
from turnlog.agents import detect
from turnlog.agents.base import Changes, SessionChange, Source, SourceKind, are_rows
from turnlog.agents.packing import unpack
from turnlog.errors import FormatError, NotFoundError
from turnlog.history.order import order_history
from turnlog.logs.beside import files_beside, is_empty, read_file, source_of
from turnlog.logs.gathering import Gathering
from turnlog.logs.rows import read_log, sources_around
from turnlog.model import (
    HistoryEvent,
    Membership,
    Message,
    Project,
    Session,
    SessionCounts,
    ToolCallPart,
    ToolResult,
)
from turnlog.model.usage import BUCKETS
from turnlog.pricing import price_nanos
from turnlog.store.base import StoredDiagnostic
from turnlog.store.joining import choose_title, relationship_of
from turnlog.store.names import project_name
from turnlog.store.rows import MESSAGE_COUNTS, USAGE_COUNTS, message_facts, nanos, usage_counts
from turnlog.store.sums import dollars, priced, usage_total


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
    reader = _Reader(source_of(Path(path)))
    reader.read_beside()
    return reader.history(reader.session_id, structured=structured, seen=set())


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


class _Reader:
    """Reads one session's files into a gathering."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._agent = agent_named(source.agent)
        self._bytes: dict[str, bytes] = {}
        self._gathering = Gathering()
        named = self._read(source)
        self.session_id = source.session_id or next(iter(named), "")
        if not self.session_id:
            raise FormatError("no record names a session", path=Path(source.path))
        # Of a log without a sound record there is nothing but the diagnostics.
        self._gathering.sessions.setdefault(self.session_id, SessionChange(session_id=self.session_id))

    def read_beside(self) -> None:
        """Read what the agent wrote beside the log for the same session."""
        if are_rows(self._agent, self._source):
            self._read_around()
            return
        logs: list[Source] = []
        for path in files_beside(Path(self._source.path), self.session_id.partition(":")[2]):
            source = detect(path).source
            if source is None or source.agent != self._source.agent or source.kind is SourceKind.STREAM:
                continue
            if source.kind is SourceKind.SESSION:
                logs.append(source)
            else:
                self._read(source)
        self._read_subagents([(source, *self._fold(source)) for source in logs])

    def _read_subagents(self, logs: Sequence[tuple[Source, bytes, Changes]]) -> None:
        """Of logs that look like those of sessions, take those of its subagents, and of theirs."""
        known, waiting = {self.session_id}, list(logs)
        while True:
            found = [log for log in waiting if _child_of(known, log[2]) is not None]
            if not found:
                return
            for source, data, changes in found:
                self._bytes[source.path] = data
                self._gathering.add(source, changes)
                known.add(_child_of(known, changes) or "")
            waiting = [log for log in waiting if log not in found]

    def _read_around(self) -> None:
        """Read what else there is of the session, the sessions that it started, and those that they started."""
        around = sources_around(self._agent, self._source)
        waiting, seen = [self.session_id], {self.session_id}
        while waiting:
            session_id = waiting.pop()
            for source in around.get(session_id, ()):
                if source.path != self._source.path:
                    self._read(source)
            children = {link.child_session_id for link in self._gathering.links(parent=session_id)} - seen
            seen |= children
            waiting += sorted(children)

    def history(self, session_id: str, *, structured: bool, seen: set[str]) -> SessionHistory:
        """What was read of one session, with the sessions it started."""
        seen.add(session_id)
        placed = self._gathering.placed(session_id)
        if structured:
            placed = [(self._with_structured(message, place), place) for message, place in placed]
        events = self._gathering.events(session_id)
        diagnostics = self._diagnostics(session_id)
        children = [
            self.history(link.child_session_id, structured=structured, seen=seen)
            for link in self._gathering.links(parent=session_id)
            if link.kind == "subagent" and link.child_session_id in self._gathering.sessions.keys() - seen
        ]
        messages = tuple(message for message, _ in placed)
        memberships = tuple(membership for _, membership in placed)
        counts = SessionCounts(
            turns=max((membership.turn or 0 for membership in memberships), default=0),
            events=len(events),
            diagnostics=len(diagnostics),
            **_message_counts(messages),
        )
        return SessionHistory(
            session=self._session(self._gathering.sessions[session_id], messages, counts),
            messages=messages,
            memberships=memberships,
            events=tuple(order_history(placed, events)),
            children=tuple(sorted(children, key=lambda child: _beginning(child.session))),
            diagnostics=diagnostics,
            spills={name: path for (owner, name), path in self._gathering.spills.items() if owner == session_id},
        )

    def _read(self, source: Source) -> list[str]:
        """Fold one file, or the log of rows; return the sessions it tells of."""
        self._bytes[source.path], changes = self._fold(source)
        self._gathering.add(source, changes)
        return _told_of(changes)

    def _fold(self, source: Source) -> tuple[bytes, Changes]:
        """What one file or the log of rows holds, unpacked, and what it tells."""
        if are_rows(self._agent, source):
            data = unpacked = read_log(self._agent, source)
        else:
            data = read_file(Path(source.path))
            unpacked = unpack(source.path, data).data
        return unpacked, self._agent.fold(source).feed(data, 0)

    def _with_structured(self, message: Message, membership: Membership) -> Message:
        ranges = {record.offset: record for record in membership.records}

        def fill(part: ToolCallPart, result: ToolResult) -> ToolResult:
            record = ranges.get(result.sequence) if result.sequence is not None else None
            if record is None or record.offset is None or record.length is None:
                return result
            data = self._bytes[record.source][record.offset : record.offset + record.length]
            found = self._agent.structured_result(data, part.tool_call_id)
            return result if found is None else msgspec.structs.replace(result, structured=found)

        parts = tuple(
            msgspec.structs.replace(part, results=tuple(fill(part, result) for result in part.results))
            if isinstance(part, ToolCallPart)
            else part
            for part in message.parts
        )
        return msgspec.structs.replace(message, parts=parts)

    def _diagnostics(self, session_id: str) -> tuple[StoredDiagnostic, ...]:
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
            for source, found in self._gathering.diagnostics
            if (source.session_id or self.session_id) == session_id
        )

    def _session(self, facts: SessionChange, messages: tuple[Message, ...], counts: SessionCounts) -> Session:
        title = choose_title(facts.titles) or (None, None)
        sums = _usage_sums(messages)
        calls, unknown, unpriced = sums["calls"], sums["unknown_calls"], sums["unpriced_calls"]
        models = Counter(message.model for message in messages if message.role == "assistant" and message.model)
        reported = nanos(facts.reported_cost)
        return Session(
            id=facts.session_id,
            agent=self._agent.name,
            external_id=facts.session_id.partition(":")[2],
            title=title[0],
            title_source=title[1],
            project=None
            if facts.project_path is None
            else Project(path=facts.project_path, name=project_name(facts.project_path)),
            cwd=facts.cwd,
            git_branch=facts.git_branch,
            git_commit=facts.git_commit,
            agent_version=facts.agent_version,
            models=tuple(sorted(models, key=lambda name: (-models[name], name))),
            created_at=facts.first_at,
            updated_at=facts.last_at,
            relationships=tuple(relationship_of(link) for link in self._gathering.links(child=facts.session_id)),
            counts=counts,
            usage=usage_total([sums[name] for name in BUCKETS], calls, unknown, sums["lower_bound"]),
            cost=priced(sums["cost"], calls, unknown, unpriced),
            unpriced_calls=unpriced + unknown,
            reported_cost=None if reported is None else dollars(reported, reported=True),
            metadata=facts.metadata,
        )


def _told_of(changes: Changes) -> list[str]:
    return [*changes.sessions, *(change.placement.session_id for change in changes.messages)]


def _child_of(parents: Collection[str], changes: Changes) -> str | None:
    """The subagent of one of these sessions that a log is of; None when it is not, or tells of others too."""
    links = (link for link in changes.links if link.kind == "subagent" and link.parent_session_id in parents)
    child = next((link.child_session_id for link in links), None)
    return child if child is not None and set(_told_of(changes)) <= {child} else None


def _message_counts(messages: Iterable[Message]) -> dict[str, Any]:
    sums = Counter[str]()
    for message in messages:
        sums.update(dict(zip(MESSAGE_COUNTS, message_facts(message, 0).counts, strict=True)))
    return {name: int(sums[name]) for name in MESSAGE_COUNTS}


def _usage_sums(messages: Iterable[Message]) -> Counter[str]:
    sums = Counter[str]()
    for message in messages:
        provider = message.provider.name if message.provider else None
        cost: Any = None
        if message.role == "assistant":
            cost = price_nanos(message.usage, message.model, provider, message.created_at)
        counts = usage_counts(message, cost)
        if counts is not None:
            sums.update(dict(zip(USAGE_COUNTS, counts, strict=True)))
    return sums


def _beginning(session: Session) -> tuple[bool, Any, str]:
    return (session.created_at is None, session.created_at, session.id)
