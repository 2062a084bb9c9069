"""Joining runs with sessions: which one it is, twice, and none that could be another."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.fake_claude import log_of, records, write_log
from turnlog import paths
from turnlog.runs.lifecycle import ended, new_run, output_path, save, started
from turnlog.runs.sessions import link_run
from turnlog.store import open_store
from turnlog.store.values import Run
from turnlog.sync import log_file

ONE, TWO = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def done(**facts: Any) -> Run:
    """A run of Claude Code in this folder that has just ended well, after a few seconds."""
    known: dict[str, Any] = {"agent": "claude-code", "cwd": str(Path.cwd()), **facts}
    run = new_run("command", **known)
    run = started(msgspec.structs.replace(run, created_at=run.created_at - timedelta(seconds=5)))
    return save(paths.database_path(), ended(run, 0))


def logged(session: str, prompt: str, *, ago: timedelta = timedelta()) -> None:
    lines = records(session, prompt, f"You said: {prompt}")
    for line in lines:
        line["timestamp"] = (datetime.now(UTC) - ago).isoformat()
    write_log(session, lines)


def link(run: Run) -> Run:
    return link_run(paths.database_path(), run)


def test_linking_twice_does_no_harm() -> None:
    """R-S35."""
    logged(ONE, "hello")
    first = link(done())
    again = link(first)
    assert again == first
    assert first.session_id == f"claude-code:{ONE}"
    with open_store(paths.database_path()) as store:
        assert store.session(f"claude-code:{ONE}").counts.messages == 3
        assert store.run(first.id) == first
        assert store.runs().total == 1


def test_a_stream_that_was_read_stays_linked() -> None:
    """R-S35: also when its bytes are gone, and when the log turns up later."""
    run = done()
    lines = records(ONE, "hello", "You said: hello")
    printed = [{key: line[key] for key in ("type", "uuid", "message", "timestamp")} for line in lines]
    output = output_path(paths.database_path(), run.id)
    output.parent.mkdir(parents=True)
    output.write_bytes(b"\n".join(msgspec.json.encode({**line, "session_id": ONE}) for line in printed))
    first = link(run)
    assert (first.session_id, first.result) == (f"claude-code:{ONE}", "You said: hello")
    assert first.log_problem is not None
    assert link(first).session_id == first.session_id
    write_log(ONE, lines)
    later = link(first)
    assert (later.log_problem, later.log_path) == (None, str(log_of(ONE)))
    with open_store(paths.database_path()) as store:
        assert store.session(f"claude-code:{ONE}").counts.messages == 3


def test_the_prompt_distinguishes_two_sessions() -> None:
    logged(ONE, "count  the\nlines")
    logged(TWO, "list the files")
    assert link(done(prompt="count the lines")).session_id == f"claude-code:{ONE}"
    assert link(done(prompt="list the files")).session_id == f"claude-code:{TWO}"


def test_two_that_could_be_it_are_not_guessed() -> None:
    logged(ONE, "the same")
    logged(TWO, "the same")
    run = link(done(prompt="the same"))
    assert (run.status, run.session_id) == ("completed", None)
    assert run.log_problem == f"it could be any of claude-code:{ONE}, claude-code:{TWO}" or run.log_problem == (
        f"it could be any of claude-code:{TWO}, claude-code:{ONE}"
    )


def test_the_session_that_the_command_names_is_it() -> None:
    logged(ONE, "the same")
    logged(TWO, "the same")
    assert link(done(prompt="the same", session_id=f"claude-code:{TWO}")).session_id == f"claude-code:{TWO}"


def test_a_session_of_another_folder_or_time_is_not_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged(ONE, "long ago", ago=timedelta(minutes=5))
    run = done()
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    logged(TWO, "elsewhere")
    assert link(run).log_problem == "no session of claude-code was found that was prompted while the run lasted"


def test_a_session_in_a_worktree_is_not_of_a_run_in_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are of one project."""
    worktree = tmp_path / "shop" / ".worktrees" / "fix"
    worktree.mkdir(parents=True)
    monkeypatch.chdir(worktree)
    logged(TWO, "elsewhere")
    monkeypatch.chdir(tmp_path / "shop")
    assert link(done()).log_problem == "no session of claude-code was found that was prompted while the run lasted"


def test_of_several_that_fit_the_new_one_is_it() -> None:
    """Somebody else's session goes on in the same folder meanwhile."""
    logged(ONE, "before", ago=timedelta(minutes=5))
    logged(ONE, "in another window")
    logged(TWO, "mine")
    assert link(done()).session_id == f"claude-code:{TWO}"


def test_output_that_is_nobodys_is_the_result() -> None:
    run = done(agent=None)
    output = output_path(paths.database_path(), run.id)
    output.parent.mkdir(parents=True)
    output.write_text('{"answer": 42}\n')
    linked = link(run)
    assert (linked.result, linked.session_id, linked.agent) == ('{"answer": 42}', None, None)
    assert linked.log_problem == "no session of an agent was found that was prompted while the run lasted"


def test_a_log_that_cannot_be_read_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-S35: the run has ended well all the same, and the log is read when that is possible."""
    logged(ONE, "hello")

    def refuse(path: str, flags: int) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    with monkeypatch.context() as denied:
        denied.setattr(log_file, "_open_regular", refuse)
        run = link(done())
    assert (run.status, run.session_id) == ("completed", None)
    assert run.log_problem is not None
    assert str(log_of(ONE)) in run.log_problem
    assert "Permission denied" in run.log_problem
    again = link(run)
    assert (again.session_id, again.log_problem) == (f"claude-code:{ONE}", None)


def test_an_agent_that_is_gone_is_a_reason() -> None:
    assert "no agent is named 'gone'" in str(link(done(agent="gone")).log_problem)
