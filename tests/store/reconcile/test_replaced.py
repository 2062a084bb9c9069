"""Which sessions a file that was written anew may have left: what is found is what a look at all rows finds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from sqlite3 import Connection

import pytest

from support.agent_cases import CASES, reads_files
from support.environment import hide_places
from support.toy_agent import line
from support.toy_store import ToyStore
from turnlog import open_store
from turnlog.agents.base import HOOKED_FROM
from turnlog.server.sample import LOGS
from turnlog.store.reconcile import passes
from turnlog.store.reconcile.fates import replaced_in
from turnlog.sync.syncer import sync


def scan(connection: Connection, source_keys: Iterable[int]) -> set[int]:
    """The sessions with a message that only an older generation of these files has, by looking at every message."""
    rows = connection.execute(
        "SELECT s.session_key, s.source_key FROM memberships s JOIN sources f ON f.key = s.source_key"
        " WHERE s.generation < f.generation AND s.position < ?",
        (HOOKED_FROM,),
    )
    wanted = set(source_keys)
    return {session_key for session_key, source_key in rows if source_key in wanted}


REWRITES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "empty": lambda before, other: b"",
    "cut off": lambda before, other: b"".join(before.splitlines(keepends=True)[: before.count(b"\n") // 2]),
    "without its beginning": lambda before, other: b"".join(before.splitlines(keepends=True)[1:]),
    "that of another file": lambda before, other: other,
    "as before": lambda before, other: before,
}
"""What a file holds next, by what it held at first and what another file of the agent held."""


@pytest.mark.parametrize(
    "name", sorted(name for name in CASES if reads_files(name) and "lines of JSON" not in CASES[name].lacks)
)
def test_no_session_that_a_file_left_is_missed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, store = tmp_path / "home", tmp_path / "store.db"
    shutil.copytree(LOGS / name, home / CASES[name].home)
    monkeypatch.setenv("HOME", str(home))
    hide_places(monkeypatch)
    queries: list[set[int]] = []

    def compared(connection: Connection, source_keys: Iterable[int], besides: Container[int]) -> set[int]:
        keys = list(source_keys)
        found = replaced_in(connection, keys)
        assert found == scan(connection, keys)
        assert replaced_in(connection, keys, besides) == {key for key in found if key not in besides}
        queries.append(found)
        return found

    monkeypatch.setattr(passes, "replaced_in", compared)
    sync(store)
    files = sorted(path for path in home.rglob("*") if path.is_file() and path.suffix in (".jsonl", ".json"))
    contents = [path.read_bytes() for path in files]
    for rewrite in REWRITES.values():
        for path, before, other in zip(files, contents, contents[1:] + contents[:1], strict=True):
            path.write_bytes(rewrite(before, other))
        sync(store)
    assert any(queries)


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli", "pi"])
def test_a_log_that_was_written_anew_titles_its_session_anew(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prompt that it no longer holds neither titles nor counts, also where no path says whose log it is."""
    home, path = tmp_path / "home", tmp_path / "store.db"
    shutil.copytree(LOGS / name, home / CASES[name].home)
    monkeypatch.setenv("HOME", str(home))
    hide_places(monkeypatch)

    def titles() -> dict[str, tuple[str | None, int]]:
        sync(path)
        with open_store(path) as opened:
            found = opened.sessions(limit=50).items
        return {found.id: (found.title, found.counts.prompts) for found in found if found.title_source == "prompt"}

    before = titles()
    changed = set[str]()
    for file in home.rglob("*.jsonl"):
        data = file.read_bytes()
        for session_id, (title, _) in before.items():
            # A title that is a prompt's whole text.
            if (json.dumps(title).encode()) in data:
                data = data.replace(json.dumps(title).encode(), b'"Zebra crossing"')
                changed.add(session_id)
        file.write_bytes(data)
    after = titles()
    assert {session_id: after[session_id] for session_id in changed} == {
        session_id: ("Zebra crossing", before[session_id][1]) for session_id in changed
    }
    assert changed


def steps(connection: Connection, ask: Callable[[], object]) -> int:
    """How many steps SQLite takes for an answer."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    connection.set_progress_handler(count, 1)
    ask()
    connection.set_progress_handler(None, 1)
    return taken


def test_the_messages_of_a_file_are_not_counted_through(tmp_path: Path) -> None:
    """To find the session that a file of 1,000 messages left costs what it costs with 10."""
    with ToyStore(tmp_path) as store:
        for name, size in (("short.log", 10), ("long.log", 1000)):
            store.write(name, *(line(kind="text", message=f"{name}{number}") for number in range(size)))
            store.read(name)
        store.connection.execute("UPDATE sources SET generation = 1")
        keys = {path: key for path, key in store.rows("SELECT path, key FROM sources")}
        taken: list[int] = []
        for path, key in keys.items():
            sessions = {row[0] for row in store.rows("SELECT session_key FROM memberships WHERE source_key = ?", key)}
            assert replaced_in(store.connection, [key]) == sessions, path
            assert replaced_in(store.connection, [key], sessions) == set()
            taken.append(steps(store.connection, lambda key=key: replaced_in(store.connection, [key])))
        assert max(taken) - min(taken) < 10
