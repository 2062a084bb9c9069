"""Forks that list the parallel calls of an answer in another order: the original's order holds, whatever is read first.

The times of the calls say nothing here: they are equal, or missing.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import partial
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from support.claude_files import AGENT, SESSION, Log, lines
from support.claude_forks import BLOCKS, EQUAL, FORK, FORK_OF_FORK, FORKED, PROJECT, family, timed
from support.store_dump import Dump, check_integrity, differences, dump
from turnlog.model import Message, ToolCallPart
from turnlog.store import open_store
from turnlog.store.connection import connect
from turnlog.sync import syncer
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

EXPECTED = ["reasoning", "text", "toolu_a", "toolu_b", "toolu_c"]
NUMBERS = [f"msg_1.{number}" for number in range(5)]

Files = dict[str, bytes]


def read(folder: Path, files: Files, *, each: bool = True) -> Path:
    """A store that read these files one by one, or all at once."""
    store = folder / "turnlog.db"
    for name, data in files.items():
        path = folder / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if each:
            sync(store, roots=[folder / "home"], agents=[AGENT])
    sync(store, roots=[folder / "home"], agents=[AGENT])
    return store


def message(store: Path, session: str, message_id: str = "msg_1") -> Message:
    with open_store(store) as opened:
        (found,) = [
            found.message for found in opened.messages(f"claude-code:{session}") if found.message.id == message_id
        ]
        return found


def names(found: Message) -> list[str]:
    return [part.tool_call_id if isinstance(part, ToolCallPart) else part.type for part in found.parts]


def ids(found: Message) -> list[str | None]:
    return [part.id for part in found.parts]


def check(store: Path, *sessions: str, calls: list[str] = EXPECTED, numbers: list[str] = NUMBERS) -> None:
    for session in sessions:
        found = message(store, session)
        assert (names(found), ids(found)) == (calls, numbers), session
        assert {part.state for part in found.parts if isinstance(part, ToolCallPart)} == {"output-available"}


@pytest.mark.parametrize("time", [EQUAL, None], ids=["equal times", "no times"])
@pytest.mark.parametrize("orders", [("cab", "bca"), ("bca", "abc")], ids="-".join)
def test_the_order_is_that_of_the_original_in_every_order_of_reading(
    time: str | None, orders: tuple[str, ...], tmp_path: Path
) -> None:
    """R-K4, R-C13: two forks, one of the other, disagree with the original and with each other."""
    files = family(time, *orders)
    dumps: list[Dump] = []
    for number, order in enumerate(permutations(files.items())):
        store = read(tmp_path / str(number), dict(order))
        check(store, SESSION, FORK, FORK_OF_FORK)
        dumps.append(dumped(store))
    assert [differences(dumps[0], other) for other in dumps[1:]] == [[]] * 5
    rebuild(tmp_path / "0" / "turnlog.db")
    check(tmp_path / "0" / "turnlog.db", SESSION, FORK, FORK_OF_FORK)


def dumped(store: Path) -> Dump:
    """What a store says, without the folder that it read."""
    with closing(connect(store)) as connection:
        check_integrity(connection)
        return cast("Dump", _without_folder(dump(connection), str(store.parent)))


def _without_folder(found: Any, folder: str) -> Any:
    if isinstance(found, dict):
        items = cast("dict[str, Any]", found).items()
        return {_without_folder(name, folder): _without_folder(value, folder) for name, value in items}
    if isinstance(found, list | tuple):
        values = cast("list[Any] | tuple[Any, ...]", found)
        return tuple(_without_folder(value, folder) for value in values)
    return found.replace(folder, "") if isinstance(found, str) else found


@pytest.mark.parametrize("marks", [{"requestSessionId": SESSION}, {}], ids=["of a request", "unmarked"])
def test_a_copy_with_another_mark_or_none_changes_no_order(marks: dict[str, Any], tmp_path: Path) -> None:
    """Up to 1.0.24 nothing marks a copy: the original is the session whose own messages begin first."""
    files = family(EQUAL, "cba", marks=marks)
    own = f"{PROJECT}/{FORK}.jsonl"
    files[own] = files[own].replace(b"10:00:00.000Z", b"10:00:09.000Z")
    for number, order in enumerate(permutations(files.items())):
        check(read(tmp_path / str(number), dict(order)), SESSION, FORK)


@pytest.mark.parametrize("without", [{0}, {1}, {0, 1}])
def test_an_unmarked_copy_that_leaves_out_blocks_repeats_no_text(without: set[int], tmp_path: Path) -> None:
    files = family(EQUAL, "abc", marks={}, without=frozenset(without))
    own = f"{PROJECT}/{FORK}.jsonl"
    *copied, last = files[own].splitlines(keepends=True)
    files[own] = b"".join([*copied, last.replace(b"10:00:00.000Z", b"10:00:09.000Z")])
    for number, order in enumerate(permutations(files.items())):
        check(read(tmp_path / str(number), dict(order)), SESSION)


@pytest.mark.parametrize("time", [EQUAL, None], ids=["equal times", "no times"])
def test_without_the_original_the_nearest_fork_has_the_order(time: str | None, tmp_path: Path) -> None:
    files = dict(list(family(time, "bca", "cab").items())[1:])
    for number, order in enumerate(permutations(files.items())):
        store = read(tmp_path / str(number), dict(order))
        check(store, FORK, FORK_OF_FORK, calls=["reasoning", "text", "toolu_b", "toolu_c", "toolu_a"])
        # The original comes last, and has the order from then on.
        check(read(tmp_path / str(number), family(time, "bca", "cab")), SESSION, FORK, FORK_OF_FORK)


@pytest.mark.parametrize("without", [{0}, {1}, {0, 1}])
def test_a_fork_that_leaves_out_blocks_too_changes_no_order_of_calls(without: set[int], tmp_path: Path) -> None:
    files = family(None, "cba", without=frozenset(without))
    found: list[list[str | None]] = []
    for number, order in enumerate(permutations(files.items())):
        read_now = message(read(tmp_path / str(number), dict(order)), SESSION)
        assert [name for name in names(read_now) if name.startswith("toolu")] == EXPECTED[2:]
        assert len(set(ids(read_now))) == len(read_now.parts)
        found.append(ids(read_now))
    assert found == found[:1] * len(found)


def test_a_call_that_only_a_fork_has_comes_after_those_of_the_original(tmp_path: Path) -> None:
    files = family(None, "cba")
    own = f"{PROJECT}/{SESSION}.jsonl"
    files[own] = b"".join(line for line in files[own].splitlines(keepends=True) if b'"toolu_b"' not in line)
    found: set[tuple[str | None, ...]] = set()
    for number, order in enumerate(permutations(files.items())):
        read_now = message(read(tmp_path / str(number), dict(order)), SESSION)
        assert names(read_now) == ["reasoning", "text", "toolu_a", "toolu_c", "toolu_b"]
        found.add(tuple(ids(read_now)))
    assert found == {("msg_1.0", "msg_1.1", "msg_1.2", "msg_1.3", "msg_1.c0")}


@pytest.mark.parametrize(
    "quoted",
    [{}, {"id": "toolu_c"}, {"calls": ["toolu_c", "toolu_b"]}, {"text": 'see "toolu_b"', "b": {"id": "toolu_b"}}],
)
def test_calls_in_one_record_have_the_order_of_the_record(quoted: dict[str, Any], tmp_path: Path) -> None:
    """Up to 0.2.x a record has a whole message. The first call may quote the ids of later ones."""
    records: Files = {}
    for session, order in ((SESSION, "abc"), (FORK, "bca")):
        log = Log("0.2.9", sessionId=session)
        calls = [BLOCKS[2] | {"input": quoted}, *BLOCKS[3:]]
        blocks = [BLOCKS[1], *(calls["abc".index(name)] for name in order)]
        mark = {} if session == SESSION else FORKED
        records[f"{PROJECT}/{session}.jsonl"] = lines(
            *timed([log.user("Look"), log.assistant("msg_1", *blocks, **mark)], None)
        )
    for number, order in enumerate(permutations(records.items())):
        found = message(read(tmp_path / str(number), dict(order)), SESSION)
        assert (names(found), ids(found)) == (["text", "toolu_a", "toolu_b", "toolu_c"], NUMBERS[:4])


def test_the_original_is_another_once_its_lineage_is_known(tmp_path: Path) -> None:
    """An unmarked copy has the order as long as its own messages begin first."""
    files = family(EQUAL, "cba", marks={})
    fork, parent = f"{PROJECT}/{FORK}.jsonl", f"{PROJECT}/{SESSION}.jsonl"
    copied, own = files[fork].splitlines(keepends=True)[:-1], files[fork].splitlines(keepends=True)[-1]
    later = own.replace(b"10:00:00.000Z", b"10:00:07.000Z")
    # As long as neither has messages of its own, the smaller id decides, as it does for the bill.
    shared = {parent: b"".join(files[parent].splitlines(keepends=True)[:-1]), fork: b"".join(copied)}
    assert names(message(read(tmp_path, shared), SESSION))[2:] == ["toolu_c", "toolu_b", "toolu_a"]
    # A session that goes on comes after one that does not.
    check(read(tmp_path, {fork: b"".join([*copied, later])}), SESSION, FORK)


@pytest.mark.parametrize("seed", range(3))
def test_pieces_of_all_files_in_any_order_end_in_the_store_of_one_reading(seed: int, tmp_path: Path) -> None:
    """R-C5: files that grow by turns, a few lines at a time, however the forks order the calls."""
    random = Random(seed)
    orders = ["".join(random.sample("abc", 3)) for _ in range(2)]
    time = random.choice([EQUAL, None])
    files = family(time, *orders)
    whole = read(tmp_path / "whole", files, each=False)
    rest = {name: data.splitlines(keepends=True) for name, data in files.items()}
    written, grown = dict.fromkeys(files, b""), tmp_path
    while any(rest.values()):
        name = random.choice([name for name, left in rest.items() if left])
        count = random.randint(1, 5)
        written[name] += b"".join(rest[name][:count])
        del rest[name][:count]
        grown = read(tmp_path / "grown", {name: written[name]})
    check(whole, SESSION, FORK, FORK_OF_FORK)
    check(grown, SESSION, FORK, FORK_OF_FORK)
    assert differences(dumped(whole), dumped(grown)) == []


def test_other_processes_that_fold_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (name, data) in enumerate(family(EQUAL, "cba", "bca").items()):
        path = tmp_path / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    tables: list[dict[str, list[Any]]] = []
    for count in (0, 1, 3):
        monkeypatch.setattr(syncer, "folding_processes", partial(min, count))
        store = tmp_path / f"{count}.db"
        sync(store, roots=[tmp_path / "home"], agents=[AGENT])
        check(store, SESSION, FORK, FORK_OF_FORK)
        with closing(sqlite3.connect(store)) as connection:
            tables.append(
                {
                    table: sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
                    for table in ("messages", "memberships", "parts", "frames", "links", "usage", "call_orders")
                }
            )
    assert tables[0] == tables[1] == tables[2]
    assert len(tables[0]["call_orders"]) == 1


def test_an_order_that_all_copies_share_is_not_looked_up(tmp_path: Path) -> None:
    store = read(tmp_path, family(EQUAL, "abc", "abc"))
    check(store, SESSION)
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT count(*) FROM call_orders").fetchone() == (0,)
