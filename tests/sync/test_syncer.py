"""One pass: finds what is there, reads what is new, notes what is gone, and lets search follow (R-S20, R-C19)."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import turnlog.sync.log_file as log_file
import turnlog.sync.reader as reading
import turnlog.sync.syncer as module
from support.store_dump import open_read_only
from support.toy_agent import ToyAgent, ToyFold, line
from turnlog.agents.base import Source
from turnlog.agents.changes import Changes
from turnlog.store.search.base import SearchFilter, search_path
from turnlog.store.search.searcher import Searcher
from turnlog.sync import workers
from turnlog.sync.summary import SyncSummary
from turnlog.sync.syncer import Syncer, sync


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data" / "turnlog.db"


def prompt(message: str, text: str = "hello") -> bytes:
    return line(kind="prompt", id=f"r-{message}", message=message, text=text)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def scan(store: Path, home: Path) -> SyncSummary:
    return sync(store, roots=[home], agents=[ToyAgent()])


def rows(store: Path, query: str) -> list[Any]:
    connection = open_read_only(store)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def hits(store: Path, word: str) -> list[str]:
    with Searcher(store, search_path(store)) as searcher:
        return [hit.message_id for hit in searcher.search(word, SearchFilter()).hits]


def test_a_first_pass_and_one_that_finds_nothing_new(home: Path, store: Path) -> None:
    (home / "a.log").write_bytes(prompt("m1") + prompt("m2") + b"broken\n")
    (home / "b.log").write_bytes(prompt("m1") + prompt("m3"))
    (home / "notes.txt").write_bytes(b"no log")
    first = scan(store, home)
    assert (first.sources, first.changed, first.sessions, first.new_sessions) == (2, 2, 2, 2)
    assert (first.messages, first.diagnostics, first.vanished, first.problems) == (3, 1, 0, [])
    assert first.bytes == sum(file.stat().st_size for file in home.glob("*.log"))
    assert first.seconds > 0
    assert len(hits(store, "hello")) == 3
    second = scan(store, home)
    assert (second.sources, second.changed, second.messages, second.bytes, second.sessions) == (2, 0, 0, 0, 0)
    append(home / "b.log", prompt("m4", "brand new"))
    third = scan(store, home)
    assert (third.changed, third.messages, third.new_sessions, third.sessions) == (1, 1, 0, 1)
    assert hits(store, "brand") == ["m4"]


def test_a_root_that_is_not_there_is_no_error(tmp_path: Path, store: Path) -> None:
    """R-S20."""
    assert scan(store, tmp_path / "nowhere").sources == 0


def test_a_name_that_is_no_text_is_reported_and_the_rest_is_read(home: Path, store: Path) -> None:
    (home / "a.log").write_bytes(prompt("m1"))
    odd = Path(os.fsdecode(os.fsencode(home) + b"/b\xff.log"))
    odd.write_bytes(prompt("m2"))
    summary = scan(store, home)
    assert (summary.sources, summary.messages) == (1, 1)
    assert [(problem.path, problem.reason) for problem in summary.problems] == [
        (f"{home}/b\\xff.log", "its name is not UTF-8")
    ]
    with Syncer(store, agents=[ToyAgent()]) as syncer:
        assert syncer.unknown([odd, home / "a.log"]) == set()
        assert syncer.read([odd]).problems == []


def test_an_unchanged_file_is_not_even_opened(home: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "a.log").write_bytes(prompt("m1"))
    scan(store, home)

    def refuse(path: str, flags: int) -> int:
        raise AssertionError(path)

    monkeypatch.setattr(log_file, "_open_regular", refuse)
    assert scan(store, home).changed == 0


def test_the_newest_files_are_read_first(home: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, age in enumerate((30, 10, 20)):
        (home / f"s{number}.log").write_bytes(prompt(f"m{number}"))
        os.utime(home / f"s{number}.log", ns=(0, (1000 - age) * 10**9))
    order: list[str] = []
    feed = ToyFold.feed

    def spy(self: ToyFold, data: bytes, offset: int) -> Changes:
        order.append(self.session)
        return feed(self, data, offset)

    monkeypatch.setattr(ToyFold, "feed", spy)
    scan(store, home)
    assert order == ["toy:s1", "toy:s2", "toy:s0"]


def test_many_sources_are_committed_in_groups(home: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        (home / f"s{number}.log").write_bytes(prompt(f"m{number}", "x" * number * 100))
    monkeypatch.setattr(module, "COMMIT_SOURCES", 2)
    assert scan(store, home).messages == 7
    monkeypatch.setattr(module, "COMMIT_SIZE", 1)
    for number in range(7):
        append(home / f"s{number}.log", prompt(f"n{number}"))
    assert scan(store, home).messages == 7


def test_gone_and_back_again(home: Path, store: Path) -> None:
    (home / "a.log").write_bytes(prompt("m1"))
    scan(store, home)
    (home / "a.log").unlink()
    assert scan(store, home).vanished == 1
    assert scan(store, home).vanished == 0
    assert rows(store, "SELECT vanished_at IS NOT NULL FROM sources") == [(1,)]
    assert hits(store, "hello") == ["m1"], "what was read stays"
    (home / "a.log").write_bytes(prompt("m1") + prompt("m2"))
    assert scan(store, home).messages == 1
    assert rows(store, "SELECT vanished_at, problem FROM sources") == [(None, None)]


def test_a_pass_over_one_home_says_nothing_of_another(home: Path, store: Path, tmp_path: Path) -> None:
    other = tmp_path / "home2"
    other.mkdir()
    (home / "a.log").write_bytes(prompt("m1"))
    (other / "b.log").write_bytes(prompt("m2"))
    sync(store, roots=[home, other], agents=[ToyAgent()])
    (other / "b.log").unlink()
    assert scan(store, home).vanished == 0
    assert scan(store, other).vanished == 1


def test_a_problem_is_reported_each_time_and_forgotten_when_it_is_past(home: Path, store: Path) -> None:
    (home / "bad.log").mkdir()
    (home / "loop.log").symlink_to(home / "loop.log")
    (home / "good.log").write_bytes(prompt("m1"))
    for _ in range(2):
        summary = scan(store, home)
        assert sorted(Path(problem.path).name for problem in summary.problems) == ["bad.log", "loop.log"]
        assert rows(store, "SELECT count(*) FROM sources WHERE problem IS NOT NULL") == [(2,)]
    (home / "bad.log").rmdir()
    (home / "loop.log").unlink()
    assert scan(store, home).vanished == 2
    assert rows(store, "SELECT count(*) FROM sources WHERE problem IS NOT NULL") == [(0,)]


def test_a_file_that_goes_away_during_the_pass_is_left_to_the_next(
    home: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "a.log").write_bytes(prompt("m1"))
    (home / "b.log").write_bytes(prompt("m2"))

    class Racing(ToyAgent):
        def discover(self, roots: Iterable[Path] | None = None) -> Iterator[Source]:
            for source in list(super().discover(roots)):
                if source.path.endswith("a.log"):
                    Path(source.path).unlink()
                yield source

    summary = sync(store, roots=[home], agents=[Racing()])
    assert (summary.messages, summary.problems) == (1, [])


def test_progress_names_every_phase(home: Path, store: Path) -> None:
    (home / "a.log").write_bytes(prompt("m1"))
    told: list[tuple[str, int, int]] = []
    sync(
        store,
        roots=[home],
        agents=[ToyAgent()],
        on_progress=lambda phase, done, total: told.append((phase, done, total)),
    )
    size = len(prompt("m1"))
    assert told[0] == ("find", 1, 1)
    assert ("read", size, size) in told
    assert told[-1][0] == "index"
    assert told[-1][1] == told[-1][2]


def test_the_collector_runs_again_after_a_pass_that_failed(
    home: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "a.log").write_bytes(prompt("m1"))

    def fail(*arguments: object) -> None:
        assert not gc.isenabled()
        raise KeyboardInterrupt

    monkeypatch.setattr(reading.SourceReader, "read", fail)
    with pytest.raises(KeyboardInterrupt):
        scan(store, home)
    assert gc.isenabled()


def test_a_large_import_ends_with_everything_in_place(home: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LARGE_IMPORT", 0)
    (home / "a.log").write_bytes(b"".join(prompt(f"m{number}", "word " * 5000) for number in range(20)))
    assert scan(store, home).messages == 20
    assert rows(store, "SELECT count(*) FROM sqlite_schema WHERE name = 'parts_by_tool'") == [(1,)]
    assert len(hits(store, "word")) == 20


def test_a_syncer_reads_files_that_are_named_to_it(home: Path, store: Path) -> None:
    (home / "a.log").write_bytes(prompt("m1"))
    with Syncer(store, agents=[ToyAgent()]) as syncer:
        syncer.scan(roots=[home])
        append(home / "a.log", prompt("m2", "second"))
        (home / "b.log").write_bytes(prompt("m3"))
        summary = syncer.read([home / "a.log", home / "b.log", home / "nowhere.log"])
        assert (summary.sources, summary.changed, summary.messages) == (1, 1, 1)
        assert hits(store, "second") == ["m2"]
        assert syncer.scan(roots=[home]).messages == 1


class _BrokenAgent(ToyAgent):
    """Its module fails when it looks for files, behind the first that it finds."""

    name = "broken"
    display_name = "Broken"
    is_broken = True

    def discover(self, roots: Iterable[Path] | None = None) -> Iterator[Source]:
        for number, source in enumerate(super().discover(roots)):
            if number and self.is_broken:
                raise RuntimeError("a bug of its own")
            yield msgspec.structs.replace(source, agent=self.name)


_MODULES = """
import sys
from pathlib import Path
from turnlog.sync.syncer import Syncer
store, log = Path(sys.argv[1]), Path(sys.argv[2])
with Syncer(store) as syncer:
    assert syncer.scan().changed == bool(sys.argv[3:]), "the first pass reads, the second finds nothing new"
    if not sys.argv[3:]:
        assert "turnlog.sync.reader" not in sys.modules
        syncer.warm_up()
        known = set(sys.modules)
        log.write_bytes(log.read_bytes() + log.read_bytes().replace(b"u1", b"u2"))
        assert syncer.read([log]).messages == 1
        print([name for name in sys.modules if name.startswith("turnlog") and name not in known])
"""


def test_readers_are_imported_only_when_there_is_something_to_read(store: Path, tmp_path: Path) -> None:
    log = tmp_path / ".claude" / "projects" / "-p" / "11111111-1111-4111-8111-111111111111.jsonl"
    log.parent.mkdir(parents=True)
    record = {"type": "user", "uuid": "u1", "sessionId": log.stem, "timestamp": "2026-11-21T10:00:00.000Z"}
    log.write_bytes(msgspec.json.encode({**record, "message": {"role": "user", "content": "hello"}}) + b"\n")
    environment = {**os.environ, "HOME": str(tmp_path)}
    for arguments in (["first"], []):
        command = [sys.executable, "-c", _MODULES, str(store), str(log), *arguments]
        found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert found.returncode == 0, found.stderr
    assert found.stdout == "[]\n"


def test_an_agent_that_fails_to_look_does_not_hold_up_the_others(home: Path, store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("one", "two"):
        append(other / f"{name}.log", prompt(f"b-{name}"))
    append(home / "a.log", prompt("a1"))
    agent = _BrokenAgent()
    agent.is_broken = False
    sync(store, roots=[other], agents=[agent])
    agent.is_broken = True
    summary = sync(store, roots=[other, home], agents=[agent, ToyAgent()])
    assert [(problem.path, problem.reason) for problem in summary.problems] == [
        (str(root), "Broken cannot be looked for: RuntimeError('a bug of its own')") for root in (other, home)
    ]
    assert {row[0] for row in rows(store, "SELECT path FROM sources")} >= {str(home / "a.log"), str(other / "two.log")}
    # What it could not look for is not taken for gone.
    assert rows(store, "SELECT count(*) FROM sources WHERE vanished_at IS NOT NULL") == [(0,)]


def test_an_agent_without_known_homes_does_not_stop_the_others(
    home: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(agent: object) -> list[Path]:
        raise ValueError("no such variable")

    broken, sound = _BrokenAgent(), ToyAgent()
    monkeypatch.setattr(_BrokenAgent, "roots", fail)
    monkeypatch.setattr(sound, "roots", lambda: [home])
    append(home / "a.log", prompt("a1"))
    summary = sync(store, agents=[broken, sound])
    assert [problem.path for problem in summary.problems] == ["broken"]
    assert rows(store, "SELECT external_id FROM sessions") == [("a",)]
