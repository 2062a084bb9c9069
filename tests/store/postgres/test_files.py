"""The table from which files are listed says what the paths of all calls say, however these come, change and go."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import msgspec
import psycopg
import pytest

from support.plain_agent import Log
from support.plain_store import at, read_home
from support.postgres_stores import PostgresDatabases, push
from turnlog.model import Message, ToolCallPart, ToolKind, ToolResult, ToolState
from turnlog.store import open_store
from turnlog.store.base import FileFilter, Store
from turnlog.store.postgres import schema
from turnlog.store.postgres.store import PostgresStore
from turnlog.store.postgres.visibility import protect
from turnlog.store.rows import resolve_path
from turnlog.store.values import TouchedFile

TOUCHES = "SELECT * FROM turnlog.touches ORDER BY message_key, path"

COUNT_AGAIN = (
    "SELECT turnlog.count_touches(1, array_agg(key)) FROM (SELECT key FROM turnlog.messages UNION"
    " SELECT message_key FROM turnlog.touches) m"
)


def call(id: str, minute: float | None, *files: str, state: ToolState = ToolState.OUTPUT_AVAILABLE) -> ToolCallPart:
    changed = "".join(f"*** Update File: {name}\n@@\n-1\n+2\n" for name in files)
    return ToolCallPart(
        tool_call_id=id,
        tool_name="apply_patch",
        kind=ToolKind.EDIT,
        state=state,
        input=msgspec.Raw(msgspec.json.encode({"input": f"*** Begin Patch\n{changed}*** End Patch"})),
        started_at=None if minute is None else at(minute),
    )


def answer(id: str, *calls: ToolCallPart, minute: float | None = 0) -> Message:
    return Message(id=id, role="assistant", created_at=None if minute is None else at(minute), parts=calls)


def check(path: Path, store: PostgresStore) -> list[TouchedFile]:
    """Compare with what SQLite counts from the calls, and the rows with those that the migration makes."""
    with psycopg.connect(store.url) as connection:
        kept = connection.execute(TOUCHES).fetchall()
        connection.execute(COUNT_AGAIN)
        assert kept == connection.execute(TOUCHES).fetchall()
    with open_store(path) as other:
        ids = [None, *(session.id for session in other.sessions().items)]
        for wanted in (FileFilter(), FileFilter(changed=True), FileFilter(text="A.py"), *map(of_session, ids)):
            assert store.touched_files(wanted) == other.touched_files(wanted)
            assert store.touched_files(wanted, limit=2) == other.touched_files(wanted, limit=2)
        return other.touched_files()


def of_session(session_id: str | None) -> FileFilter:
    return FileFilter(session=session_id)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def test_files_follow_calls_that_come_change_and_go(home: Path, store: PostgresStore, tmp_path: Path) -> None:
    path = tmp_path / "turnlog.db"

    def follow() -> dict[str, tuple[int, int, int]]:
        read_home(path, home)
        push(path, store)
        return {file.path: (file.sessions, file.calls, file.edits) for file in check(path, store)}

    log = Log(home, "one")
    log.message(answer("a", call("c1", None, "a.py", "src/../b.py"), minute=None))
    assert follow() == {"a.py": (1, 1, 1), "b.py": (1, 1, 1)}
    log.session(cwd="/w/shop")  # the folder is known later than the calls
    log.message(answer("b", call("c2", 4, "./a.py", state=ToolState.INPUT_AVAILABLE), call("c3", None, "/w/c//d.py")))
    assert follow() == {"/w/shop/a.py": (1, 2, 2), "/w/shop/b.py": (1, 1, 1), "/w/c/d.py": (1, 1, 1)}
    log.result("c2", ToolResult(id="r", status="error", completed_at=at(5)))
    log.message(answer("a", call("c1", 9, "a.py"), minute=3))
    assert follow()["/w/shop/a.py"] == (1, 2, 1)
    # A copy counts once, also when what it is a copy of is forgotten.
    copy = Log(home, "two")
    copy.session(cwd="/w/shop")
    copy.message(answer("b", call("c2", 4, "./a.py"), call("c3", None, "/w/c//d.py")), copied=True)
    copy.message(answer("own", call("c4", 6, "a.py")))
    assert follow()["/w/shop/a.py"][:2] == (2, 3)
    with open_store(path) as other:
        other.forget("plain:one")
    assert follow()["/w/shop/a.py"][:2] == (1, 2)
    with open_store(path) as other:
        other.forget("plain:two")
    assert follow() == {}


def test_files_of_programs_follow(store: PostgresStore, tmp_path: Path) -> None:
    with open_store(tmp_path / "turnlog.db", create=True) as other:
        for each in (other, store):
            write(each)
    assert [file.path for file in check(tmp_path / "turnlog.db", store)] == ["/w/b.py", "/w/a.py"]


def write(store: Store) -> None:
    store.save_session("demo:a", cwd="/w", created_at=at(0), updated_at=at(0))
    store.save_messages("demo:a", [answer("m", call("c", 1, "gone.py")), answer("n", call("d", 2, "gone too.py"))])
    store.save_messages("demo:a", [answer("m", call("c", 1, "a.py"))], retracted=["n"])
    store.save_tool_call("demo:a", "n", call("d", 3, "b.py"))


def test_who_sees_only_a_copy_sees_its_files(home: Path, store: PostgresStore, tmp_path: Path) -> None:
    shared = answer("shared", call("c", 1, "a.py"))
    for name in ("one", "two"):
        log = Log(home, name)
        log.session(cwd=f"/w/{name}")
        log.message(shared, copied=name == "two")
    read_home(tmp_path / "turnlog.db", home)
    push(tmp_path / "turnlog.db", store)
    with psycopg.connect(store.url, autocommit=True) as connection:
        protect(connection, store.name)
        for name in ("one", "two"):
            owned = "INSERT INTO turnlog.session_owners (team_key, session_id, owner_user) VALUES (1, %s, %s)"
            connection.execute(owned, (f"plain:{name}", name))
    for name in ("one", "two"):
        with PostgresStore(store.database, viewer=name) as seen:
            assert [file.path for file in seen.touched_files()] == [f"/w/{name}/a.py"]
    with PostgresStore(store.database, viewer="eve") as seen:
        assert seen.touched_files() == []


def test_an_older_store_gets_the_files_that_it_has(
    databases: PostgresDatabases, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = schema.migrations()
    with monkeypatch.context() as older:
        older.setattr(schema, "migrations", lambda: {number: each for number, each in known.items() if number < 12})
        url = databases.server.url(databases.server.new_database())
        log = Log(home, "one")
        log.session(cwd="/w/shop")
        log.message(answer("a", call("c1", 1, "a.py", "b.py"), call("c2", 2, "a.py")))
        shutil.copytree(home, tmp_path / "second")
        Log(tmp_path / "second", "two").message(answer("z", call("z1", 3, "z.py")))
        read_home(tmp_path / "turnlog.db", home)
        with PostgresStore(url, create=True) as store:
            push(tmp_path / "turnlog.db", store)
    with PostgresStore(url) as store:
        files = check(tmp_path / "turnlog.db", store)
        assert [(file.path, file.calls) for file in files] == [("/w/shop/a.py", 2), ("/w/shop/b.py", 1)]
        read_home(tmp_path / "turnlog.db", tmp_path / "second")
        push(tmp_path / "turnlog.db", store)
        assert check(tmp_path / "turnlog.db", store)[0].path == "z.py"


def test_paths_are_resolved_as_in_a_file(databases: PostgresDatabases) -> None:
    random = Random(1)
    pieces = ["", ".", "..", "/", "/", "//", "a", "b.py", "é", "~", "C:", "C:\\", "\\\\", "..a", " ", "\n"]
    pairs = [tuple("".join(random.choices(pieces, k=random.randint(0, 7))) for _ in range(2)) for _ in range(4000)]
    with psycopg.connect(databases.url()) as connection:
        rows = connection.execute(
            "SELECT p, f, turnlog.resolve_path(p, f) FROM unnest(%s::text[], %s::text[]) AS x (p, f)",
            ([path for path, _ in pairs], [folder for _, folder in pairs]),
        ).fetchall()
    assert {(path, folder, resolve_path(path, folder)) for path, folder in pairs} == {*rows}
