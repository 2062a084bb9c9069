"""Sessions, messages and tool calls of a program, looked up over HTTP on a hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from support.hubs import Hub, listening, save_session
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.pusher import StorePusher
from turnlog.hub.machine.state import HubConnection, MachineState
from turnlog.server import create_app


def items(client: httpx2.Client, path: str, key: str = "id") -> list[Any]:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return [found[key] for found in answer.json()["items"]]


def test_records_are_found_by_user_team_task_and_id(new_hub: Hub) -> None:
    """R-C12."""
    ana, ben = new_hub.browser("Ana"), new_hub.browser("Ben")
    for number, (client, task) in enumerate(((ana, "T-1"), (ben, "T-1"), (ana, "T-2"))):
        at = f"2026-01-0{number + 1}T10:00:00Z"
        session = save_session(client, f"s{number}", "words", ownership={"task": task}, created_at=at, updated_at=at)
        client.put(f"/hub/v1/sessions/{session}/sharing", json={"visibility": "team"})
    assert items(ana, "/api/sessions") == ["turnlog:s2", "turnlog:s1", "turnlog:s0"]
    assert items(ana, "/api/sessions?limit=2&sort=created") == ["turnlog:s2", "turnlog:s1"]
    assert items(ben, f"/api/sessions?user={new_hub.ids['Ana']}") == ["turnlog:s2", "turnlog:s0"]
    assert items(ben, "/api/sessions?task=T-1") == ["turnlog:s1", "turnlog:s0"]
    assert ana.get("/api/sessions/turnlog:s1").json()["session"]["external_id"] == "s1"
    assert [found["id"] for found in ana.get("/api/sessions/turnlog:s1/window").json()["items"]] == ["s1-1", "s1-2"]
    assert ana.get("/api/messages/s1-2").json()["message"]["role"] == "assistant"
    assert items(ana, "/api/tool-calls?session=turnlog:s1", "tool_call_id") == ["s1-c"]
    assert items(ana, "/api/tool-calls?message=s2-2", "tool_call_id") == ["s2-c"]
    assert items(ana, "/api/tool-calls?call=s0-c", "session_id") == ["turnlog:s0"]


def test_a_record_that_comes_again_is_the_same_record(new_hub: Hub) -> None:
    """R-C13."""
    ana = new_hub.browser("Ana")
    for _ in range(2):
        save_session(ana, "a", "words")
        save_session(ana, "a", "words", agent="other")
    ana.post("/api/sessions", json={"external_id": "a", "title": "changed"})
    assert sorted(items(ana, "/api/sessions")) == ["other:a", "turnlog:a"]
    titles = {found["id"]: found["title"] for found in ana.get("/api/sessions").json()["items"]}
    assert titles == {"turnlog:a": "changed", "other:a": "title of words"}
    assert new_hub.row("SELECT count(*) FROM turnlog.messages") == (4,)
    assert items(ana, "/api/tool-calls", "tool_call_id") == ["a-c", "a-c"]


def test_lists_come_page_by_page_and_are_of_the_own_team(new_hub: Hub) -> None:
    """R-C15."""
    owner = new_hub.browser("Olga", "owner")
    for name in "abc":
        save_session(owner, name, "words")
    other = owner.post("/hub/v1/teams", json={"name": "Other"}).json()["id"]
    eve = new_hub.browser("Eve", "owner", team=int(other))
    save_session(eve, "a", "of another team")
    found: list[str] = []
    page: dict[str, Any] = {"next_cursor": None}
    while True:
        cursor = {} if page["next_cursor"] is None else {"cursor": page["next_cursor"]}
        page = owner.get("/api/sessions", params={"limit": 1, **cursor}).json()
        found += [session["id"] for session in page["items"]]
        if page["next_cursor"] is None:
            break
    assert sorted(found) == ["turnlog:a", "turnlog:b", "turnlog:c"]
    assert items(eve, "/api/sessions", "title") == ["title of of another team"]
    assert items(eve, "/api/tool-calls", "tool_call_id") == ["a-c"]
    assert len(owner.get("/api/tool-calls?limit=2").json()["items"]) == 2


@pytest.mark.parametrize("path", ["/api/sessions", "/api/tasks", "/api/sessions/turnlog:a/messages"])
def test_a_body_that_cannot_be_used_is_reported(path: str, new_hub: Hub) -> None:
    """R-C16."""
    ana = new_hub.browser("Ana")
    save_session(ana, "a", "words")
    json = {"Content-Type": "application/json"}
    assert ana.post(path, content=b"{", headers=json).status_code == 400
    assert ana.post(path, content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415
    assert ana.post(path, content=b" " * 32_000_001, headers=json).status_code == 413
    assert ana.post(path, json={"unknown": 1}).status_code == 422
    assert new_hub.client("tlp_wrong").post(path, json={}).status_code == 401
    viewer = new_hub.browser("Vic", "viewer")
    assert viewer.post(path, json={}).status_code == 403


def test_a_task_goes_with_its_sessions_and_its_name_with_its_person(new_hub: Hub) -> None:
    """R-C6."""
    ana, ben = new_hub.browser("Ana"), new_hub.browser("Ben")
    assert ana.post("/api/tasks", json={"id": "T-1", "name": "Ana's secret"}).json()["user"] == new_hub.ids["Ana"]
    session = save_session(ana, "a", "words", ownership={"task": "T-1"})
    assert ben.get("/api/tasks").json() == {"items": []}
    assert ben.get("/api/tasks/T-1").status_code == 404
    assert ben.post("/api/tasks", json={"id": "T-1", "name": "Ben's"}).status_code == 409
    save_session(ben, "b", "words", ownership={"task": "T-1"})
    assert items(ben, "/api/tasks", "name") == ["T-1"]
    assert ben.patch("/api/tasks/T-1", json={"name": "taken over"}).status_code == 409
    ana.put(f"/hub/v1/sessions/{session}/sharing", json={"visibility": "team"})
    assert items(ben, "/api/tasks", "name") == ["Ana's secret"]
    assert ben.get("/api/tasks/T-1").json()["sessions"] == 2
    assert ben.delete("/api/tasks/T-1").status_code == 403
    assert ana.delete("/api/tasks/T-1").status_code == 204
    assert items(ben, "/api/sessions?task=T-1") == ["turnlog:b"]
    assert ben.patch("/api/tasks/T-1", json={"name": "Ben's"}).json()["name"] == "Ben's"


def test_a_posted_event_of_a_hook_is_at_the_hub_with_the_next_push(
    new_hub: Hub, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-C18: hooks are a machine's; a hub takes what it pushes."""
    (tmp_path / "config.toml").write_text('[hub]\nlevel = "full"\n')
    monkeypatch.setenv("TURNLOG_CONFIG", str(tmp_path / "config.toml"))
    ana, path = new_hub.browser("Ana"), tmp_path / "turnlog.db"
    event = {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "cwd": "/work", "prompt": "xylophone"}
    assert ana.post("/api/hooks/claude", json=event).status_code in (404, 405)
    app = create_app(path)
    with TestClient(app, "http://127.0.0.1:8765") as local:
        assert local.post("/api/hooks/claude?task=T-1", json=event).status_code == 202
    token = new_hub.people.secrets.make(
        "machine", team=1, user=new_hub.ids["Ana"], machine="m-1", scopes=("push", "read")
    )[0]
    with listening(new_hub) as url, MachineState(path) as state, HubClient(url, token, seconds=5) as client:
        state.connect(HubConnection(url, token, "1", new_hub.ids["Ana"], "m-1"))
        StorePusher(path, state, client).push()
    assert items(ana, "/api/sessions?task=T-1") == ["claude-code:s1"]
    assert "xylophone" in ana.get("/api/sessions/claude-code:s1/window").text
