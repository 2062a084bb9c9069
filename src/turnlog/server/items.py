"""Sessions as lists show them: with what the user said about them and what is asked for a whole page at once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from turnlog import agents
from turnlog.agents.commands import CommandForm, prompted_command, resume_command
from turnlog.errors import TurnlogError
from turnlog.model import Session
from turnlog.runs.states import session_states
from turnlog.server.prompts import Prompts
from turnlog.server.responses import SessionItem
from turnlog.store.base import Store
from turnlog.store.session_state import SessionState


class SessionItems:
    """What lists show of the sessions of one store."""

    def __init__(self, store: Store, prompts: Prompts | None = None) -> None:
        """With the prompts that agents are answering here, if any: what they ask leave for, no log tells."""
        self._store = store
        self._prompts = prompts

    def of(self, sessions: Iterable[Session]) -> list[SessionItem]:
        """An item for each session, in their order."""
        found = list(sessions)
        ids = [session.id for session in found]
        annotations, previews = self._store.annotations(ids), self._store.previews(ids)
        states = {id: self._asked(id, state) for id, state in session_states(self._store, ids).items()}
        return [
            SessionItem.of(
                session, annotations.get(session.id), previews.get(session.id), states.get(session.id), _resume(session)
            )
            for session in found
        ]

    def _asked(self, session_id: str, state: SessionState) -> SessionState:
        """The state; `waiting` if the session's agent requests permission here, which no log says."""
        requests = () if self._prompts is None else self._prompts.state(session_id).permission_requests
        if not requests:
            return state
        request, since = requests[0]
        return SessionState("waiting", "approval", detail=request.tool_name, since=since, doing=state.doing)


def prompt_command(session: Session) -> list[str] | None:
    """How its agent answers a prompt in it without a screen."""
    form = _form_of(session)
    return None if form is None else prompted_command(form, session.external_id)


def _resume(session: Session) -> list[str] | None:
    form = _form_of(session)
    return None if form is None else resume_command(form, session.external_id)


def _form_of(session: Session) -> CommandForm | None:
    """How its agent goes on with it; a subagent's session goes on only within its parent's."""
    if any(link.kind == "subagent" for link in session.relationships):
        return None
    return _command_form(session.agent)


@cache
def _command_form(name: str) -> CommandForm | None:
    """How the agent's command line is read; None for one that is not installed, or has none that is known."""
    try:
        return agents.agent(name).command
    except TurnlogError:
        return None
