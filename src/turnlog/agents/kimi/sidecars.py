"""The facts about a Kimi Code session: its folder, title and agents, and what it was copied from.

`state.json` is a separate source, read by `KimiSidecarFold`. So is `session_index.jsonl`, which is only archived: the
fold of a log looks up the folder of its session there, which 0.20 wrote nowhere else.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, Link, SessionChange
from turnlog.agents.decoding import aware
from turnlog.agents.files import read_regular_file
from turnlog.agents.jsonl import UNREADABLE, count_lines
from turnlog.agents.kimi import KIMI_CLI, KIMI_CODE
from turnlog.agents.kimi.contents import time_of
from turnlog.agents.kimi.sources import INDEX, MAIN, external_id, session_id
from turnlog.agents.sidecars import SidecarFold


class _IndexEntry(msgspec.Struct, rename="camel"):
    session_id: str | None = None
    work_dir: str | None = None


def folder_of(source: Source) -> str | None:
    """The folder of a log's session by the index of its home; None if it is not there."""
    session = (source.session_id or "").partition(":")[2].partition(".")[0]
    found = None
    for line in read_regular_file(Path(source.root) / INDEX).splitlines():
        try:
            entry = msgspec.json.decode(line, type=_IndexEntry)
        except UNREADABLE:
            continue
        # The file is only appended to: the last line of a session counts.
        if entry.session_id == session:
            found = entry.work_dir or found
    return found


class KimiIndexFold(StatelessFold):
    """Counts the lines of the index, which is only archived: the fold of a log looks into it."""

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        changes.counts.events = count_lines(data)
        return changes


class _AgentFacts(msgspec.Struct, rename="camel"):
    type: str | None = None
    parent_agent_id: str | None = None
    labels: dict[str, Any] = {}


class _Custom(msgspec.Struct):
    kimi_cli_session_id: str | None = None


class _Facts(msgspec.Struct, rename="camel"):
    cwd: str | None = None
    title: str | None = None
    title_kind: str | None = None
    is_custom_title: bool | None = None
    archived: bool | None = None
    forked_from: str | None = None
    created_at: float | datetime | None = None
    updated_at: float | datetime | None = None
    agents: dict[str, _AgentFacts] = {}
    custom: _Custom | None = None


class KimiSidecarFold(SidecarFold[_Facts]):
    """Reads the facts of one session."""

    kind = _Facts
    salvages = True

    def add_facts(self, facts: _Facts, size: int, changes: Changes) -> None:
        """See `SidecarFold.add_facts`."""
        external = (self._source.session_id or "").partition(":")[2] or Path(self._source.path).parent.name
        _read_facts(facts, external, changes)


def _read_facts(facts: _Facts, external: str, changes: Changes) -> None:
    session = session_id(external)
    change = SessionChange(
        session_id=session,
        cwd=facts.cwd,
        project_path=facts.cwd,
        first_at=_time_of(facts.created_at),
        last_at=_time_of(facts.updated_at),
        metadata={KIMI_CODE: {"archived": True}} if facts.archived else {},
    )
    # Before 0.43 the title that is not the user's repeats the first prompt.
    if facts.title and (facts.is_custom_title or facts.title_kind == "generated"):
        change.titles["custom" if facts.is_custom_title else "generated"] = facts.title
    changes.sessions[session] = change
    if facts.forked_from and facts.forked_from != external:
        changes.links.append(
            Link(kind="fork", parent_session_id=session_id(facts.forked_from), child_session_id=session)
        )
    original = facts.custom.kimi_cli_session_id if facts.custom is not None else None
    # `kimi migrate` keeps the id of the session that it copied. Both stay, because the copy lacks tokens and times.
    if original:
        changes.links.append(
            Link(kind="continuation", parent_session_id=f"{KIMI_CLI}:{original}", child_session_id=session)
        )
    for name, agent in facts.agents.items():
        if name != MAIN:
            _read_agent(external, name, agent, changes)


def _read_agent(external: str, name: str, agent: _AgentFacts, changes: Changes) -> None:
    child = session_id(external_id(external, name))
    parent = session_id(external_id(external, agent.parent_agent_id or MAIN))
    profile = agent.labels.get("profileName")
    change = SessionChange(session_id=child)
    if isinstance(profile, str):
        change.metadata = {KIMI_CODE: {"agent_type": profile}}
    changes.sessions[child] = change
    # A damaged file may name a subagent as its own parent.
    if parent != child:
        changes.links.append(Link(kind="subagent", parent_session_id=parent, child_session_id=child))


def _time_of(value: float | datetime | None) -> datetime | None:
    return aware(value) if isinstance(value, datetime) else time_of(value)
