"""A pass may be killed anywhere, and two may run at once: what goes on afterwards ends where a clean import does.

So may forgetting: the session is whole, or gone everywhere as soon as anybody opens the store.

Every commit of both databases is a point to die at, before and behind it, and so are moments inside transactions.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import msgspec
import pytest

from support import crash_driver
from support.crash_driver import Answer, Order
from support.profiles import some_of
from support.store_dump import Dump, check_integrity, differences, dump, open_read_only, value_of
from support.toy_agent import session_id
from support.toy_logs import World, make_world, write_world
from turnlog.store import open_store
from turnlog.store.forgetting_mark import mark_path
from turnlog.store.search.base import SearchFilter, search_path
from turnlog.store.search.searcher import Searcher
from turnlog.store.sources import imports_folder

SEED = 43
SHARES = 3
"""Parts of the points to die at, which run side by side."""

WORDS = ("please", "words", "done", "ok", "\u4f60\u597d", "src", "output")


class Driver:
    """Sends orders to the process that runs them."""

    def __init__(self) -> None:
        folders = [str(Path(crash_driver.__file__).parents[1]), *sys.path]
        self._process = subprocess.Popen(
            [sys.executable, crash_driver.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folder for folder in folders if folder)},
        )

    def send(self, order: Order) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Answer:
        assert self._process.stdout is not None
        return msgspec.json.decode(self._process.stdout.readline(), type=Answer)

    def run(self, order: Order) -> Answer:
        self.send(order)
        return self.answer()

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def drivers() -> Iterator[tuple[Driver, Driver]]:
    found = Driver(), Driver()
    yield found
    for each in found:
        each.close()


@pytest.fixture(scope="module")
def driver(drivers: tuple[Driver, Driver]) -> Driver:
    return drivers[0]


@pytest.fixture(scope="module")
def empty(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A store of an empty home, and in how many commits it was made: one for each script of the schema, and a last."""
    folder = tmp_path_factory.mktemp("empty")
    (folder / "home").mkdir()
    return folder / "empty.db", driver.run(Order(str(folder / "empty.db"), str(folder / "home"))).commits


@pytest.fixture
def world() -> World:
    found = make_world(SEED, 4, 8)
    assert len(found) > 6
    return found


def said(store: Path) -> tuple[Dump, dict[str, Any]]:
    """All that the store says, and what a search in it finds."""
    connection = open_read_only(store)
    try:
        check_integrity(connection)
        indexes = "SELECT count(*) FROM sqlite_schema WHERE name IN ('parts_by_tool', 'messages_with_tools')"
        assert value_of(connection, indexes) == 2
        found = dump(connection)
    finally:
        connection.close()
    with Searcher(store, search_path(store)) as searcher:
        return found, {word: _hits(searcher, word) for word in WORDS}


def _hits(searcher: Searcher, word: str) -> list[Any]:
    """Places in the order of their ids: keys are private to a store."""
    return [
        hit._replace(places=(*sorted(hit.places),)) for hit in searcher.search(word, SearchFilter(), limit=999).hits
    ]


def points_to_die(random: Random, whole: Answer, schema_commits: int) -> list[dict[str, Any]]:
    """Both sides of every commit, and some moments inside transactions. Of the commits of the schema, which are all
    alike, some are enough."""
    first = random.sample(range(1, schema_commits + 1), min(schema_commits, 6))
    numbers = [*sorted(first), *range(schema_commits + 1, whole.commits + 1)]
    commits = [{"commit": number, "behind": behind} for number in numbers for behind in (False, True)]
    inside = [{"statement": number} for number in random.sample(range(1, whole.statements), 8)]
    return [*commits, *inside]


def copy_store(old: Path, new: Path) -> None:
    """A store and its search file as they lie on disk; nothing when there is none yet."""
    for file in old.parent.glob(f"{old.stem}.*"):
        shutil.copy(file, new.parent / (new.stem + file.name.removeprefix(old.stem)))


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("stage", ["a first import", "a large first import", "a pass over files that grew"])
def test_killed_anywhere_a_pass_goes_on_to_where_a_clean_import_ends(
    tmp_path: Path, driver: Driver, world: World, empty: tuple[Path, int], stage: str, share: int
) -> None:
    random = Random(stage)
    empty_store, schema_commits = empty
    home, base, clean = tmp_path / "home", tmp_path / "base.db", tmp_path / "clean.db"
    large = stage == "a large first import"
    if large:
        copy_store(empty_store, base)
    if stage == "a pass over files that grew":
        logs = {name: content for name, content in world.items() if name.endswith((".log", ".sub"))}
        write_world(home, {name: content[: random.randint(0, len(content))] for name, content in logs.items()})
        driver.run(Order(str(base), str(home)))
    write_world(home, world)
    copy_store(empty_store, clean)
    driver.run(Order(str(clean), str(home)))
    wanted, hits = said(clean)
    copy_store(base, tmp_path / "counted.db")
    whole = driver.run(Order(str(tmp_path / "counted.db"), str(home), large=large))
    assert whole.commits > 3
    points = points_to_die(random, whole, schema_commits if stage == "a first import" else 0)
    if large:
        points = random.sample(points, 8)
    for number, point in enumerate(some_of(points[share::SHARES])):
        store = tmp_path / f"{number}.db"
        copy_store(base, store)
        assert driver.run(Order(str(store), str(home), **point, large=large)).killed, point
        if number % 3 == 0:
            driver.run(Order(str(store), str(home), **random.choice(points)))
        assert not driver.run(Order(str(store), str(home))).killed
        found, found_hits = said(store)
        assert differences(found, wanted) == [], point
        assert found_hits == hits, point


@pytest.mark.parametrize("attempt", range(3))
def test_killed_at_any_time_a_pass_goes_on(tmp_path: Path, driver: Driver, world: World, attempt: int) -> None:
    random = Random(attempt)
    home, store = tmp_path / "home", tmp_path / "store.db"
    write_world(home, world)
    for _ in range(4):
        driver.run(Order(str(store), str(home), seconds=random.uniform(0.001, 0.06)))
    driver.run(Order(str(store), str(home)))
    driver.run(Order(str(tmp_path / "clean.db"), str(home)))
    assert said(store) == said(tmp_path / "clean.db")


@pytest.mark.parametrize("stage", ["a new store", "a store that both bring up to date"])
def test_two_passes_at_once_end_where_one_does(
    tmp_path: Path, drivers: tuple[Driver, Driver], world: World, stage: str
) -> None:
    """One writer waits for the other, and none reads what the other has read already."""
    home, store = tmp_path / "home", tmp_path / "store.db"
    if stage != "a new store":
        logs = {name: content for name, content in world.items() if name.endswith((".log", ".sub"))}
        write_world(home, {name: content[: len(content) // 2] for name, content in logs.items()})
        drivers[0].run(Order(str(store), str(home)))
    write_world(home, world)
    for driver in drivers:
        driver.send(Order(str(store), str(home)))
    assert not any(driver.answer().killed for driver in drivers)
    drivers[0].run(Order(str(tmp_path / "clean.db"), str(home)))
    found, hits = said(store)
    wanted, wanted_hits = said(tmp_path / "clean.db")
    assert differences(found, wanted) == []
    assert hits == wanted_hits


Files: TypeAlias = list[str]
"""Names of the copies of logs that lie beside a store."""


def opened(folder: Path) -> tuple[Dump, dict[str, Any], Files]:
    """What the next command finds, which only opens the store."""
    with open_store(folder / "turnlog.db"):
        pass
    assert not mark_path(folder / "turnlog.db").exists()
    return *said(folder / "turnlog.db"), sorted(path.name for path in imports_folder(folder / "turnlog.db").iterdir())


@pytest.mark.parametrize("name", ["s0", "s1"])
def test_killed_forgetting_leaves_a_session_whole_or_ends_at_opening(
    tmp_path: Path, driver: Driver, world: World, name: str
) -> None:
    base, folder = tmp_path / "base", tmp_path / "store"
    store = folder / "turnlog.db"
    # The logs lie where turnlog keeps copies of its own, which are forgotten too.
    write_world(imports_folder(store), world)
    driver.run(Order(str(store), str(imports_folder(store))))
    shutil.copytree(folder, base)
    whole = opened(folder)
    clean = driver.run(Order(str(store), "", forget=session_id(name)))
    gone = opened(folder)
    assert len(gone[0]["sessions"]) < len(whole[0]["sessions"])
    assert len(gone[2]) < len(whole[2])
    commits: list[dict[str, Any]] = [
        {"commit": number, "behind": behind} for number in range(1, clean.commits + 1) for behind in (False, True)
    ]
    inside: list[dict[str, Any]] = [{"statement": number} for number in range(1, clean.statements + 1, 7)]
    found: list[tuple[Dump, dict[str, Any], Files]] = []
    for point in some_of([*commits, *inside]):
        shutil.rmtree(folder)
        shutil.copytree(base, folder)
        assert driver.run(Order(str(store), "", **point, forget=session_id(name))).killed, point
        found.append(opened(folder))
        assert found[-1] in (whole, gone), point
    assert whole in found
    assert gone in found


def test_killed_twice_forgetting_ends_too(tmp_path: Path, driver: Driver, world: World) -> None:
    store = tmp_path / "store" / "turnlog.db"
    write_world(imports_folder(store), world)
    driver.run(Order(str(store), str(imports_folder(store))))
    shutil.copytree(store.parent, tmp_path / "base")
    clean = driver.run(Order(str(store), "", forget=session_id("s0")))
    gone = opened(store.parent)
    shutil.rmtree(store.parent)
    shutil.copytree(tmp_path / "base", store.parent)
    for _ in range(2):
        assert driver.run(Order(str(store), "", statement=clean.statements // 2, forget=session_id("s0"))).killed
    assert opened(store.parent) == gone
