from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psycopg
import pytest

from support.postgres_stores import PostgresDatabases
from turnlog.errors import SchemaTooNewError, StoreError
from turnlog.store import open_store
from turnlog.store.postgres import schema
from turnlog.store.postgres.store import PostgresStore


def test_a_store_is_made_only_where_that_is_requested(databases: PostgresDatabases) -> None:
    url = databases.server.url(databases.server.new_database())
    with pytest.raises(StoreError, match=r"there is no store at .*create=True"):
        open_store(url)
    with open_store(url, create=True) as store:
        store.save_session("demo:a", title="kept")
    with open_store(url) as store:
        assert store.session("demo:a").title == "kept"
        assert store.status().schema_version == schema.schema_version()


def test_many_that_open_at_once_make_one_store(databases: PostgresDatabases) -> None:
    url = databases.server.url(databases.server.new_database())
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(partial(PostgresStore, create=True), [url] * 4))
    assert len({store.id for store in stores}) == 1
    for store in stores:
        store.close()


def test_a_store_of_a_newer_version_is_refused_and_left_alone(databases: PostgresDatabases) -> None:
    url = databases.url()
    newer = schema.schema_version() + 1
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE turnlog.schema_version SET version = %s", (newer,))
    with pytest.raises(SchemaTooNewError, match=f"written by a newer turnlog \\(schema {newer}"):
        open_store(url, create=True)


def test_a_migration_runs_once_and_keeps_the_rows(
    databases: PostgresDatabases, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, last = tmp_path_factory.mktemp("migrations"), schema.schema_version()
    script = folder / f"{last + 1:04}_more.sql"
    script.write_text("ALTER TABLE turnlog.runs ADD COLUMN more text NOT NULL DEFAULT 'x';")
    url = databases.url()
    with open_store(url) as store:
        store.save_session("demo:a", title="kept")
    known = {number: path for number, path in schema.migrations().items()}
    monkeypatch.setattr(schema, "migrations", lambda: {**known, last + 1: script})
    for _ in range(2):
        with open_store(url) as store:
            assert store.session("demo:a").title == "kept"
            assert store.status().schema_version == last + 1


def test_a_database_that_is_not_there_is_a_clear_error(databases: PostgresDatabases) -> None:
    with pytest.raises(StoreError, match='database "nobody" does not exist'):
        open_store(databases.server.url("nobody"))
    with pytest.raises(StoreError, match=r"cannot open the store .*host=127\.0\.0\.1"):
        open_store("postgresql://ann:secret@127.0.0.1:1/turnlog")


def test_no_error_and_no_status_has_the_password(databases: PostgresDatabases) -> None:
    with pytest.raises(StoreError) as raised:
        open_store("postgresql://ann:secret@127.0.0.1:1/turnlog")
    assert "secret" not in str(raised.value)
    with open_store(f"{databases.url()}&password=secret") as store:
        assert "secret" not in store.status().path


def test_a_store_beside_tables_of_others_leaves_them_alone(databases: PostgresDatabases) -> None:
    url = databases.server.url(databases.server.new_database())
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE messages (of_somebody_else text)")
    with open_store(url, create=True) as store:
        assert store.sessions().items == ()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (0,)


def test_a_closed_store_says_so(databases: PostgresDatabases) -> None:
    store = open_store(databases.url())
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.sessions()
