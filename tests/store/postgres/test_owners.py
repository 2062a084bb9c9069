"""Many people push to one store: nobody's batch touches what somebody else has, and nothing is written twice."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from time import sleep

import msgspec
import psycopg
import pytest

from support.postgres_stores import PostgresDatabases
from support.toy_store import ToyStore
from turnlog.store import open_store
from turnlog.store.feed.owners import Owner
from turnlog.store.feed.reading import read_batch
from turnlog.store.feed.values import FeedBatch, FeedPosition
from turnlog.store.postgres.search import SearchReplica
from turnlog.store.postgres.store import PostgresStore
from turnlog.store.postgres.wake_ups import WakeUps

ANA, BEN = Owner("ana", "laptop"), Owner("ben", "desktop")
ROW = b'{"kind":"text","id":"%b","message":"%b","role":"user","text":"%b"}\n'


def row_of(message: str, text: str) -> bytes:
    return ROW % (message.encode(), message.encode(), text.encode())


def whole(toy: ToyStore) -> FeedBatch:
    batch = read_batch(toy.connection, FeedPosition())
    assert batch is not None
    return batch


def words(store: PostgresStore, session_id: str) -> list[str]:
    return [getattr(placed.message.parts[0], "text", "") for placed in store.messages(session_id)]


def stamps(store: PostgresStore) -> dict[str, list[tuple[object, ...]]]:
    """Every row with the transaction that wrote it."""
    tables = ("messages", "frames", "parts", "memberships", "sessions", "events", "usage", "links")
    with psycopg.connect(store.url) as connection:
        return {
            table: sorted(connection.execute(f"SELECT ctid::text, xmin::text FROM turnlog.{table}".encode()).fetchall())
            for table in tables
        }


def test_a_session_of_another_person_stays_and_is_kept_twice(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path / "ana") as ana, ToyStore(tmp_path / "ben") as ben:
        ana.add("s.log", row_of("u1", "of ana"))
        ben.add("s.log", row_of("u1", "of ben"), row_of("u9", "secret of ben"))
        ben.add("t.log", row_of("u2", "another of ben"))
        store.take("ana", whole(ana), ANA)
        taken = store.take("ben", whole(ben), BEN)
    assert taken.stored_as == {"toy:s": "toy:s~ben"}
    assert words(store, "toy:s") == ["of ana"]
    assert words(store, "toy:t") == ["another of ben"]
    with psycopg.connect(store.url) as connection:
        owners = connection.execute("SELECT session_id, owner_user, machine FROM turnlog.session_owners ORDER BY 1")
        assert owners.fetchall() == [
            *(("toy:s", "ana", "laptop"), ("toy:s~ben", "ben", "desktop"), ("toy:t", "ben", "desktop"))
        ]
    assert words(store, "toy:s~ben") == ["of ben", "secret of ben"]


def test_people_have_messages_of_one_id_each_their_own(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path / "ana") as ana, ToyStore(tmp_path / "ben") as ben:
        ana.add("a.log", row_of("u1", "walnut of ana"))
        ben.add("b.log", row_of("u1", "hazel of ben"))
        store.take("ana", whole(ana), ANA)
        store.take("ben", whole(ben), BEN)
    assert words(store, "toy:a") == ["walnut of ana"]
    assert words(store, "toy:b") == ["hazel of ben"]
    assert store.message("u1", session_id="toy:b").parts[0] == store.messages("toy:b")[0].message.parts[0]
    with SearchReplica(store, tmp_path) as replica:
        replica.follow()
        (hit,) = replica.search("walnut").hits
        assert (hit.message_id, [place.session_id for place in hit.places]) == ("u1", ["toy:a"])
        (found,) = replica.sessions("hazel", masked=lambda text: text.replace("hazel", "[masked]")).sessions
        assert found.hit is not None
        assert (found.session_id, found.hit.message_id, found.hit.snippet) == ("toy:b", "u1", "[masked] of ben")


def test_nobody_forgets_a_session_of_somebody_else(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path / "ana") as ana, ToyStore(tmp_path / "ben") as ben:
        ana.add("s.log", row_of("u1", "of ana"))
        ben.add("t.log", row_of("u2", "of ben"))
        store.take("ana", whole(ana), ANA)
        hostile = msgspec.structs.replace(whole(ben), forgotten=["toy:s"])
        assert store.take("ben", hostile, BEN).forgotten == ()
    assert words(store, "toy:s") == ["of ana"]


def test_nobody_forgets_in_advance_for_somebody_else(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path / "ana") as ana, ToyStore(tmp_path / "ben") as ben:
        ana.add("s.log", row_of("u1", "of ana"))
        ana.add("r.log", row_of("u3", "of ana, too"))
        ben.add("t.log", row_of("u2", "of ben"))
        store.take("ben", msgspec.structs.replace(whole(ben), forgotten=["toy:s"]), BEN)
        store.take("ana", msgspec.structs.replace(whole(ana), forgotten=["toy:r"]), ANA)
        assert words(store, "toy:s") == ["of ana"]
        assert store.find_session("toy", "r") is None
        again = msgspec.structs.replace(whole(ana), generation=1)
        store.take("ana", again, ANA)
        assert store.find_session("toy", "r") is None


def test_what_is_forgotten_leaves_no_row_when_another_machine_sends_it(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path / "one") as one, ToyStore(tmp_path / "two") as two:
        one.add("s.log", row_of("u1", "gone"))
        two.add("s.log", row_of("u1", "gone"), row_of("u2", "gone too"))
        store.take("one", whole(one), ANA)
        with open_store(one.path) as other:
            other.forget("toy:s")
        batch = read_batch(one.connection, store.feed_position("one"))
        assert batch is not None
        store.take("one", batch, ANA)
        store.take("two", whole(two), Owner("ana", "desktop"))
    with psycopg.connect(store.url) as connection:
        for table in ("messages", "frames", "parts", "sessions", "message_digests"):
            assert connection.execute(f"SELECT count(*) FROM turnlog.{table}".encode()).fetchone() == (0,), table


def test_a_new_subagent_of_what_its_machine_has_forgotten_is_forgotten_too(
    store: PostgresStore, tmp_path: Path
) -> None:
    with ToyStore(tmp_path / "ana") as ana:
        ana.add("s.log", row_of("u1", "parent"))
        ana.add("t.log", row_of("u2", "another"))
        store.take("ana", whole(ana), ANA)
        with open_store(ana.path) as machine:
            machine.forget("toy:s")
        for child, parent in (("child", b"s"), ("other", b"t")):
            origin = b'{"kind":"origin","session":"toy:%b"}\n' % parent
            ana.add(f"{child}.sub", origin, row_of(f"{child}1", f"of {child}"))
        batch = read_batch(ana.connection, store.feed_position("ana"))
        assert batch is not None
        store.take("ana", batch, ANA)
    assert words(store, "toy:other") == ["of other"]
    assert store.find_session("toy", "child") is None


def test_a_new_subagent_of_what_was_forgotten_is_forgotten_too(store: PostgresStore, tmp_path: Path) -> None:
    def origin(parent: str) -> bytes:
        return b'{"kind":"origin","session":"toy:%b"}\n' % parent.encode()

    def send(toy: ToyStore, owner: Owner) -> None:
        batch = read_batch(toy.connection, store.feed_position(owner.user))
        assert batch is not None
        store.take(owner.user, batch, owner)

    with ToyStore(tmp_path / "ana") as ana, ToyStore(tmp_path / "ben") as ben:
        ana.add("s.log", row_of("u1", "parent"))
        ana.add("t.log", row_of("u2", "another"))
        send(ana, ANA)
        store.forget("toy:s")
        # Both in one batch, and a third one later, whose own parent has never been here.
        ana.add("child.sub", origin("s"), row_of("u3", "child"))
        ana.add("grandchild.sub", origin("child"), row_of("u4", "grandchild"))
        ana.add("other.sub", origin("t"), row_of("u6", "of another"))
        send(ana, ANA)
        ana.add("last.sub", origin("grandchild"), row_of("u5", "last"))
        ana.add("child.sub", row_of("u7", "more of the child"))
        send(ana, ANA)
        # What somebody else has with such an id is taken.
        ben.add("child.log", row_of("w1", "of ben"))
        send(ben, BEN)
    assert words(store, "toy:other") == ["of another"]
    assert words(store, "toy:child~ben") == ["of ben"]
    with psycopg.connect(store.url) as connection:

        def column(query: str) -> list[object]:
            return [value for (value,) in connection.execute(query.encode()).fetchall()]

        assert column("SELECT external_id FROM turnlog.sessions ORDER BY 1") == ["child~ben", "other", "t"]
        assert column("SELECT external_id FROM turnlog.messages ORDER BY 1") == ["u2", "u6", "w1"]
        assert column("SELECT session_id FROM turnlog.sources WHERE kind = 'subagent'") == ["toy:other"]
        assert column("SELECT count(*) FROM turnlog.frames") == [3]
        assert column("SELECT count(*) FROM turnlog.links WHERE child_id = 'toy:grandchild'") == [0]


def test_what_comes_again_unchanged_is_not_written_again(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", *[row_of(f"u{n}", "words") for n in range(5)])
        toy.add("t.log", *[row_of(f"w{n}", "words") for n in range(5)])
        store.take("laptop", whole(toy), ANA)
        first, last = stamps(store), store.last_change()
        again = msgspec.structs.replace(whole(toy), generation=1)
        assert store.take("laptop", again, ANA).is_new
        assert stamps(store) == first
        assert store.last_change() == last
        toy.add("s.log", row_of("u5", "new"))
        store.take("laptop", msgspec.structs.replace(whole(toy), generation=2), ANA)
        assert words(store, "toy:s") == [*["words"] * 5, "new"]
        changed = {row for row in stamps(store)["messages"] if row not in first["messages"]}
        assert len(changed) == 1
        assert [change.session_id for change in store.changes(last)] == ["toy:s"]


def test_a_generation_that_is_over_is_refused(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", row_of("u1", "words"))
        store.take("laptop", msgspec.structs.replace(whole(toy), generation=2), ANA)
        assert store.feed_progress("laptop")[1] == 2
        with pytest.raises(Exception, match="is in generation 2: 1 is over"):
            store.take("laptop", msgspec.structs.replace(whole(toy), generation=1), ANA)


def test_ids_that_no_index_takes_are_shortened(store: PostgresStore, tmp_path: Path) -> None:
    long = "".join(f"{number:x}" for number in range(3000))
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", row_of(long, "words"), row_of(long[:-1], "others"))
        store.take("laptop", whole(toy), ANA)
        store.take("laptop", msgspec.structs.replace(whole(toy), generation=1), ANA)
    assert words(store, "toy:s") == ["words", "others"]


def test_a_commit_wakes_who_listens(databases: PostgresDatabases, tmp_path: Path) -> None:
    with databases.store() as store, ToyStore(tmp_path) as toy, WakeUps(store.url) as wake_ups:
        assert wake_ups.wait(0.01) == set()
        toy.add("s.log", row_of("u1", "words"))

        batch = whole(toy)
        writer = Thread(target=lambda: (sleep(0.05), store.take("laptop", batch, ANA)))
        writer.start()
        assert wake_ups.wait(10) == {store.team}
        writer.join()
        assert store.session("toy:s").counts.messages == 1


def test_a_push_and_a_program_adding_one_name_do_not_deadlock(store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", row_of("u1", "words"))
        batch = whole(toy)
    named = msgspec.structs.replace(
        batch, names={**batch.names, "models": {7: ("new",)}}, rows={**batch.rows, "models": [(7, "new")]}
    )
    failed: list[BaseException] = []

    def push() -> None:
        try:
            store.take("laptop", named, ANA)
        except BaseException as error:
            failed.append(error)

    with psycopg.connect(store.url) as program:
        # As `begin_writing` does it.
        program.execute("SELECT FROM turnlog.counters WHERE team_key = 1 FOR UPDATE")
        pushing = Thread(target=push)
        pushing.start()
        sleep(1)
        program.execute("INSERT INTO turnlog.models (team_key, name) VALUES (1, 'new')")
        program.commit()
        pushing.join(60)
    assert failed == []
    assert words(store, "toy:s") == ["words"]
