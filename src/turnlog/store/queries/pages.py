"""Which messages a session holds, and their bodies, for views that page by something else than messages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from turnlog.model import Fate
from turnlog.model.codec import encode
from turnlog.store import bodies
from turnlog.store.archived_texts import WholeBodies
from turnlog.store.base import MessagePlace
from turnlog.store.blobs import BlobLoader
from turnlog.store.frames import BODY_COLUMNS
from turnlog.store.queries.messages import children_of_calls
from turnlog.store.queries.spans import Span, held, select_span
from turnlog.store.session_keys import session_key

_PLACES = "SELECT s.position, m.external_id, m.role FROM {held} s JOIN messages m ON m.key = s.message_key"
_BODIES = f"SELECT m.external_id, {BODY_COLUMNS} FROM {{held}} s JOIN messages m ON m.key = s.message_key"

_BLOB = b'blob":'
"""What stands in every body that refers to a blob, and in some others."""


def load_places(
    connection: sqlite3.Connection, session_id: str, fates: Iterable[Fate], since: int | None, limit: int
) -> list[MessagePlace]:
    """Places of messages from a position on; see `Store.places`."""
    wanted = [str(fate) for fate in fates]
    span = Span(after=None if since is None else since - 1, limit=limit)
    key = session_key(connection, session_id)
    select = _PLACES.format(held=held(connection, key))
    return [MessagePlace(*row) for row in select_span(connection, select, key, span, _fate_in(wanted), wanted)]


def load_bodies(
    connection: sqlite3.Connection,
    session_id: str,
    positions: tuple[int, int],
    fates: Iterable[Fate],
    *,
    resolve_blobs: bool,
) -> dict[str, bytes]:
    """Bodies of the messages between two positions; see `Store.bodies`."""
    wanted = [str(fate) for fate in fates]
    span = Span(after=positions[0] - 1, before=positions[1] + 1)
    key = session_key(connection, session_id)
    rows = select_span(connection, _BODIES.format(held=held(connection, key)), key, span, _fate_in(wanted), wanted)
    read = WholeBodies(connection)
    found = {message_id: read(*place) for message_id, *place in rows}
    return _resolve(connection, found) if resolve_blobs else found


def load_child_sessions(connection: sqlite3.Connection, session_id: str) -> dict[str, str]:
    """Tool call id -> the subagent session it started; see `Store.child_sessions`."""
    session_key(connection, session_id)
    return children_of_calls(connection, session_id)


def _fate_in(fates: list[str]) -> str:
    return f"s.fate IN ({','.join('?' * len(fates))})"


def _resolve(connection: sqlite3.Connection, found: dict[str, bytes]) -> dict[str, bytes]:
    loader = BlobLoader(connection)
    for message_id, body in found.items():
        if _BLOB in body:
            found[message_id] = encode(bodies.resolve(bodies.decode(body), loader))
    return found
