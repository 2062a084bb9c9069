"""Where sessions have secrets, kept in the store, so that redaction does not look for them in a whole session again.

Only positions are kept, and what kind of secret is there: no secret, and nothing that is made from one. The secrets are
learned again from the few messages that have any.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from turnlog.store.connection import can_be_written, open_file
from turnlog.store.keys import find_key, session_key
from turnlog.store.sqlite.changes import REBUILT
from turnlog.store.sqlite.reading import Connections, held
from turnlog.store.values import LookedAt, SecretPlaces
from turnlog.store.write_lock import begin

_Kept = tuple[dict[int, int], dict[int, int]]
"""What was found at positions of messages, and of events."""

_ENCODE: Final = msgspec.msgpack.Encoder().encode
_DECODE: Final = msgspec.msgpack.Decoder(_Kept).decode

_MESSAGES: Final = (
    "SELECT s.position FROM memberships s JOIN messages m ON m.key = s.message_key"
    " WHERE s.session_key = ?1 AND (m.changed_seq > ?2 OR s.changed_seq > ?2)"
)

_EVENTS: Final = "SELECT position FROM events WHERE session_key = ?1 AND +changed_seq > ?2"


class SecretQueries(Connections):
    """The queries of `Store` about where secrets are."""

    _keeps_secret_places = True
    """They are kept in `secret_places`."""

    def secret_places(self, session_id: str, rules: str) -> SecretPlaces:
        with self._snapshot() as connection:
            key = session_key(connection, session_id)
            if not self._keeps_secret_places or held(connection, key) != "memberships":
                # What a chat shows of logs has no number of a change.
                return _everything(connection, key)
            (until,) = connection.execute("SELECT coalesce(max(seq), 0) FROM changes").fetchone()
            kept = _kept(connection, key, rules, until)
            if kept is None:
                return _everything(connection, key)._replace(until=until)
            since, messages, events = kept
            (changed,) = connection.execute("SELECT changed_seq FROM sessions WHERE key = ?", (key,)).fetchone()
            if changed <= since:
                # Whoever writes anything of a session writes the number of the change there, too.
                return SecretPlaces(until, LookedAt(frozenset(), messages), LookedAt(frozenset(), events))
            return SecretPlaces(
                until,
                LookedAt(_positions(connection, _MESSAGES, key, since), messages),
                LookedAt(_positions(connection, _EVENTS, key, since), events),
            )

    def keep_secret_places(self, session_id: str, rules: str, places: SecretPlaces) -> None:
        if self._keeps_secret_places and places.until is not None:
            _keep(self.path, session_id, rules, places.until, (places.messages.found, places.events.found))


def _everything(connection: sqlite3.Connection, key: int) -> SecretPlaces:
    """The places of a session of which nothing is known."""
    messages = _positions(connection, f"SELECT position FROM {held(connection, key)} s WHERE s.session_key = ?", key)
    events = _positions(connection, "SELECT position FROM events WHERE session_key = ?", key)
    return SecretPlaces(None, LookedAt(messages, {}), LookedAt(events, {}))


def _kept(
    connection: sqlite3.Connection, key: int, rules: str, until: int
) -> tuple[int, dict[int, int], dict[int, int]] | None:
    """Up to which change a session was looked at, and what was found; None if it was not, by these rules."""
    row = connection.execute(
        "SELECT until, places FROM secret_places WHERE session_key = ? AND rules = ?", (key, rules)
    ).fetchone()
    if row is None or row[0] > until or connection.execute(REBUILT, (row[0], until)).fetchone():
        return None
    return row[0], *_DECODE(row[1])


def _positions(connection: sqlite3.Connection, query: str, *values: Any) -> frozenset[int]:
    return frozenset(position for (position,) in connection.execute(query, values))


def _keep(path: Path, session_id: str, rules: str, until: int, places: _Kept) -> None:
    """Keep where a session has secrets, unless the store cannot be written now."""
    if not can_be_written(path):
        return
    with suppress(sqlite3.Error), closing(open_file(path, "rw")) as connection:
        connection.execute("PRAGMA synchronous = NORMAL")
        # Whoever asks waits for no other writer.
        begin(connection, 0)
        key = find_key(connection, session_id)
        if key is not None:  # It may have been forgotten since.
            connection.execute(
                "INSERT OR REPLACE INTO secret_places (session_key, rules, until, places) VALUES (?, ?, ?, ?)",
                (key, rules, until, _ENCODE(places)),
            )
        connection.execute("COMMIT")
