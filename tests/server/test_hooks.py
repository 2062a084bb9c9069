"""What hooks post is in the store at once, and only what is an event is kept."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from support.hook_recordings import NAMES, recording
from turnlog.agents import agents_with_hooks
from turnlog.hooks.send import LIMIT
from turnlog.server import Settings
from turnlog.sync.syncer import sync

PROGRAMS = {agent.name: program for program, agent in agents_with_hooks().items()}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data" / "turnlog.db"


@pytest.fixture
def hooked(store: Path, open_client: Callable[..., TestClient]) -> TestClient:
    store.parent.mkdir()
    return open_client(store)


def spools(store: Path) -> list[Path]:
    return sorted((store.parent / "hooks").glob("*/*"))


@pytest.mark.parametrize("name", NAMES)
def test_a_session_is_listed_before_its_log_is_written(name: str, hooked: TestClient, store: Path) -> None:
    """R-C18: every event that is posted can be read as soon as it is answered."""
    recorded = recording(name)
    agent = recorded.agent.name
    for number, (line, event) in enumerate(zip(recorded.lines, recorded.events, strict=True)):
        posted = json.loads(line)["event"]
        answer = hooked.post(f"/api/hooks/{PROGRAMS[agent]}", json=posted, params={"at": 1.7e12 + number})
        assert (answer.status_code, answer.json()) == (202, {"session_id": f"{agent}:{event['session_id']}"})
        (session,) = sessions(hooked)
        if "prompt" in event:
            shown = hooked.get(f"/api/sessions/{session['id']}/window", params={"limit": 200}).text
            said = next((prompt for prompt in recorded.prompts if prompt in str(event["prompt"])), event["prompt"])
            assert json.dumps(said, ensure_ascii=False)[1:-1] in shown
    assert [path.stem for path in spools(store)] == [recorded.events[0]["session_id"]]


def sessions(client: TestClient) -> list[dict[str, Any]]:
    return client.get("/api/sessions").json()["items"]


def test_what_was_posted_and_the_log_are_one_session(hooked: TestClient, store: Path, home: Path) -> None:
    """R-C18, R-C20."""
    recorded = recording("codex")
    for line in map(json.loads, recorded.lines):
        hooked.post("/api/hooks/codex", json=line["event"], params={"at": line["at"]})
    before = sessions(hooked)
    home.joinpath(".codex").symlink_to(recorded.home)
    sync(store)
    after = sessions(hooked)
    assert [found["id"] for found in before] == [found["id"] for found in after]
    # The third request came while the hooks were not trusted.
    assert (before[0]["counts"]["prompts"], after[0]["counts"]["prompts"]) == (2, 3)


def test_an_agent_that_waits_for_leave_is_seen_waiting(hooked: TestClient, store: Path, home: Path) -> None:
    """No log of Claude Code's has its permission requests: it shows a notification, and so does its hook."""
    recorded = recording("claude-code-tui")
    lines = [json.loads(line) for line in recorded.lines]
    asked = next(number for number, line in enumerate(lines) if line["event"]["hook_event_name"] == "Notification")
    for line in lines[: asked + 1]:
        hooked.post("/api/hooks/claude", json=line["event"], params={"at": line["at"]})
    (session,) = sessions(hooked)
    assert (session["state"]["state"], session["state"]["evidence"]) == ("waiting", "approval")
    assert session["state"]["doing"]["tool_name"] == "Bash"


def test_a_session_that_ends_without_a_word_leaves_the_list(hooked: TestClient) -> None:
    def tell(name: str, **fields: str) -> list[str]:
        hooked.post("/api/hooks/claude", json={"session_id": "s1", "hook_event_name": name, "cwd": "/work", **fields})
        return [session["id"] for session in sessions(hooked)]

    assert tell("SessionStart") == ["claude-code:s1"]
    assert tell("SessionEnd") == []
    assert tell("UserPromptSubmit", prompt="So it goes on") == ["claude-code:s1"]


def test_spools_are_for_the_user_alone(hooked: TestClient, store: Path) -> None:
    hooked.post("/api/hooks/claude", json={"session_id": "s1", "hook_event_name": "SessionStart"})
    (path,) = spools(store)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("address", "body", "status", "kind"),
    [
        ("claude", b"no json", 400, "invalid_json"),
        ("claude", b'"text"', 422, "invalid_parameter"),
        ("claude", b'{"hook_event_name": "Stop"}', 422, "invalid_parameter"),
        ("claude", b'{"session_id": "../../etc/passwd"}', 422, "invalid_parameter"),
        ("claude", b'{"session_id": 7}', 422, "invalid_parameter"),
        ("claude", b"[" * 100_000, 422, "invalid_parameter"),
        ("nobody", b'{"session_id": "s1"}', 404, "not_found"),
        ("klaude", b'{"session_id": "s1"}', 404, "not_found"),
        ("claude?at=-1", b'{"session_id": "s1"}', 422, "invalid_parameter"),
        ("claude?at=soon", b'{"session_id": "s1"}', 422, "invalid_parameter"),
        ("claude", b" " * (LIMIT + 1), 413, "too_large"),
    ],
)
def test_what_is_no_event_is_refused(
    hooked: TestClient, store: Path, address: str, body: bytes, status: int, kind: str
) -> None:
    answer = hooked.post(f"/api/hooks/{address}", content=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)
    assert spools(store) == []


def test_events_of_any_shape_leave_a_session_that_can_be_read(hooked: TestClient) -> None:
    """Fields of other types than ever seen, and an event that nobody knows."""
    for event in (
        {"hook_event_name": "PreToolUse", "tool_name": 7, "tool_use_id": "c1", "tool_input": "text"},
        {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "c1", "tool_response": [1, {"a": None}]},
        {"hook_event_name": "MessageDisplay", "message_id": "m1", "index": "first", "delta": "text"},
        {"hook_event_name": "UserPromptSubmit", "prompt": None},
        {"hook_event_name": "TomorrowsEvent", "message": "\ud800"},
        {"hook_event_name": 3},
        {},
    ):
        body = json.dumps({"session_id": "odd", **event}).encode()
        assert hooked.post("/api/hooks/claude", content=body).status_code == 202
    (session,) = sessions(hooked)
    assert hooked.get(f"/api/sessions/{session['id']}/window").status_code == 200
    assert session["id"] == "claude-code:odd"


def test_with_a_token_only_who_has_it_may_send_events(store: Path, open_client: Callable[..., TestClient]) -> None:
    store.parent.mkdir()
    client = open_client(store, Settings(token="s3cret", static_folder=store.parent / "none"))
    event = {"session_id": "s1", "hook_event_name": "SessionStart"}
    assert client.post("/api/hooks/claude", json=event).status_code == 401
    known = {"Authorization": "Bearer s3cret"}
    assert client.post("/api/hooks/claude", json=event, headers=known).status_code == 202


def test_no_other_site_may_send_events(hooked: TestClient, store: Path) -> None:
    foreign = {"Origin": "https://evil.example"}
    assert hooked.post("/api/hooks/claude", json={"session_id": "s1"}, headers=foreign).status_code == 403
    assert spools(store) == []
