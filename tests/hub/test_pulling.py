"""`turnlog hub pull`: whole log files in the home of the agent, and a word of each that is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from support.cli_runner import call
from support.hub_double import HubProcess, hub_process
from support.hub_machines import Box, log
from support.postgres_stores import PostgresDatabases
from turnlog.agents.base import Source
from turnlog.errors import NotFoundError, StoreBusyError
from turnlog.hub.machine.client import HubClient
from turnlog.store.postgres.logs import local_paths

SESSION = "claude-code:s1"


@pytest.fixture(scope="module")
def place(databases: PostgresDatabases) -> Iterator[tuple[HubProcess, str]]:
    """A hub, and its database."""
    url = databases.url()
    with hub_process(url) as hub:
        yield hub, url


@pytest.fixture
def hub(place: tuple[HubProcess, str]) -> Iterator[HubProcess]:
    yield place[0]
    with psycopg.connect(place[1]) as connection:
        for table in ("sessions", "messages", "session_owners", "session_copies", "sources", "archive", "generations"):
            connection.execute(f"DELETE FROM turnlog.{table}".encode())
        connection.execute("DELETE FROM turnlog.settings WHERE name <> 'store id'")


def machine(folder: Path, hub: HubProcess, name: str, level: str = "full") -> Box:
    box = Box(folder, hub, name)
    box.level("/", level)
    return box


def pull(box: Box, monkeypatch: pytest.MonkeyPatch, named: str = SESSION) -> tuple[int, str, list[Path]]:
    """Exit code, what was said, and the files below the agent's home."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(box.home / ".claude"))
    said = call("hub", "pull", named, "--store", str(box.store_path))
    return said.exit_code, said.output, [path for path in box.home.rglob("*") if path.is_file()]


def test_the_longest_whole_copy_of_two_machines_is_written_here(
    tmp_path: Path, hub: HubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, desktop, third = [machine(tmp_path, hub, name) for name in ("laptop", "desktop", "third")]
    texts = ("one", "two", "three", "four")
    shorter, longer = log(laptop, "/app", "s1", *texts[:2]), log(desktop, "/app", "s1", *texts)
    for box in (laptop, desktop):
        box.sync()
        box.push()
    code, said, files = pull(third, monkeypatch)
    assert (code, files) == (0, [third.home / longer.relative_to(desktop.home)])
    assert files[0].read_bytes() == longer.read_bytes() != shorter.read_bytes()
    assert "not written" not in said


def test_what_has_not_arrived_is_named_and_not_written(
    tmp_path: Path, hub: HubProcess, place: tuple[HubProcess, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, third = machine(tmp_path, hub, "laptop"), machine(tmp_path, hub, "third")
    path = log(laptop, "/app", "s1", "one", "two")
    agent = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    lines = path.read_text().replace('"uuid": "s1', '"isSidechain": true, "agentId": "a1", "uuid": "a1')
    agent.write_text(lines.replace('"parentUuid": "s1', '"parentUuid": "a1'))
    laptop.sync()
    laptop.push()
    with psycopg.connect(place[1]) as connection:
        connection.execute(
            "DELETE FROM turnlog.archive WHERE source_key IN"
            " (SELECT key FROM turnlog.sources WHERE path LIKE '%agent-a1.jsonl')"
        )
    code, said, files = pull(third, monkeypatch)
    assert (code, [file.read_bytes() for file in files]) == (0, [path.read_bytes()])
    place_of_agent = agent.relative_to(laptop.home / ".claude").as_posix()
    assert f"not written: {place_of_agent} (its bytes have not arrived on the hub yet)" in said
    with psycopg.connect(place[1]) as connection:
        connection.execute("DELETE FROM turnlog.archive")
    files[0].unlink()
    code, said, files = pull(third, monkeypatch)
    assert (code, files, "have not arrived on the hub yet" in said) == (3, [], True)


def test_a_whole_copy_is_written_rather_than_a_longer_partial_one(
    tmp_path: Path, hub: HubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, desktop = machine(tmp_path, hub, "laptop"), machine(tmp_path, hub, "desktop", "redacted")
    third = machine(tmp_path, hub, "third")
    texts = ("one", "two", "three", "four")
    path = log(laptop, "/app", "s1", *texts[:2])
    log(desktop, "/app", "s1", *texts)
    desktop.sync()
    desktop.push()
    with pytest.raises(NotFoundError, match="its upload level is redacted"):
        third.logs(SESSION)
    laptop.sync()
    laptop.push()
    code, said, files = pull(third, monkeypatch)
    assert (code, [file.read_bytes() for file in files]) == (0, [path.read_bytes()])
    assert "(a longer copy on another machine was left out: pushed below the level full)" in said
    every = call("hub", "pull", "--all", "--to", str(tmp_path / "every"), "--store", str(third.store_path))
    assert (every.exit_code, len(list((tmp_path / "every").rglob("s1.jsonl")))) == (0, 1)


def test_where_somebody_else_was_first_with_the_id_the_own_one_is_named(
    tmp_path: Path, hub: HubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    tower, laptop = Box(tmp_path, hub, "tower", user="ben"), machine(tmp_path, hub, "laptop")
    for box in (tower, laptop):
        log(box, "/app", "s1", "one", "two")
        box.sync()
        box.push()
    code, said, _ = pull(laptop, monkeypatch)
    assert (code, "; on the hub, yours is claude-code:s1~ana" in said) == (3, True)


def test_the_beginning_of_an_id_is_enough_with_its_agent_and_without(
    tmp_path: Path, hub: HubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, third = machine(tmp_path, hub, "laptop"), machine(tmp_path, hub, "third")
    laptop.level("/secret", "redacted")
    for project, session in (("/app", "11-one"), ("/app", "11-two"), ("/app", "22-one"), ("/secret", "33-one")):
        log(laptop, project, session, "one", "two")
    laptop.sync()
    laptop.push()
    for named in ("claude-code:22", "22"):
        code, said, files = pull(third, monkeypatch, named)
        assert (code, [file.name for file in files]) == (0, ["22-one.jsonl"]), said
        files[0].unlink()
    for named in ("claude-code:11", "11"):
        code, said, files = pull(third, monkeypatch, named)
        assert (code, files) == (3, [])
        assert f"several of your sessions begin with {named}: claude-code:11-one, claude-code:11-two" in said
    for named in ("claude-code:33", "33", "claude-code:33-one"):
        code, said, files = pull(third, monkeypatch, named)
        assert (code, files, "its upload level is redacted" in said) == (3, [], True), said
    code, said, _ = pull(third, monkeypatch, "claude-code:44")
    assert (code, "there is no session" in said) == (3, True)


def test_of_all_one_that_fails_does_not_keep_the_others(
    tmp_path: Path, hub: HubProcess, place: tuple[HubProcess, str]
) -> None:
    laptop = machine(tmp_path, hub, "laptop")
    for session in ("a1", "b1"):
        log(laptop, "/app", session, "one", "two")
    laptop.sync()
    laptop.push()
    with psycopg.connect(place[1]) as connection:
        connection.execute("UPDATE turnlog.sources SET path = root WHERE session_id LIKE '%:a1'")
    to = tmp_path / "every"
    every = call("hub", "pull", "--all", "--to", str(to), "--store", str(laptop.store_path))
    assert [path.name for path in to.rglob("*.jsonl")] == ["b1.jsonl"], every.output
    assert every.exit_code == 1
    assert "turnlog: claude-code:a1: the hub refuses (" in every.output
    assert "1 of 2 sessions could not be pulled" in every.output


def test_a_file_outside_of_its_home_is_named_and_the_others_are_given(
    tmp_path: Path, hub: HubProcess, place: tuple[HubProcess, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, third = machine(tmp_path, hub, "laptop"), machine(tmp_path, hub, "third")
    path = log(laptop, "/app", "s1", "one", "two")
    other = log(laptop, "/other", "s1", "one", "two", "three", "four")
    laptop.sync()
    laptop.push()
    move = "UPDATE turnlog.sources SET path = root || '/../../x.jsonl'"
    with psycopg.connect(place[1]) as connection:
        connection.execute(f"{move} WHERE path LIKE '%-other%'".encode())
    code, said, files = pull(third, monkeypatch)
    assert (code, [file.read_bytes() for file in files]) == (0, [path.read_bytes()]), said
    assert "not written: ../../x.jsonl (is outside of the home of its agent" in said
    assert path != other
    files[0].unlink()
    with psycopg.connect(place[1]) as connection:
        connection.execute("DELETE FROM turnlog.sources WHERE path LIKE '%-app%'")
    code, said, files = pull(third, monkeypatch)
    assert (code, files, "cannot be given: each is outside of the home of its agent" in said) == (3, [], True), said


def test_a_file_of_windows_has_its_place_here() -> None:
    root = "ana/laptop:C:\\Users\\ana\\.claude"
    source = Source(agent="claude-code", path=f"{root}\\projects\\a\\s1.jsonl", root=root)
    found = local_paths(source)
    assert os.path.relpath(found.path, found.root) == "projects/a/s1.jsonl"
    here = Source(agent="claude-code", path="ana/laptop:/home/a\\b/s1.jsonl", root="ana/laptop:/home")
    assert local_paths(here) == here


def test_copies_that_parted_are_both_given_back(
    tmp_path: Path, hub: HubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, desktop, third = [machine(tmp_path, hub, name) for name in ("laptop", "desktop", "third")]
    paths = [log(laptop, "/app", "s1", "one", "two", "three", "four"), log(desktop, "/app", "s1", "one", "two", "no")]
    paths[1].write_text(paths[1].read_text().replace("s1-2", "d1-2"))
    for box in (laptop, desktop):
        box.sync()
        box.push()
    every = call("hub", "pull", "--all", "--to", str(tmp_path / "every"), "--store", str(third.store_path))
    assert every.exit_code == 0, every.output
    found = {path.read_bytes() for path in (tmp_path / "every").rglob("s1.jsonl")}
    assert found == {path.read_bytes() for path in paths}


def test_a_connection_that_the_hub_has_closed_is_no_reason_to_fail() -> None:
    """A hub says that it is busy, and closes what rests for longer than a few seconds."""
    asked: list[str] = []

    class Busy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            self.close_connection = True

    slept: list[float] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with pytest.raises(StoreBusyError), HubClient(url, "t", seconds=4.3, sleep=slept.append) as client:
            client.get("/x")
        server.shutdown()
    assert len(asked) == len(slept) + 1 > 2
