"""What is known about a session: `summary.json` in its folder."""

from __future__ import annotations

from datetime import datetime

import msgspec

from turnlog.agents.changes import Changes, Link, SessionChange
from turnlog.agents.decoding import aware, branch_of
from turnlog.agents.grok_build import NAME
from turnlog.agents.grok_build.sources import session_id
from turnlog.agents.sidecars import SidecarFold
from turnlog.model.session import title_given

_FORK = "fork"


class _Info(msgspec.Struct):
    id: str | None = None
    cwd: str | None = None


class Summary(msgspec.Struct):
    """The facts about a session."""

    info: _Info | None = None
    session_summary: str | None = None
    generated_title: str | None = None
    created_at: datetime | None = None
    last_active_at: datetime | None = None
    head_branch: str | None = None
    head_commit: str | None = None
    parent_session_id: str | None = None
    session_kind: str | None = None
    current_model_id: str | None = None
    agent_name: str | None = None


class SummaryFold(SidecarFold[Summary]):
    """Reads the facts about a session."""

    kind = Summary
    salvages = True

    def add_facts(self, facts: Summary, size: int, changes: Changes) -> None:
        """See `SidecarFold.add_facts`."""
        session = self._source.session_id or session_id("")
        cwd = facts.info.cwd if facts.info is not None else None
        known = {"session_kind": facts.session_kind, "agent": facts.agent_name, "model": facts.current_model_id}
        change = SessionChange(
            session_id=session,
            cwd=cwd,
            project_path=cwd,
            git_branch=branch_of(facts.head_branch),
            git_commit=facts.head_commit,
            first_at=None if facts.created_at is None else aware(facts.created_at),
            last_at=None if facts.last_active_at is None else aware(facts.last_active_at),
            metadata={NAME: {name: value for name, value in known.items() if value}},
        )
        title = title_given(facts.generated_title or facts.session_summary or "")
        if title:
            change.titles["generated"] = title
        changes.sessions[session] = change
        if facts.parent_session_id and session_id(facts.parent_session_id) != session:
            changes.links.append(
                Link(
                    kind="fork" if facts.session_kind == _FORK else "continuation",
                    parent_session_id=session_id(facts.parent_session_id),
                    child_session_id=session,
                )
            )
