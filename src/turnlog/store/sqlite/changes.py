"""Answers about what happens to a store: runs, what the user says, its change sequence, its size and freshness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Unpack

from turnlog.store.connection import connect, write_transaction
from turnlog.store.shapes.changes import ChangeEntry, SessionChanges, StoreStatus
from turnlog.store.shapes.paging import Page
from turnlog.store.shapes.runs import EVERY_RUN, RunFilter
from turnlog.store.shapes.sessions import Annotations, AnnotationsChange
from turnlog.store.sqlite.snapshots import Snapshots

if TYPE_CHECKING:
    from turnlog.store.runs import Run


class ChangeAnswers(Snapshots):
    """What `ChangeQuestions` asks."""

    def runs(self, filter: RunFilter = EVERY_RUN, *, limit: int = 50, cursor: str | None = None) -> Page[Run]:
        """A page of runs."""
        from turnlog.store.runs import load_runs

        with self._snapshot() as connection:
            return load_runs(connection, filter, limit, cursor)

    def run(self, run_id: str) -> Run:
        """One run."""
        from turnlog.store.runs import load_run

        with self._snapshot() as connection:
            return load_run(connection, run_id)

    def annotations(self, session_ids: Iterable[str]) -> Mapping[str, Annotations]:
        """What the user said about these sessions."""
        from turnlog.store.queries.annotations import load_annotations

        with self._snapshot() as connection:
            return load_annotations(connection, session_ids)

    def annotate(self, session_id: str, **change: Unpack[AnnotationsChange]) -> Annotations:
        """Change what the user says about a session."""
        from turnlog.store.queries.annotations import change_annotations

        connection = connect(self.path)
        try:
            with write_transaction(connection):
                return change_annotations(connection, session_id, change)
        finally:
            connection.close()

    def changes(self, after: int, limit: int = 1000) -> list[ChangeEntry]:
        """What changed after a number of the change sequence."""
        from turnlog.store.queries.changes import load_changes

        with self._snapshot() as connection:
            return load_changes(connection, after, limit)

    def last_change(self) -> int:
        """The number of the last change."""
        from turnlog.store.queries.changes import load_last_change

        with self._snapshot() as connection:
            return load_last_change(connection)

    def parents(self, session_ids: Iterable[str]) -> Mapping[str, str]:
        """The sessions that subagents came out of."""
        from turnlog.store.queries.changes import load_parents

        with self._snapshot() as connection:
            return load_parents(connection, session_ids)

    def session_changes(self, session_id: str, after: int, until: int, *, limit: int = 200) -> SessionChanges | None:
        """What changed in a session."""
        from turnlog.store.queries.changes import load_session_changes

        with self._snapshot() as connection:
            return load_session_changes(connection, session_id, after, until, limit)

    def status(self) -> StoreStatus:
        """Counts, sizes and freshness."""
        from turnlog.store.queries.status import load_status

        with self._snapshot() as connection:
            return load_status(connection, self.path)
