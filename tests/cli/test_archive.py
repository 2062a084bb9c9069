import json
import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from support.cli_runner import Command, on_terminal
from support.places import OTHER_KINDS, Kind
from support.plain_agent import PlainAgent
from support.plain_history import OTHER, SESSION, SUBAGENT
from turnlog.store import disk
from turnlog.store.search import overwriting
from turnlog.sync import rebuild

pytestmark = pytest.mark.usefixtures("store")

LOG = f"{SESSION.partition(':')[2]}.jsonl"


def test_a_session_is_restored_byte_for_byte(run: Command, logs: Path, tmp_path: Path) -> None:
    original = (logs / LOG).read_bytes()
    (logs / LOG).unlink()
    result = run("restore", "3f2a", "--to", str(tmp_path / "back"), "--json")
    files = json.loads(result.stdout)["files"]
    assert (tmp_path / "back" / LOG).read_bytes() == original
    assert [file["path"] for file in files] == [
        str(tmp_path / "back" / name) for name in (LOG, f"{SUBAGENT.partition(':')[2]}.jsonl")
    ]
    assert files[0]["source"] == str(logs / LOG)


def test_restoring_never_overwrites_what_differs(run: Command, tmp_path: Path) -> None:
    assert run("restore", "3f2a", "--to", str(tmp_path)).exit_code == 0
    assert run("restore", "3f2a", "--to", str(tmp_path)).exit_code == 0
    (tmp_path / LOG).write_text("mine")
    result = run("restore", "3f2a", "--to", str(tmp_path))
    assert result.exit_code == 4
    assert str(tmp_path / LOG) in result.stderr
    assert (tmp_path / LOG).read_text() == "mine"


def test_only_the_user_can_read_what_is_restored(run: Command, tmp_path: Path) -> None:
    """C8: as the store that it comes from."""
    top = tmp_path / "new" / "back"
    assert run("restore", "3f2a", "--to", str(top)).exit_code == 0
    modes = {stat.S_IMODE(each.stat().st_mode) for each in top.rglob("*") if each.is_file()}
    assert modes == {0o600}
    assert {stat.S_IMODE(each.stat().st_mode) for each in (top.parent, top)} == {0o700}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("kind", "reason"), OTHER_KINDS.items())
def test_what_is_no_file_is_in_the_way(run: Command, tmp_path: Path, kind: Kind, reason: str) -> None:
    """C8: it is neither waited for nor written through."""
    top = tmp_path / "back"
    top.mkdir()
    with kind(top / LOG):
        result = run("restore", "3f2a", "--to", str(top))
        assert (result.exit_code, result.stderr) == (4, f"turnlog: {top / LOG}: this is {reason}, not a file\n")
        assert list(top.iterdir()) == [top / LOG]
        assert not (tmp_path / "outside").exists()


@pytest.mark.timeout(60)
def test_a_pipe_is_no_folder(run: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "back")
    result = run("restore", "3f2a", "--to", str(tmp_path / "back"))
    assert (result.exit_code, result.stderr) == (1, f"turnlog: {tmp_path / 'back'}: is no folder\n")


def test_forgetting_says_first_what_would_go(run: Command) -> None:
    result = run("forget", "3f2a")
    assert SESSION in result.stdout
    assert SUBAGENT in result.stdout
    assert "2 sessions" in result.stdout
    # Without a terminal nobody can agree: a script must see that the session is still there.
    assert (result.exit_code, result.stderr) == (2, "Nothing was removed; --yes removes it.\n")
    assert run("show", SESSION).exit_code == 0


def test_a_session_is_forgotten_for_good(run: Command, logs: Path) -> None:
    document = json.loads(run("forget", "3f2a", "--yes", "--json").stdout)
    assert document["forgotten"]
    assert document["session_ids"] == [SESSION, SUBAGENT]
    assert (document["messages"], len(document["files"]), document["shared"]) == (9, 2, {})
    assert run("show", SESSION).exit_code == run("show", SUBAGENT).exit_code == 3
    assert run("show", OTHER).exit_code == 0
    assert (logs / LOG).exists()


def test_a_dry_run_as_json_says_that_nothing_happened(run: Command) -> None:
    result = run("forget", "3f2a", "--json")
    assert json.loads(result.stdout)["forgotten"] is False
    assert (result.exit_code, result.stderr) == (2, "Nothing was removed; --yes removes it.\n")
    assert run("show", SESSION).exit_code == 0


def test_rebuilding_makes_everything_anew_from_the_archive(
    run: Command, logs: Path, plain_agent: PlainAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "registered_agents", lambda: [plain_agent])
    before = json.loads(run("show", SESSION, "--json").stdout)["events"]
    for log in logs.glob("*.jsonl"):
        log.unlink()
    document = json.loads(run("rebuild", "--json").stdout)
    assert (document["sources"], document["skipped"]) == (3, [])
    assert json.loads(run("show", SESSION, "--json").stdout)["events"] == before


def test_rebuilding_without_an_agent_says_what_was_left_out(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "registered_agents", list)
    result = run("rebuild")
    assert result.exit_code == 6
    assert len([line for line in result.stderr.splitlines() if "its agent is not installed" in line]) == 3


def test_a_terminal_asks_before_it_forgets() -> None:
    code, written = on_terminal("forget", "3f2a", answer="n\n")
    assert code == 0
    assert "Forget it? [y/N]" in written
    assert "Nothing was removed" in written
    code, written = on_terminal("forget", "3f2a", answer="y\n")
    assert "Forgotten." in written
    assert "The agent still has " in written
    assert on_terminal("show", "3f2a")[0] == 3


def no_process(store_path: Path, search_path: Path) -> None:
    pass


def test_a_large_index_is_overwritten_later(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overwriting, "LARGEST_AT_ONCE", 0)
    monkeypatch.setattr(overwriting, "start", no_process)
    assert "forgotten" not in run("doctor").stdout
    written = run("forget", "3f2a", "--yes").stdout
    assert written.endswith("a process overwrites their bytes in the search index.\n")
    assert "still has bytes of words that were forgotten" in run("doctor").stdout


def test_compacting_gives_back_what_deleted_sessions_left(run: Command, store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("CREATE TABLE ballast (data BLOB)")
        connection.execute("INSERT INTO ballast VALUES (zeroblob(4000000))")
        connection.commit()
        connection.execute("DROP TABLE ballast")
        connection.commit()
        before = connection.execute("SELECT key, title FROM sessions ORDER BY 1").fetchall()
    size = store.stat().st_size
    dry = json.loads(run("db", "compact", "--dry-run", "--json").stdout)
    assert (dry["is_dry_run"], store.stat().st_size) == (True, size)
    assert run("db", "compact").stdout.splitlines()[0].startswith(f"{store}  ")
    assert store.stat().st_size < size - 3_900_000
    assert abs(store.stat().st_size - dry["files"][0]["size"]) < 200_000
    assert "nothing to gain" in run("db", "compact").stdout
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT key, title FROM sessions ORDER BY 1").fetchall() == before


def test_compacting_needs_room_for_a_copy(run: Command, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("CREATE TABLE ballast (data BLOB)")
        connection.execute("INSERT INTO ballast VALUES (zeroblob(100000))")
        connection.commit()
        connection.execute("DROP TABLE ballast")
        connection.commit()

    def disk_usage(folder: Path) -> _Usage:
        return _Usage(100, 90, 10)

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    result = run("db", "compact")
    assert result.exit_code != 0
    assert "the disk, which has 10" in result.stderr


class _Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_a_store_that_somebody_reads_is_not_compacted(
    run: Command, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "BUSY_TIMEOUT_SECONDS", 0.1)
    with closing(sqlite3.connect(store, isolation_level=None)) as reader:
        reader.execute("CREATE TABLE ballast (data BLOB)")
        reader.execute("INSERT INTO ballast VALUES (zeroblob(100000))")
        reader.execute("DROP TABLE ballast")
        reader.execute("BEGIN IMMEDIATE")
        result = run("db", "compact")
    assert result.exit_code != 0
    assert "another process is using" in result.stderr
