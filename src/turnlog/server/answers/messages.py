"""What a session holds: windows, messages, raw records, and the same as UI messages or as a replay."""

from __future__ import annotations

from typing import Any, Self

from turnlog.model import Membership, Message, Provenance
from turnlog.replay.events import ReplayEvent
from turnlog.server.answers.base import Answer, PlacedEvent
from turnlog.store.window import Placement


class WindowPage(Answer, frozen=True, kw_only=True):
    """A piece of a session: made of stored frames, so this class only describes it."""

    items: list[Message]
    rows: list[Placement]
    events: list[PlacedEvent]
    has_before: bool
    has_after: bool


class UIMessagePage(Answer, frozen=True, kw_only=True):
    """A piece of a session as AI SDK's UI messages: made of stored bodies, so this class only describes it."""

    messages: list[dict[str, Any]]
    has_more: bool
    next_cursor: str | None
    losses: list[UIMessageLoss]


class UIMessageLoss(Answer, frozen=True, kw_only=True):
    """What these UI messages cannot say."""

    feature: str
    path: str
    """Where it stands: the number of the message counts the stored ones of the page."""
    reason: str


class RawRecord(Answer, frozen=True, kw_only=True):
    """A record as the agent wrote it."""

    source: str
    offset: int | None
    length: int | None
    text: str
    exact: bool
    """False when the bytes are not UTF-8 and `text` is repaired."""

    @classmethod
    def of_bytes(cls, place: Provenance, data: bytes) -> Self:
        """A record as text; bytes that are no UTF-8 become U+FFFD, and are owned up to."""
        text = data.decode("utf-8", "replace")
        return cls.of(place, text=text, exact="\ufffd" not in text or text.encode() == data)


class RawRecords(Answer, frozen=True, kw_only=True):
    """Records in the order of the log."""

    items: list[RawRecord]


class EventRecord(Answer, frozen=True, kw_only=True):
    """An event, and what the log says of it."""

    event: PlacedEvent
    records: list[RawRecord]


class EventRecords(Answer, frozen=True, kw_only=True):
    """The events at one position."""

    items: list[EventRecord]


class ReplayedEvent(Answer, frozen=True, kw_only=True):
    """An event of a replay, and how long to wait before it."""

    delay: float
    """Seconds, scaled and capped as was asked for."""
    event: ReplayEvent


class ReplayPage(Answer, frozen=True, kw_only=True):
    """A piece of a replay."""

    items: list[ReplayedEvent]
    before: int | None
    """What the page before is asked with; null at the start."""
    after: int | None
    """What the next page is asked with; null at the end."""


class MessageAnswer(Answer, frozen=True, kw_only=True):
    """A message with everything that is known of it, and its place in each session."""

    message: Message
    memberships: list[Membership]
