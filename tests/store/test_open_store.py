from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.errors import NotFoundError, SchemaTooNewError, StoreError
from turnlog.model import Message
from turnlog.paths import database_path
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.store.connection import schema_version
from turnlog.store.sqlite.reading import Connections


def path_of(store: object) -> Path:
    assert isinstance(store, Connections)
    return store.path


@pytest.fixture(params=["path", "text", "url"])
def named(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    path = tmp_path / "new" / "turnlog.db"
    return {"path": path, "text": str(path), "url": f"sqlite:///{path}"}[request.param]


def test_a_store_is_made_where_it_is_named(named: str | Path, tmp_path: Path) -> None:
    with open_store(named, create=True) as store:
        assert path_of(store) == tmp_path / "new" / "turnlog.db"
        assert store.sessions().items == ()
    assert (tmp_path / "new" / "turnlog.db").is_file()


def test_a_url_with_three_slashes_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite:///turnlog.db", create=True):
        pass
    assert (tmp_path / "turnlog.db").is_file()


def test_without_a_name_it_is_the_users_own(home: Path) -> None:
    with open_store() as store:
        assert path_of(store) == database_path()
        assert database_path().is_relative_to(home)


def test_other_databases_are_refused() -> None:
    with pytest.raises(StoreError, match="mysql stores are not supported"):
        open_store("mysql://localhost/turnlog")


@pytest.mark.parametrize("name", ["", ".", "/", "sqlite:///"])
def test_what_names_no_file_is_refused(name: str) -> None:
    with pytest.raises(StoreError, match="names no file"):
        open_store(name)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database, though long enough to be read as one " * 100)
    with pytest.raises(StoreError, match=r"notes\.txt"):
        open_store(file)


def test_an_older_store_is_brought_up_when_it_is_opened(tmp_path: Path) -> None:
    """R-S30: migrations go forwards; an empty file is a store of the oldest schema there is."""
    path = tmp_path / "old.db"
    path.touch()
    with open_store(path, create=True) as store:
        assert store.sessions().items == ()
        assert store.status().schema_version == schema_version()


def test_a_newer_schema_is_a_clear_error(tmp_path: Path) -> None:
    """R-S30."""
    path = tmp_path / "turnlog.db"
    open_store(path, create=True).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    with pytest.raises(SchemaTooNewError, match="newer turnlog"):
        open_store(path)


def test_a_closed_store_answers_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path / "turnlog.db", create=True)
    store.sessions()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.sessions()


def test_many_threads_read_at_once_while_one_writes(tmp_path: Path) -> None:
    home, path = tmp_path / "home", tmp_path / "turnlog.db"
    home.mkdir()
    log = Log(home, "one")
    problems: list[Exception] = []
    seen: set[int] = set()

    def read() -> None:
        try:
            for _ in range(30):
                try:
                    messages = store.messages("plain:one")
                except NotFoundError:
                    continue
                assert [placed.membership.position for placed in messages] == sorted(
                    placed.membership.position for placed in messages
                )
                seen.add(len(messages))
        except Exception as error:
            problems.append(error)

    with open_store(path, create=True) as store:
        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        for number in range(10):
            log.message(Message(id=f"m{number}", role="user", created_at=at(number)))
            read_home(path, home)
        for reader in readers:
            reader.join()
        assert len(store.messages("plain:one")) == 10
    assert problems == []
    assert seen <= set(range(11))


def test_the_connections_of_threads_that_ended_are_closed(tmp_path: Path) -> None:
    with open_store(tmp_path / "turnlog.db", create=True) as store:
        for _ in range(5):
            thread = threading.Thread(target=store.status)
            thread.start()
            thread.join()
        store.status()
        assert isinstance(store, Connections)
        assert len(store._connections) == 1  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose


def test_a_path_without_a_store_is_a_mistake_unless_one_is_to_be_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no store at .*typo\.db: open_store\(.*, create=True\) makes one"):
        open_store(tmp_path / "typo.db")
    assert list(tmp_path.iterdir()) == []


def test_what_names_no_store_is_a_wrong_type() -> None:
    with pytest.raises(TypeError, match=r"store cannot be 5 \(int\): expected a path, a URL or None"):
        open_store(5)  # pyright: ignore[reportArgumentType]  # the mistake


def test_imports_of_one_query_are_enough_for_every_other(tmp_path: Path) -> None:
    log = Log(tmp_path, "one")
    log.message(Message(id="m", role="user", created_at=at(0)))
    read_home(tmp_path / "turnlog.db", tmp_path)
    queries: list[Callable[[Store], object]] = [
        lambda store: store.usage("day").totals.calls,
        lambda store: [session.id for session in store.sessions().items],
        lambda store: len(store.messages("plain:one")),
        lambda store: store.agents()[0].agent,
        lambda store: len(store.insights().tools),
        lambda store: list(store.turn_facts(["plain:one"])),
        lambda store: store.spending(at(0)).block,
    ]
    with open_store(tmp_path / "turnlog.db") as store:
        expected = [query(store) for query in queries]
    for first, second in permutations(range(len(queries)), 2):
        with open_store(tmp_path / "turnlog.db") as store:
            assert [queries[first](store), queries[second](store)] == [expected[first], expected[second]]
