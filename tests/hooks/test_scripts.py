"""An agent that runs a script for each event gets one file for each, beside the user's own (R-C21)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from turnlog.agents import agents_with_hooks
from turnlog.errors import SourceError
from turnlog.hooks.settings import carry_out, plan_install, plan_remove

CLINE = agents_with_hooks()["cline"]

EVENTS = [
    *("PostToolUse", "PreToolUse", "SessionShutdown", "TaskCancel", "TaskComplete", "TaskError", "TaskResume"),
    *("TaskStart", "UserPromptSubmit"),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def hooks(home: Path) -> Path:
    return home / ".cline" / "hooks"


def install(data: Path, project: Path | None = None) -> None:
    carry_out(plan_install(CLINE, data, project), data)


def remove(data: Path, project: Path | None = None) -> None:
    carry_out(plan_remove(CLINE, data, project), data)


def test_each_event_has_a_script_and_all_go_again_with_their_folders(hooks: Path, data: Path) -> None:
    plan = plan_install(CLINE, data)
    assert (plan.state, plan.path, plan.diff().count("\n+++ ")) == ("absent", hooks, len(EVENTS))
    install(data)
    assert sorted(path.name for path in hooks.iterdir()) == [f"{event}.bash" for event in EVENTS]
    assert (plan_install(CLINE, data).state, plan_install(CLINE, data).is_needed) == ("installed", False)
    remove(data)
    assert plan_install(CLINE, data).state == "absent"
    assert not hooks.parent.exists()
    assert not data.exists() or list(data.iterdir()) == []


def test_the_users_own_hooks_of_an_event_stay(hooks: Path, data: Path) -> None:
    hooks.mkdir(parents=True)
    mine = {hooks / name: "#!/bin/sh\ntrue\n" for name in ("PreToolUse", "PreToolUse.sh", "TaskStart.py")}
    for path, text in mine.items():
        path.write_text(text)
    install(data)
    remove(data)
    assert {path: path.read_text() for path in hooks.iterdir()} == mine


def test_a_file_of_somebody_else_in_the_place_of_one_is_left_alone(hooks: Path, data: Path) -> None:
    hooks.mkdir(parents=True)
    theirs = hooks / "TaskError.bash"
    theirs.write_text("#!/bin/sh\n# sends to turnlog/hooks/send.py, too\n")
    with pytest.raises(SourceError, match=r"TaskError\.bash: another file"):
        plan_install(CLINE, data)
    remove(data)
    assert [path.name for path in hooks.iterdir()] == ["TaskError.bash"]


def test_a_script_that_is_missing_or_another_stores_is_renewed(hooks: Path, data: Path, tmp_path: Path) -> None:
    install(tmp_path / "elsewhere")
    assert plan_install(CLINE, data).state == "outdated"
    install(data)
    (hooks / "PreToolUse.bash").unlink()
    assert plan_install(CLINE, data).state == "outdated"
    install(data)
    assert {str(tmp_path / "elsewhere") in path.read_text() for path in hooks.iterdir()} == {False}
    assert plan_install(CLINE, data).state == "installed"


def test_the_environment_and_a_project_name_other_folders(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLINE_DIR", str(tmp_path / "moved"))
    install(data)
    assert (tmp_path / "moved/hooks/TaskStart.bash").is_file()
    project = tmp_path / "project"
    project.mkdir()
    install(data, project)
    assert (project / ".cline/hooks/TaskStart.bash").is_file()
    remove(data, project)
    assert list(project.iterdir()) == []


def test_a_script_spools_an_event_by_its_session_and_prints_nothing(hooks: Path, tmp_path: Path) -> None:
    data = tmp_path / "a 'quoted' folder"
    install(data)
    event = {"hookName": "agent_start", "taskId": "conv_1", "sessionContext": {"rootSessionId": "1795_ab"}}
    done = subprocess.run(
        ["sh", hooks / "TaskStart.bash"], input=json.dumps(event).encode(), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (line,) = (data / "hooks/cline/1795_ab.jsonl").read_bytes().splitlines()
    assert json.loads(line)["event"] == event
