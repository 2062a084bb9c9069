"""What is asked about sessions and what stands in them, and what is answered beside the model's own types."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypedDict

if TYPE_CHECKING:
    from turnlog.model import Cost, Fate, HistoryEvent, Membership, Message, Relationship, RelationshipKind

SessionSort: TypeAlias = Literal["updated", "created", "cost", "tokens", "messages"]
"""All newest, dearest or largest first; sessions for which it is unknown come last."""


class SessionFilter(NamedTuple):
    """Which sessions; what is None does not matter. Times bound the last (`since`) and first (`until`) activity."""

    agent: str | None = None
    project: str | None = None
    """Path of the project, or its name."""
    model: str | None = None
    branch: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    title: str | None = None
    """Text that the title contains, in any case."""
    relationship: RelationshipKind | None = None
    parent: str | None = None
    """Id of the session they came out of."""
    user: str | None = None
    team: str | None = None
    task: str | None = None
    machine: str | None = None
    starred: bool | None = None
    archived: bool | None = None
    tag: str | None = None
    subagents: bool = False
    """Whether subagent sessions are listed too. `parent` and `relationship` list them in any case."""


class SessionPreview(NamedTuple):
    """What a list shows of a session besides itself."""

    first_prompt: str | None
    """The first 200 characters of what it was asked first; None when no prompt has text."""
    children: int
    """How many sessions came out of it: subagents, forks, continuations."""


class SessionLink(NamedTuple):
    """One relationship, seen from either side."""

    child_session_id: str
    relationship: Relationship


class PlacedMessage(NamedTuple):
    """A message, its place in the session, and what it cost there."""

    message: Message
    membership: Membership
    cost: Cost | None = None
    """Priced from its usage, also where the membership does not pay; None when the price is unknown."""


class Passage(NamedTuple):
    """What happened between two positions of a session, and what it takes to understand it alone."""

    events: list[HistoryEvent]
    """In causal order; also what stands around the passage and before it, as far as it depends on that."""
    first: int
    end: int
    """The passage itself: from this position, and up to that."""
    interrupted: frozenset[str]
    """Messages of which any record of the session says that the user stopped them."""
    before: int | None = None
    """Up to this position reaches the passage before it; None at the start."""
    after: int | None = None
    """After this position begins the next one; None at the end."""


class MessagePlace(NamedTuple):
    """Where a message stands in a session, and who speaks."""

    position: int
    message_id: str
    role: str


class OutlineEntry(NamedTuple):
    """A landmark of a session: a prompt, a compaction, a rewind, a failure that is no tool's."""

    position: int
    kind: str
    """The message's origin (`prompt`, `command`, `shell`, `subagent_prompt`), `compaction`, `rewind` or `error`."""
    text: str
    message_id: str | None = None
    turn: int | None = None
    created_at: datetime | None = None
    fate: Fate | str | None = None


class Annotations(NamedTuple):
    """What the user said about a session. It outlives a rebuild."""

    title: str | None = None
    starred: bool = False
    archived: bool = False
    tags: tuple[str, ...] = ()
    note: str | None = None
    changed_at: datetime | None = None


class AnnotationsChange(TypedDict, total=False):
    """What is to be said of a session from now on; what is left out stays as it is, None and nothing empty it."""

    title: str | None
    starred: bool
    archived: bool
    tags: Sequence[str]
    note: str | None


EVERY_SESSION = SessionFilter()
