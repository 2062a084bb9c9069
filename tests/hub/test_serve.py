"""`turnlog hub serve` without arguments: a database of its own, a link for its owner, and an end without remains."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from support.cli_runner import call
from turnlog.errors import SettingsError, StoreError, TurnlogError
from turnlog.hub import embedded
from turnlog.hub.embedded import EmbeddedPostgres, running_url
from turnlog.hub.serve import DATABASE
from turnlog.hub.settings import load_hub_settings
from turnlog.store.postgres.database import Database

ROOT = os.getuid() == 0


class Served:
    """A hub as a process of its own."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self.folder = folder
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://\S+/", said)
        assert found is not None, process.communicate()
        self.address = found[0]

    def line(self) -> str:
        """The next line of its output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()


def environment(folder: Path) -> dict[str, str]:
    """PostgreSQL refuses root: then it runs as somebody else."""
    more = {"TURNLOG_HUB_POSTGRES_USER": "nobody"} if ROOT else {}
    return {**os.environ, "TURNLOG_DATA_DIR": str(folder), "TURNLOG_HUB_PORT": "0", "HOME": str(folder), **more}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users may go through. It is not one of pytest's: each pytest that starts closes them all."""
    with tempfile.TemporaryDirectory(prefix="turnlog-hub-") as made:
        Path(made).chmod(0o711)
        yield Path(made)


@contextmanager
def served(folder: Path) -> Generator[Served]:
    process = subprocess.Popen(
        [sys.executable, "-m", "turnlog", "hub", "serve"],
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Served(process, folder / "hub")
    finally:
        process.kill()
        process.wait()
        process.communicate()


@pytest.mark.timeout(240)  # its own PostgreSQL starts, twice
def test_a_hub_starts_with_nothing_and_ends_whole(folder: Path) -> None:
    with served(folder) as found:
        code = found.line().strip().partition("#code=")[2]
        assert_a_long_head_is_refused(found.address)
        with httpx2.Client(base_url=found.address) as client:
            body = {"code": code, "name": "Ana"}
            assert client.post("/hub/v1/invitations/accept", json=body).json()["role"] == "owner"
            assert client.post("/hub/v1/invitations/accept", json=body).status_code == 403
            assert client.get("/readyz").json() == {"status": "ok"}
            metrics = client.get("/metrics").text
            assert 'route="/hub/v1/invitations/accept",status="200"' in metrics
            assert client.get("/metrics", headers={"X-Forwarded-For": "1.2.3.4"}).status_code == 404
        link = subprocess.run(
            [sys.executable, "-m", "turnlog", "hub", "sign-in", "Ana"],
            env=environment(folder),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert link.startswith(f"{found.address}sign-in#code=")
        with httpx2.Client(base_url=found.address) as client:
            answer = client.post("/hub/v1/sign-in", json={"code": link.strip().partition("#code=")[2]})
            assert answer.json()["user"]["name"] == "Ana"
        refused = subprocess.run(
            [sys.executable, "-m", "turnlog", "hub", "sign-in", "Ana", "--rejoin", "member"],
            env=environment(folder),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (refused.returncode, refused.stderr) == (3, "turnlog: Ana is in a team: leave --rejoin out\n")
        found.process.send_signal(signal.SIGTERM)
        assert found.process.wait(20) == 0
        assert found.process.stderr is not None
        log = found.process.stderr.read()
        assert code not in log
        assert "Ana" not in log
        assert running_url(found.folder) is None
    # A hub that is killed leaves its PostgreSQL behind; the next one ends it, and has everything.
    with served(folder) as found:
        found.process.kill()
        found.process.wait()
        url = running_url(found.folder)
        assert url is not None
    with served(folder) as found:
        url = running_url(found.folder)
        assert url is not None
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT name FROM turnlog.users").fetchall() == [("Ana",)]
        with pytest.raises(subprocess.CalledProcessError) as raised:
            subprocess.run(
                [sys.executable, "-m", "turnlog", "hub", "serve"],
                env=environment(folder),
                check=True,
                capture_output=True,
                text=True,
            )
        assert "another hub runs with the data in" in raised.value.stderr
        # If its PostgreSQL is killed, the hub says that it is not ready, and starts it again.
        os.kill(int((found.folder / "postgres" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        with httpx2.Client(base_url=found.address) as client:
            assert seen(client, 503) == {"status": "not ready", "reason": "the database does not answer"}
            assert seen(client, 200) == {"status": "ok"}
        found.process.send_signal(signal.SIGTERM)
        assert found.process.wait(20) == 0


def assert_a_long_head_is_refused(address: str) -> None:
    """To read it would keep everybody else waiting."""
    at = urlsplit(address)
    assert at.hostname is not None
    with socket.create_connection((at.hostname, at.port), timeout=20) as connection:
        with suppress(OSError):  # it closes before it has read all
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nAccept: " + b"a," * 500_000 + b"\r\n\r\n")
        with suppress(OSError):
            assert connection.recv(100).startswith(b"HTTP/1.1 431 ")
    assert httpx2.get(f"{address}healthz").status_code == 200


def seen(client: httpx2.Client, status: int) -> object:
    """What `/readyz` says with this status, which it has at last."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        answer = client.get("/readyz")
        if answer.status_code == status:
            return answer.json()
        time.sleep(0.02)
    raise AssertionError(f"/readyz never answered {status}")


def test_without_a_running_hub_a_link_needs_an_address(folder: Path) -> None:
    (folder / "hub").mkdir()
    gone = b'{"address":"http://127.0.0.1:8790/","process":[1,"another boot","0"]}'
    (folder / "hub" / "address.json").write_bytes(gone)
    refused = subprocess.run(
        [sys.executable, "-m", "turnlog", "hub", "sign-in", "Ana"],
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "--url" in refused.stderr


def test_an_address_of_no_database_is_one_sentence() -> None:
    for arguments in (("serve", "--port", "0"), ("sign-in", "Ana", "--url", "https://hub.example")):
        refused = call("hub", *arguments, "--database", "nonsense")
        assert refused.exit_code == 1
        assert refused.stderr.startswith("turnlog: the address of the database cannot be used")


def test_another_kind_of_database_is_refused_before_anything_is_loaded() -> None:
    for arguments in (["serve"], ["sign-in", "Ana"]):
        refused = call("hub", *arguments, "--database", "mysql://ana:secret@db/x")
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert refused.stderr.splitlines() == [
            "turnlog: database: mysql:// is no PostgreSQL; one looks like this: postgresql://user@host/database"
        ]
    code = (
        "import sys; from turnlog.cli.hub_serve import serve\n"
        "try: serve(['--database', 'mysql://x'], standalone_mode=False)\n"
        "except Exception as error: print(type(error).__name__, 'turnlog.hub.serve' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "SettingsError False\n"


def test_an_address_in_words_is_one_of_a_database() -> None:
    words = "host=db dbname=x password=a://b"
    assert load_hub_settings(None, database=words).database == words


def test_a_database_that_does_not_answer_is_said_in_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        with pytest.raises(StoreError, match=r"^cannot open the database of the hub: "):
            Database(f"postgresql://127.0.0.1:{silent.getsockname()[1]}/x", name=DATABASE)
        assert time.monotonic() - begun < 9


def test_settings_come_from_a_file_and_what_is_given_counts_more(tmp_path: Path) -> None:
    file = tmp_path / "hub.toml"
    file.write_text(
        'host = "10.0.0.1"\nport = 9000\n[proxy]\npeers = ["10.0.0.0/8"]\n[openid]\n'
        'issuer = "https://id.example"\nclient_id = "x"\nclient_secret = "y"\njoins = "viewer"\n'
    )
    settings = load_hub_settings(file, port=9001, database=None)
    assert (settings.host, settings.port, settings.database) == ("10.0.0.1", 9001, None)
    assert settings.openid is not None
    assert settings.openid.joins == "viewer"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("port = 'x'", r"`\$\.port`"),
        ("ports = 1", "unknown field `ports`"),
        ("[proxy]\npeers = ['x']", r"proxy\.peers: 'x'"),
        ("[openid]\njoins = 'king'", "openid"),
        ("url = 'notaurl'", "url: 'notaurl' is not an address"),
        ("url = 'ftp://hub.example'", "is not an address"),
        ("blobs = 'gs://shop'", "blobs: 'gs://shop' cannot be used; it is a folder, or s3://bucket/prefix"),
        ("blobs = 's3:/shop'", "cannot be used"),
        ("blobs = 's3:///shop'", "cannot be used"),
        ("url = 'https://hub.example:x'", "is not an address"),
        ("url = 'https:///path'", "is not an address"),
        ("= 1", "hub.toml"),
    ],
)
def test_settings_that_cannot_be_used_are_reported_with_their_place(text: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "hub.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=reason):
        load_hub_settings(file)


@pytest.mark.skipif(not ROOT, reason="only root runs PostgreSQL as somebody else")
@pytest.mark.parametrize("closed", ["data", "programs"])
def test_a_folder_that_the_user_of_postgres_cannot_enter_is_named(
    closed: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = folder / "pri vate"
    for each in (private, private / "below"):
        each.mkdir(mode=0o700)
    data = folder / "hub"
    if closed == "data":
        data = private / "below" / "hub"
    else:
        for name in ("initdb", "postgres"):
            (private / "below" / name).symlink_to("/bin/true")
        monkeypatch.setattr(embedded, "_binaries", lambda: private / "below")
    with pytest.raises(TurnlogError) as failure:
        EmbeddedPostgres(data, "nobody").start()
    said = str(failure.value)
    assert said.startswith(f"PostgreSQL runs as nobody, who cannot enter {private} or {private}/below on the way to ")
    assert f"`chmod o+x '{private}' '{private}/below'`" in said
    assert ("--data" in said) == (closed == "data")
    assert not (data / "postgres").exists()
