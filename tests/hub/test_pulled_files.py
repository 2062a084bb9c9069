"""What a hub sends is written only where the agent keeps logs: others choose the names of the files."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from support.agent_cases import CASES
from turnlog.agents import agent
from turnlog.errors import NotFoundError, StoreError
from turnlog.hub.machine.pulling import PulledLogs, agent_of, folder_of
from turnlog.store import open_store, zstd
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

LINE = b'{"type":"user","uuid":"u1","sessionId":"s1","message":{"role":"user","content":"hi"},"hooks":{}}\n'


def pulled(*files: tuple[str, bytes], mtime: float = 0) -> PulledLogs:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), mtime
            archive.addfile(member, io.BytesIO(data))
    return PulledLogs(zstd.compress(packed.getvalue()))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("claude-code", "settings.json"),
        ("claude-code", "CLAUDE.md"),
        ("claude-code", "agents/helper.md"),
        ("claude-code", "projects/-app/settings.json"),
        ("codex", "config.toml"),
        ("codex", "AGENTS.md"),
        ("gemini-cli", "settings.json"),
        ("opencode", "plugin/evil.js"),
        ("openhands", "agent_settings.json"),
        ("openhands", "conversations/c1/hooks.json"),
        ("mistral-vibe", "config.toml"),
    ],
)
def test_settings_of_an_agent_are_no_logs(name: str, path: str) -> None:
    """A colleague who shares a session chose them: a hook in them would run with the next start of the agent."""
    logs = pulled(("projects/-app/11111111-1111-4111-8111-111111111111.jsonl", LINE), (path, LINE))
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
                pulled(*named).refuse_other_than_logs(agent(name))
                taken += 1
    assert taken > len(CASES)


@pytest.mark.parametrize("mtime", [1e300, -1.0])
def test_a_time_that_is_none_is_refused(mtime: float) -> None:
    with pytest.raises(StoreError, match="no time"):
        pulled(("a.jsonl", LINE), mtime=mtime)


def test_a_folder_is_named_after_the_agent_and_what_a_hub_puts_behind_an_id() -> None:
    ids = ("codex:1", "codex:1~m-00000000000000aa", "codex:1~x/../../y", "codex:1~..", "codex:~")
    assert [folder_of(each) for each in ids] == ["codex", "codex~m-00000000000000aa", "codex", "codex", "codex"]


@pytest.mark.parametrize("session_id", ["/etc:1", "..:1", "5", "../../x:1"])
def test_an_agent_that_is_not_known_has_no_folder(session_id: str) -> None:
    with pytest.raises(NotFoundError):
        agent_of(session_id)
