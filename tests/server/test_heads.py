"""HEAD: what GET would answer, without its body."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

MAIN = f"/api/sessions/{quote('plain:main')}"


@pytest.mark.parametrize(
    "path",
    [
        "/api/status",
        "/api/sessions?limit=2",
        MAIN,
        f"{MAIN}/window",
        f"{MAIN}/export?as=markdown",
        "/api/sessions/nobody",
        "/api/sessions?limit=x&nothing=1",
        "/api/nothing",
        "/openapi.json",
    ],
)
def test_head_is_get_without_a_body(client: TestClient, path: str) -> None:
    bare, whole = client.head(path), client.get(path)
    assert whole.content
    assert bare.content == b""
    assert bare.status_code == whole.status_code
    assert dict(bare.headers) == dict(whole.headers)


def test_a_stream_is_not_begun(client: TestClient) -> None:
    """It has no end: whoever waited for it would wait for ever."""
    for path in ("/api/events", f"{MAIN}/events"):
        bare = client.head(path)
        assert (bare.status_code, bare.content) == (200, b"")
        assert bare.headers["content-type"].startswith("text/event-stream")


def test_what_answers_no_get_answers_no_head(client: TestClient) -> None:
    assert client.head("/api/hooks/codex").status_code == client.get("/api/hooks/codex").status_code
