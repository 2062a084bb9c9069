"""Texts that are too long for an index of PostgreSQL, which takes 2,704 bytes a row.

A longer text keeps its beginning and gets its hash. It is the same wherever it comes from, so ids still name one thing.
The text itself is in the body of the message.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import msgspec

from turnlog.store.feed.values import IDENTITY, TABLES, FeedBatch, Row

_ID: Final = 900
"""Two ids are in one index."""
_PATH: Final = 1800
_WORD: Final = 500
"""Several are in one index."""


def shorten(text: str, most: int) -> str:
    """The text in at most so many bytes."""
    if len(text) * 4 <= most or len(data := text.encode(errors="replace")) <= most:
        return text
    return f"{data[: most - 68].decode(errors='ignore')}…{sha256(data).hexdigest()}"


def _short_id(text: str) -> str:
    return shorten(text, _ID)


def _short_session_id(text: str) -> str:
    agent, colon, external_id = text.partition(":")
    return agent + colon + shorten(external_id, _ID)


def _short_path(text: str) -> str:
    return shorten(text, _PATH)


def _short_word(text: str) -> str:
    return shorten(text, _WORD)


_INDEXED: Final[dict[str, dict[str, Callable[[str], str]]]] = {
    "owners": dict.fromkeys(("user", "team", "task", "machine"), _short_word),
    "projects": {"path": _short_path},
    "models": {"name": _short_word},
    "price_versions": {"name": _short_word},
    "sources": {"path": _short_path, "session_id": _short_session_id},
    "sessions": {"external_id": _short_id},
    "messages": {"external_id": _short_id},
    "parts": {
        "tool_name": _short_word,
        "tool_kind": _short_word,
        "command": _short_word,
        "tool_call_id": _short_id,
        "path": _short_path,
        "spill": _short_id,
    },
    "more_paths": {"path": _short_path},
    "events": {"external_id": _short_id, "kind": _short_word, "type": _short_word},
    "call_totals": {"tool_name": _short_word, "tool_kind": _short_word, "command": _short_word},
    "edit_totals": {"path": _short_path},
    "links": {"child_id": _short_session_id, "parent_id": _short_session_id, "tool_call_id": _short_id},
    "annotations": {"session_id": _short_session_id},
    "answers": {"message_id": _short_id, "session_id": _short_session_id, "log_id": _short_session_id},
    "diagnostics": {"reason": _short_path},
    "spills": {"session_id": _short_session_id, "name": _short_id},
    "runs": {"id": _short_id, "session_id": _short_session_id},
}
"""Table -> column of an index -> what makes its texts short enough."""

_FEW_CHARACTERS: Final = _WORD // 4
"""Texts with at most so many are short enough for every index."""


def shorten_all(batch: FeedBatch) -> FeedBatch:
    """The batch with texts that every index can take."""
    rows, names = dict(batch.rows), dict(batch.names)
    for table, columns in _INDEXED.items():
        places = [(TABLES[table].index(column), change) for column, change in columns.items()]
        if table in rows and _has_long(rows[table], [at for at, _ in places]):
            rows[table] = [_changed(row, places) for row in rows[table]]
        if table in names:
            named = [
                (IDENTITY[table].index(column), columns[column]) for column in columns if column in IDENTITY[table]
            ]
            if _has_long(names[table].values(), [at for at, _ in named]):
                names[table] = {key: _changed(name, named) for key, name in names[table].items()}
    forgotten = [_short_session_id(session_id) for session_id in batch.forgotten]
    return msgspec.structs.replace(batch, rows=rows, names=names, forgotten=forgotten)


def _has_long(rows: Any, places: list[int]) -> bool:
    return any(max(map(len, [row[at] or "" for row in rows]), default=0) > _FEW_CHARACTERS for at in places)


def _changed(row: Row, places: list[tuple[int, Callable[[str], str]]]) -> Row:
    values = list(row)
    for at, change in places:
        if values[at] is not None:
            values[at] = change(values[at])
    return tuple(values)
