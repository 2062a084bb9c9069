"""Files that grow, shrink, are replaced, edited, moved and unreadable: every byte is kept and nothing is said twice.

R-C13, R-C19: reading again updates and never duplicates; only what is new is read.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog.sync.log_file as module
from support.plain_store import PRICE_VERSION, price
from support.profiles import examples
from support.store_dump import differences
from support.toy_agent import ToyAgent, ToyFold, line
from support.toy_logs import make_world
from support.toy_store import ToyStore
from turnlog.agents.changes import Changes
from turnlog.errors import DamagedError, NotFoundError, StoreBusyError
from turnlog.store import zstd
from turnlog.store.connection import connect, write_transaction
from turnlog.sync.reader import SourceReader

GENERATION = 5
"""Where an event's place in its file begins among what `store_dump` tells of it."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ToyStore]:
    with ToyStore(tmp_path) as found:
        yield found


def text(message: str, said: str = "x", **fields: Any) -> bytes:
    return line(kind="text", id=f"r-{message}", message=message, text=said, **fields)


def note(number: int) -> bytes:
    return line(kind="note", text=str(number), at=number)


def messages(store: ToyStore) -> list[str]:
    return [row[0] for row in store.rows("SELECT external_id FROM messages ORDER BY 1")]


def source(store: ToyStore, columns: str) -> Any:
    return store.row(f"SELECT {columns} FROM sources")


def diagnostics(store: ToyStore) -> list[Any]:
    return store.rows("SELECT generation, offset, length, line, reason FROM diagnostics ORDER BY 1, 2")


def event_kinds(store: ToyStore) -> list[str]:
    counted = store.session("s", "events")
    found = [row[0] for row in store.rows("SELECT kind FROM events ORDER BY position")]
    assert counted == len(found)
    return found


# -- growing


@settings(max_examples=examples(25))
@given(st.integers(0, 1 << 32))
def test_twenty_appends_of_any_size_keep_every_byte(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    random = Random(seed)
    content = make_world(seed, 1, 12)["s0.log"]
    sizes = sorted(random.randint(0, len(content)) for _ in range(19))
    with ToyStore(tmp_path_factory.mktemp("grow")) as store:
        for start, end in zip([0, *sizes], [*sizes, len(content)], strict=True):
            store.add("s0.log", content[start:end])
            assert store.archived("s0.log") == [content[:end]]
        key = source(store, "key")
        for _ in range(10):
            start = random.randint(0, len(content))
            assert store.archive.read(key, 0, start, len(content) - start) == content[start:]


def test_only_what_is_new_is_folded(store: ToyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[tuple[int, bytes]] = []
    feed = ToyFold.feed

    def spy(self: ToyFold, data: bytes, offset: int) -> Changes:
        fed.append((offset, data))
        return feed(self, data, offset)

    monkeypatch.setattr(ToyFold, "feed", spy)
    store.add("s.log", note(1))
    store.add("s.log", note(2), note(3))
    store.read("s.log")
    assert fed == [(0, note(1)), (len(note(1)), note(2) + note(3))]


def test_a_large_file_is_folded_in_pieces_of_whole_lines(store: ToyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_SIZE", 100)
    lines = [text(f"m{number}", "x" * (number * 7)) for number in range(40)]
    store.add("s.log", *lines)
    assert len(messages(store)) == 40
    assert store.archived("s.log") == [b"".join(lines)]


# -- the last line


def test_a_torn_last_line_is_reported_until_it_is_complete_and_read_once(store: ToyStore) -> None:
    """R-S34: a truncated last line; never doubled, never lost."""
    first, second = text("m1"), text("m2")
    store.add("s.log", first, second[:20])
    assert messages(store) == ["m1"]
    assert diagnostics(store) == [(0, len(first), 20, 2, "cut off at the end of the file")]
    store.add("s.log", second[20:30])
    assert diagnostics(store) == [(0, len(first), 30, 2, "cut off at the end of the file")]
    store.add("s.log", second[30:], text("m3"))
    assert messages(store) == ["m1", "m2", "m3"]
    assert diagnostics(store) == []
    assert source(store, "lines") == 3
    assert store.archived("s.log") == [first + second + text("m3")]


def test_of_a_long_last_line_that_grows_only_what_is_new_is_read(store: ToyStore) -> None:
    first, second = text("m1"), text("m2", "x" * 100_000)
    store.add("s.log", first, second[:90_000])
    read: list[int] = []

    def add(data: bytes) -> int:
        store.append("s.log", data)
        read.clear()
        SourceReader(store.connection, price, PRICE_VERSION, read.append).read([(store.agent, store.source("s.log"))])
        return sum(read)

    assert [add(second[start : start + 3]) for start in (90_000, 90_003)] == [3, 3]
    assert diagnostics(store) == [(0, len(first), 90_006, 2, "cut off at the end of the file")]
    assert store.archived("s.log") == [first + second[:90_006]]
    assert add(second[90_006:].rstrip(b"\n")) > 100_000
    assert messages(store) == ["m1", "m2"]
    assert add(b"\n" + text("m3")) < 1000
    assert (messages(store), diagnostics(store)) == (["m1", "m2", "m3"], [])


@pytest.mark.parametrize("line", [b'{"a": "x }', b'{"a": [{}', b'{"a": "\xc3 }', b'{"a": "\\" }'])
def test_a_torn_line_that_ends_like_a_whole_one_is_not_decoded(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(line: bytes) -> None:
        raise AssertionError(line)

    monkeypatch.setattr(module.json, "loads", decode)
    assert not module.is_complete(line)


def test_of_a_log_that_is_one_long_line_only_what_is_new_is_read(store: ToyStore) -> None:
    line = text("m1", "x" * 100_000)
    store.add("s.log", line[:90_000])
    read: list[int] = []
    store.append("s.log", line[90_000:90_003])
    SourceReader(store.connection, price, PRICE_VERSION, read.append).read([(store.agent, store.source("s.log"))])
    assert read == [3]
    store.add("s.log", line[90_003:])
    assert (messages(store), diagnostics(store)) == (["m1"], [])


def test_a_line_that_is_never_completed_is_damage_like_any_other(store: ToyStore) -> None:
    first, second = text("m1"), text("m2")
    store.add("s.log", first, second[:20])
    store.add("s.log", b"\n", text("m3"))
    assert messages(store) == ["m1", "m3"]
    assert diagnostics(store) == [(0, len(first), 20, 2, "not a record")]


@pytest.mark.parametrize("rest", [b"\n", b"\r\n", b" \t\r\n", b"\0\0\n"])
@pytest.mark.parametrize("cut", [0, 1, 2])
def test_a_last_line_without_its_newline_is_read_at_once_and_only_once(store: ToyStore, rest: bytes, cut: int) -> None:
    first = text("m1")
    store.add("s.log", first[:-1])
    assert messages(store) == ["m1"]
    store.add("s.log", rest[:cut])
    store.add("s.log", rest[cut:], text("m2"), b"broken\n")
    assert messages(store) == ["m1", "m2"]
    assert source(store, "lines") == 3
    assert [found[3] for found in diagnostics(store)] == [3], "lines are counted as if read at once"


def test_what_follows_on_a_line_that_was_read_is_read_too(store: ToyStore) -> None:
    store.add("s.log", text("m1")[:-1])
    store.add("s.log", b" ", text("m2"))
    assert messages(store) == ["m1", "m2"]
    assert diagnostics(store) == []


@pytest.mark.parametrize("beginning", [b"", b"\xef\xbb\xbf", b"\0\0", b" \r\n\t"])
def test_a_file_of_one_line_without_a_newline_is_read(store: ToyStore, beginning: bytes) -> None:
    if beginning == b"\xef\xbb\xbf":
        assert module.is_complete(beginning + b"{}")
    else:
        store.add("s.log", beginning, text("m1")[:-1])
        assert messages(store) == ["m1"]
    assert diagnostics(store) == []


@pytest.mark.parametrize("tail", [b"12", b'"word"', b"tr", b'{"a":1', b"[1,", b"{}x", b"\xff"])
def test_what_may_still_grow_is_no_complete_line(tail: bytes) -> None:
    assert not module.is_complete(tail)


def test_an_empty_file_is_known_and_grows(store: ToyStore) -> None:
    assert store.add("s.log").changed == 0
    assert store.archived("s.log") == [b""]
    assert source(store, "size, cursor, problem") == (0, 0, None)
    store.add("s.log", text("m1"))
    assert messages(store) == ["m1"]
    assert len(store.archived("s.log")) == 1


def test_blank_space_at_the_end_is_no_torn_line(store: ToyStore) -> None:
    store.add("s.log", text("m1"), b" \t\0\0")
    assert diagnostics(store) == []
    assert store.archived("s.log") == [text("m1") + b" \t\0\0"]


# -- files that were written anew


def test_a_rewritten_file_is_a_new_life_and_doubles_nothing(store: ToyStore) -> None:
    """A line was put in front: every record stands elsewhere now."""
    old = text("m1") + note(1) + b"broken\n" + note(2) + line(kind="title", source="custom", text="old")
    new = note(0) + text("m1") + note(1) + b"broken\n" + note(2) + line(kind="title", source="custom", text="a")
    store.add("s.log", old, b" " * 200 + b"\n")
    store.write("s.log", new)
    store.read("s.log")
    assert store.archived("s.log") == [old + b" " * 200 + b"\n", new]
    assert messages(store) == ["m1"]
    assert event_kinds(store) == ["note", "note", "note", "title"]
    assert diagnostics(store) == [(1, new.index(b"broken"), 6, 4, "not a record")]
    assert store.session("s", "title") == "a", "what the file says now, although it is shorter"
    assert source(store, "generation, lines, cursor") == (1, 6, len(new))
    store.dump()


def test_lives_share_what_they_begin_with(store: ToyStore) -> None:
    first = text("m1") + text("m2")
    store.add("s.log", first, text("m3"))
    store.write("s.log", first, text("m4", "a different end"))
    store.read("s.log")
    shared = store.row("SELECT shared_prefix FROM generations WHERE generation = 1")
    assert len(first) <= shared < len(first) + 40
    assert store.row("SELECT sum(length) FROM archive") < 2 * len(first) + 200
    assert store.archived("s.log") == [first + text("m3"), first + text("m4", "a different end")]
    assert messages(store) == ["m1", "m2", "m3", "m4"], "what was said once is kept"


REWRITES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda old: old[: len(old) // 2],
    "truncated to nothing": lambda old: b"",
    "truncated by a byte": lambda old: old[:-1],
    "edited at the same size": lambda old: old.replace(b"m5", b"n5"),
    "edited in the middle and longer": lambda old: old.replace(b"m5", b"n55") + text("m9"),
    "replaced": lambda old: text("other"),
    "first byte changed": lambda old: b" " + old[1:],
}


@pytest.mark.parametrize("case", REWRITES)
@pytest.mark.parametrize("replaced", [True, False], ids=["new file in its place", "written over"])
def test_every_life_of_a_file_is_kept_byte_for_byte(store: ToyStore, case: str, replaced: bool) -> None:
    old = b"".join(text(f"m{number}", "word " * 400) for number in range(8))
    store.add("s.log", old)
    new = REWRITES[case](old)
    path = store.home / "s.log"
    if replaced:
        beside = path.with_suffix(".new")
        beside.write_bytes(new)
        beside.replace(path)
    else:
        path.write_bytes(new)
    os.utime(path, ns=(1, 1))
    store.read("s.log")
    assert store.archived("s.log")[-1] == new
    assert store.archived("s.log")[0] == old
    store.add("s.log", b"\n", text("later"))
    assert store.archived("s.log")[-1] == new + b"\n" + text("later")
    assert "later" in messages(store)
    store.dump()


def test_a_replaced_file_with_the_same_ends_is_not_taken_for_one_that_grew(store: ToyStore) -> None:
    old = b"".join(text(f"m{number}", "word " * 400) for number in range(8))
    store.add("s.log", old)
    new = old.replace(b"r-m4", b"r-n4") + text("m9")
    beside = store.write("s.new", new)
    beside.replace(store.home / "s.log")
    store.read("s.log")
    assert store.archived("s.log") == [old, new]


def test_a_file_that_only_got_another_time_is_the_same_life(store: ToyStore) -> None:
    path = store.add("s.log", text("m1")) and store.home / "s.log"
    os.utime(path, ns=(5, 5))
    assert store.read("s.log").changed == 0
    assert len(store.archived("s.log")) == 1
    assert source(store, "mtime_ns") == 5


def test_a_parser_of_another_version_starts_over_in_the_same_life(store: ToyStore) -> None:
    """What the old one remembered is of no use to the new one."""
    store.add("s.log", text("m1"), b"broken\n", note(1))
    store.connection.execute("UPDATE sources SET state = ?", (zstd.compress(b"what an older version wrote"),))
    store.agent = ToyAgent(parser_version=2)
    assert store.read("s.log").changed == 0, "an unchanged file waits for a rebuild"
    store.add("s.log", text("m2"))
    assert messages(store) == ["m1", "m2"]
    assert event_kinds(store) == ["note"]
    assert source(store, "generation, parser_version, lines") == (0, 2, 4)
    assert len(diagnostics(store)) == 1
    assert store.archived("s.log") == [text("m1") + b"broken\n" + note(1) + text("m2")]


def test_a_sidecar_is_read_whole_each_time_it_changes(store: ToyStore) -> None:
    store.add("s.log", text("m1"))
    for number in range(5):
        store.write("s.facts", b'{"mood":"%d"}' % number)
        store.read("s.facts")
    assert store.session("s", "metadata") == '{"mood":"4"}'
    assert store.archived("s.facts") == [b'{"mood":"%d"}' % number for number in range(5)]
    store.write("s.facts", b"{")
    store.read("s.facts")
    store.write("s.facts", b'{"generated":"named"}')
    store.read("s.facts")
    assert diagnostics(store) == []
    assert store.session("s", "title, metadata") == ("named", '{"mood":"4"}')


# -- files that move


def test_a_renamed_file_is_another_file_that_says_the_same(store: ToyStore) -> None:
    store.add("s.log", text("m1"), note(1))
    (store.home / "moved").mkdir()
    (store.home / "s.log").rename(store.home / "moved" / "s.log")
    store.read("moved/s.log")
    assert messages(store) == ["m1"]
    assert event_kinds(store) == ["note"]
    assert store.archived("s.log") == store.archived("moved/s.log") == [text("m1") + note(1)]
    store.add("moved/s.log", text("m2"))
    assert messages(store) == ["m1", "m2"]
    assert store.session("s", "messages, events") == (2, 1)


def test_a_file_that_goes_away_and_comes_back_stays(store: ToyStore) -> None:
    content = text("m1") + note(1)
    store.add("s.log", content)
    before = store.dump()
    (store.home / "s.log").unlink()
    result = store.read("s.log")
    assert (result.changed, result.problems) == (0, [])
    assert differences(store.dump(), before) == []
    store.write("s.log", content)
    assert store.read("s.log").changed == 0
    assert store.archived("s.log") == [content]
    assert messages(store) == ["m1"]


# -- files that cannot be read


def test_a_folder_of_a_logs_name_is_a_problem_and_no_crash(store: ToyStore) -> None:
    (store.home / "s.log").mkdir(parents=True)
    store.append("t.log", text("m1"))
    result = store.read("s.log", "t.log")
    assert [(Path(found.path).name, found.reason) for found in result.problems] == [("s.log", "Is a directory")]
    assert messages(store) == ["m1"], "the others are read"
    assert store.row("SELECT problem FROM sources WHERE path LIKE '%/s.log'") == "Is a directory"
    (store.home / "s.log").rmdir()
    store.add("s.log", text("m2"))
    assert store.row("SELECT problem FROM sources WHERE path LIKE '%/s.log'") is None
    assert messages(store) == ["m1", "m2"]


def test_a_pipe_is_a_problem_and_does_not_hang(store: ToyStore) -> None:
    store.home.mkdir()
    os.mkfifo(store.home / "s.log")
    (found,) = store.read("s.log").problems
    assert found.reason == "not a plain file"


def test_a_loop_of_links_is_a_problem(store: ToyStore) -> None:
    store.home.mkdir()
    (store.home / "s.log").symlink_to(store.home / "s.log")
    (found,) = store.read("s.log").problems
    assert "symbolic links" in found.reason


def test_a_file_that_may_not_be_opened_is_a_problem(store: ToyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root every file may be read, so the refusal is played."""
    store.append("s.log", text("m1"))
    open_file = module._open_regular  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose

    def refuse(path: str, flags: int) -> int:
        if path.endswith("/s.log"):
            raise PermissionError(13, "Permission denied", path)
        return open_file(path, flags)

    monkeypatch.setattr(module, "_open_regular", refuse)
    store.append("t.log", text("m2"))
    assert [found.reason for found in store.read("s.log", "t.log").problems] == ["Permission denied"]
    assert messages(store) == ["m2"]
    monkeypatch.setattr(module, "_open_regular", open_file)
    store.read("s.log")
    assert messages(store) == ["m1", "m2"]


def test_a_source_that_fails_while_it_is_read_takes_nothing_with_it(
    store: ToyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of an agent's module in one log: the others of its group are kept, and of this one nothing."""
    feed = ToyFold.feed

    def fail(self: ToyFold, data: bytes, offset: int) -> Changes:
        if b"poison" in data and offset:
            raise ValueError("cannot cope")
        return feed(self, data, offset)

    monkeypatch.setattr(ToyFold, "feed", fail)
    monkeypatch.setattr(module, "CHUNK_SIZE", 200)
    store.append("bad.log", *[text(f"b{number}", "x" * 150) for number in range(4)], text("poison"))
    store.append("one.log", text("m1"))
    store.append("two.log", text("m2"))
    result = store.read("one.log", "bad.log", "two.log")
    assert [found.reason for found in result.problems] == ["ValueError: cannot cope"]
    assert messages(store) == ["m1", "m2"]
    assert result.saved.messages == 2
    assert store.archived("bad.log") == [b""]
    monkeypatch.setattr(ToyFold, "feed", feed)
    store.read("bad.log")
    assert len(messages(store)) == 7
    store.dump()


@pytest.mark.parametrize(
    "error",
    [
        sqlite3.IntegrityError("UNIQUE constraint failed"),
        sqlite3.DataError("string or blob too big"),
        DamagedError("there is no frame 7"),
        NotFoundError("the store holds no blob"),
        ValueError("half an emoji: \ud83d"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_value_the_store_refuses_stops_only_its_own_source(
    store: ToyStore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    feed = ToyFold.feed

    def fail(self: ToyFold, data: bytes, offset: int) -> Changes:
        if b"poison" in data:
            raise error
        return feed(self, data, offset)

    monkeypatch.setattr(ToyFold, "feed", fail)
    for name in ("one", "bad", "two"):
        store.append(f"{name}.log", text("poison" if name == "bad" else name))
    result = store.read("one.log", "bad.log", "two.log")
    assert [Path(found.path).name for found in result.problems] == ["bad.log"]
    assert messages(store) == ["one", "two"]
    assert len(store.rows("SELECT path FROM sources WHERE problem IS NOT NULL")) == 1


@pytest.mark.parametrize("damage", ["data = zeroblob(length(data))", "data = substr(data, 1, length(data) - 1)"])
def test_damaged_bytes_of_one_source_keep_no_other_from_being_read(store: ToyStore, damage: str) -> None:
    store.append("bad.log", text("m0"))
    store.append("good.log", text("m1"))
    store.read("bad.log", "good.log")
    with write_transaction(store.connection):
        store.connection.execute(
            f"UPDATE archive SET {damage} WHERE source_key = (SELECT key FROM sources WHERE path LIKE '%/bad.log')"
        )
    store.append("bad.log", text("m3"))
    store.append("good.log", text("m2"))
    result = store.read("bad.log", "good.log")
    assert [Path(found.path).name for found in result.problems] == ["bad.log"]
    assert messages(store) == ["m0", "m1", "m2"]
    # A file that was rewritten is archived again, and needs nothing of what is damaged.
    store.write("bad.log", text("m4"), text("m0"))
    assert store.read("bad.log", "good.log").problems == []
    assert messages(store) == ["m0", "m1", "m2", "m4"]


def test_a_store_that_cannot_be_written_is_nobodys_problem_but_the_stores(
    store: ToyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnlog.store.connection.BUSY_TIMEOUT_SECONDS", 0.05)
    store.append("s.log", text("m1"))
    other = connect(store.path, checked=False)
    store.connection.execute("PRAGMA busy_timeout = 50")
    with write_transaction(other), pytest.raises(StoreBusyError):
        store.read("s.log")
    other.close()
    assert store.rows("SELECT * FROM sources") == []
    store.read("s.log")
    assert messages(store) == ["m1"]


@settings(max_examples=examples(40))
@given(st.integers(0, 1 << 32))
def test_the_newest_life_of_a_file_says_what_a_clean_import_of_it_says(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Lines are put in, taken out and changed; earlier lives stay in the archive and double nothing."""
    random = Random(seed)
    folder = tmp_path_factory.mktemp("lives")
    # A record that is glued to a last line without newline is told by what was there first: not this test's question.
    lives = [make_world(seed, 1, 10)["s0.log"].rstrip(b"\n") + b"\n"]
    for _ in range(random.randint(1, 3)):
        lines = lives[-1].splitlines(keepends=True)
        for _ in range(random.randint(1, 3)):
            place = random.randint(0, len(lines))
            lines[place : place + random.choice([0, 1, 2])] = random.choice([[], [note(random.randint(0, 99))]])
        lives.append(b"".join(lines))
    with ToyStore(folder) as store, ToyStore(folder, name="clean.db") as clean:
        for content in lives:
            store.write("s0.log", content)
            store.read("s0.log")
        clean.read("s0.log")
        found, wanted = store.dump(), clean.dump()
        generation = store.row("SELECT generation FROM sources")
        following = [*lives[1:], None]
        grew = [after is not None and after.startswith(life) for life, after in zip(lives, following, strict=True)]
        assert store.archived("s0.log") == [life for life, more in zip(lives, grew, strict=True) if not more]
    assert {key.split(maxsplit=2)[2] for key in found["diagnostics"]} == {
        key.split(maxsplit=2)[2] for key in wanted["diagnostics"]
    }
    newest = {key: event for key, event in found["events"].items() if event[GENERATION] == generation}
    for key, event in wanted["events"].items():
        if event[0] != "tool-result":  # an earlier life may have had its call
            assert newest.pop(key)[:GENERATION] == event[:GENERATION]
    assert {event[0] for event in newest.values()} <= {"tool-result"}
    assert found["bodies"].keys() >= wanted["bodies"].keys(), "what was said once is kept"
