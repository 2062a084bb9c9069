"""Commits, lines of files and hand-overs, as the page requests them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from support.made_repository import REMOTE, MadeRepository, Session
from turnlog.server import Settings
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer
from turnlog.sync.syncer import sync

OpenClient = Callable[..., TestClient]


@pytest.fixture
def made(home: Path) -> MadeRepository:
    """A clone with a commit of a session, whose store is `store.db`."""
    repository = MadeRepository(home / "shop", home / ".claude")
    repository.write("till.py", ["total = 0"])
    repository.commit_by_hand("Begin")
    session = Session(repository, "Say what the tax is")
    session.edit("till.py", [], ["tax_of_the_till = rate_of_the_till * 7"])
    session.commit("Add the tax")
    session.open_pull_request(12)
    session.save()
    path = home / "store.db"
    sync(path, roots=[home / ".claude"])
    with Indexer(path, search_path(path)) as indexer:
        indexer.catch_up()
    return repository


def session_of(client: TestClient) -> str:
    [session] = client.get("/api/sessions").json()["items"]
    return session["id"]


def test_a_session_has_its_commits(home: Path, made: MadeRepository, open_client: OpenClient) -> None:
    client = open_client(home / "store.db")
    found = client.get(f"/api/sessions/{session_of(client)}/commits").json()
    [commit] = found["commits"]
    assert made.head().startswith(commit["hash"])
    assert (commit["subject"], commit["deed"], commit["turn"]) == ("Add the tax", "committed", 1)
    assert [request["url"] for request in found["pull_requests"]] == [f"{REMOTE}/pull/12"]
    assert client.get("/api/sessions/claude-code:none/commits").status_code == 404


def test_lines_of_a_file_have_their_sessions(home: Path, made: MadeRepository, open_client: OpenClient) -> None:
    client = open_client(home / "store.db")
    found = client.get("/api/files/lines", params={"path": str(made.folder / "till.py")}).json()
    assert [(each["first"], each["last"], each["link"] and each["link"]["turn"]) for each in found["lines"]] == [
        (1, 1, None),
        (2, 2, 1),
    ]


@pytest.mark.parametrize("path", ["/etc/passwd", "{shop}/../secret.txt", "{shop}/gone.py"])
def test_only_files_of_projects_are_looked_at(
    home: Path, made: MadeRepository, open_client: OpenClient, path: str
) -> None:
    (home / "secret.txt").write_text("secret\n")
    answer = open_client(home / "store.db").get("/api/files/lines", params={"path": path.format(shop=made.folder)})
    assert answer.status_code == 404


def test_agents_to_hand_a_session_to_are_listed(home: Path, made: MadeRepository, open_client: OpenClient) -> None:
    del made
    found = open_client(home / "store.db").get("/api/handoffs").json()["items"]
    assert {"agent": "codex", "display_name": "Codex", "is_installed": False} in [
        each | {"is_installed": False} for each in found
    ]


def test_a_session_is_handed_over_where_prompts_are_taken(
    home: Path, made: MadeRepository, open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    del made
    (home / "bin").mkdir()
    (home / "bin/codex").write_text("#!/bin/sh\n")
    (home / "bin/codex").chmod(0o755)
    monkeypatch.setenv("PATH", str(home / "bin"), prepend=":")
    refusing = open_client(home / "store.db")
    address = f"/api/sessions/{session_of(refusing)}/handoff"
    assert refusing.post(address, json={"agent": "codex"}).status_code == 403
    settings = Settings(prompts=True, token="a token of the test", static_folder=home / "no web app")
    client = open_client(home / "store.db", settings)
    client.headers["Authorization"] = "Bearer a token of the test"
    written = client.post(address, json={"agent": "codex"}).json()
    assert written["session_id"].startswith("codex:")
    assert list((home / ".codex").rglob("*.jsonl"))
    assert client.post(address, json={"agent": "klaude"}).status_code == 409
