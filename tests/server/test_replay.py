"""A session shown again, over HTTP."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from support.server_history import MAIN
from turnlog.replay import replay
from turnlog.store import open_store

ADDRESS = f"/api/sessions/{MAIN}/replay"


def test_a_replay_is_what_the_library_makes_of_the_history(client: TestClient, library: Path) -> None:
    page = client.get(ADDRESS).json()
    with open_store(library) as store:
        shown = replay(store.history(MAIN), response_metadata=True)
    assert [item["event"]["type"] for item in page["items"]] == [event.__struct_config__.tag for event in shown]
    assert (page["before"], page["after"]) == (None, None)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_either_way_are_slices_of_the_whole_with_the_same_pauses(client: TestClient, limit: int) -> None:
    whole = client.get(ADDRESS).json()["items"]
    assert _pages(client, "after", limit) == whole
    backwards = _pages(client, "before", limit, before=10**9)
    assert sorted(backwards, key=whole.index) == whole


def _pages(client: TestClient, way: str, limit: int, **first: int) -> list[dict[str, Any]]:
    """All events, page by page."""
    pieces: list[dict[str, Any]] = []
    parameters: dict[str, int] | None = first
    while parameters is not None:
        page = client.get(ADDRESS, params={"limit": limit, **parameters}).json()
        pieces += page["items"]
        parameters = None if page[way] is None else {way: page[way]}
    return pieces


def test_a_page_is_around_a_position_and_none_beyond_the_end(client: TestClient) -> None:
    whole = client.get(ADDRESS).json()["items"]
    middle = whole[len(whole) // 2]["event"]["position"]
    page = client.get(ADDRESS, params={"around": middle, "limit": 2}).json()["items"]
    assert middle in {item["event"]["position"] for item in page}
    assert len(page) < len(whole)
    beyond = client.get(ADDRESS, params={"after": 10**9}).json()
    assert beyond == {"items": [], "before": None, "after": None}


def test_pauses_are_those_of_then_scaled_and_capped(client: TestClient) -> None:
    events = client.get(ADDRESS, params={"speed": 60, "max_pause": 1.5}).json()["items"]
    assert events[0]["delay"] == 0
    assert max(item["delay"] for item in events) == 1.5
    times = [datetime.fromisoformat(item["event"]["created_at"]) for item in events[:2]]
    assert events[1]["delay"] == pytest.approx(min((times[1] - times[0]).total_seconds() / 60, 1.5))


def test_an_unchanged_session_is_not_sent_again(client: TestClient) -> None:
    etag = client.get(ADDRESS).headers["etag"]
    assert client.get(ADDRESS, headers={"If-None-Match": etag}).status_code == 304


@pytest.mark.parametrize(
    "wrong", [{"speed": 0}, {"speed": "nan"}, {"max_pause": -1}, {"after": "the end"}, {"around": 1, "after": 1}]
)
def test_what_cannot_be_is_422(client: TestClient, wrong: dict[str, str | int]) -> None:
    assert client.get(ADDRESS, params=wrong).status_code == 422


def test_an_unknown_session_is_404(client: TestClient) -> None:
    assert client.get("/api/sessions/plain:nope/replay").status_code == 404
