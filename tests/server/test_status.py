"""`/api/status` says whether the store can be written, before a sync has tried in vain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from turnlog.server import Settings


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A full disk; the stores that were tried."""
    tried: list[Path] = []

    def try_to_write(path: Path) -> str:
        tried.append(path)
        return "No space left on device"

    monkeypatch.setattr("turnlog.server.context.why_not_written", try_to_write)
    return tried


def test_a_store_that_can_be_written_has_no_reason(client: TestClient) -> None:
    assert client.get("/api/status").json()["unwritable"] is None


def test_a_full_disk_is_named_and_tried_once_in_some_seconds(
    own_store: Path, open_client: Callable[..., TestClient], full: list[Path]
) -> None:
    client = open_client(own_store)
    answers = [client.get("/api/status").json()["unwritable"] for _ in range(5)]
    assert answers == ["No space left on device"] * 5
    assert full == [own_store]


def test_a_store_that_is_for_reading_only_is_not_written(
    own_store: Path, open_client: Callable[..., TestClient], full: list[Path]
) -> None:
    client = open_client(own_store, Settings(read_only=True))
    assert client.get("/api/status").json()["unwritable"] is None
    assert full == []
