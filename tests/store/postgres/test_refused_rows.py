"""A row that no copy for search takes keeps nothing else from being found."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from support.postgres_stores import push
from support.toy_store import ToyStore
from turnlog.store.postgres.search import SearchReplica, path_of_copy
from turnlog.store.postgres.store import PostgresStore

ROW = b'{"kind":"text","id":"%b","message":"%b","role":"user","text":"walnut %b","cwd":"/work/%b"}\n'
SPOILED = {
    "sources": ("root", "path LIKE '%/b.log'"),
    "generations": ("started_at", "source_key = (SELECT key FROM turnlog.sources WHERE path LIKE '%/a.log')"),
    "projects": ("name", "path = '/work/b'"),
    "links": ("agent", "child_id = 'toy:c'"),
}
"""Table -> a column that becomes NULL, and in which row."""


@pytest.mark.parametrize("tables", [("sources",), ("generations",), ("projects",), ("links",), tuple(SPOILED)], ids=str)
def test_a_bad_row_of_what_many_share_is_left_out_alone(
    store: PostgresStore, tmp_path: Path, caplog: pytest.LogCaptureFixture, tables: tuple[str, ...]
) -> None:
    with ToyStore(tmp_path) as toy:
        for name in (b"a", b"b", b"d"):
            toy.add(f"{name.decode()}.log", ROW % (name, name, name, name))
        for name in (b"c", b"e"):
            toy.add(f"{name.decode()}.sub", b'{"kind":"origin","session":"toy:a"}\n', ROW % (name, name, name, b"a"))
    push(toy.path, store)
    spoil(store, tables)
    with SearchReplica(store, tmp_path) as replica:
        replica.follow()
        found = sorted(hit.message_id for hit in replica.search("walnut").hits)
        assert (found, replica.left_out) == ([*"abcde"], frozenset())
    (said,) = caplog.messages
    lacking = ", ".join(
        f"1 row of {table}" for table in ("projects", "sources", "generations", "links") if table in tables
    )
    assert said.startswith(f"search lacks {lacking} that cannot be copied: "), said
    with closing(sqlite3.connect(path_of_copy(store, tmp_path))) as copy:
        for table, number in (("sources", 5), ("links", 2), ("projects", 3)):
            (kept,) = copy.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert kept == number - (table in tables), table


def spoil(store: PostgresStore, tables: tuple[str, ...]) -> None:
    with psycopg.connect(store.url) as database:
        for table in tables:
            column, which = SPOILED[table]
            database.execute(f"ALTER TABLE turnlog.{table} ALTER {column} DROP NOT NULL".encode())
            changed = database.execute(f"UPDATE turnlog.{table} SET {column} = NULL WHERE {which}".encode())
            assert changed.rowcount == 1
