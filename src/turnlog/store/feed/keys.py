"""Keys of the store that a batch comes from, and those that its rows have in the store that takes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Final

from turnlog.store.feed.tables import in_chunks
from turnlog.store.feed.values import IDENTITY, KEYS, TABLES, UNKNOWN_MODEL, FeedBatch, Row

if TYPE_CHECKING:
    from turnlog.store.connection import Connection

_NAMED_FIRST: Final = ("models", "price_versions", "owners", "projects")
"""Tables whose rows are found or made before all others."""


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


def find_names(connection: Connection, batch: FeedBatch, wait_for_writers: Callable[[], object]) -> Keys:
    """The keys of what many sessions share, which are made where they are not here. The caller owns the transaction.

    Before it makes one, it waits for all who write numbers of changes: they make names, too, and would wait for this
    transaction while it waits for them.
    """
    keys = Keys()
    for table in _NAMED_FIRST:
        names = batch.names.get(table, {})
        known = _known(connection, table, names.values())
        missing = sorted({name for name in names.values() if name not in known})
        if missing:
            wait_for_writers()
            _make(connection, batch, table, missing)
            known |= _known(connection, table, missing)
        for theirs, name in names.items():
            keys.note(table, theirs, known[name])
    return keys


def stored_keys(connection: Connection, table: str, names: Iterable[Row], owner: str | None = None) -> dict[Row, int]:
    """Agent and id of sessions or messages -> their keys, for those that are here; messages of this owner, or any."""
    external_ids: dict[str, list[str]] = {}
    for agent, external_id in names:
        external_ids.setdefault(agent, []).append(external_id)
    owned, user = ("", ()) if owner is None else (" AND owner = ?", (owner,))
    found: dict[Row, int] = {}
    for agent, ids in sorted(external_ids.items()):
        for chunk in in_chunks(ids):
            rows = connection.execute(
                f"SELECT agent, external_id, key FROM {table} WHERE agent = ?"
                f" AND external_id IN (SELECT value FROM json_each(?)){owned}",
                (agent, chunk, *user),
            )
            found |= {(row[0], row[1]): row[2] for row in rows}
    return found


def _known(connection: Connection, table: str, names: Collection[Row]) -> dict[Row, int]:
    """The keys of those rows of a table with one of these names that are here."""
    identity = IDENTITY[table]
    found: dict[Row, int] = {}
    # Owners are few, and those of one user have one name.
    for chunk in in_chunks(sorted({name[0] for name in names})):
        rows = connection.execute(
            f"SELECT {', '.join(identity)}, key FROM {table} WHERE {identity[0]} IN (SELECT value FROM json_each(?))",
            (chunk,),
        )
        found |= {tuple(row[:-1]): row[-1] for row in rows}
    return found


def _make(connection: Connection, batch: FeedBatch, table: str, names: Collection[Row]) -> None:
    """Write rows with these names, unless somebody else just has."""
    columns, identity = TABLES[table], IDENTITY[table]
    places = [columns.index(column) for column in identity]
    rows = {tuple([row[at] for at in places]): row for row in batch.rows.get(table, ())}
    for name in names:
        given = dict(zip(columns, rows[name], strict=True)) if name in rows else {}
        values = {**dict(zip(identity, name, strict=True)), **_own_values(table, given)}
        connection.execute(
            f"INSERT OR IGNORE INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
            tuple(values.values()),
        )


def _own_values(table: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a row has besides its identity and its references."""
    return {name: value for name, value in given.items() if name not in (*IDENTITY[table], "key", *KEYS)}
