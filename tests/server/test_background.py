"""The process that reads logs while the server runs: what it reports, how it rests, and that it ends when it has to."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

import pytest

from support.environment import hide_places
from turnlog import paths
from turnlog.errors import StoreBusyError
from turnlog.server import background as background_process
from turnlog.server import worker
from turnlog.server.background import Background, PassProgress
from turnlog.server.reports import PassEnded, PassFailed, PassMoved, Report
from turnlog.server.worker import keep_reading
from turnlog.store import open_store
from turnlog.sync.summary import SourceProblem, SyncSummary
from turnlog.sync.wanted import WantedSessions
from turnlog.sync.watcher import Watcher, WatchResult

ReportProgress = Callable[[str, int, int], None]


class Passes:
    """Replaces `Syncer` and `Watcher`: does what each pass is given, and stops after the last."""

    is_complete = True
    is_new = False

    def __init__(self, *passes: Callable[[ReportProgress], SyncSummary]) -> None:
        self.stopped = threading.Event()
        self.reports: list[Report] = []
        self.done: list[str] = []
        self.rests: list[float] = []
        self.unwatched_folders: list[str] = []
        self.changes: list[WatchResult] = []
        self.read_paths: list[Path] = []
        self._passes = list(passes)

    def __enter__(self) -> Passes:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is open."""

    def has_read(self) -> bool:
        return not self.is_new

    def cover(self) -> None:
        self.done.append("cover")

    def scan(self, *, on_progress: ReportProgress) -> SyncSummary:
        self.done.append("scan")
        return self._passes.pop(0)(on_progress)

    def warm_up(self) -> None:
        """Nothing is read."""

    def read(self, syncer: object, paths: Iterable[Path]) -> SyncSummary:
        self.read_paths += paths
        return SyncSummary()

    def wait(self, seconds: float) -> WatchResult:
        if self.changes:
            return self.changes.pop(0)
        self.rests.append(round(seconds))
        if not self._passes:
            self.stopped.set()
        return WatchResult()

    def run(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Run all passes; the kinds of reports they gave."""

        def opened(_: Path, *, on_saved: object, own_checkpoints: bool, wanted: WantedSessions) -> Passes:
            return self

        monkeypatch.setattr(worker, "Syncer", opened)
        keep_reading(Path("store.db"), 60.0, cast("Watcher", self), self.stopped, self.reports.append, WantedSessions())
        return [type(report).__name__ for report in self.reports]


def test_a_pass_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(on_progress: ReportProgress) -> SyncSummary:
        on_progress("find", 3, 3)
        for done in range(1000):
            on_progress("read", done, 1000)
        return SyncSummary(changed=3)

    passes = Passes(read)
    assert passes.run(monkeypatch)[:3] == ["PassBegan", "PassMoved", "PassMoved"]
    moves = [report for report in passes.reports if isinstance(report, PassMoved)]
    assert [move.phase for move in moves[:2]] == ["find", "read"]
    assert len(moves) < 10
    assert passes.reports[-1] == PassEnded(problems=[])


def test_the_newest_sessions_of_a_new_store_do_not_wait_for_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written while nothing is watched yet is found by a second scan, and the pass ends after it."""
    passes = Passes(lambda tell: SyncSummary(changed=3), lambda tell: SyncSummary(changed=1))
    passes.is_new = True
    assert passes.run(monkeypatch) == ["PassBegan", "PassEnded"]
    assert passes.done == ["scan", "cover", "scan"]


def test_a_pass_that_fails_is_reported_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(on_progress: ReportProgress) -> SyncSummary:
        raise StoreBusyError("somebody else is writing")

    def find_problems(on_progress: ReportProgress) -> SyncSummary:
        return SyncSummary(problems=[SourceProblem(f"/logs/{number}", "no permission") for number in range(1000)])

    passes = Passes(fail, find_problems)
    assert passes.run(monkeypatch) == ["PassBegan", "PassFailed", "PassBegan", "PassEnded"]
    assert passes.reports[1] == PassFailed(reason="somebody else is writing")
    ended = passes.reports[3]
    assert isinstance(ended, PassEnded)
    assert ended.problems[0].path == "/logs/0"
    assert len(ended.problems) == worker.PROBLEM_LIMIT


def test_looking_takes_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes(
        lambda tell: SyncSummary(seconds=60, changed=500),
        lambda tell: SyncSummary(seconds=0.05),
        lambda tell: SyncSummary(seconds=10),
    )
    passes.run(monkeypatch)
    assert passes.done == ["cover", "scan"] * 3
    assert passes.rests == [60, 60, 100]


def test_what_changes_is_read_without_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes(lambda tell: SyncSummary())
    passes.changes = [WatchResult(frozenset({Path("/logs/a")})), WatchResult(frozenset({Path("/logs/b")}))]
    assert passes.run(monkeypatch) == ["PassBegan", "PassEnded"]
    assert passes.read_paths == [Path("/logs/a"), Path("/logs/b")]


def test_lost_events_lead_to_a_pass_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes(lambda tell: SyncSummary(), lambda tell: SyncSummary())
    passes.changes = [WatchResult(needs_pass=True)]
    assert passes.run(monkeypatch) == ["PassBegan", "PassEnded", "PassBegan", "PassEnded"]
    assert passes.rests == [60]


def test_where_not_all_is_watched_passes_are_frequent_and_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes(lambda tell: SyncSummary(seconds=0.01))
    passes.is_complete = False
    passes.unwatched_folders = ["/logs/old"]
    passes.run(monkeypatch)
    assert passes.rests == [worker.UNWATCHED_SECONDS]
    ended = passes.reports[-1]
    assert isinstance(ended, PassEnded)
    assert [(problem.path, problem.reason) for problem in ended.problems] == [("/logs/old", worker.NOT_WATCHED)]


def test_a_pass_ends_in_the_middle_when_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def be_stopped(on_progress: ReportProgress) -> SyncSummary:
        on_progress("read", 1, 9)
        passes.stopped.set()
        on_progress("read", 2, 9)
        raise AssertionError("it went on")

    passes = Passes(be_stopped)
    assert passes.run(monkeypatch) == ["PassBegan", "PassMoved"]


def test_progress_follows_the_reports() -> None:
    progress = PassProgress()
    assert progress.current().state == "off"
    progress.begin()
    progress.advance("read", 5, 10)
    now = progress.current()
    assert (now.state, now.phase, now.done, now.total, now.passes) == ("running", "read", 5, 10, 0)
    assert now.started_at is not None
    progress.end([])
    now = progress.current()
    assert (now.state, now.phase, now.done, now.passes, now.error) == ("waiting", None, 0, 1, None)
    progress.fail("no room")
    assert (progress.current().state, progress.current().error, progress.current().passes) == ("failed", "no room", 2)
    progress.begin()
    progress.end([])
    assert progress.current().error is None


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_process_reads_and_ends(tmp_path: Path) -> None:
    progress = PassProgress()
    background = Background(tmp_path / "turnlog.db", progress, seconds=0.05)
    background.stop()
    background.start()
    wait_for(lambda: progress.current().passes >= 2)
    background.stop()
    background.stop()
    assert progress.current().state == "off"
    assert progress.current().error is None


def test_the_sample_is_read_once_and_nothing_runs_then() -> None:
    store, saved = paths.sample_path(), list[int]()
    progress = PassProgress()
    background = Background(store, progress, on_saved=lambda: saved.append(1), sample=True)
    background.start()
    wait_for(lambda: progress.current().passes == 1 and progress.current().state == "off")
    assert saved
    assert [pid for pid in children() if str(store) in Path(f"/proc/{pid}/cmdline").read_text()] == []
    background.stop()
    assert (progress.current().error, progress.current().passes) == (None, 1)
    with open_store(store) as opened:
        assert opened.status().sessions > 10


def test_a_sample_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "turnlog.db").write_bytes(b"this is no database" * 100)
    progress = PassProgress()
    background = Background(tmp_path / "turnlog.db", progress, sample=True)
    background.start()
    wait_for(lambda: progress.current().passes == 1 and progress.current().state == "off")
    assert "turnlog.db" in (progress.current().error or "")
    background.stop()


def test_a_stop_while_logs_are_read_is_no_problem_of_the_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    hide_places(monkeypatch)
    folder = tmp_path / "home/.claude/projects/-w-shop"
    folder.mkdir(parents=True)
    for number in range(30):
        message = {"role": "user", "content": "hello"}
        line = json.dumps({"type": "user", "uuid": f"u{number}", "message": message}) + "\n"
        (folder / f"{number:08d}-aaaa-4aaa-8aaa-000000000000.jsonl").write_text(line)
    stopped = threading.Event()
    phases: list[str] = []

    def report(made: Report) -> None:
        phases.append(made.phase if isinstance(made, PassMoved) else "")
        if phases[-1] == "read":
            stopped.set()

    store = tmp_path / "turnlog.db"
    with Watcher(backend="passes") as watcher:
        keep_reading(store, 60.0, watcher, stopped, report, WantedSessions())
    assert phases[-1] == "read"
    with open_store(store) as opened:
        assert (opened.status().sources, opened.status().unreadable) == (0, 0)


def test_a_session_that_is_requested_is_read_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    hide_places(monkeypatch)
    folder = tmp_path / "home/.claude/projects/-w-shop"
    folder.mkdir(parents=True)
    for number in range(600):
        path = folder / f"{number:08d}-aaaa-4aaa-8aaa-000000000000.jsonl"
        message = {"role": "user", "content": "hello"}
        path.write_text(json.dumps({"type": "user", "uuid": f"u{number}", "message": message}) + "\n")
        moment = 1_700_000_000 + 60 * number
        os.utime(path, (moment, moment))
    store, oldest = tmp_path / "turnlog.db", "claude-code:00000000-aaaa-4aaa-8aaa-000000000000"
    progress = PassProgress()
    # On a busy machine its process takes longer to start than a page would wait.
    monkeypatch.setattr(background_process, "WAIT_SECONDS", 60.0)
    background = Background(store, progress, seconds=60)
    assert not background.read_next(oldest)
    background.start()
    assert background.read_next(oldest)
    began = time.monotonic()
    assert not background.read_next(f"{oldest}\nx")
    assert time.monotonic() - began < background_process.WAIT_SECONDS
    with open_store(store) as opened:
        assert opened.session(oldest).id == oldest
        assert opened.status().sessions < 600
    assert not background.read_next("claude-code:99999999-aaaa-4aaa-8aaa-000000000000")
    wait_for(lambda: progress.current().passes >= 1)
    assert not background.read_next(oldest)
    background.stop()


def test_a_process_that_dies_is_noticed(tmp_path: Path) -> None:
    progress = PassProgress()
    background = Background(tmp_path / "turnlog.db", progress, seconds=30)
    background.start()
    wait_for(lambda: progress.current().passes >= 1)
    (child,) = [pid for pid in children() if str(tmp_path) in Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: progress.current().state == "failed")
    assert "ended with status -9" in (progress.current().error or "")
    background.stop()
    assert progress.current().state == "off"


def test_a_process_that_dies_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system ends one that takes much memory."""
    monkeypatch.setattr(background_process, "FIRST_PAUSE_SECONDS", 0.05)
    progress = PassProgress()
    reading = Background(tmp_path / "turnlog.db", progress, seconds=30)
    reading.start()
    for _ in range(2):
        wait_for(lambda: progress.current().state == "waiting")
        (child,) = [pid for pid in children() if str(tmp_path) in Path(f"/proc/{pid}/cmdline").read_text()]
        os.kill(child, signal.SIGKILL)
        wait_for(lambda: progress.current().state != "waiting")
    wait_for(lambda: progress.current().state == "waiting")
    assert progress.current().error is None
    reading.stop()
    assert [pid for pid in children() if str(tmp_path) in Path(f"/proc/{pid}/cmdline").read_text()] == []


def children() -> list[int]:
    found = Path("/proc/self/task").glob("*/children")
    return [int(pid) for file in found for pid in file.read_text().split()]


def test_a_store_that_is_none_fails_and_says_which(tmp_path: Path) -> None:
    (tmp_path / "turnlog.db").write_bytes(b"this is no database" * 100)
    progress = PassProgress()
    background = Background(tmp_path / "turnlog.db", progress, seconds=0.05)
    background.start()
    wait_for(lambda: progress.current().state == "failed")
    assert "turnlog.db" in (progress.current().error or "")
    background.stop()
