import json
import os
from pathlib import Path

import pytest

from support.cli_runner import Command, in_pipe, on_terminal
from support.plain_agent import Log, PlainAgent
from support.plain_history import SESSION, prompt
from turnlog import paths
from turnlog.model import CompactionEvent
from turnlog.sync import syncer

CLAUDE_LINES = (
    {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "Say hello"}},
    {
        "type": "assistant",
        "uuid": "u2",
        "parentUuid": "u1",
        "requestId": "req_1",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "model": "claude-opus-4-5-20251101",
            "content": [{"type": "text", "text": "Hello, hippopotamus"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": 300},
        },
    },
)


def is_log(path: Path) -> bool:
    """What the plain agent takes for a log while this replaces `Path.is_file`, links that lead nowhere too."""
    return path.suffix == ".jsonl"


@pytest.fixture
def synced(plain_agent: PlainAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sync` in this process reads the logs of the plain agent."""
    monkeypatch.setattr(syncer, "agents_here", lambda: [plain_agent])


@pytest.fixture
def claude_log(home: Path) -> Path:
    """A session of Claude Code in the user's home."""
    log = home / ".claude/projects/-work-shop/bbbbbbbb-0000-4000-8000-000000000001.jsonl"
    log.parent.mkdir(parents=True)
    more = {"sessionId": log.stem, "cwd": "/work/shop", "version": "2.1.98", "timestamp": "2026-11-10T10:00:00.000Z"}
    log.write_text("".join(json.dumps({**line, **more}) + "\n" for line in CLAUDE_LINES))
    return log


@pytest.mark.usefixtures("synced")
def test_a_pass_says_what_was_new(run: Command, logs: Path) -> None:
    document = json.loads(run("sync", "--json").stdout)
    names = ("sources", "changed", "new_sessions", "new_subagents", "messages", "diagnostics")
    assert {name: document[name] for name in names} == {
        "sources": 3,
        "changed": 3,
        "new_sessions": 2,
        "new_subagents": 1,
        "messages": 11,
        "diagnostics": 1,
    }
    Log(logs, SESSION.partition(":")[2]).message(prompt("m9", "And now?", 20), turn=4)
    document = json.loads(run("sync", "--json").stdout)
    assert (document["changed"], document["sessions"], document["new_sessions"], document["messages"]) == (1, 1, 0, 1)


@pytest.mark.usefixtures("synced")
def test_a_subagent_that_is_read_before_its_session_is_no_session(
    run: Command, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest files come first, each in a transaction of its own if they are many or large."""
    monkeypatch.setattr(syncer, "COMMIT_SOURCES", 1)
    os.utime(logs / f"{SESSION.partition(':')[2]}.jsonl", (1, 1))
    document = json.loads(run("sync", "--json").stdout)
    assert (document["new_sessions"], document["new_subagents"]) == (2, 1)


@pytest.mark.usefixtures("synced")
def test_a_log_about_other_sessions_is_not_counted(run: Command, logs: Path) -> None:
    run("sync")
    before = len(json.loads(run("sessions", "--json", "--limit", "200").stdout)["items"])
    Log(logs, "_history").event(CompactionEvent(id="z", position=0, trigger="auto"))
    found = json.loads(run("sync", "--json").stdout)
    assert (found["changed"], found["sessions"], found["new_sessions"], found["new_subagents"]) == (1, 0, 0, 0)
    assert len(json.loads(run("sessions", "--json", "--limit", "200").stdout)["items"]) == before


@pytest.mark.usefixtures("synced")
def test_for_people_a_pass_is_reported_in_sentences(run: Command) -> None:
    result = run("sync")
    assert result.exit_code == 0
    assert "Read 3 of 3 files (" in result.stdout
    assert "2 new sessions and 1 subagent, 0 updated, 11 new messages." in result.stdout
    assert "1 record could not be understood: see `turnlog doctor`." in result.stdout
    assert "Read 0 of 3 files (0 B)" in run("sync").stdout


@pytest.mark.usefixtures("synced")
def test_files_that_are_gone_are_reported_and_kept(run: Command, logs: Path) -> None:
    run("sync")
    (logs / f"{SESSION.partition(':')[2]}.jsonl").unlink()
    assert "1 file gone from disk; what was read from them stays." in run("sync").stdout
    assert run("show", SESSION).exit_code == 0


@pytest.mark.usefixtures("synced")
def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_read(
    run: Command, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logs / f"{SESSION.partition(':')[2]}.jsonl"
    log.unlink()
    log.symlink_to(log.name)
    # The plain agent lists plain files only; this one is a loop by the time it is opened.
    monkeypatch.setattr(Path, "is_file", is_log)
    result = run("sync", "--json")
    assert result.exit_code == 6
    [problem] = json.loads(result.stdout)["problems"]
    assert problem["path"] == str(log)
    assert json.loads(run("sessions", "--json").stdout)["total"] == 2


def test_without_logs_it_says_where_they_are_looked_for(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncer, "agents_here", lambda: [PlainAgent()])
    assert "No logs found. `turnlog agents`" in run("sync").stdout


def test_unreadable_logs_are_reported_also_without_sessions(home: Path, run: Command) -> None:
    project = home / ".claude" / "projects" / "p"
    project.mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(project) + b"/\xff.jsonl")).touch()
    result = run("sync")
    assert result.exit_code == 6
    assert "No logs found." in result.stdout
    assert f"turnlog: {project}/\\xff.jsonl: its name is not UTF-8" in result.stderr


def test_the_error_for_a_root_that_is_no_home_says_what_one_is(run: Command, tmp_path: Path) -> None:
    assert "A root is an agent's home" in run("sync", "--root", str(tmp_path)).stdout


def test_the_users_own_logs_are_found_read_searched_and_priced(claude_log: Path) -> None:
    assert in_pipe("sync").returncode == 0
    assert paths.database_path().exists()
    usage = json.loads(in_pipe("usage", "--json").stdout)
    assert usage["totals"]["cost"] == 10 * 5e-6 + 300 * 25e-6
    found = json.loads(in_pipe("search", "hippopotamus", "--flat", "--json").stdout)
    assert [hit["message_id"] for hit in found["hits"]] == ["msg_1"]
    assert claude_log.stem in in_pipe("sessions").stdout


def test_only_the_home_that_was_named_is_read(home: Path, claude_log: Path, tmp_path: Path) -> None:
    copy = tmp_path / "laptop"
    (home / ".claude").rename(copy)
    assert in_pipe("sync", "--root", str(copy)).returncode == 0
    assert json.loads(in_pipe("sessions", "--json").stdout)["total"] == 1
    assert in_pipe("sync", "--root", str(tmp_path / "nowhere")).returncode == 2


def test_progress_is_for_whoever_looks_only(claude_log: Path) -> None:
    code, written = on_terminal("sync")
    assert code == 0
    assert "Reading" in written
    claude_log.touch()
    result = in_pipe("sync")
    assert result.stderr == ""
