"""Sessions as lists show them: with what the user said about them and what is asked for a whole page at once."""

from __future__ import annotations

from collections.abc import Iterable

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
        SessionItem.of(session, said.get(session.id), previews.get(session.id), states.get(session.id))
        for session in found
    ]
