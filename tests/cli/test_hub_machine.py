"""`turnlog hub` on a machine: from the code in the browser to the session on the hub and back."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from support.cli_runner import call
from support.hub_double import HubProcess, hub_process
from support.postgres_stores import PostgresDatabases
from support.toy_agent import ToyAgent
from support.toy_store import ToyStore
from turnlog.hub.machine import client, pulling, pusher
from turnlog.hub.machine.client import HubClient
from turnlog.store import open_store

SESSION = "7d1f6a52-3a70-4a57-9d0c-0b4b6f0a1c11"

ROW = b'{"kind":"text","id":"u1","message":"u1","role":"user","text":"my password is Tr0ub4dor&3xyz, hello"}\n'


def claude_line(number: int, text: str) -> str:
    """A prompt, as Claude Code logs it."""
    record = {
        "type": "user",
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "parentUuid": f"00000000-0000-4000-8000-{number - 1:012}" if number else None,
        "sessionId": SESSION,
        "timestamp": f"2026-11-20T10:{number:02}:00.000Z",
        "cwd": "/home/ada/shop",
        "version": "2.1.30",
        "message": {"role": "user", "content": text},
    }
    return json.dumps(record) + "\n"


@pytest.fixture(scope="module")
def place(databases: PostgresDatabases) -> Iterator[tuple[HubProcess, str]]:
    url = databases.url()
    with hub_process(url) as hub:
        yield hub, url


def test_a_machine_joins_shows_what_would_leave_and_sends_it(place: tuple[HubProcess, str], tmp_path: Path) -> None:
    hub, database = place
    with ToyStore(tmp_path) as toy:
        toy.add("s.log", ROW)
    store = ["--store", str(toy.path)]
    assert call("hub", "push", *store).exit_code == 3
    connected = call("hub", "connect", hub.url, "--name", "laptop", *store)
    assert (
        connected.exit_code,
        "ABCD-EFGH" in connected.output,
        "as Ana Maria, machine laptop" in connected.output,
    ) == (0, True, True)
    assert (tmp_path / "hub.db").stat().st_mode & 0o777 == 0o600
    plan = call("hub", "push", "--dry-run", "--json", *store)
    planned = msgspec.json.decode(plan.stdout)
    assert (planned["sent"], planned["sessions"]) == (False, {"toy:s": "redacted"})
    # Without a terminal nobody agrees, and a script is told so.
    for options in ((), ("--json",)):
        refused = call("hub", "push", *options, *store)
        assert (refused.exit_code, "`turnlog hub push --yes` agrees" in refused.stderr) == (2, True)
    assert msgspec.json.decode(refused.stdout)["sent"] is False
    assert "nothing is sent yet" in call("hub", "agent", *store).output
    status = msgspec.json.decode(call("hub", "status", "--json", *store).stdout)
    assert (status["agreed"], status["behind"] > 0) == (False, True)
    pushed = call("hub", "push", "--yes", *store)
    assert "Sent 1 message of 1 session." in pushed.output
    with open_store(database) as there:
        assert there.session("toy:s").counts.messages == 1
    status = msgspec.json.decode(call("hub", "status", "--json", *store).stdout)
    assert (status["agreed"], status["behind"], status["problem"]) == (True, 0, None)


def test_a_level_is_chosen_and_log_files_come_back(
    place: tuple[HubProcess, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling, "agents", lambda: [ToyAgent()])
    hub, _ = place
    with ToyStore(tmp_path) as toy:
        toy.add("p.log", ROW.replace(b"u1", b"p1"))
    store = ["--store", str(toy.path)]
    call("hub", "connect", hub.url, "--name", "desktop", *store)
    call("hub", "push", "--yes", *store)
    pulled = call("hub", "pull", "toy:p", "--to", str(tmp_path / "pulled"), *store)
    assert (pulled.exit_code, "upload level is redacted" in pulled.output) == (3, True)
    assert "`turnlog hub level PROJECT full`" in pulled.output
    (tmp_path / "config.toml").write_text('[hub]\nlevel = "full"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TURNLOG_CONFIG", str(tmp_path / "config.toml"))
        call("hub", "push", *store)
    call("hub", "pull", "toy:p", "--to", str(tmp_path / "pulled"), *store)
    (file,) = [path for path in (tmp_path / "pulled").rglob("*") if path.is_file()]
    assert file.read_bytes() == (toy.home / "p.log").read_bytes()
    file.unlink()
    assert call("hub", "pull", "p", "--to", str(tmp_path / "pulled"), *store).exit_code == 0
    assert file.read_bytes() == (toy.home / "p.log").read_bytes()
    unknown = call("hub", "pull", "nothing", *store)
    assert (unknown.exit_code, "no session of yours that begins with nothing" in unknown.output) == (3, True)
    assert call("hub", "pull", *store).exit_code == 2
    everything = tmp_path / "everything"
    assert call("hub", "pull", "--all", "--to", str(everything), *store).exit_code == 0
    (file,) = [path for path in everything.rglob("*") if path.is_file()]
    assert (file.read_bytes(), file.parent.name) == ((toy.home / "p.log").read_bytes(), "toy")
    file.write_text("other")
    again = call("hub", "pull", "--all", "--to", str(everything), *store)
    assert (again.exit_code, "1 of 1 session" in again.output) == (4, True)
    assert ": none (nothing leaves)" in call("hub", "level", str(tmp_path), "none", *store).output
    assert call("hub", "level", str(tmp_path), "none", "--remove", *store).exit_code == 2
    assert ": redacted (" in call("hub", "level", str(tmp_path), "--remove", *store).output
    again = call("hub", "level", str(tmp_path), "--remove", *store)
    assert (again.exit_code, "no rule was chosen" in again.output) == (3, True)
    assert "Disconnected" in call("hub", "disconnect", *store).output
    assert call("hub", "status", *store).exit_code == 3


def test_a_new_machine_reads_its_logs_first_or_reports_progress(place: tuple[HubProcess, str], home: Path) -> None:
    log = home / ".claude" / "projects" / "-home-ada-shop" / f"{SESSION}.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text(claude_line(0, "mend the till"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(platform, "node", lambda: "vm")  # which another machine has
        assert "called vm; --name NAME gives this one a name of its own" in call("hub", "connect", place[0].url).output
    assert "--name NAME" not in call("hub", "connect", place[0].url, "--name", "new").output
    assert call("hub", "push", "--dry-run", "--no-sync").exit_code == 3
    plan = msgspec.json.decode(call("hub", "push", "--dry-run", "--json").stdout)
    assert plan["sessions"] == {f"claude-code:{SESSION}": "redacted"}
    assert "Sent 1 message of 1 session." in call("hub", "push", "--yes").output
    with log.open("a") as file:
        file.write(claude_line(1, "and the receipts"))
    assert "Everything is sent." in call("hub", "status", "--no-sync").output
    assert "to send." in call("hub", "status").output
    with log.open("a") as file:
        file.write(claude_line(2, "and the drawer"))
    assert "Sent 0 messages" not in call("hub", "push").output
    assert "Everything is sent." in call("hub", "status").output
    call("hub", "level", "/home/ada/shop", "metrics")
    assert "Levels have changed: the next push takes back" in call("hub", "status").output
    assert "Replaced on the hub: 1 session, whose level is lower now." in call("hub", "push").output
    assert "Everything is sent." in call("hub", "status").output


def test_a_push_says_what_it_takes_back(
    place: tuple[HubProcess, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ToyStore(tmp_path) as toy:
        toy.add("t.log", ROW.replace(b"u1", b"t1"))
    store = ["--store", str(toy.path)]
    monkeypatch.setenv("TURNLOG_CONFIG", str(tmp_path / "config.toml"))
    call("hub", "connect", place[0].url, "--name", "shelf", *store)

    def push(level: str, *options: str) -> str:
        (tmp_path / "config.toml").write_text(f'[hub]\nlevel = "{level}"\n')
        return call("hub", "push", "--yes", "--no-sync", *options, *store).stdout

    assert push("redacted") == "Sent 1 message of 1 session.\nSecrets taken out: 1 password.\n"
    (tmp_path / "config.toml").write_text('[hub]\nlevel = "full"\n')
    # The double is no whole hub.
    assert (
        "the next push shows more of 1 session; this hub is too old" in call("hub", "push", "--dry-run", *store).stderr
    )
    assert push("full") == "Sent 1 message of 1 session.\n"
    assert "shows more" not in call("hub", "push", *store).stderr
    assert push("none") == (
        "Sent 0 messages of 0 sessions.\nTaken back from the hub: 1 session, whose level is none now.\n"
    )
    assert push("metrics") == "Sent 1 message of 1 session.\n"
    assert msgspec.json.decode(push("none", "--json"))["taken_back"] == ["toy:t"]


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


def test_subagents_are_counted_apart(place: tuple[HubProcess, str], home: Path) -> None:
    log = home / ".claude" / "projects" / "-home-ada-shop" / f"{SESSION}.jsonl"
    (log.with_suffix("") / "subagents").mkdir(parents=True)
    log.write_text(claude_line(0, "mend the till"))
    for name in ("a1", "a2"):
        record = {**json.loads(claude_line(0, "look for it")), "isSidechain": True, "agentId": name, "uuid": name}
        (log.with_suffix("") / "subagents" / f"agent-{name}.jsonl").write_text(json.dumps(record) + "\n")
    connected = call("hub", "connect", place[0].url, "--name", "vm").output  # which another machine has
    assert "machine vm (2)" in connected
    assert "Another machine of yours is called vm; if that was this one, remove it on the hub's page" in connected
    assert "3 messages of 1 session and 2 subagents would be sent" in call("hub", "push", "--dry-run").output
    assert "Sent 3 messages of 1 session and 2 subagents." in call("hub", "push", "--yes").output


def test_messages_go_on_where_a_hub_cannot_keep_large_contents(
    databases: PostgresDatabases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "HubClient", partial(HubClient, seconds=0))
    monkeypatch.setattr(pusher, "MANY_MESSAGES", 1)
    blobs = tmp_path / "blobs"
    with ToyStore(tmp_path) as toy:
        for id, said in ((b"b1", b"walnut " * 20_000), (b"b2", b"almond")):
            toy.add("b.log", b'{"kind":"text","id":"%b","message":"%b","role":"user","text":"%b"}\n' % (id, id, said))
    store = ["--store", str(toy.path)]
    url = databases.url()
    with hub_process(url, str(blobs)) as hub:
        call("hub", "connect", hub.url, "--name", "laptop", *store)
        blobs.rmdir()
        blobs.write_text("away")
        pushed = call("hub", "push", "--yes", *store)
        assert (pushed.exit_code, "the hub's store of large contents (blobs) cannot be used" in pushed.output) == (
            5,
            True,
        )
        with open_store(url) as there:
            assert there.session("toy:b").counts.messages == 2
        status = call("hub", "status", *store).output
        assert "1 large content to send." in status
        assert "store of large contents (blobs) cannot be used" in status
        document = msgspec.json.decode(call("hub", "status", "--json", *store).stdout)
        assert [document[name] for name in ("behind", "contents", "files")] == [0, 1, 0]
        blobs.unlink()
        assert call("hub", "push", *store).exit_code == 0
        status = call("hub", "status", *store).output
        assert "Everything is sent." in status
        assert "cannot be used" not in status
