"""Rows of an agent's database that belong to no session: their session's row is missing or damaged.

No log of a session has them. The log of the database itself says how many there are and in which table, a line for each
column that leads nowhere; it has nothing of what they say, and not whose they are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from turnlog.agents.base import RowUpdate, StatelessFold
from turnlog.agents.changes import Changes, Diagnostic
from turnlog.agents.jsonl import JsonLines


class Belonging(NamedTuple):
    """A column without whose value a row is not read."""

    table: str
    column: str
    owners: str | None = None
    """The table with the row that the value names; None: the value itself is the id of a session."""
    key: str = "id"
    """The column of `owners` with that value."""
    excluded: str = "#"
    """Characters that the id of a session cannot have, because paths of sources would be ambiguous."""
    others: tuple[str, ...] = ()
    """Further tables of other versions that may have the row that the value names."""


class StrayRows(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line. Every field has a default, because a damaged line may lack any."""

    strays: str = ""
    """The table."""
    column: str = ""
    owners: str | None = None
    rows: int = 0


_LINES = JsonLines(StrayRows, first_keys=("strays",), plausible=lambda line: bool(line.strays))

_encode = msgspec.json.Encoder().encode


def stray_rows(connection: sqlite3.Connection, belongings: Sequence[Belonging], log: Iterable[bytes]) -> RowUpdate:
    """The rows of a database that belong to no session, if they are not what its log says."""
    found = (_strays(connection, each) for each in belongings if _has(connection, each))
    lines = [_encode(each) + b"\n" for each in found if each.rows]
    return RowUpdate() if b"".join(log) == b"".join(lines) else RowUpdate(lines=lines, anew=True)


def _has(connection: sqlite3.Connection, belonging: Belonging) -> bool:
    """Whether this version of the database has what is compared."""
    is_there = belonging.column in _columns(connection, belonging.table)
    return is_there and (belonging.owners is None or bool(_owners(connection, belonging)))


def _owners(connection: sqlite3.Connection, belonging: Belonging) -> list[str]:
    """The tables of this version that have the rows that are named."""
    tables = (belonging.owners, *belonging.others) if belonging.owners else ()
    return [table for table in tables if belonging.key in _columns(connection, table)]


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    listed = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    if connection.execute(listed, (table,)).fetchone() is None:
        return set()
    return {column[0] for column in connection.execute(f'SELECT * FROM "{table}" LIMIT 0').description}


def _strays(connection: sqlite3.Connection, belonging: Belonging) -> StrayRows:
    table, column, _, key, excluded, _ = belonging
    owners = _owners(connection, belonging)
    # Not GLOB, which ends at the first NUL.
    has_excluded = " OR ".join(f"instr(value, '{each}')" for each in excluded)
    leads_nowhere = (
        f"typeof(value) <> 'text' OR value = '' OR {has_excluded}"
        if not owners
        else " AND ".join(f'NOT EXISTS (SELECT 1 FROM "{each}" WHERE "{key}" = value)' for each in owners)
    )
    # Grouped, which an index on the column does alone: many rows have the same value.
    counted = f'SELECT "{column}" AS value, count(*) AS count FROM "{table}" GROUP BY "{column}"'
    (rows,) = connection.execute(f"SELECT coalesce(sum(count), 0) FROM ({counted}) WHERE {leads_nowhere}").fetchone()
    return StrayRows(table, column, " or ".join(owners) or None, rows)


class StraysFold(StatelessFold):
    """Reads the log of a database, which is written anew each time: each line is a diagnostic."""

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        changes.diagnostics += self._diagnostics(data, offset, changes)
        return changes

    def _diagnostics(self, data: bytes, offset: int, changes: Changes) -> Iterator[Diagnostic]:
        for line, _json, position, length, number in _LINES.read(data, offset, 1, changes):
            changes.counts.unreadable += 1
            yield Diagnostic(
                offset=position,
                length=length,
                line=number,
                json_path=f"{line.strays}.{line.column}",
                reason=f"{_rows(line.rows)} to no session: {_why(line)}",
            )


def _rows(count: int) -> str:
    return "1 row belongs" if count == 1 else f"{count} rows belong"


def _why(line: StrayRows) -> str:
    if line.owners is None:
        return f"{line.column} in {line.strays} is no id of a session"
    return f"{line.column} in {line.strays} names nothing in {line.owners}"
