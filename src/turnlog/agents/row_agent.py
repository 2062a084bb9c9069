"""What an agent's module also is when some of its sources are no files: it reads rows, and writes them back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeGuard, runtime_checkable

import msgspec

from turnlog.agents.base import Agent, Source, Version


class RowUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What is new in a source of rows."""

    lines: Iterable[bytes] = ()
    """JSON objects, a line each with its newline, to append to the source's log."""
    anew: bool = False
    """They are the whole, in a better order than before: they begin the log anew."""


@runtime_checkable
class RowAgent(Agent, Protocol):
    """What an agent also offers when some of its sources are no files: rows of a database, or many small files.

    Such a source is one session. Its log is kept by the store alone: a line for each version of a row that a pass
    has seen, oldest first. It is archived, folded and rebuilt as a file's lines are. Rows have no offsets to make
    positions from: positions come from what they say, so that they do not depend on when a pass saw which version.
    """

    def holds_rows(self, source: Source) -> bool:
        """Whether the source is rows, told by its path alone."""
        ...

    def sources_at(self, path: Path, root: Path) -> Iterator[Source]:
        """The sources of which a file below the home `root` holds anything, with their versions, when it changed."""
        ...

    def row_version(self, source: Source) -> Version:
        """Of the rows as they are now. Raises OSError or SourceError when they cannot be looked at."""
        ...

    def read_rows(self, source: Source, log: Iterable[bytes]) -> RowUpdate:
        """What is new, given the log so far in pieces. Raises OSError or SourceError when the rows cannot be read."""
        ...

    def restore_rows(self, source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
        """Write the rows of a log below the folder `to`, as they last were; return the files written.

        Raises ConflictError when there are other rows of the same keys already.
        """
        ...


def are_rows(agent: object, source: Source) -> TypeGuard[RowAgent]:
    """Whether the agent reads this source itself."""
    # Looking for the whole protocol takes a tenth of a millisecond, and this is asked of every source.
    holds_rows: Callable[[Source], bool] | None = getattr(agent, "holds_rows", None)
    return holds_rows is not None and holds_rows(source)
