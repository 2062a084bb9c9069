"""Search over HTTP: hits by session, snippets in pieces, pages, and how far the index is behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient

from support.server_history import FORK, MAIN, SUBAGENT
from turnlog.server.responses import SearchHit, SearchResponse
from turnlog.server.routes.search import group_hits
from turnlog.store.search.base import Hit, HitPlace, search_path
from turnlog.store.search.indexer import Indexer

OpenClient = Callable[..., TestClient]


@pytest.fixture(scope="module")
def searchable(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with its index. Nobody changes them."""
    store = copied(library, tmp_path_factory.mktemp("searchable"))
    with Indexer(store, search_path(store)) as indexer:
        indexer.catch_up()
    return store


def copied(store: Path, folder: Path) -> Path:
    for file in store.parent.glob("*.db*"):
        shutil.copy(file, folder / file.name)
    return folder / store.name


@pytest.fixture
def indexed(searchable: Path, open_client: OpenClient) -> TestClient:
    """A client of a store that is searchable."""
    return open_client(searchable)


def search(client: TestClient, **parameters: str | int) -> SearchResponse:
    """Every hit, newest first, unless another order is requested."""
    response = client.get("/api/search", params={"sort": "newest", **parameters})
    assert response.status_code == 200, response.text
    return msgspec.json.decode(response.content, type=SearchResponse)


def hits(answer: SearchResponse) -> list[SearchHit]:
    return [hit for group in answer.items for hit in group.hits]


def marked(hit: SearchHit) -> list[str]:
    return [piece.text for piece in hit.snippet if piece.marked]


@pytest.mark.parametrize(
    ("word", "message", "field", "part"),
    [
        ("repair", "m1", "text", 0),
        ("glass first", "m2", "reasoning", 0),
        ("make", "m2", "input", 2),
        ("frame.py", "m2", "input", 3),
        ("shop.png", "m4", "file", 0),
        ("窓", "m5/odd", "text", 0),
    ],
)
def test_every_field_is_found_and_leads_to_its_part(
    indexed: TestClient, word: str, message: str, field: str, part: int
) -> None:
    answer = search(indexed, q=word)
    assert answer.unindexed == 0
    found = next(hit for hit in hits(answer) if hit.message_id == message and hit.field == field)
    assert found.part == part
    assert marked(found)
    window = indexed.get(f"/api/sessions/{answer.items[0].session.id}/window", params={"around": found.position})
    assert message in [item["id"] for item in window.json()["items"]]


def test_a_snippet_in_pieces_is_the_whole_snippet(indexed: TestClient) -> None:
    (hit,) = hits(search(indexed, q="repair window", session=MAIN))
    assert [piece.text for piece in hit.snippet] == ["Please ", "repair", " the shop ", "window"]
    assert marked(hit) == ["repair", "window"]


def test_hits_are_in_their_sessions(indexed: TestClient) -> None:
    answer = search(indexed, q="scout")
    groups = {group.session.id: group for group in answer.items}
    assert set(groups) == {MAIN, SUBAGENT}
    assert groups[MAIN].session.title == "Repair the shop"
    assert groups[MAIN].session.project == "/work/shop"


def test_a_shared_message_is_found_once(indexed: TestClient) -> None:
    for asked, other in ((MAIN, FORK), (FORK, MAIN)):
        answer = search(indexed, q="repair", session=asked)
        (hit,) = hits(answer)
        assert answer.items[0].session.id == asked
        assert [place.session_id for place in hit.also_in] == [other]


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({"q": "shop", "agent": "codex"}, set[str]()),
        ({"q": "shop", "role": "assistant"}, {"m2", "m5/odd"}),
        ({"q": "shop", "project": "blog"}, set[str]()),
        ({"q": "glass", "field": "reasoning"}, {"m2"}),
        ({"q": "frame", "tool": "read"}, {"m2"}),
        ({"q": "frame", "failed": "true"}, {"m2"}),
        ({"q": "glass", "failed": "true"}, set[str]()),
        ({"q": "shop", "since": "2026-11-02T09:08:00Z"}, {"m5/odd"}),
        ({"q": "shop", "until": "2026-11-02T09:01:00Z"}, {"m1"}),
        ({"q": "", "failed": "true"}, {"m2"}),
        ({"q": "rep*"}, {"m1"}),
        ({"q": '"shop window"'}, {"m1"}),
        ({"q": "nowhere"}, set[str]()),
    ],
)
def test_filters(indexed: TestClient, parameters: dict[str, str], found: set[str]) -> None:
    assert {hit.message_id for hit in hits(search(indexed, **parameters))} == found


def test_pages_follow_each_other(indexed: TestClient) -> None:
    for sort in ("newest", "relevance"):
        whole = [(hit.message_id, hit.field, hit.part) for hit in hits(search(indexed, q="shop", sort=sort, flat=True))]
        assert len(whole) > 2
        seen: list[tuple[str, str, int]] = []
        cursor: str | None = ""
        while cursor is not None:
            answer = search(indexed, q="shop", sort=sort, flat=True, limit=1, cursor=cursor)
            seen += [(hit.message_id, hit.field, hit.part) for hit in hits(answer)]
            cursor = answer.next_cursor
        assert seen == whole


@pytest.mark.parametrize(
    "query", ['"', "*", "AND OR NOT", "a NEAR b", "x:y", "(", "'; DROP TABLE words", "\x00", "^ {}"]
)
def test_no_query_is_an_error(indexed: TestClient, query: str) -> None:
    assert indexed.get("/api/search", params={"q": query}).status_code == 200


@pytest.mark.parametrize("query", ["->", "✨", '"', "*", "-", "OR"])
def test_what_has_no_word_is_found_nowhere(indexed: TestClient, query: str) -> None:
    answer = search(indexed, q=query)
    assert (answer.items, answer.total, answer.total_is_exact, answer.unindexed) == ([], 0, True, 0)
    assert search(indexed, q=" ", role="user").total


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"q": "x" * 1001}, "q"),
        ({"q": " ".join(f"w{number}" for number in range(33))}, "q"),
        ({"q": "x", "field": "title"}, "field"),
        ({"q": "x", "role": "robot"}, "role"),
        ({"q": "x", "sort": "oldest"}, "sort"),
        ({"q": "x", "cursor": "abc"}, "cursor"),
    ],
)
def test_what_cannot_be_searched_for_is_422(indexed: TestClient, parameters: dict[str, str], field: str) -> None:
    response = indexed.get("/api/search", params=parameters)
    assert response.status_code == 422
    assert [wrong["field"] for wrong in response.json()["error"]["detail"]] == [field]


def test_without_an_index_nothing_is_found_and_all_is_unindexed(client: TestClient) -> None:
    answer = search(client, q="shop")
    assert answer.items == []
    assert answer.unindexed == 8
    assert client.get("/api/status").json()["search"]["unindexed"] == 8


def test_the_status_says_when_search_is_up_to_date(indexed: TestClient) -> None:
    assert indexed.get("/api/status").json()["search"]["unindexed"] == 0


def test_a_damaged_index_does_not_take_the_status_with_it(
    searchable: Path, tmp_path: Path, open_client: OpenClient
) -> None:
    store = copied(searchable, tmp_path)
    client = open_client(store)
    index = search_path(store)
    for file in index.parent.glob(f"{index.name}-*"):
        file.unlink()
    index.write_bytes(b"this is no index" * 10_000)
    assert client.get("/api/status").json()["search"]["unindexed"] in (None, 8)


def test_groups_are_in_the_order_of_their_first_hit() -> None:
    def hit(message: str, *sessions: str) -> Hit:
        places = tuple(HitPlace(session, 7, None, None) for session in sessions)
        return Hit(message, "plain", "user", 0, "text", None, None, "ab", ((1, 2),), places)

    groups = group_hits([hit("1", "x", "y"), hit("2", "z"), hit("3", "x"), hit("4", "y", "x"), hit("5")], None)
    assert [(group.session.id, [found.message_id for found in group.hits]) for group in groups] == [
        ("x", ["1", "3"]),
        ("z", ["2"]),
        ("y", ["4"]),
    ]
    asked = group_hits([hit("1", "x", "y")], "y")
    assert asked[0].session.id == "y"
    assert [place.session_id for place in asked[0].hits[0].also_in] == ["x"]


def test_by_default_sessions_are_ranked_with_their_best_hit(indexed: TestClient) -> None:
    response = indexed.get("/api/search", params={"q": "shop"})
    answer = msgspec.json.decode(response.content, type=SearchResponse)
    assert (answer.counted, answer.total, answer.total_is_exact) == ("sessions", len(answer.items), True)
    first = answer.items[0]
    assert first.session.id == MAIN
    assert [piece.text for piece in first.names[0].text if piece.marked] == ["shop"]
    (hit,) = first.hits
    assert marked(hit)
    every = [hit for group in search(indexed, q="shop").items if group.session.id == MAIN for hit in group.hits]
    assert (first.matches, first.matches_is_exact) == (len(every), True)


def test_sessions_come_in_pages(indexed: TestClient) -> None:
    whole = search(indexed, q="shop", sort="relevance")
    assert len(whole.items) > 1
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = search(indexed, q="shop", sort="relevance", limit=1, cursor=cursor)
        seen += [group.session.id for group in answer.items]
        cursor = answer.next_cursor
    assert seen == [group.session.id for group in whole.items]


def test_a_misspelt_word_is_answered_with_what_may_be_meant(indexed: TestClient) -> None:
    answer = search(indexed, q="repiar window", sort="relevance")
    assert (answer.items, answer.suggestion) == ([], "repair window")
    for wanted in ({"sort": "newest"}, {"sort": "relevance", "flat": True}):
        answer = search(indexed, q="repiar window", **wanted)
        assert (answer.items, answer.suggestion) == ([], "repair window")


def test_a_shared_message_is_in_the_session_that_is_requested(indexed: TestClient) -> None:
    for asked in (MAIN, FORK):
        (group,) = search(indexed, q="repair", session=asked, sort="relevance").items
        assert (group.session.id, group.matches) == (asked, 1)
        assert group.hits[0].message_id == "m1"
