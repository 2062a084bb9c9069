"""Archived and compressed rollouts: read like any other, kept byte for byte, and never twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import zstandard
from msgspec import Raw

from support.codex_files import AGENT, DATA
from turnlog.agents import detect
from turnlog.logs import read_session
from turnlog.model import ToolCallPart
from turnlog.model.codec import encode
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

SCENARIO = DATA / "scenarios" / "codemode"


@pytest.fixture
def codex_home(tmp_path: Path) -> Path:
    found = tmp_path / "codex"
    shutil.copytree(SCENARIO / "sessions", found / "sessions")
    return found


def rollout(home: Path) -> Path:
    [path] = home.rglob("rollout-*")
    return path


def compress(path: Path) -> Path:
    """As Codex does after some days: the plain file goes."""
    packed = path.with_name(f"{path.name}.zst")
    packed.write_bytes(zstandard.ZstdCompressor(level=3).compress(path.read_bytes()))
    path.unlink()
    return packed


def archive(home: Path) -> Path:
    """As `codex archive` does."""
    folder = home / "archived_sessions"
    folder.mkdir()
    return Path(shutil.move(rollout(home), folder))


def pass_over(store: Path, home: Path) -> None:
    sync(store, roots=[home], agents=[AGENT])


def history(store: Store) -> dict[str, bytes]:
    [session] = store.sessions(SessionFilter(subagents=True)).items
    placed = list(store.messages(session.id))
    return {item.message.id: encode(item.message) for item in placed}


def test_a_compressed_rollout_is_read_like_a_plain_one(codex_home: Path) -> None:
    plain = read_session(rollout(codex_home), structured=True)
    packed = compress(rollout(codex_home))
    assert detect(packed).version == "0.169.0"
    found = read_session(packed, structured=True)
    assert found.messages == plain.messages
    assert found.session == plain.session
    assert found.diagnostics == ()


def test_a_session_stays_one_when_its_rollout_is_archived_and_compressed(codex_home: Path, tmp_path: Path) -> None:
    """R-C13: what was read stays; the same thread elsewhere adds nothing and costs nothing."""
    path = tmp_path / "store.db"
    pass_over(path, codex_home)
    with open_store(path) as store:
        before, [session] = history(store), store.sessions().items
    compress(archive(codex_home))
    pass_over(path, codex_home)
    with open_store(path) as store:
        [now] = store.sessions().items
        assert history(store) == before
        assert (now.usage, now.cost, now.counts.messages) == (session.usage, session.cost, session.counts.messages)
        assert not store.diagnostics().items


def test_an_archive_keeps_compressed_bytes_and_returns_records(codex_home: Path, tmp_path: Path) -> None:
    """R-S43: as they do of a plain log."""
    lines = rollout(codex_home).read_bytes().splitlines()
    packed = compress(archive(codex_home))
    path = tmp_path / "store.db"
    pass_over(path, codex_home)
    rebuild(path)
    with open_store(path) as store:
        [session] = store.sessions().items
        assert [b"".join(raw.pieces) for raw in store.raw(session.id)] == [packed.read_bytes()]
        placed = [item.message for item in store.messages(session.id)]
        for message in placed:
            assert {record.data for record in store.records(message.id)} <= set(lines)
        filled = [store.message(message.id, structured=True) for message in placed]
        calls = [part for message in filled for part in message.parts if isinstance(part, ToolCallPart)]
        structured = [result.structured for call in calls for result in call.results]
        assert sum(isinstance(found, Raw) and b'"CommandExecution"' in bytes(found) for found in structured) == 3


def test_the_plain_file_wins_over_its_compressed_copy(codex_home: Path) -> None:
    plain = rollout(codex_home)
    packed = plain.with_name(f"{plain.name}.zst")
    packed.write_bytes(zstandard.ZstdCompressor().compress(plain.read_bytes()))
    assert [source.path for source in AGENT.discover([codex_home])] == [str(plain)]
    plain.unlink()
    assert [source.path for source in AGENT.discover([codex_home])] == [str(packed)]


def test_a_compressed_rollout_that_is_cut_off_is_read_as_far_as_it_goes(codex_home: Path, tmp_path: Path) -> None:
    packed = compress(rollout(codex_home))
    packed.write_bytes(packed.read_bytes()[:-40])
    pass_over(tmp_path / "store.db", codex_home)
    with open_store(tmp_path / "store.db") as store:
        assert "cut off at the end of the file" in {found.reason for found in store.diagnostics().items}


def test_a_copy_with_a_byte_order_mark_is_still_of_its_thread(codex_home: Path, tmp_path: Path) -> None:
    """R-S21: an editor writes one; the first record behind it names the thread, whatever the copy is called."""
    original = rollout(codex_home)
    copy = tmp_path / "copy.txt"
    copy.write_bytes(b"\xef\xbb\xbf" + original.read_bytes())
    found = read_session(copy)
    assert found.session.id == read_session(original).session.id
    assert [told.reason for told in found.diagnostics] == ["byte order mark skipped"]
