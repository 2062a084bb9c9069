"""The archive gives back every byte of every life of a file, from any offset."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.profiles import examples
from turnlog.errors import NotFoundError, StoreError
from turnlog.store.archive import SEGMENT_SIZE, Archive, FrameCollector, RecordReader
from turnlog.store.connection import connect, write_transaction

KEY = 1


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    with closing(connect(tmp_path_factory.mktemp("archive") / "store.db")) as found:
        yield found


@pytest.fixture
def archive(connection: sqlite3.Connection) -> Archive:
    return fresh(connection)


def fresh(connection: sqlite3.Connection) -> Archive:
    """An archive with one file that nothing is known of yet."""
    with write_transaction(connection):
        connection.execute("DELETE FROM sources")
        connection.execute(
            "INSERT INTO sources (key, agent, path, root, kind) VALUES (?, 'a', '/f', '/', 'session')", (KEY,)
        )
        connection.execute("INSERT INTO generations (source_key, generation, started_at) VALUES (?, 0, 0)", (KEY,))
    return Archive(connection)


def grow(archive: Archive, content: bytes, sizes: list[int], generation: int = 0, start: int = 0) -> None:
    """Append `content` from `start` on, in pieces that end at these sizes."""
    for size in [*sizes, len(content)]:
        archive.append(KEY, generation, start, content[start:size])
        start = max(start, size)
    settle(archive, generation, len(content))


def settle(archive: Archive, generation: int, size: int) -> None:
    archive._connection.execute(  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
        "UPDATE generations SET size = ? WHERE source_key = ? AND generation = ?", (size, KEY, generation)
    )


def whole(archive: Archive, generation: int = 0) -> bytes:
    return b"".join(archive.iter_bytes(KEY, generation))


@settings(max_examples=examples(30))
@given(st.integers(0, 1 << 32), st.sampled_from([100, 50_000, 3 * SEGMENT_SIZE + 17]))
def test_a_collector_gives_every_byte_at_once_and_whole_frames_at_the_end(
    connection: sqlite3.Connection, seed: int, largest: int
) -> None:
    random = Random(seed)
    content = random.randbytes(random.randint(1, largest))
    sizes = sorted(random.randint(0, len(content)) for _ in range(10))
    collector, archive, start = FrameCollector(), fresh(connection), 0
    for size in [*sizes, len(content)]:
        if size > start:
            collector.append(KEY, 0, start, content[start:size])
        archive.store(KEY, 0, collector.take())
        assert archive.read_up_to(KEY, 0, 0, len(content)) == content[:size]
        start = size
    assert collector.take() == []
    collected = frames(connection)
    grow(fresh(connection), content, sizes)
    assert collected == frames(connection)


def frames(connection: sqlite3.Connection) -> list[tuple[int, int, bytes]]:
    return connection.execute("SELECT start, length, data FROM archive ORDER BY start").fetchall()


@settings(max_examples=examples(30))
@given(st.integers(0, 1 << 32), st.sampled_from([100, 50_000, 3 * SEGMENT_SIZE + 17]))
def test_twenty_appends_of_any_size_give_back_the_same_bytes(
    connection: sqlite3.Connection, seed: int, largest: int
) -> None:
    random = Random(seed)
    content = random.randbytes(random.randint(1, largest))
    sizes = sorted(random.randint(0, len(content)) for _ in range(20))
    archive = fresh(connection)
    grow(archive, content, sizes)
    assert whole(archive) == content
    for _ in range(10):
        start = random.randint(0, len(content))
        length = random.randint(0, len(content) - start)
        assert archive.read(KEY, 0, start, length) == content[start : start + length]


def test_small_appends_do_not_leave_a_frame_each(archive: Archive, connection: sqlite3.Connection) -> None:
    content = b'{"a line":"of a live log"}\n' * 4000
    grow(archive, content, list(range(0, len(content), 500)))
    frames = connection.execute("SELECT count(*) FROM archive").fetchone()[0]
    assert frames <= 3
    assert whole(archive) == content


def test_pieces_are_no_larger_than_a_segment(archive: Archive) -> None:
    content = os.urandom(3 * SEGMENT_SIZE + 1)
    grow(archive, content, [])
    pieces = list(archive.iter_bytes(KEY, 0))
    assert max(len(piece) for piece in pieces) <= SEGMENT_SIZE
    assert b"".join(pieces) == content


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=examples(50))
def test_generations_share_prefixes_over_any_number_of_lives(
    connection: sqlite3.Connection, tails: list[bytes], random: Random
) -> None:
    """A file is rewritten again and again: each life keeps a prefix of the one before and goes its own way."""
    archive = fresh(connection)
    lives: list[bytes] = []
    for number, tail in enumerate(tails):
        shared = random.randint(0, len(lives[-1])) if lives else 0
        content = (lives[-1][:shared] if lives else b"") + tail
        if number:
            archive.begin(KEY, number, shared, 0)
        grow(archive, content, [random.randint(shared, len(content))], number, shared)
        lives.append(content)
    assert [whole(archive, number) for number in range(len(lives))] == lives
    for number, content in enumerate(lives):
        start = random.randint(0, len(content))
        assert archive.read(KEY, number, start, len(content) - start) == content[start:]
    stored = connection.execute("SELECT sum(length) FROM archive").fetchone()[0] or 0
    assert stored == sum(generation.size - generation.shared_prefix for generation in archive.generations(KEY))


def test_a_file_may_be_rewritten_thousands_of_times(archive: Archive) -> None:
    """A small sidecar that is written anew with every answer, each time with the same beginning."""
    grow(archive, b'{"n":0}', [])
    for number in range(1, 1500):
        archive.begin(KEY, number, 5, 0)
        grow(archive, b'{"n":%d}' % number, [], number, 5)
    assert whole(archive, 1499) == b'{"n":1499}'
    assert archive.read(KEY, 700, 3, 4) == b'":70'


def test_what_is_not_there_is_not_found(archive: Archive) -> None:
    grow(archive, b"0123456789", [])
    assert archive.read(KEY, 0, 10, 0) == b""
    with pytest.raises(NotFoundError, match="5 of 6 bytes at 5"):
        archive.read(KEY, 0, 5, 6)
    with pytest.raises(NotFoundError, match="0 of 1 bytes"):
        archive.read(99, 0, 0, 1)
    with pytest.raises(NotFoundError, match="no generation 1"):
        archive.iter_bytes(KEY, 1)


def test_an_empty_file_is_a_file(archive: Archive) -> None:
    assert whole(archive) == b""
    assert archive.read(KEY, 0, 0, 0) == b""


def test_a_damaged_frame_is_reported(archive: Archive, connection: sqlite3.Connection) -> None:
    grow(archive, b"0123456789", [])
    connection.execute("UPDATE archive SET length = 11")
    with pytest.raises(StoreError, match="damaged"):
        archive.read(KEY, 0, 0, 3)


def test_a_worker_compresses_the_same(connection: sqlite3.Connection) -> None:
    """Frames that wait for a worker are stored by `flush`, and not at all after `discard`."""
    content = os.urandom(20 * SEGMENT_SIZE // 4)
    fresh(connection)
    with ThreadPoolExecutor(1) as worker:
        archive = Archive(connection, worker)
        for start in range(0, len(content), SEGMENT_SIZE // 4):
            archive.append(KEY, 0, start, content[start : start + SEGMENT_SIZE // 4])
        archive.flush()
        settle(archive, 0, len(content))
        assert whole(archive) == content
        archive.append(KEY, 0, len(content), content)
        archive.discard()
        archive.flush()
        assert whole(archive) == content
    with pytest.raises(NotFoundError):
        archive.read(KEY, 0, len(content), 1)


def test_deleting_a_source_deletes_its_bytes(archive: Archive, connection: sqlite3.Connection) -> None:
    """R-S29: by foreign keys."""
    grow(archive, b"0123456789", [])
    connection.execute("DELETE FROM sources")
    assert connection.execute("SELECT count(*) FROM archive").fetchone() == (0,)
    assert archive.generations(KEY) == []


def test_who_reads_on_gets_what_a_single_read_gives(connection: sqlite3.Connection) -> None:
    data = Random(7).randbytes(5 * SEGMENT_SIZE + 17)
    archive = fresh(connection)
    grow(archive, data, [])
    reader = RecordReader(archive)
    for start, length in ((0, 10), (4_000_000, 300_000), (4_200_000, 5), (100, 7), (5_000_000, 120_000)):
        assert reader.read(KEY, 0, start, length) == archive.read(KEY, 0, start, length) == data[start : start + length]
    assert reader.read(KEY, 0, len(data) - 5, 10) == data[-5:]


def test_a_record_of_a_rewritten_file_is_read_where_it_is_stored(archive: Archive) -> None:
    """The frame of an older life goes on otherwise than the file does now."""
    old, new = b"0123456789 and more", b"01234 and another end"
    grow(archive, old, [])
    archive.begin(KEY, 1, 5, 0)
    grow(archive, new, [], 1, 5)
    reader = RecordReader(archive)
    for generation, data in ((1, new), (0, old), (1, new)):
        for start, length in ((0, 4), (2, 9), (5, 7), (0, len(data)), (4, 100), (100, 1)):
            assert reader.read(KEY, generation, start, length) == data[start : start + length]
