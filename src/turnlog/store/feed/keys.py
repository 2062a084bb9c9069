"""Keys of the store that a batch comes from, and those that its rows have in the store that takes it."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from turnlog.store.feed.values import IDENTITY, KEYS, TABLES, UNKNOWN_MODEL, FeedBatch, Row

if TYPE_CHECKING:
    from turnlog.store.connection import Connection

_NAMED_FIRST: Final = ("models", "price_versions", "owners", "projects")
"""Tables whose rows are found or made before the transaction, so that no two transactions wait for each other's."""


class Keys:
    """Keys of the other store -> keys of this one, by table."""

    def __init__(self) -> None:
        self._known: dict[str, dict[int, int]] = {table: {} for table in IDENTITY}

    def note(self, table: str, theirs: int, ours: int) -> None:
        """Note the key of a row in this store."""
        self._known[table][theirs] = ours

    def of(self, table: str) -> dict[int, int]:
        """All keys of a table."""
        return self._known[table]

    def rows(self, table: str, rows: Iterable[Row]) -> list[Row]:
        """Rows with this store's keys; rows that name something that is not here are left out."""
        places = [(at, self._known[KEYS[name]]) for at, name in enumerate(TABLES[table]) if name in KEYS]
        required = {at for at, name in enumerate(TABLES[table]) if name in _REQUIRED}
        if [at for at, _ in places] == [0] and required == {0}:  # parts are most of all rows
            known = places[0][1]
            return [(known[row[0]], *row[1:]) for row in rows if row[0] in known]
        found: list[Row] = []
        for row in rows:
            values = list(row)
            for at, known in places:
                key = values[at]
                if key is not None and not (key == UNKNOWN_MODEL and known is self._known["models"]):
                    values[at] = known.get(key)
                    if values[at] is None and at in required:
                        break
            else:
                found.append(tuple(values))
        return found


_REQUIRED: Final = frozenset({"session_key", "message_key"})
"""Columns without which a row is of nothing."""


def find_names(connection: Connection, batch: FeedBatch) -> Keys:
    """The keys of what many sessions share: each statement is a transaction of its own."""
    keys = Keys()
    for table in _NAMED_FIRST:
        columns = TABLES[table]
        rows = {row[0]: row for row in batch.rows.get(table, ())}
        identity = IDENTITY[table]
        for theirs, name in sorted(batch.names.get(table, {}).items(), key=itemgetter(1)):
            given = dict(zip(columns, rows[theirs], strict=True)) if theirs in rows else {}
            values = {**dict(zip(identity, name, strict=True)), **_own_values(table, given)}
            connection.execute(
                f"INSERT OR IGNORE INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
                tuple(values.values()),
            )
            keys.note(table, theirs, _find(connection, table, name))
    return keys


def _own_values(table: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a row has besides its identity and its references."""
    return {name: value for name, value in given.items() if name not in (*IDENTITY[table], "key", *KEYS)}


def _find(connection: Connection, table: str, name: Row) -> int:
    conditions = " AND ".join([f"{column} = ?" for column in IDENTITY[table]])
    (key,) = connection.execute(f"SELECT key FROM {table} WHERE {conditions}", name).fetchone()
    return key
