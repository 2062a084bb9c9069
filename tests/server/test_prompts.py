"""Sessions that go on from the page: off unless enabled, on this machine, with a token; the agent is the real one."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from turnlog.errors import TurnlogError
from turnlog.server import Settings, create_app, serve
from turnlog.sync.syncer import sync

TOKEN = "a token that nobody guesses"
SESSION = "claude-code:11111111-1111-4111-8111-111111111111"
SECONDS = 30.0

AGENT = """#!{python}
import json, os, sys, time
spoken = "--input-format" in sys.argv
told = sys.stdin.readline() if spoken else sys.stdin.read()
prompt = json.loads(told)["message"]["content"][0]["text"] if spoken else told
with open({log!r}, "a") as file:
    file.write(json.dumps({{"prompt": prompt, "arguments": sys.argv[1:], "folder": os.getcwd()}}) + "\\n")
if spoken and "old" in prompt:
    sys.exit("unknown option '--permission-prompt-tool'")
if "fail" in prompt:
    sys.exit("no such session")
said = {{"session_id": {session!r}, "uuid": "00000000-0000-4000-8000-0000000000ff"}}
print(json.dumps(said | {{"type": "system", "subtype": "init"}}), flush=True)
while "wait" in prompt:
    time.sleep(0.05)
if "broke" in prompt:
    ending = {{"is_error": True, "result": "Credit is too low"}}
else:
    ending = {{"is_error": False, "result": "Done"}}
print(json.dumps(said | {{"type": "result", "subtype": "success"}} | ending))
"""

OpenClient = Callable[..., TestClient]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the session works."""
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called `claude`, and where it writes how it was started."""
    log, program = tmp_path / "started.jsonl", tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(AGENT.format(python=sys.executable, log=str(log), session=SESSION.partition(":")[2]))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return log


@pytest.fixture
def store(tmp_path: Path, folder: Path) -> Path:
    record = {
        "type": "user",
        "uuid": "00000000-0000-4000-8000-000000000001",
        "sessionId": SESSION.partition(":")[2],
        "cwd": str(folder),
        "timestamp": "2026-11-20T10:00:00.000Z",
        "version": "2.1.98",
        "message": {"role": "user", "content": "Begin"},
    }
    log = tmp_path / "home" / ".claude" / "projects" / "work" / f"{SESSION.partition(':')[2]}.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes(json.dumps(record).encode() + b"\n")
    sync(tmp_path / "turnlog.db", roots=[tmp_path / "home" / ".claude"])
    return tmp_path / "turnlog.db"


@pytest.fixture
def page(store: Path, open_client: OpenClient) -> TestClient:
    client = open_client(store, Settings(token=TOKEN, prompts=True, static_folder=store.parent / "none"))
    client.headers["Authorization"] = f"Bearer {TOKEN}"
    return client


def ended(page: TestClient) -> dict[str, Any]:
    end = time.monotonic() + SECONDS
    while (state := page.get(f"/api/sessions/{SESSION}/prompt").json())["running"]:
        assert time.monotonic() < end
        time.sleep(0.05)
    return state


def wait_for(path: Path) -> None:
    end = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_agent_goes_on_with_the_session_in_its_folder(page: TestClient, started: Path, folder: Path) -> None:
    assert page.get("/api/status").json()["prompts"] is True
    assert page.get(f"/api/sessions/{SESSION}/prompt").json() == {
        "can_go_on": True,
        "can_ask": True,
        "running": False,
        "problem": None,
        "permission_requests": [],
    }
    answer = page.post(f"/api/sessions/{SESSION}/prompt", json={"text": "--help\nand go on, grüßend"})
    assert (answer.status_code, answer.json()["running"]) == (200, True)
    assert ended(page)["problem"] is None
    (line,) = started.read_text().splitlines()
    found = json.loads(line)
    assert (found["prompt"], found["folder"]) == ("--help\nand go on, grüßend", str(folder))
    arguments = found["arguments"]
    assert arguments[arguments.index("--resume") + 1] == SESSION.partition(":")[2]
    assert "--permission-mode" not in arguments, "what it may do is what its own settings say"
    (run,) = page.get("/api/runs").json()["items"]
    assert (run["agent"], run["status"]) == ("claude-code", "completed")


def test_why_it_failed_is_reported_until_the_next_prompt(page: TestClient, started: Path) -> None:
    page.post(f"/api/sessions/{SESSION}/prompt", json={"text": "fail"})
    assert "no such session" in ended(page)["problem"]
    page.post(f"/api/sessions/{SESSION}/prompt", json={"text": "go on"})
    assert ended(page)["problem"] is None


def test_why_it_failed_in_the_middle_is_reported(page: TestClient, started: Path) -> None:
    page.post(f"/api/sessions/{SESSION}/prompt", json={"text": "broke"})
    assert ended(page)["problem"] == "Credit is too low"
    assert len(started.read_text().splitlines()) == 1


def test_an_agent_too_old_to_ask_without_a_screen_answers_as_it_can(page: TestClient, started: Path) -> None:
    page.post(f"/api/sessions/{SESSION}/prompt", json={"text": "an old one"})
    assert ended(page)["problem"] is None
    arguments = [json.loads(line)["arguments"] for line in started.read_text().splitlines()]
    assert arguments[-1] == ["-p", "--resume", SESSION.partition(":")[2]]


def test_one_prompt_at_a_time_and_it_can_be_stopped(page: TestClient, started: Path) -> None:
    page.post(f"/api/sessions/{SESSION}/prompt", json={"text": "wait"})
    wait_for(started)
    second = page.post(f"/api/sessions/{SESSION}/prompt", json={"text": "another"})
    assert (second.status_code, second.json()["error"]["type"]) == (409, "conflict")
    assert page.delete(f"/api/sessions/{SESSION}/prompt").status_code == 200
    assert ended(page)["problem"] is None
    assert len(started.read_text().splitlines()) == 1


def test_an_agent_at_work_in_a_terminal_is_left_alone(
    page: TestClient, started: Path, store: Path, folder: Path, tmp_path: Path
) -> None:
    log = next((tmp_path / "home").rglob("*.jsonl"))
    record = json.loads(log.read_text()) | {"uuid": "00000000-0000-4000-8000-000000000002"}
    record |= {"timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z")}
    with log.open("a") as file:
        file.write(json.dumps(record) + "\n")
    sync(store, roots=[tmp_path / "home" / ".claude"])
    answer = page.post(f"/api/sessions/{SESSION}/prompt", json={"text": "go on"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (409, "conflict")
    assert not started.exists()


def test_a_folder_that_is_gone_is_reported(page: TestClient, started: Path, folder: Path) -> None:
    folder.rmdir()
    answer = page.post(f"/api/sessions/{SESSION}/prompt", json={"text": "go on"})
    assert answer.status_code == 409
    assert str(folder) in answer.json()["error"]["message"]
    assert not started.exists()


@pytest.mark.parametrize(
    ("settings", "status"),
    [(Settings(), 403), (Settings(token=TOKEN), 401), (Settings(token=TOKEN, prompts=True), 401)],
)
def test_nobody_is_let_in_by_default_nor_without_the_token(
    store: Path, open_client: OpenClient, started: Path, settings: Settings, status: int
) -> None:
    client = open_client(store, settings)
    assert client.post(f"/api/sessions/{SESSION}/prompt", json={"text": "go on"}).status_code == status
    assert client.delete(f"/api/sessions/{SESSION}/prompt").status_code == status
    assert not started.exists()


def test_another_site_cannot_write_prompts(page: TestClient, started: Path) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Content-Type": "text/plain"}):
        answer = page.post(f"/api/sessions/{SESSION}/prompt", content=b'{"text": "go on"}', headers=headers)
        assert answer.status_code in (403, 415)
    assert not started.exists()


def test_prompts_are_for_this_machine_only(store: Path) -> None:
    with pytest.raises(TurnlogError, match="this machine"):
        serve(store, host="0.0.0.0", token=TOKEN, prompts=True, open_browser=False)
    for settings in (Settings(host="0.0.0.0", token=TOKEN, prompts=True), Settings(prompts=True)):
        with pytest.raises(ValueError, match="loopback"):
            create_app(store, settings)
