"""Touched files in SQLite: by which sessions and calls. Paths are understood from the folder of their session."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from turnlog.store.base import EVERY_FILE, FileFilter
from turnlog.store.file_paths import CHANGING_KINDS, resolve_path, spellings
from turnlog.store.rows import moment
from turnlog.store.session_keys import session_key
from turnlog.store.sqlite.connections import Connections
from turnlog.store.sqlite.paging import decode_cursor, encode_cursor
from turnlog.store.sqlite.tool_calls import CALL_COLUMNS, FROM_PARTS, call_of
from turnlog.store.values import FileHistory, FileTouch, FileUse, Page, TouchedFile

_CHANGING = f"({', '.join(repr(kind) for kind in CHANGING_KINDS)})"

_TOUCHED = (
    "WITH touched (path, message_key, sequence) AS (SELECT path, message_key, sequence FROM parts WHERE {condition}"
    " UNION ALL SELECT path, message_key, sequence FROM more_paths WHERE {condition})"
)
_PARTS_OF_TOUCHED = FROM_PARTS.replace(
    " FROM parts p",
    " FROM touched t CROSS JOIN parts p ON p.message_key = t.message_key AND p.sequence = t.sequence",
    1,
)

_SESSIONS_OF_TOUCHED = (
    " FROM touched t CROSS JOIN parts p ON p.message_key = t.message_key AND p.sequence = t.sequence"
    " JOIN sessions s ON s.key = (SELECT iif(count(*) = 1, min(session_key), coalesce("
    "(SELECT pays_key FROM messages WHERE key = t.message_key), min(session_key)))"
    " FROM memberships WHERE message_key = t.message_key)"
)
"""As in `FROM_PARTS`: a message of several sessions counts once, for the one that is billed. For one that a
single session holds, as most are, no row with a body is read."""

_TIME = "coalesce(p.started_at, (SELECT created_at FROM messages WHERE key = t.message_key))"


class _Touch(NamedTuple):
    """A row of a file's history, newest first by its last three fields."""

    found: FileTouch
    time: int
    message_key: int
    sequence: int


class Files(Connections):
    """The queries of `Store` about files."""

    def file_history(
        self, path: str, *, changed: bool = False, limit: int = 50, cursor: str | None = None
    ) -> FileHistory:
        with self._snapshot() as connection:
            touches = sorted(_touches(connection, path, changed), key=_place, reverse=True)
        uses = _uses(touches)
        last = decode_cursor("file", (int, int, int), cursor)
        if last is not None:
            touches = [touch for touch in touches if _place(touch) < tuple(last)]
        shown = touches[:limit]
        following = encode_cursor("file", *_place(shown[-1])) if len(touches) > limit else None
        return FileHistory(uses, Page(tuple(touch.found for touch in shown), following))

    def touched_files(self, filter: FileFilter = EVERY_FILE, *, limit: int = 200) -> list[TouchedFile]:
        where, values = _where(filter)
        condition = "path IS NOT NULL"
        with self._snapshot() as connection:
            if filter.session is not None:
                condition += " AND message_key IN (SELECT message_key FROM memberships WHERE session_key = :session)"
                values["session"] = session_key(connection, filter.session)
            rows = connection.execute(
                f"{_TOUCHED.format(condition=condition)} SELECT t.path, s.cwd, s.key, count(*),"
                f" sum(p.tool_kind IN {_CHANGING}), max({_TIME}){_SESSIONS_OF_TOUCHED}"
                f" WHERE {where} GROUP BY t.path, s.key",
                values,
            )
            found: dict[str, _Sum] = defaultdict(_Sum)
            for path, folder, key, calls, edits, last in rows:
                found[resolve_path(path, folder)].add(key, calls, edits, last)
        files = [each.file(path) for path, each in found.items() if each.edits or not filter.changed]
        return sorted(files, key=_recency, reverse=True)[:limit]


def _place(touch: _Touch) -> tuple[int, int, int]:
    return touch.time, touch.message_key, touch.sequence


def _touches(connection: sqlite3.Connection, path: str, changed: bool) -> Iterator[_Touch]:
    """Every call that touched the file, in no order."""
    is_whole = path.startswith("/")
    wanted = resolve_path(path, None)
    if is_whole:
        condition, value = "path IN (SELECT value FROM json_each(?1))", json.dumps(spellings(wanted))
    else:
        # The folders before the name may be the session's own: those are compared below.
        condition, value = "path LIKE ?1", f"%{_escaped(wanted.rpartition('/')[2])}"
        condition += " ESCAPE '!'"
    kinds = f" WHERE p.tool_kind IN {_CHANGING}" if changed else ""
    rows = connection.execute(
        f"{_TOUCHED.format(condition=condition)} SELECT {CALL_COLUMNS}, t.path, s.cwd,"
        f" coalesce(p.started_at, m.created_at, -1), p.message_key, p.sequence{_PARTS_OF_TOUCHED}{kinds}",
        (value,),
    )
    for *call, written, folder, time, message_key, sequence in rows:
        whole = resolve_path(written, folder)
        if whole == wanted or (not is_whole and whole.endswith(f"/{wanted}")):
            yield _Touch(FileTouch(whole, call_of(call), sequence), time, message_key, sequence)


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _uses(touches: list[_Touch]) -> tuple[FileUse, ...]:
    """By session, in the order of the newest touch; `touches` are newest first."""
    by_session: dict[str, list[_Touch]] = defaultdict(list)
    for touch in touches:
        by_session[touch.found.call.session_id].append(touch)
    return tuple(_use(session_id, found) for session_id, found in by_session.items())


def _use(session_id: str, touches: list[_Touch]) -> FileUse:
    kinds = [touch.found.call.kind for touch in touches]
    times = [touch.time for touch in touches if touch.time >= 0]
    return FileUse(
        session_id=session_id,
        calls=len(touches),
        edits=sum(kind in CHANGING_KINDS for kind in kinds),
        kinds=tuple(sorted(set(kinds))),
        first_at=moment(min(times, default=None)),
        last_at=moment(max(times, default=None)),
    )


class _Sum:
    """What was done to one file by all sessions."""

    def __init__(self) -> None:
        self.sessions: set[int] = set()
        self.calls = self.edits = 0
        self.last: int | None = None

    def add(self, session: int, calls: int, edits: int, last: int | None) -> None:
        self.sessions.add(session)
        self.calls += calls
        self.edits += edits
        self.last = last if self.last is None else max(self.last, last or 0)

    def file(self, path: str) -> TouchedFile:
        return TouchedFile(path, len(self.sessions), self.calls, self.edits, moment(self.last))


def _recency(file: TouchedFile) -> tuple[bool, datetime | None, str]:
    return (file.last_at is not None, file.last_at, file.path)


def _where(wanted: FileFilter) -> tuple[str, dict[str, Any]]:
    conditions = {
        "instr(casefold(coalesce(s.cwd, '') || '/' || t.path), casefold(:text)) > 0": wanted.text,
        "s.project_key IN (SELECT key FROM projects WHERE path = :project OR name = :project)": wanted.project,
        "s.agent = :agent": wanted.agent,
    }
    given = [condition for condition, value in conditions.items() if value is not None]
    return " AND ".join(given) or "1", {"text": wanted.text, "project": wanted.project, "agent": wanted.agent}
