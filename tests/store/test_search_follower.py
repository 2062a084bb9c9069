from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.profiles import THOROUGH
from support.search_store import SearchStore, call, result, text_message
from turnlog.errors import StoreError
from turnlog.store.search import index_file
from turnlog.store.search.follower import Follower
from turnlog.store.search.indexer import Indexer

WORDS = ("alpha", "beta", "gamma", "delta", "会话", "make", "common")


@pytest.fixture
def store(tmp_path: Path) -> SearchStore:
    return SearchStore(tmp_path)


def grow(store: SearchStore, generator: random.Random, session: str, messages: int) -> None:
    """Add messages to a session's log and read them."""
    log = store.log(session, cwd=f"/src/{session}")
    for number in range(messages):
        words = " ".join(generator.choices(WORDS, k=5)) + f" common filler{generator.randrange(50)} " * 20
        parts = [call(f"{session}.{number}", words, command=f"make {words}")]
        log.message(text_message(f"{session}.{number}", words, minutes=generator.random() * 1000, parts=parts))
    store.read()


def answers(store: SearchStore) -> dict[str, list[tuple[str, int, str, str]]]:
    """All hits of many queries."""
    queries = [*WORDS, *[f"filler{number}" for number in range(0, 50, 7)], "al* beta", '"make alpha"', "common -alpha"]
    return {
        query: [(hit.message_id, hit.part, hit.field, hit.snippet) for hit in store.hits(query, limit=10_000)]
        for query in queries
    }


def rebuilt(store: SearchStore) -> dict[str, list[tuple[str, int, str, str]]]:
    """The answers of an index that is made in one go."""
    index_file.remove(store.search_path)
    with Indexer(store.path, store.search_path) as indexer:
        indexer.catch_up()
    return answers(store)


def test_a_second_process_follows_what_is_written(store: SearchStore) -> None:
    generator = random.Random(1)
    grow(store, generator, "first", 20)
    with Follower(store.path, store.search_path) as follower:
        for number in range(5):
            grow(store, generator, f"s{number}", 20)
            time.sleep(0.05)
    assert not _is_running(follower.pid)
    followed = answers(store)
    assert len(followed["common"]) == 3 * 120
    assert followed == rebuilt(store)


def test_finishing_can_be_waited_for_in_steps(store: SearchStore) -> None:
    grow(store, random.Random(2), "one", 300)
    follower = Follower(store.path, store.search_path)
    while not follower.finish(0.01):
        pass
    assert follower.finish()
    assert len(store.found("common")) == 900


def test_a_follower_whose_parent_fails_is_stopped(store: SearchStore) -> None:
    grow(store, random.Random(3), "one", 5)
    with pytest.raises(ZeroDivisionError), Follower(store.path, store.search_path) as follower:
        raise ZeroDivisionError
    assert not _is_running(follower.pid)
    store.index()
    assert len(store.found("common")) == 15


def test_a_follower_that_cannot_work_says_why(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "absent.db", tmp_path / "search.db")
    with pytest.raises(StoreError, match=r"indexing for search failed: .*cannot read the store"):
        follower.finish()


def test_the_end_of_the_parent_is_the_end_of_the_writing(store: SearchStore) -> None:
    grow(store, random.Random(4), "one", 50)
    script = (
        "import os, sys; from pathlib import Path; from turnlog.store.search.follower import Follower;"
        "follower = Follower(Path(sys.argv[1]), Path(sys.argv[2])); print(follower.pid, flush=True); os._exit(1)"
    )
    command = [sys.executable, "-c", script, str(store.path), str(store.search_path)]
    process = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    child = int(process.stdout)
    deadline = time.monotonic() + 20
    while _is_running(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(store.found("common")) == 150


def test_a_follower_starts_without_the_model(store: SearchStore) -> None:
    """It is started beside every large import: what it imports is waited for."""
    script = (
        "import sys, turnlog.store.search.follower; print([name for name in sys.modules if 'turnlog.model' in name])"
    )
    assert subprocess.check_output([sys.executable, "-c", script]) == b"[]\n"


KILLED_INDEXER = """
import os, signal, sqlite3, sys
from pathlib import Path
from turnlog.store.search import batch
from turnlog.store.search.indexer import Indexer

left, ticks, connect = int(sys.argv[3]), 0, sqlite3.connect

def tick():
    global ticks
    ticks += 1
    if ticks == left:
        os.kill(os.getpid(), signal.SIGKILL)
    return 0

def watched(*arguments, **options):
    connection = connect(*arguments, **options)
    connection.set_progress_handler(tick, 20)
    return connection

sqlite3.connect = watched
# Several commits to be killed at, and documents that move from one table to another.
batch.BATCH_SIZE, batch.FRESH_SIZE = 20_000, 30_000
with Indexer(Path(sys.argv[1]), Path(sys.argv[2])) as indexer:
    indexer.catch_up()
print(ticks)
"""


def index_until(store: SearchStore, tick: int) -> int | None:
    """Index in a process that kills itself at a tick of SQLite's clock; the ticks it took if it came to its end."""
    command = [sys.executable, "-c", KILLED_INDEXER, str(store.path), str(store.search_path), str(tick)]
    process = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    assert process.returncode in (0, -signal.SIGKILL)
    return int(process.stdout) if process.returncode == 0 else None


@pytest.mark.parametrize("stage", ["from nothing", "from an older index"])
def test_killed_at_any_point_an_index_goes_on_correctly(store: SearchStore, stage: str) -> None:
    generator = random.Random(stage)
    grow(store, generator, "first", 30)
    if stage == "from an older index":
        store.index()
        log = store.log("first")
        for number in range(10):
            log.message(text_message(f"first.{number}", f"alpha {number} once more " + "beta " * 200))
            log.result(f"first.{number}", result(f"r{number}", "common delta", "error"), message_id=f"first.{number}")
    grow(store, generator, "second", 40)
    before = store.search_path.read_bytes() if store.search_path.exists() else None
    ticks = index_until(store, 0)
    assert ticks is not None
    expected = answers(store)
    assert len(expected["make"]) >= 70
    kills = 0
    for tick in sorted(generator.sample(range(1, ticks), 9 if THOROUGH else 4)):
        index_file.remove(store.search_path)
        if before is not None:
            store.search_path.write_bytes(before)
        kills += index_until(store, tick) is None
        with Indexer(store.path, store.search_path) as indexer:
            indexer.catch_up()
            assert indexer.unindexed() == 0
        assert answers(store) == expected
    assert kills > (4 if THOROUGH else 1)
    assert rebuilt(store) == expected


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
