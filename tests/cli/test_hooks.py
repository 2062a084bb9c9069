"""`turnlog hooks`: shown first, done with --yes, undone to the byte (R-C21)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli_runner import Command

MINE = '{\n  // mine\n  "model": "opus"\n}\n'


@pytest.fixture(autouse=True)
def claude(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the newest Claude Code be installed."""

    def newest(program: str) -> tuple[int, ...]:
        return (2, 1, 329)

    monkeypatch.setattr("turnlog.hooks.settings.installed_version", newest)


@pytest.fixture
def settings(home: Path) -> Path:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(MINE)
    return path


def test_without_yes_the_change_is_only_shown(run: Command, settings: Path) -> None:
    result = run("hooks", "install", "claude")
    assert result.exit_code == 0
    assert "+++ " in result.stdout
    assert "send.py claude-code" in result.stdout
    assert result.stdout.endswith("Nothing was changed: --yes does it.\n")
    assert settings.read_text() == MINE


def test_in_and_out_again(run: Command, settings: Path) -> None:
    assert run("hooks", "install", "claude", "codex", "--yes").exit_code == 0
    assert '"MessageDisplay"' in settings.read_text()
    lines = [line.partition(" (")[0] for line in run("hooks", "status").stdout.splitlines()]
    states = dict(line.split(": ") for line in lines)
    assert {name for name, state in states.items() if state == "installed"} == {"Claude Code", "Codex"}
    assert set(states.values()) == {"installed", "no hooks of turnlog"}
    assert "nothing to do" in run("hooks", "install", "claude", "--yes").stdout
    assert run("hooks", "remove", "claude", "codex", "--yes").exit_code == 0
    assert settings.read_text() == MINE
    assert not (settings.parents[1] / ".codex").exists()


def test_a_project_has_settings_of_its_own(run: Command, settings: Path, tmp_path: Path) -> None:
    run("hooks", "install", "claude", "--yes", "--project", str(tmp_path))
    assert (tmp_path / ".claude" / "settings.local.json").is_file()
    assert settings.read_text() == MINE


def test_what_is_printed_as_json(run: Command, settings: Path) -> None:
    found = json.loads(run("hooks", "install", "claude", "--yes", "--json").stdout)["hooks"]
    assert [(one["agent"], one["path"], one["changed"], one["problem"]) for one in found] == [
        ("claude", str(settings), True, None)
    ]
    states = json.loads(run("hooks", "status", "--json").stdout)["hooks"]
    assert {one["agent"]: one["state"] for one in states if one["state"] != "absent"} == {"claude": "installed"}
    assert len(states) > 1


def test_settings_that_cannot_be_read_are_refused_and_the_others_done(run: Command, settings: Path) -> None:
    settings.write_text('{\n  "model": \n}')
    result = run("hooks", "install", "claude", "gemini", "--yes")
    assert result.exit_code == 1
    assert f"{settings}:3: not JSON" in result.stderr
    assert settings.read_text() == '{\n  "model": \n}'
    assert (settings.parents[1] / ".gemini" / "settings.json").is_file()


@pytest.mark.parametrize("arguments", [["install"], ["install", "nobody"], ["remove"], ["install", "klaude"]])
def test_wrong_use(run: Command, arguments: list[str]) -> None:
    assert run("hooks", *arguments).exit_code == 2
