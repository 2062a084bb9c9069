"""Answers about one session: its messages, pieces of its history, its landmarks."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from turnlog.store.shapes.sessions import MessagePlace, OutlineEntry, Passage, PlacedMessage
from turnlog.store.shapes.sources import RawRecord
from turnlog.store.sqlite.snapshots import Snapshots

if TYPE_CHECKING:
    from turnlog.model import Fate, HistoryEvent, Membership, Message, ToolKind
    from turnlog.store.queries.passage import ArrivalCache
    from turnlog.store.window import Window


class MessageAnswers(Snapshots):
    """What `MessageQuestions` asks."""

    def messages(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int | None = None,
        fates: Iterable[Fate] | None = None,
        structured: Container[ToolKind] = (),
        resolve_blobs: bool = True,
    ) -> list[PlacedMessage]:
        """Messages of a session in order."""
        from turnlog.store.queries.messages import load_messages
        from turnlog.store.queries.spans import Span

        span = Span(after, before, around, limit)
        with self._snapshot() as connection:
            return load_messages(
                connection, session_id, span, fates, structured=structured, resolve_blobs=resolve_blobs
            )

    def message(
        self, message_id: str, *, session_id: str | None = None, structured: bool = False, resolve_blobs: bool = True
    ) -> Message:
        """One message."""
        from turnlog.store.queries.messages import load_message

        with self._snapshot() as connection:
            return load_message(connection, message_id, session_id, structured=structured, resolve_blobs=resolve_blobs)

    def memberships(self, message_id: str) -> list[Membership]:
        """The place of a message in each session that holds it."""
        from turnlog.store.queries.messages import load_memberships

        with self._snapshot() as connection:
            return load_memberships(connection, message_id)

    def records(self, message_id: str, *, session_id: str | None = None) -> list[RawRecord]:
        """The records that a message was made from."""
        from turnlog.store.queries.messages import load_records

        with self._snapshot() as connection:
            return load_records(connection, message_id, session_id)

    def places(
        self, session_id: str, *, fates: Iterable[Fate], since: int | None = None, limit: int = 1000
    ) -> list[MessagePlace]:
        """Messages of a session without their contents."""
        from turnlog.store.queries.pages import load_places

        with self._snapshot() as connection:
            return load_places(connection, session_id, fates, since, limit)

    def bodies(
        self, session_id: str, first: int, last: int, *, fates: Iterable[Fate], resolve_blobs: bool = True
    ) -> dict[str, bytes]:
        """Canonical JSON of messages."""
        from turnlog.store.queries.pages import load_bodies

        with self._snapshot() as connection:
            return load_bodies(connection, session_id, (first, last), fates, resolve_blobs=resolve_blobs)

    def child_sessions(self, session_id: str) -> Mapping[str, str]:
        """The subagent sessions that calls started."""
        from turnlog.store.queries.pages import load_child_sessions

        with self._snapshot() as connection:
            return load_child_sessions(connection, session_id)

    def history(self, session_id: str, *, resolve_blobs: bool = True) -> list[HistoryEvent]:
        """All that happened, in causal order."""
        from turnlog.store.queries.history import load_history

        with self._snapshot() as connection:
            return load_history(connection, session_id, resolve_blobs=resolve_blobs)

    def events(self, session_id: str, *, position: int | None = None, type: str | None = None) -> list[HistoryEvent]:
        """What happened besides messages and results of known calls."""
        from turnlog.store.queries.history import load_events

        with self._snapshot() as connection:
            return load_events(connection, session_id, position, type)

    def passage(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int = 40,
    ) -> Passage:
        """A passage of the history, with what it takes to understand it."""
        from turnlog.store.queries.passage import load_passage
        from turnlog.store.queries.spans import Span

        with self._snapshot() as connection:
            arrivals = self._arrivals.load(connection, session_id)
            return load_passage(connection, session_id, Span(after, before, around, limit), arrivals)

    def window(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int = 40,
    ) -> Window:
        """A piece of a session for a browser."""
        from turnlog.store.queries.spans import Span
        from turnlog.store.queries.window import load_window

        with self._snapshot() as connection:
            return load_window(connection, session_id, Span(after, before, around, limit))

    def outline(self, session_id: str) -> list[OutlineEntry]:
        """Prompts, compactions and rewinds."""
        from turnlog.store.queries.history import load_outline

        with self._snapshot() as connection:
            return load_outline(connection, session_id)

    @cached_property
    def _arrivals(self) -> ArrivalCache:
        from turnlog.store.queries.passage import ArrivalCache

        return ArrivalCache()
