"""Questions about one session: its messages, pieces of its history, its landmarks."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from turnlog.store.shapes.sessions import MessagePlace, OutlineEntry, Passage, PlacedMessage
from turnlog.store.shapes.sources import RawRecord

if TYPE_CHECKING:
    from turnlog.model import Fate, HistoryEvent, Membership, Message, ToolKind
    from turnlog.store.window import Window


class MessageQuestions(Protocol):
    """What a store answers about one session."""

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
        """Messages of a session in their order; `limit` counts from `after`, back from `before`, or about `around`.

        Results of calls of the kinds `structured` have the agent's own JSON, as `message` reads it.
        """
        ...

    def message(
        self, message_id: str, *, session_id: str | None = None, structured: bool = False, resolve_blobs: bool = True
    ) -> Message:
        """One message; `structured` reads the agent's own JSON of its results from the archive.

        Places of results and child sessions are those of `session_id`, or of the session that pays.
        """
        ...

    def memberships(self, message_id: str) -> list[Membership]:
        """The sessions that hold a message, and its place in each."""
        ...

    def records(self, message_id: str, *, session_id: str | None = None) -> list[RawRecord]:
        """The records that a message was made from, in the order of the log."""
        ...

    def places(
        self, session_id: str, *, fates: Iterable[Fate], since: int | None = None, limit: int = 1000
    ) -> list[MessagePlace]:
        """The messages of these fates in their order, from a position on, without their contents."""
        ...

    def bodies(
        self, session_id: str, first: int, last: int, *, fates: Iterable[Fate], resolve_blobs: bool = True
    ) -> dict[str, bytes]:
        """Message id -> canonical JSON as its own records say it, of the messages between two positions."""
        ...

    def child_sessions(self, session_id: str) -> Mapping[str, str]:
        """Tool call id -> id of the subagent session that the call started."""
        ...

    def history(self, session_id: str, *, resolve_blobs: bool = True) -> list[HistoryEvent]:
        """All that happened, in the order in which it arrived, results as events of their own."""
        ...

    def events(self, session_id: str, *, position: int | None = None, type: str | None = None) -> list[HistoryEvent]:
        """What happened besides messages and results of known calls, in order.

        Of one position, or of one type (`tool-result`: results whose call is not known), where one is named.
        """
        ...

    def passage(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int = 40,
    ) -> Passage:
        """A passage of the history, counted in messages, with what it takes to understand it; large contents cut."""
        ...

    def window(
        self,
        session_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        around: int | None = None,
        limit: int = 40,
    ) -> Window:
        """A piece of a session as JSON for a browser, without decoding a message."""
        ...

    def outline(self, session_id: str) -> list[OutlineEntry]:
        """Prompts, compactions and rewinds, in order."""
        ...
