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

PLUGIN = Path(__file__).parents[2] / "examples/agent-plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the package."""
    source = shutil.copytree(PLUGIN, tmp_path_factory.mktemp("source") / "plugin")
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
    shutil.copytree(PLUGIN / "nest", home / ".parrot")
    assert turnlog("sync")["new_sessions"] == 1
    [session] = turnlog("sessions")["items"]
    assert (session["id"], session["title"], session["cwd"]) == ("parrot:polly-1", "Tidy the cage", "/home/dev/cage")
    assert (session["counts"]["tool_calls"], session["counts"]["failed_tool_calls"]) == (2, 1)
    assert (turnlog("usage")["totals"]["input"], turnlog("usage")["totals"]["output"]) == (280, 27)
    events = turnlog("show", "parrot:polly-1")["events"]
    calls = [
        part for each in events if each["type"] == "message" for part in each["message"]["parts"] if "kind" in part
    ]
    assert [(call["tool_name"], call["kind"]) for call in calls] == [("look", "read"), ("whistle", "execute")]
    results = [each["result"] for each in events if each["type"] == "tool-result"]
    assert [(each["content"][0]["text"], each.get("status")) for each in results] == [
        ("no broom", "error"),
        ("seeds everywhere", None),
    ]
    [agent] = [each for each in turnlog("agents")["items"] if each["agent"] == "parrot"]
    assert (agent["display_name"], agent["roots"]) == ("Parrot", [str(home / ".parrot")])
    assert [each["kind"] for each in agent["unknown_kinds"]] == ["preened"]


def test_a_file_is_recognised_and_its_variable_counts(
    turnlog: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert turnlog("import", str(PLUGIN / "nest/talks/polly-1.jsonl"))["sessions"] == ["parrot:polly-1"]
    monkeypatch.setenv("PARROT_HOME", str(PLUGIN / "nest"))
    assert turnlog("sync")["sources"] == 1
