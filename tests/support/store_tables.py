"""All rows of a store, key by key: two stores that were written in the same order are equal."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

_NOW = frozenset({"read_at", "started_at", "at"})
"""Columns that hold the time of a pass."""

Tables = dict[str, list[tuple[Any, ...]]]


def tables(path: Path) -> Tables:
    """All rows of a store, without the times of its passes."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        return {name: _rows(connection, name) for (name,) in names.fetchall()}


def _rows(connection: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    columns = [column for _, column, *_ in connection.execute(f"PRAGMA table_info({table})") if column not in _NOW]
    return sorted(connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall(), key=repr)


def differing(one: Tables, other: Tables) -> list[str]:
    return [name for name in one if one[name] != other[name]]
