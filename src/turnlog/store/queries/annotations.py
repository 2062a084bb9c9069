"""What the user said about sessions: the only thing this package writes, because it is not read from any log."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable

from turnlog.store.base import Annotations, AnnotationsChange
from turnlog.store.rows import moment
from turnlog.store.session_keys import session_key


def load_annotations(connection: sqlite3.Connection, session_ids: Iterable[str]) -> dict[str, Annotations]:
    """Annotations by session id; a session about which nothing was said is left out."""
    wanted = list(session_ids)
    rows = connection.execute(
        "SELECT session_id, title, starred, archived, tags, note, changed_at FROM annotations"
        " WHERE session_id IN (SELECT value FROM json_each(?))",
        (json.dumps(wanted),),
    )
    return {
        session_id: Annotations(title, bool(starred), bool(archived), tuple(json.loads(tags or "[]")), note, moment(at))
        for session_id, title, starred, archived, tags, note, at in rows
    }


def change_annotations(connection: sqlite3.Connection, session_id: str, change: AnnotationsChange) -> Annotations:
    """Change what is said about a session, and note the change; the caller holds the write transaction."""
    key = session_key(connection, session_id)
    now = int(time.time() * 1000)
    said = load_annotations(connection, [session_id]).get(session_id, Annotations())._replace(**change)
    tags = tuple(dict.fromkeys(said.tags))
    connection.execute(
        "INSERT OR REPLACE INTO annotations (session_id, title, starred, archived, tags, note, changed_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (session_id, said.title or None, said.starred, said.archived, json.dumps(tags), said.note or None, now),
    )
    connection.execute("INSERT INTO changes (session_key, kind, at) VALUES (?, 'session', ?)", (key, now))
    return load_annotations(connection, [session_id])[session_id]
