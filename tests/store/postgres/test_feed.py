"""The change feed: what one store says arrives in another, however it is cut and however often it is sent."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pytest

from support.postgres_stores import PostgresDatabases, push
from support.store_answers import Question, Questions, ask
from support.toy_logs import make_world
from support.toy_store import ToyStore
from turnlog.errors import ConflictError
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.store.connection import connect
from turnlog.store.feed import taking
from turnlog.store.feed.reading import read_batch, read_messages
from turnlog.store.feed.values import TABLES, FeedPosition
from turnlog.store.postgres.store import PostgresStore

PROMPT = b'{"kind":"text","id":"u%d","message":"u%d","role":"user","text":"words"}\n'


def differing(path: Path, store: PostgresStore) -> list[str]:
    with open_store(path) as other:
        questions = [*(found := Questions(other)), *found.of_messages()]
        # What does not depend on how rows arrive is compared on recorded sessions.
        compared = [question for question in questions if question.method not in ("usage", "insights", "tool_usage")]
        compared += [Question("usage", ("session",)), Question("insights")]
        return [str(question) for question in compared if ask(other, question) != ask(store, question)]


@pytest.mark.parametrize("seed", [1, 3])
def test_a_growing_home_arrives_in_any_pieces(seed: int, store: PostgresStore, tmp_path: Path) -> None:
    random, world = Random(seed), make_world(seed)
    with ToyStore(tmp_path) as toy:
        for _ in range(3):
            for name, content in world.items():
                end = random.randint(0, len(content))
                # A file may also be shorter than before: it was rewritten.
                toy.write(name, content[: content.rfind(b"\n", 0, end) + 1])
            toy.read(*world)
            push(toy.path, store, most=random.choice([1, 3, 1000]))
        for name, content in world.items():
            toy.write(name, content)
        toy.read(*world)
        push(toy.path, store, most=2)
        assert differing(toy.path, store) == []


def test_a_batch_that_comes_again_changes_nothing(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path) as toy:
        for name, content in make_world(1).items():
            toy.write(name, content)
        toy.read(*make_world(1))
        batches = push(toy.path, store, most=3)
        last = store.last_change()
        assert len(batches) > 2
        assert not any(store.take("laptop", batch).is_new for batch in batches)
        assert store.last_change() == last
        assert differing(toy.path, store) == []


def test_a_batch_does_not_follow_a_gap(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", *[PROMPT % (n, n) for n in range(9)])
        first, second, *_ = push(toy.path, store, most=3)
        with pytest.raises(ConflictError, match="does not follow"):
            store.take("another", second)
        assert store.take("another", first).is_new


def test_no_word_remains_of_a_message_that_no_session_has_any_more(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", *[PROMPT % (n, n) for n in range(3)])
        [batch] = push(toy.path, store)
    [*_, last] = sorted(batch.bodies)
    rows = dict(batch.rows)
    for table, at in (("messages", 0), ("parts", 0), ("memberships", 2)):
        rows[table] = [row for row in rows[table] if row[at] != last]
    bodies = {key: body for key, body in batch.bodies.items() if key != last}
    names = {key: name for key, name in batch.names["messages"].items() if key != last}
    names_of = {**batch.names, "messages": names}
    store.take("laptop", msgspec.structs.replace(batch, rows=rows, bodies=bodies, names=names_of, generation=1))
    assert [placed.message.id for placed in store.messages("toy:s")] == ["u0", "u1"]
    with store.reading() as connection:
        assert connection.execute("SELECT count(*) FROM frames").fetchone() == (2,)


def test_messages_that_come_again_complete_no_session(tmp_path: Path) -> None:
    """They come before the batch at their position, which does."""
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", *[PROMPT % (n, n) for n in range(2)])
        toy.add("t.log", PROMPT % (2, 2))
        first = read_batch(toy.connection, FeedPosition(), most_messages=2)
        assert first is not None
        assert first.complete == []
        assert read_messages(toy.connection, first.until, [*first.bodies]).complete == []
        last = read_batch(toy.connection, first.until, most_messages=2)
        assert last is not None
        assert len(last.complete) == 2


def test_a_batch_survives_the_wire(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", *[PROMPT % (n, n) for n in range(3)])
        batch = read_batch(toy.connection, FeedPosition())
        assert batch is not None
        assert store.take("laptop", taking.decode(taking.encode(batch))).is_new
        assert store.session("toy:s").counts.messages == 3


def test_a_forgotten_session_goes_everywhere_and_stays_away(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", PROMPT % (1, 1))
        toy.add("t.log", PROMPT.replace(b"u%d", b"w%d") % (1, 1))
        push(toy.path, store)
        with open_store(toy.path) as other:
            other.forget("toy:s")
        push(toy.path, store)
        assert [session.id for session in store.sessions().items] == ["toy:t"]
        # Another machine that still has it does not bring it back.
        with ToyStore(tmp_path / "second") as second:
            second.add("s.log", PROMPT % (1, 1), PROMPT % (2, 2))
            push(second.path, store, name="second")
        assert [session.id for session in store.sessions(SessionFilter(subagents=True)).items] == ["toy:t"]


def test_two_machines_may_have_the_same_session(store: PostgresStore, tmp_path: Path) -> None:
    lines = [PROMPT % (n, n) for n in range(4)]
    for name in ("one", "two"):
        with ToyStore(tmp_path / name) as toy:
            toy.add("s.log", *lines)
            push(toy.path, store, name=name)
    assert store.session("toy:s").counts.messages == 4
    assert [placed.message.id for placed in store.messages("toy:s")] == ["u0", "u1", "u2", "u3"]


def test_a_batch_that_cannot_be_written_leaves_nothing(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", *[PROMPT % (n, n) for n in range(3)])
        batch = read_batch(toy.connection, FeedPosition())
        assert batch is not None
        body = next(iter(batch.bodies))
        batch.bodies[body] = b"no frame"
        with pytest.raises(ValueError, match="the body of message u0 is no zstd frame"):
            store.take("laptop", batch)
        assert store.sessions().items == ()
        assert store.feed_position("laptop") == FeedPosition()


@pytest.mark.parametrize("table", TABLES)
def test_the_columns_of_the_feed_are_those_of_both_schemas(
    table: str, store: PostgresStore, tmp_path: Path, databases: PostgresDatabases
) -> None:
    del databases
    connection = connect(tmp_path / "turnlog.db")
    columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    connection.close()
    with store.reading() as other:
        other.execute(f"SELECT {', '.join(TABLES[table])} FROM {table} LIMIT 1")
    # Kept are bodies and search by whoever takes a batch; the state of a fold is of use only where logs are read.
    private = {"key", "changed_seq", "state", "frame_key", "frame_start", "frame_size", "body_start"}
    assert columns - set(TABLES[table]) <= private
