"""Tools, commands and edited files of insights, added up from the totals that every write keeps.

Only the longest and the median call of a command, and the last edit of a file, are looked up among the calls.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from turnlog.store.insights import CommandFigures, EditedFile
from turnlog.store.rows import CHANGING_KINDS, UNDONE, moment, resolve_path
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

    def of_totals(self, prefix: str = "") -> str:
        """For rows with `session_key` and `quarter_hour`."""
        return self._where(f"{prefix}session_key", f"{prefix}quarter_hour", 1)

    def of_times(self, session: str, time: str) -> str:
        """For rows with a session and a time in milliseconds."""
        return self._where(session, time, QUARTER_HOUR)

    def _where(self, session: str, time: str, unit: int) -> str:
        # The plus keeps SQLite from looking up every session in an index, which takes longer than reading all rows.
        conditions = [f"+{session} IN ({self.sessions})"] if self.sessions is not None else []
        if self.since is not None:
            conditions.append(f"{time} >= {self.since * unit}")
        if self.until is not None:
            conditions.append(f"{time} < {self.until * unit}")
            if self.since is None:
                conditions.append(f"{time} > 0")  # 0 is an unknown time
        return " AND ".join(conditions) or "1"


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


def read_call_sums(connection: sqlite3.Connection, chosen: Chosen) -> list[CallSums]:
    """All calls, in as many rows as there are tools, commands and models."""
    rows = connection.execute(
        "SELECT tool_name, tool_kind, command, model_key, sum(calls), sum(failed), sum(denied), sum(aborted),"
        f" sum(open), sum(duration_ms), sum(unknown_durations) FROM call_totals WHERE {chosen.of_totals()}"
        " GROUP BY tool_name, tool_kind, command, model_key",
        chosen.values,
    )
    return [CallSums(*row) for row in rows]


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
    """All commands by time, or half of `limit` those with the most time, half those with the most failures."""
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
    by_failures = sorted(added, key=lambda head: (-added[head].failed, by_time.index(head)))
    listed = {*by_time[:half], *by_failures[:half]}
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
    calls = f" FROM parts p{join} WHERE p.tool_kind = '{_COMMANDS}' AND p.command IS :head AND {condition}"
    return calls, {"head": head or None, **chosen.values}


def _longest(connection: sqlite3.Connection, head: str, chosen: Chosen) -> tuple[int | None, int]:
    """Milliseconds and message of the longest call, or of the newest one if no duration is known."""
    calls, values = _calls_of(head, chosen)
    order = " ORDER BY p.duration_ms DESC, p.started_at DESC, p.message_key DESC LIMIT 1"
    found = connection.execute(f"SELECT p.duration_ms, p.message_key{calls}{order}", values).fetchone()
    return found or (None, 0)


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

_SPELLINGS = 4
"""How many spellings are read for each file that is listed: a file may be written in several ways."""


class _File:
    """The edits of one file while they are added up."""

    def __init__(self) -> None:
        self.edits = 0
        self.sessions: set[int] = set()
        self.spellings: set[str] = set()


def count_edited(connection: sqlite3.Connection, chosen: Chosen) -> int:
    """How many files calls changed. Paths are resolved with the folder of the session."""
    spelt = connection.execute(
        "SELECT DISTINCT e.path, s.cwd FROM edit_totals e JOIN sessions s ON s.key = e.session_key"
        f" WHERE {chosen.of_totals('e.')}",
        chosen.values,
    )
    return len({resolve_path(path, folder) for path, folder in spelt})


def most_edited(connection: sqlite3.Connection, chosen: Chosen, limit: int | None) -> list[EditedFile]:
    """The files that calls changed most often. Paths are resolved with the folder of the session."""
    # Only the spellings with the most edits can be among the first: for these alone the sessions are read.
    spelt = connection.execute(
        f"SELECT path FROM edit_totals WHERE {chosen.of_totals()} GROUP BY path ORDER BY sum(edits) DESC, path"
        f"{'' if limit is None else f' LIMIT {_SPELLINGS * limit}'}",
        chosen.values,
    ).fetchall()
    rows = connection.execute(
        "SELECT e.path, e.session_key, s.cwd, sum(e.edits) FROM edit_totals e JOIN sessions s ON s.key = e.session_key"
        f" WHERE e.path IN (SELECT value FROM json_each(:spelt)) AND {chosen.of_totals('e.')}"
        " GROUP BY e.path, e.session_key",
        {"spelt": json.dumps([path for (path,) in spelt]), **chosen.values},
    )
    found: defaultdict[str, _File] = defaultdict(_File)
    for path, session, folder, edits in rows:
        each = found[resolve_path(path, folder)]
        each.edits += edits
        each.sessions.add(session)
        each.spellings.add(path)
    most = sorted(found.items(), key=lambda item: (-item[1].edits, item[0]))[:limit]
    return [
        EditedFile(path, each.edits, len(each.sessions), moment(_last_edit(connection, each, chosen)))
        for path, each in most
    ]


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
    f"p.tool_kind IN ({', '.join(map(repr, CHANGING_KINDS))})"
    f" AND p.tool_state NOT IN ({', '.join(repr(str(state)) for state in UNDONE)})"
)
"""The condition of the index of edits, in the words in which SQLite recognises it."""


def _last_edit(connection: sqlite3.Connection, file: _File, chosen: Chosen) -> int | None:
    """When calls of these sessions last changed a file. Most often the newest edit of a spelling is the one."""
    in_time = chosen._replace(sessions=None).of_times("", "p.started_at")
    edit = f"{_EDITS} AND {in_time} AND m.billed_key IN (SELECT value FROM json_each(:sessions))"
    return connection.execute(
        _LAST_EDIT.format(edit=edit),
        {"spellings": json.dumps(list(file.spellings)), "sessions": json.dumps(list(file.sessions))},
    ).fetchone()[0]
