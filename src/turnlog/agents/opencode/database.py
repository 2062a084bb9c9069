"""OpenCode's database: opening it read-only, listing its sessions with their versions, and reading a session's rows.

The connection is read-only and looks at one consistent snapshot. An authorizer refuses every table that is not in
`TABLES`: those that hold tokens and secrets (`account`, `control_account`, `credential`, `session_share`, …) cannot be
read even by mistake. `agents.databases` opens it.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path

from turnlog.agents.base import Version
from turnlog.agents.databases import SessionListing, is_filled, open_snapshot
from turnlog.agents.decoding import list_of, object_of, text_of
from turnlog.agents.handoffs import MARK
from turnlog.agents.opencode.rows import (
    EVENT,
    PROJECT,
    Row,
    as_blob,
    as_text,
    message_position,
    time_of,
    time_of_later_id,
    to_int,
)
from turnlog.agents.opencode.snapshot import (
    SESSION_MESSAGE,
    SESSION_V2,
    ListedMessage,
    MessageCopy,
    MessageRows,
    Snapshot,
    is_message,
    list_message,
    project_facts,
    session_info,
)
from turnlog.agents.strays import Belonging

TABLES = frozenset(
    {
        "claude_import",
        "event",
        "event_sequence",
        "external_import",
        "message",
        "part",
        "project",
        "session",
        "session_context_epoch",
        "session_inbox",
        "session_input",
        "session_message",
        "session_pending",
        "session_v2",
        "todo",
    }
)
"""The tables that may be read."""

OLDER_TABLES = frozenset({"session", "message", "part"})
NEWER_TABLES = frozenset({SESSION_V2, SESSION_MESSAGE})
"""The tables of a session since 2.0. An upgrade copies sessions into them, and leaves the older ones as they are."""

_OLDER_COLUMNS = {"session": {"id"}, "message": {"id", "session_id", "data"}, "part": {"id", "message_id", "data"}}
_NEWER_COLUMNS = {SESSION_V2: {"id"}, SESSION_MESSAGE: {"id", "session_id", "type", "data"}}
"""Without them a session cannot be read."""

_EXCLUDED = "#/."
"""Characters that no id of a session has, because a file of the JSON storage has them in its path."""

BELONGINGS = (
    *(Belonging(table, "id", excluded=_EXCLUDED) for table in ("session", SESSION_V2)),
    *(
        Belonging(table, "session_id", "session", others=(SESSION_V2,))
        for table in ("message", "part", SESSION_MESSAGE)
    ),
)
"""What rows must have to be read with a session."""

_SESSION_ID = re.compile(rf"[^{_EXCLUDED}]+")

_DATABASE_SESSION = re.compile(rf"(?P<database>.+)#(?P<session>[^{_EXCLUDED}]+)")


def database_session_of(path: str) -> tuple[Path, str] | None:
    """The database and the session that a source's path names; None if it names neither."""
    match = _DATABASE_SESSION.fullmatch(path)
    return (Path(match["database"]), match["session"]) if match else None


# -- opening it


@contextmanager
def open_database(path: Path) -> Generator[sqlite3.Connection]:
    """A connection to one consistent snapshot of the database.

    Raises:
        OSError: There is no such file.
        SourceError: It is no database that can be read.
    """
    with open_snapshot(path, TABLES, as_text) as connection:
        yield connection


def tables_of(connection: sqlite3.Connection) -> set[str]:
    """Which of `TABLES` this version of the database has."""
    return {row["name"] for row in select(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")} & TABLES


def select(connection: sqlite3.Connection, statement: str, *parameters: object) -> Iterator[Row]:
    """Rows with all their columns, as the database holds them."""
    cursor = connection.execute(statement, parameters)
    names = [column[0] for column in cursor.description]
    for values in cursor:
        yield dict(zip(names, [as_blob(value) if isinstance(value, bytes) else value for value in values], strict=True))


# -- its sessions, with their versions


_ROW_SIZE = 1024
"""Bytes that a row is estimated to have, because counting them would mean to read it."""

_LATEST = 1 << 43
"""The year 2248 in Unix milliseconds: a time whose nanoseconds a column still holds."""

_LOOKUP_SIZE = 500

_OTHER_TABLES = {
    "session_message": "id",
    "session_input": "id",
    "session_inbox": "id",
    "session_pending": "id",
    "session_context_epoch": "session_id",
    "event_sequence": "aggregate_id",
}
"""Further tables whose rows belong to a session -> their key."""


def list_sessions(path: Path, only: str | None = None) -> list[SessionListing]:
    """Every session of the database at `path`, or only the one with the id `only`.

    A session's version changes with its rows. Where the database has a sequence of events, that counts every change;
    sessions without one (versions before 1.3) have the times of their rows. Counts and row numbers, which are read from
    indexes, show rows that were added or removed.

    Raises:
        OSError: There is no such file.
        SourceError: It cannot be read, or has another schema.
    """
    with open_database(path) as connection:
        tables = tables_of(connection)
        if not _is_filled(connection, tables, path):
            return []
        facts: dict[str, list[object]] = defaultdict(list)
        sizes: dict[str, int] = defaultdict(int)
        times: dict[str, int] = {}
        projects: dict[str, object] = {}
        for row in _session_rows(connection, tables, only):
            if not isinstance(row["id"], str) or not _SESSION_ID.fullmatch(row["id"]) or row["id"] in facts:
                continue
            facts[_key(row, "id")].append(sorted(row.items()))
            times[_key(row, "id")] = to_int(row.get("time_updated"))
            projects[_key(row, "id")] = row.get("project_id")
        for name, found in _projects(connection, tables, projects).items():
            facts[name].append(found)
        for name, row in _change_signs(connection, tables, set(facts), only):
            if name in facts:
                facts[name].append(sorted(row.items()))
                sizes[name] += to_int(row.get("count")) * _ROW_SIZE
        copies = _copies(connection, tables)
        return [
            SessionListing(name, _version(sizes[name], times[name], facts[name]), project=text_of(projects[name]))
            for name in facts
            if name not in copies
        ]


def _is_filled(connection: sqlite3.Connection, tables: set[str], path: Path) -> bool:
    if tables >= NEWER_TABLES:
        older = _OLDER_COLUMNS if tables >= OLDER_TABLES else {}
        return is_filled(connection, _NEWER_COLUMNS | older, path)
    return is_filled(connection, _OLDER_COLUMNS, path)


def session_tables(tables: set[str]) -> list[str]:
    """The tables with sessions that can be read, the one that OpenCode itself reads first."""
    newer = [SESSION_V2] if tables >= NEWER_TABLES else []
    return newer + (["session"] if tables >= OLDER_TABLES else [])


def _session_rows(connection: sqlite3.Connection, tables: set[str], only: str | None) -> Iterator[Row]:
    for table in session_tables(tables):
        yield from select(connection, f"SELECT * FROM {table}{' WHERE id = ?' if only else ''}", *_given(only))


def _copies(connection: sqlite3.Connection, tables: set[str]) -> set[str]:
    """The sessions that MiMo Code imported from another program and did not continue: that program's logs have them.

    Each import names the messages that it made. Early ones do not: then it made all.
    """
    imported: dict[str, list[object]] = defaultdict(list)
    for table in tables & {"claude_import", "external_import"}:
        for row in select(connection, f"SELECT session_id, message_ids FROM {table}"):
            imported[_key(row, "session_id")].append(row["message_ids"])
    return {name for name, made in imported.items() if not _messages_beside(connection, name, made)}


def _messages_beside(connection: sqlite3.Connection, session: str, made: list[object]) -> bool:
    """Whether a session has messages other than those in lists of ids, which are JSON."""
    ids: set[object] = set()
    for each in made:
        try:
            ids |= set(list_of(json.loads(str(each))))
        except (ValueError, TypeError):  # No list of ids, which are texts
            return False
    rows = select(connection, "SELECT id FROM message WHERE session_id = ?", session)
    return any(row["id"] not in ids for row in rows)


def _projects(connection: sqlite3.Connection, tables: set[str], of: dict[str, object]) -> dict[str, object]:
    """Session -> the facts about its project; without its times, which change whenever OpenCode is started there."""
    if PROJECT not in tables:
        return {}
    known = {_key(row, "id"): sorted(project_facts(row).items()) for row in select(connection, "SELECT * FROM project")}
    return {session: known.get(text_of(project) or "") for session, project in of.items()}


def _change_signs(
    connection: sqlite3.Connection, tables: set[str], names: set[str], only: str | None
) -> Iterator[tuple[str, Row]]:
    """Values that change when rows of a session do, each with the session's id."""
    with_events: set[str] = set()
    where = " WHERE session_id = ?" if only else ""
    if "event_sequence" in tables:
        for row in select(
            connection, f"SELECT * FROM event_sequence{where.replace('session', 'aggregate')}", *_given(only)
        ):
            with_events.add(_key(row, "aggregate_id"))
            yield _key(row, "aggregate_id"), row
    for table in [each for each in ("message", "part") if each in tables]:
        statement = f"SELECT session_id, count(*) AS count, max(rowid) AS last FROM {table}{where} GROUP BY session_id"
        yield from ((_key(row, "session_id"), row) for row in select(connection, statement, *_given(only)))
    for table in tables & {"todo", "session_message"}:
        statement = (
            f"SELECT session_id, count(*) AS count, max(time_updated) AS last FROM {table}{where} GROUP BY session_id"
        )
        yield from ((_key(row, "session_id"), row) for row in select(connection, statement, *_given(only)))
    # Before 1.3 no event counts changes: the times of all rows must be read.
    others = sorted(names - with_events)
    for start in range(0, len(others), _LOOKUP_SIZE):
        sessions = others[start : start + _LOOKUP_SIZE]
        for table in [each for each in ("message", "part", SESSION_MESSAGE) if each in tables]:
            statement = (
                f"SELECT session_id, max(time_updated) AS newest, sum(time_updated) AS sum FROM {table}"
                f" WHERE session_id IN ({', '.join('?' * len(sessions))}) GROUP BY session_id"
            )
            yield from ((_key(row, "session_id"), row) for row in select(connection, statement, *sessions))


def _key(row: Row, column: str) -> str:
    """An id. One that is no text, which OpenCode never writes, must not prevent the reading of the others."""
    value = row.get(column)
    return value if isinstance(value, str) else repr(value)


def _given(only: str | None) -> tuple[str, ...]:
    return () if only is None else (only,)


def _version(size: int, updated: int, facts: object) -> Version:
    digest = hashlib.blake2b(repr(facts).encode(errors="replace"), digest_size=14).digest()
    updated = min(max(updated, 0), _LATEST)
    return size, updated * 1_000_000, int.from_bytes(digest[:7], "big"), int.from_bytes(digest[7:], "big")


# -- the rows of one session


_NUMBERED = f"SELECT * FROM {SESSION_MESSAGE} WHERE session_id = ?"

_ID_TIME = len("msg_") + 12
"""How many characters of a message's id say when it was made."""


class TableRows:
    """One session's rows in a database. See `snapshot.RowSource`."""

    def __init__(self, connection: sqlite3.Connection, session: str) -> None:
        """Use an open connection."""
        self.external_id = session
        self._connection = connection
        self._session = session
        self._tables = tables_of(connection)
        self._removed_messages: list[tuple[tuple[int, str], ListedMessage]] | None = None

    def read(self, events_after: int) -> Snapshot:
        """See `snapshot.RowSource.read`."""
        table, session = self._session_row()
        older = list(self._messages()) if self._tables >= OLDER_TABLES else []
        newer = self._newer_messages(older, is_upgraded=table == SESSION_V2)
        reverted = self._reverted(older) if table == SESSION_V2 else []
        gone = {message.key for message in reverted}
        messages = [message for message in older if message.key not in gone] + newer
        info = session_info(session) if session else {}
        present = {message.key for message in messages} | gone
        return Snapshot(
            session=session,
            session_table=table,
            info=info,
            messages=messages,
            removed=[*reverted, *self._removed(present, time_of(info, "created"))],
            todo=tuple(self._select("SELECT * FROM todo WHERE session_id = ? ORDER BY position"))
            if "todo" in self._tables
            else None,
            others=[
                *self._project(session),
                *self._others({message.key for message in newer}),
                *self._events(events_after),
            ],
        )

    def _session_row(self) -> tuple[str, Row | None]:
        """The session's row and its table: of two rows that of 2.x, which alone is still written."""
        for table in session_tables(self._tables):
            row = next(self._select(f"SELECT * FROM {table} WHERE id = ?"), None)
            if row is not None:
                return table, row
        return "session", None

    def find_originals(self, messages: Sequence[ListedMessage], session: Row) -> dict[str, MessageCopy]:
        """See `snapshot.RowSource.find_originals`. Rows before 2.0 do not say what a fork copied.

        There, the original is in the oldest of the sessions of the project that have a message of the same millisecond.
        Of several in one millisecond, the first is the copy of the first, and so on, if role and model are the same.
        """
        origin = text_of(session.get("forkSessionID"))
        if origin is not None and self._tables >= NEWER_TABLES:
            return self._originals_in(origin, messages)
        if not self._tables >= OLDER_TABLES:
            return {}
        found: dict[str, MessageCopy] = {}
        began = time_of(session, "created")
        # Sessions that were handed over from one session have messages of the same times, and are no forks.
        messages = [message for message in messages if MARK not in message.info]
        for created in sorted({message.created for message in messages}):
            copies = sorted((message for message in messages if message.created == created), key=lambda copy: copy.key)
            originals = self._messages_created_at(created, session.get("projectID"), began)
            for copy, original in zip(copies, originals, strict=False):
                same = copy.info.get("role") == original.info.get("role")
                if same and copy.info.get("modelID") == original.info.get("modelID"):
                    found[copy.key] = MessageCopy(original.key, str(original.info["session_id"]))
        return found

    def _originals_in(self, origin: str, messages: Sequence[ListedMessage]) -> dict[str, MessageCopy]:
        """The originals of a fork's messages: a copy keeps the number of its row. A fork's original may be a fork."""
        numbers = {_key(row, "id"): row.get("seq") for row in self._select(_NUMBERED)}
        found: dict[str, MessageCopy] = {}
        for message in messages:
            original = self._numbered(origin, numbers.get(message.key), {self._session})
            if original is not None:
                found[message.key] = original
        return found

    def _numbered(self, session: str, number: object, seen: set[str]) -> MessageCopy | None:
        """The message in the row with a number in a session, or its original if that is a fork's copy, too."""
        rows = select(self._connection, f"{_NUMBERED} AND seq = ?", session, number)
        row = next(rows, None)
        if row is None or session in seen:
            return None
        statement = f"SELECT * FROM {SESSION_V2} WHERE id = ?"
        forked = next(select(self._connection, statement, session), None)
        fork = session_info(forked) if forked else {}
        above = text_of(fork.get("forkSessionID"))
        is_copy = above is not None and to_int(row.get("time_created")) < time_of(fork, "created")
        original = self._numbered(above, number, seen | {session}) if is_copy and above is not None else None
        return original or MessageCopy(_key(row, "id"), session)

    def _messages_created_at(self, created: int, project: object, began: int) -> list[ListedMessage]:
        """Messages of that millisecond, in the oldest session of the project that has or had any."""
        there = [
            ((to_int(row["began"]), _key(row, "session_id")), row)
            for row in select(
                self._connection,
                "SELECT s.time_created AS began, m.* FROM session s CROSS JOIN message m ON m.session_id = s.id"
                " AND m.time_created = ? WHERE s.project_id = ? AND s.id <> ? AND s.time_created < ?",
                created,
                project,
                self._session,
                began,
            )
        ]
        # The first prompt after an undo deletes messages, of which a fork may have copies.
        gone = [found for found in self._removed_before(project, began) if found[1].created == created]
        oldest = min((session for session, _ in (*there, *gone)), default=None)
        if oldest is None:
            return []
        originals = [list_message(MessageRows(_key(row, "id"), row)) for session, row in there if session == oldest]
        originals += [message for session, message in gone if session == oldest]
        return [
            message._replace(info=message.info | {"session_id": oldest[1]})
            for message in sorted(originals, key=lambda message: message.key)
        ]

    def _removed_before(self, project: object, began: int) -> list[tuple[tuple[int, str], ListedMessage]]:
        """Messages deleted from older sessions of the project: (the session's time and id), the message."""
        if self._removed_messages is None:
            sessions = (
                select(
                    self._connection,
                    "SELECT id, time_created FROM session s WHERE project_id = ? AND id <> ? AND time_created < ? AND"
                    " EXISTS (SELECT 1 FROM event WHERE aggregate_id = s.id AND type LIKE 'message.removed%')",
                    project,
                    self._session,
                    began,
                )
                if EVENT in self._tables
                else ()
            )
            self._removed_messages = [
                ((to_int(row["time_created"]), _key(row, "id")), list_message(message, deleted=True))
                for row in list(sessions)
                for message in TableRows(self._connection, _key(row, "id")).removed(to_int(row["time_created"]))
            ]
        return self._removed_messages

    def removed(self, began: int) -> Iterator[MessageRows]:
        """Messages of this session that events have and that have no rows any more; `began` is the session's time."""
        present = {_key(row, "id") for row in self._select("SELECT id FROM message WHERE session_id = ?")}
        present |= {_key(row, "id") for row in self._select(_NUMBERED)} if SESSION_MESSAGE in self._tables else set()
        return self._removed(present, began)

    def _select(self, statement: str, *more: object) -> Iterator[Row]:
        return select(self._connection, statement, self._session, *more)

    def _messages(self) -> Iterator[MessageRows]:
        parts: dict[str, list[Row]] = defaultdict(list)
        for part in self._select("SELECT * FROM part WHERE session_id = ? ORDER BY message_id, id"):
            parts[_key(part, "message_id")].append(part)
        for row in self._select("SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id"):
            key = _key(row, "id")
            yield MessageRows(key, row, tuple(parts.pop(key, ())))
        # Parts without the row of their message are shown all the same.
        for key, orphans in parts.items():
            yield MessageRows(key, {}, tuple(orphans))

    def _project(self, session: Row | None) -> Iterator[tuple[str, str, Row]]:
        if session is not None and "project" in self._tables:
            for row in select(self._connection, "SELECT * FROM project WHERE id = ?", session.get("project_id")):
                yield PROJECT, "", row

    def _newer_messages(self, messages: Sequence[MessageRows], *, is_upgraded: bool) -> list[MessageRows]:
        """The messages that only rows of `session_message` have.

        2.x writes all messages there, with a number, and its upgrade copies those of `message` in a shorter form.
        Before, a session that was begun with such rows has no others; in another one they repeat those of `message`.
        """
        if SESSION_MESSAGE not in self._tables:
            return []
        if is_upgraded:
            return self._numbered_messages(messages)
        rows = [row for row in self._select(f"SELECT * FROM {SESSION_MESSAGE} WHERE session_id = ?") if is_message(row)]
        first = min((to_int(row.get("time_created")) for row in rows), default=0)
        # 1.15 to 1.17 write such rows next to those of `message`, for the first agent and model of an old session.
        if any(to_int(message.row.get("time_created")) <= first for message in messages):
            return []
        return [MessageRows(_key(row, "id"), row) for row in rows]

    def _numbered_messages(self, messages: Sequence[MessageRows]) -> list[MessageRows]:
        """The messages of 2.x in the order of their numbers, without those that have a row of `message`."""
        older = {message.key: message for message in messages}
        made = {key[:_ID_TIME]: to_int(message.row.get("time_created")) for key, message in older.items()}
        found: list[MessageRows] = []
        entered, position = 0, -1
        rows = [row for row in self._select(f"{_NUMBERED} ORDER BY seq") if is_message(row)]
        for row in rows:
            key, created = _key(row, "id"), to_int(row.get("time_created"))
            entered = max(entered, created)
            if key in older or (row["type"] == "synthetic" and made.get(key[:_ID_TIME]) == created):
                # The upgrade puts what OpenCode added to a prompt into a row of its own, with the time of the prompt.
                continue
            position = max(message_position(entered, key), position + 1)
            found.append(MessageRows(key, row, position=position))
        return found

    def _reverted(self, messages: Sequence[MessageRows]) -> list[MessageRows]:
        """The messages before an upgrade that 2.x has deleted since: those from the one on to which it went back.

        Their rows of `message` stay. They last changed when they were deleted.
        """
        if EVENT not in self._tables or not messages:
            return []
        statement = "SELECT * FROM event WHERE aggregate_id = ? AND type LIKE 'session.revert.committed%' ORDER BY seq"
        kept = {_key(row, "id") for row in self._select(_NUMBERED)}
        found: dict[str, MessageRows] = {}
        for event in self._select(statement):
            keys = [message.key for message in messages]
            target = text_of(_fact(event, "to")) or text_of(_fact(event, "messageID"))
            at = to_int(event.get("created")) or time_of_later_id(_key(event, "id"), 0) or 0
            for message in messages[keys.index(target) :] if target in keys else ():
                if message.key not in kept:
                    row = message.row | {"time_updated": max(at, to_int(message.row.get("time_updated")))}
                    found.setdefault(message.key, message._replace(row=row))
        return list(found.values())

    def _others(self, used: Set[str]) -> Iterator[tuple[str, str, Row]]:
        for table, key in _OTHER_TABLES.items():
            if table in self._tables:
                owner = "aggregate_id" if table == "event_sequence" else "session_id"
                rows = self._select(f"SELECT * FROM {table} WHERE {owner} = ?")
                # `session_message` has no `seq` in 1.14.
                for row in sorted(rows, key=lambda row: (to_int(row.get("seq")), str(row[key]))):
                    if table != SESSION_MESSAGE or row[key] not in used:
                        yield table, str(row[key]), row

    def _events(self, after: int) -> Iterator[tuple[str, str, Row]]:
        if EVENT in self._tables:
            for row in self._select("SELECT * FROM event WHERE aggregate_id = ? AND seq > ? ORDER BY seq", after):
                yield EVENT, str(row["seq"]), row

    def _removed(self, present: Set[str], began: int) -> Iterator[MessageRows]:
        """The last version of the messages that were removed, from the session's events.

        They last changed when they were removed, which is the time in the event's id.
        """
        if EVENT not in self._tables:
            return
        statement = "SELECT * FROM event WHERE aggregate_id = ? AND type LIKE ? ORDER BY seq"
        removed = {
            name: time_of_later_id(_key(row, "id"), began)
            for row in self._select(statement, "message.removed%")
            if (name := text_of(_fact(row, "messageID"))) is not None and name not in present
        }
        if not removed:
            return
        bodies: dict[str, Row] = {}
        parts: dict[str, dict[str, Row]] = defaultdict(dict)
        for row in self._select(statement, "message.%"):
            info, part = object_of(_fact(row, "info")), object_of(_fact(row, "part"))
            if info.get("id") in removed:
                bodies[info["id"]] = {"data": json.dumps(info), "time_updated": removed[info["id"]]}
            if part.get("messageID") in removed:
                parts[part["messageID"]][str(part.get("id"))] = {"id": part.get("id"), "data": json.dumps(part)}
            if str(row["type"]).startswith("message.part.removed"):
                parts[str(_fact(row, "messageID"))].pop(str(_fact(row, "partID")), None)
        for key, row in bodies.items():
            yield MessageRows(key, row, tuple(parts[key][name] for name in sorted(parts[key])))


def _fact(row: Row, name: str) -> object:
    try:
        return json.loads(row["data"]).get(name)
    except (ValueError, AttributeError, TypeError):
        return None
