"""What an export is made of: a session of a store, read when the export is made, and without secrets on request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from turnlog.model import (
    Cost,
    Fate,
    HistoryEvent,
    Membership,
    Message,
    MessageEvent,
    Session,
    ToolKind,
    ToolResultEvent,
)
from turnlog.model.session import is_cut_title
from turnlog.store.base import Store
from turnlog.store.session_secrets import SessionSecrets, results_in, spill_of, starters, with_subagents
from turnlog.store.values import PlacedMessage

if TYPE_CHECKING:
    # A hundred patterns: compiled where secrets are to be taken out.
    from turnlog.redact import Masked

AnyT = TypeVar("AnyT")


class ExportSource:
    """One session. Contents are whole, not previews."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        *,
        redact: bool = False,
        secrets: SessionSecrets | None = None,
        content: bool = False,
    ) -> None:
        """Name the session, and its secrets where they are known; NotFoundError where the store has none of this id.

        `content`: whether a format that may leave out what was said contains it. With `redact`
        the secrets of the session, of those that started it and of all their subagents are learned before anything is
        given out: what a name or context shows to be a secret is masked in the title, too.
        """
        self.content = content
        self._store = store
        self._id = session_id
        session = store.session(session_id)
        self._secrets = secrets or (SessionSecrets(store, session) if redact else None)
        self.session: Session = self._titled(session)

    @property
    def masked(self) -> list[Masked]:
        """What was taken out so far."""
        return [] if self._secrets is None else self._secrets.redactor.report

    def history(self) -> list[HistoryEvent]:
        """All that happened, results as separate events."""
        found = self._store.history(self._id)
        positions = {each.message.id: each.position for each in found if isinstance(each, MessageEvent)}
        return [self._clean_event(event, positions) for event in found]

    def with_results(self) -> list[HistoryEvent]:
        """All that happened, results with their calls; those of edits with what the agent itself kept of them."""
        placed = self._store.messages(self._id, structured=(ToolKind.EDIT,))
        events: list[HistoryEvent] = [
            MessageEvent(
                position=each.membership.position,
                message=self._clean_message(each),
                membership=self._clean(each.membership, "membership"),
            )
            for each in placed
        ]
        return sorted([*events, *self.events()], key=lambda event: event.position)

    def events(self) -> list[HistoryEvent]:
        """What happened besides messages and results of known calls."""
        return [self._clean_event(event, {}) for event in self._store.events(self._id)]

    def placed(self) -> list[tuple[Message, Membership]]:
        """The messages with their results, and their places."""
        return [self._place(placed) for placed in self._store.messages(self._id)]

    def priced(self, found: Iterable[PlacedMessage] | None = None) -> list[tuple[Message, Membership, Cost | None]]:
        """The messages with their results, their places, and what their usage costs: all, or those of it in `found`."""
        messages = self._store.messages(self._id) if found is None else found
        return [(*self._place(placed), placed.cost) for placed in messages]

    def children(self) -> Mapping[str, str]:
        """Tool call id -> id of the session that it started."""
        return {
            self._clean_id(call): self._clean_id(child) for call, child in self._store.child_sessions(self._id).items()
        }

    def names(self) -> dict[str, str]:
        """Ids of its subagents' sessions -> their titles."""
        children = self._store.children(self._id)
        return {
            self._clean_id(child.id): self._title(child.title, f"session {child.id}")
            for child in children
            if child.title
        }

    def with_subagents(self) -> list[ExportSource]:
        """This session and those of its subagents, theirs too, each after the one that started it."""
        below = with_subagents(self._store, self._id)[1:]
        return [self, *(ExportSource(self._store, each, secrets=self._secrets) for each in below)]

    def root_id(self) -> str:
        """The id of the session that started this one, through others if it was started by a subagent; else its own."""
        return self._clean_id([self._id, *starters(self._store, self._store.session(self._id))][-1])

    def read_spill(self, name: str) -> str | None:
        """The whole of an output that its result previews; None where it is gone."""
        text = spill_of(self._store, self._id, name)
        return None if text is None else self._clean(text, f"output {name}")

    def outputs(self, events: Iterable[HistoryEvent]) -> dict[str, str]:
        """The outputs that these results only preview, by name; without those that are gone."""
        results = (result for event in events for result in results_in(event))
        read = {result.spilled_to: self.read_spill(result.spilled_to) for result in results if result.spilled_to}
        return {name: text for name, text in read.items() if text is not None}

    def _place(self, placed: PlacedMessage) -> tuple[Message, Membership]:
        return self._clean_message(placed), self._clean(placed.membership, "membership")

    def _clean_message(self, placed: PlacedMessage) -> Message:
        is_clean = self._secrets is not None and self._secrets.is_clean(self._id, placed.membership.position)
        return self._clean(placed.message, f"message {placed.message.id}", is_clean=is_clean)

    def _clean_event(self, event: HistoryEvent, positions: Mapping[str, int]) -> HistoryEvent:
        """The event without secrets; `positions` are those of the messages in whose calls results arrive."""
        if self._secrets is None:
            return event
        owner = event.position if isinstance(event, MessageEvent) else None
        if isinstance(event, ToolResultEvent) and event.message_id is not None:
            owner = positions.get(event.message_id)
        if owner is None:
            is_clean = self._secrets.is_clean_event(self._id, event.position)
        else:
            is_clean = self._secrets.is_clean(self._id, owner)
        if not isinstance(event, MessageEvent):
            return self._clean(event, _place(event), is_clean=is_clean)
        # The places of a message name others, and files: they have no part in what was found in itself.
        return msgspec.structs.replace(
            event,
            message=self._clean(event.message, _place(event), is_clean=is_clean),
            membership=self._clean(event.membership, "membership"),
            records=self._clean(event.records, "records"),
        )

    def _clean_id(self, text: str) -> str:
        return text if self._secrets is None else self._secrets.redactor.redact_id(text)

    def _titled(self, session: Session) -> Session:
        if session.title is not None:
            session = msgspec.structs.replace(session, title=self._title(session.title, "session.title"))
        return self._clean(session, "session")

    def _title(self, title: str, place: str) -> str:
        """A title is itself cut from a prompt, maybe inside a secret."""
        if self._secrets is None or not is_cut_title(title):
            return self._clean(title, place)
        return self._secrets.redactor.redact_cut(title, place)

    def _clean(self, value: AnyT, place: str, *, is_clean: bool = False) -> AnyT:
        return value if self._secrets is None else self._secrets.redactor.redact(value, place, is_clean=is_clean)


def is_shown(place: Membership) -> bool:
    """Whether a reader of the conversation sees the message: what was rewound is not shown."""
    return place.fate in (Fate.ACTIVE, Fate.COMPACTED)


def _place(event: HistoryEvent) -> str:
    return f"message {event.message.id}" if isinstance(event, MessageEvent) else f"event at {event.position}"
