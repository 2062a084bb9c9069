"""The row log of a session: its messages, one line each, and what other tables say about it, one line in all.

A log of messages begins with a line of facts that decide how they are read. Hermes Agent marks rows as compacted or
taken back, and after a compaction it writes the messages that it keeps again, as new rows. Which rows are such copies,
and which a fork copied from another session, no row says: it is found by comparing them here, where all rows of the
session are at hand, and written to the line. If a line changes, the log is written anew, and its older generation stays
in the archive.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.base import RowUpdate, Source
from turnlog.agents.hermes.database import (
    MESSAGES,
    READ_COLUMNS,
    SESSIONS,
    USAGE,
    Row,
    ancestors_of,
    config_of,
    messages_of,
    session_row,
    usage_of,
)
from turnlog.agents.row_files import restore_database

COMPACTION = "compaction"
"""The table of a line that precedes the rows that a compaction wrote. There is no such table."""

SUMMARY_PREFIXES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
"""How the summary of a compaction begins; the second one in versions before 0.19."""


class HermesRowLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line. Every field has a default, because a damaged line may lack any."""

    table: str = ""
    row: Raw = Raw(b"null")
    """The row, without the columns that have no value."""
    rows: tuple[Raw, ...] = ()
    """What the session has used: rows of another table."""
    is_subagent: bool = False
    model: str | None = None
    """The only model of the session; None if it has several."""
    call: str | None = None
    """The call that started a subagent, found by its task."""
    cwd: str | None = None
    """The folder of the session that this one came out of, if its own is unknown."""
    copy_of: str | None = None
    """Of a message: the id of the message that it repeats."""
    kept: tuple[str, ...] = ()
    """Of a compaction: the messages before it that it keeps."""
    first: int = 0
    """Of a compaction: the number of its first row."""
    summary: int | None = None
    """Of a compaction: the number of the row with the summary."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(HermesRowLine).decode


def message_id(session: str, number: int | str) -> str:
    """The id of a message: numbers of rows are unique only in their database."""
    return f"{session}.{number}"


# -- new lines


def new_lines(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """The lines that a log does not have yet; all of them if it has others."""
    known = b"".join(log).splitlines(keepends=True)
    row = session_row(connection, session) or {}
    own = messages_of(connection, session)
    # An original in another session may have been deleted since the log was made: what the log says of a copy stays
    # true. Where one of this session is gone, the copy is all that is left of it.
    prefix = message_id(session, "")
    logged = {number: origin for number, origin in _origins_in(known).items() if not origin.startswith(prefix)}
    origins = _copied_by_fork(connection, row, own) | logged
    lines = [_line(_header(connection, row))]
    lines += [_line(each) for each in _message_lines(session, own, origins)]
    if lines[: len(known)] != known:
        return RowUpdate(lines=lines, anew=True)
    return RowUpdate(lines=lines[len(known) :])


def new_facts(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """What other tables say about a session, if it is not what the log says."""
    row = session_row(connection, session) or {}
    now = _line(
        HermesRowLine(
            table=SESSIONS,
            row=_raw(row),
            rows=tuple(_raw(each) for each in usage_of(connection, session)),
            is_subagent=_is_subagent(connection, row),
            call=_call_of(connection, row),
            cwd=None if row.get("cwd") else _parent_cwd(connection, row),
        )
    )
    return RowUpdate() if b"".join(log) == now else RowUpdate(lines=[now], anew=True)


def _line(line: HermesRowLine) -> bytes:
    return _encode(line) + b"\n"


def _raw(row: Row) -> Raw:
    return Raw(_encode(row))


def _header(connection: sqlite3.Connection, row: Row) -> HermesRowLine:
    used = usage_of(connection, str(row.get("id") or ""))
    # Rows with a `task` are calls for titles and summaries, which may use a cheaper model. Before 0.19 only the session
    # names its model.
    models = {each.get("model") for each in used if not each.get("task")} or {row.get("model")}
    model = next(iter(models)) if len(models) == 1 else None
    return HermesRowLine(
        table=SESSIONS, is_subagent=_is_subagent(connection, row), model=model if isinstance(model, str) else None
    )


def _message_lines(session: str, rows: Sequence[Row], origins: Mapping[int, str]) -> Iterator[HermesRowLine]:
    copies = dict(origins)
    compactions: dict[int, HermesRowLine] = {}
    for begin, summary, kept in _compactions_in(rows):
        for number, original in kept.items():
            # A second compaction keeps rows that a first one wrote: all of them repeat the first original.
            copies.setdefault(number, copies.get(original) or message_id(session, original))
        # Results are kept with their call.
        answers = {row["id"] for row in rows if row.get("role") != "tool"}
        compactions[begin] = HermesRowLine(
            table=COMPACTION,
            first=begin,
            summary=summary,
            kept=tuple(copies[number] for number in sorted(kept) if number in answers),
        )
    for row in rows:
        if row["id"] in compactions:
            yield compactions[row["id"]]
        yield HermesRowLine(table=MESSAGES, row=_raw(row), copy_of=copies.get(row["id"]))


# -- rows that repeat others


def _key(row: Row) -> tuple[object, ...]:
    """What makes two rows the same message. A compaction may shorten a result, and the input of a call."""
    if row.get("role") == "tool" and row.get("tool_call_id"):
        return ("tool", row["tool_call_id"])
    calls = _call_ids(row)
    return ("calls", *calls) if calls else (row.get("role"), row.get("content"))


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    id: str | None = None
    function: _Function | None = None


def _calls_in(row: Row) -> list[_Call]:
    try:
        return msgspec.json.decode(str(row.get("tool_calls") or "[]"), type=list[_Call])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return []


def _call_ids(row: Row) -> list[str]:
    return [call.id for call in _calls_in(row) if call.id is not None]


def is_summary(row: Row) -> bool:
    """Whether a message is the summary that a compaction wrote."""
    return row.get("role") != "tool" and str(row.get("content") or "").startswith(SUMMARY_PREFIXES)


def _compactions_in(rows: Sequence[Row]) -> Iterator[tuple[int, int, dict[int, int]]]:
    """Each compaction: its first row, the row with its summary, and its rows that repeat earlier ones, with those.

    A compaction writes, one after the other, the first messages, the summary, and the last messages before it.
    """
    after = done = 0
    for at, row in enumerate(rows):
        # A user may quote a summary. Only one that follows compacted rows was written by a compaction.
        if at < done or not is_summary(row) or not any(each.get("compacted") for each in rows[:at]):
            continue
        begin = at
        # The rows in front of the summary are those of the first messages, which no mark separates from the older ones.
        while begin > after and _is_repeated(rows, begin - 1, after):
            begin -= 1
        kept = _repeats(rows[begin:at], rows[after:begin])
        end = at + 1
        # A later compaction keeps the summary of an earlier one and writes a newer one behind it.
        while end < len(rows) and is_summary(rows[end]):
            end += 1
        summary = end - 1
        last = _repeats(rows[end:], rows[after:begin])
        kept |= last
        yield rows[begin]["id"], rows[summary]["id"], kept
        after, done = begin, end + len(last)


def _is_repeated(rows: Sequence[Row], at: int, since: int) -> bool:
    key = _key(rows[at])
    return any(_key(row) == key for row in rows[since:at])


def _repeats(rows: Sequence[Row], earlier: Sequence[Row]) -> dict[int, int]:
    """The rows at the beginning that repeat earlier ones in their order, with the numbers of both."""
    found: dict[int, int] = {}
    at = 0
    for row in rows:
        key = _key(row)
        # In order, since a person may write the same text twice.
        same = next((place for place in range(at, len(earlier)) if _key(earlier[place]) == key), None)
        if same is None:
            break
        found[row["id"]] = earlier[same]["id"]
        at = same + 1
    return found


def _copied_by_fork(connection: sqlite3.Connection, session: Row, own: Sequence[Row]) -> dict[int, str]:
    """The first rows of a fork, with the ids of the messages that they were copied from."""
    family = [session, *ancestors_of(connection, session)]
    origins: dict[int, str] = {}
    # From the oldest on: a fork of a fork shares the messages of the first session.
    for child, parent in reversed(list(pairwise(family))):
        began = child.get("started_at") or 0
        # What the parent wrote after the fork began cannot be its origin, even with the same words.
        before = [row for row in messages_of(connection, parent["id"]) if row.get("timestamp", 0) <= began]
        rows = own if child is session else messages_of(connection, child["id"])
        copied = _repeats(rows, before)
        origins = {
            number: origins.get(original) or message_id(parent["id"], original) for number, original in copied.items()
        }
    return origins


def _origins_in(lines: Sequence[bytes]) -> dict[int, str]:
    """What a log says about copies: number of the row -> the message that it repeats, which may be gone."""
    found: dict[int, str] = {}
    for line in lines:
        try:
            read = _decode(line)
            row = msgspec.json.decode(read.row, type=dict[str, Any]) if read.copy_of is not None else {}
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
        if read.copy_of is not None:
            found[row.get("id", 0)] = read.copy_of
    return found


_SPLIT = "compression"
"""`end_reason` of a session that a compaction ended, and another one continues (before 0.19)."""


def _is_subagent(connection: sqlite3.Connection, session: Row) -> bool:
    """Whether a call of another session started this one. 0.13 does not say so: then a call with its task does."""
    if config_of(session).delegate_from is not None or session.get("source") == "subagent":
        return True
    return _call_of(connection, session) is not None


def _parent_cwd(connection: sqlite3.Connection, session: Row) -> str | None:
    """The folder of the nearest session above that has one: forks and subagents run in the process of their parent."""
    seen: set[str] = set()
    at: Row | None = session
    while at is not None:
        parent = config_of(at).delegate_from or config_of(at).branched_from or at.get("parent_session_id")
        if not isinstance(parent, str) or parent in seen:
            return None
        seen.add(parent)
        at = session_row(connection, parent)
        if at is not None and isinstance(at.get("cwd"), str):
            return at["cwd"]
    return None


class _Task(msgspec.Struct):
    goal: str | None = None
    tasks: list[_Task] = []


def _call_of(connection: sqlite3.Connection, child: Row) -> str | None:
    """The call that started a subagent: that of its parent with the same task. No row names it."""
    messages = messages_of(connection, child["id"]) if child else []
    prompt = next((row.get("content") for row in messages if row.get("role") == "user"), None)
    parent = config_of(child).delegate_from or child.get("parent_session_id")
    if prompt is None or parent is None or config_of(child).branched_from is not None:
        return None
    # 0.13 continues a compacted session in a new one with the same column `parent_session_id`, whose first prompt may
    # repeat a task.
    if (session_row(connection, parent) or {}).get("end_reason") == _SPLIT:
        return None
    for row in messages_of(connection, parent):
        for call in _calls_in(row):
            if call.function is not None and prompt in _goals(call.function.arguments):
                return call.id
    return None


def _goals(arguments: str | None) -> list[str | None]:
    try:
        task = msgspec.json.decode(arguments or "{}", type=_Task)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return []
    return [task.goal, *(each.goal for each in task.tasks)]


# -- restoring rows


_KEYS = {
    MESSAGES: ("id",),
    SESSIONS: ("id",),
    USAGE: ("session_id", "model", "billing_provider", "billing_base_url", "billing_mode", "task"),
}
"""Table -> its primary key."""


def restore_rows(source: Source, log: Iterable[bytes], to: Path) -> list[Path]:
    """Write the rows of a session into a database with their tables.

    Raises ConflictError if it has other rows with the same keys.
    """
    return restore_database(source, _rows_in(log), to, _KEYS, READ_COLUMNS)


def _rows_in(log: Iterable[bytes]) -> Iterator[tuple[str, Row]]:
    for line in (_decode(line) for line in b"".join(log).split(b"\n") if line):
        for table, raw in ((line.table, line.row), *((USAGE, each) for each in line.rows)):
            yield table, msgspec.json.decode(raw, type=Row | None) or {}
