"""A session straight from its log: what a store would hold of it, without a store.

Reads the log and what the agent wrote next to it for the same session: subagents, titles, spilled outputs. Sessions
elsewhere that share messages with it are not looked for; a store finds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnlog.agents.changes import Link, SessionChange
from turnlog.arguments import checked
from turnlog.errors import NotFoundError
from turnlog.history.order import order_history
from turnlog.logs.sources import SessionSources, is_empty, read_file, source_of
from turnlog.model import (
    Fate,
    HistoryEvent,
    Membership,
    Message,
    Project,
    Session,
    SessionCounts,
    ToolCallPart,
    ToolResult,
)
from turnlog.pricing import price_nanos
from turnlog.store.keys import project_name
from turnlog.store.reconcile.merge import relationship_of
from turnlog.store.reconcile.titles import choose_title
from turnlog.store.rows import (
    MESSAGE_COUNTS,
    USAGE_COUNTS,
    counted_totals,
    dollars,
    is_estimated,
    message_facts,
    nanos,
    priced,
    total_counts,
    usage_counts,
    usage_total,
)
from turnlog.store.values import StoredDiagnostic
from turnlog.store.worktrees import worktree_in


def session_of(
    facts: SessionChange, parents: Iterable[Link], placed: Sequence[tuple[Message, Membership]], counts: SessionCounts
) -> Session:
    """The session of which its files say these facts.

    Args:
        facts: What the records say of the session itself.
        parents: The links of which it is the child.
        placed: All of its messages, each with its place: those that are billed to another session cost nothing here.
        counts: As `session_counts` has them.
    """
    agent, _, external_id = facts.session_id.partition(":")
    title = choose_title(facts.titles) or (None, None)
    billed = [message for message, place in placed if place.is_billed]
    sums = _usage_sums(billed, facts)
    worktree = None if facts.project_path is None else worktree_in(facts.project_path)
    folder = facts.project_path if worktree is None else worktree.repository
    models = Counter(message.model for message, _ in placed if message.role == "assistant" and message.model)
    # Some agents log tokens of a whole session only. A model that only these name comes after those of messages.
    totals = counted_totals(facts.totals)
    models.update({total.model: 0 for total in totals if total.model})
    reported = nanos(facts.reported_cost)
    return Session(
        id=facts.session_id,
        agent=agent,
        external_id=external_id,
        title=title[0],
        title_source=title[1],
        project=None if folder is None else Project(path=folder, name=project_name(folder)),
        worktree=None if worktree is None else worktree.name,
        cwd=facts.cwd,
        git_branch=facts.git_branch,
        git_commit=facts.git_commit,
        agent_version=facts.agent_version,
        models=tuple(sorted(models, key=lambda name: (-models[name], name))),
        created_at=facts.first_at,
        updated_at=facts.last_at,
        relationships=tuple(relationship_of(link) for link in parents),
        counts=counts,
        usage=usage_total(sums, sum(map(is_estimated, billed))),
        totals=totals,
        cost=priced(sums),
        unpriced_calls=sums["unpriced_calls"] + sums["unknown_calls"],
        reported_cost=None if reported is None else dollars(reported, reported=True),
        metadata=facts.metadata,
    )


def session_counts(
    messages: Iterable[Message], memberships: Iterable[Membership], *, events: int, diagnostics: int
) -> SessionCounts:
    """How much there is in a session, without what its file no longer has."""
    counted = [
        (message, place)
        for message, place in zip(messages, memberships, strict=True)
        if place.fate is not Fate.SUPERSEDED
    ]
    return SessionCounts(
        turns=max((place.turn or 0 for _, place in counted), default=0),
        events=events,
        diagnostics=diagnostics,
        **_message_counts(message for message, _ in counted),
    )


def _message_counts(messages: Iterable[Message]) -> dict[str, Any]:
    sums = Counter[str]()
    for message in messages:
        sums.update(dict(zip(MESSAGE_COUNTS, message_facts(message).counts, strict=True)))
    return {name: int(sums[name]) for name in MESSAGE_COUNTS}


def _usage_sums(messages: Iterable[Message], facts: SessionChange) -> Counter[str]:
    sums = Counter[str]()
    for message in messages:
        provider = message.provider.name if message.provider else None
        cost: Any = None
        if message.role == "assistant":
            cost = price_nanos(message.usage, message.model, provider, message.created_at)
        counts = usage_counts(message, cost)
        if counts is not None:
            sums.update(dict(zip(USAGE_COUNTS, counts, strict=True)))
    totals = counted_totals(facts.totals)
    for total in totals:
        cost = price_nanos(total.usage, total.model, None, facts.last_at)
        sums.update(dict(zip(USAGE_COUNTS, total_counts(total, cost), strict=True)))
    if totals:
        sums["covered_calls"], sums["unknown_calls"] = sums["unknown_calls"], 0
    return sums


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
    """What could not be read, in this session's sources."""
    spills: dict[str, str] = {}
    """Name (`ToolResult.spilled_to`) -> path of the file with the whole output."""

    def read_spill(self, name: str) -> bytes:
        """The whole of an output that its result only previews.

        Raises NotFoundError if there is no such file next to the log, SourceError when it cannot be read.
        """
        if name not in self.spills:
            raise NotFoundError(f"session {self.session.id} has no output file {name}")
        return read_file(Path(self.spills[name]))


@checked
def read_session(path: str | Path, *, structured: bool = False) -> SessionHistory:
    """Read a session from its log.

    Args:
        path: A log of any agent that is known; its content shows which. Of a database with several
            sessions, `<database>#<session>`.
        structured: Fill in `ToolResult.structured`, the agent's own JSON of each result.

    Raises:
        FormatError: It is no agent's log (`of_agents` says why, agent by agent), or holds several sessions (which the
            error names).
        SourceError: It cannot be read. One bad record does not raise: it is among the `diagnostics`.
    """
    sources = SessionSources(source_of(Path(path)))
    sources.read_beside()
    return _history(sources, sources.session_id, structured=structured, seen=set())


@checked
def parse_log_file(path: str | Path) -> list[Message]:
    """The messages of the session in a log, in its order; none for an empty file (R-S31).

    Raises as `read_session` does, which also tells what could not be read, and has the subagents.
    """
    file = Path(path)
    if is_empty(file):
        return []
    return list(read_session(file).messages)


@checked
def extract_tool_calls(messages: Iterable[Message]) -> list[ToolCallPart]:
    """Every tool call of the messages with its state, input and results, in order (R-S33)."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]


def _history(
    sources: SessionSources, session_id: str, *, structured: bool, seen: set[str], project: Project | None = None
) -> SessionHistory:
    """What was read of one session, with the sessions it started; `project` is that of a subagent without a folder."""
    # A damaged log may name a session as its own subagent.
    seen.add(session_id)
    placed = sources.merger.placed(session_id)
    if structured:
        placed = [(_with_structured(sources, message, place), place) for message, place in placed]
    events = sources.merger.events(session_id)
    diagnostics = _diagnostics(sources, session_id)
    messages = tuple(message for message, _ in placed)
    memberships = tuple(membership for _, membership in placed)
    counts = session_counts(messages, memberships, events=len(events), diagnostics=len(diagnostics))
    links = sources.merger.links.of(child=session_id)
    session = session_of(sources.merger.sessions[session_id], links, placed, counts)
    if session.project is None:
        session = msgspec.structs.replace(session, project=project)
    children = [
        _history(sources, link.child_session_id, structured=structured, seen=seen, project=session.project)
        for link in sources.merger.links.of(parent=session_id)
        if link.kind == "subagent" and link.child_session_id in sources.merger.sessions.keys() - seen
    ]
    return SessionHistory(
        session=session,
        messages=messages,
        memberships=memberships,
        events=tuple(order_history(placed, events)),
        children=tuple(sorted(children, key=lambda child: _beginning(child.session))),
        diagnostics=diagnostics,
        spills={name: path for (owner, name), path in sources.merger.spills.items() if owner == session_id},
    )


def _with_structured(sources: SessionSources, message: Message, membership: Membership) -> Message:
    ranges = {record.offset: record for record in membership.records}

    def fill(part: ToolCallPart, result: ToolResult) -> ToolResult:
        record = ranges.get(result.sequence) if result.sequence is not None else None
        if record is None or record.offset is None or record.length is None:
            return result
        found = sources.agent.structured_result(sources.read_record(record), part.tool_call_id)
        return result if found is None else msgspec.structs.replace(result, structured=found)

    parts = tuple(
        msgspec.structs.replace(part, results=tuple(fill(part, result) for result in part.results))
        if isinstance(part, ToolCallPart)
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def _diagnostics(sources: SessionSources, session_id: str) -> tuple[StoredDiagnostic, ...]:
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
        for source, found in sources.merger.diagnostics
        if (source.session_id or sources.session_id) == session_id
    )


def _beginning(session: Session) -> tuple[bool, Any, str]:
    return (session.created_at is None, session.created_at, session.id)
