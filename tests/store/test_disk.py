"""Room on the disk is looked at before it is gone."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from turnlog.store.connection import connect, write_transaction
from turnlog.store.disk import missing_room, why_not_written
from turnlog.sync import syncer
from turnlog.sync.syncer import sync


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def leave_free(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    def disk_usage(folder: Path) -> Usage:
        return Usage(1 << 30, (1 << 30) - free, free)

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_free(monkeypatch, 1 << 30)


@pytest.mark.usefixtures("small_disk")
def test_what_an_import_will_need_is_estimated_before_the_folder_exists(tmp_path: Path) -> None:
    store = tmp_path / "new" / "turnlog.db"
    assert missing_room(store, 100 << 20) == 0
    assert 0 < missing_room(store, 1 << 30) < 1 << 30
    assert missing_room(store, 20 << 30) > 10 << 30


@pytest.mark.usefixtures("small_disk")
def test_an_import_that_will_probably_fill_the_disk_says_so_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / ".claude/projects/-w"
    folder.mkdir(parents=True)
    with (folder / "11111111-1111-4111-8111-111111111111.jsonl").open("w") as log:
        log.write("{}\n")
    sync(tmp_path / "a.db", roots=[tmp_path / ".claude"])
    assert caplog.messages == []
    monkeypatch.setattr(syncer, "LARGE_IMPORT", 1)
    leave_free(monkeypatch, 1 << 20)
    with caplog.at_level(logging.WARNING):
        sync(tmp_path / "b.db", roots=[tmp_path / ".claude"])
    assert caplog.messages == [
        f"turnlog: the disk of {tmp_path / 'b.db'} will probably be full: about 0.3 GB are missing"
    ]


@contextmanager
def no_file_beyond(size: int) -> Generator[None]:
    """Let this process write no file beyond a size, as if the disk had no room for more."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_why_a_store_cannot_be_written_is_known_without_a_change_of_it(tmp_path: Path) -> None:
    path = tmp_path / "turnlog.db"
    with closing(connect(path)) as reader:
        version = reader.execute("PRAGMA data_version").fetchone()
        assert why_not_written(path) is None
        with no_file_beyond(4096):
            assert why_not_written(path) == f"cannot write to {tmp_path}: File too large"
        with write_transaction(reader):  # what others write just now is no failure
            assert why_not_written(path) is None
        assert reader.execute("PRAGMA data_version").fetchone() == version
    assert [each.name for each in tmp_path.iterdir()] == ["turnlog.db"]


def test_a_store_that_is_gone_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "turnlog.db"
    assert why_not_written(path) == f"cannot write {path}: unable to open database file"
    assert not path.parent.exists()
