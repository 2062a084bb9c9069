"""`turnlog resume`: the agent starts where the session ended, with a log that is there."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support.cli_runner import Command, call, command
from turnlog.server.sample import LOGS
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

AGENT = """#!/bin/sh
printf '%s\\n' "$PWD" "$@" > "$HOME/started"
"""


@pytest.fixture
def run() -> Command:
    return call


@pytest.fixture
def session(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session of Claude Code whose folder is there, in the user's store; and a program that is called `claude`."""
    (home / "bin").mkdir()
    (home / "bin/claude").write_text(AGENT)
    (home / "bin/claude").chmod(0o755)
    monkeypatch.setenv("PATH", str(home / "bin"), prepend=":")
    folder = home / ".claude/projects/-work"
    folder.mkdir(parents=True)
    (home / "work").mkdir()
    name = "a6b1c2d3-0000-4000-8000-000000000000"
    record = {
        **{"type": "user", "uuid": "u", "parentUuid": None, "sessionId": name, "cwd": str(home / "work")},
        **{"timestamp": "2026-11-20T10:00:00Z", "version": "2.1.98", "message": {"role": "user", "content": "Go"}},
    }
    (folder / f"{name}.jsonl").write_text(json.dumps(record) + "\n")
    assert call("sync").exit_code == 0
    return name


def log_of(home: Path, session: str) -> Path:
    return home / f".claude/projects/-work/{session}.jsonl"


Printed = subprocess.CompletedProcess[str]


def resumed(home: Path, *arguments: str, folder: Path | None = None) -> tuple[Printed, list[str]]:
    """What the command printed, and the folder and arguments that the agent was started with."""
    done = subprocess.run(command("resume", *arguments), capture_output=True, text=True, check=False, cwd=folder)
    started = home / "started"
    return done, started.read_text().splitlines() if started.exists() else []


def test_the_agent_starts_in_the_folder_of_the_session(home: Path, session: str) -> None:
    done, started = resumed(home, session[:8])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert started == [str(home / "work"), "--resume", session]


def test_a_log_that_the_agent_has_deleted_is_restored_first(home: Path, session: str) -> None:
    log = log_of(home, session)
    data = log.read_bytes()
    log.unlink()
    done, started = resumed(home, session)
    assert started[1:] == ["--resume", session]
    assert log.read_bytes() == data
    assert done.stderr == f"Restored 1 file below {home / '.claude'}.\n"


def test_print_starts_and_restores_nothing(home: Path, session: str, run: Command) -> None:
    log_of(home, session).unlink()
    printed = run("resume", session, "--print")
    assert printed.stdout == f"cd {home / 'work'} && claude --resume {session}\n"
    assert "has deleted 1 file" in printed.stderr
    found = json.loads(run("resume", session, "--json").stdout)
    assert found == {
        "session_id": f"claude-code:{session}",
        "command": ["claude", "--resume", session],
        "folder": str(home / "work"),
        "missing": [str(log_of(home, session))],
    }
    assert not log_of(home, session).exists()
    assert not (home / "started").exists()


def test_without_a_name_it_is_the_newest_of_the_folder(home: Path, session: str) -> None:
    done, started = resumed(home, folder=home / "work")
    assert started[1:] == ["--resume", session]
    assert done.stderr == f"Go  claude-code:{session}\n"
    nowhere, _ = resumed(home, folder=home)
    assert nowhere.returncode == 3
    assert "no session was read of the project" in nowhere.stderr


def test_what_cannot_be_resumed_is_reported(
    home: Path, session: str, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "work").rmdir()
    gone = f"the folder of the session is gone: {home / 'work'}; `turnlog resume SESSION --folder DIR`"
    refused = run("resume", session)
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert gone in refused.stderr
    printed = run("resume", session, "--print")
    assert (printed.exit_code, printed.stdout) == (0, f"cd {home / 'work'} && claude --resume {session}\n")
    assert gone in printed.stderr
    assert gone in run("resume", session, "--json").stderr
    shown = run("show", session).stdout
    assert f"resume: cd {home / 'work'} && claude --resume {session}\n" in shown
    assert f"resume: {gone}" in shown
    (home / "work").mkdir()
    assert "is gone" not in run("show", session).stdout
    monkeypatch.setenv("PATH", str(home / "nowhere"))
    refused = run("resume", session)
    assert refused.exit_code == 3
    assert "Claude Code is not installed here" in refused.stderr
    printed = run("resume", session, "--print")
    assert (printed.exit_code, printed.stdout) == (0, f"cd {home / 'work'} && claude --resume {session}\n")
    assert printed.stderr == "Claude Code is not installed here: there is no program 'claude'\n"


def test_where_the_folder_is_gone_the_advice_is_a_command_that_works(
    home: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Droid cannot be handed a session, so another folder needs another agent."""
    sync(home / "store.db", roots=[LOGS / "droid"])
    with open_store(home / "store.db") as store:
        known = next(each for each in store.sessions().items if each.cwd)
    refused = run("resume", known.id, "--print", "--store", str(home / "store.db"))
    assert "`turnlog resume SESSION --in AGENT --folder DIR` goes on in another one" in refused.stderr
    (home / ".claude/projects").mkdir(parents=True)
    (home / "bin").mkdir()
    (home / "bin/claude").write_text(AGENT)
    (home / "bin/claude").chmod(0o755)
    monkeypatch.setenv("PATH", str(home / "bin"), prepend=":")
    options = ("--in", "claude-code", "--folder", str(home), "--print", "--store", str(home / "store.db"))
    assert run("resume", known.id, *options).exit_code == 0


def test_a_session_that_a_database_has_lost_is_not_restored_into_it(
    home: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = home / ".local/share/opencode"
    shutil.copytree(LOGS / "opencode", copied, dirs_exist_ok=True)
    sync(home / "store.db", roots=[copied])
    with open_store(home / "store.db") as store:
        [known] = [each for each in store.sessions().items if each.agent == "opencode"][:1]
    (home / "bin").mkdir()
    (home / "bin/opencode").write_text(AGENT)
    (home / "bin/opencode").chmod(0o755)
    monkeypatch.setenv("PATH", str(home / "bin"), prepend=":")
    for path in copied.glob("*.db*"):
        path.unlink()
    sync(home / "store.db", roots=[copied])
    refused = run("resume", known.id, "--store", str(home / "store.db"))
    assert refused.exit_code == 3
    assert "OpenCode has deleted" in refused.stderr


def test_a_subagent_goes_on_only_in_its_parent(home: Path, run: Command) -> None:
    sync(home / "store.db", roots=[LOGS / "claude-code"])
    with open_store(home / "store.db") as store:
        [subagent, *_] = store.sessions(SessionFilter(relationship="subagent")).items
    refused = run("resume", subagent.id, "--store", str(home / "store.db"))
    assert refused.exit_code == 3
    assert "only its parent can be" in refused.stderr


def test_a_folder_with_a_line_break_that_is_gone_is_one_line(home: Path, run: Command) -> None:
    log = home / ".claude/projects/-odd/22222222-2222-4222-8222-222222222222.jsonl"
    log.parent.mkdir(parents=True)
    record = {"type": "user", "message": {"role": "user", "content": "Go"}, "uuid": "u", "parentUuid": None}
    log.write_text(json.dumps({**record, "sessionId": log.stem, "cwd": "/gone/a\nb"}) + "\n")
    assert run("sync").exit_code == 0
    gone = run("resume", log.stem)
    assert gone.exit_code == 3
    reasons = gone.stderr.removeprefix("turnlog: ") + run("resume", log.stem, "--print").stderr
    assert "the folder of the session is gone: /gone/a b; " in reasons
    assert reasons.count("\n") == 3
