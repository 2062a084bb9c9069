"""What comes over the sync boundary is believed in nothing: it takes bounded memory, and touches nothing of others."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
import zstandard
from starlette.testclient import TestClient

from support.hub_double import hub_app
from support.hubs import Hub, save_counted, save_session
from support.sync_machines import Machine, said, spoil, whole
from support.toy_store import ToyStore
from turnlog.hub.sync import columns, decoding
from turnlog.hub.sync.columns import KINDS
from turnlog.hub.sync.decoding import TooLargeError, WrongBatchError, decode_archived, decode_batch, unpack
from turnlog.hub.sync.receiving import Load
from turnlog.store import zstd
from turnlog.store.feed import taking
from turnlog.store.feed.reading import read_archived
from turnlog.store.feed.values import IDENTITY, TABLES, ArchivedSizes, FeedBatch, FeedPosition
from turnlog.store.postgres import archives
from turnlog.store.postgres.search import SearchReplica
from turnlog.store.postgres.store import PostgresStore


@pytest.fixture
def client(store: PostgresStore) -> TestClient:
    return TestClient(hub_app(store))


def until(found: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        time.sleep(0.05)


def toy_batch(folder: Path, *lines: bytes, name: str = "s.log") -> FeedBatch:
    with ToyStore(folder) as toy:
        toy.add(name, *(lines or (said("u1", "hello"),)))
        return whole(toy)


def with_value(batch: FeedBatch, table: str, column: str, value: object) -> FeedBatch:
    """The batch with a value in the first row of a table, which gets one if there is none."""
    at = TABLES[table].index(column)
    first, *others = batch.rows[table]
    return spoil(batch, rows={**batch.rows, table: [(*first[:at], value, *first[at + 1 :]), *others]})


def every_row(store: PostgresStore) -> dict[str, int]:
    """Table -> how many rows it has."""
    with psycopg.connect(store.url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'turnlog'").fetchall()
        counts = [
            connection.execute(f"SELECT '{name}', count(*) FROM turnlog.{name}".encode()).fetchall()[0]
            for (name,) in tables
        ]
        return dict(counts)


# -- values


def test_every_column_has_a_kind_and_is_null_only_where_the_table_says(store: PostgresStore) -> None:
    assert {table: set(kinds) for table, kinds in KINDS.items()} == {
        table: set(names) for table, names in TABLES.items()
    }
    with psycopg.connect(store.url) as connection:
        for table, kinds in KINDS.items():
            rows = connection.execute(
                "SELECT attname, attnotnull FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0",
                (f"turnlog.{table}",),
            )
            needed = {name for name, is_needed in rows if is_needed and name in kinds}
            assert needed == {name for name, kind in kinds.items() if not _takes_none(kind.type)}, table


def _takes_none(type: Any) -> bool:
    try:
        return msgspec.convert(None, type) is None
    except msgspec.ValidationError:
        return False


WRONG: tuple[tuple[str, str, object], ...] = (
    ("sessions", "title", 5),
    ("sessions", "title", "x" * 10_001),
    ("sessions", "created_at", 1 << 62),
    ("sessions", "cost", 1 << 62),
    ("sessions", "titles", "[1]"),
    ("sessions", "titles", '{"generated": 5}'),
    ("sessions", "titles", "{"),
    ("sessions", "titles", '{"generated": "\\ud800"}'),
    ("sessions", "metadata", "[]"),
    ("sessions", "metadata", '{"a":' * 800 + "1" + "}" * 800),
    ("sessions", "totals", '{"a": 1}'),
    ("sessions", "relationship", "boss"),
    ("sessions", "shares", 70),
    ("sessions", "native", 2),
    ("sessions", "cost", -1),
    ("sessions", "active_ms", -1),
    ("messages", "output", -1),
    ("messages", "cost", -1),
    ("parts", "duration_ms", -1),
    ("parts", "text_size", -1),
    ("memberships", "copied", 2),
    ("memberships", "turn", -1),
    ("messages", "created_at", -(1 << 62)),
    ("messages", "input", 1 << 60),
    ("messages", "role", "boss"),
    ("messages", "agent", "Toy; drop"),
    ("parts", "type", "bomb"),
    ("parts", "text_size", "many"),
    ("memberships", "fate", "doomed"),
    ("memberships", "records", b"\xc1"),
    ("memberships", "record_ids", b"W\xc1"),
    ("memberships", "position", 1.5),
    ("memberships", "position", -(1 << 63)),
    ("memberships", "position", 1 << 62),
    ("sources", "session_id", "toy:\0s"),
    ("sources", "agent", "../../etc"),
)


@pytest.mark.parametrize(("table", "column", "value"), WRONG)
def test_a_wrong_value_is_named_and_nothing_is_written(
    table: str, column: str, value: object, client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    batch, before = toy_batch(tmp_path), every_row(store)
    wrong = with_value(batch, table, column, value)
    answer = Machine(client, "ana/laptop").push(wrong)
    assert answer.status_code == 422, answer.text
    message = answer.json()["error"]["message"]
    if (table, column) != ("messages", "agent"):  # its name says it first, or the row
        assert f"row 0 of {table}" in message
        assert column in message
    assert every_row(store) == before


def test_texts_that_are_no_text_and_bad_bodies_are_named(
    client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    machine, batch = Machine(client, "ana/laptop"), toy_batch(tmp_path)
    key = batch.rows["messages"][0][0]
    before = every_row(store)
    data = taking.encode(with_value(batch, "sessions", "title", "QQQ")).replace(b"QQQ", b"\xed\xa0\x80")
    answer = machine.push(zstd.compress(data))
    assert (answer.status_code, "row 0 of sessions: title" in answer.text) == (422, True)
    for body in (b"{", b"[" * 5000, b'{"a":' * 900 + b"1" + b"}" * 900, b'{"id": "\xff"}', b"1],[2"):
        answer = machine.push(spoil(batch, bodies={key: zstd.compress(body)}))
        assert answer.status_code == 422, (body, answer.text)
    assert every_row(store) == before
    assert machine.push(batch).status_code == 200


def event_rows(batch: FeedBatch, **values: object) -> FeedBatch:
    facts: dict[str, object] = {
        **dict.fromkeys(TABLES["events"]),
        **{"session_key": batch.rows["sessions"][0][0], "position": 1, "external_id": "e1", "type": "record"},
        **{"known": 1, "generation": 0, **values},
    }
    return spoil(batch, rows={**batch.rows, "events": [tuple(facts.values())]})


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("data", b"{"),
        ("data", b'{"a": "\xff"}'),
        ("data", b"1],[2"),
        ("data", zstd.compress(b"{")),
        ("data", zstd.compress(b"{}")[:-2]),
        ("data", zstandard.ZstdCompressor().compress(bytes(1 << 28))),
        ("body", zstd.compress(b'{"type": "compaction"')),
        ("body", b"no frame"),
        ("type", "compaction"),
    ],
)
def test_json_of_events_is_looked_at(
    column: str, value: object, client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    batch, machine = toy_batch(tmp_path), Machine(client, "ana/laptop")
    before = every_row(store)
    answer = machine.push(event_rows(batch, **{column: value}))
    assert answer.status_code == 422, answer.text
    assert f"row 0 of events: {column}" in answer.text
    assert every_row(store) == before
    assert machine.push(event_rows(batch, data=b'{"a": 1}')).status_code == 200
    assert len(store.events("toy:s")) == 1


def test_names_that_many_share_are_not_left_behind(client: TestClient, store: PostgresStore, tmp_path: Path) -> None:
    batch, before = toy_batch(tmp_path), every_row(store)
    names = {**batch.names, "models": {77: ("a-model-of-nobody",)}, "projects": {78: ("/of/nobody",)}}
    rows = {
        **batch.rows,
        "models": [(77, "a-model-of-nobody")],
        "projects": [(78, "/of/nobody", "nobody", None, None, None)],
    }
    full = spoil(batch, names=names, rows=rows)
    machine = Machine(client, "ana/laptop")
    late = spoil(full, after=batch.until, until=batch.until._replace(sequence=batch.until.sequence + 1))
    assert machine.push(late).status_code == 409
    key = batch.rows["messages"][0][0]
    assert machine.push(spoil(full, bodies={key: batch.bodies[key][:-3]})).status_code == 422
    assert every_row(store) == before
    assert machine.push(full).status_code == 200


# -- memory


def weighed() -> tuple[list[int], Callable[[int], None]]:
    taken: list[int] = []
    return taken, taken.append


def packed(value: object) -> bytes:
    return msgspec.msgpack.encode(value)


EMPTY = {"after": [0, 0, 0, 0], "until": [1, 1, 0, 0], "has_more": False}


def array(count: int, element: bytes) -> bytes:
    return b"\xdd" + count.to_bytes(4, "big") + element * count


def pairs(count: int, pair: bytes) -> bytes:
    return b"\xdf" + count.to_bytes(4, "big") + pair * count


BOMBS: dict[str, dict[str, object]] = {
    "rows of nothing": {"rows": {"streams": msgspec.Raw(array(20 << 20, b"\x90"))}},
    "rows of maps": {"rows": {"streams": msgspec.Raw(array(10 << 20, b"\x80"))}},
    "many small rows": {"rows": {"models": msgspec.Raw(array(10 << 20, b"\x92\x01\xa1a"))}},
    "names": {"names": {"models": msgspec.Raw(pairs(10 << 20, b"\x01\x91\xa1a"))}},
    "bodies": {"bodies": msgspec.Raw(pairs(10 << 20, b"\x01\xc4\x00"))},
    "keys": {"complete": msgspec.Raw(array(20 << 20, b"\x01"))},
    "ids": {"forgotten": msgspec.Raw(array(20 << 20, b"\xa1a"))},
    "copies": {"copies": {1: bytes(40 << 20)}},
    "deep arrays": {"rows": {"streams": msgspec.Raw(b"\x91" * (20 << 20) + b"\x90")}},
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_of_values_is_refused_before_it_is_made(bomb: str) -> None:
    data = packed({**EMPTY, **BOMBS[bomb]}) if bomb != "deep arrays" else b"\x83" + b"\x91" * (20 << 20)
    taken, weigh = weighed()
    # The process may have used more before: only what is made from now on counts.
    tracemalloc.start()
    try:
        with pytest.raises((TooLargeError, WrongBatchError)):
            decode_batch(data, weigh)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert taken == []


def test_a_stream_is_unpacked_no_further_than_its_limit() -> None:
    taken, weigh = weighed()
    with pytest.raises(TooLargeError, match="a body has at most"):
        unpack(zstandard.ZstdCompressor(level=19).compress(bytes(1 << 30)), weigh)
    assert sum(taken) <= decoding.MOST_UNPACKED
    wide = zstandard.ZstdCompressionParameters(window_log=27)
    large = zstandard.ZstdCompressor(compression_params=wide)
    made = large.compressobj()
    with pytest.raises(WrongBatchError, match="needs more memory"):
        unpack(made.compress(b"x" * 100) + made.flush(), weigh)


def test_what_is_decoded_counts_as_what_is_under_way(store: PostgresStore, tmp_path: Path) -> None:
    batch = toy_batch(tmp_path)
    data = zstd.compress(taking.encode(batch))
    client = TestClient(hub_app(store, load=Load(most=len(data) + 100)))
    answer = Machine(client, "ana/laptop").push(data)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")


def test_frames_of_log_files_are_what_they_say(client: TestClient, store: PostgresStore, tmp_path: Path) -> None:
    machine = Machine(client, "ana/laptop")
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", said("u1", "hello"))
        machine.push(whole(toy))
        archived = read_archived(toy.connection, ArchivedSizes({}), str(toy.home / "s.log"))
    assert archived is not None
    generation, start, length, frame = archived.frames[0]
    bomb = zstandard.ZstdCompressor().compress(bytes(200 << 20))
    for frames, status in (
        ([(generation, start, length, bomb)], 422),
        ([(generation, start, 200 << 20, bomb)], 413),
        ([(generation, start, length, b"no frame")], 422),
        ([(generation, start, -1, frame)], 422),
        ([(generation, start, length, frame)], 200),
    ):
        data = packed([msgspec.structs.replace(archived, frames=frames)])
        answer = client.post("/hub/v1/archives", content=data, headers=machine.headers)
        assert answer.status_code == status, answer.text
    with pytest.raises(TooLargeError):
        decode_archived(array(20 << 20, b"\x80"), lambda size: None)


def test_json_of_many_values_is_refused() -> None:
    columns.check_json(b"[" + b"{}," * 1000 + b"{}]")
    with pytest.raises(ValueError, match="brackets"):
        columns.check_json(b"[" + b"{}," * (1 << 20) + b"{}]")


# -- what others have


def words(store: PostgresStore, session_id: str) -> list[str]:
    return [getattr(placed.message.parts[0], "text", "") for placed in store.messages(session_id)]


def test_people_without_a_machine_do_not_share_a_file(client: TestClient, store: PostgresStore, tmp_path: Path) -> None:
    ana, ben = Machine(client, "ana/browser"), Machine(client, "ben/browser")
    ana.push(toy_batch(tmp_path, said("u1", "of ana"), name="a.log"))
    ben.push(toy_batch(tmp_path / "ben", said("u1", "of ben"), name="b.log"))
    path = str(tmp_path / "home/shared.log")
    for machine, session in ((ana, "toy:a"), (ben, "toy:b")):
        batch = toy_batch(tmp_path / f"more of {session[-1]}", said(f"m{session[-1]}", "more"), name="more.log")
        batch = with_value(batch, "sources", "path", path)
        key = batch.rows["sources"][0][0]
        assert (
            machine.push(spoil(batch, generation=1, names={**batch.names, "sources": {key: (path,)}})).status_code
            == 200
        )
    with psycopg.connect(store.url) as connection:
        rows = connection.execute(
            "SELECT path FROM turnlog.sources WHERE path LIKE '%shared.log' ORDER BY 1"
        ).fetchall()
    assert rows == [(f"ana/browser:{path}",), (f"ben/browser:{path}",)]


def test_who_comes_second_with_an_id_gets_a_session_beside_the_first(
    client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    squatter, owner = Machine(client, "ben/desktop"), Machine(client, "ana/laptop", "s2")
    with ToyStore(tmp_path / "ana") as ana:
        ana.add("s.log", said("u1", "of ana"))
        ids = ("toy:s", "toy:s~ana")
        for number, session_id in enumerate(ids):
            squatted = toy_batch(tmp_path / session_id, said("u1", "of ben"), name=f"{session_id[4:]}.log")
            assert squatter.push(spoil(squatted, generation=number + 1)).status_code == 200
        assert words(store, "toy:s") == ["of ben"]
        answer = owner.push(whole(ana))
        assert (answer.status_code, answer.json()["stored_as"]) == (200, {"toy:s": "toy:s~ana~2"})
        assert words(store, "toy:s~ana~2") == ["of ana"]
        ana.add("s.log", said("u2", "and more"))
        position = msgspec.convert(owner.get("/position?store=s2").json()["position"], type(whole(ana).after))
        assert owner.push(whole(ana, position)).status_code == 200
        assert words(store, "toy:s~ana~2") == ["of ana", "and more"]
        assert [each.path for each in store.sources("toy:s~ana~2")] == [f"ana/laptop:{ana.home / 's.log'}"]
        # Another machine of the same person has the same session.
        again = toy_batch(tmp_path / "copy", said("u1", "of ana"), said("u2", "and more"), said("u3", "last"))
        second = Machine(client, "ana/tower", "s3")
        # It is asked for the messages by the id that it knows.
        assert second.push(again).json()["copies"] == ["toy:s"]
        for session_id in ids:
            assert words(store, session_id) == ["of ben"]
        # What is forgotten is one's own.
        until = position._replace(sequence=1 << 40, message_sequence=1 << 40)
        at = msgspec.convert(owner.get("/position?store=s2").json()["position"], type(position))
        gone = FeedBatch(after=at, until=until, has_more=False, forgotten=["toy:s", "toy:other"])
        assert owner.push(gone).status_code == 200
    assert store.find_session("toy", "s~ana~2") is None
    assert words(store, "toy:s") == ["of ben"]


@pytest.mark.parametrize("field", ["forgotten", "withdrawn"])
def test_nobody_deletes_what_somebody_else_pushed(
    field: str, client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    ana, ben = Machine(client, "ana/laptop"), Machine(client, "ben/desktop", "s2")
    with ToyStore(tmp_path / "ana") as toy:
        toy.add("s.log", said("u1", "of ana"))
        assert ana.push(whole(toy)).status_code == 200
        mine = toy_batch(tmp_path / "ben", said("u1", "of ben"), name="b.log")
        assert ben.push(spoil(mine, **{field: ["toy:s", "toy:later"]})).status_code == 200
        toy.add("later.log", said("u5", "later"))
        position = whole(toy).after
        at = msgspec.convert(ana.get("/position?store=s1").json()["position"], type(position))
        assert ana.push(whole(toy, at)).status_code == 200
    assert words(store, "toy:s") == ["of ana"]
    assert words(store, "toy:later") == ["later"]


def test_forgetting_deletes_no_file_of_others_that_has_the_id(
    client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    """A list of all prompts of somebody, with an id that somebody else has chosen to be in it."""
    ana, ben = Machine(client, "ana/laptop"), Machine(client, "ben/desktop", "s2")
    with ToyStore(tmp_path / "ana") as toy:
        toy.add("s.log", said("u1", "of ana"))
        batch = whole(toy)
        path = str(toy.home / "s.log")
        archived = read_archived(toy.connection, ArchivedSizes({}), path)
    # The same file, as one that is about many sessions.
    batch = with_value(with_value(batch, "sources", "kind", "sidecar"), "sources", "session_id", None)
    assert ana.push(batch).status_code == 200
    headers = ana.headers
    assert client.post("/hub/v1/archives", content=packed([archived]), headers=headers).status_code == 200
    size = ana.post("/archives/sizes", [path]).json()["ends"][path][1]
    assert size > 0
    assert ben.push(toy_batch(tmp_path / "ben", said("u7", "bait"), name="hello.log")).status_code == 200
    with psycopg.connect(store.url) as connection:
        connection.execute("UPDATE turnlog.sessions SET external_id = 'u1' WHERE external_id = 'hello'")
        connection.execute("UPDATE turnlog.session_owners SET session_id = 'toy:u1' WHERE session_id = 'toy:hello'")
    store.forget("toy:u1")
    assert ana.post("/archives/sizes", [path]).json()["ends"] == {path: [0, size]}


def test_a_list_with_a_forgotten_session_is_not_kept(client: TestClient, store: PostgresStore, tmp_path: Path) -> None:
    ana, ben = Machine(client, "ana/laptop"), Machine(client, "ben/desktop", "s2")
    with ToyStore(tmp_path / "ana") as toy:
        toy.add("prompts.log", said("u1", "of walnut and of hazel"))
        batch = whole(toy)
        path = str(toy.home / "prompts.log")
        archived = read_archived(toy.connection, ArchivedSizes({}), path)
    batch = with_value(with_value(batch, "sources", "kind", "sidecar"), "sources", "session_id", None)
    assert ana.push(batch).status_code == 200

    def kept() -> int:
        assert client.post("/hub/v1/archives", content=packed([archived]), headers=ana.headers).status_code == 200
        with psycopg.connect(store.url) as connection:
            row = connection.execute("SELECT coalesce(sum(length), 0) FROM turnlog.archive").fetchone()
        assert row is not None
        return row[0]

    # Ana's are in the middle of words there, or are no words.
    names = [(ben, "hazel", 1), (ana, "walnut", 2), (ana, "nut", 3), (ana, "haz", 4), (ana, "of-walnut", 5)]
    for machine, name, number in names:
        session = toy_batch(tmp_path / name, said("u7", "bait"), name=f"{name}.log")
        assert machine.push(spoil(session, generation=number)).status_code == 200
    size = kept()
    store.forget("toy:hazel")
    for name in ("nut", "haz", "of-walnut"):
        store.forget(f"toy:{name}")
    assert kept() == size > 0
    store.forget("toy:walnut")
    assert kept() == 0


@pytest.mark.parametrize(
    ("data", "name", "is_named"),
    [
        (b'{"session_id": "4f1"}', "4f1", True),
        (b"logs/4f1.jsonl", "4f1", True),
        (b"4f1", "4f1", True),
        (b'{"session_id": "4f12"}', "4f1", False),
        (b'{"session_id": "14f1"} 4f1-2 4f1_2', "4f1", False),
        (b'{"session_id": "14f1"} 4f1', "4f1", True),
        ("naïve4f1".encode(), "naïve", False),
        ("über4f1ü".encode(), "4f1", False),
        (b'"\\u00fcber"', "über", True),
        (b"a.b+c", "a.b+c", True),
        (b"axb+c", "a.b+c", False),
        (b"4f1", "4f1~u-00000000000000aa", True),
        (b"anything", "", False),
    ],
)
def test_a_list_names_a_session_by_its_whole_id(data: bytes, name: str, is_named: bool) -> None:
    assert archives.names_any(data, archives.forms_of([name])) == is_named


def test_a_log_without_a_session_in_its_path_restores_nothing(
    client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    """Gemini CLI's chats, and subagents of older versions of Claude Code: a broken line sends the source alone."""
    ana = Machine(client, "ana/laptop")
    with ToyStore(tmp_path / "ana") as toy:
        toy.add("walnut.log", said("u1", "of walnut"))
        batch = with_value(whole(toy), "sources", "session_id", None)
        archived = read_archived(toy.connection, ArchivedSizes({}), str(toy.home / "walnut.log"))

    def kept() -> int:
        assert client.post("/hub/v1/archives", content=packed([archived]), headers=ana.headers).status_code == 200
        with psycopg.connect(store.url) as connection:
            return len(connection.execute("SELECT data FROM turnlog.archive").fetchall())

    assert ana.push(batch).status_code == 200
    assert kept() == 1
    store.forget("toy:walnut")
    alone = {table: rows if table == "sources" else [] for table, rows in batch.rows.items()}
    until = batch.until._replace(sequence=batch.until.sequence + 1)
    names = {"sources": batch.names["sources"]}
    again = spoil(batch, rows=alone, names=names, bodies={}, levels={}, complete=[], whole=[], billed={})
    again = msgspec.structs.replace(again, after=batch.until, until=until)
    assert ana.push(again).status_code == 200
    assert kept() == 0


# -- rows that are there


DAMAGE = (
    "UPDATE turnlog.sessions SET titles = '[1]', metadata = '{', totals = 'x' WHERE external_id = 'bad'",
    "UPDATE turnlog.sessions SET created_at = 1::bigint << 62, updated_at = 1::bigint << 62 WHERE external_id = 'bad'",
    "UPDATE turnlog.sessions SET titles = '{\"a\": 5}', title = chr(27) || '[31m' WHERE external_id = 'bad'",
    "UPDATE turnlog.messages SET created_at = -(1::bigint << 62) WHERE external_id = 'bad-1'",
    "UPDATE turnlog.frames SET data = 'torn' WHERE key ="
    " (SELECT frame_key FROM turnlog.messages WHERE external_id = 'bad-1')",
    "UPDATE turnlog.usage SET quarter_hour = quarter_hour + (1::bigint << 40) WHERE session_key ="
    " (SELECT key FROM turnlog.sessions WHERE external_id = 'bad')",
    "INSERT INTO turnlog.annotations (team_key, session_id, tags, pins, changed_at)"
    " VALUES (1, 'turnlog:bad', '{', '5', 1::bigint << 62)",
)

READS = (
    "/api/sessions",
    "/api/sessions?tag=x",
    "/api/usage?by=day",
    "/api/usage?by=month",
    "/api/usage?by=session",
    "/api/usage?by=hour",
    "/api/search?q=answer",
    "/api/insights",
    "/hub/v1/usage?by=day",
    "/hub/v1/usage?by=person",
    "/hub/v1/budgets",
    "/metrics",
)


def test_bad_rows_that_are_there_end_nothing_for_others(new_hub: Hub) -> None:
    owner = new_hub.browser("Ana", "owner")
    bad, good = save_session(owner, "bad", "walnut"), save_session(owner, "good", "hazel")
    save_counted(owner, bad, "bad-9", input=5, output=5)
    save_counted(owner, good, "good-9", input=5, output=5)
    owner.post("/hub/v1/budgets", json={"scope": "team", "subject": "", "limit": 10})
    owner.patch("/hub/v1/rules", json={"smallest_group": 1})
    until(lambda: owner.get("/api/search?q=hazel").json()["items"])
    for number, statement in enumerate(DAMAGE):
        with psycopg.connect(new_hub.url) as connection:
            connection.execute(statement.encode())
            # As if it had come with a push: who follows the changes reads it.
            (seq,) = connection.execute(
                "INSERT INTO turnlog.changes (team_key, session_key, kind, at)"
                " SELECT 1, key, 'session', 1 FROM turnlog.sessions WHERE external_id = 'bad' RETURNING seq"
            ).fetchone() or (0,)
            connection.execute("UPDATE turnlog.messages SET changed_seq = %s WHERE external_id LIKE 'bad%%'", (seq,))
        word = f"filbert{number}"
        save_session(owner, f"later{number}", word)
        until(lambda word=word: owner.get(f"/api/search?q={word}").json()["items"])
        for path in READS:
            answer = owner.get(path)
            assert answer.status_code == 200, (statement, path, answer.text)
        assert '"turnlog:good"' in owner.get("/api/sessions").text
        assert owner.get("/api/search?q=hazel").json()["items"], statement


def test_a_hostile_title_and_the_edges_of_time_are_indexed(
    client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    machine = Machine(client, "ana/laptop")
    title = "\x1b[31m" * 500 + "\u202e" + "a\u0301" * 1000 + "\0" + "\U0010ffff" * 100
    batch = toy_batch(tmp_path, said("u1", "walnut"))
    batch = with_value(batch, "sessions", "title", title)
    for at in (-62_135_596_800_000, 253_402_300_799_999):
        for column in ("created_at", "updated_at"):
            batch = with_value(batch, "sessions", column, at)
        batch = with_value(batch, "messages", "created_at", at)
        batch = spoil(batch, generation=batch.generation + 1)
        assert machine.push(batch).status_code == 200
        with SearchReplica(store, tmp_path) as replica:
            replica.follow()
            assert [hit.message_id for hit in replica.search("walnut").hits] == ["u1"]
        assert [each.id for each in store.sessions().items] == ["toy:s"]
        store.usage("day")


NASTY: tuple[object, ...] = (
    *(None, "", "\0", "\x1b]0;x\x07", "x" * 5000, "{", "[]", "toy:s", "../..", -1, 0, 1, 9, 1 << 40, (1 << 63) - 1),
    *(-(1 << 63), 1 << 63, 1.5, True, b"", b"\xc1", b"\x28\xb5\x2f\xfd", [], {}, "\U0010ffff", "a:b:c", "~", ":"),
)


@pytest.mark.parametrize("seed", range(3))
def test_no_value_in_any_column_ends_more_than_its_own_push(
    seed: int, client: TestClient, store: PostgresStore, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    good = toy_batch(tmp_path / "good", said("g1", "walnut"), name="good.log")
    assert Machine(client, "ana/laptop").push(good).status_code == 200
    batch = toy_batch(tmp_path / "bad", said("u1", "hello"), said("u2", "hazel"), name="bad.log")
    tables = [table for table in TABLES if batch.rows.get(table)]
    taken = 0
    for number in range(100):
        table = chance.choice(tables)
        column = chance.choice(TABLES[table])
        wrong = with_value(batch, table, column, chance.choice(NASTY))
        if chance.random() < 0.3 and table in IDENTITY and column in IDENTITY[table]:
            # A row that says the same as its name.
            places = [TABLES[table].index(each) for each in IDENTITY[table]]
            named = {row[0]: tuple([row[at] for at in places]) for row in wrong.rows[table]}
            wrong = spoil(wrong, names={**wrong.names, table: {**wrong.names[table], **named}})
        wrong = spoil(wrong, generation=number + 1, after=FeedPosition(), copies={})
        answer = Machine(client, f"ben/m{seed}", f"store {seed}").push(wrong)
        assert answer.status_code in (200, 409, 422), (table, column, answer.text)
        taken += answer.status_code == 200
    assert taken
    with SearchReplica(store, tmp_path) as replica:
        replica.follow()
        assert [hit.message_id for hit in replica.search("walnut").hits] == ["g1"]
    assert "toy:good" in [each.id for each in store.sessions().items]
    for by in ("day", "hour", "month", "session", "model"):
        store.usage(by)
    assert words(store, "toy:good") == ["walnut"]
