"""`turnlog query`: SQL that only reads, for a bounded time, as a table, JSON or CSV."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.cli_runner import Command
from turnlog.store import connect_sql, open_store
from turnlog.store.sqlite.sql import VIEWS

pytestmark = pytest.mark.usefixtures("store")

MANY = ", ".join(f"v_messages {name}" for name in "abcdef")


def tables(store: Path) -> list[Any]:
    with closing(sqlite3.connect(store)) as connection:
        schema = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY 1").fetchall()
        return [schema, connection.execute("SELECT * FROM sessions ORDER BY key").fetchall()]


def rows(run: Command, sql: str) -> list[list[Any]]:
    result = run("query", "--json", sql)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["rows"]


def test_without_sql_the_views_are_listed(run: Command) -> None:
    found = {view: columns.split(", ") for view, columns in json.loads(run("query", "--json").stdout)["rows"]}
    assert found.keys() == VIEWS.keys()
    assert {"session_id", "title", "cost"} <= set(found["v_sessions"])


def test_views_agree_with_the_store(run: Command, store: Path) -> None:
    with open_store(store) as opened:
        sessions = {
            each.id: each
            for each in opened.sessions(
                limit=200,
            ).items
        }
        calls = opened.tool_calls(limit=200).items
        report = opened.usage("session", zone=None)
    found = {row[0]: row[1:] for row in rows(run, "SELECT session_id, title, turns, output FROM v_sessions")}
    assert {name: found[name][:2] for name in sessions} == {
        name: [each.title, each.counts.turns] for name, each in sessions.items()
    }
    assert sorted(row[0] for row in rows(run, "SELECT tool_call_id FROM v_tool_calls")) == sorted(
        call.tool_call_id for call in calls
    )
    sums = "SELECT session_id, sum(calls), sum(output), round(sum(cost), 9) FROM v_usage GROUP BY 1 HAVING sum(calls)"
    assert {row[0]: row[1:3] for row in rows(run, sums)} == {
        row.name: [row.totals.calls, row.totals.output] for row in report.rows if row.totals.calls
    }


def test_the_text_of_parts_and_the_output_of_calls_are_columns(run: Command) -> None:
    texts = [row[0] for row in rows(run, "SELECT text FROM v_parts WHERE type = 'text' ORDER BY message_id")]
    assert texts
    assert all(isinstance(text, str) for text in texts)
    [(output,)] = rows(run, "SELECT count(*) FROM v_tool_calls WHERE output IS NOT NULL")
    assert output > 0
    assert rows(run, "SELECT path FROM v_files WHERE path IS NULL") == []


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM sessions",
        "UPDATE sessions SET title = 'x'",
        "INSERT INTO sessions (agent) VALUES ('x') RETURNING key",
        "CREATE TEMP TABLE mine (a)",
        "ATTACH 'other.db' AS other",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA query_only = 0",
        "VACUUM INTO 'copy.db'",
        "BEGIN",
        "SELECT load_extension('libm')",
        "SELECT 1; SELECT 2",
        "SELECT zeroblob(1000000000)",
        "SELEC 1",
        "-- nothing",
    ],
)
def test_what_does_not_only_read_is_refused(run: Command, store: Path, sql: str) -> None:
    before = tables(store)
    result = run("query", sql)
    assert result.exit_code == 2, result.stdout
    assert "Traceback" not in result.stderr
    assert tables(store) == before
    assert not list(Path.cwd().glob("*.db"))


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT ?1", "a query has no parameters: write the values into the SQL."),
        ("SELECT :name", "a query has no parameters: write the values into the SQL."),
        ("SELECT '\udc80'", "the SQL has half of a character (a lone surrogate), which no text has."),
    ],
)
def test_what_python_cannot_ask_is_said_in_our_words(run: Command, sql: str, words: str) -> None:
    result = run("query", sql)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, f"Error: {words}")


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT * FROM v_session", "v_session (did you mean v_sessions?); `turnlog query` lists the views"),
        ("SELECT s.titel FROM v_sessions s", "s.titel (did you mean title?); `turnlog query` lists the views"),
        ("SELECT titel FROM v_usage", "titel; `turnlog query` lists the views"),
        ("SELECT session_id FROM v_parts", "no such column: session_id (there is one in v_"),
        ("SELECT * FROM qqqq", "no such table: qqqq; `turnlog query` lists the views"),
    ],
)
def test_an_unknown_name_leads_to_the_one_that_is_meant(run: Command, sql: str, hint: str) -> None:
    assert hint in " ".join(run("query", sql).stderr.split())


@pytest.mark.parametrize("seconds", ["0.2", "nan"])
def test_a_query_that_takes_too_long_is_given_up(run: Command, seconds: str) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    result = run("query", "--seconds", seconds, endless)
    assert result.exit_code == 1
    assert f"took more than {seconds} seconds: --seconds gives it more time" in result.stderr


def test_one_function_that_takes_hours_is_given_up(store: Path) -> None:
    """SQLite looks at the clock between its steps only, and one function is one step."""
    sql = "SELECT instr(hex(zeroblob(8000000)), hex(zeroblob(4000000)) || '1')"
    command = [sys.executable, "-m", "turnlog", "query", sql, "--seconds", "0.2", "--store", str(store)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the query took more than 0.2 seconds" in done.stderr


def test_a_query_that_fills_the_memory_is_given_up(store: Path) -> None:
    """A process of its own: SQLite holds the limit until its end."""
    sql = f"SELECT {', '.join(['zeroblob(60000000)'] * 9)}"
    command = [sys.executable, "-m", "turnlog", "query", sql, "--store", str(store)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the query needs more memory than a query may use" in done.stderr


def test_a_question_of_the_store_within_a_query_is_given_up_in_time_too(run: Command) -> None:
    result = run("query", "--seconds", "0.3", f"SELECT count(a.content || b.content) FROM {MANY}")
    assert result.exit_code == 1
    assert "took more than 0.3 seconds" in result.stderr


def test_a_table_says_that_it_is_cut_and_csv_is_whole(run: Command) -> None:
    numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50) SELECT x FROM c"
    shown = run("query", "--limit", "7", numbers)
    assert len(shown.stdout.splitlines()) == 8
    assert "first 7 rows" in shown.stderr
    found = list(csv.reader(run("query", "--csv", numbers).stdout.splitlines()))
    assert (found[0], len(found), found[-1]) == (["x"], 51, ["50"])


def test_a_row_that_is_too_large_for_a_table_is_refused_and_csv_writes_it(run: Command) -> None:
    large = "SELECT 1 UNION ALL SELECT hex(zeroblob(10000000))"
    result = run("query", large)
    assert result.exit_code == 1
    assert "a row of a table has at most 8 MB: --json and --csv" in result.stderr
    assert len(run("query", "--csv", large).stdout) > 20_000_000


PEAK = """
import resource, sys
from turnlog.cli.main import main

try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="measures as Unix does")
@pytest.mark.parametrize("form", ["--no-sync", "--csv", "--json"])
def test_rows_are_written_as_they_come(store: Path, form: str) -> None:
    """200,000 rows of 300 bytes are 60 MB, and their texts would be as much again."""
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 200000)"
    sql = f"{numbers} SELECT x, hex(zeroblob(150)) FROM n"
    # The shell is between them: what a process used at most counts as used by those that it starts.
    command = [
        "sh",
        "-c",
        '"$@"; exit $?',
        "sh",
        sys.executable,
        "-c",
        PEAK,
        "query",
        form,
        "--limit",
        "1000000",
        "--seconds",
        "600",
        "--store",
        str(store),
        sql,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        lines = sum(1 for _ in running.stdout)
        peak = int(running.stderr.read())
    assert (running.returncode, lines) == (0, 200_001)
    # On a Mac it is bytes.
    assert peak / (1 << 20 if sys.platform == "darwin" else 1 << 10) < 100


def test_a_table_is_as_wide_as_its_first_rows(run: Command) -> None:
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1500)"
    result = run("query", "--limit", "1200", f"{numbers} SELECT x, iif(x > 1100, 'a wide word', 'word') AS w, 1 FROM n")
    lines = result.stdout.splitlines()
    assert (len(lines), lines[1], lines[1200]) == (1201, "   1  word  1", "1200  a wide word  1")
    assert "the first 1,200 rows" in result.stderr


def test_json_in_a_column_can_be_taken_apart(run: Command) -> None:
    assert rows(run, "SELECT value FROM json_each('[1, 2]')") == [[1], [2]]
    kinds = rows(run, "SELECT DISTINCT t.key FROM v_messages m, json_tree(m.content) t WHERE t.key = 'role'")
    assert kinds == [["role"]]


def test_a_message_or_part_that_there_is_not_is_null(run: Command) -> None:
    names = ("part_id", "part_content", "part_text", "call_input", "call_output")
    places = ("99999999, 0", "1, 9999", "1, -1", "1, 'a'", "1, NULL", "1, 1e300")
    asked = [f"{name}({place})" for name in names for place in places]
    asked += [f"message_content({key})" for key in ("99999999", "NULL", "'x'")]
    assert rows(run, f"SELECT {', '.join(asked)}") == [[None] * len(asked)]


def test_values_of_every_type_are_written(run: Command) -> None:
    sql = "SELECT NULL AS a, 1.5 AS b, x'00ff' AS c, 9e999 AS d, '=1+1' AS e, char(27) || '[2J' AS f"
    assert rows(run, sql) == [[None, 1.5, "00ff", "inf", "=1+1", "\x1b[2J"]]
    cells = list(csv.reader(run("query", "--csv", sql).stdout.splitlines()))[1]
    assert (cells[:3], cells[4]) == (["", "1.5", "00ff"], "'=1+1")
    assert "\x1b" not in run("query", sql).stdout


def test_sql_comes_from_standard_input(run: Command) -> None:
    assert run("query", "-", "--csv", input="SELECT 7 AS seven").stdout.splitlines() == ['"seven"', "7"]


def test_a_connection_of_ones_own_has_the_same_views(store: Path) -> None:
    """As Datasette opens one, whose plug-in calls `add_views`."""
    from turnlog.store import add_sql_views

    with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as own, closing(connect_sql(store)) as ours:
        own.execute("PRAGMA query_only = 1")
        add_sql_views(own)
        assert own.execute("PRAGMA query_only").fetchone() == (1,)
        query = "SELECT id, text FROM v_parts ORDER BY id"
        assert own.execute(query).fetchall() == ours.execute(query).fetchall() != []
