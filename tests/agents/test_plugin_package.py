"""An agent in a package of its own is read like the others: `examples/agent-plugin`, installed by pip."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from support.agent_example import EXAMPLE, FOLDER, HOME
from turnlog.agents import agent
from turnlog.model import RecordEvent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the package."""
    source = shutil.copytree(FOLDER, tmp_path_factory.mktemp("source") / "plugin")
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(folder), str(source)], check=True, capture_output=True)
    return folder


@pytest.fixture
def turnlog(installed: Path, home: Path) -> Any:
    """Run a command with --json where the package is installed; its document."""

    def run(*arguments: str) -> Any:
        environment = {**os.environ, "PYTHONPATH": str(installed)}
        command = [sys.executable, "-m", "turnlog", *arguments, "--json"]
        return json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)

    return run


def test_its_sessions_are_found_and_read(turnlog: Any, home: Path) -> None:
    shutil.copytree(HOME, home / ".example-agent")
    assert turnlog("sync")["new_sessions"] == 1
    [session] = turnlog("sessions")["items"]
    assert (session["id"], session["title"]) == ("example-agent:tour", "Tidy the shop")
    assert session["cwd"] == "/home/dev/shop"
    assert (session["counts"]["tool_calls"], session["counts"]["failed_tool_calls"]) == (2, 1)
    assert (turnlog("usage")["totals"]["input"], turnlog("usage")["totals"]["output"]) == (280, 27)
    events = turnlog("show", "example-agent:tour")["events"]
    calls = [
        part for each in events if each["type"] == "message" for part in each["message"]["parts"] if "kind" in part
    ]
    assert [(call["tool_name"], call["kind"]) for call in calls] == [("read", "read"), ("run", "execute")]
    results = [each["result"] for each in events if each["type"] == "tool-result"]
    assert [(each["content"][0]["text"], each.get("status")) for each in results] == [
        ("clean: not found", "error"),
        ("The shelves are full.", None),
    ]
    [agent] = [each for each in turnlog("agents")["items"] if each["agent"] == "example-agent"]
    assert (agent["display_name"], agent["roots"]) == ("Example Agent", [str(home / ".example-agent")])
    assert [each["kind"] for each in agent["unknown_kinds"]] == ["theme"]


def test_a_file_is_recognised_and_its_variable_counts(
    turnlog: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = home / "renamed.jsonl"
    log.write_bytes((HOME / "sessions/tour.jsonl").read_bytes())
    assert turnlog("import", str(log))["sessions"] == ["example-agent:tour"]
    monkeypatch.setenv("EXAMPLE_AGENT_HOME", str(HOME))
    assert turnlog("sync")["sources"] == 1


@pytest.mark.parametrize("name", [EXAMPLE])
def test_records_without_an_id_are_separate_messages_and_events(name: str) -> None:
    """What somebody who copies the example would not see at first."""
    source = next(iter(agent(name).discover([HOME])))
    lines = [
        {"session": "tour", "type": "prompt", "text": "One"},
        {"session": "tour", "type": "prompt", "text": "Two", "mood": "good"},
        {"session": "tour", "type": "theme", "colours": "x" * 5000},
        {"session": "tour", "type": "result", "text": "of no call"},
    ]
    changes = agent(name).fold(source).feed(b"".join(json.dumps(line).encode() + b"\n" for line in lines), 0)
    first, second = changes.messages
    assert first.message.id != second.message.id
    assert second.placement.parent_id == first.message.id
    assert second.message.metadata == {EXAMPLE: {"other_fields": {"mood": "good"}}}
    events = [change.event for change in changes.events if isinstance(change.event, RecordEvent)]
    assert [(event.kind, event.data is UNSET) for event in events] == [("theme", True), ("result", False)]
    assert len({event.id for event in events}) == 2
