"""Statements on the tables of the store that takes a feed."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from turnlog.store.feed.values import TABLES, Row

if TYPE_CHECKING:
    from turnlog.store.connection import Connection


class FeedTables:
    """Reads and changes rows by the values of one column."""

    def __init__(self, connection: Connection) -> None:
        """Keep the connection, whose transaction is the caller's."""
        self._connection = connection

    def where(self, table: str, column: str, values: Sequence[int], columns: Sequence[str]) -> list[Row]:
        """Columns of the rows with one of these values."""
        found: list[Row] = []
        for chunk in in_chunks(values):
            found += self._connection.execute(
                f"SELECT {', '.join(columns)} FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))", (chunk,)
            ).fetchall()
        return found

    def has_session(self, session_id: str) -> bool:
        """Whether a session is stored."""
        agent, _, external_id = session_id.partition(":")
        found = self._connection.execute(
            "SELECT 1 FROM sessions WHERE agent = ? AND external_id = ?", (agent, external_id)
        ).fetchone()
        return found is not None

    def delete(self, table: str, column: str, values: Collection[int] | Collection[str]) -> None:
        """Delete the rows with one of these values."""
        if values:
            self._connection.execute(
                f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))", (json.dumps(list(values)),)
            )

    def update(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Write these columns of rows that are there, of which the first is the key."""
        assignments = ", ".join([f"{name} = ?" for name in columns[1:]])
        self._connection.executemany(
            f"UPDATE {table} SET {assignments} WHERE key = ?", [(*row[1:], row[0]) for row in rows]
        )

    def replace(self, table: str, rows: Sequence[Row]) -> None:
        """Write whole rows, in the place of those with the same identity."""
        columns = TABLES[table]
        self._connection.executemany(
            f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", rows
        )


def in_chunks(values: Sequence[int] | Sequence[str]) -> list[str]:
    """Values as arrays of JSON, of which each is one parameter."""
    return [json.dumps(values[start : start + 1000]) for start in range(0, len(values), 1000)]
