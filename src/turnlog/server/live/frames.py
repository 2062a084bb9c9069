"""What a change is as a server-sent event: finished bytes, made of stored bodies without decoding them.

The data of an event is one line of JSON; its id is the number of the change sequence up to which it tells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

import msgspec

from turnlog.errors import NotFoundError
from turnlog.model import Session
from turnlog.server.items import SessionItems
from turnlog.server.responses import ChangePlace, SessionsChange
from turnlog.store.base import Store
from turnlog.store.values import ChangeEntry

KEEP_ALIVE = b": \n\n"
"""A comment: it says that the connection lives, and nothing else."""

SESSION_LIMIT = 50
"""Sessions in one event; when more have changed at once, what shows them must read them anew."""

SIZE_LIMIT = 2 << 20
"""Bytes of JSON in one event; what is larger must be read anew."""

Word = Literal["ready", "resync", "gone"]


def word(event: Word, sequence: int) -> bytes:
    """An event that tells of no content."""
    return _frame(event, sequence, msgspec.json.encode(ChangePlace(sequence=sequence)))


def changes_frame(store: Store, items: SessionItems, changes: Sequence[ChangeEntry], until: int) -> bytes:
    """What changed, for who watches all sessions."""
    if any(change.kind in ("forgotten", "rebuilt") for change in changes):
        return word("resync", until)
    return sessions_frame(store, items, (change.session_id for change in changes if change.session_id), until)


def sessions_frame(store: Store, items: SessionItems, session_ids: Iterable[str], until: int) -> bytes:
    """These sessions as they are now, for who watches all."""
    ids = list(dict.fromkeys(session_ids))
    if len(ids) > SESSION_LIMIT:
        return word("resync", until)
    told = SessionsChange(sequence=until, items=items.of(_stored(store, ids)))
    return _frame("sessions", until, msgspec.json.encode(told))


def session_frame(
    store: Store, items: SessionItems, session_id: str, after: int, until: int, children: Collection[str]
) -> bytes:
    """What changed in one session after one commit and up to another, and which of its subagents have changed."""
    try:
        session = store.session(session_id)
        changes = store.session_changes(session_id, after, until)
    except NotFoundError:
        return word("gone", until)
    if changes is None or len(children) > SESSION_LIMIT:
        return word("resync", until)
    own, *others = items.of([session, *_stored(store, children)])
    data = b'{"sequence":%d,"session":%b,"items":[%b],"rows":%b,"events":%b,%b,"children":%b}' % (
        until,
        msgspec.json.encode(own),
        b",".join(changes.messages),
        changes.rows,
        changes.events,
        msgspec.json.encode({"gone_messages": changes.gone_messages, "gone_events": changes.gone_events})[1:-1],
        msgspec.json.encode(others),
    )
    return word("resync", until) if len(data) > SIZE_LIMIT else _frame("session", until, data)


def _frame(event: str, sequence: int, data: bytes) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (sequence, event.encode(), data)


def _stored(store: Store, session_ids: Collection[str]) -> list[Session]:
    """Those of these sessions that are still there."""
    found: list[Session] = []
    for session_id in session_ids:
        try:
            found.append(store.session(session_id))
        except NotFoundError:
            continue
    return found
