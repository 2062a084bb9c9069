"""Forks and exports: what is copied or exported is there once, whichever form is read, in whichever order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from support.opencode_files import (
    AGENT,
    DATA,
    Rows,
    recorded,
    store_contents,
    write_database,
    write_export,
    write_storage,
)
from support.profiles import some_of
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.importing import import_file
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

ORIGINAL, FORK = "ses_dfd1c141bffes1wZO0J2WfM04F", "ses_dfd1b726bffeSAryboz9EmqTNj"
FORK_OF_FORK, SUBAGENT = "ses_dfd1b3627ffeUZgj4iIrQa23PZ", "ses_dfd1bd538ffeedajxsQ0KIbNoa"

Read = Callable[[Path], object]


@pytest.fixture
def rows() -> Rows:
    """A session with a subagent and a compaction, its fork, and the fork of that."""
    return recorded("1.18.33", "forks")


def in_store(folder: Path, *reads: Read) -> Path:
    store = folder / "turnlog.db"
    folder.mkdir()
    for read in reads:
        read(store)
    return store


def from_database(rows: Rows, folder: Path) -> Read:
    write_database(rows, folder / "opencode.db")
    return lambda store: sync(store, roots=[folder], agents=[AGENT])


def from_export(rows: Rows, session: str, path: Path) -> Read:
    export = write_export(rows, session, path)
    return lambda store: import_file(store, export)


def test_the_exports_of_forks_change_nothing_beside_their_database(rows: Rows, tmp_path: Path) -> None:
    """R-C13: neither messages nor tokens nor cost, nor whose a subagent is, in any order and after a rebuild."""
    database = from_database(rows, tmp_path / "home")
    wanted = store_contents(in_store(tmp_path / "only", database))
    exports = [from_export(rows, session, tmp_path / f"{session}.json") for session in (FORK, FORK_OF_FORK)]
    for number, order in enumerate(some_of([*permutations([database, *exports])])):
        store = in_store(tmp_path / f"{number}", *order)
        assert store_contents(store) == wanted
        rebuild(store, agents=[AGENT])
        assert store_contents(store) == wanted


@pytest.mark.parametrize("write", [write_database, write_storage])
def test_a_sanitized_export_takes_nothing_from_what_rows_have_whole(
    rows: Rows, tmp_path: Path, write: Callable[[Rows, Path], object]
) -> None:
    """R-C13: neither texts nor title nor folder; `sanitized.json` is what `opencode export --sanitize` printed."""
    home = tmp_path / "home"
    write(rows, home / "opencode.db" if write is write_database else home)
    exported = DATA / "exports" / "sanitized.json"
    reads: list[Read] = [
        lambda store: sync(store, roots=[home], agents=[AGENT]),
        lambda store: import_file(store, exported),
    ]
    wanted = store_contents(in_store(tmp_path / "only", reads[0]))
    for number, order in enumerate(permutations(reads)):
        assert store_contents(in_store(tmp_path / f"{number}", *order)) == wanted
    with open_store(in_store(tmp_path / "alone", reads[1])) as opened:
        session = opened.session(f"opencode:{ORIGINAL}")
        assert (session.counts.messages, session.cwd, session.project) == (12, None, None)


def test_a_fork_holds_its_copies_also_where_only_its_export_is(rows: Rows, tmp_path: Path) -> None:
    store = in_store(tmp_path / "store", from_export(rows, FORK, tmp_path / "fork.json"))
    with open_store(store) as opened:
        (session,) = opened.sessions(SessionFilter()).items
        (row,) = [row for row in rows["session"] if row["id"] == FORK]
        assert session.created_at is not None
        assert int(session.created_at.timestamp() * 1000) == row["time_created"]
        held = [placed.message.id for placed in opened.messages(session.id)]
    assert sorted(held) == sorted(row["id"] for row in rows["message"] if row["session_id"] == FORK)


def test_the_subagent_of_a_copied_call_is_that_of_the_original(rows: Rows, tmp_path: Path) -> None:
    exports = [from_export(rows, session, tmp_path / f"{session}.json") for session in (FORK, SUBAGENT, ORIGINAL)]
    for number, order in enumerate(some_of([*permutations(exports)])):
        with open_store(in_store(tmp_path / f"{number}", *order)) as opened:
            (relationship,) = opened.session(f"opencode:{SUBAGENT}").relationships
            assert relationship.parent_session_id == f"opencode:{ORIGINAL}"
