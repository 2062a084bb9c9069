"""Recorded rows of OpenCode as the database or the files that they were, and what reading them brings."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from support.claude_files import Gathered, gather
from turnlog.agents.base import Source
from turnlog.agents.changes import Changes
from turnlog.agents.opencode import OpenCode
from turnlog.agents.opencode.rows import session_id
from turnlog.agents.opencode.snapshot import session_info
from turnlog.store import open_store
from turnlog.store.base import SessionFilter

DATA = Path(__file__).parents[1] / "data" / "opencode"
AGENT = OpenCode()

CASES = sorted(path.parent for path in DATA.rglob("rows.jsonl"))

Row = dict[str, Any]
Rows = dict[str, list[Row]]

SECRET = "CANARY-7f3b-SECRET"
SECRET_TABLES = {
    "account": {"id": SECRET, "access_token": SECRET},
    "account_state": {"id": 1, "active_account_id": SECRET},
    "control_account": {"email": SECRET, "access_token": SECRET},
    "credential": {"id": SECRET, "value": SECRET},
    "auth": {"id": SECRET, "key": SECRET},
    "session_share": {"session_id": "ses_1", "secret": SECRET},
    "workspace": {"id": "wrk_1", "extra": SECRET},
}

_INDEXES = {
    "message": ("session_id", "time_created", "id"),
    "part": ("session_id",),
    "event": ("aggregate_id", "seq"),
}
_KEYS = {"todo": "session_id, position", "event_sequence": "aggregate_id", "session_context_epoch": "session_id"}


def recorded(*parts: str) -> Rows:
    """The rows of a recorded case by table."""
    return read_table_rows(DATA.joinpath(*parts, "rows.jsonl"))


def read_table_rows(path: Path) -> Rows:
    """The rows in a file, each on a line with its table, by table."""
    rows: Rows = {}
    for line in path.read_text().splitlines():
        found = json.loads(line)
        rows.setdefault(found["table"], []).append(found["row"])
    return rows


def write_database(rows: Rows, path: Path, *, secrets: bool = False) -> Path:
    """A database with these rows, as OpenCode keeps it (write-ahead log, no connection left)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for table in {"session": [], "message": [], "part": [], **rows}:
            insert(connection, table, rows.get(table, []))
        for table, row in SECRET_TABLES.items() if secrets else ():
            insert(connection, table, [row])
    return path


def insert(connection: sqlite3.Connection, table: str, rows: Iterable[Row]) -> None:
    """Put rows into a table, which is made with their columns when it is not there."""
    rows = list(rows)
    columns = list(rows[0]) if rows else _EMPTY.get(table, ["id", "session_id"])
    keys = _KEYS.get(table, columns[0] if table in SECRET_TABLES else "id")
    connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)}, PRIMARY KEY ({keys}))")
    if table in _INDEXES:
        connection.execute(f"CREATE INDEX IF NOT EXISTS {table}_index ON {table} ({', '.join(_INDEXES[table])})")
    marks = ", ".join(f":{name}" for name in columns)
    connection.executemany(f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)


_EMPTY = {
    "session": ["id", "project_id", "parent_id", "directory", "title", "version", "time_created", "time_updated"],
    "message": ["id", "session_id", "time_created", "time_updated", "data"],
    "part": ["id", "message_id", "session_id", "time_created", "time_updated", "data"],
}


def write_storage(rows: Rows, root: Path) -> Path:
    """The same as the JSON storage of 0.6 to 1.1 has it."""
    storage = root / "storage"
    for row in rows.get("project", ()):
        info = {
            "id": row["id"],
            "worktree": row["worktree"],
            "vcs": row["vcs"],
            "time": {"created": row["time_created"]},
        }
        write_json(storage / "project" / f"{row['id']}.json", info)
    for row in rows["session"]:
        write_json(storage / "session" / row["project_id"] / f"{row['id']}.json", session_info(row))
    for row in rows["message"]:
        info = {"id": row["id"], "sessionID": row["session_id"], **json.loads(row["data"])}
        write_json(storage / "message" / row["session_id"] / f"{row['id']}.json", info)
    for row in rows["part"]:
        write_json(storage / "part" / row["message_id"] / f"{row['id']}.json", part_json(row))
    for session in {row["session_id"] for row in rows.get("todo", ())}:
        items = [row for row in rows["todo"] if row["session_id"] == session]
        names = ("content", "status", "priority")
        write_json(storage / "todo" / f"{session}.json", [{name: row[name] for name in names} for row in items])
    return root


def write_project_storage(rows: Rows, root: Path) -> Path:
    """The same as the JSON storage before 0.6 has it."""
    storage = root / "project" / "home-dev-project" / "storage" / "session"
    for row in rows["session"]:
        write_json(storage / "info" / f"{row['id']}.json", session_info(row))
    for row in rows["message"]:
        info = {"id": row["id"], "sessionID": row["session_id"], **json.loads(row["data"])}
        write_json(storage / "message" / row["session_id"] / f"{row['id']}.json", info)
    for row in rows["part"]:
        place = storage / "part" / row["session_id"] / row["message_id"] / f"{row['id']}.json"
        write_json(place, part_json(row))
    return root


def write_export(rows: Rows, session: str, path: Path) -> Path:
    """What `opencode export` prints of a session."""
    (row,) = [row for row in rows["session"] if row["id"] == session]
    messages = [
        {
            "info": {"id": message["id"], "sessionID": session, **json.loads(message["data"])},
            "parts": [part_json(part) for part in rows["part"] if part["message_id"] == message["id"]],
        }
        for message in rows["message"]
        if message["session_id"] == session
    ]
    write_json(path, {"info": session_info(row), "messages": messages})
    return path


def part_json(row: Row) -> Row:
    ids = {"id": row["id"], "sessionID": row["session_id"], "messageID": row["message_id"]}
    return ids | json.loads(row["data"])


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False))


def sessions_in(root: Path) -> list[Source]:
    """The sources of sessions below a data folder."""
    return [source for source in AGENT.discover([root]) if source.session_id is not None]


def log_of(source: Source) -> bytes:
    """The whole row log of a source that was never read before."""
    return b"".join(AGENT.read_rows(source, ()).lines)


def changes_of(source: Source) -> Changes:
    return AGENT.fold(source).feed(log_of(source), 0)


def read(root: Path) -> Gathered:
    """All that the sources below a data folder bring."""
    return gather(*(changes_of(source) for source in sessions_in(root)))


def read_rows(rows: Rows, root: Path) -> Gathered:
    """The same, of rows in a database."""
    write_database(rows, root / "opencode.db")
    return read(root)


def external(row: Row) -> str:
    return session_id(row["id"])


def dump(path: Path) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Every row of a database's tables, by column name, comparable."""
    with closing(sqlite3.connect(path)) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            cursor = connection.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            for row in cursor:
                yield table, tuple(sorted(zip(names, map(repr, row), strict=True)))


def store_contents(store: Path) -> dict[str, Any]:
    """Every session with its history and totals, without where its records lie."""
    found: dict[str, Any] = {}
    with open_store(store) as opened:
        for session in opened.sessions(SessionFilter(subagents=True)).items:
            history = [_without_records(event) for event in opened.history(session.id)]
            found[session.id] = (_plain(session), history)
    return found


def _plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def _without_records(event: Any) -> Any:
    found = _plain(event)
    found.pop("records", None)
    found.get("membership", {}).pop("records", None)
    return found
