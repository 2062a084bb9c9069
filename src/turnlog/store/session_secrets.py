"""What names and contexts in a session show to be secrets, learned before anything of it is given out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from turnlog.errors import NotFoundError
from turnlog.model import (
    HistoryEvent,
    Message,
    MessageEvent,
    Session,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolResultEvent,
)
from turnlog.store.base import Store
from turnlog.store.values import LookedAt, SecretPlaces

if TYPE_CHECKING:
    # A hundred patterns: compiled where secrets are to be taken out.
    from turnlog.redact import KnownValues, Redactor


class SessionSecrets:
    """The secrets of sessions, of those that started them, and of all subagents of these.

    Where a session has secrets is kept in its store, so only messages that have any, and what is new, are looked at.
    """

    def __init__(self, store: Store, *sessions: Session) -> None:
        """Learn them."""
        from turnlog.redact import Redactor

        self.redactor: Redactor = Redactor()
        self._places: dict[str, SecretPlaces] = {}
        for session_id in dict.fromkeys(each for session in sessions for each in family(store, session)):
            self._places[session_id] = _learn(self.redactor, store, session_id)

    @property
    def known(self) -> KnownValues:
        """Those that are masked wherever they stand alone."""
        return self.redactor.known

    def is_clean(self, session_id: str, position: int) -> bool:
        """Whether no secret was found in the message of a session at a position."""
        places = self._places.get(session_id)
        return places is not None and position not in places.messages.found

    def is_clean_event(self, session_id: str, position: int) -> bool:
        """Whether no secret was found in the events of a session at a position."""
        places = self._places.get(session_id)
        return places is not None and position not in places.events.found


def _learn(redactor: Redactor, store: Store, session_id: str) -> SecretPlaces:
    """Learn the secrets of one session; returns where it has any."""
    from turnlog.redact import rules_digest

    redactor.learn(store.session(session_id))
    rules = rules_digest()
    kept = store.secret_places(session_id, rules)
    messages, events = _Looking(kept.messages), _Looking(kept.events)
    if messages.wanted:
        placed = store.messages_at(session_id, messages.wanted, structured=(ToolKind.EDIT,))
        for position, message in ((each.membership.position, each.message) for each in placed):
            messages.note(position, redactor.learn(message))
            messages.note(position, _learn_outputs(redactor, store, session_id, _results_of(message)))
            if not _is_whole(message):
                # What is not there yet may have any.
                messages.note(position, _ANY)
    if events.wanted:
        for event in store.events(session_id):
            if event.position in events.wanted:
                events.note(event.position, redactor.learn(event))
                events.note(event.position, _learn_outputs(redactor, store, session_id, results_in(event)))
    found = SecretPlaces(kept.until, messages.done(), events.done())
    if kept.messages.new or kept.events.new:
        store.keep_secret_places(session_id, rules, found)
    return found


_ANY: Final = 2
"""`Learned.VALUES`, without the patterns."""


class _Looking:
    """Looks at messages, or at events, of a session: at those that are new, and at those that name secrets."""

    def __init__(self, kept: LookedAt) -> None:
        self._found = {at: what for at, what in kept.found.items() if at not in kept.new}
        self.wanted = kept.new | {at for at, what in self._found.items() if what >= _ANY}

    def note(self, position: int, found: int) -> None:
        if found:
            self._found[position] = max(found, self._found.get(position, 0))

    def done(self) -> LookedAt:
        return LookedAt(frozenset(), self._found)


def _is_whole(message: Message) -> bool:
    """Whether all large contents of a message are there."""
    contents = (block for result in _results_of(message) for block in result.content)
    return not any(
        part.input_blob if isinstance(part, ToolCallPart) else getattr(part, "blob", None)
        for part in (*message.parts, *contents)
    )


def _learn_outputs(redactor: Redactor, store: Store, session_id: str, results: Iterable[ToolResult]) -> int:
    """Learn the outputs that these results only preview, one at a time; returns what was found."""
    found = 0
    for result in results:
        if result.spilled_to:
            text = spill_of(store, session_id, result.spilled_to)
            found = max(found, _ANY if text is None else redactor.learn(text))
    return found


def spill_of(store: Store, session_id: str, name: str) -> str | None:
    """The whole of an output that its result previews; None where it is gone."""
    try:
        return store.spill(session_id, name).decode(errors="replace")
    except NotFoundError:
        return None


def starters(store: Store, session: Session) -> Iterator[str]:
    """The ids of the sessions that started a session, the nearest first; the last one may be gone."""
    seen = {session.id}
    while True:
        parents = (each.parent_session_id for each in session.relationships if each.kind == "subagent")
        parent = next((each for each in parents if each not in seen), None)
        if parent is None:
            return
        seen.add(parent)
        yield parent
        try:
            session = store.session(parent)
        except NotFoundError:
            return


def family(store: Store, session: Session) -> list[str]:
    """The ids of a session, of those that started it as far as they are there, and of all subagents of these."""
    found: dict[str, None] = {}
    for start in reversed([session.id, *starters(store, session)]):
        if start not in found:
            try:
                found.update(dict.fromkeys(with_subagents(store, start)))
            except NotFoundError:
                # Its log was never read, or was forgotten.
                continue
    return list(found)


def with_subagents(store: Store, session_id: str) -> list[str]:
    """The ids of a session and those of its subagents, theirs too, each after the one that started it."""
    found: dict[str, None] = {}
    waiting = [session_id]
    while waiting:
        session_id = waiting.pop(0)
        if session_id not in found:
            found[session_id] = None
            waiting = [*_subagents(store, session_id), *waiting]
    return list(found)


def _subagents(store: Store, session_id: str) -> list[str]:
    return [
        child.id
        for child in store.children(session_id)
        if any(each.kind == "subagent" and each.parent_session_id == session_id for each in child.relationships)
    ]


def results_in(event: HistoryEvent) -> Iterator[ToolResult]:
    """The result that an event is, or those that a message's calls already have."""
    if isinstance(event, ToolResultEvent):
        yield event.result
    elif isinstance(event, MessageEvent):
        yield from _results_of(event.message)


def _results_of(message: Message) -> Iterator[ToolResult]:
    for part in message.parts:
        yield from part.results if isinstance(part, ToolCallPart) else ()
