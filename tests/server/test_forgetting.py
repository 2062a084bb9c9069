"""Forgetting a session over HTTP: first what would go, then for good; refused where nothing may be changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from support.server_history import MAIN
from turnlog.server import Settings

OpenClient = Callable[..., TestClient]
ADDRESS = f"/api/sessions/{MAIN}/forget"


def test_a_dry_run_says_what_would_go_and_removes_nothing(own_store: Path, open_client: OpenClient) -> None:
    client = open_client(own_store)
    before = client.get("/api/status").json()["change_sequence"]
    plan = client.post(ADDRESS, json={"dry_run": True}).json()
    assert not plan["forgotten"]
    assert MAIN in plan["session_ids"]
    assert plan["messages"] > 0
    assert plan["files"]
    assert plan["archived_bytes"] > 0
    assert client.get(f"/api/sessions/{MAIN}").status_code == 200
    assert client.get("/api/status").json()["change_sequence"] == before


def test_what_is_forgotten_is_what_the_dry_run_said(own_store: Path, open_client: OpenClient) -> None:
    client = open_client(own_store)
    plan = client.post(ADDRESS, json={"dry_run": True}).json()
    answer = client.post(ADDRESS, json={"dry_run": False})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {**plan, "forgotten": True}
    for session_id in plan["session_ids"]:
        assert client.get(f"/api/sessions/{session_id}").status_code == 404
    assert client.post(ADDRESS, json={"dry_run": True}).status_code == 404


def test_nothing_is_forgotten_without_saying_that_it_is_no_dry_run(own_store: Path, open_client: OpenClient) -> None:
    client = open_client(own_store)
    assert client.post(ADDRESS, json={}).status_code == 422
    assert client.post(ADDRESS, json={"dry_run": "no"}).status_code == 422
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post(ADDRESS, content=b"dry_run=false", headers=form).status_code == 415
    assert client.get(f"/api/sessions/{MAIN}").status_code == 200


@pytest.mark.parametrize("settings", [Settings(read_only=True), Settings(sample=True)])
def test_a_server_for_reading_forgets_nothing(own_store: Path, open_client: OpenClient, settings: Settings) -> None:
    client = open_client(own_store, settings)
    assert client.post(ADDRESS, json={"dry_run": False}).status_code == 403
    assert client.get(f"/api/sessions/{MAIN}").status_code == 200


def test_another_site_forgets_nothing(own_store: Path, open_client: OpenClient) -> None:
    client = open_client(own_store)
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "http://elsewhere.example"}
    assert client.post(ADDRESS, json={"dry_run": False}, headers=foreign).status_code == 403
    assert client.get(f"/api/sessions/{MAIN}").status_code == 200
