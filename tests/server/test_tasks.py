"""Tasks over HTTP, and those that the environment of hooks names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from turnlog.agents import agent
from turnlog.hooks import send
from turnlog.server import Settings
from turnlog.store import open_store
from turnlog.sync.syncer import sync

OpenClient = Callable[..., TestClient]


@pytest.fixture
def client(tmp_path: Path, open_client: OpenClient) -> TestClient:
    return open_client(tmp_path / "turnlog.db")


def test_a_task_is_created_read_renamed_and_deleted(client: TestClient) -> None:
    """R-C6, R-C12."""
    made = client.post("/api/tasks", json={"name": "Move the till", "id": "T-1"})
    assert (made.status_code, made.json()["id"], made.json()["user"]) == (201, "T-1", None)
    body = {"agent": "bot", "external_id": "a", "ownership": {"task": "T-1"}}
    assert client.post("/api/sessions", json=body).status_code == 201
    assert client.get("/api/tasks/T-1").json()["sessions"] == 1
    assert [found["id"] for found in client.get("/api/sessions?task=T-1").json()["items"]] == ["bot:a"]
    assert client.patch("/api/tasks/T-1", json={"name": "Till"}).json()["name"] == "Till"
    assert [found["name"] for found in client.get("/api/tasks").json()["items"]] == ["Till"]
    assert client.delete("/api/tasks/T-1").status_code == 204
    assert client.get("/api/tasks").json() == {"items": []}
    assert client.get("/api/sessions/bot:a").json()["session"]["ownership"] == {}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "field"),
    [
        ("POST", "/api/tasks", {"name": "x", "id": "T-1"}, 409, None),
        ("POST", "/api/tasks", {"name": ""}, 422, "name"),
        ("POST", "/api/tasks", {"id": "x"}, 422, "name"),
        ("POST", "/api/tasks", {"name": "x", "user": "me"}, 422, "user"),
        ("POST", "/api/tasks", {"name": "x" * 201}, 422, "name"),
        ("GET", "/api/tasks/nobody", None, 404, None),
        ("PATCH", "/api/tasks/nobody", {"name": "x"}, 404, None),
        ("PATCH", "/api/tasks/T-1", {}, 422, "name"),
        ("DELETE", "/api/tasks/nobody", None, 404, None),
    ],
)
def test_what_cannot_be_done_is_reported(
    client: TestClient, method: str, path: str, body: Any, status: int, field: str | None
) -> None:
    client.post("/api/tasks", json={"name": "x", "id": "T-1"})
    answer = client.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    detail = answer.json()["error"]["detail"]
    assert [found["field"] for found in detail or ()] == ([] if field is None else [field])


def test_a_server_for_reading_only_changes_no_task(tmp_path: Path, open_client: OpenClient) -> None:
    client = open_client(tmp_path / "turnlog.db", Settings(read_only=True))
    assert client.post("/api/tasks", json={"name": "x"}).status_code == 403


def test_a_hook_puts_its_session_into_the_task_that_the_environment_names(tmp_path: Path, home: Path) -> None:
    """The very program that an agent starts, without a server."""
    event = b'{"session_id": "s1", "hook_event_name": "UserPromptSubmit", "cwd": "/work", "prompt": "Hello"}'
    environment = {**os.environ, send.TASK_VARIABLE: ' Fix "login"\n'}
    program = [sys.executable, "-I", "-S", send.__file__, "claude-code", str(tmp_path)]
    subprocess.run(program, input=event, env=environment, check=True)
    path = tmp_path / "turnlog.db"
    sync(path, agents=[agent("claude-code")])
    with open_store(path) as store:
        assert store.session("claude-code:s1").ownership.task == 'Fix "login"'
        assert [(task.id, task.sessions) for task in store.tasks()] == [('Fix "login"', 1)]
        store.change_owner("claude-code:s1", store.session("claude-code:s1").ownership.__class__(task="mine"))
    subprocess.run(program, input=event.replace(b"Hello", b"More"), env=environment, check=True)
    sync(path, agents=[agent("claude-code")])
    with open_store(path) as store:
        assert store.session("claude-code:s1").ownership.task == "mine"


def test_a_posted_event_names_its_task(client: TestClient) -> None:
    """R-C18."""
    event = {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "cwd": "/work", "prompt": "Hello"}
    assert client.post("/api/hooks/claude", params={"task": "T-9"}, json=event).status_code == 202
    assert client.get("/api/tasks/T-9").json()["sessions"] == 1
