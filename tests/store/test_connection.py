"""R-S29, R-S30: opening stores, schema versions, transactions."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest

from turnlog.errors import SchemaTooNewError, StoreBusyError, StoreError
from turnlog.model import Part
from turnlog.store import connection as module
from turnlog.store.connection import (
    connect,
    schema_version,
    without_indexes,
    write_transaction,
)
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.write_lock import use_write_ahead_log

pytestmark = pytest.mark.usefixtures("stores_from_scripts")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "store.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(path)) as found:
        yield found


def pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def index_names(connection: sqlite3.Connection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")}


@pytest.mark.parametrize("table", ["messages", "parts", "memberships", "events"])
def test_no_index_makes_a_table_for_every_row_that_is_written(connection: sqlite3.Connection, table: str) -> None:
    """SQLite does that for three values in an IN of a condition, for each of a hundred thousand parts."""
    steps = [row[1] for row in connection.execute(f"EXPLAIN INSERT INTO {table} DEFAULT VALUES")]
    assert "Insert" in steps
    assert "OpenEphemeral" not in steps


def test_a_new_store_has_the_newest_schema_and_what_it_needs_to_be_safe(
    connection: sqlite3.Connection, path: Path
) -> None:
    """R-S30: the schema has a version. R-S29: foreign keys are on."""
    assert pragma(connection, "user_version") == schema_version() >= 1
    assert pragma(connection, "foreign_keys") == 1
    assert pragma(connection, "journal_mode") == "wal"
    assert pragma(connection, "page_size") == module.PAGE_SIZE
    assert path.parent.stat().st_mode & 0o077 == 0


def test_only_its_user_may_read_a_store(tmp_path: Path) -> None:
    """Also in a folder that everybody may look into, and with it what SQLite writes beside it."""
    path = tmp_path / "store.db"
    with closing(connect(path)), Indexer(path, search_path(path)) as indexer:
        indexer.catch_up()
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    databases = (path.name, search_path(path).name)
    assert {name: 0o600 for name in databases for name in (name, f"{name}-wal", f"{name}-shm")} == modes


def test_the_mode_that_somebody_gave_a_store_is_kept(path: Path) -> None:
    connect(path).close()
    path.chmod(0o640)
    connect(path).close()
    assert path.stat().st_mode & 0o777 == 0o640


def test_every_table_is_strict(connection: sqlite3.Connection) -> None:
    rows = connection.execute("SELECT name, strict FROM pragma_table_list WHERE name NOT LIKE 'sqlite_%'").fetchall()
    assert len(rows) > 15
    assert [name for name, strict in rows if not strict] == []


def test_opening_again_changes_nothing(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("INSERT INTO projects (path, name) VALUES ('/a', 'a')")
    before = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    with closing(connect(path)) as again:
        assert again.execute("SELECT type, name, sql FROM sqlite_schema").fetchall() == before
        assert again.execute("SELECT path FROM projects").fetchall() == [("/a",)]


def test_a_store_of_a_newer_turnlog_is_refused_and_left_alone(connection: sqlite3.Connection, path: Path) -> None:
    """R-S30: opening a newer schema is a clear error."""
    connection.execute(f"PRAGMA user_version = {schema_version() + 3}")
    for read_only in (False, True):
        with pytest.raises(SchemaTooNewError, match="newer turnlog") as caught:
            connect(path, read_only=read_only)
        assert (caught.value.found, caught.value.supported) == (schema_version() + 3, schema_version())
    assert pragma(connection, "user_version") == schema_version() + 3


@pytest.mark.parametrize("content", [b"no database at all, but long enough to have a header " * 20, b"short"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(StoreError, match="not a database"):
            connect(path, read_only=read_only)
    assert path.read_bytes() == content


@pytest.mark.parametrize("version", [0, 1, 57])
def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
        other.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreError, match="something else"):
            connect(path, read_only=read_only)
    assert path.read_bytes() == before


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot open the store"):
        connect(tmp_path)


def test_a_place_that_cannot_be_made_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="cannot open the store"):
        connect(tmp_path / "file" / "store.db")


def test_reading_needs_a_store_and_makes_none(path: Path) -> None:
    with pytest.raises(StoreError, match="cannot open the store"):
        connect(path, read_only=True)
    assert not path.exists()


def test_an_empty_file_becomes_a_store_only_by_writing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"")
    with pytest.raises(StoreError, match="older schema 0"):
        connect(path, read_only=True)
    connect(path).close()
    connect(path, read_only=True).close()


def test_a_reader_cannot_write(connection: sqlite3.Connection, path: Path) -> None:
    with closing(connect(path, read_only=True)) as reader:
        assert pragma(reader, "foreign_keys") == 1
        with pytest.raises(StoreError, match=f"cannot write to the store {path}: attempt to write a readonly database"):
            write(reader, "DELETE FROM projects")


def test_a_store_in_a_folder_that_is_only_read_is_read_as_it_lies(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite would make a log and an index of it even for a reader, and fail where it cannot."""
    connect(path).close()

    def may_not(place: Path, mode: int) -> bool:
        return False

    monkeypatch.setattr(os, "access", may_not)
    with closing(connect(path, read_only=True)) as reader:
        assert reader.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
        assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_every_migration_has_a_number_of_its_own() -> None:
    """Of two scripts with one number, one would never run."""
    folder = Path(module.__file__).parent / "migrations"
    numbers = [int(script.name.partition("_")[0]) for script in folder.glob("*.sql")]
    assert sorted(numbers) == list(range(1, schema_version() + 1))


def test_migrations_run_once_and_in_order(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-S30: forward migrations. Each is a transaction with its number: a broken one leaves the store before it."""
    first = dict(module._migrations())  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    connect(path).close()
    newest = max(first)
    more, third = path.with_name("more.sql"), path.with_name("third.sql")
    more.write_text("CREATE TABLE more (a TEXT) STRICT;\n-- one; two\nINSERT INTO more VALUES ('x;y');\n")
    third.write_text("CREATE TABLE third (a TEXT) STRICT;\nINSERT INTO nowhere VALUES (1);\n")
    second, broken = {newest + 1: more}, {newest + 2: third}
    monkeypatch.setattr(module, "_migrations", lambda: {**broken, **second, **first})
    with pytest.raises(StoreError, match="nowhere"):
        connect(path)
    monkeypatch.setattr(module, "_migrations", lambda: {**second, **first})
    with closing(connect(path)) as connection:
        assert pragma(connection, "user_version") == newest + 1
        assert connection.execute("SELECT a FROM more").fetchall() == [("x;y",)]
        assert connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'third'").fetchone() is None


def test_a_part_is_of_a_kind_of_the_model(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-S26: the type is checked, in a store that was made before it was too."""
    every = dict(module._migrations())  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    monkeypatch.setattr(module, "_migrations", lambda: {number: every[number] for number in every if number < 11})
    indexes = module._index_statements  # pyright: ignore[reportPrivateUsage]  # as above
    monkeypatch.setattr(module, "_index_statements", list)  # they are of the newest schema
    insert = "INSERT INTO parts (message_key, sequence, type, tool_name) VALUES (1, ?, ?, 'Read')"
    kinds = [kind.type for kind in get_args(Part)]
    with closing(connect(path, checked=False)) as connection:
        connection.executemany(insert, enumerate(kinds[1:], start=1))
    monkeypatch.setattr(module, "_migrations", lambda: every)
    monkeypatch.setattr(module, "_index_statements", indexes)
    with closing(connect(path, checked=False)) as connection:
        connection.execute(insert, (0, kinds[0]))
        with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
            connection.execute(insert, (len(kinds), "something"))
        rows = connection.execute("SELECT sequence, type, tool_name FROM parts ORDER BY sequence").fetchall()
        assert rows == [(number, kind, "Read") for number, kind in enumerate(kinds)]
        assert "parts_by_type" in index_names(connection)


def test_a_store_keeps_what_was_in_columns_with_other_names(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-S30: a store that was made before columns were renamed opens as before, with all that is in it."""
    every = dict(module._migrations())  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    monkeypatch.setattr(module, "_migrations", lambda: {number: every[number] for number in every if number < 16})
    monkeypatch.setattr(module, "_index_statements", list)  # they are of the newest schema
    with closing(connect(path, checked=False)) as connection:
        connection.execute(
            "INSERT INTO sessions (key, agent, external_id, relink, patch_position) VALUES (7, 'toy', 's', 1, 99)"
        )
        connection.execute(
            "INSERT INTO messages"
            " (key, agent, external_id, role, changed_seq, pays_key, frame_key, frame_size, body_size)"
            " VALUES (1, 'toy', 'm', 'user', 1, 7, 0, 0, 0)"
        )
    monkeypatch.setattr(module, "_migrations", lambda: every)
    with closing(connect(path)) as connection:
        assert connection.execute("SELECT billed_key FROM messages").fetchall() == [(7,)]
        assert connection.execute("SELECT has_branches, facts_position FROM sessions").fetchall() == [(1, 99)]
        connection.execute("DELETE FROM sessions")
        assert connection.execute("SELECT billed_key FROM messages").fetchall() == [(None,)], "the reference is kept"


def test_a_session_known_from_hooks_says_so_under_the_new_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-S30: metadata of an older store is renamed; that of other sessions is kept to the byte."""
    every = dict(module._migrations())  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    monkeypatch.setattr(module, "_migrations", lambda: {number: every[number] for number in every if number < 18})
    monkeypatch.setattr(module, "_index_statements", list)  # they are of the newest schema
    old = [('{"told_by":"hooks"}',), ('{"told_by": "a friend"}',), ('{"nested":{"told_by":"hooks"}}',), (None,)]
    with closing(connect(path, checked=False)) as connection:
        insert = "INSERT INTO sessions (agent, external_id, metadata) VALUES ('toy', hex(randomblob(9)), ?)"
        connection.executemany(insert, old)
    monkeypatch.setattr(module, "_migrations", lambda: every)
    with closing(connect(path)) as connection:
        rows = connection.execute("SELECT metadata FROM sessions ORDER BY key").fetchall()
    assert rows == [('{"known_from":"hooks"}',), *old[1:]]


def test_subagents_of_an_older_store_get_the_project_of_their_parent(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-S30: a subagent without a folder gets that of its nearest ancestor, and search knows it; HEAD is dropped."""
    every = dict(module._migrations())  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    monkeypatch.setattr(module, "_migrations", lambda: {number: every[number] for number in every if number < 20})
    monkeypatch.setattr(module, "_index_statements", list)  # they are of the newest schema
    with closing(connect(path, checked=False)) as connection:
        connection.execute(
            "INSERT INTO projects (key, path, name) VALUES (5, '/w/shop', 'shop'), (6, '/w/till', 'till')"
        )
        connection.executemany(
            "INSERT INTO sessions (key, agent, external_id, project_key, parent_key, relationship, git_branch)"
            " VALUES (?, 'toy', hex(randomblob(9)), ?, ?, ?, ?)",
            [
                (1, 5, None, None, "HEAD"),
                (2, None, 1, "subagent", "main"),
                (3, None, 2, "subagent", None),
                (4, 6, 1, "subagent", None),
                (7, None, 1, "fork", None),
                (8, None, None, None, None),
            ],
        )
        connection.execute("DELETE FROM changes")
    monkeypatch.setattr(module, "_migrations", lambda: every)
    with closing(connect(path)) as connection:
        rows = connection.execute("SELECT key, folder_key, project_key, git_branch FROM sessions").fetchall()
        changed = connection.execute("SELECT session_key, kind FROM changes").fetchall()
    assert rows == [
        (1, 5, 5, None),
        (2, None, 5, "main"),
        (3, None, 5, None),
        (4, 6, 6, None),
        (7, None, None, None),
        (8, None, None, None),
    ]
    assert changed == [(2, "session"), (3, "session")]


def test_sessions_of_an_older_store_get_their_active_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-S30: without gaps of more than ten minutes, and without copied messages; unknown without times."""
    every = dict(module._migrations())  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    monkeypatch.setattr(module, "_migrations", lambda: {number: every[number] for number in every if number < 23})
    monkeypatch.setattr(module, "_index_statements", list)  # they are of the newest schema
    minute = 60_000
    times = [0, 3 * minute, None, 20 * minute, 25 * minute, 26 * minute]
    with closing(connect(path, checked=False)) as connection:
        connection.execute("INSERT INTO sessions (key, agent, external_id) VALUES (1, 'toy', 's'), (2, 'toy', 'none')")
        connection.executemany(
            "INSERT INTO messages (key, agent, external_id, role, changed_seq, frame_size, body_size, created_at)"
            " VALUES (?1, 'toy', ?1, 'user', 1, 0, 0, ?2)",
            enumerate(times),
        )
        connection.executemany(
            "INSERT INTO memberships (session_key, position, message_key, copied) VALUES (1, ?1, ?1, ?1 = 5)",
            [(number,) for number in range(len(times))],
        )
    monkeypatch.setattr(module, "_migrations", lambda: every)
    with closing(connect(path)) as connection:
        rows = connection.execute("SELECT active_ms, active_since, active_until FROM sessions").fetchall()
    assert rows == [(8 * minute, 20 * minute, 25 * minute), (None, None, None)]


def test_many_may_open_a_new_store_at_once(path: Path) -> None:
    """One migrates, the others wait for it."""
    failures: list[Exception] = []
    barrier = threading.Barrier(6)

    def open_it() -> None:
        barrier.wait()
        try:
            connect(path).close()
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with closing(connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM owners").fetchone() == (1,)


class LockedAtFirst(sqlite3.Connection):
    """Answers "locked" to its first statements, as SQLite does while others turn the same new file to its log."""

    refusals = 2

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if self.refusals:
            self.refusals -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return super().execute(statement, *values)


def test_a_new_file_that_others_open_too_is_tried_again(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "new.db", factory=LockedAtFirst)) as connection:
        use_write_ahead_log(connection, 10)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_that_stays_locked_is_an_error(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "new.db", factory=LockedAtFirst)) as connection:
        connection.refusals = 1000
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            use_write_ahead_log(connection, 0.05)


def write(connection: sqlite3.Connection, *statements: str, then: BaseException | None = None) -> None:
    """A transaction of these statements, that fails in the end if it gets an error."""
    with write_transaction(connection):
        for statement in statements:
            connection.execute(statement)
        if then is not None:
            raise then


def test_a_transaction_is_kept_whole_or_not_at_all(connection: sqlite3.Connection) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(connection, "INSERT INTO projects (path, name) VALUES ('/a', 'a')", then=KeyboardInterrupt())
    write(connection, "INSERT INTO projects (path, name) VALUES ('/b', 'b')")
    assert connection.execute("SELECT path FROM projects").fetchall() == [("/b",)]
    assert not connection.in_transaction


def test_a_commit_that_fails_leaves_no_transaction_behind(connection: sqlite3.Connection) -> None:
    """Foreign keys may be checked as late as the commit."""
    dangling = "INSERT INTO sessions (agent, external_id, project_key) VALUES ('a', 'b', 99)"
    with pytest.raises(sqlite3.IntegrityError):
        write(connection, "PRAGMA defer_foreign_keys = ON", dangling)
    assert not connection.in_transaction
    write(connection)
    assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (0,)


def test_the_error_that_ended_a_transaction_is_raised(connection: sqlite3.Connection) -> None:
    with pytest.raises(StoreError, match="disk full"):
        write(connection, "ROLLBACK", then=sqlite3.OperationalError("disk full"))


def test_an_import_checks_no_foreign_keys(path: Path) -> None:
    with closing(connect(path, checked=False)) as connection:
        assert pragma(connection, "foreign_keys") == 0


def test_a_writer_that_waits_too_long_gets_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUSY_TIMEOUT_SECONDS", 0.05)
    with closing(connect(path)) as one, closing(connect(path)) as other:
        with write_transaction(one), pytest.raises(StoreBusyError), write_transaction(other):
            pass
        with write_transaction(other):
            pass


def test_indexes_for_questions_come_back_after_a_large_import(connection: sqlite3.Connection, path: Path) -> None:
    before = index_names(connection)
    with without_indexes(connection):
        assert {"parts_by_tool", "messages_with_tools"} <= before - index_names(connection)
    assert index_names(connection) == before
    assert [file.name for file in path.parent.iterdir() if file.name.endswith("-import")] == []


def test_nobody_makes_indexes_during_somebody_elses_first_import(connection: sqlite3.Connection, path: Path) -> None:
    before = index_names(connection)
    with without_indexes(connection):
        with closing(connect(path)) as other:
            assert "parts_by_tool" not in index_names(other)
            with without_indexes(other):
                pass
        assert "parts_by_tool" not in index_names(connection)
    assert index_names(connection) == before


def test_indexes_that_a_killed_import_left_out_are_made_by_the_next_writer(path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from turnlog.store.connection import connect, without_indexes\n"
        "connection = connect(Path(sys.argv[1]))\n"
        "with without_indexes(connection): os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == 9
    with closing(connect(path, read_only=True)) as reader:
        assert "parts_by_tool" not in index_names(reader)
    with closing(connect(path)) as writer:
        assert "parts_by_tool" in index_names(writer)
