"""What a response says is never older than its `change_sequence` or its ETag, whatever is written meanwhile.

A client goes on from that number: it gets what changed later from `/api/events`, and sends the ETag the next time.
What a response lacked, and its number includes, the client would never see.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from support.described_responses import description
from turnlog.model import Message, Origin, TextPart
from turnlog.store import open_store
from turnlog.store.base import Store

SESSION = "my-bot:1"

NUMBERED = {
    "/api/sessions": "/api/sessions",
    "/api/sessions/{session_id}": f"/api/sessions/{SESSION}",
    "/api/status": "/api/status",
}
"""Address -> where it is called."""

TAGGED = [f"/api/sessions/{SESSION}/{what}" for what in ("window", "outline", "ui-messages", "replay")]


class BusyStore:
    """A store to which somebody writes right before one of the queries of a request."""

    def __init__(self, store: Store, path: Path) -> None:
        self._store, self._path = store, path
        self._numbers = count()
        self.queries = 0
        self.write_before: int | None = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found) or name == "close":
            return found

        def query(*given: Any, **named: Any) -> Any:
            if self.queries == self.write_before:
                self.write()
            self.queries += 1
            return found(*given, **named)

        return query

    def write(self) -> None:
        """One commit that every answer about the session shows."""
        message = Message(
            id=f"m{next(self._numbers)}", role="user", origin=Origin.PROMPT, parts=(TextPart(text="More"),)
        )
        with open_store(self._path, create=True) as store:
            store.save_messages(SESSION, [message])


@pytest.fixture
def busy(tmp_path: Path) -> BusyStore:
    path = tmp_path / "turnlog.db"
    store = BusyStore(open_store(path, create=True), path)
    store.write()
    return store


@pytest.fixture
def quiet(busy: BusyStore, tmp_path: Path, open_client: Callable[..., TestClient]) -> TestClient:
    """A client of a server of its own over the same store."""
    return open_client(tmp_path / "turnlog.db")


@pytest.fixture
def client(
    quiet: TestClient,
    busy: BusyStore,
    tmp_path: Path,
    open_client: Callable[..., TestClient],
    monkeypatch: pytest.MonkeyPatch,
) -> TestClient:

    def open_busy(path: Path, *, create: bool) -> BusyStore:
        return busy

    with monkeypatch.context() as patch:
        patch.setattr("turnlog.server.app.open_store", open_busy)
        return open_client(tmp_path / "turnlog.db")


def test_every_response_with_a_number_is_called_here() -> None:
    schemas = description()["components"]["schemas"]
    numbered = {name for name, schema in schemas.items() if "change_sequence" in schema.get("properties", {})}
    found: set[str] = set()
    for address, operations in description()["paths"].items():
        for operation in operations.values():
            content = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
            if content.get("schema", {}).get("$ref", "").rpartition("/")[2] in numbered:
                found.add(address)
    assert found == set(NUMBERED)


def ask_while_somebody_writes(
    client: TestClient, quiet: TestClient, busy: BusyStore, address: str, state: Callable[[httpx2.Response], object]
) -> None:
    """Ask again and again, each time with a commit before another query.

    Where an answer names the same state as that of a server to which nobody wrote meanwhile, the two must be equal.
    """
    for place in count():
        busy.write()  # what the server knows from the last answer is old
        busy.queries, busy.write_before = 0, place
        during = client.get(address)
        was_written = busy.queries > place
        busy.write_before = None
        after = quiet.get(address)
        assert during.status_code == after.status_code == 200, during.text + after.text
        if not was_written:
            assert place > 1
            return
        if state(during) == state(after):
            assert during.json() == after.json(), f"written before query {place}"


@pytest.mark.parametrize("address", NUMBERED.values())
def test_an_answer_is_never_older_than_its_number(
    client: TestClient, quiet: TestClient, busy: BusyStore, address: str
) -> None:
    ask_while_somebody_writes(client, quiet, busy, address, lambda answer: answer.json()["change_sequence"])


@pytest.mark.parametrize("address", TAGGED)
def test_an_answer_is_never_older_than_its_tag(
    client: TestClient, quiet: TestClient, busy: BusyStore, address: str
) -> None:
    # A tag ends with the number; what is before it names the server.
    ask_while_somebody_writes(client, quiet, busy, address, lambda answer: answer.headers["etag"].rpartition("-")[2])
