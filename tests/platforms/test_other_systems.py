"""Windows and macOS, simulated: poorer modules, paths and encodings of theirs, locked files, folded names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli_runner import call, in_pipe
from support.toy_agent import ToyAgent, line
from turnlog import paths
from turnlog.paths import Folders
from turnlog.platforms.programs import run_process
from turnlog.server.sample import LOGS
from turnlog.sync import log_file
from turnlog.sync.syncer import Syncer

CLAUDE = LOGS / "claude-code"
SESSION = "22222222-2222-4222-8222-222222222222"


def elsewhere(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Call the command on a system that has nothing of POSIX."""
    return subprocess.run(
        [sys.executable, "-m", "support.other_system", *arguments],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )


def test_commands_and_server_can_be_imported_without_posix() -> None:
    """Names that are used later are refused by `test_one_place`."""
    script = """
import importlib, pkgutil
from support import other_system
other_system.install()
import turnlog.cli
for found in pkgutil.iter_modules(turnlog.cli.__path__, "turnlog.cli."):
    importlib.import_module(found.name)
for name in ("server.run", "server.worker", "sync.fold_process", "chat.runtimes.agent", "hooks.send"):
    importlib.import_module(f"turnlog.{name}")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


def test_commands_say_the_same_without_posix(tmp_path: Path) -> None:
    stores = [("--store", str(tmp_path / name / "turnlog.db")) for name in ("here", "there")]
    for run, store in zip((in_pipe, elsewhere), stores, strict=True):
        assert run("sync", "--root", str(CLAUDE), *store).returncode == 0
    for arguments in (("sessions", "--json"), ("show", SESSION, "--json"), ("search", "agent", "--json")):
        here, there = (
            run(*arguments, "--no-sync", *store) for run, store in zip((in_pipe, elsewhere), stores, strict=True)
        )
        assert (here.returncode, here.stderr, there.stderr) == (0, "", "")
        assert there.stdout == here.stdout


def test_a_run_is_recorded_where_signals_cannot_be_forwarded() -> None:
    ended = elsewhere("run", "--", sys.executable, "-c", "print('done'); raise SystemExit(3)")
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "done\n", "")
    (run,) = json.loads(in_pipe("runs", "--json").stdout)["items"]
    assert (run["status"], run["exit_code"]) == ("failed", 3)


def test_a_program_that_cannot_be_started_is_an_error_there_too() -> None:
    with pytest.raises(FileNotFoundError):
        run_process(["no-such-program"], lambda _: None, forward=False)


@pytest.fixture
def windows_home(tmp_path: Path) -> Path:
    """A recorded session, in the folder and with the paths that the same version writes on Windows."""
    recorded = CLAUDE / "projects" / "-home-dev-sample" / f"{SESSION}.jsonl"
    home = tmp_path / ".claude"
    log = home / "projects" / "C--Users-Zoë-sample" / recorded.name
    log.parent.mkdir(parents=True)
    log.write_text(recorded.read_text().replace("/home/dev/sample", r"C:\\Users\\Zoë\\sample"))
    return home


def test_paths_with_drive_letters_name_the_project(windows_home: Path) -> None:
    assert call("sync", "--root", str(windows_home)).exit_code == 0
    (found,) = json.loads(call("sessions", "--no-sync", "--json").output)["items"]
    assert found["project"] == {"path": "C:\\Users\\Zoë\\sample", "name": "sample"}
    for named in ("sample", "C:\\Users\\Zoë\\sample", "C:\\Users\\Zoë\\sample\\", "c:/users/zoë/sample"):
        assert json.loads(call("sessions", "--no-sync", "--json", "--project", named).output)["total"] == 1, named


def test_a_drive_in_either_case_is_one_project(windows_home: Path) -> None:
    (log,) = windows_home.rglob("*.jsonl")
    other = log.with_name(f"{SESSION[:-1]}3.jsonl")
    other.write_text(log.read_text().replace(SESSION, other.stem).replace("C:", "c:").replace('"uuid":"', '"uuid":"z'))
    assert call("sync", "--root", str(windows_home)).exit_code == 0
    (found,) = json.loads(call("project", "list", "--no-sync", "--json").output)["items"]
    assert (found["path"], found["sessions"]) == ("C:\\Users\\Zoë\\sample", 2)


def test_lines_that_end_as_on_windows_are_read(windows_home: Path) -> None:
    (log,) = windows_home.rglob("*.jsonl")
    log.write_bytes(b"\xef\xbb\xbf" + log.read_bytes().replace(b"\n", b"\r\n"))
    synced = json.loads(call("sync", "--root", str(windows_home), "--json").output)
    assert (synced["messages"], synced["problems"]) == (12, [])


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "cp932", "ascii"])
def test_a_console_of_another_encoding_shows_what_it_can_and_json_is_whole(windows_home: Path, encoding: str) -> None:
    call("sync", "--root", str(windows_home))
    settings = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    for form in ((), ("--json",)):
        done = subprocess.run(
            [sys.executable, "-m", "turnlog", "sessions", "--no-sync", *form],
            env=settings,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        if form:
            (found,) = json.loads(done.stdout.decode("utf-8"))["items"]
            assert found["cwd"] == "C:\\Users\\Zoë\\sample"
        else:
            assert SESSION in done.stdout.decode(encoding)


def test_a_log_that_its_agent_has_locked_is_reported_and_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses to open a file that its writer does not share."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in "ab":
        (logs / f"{name}.log").write_bytes(line(kind="prompt", id="r1", message=f"m-{name}", text="hello"))
    opened = vars(log_file)["_open_regular"]

    def open_shared(path: str, flags: int) -> int:
        if path.endswith("a.log"):
            raise PermissionError(13, "The process cannot access the file", path)
        return opened(path, flags)

    with Syncer(tmp_path / "turnlog.db", agents=[ToyAgent()]) as syncer:
        with monkeypatch.context() as patch:
            patch.setattr(log_file, "_open_regular", open_shared)
            first = syncer.scan(roots=[logs])
            assert [Path(problem.path).name for problem in first.problems] == ["a.log"]
            assert "cannot access" in first.problems[0].reason
            assert first.messages == 1
        second = syncer.scan(roots=[logs])
        assert (second.messages, second.problems) == (1, [])


def test_a_home_that_is_named_in_two_ways_is_one_where_case_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_DIR", "/Users/Zoe/.tool,/users/zoe/.TOOL,/Users/Max/.tool")
    rule = Folders(("~/.tool",), variable="TOOL_DIR", is_list=True)
    assert len(paths.folders(rule)) == 3
    monkeypatch.setattr(paths, "folds_case", lambda: True)
    assert paths.folders(rule) == (Path("/Users/Zoe/.tool"), Path("/Users/Max/.tool"))
