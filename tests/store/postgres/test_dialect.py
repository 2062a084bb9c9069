from __future__ import annotations

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from support.postgres_stores import PostgresDatabases
from support.store_answers import Questions, ask
from turnlog.store.postgres.dialect import UNIQUE, translate
from turnlog.store.postgres.store import PostgresStore
from turnlog.store.postgres.values import escape, unescape


@pytest.mark.parametrize(
    ("sqlite", "postgres"),
    [
        ("SELECT a IS NOT 'x' FROM runs", "IS DISTINCT FROM 'x'"),
        ("SELECT sum(a = 1) FROM runs", 'SUM(CAST(("a" = 1) AS INT))'),
        ("SELECT 1 FROM runs WHERE native AND 1", '"native" <> 0 AND 1 <> 0'),
        ("SELECT 1 FROM runs WHERE key IN ()", "WHERE FALSE"),
        ("SELECT 1 FROM runs LIMIT ?", "NULLIF($1, -1)"),
        ("SELECT 1 FROM runs WHERE a LIKE ?", "ILIKE $1 ESCAPE ''"),
        ("INSERT OR IGNORE INTO models (name) VALUES (?)", "VALUES (7, $1) ON CONFLICT DO NOTHING"),
        ("DELETE FROM runs WHERE id = ?", '"runs"."team_key" = 7'),
        ("UPDATE runs SET id = ?2 WHERE id = ?1", '"id" = $2 '),
    ],
)
def test_what_sqlite_writes_otherwise(sqlite: str, postgres: str) -> None:
    if postgres == '"id" = $2 ':  # numbered in the order of the text
        assert translate(sqlite, 7).names == (1, 0)
    else:
        assert postgres in translate(sqlite, 7).sql


def test_parameters_are_numbered_as_they_are_in_the_text() -> None:
    statement = translate("SELECT '?', :a FROM runs WHERE x = ? AND y = :a AND z = ?2 LIMIT ?", 1)
    assert statement.names == ("a", 0, 1)


@pytest.mark.parametrize("table", UNIQUE)
def test_no_statement_reads_or_writes_a_table_without_the_team(table: str) -> None:
    columns = [name for name in UNIQUE[table]]
    for statement in (
        f"SELECT * FROM {table} a JOIN {table} b ON a.x = b.x WHERE EXISTS (SELECT 1 FROM {table})",
        f"WITH w AS (SELECT x FROM {table}) SELECT x FROM w UNION SELECT x FROM {table}",
        f"UPDATE {table} SET x = (SELECT max(x) FROM {table})",
        f"DELETE FROM {table} WHERE x IN (SELECT x FROM {table})",
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join('x' for _ in columns)} FROM {table}",
    ):
        tree = sqlglot.parse_one(translate(statement, 7).sql, read="postgres")
        named = [found for found in tree.find_all(exp.Table) if found.db == "turnlog"]
        assert named
        assert all(_is_limited(found) for found in named), translate(statement, 7).sql


def _is_limited(table: exp.Table) -> bool:
    """Whether the rows of a table in a statement are those of team 7."""
    parent = table.parent
    if isinstance(parent, exp.Schema):
        insert = parent.parent
        assert isinstance(insert, exp.Insert)
        return parent.expressions[0].name == "team_key" and insert.expression.expressions[0].sql() == "7"
    holder = parent.parent if isinstance(parent, exp.From) else parent
    assert holder is not None
    where = holder.args.get("where")
    return where is not None and any(
        found.this.name == "team_key" and found.expression.sql() == "7" for found in where.find_all(exp.EQ)
    )


def test_two_teams_in_one_database_see_nothing_of_each_other(databases: PostgresDatabases) -> None:
    url = databases.url()
    with PostgresStore(url) as one:
        with one.reading():
            pass
        import psycopg

        with psycopg.connect(url) as connection:
            connection.execute("SELECT turnlog.begin_team(2)")
        with PostgresStore(url, team=2) as two:
            one.save_session("demo:a", title="of one", cwd="/home/dev/one")
            questions = [*Questions(one)]
            assert two.sessions().items == ()
            assert two.projects() == []
            assert two.last_change() == 0
            two.save_session("demo:a", title="of two", cwd="/home/dev/one")
            assert one.session("demo:a").title == "of one"
            assert two.forget("demo:a").session_ids == ("demo:a",)
            assert one.session("demo:a").title == "of one"
            assert len([question for question in questions if ask(one, question)]) > 10


@given(st.text(), st.text())
def test_texts_keep_their_order_and_come_back(one: str, other: str) -> None:
    assert unescape(escape(one)) == one
    assert "\0" not in escape(one)
    assert (escape(one) < escape(other)) == (one < other)


def test_case_is_folded_as_python_does(store: PostgresStore) -> None:
    letters = [
        chr(code) for code in (*range(1, 0x600), *range(0x1C80, 0x2200), *range(0xFB00, 0xFF60), 0x10400, 0x1E900)
    ]
    with store.reading() as connection:
        folded = [
            connection.execute("SELECT casefold(?)", (f"{letter} Größe",)).fetchone()[0] for letter in letters[::7]
        ]
    assert folded == [f"{letter} Größe".casefold() for letter in letters[::7]]
