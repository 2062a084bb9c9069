"""`/readyz` says whether the hub can write, before a machine or a person has tried in vain."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from starlette.testclient import TestClient

from support.hubs import Hub, hub, save_session
from support.postgres_stores import PostgresDatabases
from turnlog.errors import NotFoundError
from turnlog.hub.blobs import NO_BLOBS, BlobStoreError, FolderBlobs, WatchedBlobs


@pytest.fixture(autouse=True)
def checked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.server.health.KEPT_SECONDS", 0.0)
    monkeypatch.setattr("turnlog.hub.readiness.BLOB_SECONDS", 0.0)


def run(found: Hub, sql: str) -> None:
    with psycopg.connect(found.url, autocommit=True) as connection:
        connection.execute(sql.encode())


FULL = """
CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE 'could not extend file "base/1/2": No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON turnlog.schema_version EXECUTE FUNCTION no_room();
CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON turnlog.sessions EXECUTE FUNCTION no_room()
"""


def test_a_hub_whose_database_has_no_room_is_not_ready_and_is_read(new_hub: Hub) -> None:
    ana = new_hub.browser("Ana", "owner")
    session = save_session(ana, "a", "walnut")
    assert ana.get("/readyz").json() == {"status": "ok"}
    run(new_hub, FULL)
    answer = ana.get("/readyz")
    assert (answer.status_code, answer.json()["reason"]) == (503, "the disk of the database is full")
    for _ in range(3):
        answer = ana.post("/api/sessions", json={"external_id": "b", "agent": "mine"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (507, "no_space"), answer.text
        assert int(answer.headers["Retry-After"]) > 0
        assert ana.get(f"/api/sessions/{session}").status_code == 200
    run(new_hub, "DROP FUNCTION no_room CASCADE")
    assert ana.get("/readyz").json() == {"status": "ok"}


def test_a_hub_whose_database_is_for_reading_only_is_not_ready(new_hub: Hub) -> None:
    client = new_hub.client()
    # Those that are open have the setting of before.
    run(
        new_hub,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());"
        " PERFORM pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid(); END $$",
    )
    reason = "the database cannot be used: the hub's log has the reason"
    answer = wait_for(client, {"status": "not ready", "reason": reason})
    assert answer == 503


def wait_for(client: TestClient, expected: object) -> int:
    """The status of `/readyz` once it says this."""
    end = time.monotonic() + 20
    while (answer := client.get("/readyz")).json() != expected:
        assert time.monotonic() < end, answer.text
        time.sleep(0.02)
    return answer.status_code


def test_one_check_holds_for_some_seconds(new_hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.server.health.KEPT_SECONDS", 60.0)
    client = new_hub.client()

    def written() -> object:
        return new_hub.row("SELECT xmin::text FROM turnlog.schema_version")

    before = written()
    assert client.get("/readyz").status_code == 200
    after = written()
    assert after != before
    assert client.get("/readyz").status_code == 200
    assert written() == after


def test_an_unwritable_blob_folder_is_noticed_before_it_is_used(databases: PostgresDatabases, tmp_path: Path) -> None:
    folder = tmp_path / "blobs"
    with hub(databases, tmp_path, blobs=FolderBlobs(folder)) as found:
        client = found.client()
        assert wait_for(client, {"status": "ok"}) == 200
        take_away(folder)
        assert wait_for(client, {"status": "degraded", "blobs": NO_BLOBS}) == 200
        folder.unlink()
        assert wait_for(client, {"status": "ok"}) == 200


def take_away(folder: Path) -> None:
    """Put a file where a folder is, in which a check may be under way."""
    while not folder.is_file():
        with suppress(OSError):
            shutil.rmtree(folder)
            folder.write_text("away")


class FullBlobs:
    """Blobs on a full disk: what is there can be read."""

    def put(self, team: int, sha256: str, data: bytes) -> None:
        raise BlobStoreError("cannot write a blob: No space left on device")

    def get(self, team: int, sha256: str) -> bytes:
        if sha256 != "there":
            raise NotFoundError(f"there is no blob {sha256}")
        return b"walnut"

    def delete(self, team: int, sha256: str) -> None:
        pass


def test_that_old_contents_are_read_says_nothing_of_room_for_new_ones() -> None:
    blobs = WatchedBlobs(FullBlobs())
    blobs.check()
    assert not blobs.is_usable
    assert blobs.get(1, "there") == b"walnut"
    with pytest.raises(NotFoundError):
        blobs.get(1, "gone")
    blobs.delete(1, "gone")
    assert not blobs.is_usable
