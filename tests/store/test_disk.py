"""Room on the disk is looked at before it is gone."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from turnlog.store.disk import missing_room
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
