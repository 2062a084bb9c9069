"""Whoever reads a session of somebody else is in the owner's audit log, whichever way it was read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from starlette.testclient import TestClient

from support.hubs import Hub, hub, listening
from support.postgres_stores import PostgresDatabases
from support.toy_store import ToyStore
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.pusher import StorePusher
from turnlog.hub.machine.state import HubConnection, MachineState
from turnlog.store.feed import taking
from turnlog.store.feed.reading import read_batch, snapshot
from turnlog.store.feed.values import FeedPosition
from turnlog.sync.syncer import sync

TEXT = "walnut " * 20_000
SAID = b'{"kind":"text","id":"u1","message":"u1","role":"user","text":"%b"}\n' % TEXT.encode()
SESSION = "toy:s"


class Pushed(NamedTuple):
    """A hub with a session of Ana, with its log file, that Ben may read."""

    hub: Hub
    ana: TestClient
    ben: TestClient
    address: str


@pytest.fixture
def pushed(databases: PostgresDatabases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pushed]:
    (tmp_path / "config.toml").write_text('[hub]\nlevel = "full"\n')
    monkeypatch.setenv("TURNLOG_CONFIG", str(tmp_path / "config.toml"))
    with hub(databases, tmp_path / "hub") as found, listening(found) as address:
        ana, ben = found.browser("Ana"), found.browser("Ben")
        with ToyStore(tmp_path) as toy:
            toy.add("s.log", SAID)
        make = found.people.secrets.make
        token = make("machine", team=1, user=found.ids["Ana"], machine="m-1", scopes=("push", "read"))[0]
        with MachineState(toy.path) as state, HubClient(address, token, seconds=5) as client:
            state.connect(HubConnection(address, token, "1", found.ids["Ana"], "laptop"))
            assert StorePusher(toy.path, state, client).push().contents == 1
        assert ana.put(f"/hub/v1/sessions/{SESSION}/sharing", json={"visibility": "team"}).status_code == 200
        yield Pushed(found, ana, ben, address)


def noted(pushed: Pushed) -> set[str]:
    """How Ben has read the session, as its owner sees it."""
    items = pushed.ana.get("/hub/v1/audit").json()["items"]
    return {each["action"] for each in items if each["subject"] == SESSION and each["actor"] == pushed.hub.ids["Ben"]}


def called(client: httpx2.Client, tool: str, **arguments: Any) -> str:
    """What a tool of MCP answers."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"Accept": "application/json, text/event-stream"}
    answer = client.post("/api/mcp?all_projects=true", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_reading_through_mcp_is_noted(pushed: Pushed) -> None:
    assert SESSION in called(pushed.ben, "list_sessions")
    assert noted(pushed) == set()  # as lists are not
    assert SESSION in called(pushed.ben, "search_history", query="walnut")
    assert noted(pushed) == {"search"}
    assert "walnut" in called(pushed.ben, "read_session", session=SESSION)
    assert noted(pushed) == {"search", "read"}


def test_reading_log_files_is_noted(pushed: Pushed) -> None:
    assert pushed.ben.get("/hub/v1/logs").json() == {"sessions": [], "others": []}
    assert pushed.ben.get(f"/hub/v1/sessions/{SESSION}/sharing").status_code == 200
    assert noted(pushed) == set()
    assert pushed.ben.get(f"/hub/v1/sessions/{SESSION}/logs").status_code == 200
    assert noted(pushed) == {"read"}


SHA256 = hashlib.sha256(TEXT.encode()).hexdigest()


@pytest.mark.parametrize(
    "path",
    [f"/hub/v1/blobs/{SHA256}", f"/api/blobs/{SHA256}", "/api/parts/u1.0", "/api/messages/u1/raw", "/api/messages/u1"],
)
def test_reading_a_piece_is_noted(path: str, pushed: Pushed) -> None:
    assert pushed.ben.get(path).status_code == 200, path
    assert noted(pushed) == {"read"}


def test_reading_ones_own_is_not_noted(pushed: Pushed) -> None:
    called(pushed.ana, "read_session", session=SESSION)
    assert pushed.ana.get(f"/hub/v1/sessions/{SESSION}/logs").status_code == 200
    assert pushed.ana.get(f"/hub/v1/blobs/{SHA256}").status_code == 200
    assert pushed.ana.get("/hub/v1/audit?action=read").json()["items"] == []


def test_a_log_file_that_the_hub_cannot_write_is_an_answer(pushed: Pushed) -> None:
    name = "x" * 300
    pushed.hub.row("UPDATE turnlog.sources SET path = replace(path, 's.log', %s) RETURNING 1", f"{name}.log")
    answer = pushed.ana.get(f"/hub/v1/sessions/{SESSION}/logs")
    assert answer.status_code == 409
    assert "File name too long" in answer.json()["error"]["message"]
    assert name not in answer.text


def test_a_session_with_another_id_here_is_resumed_by_that_of_its_agent(new_hub: Hub, tmp_path: Path) -> None:
    own = "7d1f6a52-3a70-4a57-9d0c-0b4b6f0a1c11"
    log = tmp_path / "claude" / "projects" / "-app" / f"{own}.jsonl"
    log.parent.mkdir(parents=True)
    prompt = {"type": "user", "uuid": "u1", "sessionId": own, "cwd": "/app", "version": "2.1.0"}
    log.write_text(json.dumps({**prompt, "message": {"role": "user", "content": "hello"}}) + "\n")
    sync(tmp_path / "turnlog.db", roots=[tmp_path / "claude"])
    with snapshot(tmp_path / "turnlog.db") as connection:
        batch = read_batch(connection, FeedPosition())
    assert batch is not None
    scopes = {"name": "machine", "scopes": ["read", "push"]}
    for name in ("Ana", "Ben"):
        token = new_hub.browser(name).post("/hub/v1/tokens", json=scopes).json()["token"]
        machine = new_hub.client(token)
        assert machine.post("/hub/v1/batches?store=s", content=taking.encode(batch)).status_code == 200
        (item,) = machine.get("/api/sessions").json()["items"]
        assert item["id"].endswith(f"~{new_hub.ids[name]}") == (name == "Ben")
        shown = machine.get(f"/api/sessions/{item['id']}").json()["session"]
        assert shown["resume"]["command"] == ["claude", "--resume", own]
        # At `metrics` no agent knows the id, which is a hash.
        new_hub.row("UPDATE turnlog.session_owners SET level = 'metrics' WHERE session_id = %s RETURNING 1", item["id"])
        (item,) = machine.get("/api/sessions").json()["items"]
        assert (item["upload_level"], item.get("resume")) == ("metrics", None)
