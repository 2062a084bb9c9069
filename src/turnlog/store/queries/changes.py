"""What changed: the change sequence, and of one session what it says, as stored bodies that nobody decodes.

A message has one number of its last change, so that two spans of the sequence that meet tell of it once.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

import msgspec

from turnlog.store.base import LONGEST_MEMORY, ChangeEntry, SessionChanges
from turnlog.store.frames import PLACE, BodyReader
from turnlog.store.queries.window import EVENT_COLUMNS, PLACE_COLUMNS, events_json, placements
from turnlog.store.rows import moment
from turnlog.store.session_keys import session_key

# A unary plus keeps SQLite from walking the whole session: what has changed lately is a few rows of an index.

CHANGED = (
    f"SELECT {PLACE_COLUMNS} FROM messages m CROSS JOIN memberships s"
    " ON s.message_key = m.key AND s.session_key = ?"
    " WHERE m.changed_seq > ? AND m.changed_seq <= ? ORDER BY s.position LIMIT ?"
)
MOVED = (
    f"SELECT {PLACE_COLUMNS} FROM memberships s JOIN messages m ON m.key = s.message_key"
    " WHERE +s.session_key = ?1 AND s.changed_seq > 0 AND s.changed_seq > ?2 AND s.changed_seq <= ?3"
    " AND NOT (m.changed_seq > ?2 AND m.changed_seq <= ?3) AND {shared}"
    " (SELECT 1 FROM memberships o WHERE o.message_key = m.key AND o.session_key <> s.session_key)"
    " ORDER BY s.position LIMIT ?4"
)
JOINED = MOVED.replace("{shared}", "EXISTS")
"""Of a message that other sessions hold too, a place that has changed may be one that is new."""
MOVED_ALONE = MOVED.replace("{shared}", "NOT EXISTS")
EVENTS = (
    f"SELECT {EVENT_COLUMNS} FROM events WHERE +session_key = ?"
    " AND changed_seq > 0 AND changed_seq > ? AND changed_seq <= ? ORDER BY position, created_at, key LIMIT ?"
)
GONE_MESSAGES = (
    "SELECT DISTINCT id FROM gone WHERE session_key = ? AND NOT is_event AND seq > ? AND seq <= ? AND NOT EXISTS"
    " (SELECT 1 FROM messages m CROSS JOIN memberships s ON s.message_key = m.key AND s.session_key = gone.session_key"
    " WHERE m.agent = (SELECT agent FROM sessions WHERE key = gone.session_key) AND m.external_id = gone.id) LIMIT ?"
)
GONE_EVENTS = (
    "SELECT DISTINCT position, id FROM gone WHERE session_key = ? AND is_event AND seq > ? AND seq <= ? AND NOT EXISTS"
    " (SELECT 1 FROM events e WHERE e.session_key = gone.session_key AND e.position = gone.position"
    " AND e.external_id = gone.id) LIMIT ?"
)
REBUILT = "SELECT 1 FROM changes WHERE seq > ? AND seq <= ? AND kind = 'rebuilt' LIMIT 1"


def load_changes(connection: sqlite3.Connection, after: int, limit: int) -> list[ChangeEntry]:
    """What changed after a number of the change sequence, in the order of the commits."""
    rows = connection.execute(
        "SELECT c.seq, s.agent || ':' || s.external_id, c.kind, c.at FROM changes c"
        " LEFT JOIN sessions s ON s.key = c.session_key WHERE c.seq > ? ORDER BY c.seq LIMIT ?",
        (after, limit),
    )
    entries: list[ChangeEntry] = []
    for sequence, session_id, kind, at in rows:
        changed_at = moment(at)
        assert changed_at is not None
        entries.append(ChangeEntry(sequence, session_id, kind, changed_at))
    return entries


def load_last_change(connection: sqlite3.Connection) -> int:
    """The number of the last change; 0 before the first."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
    return row[0] if row else 0


def load_parents(connection: sqlite3.Connection, session_ids: Iterable[str]) -> dict[str, str]:
    """Subagent -> the session that it came out of."""
    wanted = [session_id.partition(":")[::2] for session_id in session_ids]
    # The index on ids begins with the owner: a look-up for each of the few owners instead of a scan of all sessions.
    rows = connection.execute(
        "SELECT s.agent || ':' || s.external_id, p.agent || ':' || p.external_id"
        " FROM json_each(?) w CROSS JOIN owners o CROSS JOIN sessions s ON s.owner_key = o.key"
        " AND s.agent = json_extract(w.value, '$[0]') AND s.external_id = json_extract(w.value, '$[1]')"
        " JOIN sessions p ON p.key = s.parent_key WHERE s.relationship = 'subagent'",
        (json.dumps(wanted),),
    )
    return dict(rows.fetchall())


def load_session_changes(
    connection: sqlite3.Connection, session_id: str, after: int, until: int, limit: int
) -> SessionChanges | None:
    """What changed, or None when it must be read again; see `Store.session_changes`."""
    key = session_key(connection, session_id)
    if until - after > LONGEST_MEMORY or connection.execute(REBUILT, (after, until)).fetchone():
        return None
    span = (key, after, until, limit + 1)
    changed = connection.execute(CHANGED, span).fetchall()
    changed += connection.execute(JOINED, span).fetchall()
    moved = connection.execute(MOVED_ALONE, span).fetchall()
    events = connection.execute(EVENTS, span).fetchall()
    gone = [row[0] for row in connection.execute(GONE_MESSAGES, span)]
    gone_events = connection.execute(GONE_EVENTS, span).fetchall()
    if len(changed) + len(moved) > limit or max(len(events), len(gone), len(gone_events)) > limit:
        return None
    read = BodyReader(connection)
    return SessionChanges(
        messages=[read(*row[PLACE]) for row in changed],
        rows=msgspec.json.encode(placements(connection, session_id, [*changed, *moved])),
        events=events_json(events),
        gone_messages=gone,
        gone_events=gone_events,
    )
