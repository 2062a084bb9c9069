"""Sessions over HTTP: the list and its filters, one session with its relatives, landmarks, annotations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

import turnlog
from support.server_history import FORK, MAIN, QUIET, SUBAGENT
from turnlog.server.responses import OutlineResponse, SessionItem, SessionPage, SessionResponse
from turnlog.sync.syncer import sync

OpenClient = Callable[..., TestClient]

SAMPLE = Path(turnlog.__file__).parent / "sample"


def ids(page: dict[str, Any]) -> list[str]:
    return [item["id"] for item in page["items"]]


def test_the_list_is_newest_first_without_subagents(client: TestClient) -> None:
    """R-C15, R-C16: listSessions over HTTP."""
    response = client.get("/api/sessions")
    page = msgspec.json.decode(response.content, type=SessionPage)
    assert [item.id for item in page.items] == [QUIET, FORK, MAIN]
    assert page.total == 3
    assert page.next_cursor is None
    main = page.items[2]
    assert main.title == "Repair the shop"
    assert main.project is not None
    assert main.project.name == "shop"
    assert main.counts.tool_calls == 3
    assert main.unpriced_calls == 1
    assert main.first_prompt == "Please repair the shop window"
    assert main.children == 2


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({"agent": "plain"}, [QUIET, FORK, MAIN]),
        ({"agent": "codex"}, []),
        ({"project": "blog"}, [QUIET]),
        ({"project": "/work/shop"}, [FORK, MAIN]),
        ({"model": "large"}, [MAIN]),
        ({"branch": "main"}, [FORK, MAIN]),
        ({"title": "WOOD"}, [FORK]),
        ({"since": "2026-11-03"}, [QUIET]),
        ({"until": "2026-11-02T09:10:00Z"}, [FORK, MAIN]),
        ({"until": "2026-11-02T10:30:00+01:00"}, [FORK, MAIN]),
        ({"relationship": "fork"}, [FORK]),
        ({"parent": MAIN, "sort": "created"}, [SUBAGENT, FORK]),
        ({"starred": "true"}, []),
        ({"archived": "false"}, [QUIET, FORK, MAIN]),
        ({"tag": "glass"}, []),
        ({"subagents": "true", "agent": "plain"}, [QUIET, FORK, MAIN, SUBAGENT]),
        ({"sort": "messages"}, [MAIN, FORK, QUIET]),
        ({"agent": "", "title": ""}, [QUIET, FORK, MAIN]),
    ],
)
def test_filters_and_sorts(client: TestClient, parameters: dict[str, str], found: list[str]) -> None:
    response = client.get("/api/sessions", params=parameters)
    assert response.status_code == 200
    assert ids(response.json()) == found
    assert response.json()["total"] == len(found)


def test_a_status_selects_sessions_that_do_this_and_counts_none(client: TestClient) -> None:
    items = client.get("/api/sessions").json()["items"]
    done = [item["id"] for item in items if item["state"]["state"] == "done"]
    first = client.get("/api/sessions", params={"status": "done", "limit": "1"}).json()
    assert (ids(first), first["total"]) == (done[:1], None)
    rest = client.get("/api/sessions", params={"status": "done", "cursor": first["next_cursor"] or ""}).json()
    assert (ids(rest), rest["next_cursor"]) == (done[1:] if first["next_cursor"] else done, None)
    assert client.get("/api/sessions", params={"status": "quiet"}).status_code == 422


def test_a_value_that_cannot_be_used_is_refused_with_those_that_can(client: TestClient) -> None:
    hour = client.get("/api/sessions", params={"hour": "9-99"})
    expected = "cannot be used: hour: expected a weekday from 1 (Monday) to 7 and an hour, as 6-02"
    assert (hour.status_code, hour.json()["error"]["message"]) == (422, expected)
    by = client.get("/api/usage", params={"by": "foo"}).json()["error"]["message"]
    assert by.startswith("cannot be used: by: expected 'hour', 'day', 'week', ")


@pytest.mark.parametrize("path", ["sessions", "tool-calls", "usage", "insights", "search?q=shop"])
def test_a_period_that_ends_before_it_begins_is_wrong_use(client: TestClient, path: str) -> None:
    refused = client.get(
        f"/api/{path}{'&' if '?' in path else '?'}since=2026-11-03&until=2026-11-02",
    )
    assert refused.status_code == 422
    error = refused.json()["error"]
    assert error["message"] == "cannot be used: until: the period ends before it begins: until is before since"
    assert [problem["field"] for problem in error["detail"]] == ["until"]
    assert client.get(f"/api/{path}{'&' if '?' in path else '?'}since=2026-11-02&until=2026-11-02").status_code == 200


def test_pages_follow_each_other_and_end(client: TestClient) -> None:
    seen: list[str] = []
    cursor = ""
    while True:
        page = client.get("/api/sessions", params={"limit": 1, "cursor": cursor}).json()
        assert page["total"] == 3
        seen += ids(page)
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [QUIET, FORK, MAIN]


def test_a_cursor_of_another_sort_is_refused(client: TestClient) -> None:
    cursor = client.get("/api/sessions", params={"limit": 1}).json()["next_cursor"]
    response = client.get("/api/sessions", params={"sort": "created", "cursor": cursor})
    assert response.status_code == 422
    assert response.json()["error"]["detail"][0]["field"] == "cursor"


def test_a_session_with_its_relatives(client: TestClient) -> None:
    found = msgspec.json.decode(client.get(f"/api/sessions/{MAIN}").content, type=SessionResponse)
    assert found.session.id == MAIN
    assert found.parent is None
    assert [child.id for child in found.children] == [SUBAGENT]
    assert [fork.id for fork in found.forks] == [FORK]
    window = client.get(f"/api/sessions/{MAIN}/window").json()
    assert (found.first_position, found.last_position) == (
        window["rows"][0]["position"],
        window["rows"][-1]["position"],
    )
    for child in (SUBAGENT, FORK):
        parent = client.get(f"/api/sessions/{child}").json()["parent"]
        assert parent["id"] == MAIN


def test_a_session_without_messages_has_no_extent(client: TestClient) -> None:
    found = client.get(f"/api/sessions/{QUIET}").json()
    assert (found["first_position"], found["last_position"]) == (None, None)
    assert found["parent"] is None
    assert found["children"] == found["forks"] == []


def test_ids_may_be_percent_encoded(client: TestClient) -> None:
    assert client.get(f"/api/sessions/{MAIN.replace(':', '%3A')}").json()["session"]["id"] == MAIN


@pytest.mark.parametrize("rest", ["", "/outline", "/window", "/events/0", "/spills/x"])
def test_an_unknown_session_is_404(client: TestClient, rest: str) -> None:
    """R-C16: unknown session 404."""
    for id in ("plain:nope", "nope", "plain:", "%00", "plain%3Amain%00"):
        response = client.get(f"/api/sessions/{id}{rest}")
        assert response.status_code == 404
        assert response.json()["error"]["type"] == "not_found"


def test_the_outline_names_prompts_and_compactions(client: TestClient) -> None:
    outline = msgspec.json.decode(client.get(f"/api/sessions/{MAIN}/outline").content, type=OutlineResponse)
    assert [(entry.kind, entry.message_id) for entry in outline.items] == [
        ("prompt", "m1"),
        ("prompt", "m3"),
        ("compaction", None),
        ("prompt", "m4"),
    ]
    assert [entry.fate for entry in outline.items] == ["active", "rewound", None, "active"]
    assert outline.items[0].text == "Please repair the shop window"


def test_the_outline_is_sent_once(client: TestClient) -> None:
    etag = client.get(f"/api/sessions/{MAIN}/outline").headers["etag"]
    assert client.get(f"/api/sessions/{MAIN}/outline", headers={"If-None-Match": etag}).status_code == 304


# -- annotations


def test_annotations_are_kept_and_shown(own_store: Path, open_client: OpenClient) -> None:
    client = open_client(own_store)
    given = {"title": "Glass", "starred": True, "archived": False, "tags": ["glass", "shop"], "note": "nice"}
    answer = client.patch(f"/api/sessions/{MAIN}", json=given)
    kept = msgspec.json.decode(answer.content, type=SessionItem).annotations
    assert kept is not None
    assert (kept.title, kept.starred, kept.tags, kept.note) == ("Glass", True, ("glass", "shop"), "nice")
    assert kept.changed_at is not None
    item = client.get("/api/sessions", params={"tag": "glass"}).json()["items"][0]
    assert item["title"] == "Glass"
    assert item["annotations"]["tags"] == ["glass", "shop"]
    assert client.get(f"/api/sessions/{MAIN}").json()["session"]["annotations"]["starred"] is True


def test_what_is_left_out_stays_and_null_empties(own_store: Path, open_client: OpenClient) -> None:
    client = open_client(own_store)
    client.patch(f"/api/sessions/{MAIN}", json={"title": "Glass", "tags": ["a"]})
    kept = client.patch(f"/api/sessions/{MAIN}", json={"starred": True}).json()["annotations"]
    assert (kept["title"], kept["tags"], kept["starred"]) == ("Glass", ["a"], True)
    item = client.patch(f"/api/sessions/{MAIN}", json={"title": None, "tags": []}).json()
    assert (item["title"], item["annotations"]["tags"]) == ("Repair the shop", [])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"starred": "yes"}, "starred"),
        ({"tags": "glass"}, "tags"),
        ({"tags": [""]}, "tags.0"),
        ({"tags": ["x" * 101]}, "tags.0"),
        ({"title": 7}, "title"),
        ({"title": "x" * 1001}, "title"),
        ({"title": "\ud800"}, "title"),
        ({"color": "red"}, "color"),
        ([], "body"),
    ],
)
def test_a_wrong_body_is_422_and_names_the_field(
    own_store: Path, open_client: OpenClient, body: object, field: str
) -> None:
    """R-C16: invalid body 400 or 422 with the field named."""
    client = open_client(own_store)
    data = msgspec.json.encode(body) if body != {"title": "\ud800"} else b'{"title": "\\ud800"}'
    response = client.patch(f"/api/sessions/{MAIN}", content=data, headers={"Content-Type": "application/json"})
    assert response.status_code == 422
    assert response.json()["error"]["type"] == "invalid_parameter"
    assert field in [wrong["field"] for wrong in response.json()["error"]["detail"]]


def test_a_body_that_is_no_json_is_400_and_text_is_415(client: TestClient) -> None:
    """R-C16, C-a."""
    address = f"/api/sessions/{MAIN}"
    broken = client.patch(address, content=b'{"starred": tr', headers={"Content-Type": "application/json"})
    assert broken.status_code == 400
    assert broken.json()["error"]["type"] == "invalid_json"
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        text = client.patch(address, content=b'{"starred": true}', headers={"Content-Type": kind})
        assert text.status_code == 415
        assert text.json()["error"]["type"] == "unsupported_media_type"


def test_annotations_of_an_unknown_session_are_404(own_store: Path, open_client: OpenClient) -> None:
    assert open_client(own_store).patch("/api/sessions/plain:nope", json={}).status_code == 404


# -- going on


def test_a_session_says_how_its_agent_goes_on_with_it(tmp_path: Path, open_client: OpenClient) -> None:
    """Only where the agent can: not of subagents, and not of agents that have no such command."""
    sync(tmp_path / "turnlog.db", roots=[SAMPLE / "claude-code"])
    items = open_client(tmp_path / "turnlog.db").get("/api/sessions", params={"subagents": "true"}).json()["items"]
    assert items
    for item in items:
        is_subagent = any(link["kind"] == "subagent" for link in item.get("relationships", []))
        resume = item.get("resume")
        assert (resume is None) == is_subagent
        if resume is not None:
            assert (resume["folder"], resume["command"]) == (item["cwd"], ["claude", "--resume", item["external_id"]])
            # The folders of the sample are nowhere.
            assert resume["problem"].startswith(f"the folder of the session is gone: {item['cwd']}; ")


def test_an_agent_without_such_a_command_says_nothing(client: TestClient) -> None:
    assert all("resume" not in item for item in client.get("/api/sessions").json()["items"])
