"""Parquet tables: they say what the store says, and every reader of Parquet reads them."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import msgspec
import polars
import pytest

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.errors import ConflictError
from turnlog.model import Message, Origin, TextPart, ToolCallPart, ToolKind
from turnlog.server.sample import LOGS
from turnlog.store import connect_sql, open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.store.sqlite.tables import TABLES, Kind, TableWriter, WrittenTable, write_tables
from turnlog.sync.syncer import sync

# Neither has types of its own.
pandas: Any = import_module("pandas")
pq: Any = import_module("pyarrow.parquet")

AGENTS = ("claude-code", "codex", "gemini-cli", "opencode")
KEY = "sk-ant-api03-" + "Ab3dEf6hIj9kLm2nOp5q" * 4 + "xY-12345AA"


@pytest.fixture(scope="module")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples of four agents."""
    path = tmp_path_factory.mktemp("tables") / "turnlog.db"
    sync(path, roots=[LOGS / name for name in AGENTS])
    return path


@pytest.fixture(scope="module")
def folder(store_path: Path) -> Path:
    folder = store_path.parent / "tables"
    write_tables(store_path, folder)
    return folder


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    return pq.read_table(folder / f"{table}.parquet").to_pylist()


def every_session(store: Store) -> list[Any]:
    return list(store.sessions(SessionFilter(subagents=True), limit=200).items)


def test_sessions_messages_and_parts_are_those_of_the_store(store_path: Path, folder: Path) -> None:
    messages = {(row["session_id"], row["message_id"]): row for row in rows(folder, "messages")}
    parts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows(folder, "parts"):
        parts.setdefault((row["agent"], row["message_id"]), []).append(row)
    seen = 0
    with open_store(store_path) as store:
        sessions = every_session(store)
        assert {row["session_id"]: row["title"] for row in rows(folder, "sessions")} == {
            session.id: session.title for session in sessions
        }
        for session in sessions:
            for placed in store.messages(session.id, limit=1000):
                message, row = placed.message, messages[session.id, placed.message.id]
                seen += 1
                assert (row["role"], row["created_at"]) == (message.role, message.created_at)
                texts = [part.text for part in message.parts if isinstance(part, TextPart)]
                assert (row["text"] or "") == "\n\n".join(texts)
                found = parts[session.agent, message.id] if message.parts else []
                assert [each["type"] for each in found] == [part.type for part in message.parts]
    assert seen == len(messages) > 100


def test_lists_views_and_tables_have_the_same_sessions(tmp_path: Path) -> None:
    home = tmp_path / "plain"
    home.mkdir()
    Log(home, "s").message(Message(id="u", role="user", created_at=at(1), parts=(TextPart(text="a walnut"),)))
    for name in ("facts", "opened", "answered", "twice"):
        Log(home, name).message(Message(id=name, role="user", created_at=at(1), parts=(TextPart(text="a walnut"),)))
    path = tmp_path / "turnlog.db"
    read_home(path, home)
    empty = {
        "facts": "events = 1, created_at = NULL",
        "opened": """metadata = '{"known_from":"hooks"}'""",
        "answered": "native = 1",
        "twice": "relationship = 'subagent'",
    }
    with closing(sqlite3.connect(path)) as connection, connection:
        for name, change in empty.items():
            connection.execute(f"UPDATE sessions SET messages = 0, {change} WHERE external_id = ?", (name,))
        connection.execute(
            "INSERT INTO superseded (session_key, position, message_key) SELECT key, 0, key FROM sessions"
            " WHERE external_id IN ('answered', 'twice')"
        )
        connection.execute(
            "INSERT INTO events (session_key, position, external_id, type, kind)"
            " SELECT key, 1, 'e', 'record', 'hook:SessionEnd' FROM sessions WHERE external_id = 'opened'"
        )
    write_tables(path, tmp_path / "tables")
    with open_store(path) as store, closing(connect_sql(path)) as connection:
        assert [session.id for session in every_session(store)] == ["plain:s"]
        assert connection.execute("SELECT session_id FROM v_sessions").fetchall() == [("plain:s",)]
    assert [row["session_id"] for row in rows(tmp_path / "tables", "sessions")] == ["plain:s"]


def test_calls_and_results_are_those_of_the_store(store_path: Path, folder: Path) -> None:
    calls = {(row["agent"], row["message_id"], row["tool_call_id"]): row for row in rows(folder, "tool_calls")}
    outputs: dict[tuple[str, str], list[str]] = {}
    for row in rows(folder, "results"):
        outputs.setdefault((row["message_id"], row["tool_call_id"]), []).append(row["text"])
    with open_store(store_path) as store:
        expected = {
            (session.agent, placed.message.id, part.tool_call_id): part
            for session in every_session(store)
            for placed in store.messages(session.id, limit=1000)
            for part in placed.message.parts
            if part.type == "tool-call"
        }
    assert calls.keys() == expected.keys()
    for key, part in expected.items():
        assert calls[key]["state"] == part.state
        assert outputs.get(key[1:], []) == [result.output_text for result in part.results]


def test_sums_are_those_of_usage(store_path: Path, folder: Path) -> None:
    with open_store(store_path) as store:
        totals = store.usage("day", zone=None).totals
    usage, messages = rows(folder, "usage"), rows(folder, "messages")
    assert sum(row["calls"] for row in usage) == totals.calls
    assert sum(row["output"] for row in usage) == totals.output
    assert sum(row["cost"] or 0 for row in usage) == pytest.approx(float(totals.cost or 0))
    billed = [row for row in messages if row["is_billed_here"] and row["output"] is not None]
    assert sum(row["output"] for row in billed) == totals.output


def test_every_reader_reads_every_table(folder: Path) -> None:
    for name, columns in TABLES.items():
        path = str(folder / f"{name}.parquet")
        count = pq.read_metadata(path).num_rows
        assert count > 0, name
        assert polars.read_parquet(path).shape == (count, len(columns))
        assert pandas.read_parquet(path).shape == (count, len(columns))
        assert [column[0] for column in duckdb.execute(f"SELECT * FROM '{path}'").description or ()] == list(columns)
        assert pq.read_schema(path).names == list(columns)
    spent = duckdb.execute(
        f"SELECT m.model, count(*) FROM '{folder}/tool_calls.parquet' c JOIN '{folder}/messages.parquet' m"
        " USING (agent, message_id) GROUP BY 1"
    ).fetchall()
    assert len(spent) > 2


def test_types_are_the_same_in_every_version(folder: Path) -> None:
    schema = pq.read_schema(folder / "messages.parquet")
    kinds = {name: str(schema.field(name).type) for name in ("session_id", "position", "created_at", "cost", "text")}
    assert kinds == {
        "session_id": "string",
        "position": "int64",
        "created_at": "timestamp[ms, tz=UTC]",
        "cost": "double",
        "text": "large_string",
    }


def test_only_chosen_sessions_are_written(store_path: Path, tmp_path: Path) -> None:
    with open_store(store_path) as store:
        chosen = next(session.id for session in every_session(store) if session.counts.tool_calls)
    write_tables(store_path, tmp_path / "one", [chosen, "codex:no-such-session"])
    for table in ("sessions", "messages", "usage"):
        assert {row["session_id"] for row in rows(tmp_path / "one", table)} == {chosen}
    wanted = {row["message_id"] for row in rows(tmp_path / "one", "messages")}
    assert {row["message_id"] for row in rows(tmp_path / "one", "tool_calls")} <= wanted


def test_secrets_can_be_masked_and_odd_texts_are_written(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = Log(tmp_path / "logs", "odd")
    log.session(title=f"API_KEY={KEY}")
    text = f"half \ud83d of a pair, API_KEY={KEY}"
    log.message(Message(id="m", role="user", origin=Origin.PROMPT, created_at=at(0), parts=(TextPart(text=text),)))
    read_home(tmp_path / "a.db", tmp_path / "logs")
    write_tables(tmp_path / "a.db", tmp_path / "plain")
    [row] = rows(tmp_path / "plain", "parts")
    assert row["text"] == f"half � of a pair, API_KEY={KEY}"
    write_tables(tmp_path / "a.db", tmp_path / "masked", redact=True)
    assert all(KEY.encode() not in path.read_bytes() for path in (tmp_path / "masked").iterdir())
    for table in ("sessions", "messages", "parts"):
        assert KEY not in str(rows(tmp_path / "masked", table))


def test_a_password_that_one_session_names_is_masked_in_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name, text in (("asked", "Why is hunter2horse refused?"), ("named", "DB_PASS=hunter2horse")):
        log = Log(tmp_path / "logs", name)
        log.session(title=f"About {text}")
        log.message(Message(id=name, role="user", origin=Origin.PROMPT, created_at=at(0), parts=(TextPart(text=text),)))
    read_home(tmp_path / "a.db", tmp_path / "logs")
    write_tables(tmp_path / "a.db", tmp_path / "plain")
    assert "hunter2horse" in str([rows(tmp_path / "plain", table) for table in ("sessions", "messages", "parts")])
    write_tables(tmp_path / "a.db", tmp_path / "masked", redact=True)
    assert "hunter2horse" not in str([rows(tmp_path / "masked", table) for table in TABLES])


def test_a_password_behind_an_escaped_line_end_of_an_input_is_masked(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    command = msgspec.Raw(b'{"command": "cd shop\\nmysql -u root -pVgdKPd1crLoR4 shop\\n"}')
    call = ToolCallPart(tool_call_id="c1", tool_name="Bash", kind=ToolKind.EXECUTE, input=command)
    log = Log(tmp_path / "logs", "shop")
    log.message(Message(id="m1", role="assistant", created_at=at(0), parts=(call,)))
    read_home(tmp_path / "a.db", tmp_path / "logs")
    write_tables(tmp_path / "a.db", tmp_path / "masked", redact=True)
    [row] = rows(tmp_path / "masked", "tool_calls")
    assert row["input"] == '{"command": "cd shop\\nmysql -u root -p[REDACTED:database-password] shop\\n"}'


def test_an_export_replaces_an_earlier_one_and_nothing_else(store_path: Path, tmp_path: Path) -> None:
    write_tables(store_path, tmp_path / "out", [])
    assert rows(tmp_path / "out", "sessions") == []
    write_tables(store_path, tmp_path / "out")
    assert rows(tmp_path / "out", "sessions")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"README.md", *(f"{name}.parquet" for name in TABLES)}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").iterdir()} == {0o600}
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(ConflictError, match=r"has mine\.txt, which no such export has written"):
        write_tables(store_path, tmp_path / "out")


@pytest.mark.parametrize("name", ["README.md", "sessions.parquet", "files.parquet"])
def test_files_of_others_with_the_names_of_an_export_stay_as_they_are(
    store_path: Path, tmp_path: Path, name: str
) -> None:
    others = tmp_path / "out"
    others.mkdir()
    if name == "README.md":
        (others / name).write_text("# My thesis\n\nSee `turnlog export --as parquet`.\n")
    elif name == "sessions.parquet":
        polars.DataFrame({"session_id": ["mine"]}).write_parquet(others / name)
    else:
        (others / name).write_text("no Parquet at all")
    before = (others / name).read_bytes()
    with pytest.raises(ConflictError, match=f"has {name}, which no such export has written: name a folder of its own"):
        write_tables(store_path, others, [])
    assert [(each.name, each.read_bytes()) for each in others.iterdir()] == [(name, before)]


@pytest.mark.parametrize("name", ["README.md", "usage.parquet"])
def test_a_file_of_others_that_comes_while_tables_are_written_stays(
    store_path: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    write_tables(store_path, out, [])
    before = {each.name: each.read_bytes() for each in out.iterdir()}

    def come(done: int, total: int) -> None:
        (out / name).write_text("theirs")

    with pytest.raises(ConflictError, match=f"has {name}, which no such export has written"):
        write_tables(store_path, out, on_progress=come)
    assert {each.name: each.read_bytes() for each in out.iterdir()} == before | {name: b"theirs"}


def test_what_a_killed_export_left_is_removed(store_path: Path, tmp_path: Path) -> None:
    write_tables(store_path, tmp_path / "out", [])
    (tmp_path / "out" / "parts.parquet").replace(tmp_path / "out" / "parts.parquet.x1_y.turnlog-part")
    write_tables(store_path, tmp_path / "out", [])
    assert not list((tmp_path / "out").glob("*.turnlog-part"))


KILLED = """
import os, pathlib, sys
from turnlog.store.sqlite.tables import write_tables

pathlib.Path.replace = lambda new, old: os._exit(9) if old.name == sys.argv[3] else os.replace(new, old)
write_tables(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
"""


@pytest.mark.parametrize("name", ["sessions.parquet", "files.parquet", "README.md"])
def test_an_export_killed_before_its_first_file_is_repeated(store_path: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    killed = subprocess.run([sys.executable, "-c", KILLED, store_path, out, name], check=False)
    assert killed.returncode == 9
    assert name not in {path.name for path in out.iterdir()}
    write_tables(store_path, out)
    assert {path.name for path in out.iterdir()} == {"README.md", *(f"{table}.parquet" for table in TABLES)}


def test_a_folder_of_two_exports_has_no_description(store_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_tables(store_path, out, [])
    subprocess.run([sys.executable, "-c", KILLED, store_path, out, "parts.parquet"], check=False)
    assert not (out / "README.md").exists()
    write_tables(store_path, out)
    assert (out / "README.md").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="needs a device that is always full")
def test_a_table_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_full(path: Path) -> tuple[Path, BinaryIO]:
        part = path.with_suffix(".part")
        part.write_bytes(b"")
        return part, Path("/dev/full").open("wb")

    monkeypatch.setattr("turnlog.store.sqlite.tables._open_unfinished", open_full)
    columns: dict[str, Kind] = {"text": "text"}
    with (
        pytest.raises(OSError, match="No space left"),
        TableWriter(tmp_path / "parts.parquet", columns, None) as writer,
    ):
        writer.add(["x" * 100_000])
    assert list(tmp_path.iterdir()) == []


def test_tables_of_which_one_cannot_get_its_name_leave_no_parts(
    store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(writer: TableWriter) -> int:
        raise OSError(28, "No space left on device", str(writer.path))

    monkeypatch.setattr(TableWriter, "publish", fail)
    with pytest.raises(OSError, match="No space left"):
        write_tables(store_path, tmp_path / "out", [])
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("name", ["parts.parquet.turnlog-part", "parts.parquet.x1_y.turnlog-part"])
def test_a_link_is_never_written_through(name: str, store_path: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).symlink_to(tmp_path / "theirs")
    with pytest.raises(ConflictError, match=f"has {name}, which no such export has written"):
        write_tables(store_path, tmp_path / "out", [])
    assert (tmp_path / "theirs").read_text() == "mine"


def test_two_exports_at_once_leave_whole_tables(store_path: Path, tmp_path: Path) -> None:
    written: list[list[WrittenTable]] = []

    def write_another(done: int, total: int) -> None:
        if not written:
            written.append([])
            written.append(write_tables(store_path, tmp_path / "out"))

    (tmp_path / "out").mkdir()
    written.append(write_tables(store_path, tmp_path / "out", on_progress=write_another))
    _, first, second = written
    assert [table.rows for table in first] == [table.rows for table in second]
    assert [polars.read_parquet(table.path).height for table in second] == [table.rows for table in second]
    assert not list((tmp_path / "out").glob("*.turnlog-part"))


def test_a_folder_that_cannot_be_written_is_an_error(store_path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        write_tables(store_path, tmp_path / "file" / "out")


def test_the_page_names_every_table_and_column() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "tables.md").read_text()
    for name, columns in TABLES.items():
        assert f"| `{name}` |" in page
        assert [column for column in columns if f"`{column}`" not in page] == []


def test_a_cost_is_null_where_nothing_could_be_priced(store_path: Path, folder: Path) -> None:
    with open_store(store_path) as store:
        expected = {each.id: None if each.cost is None else float(each.cost.amount) for each in every_session(store)}
        models = {row.name: row.totals.cost for row in store.usage(by="model").rows}
    assert None in expected.values()
    with connect_sql(store_path) as connection:
        viewed = dict(connection.execute("SELECT session_id, cost FROM v_sessions"))
        sums = dict(connection.execute("SELECT model, sum(cost) FROM v_usage GROUP BY model"))
    assert viewed == pytest.approx(expected)
    assert {row["session_id"]: row["cost"] for row in rows(folder, "sessions")} == pytest.approx(expected)
    assert sums == pytest.approx({name: None if cost is None else float(cost) for name, cost in models.items()})
    found: dict[str, float | None] = {}
    for row in rows(folder, "usage"):
        if row["cost"] is not None:
            found[row["model"]] = (found.get(row["model"]) or 0) + row["cost"]
    assert found == pytest.approx({name: cost for name, cost in sums.items() if cost is not None})


def test_a_call_without_a_time_has_no_quarter_hour_in_tables_and_in_sql(tmp_path: Path, home: Path) -> None:
    log = Log(home, "s")
    for number, time in enumerate((at(0), None)):
        log.message(Message(id=f"m{number}", role="assistant", model="large", created_at=time))
    read_home(tmp_path / "turnlog.db", home)
    write_tables(tmp_path / "turnlog.db", tmp_path / "tables")
    assert [row["quarter_hour"] for row in rows(tmp_path / "tables", "usage")] == [None, at(0)]
    with closing(connect_sql(tmp_path / "turnlog.db")) as connection:
        found = connection.execute("SELECT quarter_hour FROM v_usage ORDER BY 1").fetchall()
    assert found == [(None,), (at(0).strftime("%Y-%m-%dT%H:%M:00Z"),)]
