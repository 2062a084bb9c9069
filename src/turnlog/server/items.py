"""Sessions as lists show them: with what the user said about them and what one query fetches for a whole page."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from turnlog.model import Session
from turnlog.runs.resuming import folder_problem, resume_of
from turnlog.runs.states import session_states
from turnlog.server.prompts import Prompts
from turnlog.server.responses import ResumeCommand, SessionItem
from turnlog.store.base import Store
from turnlog.store.feed.owners import agents_own_id
from turnlog.store.session_state import SessionState
from turnlog.store.values import SessionPreview


class SessionItems:
    """What lists show of the sessions of one store."""

    def __init__(self, store: Store, prompts: Prompts | None = None, *, are_here: bool = True) -> None:
        """With the prompts that agents are answering here, if any: no log says for what they ask permission.

        `are_here`: whether the folders of the sessions are on this machine.
        """
        self._are_here = are_here
        self._store = store
        self._prompts = prompts

    def of(self, sessions: Iterable[Session]) -> list[SessionItem]:
        """An item for each session, in their order."""
        found = list(sessions)
        ids = [session.id for session in found]
        annotations, previews = self._store.annotations(ids), self._store.previews(ids)
        states = self.states(ids)
        return [
            SessionItem.of(
                session,
                annotations.get(session.id),
                previews.get(session.id),
                states.get(session.id),
                self._resume(session, previews.get(session.id)),
            )
            for session in found
        ]

    def _resume(self, session: Session, preview: SessionPreview | None) -> ResumeCommand | None:
        if preview is not None and preview.upload_level == "metrics":
            return None  # its id is a hash, which its agent does not know
        command = resume_of(session if self._are_here else _as_pushed(session))
        if command is None:
            return None
        problem = folder_problem(session) if self._are_here else None
        return ResumeCommand(folder=session.cwd, command=command, problem=problem)

    def states(self, session_ids: list[str]) -> dict[str, SessionState]:
        """What the sessions are doing, by their ids."""
        return {id: self._with_question(id, state) for id, state in session_states(self._store, session_ids).items()}

    def _with_question(self, session_id: str, state: SessionState) -> SessionState:
        """The state; `waiting` if the session's agent requests permission here, which no log says."""
        requests = () if self._prompts is None else self._prompts.state(session_id).permission_requests
        if not requests:
            return state
        request, since = requests[0]
        return SessionState("waiting", "approval", detail=request.tool_name, since=since, doing=state.doing)


def _as_pushed(session: Session) -> Session:
    """The session as its agent knows it: a hub may have it under another id."""
    own = agents_own_id(session.external_id)
    return session if own == session.external_id else msgspec.structs.replace(session, external_id=own)
