"""`turnlog run`: the agent as it is, byte for byte, and a record of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.agent_runs import runs, wrapped
from support.cli_runner import command, on_terminal
from turnlog import paths
from turnlog.agents.base import Detection
from turnlog.runs.lifecycle import output_path
from turnlog.runs.sessions import RunOutput, read_output
from turnlog.store import open_store

NOISE = """
import os, sys
os.write(1, bytes(range(256)) * 3000)
os.write(2, b"\\xff on the side\\n")
os.write(1, sys.stdin.buffer.read()[::-1])
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("code", [0, 7, 141])
def test_output_errors_input_and_exit_code_are_those_of_the_command(code: int) -> None:
    bare = subprocess.run([sys.executable, "-c", NOISE, str(code)], input=b"abc\0", capture_output=True, check=False)
    through = wrapped(sys.executable, "-c", NOISE, str(code), input=b"abc\0")
    assert (through.stdout, through.stderr, through.returncode) == (bare.stdout, bare.stderr, bare.returncode)
    (run,) = runs()
    assert (run.status, run.exit_code) == ("completed" if code == 0 else "failed", code)
    assert run.command == (sys.executable, "-c", NOISE, str(code))
    assert not output_path(paths.database_path(), run.id).exists()


def test_a_command_that_dies_by_a_signal_takes_the_wrapper_along() -> None:
    through = wrapped("sh", "-c", "kill -KILL $$")
    assert through.returncode == -signal.SIGKILL
    (run,) = runs()
    assert (run.status, run.exit_code, run.error) == ("failed", -9, "ended by SIGKILL")


def test_a_command_that_is_not_there_is_reported_as_a_shell_does() -> None:
    assert wrapped("no-such-program").returncode == 127
    assert wrapped("/").returncode == 126
    assert {(run.status, run.error) for run in runs()} == {
        ("failed", "no-such-program: No such file or directory"),
        ("failed", "/: Permission denied"),
    }


@contextmanager
def disposed(number: signal.Signals, to: signal.Handlers) -> Generator[None]:
    """What is started meanwhile begins with this signal's default, or ignoring it."""
    before = signal.signal(number, to)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("disposition", [signal.SIG_DFL, signal.SIG_IGN])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_passed_on(number: signal.Signals, disposition: signal.Handlers) -> None:
    """Also to a command that began by ignoring them, as in the background of a shell, and then wants signals."""
    program = f"import signal, sys, time; signal.signal({int(number)}, lambda *_: sys.exit(5)); print('on', flush=True)"
    # One long pause would miss a signal that comes just before it.
    wrapper = command("run", "--", sys.executable, "-c", f"{program}; [time.sleep(0.05) for _ in range(2_000)]")
    with disposed(number, disposition):
        process = subprocess.Popen(wrapper, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"on\n"
        process.send_signal(number)
        try:
            assert process.wait(100) == 5
        finally:
            process.kill()
    assert [run.status for run in runs()] == ["cancelled" if disposition is signal.SIG_DFL else "failed"]


def test_a_signal_that_is_ignored_stays_so() -> None:
    script = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    shell = 'trap "" HUP; exec "$@"'
    result = subprocess.run(
        ["sh", "-c", shell, "sh", *command("run", "--", sys.executable, "-c", script)], capture_output=True, check=False
    )
    assert result.stdout == b"True\n"


def test_whoever_stops_reading_stops_the_command() -> None:
    pipe = f"{' '.join(command('run', '--', 'yes'))} | head -n 1"
    result = subprocess.run(["sh", "-c", pipe], capture_output=True, check=False, timeout=100)
    assert result.stdout == b"y\n"
    assert [run.exit_code for run in runs()] == [-signal.SIGPIPE]


def test_no_agent_looks_through_text_that_cannot_be_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five agents in tens of thousands of short lines: that took ten seconds and more of processor time."""

    def look(path: Path) -> Detection:
        raise AssertionError(path)

    monkeypatch.setattr("turnlog.runs.sessions.detect", look)
    path = tmp_path / "a.out"
    path.write_bytes(b" y\n" * 20_000)
    assert read_output(path) == RunOutput(text=("y\n " * 20_000).strip())
    path.write_bytes(b'y\n{"type": "system"}\n')
    with pytest.raises(AssertionError):
        read_output(path)


def test_what_the_command_left_running_does_not_hold_it_up(tmp_path: Path) -> None:
    """Its later output arrives all the same."""
    output, gate = tmp_path / "out", tmp_path / "gate"
    os.mkfifo(gate)
    with output.open("wb") as file:
        behind = f"(read line < '{gate}'; echo $line) & echo now"
        subprocess.run(command("run", "--", "sh", "-c", behind), stdout=file, check=True, timeout=100)
    assert output.read_bytes() == b"now\n"
    gate.write_text("later\n")
    deadline = time.monotonic() + 100
    while output.read_bytes() != b"now\nlater\n":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_on_a_terminal_the_command_has_the_terminal() -> None:
    script = "import os; print([os.isatty(number) for number in range(3)])"
    code, shown = on_terminal("run", "--", sys.executable, "-c", script)
    assert (code, shown.strip()) == (0, "[True, True, True]")


@pytest.mark.parametrize("form", ["text", "stream-json"])
def test_the_run_is_linked_to_the_log_of_its_agent(claude: Path, form: str) -> None:
    """R-S35."""
    arguments = ("claude", "--model", "opus", "--append-system-prompt", "Be short.", "--output-format", form, "-p")
    through = wrapped(*arguments, "list the files in pieces")
    assert through.returncode == 0
    assert through.stderr == b"a remark\n"
    assert through.stdout.count(b"\n") == (1 if form == "text" else 6)
    (run,) = runs()
    assert (run.status, run.origin, run.agent, run.log_problem) == ("completed", "command", "claude-code", None)
    assert (run.prompt, run.model, run.system_prompt) == ("list the files in pieces", "claude-opus-4-5", "Be short.")
    assert (run.result, run.tool_calls) == ("You said: list the files in pieces", 1)
    assert run.usage is not None
    assert (run.usage.total, run.usage.cache_read) == (230, 200)
    assert run.cwd == str(Path.cwd())
    assert run.started_at is not None
    assert run.ended_at is not None
    assert run.created_at <= run.started_at <= run.ended_at
    assert run.session_id is not None
    with open_store(paths.database_path()) as store:
        session = store.session(run.session_id)
        assert session.counts.messages == 3
        assert store.run_messages(run.id).items == tuple(store.messages(run.session_id))
        assert [source.kind for source in store.sources(run.session_id)] == ["session"]
    assert run.log_path is not None
    assert Path(run.log_path).is_file()


def test_the_session_of_a_run_joins_its_task_and_the_agent_inherits_it(claude: Path) -> None:
    """R-C6."""
    script = "import os, sys; os.write(1, os.environ['TURNLOG_TASK'].encode())"
    program = subprocess.run(command("run", "--task", "T-1", "--", sys.executable, "-c", script), capture_output=True)
    assert program.stdout == b"T-1"
    subprocess.run(command("run", "--task", "T-2", "--", "claude", "-p", "list the files"), check=True)
    with open_store(paths.database_path()) as store:
        assert [(task.id, task.sessions) for task in store.tasks()] == [("T-2", 1)]


def test_a_run_that_goes_on_with_a_session_counts_only_its_own(claude: Path) -> None:
    """R-S24: and has only its own messages."""
    wrapped("claude", "-p", "the first")
    (first,) = runs()
    assert first.session_id is not None
    wrapped("claude", "--resume", first.session_id.partition(":")[2], "-p", "the second")
    second = runs()[0]
    assert second.session_id == first.session_id
    assert second.usage is not None
    assert (second.usage.total, second.tool_calls, second.result) == (230, 1, "You said: the second")
    with open_store(paths.database_path()) as store:
        every = store.messages(first.session_id)
        assert (*store.run_messages(first.id).items, *store.run_messages(second.id).items) == tuple(every)
        assert len(store.run_messages(second.id).items) == len(every) / 2


def test_a_prompt_that_comes_through_a_pipe_is_known_from_the_log(claude: Path) -> None:
    wrapped("claude", "-p", "--stdin", input=b"from the pipe")
    assert [(run.prompt, run.result) for run in runs()] == [("from the pipe", "You said: from the pipe")]


def test_a_stream_without_a_log_is_the_log(claude: Path) -> None:
    """R-S35: a missing log leaves the run completed, and the row says why it has none."""
    wrapped("claude", "--output-format", "stream-json", "-p", "no log please")
    (run,) = runs()
    assert run.status == "completed"
    assert run.log_problem == f"no log of {run.session_id} was found: what the run printed was read instead"
    assert (run.result, run.tool_calls) == ("You said: no log please", 1)
    assert run.session_id is not None
    with open_store(paths.database_path()) as store:
        assert [source.kind for source in store.sources(run.session_id)] == ["stream"]
        assert len(store.messages(run.session_id)) == 3
        assert len(store.run_messages(run.id).items) == 3
    assert not output_path(paths.database_path(), run.id).exists()


def test_words_without_a_log_are_the_result(claude: Path) -> None:
    wrapped("claude", "-p", "no log please")
    (run,) = runs()
    assert (run.status, run.session_id, run.result) == ("completed", None, "You said: no log please")
    assert run.log_problem == "no session of claude-code was found that was prompted while the run lasted"


def test_a_store_that_cannot_be_used_does_not_hold_the_agent_up(tmp_path: Path) -> None:
    store = tmp_path / "notes.db"
    store.write_text("not a database, but long enough to be looked at" * 20)
    result = subprocess.run(command("run", "--store", str(store), "--", "echo", "on"), capture_output=True, check=False)
    assert (result.returncode, result.stdout) == (0, b"on\n")
    assert result.stderr.startswith(b"turnlog: this run is not recorded: ")
    assert result.stderr.count(b"\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["notes.db"]


def test_an_agent_that_is_not_known_is_wrong_use() -> None:
    result = subprocess.run(command("run", "--agent", "nobody", "--", "true"), capture_output=True, check=False)
    assert result.returncode == 2
    assert b"no agent is named 'nobody'" in result.stderr
