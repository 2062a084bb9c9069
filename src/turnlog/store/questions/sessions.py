"""Questions about sessions: lists, look-ups, and what stands about sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from turnlog.store.shapes.paging import Page
from turnlog.store.shapes.sessions import EVERY_SESSION, SessionFilter, SessionLink, SessionPreview, SessionSort

if TYPE_CHECKING:
    from turnlog.model import Ownership, Session
    from turnlog.store.runs import Run
    from turnlog.store.states import TurnFacts


class SessionQuestions(Protocol):
    """What a store answers about them."""

    def sessions(
        self,
        filter: SessionFilter = EVERY_SESSION,
        *,
        sort: SessionSort = "updated",
        limit: int = 50,
        cursor: str | None = None,
        count: bool = False,
    ) -> Page[Session]:
        """Sessions, page by page; `count` fills in the page's `total`. Raises ValueError for a foreign cursor."""
        ...

    def session(self, session_id: str) -> Session:
        """One session."""
        ...

    def find_session(self, agent: str, external_id: str, ownership: Ownership | None = None) -> Session | None:
        """The session an agent knows by this id, of one owner when several have it (R-C12, R-C13)."""
        ...

    def children(self, session_id: str) -> list[Session]:
        """Sessions that came out of this one, oldest first; of a chat also those in which its agents tell of it."""
        ...

    def relationships(self, session_id: str) -> list[SessionLink]:
        """Every relationship in which the session is parent or child."""
        ...

    def previews(self, session_ids: Iterable[str]) -> Mapping[str, SessionPreview]:
        """What lists show of these sessions besides themselves; one that is not stored is left out."""
        ...

    def turn_facts(self, session_ids: Iterable[str]) -> Mapping[str, TurnFacts]:
        """How the last turn of these sessions stands; one that is not stored is left out."""
        ...

    def newest_runs(self, session_ids: Iterable[str]) -> Mapping[str, Run]:
        """The newest run of each of these sessions; one that turnlog did not start is left out."""
        ...
