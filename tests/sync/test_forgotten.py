"""What was forgotten does not come back, though the agent still has its files: not into the archive either."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.agent_cases import names, one_per_package
from turnlog.agents import agent
from turnlog.errors import StoreBusyError
from turnlog.server.sample import LOGS
from turnlog.store import connection as connections
from turnlog.store import open_store
from turnlog.store.connection import connect
from turnlog.store.search.base import search_path
from turnlog.store.sources import imports_folder
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.sync.importing import import_file
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync


def archived(store: Path) -> dict[str, int]:
    """Path -> bytes in the archive."""
    with closing(connect(store, read_only=True)) as connection:
        query = "SELECT s.path, sum(a.length) FROM archive a JOIN sources s ON s.key = a.source_key GROUP BY s.path"
        return dict(connection.execute(query).fetchall())


def forget_all(store: Path) -> None:
    with open_store(store) as opened:
        ids = [session.id for session in opened.sessions(limit=100).items]
    for session_id in ids:
        forget_for_good(store, session_id)


@pytest.mark.parametrize("name", names(one_per_package()))
def test_no_pass_brings_a_forgotten_session_back(name: str, tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "data" / "turnlog.db"
    shutil.copytree(LOGS / name, home)
    sync(store, roots=[home], agents=[agent(name)])
    forget_all(store)
    kept = archived(store)
    for _ in range(2):
        summary = sync(store, roots=[home], agents=[agent(name)])
        assert (summary.sessions, summary.messages, summary.problems) == (0, 0, [])
        assert archived(store).keys() <= {*kept, str(home / "projects.json")}
        for log in home.rglob("*.jsonl"):
            log.write_bytes(log.read_bytes() + b"".join(log.read_bytes().splitlines(keepends=True)[-1:]))
    rebuild(store)
    with open_store(store) as opened:
        assert (opened.status().messages, opened.status().sessions) == (0, 0)


def test_one_session_is_forgotten_and_its_neighbour_goes_on(tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "data" / "turnlog.db"
    shutil.copytree(LOGS / "gemini-cli", home)
    sync(store, roots=[home], agents=[agent("gemini-cli")])
    with open_store(store) as opened:
        gone, stays = (session.id for session in opened.sessions().items)
    forget_for_good(store, gone)
    kept = archived(store)
    sync(store, roots=[home], agents=[agent("gemini-cli")])
    assert archived(store) == kept
    with open_store(store) as opened:
        assert [session.id for session in opened.sessions().items] == [stays]


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli"])
def test_a_file_of_a_forgotten_session_is_not_kept_when_it_is_imported(name: str, tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "data" / "turnlog.db"
    shutil.copytree(LOGS / name, home)
    sync(store, roots=[home], agents=[agent(name)])
    forget_all(store)
    log = min(home.rglob("*.jsonl"))
    copy = tmp_path / "copy.jsonl"
    shutil.copyfile(log, copy)
    summary = import_file(store, copy)
    assert [problem.reason for problem in summary.problems] == ["its session was forgotten"]
    assert list(imports_folder(store).iterdir()) == []
    assert summary.messages == 0


@pytest.mark.parametrize(("name", "list_name"), [("codex", "history.jsonl"), ("gemini-cli", "tmp/sample/logs.json")])
def test_what_a_list_of_all_prompts_says_of_it_goes_too(name: str, list_name: str, tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "data" / "turnlog.db"
    shutil.copytree(LOGS / name, home)
    sync(store, roots=[home], agents=[agent(name)])
    with open_store(store) as opened:
        gone = opened.sessions().items[0]
    prompts = home / list_name
    said = {"session_id": gone.external_id, "sessionId": gone.external_id, "type": "user", "messageId": 0}
    line = json.dumps({**said, "text": "a secret", "message": "a secret", "timestamp": "2026-11-21T02:13:00Z"})
    prompts.write_text(f"{line}\n" if prompts.suffix == ".jsonl" else f"[{line}]")
    sync(store, roots=[home], agents=[agent(name)])
    assert archived(store)[str(prompts)] == prompts.stat().st_size
    assert str(prompts) in forget_for_good(store, gone.id).files
    assert str(prompts) not in archived(store)
    for _ in range(2):
        assert sync(store, roots=[home], agents=[agent(name)]).problems == []
        assert str(prompts) not in archived(store)
        prompts.write_text(f"{prompts.read_text()}\n")
    rebuild(store)


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli"])
def test_an_imported_copy_of_a_log_read_in_place_is_forgotten_too(name: str, tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "data" / "turnlog.db"
    shutil.copytree(LOGS / name, home)
    sync(store, roots=[home], agents=[agent(name)])
    with open_store(store) as opened:
        session = opened.sessions().items[0]
        [log, *_] = [source.path for source in opened.sources(session.id) if source.path.endswith(".jsonl")]
    copy = import_file(store, Path(shutil.copyfile(log, tmp_path / "copy.jsonl"))).path
    assert {log, copy} <= set(forget_for_good(store, session.id).files)
    assert archived(store).keys().isdisjoint({log, copy})
    assert list(imports_folder(store).iterdir()) == []


def described(store: Path) -> dict[str, str]:
    """Path of a file whose path does not name its session -> the id that is stored; empty if it must be looked for."""
    with closing(connect(store)) as connection:
        query = "SELECT s.path, d.session_id FROM source_sessions d JOIN sources s ON s.key = d.source_key"
        return dict(connection.execute(query).fetchall())


def test_which_sessions_copies_repeat_is_known_without_reading_them(tmp_path: Path) -> None:
    """Also after a rebuild; and a store of an earlier version learns it when a session is forgotten."""
    home, store = tmp_path / "home", tmp_path / "data" / "turnlog.db"
    shutil.copytree(LOGS / "claude-code", home)
    sync(store, roots=[home], agents=[agent("claude-code")])
    assert described(store) == {}
    copy, copies = tmp_path / "copy.jsonl", dict[str, str]()
    with open_store(store) as opened:
        for session in opened.sessions().items:
            [log] = [each.path for each in opened.sources(session.id) if each.path.endswith(".jsonl")]
            shutil.copyfile(log, copy)
            copies[import_file(store, copy).path] = session.id
    assert len(copies) > 1
    assert described(store) == copies
    rebuild(store)
    assert described(store) == copies
    with closing(connect(store)) as connection:
        connection.execute("DROP TABLE source_sessions")
        connection.execute("PRAGMA user_version = 31")
    assert described(store) == dict.fromkeys(copies, "")
    path, session_id = copies.popitem()
    assert path in forget_for_good(store, session_id).files
    assert described(store) == copies
    path, session_id = copies.popitem()
    assert path in forget_for_good(store, session_id).files
    assert described(store) == copies
    import_file(store, copy)
    assert described(store) == copies


def test_messages_shared_with_a_subagent_leave_the_index_too(tmp_path: Path) -> None:
    home, store, session = tmp_path / "home", tmp_path / "turnlog.db", "aaaaaaaa-1111-4111-8111-111111111111"
    facts = {
        "type": "user",
        "sessionId": session,
        "uuid": "u1",
        "parentUuid": None,
        "timestamp": "2026-11-21T10:00:00Z",
    }
    line = json.dumps({**facts, "message": {"role": "user", "content": "xylophonist"}})
    folder = home / "projects" / "p"
    (folder / session / "subagents").mkdir(parents=True)
    (folder / f"{session}.jsonl").write_text(f"{line}\n")
    (folder / session / "subagents" / "agent-a1.jsonl").write_text(f"{line}\n")
    sync(store, roots=[home], agents=[agent("claude-code")])
    with open_store(store) as opened:
        assert len(opened.memberships("u1")) == 2
    forget_for_good(store, f"claude-code:{session}")
    with closing(sqlite3.connect(search_path(store))) as connection:
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (0,)
    assert b"xylophonist" not in b"".join(path.read_bytes() for path in tmp_path.glob("*.db*"))


def test_whoever_reads_meanwhile_keeps_the_bytes_and_that_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, store = tmp_path / "home", tmp_path / "turnlog.db"
    shutil.copytree(LOGS / "claude-code", home)
    sync(store, roots=[home], agents=[agent("claude-code")])
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_SECONDS", 0.1)
    with open_store(store) as opened, closing(sqlite3.connect(store)) as reader:
        session = opened.sessions().items[0]
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM messages").fetchone()
        with pytest.raises(StoreBusyError, match="is forgotten, but"):
            forget_for_good(store, session.id)
        assert opened.find_session("claude-code", session.external_id) is None
