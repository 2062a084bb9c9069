"""`undo`: remove a session that turnlog wrote for an agent, as long as nobody has gone on with it."""

from __future__ import annotations

from pathlib import Path

from turnlog import agents
from turnlog.agents.base import SourceKind
from turnlog.agents.handoffs import HANDED_OVER
from turnlog.errors import HandoffError
from turnlog.handoff.targets import writer_of
from turnlog.model import Session
from turnlog.store.base import Store
from turnlog.store.values import SourceInfo


def undo(store: Store, session_id: str, *, dry_run: bool = False) -> list[Path]:
    """Remove a session that was handed over, from its agent's home and from the store; return where it was.

    `dry_run` removes nothing. Where the agent has deleted it already, nothing is returned.

    Raises NotFoundError for a session that is not stored, HandoffError if turnlog did not write it, if it has messages
    of its own or has changed since it was read, or if it cannot be removed.
    """
    session = store.session(session_id)
    _refuse(store, session)
    agent = agents.agent(session.agent)
    sources = [
        source
        for source in store.sources(session.id)
        if source.kind == SourceKind.SESSION and source.vanished_at is None
    ]
    if any(map(_is_changed, sources)):
        raise HandoffError(f"{session.id} has changed since it was read and is left as it is: sync, and try again")
    places = [Path(source.path) for source in sources]
    if dry_run:
        return places
    try:
        for place in places:
            writer_of(agent).remove(str(place), session.external_id)
    except OSError as error:
        raise HandoffError(f"it cannot be removed: {error.filename} ({error.strerror})") from None
    store.forget(session.id)
    return places


def _refuse(store: Store, session: Session) -> None:
    if HANDED_OVER not in session.metadata:
        raise HandoffError(f"{session.id} was not written by turnlog: it is left as it is")
    own = sum(placed.membership.is_billed for placed in store.messages(session.id, resolve_blobs=False))
    if own:
        messages = "1 message" if own == 1 else f"{own:,} messages"
        raise HandoffError(f"{session.id} was continued: it has {messages} of its own and is left as it is")


def _is_changed(source: SourceInfo) -> bool:
    """Whether a log has grown since: what came may be messages. A database is asked when rows are removed."""
    log = Path(source.path)
    return log.is_file() and log.stat().st_size != source.size
