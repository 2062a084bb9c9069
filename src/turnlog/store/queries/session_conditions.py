"""Which sessions a list has: what a filter says in SQL, and what no list shows.

Conditions are over `sessions s` and its `annotations a`.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from turnlog.store.base import SessionFilter
from turnlog.store.queries.paging import aware_milliseconds
from turnlog.store.session_keys import session_key

_CONDITIONS = {
    "agent": "s.agent = ?",
    "project": "s.project_key IN (SELECT key FROM projects WHERE path = ? OR name = ?)",
    "model": "EXISTS (SELECT 1 FROM usage u JOIN models d ON d.key = u.model_key"
    " WHERE u.session_key = s.key AND d.name = ?)",
    "branch": "s.git_branch = ?",
    "title": "instr(casefold(coalesce(a.title, s.title)), casefold(?)) > 0",
    "relationship": "s.relationship = ?",
    "user": "s.owner_key IN (SELECT key FROM owners WHERE user = ?)",
    "team": "s.owner_key IN (SELECT key FROM owners WHERE team = ?)",
    "task": "s.owner_key IN (SELECT key FROM owners WHERE task = ?)",
    "machine": "s.owner_key IN (SELECT key FROM owners WHERE machine = ?)",
    "starred": "coalesce(a.starred, 0) = ?",
    "archived": "coalesce(a.archived, 0) = ?",
    "tag": "EXISTS (SELECT 1 FROM json_each(a.tags) WHERE value = ?)",
}
"""Fields of `SessionFilter` that compare one value, wherever the condition has a `?`."""


LISTED = "NOT (s.relationship IS 'subagent' AND s.messages = 0 AND s.key IN (SELECT session_key FROM superseded))"
"""Not what a stream called a subagent that has a log under another id (see `store.reconcile.streams`)."""


_OWN = (
    "NOT (s.messages = 0 AND s.events > 0 AND s.created_at IS NULL AND s.cwd IS NULL AND s.title IS NULL"
    " AND s.native = 0)"
)
"""Not a log that holds nothing but facts without a time, which are of other sessions (see `reconcile.titles`)."""


_TOLD_HERE = "NOT (s.native = 1 AND s.messages = 0 AND s.key IN (SELECT session_key FROM superseded))"
"""No chat whose every answer an agent's log tells of (see `store.reconcile.chat_answers`)."""


_USED = (
    'NOT (s.messages = 0 AND s.metadata LIKE \'%"told_by":"hooks"%\' AND EXISTS'
    " (SELECT 1 FROM events e WHERE e.session_key = s.key AND e.kind = 'hook:SessionEnd'))"
)
"""Not what was opened and closed again without a word, of which only hooks tell."""


def conditions_of(connection: sqlite3.Connection, wanted: SessionFilter) -> tuple[str, list[Any]]:
    """The condition that a filter is, and its parameters. Raises NotFoundError for a parent that is not stored."""
    conditions: list[str] = [_OWN, _USED, _TOLD_HERE]
    parameters: list[Any] = []
    for name, condition in _CONDITIONS.items():
        value = getattr(wanted, name)
        if value is not None:
            conditions.append(condition)
            parameters += [value] * condition.count("?")
    if wanted.since is not None:
        conditions.append("s.updated_at >= ?")
        parameters.append(aware_milliseconds(wanted.since))
    if wanted.until is not None:
        conditions.append("s.created_at < ?")
        parameters.append(aware_milliseconds(wanted.until))
    if wanted.parent is not None:
        conditions.append("s.parent_key = ?")
        parameters.append(session_key(connection, wanted.parent))
    if not wanted.subagents and wanted.parent is None and wanted.relationship is None:
        conditions.append("s.relationship IS NOT 'subagent'")
    else:
        conditions.append(LISTED)
    return " AND ".join(conditions), parameters
