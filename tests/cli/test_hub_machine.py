"""`turnlog hub` on a machine: from the code in the browser to the session on the hub and back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from support.cli_runner import call
from support.hub_double import HubProcess, hub_process
from support.postgres_servers import binaries_of_the_wheel, postgres_server
from support.postgres_stores import PostgresDatabases
from support.toy_store import ToyStore
from turnlog.store import open_store

ROW = b'{"kind":"text","id":"u1","message":"u1","role":"user","text":"my password is Tr0ub4dor&3xyz, hello"}\n'


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[HubProcess, str]]:
    with postgres_server(binaries_of_the_wheel()) as server:
        url = PostgresDatabases(server).url()
        with hub_process(url) as hub:
            yield hub, url


def test_a_machine_joins_shows_what_would_leave_and_sends_it(place: tuple[HubProcess, str], tmp_path: Path) -> None:
    hub, database = place
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", ROW)
    store = ["--store", str(toy.path)]
    assert call("hub", "push", *store).exit_code == 3
    connected = call("hub", "connect", hub.url, "--name", "laptop", *store)
    assert (connected.exit_code, "ABCD-EFGH" in connected.output, "as ana" in connected.output) == (0, True, True)
    assert (tmp_path / "hub.db").stat().st_mode & 0o777 == 0o600
    plan = call("hub", "push", "--dry-run", "--json", *store)
    planned = msgspec.json.decode(plan.stdout)
    assert (planned["sent"], planned["sessions"]) == (False, {"toy:s": "redacted"})
    # Without a terminal nobody agrees.
    assert "Nothing was sent" in call("hub", "push", *store).output
    assert "nothing is sent yet" in call("hub", "agent", *store).output
    status = msgspec.json.decode(call("hub", "status", "--json", *store).stdout)
    assert (status["agreed"], status["behind"] > 0) == (False, True)
    pushed = call("hub", "push", "--yes", *store)
    assert "Sent 1 message of 1 session." in pushed.output
    with open_store(database) as there:
        assert there.session("toy:s").counts.messages == 1
    status = msgspec.json.decode(call("hub", "status", "--json", *store).stdout)
    assert (status["agreed"], status["behind"], status["problem"]) == (True, 0, None)


def test_a_level_is_chosen_and_log_files_come_back(place: tuple[HubProcess, str], tmp_path: Path) -> None:
    hub, _ = place
    with ToyStore(tmp_path) as toy:
        toy.add("p.log", ROW.replace(b"u1", b"p1"))
    store = ["--store", str(toy.path)]
    call("hub", "connect", hub.url, "--name", "desktop", *store)
    call("hub", "push", "--yes", *store)
    pulled = call("hub", "pull", "toy:p", "--to", str(tmp_path / "pulled"), *store)
    assert (pulled.exit_code, "upload level is redacted" in pulled.output) == (3, True)
    (tmp_path / "config.toml").write_text('[hub]\nlevel = "full"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TURNLOG_CONFIG", str(tmp_path / "config.toml"))
        call("hub", "push", *store)
    call("hub", "pull", "toy:p", "--to", str(tmp_path / "pulled"), *store)
    (file,) = [path for path in (tmp_path / "pulled").rglob("*") if path.is_file()]
    assert file.read_bytes() == (toy.home / "p.log").read_bytes()
    assert call("hub", "pull", *store).exit_code == 2
    everything = tmp_path / "everything"
    assert call("hub", "pull", "--all", "--to", str(everything), *store).exit_code == 0
    (file,) = [path for path in everything.rglob("*") if path.is_file()]
    assert (file.read_bytes(), file.parent.name) == ((toy.home / "p.log").read_bytes(), "toy")
    file.write_text("other")
    again = call("hub", "pull", "--all", "--to", str(everything), *store)
    assert (again.exit_code, "1 of 1 session" in again.output) == (4, True)
    assert ": none (nothing leaves)" in call("hub", "level", "/srv/client", "none", *store).output
    assert "Disconnected" in call("hub", "disconnect", *store).output
    assert call("hub", "status", *store).exit_code == 3


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="systemd is Linux's")
def test_the_agent_is_installed_as_a_user_unit(
    place: tuple[HubProcess, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with ToyStore(tmp_path) as toy:
        toy.add("a.log", ROW.replace(b"u1", b"a1"))
    store = ["--store", str(toy.path)]
    call("hub", "connect", place[0].url, "--name", "box", *store)
    call("hub", "push", "--yes", *store)
    assert call("hub", "agent", "--install", *store).exit_code == 0
    unit = tmp_path / "home" / ".config" / "systemd" / "user" / "turnlog-hub.service"
    assert f"-m turnlog hub agent --store {toy.path}" in unit.read_text()
