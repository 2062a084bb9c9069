"""Goose's database: listing its sessions with their versions, and the rows of each in the order of the conversation.

Only the tables of `KEYS` can be read. Which columns a table has depends on the version.
"""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from turnlog.agents.base import RowUpdate, Version
from turnlog.agents.changes import Changes
from turnlog.agents.databases import (
    ROW_SIZE,
    Row,
    SessionListing,
    has_columns,
    is_filled,
    open_snapshot,
    replacing_text,
    select_rows,
    tables_of,
)
from turnlog.agents.goose import NAME
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import ROWS, RowLine, line_of, row_of, rows_in, update_of
from turnlog.agents.strays import Belonging

SESSIONS, MESSAGES, LEDGER = "sessions", "messages", "usage_ledger"

KEYS: dict[str, tuple[str, ...]] = {SESSIONS: ("id",), MESSAGES: ("id",), LEDGER: ("id",)}
"""The tables that may be read -> their primary keys."""

HEADER = "session"
"""The table of the first line of a log, with what decides how messages are read. There is none."""

_HEADER_COLUMNS = ("id", "session_type", "model_config_json")

_OWN_COLUMNS = {SESSIONS: {"working_dir"}, MESSAGES: {"content_json"}}
"""Columns that tell these tables from those that other programs give the same names."""

READ_COLUMNS = {
    SESSIONS: {"id", "working_dir", "created_at"},
    MESSAGES: {"id", "session_id", "message_id", "role", "content_json", "metadata_json", "created_timestamp"},
}
"""What queries name, so a restored database has it also without a row."""

BELONGINGS = (Belonging(SESSIONS, "id"), Belonging(MESSAGES, "session_id", SESSIONS))
"""What rows must have to be read with a session."""

_COUNTED = re.compile(r"\d{8}_\d{1,5}")
"""The id of a session: its day, and its number on that day and machine."""

_CLOCK = re.compile(r"[T ](\d\d):(\d\d):(\d\d)")

_TAIL = re.compile(r"-\d{6}$")


@contextmanager
def open_database(path: Path) -> Generator[sqlite3.Connection]:
    """A connection to one consistent snapshot. Raises OSError if there is no file, SourceError if it is unreadable."""
    with open_snapshot(path, frozenset(KEYS), replacing_text) as connection:
        yield connection


def is_own(connection: sqlite3.Connection) -> bool:
    """Whether the database has Goose's tables."""
    return has_columns(connection, _OWN_COLUMNS)


def external_id(row: Row) -> str:
    """The id of a session with the time of its day: its number on that day is the same on every machine."""
    clock = _CLOCK.search(str(row.get("created_at")))
    is_counted = _COUNTED.fullmatch(str(row.get("id"))) is not None
    return f"{row['id']}-{''.join(clock.groups())}" if is_counted and clock else str(row.get("id"))


def own_id(external: str) -> str:
    """The id of a session in the database."""
    return _TAIL.sub("", external)


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def list_sessions(path: Path, only: str | None = None) -> list[SessionListing]:
    """Every session of the database, or only one. A session's version changes with its rows.

    Raises:
        OSError: There is no such file.
        SourceError: It cannot be read, or has another schema.
    """
    with open_database(path) as connection:
        if not is_filled(connection, _OWN_COLUMNS, path):
            return []
        where, given = ("", ()) if only is None else (" WHERE id = ?", (own_id(only),))
        listed = list(select_rows(connection, f"SELECT * FROM {SESSIONS}{where} ORDER BY id", *given))
        has_ledger = LEDGER in tables_of(connection)
        found = [
            SessionListing(external_id(row), _version(connection, row, has_ledger=has_ledger))
            for row in listed
            if isinstance(row["id"], str) and row["id"] and "#" not in row["id"]
        ]
    return [each for each in found if only in (None, each.session)]


def _version(connection: sqlite3.Connection, session: Row, *, has_ledger: bool) -> Version:
    [counted] = select_rows(
        connection,
        "SELECT count(*) AS count, max(id) AS last, max(created_timestamp) AS updated, sum(length(metadata_json)) AS"
        f" noted, sum(length(content_json)) AS size FROM {MESSAGES} WHERE session_id = ?",
        session["id"],
    )
    used = (
        list(select_rows(connection, f"SELECT count(*), max(id) FROM {LEDGER} WHERE session_id = ?", session["id"]))
        if has_ledger
        else []
    )
    sign = zlib.crc32(repr((counted, session, used)).encode(errors="replace"))
    return counted["count"] * ROW_SIZE, 0, counted["last"] or 0, sign


# -- the rows of a session


def new_lines(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """The lines of a session that its log does not have yet."""
    known = b"".join(log)
    row = session_row(connection, session)
    header = line_of(HEADER, {name: row[name] for name in _HEADER_COLUMNS if name in row})
    messages = messages_of(connection, session)
    lines = [header, *(line_of(MESSAGES, each) for each in messages)]
    if not b"".join(lines).startswith(known):
        lines = [header, *(line_of(MESSAGES, each) for each in _with_deleted(messages, known))]
    return update_of(lines, [known])


def _with_deleted(messages: list[Row], log: bytes) -> list[Row]:
    """The rows of messages with those that were deleted between others.

    Goose itself deletes the last rows, or all of them and writes them again with other numbers. What follows a row
    that somebody else deleted continues it: the rows of one answer are read together.
    """
    known = {row["id"]: row for table, row in rows_in([log]) if table == MESSAGES and "id" in row}
    present = {row["id"] for row in messages}
    newest = max(known.keys() & present, default=0)
    deleted = [row for number, row in known.items() if number not in present and number < newest]
    return sorted([*messages, *deleted], key=_place_of)


def _place_of(row: Row) -> tuple[Any, Any]:
    return row.get("created_timestamp") or 0, row["id"]


def new_facts(connection: sqlite3.Connection, session: str, log: Iterable[bytes]) -> RowUpdate:
    """What is known about a session, and what it has used, if it is not what the log says."""
    known = b"".join(log)
    row = session_row(connection, session)
    first = _first_counted(connection, session)
    # Rows may have been deleted since the log was made. What they say stays true: messages stay in the history with
    # their tokens.
    was_counted, lines_of_used = _used_in(known)
    lines = [line_of(SESSIONS, row, _note(connection, row, is_counted=was_counted or first is not None))]
    if LEDGER in tables_of(connection):
        statement = f"SELECT * FROM {LEDGER} WHERE session_id = ? ORDER BY id"
        ledger = list(select_rows(connection, statement, own_id(session)))
        for used in ledger:
            # Newer versions write the tokens of a call to its message too.
            is_later = first is not None and used["created_timestamp"] >= first and not used.get("is_compaction")
            if is_carried(used):
                is_later = _has_other_tokens(connection, session, ledger)
            counted = line_of(LEDGER, used, IN_MESSAGES if is_carried(used) else IN_MESSAGE)
            is_in_message = is_later or lines_of_used.get(used["id"]) == counted
            is_awaited = first is None and not is_carried(used) and _is_awaited(connection, session, used)
            note = AWAITED if is_awaited else None
            lines_of_used[used["id"]] = counted if is_in_message else line_of(LEDGER, used, note)
    lines += [lines_of_used[number] for number in sorted(lines_of_used)]
    return RowUpdate() if known == b"".join(lines) else RowUpdate(lines=lines, anew=True)


class SessionNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """What only other rows say about a session."""

    parent: str | None = None
    """The external id of its parent."""
    call: str | None = None
    """The call of the parent whose result names it."""
    origin: str | None = None
    """The external id of the session that its first messages were copied from."""
    is_counted: bool = False
    """Messages have tokens of their own."""


def _note(connection: sqlite3.Connection, row: Row, *, is_counted: bool) -> str:
    parent = row.get("parent_session_id")
    named = external_id(session_row(connection, parent) or {"id": parent}) if isinstance(parent, str) else None
    note = SessionNote(named, _call_of(connection, row), _origin_of(connection, row), is_counted)
    return msgspec.json.encode(note).decode()


def note_in(line: RowLine) -> SessionNote:
    """What the line of a session says that its row does not."""
    try:
        return msgspec.json.decode(line.note or "{}", type=SessionNote)
    except UNREADABLE:
        return SessionNote()


def _used_in(log: bytes) -> tuple[bool, dict[int, bytes]]:
    """Whether a log says that messages have tokens of their own, and its lines of what was used, by their numbers."""
    read = [(line, text) for line, text, *_ in ROWS.read(log, 0, 1, Changes())]
    numbers = [(row_of(line).get("id"), text) for line, text in read if line.table == LEDGER]
    is_counted = any(note_in(line).is_counted for line, _ in read if line.table == SESSIONS)
    return is_counted, {number: text + b"\n" for number, text in numbers if isinstance(number, int)}


class _Meta(msgspec.Struct):
    subagent_session_id: str | None = None


class _Value(msgspec.Struct):
    meta: _Meta | None = msgspec.field(name="_meta", default=None)


class _Result(msgspec.Struct):
    value: _Value | None = None


class _Block(msgspec.Struct, rename="camel"):
    id: str | None = None
    tool_result: _Result | None = None


def _call_of(connection: sqlite3.Connection, child: Row) -> str | None:
    """The call whose result names a subagent."""
    statement = f"""SELECT content_json FROM {MESSAGES} WHERE session_id = ?
        AND content_json LIKE '%"subagent_session_id":%'"""
    for row in select_rows(connection, statement, child.get("parent_session_id")):
        try:
            blocks = msgspec.json.decode(str(row["content_json"]), type=list[_Block])
        except UNREADABLE:
            continue
        for block in blocks:
            value = block.tool_result.value if block.tool_result is not None else None
            if value is not None and value.meta is not None and value.meta.subagent_session_id == child.get("id"):
                return block.id
    return None


def _origin_of(connection: sqlite3.Connection, fork: Row) -> str | None:
    """The newest earlier session that has the first message too: a fork copies ids and times, and names no origin."""
    copied = messages_of(connection, str(fork.get("id")))
    first = copied[0] if copied else {}
    statement = f"""SELECT s.* FROM {SESSIONS} s JOIN {MESSAGES} m ON m.session_id = s.id
        WHERE m.message_id = ? AND m.created_timestamp = ? AND s.id != ? AND s.created_at < ? ORDER BY s.created_at"""
    given = (first.get("message_id"), first.get("created_timestamp"), fork.get("id"), fork.get("created_at"))
    return next((external_id(row) for row in reversed(list(select_rows(connection, statement, *given)))), None)


IN_MESSAGE = "in a message"
"""The note of what was used by a call whose message says so itself."""

IN_MESSAGES = "in messages"
"""The note of what was carried over from an imported session, whose messages say it.

Earlier versions of turnlog noted `IN_MESSAGE` of whatever was carried over.
"""

AWAITED = "awaited"
"""The note of what was used by a call whose message is not written yet: Goose writes its tokens first."""


def is_carried(used: Row) -> bool:
    """Whether a row is what a session had used in all before its first row.

    1.50.0 and 1.52.0 write one when they go on with a session of an older version, or with one that was imported.
    """
    return used.get("cost_source") == "carried_forward"


def session_row(connection: sqlite3.Connection, session: str) -> Row:
    """The row of a session; empty if it is gone."""
    found = next(select_rows(connection, f"SELECT * FROM {SESSIONS} WHERE id = ?", own_id(session)), None)
    return {} if found is None else found


def messages_of(connection: sqlite3.Connection, session: str) -> list[Row]:
    """The messages of a session, in the order in which Goose itself reads them."""
    statement = f"SELECT * FROM {MESSAGES} WHERE session_id = ? ORDER BY created_timestamp, id"
    return list(select_rows(connection, statement, own_id(session)))


def _first_counted(connection: sqlite3.Connection, session: str) -> int | None:
    """The time of the first message with tokens of its own; None if there is none."""
    statement = f"""SELECT min(created_timestamp) AS first FROM {MESSAGES}
        WHERE session_id = ? AND metadata_json LIKE '%"usage":{{%'"""
    [row] = select_rows(connection, statement, own_id(session))
    return row["first"]


def _is_awaited(connection: sqlite3.Connection, session: str, used: Row) -> bool:
    """Whether what was used is of a call that answers the newest message."""
    statement = f"""SELECT role != 'assistant' AND created_timestamp <= ? AS awaited FROM {MESSAGES}
        WHERE session_id = ? ORDER BY created_timestamp DESC, id DESC LIMIT 1"""
    newest = next(select_rows(connection, statement, used.get("created_timestamp"), own_id(session)), None)
    return newest is not None and bool(newest["awaited"]) and not used.get("is_compaction")


class _Tokens(msgspec.Struct, frozen=True, rename="camel"):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Counted(msgspec.Struct):
    usage: _Tokens


def _has_other_tokens(connection: sqlite3.Connection, session: str, ledger: Iterable[Row]) -> bool:
    """Whether messages have tokens of calls that are not in the ledger, as those of an imported session."""
    statement = f"""SELECT metadata_json FROM {MESSAGES} WHERE session_id = ? AND metadata_json LIKE '%"usage":{{%'"""
    told: Counter[_Tokens] = Counter()
    for row in select_rows(connection, statement, own_id(session)):
        try:
            told[msgspec.json.decode(str(row["metadata_json"]), type=_Counted).usage] += 1
        except UNREADABLE:
            continue
    told.subtract(_Tokens(row.get("input_tokens"), row.get("output_tokens")) for row in ledger if not is_carried(row))
    return any(count > 0 for count in told.values())
