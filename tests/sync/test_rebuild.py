"""Everything that was read is made anew from the archive, without the files, and says the same."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog.sync.rebuild as module
from support.profiles import examples
from support.store_dump import Dump, check_integrity, differences, dump, json_of, open_read_only, value_of
from support.toy_agent import ToyAgent, line
from support.toy_logs import World, make_schedule, worlds, write_world
from turnlog.agents.changes import Changes
from turnlog.errors import StoreError
from turnlog.model import Message
from turnlog.store import bodies, zstd
from turnlog.store.connection import connect
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync


def said(store: Path) -> Dump:
    connection = open_read_only(store)
    try:
        check_integrity(connection)
        return dump(connection)
    finally:
        connection.close()


def ask(store: Path, query: str) -> Any:
    connection = open_read_only(store)
    try:
        return value_of(connection, query)
    finally:
        connection.close()


def run(store: Path, *statements: str) -> None:
    connection = connect(store)
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


def without_line_ends(found: Dump) -> Dump:
    """Without what the toy fold remembers of how its last line ended."""
    for path, (*words, state) in found["sources"].items():
        found["sources"][path] = (*words, {**json_of(state), "end": None, "ended": None} if state else None)
    return found


@settings(max_examples=examples(15))
@given(worlds(), st.integers(0, 1 << 32))
def test_a_rebuilt_store_says_what_it_said(tmp_path_factory: pytest.TempPathFactory, world: World, seed: int) -> None:
    """Also when the files are gone, and whatever pieces they once came in."""
    folder = tmp_path_factory.mktemp("rebuild")
    home, store, agent = folder / "home", folder / "store.db", ToyAgent()
    for name, size in make_schedule(Random(seed), world, 1):
        write_world(home, {name: world[name][:size]})
        if size < len(world[name]):
            sync(store, roots=[home], agents=[agent])
    sync(store, roots=[home], agents=[agent])
    before = without_line_ends(said(store))
    shutil.rmtree(home)
    rebuild(store, agents=[agent])
    assert differences(without_line_ends(said(store)), before) == []


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def prompt(message: str) -> bytes:
    return line(kind="prompt", id=f"r-{message}", message=message, text=message)


def test_every_life_of_a_rewritten_file_is_read_again(home: Path, store: Path) -> None:
    log = home / "s.log"
    note = line(kind="note", id="n1")
    for content in (prompt("m1") + note + b"torn", note + prompt("m2") + b"{"):
        log.write_bytes(content)
        sync(store, roots=[home], agents=[ToyAgent()])
    before = said(store)
    assert len(before["messages"]) == 2
    assert len(before["diagnostics"]) == 1
    rebuild(store, agents=[ToyAgent()])
    assert differences(said(store), before) == []


def test_a_message_that_goes_on_in_a_later_turn_stays_in_its_own(home: Path, store: Path) -> None:
    """Also where a copy of its log grows."""
    begun = prompt("m1") + prompt("m2")
    whole = begun + line(kind="text", id="r-late", message="m1", block=7, text="by the way", copied=True)
    (home / "backup").mkdir()
    for name, content in (("backup/s.log", whole), ("s.log", begun), ("s.log", whole)):
        (home / name).write_bytes(content)
        sync(store, roots=[home], agents=[ToyAgent()])
    assert ask(store, "SELECT group_concat(turn) FROM memberships") == "1,2"
    before = said(store)
    rebuild(store, agents=[ToyAgent()])
    assert differences(said(store), before) == []


def test_a_better_parser_says_more(home: Path, store: Path) -> None:
    (home / "s.log").write_bytes(prompt("m1") + b"what the old one could not read\n")

    class BetterAgent(ToyAgent):
        parser_version = 2

        def __init__(self) -> None:
            super().__init__(parser_version=2)

        def fold(self, source: Any, state: bytes | None = None) -> Any:
            old = super().fold(source, state)
            feed = old.feed

            def better(data: bytes, offset: int) -> Changes:
                changes = feed(data, offset)
                changes.diagnostics.clear()
                return changes

            old.feed = better
            return old

    sync(store, roots=[home], agents=[ToyAgent()])
    assert ask(store, "SELECT count(*) FROM diagnostics") == 1
    summary = rebuild(store, agents=[BetterAgent()])
    assert (summary.sources, summary.messages, summary.diagnostics, summary.skipped) == (1, 1, 0, [])
    assert ask(store, "SELECT count(*) FROM diagnostics") == 0
    assert ask(store, "SELECT parser_version FROM sources") == 2


def test_what_the_user_said_and_what_is_native_stay(home: Path, store: Path) -> None:
    """Annotations, tombstones and sessions of our own API are no business of a rebuild."""
    (home / "s.log").write_bytes(prompt("m1"))
    (home / "gone.log").write_bytes(prompt("m2"))
    sync(store, roots=[home], agents=[ToyAgent()])
    body = bodies.pack(Message(id="nm", role="user"))
    frame = zstd.compress(body)
    run(
        store,
        "INSERT INTO annotations (session_id, title, changed_at) VALUES ('toy:s', 'mine', 0)",
        "INSERT INTO tombstones VALUES ('toy:gone', 0)",
        "INSERT INTO sessions (key, agent, external_id, native) VALUES (99, 'chat', 'n', 1)",
        f"INSERT INTO frames (key, data) VALUES (99, x'{frame.hex()}')",
        "INSERT INTO messages"
        " (key, agent, external_id, role, changed_seq, billed_key, frame_key, frame_size, body_size)"
        f" VALUES (99, 'chat', 'nm', 'user', 0, 99, 99, {len(frame)}, {len(body)})",
        "INSERT INTO memberships (session_key, position, message_key) VALUES (99, 0, 99)",
    )
    rebuild(store, agents=[ToyAgent()])
    assert ask(store, "SELECT group_concat(id, ' ') FROM (SELECT external_id AS id FROM sessions ORDER BY 1)") == "n s"
    assert ask(store, "SELECT count(*) FROM memberships WHERE session_key = 99") == 1
    assert ask(store, "SELECT title FROM annotations") == "mine"
    assert ask(store, "SELECT count(*) FROM messages") == 2


def test_logs_of_an_agent_that_is_not_there_wait_for_it(home: Path, store: Path) -> None:
    (home / "s.log").write_bytes(prompt("m1"))
    sync(store, roots=[home], agents=[ToyAgent()])
    summary = rebuild(store, agents=[])
    assert summary.skipped == [str(home / "s.log")]
    assert ask(store, "SELECT count(*) FROM sessions") == 0
    assert ask(store, "SELECT sum(length) FROM archive") == len(prompt("m1"))
    rebuild(store, agents=[ToyAgent()])
    assert ask(store, "SELECT count(*) FROM messages") == 1


def test_a_rebuild_that_fails_leaves_the_store_as_it_was(
    home: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "s.log").write_bytes(prompt("m1"))
    sync(store, roots=[home], agents=[ToyAgent()])
    before = said(store)

    def fail(*arguments: object) -> None:
        raise StoreError("half way")

    monkeypatch.setattr(module, "_fold_again", fail)
    with pytest.raises(StoreError, match="half way"):
        rebuild(store, agents=[ToyAgent()])
    assert differences(said(store), before) == []


def test_a_file_that_could_never_be_read_has_nothing_to_rebuild(home: Path, store: Path) -> None:
    (home / "s.facts").mkdir()
    sync(store, roots=[home], agents=[ToyAgent()])
    rebuild(store, agents=[ToyAgent()])
    assert ask(store, "SELECT problem FROM sources") == "Is a directory"
    assert ask(store, "SELECT count(*) FROM diagnostics") == 0


def test_progress_is_reported(home: Path, store: Path) -> None:
    for number in range(3):
        (home / f"s{number}.log").write_bytes(prompt(f"m{number}"))
    sync(store, roots=[home], agents=[ToyAgent()])
    told: list[tuple[int, int]] = []
    summary = rebuild(store, lambda done, total: told.append((done, total)), agents=[ToyAgent()])
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert (summary.sources, summary.messages) == (3, 3)
    assert summary.seconds > 0
