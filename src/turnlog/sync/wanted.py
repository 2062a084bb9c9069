"""Sessions that somebody waits for while a pass reads: their sources are read before all others."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from turnlog.agents.base import Source


class WantedSessions:
    """Ids of sessions in the order in which somebody opened them. Any thread may add one; the reading thread takes."""

    def __init__(self, on_read: Callable[[str, bool], None] = lambda session_id, found: None) -> None:
        """Call `on_read` with each id once, and whether a source of it was found and read."""
        self._on_read = on_read
        self._waiting: SimpleQueue[str] = SimpleQueue()
        self._unread: Sequence[Source] | None = None

    def add(self, session_id: str) -> None:
        """Have the sources of this session read next; where a pass has none of it to read, that is said at once."""
        unread = self._unread
        if unread is not None and not any(is_source_of(source, session_id) for source in unread):
            self.answer(session_id, found=False)
        else:
            self._waiting.put(session_id)

    @contextmanager
    def among(self, unread: Sequence[Source]) -> Generator[None]:
        """A pass reads these sources while the body of the `with` runs, and no others."""
        self._unread = unread
        try:
            yield
        finally:
            self._unread = None

    def take(self) -> str | None:
        """The next id; None if nobody waits."""
        try:
            return self._waiting.get_nowait()
        except Empty:
            return None

    def answer(self, session_id: str, *, found: bool) -> None:
        """Say what became of an id that was taken."""
        self._on_read(session_id, found)

    def refuse_all(self) -> None:
        """Answer those that still wait: nothing of them was found."""
        while (session_id := self.take()) is not None:
            self.answer(session_id, found=False)


def is_source_of(source: Source, session_id: str) -> bool:
    """Whether a source that no pass has read may be a log of this session, or of a subagent of it.

    Until it is read, only its path and what discovery knows of it can say so. A subagent's id is its session's id and
    its own, with a dot between them.
    """
    agent, _, external_id = session_id.partition(":")
    if source.agent != agent or not external_id:
        return False
    parent = external_id.partition(".")[0]
    return source.session_id in (session_id, f"{agent}:{parent}") or (
        len(parent) >= _SAFE_LENGTH and parent in source.path
    )


_SAFE_LENGTH = 8
"""Characters from which on an id within a path is hardly an accident; a false hit costs only the order."""
