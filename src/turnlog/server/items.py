"""Sessions as lists show them: with what the user said about them and what is asked for a whole page at once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from turnlog import agents
from turnlog.agents.base import Agent
from turnlog.agents.commands import resume_command
from turnlog.errors import TurnlogError
from turnlog.model import Session
from turnlog.runs.states import session_states
from turnlog.server.answers import SessionItem
from turnlog.store.base import Store


def session_items(store: Store, sessions: Iterable[Session]) -> list[SessionItem]:
    """An item for each session, in their order."""
    found = list(sessions)
    ids = [session.id for session in found]
    said, previews, states = store.annotations(ids), store.previews(ids), session_states(store, ids)
    return [
        SessionItem.of(
            session, said.get(session.id), previews.get(session.id), states.get(session.id), _resume(session)
        )
        for session in found
    ]


def _resume(session: Session) -> list[str] | None:
    """How its agent goes on with it; a subagent's session goes on only within its parent's."""
    agent = _agent(session.agent)
    if agent is None or any(link.kind == "subagent" for link in session.relationships):
        return None
    return resume_command(agent, session.external_id)


@cache
def _agent(name: str) -> Agent | None:
    try:
        return agents.agent(name)
    except TurnlogError:
        return None
