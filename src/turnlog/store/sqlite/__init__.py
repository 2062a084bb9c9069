"""The store in one SQLite file, answering in the rooms in which `store.questions` asks.

The answers are made in `turnlog.store.queries`. Each of its modules is imported when it is first asked, so that a
usage report does not wait for what decodes messages.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from turnlog.store.sqlite.changes import ChangeAnswers
from turnlog.store.sqlite.messages import MessageAnswers
from turnlog.store.sqlite.overviews import OverviewAnswers
from turnlog.store.sqlite.sessions import SessionAnswers
from turnlog.store.sqlite.sources import SourceAnswers


class SqliteStore(SessionAnswers, MessageAnswers, OverviewAnswers, SourceAnswers, ChangeAnswers):
    """A `Store` in an SQLite file. Any number of threads may ask at once."""

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()
