"""A pass makes no source of a file that is as it was when it was read, and misses no change."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import zstandard

from turnlog.agents import agent, find_sources
from turnlog.agents.files import leave_out_unchanged
from turnlog.store.connection import connect
from turnlog.store.sources import known_versions
from turnlog.sync.summary import SyncSummary
from turnlog.sync.syncer import sync

SAMPLE: Final = Path(__file__).parents[2] / "src" / "turnlog" / "sample"

AGENTS: Final = {"claude-code": ".claude", "codex": ".codex"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, folder in AGENTS.items():
        shutil.copytree(SAMPLE / name, tmp_path / folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def read(home: Path) -> SyncSummary:
    return sync(home / "turnlog.db", agents=[agent(name) for name in AGENTS])


def log_of(home: Path, name: str) -> Path:
    return max((home / AGENTS[name]).rglob("*.jsonl"), key=lambda path: path.stat().st_size)


def test_a_pass_makes_sources_only_of_files_that_have_changed(home: Path) -> None:
    first = read(home)
    connection = connect(home / "turnlog.db")
    versions = known_versions(connection)
    connection.close()
    changed = log_of(home, "codex")
    changed.write_bytes(changed.read_bytes() + b"{}\n")
    with leave_out_unchanged(versions) as unchanged:
        found = [source.path for _, source in find_sources([agent(name) for name in AGENTS])]
    assert found == [str(changed)]
    assert len(unchanged) == first.sources - 1
    assert read(home).sources == first.sources


def grown(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"{}\n")


def touched(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def replaced(path: Path) -> None:
    """By a file of the same size and time."""
    status, other = path.stat(), path.with_suffix(".new")
    other.write_bytes(path.read_bytes().replace(b"e", b"a"))
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("change", [grown, touched, replaced])
def test_every_change_is_seen(home: Path, name: str, change: Callable[[Path], None]) -> None:
    read(home)
    change(log_of(home, name))
    connection = connect(home / "turnlog.db")
    before = known_versions(connection)
    summary = read(home)
    after = known_versions(connection)
    connection.close()
    assert summary.vanished == 0
    assert {path for path in before if after[path] != before[path]} == {str(log_of(home, name))}


@pytest.mark.parametrize("name", AGENTS)
def test_a_file_that_is_gone_is_known_to_be_gone(home: Path, name: str) -> None:
    first = read(home)
    log_of(home, name).unlink()
    summary = read(home)
    assert (summary.sources, summary.vanished) == (first.sources - 1, 1)
    assert read(home).vanished == 0


def test_a_compressed_rollout_is_hidden_by_the_unchanged_plain_one(home: Path) -> None:
    first = read(home)
    plain = log_of(home, "codex")
    plain.with_name(f"{plain.name}.zst").write_bytes(zstandard.compress(plain.read_bytes()))
    assert (read(home).sources, read(home).changed) == (first.sources, 0)


def test_a_link_in_the_place_of_a_file_is_not_followed(home: Path) -> None:
    first = read(home)
    log, elsewhere = log_of(home, "claude-code"), home / "elsewhere.jsonl"
    log.rename(elsewhere)
    log.symlink_to(elsewhere)
    assert read(home).sources == first.sources - 1
