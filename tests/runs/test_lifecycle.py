"""The row of a run: how it ends, and how a run whose wrapper was killed is found, closed and linked."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil
import pytest

from support.agent_runs import runs
from support.cli_runner import call, command
from turnlog import paths
from turnlog.platforms import processes
from turnlog.platforms.processes import is_alive, this_process
from turnlog.runs.abandoned import ABANDONED, close_abandoned_runs
from turnlog.runs.lifecycle import (
    ended,
    new_run,
    save,
    started,
)
from turnlog.store import open_store


def test_a_run_ends_with_its_process_not_with_its_record() -> None:
    """R-S35."""
    at = datetime(2027, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    assert ended(started(new_run("command")), 0, at=at).ended_at == at.replace(microsecond=678_000)


@pytest.fixture
def killed(claude: Path) -> Iterator[None]:
    """`turnlog run -- claude` whose wrapper is killed while the agent waits."""
    process = subprocess.Popen(
        command("run", "--", "claude", "--output-format", "stream-json", "-p", "no log, and wait"),
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + 100
    while not any(run.status == "running" for run in (runs() if paths.database_path().exists() else [])):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.communicate()
    yield
    os.killpg(process.pid, 9)


@pytest.mark.usefixtures("killed")
@pytest.mark.parametrize("arguments", [("runs",), ("sync",)])
def test_the_next_command_closes_it(arguments: tuple[str, ...]) -> None:
    assert call(*arguments).exit_code == 0
    (run,) = runs()
    assert (run.status, run.error, run.exit_code) == ("failed", ABANDONED, None)
    assert run.log_problem == "no session of claude-code was found that was prompted while the run lasted"
    assert close_abandoned_runs(paths.database_path()) == []


def test_a_run_that_is_watched_over_is_left_alone() -> None:
    store = paths.database_path()
    running = save(store, started(new_run("runtime")))
    pending = save(store, new_run("command"))
    assert close_abandoned_runs(store) == []
    with open_store(store) as opened:
        assert [opened.run(run.id) for run in (running, pending)] == [running, pending]


@pytest.mark.parametrize(
    "changes",
    [{"boot_id": "another boot"}, {"process_start": "1"}, {"pid": 2**22 + 1}, {"pid": None}, {"process_start": None}],
    ids=str,
)
def test_another_process_of_that_number_is_not_the_owner(changes: dict[str, object]) -> None:
    store = paths.database_path()
    save(store, msgspec.structs.replace(started(new_run("command")), **changes))
    (run,) = close_abandoned_runs(store)
    assert run.status == "failed"


def test_a_run_that_has_ended_is_not_lost() -> None:
    store = paths.database_path()
    done = save(store, msgspec.structs.replace(ended(started(new_run("command")), 0), boot_id="another boot"))
    assert close_abandoned_runs(store) == []
    assert runs() == [done]


def test_no_store_has_no_lost_runs(tmp_path: Path) -> None:
    assert close_abandoned_runs(tmp_path / "nothing.db") == []
    assert list(tmp_path.iterdir()) == []


def test_a_process_is_known_again() -> None:
    assert is_alive(this_process())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        other = this_process()._replace(pid=child.pid)
        assert not is_alive(other)


def test_a_process_that_only_waits_to_be_noticed_is_gone() -> None:
    with subprocess.Popen(["true"]) as child:
        deadline = time.monotonic() + 100
        while Path(f"/proc/{child.pid}/stat").read_text().split()[2] != "Z":
            assert time.monotonic() < deadline
        assert not is_alive(this_process()._replace(pid=child.pid))


def test_where_no_boot_has_an_id_the_time_of_its_start_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_BOOT_ID", tmp_path / "nothing")
    mine = this_process()
    assert mine.boot_id is None
    assert float(mine.start or 0) == psutil.Process().create_time()
    assert is_alive(mine)
    assert not is_alive(mine._replace(pid=1))
    assert not is_alive(mine._replace(start="1795715173.9"))
    with subprocess.Popen(["sleep", "9"]) as other:
        pid = other.pid
        assert not is_alive(mine._replace(pid=pid))
        other.kill()
    assert not is_alive(mine._replace(pid=pid))
