"""`turnlog handoff` and `turnlog resume --in`: shown first, written at once, taken back."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from support.cli_runner import call, command
from support.handed_over import make_databases, programs
from turnlog.server.sample import LOGS

SESSION = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def work(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to go on in; a session of Claude Code is in the user's store, and four agents are installed."""
    folder = programs(home / "bin", "claude", "codex", "gemini", "opencode")
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    shutil.copytree(LOGS / "claude-code", home / ".claude")
    (home / "work").mkdir()
    return home / "work"


def files_below(home: Path) -> set[Path]:
    return {path.relative_to(home) for path in (home / ".codex").rglob("*") if path.is_file()}


def test_it_is_shown_first_then_written_then_taken_back(home: Path, work: Path) -> None:
    shown = call("handoff", SESSION, "--to", "codex", "--folder", str(work), "--dry-run")
    assert "Carried: 2 turns, 11 messages, 9 tool calls" in shown.stdout
    assert "3 pieces of reasoning are left out" in shown.stdout
    assert "Would be written: a session of Codex (" in shown.stdout
    assert f"Would go on: cd {work} && codex resume NEW-SESSION\n" in shown.stdout
    planned = json.loads(call("handoff", SESSION, "--to", "codex", "--folder", str(work), "--dry-run", "--json").stdout)
    assert (planned["session_id"], planned["command"]) == (None, ["codex", "resume", "NEW-SESSION"])
    assert not (home / ".codex").exists()

    written = json.loads(call("handoff", SESSION, "--to", "codex", "--folder", str(work), "--json").stdout)
    assert (written["from"], written["to"]) == (f"claude-code:{SESSION}", "codex")
    assert [Path(path).is_file() for path in written["paths"]] == [True]
    assert written["command"] == ["codex", "resume", written["session_id"].partition(":")[2]]
    assert sum(loss["kind"] == "reasoning" for loss in written["losses"]) == 3

    listed = json.loads(call("sessions", "--parent", f"claude-code:{SESSION}", "--json").stdout)
    assert [session["id"] for session in listed["items"]] == [written["session_id"]]
    assert "Would remove" in call("handoff", "undo", written["session_id"], "--dry-run").stdout
    assert files_below(home)
    undone = call("handoff", "undo", written["session_id"])
    assert undone.stdout.startswith(f"Removed {written['session_id']}: ")
    assert not files_below(home)
    assert written["session_id"] not in call("sessions").stdout


def test_resume_in_another_agent_writes_the_session_and_starts_the_agent(home: Path, work: Path) -> None:
    (home / "bin/gemini").write_text('#!/bin/sh\nprintf "%s\\n" "$PWD" "$@" > "$HOME/started"\n')
    assert call("sync").exit_code == 0
    done = subprocess.run(
        command("resume", SESSION, "--in", "gemini", "--folder", str(work)), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "Written: gemini-cli:" in done.stderr
    folder, option, session = (home / "started").read_text().splitlines()
    assert (folder, option) == (str(work), "--resume")
    assert list((home / ".gemini/tmp/work/chats").glob(f"session-*-{session[:8]}.jsonl"))


def test_an_agent_that_cannot_start_is_named(home: Path, work: Path) -> None:
    (home / "bin/gemini").write_text("#!/nonexistent/shell\n")
    assert call("sync").exit_code == 0
    resume = command("resume", SESSION, "--in", "gemini", "--folder", str(work))
    done = subprocess.run(resume, capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, last) == (
        1,
        f"turnlog: gemini cannot be started in {work} (No such file or directory)",
    )
    assert call("resume", "", "--print").stderr == "turnlog: there is no session with an empty id\n"
    assert "there is no agent ''" in call("resume", SESSION, "--in", "", "--print").stderr


def test_the_same_agent_goes_on_from_an_earlier_message_in_a_new_session(work: Path) -> None:
    assert call("sync").exit_code == 0
    exported = call("export", SESSION, "--as", "jsonl").stdout.splitlines()
    events = [json.loads(line) for line in exported]
    prompts = [each["message"]["id"] for each in events if each.get("message", {}).get("role") == "user"]
    printed = call("resume", SESSION, "--at", prompts[0], "--folder", str(work), "--print")
    assert "Would be written: a session of Claude Code (" in printed.stdout
    assert f"Would go on: cd {work} && claude --resume NEW-SESSION\n" in printed.stdout
    assert "Carried: 1 turn, 1 message" in printed.stdout
    assert "after it are left out" in printed.stdout


@pytest.mark.parametrize("target", ["claude", "codex", "gemini", "pi", "qwen", "opencode", "kilo"])
def test_what_is_only_shown_names_no_id_and_needs_no_program(
    target: str, home: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home / "nowhere"))
    ask = (SESSION, "--folder", str(work), "--json")
    one, other = (json.loads(call("handoff", "--to", target, "--dry-run", *ask).stdout) for _ in range(2))
    assert one == other
    assert "is not installed here: there is no program" in one["notes"][0]
    assert one == json.loads(call("resume", "--in", target, *ask).stdout)
    refused = call("handoff", "--to", target, *ask)
    assert (refused.exit_code, "is not installed here" in refused.stderr) == (1, True)


@pytest.mark.parametrize("program", ["opencode", "kilo"])
def test_an_agent_that_has_never_run_is_shown_a_session_and_gets_none(program: str, home: Path, work: Path) -> None:
    programs(home / "bin", program)
    ask = ("handoff", SESSION, "--to", program, "--folder", str(work))
    shown = call(*ask, "--dry-run")
    assert "Carried: 2 turns, 11 messages, 9 tool calls" in shown.stdout
    database = home / f".local/share/{program}/{program}.db"
    reason = f"there is no database {database}: start the agent once, it makes it"
    assert reason in shown.stdout
    refused = call(*ask)
    assert (refused.exit_code, refused.stderr) == (1, f"turnlog: {reason}\n")
    assert not database.parent.exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((SESSION, "--to", "codex"), "/home/dev/sample; name another one with --folder"),
        ((SESSION, "--to", "codex", "--folder", "/nonexistent"), "turnlog: there is no folder /nonexistent"),
        ((SESSION, "--to", "pi-of-nobody"), "there is no agent 'pi-of-nobody'; there are "),
        ((SESSION, "--to", "droid"), "no session can be handed to Droid"),
        ((SESSION, "--to", "kilo", "--folder", "."), "Kilo CLI is not installed here: there is no program 'kilo'"),
        ((SESSION, "--to", "opencode", "--folder", "."), "start the agent once"),
        ((SESSION, "--to", "codex", "--folder", ".", "--at", "nothing"), "no message 'nothing' in this part"),
        ((SESSION, "--to", "codex", "--folder", ".", "--max-tokens", "1"), "does not fit into 1 tokens"),
        (("undo", SESSION), "was not written by turnlog"),
        ((SESSION,), "Missing option '--to'"),
        (("undo",), "Name the session to undo: turnlog handoff undo SESSION."),
    ],
)
def test_what_cannot_be_done_is_reported_and_nothing_is_written(
    arguments: tuple[str, ...], reason: str, home: Path, work: Path
) -> None:
    refused = call("handoff", *arguments)
    assert refused.exit_code != 0
    assert reason in refused.stderr
    assert not (home / ".codex").exists()


def test_a_home_that_cannot_be_written_is_named(home: Path, work: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex/sessions").write_text("a file is in the way")
    refused = call("handoff", SESSION, "--to", "codex", "--folder", str(work))
    assert refused.exit_code == 1
    assert "nothing was written" in refused.stderr
    assert files_below(home) == {Path(".codex/sessions")}
    (home / ".gemini").symlink_to(home / "nowhere")
    refused = call("handoff", SESSION, "--to", "gemini", "--folder", str(work))
    assert refused.stderr == f"turnlog: nothing was written: {home / '.gemini'} cannot be written (is no folder)\n"


def test_a_session_that_was_continued_is_not_taken_back(home: Path, work: Path) -> None:
    written = json.loads(call("handoff", SESSION, "--to", "codex", "--folder", str(work), "--json").stdout)
    [log] = [Path(path) for path in written["paths"]]
    line = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And now?"}]}
    with log.open("a") as file:
        record = {"timestamp": "2026-11-26T10:00:00Z", "type": "response_item", "payload": line}
        file.write(json.dumps(record) + "\n")
    refused = call("handoff", "undo", written["session_id"])
    assert refused.exit_code == 1
    assert "was continued: it has 1 message of its own" in refused.stderr
    assert log.exists()


def test_what_came_after_the_last_sync_is_not_deleted_with_a_log(home: Path, work: Path) -> None:
    written = json.loads(call("handoff", SESSION, "--to", "codex", "--folder", str(work), "--json").stdout)
    assert call("sync").exit_code == 0
    [log] = [Path(path) for path in written["paths"]]
    with log.open("a") as file:
        file.write('{"timestamp": "2026-11-26T10:00:00Z", "type": "response_item"')
    before = log.read_bytes()
    refused = call("handoff", "undo", written["session_id"], "--no-sync")
    assert (refused.exit_code, "has changed since it was read" in refused.stderr) == (1, True)
    assert log.read_bytes() == before


def test_what_came_after_the_last_sync_is_not_deleted_from_a_database(
    home: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnlog.agents.opencode.handoff._BUSY_SECONDS", 0.05)
    make_databases(home / ".local/share/opencode")
    written = json.loads(call("handoff", SESSION, "--to", "opencode", "--folder", str(work), "--json").stdout)
    session = written["session_id"].removeprefix("opencode:")
    assert call("sync").exit_code == 0
    [database] = written["paths"]
    undo = ("handoff", "undo", written["session_id"], "--no-sync")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        locked = call(*undo)
        connection.rollback()
        assert (locked.exit_code, locked.stderr) == (
            1,
            f"turnlog: it cannot be removed: {database} (database is locked)\n",
        )
        with connection:
            row = ("msg_own", session, 0, 0, '{"role": "user"}')
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
        refused = call(*undo)
        assert (refused.exit_code, "was continued" in refused.stderr) == (1, True)
        count = "SELECT count(*) FROM message WHERE session_id = ?"
        assert connection.execute(count, (session,)).fetchone() == (written["messages"] + 1,)


def test_a_session_that_its_agent_has_deleted_is_said_to_be_gone(home: Path, work: Path) -> None:
    written = json.loads(call("handoff", SESSION, "--to", "codex", "--folder", str(work), "--json").stdout)
    assert call("sync").exit_code == 0
    Path(written["paths"][0]).unlink()
    gone = call("handoff", "undo", written["session_id"])
    assert (gone.exit_code, gone.stdout) == (
        0,
        f"{written['session_id']} is gone already: its agent has deleted it.\n",
    )
