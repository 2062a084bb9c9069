"""Whose a session is follows its row, and a subagent is shown to those who are shown its parent."""

from __future__ import annotations

import psycopg

from turnlog.store.postgres.store import PostgresStore

SHARE = """
UPDATE turnlog.session_owners SET visibility = 'people' WHERE session_id = 'demo:a';
INSERT INTO turnlog.session_readers VALUES (1, 'demo:a', 'ben');
"""
OWN = "INSERT INTO turnlog.session_owners (team_key, session_id, owner_user) VALUES (1, %s, %s)"
CHILD = """
UPDATE turnlog.sessions SET relationship = 'subagent', parent_key = (
    SELECT key FROM turnlog.sessions WHERE external_id = 'a')
WHERE external_id = 'b'
"""


def shown(url: str) -> dict[str, tuple[str, str | None]]:
    query = """
        SELECT session_id, visibility, (SELECT reader FROM turnlog.session_readers r WHERE r.session_id = o.session_id)
        FROM turnlog.session_owners o
    """
    with psycopg.connect(url) as connection:
        return {row[0]: (row[1], row[2]) for row in connection.execute(query.encode())}


def test_a_subagent_has_the_readers_of_its_parent(store: PostgresStore) -> None:
    with psycopg.connect(store.url) as connection:
        for session_id in ("demo:a", "demo:b"):
            connection.execute(OWN.encode(), (session_id, "ana"))
        connection.execute(SHARE.encode())
    store.save_session("demo:a", title="parent")
    store.save_session("demo:b", title="child")
    assert shown(store.url)["demo:b"] == ("private", None)
    with psycopg.connect(store.url) as connection:
        connection.execute(CHILD.encode())
    assert shown(store.url)["demo:b"] == ("people", "ben")


def test_a_subagent_of_another_person_stays_private(store: PostgresStore) -> None:
    store.save_session("demo:a", title="parent")
    store.save_session("demo:b", title="child")
    with psycopg.connect(store.url) as connection:
        connection.execute(OWN.encode(), ("demo:a", "ana"))
        connection.execute(OWN.encode(), ("demo:b", "eve"))
        connection.execute(SHARE.encode())
        connection.execute(CHILD.encode())
    assert shown(store.url)["demo:b"] == ("private", None)


def test_the_owner_of_a_deleted_session_stays_known(store: PostgresStore) -> None:
    store.save_session("demo:a", title="mine")
    with psycopg.connect(store.url) as connection:
        connection.execute(OWN.encode(), ("demo:a", "ana"))
    store.forget("demo:a")
    with psycopg.connect(store.url) as connection:
        rows = connection.execute("SELECT owner_user, session_key FROM turnlog.session_owners").fetchall()
    assert rows == [("ana", None)]
