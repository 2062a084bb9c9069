"""A store that is opened for a viewer answers as if there were nothing else than what this one may see."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from support.postgres_stores import PostgresDatabases, push
from support.store_answers import ask, some_questions
from turnlog.store.postgres.dialect import UNIQUE
from turnlog.store.postgres.store import PostgresStore
from turnlog.store.postgres.visibility import HIDDEN, OPEN, POLICIES, protect
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[2] / "data"

AGENTS = sorted(agent for agent in DATA.iterdir() if agent.is_dir())


def made(path: Path, agents: list[Path]) -> Path:
    """A store of every tenth recorded case of these agents."""
    cases = sorted(case for agent in agents for case in agent.glob("*/*") if case.is_dir())
    sync(path, roots=cases[::10])
    return path


def all_ids(path: Path) -> list[str]:
    """The ids of all sessions of a store, also of empty ones, which no list has."""
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT agent || ':' || external_id FROM sessions")]


def add_owners(connection: psycopg.Connection, anas: list[str]) -> None:
    """Make everybody the owner of their sessions."""
    connection.execute(
        "INSERT INTO turnlog.session_owners (team_key, session_id, owner_user)"
        " SELECT team_key, id, CASE WHEN id = ANY(%s) THEN 'ana' ELSE 'ben' END"
        " FROM (SELECT team_key, agent || ':' || external_id AS id FROM turnlog.sessions) s",
        (anas,),
    )


@pytest.fixture(scope="module")
def stores(databases: PostgresDatabases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[PostgresStore]]:
    """A store of two people, and one in which only the first one's sessions are."""
    folder = tmp_path_factory.mktemp("people")
    anas, bens = made(folder / "ana.db", AGENTS[::2]), made(folder / "ben.db", AGENTS[1::2])
    with databases.store() as both, databases.store() as only:
        push(anas, both, name="ana")
        push(bens, both, name="ben")
        push(anas, only, name="ana")
        ids = all_ids(anas)
        with psycopg.connect(both.url, autocommit=True) as connection:
            protect(connection, both.name)
            add_owners(connection, ids)
            connection.execute("ANALYZE")
        # Files of no session are shown to nobody.
        with psycopg.connect(only.url, autocommit=True) as connection:
            add_owners(connection, ids)
            connection.execute(
                "DELETE FROM turnlog.sources s WHERE session_id IS NULL"
                " AND NOT EXISTS (SELECT FROM turnlog.memberships x WHERE x.source_key = s.key)"
                " AND NOT EXISTS (SELECT FROM turnlog.events x WHERE x.source_key = s.key)"
            )
            # Links to sessions that are not there neither: they may be somebody else's.
            connection.execute(
                "DELETE FROM turnlog.links l WHERE NOT EXISTS (SELECT FROM turnlog.sessions s"
                " WHERE s.agent || ':' || s.external_id = l.parent_id)"
            )
        yield [both, only]


def test_a_viewer_finds_everything_of_their_own_and_nothing_else(stores: list[PostgresStore]) -> None:
    both, only = stores
    with PostgresStore(both.database, viewer="ana") as seen:
        different = [str(each) for each in some_questions(only, every=6, most=10) if ask(seen, each) != ask(only, each)]
        assert different == []


def test_a_message_is_in_the_session_that_it_is_billed_to(stores: list[PostgresStore]) -> None:
    """Who sees that session sees the message, without a look at its places."""
    elsewhere = (
        "SELECT count(*), count(m.billed_key) FILTER (WHERE NOT EXISTS (SELECT FROM turnlog.memberships x"
        " WHERE x.team_key = m.team_key AND x.message_key = m.key AND x.session_key = m.billed_key))"
        " FROM turnlog.messages m"
    )
    for store in stores:
        with psycopg.connect(store.url) as connection:
            messages, wrong = connection.execute(elsewhere).fetchone() or (0, 0)
        assert messages > 100
        assert wrong == 0


def test_what_is_of_others_is_as_what_is_not_there(stores: list[PostgresStore]) -> None:
    both, only = stores
    with PostgresStore(both.database, viewer="ana") as seen, PostgresStore(both.database, viewer="ben") as his:
        questions = [each for each in some_questions(his, every=6, most=10) if each.args or each.kwargs]
        different = [str(each) for each in questions if ask(seen, each) != ask(only, each)]
        assert different == []


def test_nobody_sees_nothing(stores: list[PostgresStore], store: PostgresStore) -> None:
    with PostgresStore(stores[0].database, viewer="eve") as seen:
        different = [
            str(each) for each in some_questions(stores[1], every=20, most=3) if ask(seen, each) != ask(store, each)
        ]
        assert different == []


def test_the_reading_role_sees_nothing_where_no_viewer_is_named(stores: list[PostgresStore]) -> None:
    with psycopg.connect(stores[0].url) as connection:
        connection.execute("SET ROLE turnlog_reader")
        for table in sorted(POLICIES):
            # A change that is of no session, and the owner that stands for nobody, say nothing of anybody.
            where = {"changes": "WHERE session_key IS NOT NULL", "owners": "WHERE key <> 1"}.get(table, "")
            query = f"SELECT count(*) FROM turnlog.{table} {where}"
            assert connection.execute(query.encode()).fetchone() == (0,), table


@pytest.mark.parametrize(
    ("visibility", "reader", "viewers"),
    [
        ("private", None, {"ana"}),
        ("team", None, {"ana", "ben"}),
        ("people", "ben", {"ana", "ben"}),
        ("people", "eve", {"ana"}),
        ("private", "ben", {"ana"}),
        ("link", "link:1", {"ana", "link:1"}),
    ],
)
def test_a_session_is_shown_to_those_it_is_shared_with(
    visibility: str, reader: str | None, viewers: set[str], store: PostgresStore
) -> None:
    store.save_session("demo:a", title="hat")
    with psycopg.connect(store.url, autocommit=True) as connection:
        protect(connection, store.name)
        connection.execute(
            "INSERT INTO turnlog.session_owners (team_key, session_id, owner_user, visibility)"
            " VALUES (1, 'demo:a', 'ana', %s)",
            (visibility,),
        )
        if reader is not None:
            connection.execute("INSERT INTO turnlog.session_readers VALUES (1, 'demo:a', %s)", (reader,))
    found = {
        viewer
        for viewer in ("ana", "ben", "link:1", "link:2")
        if PostgresStore(store.database, viewer=viewer).sessions().items
    }
    assert found == viewers


def test_every_table_of_stores_is_seen_by_rule_or_open_or_hidden() -> None:
    assert sorted([*POLICIES, *OPEN, *HIDDEN]) == sorted(UNIQUE)


def test_an_id_that_is_none_is_refused(store: PostgresStore) -> None:
    with PostgresStore(store.database, viewer="x'; RESET ROLE; --") as seen, pytest.raises(ValueError, match="nobody"):
        seen.sessions()
