"""Zed's database of threads, made of JSON that people can read: `threads.json` of a handwritten case.

The table is that of Zed's own source (`docs/formats/zed.md`).
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from zstandard import ZstdCompressor, ZstdDecompressor

ROWS = "threads.json"


def write_home(recorded: Path, folder: Path) -> None:
    """Make the database of a case in a home."""
    write_rows(folder, json.loads((recorded / ROWS).read_text()))


def text_of(row: dict[str, Any]) -> bytes:
    """The JSON of a thread, as Zed writes it."""
    return json.dumps(row["data"], separators=(",", ":")).encode()


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Make a database, or write rows to it."""
    path = folder / "threads" / "threads.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            """CREATE TABLE IF NOT EXISTS threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL,
            data_type TEXT NOT NULL, data BLOB NOT NULL, parent_id TEXT, folder_paths TEXT, folder_paths_order TEXT,
            created_at TEXT)"""
        )
        for row in rows:
            text = text_of(row)
            data = ZstdCompressor(level=3).compress(text) if row["data_type"] == "zstd" else text
            values = list((row | {"data": data}).values())
            names, marks = ", ".join(row), ", ".join("?" for _ in row)
            connection.execute(f"INSERT OR REPLACE INTO threads ({names}) VALUES ({marks})", values)
    return path


def replace_text(database: Path, before: str, after: str) -> None:
    """Put one text in the place of another in all threads."""
    with closing(sqlite3.connect(database)) as connection, connection:
        for name, kind, data in connection.execute("SELECT id, data_type, data FROM threads").fetchall():
            text = ZstdDecompressor().decompressobj().decompress(data) if kind == "zstd" else data
            changed = text.replace(before.encode(), after.encode())
            packed = ZstdCompressor(level=3).compress(changed) if kind == "zstd" else changed
            connection.execute("UPDATE threads SET data = ? WHERE id = ?", (packed, name))
