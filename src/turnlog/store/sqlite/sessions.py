"""Answers about sessions: lists, look-ups, and what stands about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from turnlog.store.shapes.paging import Page
from turnlog.store.shapes.sessions import EVERY_SESSION, SessionFilter, SessionLink, SessionPreview, SessionSort
from turnlog.store.sqlite.snapshots import Snapshots

if TYPE_CHECKING:
    from turnlog.model import Ownership, Session
    from turnlog.store.queries.states import TurnCache
    from turnlog.store.runs import Run
    from turnlog.store.states import TurnFacts


class SessionAnswers(Snapshots):
    """What `SessionQuestions` asks."""

    def sessions(
        self,
        filter: SessionFilter = EVERY_SESSION,
        *,
        sort: SessionSort = "updated",
        limit: int = 50,
        cursor: str | None = None,
        count: bool = False,
    ) -> Page[Session]:
        """A page of sessions."""
        from turnlog.store.queries.sessions import load_sessions

        with self._snapshot() as connection:
            return load_sessions(connection, filter, sort, limit, cursor, count)

    def session(self, session_id: str) -> Session:
        """One session."""
        from turnlog.store.queries.sessions import load_session

        with self._snapshot() as connection:
            return load_session(connection, session_id)

    def find_session(self, agent: str, external_id: str, ownership: Ownership | None = None) -> Session | None:
        """The session an agent knows by this id."""
        from turnlog.store.queries.sessions import find_session

        with self._snapshot() as connection:
            return find_session(connection, agent, external_id, ownership)

    def children(self, session_id: str) -> list[Session]:
        """Sessions that came out of this one."""
        from turnlog.store.queries.sessions import load_children

        with self._snapshot() as connection:
            return load_children(connection, session_id)

    def relationships(self, session_id: str) -> list[SessionLink]:
        """Relationships in which the session is child or parent."""
        from turnlog.store.queries.sessions import load_relationships

        with self._snapshot() as connection:
            return load_relationships(connection, session_id)

    def previews(self, session_ids: Iterable[str]) -> Mapping[str, SessionPreview]:
        """What lists show of these sessions besides themselves."""
        from turnlog.store.queries.previews import load_previews

        with self._snapshot() as connection:
            return load_previews(connection, session_ids)

    def turn_facts(self, session_ids: Iterable[str]) -> Mapping[str, TurnFacts]:
        """How the last turn of these sessions stands."""
        with self._snapshot() as connection:
            return self._turns.load(connection, session_ids)

    def newest_runs(self, session_ids: Iterable[str]) -> Mapping[str, Run]:
        """The newest run of each of these sessions."""
        from turnlog.store.runs import load_newest_runs

        with self._snapshot() as connection:
            return load_newest_runs(connection, session_ids)

    @cached_property
    def _turns(self) -> TurnCache:
        from turnlog.store.queries.states import TurnCache

        return TurnCache()
