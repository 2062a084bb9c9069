"""Names that the user gives to sessions are in separate files: the last one counts, whenever it is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.codex_files import OTHER, THREAD, meta, prompt
from turnlog.agents import agent
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.store.connection import connect
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

CODEX = agent("codex")
SESSION = f"codex:{THREAD}"


def name(text: str, thread: str = THREAD) -> bytes:
    return json.dumps({"id": thread, "thread_name": text, "updated_at": "2026-11-21T10:00:00Z"}).encode() + b"\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "sessions" / "2026" / "11" / "21"
    folder.mkdir(parents=True)
    return tmp_path / "home"


def log_of(home: Path) -> Path:
    return home / "sessions" / "2026" / "11" / "21" / f"rollout-2026-11-21T10-00-00-{THREAD}.jsonl"


def titles(store: Path) -> dict[str, tuple[str | None, str | None]]:
    with open_store(store) as opened:
        return {found.id: (found.title, found.title_source) for found in opened.sessions(SessionFilter()).items}


def read(home: Path, store: Path) -> None:
    assert sync(store, roots=[home], agents=[CODEX]).problems == []


def test_a_session_that_is_renamed_after_its_log_was_read_has_the_new_name(home: Path, tmp_path: Path) -> None:
    """R-C6: and in whatever order the two files grow the stores say the same."""
    index, log = home / "session_index.jsonl", log_of(home)
    steps = [(log, meta() + prompt("First")), (index, name("one")), (log, prompt("Second")), (index, name("two"))]
    for path, data in steps:
        with path.open("ab") as file:
            file.write(data)
        read(home, tmp_path / "grown.db")
    assert titles(tmp_path / "grown.db") == {SESSION: ("two", "custom")}
    read(home, tmp_path / "whole.db")
    assert titles(tmp_path / "whole.db") == {SESSION: ("two", "custom")}
    index.write_bytes(name("three"))
    read(home, tmp_path / "grown.db")
    assert titles(tmp_path / "grown.db") == {SESSION: ("three", "custom")}
    rebuild(tmp_path / "grown.db")
    assert titles(tmp_path / "grown.db") == {SESSION: ("three", "custom")}


def test_a_thread_whose_id_begins_like_another_has_no_part_in_its_name(home: Path, tmp_path: Path) -> None:
    """The agent says which name holds: an id alone does not."""
    log_of(home).write_bytes(meta() + prompt("First"))
    log_of(home).with_name(f"rollout-2026-11-21T10-00-00-{THREAD}_copy.jsonl").write_bytes(
        meta(id=f"{THREAD}_copy") + prompt("Second")
    )
    (home / "session_index.jsonl").write_bytes(name("one"))
    read(home, tmp_path / "t.db")
    assert titles(tmp_path / "t.db") == {SESSION: ("one", "custom"), f"{SESSION}_copy": ("Second", "prompt")}


def test_a_name_waits_for_its_log(home: Path, tmp_path: Path) -> None:
    store = tmp_path / "t.db"
    (home / "session_index.jsonl").write_bytes(name("one") + name("other", OTHER))
    read(home, store)
    assert titles(store) == {}
    log_of(home).write_bytes(meta() + prompt("First"))
    read(home, store)
    assert titles(store) == {SESSION: ("one", "custom")}


def test_the_name_of_a_forgotten_session_is_forgotten(home: Path, tmp_path: Path) -> None:
    store = tmp_path / "t.db"
    log_of(home).write_bytes(meta() + prompt("First"))
    (home / "session_index.jsonl").write_bytes(name("secret"))
    read(home, store)
    forget_for_good(store, SESSION)
    with (home / "session_index.jsonl").open("ab") as file:
        file.write(name("secret again") + name("kept", OTHER))
    read(home, store)
    connection = connect(store, read_only=True)
    assert connection.execute("SELECT record_id, title FROM leaf_titles").fetchall() == [(f"codex:{OTHER}", "kept")]
    connection.close()
