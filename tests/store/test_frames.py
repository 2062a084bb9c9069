"""Where bodies lie: neighbours together, what was written again alone, and nothing that was taken away."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.profiles import examples
from support.toy_agent import line, session_id
from support.toy_store import ToyStore
from turnlog.errors import StoreError
from turnlog.store import connection as module
from turnlog.store import frames, zstd
from turnlog.store.connection import connect, write_transaction
from turnlog.store.frames import (
    FRAME_SIZE,
    MOST_TOGETHER,
    PLACE_COLUMNS,
    ROW_SIZE,
    BodyPlace,
    BodyReader,
    FramePacker,
    drop_bodies,
    load_frames,
)
from turnlog.store.sqlite.forget import forget

BODIES = st.lists(
    st.tuples(st.sampled_from([1, 1, 1, 2]), st.binary(min_size=1, max_size=40).map(lambda data: b"{%b}" % data)),
    max_size=30,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ToyStore]:
    with ToyStore(tmp_path) as store:
        yield store


def packed(bodies: list[tuple[int, bytes]], first: int = 1) -> tuple[sqlite3.Connection, list[BodyPlace]]:
    """A store's tables of frames with these bodies (session, JSON), and where each lies."""
    packer = FramePacker()
    for key, (session, body) in enumerate(bodies, first):
        packer.add(session, key, body)
    taken = packer.take()
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE frames (key INTEGER PRIMARY KEY, data BLOB NOT NULL)")
    connection.execute(f"CREATE TABLE messages (key INTEGER PRIMARY KEY, {', '.join(PLACE_COLUMNS)})")
    places = taken.save(connection, zstd.compress_all(taken.texts)) if bodies else []
    connection.executemany(
        "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)", [(key, *place) for key, place in enumerate(places, first)]
    )
    return connection, places


@given(BODIES)
def test_every_body_comes_back_from_its_place(bodies: list[tuple[int, bytes]]) -> None:
    connection, places = packed(bodies)
    with closing(connection):
        read = BodyReader(connection)
        assert [read(*place) for place in places] == [body for _, body in bodies]
        assert [read.of(key) for key in range(1, len(bodies) + 1)] == [body for _, body in bodies]


def rows_of(packer: FramePacker) -> dict[int, list[bytes]]:
    """Key of each row -> the JSON of its frames."""
    taken = packer.take()
    ends = [first for _, first in taken.rows[1:]] + [None]
    return {key: taken.texts[first:end] for (key, first), end in zip(taken.rows, ends, strict=True)}


def test_a_row_is_of_one_session_and_its_frames_of_one_size() -> None:
    packer = FramePacker()
    large, huge = b"x" * FRAME_SIZE, b"x" * ROW_SIZE
    for session, key, body in (
        (1, 10, b"{}"),
        (1, 11, b"{1}"),
        (2, 12, b"{}"),  # another session
        (2, 14, b"{2}"),  # a key is left out
        (2, 15, large),  # it would be too large a frame
        (2, 16, b"{}"),
        (2, 17, huge),  # it would be too large a row
        (2, 18, b"{3}"),
    ):
        packer.add(session, key, body)
    assert rows_of(packer) == {10: [b"{},{1}"], 12: [b"{}"], 14: [b"{2}", large, b"{}"], 17: [huge], 18: [b"{3}"]}
    packer.add(2, 19, b"{}")
    assert rows_of(packer) == {19: [b"{}"]}, "what was taken is complete"
    for number in range(MOST_TOGETHER + 1):
        packer.add(2, 20 + number, b"{}")
    assert list(rows_of(packer)) == [20, 20 + MOST_TOGETHER]


@given(BODIES, st.data())
def test_frames_of_any_choice_are_the_bodies_in_their_order(bodies: list[tuple[int, bytes]], data: Any) -> None:
    """Whole frames as they are, parts of frames made anew, in any order."""
    connection, places = packed(bodies)
    chosen: list[int] = data.draw(st.lists(st.sampled_from(range(len(bodies))), unique=True)) if bodies else []
    with closing(connection):
        found = load_frames(connection, [places[index] for index in chosen])
        wanted = b",".join([bodies[index][1] for index in chosen])
        assert b",".join([zstd.decompress(frame) for frame in found]) == wanted
        stored = [row[0] for row in connection.execute("SELECT data FROM frames ORDER BY key")]
        assert b"".join(load_frames(connection, places)) == b"".join(stored), "the whole is not packed again"


@given(BODIES, st.data())
@settings(max_examples=examples(200))
def test_what_is_dropped_is_nowhere_and_the_rest_is_as_it_was(bodies: list[tuple[int, bytes]], data: Any) -> None:
    named = [(session, b'{"n":%d,%b' % (number, body[1:])) for number, (session, body) in enumerate(bodies)]
    connection, _ = packed(named, first=5)
    keys = range(5, 5 + len(named))
    again: list[int] = data.draw(st.lists(st.sampled_from(keys), max_size=5)) if named else []
    gone: set[int] = data.draw(st.sets(st.sampled_from(keys))) if named else set()
    bodies_by_key = {key: body for key, (_, body) in zip(keys, named, strict=True)}
    with closing(connection):
        for key in again:
            bodies_by_key[key] = b'{"again":%d}' % key
            known = connection.execute("SELECT frame_key FROM messages WHERE key = ?", (key,)).fetchone()[0]
            place = frames.save_alone(connection, key, bodies_by_key[key], known)
            connection.execute(f"UPDATE messages SET {' = ?, '.join(PLACE_COLUMNS)} = ? WHERE key = ?", (*place, key))
        drop_bodies(connection, gone)
        connection.executemany("DELETE FROM messages WHERE key = ?", [(key,) for key in gone])
        read = BodyReader(connection)
        assert {key: read.of(key) for key in keys if key not in gone} == {
            key: body for key, body in bodies_by_key.items() if key not in gone
        }
        left = b"".join([zstd.decompress(row[0]) for row in connection.execute("SELECT data FROM frames")])
        for number, key in enumerate(keys):
            if key in gone:
                assert b'"n":%d,' % number not in left
                assert b'"again":%d}' % key not in left
        orphans = "SELECT count(*) FROM frames WHERE key NOT IN (SELECT frame_key FROM messages)"
        assert connection.execute(orphans).fetchone() == (0,)


def test_a_frame_that_is_not_there_is_an_error() -> None:
    connection, _ = packed([(1, b"{}")])
    with closing(connection), pytest.raises(StoreError, match="no frame 7"):
        BodyReader(connection)(7, 0, 11, 0, 2)


def test_neighbours_share_a_frame_until_they_are_written_again(store: ToyStore) -> None:
    prompts = [line(kind="prompt", id=f"r{number}", message=f"m{number}", text=f"say {number}") for number in range(4)]
    store.add("s.log", *prompts)
    assert store.rows("SELECT key, frame_key FROM messages ORDER BY key") == [(1, 1), (2, 1), (3, 1), (4, 1)]
    store.add("s.log", line(kind="prompt", id="r9", message="m2", text="more", block=1))
    assert store.rows("SELECT key, frame_key FROM messages ORDER BY key") == [(1, 1), (2, 1), (3, -3), (4, 1)]
    store.dump()


def test_forgetting_a_session_leaves_nothing_of_what_it_said(store: ToyStore) -> None:
    """R-S29: also not in a frame that another session's message is in, nor what a message said before."""
    copied = line(kind="prompt", id="r1", message="shared", text="kept words", copied=True)
    store.add("a.log", line(kind="prompt", id="r0", message="own", text="secret words"), copied)
    store.add("a.log", line(kind="prompt", id="r2", message="own", text="secret again", block=1))
    store.add("b.log", copied)
    assert b"secret" in _stored_texts(store.connection)
    with write_transaction(store.connection):
        store.connection.execute("PRAGMA defer_foreign_keys = ON")
        forget(store.connection, session_id("a"))
    bodies_by_key = _stored_texts(store.connection)
    assert b"secret" not in bodies_by_key
    assert b"kept words" in bodies_by_key


def _stored_texts(connection: sqlite3.Connection) -> bytes:
    return b"".join([zstd.decompress(row[0]) for row in connection.execute("SELECT data FROM frames")])


@pytest.mark.usefixtures("stores_from_scripts")
def test_a_store_of_before_is_brought_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-S30: bodies were in the rows of their messages before."""
    path = tmp_path / "store.db"
    every = dict(module._migrations())  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
    monkeypatch.setattr(module, "_migrations", lambda: {number: every[number] for number in every if number < 10})
    monkeypatch.setattr(module, "_index_statements", list)  # they are of the newest schema
    with closing(connect(path)) as connection:
        connection.executemany(
            "INSERT INTO messages (key, agent, external_id, role, changed_seq, body_size, body)"
            " VALUES (?, 'toy', ?, 'user', 0, ?, ?)",
            [(key, f"m{key}", len(body), zstd.compress(body)) for key, body in {3: b'{"a":1}', 8: b'{"b":22}'}.items()],
        )
    monkeypatch.setattr(module, "_migrations", lambda: every)
    with closing(connect(path)) as connection:
        read = BodyReader(connection)
        assert [read.of(3), read.of(8)] == [b'{"a":1}', b'{"b":22}']
        assert connection.execute("SELECT frame_key, frame_start, body_start FROM messages").fetchall() == [
            (-3, 0, 0),
            (-8, 0, 0),
        ]
