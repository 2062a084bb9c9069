"""New logs that other processes fold: the store is the same, whoever folded them and whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.agent_cases import CASES
from support.environment import hide_places
from support.plain_agent import PlainAgent
from support.profiles import some_of
from support.store_dump import check_integrity, differences, dump
from support.store_tables import Tables, differing, tables
from turnlog.agents import agent, agents, find_sources
from turnlog.agents.base import reads_rows
from turnlog.server.sample import LOGS
from turnlog.store.connection import connect
from turnlog.sync import folding, syncer, workers
from turnlog.sync.folding import FoldingProcesses, is_foldable
from turnlog.sync.syncer import Syncer, sync

ORDERS = some_of(list(range(3)), 1)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which every agent has written."""
    for name, case in CASES.items():
        shutil.copytree(LOGS / name, tmp_path / "home" / case.home)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    hide_places(monkeypatch)
    return tmp_path / "home"


@pytest.fixture
def fold_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Fold in so many other processes from now on, however small the logs are."""

    def use(count: int) -> None:
        def folding_processes(total: int) -> int:
            return count

        monkeypatch.setattr(syncer, "folding_processes", folding_processes)
        monkeypatch.setattr(syncer, "FIRST_SOURCES", 1)  # the writer folds these itself

    return use


def set_times(home: Path, random: Random) -> None:
    """Give every file another time: the newest is read first."""
    for path in sorted(home.rglob("*")):
        if path.is_file():
            moment = 1_700_000_000 + random.randrange(10**7)
            os.utime(path, (moment, moment))


@pytest.mark.parametrize("order", ORDERS)
def test_the_store_is_the_same_however_many_processes_fold(
    home: Path, tmp_path: Path, fold_in: Callable[[int], None], order: int
) -> None:
    set_times(home, Random(order))
    found: list[Tables] = []
    for count in (0, 1, 3):
        fold_in(count)
        summary = sync(tmp_path / f"{count}.db")
        assert (summary.problems, summary.new_sessions > len(CASES)) == ([], True)
        found.append(tables(tmp_path / f"{count}.db"))
    assert [differing(found[0], other) for other in found[1:]] == [[], []]
    assert len(found[0]["messages"]) > 200


def test_other_processes_fold_nearly_everything(
    home: Path, tmp_path: Path, fold_in: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the test above would compare the writer with itself."""
    folded: list[str] = []
    take = FoldingProcesses.take

    def note(self: FoldingProcesses, path: str) -> folding.FoldedSource | None:
        found = take(self, path)
        if found is not None:
            folded.append(path)
        return found

    monkeypatch.setattr(FoldingProcesses, "take", note)
    fold_in(2)
    summary = sync(tmp_path / "turnlog.db")
    foldable = {source.path for agent, source in find_sources(agents()) if not reads_rows(agent, source)}
    # The first transaction is the writer's own: here it has one source.
    assert len(set(folded) ^ foldable) <= 1
    assert len(foldable) > 0.4 * summary.sources


def test_logs_that_grow_afterwards_are_read_on(home: Path, tmp_path: Path, fold_in: Callable[[int], None]) -> None:
    logs = sorted((home / ".claude").rglob("*.jsonl"))
    whole = {path: path.read_bytes() for path in logs}
    found: list[Tables] = []
    for count in (0, 2):
        fold_in(count)
        store = tmp_path / f"{count}.db"
        for path, data in whole.items():
            path.write_bytes(data[: len(data) // 2])
            os.utime(path, (1_700_000_000, 1_700_000_000))
        sync(store)
        for path, data in whole.items():
            path.write_bytes(data)
            os.utime(path, (1_700_000_001, 1_700_000_001))
        sync(store)
        found.append(tables(store))
    assert differing(*found) == []


@pytest.mark.parametrize("received", some_of([0, 1, 4, 7], 1))
def test_a_process_that_is_killed_costs_nothing(
    home: Path, tmp_path: Path, fold_in: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, received: int
) -> None:
    for folder in home.iterdir():
        if folder.name != ".claude":  # a dump is one of one agent
            shutil.rmtree(folder)
    fold_in(0)
    sync(tmp_path / "alone.db")
    receive, start = folding.receive, FoldingProcesses.__init__
    pids: list[int] = []
    count = 0

    def note(self: FoldingProcesses, *given: Any) -> None:
        start(self, *given)
        pids.extend(self.pids)

    def receive_or_kill(pipe: Any) -> Any:
        nonlocal count
        if count == received:
            os.kill(pids[0], signal.SIGKILL)
        count += 1
        return receive(pipe)

    monkeypatch.setattr(FoldingProcesses, "__init__", note)
    monkeypatch.setattr(folding, "receive", receive_or_kill)
    fold_in(2)
    summary = sync(tmp_path / "killed.db")
    assert (summary.problems, len(pids), count > received) == ([], 2, True)
    with closing(connect(tmp_path / "alone.db")) as alone, closing(connect(tmp_path / "killed.db")) as killed:
        check_integrity(killed)
        assert differences(dump(alone), dump(killed)) == []


def test_a_key_that_another_process_has_taken_is_not_used_again(
    home: Path, tmp_path: Path, fold_in: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "turnlog.db"
    with Syncer(store):
        pass
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(
            "INSERT INTO sources (key, agent, path, root, kind, size, mtime_ns, device, inode, generation, cursor,"
            " parser_version, lines, read_at)"
            " VALUES (7, 'codex', '/elsewhere', '/', 'session', 0, 0, 0, 0, 0, 0, 1, 0, 0)"
        )
        connection.commit()

    def first(connection: sqlite3.Connection) -> int:
        return 1

    monkeypatch.setattr(syncer, "next_source_key", first)
    fold_in(1)
    summary = sync(store)
    assert summary.problems == []
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT path) FROM sources").fetchone() == (
            summary.sources + 1,
            summary.sources + 1,
        )


def test_only_registered_agents_are_folded_elsewhere() -> None:
    assert is_foldable(agent("codex"))
    assert not is_foldable(PlainAgent())


def test_the_number_of_processes_follows_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "memory", lambda: 64 << 30)
    found: list[int] = []
    for cores in (1, 2, 4, 64):
        monkeypatch.setattr(workers, "usable_cores", lambda cores=cores: cores)
        found.append(workers.folding_processes(workers.LARGE_IMPORT))
    assert found == [0, 1, 3, 8]
    assert workers.folding_processes(workers.LARGE_IMPORT - 1) == 0
    monkeypatch.setattr(workers, "memory", lambda: 1 << 30)
    assert workers.folding_processes(workers.LARGE_IMPORT) == 2
