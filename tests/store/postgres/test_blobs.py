"""Large contents beside the database: deleting loses nothing that is being saved, and no file stays without a name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pytest

from support.toy_store import ToyStore
from turnlog.errors import NotFoundError
from turnlog.hub.blobs import FolderBlobs
from turnlog.store.feed.owners import Owner
from turnlog.store.feed.reading import read_batch
from turnlog.store.feed.values import FeedBatch, FeedPosition
from turnlog.store.postgres import blobs
from turnlog.store.postgres.connection import StatementResult, TeamConnection
from turnlog.store.postgres.store import PostgresStore

ANA, BEN = Owner("ana", "laptop"), Owner("ben", "desktop")
TEXT = b"walnut " * 20_000
SHA256 = hashlib.sha256(TEXT).hexdigest()


class Place:
    """A store with a folder of contents beside it."""

    def __init__(self, store: PostgresStore, folder: Path) -> None:
        self.store = store
        self._folder = folder
        self._blobs = FolderBlobs(folder / "blobs")
        store.database.load_outside = self._blobs.get

    def send(self, owner: Owner, name: str = "", *, forgets: bool = False) -> FeedBatch:
        """Send a session with a large content, without its bytes; return the last batch, or one that forgets it."""
        name = name or owner.user
        with ToyStore(self._folder / name) as toy:
            line = b'{"kind":"text","id":"%b","message":"%b","role":"user","text":"%b"}\n'
            toy.add(f"{name}.log", line % (name.encode(), name.encode(), TEXT))
            batch = _next(toy, FeedPosition())
            self.store.take(name, batch, owner)
            if forgets:
                toy.connection.execute("INSERT INTO tombstones VALUES (?, 1)", (f"toy:{name}",))
                toy.connection.execute("INSERT INTO changes (kind, at) VALUES ('forgotten', 1)")
                toy.connection.commit()
                batch = _next(toy, batch.until)
        return batch

    def put(self, data: bytes) -> None:
        self._blobs.put(self.store.team, SHA256, data)

    def save(self, owner: Owner) -> None:
        self.store.save_blob(owner, SHA256, TEXT, self.put)

    def tidy(self) -> None:
        """What the hub does every few seconds."""
        self.store.drop_garbage(lambda sha256: self._blobs.delete(self.store.team, sha256))

    def files(self) -> list[str]:
        return [path.name for path in (self._folder / "blobs").rglob("*") if path.is_file()]

    def is_whole(self, session: str) -> bool:
        (placed,) = self.store.messages(f"toy:{session}")
        return getattr(placed.message.parts[0], "text", "").encode() == TEXT

    def garbage(self) -> int:
        with psycopg.connect(self.store.url) as connection:
            row = connection.execute("SELECT count(*) FROM turnlog.blob_garbage").fetchone()
        assert row is not None
        return row[0]


def before_changes(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something in the middle of the next transaction, before its first number of a change is drawn."""
    execute, waiting = TeamConnection.execute, [act]

    def act_first(self: TeamConnection, sql: str, parameters: Any = ()) -> StatementResult:
        if sql.startswith("INSERT INTO changes (session_key") and waiting:
            waiting.pop()()
        return execute(self, sql, parameters)

    monkeypatch.setattr(TeamConnection, "execute", act_first)


def _next(toy: ToyStore, after: FeedPosition) -> FeedBatch:
    batch = read_batch(toy.connection, after)
    assert batch is not None
    return batch


@pytest.fixture
def place(store: PostgresStore, tmp_path: Path) -> Place:
    return Place(store, tmp_path)


def test_saved_contents_stay_while_others_forget_and_delete_them(place: Place) -> None:
    place.send(ANA)
    place.save(ANA)
    place.send(BEN)

    def keep(data: bytes) -> None:
        place.put(data)
        place.store.forget("toy:ana")
        place.tidy()

    place.store.save_blob(BEN, SHA256, TEXT, keep)
    assert place.is_whole("ben")
    place.tidy()
    assert (place.files(), place.garbage()) == ([SHA256], 0)
    place.store.forget("toy:ben")
    place.tidy()
    assert (place.files(), place.garbage()) == ([], 0)


def test_the_file_of_a_killed_save_is_removed_and_saved_again(place: Place) -> None:
    place.send(ANA)

    def killed(data: bytes) -> None:
        place.put(data)
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            place.store.save_blob(ANA, SHA256, TEXT, killed)
        assert place.files() == [SHA256]
        place.tidy()
        assert (place.files(), place.garbage()) == ([], 0)
    place.save(ANA)
    place.tidy()
    assert place.is_whole("ana")
    # Killed for one person, it is still what another one has.
    place.send(BEN)
    with pytest.raises(KeyboardInterrupt):
        place.store.save_blob(BEN, SHA256, TEXT, killed)
    place.tidy()
    assert (place.files(), place.is_whole("ana")) == ([SHA256], True)


def test_what_is_tidied_away_before_its_bytes_come_is_announced_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.send(ANA)
    save, answers = blobs.save_outside, list[bool]()

    def tidied_first(*arguments: Any) -> bool:
        if not answers:
            place.tidy()
        answers.append(save(*arguments))
        return answers[-1]

    monkeypatch.setattr(blobs, "save_outside", tidied_first)
    place.save(ANA)
    assert answers == [False, True]
    place.tidy()
    assert (place.is_whole("ana"), place.files(), place.garbage()) == (True, [SHA256], 0)


@pytest.mark.parametrize("how", ["on the hub", "on a machine"])
def test_a_content_that_others_forget_while_it_is_noted_stays(
    place: Place, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = place.send(ANA, forgets=True)
    place.save(ANA)
    place.send(BEN)

    def forget() -> None:
        if how == "on the hub":
            place.store.forget("toy:ana")
        else:
            place.store.take("ana", later, ANA)

    forgetting = Thread(target=forget)

    def begin() -> None:
        forgetting.start()
        forgetting.join(0.3)

    before_changes(monkeypatch, begin)
    place.save(BEN)
    forgetting.join()
    place.tidy()
    assert (place.is_whole("ben"), place.files()) == (True, [SHA256])
    with pytest.raises(NotFoundError):
        place.store.session("toy:ana")


def test_a_content_used_again_while_it_is_forgotten_is_requested(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.send(ANA)
    place.save(ANA)
    before_changes(monkeypatch, lambda: place.store.forget("toy:ana"))
    place.send(ANA, "again")
    place.tidy()
    assert place.store.missing_blobs(ANA) == [(SHA256, len(TEXT))]
    place.save(ANA)
    assert place.is_whole("again")


def test_bytes_beside_a_content_that_is_in_the_database_go(place: Place) -> None:
    place.send(ANA)
    place.store.save_blob(ANA, SHA256, TEXT)
    place.send(BEN)
    place.save(BEN)
    place.tidy()
    assert (place.files(), place.garbage()) == ([], 0)
    assert place.is_whole("ana")
    assert place.is_whole("ben")


def test_saving_the_same_bytes_again_keeps_the_mark_of_forgetting(place: Place) -> None:
    place.send(ANA)
    place.save(ANA)
    # The second one was announced while the first was under way.
    with psycopg.connect(place.store.url) as connection:
        connection.execute(
            "INSERT INTO turnlog.blob_garbage (team_key, sha256) VALUES (%s, %s)",
            (place.store.team, bytes.fromhex(SHA256)),
        )
    place.save(ANA)
    assert place.garbage() == 1
    place.tidy()
    assert (place.is_whole("ana"), place.files(), place.garbage()) == (True, [SHA256], 0)
