"""`/api/runs`: what was started through turnlog."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from starlette.testclient import TestClient

from support.plain_store import at
from support.server_history import MAIN
from turnlog.model import Usage
from turnlog.runs.lifecycle import ended, new_run, save, started


def test_runs_are_listed_and_shown(own_store: Path, open_client: Callable[..., TestClient]) -> None:
    """R-S35, R-S40."""
    first = save(own_store, ended(started(new_run("command", agent="codex", command=("codex", "exec", "hi"))), 0))
    save(own_store, msgspec.structs.replace(first, usage=Usage(input=3, output=4), session_id="codex:1"))
    second = save(own_store, started(new_run("runtime", agent="claude-code")))
    client = open_client(own_store)
    page = client.get("/api/runs").json()
    assert [item["id"] for item in page["items"]] == [second.id, first.id]
    assert (page["total"], page["next_cursor"]) == (2, None)
    shown = client.get(f"/api/runs/{first.id[:9]}").json()
    assert shown == page["items"][1]
    assert (shown["tokens"], shown["usage"]) == (7, {"input": 3, "output": 4})
    assert (shown["status"], shown["command"], shown["cost"]) == ("completed", ["codex", "exec", "hi"], None)


def test_filters_and_pages(own_store: Path, open_client: Callable[..., TestClient]) -> None:
    made = [save(own_store, ended(new_run("command", agent="codex"), code)) for code in (0, 3, 0)]
    client = open_client(own_store)
    failed = client.get("/api/runs", params={"status": "failed"}).json()
    assert [item["id"] for item in failed["items"]] == [made[1].id]
    first = client.get("/api/runs", params={"limit": 2}).json()
    rest = client.get("/api/runs", params={"cursor": first["next_cursor"]}).json()
    assert [item["id"] for item in rest["items"]] == [made[0].id]


def test_the_messages_of_a_run_are_read_page_by_page(own_store: Path, open_client: Callable[..., TestClient]) -> None:
    """R-S24."""
    run = msgspec.structs.replace(new_run("command"), session_id=MAIN, created_at=at(0), ended_at=at(7), exit_code=0)
    save(own_store, run)
    client = open_client(own_store)
    address = f"/api/runs/{run.id}/messages"
    first = client.get(address, params={"limit": 3}).json()
    rest = client.get(address, params={"limit": 3, "cursor": first["next_cursor"]}).json()
    items = [*first["items"], *rest["items"]]
    assert [item["message"]["id"] for item in items] == ["m1", "m2", "m3", "m4"]
    assert rest["next_cursor"] is None
    shown = client.get("/api/messages/m2").json()
    assert items[1]["membership"] == shown["memberships"][0]
    assert [part["type"] for part in items[1]["message"]["parts"]] == [
        part["type"] for part in shown["message"]["parts"]
    ]
    assert items[1]["cost"]["amount"] == "1.15"
    assert items[0]["cost"] is None
    assert client.get("/api/runs/nothing/messages").status_code == 404
    assert client.get(address, params={"cursor": "x"}).status_code == 422
    unread = save(own_store, new_run("command"))
    assert client.get(f"/api/runs/{unread.id}/messages").json() == {"items": [], "next_cursor": None}


def test_what_is_not_there_or_makes_no_sense(client: TestClient) -> None:
    assert client.get("/api/runs/nothing").status_code == 404
    assert client.get("/api/runs?status=gone").status_code == 422
    assert client.get("/api/runs?cursor=x").status_code == 422
