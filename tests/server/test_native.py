"""Sessions, messages and tool calls that programs create over HTTP: as upserts, checked, bounded, and findable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from support.server_history import MAIN
from turnlog.server import Settings
from turnlog.server.routes import native

OpenClient = Callable[..., TestClient]
RED = {"user": "ann", "team": "red", "task": "t1"}


@pytest.fixture
def client(tmp_path: Path, open_client: OpenClient) -> TestClient:
    return open_client(tmp_path / "turnlog.db")


def session(client: TestClient, external_id: str, agent: str = "my-bot", **facts: Any) -> dict[str, Any]:
    answer = client.post("/api/sessions", json={"agent": agent, "external_id": external_id, **facts})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def text_message(id: str, role: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "role": role, "parts": [{"type": "text", "text": text}], **fields}


def save(client: TestClient, session_id: str, *messages: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    answer = client.post(f"/api/sessions/{session_id}/messages", json={"messages": messages, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def ids(client: TestClient, **filters: Any) -> list[str]:
    return [item["id"] for item in client.get("/api/sessions", params=filters).json()["items"]]


CALL = {"type": "tool-call", "tool_call_id": "c1", "tool_name": "Search", "input": {"q": 1}}


def test_a_session_is_created_and_then_changed(client: TestClient) -> None:
    """R-C6, R-C14: createSession is an upsert; what is left out stays."""
    facts = {
        "title": "A run",
        "cwd": "/work/shop",
        "git_branch": "main",
        "git_commit": "abc",
        "summary": "All went well",
        "created_at": "2026-01-01T10:00:00Z",
        "updated_at": "2026-01-01T11:00:00+01:00",
        "ownership": RED,
        "metadata": {"ticket": 5},
    }
    body = {"agent": "my-bot", "external_id": "one", **facts}
    made = client.post("/api/sessions", json=body)
    assert made.status_code == 201
    found = made.json()
    assert {name: found[name] for name in ("id", "title", "cwd", "git_branch", "git_commit", "native")} == {
        "id": "my-bot:one",
        "title": "A run",
        "cwd": "/work/shop",
        "git_branch": "main",
        "git_commit": "abc",
        "native": True,
    }
    assert (found["created_at"], found["updated_at"]) == ("2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z")
    assert (found["ownership"], found["metadata"]) == (RED, {"ticket": 5, "summary": "All went well"})
    assert found["project"]["path"] == "/work/shop"

    sequence = client.get("/api/status").json()["change_sequence"]
    again = client.post("/api/sessions", json=body)
    assert (again.status_code, again.json()) == (200, found)
    assert client.get("/api/status").json()["change_sequence"] == sequence

    for title in ("Zebra", "Another"):
        changed = session(client, "one", title=title, metadata={"more": None})
        assert (changed["title"], changed["cwd"], changed["ownership"]) == (title, "/work/shop", RED)
        assert changed["metadata"] == {"ticket": 5, "summary": "All went well", "more": None}


def test_a_session_without_facts_has_times_and_a_title(client: TestClient) -> None:
    """R-C6: the missing title is derived, the missing directory unknown."""
    made = session(client, "one", agent="turnlog")
    assert made["created_at"]
    assert made["updated_at"]
    assert not {"title", "cwd"} & set(made)
    save(client, "turnlog:one", text_message("u", "user", "Find\n the hat"), text_message("a", "assistant", "Here"))
    assert client.get("/api/sessions/turnlog:one").json()["session"]["title"] == "Find the hat"


def test_messages_are_created_and_replaced_in_their_order(client: TestClient) -> None:
    """R-C12, R-C14, R-C15: createMessage is an upsert; getMessages has them in order."""
    session(client, "one")
    places = save(
        client, "my-bot:one", text_message("u", "user", "hi"), text_message("a", "assistant", "Hel", model="m-1")
    )
    assert [(place["message_id"], place["position"], place["turn"]) for place in places] == [("u", 1, 1), ("a", 2, 1)]
    sequence = client.get("/api/status").json()["change_sequence"]
    save(client, "my-bot:one", text_message("a", "assistant", "Hel", model="m-1"))
    assert client.get("/api/status").json()["change_sequence"] == sequence
    save(client, "my-bot:one", text_message("a", "assistant", "Bye"), text_message("u2", "user", "more"))
    save(client, "my-bot:one", text_message("a", "assistant", "stale", updated_at="2020-01-01T00:00:00Z"))
    window = client.get("/api/sessions/my-bot:one/window").json()
    assert [(each["id"], each["parts"][0]["text"]) for each in window["items"]] == [
        ("u", "hi"),
        ("a", "Bye"),
        ("u2", "more"),
    ]
    assert [each.get("origin") for each in window["items"]] == ["prompt", None, "prompt"]
    assert client.get("/api/sessions", params={"agent": "my-bot"}).json()["items"][0]["counts"]["messages"] == 3
    assert save(client, "my-bot:one", retracted=["u2"]) == []
    assert [row["fate"] for row in client.get("/api/sessions/my-bot:one/window").json()["rows"]][-1] == "retracted"


def test_tool_calls_are_created_finished_and_kept(client: TestClient) -> None:
    """R-C12, R-C14: createToolCall is an upsert; calls by message, by session in their order, and by their id."""
    session(client, "one")
    save(client, "my-bot:one", text_message("u", "user", "hi"), text_message("a", "assistant", "Looking"))
    address = "/api/sessions/my-bot:one/tool-calls"
    started = {**CALL, "started_at": "2026-01-01T10:00:00Z"}
    made = client.post(address, json={"message_id": "a", "call": started})
    assert made.status_code == 200, made.text
    assert [part["type"] for part in made.json()["message"]["parts"]] == ["text", "tool-call"]
    second = {**CALL, "tool_call_id": "c2", "started_at": "2026-01-01T10:00:01Z"}
    client.post(address, json={"message_id": "a", "call": second})
    result = {"id": "r", "status": "error", "content": [{"type": "text", "text": "none"}], "error_text": "none"}
    done = {**started, "state": "output-error", "results": [{**result, "completed_at": "2026-01-01T10:00:02Z"}]}
    for _ in range(2):
        client.post(address, json={"message_id": "a", "call": done})

    def calls(**filters: str) -> list[tuple[str, str]]:
        items = client.get("/api/tool-calls", params=filters).json()["items"]
        return [(item["tool_call_id"], item["state"]) for item in items]

    both = [("c1", "output-error"), ("c2", "input-available")]
    assert calls(session="my-bot:one") == both
    assert sorted(calls(message="a")) == both
    assert calls(call="c1") == both[:1]
    assert calls(message="u") == []
    # The message said anew, by who does not know of its calls.
    save(client, "my-bot:one", text_message("a", "assistant", "Looked"))
    message = client.get("/api/messages/a").json()["message"]
    assert [part["type"] for part in message["parts"]] == ["text", "tool-call", "tool-call"]
    assert calls(session="my-bot:one") == both
    assert client.get("/api/search", params={"q": "Looked"}).status_code == 200


def test_owners_are_distinguished(client: TestClient) -> None:
    """R-C6, R-C12, R-C15: by user, by team newest first, by task; and usage likewise."""
    owners = {"x": RED, "y": {"user": "bob", "team": "red"}, "z": {"user": "cy", "team": "blue"}}
    for minute, (name, owner) in enumerate(owners.items()):
        session(
            client, name, ownership=owner, updated_at=f"2026-01-01T10:0{minute}:00Z", created_at="2026-01-01T09:00:00Z"
        )
    assert ids(client, team="red") == ["my-bot:y", "my-bot:x"]
    assert ids(client, user="cy") == ["my-bot:z"]
    assert ids(client, task="t1") == ["my-bot:x"]
    assert ids(client, user="ann", team="blue") == []
    moved = client.put("/api/sessions/my-bot:x/ownership", json={"team": "blue"})
    assert moved.json()["ownership"] == {"team": "blue"}
    assert ids(client, team="red") == ["my-bot:y"]
    assert client.get("/api/usage", params={"by": "session", "team": "red"}).status_code == 200


def test_the_owner_of_a_session_that_logs_name(own_store: Path, open_client: OpenClient) -> None:
    client = open_client(own_store)
    assert client.put(f"/api/sessions/{MAIN}/ownership", json=RED).status_code == 200
    assert ids(client, team="red") == [MAIN]


def test_equal_ids_of_two_programs_do_not_collide(client: TestClient) -> None:
    """R-C13: source and id identify a session, a message and a call."""
    for agent in ("one", "two"):
        session(client, "same", agent=agent, title=agent)
        call = {**CALL, "tool_name": agent}
        save(client, f"{agent}:same", {**text_message("m", "assistant", agent), "parts": [call]})
    for agent in ("one", "two"):
        assert client.get(f"/api/sessions/{agent}:same").json()["session"]["title"] == agent
        message = client.get("/api/messages/m", params={"session": f"{agent}:same"}).json()["message"]
        assert message["parts"][0]["tool_name"] == agent


def test_a_native_session_is_deleted_for_good(client: TestClient) -> None:
    session(client, "one")
    save(client, "my-bot:one", text_message("u", "user", "hi"))
    assert client.delete("/api/sessions/my-bot:one").status_code == 204
    assert client.get("/api/sessions/my-bot:one").status_code == 404
    assert client.get("/api/messages/u").status_code == 404
    assert client.post("/api/sessions", json={"agent": "my-bot", "external_id": "one"}).status_code == 409


def test_what_logs_name_is_not_written(own_store: Path, open_client: OpenClient) -> None:
    client = open_client(own_store)
    agent, _, name = MAIN.partition(":")
    for body in ({"agent": agent, "external_id": name}, {"agent": "claude-code", "external_id": "new"}):
        answer = client.post("/api/sessions", json=body)
        assert (answer.status_code, answer.json()["error"]["type"]) == (409, "conflict")
    assert (
        client.post(f"/api/sessions/{MAIN}/messages", json={"messages": [text_message("x", "user", "y")]}).status_code
        == 409
    )
    assert client.delete(f"/api/sessions/{MAIN}").status_code == 409
    assert client.get(f"/api/sessions/{MAIN}").status_code == 200


def test_what_is_not_there_is_404(client: TestClient) -> None:
    """R-C16: unknown session 404."""
    session(client, "one")
    save(client, "my-bot:one", text_message("u", "user", "hi"))
    assert client.post("/api/sessions/my-bot:no/messages", json={"messages": []}).status_code == 404
    assert client.put("/api/sessions/my-bot:no/ownership", json={}).status_code == 404
    assert client.delete("/api/sessions/my-bot:no").status_code == 404
    address = "/api/sessions/my-bot:one/tool-calls"
    assert client.post(address, json={"message_id": "no", "call": CALL}).status_code == 404
    assert client.post(address, json={"message_id": "u", "call": CALL}).status_code == 409


def test_a_message_of_another_session_is_a_conflict(client: TestClient) -> None:
    for name in ("one", "two"):
        session(client, name)
    save(client, "my-bot:one", text_message("u", "user", "hi"))
    forged = client.post("/api/sessions/my-bot:two/messages", json={"messages": [text_message("u", "user", "forged")]})
    assert forged.status_code == 409
    assert client.get("/api/messages/u").json()["message"]["parts"][0]["text"] == "hi"


WRONG: list[tuple[str, Any, str]] = [
    ("/api/sessions", {}, "external_id"),
    ("/api/sessions", {"external_id": ""}, "external_id"),
    ("/api/sessions", {"external_id": "a/b"}, "external_id"),
    ("/api/sessions", {"external_id": "x" * 600}, "external_id"),
    ("/api/sessions", {"external_id": "x", "agent": "My Bot"}, "agent"),
    ("/api/sessions", {"external_id": "x", "created_at": "2026-01-01T10:00:00"}, "created_at"),
    ("/api/sessions", {"external_id": "x", "ownership": {"users": "ann"}}, "ownership.users"),
    ("/api/sessions", {"external_id": "x", "colour": 1}, "colour"),
    ("/api/sessions", [], "body"),
    ("/api/sessions/my-bot:one/messages", {"messages": [{"id": "m", "parts": []}]}, "messages.0.role"),
    ("/api/sessions/my-bot:one/messages", {"messages": [text_message("m", "tool", "x")]}, "messages.0.role"),
    ("/api/sessions/my-bot:one/messages", {"messages": [text_message("", "user", "x")]}, "messages"),
    (
        "/api/sessions/my-bot:one/messages",
        {"messages": [text_message("m", "user", "x"), {"id": "n", "role": "user", "parts": [{"type": "text"}]}]},
        "messages.1.parts.0.text",
    ),
    (
        "/api/sessions/my-bot:one/messages",
        {"messages": [text_message(f"m{n}", "user", "x") for n in range(1001)]},
        "messages",
    ),
    ("/api/sessions/my-bot:one/tool-calls", {"message_id": "a", "call": {"tool_call_id": "c"}}, "call.tool_name"),
    ("/api/sessions/my-bot:one/tool-calls", {"message_id": "a", "call": {**CALL, "state": "?"}}, "call.state"),
    ("/api/sessions/my-bot:one/tool-calls", {"message_id": "a", "call": {**CALL, "tool_call_id": ""}}, "call"),
]


@pytest.mark.parametrize(("address", "body", "field"), WRONG)
def test_a_wrong_body_is_422_with_the_place(client: TestClient, address: str, body: object, field: str) -> None:
    """R-C16: an invalid body is 422 with the field named."""
    session(client, "one")
    save(client, "my-bot:one", text_message("a", "assistant", "x"))
    answer = client.post(address, json=body)
    assert answer.status_code == 422, answer.text
    assert [wrong["field"] for wrong in answer.json()["error"]["detail"]] == [field]
    assert ids(client) == ["my-bot:one"]


def test_contents_that_name_other_contents_of_the_store_are_refused(client: TestClient) -> None:
    """Else a client could read what it does not know, by its place in the archive or by its hash."""
    session(client, "one")
    blob = {"sha256": "0" * 64, "size": 5}
    hidden = {"name": "x", "opaque": {"signature": {"$archived": [1, 0, 0, 5]}}}
    for part in (
        {"type": "text", "text": "x", "blob": blob},
        {"type": "file", "media_type": "image/png", "blob": blob},
        {"type": "text", "text": "x", "provider": hidden},
        {**CALL, "results": [{"id": "r", "content": [{"type": "text", "text": "x", "blob": blob}]}]},
    ):
        message = {"id": "m", "role": "assistant", "parts": [part]}
        answer = client.post("/api/sessions/my-bot:one/messages", json={"messages": [message]})
        assert answer.status_code == 422, part
    assert client.get("/api/messages/m").status_code == 404


def test_bodies_are_json_and_bounded(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-C16: bad JSON 400."""
    json_type = {"content-type": "application/json"}
    for content in (b"{", b'{"unknown": ', b'{"title": 3,}', b'{"title": 3} {}'):
        assert client.post("/api/sessions", content=content, headers=json_type).status_code == 400, content
    assert client.post("/api/sessions", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    monkeypatch.setattr(native, "MOST_BYTES", 100)
    answer = client.post("/api/sessions", content=b'{"external_id": "%b"}' % (b"x" * 100), headers=json_type)
    assert answer.status_code == 413


@pytest.mark.parametrize("settings", [Settings(read_only=True), Settings(sample=True)])
def test_a_server_for_reading_refuses(own_store: Path, open_client: OpenClient, settings: Settings) -> None:
    client = open_client(own_store, settings)
    before = client.get("/api/status").json()["change_sequence"]
    body = {"external_id": "x"}
    assert client.post("/api/sessions", json=body).status_code == 403
    assert client.put(f"/api/sessions/{MAIN}/ownership", json={}).status_code == 403
    assert client.delete(f"/api/sessions/{MAIN}").status_code == 403
    if settings.read_only:
        assert client.patch(f"/api/sessions/{MAIN}", json={"starred": True}).status_code == 403
    assert client.get("/api/status").json()["change_sequence"] == before


def test_other_sites_and_strangers_are_refused(own_store: Path, open_client: OpenClient) -> None:
    """R-C16: a bad token is 401."""
    body = {"external_id": "x"}
    foreign = open_client(own_store).post("/api/sessions", json=body, headers={"origin": "http://evil.example"})
    assert foreign.status_code == 403
    client = open_client(own_store, Settings(token="secret"))
    assert client.post("/api/sessions", json=body, headers={"authorization": "Bearer no"}).status_code == 401
    assert client.post("/api/sessions", json=body, headers={"authorization": "Bearer secret"}).status_code == 201
