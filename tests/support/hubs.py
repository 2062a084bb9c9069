"""A hub for tests: the application over a database of its own, and clients of its people."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient

from support.postgres_stores import PostgresDatabases
from turnlog.hub.app import create_hub
from turnlog.hub.blobs import BlobStore
from turnlog.hub.callers import Role
from turnlog.hub.people.registry import People
from turnlog.hub.settings import HubSettings
from turnlog.store.postgres.database import Database

ADDRESS = "http://127.0.0.1:8765"


class Hub:
    """A running application, its people, and a browser for each of them."""

    def __init__(self, app: FastAPI, database: Database, url: str) -> None:
        self.app = app
        self.url = url
        self.database = database
        self.people: People = app.state.hub.people
        self.ids: dict[str, str] = {}
        self._clients: list[TestClient] = []

    def client(self, token: str | None = None, *, peer: str = "127.0.0.1", **headers: str) -> TestClient:
        """Somebody who asks, from nowhere in particular."""
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        made = TestClient(self.app, ADDRESS, client=(peer, 50000), raise_server_exceptions=True, headers=headers)
        self._clients.append(made)
        return made

    def browser(self, name: str, role: Role = "member", team: int = 1) -> TestClient:
        """A browser of a person who was invited, and is signed in."""
        with_role = self.people.secrets.make("invitation", team=team, role=role)[0]
        browser = self.client(**{"X-Turnlog-CSRF": "1"})
        answer = browser.post("/hub/v1/invitations/accept", json={"code": with_role, "name": name})
        assert answer.status_code == 200, answer.text
        self.ids[name] = answer.json()["user"]["id"]
        return browser

    def row(self, sql: str, *values: Any) -> Any:
        """A row of the database, read behind the hub's back."""
        return next(iter(self.rows(sql, *values)), None)

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """Rows of the database, read behind the hub's back."""
        with psycopg.connect(self.url) as connection:
            return connection.execute(sql.encode(), values).fetchall()


@contextmanager
def hub(
    databases: PostgresDatabases, cache: Path, settings: HubSettings | None = None, blobs: BlobStore | None = None
) -> Generator[Hub]:
    """A hub over a database without anybody."""
    with databases.lent(protected=True) as url:
        database = Database(url)
        app = create_hub(database, settings or HubSettings(), cache, blobs)
        with TestClient(app, ADDRESS):
            yield Hub(app, database, url)


@contextmanager
def listening(found: Hub) -> Generator[str]:
    """Let a hub listen on a port; its address."""
    with listening_app(found.app, found.app.state.contexts.end_streams) as address:
        yield address


@contextmanager
def listening_app(app: FastAPI, before_end: Callable[[], object] = lambda: None) -> Generator[str]:
    """Let an application listen on a port; its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        before_end()
        thread.join()


def save_session(client: httpx2.Client, name: str, text: str, **facts: Any) -> str:
    """Save a session with one prompt and one answer; return its id."""
    answer = client.post("/api/sessions", json={"external_id": name, "title": f"title of {text}", **facts})
    assert answer.status_code in (200, 201), answer.text
    session_id: str = answer.json()["id"]
    messages = [
        {"id": f"{name}-1", "role": "user", "parts": [{"type": "text", "text": f"prompt {text}"}]},
        {
            "id": f"{name}-2",
            "role": "assistant",
            "model": "m",
            "parts": [
                {"type": "text", "text": f"answer {text}"},
                {
                    "type": "tool-call",
                    "tool_call_id": f"{name}-c",
                    "tool_name": "Bash",
                    "kind": "execute",
                    "input_text": '{"command": "ls"}',
                },
            ],
        },
    ]
    answer = client.post(f"/api/sessions/{session_id}/messages", json={"messages": messages})
    assert answer.status_code == 200, answer.text
    return session_id


def save_counted(client: httpx2.Client, session_id: str, id: str, **usage: int) -> None:
    """Save an answer whose tokens count."""
    message = {
        "id": id,
        "role": "assistant",
        "model": "m",
        "created_at": "2026-11-20T10:00:00Z",
        "parts": [{"type": "text", "text": "counted"}],
        "usage": usage,
    }
    answer = client.post(f"/api/sessions/{session_id}/messages", json={"messages": [message]})
    assert answer.status_code == 200, answer.text
