"""OpenCode's sessions without a sync: read from a path, imported, recognised by what stands in the file."""

from __future__ import annotations

import asyncio
import hashlib
import io
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest

from support.opencode_files import (
    AGENT,
    SECRET,
    Rows,
    insert,
    recorded,
    write_database,
    write_export,
    write_project_storage,
    write_storage,
)
from support.profiles import some_of
from turnlog.agents import detect
from turnlog.errors import FormatError, NotFoundError
from turnlog.logs import discover, extract_tool_calls, parse_log_file, parse_log_stream, read_session
from turnlog.store import open_store
from turnlog.store.connection import connect
from turnlog.store.sqlite.restore import restore_files
from turnlog.sync.importing import import_file, import_stream
from turnlog.sync.syncer import sync

PARENT, CHILD = "ses_e0418e851ffeDgcuDS6WlCcMks", "ses_e0418cdcbffeluOcL3vmfKoyn0"


@pytest.fixture
def rows() -> Rows:
    """A session and its subagent's."""
    return recorded("1.18.33", "subagent")


def only(rows: Rows, session: str) -> Rows:
    """The rows of one session."""
    kept = {"session": "id", "message": "session_id", "part": "session_id"}
    return {table: [row for row in rows[table] if row[column] == session] for table, column in kept.items()}


def session_file(root: Path, session: str = PARENT) -> Path:
    (path,) = root.rglob(f"session/*/{session}.json")
    return path


def told_by_store(root: Path, store: Path, session: str) -> list[str]:
    store.parent.mkdir()
    sync(store, roots=[root], agents=[AGENT])
    with open_store(store) as opened:
        return [placed.message.id for placed in opened.messages(f"opencode:{session}")]


# -- reading a path


def test_each_form_of_a_session_is_read_from_its_path(rows: Rows, tmp_path: Path) -> None:
    """R-S43, R-S31: with its subagent where that lies beside it; all forms tell the same messages."""
    database = write_database(rows, tmp_path / "home" / "opencode.db")
    write_storage(rows, tmp_path / "storage")
    write_project_storage(rows, tmp_path / "project")
    (old,) = tmp_path.joinpath("project").rglob(f"info/{PARENT}.json")
    wanted = told_by_store(tmp_path / "home", tmp_path / "store" / "turnlog.db", PARENT)
    for path in (f"{database}#{PARENT}", session_file(tmp_path / "storage"), old):
        history = read_session(path)
        assert history.session.id == f"opencode:{PARENT}"
        assert [message.id for message in history.messages] == wanted
        assert [child.session.id for child in history.children] == [f"opencode:{CHILD}"]
        assert all(child.messages for child in history.children)
        assert history.diagnostics == ()
    export = write_export(rows, PARENT, tmp_path / "export.json")
    assert [message.id for message in parse_log_file(export)] == wanted


def test_a_database_of_one_session_needs_no_name(rows: Rows, tmp_path: Path) -> None:
    """R-S43: other databases in the folder do not count."""
    write_database(rows, tmp_path / "opencode.db")
    path = write_database(only(rows, CHILD), tmp_path / "opencode-beta.db")
    assert read_session(path).session.id == f"opencode:{CHILD}"
    assert detect(path).source is not None


def test_a_database_of_several_says_which(rows: Rows, tmp_path: Path) -> None:
    path = write_database(rows, tmp_path / "any name.db")
    with pytest.raises(FormatError, match=f"name one of its sessions, as {path}#<session>; there are .*{CHILD}"):
        read_session(path)
    with pytest.raises(FormatError, match=f"no such session; there are .*{PARENT}"):
        read_session(f"{path}#ses_none")
    empty = write_database({}, tmp_path / "empty.db")
    with pytest.raises(FormatError, match="a database without sessions"):
        read_session(empty)


def test_structured_results_are_filled_in(rows: Rows, tmp_path: Path) -> None:
    path = write_database(rows, tmp_path / "opencode.db")
    history = read_session(f"{path}#{PARENT}", structured=True)
    results = [result for call in extract_tool_calls(history.messages) for result in call.results]
    assert results
    assert all(result.structured for result in results)


def test_an_export_may_come_in_pieces(rows: Rows, tmp_path: Path) -> None:
    """R-S32, R-S43: JSON over many lines is read once it is there."""
    path = write_export(rows, PARENT, tmp_path / "export.json")

    async def pieces() -> AsyncIterator[bytes]:
        data = path.read_bytes()
        for start in range(0, len(data), 1000):
            yield data[start : start + 1000]

    async def read() -> list[str]:
        return [message.id async for message in parse_log_stream(pieces())]

    assert asyncio.run(read()) == [message.id for message in parse_log_file(path)]


def test_discovery_names_every_session(rows: Rows, tmp_path: Path) -> None:
    """R-S20, R-S43"""
    write_database(rows, tmp_path / "opencode.db")
    found = {source.session_id for source in discover([tmp_path]) if source.agent == "opencode"}
    assert {f"opencode:{PARENT}", f"opencode:{CHILD}"} <= found


# -- whose a file is


def test_every_form_says_whose_it_is(rows: Rows, tmp_path: Path) -> None:
    """R-S21, R-S43"""
    forms = [
        write_database(rows, tmp_path / "some.bin"),
        write_export(rows, PARENT, tmp_path / "export.txt"),
        session_file(write_storage(rows, tmp_path)),
    ]
    assert [(detect(path).agent, detect(path).version) for path in forms] == [("opencode", "1.18.33")] * 3


def test_a_piece_of_the_storage_says_what_it_misses(rows: Rows, tmp_path: Path) -> None:
    """R-S21: alone, a session's file has no messages, and a message no session."""
    root = write_storage(rows, tmp_path / "home")
    pieces = [some_of([*root.rglob(f"{kind}_*.json")], 4) for kind in ("msg", "prt")]
    for piece in (session_file(root), *chain(*pieces)):
        alone = Path(shutil.copyfile(piece, tmp_path / "piece.json"))
        found = detect(alone)
        assert (found.agent, found.source) == ("opencode", None)
        with pytest.raises(FormatError, match="only where it lay"):
            read_session(alone)
        with pytest.raises(FormatError, match=r"of opencode, but no session \(a file out of the JSON storage"):
            import_file(tmp_path / "data" / "turnlog.db", alone)


# -- imported


def test_all_sessions_of_a_database_are_imported(rows: Rows, tmp_path: Path) -> None:
    """R-S43: with what is only in its write-ahead log; nothing of the database is kept, for it holds secrets."""
    store = tmp_path / "data" / "turnlog.db"
    path = write_database(rows, tmp_path / "opencode.db", secrets=True)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        for table, items in recorded("1.18.33", "interrupt").items():
            insert(writer, table, items)
        writer.commit()
        summary = import_file(store, path)
    assert (summary.agent, summary.version, summary.kind) == ("opencode", "1.18.33", "session")
    assert {f"opencode:{PARENT}", f"opencode:{CHILD}"} < set(summary.sessions)
    stored = [*rows["session"], *recorded("1.18.33", "interrupt")["session"]]
    subagents = sum(row["parent_id"] is not None for row in stored)
    assert (summary.new_sessions, summary.new_subagents) == (len(stored) - subagents, subagents)
    assert summary.problems == []
    again = import_file(store, path)
    assert (again.is_new, again.sessions) == (False, ())
    kept = [file for file in store.parent.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
    assert kept == []


@pytest.mark.usefixtures("home")
def test_an_imported_database_is_gone_when_its_file_is(rows: Rows, tmp_path: Path) -> None:
    """A pass looks into the agent's own databases, and not into this one."""
    store = tmp_path / "data" / "turnlog.db"
    path = write_database(rows, tmp_path / "backup" / "opencode.db")
    import_file(store, path)
    assert sync(store).vanished == 0
    path.unlink()
    # Its sessions, and the database itself.
    assert sync(store).vanished == len(rows["session"]) + 1


def test_a_database_may_come_through_a_pipe(rows: Rows, tmp_path: Path) -> None:
    store = tmp_path / "data" / "turnlog.db"
    path = write_database(rows, tmp_path / "opencode.db", secrets=True)
    summary = import_stream(store, io.BytesIO(path.read_bytes()))
    assert (summary.new_sessions, summary.new_subagents) == (1, 1)
    assert list((store.parent / "imports").iterdir()) == []
    with open_store(store) as opened:
        assert list(opened.messages(f"opencode:{PARENT}"))


def test_exports_and_files_of_the_storage_are_imported(rows: Rows, tmp_path: Path) -> None:
    """R-S43: what two forms of a session tell, it has once."""
    store = tmp_path / "data" / "turnlog.db"
    export = write_export(rows, PARENT, tmp_path / "export.json")
    first = import_file(store, export)
    assert (first.agent, first.version, first.sessions) == ("opencode", "1.18.33", (f"opencode:{PARENT}",))
    second = import_file(store, session_file(write_storage(rows, tmp_path / "home")))
    assert (second.new_sessions, second.messages) == (0, 0)
    with open_store(store) as opened:
        assert len(list(opened.messages(f"opencode:{PARENT}"))) == first.messages
        with pytest.raises(NotFoundError):
            opened.session(f"opencode:{CHILD}")


# -- leaving no traces


def test_a_live_database_stays_byte_for_byte(rows: Rows, tmp_path: Path) -> None:
    """R-S43: the database, its write-ahead log and that log's index, while OpenCode writes and we read."""
    path = write_database(rows, tmp_path / "home" / "opencode.db")
    store = tmp_path / "data" / "turnlog.db"
    store.parent.mkdir()
    command = [sys.executable, "-c", _WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for count in range(1, 4):
            print(f"title {count}", file=writer.stdin, flush=True)
            assert writer.stdout.readline() == "written\n"
            before = hashes(path)
            assert set(before) == {"opencode.db", "opencode.db-wal", "opencode.db-shm"}
            assert sync(store, roots=[path.parent], agents=[AGENT]).changed == 2
            assert read_session(f"{path}#{PARENT}").session.title == f"title {count}"
            assert hashes(path) == before
        writer.stdin.close()


_WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA wal_autocheckpoint = 0")
for line in sys.stdin:
    connection.execute("UPDATE session SET title = ?, time_updated = time_updated + 1", (line.strip(),))
    print("written", flush=True)
"""
"""Another process, as OpenCode is: within one, SQLite's connections share the index of the log."""


def hashes(path: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.parent.iterdir()}


def test_an_imported_export_is_given_back_byte_for_byte(rows: Rows, tmp_path: Path) -> None:
    """R-S43: it is a file, not rows."""
    store = tmp_path / "data" / "turnlog.db"
    export = write_export(rows, PARENT, tmp_path / "export.json")
    summary = import_file(store, export)
    with closing(connect(store)) as connection:
        (restored,) = restore_files(connection, f"opencode:{PARENT}", tmp_path / "back")
    assert restored.path.read_bytes() == export.read_bytes()
    assert restored.source == summary.path
