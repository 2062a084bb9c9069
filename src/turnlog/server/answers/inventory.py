"""What there is: projects, agents, models, and what could not be read."""

from __future__ import annotations

from datetime import datetime

from turnlog.server.answers.base import Answer


class ProjectSummary(Answer, frozen=True, kw_only=True):
    """A project and how much of it there is."""

    path: str
    name: str
    sessions: int
    updated_at: datetime | None


class ProjectsAnswer(Answer, frozen=True, kw_only=True):
    """All projects, the last used first."""

    items: list[ProjectSummary]


class AgentColour(Answer, frozen=True, kw_only=True):
    """The colour of an agent's mark on light and on dark surfaces, as `#rrggbb`."""

    light: str
    dark: str


class AgentSummary(Answer, frozen=True, kw_only=True):
    """An agent and how much of it there is."""

    agent: str
    display_name: str
    """Its name in ids, where the agent is not installed."""
    colour: AgentColour | None
    """None: any neutral one."""
    sessions: int
    subagents: int
    sources: int
    updated_at: datetime | None


class AgentsAnswer(Answer, frozen=True, kw_only=True):
    """All agents of which there is anything."""

    items: list[AgentSummary]


class ModelSummary(Answer, frozen=True, kw_only=True):
    """A model and how often it was called."""

    name: str
    calls: int
    sessions: int


class ModelsAnswer(Answer, frozen=True, kw_only=True):
    """All models, the most called first."""

    items: list[ModelSummary]


class Diagnostic(Answer, frozen=True, kw_only=True):
    """What could not be read, where, and why."""

    path: str
    agent: str
    session_id: str | None
    offset: int
    length: int
    line: int | None
    json_path: str | None
    severity: str
    reason: str


class DiagnosticPage(Answer, frozen=True, kw_only=True):
    """A piece of the list of diagnostics."""

    items: list[Diagnostic]
    next_cursor: str | None
    total: int
