"""Tool calls in SQLite: lists over many sessions, counts per tool, and the files that calls touched.

Paths are resolved with the session's folder. The reasoning is counted here too, from the same table of parts.
"""

from __future__ import annotations

import heapq
import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from turnlog import paths
from turnlog.model import ToolState
from turnlog.model.parts import OPEN_STATES
from turnlog.store.base import EVERY_FILE, EVERY_TOOL_CALL, FileFilter, ToolCallFilter
from turnlog.store.keys import FIND_MESSAGE, session_key
from turnlog.store.rows import CHANGING_KINDS, UNDONE, moment, resolve_path, spellings
from turnlog.store.sqlite.reading import (
    Connections,
    Phase,
    aware_milliseconds,
    check_limit,
    decode_cursor,
    encode_cursor,
    phases,
)
from turnlog.store.values import (
    FileHistory,
    FileTouch,
    FileUse,
    Page,
    ReasoningVolume,
    ToolCall,
    ToolUsage,
    TouchedFile,
)

_FAILED = ToolState.OUTPUT_ERROR

_CALL_COLUMNS = (
    "p.tool_call_id, p.tool_name, p.tool_kind, p.tool_state, m.external_id, s.agent || ':' || s.external_id,"
    " c.position, m.agent, p.started_at, p.completed_at, p.duration_ms, p.exit_code, p.path, p.text_size,"
    " p.output_size"
)
"""SQL over a part `p`, its message `m`, the session `s` and the membership `c`: the fields of `ToolCall`, in order."""

_POSITION = ToolCall.__struct_fields__.index("position")

# A message in several sessions is listed once: in the billed session, otherwise in the first one.
_BILLED = "coalesce(m.billed_key, (SELECT min(session_key) FROM memberships WHERE message_key = m.key))"

# CROSS JOIN keeps SQLite from reordering the tables: rows must come in the order of the first one's index.
_FROM_PARTS = (
    f" FROM parts p CROSS JOIN messages m ON m.key = p.message_key JOIN sessions s ON s.key = {_BILLED}"
    " JOIN memberships c ON c.message_key = m.key AND c.session_key = s.key"
)
_FROM_MESSAGES = (
    f" FROM messages m CROSS JOIN parts p ON p.message_key = m.key JOIN sessions s ON s.key = {_BILLED}"
    " JOIN memberships c ON c.message_key = m.key AND c.session_key = s.key"
)
_FROM_SESSION = (
    " FROM memberships c CROSS JOIN messages m ON m.key = c.message_key JOIN parts p ON p.message_key = m.key"
    " JOIN sessions s ON s.key = c.session_key"
)

_OF_MESSAGE = f"p.message_key IN ({FIND_MESSAGE})"

_TIES = ("s.agent", "s.external_id", "c.position", "m.external_id", "p.sequence")
"""What orders calls of one time in every store: keys are an engine's own. Some agents write whole seconds."""

_BEFORE_ALL = -(1 << 62)
"""Shared messages of which a fork has no copy have negative positions."""


class _Plan(NamedTuple):
    """A way to read calls from newest to oldest, along an index."""

    tables: str
    time: str
    """The time by which the index is ordered."""
    condition: str
    parameters: tuple[Any, ...] = ()


_GROWTH: Final = 8
"""How many times more messages are read next, where those before had too few calls that fit."""

_MOST: Final = 20_000
"""Messages that are read at once."""


class ToolCallQueries(Connections):
    """The queries of `Store` about tool calls and reasoning."""

    _walks_in_steps = False
    """Calls by time are read from some of the newest messages, then from more, where a query would read all to sort
    them."""

    def tool_calls(
        self, filter: ToolCallFilter = EVERY_TOOL_CALL, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ToolCall]:
        check_limit(limit)
        with self._snapshot() as connection:
            if filter.session is not None:
                return _session_calls(connection, filter, limit, cursor)
            last = decode_cursor("calls", (int | None, str, str, int, str, int), cursor)
            # Each plan's rows are sorted, so merging them gives the newest calls first.
            walk = _walk_in_steps if self._walks_in_steps else _walk
            rows = heapq.merge(
                *(walk(connection, plan, filter, limit, last) for plan in _plans(filter)), key=_recency, reverse=True
            )
            found = [row for row, _ in zip(rows, range(limit + 1), strict=False)]
        following = encode_cursor("calls", *_place_of(found[limit - 1])) if len(found) > limit else None
        return Page(tuple(_call_of(row) for row in found[:limit]), following)

    def tool_usage(self, filter: ToolCallFilter = EVERY_TOOL_CALL) -> list[ToolUsage]:
        with self._snapshot() as connection:
            # What totals are not divided by is counted call by call.
            count = _add_totals if filter == _divided(filter) else _count_calls
            return [ToolUsage(*row) for row in count(connection, filter)]

    def reasoning(self, session_id: str | None = None) -> ReasoningVolume:
        with self._snapshot() as connection:
            if session_id is None:
                # Repeats the condition of the partial index, which SQLite otherwise would not use.
                counts = connection.execute(
                    "SELECT count(*), coalesce(sum(text_size), 0), count(DISTINCT message_key) FROM parts"
                    " WHERE type = 'reasoning' AND type NOT IN ('text', 'tool-call')"
                ).fetchone()
                tokens = connection.execute("SELECT coalesce(sum(reasoning), 0) FROM sessions").fetchone()
                return ReasoningVolume(*counts, *tokens)
            key = session_key(connection, session_id)
            counts = connection.execute(
                "SELECT count(*), coalesce(sum(p.text_size), 0), count(DISTINCT p.message_key) FROM memberships s"
                " JOIN parts p ON p.message_key = s.message_key WHERE s.session_key = ? AND p.type = 'reasoning'",
                (key,),
            ).fetchone()
            tokens = connection.execute("SELECT reasoning FROM sessions WHERE key = ?", (key,)).fetchone()
            return ReasoningVolume(*counts, *tokens)


def _divided(wanted: ToolCallFilter) -> ToolCallFilter:
    """The part of a filter by which totals are divided."""
    return ToolCallFilter(tool=wanted.tool, kind=wanted.kind, agent=wanted.agent, project=wanted.project)


_OF_TOTALS: Final = (
    ("tool", "t.tool_name = :tool"),
    ("kind", "t.tool_kind = :kind"),
    ("agent", "t.session_key IN (SELECT key FROM sessions WHERE agent = :agent)"),
    (
        "project",
        "t.session_key IN (SELECT key FROM sessions WHERE project_key IN"
        " (SELECT key FROM projects WHERE path = :project OR name = :project))",
    ),
)
"""Fields of a filter, and the conditions of `call_totals`, aliased `t`, that they are."""


def _add_totals(connection: sqlite3.Connection, wanted: ToolCallFilter) -> Iterable[tuple[Any, ...]]:
    given = {name: str(value) for name, _ in _OF_TOTALS if (value := getattr(wanted, name)) is not None}
    conditions = [condition for name, condition in _OF_TOTALS if name in given]
    return connection.execute(
        "SELECT t.tool_name, t.tool_kind, sum(t.calls), sum(t.failed), sum(t.denied), sum(t.aborted), sum(t.open),"
        f" sum(t.duration_ms), sum(t.unknown_durations) FROM call_totals t WHERE {' AND '.join(conditions) or '1'}"
        " GROUP BY t.tool_name, t.tool_kind ORDER BY sum(t.calls) DESC, t.tool_name, t.tool_kind",
        given,
    )


def _count_calls(connection: sqlite3.Connection, wanted: ToolCallFilter) -> Iterable[tuple[Any, ...]]:
    tables, condition, parameters = _FROM_PARTS, "1", []
    conditions, values = _conditions_of(wanted, "p.started_at")
    if wanted.session is not None:
        tables, condition = _FROM_SESSION, "c.session_key = ?"
        parameters = [session_key(connection, wanted.session)]
    elif wanted.agent is None and wanted.project is None:
        tables = " FROM parts p"
    return connection.execute(
        "SELECT p.tool_name, p.tool_kind, count(*), sum(p.tool_state = ?), sum(p.tool_state = ?),"
        f" sum(p.tool_state = ?), sum(p.tool_state IN ({','.join('?' * len(OPEN_STATES))})),"
        f" coalesce(sum(p.duration_ms), 0), sum(p.duration_ms IS NULL){tables}"
        f" WHERE {condition} AND p.tool_name IS NOT NULL AND {conditions}"  # as in its index
        " GROUP BY p.tool_name, p.tool_kind ORDER BY count(*) DESC, p.tool_name, p.tool_kind",
        (_FAILED, ToolState.OUTPUT_DENIED, ToolState.ABORTED, *OPEN_STATES, *parameters, *values),
    )


def _session_calls(
    connection: sqlite3.Connection, wanted: ToolCallFilter, limit: int, cursor: str | None
) -> Page[ToolCall]:
    """The calls of one session in order."""
    position, sequence = decode_cursor("session-calls", (int, int), cursor) or (_BEFORE_ALL, -1)
    conditions, values = _conditions_of(wanted, "p.started_at")
    rows = connection.execute(
        f"SELECT {_CALL_COLUMNS}, p.sequence{_FROM_SESSION} WHERE c.session_key = ? AND p.type = 'tool-call'"
        f" AND c.position >= ? AND (c.position, p.sequence) > (?, ?) AND {conditions}"
        " ORDER BY c.position, p.sequence LIMIT ?",
        (session_key(connection, wanted.session or ""), position, position, sequence, *values, limit + 1),
    ).fetchall()
    shown = rows[:limit]
    following = encode_cursor("session-calls", shown[-1][_POSITION], shown[-1][-1]) if len(rows) > limit else None
    return Page(tuple(_call_of(row) for row in shown), following)


def _plans(wanted: ToolCallFilter) -> list[_Plan]:
    """The plans: by path for a file, by name and state for a tool (one per state), otherwise by time of the message."""
    if wanted.call is not None:
        return [_Plan(_FROM_PARTS, "p.started_at", "p.tool_call_id = ?", (wanted.call,))]
    if wanted.message is not None:
        # The primary key of the message leads to its parts.
        return [_Plan(_FROM_PARTS, "p.started_at", f"{_OF_MESSAGE} AND p.type = 'tool-call'", (wanted.message,))]
    if wanted.path is not None:
        return [_Plan(_FROM_PARTS, "p.started_at", "p.path = ?", (wanted.path,))]
    if wanted.tool is not None:
        states = [state for state in ToolState if _fits(state, wanted)]
        condition = "p.tool_name = ? AND p.tool_state = ?"
        return [_Plan(_FROM_PARTS, "p.started_at", condition, (wanted.tool, state)) for state in states]
    return [_Plan(_FROM_MESSAGES, "m.created_at", "m.has_tool_calls = 1 AND p.type = 'tool-call'")]


def _fits(state: ToolState, wanted: ToolCallFilter) -> bool:
    if wanted.state is not None and state != wanted.state:
        return False
    return wanted.failed is None or (state == _FAILED) == wanted.failed


def _walk(
    connection: sqlite3.Connection, plan: _Plan, wanted: ToolCallFilter, limit: int, last: list[Any] | None
) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for phase in _phases(plan, last):
        missing = limit + 1 - len(rows)
        if missing > 0:
            rows += _read(connection, plan, wanted, phase, missing)
    return rows


def _phases(plan: _Plan, last: list[Any] | None) -> list[Phase]:
    return phases(plan.time, f"({', '.join(_TIES)}) < ({', '.join('?' * len(_TIES))})", last)


def _read(
    connection: sqlite3.Connection, plan: _Plan, wanted: ToolCallFilter, phase: Phase, limit: int
) -> list[tuple[Any, ...]]:
    conditions, values = _conditions_of(wanted, plan.time)
    order = ", ".join(f"{each} DESC" for each in (plan.time, *_TIES))
    return connection.execute(
        f"SELECT {_CALL_COLUMNS}, {plan.time}, {', '.join(_TIES)}{plan.tables}"
        f" WHERE {plan.condition} AND {conditions} AND {phase.condition} ORDER BY {order} LIMIT ?",
        (*plan.parameters, *values, *phase.parameters, limit),
    ).fetchall()


def _walk_in_steps(
    connection: sqlite3.Connection, plan: _Plan, wanted: ToolCallFilter, limit: int, last: list[Any] | None
) -> list[tuple[Any, ...]]:
    newest = None if last is None else last[0]
    if plan.tables != _FROM_MESSAGES or (last is not None and newest is None):
        return _walk(connection, plan, wanted, limit, last)
    known, unknown = _phases(plan, last)
    rows: list[tuple[Any, ...]] = []
    for keys in _steps(connection, wanted, newest, limit + 1):
        step = plan._replace(
            condition=f"{plan.condition} AND m.key IN (SELECT value FROM json_each(?))",
            parameters=(*plan.parameters, json.dumps(keys)),
        )
        rows += _read(connection, step, wanted, known, limit + 1 - len(rows))
        if len(rows) > limit:
            return rows
    return rows + _read(connection, plan, wanted, unknown, limit + 1 - len(rows))


def _steps(
    connection: sqlite3.Connection, wanted: ToolCallFilter, newest: int | None, count: int
) -> Iterator[list[int]]:
    """Keys of messages with tool calls and a time, the newest first: `count`, then more; those of one time together."""
    condition, values = "m.has_tool_calls = 1 AND m.created_at IS NOT NULL", list[Any]()
    bounds = (
        ("m.agent = ?", wanted.agent),
        ("m.created_at >= ?", wanted.since and aware_milliseconds(wanted.since)),
        ("m.created_at < ?", wanted.until and aware_milliseconds(wanted.until)),
        ("m.created_at <= ?", newest),
    )
    for bound, value in bounds:
        if value is not None:
            condition, values = f"{condition} AND {bound}", [*values, value]
    select = f"SELECT m.key, m.created_at FROM messages m WHERE {condition}"
    while True:
        rows = connection.execute(f"{select} ORDER BY m.created_at DESC LIMIT ?", (*values, count)).fetchall()
        if len(rows) < count:
            yield [key for key, _ in rows]
            return
        oldest = rows[-1][1]
        of_oldest = connection.execute(f"{select} AND m.created_at = ?", (*values, oldest))
        yield [key for key, time in rows if time > oldest] + [key for key, _ in of_oldest]
        select, values = f"{select} AND m.created_at < ?", [*values, oldest]
        count = min(count * _GROWTH, _MOST)


def _place_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The time of a call and its ties, behind its columns."""
    return row[-1 - len(_TIES) :]


def _recency(row: tuple[Any, ...]) -> tuple[Any, ...]:
    time, *ties = _place_of(row)
    return (-(1 << 62) if time is None else time, *ties)


def _conditions_of(wanted: ToolCallFilter, time: str) -> tuple[str, list[Any]]:
    """Conditions that work with all plans (a unary plus keeps them from choosing another index)."""
    conditions: list[str] = []
    values: list[Any] = []

    def add(condition: str, *parameters: Any) -> None:
        conditions.append(condition)
        values.extend(parameters)

    if wanted.call is not None:
        add("+p.tool_call_id = ?", wanted.call)
    if wanted.message is not None:
        add(f"+{_OF_MESSAGE}", wanted.message)
    if wanted.tool is not None:
        add("+p.tool_name = ?", wanted.tool)
    if wanted.kind is not None:
        add("p.tool_kind = ?", str(wanted.kind))
    if wanted.state is not None:
        add("+p.tool_state = ?", str(wanted.state))
    if wanted.failed is not None:
        add("(+p.tool_state = ?) = ?", _FAILED, wanted.failed)
    if wanted.path is not None:
        add("+p.path = ?", wanted.path)
    if wanted.agent is not None:
        add("+m.agent = ?", wanted.agent)
    if wanted.project is not None:
        add("s.project_key IN (SELECT key FROM projects WHERE path = ? OR name = ?)", wanted.project, wanted.project)
    if wanted.since is not None:
        add(f"{time} >= ?", aware_milliseconds(wanted.since))
    if wanted.until is not None:
        add(f"{time} < ?", aware_milliseconds(wanted.until))
    return " AND ".join(conditions) or "1", values


def _call_of(row: Sequence[Any]) -> ToolCall:
    """A call from a row that begins with `_CALL_COLUMNS`."""
    facts = dict(zip(ToolCall.__struct_fields__, row, strict=False))
    for name in ("started_at", "completed_at"):
        facts[name] = moment(facts[name])
    return ToolCall(**facts)


_CHANGED = (
    f"(p.tool_kind IN ({', '.join(repr(kind) for kind in CHANGING_KINDS)})"
    f" AND p.tool_state NOT IN ({', '.join(repr(str(state)) for state in UNDONE)}))"
)

_TOUCHED = (
    "WITH touched (path, message_key, sequence) AS (SELECT path, message_key, sequence FROM parts WHERE {condition}"
    " UNION ALL SELECT path, message_key, sequence FROM more_paths WHERE {condition})"
)
_PARTS_OF_TOUCHED = _FROM_PARTS.replace(
    " FROM parts p",
    " FROM touched t CROSS JOIN parts p ON p.message_key = t.message_key AND p.sequence = t.sequence",
    1,
)

COUNTED_SESSION: Final = (
    "(SELECT iif(count(*) = 1, min(session_key), coalesce("
    "(SELECT billed_key FROM messages WHERE key = t.message_key), min(session_key)))"
    " FROM memberships WHERE message_key = t.message_key)"
)
"""SQL: the session to which a message `t` counts. As in `_FROM_PARTS`, a message in several sessions counts once, for
the billed one. Most are in one session: for them no row with a body is read."""

_SESSIONS_OF_TOUCHED = (
    " FROM touched t CROSS JOIN parts p ON p.message_key = t.message_key AND p.sequence = t.sequence"
    f" JOIN sessions s ON s.key = {COUNTED_SESSION}"
)

_TIME = "coalesce(p.started_at, (SELECT created_at FROM messages WHERE key = t.message_key))"


class _Touch(NamedTuple):
    """A row of a file's history; `_place` sorts it, newest first."""

    found: FileTouch
    time: int


class FileQueries(Connections):
    """The queries of `Store` about files."""

    def file_history(
        self, path: str, *, changed: bool = False, limit: int = 50, cursor: str | None = None
    ) -> FileHistory:
        check_limit(limit)
        with self._snapshot() as connection:
            touches = sorted(_touches(connection, path, changed), key=_place, reverse=True)
        uses = _uses(touches)
        last = decode_cursor("file", (int, str, int, str, int), cursor)
        if last is not None:
            touches = [touch for touch in touches if _place(touch) < tuple(last)]
        shown = touches[:limit]
        following = encode_cursor("file", *_place(shown[-1])) if len(touches) > limit else None
        return FileHistory(uses, Page(tuple(touch.found for touch in shown), following))

    def touched_files(self, filter: FileFilter = EVERY_FILE, *, limit: int = 200) -> list[TouchedFile]:
        where, values = conditions_of_files(filter)
        condition = "path IS NOT NULL"
        with self._snapshot() as connection:
            if filter.session is not None:
                condition += " AND message_key IN (SELECT message_key FROM memberships WHERE session_key = :session)"
                values["session"] = session_key(connection, filter.session)
            rows = connection.execute(
                f"{_TOUCHED.format(condition=condition)} SELECT t.path, s.cwd, s.key, count(*),"
                f" sum({_CHANGED}), max({_TIME}){_SESSIONS_OF_TOUCHED}"
                f" WHERE {where} GROUP BY t.path, s.key",
                values,
            )
            found: dict[str, _Sum] = defaultdict(_Sum)
            for path, folder, key, calls, edits, last in rows:
                found[resolve_path(path, folder)].add(key, calls, edits, last)
        files = [each.file(path) for path, each in found.items() if each.edits or not filter.changed]
        return sorted(files, key=_last_touch, reverse=True)[:limit]


def _place(touch: _Touch) -> tuple[int, str, int, str, int]:
    call = touch.found.call
    return touch.time, call.session_id, call.position, call.message_id, touch.found.part


def _touches(connection: sqlite3.Connection, path: str, changed: bool) -> Iterator[_Touch]:
    """All calls that touched the file, unordered."""
    wanted = resolve_path(path, None)
    matches = _path_matcher(wanted)
    if wanted.startswith("/") and not paths.folds_case():
        condition, value = "path IN (SELECT value FROM json_each(?1))", json.dumps(spellings(wanted))
    else:
        # The folders before the name may belong to the session's folder, so whole paths are compared below.
        condition, value = "path LIKE ?1 ESCAPE '!'", f"%{_escaped(_NAME.split(wanted)[-1])}"
    kinds = f" WHERE {_CHANGED}" if changed else ""
    rows = connection.execute(
        f"{_TOUCHED.format(condition=condition)} SELECT {_CALL_COLUMNS}, t.path, s.cwd,"
        f" coalesce(p.started_at, m.created_at, -1), p.sequence{_PARTS_OF_TOUCHED}{kinds}",
        (value,),
    )
    for *call, written, folder, time, sequence in rows:
        whole = resolve_path(written, folder)
        if matches(whole):
            yield _Touch(FileTouch(whole, _call_of(call), sequence), time)


_NAME = re.compile(r"[/\\]")


def _path_matcher(wanted: str) -> Callable[[str], bool]:
    """Whether a path is the wanted one, or ends so: `shop.py`, `src/shop.py`, `.py`; a backslash is as good as `/`."""

    def compared(path: str) -> str:
        path = path.replace("\\", "/")
        return path.casefold() if paths.folds_case() else path

    end = compared(wanted)
    if end.startswith("/"):
        return lambda path: compared(path) == end
    if end.startswith("."):
        return lambda path: compared(path).endswith(end)
    return lambda path: f"/{compared(path)}".endswith(f"/{end}")


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _uses(touches: list[_Touch]) -> tuple[FileUse, ...]:
    """Uses by session, ordered by their newest touch; `touches` are newest first."""
    by_session: dict[str, list[_Touch]] = defaultdict(list)
    for touch in touches:
        by_session[touch.found.call.session_id].append(touch)
    return tuple(_use(session_id, found) for session_id, found in by_session.items())


def _use(session_id: str, touches: list[_Touch]) -> FileUse:
    calls = [touch.found.call for touch in touches]
    times = [touch.time for touch in touches if touch.time >= 0]
    return FileUse(
        session_id=session_id,
        calls=len(touches),
        edits=sum(call.kind in CHANGING_KINDS and call.state not in UNDONE for call in calls),
        kinds=tuple(sorted({call.kind for call in calls})),
        first_at=moment(min(times, default=None)),
        last_at=moment(max(times, default=None)),
    )


class _Sum:
    """What all sessions did to one file."""

    def __init__(self) -> None:
        self.sessions: set[int] = set()
        self.calls = self.edits = 0
        self.last: int | None = None

    def add(self, session: int, calls: int, edits: int, last: int | None) -> None:
        self.sessions.add(session)
        self.calls += calls
        self.edits += edits
        if last is not None:
            self.last = last if self.last is None else max(self.last, last)

    def file(self, path: str) -> TouchedFile:
        return TouchedFile(path, len(self.sessions), self.calls, self.edits, moment(self.last))


def _last_touch(file: TouchedFile) -> tuple[bool, datetime | None, str]:
    return (file.last_at is not None, file.last_at, file.path)


def conditions_of_files(wanted: FileFilter) -> tuple[str, dict[str, Any]]:
    """SQL over the path of a touch `t` and its session `s`, with its values, for all fields but `session`."""
    conditions = {
        "instr(casefold(coalesce(s.cwd, '') || '/' || t.path), casefold(:text)) > 0": wanted.text,
        "s.project_key IN (SELECT key FROM projects WHERE path = :project OR name = :project)": wanted.project,
        "s.agent = :agent": wanted.agent,
    }
    given = [condition for condition, value in conditions.items() if value is not None]
    return " AND ".join(given) or "1", {"text": wanted.text, "project": wanted.project, "agent": wanted.agent}
