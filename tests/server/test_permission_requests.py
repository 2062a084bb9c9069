"""The permission requests of an agent while it answers a prompt of the page: recorded runs of the real programs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from support.fake_agent import FakeAgent
from turnlog.server import Settings
from turnlog.sync.syncer import sync

TOKEN = "a token that nobody guesses"
SECONDS = 30.0
DATA = Path(__file__).parents[1] / "data"

OpenClient = Callable[..., TestClient]


class Case(NamedTuple):
    """An agent, a session of it, and its permission requests."""

    agent: str
    program: str
    session: str
    log: str
    record: dict[str, Any]
    asks: list[tuple[str, str]]


CLAUDE = Case(
    "claude_code",
    "claude",
    "claude-code:11111111-1111-4111-8111-111111111111",
    ".claude/projects/work/11111111-1111-4111-8111-111111111111.jsonl",
    {
        "type": "user",
        "uuid": "00000000-0000-4000-8000-000000000001",
        "sessionId": "11111111-1111-4111-8111-111111111111",
        "timestamp": "2026-11-20T10:00:00.000Z",
        "cwd": "FOLDER",
        "version": "2.1.98",
        "message": {"role": "user", "content": "Begin"},
    },
    [("Write", "x.txt"), ("Bash", "echo two")],
)
CODEX = Case(
    "codex",
    "codex",
    "codex:01a1fef8-3e54-73d0-bca8-b362c51180a0",
    ".codex/sessions/2026/11/20/rollout-2026-11-20T10-00-00-01a1fef8-3e54-73d0-bca8-b362c51180a0.jsonl",
    {
        "timestamp": "2026-11-20T10:00:00.000Z",
        "type": "session_meta",
        "payload": {
            "id": "01a1fef8-3e54-73d0-bca8-b362c51180a0",
            "timestamp": "2026-11-20T10:00:00.000Z",
            "cwd": "FOLDER",
        },
    },
    [("command_execution", "touch made.txt"), ("command_execution", "echo gone")],
)


class Prompted(NamedTuple):
    """A session whose agent plays a recording."""

    case: Case
    client: TestClient
    agent: FakeAgent

    @property
    def address(self) -> str:
        return f"/api/sessions/{self.case.session}/prompt"

    def send(self) -> None:
        assert self.client.post(self.address, json={"text": "Do the thing"}).status_code == 200

    def answer(self, request: dict[str, Any], *, allow: bool, reason: str | None = None) -> int:
        body = {"id": request["id"], "allow": allow, "reason": reason}
        return self.client.post(f"{self.address}/answer", json=body).status_code

    def request(self) -> dict[str, Any]:
        (request,) = self._wait_for(lambda state: state["permission_requests"] != [])["permission_requests"]
        return request

    def end(self) -> dict[str, Any]:
        return self._wait_for(lambda state: not state["running"])

    def _wait_for(self, is_there: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while not is_there(state := self.client.get(self.address).json()):
            assert time.monotonic() < deadline, state
            time.sleep(0.05)
        return state


@pytest.fixture(params=[CLAUDE, CODEX], ids=["claude", "codex"])
def prompted(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_client: OpenClient
) -> Prompted:
    case: Case = request.param
    agent = FakeAgent(tmp_path / "agent")
    programs, folder, log = tmp_path / "bin", tmp_path / "work", tmp_path / "home" / case.log
    programs.mkdir()
    folder.mkdir()
    log.parent.mkdir(parents=True)
    program = programs / case.program
    program.write_text(f'#!/bin/sh\nexec "{agent.program}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    log.write_text(json.dumps(case.record).replace("FOLDER", str(folder)) + "\n")
    sync(tmp_path / "turnlog.db", roots=[tmp_path / "home" / Path(case.log).parts[0]])
    client = open_client(tmp_path / "turnlog.db", Settings(token=TOKEN, prompts=True, static_folder=tmp_path / "none"))
    client.headers["Authorization"] = f"Bearer {TOKEN}"
    return Prompted(case, client, agent)


def recorded(case: Case, name: str) -> list[str]:
    return (DATA / case.agent / "live" / name).read_text(encoding="utf-8").splitlines()


def test_what_it_asks_is_reported_and_the_answer_goes_back(prompted: Prompted) -> None:
    prompted.agent.record(*recorded(prompted.case, "allow.txt"))
    prompted.send()
    for tool_name, words in prompted.case.asks:
        request = prompted.request()
        assert (request["tool_name"], request["reason"]) == (tool_name, None)
        assert words in json.dumps(request["input"])
        assert prompted.answer(request, allow=True) == 200
        assert prompted.answer(request, allow=True) == 409, "it is answered once"
    state = prompted.end()
    assert (state["problem"], state["permission_requests"]) == (None, [])
    told = json.dumps(prompted.agent.heard[-2:])
    assert told.count('"allow"') + told.count('"accept"') == 2
    (run,) = prompted.client.get("/api/runs").json()["items"]
    assert (run["origin"], run["status"]) == ("runtime", "completed")


def test_a_refusal_goes_back_with_its_reason(prompted: Prompted) -> None:
    prompted.agent.record(*recorded(prompted.case, "deny.txt"))
    prompted.send()
    for _ in range(2):
        assert prompted.answer(prompted.request(), allow=False, reason="Use the other file") == 200
    assert prompted.end()["problem"] is None
    told = json.dumps(prompted.agent.heard[-2:])
    assert told.count("Use the other file") + told.count('"decline"') == 2


def test_who_waits_for_leave_can_be_stopped(prompted: Prompted) -> None:
    prompted.agent.record(*recorded(prompted.case, "allow.txt"))
    prompted.send()
    request = prompted.request()
    assert prompted.client.delete(prompted.address).status_code == 200
    state = prompted.end()
    assert (state["problem"], state["permission_requests"]) == (None, [])
    assert prompted.answer(request, allow=True) == 409
    (run,) = prompted.client.get("/api/runs").json()["items"]
    assert run["status"] == "cancelled"


def test_lists_say_that_a_session_waits_for_leave(prompted: Prompted) -> None:
    prompted.agent.record(*recorded(prompted.case, "allow.txt"))
    prompted.send()
    tool_name = prompted.request()["tool_name"]
    (item,) = prompted.client.get("/api/sessions").json()["items"]
    state = item["state"]
    assert (state["state"], state["evidence"], state["detail"]) == ("waiting", "approval", tool_name)
    assert state["since"] is not None
    prompted.client.delete(prompted.address)
    prompted.end()
    (item,) = prompted.client.get("/api/sessions").json()["items"]
    assert item["state"]["state"] != "waiting"


def test_a_call_of_a_subagent_is_described_by_its_request(prompted: Prompted) -> None:
    if prompted.case is CODEX:
        # Its server wants threads of their own, which are declined.
        lines = [line.replace('"itemId":"call_w1"', '"itemId":"other"') for line in recorded(CODEX, "allow.txt")]
    else:
        lines = [
            line.replace('"tool_use_id":"toolu_w1"', '"tool_use_id":"other"') for line in recorded(CLAUDE, "allow.txt")
        ]
    prompted.agent.record(*lines)
    prompted.send()
    request = prompted.request()
    assert (request["tool_name"], request["input"]) == (None, None)
    if prompted.case is CLAUDE:
        assert request["reason"].startswith("Write {")
    prompted.client.delete(prompted.address)


def test_an_answer_is_refused_without_prompts_and_where_nothing_runs(prompted: Prompted) -> None:
    assert prompted.answer({"id": "none"}, allow=True) == 409
    wrong = prompted.client.post(f"{prompted.address}/answer", json={"id": "none"})
    assert wrong.status_code == 422
