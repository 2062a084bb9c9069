"""Messages, events and tool calls over HTTP, with the records they came from."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from support.exact_json import exact
from support.server_history import FORK, MAIN, SUBAGENT
from turnlog.model.codec import decode_message
from turnlog.server.responses import MessageResponse, RecordsResponse, ToolCallPage, ToolsResponse, WindowPage


def positions(page: dict[str, Any]) -> list[int]:
    return [row["position"] for row in page["rows"]]


def window(client: TestClient, **parameters: int) -> dict[str, Any]:
    response = client.get(f"/api/sessions/{MAIN}/window", params=parameters)
    assert response.status_code == 200
    page = response.json()
    assert [item["id"] for item in page["items"]] == [row["message_id"] for row in page["rows"]]
    return page


# -- windows


def test_a_window_places_its_messages(client: TestClient) -> None:
    """R-C15, R-C16: getMessages over HTTP, paged."""
    page = msgspec.json.decode(client.get(f"/api/sessions/{MAIN}/window").content, type=WindowPage)
    assert [(row.turn, row.step, row.fate) for row in page.rows] == [
        (1, None, "active"),
        (1, 1, "active"),
        (2, None, "rewound"),
        (3, None, "active"),
        (3, 1, "active"),
    ]
    answer = page.rows[1]
    assert answer.children == {"c3": SUBAGENT}
    assert [result for result, _ in answer.results] == ["c1.0"]
    assert answer.results[0][1] > answer.position
    assert answer.cost == pytest.approx(1.15)
    assert page.rows[4].cost is None
    assert [event.__struct_config__.tag for event in page.events] == ["interrupt", "compaction", "record"]
    assert (page.has_before, page.has_after) == (False, False)


def test_windows_join_without_gap_or_overlap(client: TestClient) -> None:
    whole = window(client)
    places = positions(whole)
    first = window(client, limit=2)
    assert (first["has_before"], first["has_after"]) == (False, True)
    second = window(client, after=positions(first)[-1], limit=2)
    third = window(client, after=positions(second)[-1], limit=2)
    assert positions(first) + positions(second) + positions(third) == places
    assert first["events"] + second["events"] + third["events"] == whole["events"]
    assert third["has_after"] is False
    back = window(client, before=places[-1], limit=2)
    assert positions(back) == places[2:4]


def test_a_window_around_a_place_has_both_sides(client: TestClient) -> None:
    places = positions(window(client))
    page = window(client, around=places[2], limit=3)
    assert positions(page) == places[1:4]
    assert (page["has_before"], page["has_after"]) == (True, True)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"around": "5", "after": "4"}, "around"),
        ({"around": "5", "before": "4"}, "around"),
        ({"after": "-" + "9" * 30}, "after"),
        ({"before": "x"}, "before"),
        ({"around": "9" * 30}, "around"),
        ({"from": "1"}, "from"),
    ],
)
def test_a_place_that_cannot_be_is_422(client: TestClient, parameters: dict[str, str], field: str) -> None:
    response = client.get(f"/api/sessions/{MAIN}/window", params=parameters)
    assert response.status_code == 422
    assert [wrong["field"] for wrong in response.json()["error"]["detail"]] == [field]


def test_a_place_may_lie_below_zero(client: TestClient) -> None:
    """What a fork shares, and has no copy of, precedes its own."""
    whole = client.get(f"/api/sessions/{MAIN}/window").json()["rows"]
    for parameters in ({"after": -(1 << 40)}, {"around": -(1 << 40)}):
        response = client.get(f"/api/sessions/{MAIN}/window", params=parameters)
        assert response.status_code == 200
        assert response.json()["rows"][0] == whole[0]
    assert client.get(f"/api/sessions/{MAIN}/window", params={"before": -5}).json()["rows"] == []


def test_places_beyond_both_ends_give_empty_windows(client: TestClient) -> None:
    assert window(client, after=2**62)["items"] == []
    assert window(client, before=0)["items"] == []


# -- one message


@pytest.mark.usefixtures("plain_agent")
def test_a_message_has_structured_results_and_all_its_places(client: TestClient) -> None:
    """R-C4: the agent's own JSON of a result is one request away."""
    answer = msgspec.json.decode(client.get("/api/messages/m2").content, type=MessageResponse)
    calls = {part.tool_call_id: part for part in answer.message.parts if part.type == "tool-call"}
    result = calls["c1"].results[0]
    assert json.loads(exact(result.structured)) == {"stdout": "glass", "code": 0}
    assert result.sequence is not None
    assert result.content[0].type == "text"
    assert result.content[0].blob is not None
    assert calls["c3"].child_session_id == SUBAGENT
    assert [place.session_id for place in answer.memberships] == [MAIN]


def test_a_shared_message_is_placed_as_requested(client: TestClient) -> None:
    both = client.get("/api/messages/m1").json()["memberships"]
    assert {place["session_id"] for place in both} == {MAIN, FORK}
    assert client.get("/api/messages/m1", params={"session": FORK}).status_code == 200
    assert client.get("/api/messages/m2", params={"session": FORK}).status_code == 404


def test_an_id_with_a_slash_is_found(client: TestClient) -> None:
    for address in ("/api/messages/m5%2Fodd", "/api/messages/m5/odd"):
        assert decode_message(json.dumps(client.get(address).json()["message"]).encode()).id == "m5/odd"
    assert client.get("/api/messages/m5%2Fodd/raw").json()["items"]


def test_the_records_of_a_message_are_as_they_were_written(client: TestClient, library: Any) -> None:
    records = msgspec.json.decode(client.get("/api/messages/m2/raw").content, type=RecordsResponse).items
    log = (library.parent / "home" / "main.jsonl").read_bytes()
    assert len(records) == 2
    for record in records:
        assert record.offset is not None
        assert record.length is not None
        assert record.exact
        assert log[record.offset : record.offset + record.length] == record.text.encode()
    assert '"structured":{"stdout":"glass","code":0}' in records[1].text


@pytest.mark.parametrize("rest", ["", "/raw"])
def test_an_unknown_message_is_404(client: TestClient, rest: str) -> None:
    for id in ("nope", "%00", "..%2f..%2fetc%2fpasswd"):
        response = client.get(f"/api/messages/{id}{rest}")
        assert response.status_code == 404
        assert response.json()["error"]["type"] == "not_found"


def test_an_event_shows_its_record(client: TestClient) -> None:
    """An unknown kind is kept, and shown as it was written."""
    page = window(client)
    event = next(event for event in page["events"] if event["type"] == "record")
    assert event["known"] is False
    (found,) = client.get(f"/api/sessions/{MAIN}/events/{event['position']}").json()["items"]
    assert found["event"]["kind"] == "hologram"
    assert '"kind":"hologram"' in found["records"][0]["text"]
    assert client.get(f"/api/sessions/{MAIN}/events/1").json() == {"items": []}
    assert client.get(f"/api/sessions/{MAIN}/events/x").status_code == 422
    assert client.get(f"/api/sessions/{MAIN}/events/-1").status_code == 422


# -- tool calls


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({}, ["c3", "c2", "c1"]),
        ({"tool": "Bash"}, ["c1"]),
        ({"kind": "read"}, ["c2"]),
        ({"state": "output-error"}, ["c2"]),
        ({"failed": "true"}, ["c2"]),
        ({"session": MAIN}, ["c1", "c2", "c3"]),
        ({"project": "shop", "tool": "Read"}, ["c2"]),
        ({"path": "/work/shop/frame.py"}, ["c2"]),
        ({"agent": "codex"}, []),
        ({"since": "2026-11-02T09:01:00Z", "tool": "Bash"}, ["c1"]),
        ({"since": "2026-11-02T09:05:00Z"}, []),
        ({"until": "2026-11-02"}, []),
    ],
)
def test_tool_calls_by_filter(client: TestClient, parameters: dict[str, str], found: list[str]) -> None:
    """R-C15, R-C16: getToolCalls over HTTP."""
    page = msgspec.json.decode(client.get("/api/tool-calls", params=parameters).content, type=ToolCallPage)
    assert [call.tool_call_id for call in page.items] == found


def test_tool_calls_are_paged(client: TestClient) -> None:
    first = client.get("/api/tool-calls", params={"limit": 2}).json()
    rest = client.get("/api/tool-calls", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [call["tool_call_id"] for call in (*first["items"], *rest["items"])] == ["c3", "c2", "c1"]
    assert rest["next_cursor"] is None
    assert client.get("/api/tool-calls", params={"cursor": "%%%"}).status_code == 422


def test_tools_are_counted(client: TestClient) -> None:
    """R-S41."""
    tools = msgspec.json.decode(client.get("/api/tools").content, type=ToolsResponse).items
    assert {tool.tool_name: (tool.calls, tool.failed, tool.unanswered) for tool in tools} == {
        "Bash": (1, 0, 0),
        "Read": (1, 1, 0),
        "Task": (1, 0, 1),
    }
    assert client.get("/api/tools", params={"tool": "Read"}).json()["items"][0]["calls"] == 1
