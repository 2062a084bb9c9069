"""Tools, commands and edited files of insights, added up from the totals that every write keeps.

Only the longest and the median call of a command, and the sessions and the last edit of a file, are looked up.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from turnlog.store.insights import CommandFigures, EditedFile
from turnlog.store.rows import CHANGING_KINDS, UNDONE, is_absolute, moment, resolve_path
from turnlog.store.values import ToolUsage

_COMMANDS = "execute"
"""The kind of the calls that run commands."""

QUARTER_HOUR: Final = 900_000
"""Milliseconds."""


class Chosen(NamedTuple):
    """The sessions and quarter hours of a report, as conditions of SQL."""

    sessions: str | None
    """A query of keys; None for all sessions."""
    since: int | None
    """The first quarter hour."""
    until: int | None
    """The quarter hour after the last."""
    values: dict[str, str | None]
    """The values that `sessions` names."""
    is_few: bool = False
    """They are so few that each is looked up: that is faster than reading all rows."""

    def of_totals(self, prefix: str = "") -> str:
        """For rows with `session_key` and `quarter_hour`."""
        return self._where(f"{prefix}session_key", f"{prefix}quarter_hour", 1)

    def of_times(self, session: str, time: str) -> str:
        """For rows with a session and a time in milliseconds."""
        return self._where(session, time, QUARTER_HOUR)

    def _where(self, session: str, time: str, unit: int) -> str:
        # The plus keeps SQLite from looking up every session in an index, which takes longer than reading all rows.
        looked_up = session if self.is_few else f"+{session}"
        conditions = [f"{looked_up} IN ({self.sessions})"] if self.sessions is not None else []
        if self.since is not None:
            conditions.append(f"{time} >= {self.since * unit}")
        if self.until is not None:
            conditions.append(f"{time} < {self.until * unit}")
            if self.since is None:
                conditions.append(f"{time} > 0")  # 0 is an unknown time
        return " AND ".join(conditions) or "1"


EVERYTHING: Final = Chosen(sessions=None, since=None, until=None, values={})


class CallCounts(NamedTuple):
    """Calls, added up."""

    calls: int
    failed: int
    denied: int
    aborted: int
    open: int
    duration_ms: int
    unknown_durations: int


Calls: TypeAlias = dict[tuple[str, str, str, int], CallCounts]
"""Tool, kind, command and key of the model -> its calls."""


class CallSums(NamedTuple):
    """The calls of one tool, command and model."""

    tool: str
    kind: str
    command: str
    model_key: int
    calls: int
    failed: int
    denied: int
    aborted: int
    open: int
    duration_ms: int
    unknown_durations: int


def read_calls(connection: sqlite3.Connection, chosen: Chosen) -> Calls:
    """All calls, in as many rows as there are tools, commands and models."""
    rows = connection.execute(
        "SELECT tool_name, tool_kind, command, model_key, sum(calls), sum(failed), sum(denied), sum(aborted),"
        f" sum(open), sum(duration_ms), sum(unknown_durations) FROM call_totals WHERE {chosen.of_totals()}"
        " GROUP BY tool_name, tool_kind, command, model_key",
        chosen.values,
    )
    return {row[:_CALL_KEYS]: CallCounts(*row[_CALL_KEYS:]) for row in rows}


_CALL_KEYS: Final = CallSums._fields.index("calls")


def tools(sums: Iterable[CallSums]) -> list[ToolUsage]:
    """Each tool, the most called first."""
    found: defaultdict[tuple[str, str], list[CallSums]] = defaultdict(list)
    for each in sums:
        found[each.tool, each.kind].append(each)
    usage = [ToolUsage(*tool, *_added(each)) for tool, each in found.items()]
    return sorted(usage, key=lambda each: (-each.calls, each.tool_name, each.kind))


def _added(sums: Sequence[CallSums]) -> list[int]:
    """The sums from `calls` on."""
    return [sum(column) for column in list(zip(*sums, strict=True))[CallSums._fields.index("calls") :]]


def failed_by_model(sums: Iterable[CallSums]) -> Counter[int]:
    """Key of a model -> failed tool calls of its messages."""
    failed: Counter[int] = Counter()
    for each in sums:
        failed[each.model_key] += each.failed
    return failed


# -- commands


class _Command(NamedTuple):
    calls: int
    failed: int
    duration_ms: int
    unknown: int


def count_commands(sums: Iterable[CallSums]) -> int:
    """How many different commands were run."""
    return len({each.command for each in sums if each.kind == _COMMANDS})


def commands(
    connection: sqlite3.Connection, sums: Iterable[CallSums], chosen: Chosen, limit: int | None
) -> list[CommandFigures]:
    """All commands by time, or of each order half of `limit`: those with the most time, failures and calls."""
    found: defaultdict[str, list[CallSums]] = defaultdict(list)
    for each in sums:
        if each.kind == _COMMANDS:
            found[each.command].append(each)
    added = {
        head: _Command(calls, failed, duration_ms, unknown)
        for head, each in found.items()
        for calls, failed, _, _, _, duration_ms, unknown in [_added(each)]
    }
    half = None if limit is None else limit // 2
    by_time = sorted(added, key=lambda head: (-added[head].duration_ms, -added[head].calls, head))
    by_failures = sorted(by_time, key=lambda head: -added[head].failed)
    by_calls = sorted(by_time, key=lambda head: -added[head].calls)
    listed = {*by_time[:half], *by_failures[:half], *by_calls[:half]}
    longest = {head: _longest(connection, head, chosen) for head in listed}
    places = _places(connection, [message for _, message in longest.values()])
    return [
        CommandFigures(
            command=head or None,
            calls=each.calls,
            failed=each.failed,
            duration_ms=each.duration_ms,
            median_ms=_median(connection, head, chosen, each.calls - each.unknown),
            longest_ms=longest[head][0],
            unknown_durations=each.unknown,
            longest_session_id=places.get(longest[head][1], (None, None))[0],
            longest_message_id=places.get(longest[head][1], (None, None))[1],
        )
        for head in by_time
        if head in listed
        for each in [added[head]]
    ]


def _calls_of(head: str, chosen: Chosen) -> tuple[str, dict[str, str | None]]:
    """A FROM clause with the billed calls of a command, along `parts_by_command`, and its values."""
    # CROSS JOIN: the calls are read in the order of that index.
    needs_message = chosen.sessions is not None
    join = " CROSS JOIN messages m ON m.key = p.message_key" if needs_message else ""
    condition = chosen.of_times("m.billed_key", "p.started_at")
    of_command = f"p.tool_kind = '{_COMMANDS}' AND {_equal('p.command', 'head', head or None)}"
    return f" FROM parts p{join} WHERE {of_command} AND {condition}", {"head": head or None, **chosen.values}


def _equal(column: str, name: str, value: object) -> str:
    """A condition that is looked up in an index; PostgreSQL has none for `IS`."""
    return f"{column} IS NULL" if value is None else f"{column} = :{name}"


def _longest(connection: sqlite3.Connection, head: str, chosen: Chosen) -> tuple[int | None, int]:
    """Milliseconds and message of the longest call, or of the newest one if no duration is known."""
    calls, values = _calls_of(head, chosen)
    # The longest, and of those the newest, are at the end of `parts_by_command`: only what is equal in both is sorted.
    end = connection.execute(
        f"SELECT p.duration_ms, p.started_at{calls} ORDER BY p.duration_ms DESC, p.started_at DESC LIMIT 1", values
    ).fetchone()
    if end is None:
        return None, 0
    duration, started_at = end
    at_end = f"{_equal('p.duration_ms', 'duration', duration)} AND {_equal('p.started_at', 'started_at', started_at)}"
    found = connection.execute(
        f"SELECT p.message_key{calls} AND {at_end}"
        " ORDER BY (SELECT agent || ':' || external_id FROM messages WHERE key = p.message_key) DESC LIMIT 1",
        {**values, "duration": duration, "started_at": started_at},
    ).fetchone()
    return duration, found[0]


def _median(connection: sqlite3.Connection, head: str, chosen: Chosen, known: int) -> float | None:
    """The median of the known durations, of which there are so many."""
    if known == 0:
        return None
    calls, values = _calls_of(head, chosen)
    # `parts_by_command` has the calls of a command in the order of their durations: nothing is sorted.
    middle = connection.execute(
        f"SELECT p.duration_ms{calls} AND p.duration_ms IS NOT NULL ORDER BY p.duration_ms"
        f" LIMIT {2 - known % 2} OFFSET {(known - 1) // 2}",
        values,
    ).fetchall()
    return sum(duration for (duration,) in middle) / len(middle) if middle else None


def _places(connection: sqlite3.Connection, messages: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Message -> id of the billed session and of the message."""
    return {
        key: (session_id, message_id)
        for key, session_id, message_id in connection.execute(
            "SELECT m.key, s.agent || ':' || s.external_id, m.external_id FROM messages m"
            " JOIN sessions s ON s.key = m.billed_key WHERE m.key IN (SELECT value FROM json_each(?))",
            (json.dumps(list(messages)),),
        )
    }


# -- files


class _Spelling(NamedTuple):
    """A path as calls name it, and the folder that it is relative to; None for an absolute one."""

    path: str
    folder: str | None


class Edits(NamedTuple):
    """The edits of some sessions."""

    spellings: dict[tuple[str, str | None], int]
    """Path as calls name it, and the folder that it is relative to (None for an absolute one) -> edits."""
    sessions: dict[str, int]
    """File -> how many sessions changed it, under whatever spelling."""


def edited_files(
    connection: sqlite3.Connection, edits: Edits, chosen: Chosen, limit: int | None
) -> tuple[list[EditedFile], int]:
    """The files that calls changed most often, and how many there are. Paths are resolved with the session's folder."""
    found = _by_file(edits.spellings)
    numbers = {path: sum(map(edits.spellings.__getitem__, spellings)) for path, spellings in found.items()}
    most = sorted(found, key=lambda path: (-numbers[path], path))[:limit]
    return [
        EditedFile(path, numbers[path], edits.sessions[path], moment(_last_edit(connection, found[path], chosen)))
        for path in most
    ], len(found)


def _by_file(spellings: Iterable[tuple[str, str | None]]) -> dict[str, list[_Spelling]]:
    found: defaultdict[str, list[_Spelling]] = defaultdict(list)
    for path, folder in spellings:
        found[resolve_path(path, folder)].append(_Spelling(path, folder))
    return found


def read_edits(connection: sqlite3.Connection, chosen: Chosen) -> Edits:
    """All edits, in as many rows as there are spellings of paths."""
    if chosen.is_few:
        return _edits_of_few(connection, chosen)
    # Grouped in the order of the key: nothing is sorted, and a path that is the same everywhere needs no session.
    rows = connection.execute(
        "SELECT path, sum(edits), count(DISTINCT session_key) FROM edit_totals"
        f" WHERE {chosen.of_totals()} GROUP BY path",
        chosen.values,
    ).fetchall()
    absolute = [row for row in rows if is_absolute(row[0])]
    relative = _relative_edits(connection, [path for path, *_ in rows if not is_absolute(path)], chosen)
    spellings: dict[tuple[str, str | None], int] = {(path, None): edits for path, edits, _ in absolute}
    sessions: dict[str, int] = {resolve_path(path, None): count for path, _, count in absolute}
    spellings |= {spelling: edits for spelling, (edits, _) in relative.items()}
    # A session may name a file in several ways: the sessions of such a file are looked up.
    several = {
        file: each for file, each in _by_file(spellings).items() if len(each) > 1 or not is_absolute(each[0].path)
    }
    paths = [path for each in several.values() for path, _ in each if is_absolute(path)]
    of_absolute = _sessions_of(connection, paths, chosen)
    for file, each in several.items():
        sessions[file] = len(
            set[int]().union(
                *[of_absolute[path] if is_absolute(path) else relative[path, folder][1] for path, folder in each]
            )
        )
    return Edits(spellings, sessions)


def _edits_of_few(connection: sqlite3.Connection, chosen: Chosen) -> Edits:
    spellings: Counter[tuple[str, str | None]] = Counter()
    sessions: defaultdict[str, set[int]] = defaultdict(set)
    rows = connection.execute(
        "SELECT e.path, s.cwd, s.key, e.edits FROM sessions s CROSS JOIN edit_totals e ON e.session_key = s.key"
        f" WHERE {chosen.of_totals('e.').replace('e.session_key', 's.key')}",
        chosen.values,
    )
    for path, cwd, session, edits in rows:
        folder = None if is_absolute(path) else cwd
        spellings[path, folder] += edits
        sessions[resolve_path(path, folder)].add(session)
    return Edits(spellings, {file: len(each) for file, each in sessions.items()})


def _relative_edits(
    connection: sqlite3.Connection, paths: Sequence[str], chosen: Chosen
) -> dict[tuple[str, str | None], tuple[int, set[int]]]:
    """The edits of relative paths by the folder of their session, and the keys of the sessions."""
    if not paths:
        return {}
    folders: dict[int, str | None] = dict(connection.execute("SELECT key, cwd FROM sessions").fetchall())
    # Added up by folder here: SQLite would sort all rows by path and folder.
    rows = connection.execute(
        "SELECT path, json_group_array(session_key), json_group_array(edits) FROM edit_totals"
        f" WHERE path IN (SELECT value FROM json_each(:paths)) AND {chosen.of_totals()} GROUP BY path",
        {"paths": json.dumps(paths), **chosen.values},
    )
    edited: Counter[tuple[str, str | None]] = Counter()
    sessions_of: defaultdict[tuple[str, str | None], set[int]] = defaultdict(set)
    for path, sessions, edits in rows:
        for session, number in zip(json.loads(sessions), json.loads(edits), strict=True):
            edited[path, folders[session]] += number
            sessions_of[path, folders[session]].add(session)
    return {spelling: (number, sessions_of[spelling]) for spelling, number in edited.items()}


def _sessions_of(connection: sqlite3.Connection, paths: Sequence[str], chosen: Chosen) -> dict[str, set[int]]:
    """Path as calls name it -> keys of the sessions that changed it."""
    if not paths:
        return {}
    rows = connection.execute(
        "SELECT path, json_group_array(session_key) FROM edit_totals"
        f" WHERE path IN (SELECT value FROM json_each(:paths)) AND {chosen.of_totals()} GROUP BY path",
        {"paths": json.dumps(paths), **chosen.values},
    )
    return {path: {*json.loads(sessions)} for path, sessions in rows}


_AT: Final = "SELECT coalesce(p.started_at, m.created_at) AS at"

_LAST_EDIT: Final = (
    f"SELECT max(at) FROM (SELECT ({_AT} FROM parts p CROSS JOIN messages m ON m.key = p.message_key"
    " WHERE p.path = spelling.value AND {edit} ORDER BY p.started_at DESC LIMIT 1) AS at"
    " FROM json_each(:spellings) spelling"
    f" UNION ALL {_AT} FROM more_paths t CROSS JOIN parts p ON p.message_key = t.message_key"
    " AND p.sequence = t.sequence CROSS JOIN messages m ON m.key = p.message_key"
    " WHERE t.path IN (SELECT value FROM json_each(:spellings)) AND {edit})"
)

_EDITS: Final = (
    f"({' OR '.join(f'p.tool_kind = {kind!r}' for kind in CHANGING_KINDS)})"
    f" AND {' AND '.join(f'p.tool_state <> {str(state)!r}' for state in UNDONE)}"
)
"""The condition of the index of edits, in the words in which SQLite recognises it."""


def _last_edit(connection: sqlite3.Connection, spellings: Iterable[_Spelling], chosen: Chosen) -> int | None:
    """When calls of the chosen sessions last changed a file. Most often the newest edit of a spelling is the one."""
    in_time = chosen._replace(sessions=None).of_times("", "p.started_at")
    billed = "m.billed_key IS NOT NULL" if chosen.sessions is None else f"m.billed_key IN ({chosen.sessions})"
    known: list[int] = []
    for path, folder in spellings:
        # A relative path is another file in sessions of another folder.
        of_folder = (
            "1"
            if is_absolute(path)
            else f"EXISTS (SELECT 1 FROM sessions s WHERE s.key = m.billed_key AND {_equal('s.cwd', 'folder', folder)})"
        )
        (at,) = connection.execute(
            _LAST_EDIT.format(edit=f"{_EDITS} AND {in_time} AND {billed} AND {of_folder}"),
            {"spellings": json.dumps([path]), "folder": folder, **chosen.values},
        ).fetchone()
        known += [] if at is None else [at]
    return max(known, default=None)
