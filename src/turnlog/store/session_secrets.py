"""What names and contexts in a session show to be secrets, learned before anything of it is given out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    # A hundred patterns: compiled where secrets are to be taken out.
    from turnlog.redact import Redactor


def learned_redactor(store: Store, *sessions: Session) -> Redactor:
    """A redactor that knows the secrets of sessions, of those that started them, and of all subagents of these."""
    from turnlog.redact import Redactor

    redactor = Redactor()
    for session_id in dict.fromkeys(each for session in sessions for each in family(store, session)):
        redactor.learn(store.session(session_id))
        for placed in store.messages(session_id, structured=(ToolKind.EDIT,)):
            redactor.learn(placed.message)
            _learn_outputs(redactor, store, session_id, _results_of(placed.message))
        for event in store.events(session_id):
            redactor.learn(event)
            _learn_outputs(redactor, store, session_id, results_in(event))
    return redactor


def _learn_outputs(redactor: Redactor, store: Store, session_id: str, results: Iterable[ToolResult]) -> None:
    """Learn the outputs that these results only preview, one at a time."""
    for result in results:
        if result.spilled_to:
            redactor.learn(spill_of(store, session_id, result.spilled_to))


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
