"""Questions about what happens to a store: runs, what the user says, its change sequence, its size and freshness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, Unpack

from turnlog.store.shapes.changes import ChangeEntry, SessionChanges, StoreStatus
from turnlog.store.shapes.paging import Page
from turnlog.store.shapes.runs import EVERY_RUN, RunFilter
from turnlog.store.shapes.sessions import Annotations, AnnotationsChange

if TYPE_CHECKING:
    from turnlog.store.runs import Run


class ChangeQuestions(Protocol):
    """What a store answers about what happens to it."""

    def runs(self, filter: RunFilter = EVERY_RUN, *, limit: int = 50, cursor: str | None = None) -> Page[Run]:
        """What was started through turnlog, newest first (R-S35)."""
        ...

    def run(self, run_id: str) -> Run:
        """One run, by its id or a beginning that no other run's id has."""
        ...

    def annotations(self, session_ids: Iterable[str]) -> Mapping[str, Annotations]:
        """What the user said about these sessions; one about which nothing was said is left out."""
        ...

    def annotate(self, session_id: str, **change: Unpack[AnnotationsChange]) -> Annotations:
        """Change what the user says about a session; gives back all of it with its time."""
        ...

    def changes(self, after: int, limit: int = 1000) -> list[ChangeEntry]:
        """What changed after this number of the change sequence, in the order of the commits."""
        ...

    def last_change(self) -> int:
        """The number of the last change; 0 before the first."""
        ...

    def parents(self, session_ids: Iterable[str]) -> Mapping[str, str]:
        """Of those of these sessions that are subagents: the session that each came out of, where it is stored."""
        ...

    def session_changes(self, session_id: str, after: int, until: int, *, limit: int = 200) -> SessionChanges | None:
        """What changed in a session after `after` and up to `until`; both are the last number of some commit.

        None when more than `limit` messages or events did, or everything was made anew: it must be read again.
        """
        ...

    def status(self) -> StoreStatus:
        """Counts, sizes and freshness."""
        ...
