"""Crush's database, made of JSON that people can read: `crush.json` of a handwritten case.

The tables are those of Crush's own migrations (`docs/formats/crush.md`), without triggers and indexes.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

ROWS, DATABASE = "crush.json", "crush.db"

_TABLES = {
    "sessions": """id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
        message_count INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0,
        completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0, updated_at INTEGER NOT NULL,
        created_at INTEGER NOT NULL, summary_message_id TEXT, todos TEXT""",
    "messages": """id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL DEFAULT '[]',
        model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, finished_at INTEGER, provider TEXT,
        is_summary_message INTEGER DEFAULT 0 NOT NULL""",
    "files": "id TEXT PRIMARY KEY, session_id TEXT NOT NULL, path TEXT NOT NULL, content TEXT NOT NULL",
}


def write_home(recorded: Path, folder: Path) -> None:
    """Make the database of a case in a folder."""
    write_rows(folder, json.loads((recorded / ROWS).read_text()))


def write_rows(folder: Path, tables: dict[str, list[dict[str, Any]]]) -> Path:
    """Make a database, or add rows to it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / DATABASE
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, columns in _TABLES.items():
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        for table, rows in tables.items():
            for row in rows:
                values = [json.dumps(value) if isinstance(value, list) else value for value in row.values()]
                names, marks = ", ".join(row), ", ".join("?" for _ in row)
                connection.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", values)
    return path
