"""Commands on a store in a folder that may only be read, as on a medium that cannot be written."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from support.places import heed_modes
from support.plain_history import SESSION
from turnlog.hooks import send
from turnlog.store.connection import schema_version
from turnlog.store.search.base import search_path

pytestmark = pytest.mark.timeout(180)

EVENT = b'{"session_id": "s1", "hook_event_name": "Stop"}'


@pytest.fixture
def read_only(store: Path) -> Generator[Path]:
    """A store that nobody can write, and the folder around it."""
    around = [store.parent, *store.parent.iterdir()]
    modes = [each.stat().st_mode for each in around]
    for each in around:
        each.chmod(0o500 if each.is_dir() else 0o400)
    yield store
    for each, mode in zip(around, modes, strict=True):
        each.chmod(mode)


def start(
    *command: str, given: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *command],
        input=given,
        capture_output=True,
        preexec_fn=heed_modes,
        timeout=50,
        check=False,
        env={**os.environ, **(environment or {})},
    )


def test_what_is_stored_is_shown(read_only: Path) -> None:
    done = start("-m", "turnlog", "sessions", "--json", "--store", str(read_only))
    assert done.returncode == 0
    assert SESSION in {each["id"] for each in json.loads(done.stdout)["items"]}


def test_a_folder_without_a_store_that_cannot_be_written_says_what_helps(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o500)
    done = start("-m", "turnlog", "sessions", environment={"TURNLOG_DATA_DIR": str(folder)})
    reason = "there is none, and its folder cannot be written; the variable TURNLOG_DATA_DIR names another folder"
    assert done.returncode == 1
    assert done.stderr.decode() == f"turnlog: cannot open the store {folder / 'turnlog.db'}: {reason}\n"
    done = start("-m", "turnlog", "sessions", environment={"TURNLOG_DATA_DIR": str(folder / "below")})
    assert "Permission denied; the variable TURNLOG_DATA_DIR names another folder" in done.stderr.decode()
    done = start("-m", "turnlog", "sync", "--store", str(folder / "below" / "x.db"))
    named = f"turnlog: cannot open the store {folder / 'below' / 'x.db'}: Permission denied\n"
    assert (done.returncode, done.stderr.decode()) == (1, named)


def test_a_folder_that_cannot_be_entered_is_one_line(tmp_path: Path, store: Path) -> None:
    folder = tmp_path / "priv"
    folder.mkdir(mode=0o600)
    done = start("-m", "turnlog", "sync", "--root", str(folder), "--store", str(store))
    assert (done.returncode, done.stdout) == (6, b"No logs found.\n")
    assert done.stderr.decode() == f"turnlog: {folder}: Permission denied\n"
    done = start("-m", "turnlog", "import", str(folder / "x.jsonl"), "--store", str(store))
    assert done.returncode == 2
    assert f"'{folder / 'x.jsonl'}' cannot be read: Permission denied." in done.stderr.decode()


@pytest.fixture
def older(store: Path) -> Path:
    """A store of an older schema."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(f"PRAGMA user_version = {schema_version() - 1}")
    return store


def test_a_store_of_an_older_schema_must_be_written_once(older: Path, read_only: Path) -> None:
    done = start("-m", "turnlog", "serve", "--no-browser", "--store", str(older))
    assert done.returncode == 1
    assert f"turnlog: {older} has the older schema {schema_version() - 1}: " in done.stderr.decode()


def test_a_hook_says_nothing_and_fails_nobody(read_only: Path) -> None:
    """C8: no traceback, with or without a folder for spools."""
    done = start("-I", "-S", send.__file__, "claude-code", str(read_only.parent), given=EVENT)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_hooks_are_installed_only_where_it_can_be_written_down(read_only: Path, home: Path) -> None:
    """C8: how to undo it would be lost."""
    done = start("-m", "turnlog", "hooks", "install", "claude", "--yes", "--store", str(read_only))
    assert done.returncode == 1
    journal = read_only.parent / "hooks-installed.json"
    assert done.stderr.decode() == f"turnlog: Claude Code: {journal}: cannot be written: Permission denied\n"
    assert not (home / ".claude" / "settings.json").exists()


def test_settings_that_cannot_be_written_leave_no_trace(store: Path, home: Path) -> None:
    (home / ".claude").mkdir(0o500)
    done = start("-m", "turnlog", "hooks", "install", "claude", "--yes", "--store", str(store))
    settings = home / ".claude" / "settings.json"
    assert done.stderr.decode() == f"turnlog: Claude Code: {settings}: cannot be written: Permission denied\n"
    assert done.returncode == 1
    assert not (store.parent / "hooks-installed.json").exists()


def test_the_server_says_so_and_refuses_what_writes(read_only: Path) -> None:
    """C8: 403, and no error of the database; hooks leave their events to the log."""
    command = [sys.executable, "-m", "turnlog", "serve", "--no-browser", "--no-token", "--port", "0"]
    server = subprocess.Popen(
        [*command, "--store", str(read_only)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_modes
    )
    assert server.stdout is not None
    try:
        found = re.search(rb"http://\S+/", server.stdout.readline())
        assert found is not None
        with httpx2.Client(base_url=found[0].decode(), trust_env=False) as client:
            assert client.get(f"/api/sessions/{SESSION}/window").status_code == 200
            assert client.patch(f"/api/sessions/{SESSION}", json={"starred": True}).status_code == 403
            refused = client.post("/api/hooks/claude", content=EVENT)
            assert (refused.status_code, refused.json()["error"]["type"]) == (500, "store")
    finally:
        server.terminate()
        _, reason = server.communicate()
    assert reason == b"turnlog: the store cannot be written: it is shown as it is, and no logs are read\n"


def test_doctor_answers_too(read_only: Path) -> None:
    done = start("-m", "turnlog", "doctor", "--json", "--store", str(read_only))
    assert done.returncode in (0, 6), done.stderr
    assert json.loads(done.stdout)["store"]["sessions"] == 2


def test_doctor_answers_without_an_index_that_can_be_read(store: Path) -> None:
    index = search_path(store)
    index.write_bytes(b"no database" * 100)
    done = start("-m", "turnlog", "doctor", "--json", "--store", str(store))
    assert done.returncode in (0, 6), done.stderr
    assert f"cannot use {index}: file is not a database." in json.loads(done.stdout)["warnings"]
