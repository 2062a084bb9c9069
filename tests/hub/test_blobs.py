"""Large contents beside the database: in a folder, and in an S3-compatible store that is a real one."""

from __future__ import annotations

import hashlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from starlette.testclient import TestClient

from support.hub_double import hub_app
from support.hubs import hub
from support.postgres_stores import PostgresDatabases
from support.toy_store import ToyStore
from turnlog.errors import NotFoundError, StoreError
from turnlog.hub.blobs import NO_BLOBS, BlobStore, BlobStoreError, FolderBlobs, open_blobs
from turnlog.hub.sync import routes
from turnlog.store import zstd
from turnlog.store.feed import taking
from turnlog.store.feed.reading import read_batch
from turnlog.store.feed.values import FeedPosition
from turnlog.store.postgres.store import PostgresStore

TEXT = b"walnut " * 20_000
SHA256 = hashlib.sha256(TEXT).hexdigest()


_TO_GRPC = 10_000
"""From one of SeaweedFS' ports to that of the same service for gRPC."""


class Weed:
    """SeaweedFS with an S3 gateway, on this machine only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = Path(sys.executable).parent / "weed"
        self._ports = {part: free_port() for part in ("master", "volume", "filer")}
        ports = [f"-{part}.port={port}" for part, port in self._ports.items()]
        options = ("-s3", f"-s3.port={self.port}", "-master.volumeSizeLimitMB=64", "-volume.max=20")
        options = (f"-dir={self._folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", *options)
        self._process = subprocess.Popen(
            [program, "server", *options, *ports],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def end(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(20)
            self._process = None
            # It puts its sockets into this folder whatever TMPDIR says, and leaves them when it is killed.
            for port in (self.port, *self._ports.values()):
                for number in (port, port + _TO_GRPC):
                    for path in Path("/tmp").glob(f"seaweedfs-*-{number}.sock"):
                        path.unlink()


def free_port() -> int:
    # Its gRPC port has to fit below 65536.
    while True:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        if port < 50_000:
            return port
        with socket.socket() as lower:
            try:
                lower.bind(("127.0.0.1", port - 20_000))
            except OSError:
                continue
            return port - 20_000


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlobStore]:
    weed = Weed(tmp_path_factory.mktemp("weed"))
    weed.start()
    patch = pytest.MonkeyPatch()
    patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{weed.port}")
    patch.setenv("AWS_ACCESS_KEY_ID", "any")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    patch.setenv("AWS_REGION", "us-east-1")
    try:
        blobs = open_blobs("s3://turnlog-tests/some/prefix")
        make_bucket(weed.port)
        until = time.monotonic() + 60
        while True:
            try:
                blobs.put(1, "0" * 64, b"first")
                break
            except StoreError:
                assert time.monotonic() < until
                time.sleep(0.5)
        yield blobs
    finally:
        patch.undo()
        weed.end()


def make_bucket(port: int) -> None:
    import http.client

    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("PUT", "/turnlog-tests")
            status = connection.getresponse().status
            connection.close()
        except OSError:
            status = 0
        if status == 200:
            return
        time.sleep(0.3)
    raise AssertionError("SeaweedFS did not start")


def check(blobs: BlobStore) -> None:
    blobs.put(1, SHA256, TEXT)
    blobs.put(1, SHA256, TEXT)
    assert blobs.get(1, SHA256) == TEXT
    with pytest.raises(NotFoundError):
        blobs.get(2, SHA256)
    blobs.delete(1, SHA256)
    blobs.delete(1, SHA256)
    with pytest.raises(NotFoundError):
        blobs.get(1, SHA256)


def test_a_folder_keeps_what_it_is_given(tmp_path: Path) -> None:
    check(FolderBlobs(tmp_path / "blobs"))
    assert (tmp_path / "blobs").stat().st_mode & 0o77 == 0


def test_leftovers_of_a_killed_process_are_removed_by_the_next(tmp_path: Path) -> None:
    killed = "import os, sys; from pathlib import Path; from turnlog.hub.blobs import FolderBlobs;"
    killed += " os.fsync = lambda file: os._exit(9); FolderBlobs(Path(sys.argv[1])).put(1, sys.argv[2], b'walnut')"
    blobs = FolderBlobs(tmp_path / "blobs")
    for use, left in ((lambda: blobs.put(1, SHA256, TEXT), 1), (lambda: blobs.delete(1, SHA256), 0)):
        blobs.delete(1, SHA256)
        assert subprocess.run([sys.executable, "-c", killed, tmp_path / "blobs", SHA256], check=False).returncode == 9
        assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
        use()
        assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == left
    blobs.put(1, SHA256, TEXT)
    assert blobs.get(1, SHA256) == TEXT


def test_a_bucket_keeps_what_it_is_given(s3: BlobStore) -> None:
    check(s3)


def test_messages_flow_while_the_blobs_are_away_and_the_blobs_follow(store: PostgresStore, tmp_path: Path) -> None:
    place = tmp_path / "blobs"
    client = TestClient(hub_app(store, FolderBlobs(place)))
    headers = {"Authorization": "Bearer ana/laptop"}
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", b'{"kind":"text","id":"u1","message":"u1","role":"user","text":"%b"}\n' % TEXT)
        batch = read_batch(toy.connection, FeedPosition())
        assert batch is not None
        # A file where the folder was: nothing can be written there.
        shutil.rmtree(place)
        place.write_text("away")
        data = zstd.compress(taking.encode(batch))
        packed = {**headers, "Content-Encoding": "zstd"}
        assert client.post("/hub/v1/batches?store=s", content=data, headers=packed).status_code == 200
        assert len(getattr(store.messages("toy:s")[0].message.parts[0], "text", "")) == 8000
        answer = client.put(f"/hub/v1/blobs/{SHA256}", content=TEXT, headers=headers)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert answer.json()["error"]["message"] == NO_BLOBS
        place.unlink()
        assert client.put(f"/hub/v1/blobs/{SHA256}", content=TEXT, headers=headers).status_code == 204
        assert getattr(store.messages("toy:s")[0].message.parts[0], "text", "").encode() == TEXT
        assert client.get(f"/hub/v1/blobs/{SHA256}", headers=headers).content == TEXT
        assert [path.name for path in place.rglob("*") if path.is_file()] == [SHA256]
        # What nobody names any more goes from the folder, too.
        toy.connection.execute("INSERT INTO tombstones VALUES ('toy:s', 1)")
        toy.connection.execute("INSERT INTO changes (kind, at) VALUES ('forgotten', 1)")
        toy.connection.commit()
        later = read_batch(toy.connection, batch.until)
        assert later is not None
        data = zstd.compress(taking.encode(later))
        assert client.post("/hub/v1/batches?store=s", content=data, headers=packed).status_code == 200
        assert [path for path in place.rglob("*") if path.is_file()] == []


def test_the_end_of_a_large_content_is_found_once_its_bytes_are_there(
    databases: PostgresDatabases, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = TEXT + b"hazelnut"
    sha256 = hashlib.sha256(text).hexdigest()
    with hub(databases, tmp_path, blobs=FolderBlobs(tmp_path / "blobs")) as found, ToyStore(tmp_path) as toy:
        token = {"name": "machine", "scopes": ["read", "push"]}
        machine = found.client(found.browser("Ana", "owner").post("/hub/v1/tokens", json=token).json()["token"])
        for id, said in ((b"u0", b"almond"), (b"u1", text)):
            toy.add("s.log", b'{"kind":"text","id":"%b","message":"%b","role":"user","text":"%b"}\n' % (id, id, said))
        batch = read_batch(toy.connection, FeedPosition())
        assert batch is not None
        assert machine.post("/hub/v1/batches?store=s", content=taking.encode(batch)).status_code == 200

        def sessions_with(word: str) -> int:
            until = time.monotonic() + 10
            while not (items := machine.get(f"/api/search?q={word}").json()["items"]) and time.monotonic() < until:
                time.sleep(0.02)
            return len(items)

        assert sessions_with("almond") == 1
        assert machine.get("/api/search?q=hazelnut").json()["items"] == []
        # A file where the folder was. Whoever runs the hub is told, and its other work goes on.
        shutil.rmtree(tmp_path / "blobs")
        (tmp_path / "blobs").write_text("away")
        assert machine.put(f"/hub/v1/blobs/{sha256}", content=text).status_code == 503
        ready = machine.get("/readyz")
        assert (ready.status_code, ready.json()) == (200, {"status": "degraded", "blobs": NO_BLOBS})
        (said,) = [each.getMessage() for each in caplog.records if each.name == "turnlog.hub.blobs"]
        assert said == f"cannot write a blob to {tmp_path / 'blobs'}: Not a directory"
        (tmp_path / "blobs").unlink()
        assert machine.put(f"/hub/v1/blobs/{sha256}", content=text).status_code == 204
        assert sessions_with("hazelnut") == 1
        assert machine.get("/readyz").json() == {"status": "ok"}
        shutil.rmtree(tmp_path / "blobs")
        (tmp_path / "blobs").write_text("away")
        answer = machine.get(f"/api/blobs/{sha256}")
        assert (answer.status_code, answer.json()["error"]["message"]) == (503, NO_BLOBS)


def test_forgotten_contents_leave_a_folder_that_was_away(
    databases: PostgresDatabases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnlog.hub.retention.GARBAGE_SECONDS", 0.1)
    place = tmp_path / "blobs"

    def files() -> list[str]:
        return [path.name for path in place.rglob("*") if path.is_file()]

    with hub(databases, tmp_path, blobs=FolderBlobs(place)) as found, ToyStore(tmp_path) as toy:
        person = found.browser("Ana", "owner")
        token = {"name": "machine", "scopes": ["read", "push"]}
        machine = found.client(person.post("/hub/v1/tokens", json=token).json()["token"])
        texts = {"a": TEXT, "b": TEXT + b"hazelnut"}
        for name, text in texts.items():
            line = b'{"kind":"text","id":"%b","message":"%b","role":"user","text":"%b"}\n'
            toy.add(f"{name}.log", line % (name.encode(), name.encode(), text))
        batch = read_batch(toy.connection, FeedPosition())
        assert batch is not None
        assert machine.post("/hub/v1/batches?store=s", content=taking.encode(batch)).status_code == 200
        for text in texts.values():
            assert machine.put(f"/hub/v1/blobs/{hashlib.sha256(text).hexdigest()}", content=text).status_code == 204
        assert len(files()) == 2
        assert person.post("/api/sessions/toy:a/forget", json={"dry_run": False}).status_code == 200
        until = time.monotonic() + 20
        while SHA256 in files() and time.monotonic() < until:
            time.sleep(0.02)
        kept = hashlib.sha256(texts["b"]).hexdigest()
        assert files() == [kept]
        place.rename(tmp_path / "elsewhere")
        place.write_text("away")
        assert person.post("/api/sessions/toy:b/forget", json={"dry_run": False}).status_code == 200
        time.sleep(0.5)
        place.unlink()
        (tmp_path / "elsewhere").rename(place)
        while files() and time.monotonic() < until:
            time.sleep(0.02)
        assert files() == []


def test_missing_contents_are_named_page_by_page(
    store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_MISSING", 2)
    client = TestClient(hub_app(store, FolderBlobs(tmp_path / "blobs")))
    headers = {"Authorization": "Bearer ana/laptop"}
    texts = [b"%d" % number + TEXT for number in range(5)]
    with ToyStore(tmp_path) as toy:
        lines = [
            b'{"kind":"text","id":"%b","message":"%b","role":"user","text":"%b"}\n' % (t[:1], t[:1], t) for t in texts
        ]
        toy.add("s.log", *lines)
        batch = read_batch(toy.connection, FeedPosition())
    assert batch is not None
    assert client.post("/hub/v1/batches?store=s", content=taking.encode(batch), headers=headers).status_code == 200

    def missing(body: object) -> list[str]:
        answer = client.post("/hub/v1/blobs/missing", json=body, headers=headers)
        return answer.json()["missing"] if answer.status_code == 200 else [str(answer.status_code)]

    wanted = sorted(hashlib.sha256(text).hexdigest() for text in texts)
    assert missing({}) == wanted[:2]
    assert missing({"after": wanted[1]}) == wanted[2:4]
    assert missing({"after": wanted[3]}) == wanted[4:]
    assert missing({"after": wanted[4]}) == []
    assert missing({"after": "'; DROP"}) == missing({"after": 5}) == missing([]) == ["422"]


def test_what_somebody_sends_while_it_is_deleted_for_others_stays(store: PostgresStore, tmp_path: Path) -> None:
    place = FolderBlobs(tmp_path / "blobs")
    client = TestClient(hub_app(store, place))
    begun = Event()

    def send(person: str) -> None:
        headers = {"Authorization": f"Bearer {person}/laptop"}
        with ToyStore(tmp_path / person) as toy:
            line = b'{"kind":"text","id":"%b","message":"%b","role":"user","text":"%b"}\n'
            toy.add(f"{person}.log", line % (person.encode(), person.encode(), TEXT))
            batch = read_batch(toy.connection, FeedPosition())
        assert batch is not None
        address = f"/hub/v1/batches?store={person}"
        assert client.post(address, content=taking.encode(batch), headers=headers).status_code == 200
        assert client.put(f"/hub/v1/blobs/{SHA256}", content=TEXT, headers=headers).status_code == 204

    def delete(sha256: str) -> None:
        begun.set()
        time.sleep(0.5)
        place.delete(store.team, sha256)

    send("ana")
    store.forget("toy:ana")
    deleting = Thread(target=store.drop_garbage, args=(delete,))
    deleting.start()
    assert begun.wait(20)
    send("ben")
    deleting.join()
    assert place.get(store.team, SHA256) == TEXT
    assert getattr(store.messages("toy:ben")[0].message.parts[0], "text", "").encode() == TEXT


def test_other_bytes_than_were_sent_are_not_shown(databases: PostgresDatabases, tmp_path: Path) -> None:
    place = tmp_path / "blobs"
    with hub(databases, tmp_path, blobs=FolderBlobs(place)) as found, ToyStore(tmp_path) as toy:
        token = {"name": "machine", "scopes": ["read", "push"]}
        machine = found.client(found.browser("Ana", "owner").post("/hub/v1/tokens", json=token).json()["token"])
        toy.add("s.log", b'{"kind":"text","id":"u1","message":"u1","role":"user","text":"%b"}\n' % TEXT)
        batch = read_batch(toy.connection, FeedPosition())
        assert batch is not None
        assert machine.post("/hub/v1/batches?store=s", content=taking.encode(batch)).status_code == 200
        assert machine.put(f"/hub/v1/blobs/{SHA256}", content=TEXT).status_code == 204
        (file,) = (path for path in place.rglob("*") if path.is_file())
        for data in (TEXT.replace(b"walnut", b"poison"), TEXT[:100]):
            file.write_bytes(data)
            for address in (f"/api/blobs/{SHA256}", f"/hub/v1/blobs/{SHA256}"):
                answer = machine.get(address)
                assert (answer.status_code, "are damaged" in answer.text) == (404, True)
            assert machine.get("/api/sessions/toy:s/window").status_code == 200
        file.write_bytes(TEXT)
        assert machine.get(f"/api/blobs/{SHA256}").content == TEXT


def test_a_key_is_in_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAWALNUT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hazelnut")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9/AKIAWALNUT/hazelnut")
    with pytest.raises(BlobStoreError, match=r"^cannot write a blob of s3://shop/x: .*/…/…/") as raised:
        open_blobs("s3://shop/x").put(1, SHA256, TEXT)
    assert "AKIAWALNUT" not in str(raised.value)
    assert "hazelnut" not in str(raised.value)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(BlobStoreError, match=r"; AWS_ACCESS_KEY_ID is not set$"):
        open_blobs("s3://shop/x").put(1, SHA256, TEXT)
