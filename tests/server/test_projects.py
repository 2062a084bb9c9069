"""Projects over HTTP: the list, names and merges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from turnlog.server import Settings

OpenClient = Callable[..., TestClient]


@pytest.fixture
def client(own_store: Path, open_client: OpenClient) -> TestClient:
    """A client of a store that the test may change."""
    return open_client(own_store)


def sessions(client: TestClient) -> dict[str, int]:
    return {found["path"]: found["sessions"] for found in client.get("/api/projects").json()["items"]}


def test_a_project_is_renamed_for_every_list(client: TestClient) -> None:
    answer = client.patch("/api/projects", json={"path": "/work/shop", "name": "Web shop"})
    assert (answer.status_code, answer.json()["name"]) == (200, "Web shop")
    found = client.get("/api/sessions", params={"project": "Web shop"}).json()["items"]
    assert {session["project"]["name"] for session in found} == {"Web shop"}
    assert client.patch("/api/projects", json={"path": "/work/shop", "name": None}).json()["name"] == "shop"


def test_a_project_is_merged_into_another_and_split_again(client: TestClient) -> None:
    before = sessions(client)
    other = next(path for path in before if path != "/work/shop")
    merged = client.patch("/api/projects", json={"path": "/work/shop", "merged_into": other}).json()
    assert (merged["path"], merged["merged"]) == (other, ["/work/shop"])
    assert sessions(client) == {other: sum(before.values())}
    assert client.patch("/api/projects", json={"path": "/work/shop", "merged_into": None}).status_code == 200
    assert sessions(client) == before


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"path": "/nowhere", "name": "x"}, 404),
        ({"path": "/work/shop", "merged_into": "/work/shop"}, 409),
        ({"path": "/work/shop", "merged_into": None}, 404),
        ({"path": "/work/shop"}, 422),
        ({"path": "/work/shop", "name": "x" * 201}, 422),
        ({"path": "", "name": "x"}, 422),
        ({"path": "/work/shop", "title": "x"}, 422),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(client: TestClient, body: dict[str, str], status: int) -> None:
    answer = client.patch("/api/projects", json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_a_server_for_reading_only_changes_no_project(own_store: Path, open_client: OpenClient) -> None:
    client = open_client(own_store, Settings(read_only=True))
    assert client.patch("/api/projects", json={"path": "/work/shop", "name": "x"}).status_code == 403
