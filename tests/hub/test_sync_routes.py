"""The API of machines: what is sent arrives once, and nothing wrong is written."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
import zstandard
from starlette.testclient import TestClient

from support.hub_double import hub_app
from support.sync_machines import Machine, said, spoil, whole
from support.toy_store import ToyStore
from turnlog.hub.sync.receiving import MOST_PACKED, Load
from turnlog.hub.sync.wire import content_digest
from turnlog.store import zstd
from turnlog.store.feed import taking
from turnlog.store.feed.reading import read_archived
from turnlog.store.feed.values import ArchivedSizes, FeedBatch, FeedPosition
from turnlog.store.postgres.store import PostgresStore

FAULTS = (
    *("an unknown table", "a short row", "a value of another kind", "a number that is too large"),
    *("a text where a number belongs", "a name that is another's", "no name", "a body that is no frame", "no body"),
    *(
        "a body that is cut off",
        "two sessions of one name",
        "an unknown level",
        "a role that there is not",
        "two bombs",
    ),
)


@pytest.fixture
def client(store: PostgresStore) -> TestClient:
    return TestClient(hub_app(store))


def rows(store: PostgresStore) -> int:
    """Rows that pushing writes."""
    tables = ("sessions", "messages", "frames", "parts", "memberships", "sources", "settings", "blobs", "projects")
    with psycopg.connect(store.url) as connection:
        return sum(
            row[0] for table in tables for row in connection.execute(f"SELECT count(*) FROM turnlog.{table}".encode())
        )


def test_a_batch_arrives_and_a_repeated_one_changes_nothing(
    client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    machine = Machine(client, "ana/laptop")
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", said("u1", "hello"))
        batch = whole(toy)
        first = machine.push(batch)
        assert (first.status_code, first.json()["stored_as"]) == (200, {})
        progress = {"position": list(batch.until), "generation": 0, "ids_secret": store.ids_secret("ana")}
        assert machine.get("/position?store=s1").json() == progress
        written = rows(store)
        assert machine.push(batch).json()["position"] == list(batch.until)
        assert rows(store) == written
        session = store.session("toy:s")
        assert (session.ownership.user, session.ownership.machine) == ("ana", "laptop")
        assert [source.path for source in store.sources("toy:s")] == [f"ana/laptop:{toy.home / 's.log'}"]


def test_the_answer_to_a_batch_after_a_gap_says_where_the_hub_is(
    client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    machine = Machine(client, "ana/laptop")
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", said("u1", "one"))
        batch = whole(toy)
        machine.push(batch)
        toy.add("s.log", said("u2", "two"))
        late = whole(toy, FeedPosition(99, 99, 0, 0))
        answer = machine.push(msgspec.structs.replace(late, until=FeedPosition(100, 100, 0, 0)))
    assert (answer.status_code, answer.json()["position"]) == (409, list(batch.until))
    assert store.session("toy:s").counts.messages == 1


def spoilt(batch: FeedBatch) -> dict[str, FeedBatch]:
    """Batches of which nothing may be written."""
    messages, sessions = batch.rows["messages"], batch.rows["sessions"]
    key = messages[0][0]
    big = zstandard.ZstdCompressor().compress(bytes(200 << 20))
    names = {**batch.names, "sessions": {number: ("toy", "other") for number in batch.names["sessions"]}}

    def rows_with(table: str, found: list[tuple[Any, ...]]) -> FeedBatch:
        return spoil(batch, rows={**batch.rows, table: found})

    return {
        "an unknown table": spoil(batch, rows={**batch.rows, "users": [(1,)]}),
        "a short row": rows_with("messages", [messages[0][:-1]]),
        "a value of another kind": rows_with("messages", [(*messages[0][:-1], {"a": 1})]),
        "a number that is too large": rows_with("messages", [(*messages[0][:6], 1 << 63, *messages[0][7:])]),
        "a text where a number belongs": rows_with("messages", [(*messages[0][:6], "many", *messages[0][7:])]),
        "a name that is another's": spoil(batch, names=names),
        "no name": spoil(batch, names={**batch.names, "messages": {}}),
        "a body that is no frame": spoil(batch, bodies={key: b"no frame"}),
        "no body": spoil(batch, bodies={}),
        "a body that is cut off": spoil(batch, bodies={key: batch.bodies[key][:-3]}),
        "two sessions of one name": rows_with("sessions", [sessions[0], sessions[0]]),
        "an unknown level": spoil(batch, levels={sessions[0][0]: "everything"}),
        "a role that there is not": rows_with("messages", [(*messages[0][:3], "boss", *messages[0][4:])]),
        "two bombs": spoil(batch, bodies={key: big, key + 1: big}),
    }


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_of_a_wrong_batch_is_written(
    fault: str, client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    machine = Machine(client, "ana/laptop")
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", said("u1", "hello"))
        batch = whole(toy)
    before, wrong = rows(store), spoilt(batch)
    assert set(wrong) == {*FAULTS}
    answer = machine.push(wrong[fault])
    assert answer.status_code == 422, answer.text
    assert store.sessions().items == ()
    assert rows(store) == before
    assert machine.push(batch).status_code == 200


def test_torn_and_foreign_bodies_are_reported(client: TestClient, store: PostgresStore, tmp_path: Path) -> None:
    machine = Machine(client, "ana/laptop")
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", said("u1", "hello"))
        data = zstd.compress(taking.encode(whole(toy)))
    assert machine.push(data[:-5]).status_code == 422
    assert machine.push(b"not zstd").status_code == 422
    assert machine.push(zstd.compress(b"not a batch")).status_code == 422
    assert machine.push(data, **{"Content-Digest": content_digest(b"other")}).status_code == 422
    assert machine.push(data, **{"Content-Encoding": "br"}).status_code == 415
    assert store.sessions().items == ()
    assert machine.push(data, **{"Content-Digest": content_digest(data)}).status_code == 200


def test_bombs_and_huge_bodies_are_refused_early(client: TestClient) -> None:
    machine = Machine(client, "ana/laptop")
    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 30))
    assert len(bomb) < 200_000
    assert machine.push(bomb).status_code == 413
    # Told by its length, before a byte of it is read.
    headers = {**machine.headers, "Content-Length": str(1 << 30)}
    answer = TestClient(client.app).post("/hub/v1/batches?store=s1", content=iter([b"x"]), headers=headers)
    assert answer.status_code == 413
    assert machine.push(bytes(MOST_PACKED + 1)).status_code == 413


def test_who_has_no_right_is_refused(client: TestClient) -> None:
    assert client.get("/hub/v1/position?store=s1").status_code == 401
    assert Machine(client, "ana/reader").push(b"").status_code == 403
    assert Machine(client, "ana/laptop").get("/position").status_code == 422


def test_a_store_of_another_person_is_another_store(client: TestClient, store: PostgresStore, tmp_path: Path) -> None:
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", said("u1", "hello"))
        batch = whole(toy)
        assert Machine(client, "ana/laptop").push(batch).json()["stored_as"] == {}
        other = Machine(client, "ben/desktop")
        assert other.get("/position?store=s1").json()["position"] == [0, 0, 0, 0]
        assert other.push(batch).json()["stored_as"] == {"toy:s": "toy:s~ben"}
    assert store.session("toy:s").ownership.user == "ana"


def test_a_hub_with_too_much_to_do_says_when_to_come_again(store: PostgresStore, tmp_path: Path) -> None:
    load = Load(most=100)
    client = TestClient(hub_app(store, load=load))
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", said("u1", "hello"))
        batch = whole(toy)
    answer = Machine(client, "ana/laptop").push(batch)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    with load.of("1/ana/s1"):
        answer = Machine(client, "ana/laptop").push(batch)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")


def test_log_files_come_back_byte_for_byte(client: TestClient, store: PostgresStore, tmp_path: Path) -> None:
    machine = Machine(client, "ana/laptop")
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", said("u1", "hello"), said("u2", "again"))
        machine.push(whole(toy))
        path = str(toy.home / "s.log")
        sizes = machine.post("/archives/sizes", [path]).json()
        assert sizes == {"ends": {}}
        archived = read_archived(toy.connection, ArchivedSizes({}), path)
        data = msgspec.msgpack.encode([archived])
        headers = machine.headers
        assert client.post("/hub/v1/archives", content=data, headers=headers).status_code == 200
        size = len((toy.home / "s.log").read_bytes())
        assert machine.post("/archives/sizes", [path]).json() == {"ends": {path: [0, size]}}
        answer = machine.get("/sessions/toy:s/logs")
        assert (toy.home / "s.log").read_bytes() in zstd.decompress(answer.content)
        assert machine.get("/sessions/toy:nobody/logs").status_code == 404


def test_large_contents_are_sent_by_their_hash_and_shown_to_who_sent_them(
    client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    text = "walnut " * 20_000
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    ana, ben = Machine(client, "ana/laptop"), Machine(client, "ben/desktop", "s2")
    with ToyStore(tmp_path / "a") as one, ToyStore(tmp_path / "b") as two:
        one.add("a.log", said("u1", text))
        two.add("b.log", said("u2", text))
        ana.push(whole(one))
        assert ana.post("/blobs/missing", {}).json() == {"missing": [sha256]}
        # Messages are there before their large contents.
        assert store.messages("toy:a")[0].message.parts[0] is not None
        assert ana.put(f"/blobs/{sha256}", b"x").status_code == 422
        assert ben.put(f"/blobs/{sha256}", text.encode()).status_code == 404
        assert ana.put(f"/blobs/{sha256}", text.encode()).status_code == 204
        assert ana.post("/blobs/missing", {}).json() == {"missing": []}
        assert getattr(store.messages("toy:a")[0].message.parts[0], "text", "") == text
        # Whoever only knows the hash gets nothing of it, and is not told that it is here.
        ben.push(whole(two))
        assert ben.post("/blobs/missing", {}).json() == {"missing": [sha256]}
        with psycopg.connect(store.url) as connection:
            assert connection.execute("SELECT count(*) FROM turnlog.blob_uses").fetchone() == (1,)
