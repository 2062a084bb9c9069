"""Spools beside a store are taken in by the next pass, once, and do not pile up."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from support.store_dump import open_read_only
from turnlog.sync.spools import KEPT_SECONDS, spool_event
from turnlog.sync.syncer import Syncer, sync


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data" / "turnlog.db"


def tell(store: Path, name: str, prompt: str) -> Path:
    event = {"session_id": name, "hook_event_name": "UserPromptSubmit", "prompt_id": prompt, "prompt": prompt}
    return Path(spool_event(store, "claude-code", json.dumps(event).encode(), time.time() * 1000).path)


def prompts(store: Path) -> list[str]:
    connection = open_read_only(store)
    try:
        rows = connection.execute(
            "SELECT m.text_preview FROM memberships s JOIN messages m ON m.key = s.message_key ORDER BY s.position"
        )
        return [row[0] for row in rows]
    finally:
        connection.close()


def test_the_next_pass_takes_in_what_waits_once(store: Path) -> None:
    """R-C19."""
    tell(store, "s1", "first")
    assert (sync(store).changed, sync(store).changed) == (1, 0)
    tell(store, "s1", "second")
    tell(store, "s2", "third")
    assert (sync(store).changed, sync(store).changed) == (2, 0)
    assert prompts(store) == ["first", "second", "third"]


def test_a_pass_over_other_homes_leaves_them(store: Path, tmp_path: Path) -> None:
    tell(store, "s1", "first")
    assert sync(store, roots=[tmp_path]).sources == 0


def test_a_spool_that_was_read_long_ago_is_deleted_and_its_events_stay(store: Path) -> None:
    old, fresh = tell(store, "s1", "first"), tell(store, "s2", "second")
    before = time.time() - KEPT_SECONDS - 60
    os.utime(old, (before, before))
    summary = sync(store)
    assert (summary.vanished, old.exists(), fresh.exists()) == (0, False, True)
    assert sync(store).vanished == 0
    tell(store, "s1", "third")
    sync(store)
    assert sorted(prompts(store)) == ["first", "second", "third"]


def test_a_spool_that_cannot_be_deleted_ends_no_pass(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, before = tell(store, "s1", "first"), time.time() - KEPT_SECONDS - 60
    os.utime(old, (before, before))

    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        assert (sync(store).vanished, old.exists()) == (0, True)
    sync(store)
    assert (old.exists(), prompts(store)) == (False, ["first"])


def test_a_spool_that_was_not_read_yet_never_goes(store: Path) -> None:
    old = tell(store, "s1", "first")
    sync(store)
    tell(store, "s1", "second")
    before = time.time() - KEPT_SECONDS - 60
    os.utime(old, (before, before))
    with Syncer(store, agents=[]) as syncer:
        syncer.scan()
    assert old.exists()


@pytest.mark.parametrize("event", ["7", "null", '"text"', "[1]", "true"])
def test_what_a_hook_was_given_that_is_no_event_costs_only_its_line(store: Path, event: str) -> None:
    """R-S34: an agent may give its hook anything, and without a server it waits as it is."""
    spool = tell(store, "s1", "before")
    with spool.open("a") as file:
        file.write(f'{{"at": 1795227000000, "event": {event}}}\n')
    tell(store, "s1", "after")
    summary = sync(store)
    assert (summary.problems, summary.diagnostics) == ([], 1)
    assert prompts(store) == ["before", "after"]
