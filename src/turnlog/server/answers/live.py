"""What changes as it changes, and what a hook is answered."""

from __future__ import annotations

from turnlog.model import Message
from turnlog.server.answers.base import Answer, PlacedEvent
from turnlog.server.answers.sessions import SessionItem
from turnlog.store.window import Placement


class ChangePlace(Answer, frozen=True, kw_only=True):
    """A place in the change sequence, and nothing else: `ready`, `resync`, `gone`."""

    sequence: int


class SessionsChange(Answer, frozen=True, kw_only=True):
    """Sessions that are new or of which anything has changed."""

    sequence: int
    items: list[SessionItem]


class SessionChange(Answer, frozen=True, kw_only=True):
    """What changed in a session: made of stored bodies, so this class only describes it."""

    sequence: int
    session: SessionItem
    items: list[Message]
    """Messages that are new or have changed, each whole, in their order."""
    rows: list[Placement]
    """One for each of these messages, then those of messages whose place or fate alone has changed."""
    events: list[PlacedEvent]
    """Events that are new or told anew."""
    gone_messages: list[str]
    """Ids of messages that are no longer part of the session."""
    gone_events: list[tuple[int, str]]
    """Position and id of events that are no longer there."""
    children: list[SessionItem]
    """Subagents of which anything has changed."""


class HookAnswer(Answer, frozen=True, kw_only=True):
    """That what a hook told is kept."""

    session_id: str
    """Of which session it tells."""
