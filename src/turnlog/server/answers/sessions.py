"""Lists of sessions, one of them with its relatives, its outline, and what a list shows of one elsewhere."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from turnlog.model import Fate, Session
from turnlog.server.answers.base import Answer
from turnlog.store import base, states


class Annotations(Answer, frozen=True, kw_only=True):
    """What the user said about a session."""

    title: str | None
    starred: bool
    archived: bool
    tags: list[str]
    note: str | None
    changed_at: datetime | None


class OpenCall(Answer, frozen=True, kw_only=True):
    """A tool call without a final result."""

    tool_call_id: str
    tool_name: str
    kind: str
    state: str
    started_at: datetime | None
    summary: str | None
    """A command, a path, a question: its first 200 characters."""


class SessionState(Answer, frozen=True, kw_only=True):
    """What a session was doing when it was asked about, and how that is known."""

    state: states.StateName
    evidence: states.Evidence
    detail: str | None
    since: datetime | None
    quiet_at: datetime | None
    """Of `running` by records alone: when it counts as quiet unless something comes."""
    doing: OpenCall | None

    @classmethod
    def of_state(cls, state: states.SessionState) -> Self:
        """The same with its call as an answer."""
        return cls.of(state, doing=None if state.doing is None else OpenCall.of(state.doing))


class ResumeCommand(Answer, frozen=True, kw_only=True):
    """How the agent goes on with a session."""

    folder: str | None
    """Where it must be started."""
    command: list[str]
    """The program and its arguments, none of them quoted."""


class SessionItem(Session, frozen=True, kw_only=True):
    """A session, what the user said about it, what it is doing, and what a list shows besides."""

    annotations: Annotations | None = None
    state: SessionState | None = None
    resume: ResumeCommand | None = None
    first_prompt: str | None = None
    children: int = 0

    @classmethod
    def of(
        cls,
        session: Session,
        said: base.Annotations | None,
        preview: base.SessionPreview | None,
        state: states.SessionState | None,
        resume: list[str] | None,
    ) -> Self:
        """Join them."""
        facts: dict[str, Any] = {name: getattr(session, name) for name in session.__struct_fields__}
        return cls(
            **facts,
            annotations=None if said is None else Annotations.of(said),
            state=None if state is None else SessionState.of_state(state),
            resume=None if resume is None else ResumeCommand(folder=session.cwd, command=resume),
            first_prompt=preview.first_prompt if preview else None,
            children=preview.children if preview else 0,
        )


class SessionPage(Answer, frozen=True, kw_only=True):
    """A piece of the list of sessions."""

    items: list[SessionItem]
    next_cursor: str | None
    total: int
    change_sequence: int
    """What is shown here is at least as new as this number: changes after it are still to come."""


class SessionAnswer(Answer, frozen=True, kw_only=True):
    """A session and its relatives."""

    session: SessionItem
    parent: SessionItem | None
    children: list[SessionItem]
    """Subagents, oldest first."""
    forks: list[SessionItem]
    """Forks and continuations, oldest first."""
    first_position: int | None
    last_position: int | None
    change_sequence: int
    """What is shown here is at least as new as this number: changes after it are still to come."""


class OutlineEntry(Answer, frozen=True, kw_only=True):
    """A landmark of a session: a prompt, a compaction, a rewind."""

    position: int
    kind: str
    text: str
    message_id: str | None
    turn: int | None
    created_at: datetime | None
    fate: Fate | None


class OutlineAnswer(Answer, frozen=True, kw_only=True):
    """The landmarks of a session, in order."""

    items: list[OutlineEntry]


class SessionPosition(Answer, frozen=True, kw_only=True):
    """A place in a session."""

    session_id: str
    position: int


class FoundSession(Answer, frozen=True, kw_only=True):
    """A session in which something was found."""

    id: str
    agent: str
    title: str | None
    project: str | None
    """Path of its project."""
