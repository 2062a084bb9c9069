"""What a hub sends is written only where the agent keeps logs: others choose the names of the files."""

from __future__ import annotations

import os
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from support.agent_cases import CASES
from support.cli_runner import call
from support.pulled_logs import packed_of, pulled
from turnlog.agents import agent
from turnlog.errors import ConflictError, NotFoundError, StoreError
from turnlog.hub.machine import pulling
from turnlog.hub.machine.client import HubClient
from turnlog.hub.machine.pulling import PulledLogs, agent_of, folder_of
from turnlog.hub.machine.state import HubConnection, MachineState
from turnlog.store import open_store, zstd
from turnlog.store.base import SessionFilter, Store
from turnlog.sync.syncer import sync

LINE = b'{"type":"user","uuid":"u1","sessionId":"s1","message":{"role":"user","content":"hi"},"hooks":{}}\n'


SETTINGS = (
    *("settings.json", "config.toml", "AGENTS.md", "CLAUDE.md", "hooks.json", "mcp.json", "agent_settings.json"),
    *(
        "agents/helper.md",
        "commands/x.md",
        "plugin/evil.js",
        "projects/-app/settings.json",
        "conversations/c1/hooks.json",
    ),
)
"""Names of files that agents run or believe."""


@pytest.mark.parametrize("name", [name for name in CASES if agent(name).homes is not None])
def test_settings_of_an_agent_are_no_logs(name: str) -> None:
    """A colleague who shares a session chose them: a hook in them would run with the next start of the agent."""
    for path in SETTINGS:
        logs = pulled((path, LINE))
        with pytest.raises(StoreError, match="is no log of"):
            logs.refuse_other_than_logs(agent(name))


def test_files_of_every_agent_s_sessions_are_taken(tmp_path: Path) -> None:
    taken = 0
    for name, case in CASES.items():
        recorded = case.recorded[0]
        home = case.write_home(recorded, tmp_path / name / "home")
        path = tmp_path / name / "store.db"
        sync(path, roots=[home], agents=[agent(name)])
        with open_store(path) as store:
            for session in store.sessions(SessionFilter(), limit=5).items:
                to = tmp_path / name / str(taken)
                try:
                    files = {file.path for file in store.restore(session.id, to)}
                except NotFoundError:
                    continue
                named = [(file.relative_to(to).as_posix(), file.read_bytes()) for file in files]
                logs = pulled(*named)
                logs.refuse_other_than_logs(agent(name))
                written = {path.name: path.read_bytes() for path, _ in logs.write(tmp_path / name / f"{taken} again")}
                left_out = {each.path for each in logs.missing}
                # It was recorded with everything allowed.
                assert {Path(path).name for path in left_out} == ({"config.toml"} if name == "gptme" else set())
                assert written == {Path(path).name: data for path, data in named if path not in left_out}
                taken += 1
    assert taken > len(CASES)


def test_more_than_a_disk_should_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "MOST_UNPACKED", 2 << 20)
    pulled(("a.jsonl", bytes(1 << 20)))
    with pytest.raises(StoreError, match="more than 2 MB of log files: too large"):
        pulled(("a.jsonl", bytes(2 << 20)))


def test_names_are_held_in_memory_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "MOST_OF_HEADERS", 1 << 20)
    few = [(f"{number}.jsonl", LINE) for number in range(100)]
    pulled(*few)
    with pytest.raises(StoreError, match="more than 1 MB of names"):
        pulled(*few, (f"{'x/' * (1 << 19)}a.jsonl", LINE))


def test_files_are_on_the_disk_and_not_in_memory(tmp_path: Path) -> None:
    size = 48 << 20
    packed = packed_of(("a.jsonl", bytes(size)))
    tracemalloc.start()
    try:
        ((path, _),) = PulledLogs(packed).write(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (path.stat().st_size, peak < size / 4) == (size, True)


def test_what_is_cut_off_is_refused() -> None:
    packed = packed_of(*((f"{number}.jsonl", os.urandom(200_000)) for number in range(3)))
    with pytest.raises(StoreError, match="no log files"):
        PulledLogs(packed[: len(packed) // 2])


def _pax_header(records: bytes) -> bytes:
    header = tarfile.TarInfo("x")
    header.size, header.type = len(records), tarfile.XHDTYPE
    return header.tobuf(tarfile.USTAR_FORMAT) + records + bytes(-len(records) % 512)


@pytest.mark.parametrize(
    "headers",
    [_pax_header(b"10 path=a\n") * 3000, _pax_header(b"22 GNU.sparse.map=1,x\n")],
    ids=["chain", "word"],
)
def test_headers_that_no_program_writes_are_refused(headers: bytes) -> None:
    member = tarfile.TarInfo("a.jsonl").tobuf(tarfile.USTAR_FORMAT)
    with pytest.raises(StoreError, match="no log files"):
        PulledLogs(zstd.compress(headers + member + bytes(1024)))


@pytest.mark.parametrize("second", ["a.jsonl", "a.jsonl/b.jsonl", f"{'x' * 300}.jsonl", "ä\0b"])
def test_a_place_that_cannot_be_is_refused(second: str) -> None:
    with pytest.raises(StoreError):
        pulled(("a.jsonl", LINE), (second, LINE))


def test_a_link_in_the_home_is_not_followed(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (home / "projects").symlink_to(elsewhere)
    with pytest.raises(StoreError, match="symbolic link"):
        list(pulled(("projects/-app/s1.jsonl", LINE)).write(home))
    assert not any(elsewhere.iterdir())
    # The home itself may be one.
    (tmp_path / "link").symlink_to(elsewhere)
    ((path, _),) = pulled(("projects/-app/s1.jsonl", LINE)).write(tmp_path / "link")
    assert path.read_bytes() == LINE


@pytest.mark.parametrize("mtime", [1e300, -1.0])
def test_a_time_that_is_none_is_refused(mtime: float) -> None:
    with pytest.raises(StoreError, match="no time"):
        pulled(("a.jsonl", LINE), mtime=mtime)


def test_a_folder_is_named_after_agent_and_suffix_of_the_hub() -> None:
    ids = ("codex:1", "codex:1~m-00000000000000aa", "codex:1~x/../../y", "codex:1~..", "codex:~")
    assert [folder_of(each) for each in ids] == ["codex", "codex~m-00000000000000aa", "codex", "codex", "codex"]


@pytest.mark.parametrize("session_id", ["/etc:1", "..:1", "5", "../../x:1"])
def test_an_agent_that_is_not_known_has_no_folder(session_id: str) -> None:
    with pytest.raises(NotFoundError):
        agent_of(session_id)


_DATABASES = ("goose", "kilo", "openclaw", "zed")
"""One of each module that writes rows into a database."""


def _sessions_of(name: str, folder: Path) -> tuple[Path, list[PulledLogs]]:
    """A recorded home, and each of its sessions as a hub sends it."""
    case = CASES[name]
    recorded = next((each for each in case.recorded if "subagent" in each), case.recorded[0])
    home = case.write_home(recorded, folder / "home")
    sync(folder / "store.db", roots=[home], agents=[agent(name)])
    sent: list[PulledLogs] = []
    with open_store(folder / "store.db") as store:
        for session in store.sessions(SessionFilter(subagents=True), limit=3).items:
            to = folder / str(len(sent))
            files = {file.path for file in store.restore(session.id, to)}
            logs = pulled(*((file.relative_to(to).as_posix(), file.read_bytes()) for file in files))
            logs.refuse_other_than_logs(agent(name))
            sent.append(logs)
    return home, sent


def _message_ids(store: Store, session_id: str) -> list[str]:
    return [each.message.id for each in store.messages(session_id)]


@pytest.mark.parametrize("name", _DATABASES)
def test_sessions_of_one_database_are_pulled_one_after_the_other(name: str, tmp_path: Path) -> None:
    _, sent = _sessions_of(name, tmp_path)
    assert len(sent) > 1
    to = tmp_path / CASES[name].home
    for logs in (*sent, sent[0]):
        ((path, size),) = logs.write(to)
        assert path.stat().st_size == size
    sync(tmp_path / "again.db", roots=[to], agents=[agent(name)])
    with open_store(tmp_path / "store.db") as before, open_store(tmp_path / "again.db") as after:
        found = [session.id for session in after.sessions(SessionFilter(subagents=True), limit=50).items]
        assert len(found) >= len(sent)
        for each in found:
            assert _message_ids(after, each) == _message_ids(before, each)


@pytest.mark.parametrize("name", _DATABASES)
def test_the_agents_own_database_is_left(name: str, tmp_path: Path) -> None:
    home, sent = _sessions_of(name, tmp_path)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    with pytest.raises(ConflictError, match="is there already with other content"):
        list(sent[0].write(home))
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_a_database_is_written_into_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenCode 1.18.33 does not start any more: `table project already exists`."""
    _sessions_of("kilo", tmp_path)
    (database,) = (tmp_path / "0").rglob("kilo.db")
    packed = packed_of((database.relative_to(tmp_path / "0").as_posix(), database.read_bytes()))
    monkeypatch.setattr(HubClient, "logs", _sends(packed))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    with MachineState(tmp_path / "turnlog.db") as state:
        state.connect(HubConnection("http://127.0.0.1:9", "token", "1", "ana", "laptop"))
    command = ("hub", "pull", "kilo:1", "--store", str(tmp_path / "turnlog.db"))
    said = call(*command)
    assert said.exit_code == 1
    assert "--to" in said.output
    assert not (tmp_path / "user").exists()
    said = call(*command, "--to", str(tmp_path / "pulled"))
    (written,) = (tmp_path / "pulled").rglob("kilo.db")
    assert (said.exit_code, said.stderr) == (0, f"Read it: turnlog import {written}\n")
    assert call("import", str(written), "--store", str(tmp_path / "turnlog.db")).exit_code == 0


def _sends(packed: bytes) -> Callable[[HubClient, str], bytes]:
    return lambda _client, _session_id: packed


def test_files_of_an_agent_without_a_home_get_a_folder_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows which of them are logs, and the folder that a person names may be a project."""
    packed = packed_of((".claude/settings.json", LINE))
    monkeypatch.setattr(HubClient, "logs", _sends(packed))
    with MachineState(tmp_path / "turnlog.db") as state:
        state.connect(HubConnection("http://127.0.0.1:9", "token", "1", "ana", "laptop"))
    said = call("hub", "pull", "chatgpt:1", "--to", str(tmp_path / "app"), "--store", str(tmp_path / "turnlog.db"))
    assert said.exit_code == 0, said.output
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("settings.json")] == [
        "app/chatgpt/.claude/settings.json"
    ]
