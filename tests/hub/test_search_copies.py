"""A copy that is searched and broke is made anew, and until then a search says how much it lacks."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.hubs import Hub, hub, save_session
from support.postgres_stores import PostgresDatabases
from turnlog.hub import cache_parts, replicas
from turnlog.store.postgres.search import BrokenCopyError, SearchReplica


def leave_parts(path: Path) -> None:
    """Parts of messages that are not there, whose keys the next ones get: forgetting left such rows once."""
    with closing(sqlite3.connect(path)) as copy, copy:
        columns = [name for _, name, *_ in copy.execute("PRAGMA table_info(parts)")]
        values = ", ".join("message_key + 2" if name == "message_key" else name for name in columns)
        copy.execute(f"INSERT INTO parts ({', '.join(columns)}) SELECT {values} FROM parts")


def overwrite_pages(path: Path) -> None:
    """A file of which a disk has kept the beginning."""
    with closing(sqlite3.connect(path)) as copy:
        copy.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = path.read_bytes()
    path.write_bytes(data[:8192] + b"\xa5" * (len(data) - 8192))


def drop_a_table(path: Path) -> None:
    """A schema of which something is missing."""
    with closing(sqlite3.connect(path)) as copy, copy:
        copy.execute("DROP TABLE parts")


def find(client: Any, word: str) -> list[str]:
    """The sessions in which a word is, as soon as there are any."""
    until = time.monotonic() + 30
    while True:
        answer = client.get(f"/api/search?q={word}")
        assert answer.status_code == 200, answer.text
        if (found := [each["session"]["id"] for each in answer.json()["items"]]) or time.monotonic() > until:
            return found
        time.sleep(0.02)


def logged_by(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the copies have logged; the copy is searched a moment before that is."""
    until = time.monotonic() + 20
    while True:
        logged = [each.getMessage() for each in caplog.records if each.name == replicas.__name__]
        if logged or time.monotonic() > until:
            return logged
        time.sleep(0.02)


def test_a_broken_copy_heals_and_finds_the_new_and_the_old(
    databases: PostgresDatabases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(replicas, "SECONDS_BETWEEN_COPIES", 0.0)
    breaks: tuple[tuple[Callable[[Path], None], str], ...] = (
        (leave_parts, "UNIQUE constraint failed: parts.message_key, parts.sequence"),
        (overwrite_pages, "malformed"),
        (drop_a_table, "no such table: "),
    )
    with hub(databases, tmp_path) as new_hub:
        ana = new_hub.browser("Ana", "owner")
        save_session(ana, "old", "walnut")
        assert find(ana, "walnut") == ["turnlog:old"]
        for number, (break_copy, said) in enumerate(breaks):
            caplog.clear()
            break_copy(next(tmp_path.rglob("turnlog.db")))
            save_session(ana, f"new{number}", f"filbert{number}")
            assert find(ana, f"filbert{number}") == [f"turnlog:new{number}"], said
            assert find(ana, "walnut") == ["turnlog:old"], said
            logged = logged_by(caplog)
            assert len(logged) == 1, logged
            assert "is made anew" in logged[0]
            assert said in logged[0]
            assert "filbert" not in logged[0]
        assert ana.get("/api/status").json()["search"]["unindexed"] == 0


def test_a_file_that_is_no_database_is_made_anew_when_it_is_opened(new_hub: Hub, tmp_path: Path) -> None:
    save_session(new_hub.browser("Ana", "owner"), "old", "walnut")
    for _ in range(2):
        with closing(replicas.Replicas(new_hub.database, tmp_path / "copies")) as copies:
            followed = copies.of(1)
            assert followed.is_ready.is_set()
            assert len(followed.replica.search("walnut").hits) == 2
        next((tmp_path / "copies").rglob("turnlog.db")).write_bytes(b"no database" * 1000)


def test_rows_that_cannot_be_copied_are_counted_for_their_readers(
    new_hub: Hub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[SearchReplica] = []
    make_anew = SearchReplica.make_anew

    def count(self: SearchReplica) -> None:
        made.append(self)
        make_anew(self)

    ana, ben = new_hub.browser("Ana", "owner"), new_hub.browser("Ben")
    save_session(ana, "old", "walnut")
    assert find(ana, "walnut") == ["turnlog:old"]
    assert ana.get("/api/search?q=walnut").json()["unindexed"] == 0

    def fail(self: SearchReplica) -> int:
        raise BrokenCopyError("CHECK constraint failed: x")

    monkeypatch.setattr(SearchReplica, "make_anew", count)
    monkeypatch.setattr(SearchReplica, "follow", fail)
    save_session(ana, "new", "hazel")
    until = time.monotonic() + 30
    while not any("is made anew in 3" in each.getMessage() for each in caplog.records):
        assert time.monotonic() < until
        time.sleep(0.02)
    for path in ("/api/search?q=hazel", "/api/search?q=hazel&flat=true"):
        assert ana.get(path).json()["unindexed"] == 4
        assert ben.get(path).json()["unindexed"] == 0
    assert ana.get("/api/status").json()["search"]["unindexed"] == 4
    for number in range(5):
        save_session(ana, f"more{number}", "almond")
    assert len(made) == 1
    assert sum(each.levelno == logging.WARNING for each in caplog.records if each.name == replicas.__name__) == 2


def test_where_nothing_can_be_searched_everything_is_counted(new_hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what the copy had before it broke, for as long as it is not made anew."""

    def fail(self: SearchReplica, *arguments: Any, **more: Any) -> None:
        raise BrokenCopyError("database disk image is malformed")

    ana, ben = new_hub.browser("Ana", "owner"), new_hub.browser("Ben")
    save_session(ana, "old", "walnut")
    assert find(ana, "walnut") == ["turnlog:old"]
    monkeypatch.setattr(SearchReplica, "search", fail)
    monkeypatch.setattr(SearchReplica, "make_anew", fail)
    until = time.monotonic() + 30
    while (found := ana.get("/api/search?q=walnut&flat=true").json())["unindexed"] != 2:
        assert time.monotonic() < until, found
    assert found["items"] == []
    assert ana.get("/api/status").json()["search"]["unindexed"] == 2
    assert ben.get("/api/search?q=walnut&flat=true").json()["unindexed"] == 0
    # The next search that finds something shows that there is a copy.
    monkeypatch.undo()
    assert find(ana, "walnut") == ["turnlog:old"]
    until = time.monotonic() + 30
    while ana.get("/api/status").json()["search"]["unindexed"]:
        assert time.monotonic() < until
        time.sleep(0.1)


def words_in(folder: Path, word: bytes) -> list[str]:
    """The files in which a word is, in any case of its letters."""
    found: list[str] = []
    for place, _, names in os.walk(folder):
        for path in (Path(place) / name for name in names):
            with suppress(FileNotFoundError):  # it is being removed
                found += [str(path)] if word in path.read_bytes().lower() else []
    return found


def wait_until_gone(folder: Path, word: bytes) -> None:
    until = time.monotonic() + 30
    while found := words_in(folder, word):
        assert time.monotonic() < until, found
        time.sleep(0.05)


def test_copies_of_processes_that_have_ended_are_removed(
    new_hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is forgotten would stay in them. A process that is started again soon enough finds its copy."""
    monkeypatch.setattr(replicas, "CLEAN_SECONDS", 0.05)
    save_session(new_hub.browser("Ana", "owner"), "old", "walnut")
    copies = tmp_path / "copies"
    with closing(replicas.Replicas(new_hub.database, copies)) as first:
        second = replicas.Replicas(new_hub.database, copies)
        for each in (first, second):
            assert each.of(1).is_ready.wait(30)
        time.sleep(0.3)
        assert words_in(copies / "search-1", b"walnut")
        second.close()
        time.sleep(0.3)
        assert words_in(copies / "search-1", b"walnut")
        monkeypatch.setattr(cache_parts, "SECONDS_WITHOUT_OWNER", 0.1)
        wait_until_gone(copies / "search-1", b"walnut")
        assert words_in(copies / "search-0", b"walnut")
        # The place is another's from then on, as it was before.
        with closing(replicas.Replicas(new_hub.database, copies)) as third:
            assert third.of(1).is_ready.wait(30)
            assert words_in(copies / "search-1", b"walnut")


def test_a_file_among_the_copies_does_not_keep_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_parts, "SECONDS_WITHOUT_OWNER", 0.0)
    for name in ("search-0", "search-2"):
        (tmp_path / name).write_text("somebody's")
    old = tmp_path / "search-3" / "1"
    old.mkdir(parents=True)
    with closing(cache_parts.CachePart(tmp_path)) as part:
        assert part.path == tmp_path / "search-1"
        part.remove_others()
    assert not old.exists()


def test_a_copy_found_at_the_start_drops_forgotten_sessions(new_hub: Hub, tmp_path: Path) -> None:
    ana = new_hub.browser("Ana", "owner")
    session = save_session(ana, "old", "walnut")
    save_session(ana, "new", "filbert")
    copies = tmp_path / "copies"
    with closing(replicas.Replicas(new_hub.database, copies)) as first:
        assert first.of(1).is_ready.wait(30)
    other = copies / "search-0" / "another-1"
    other.mkdir()
    (other / "turnlog.db").write_bytes(b"walnut")
    assert words_in(copies, b"walnut")
    assert ana.delete(f"/api/sessions/{session}").status_code in (200, 204)
    with closing(replicas.Replicas(new_hub.database, copies)):
        wait_until_gone(copies, b"walnut")
        assert words_in(copies, b"filbert")


def wait_for_unindexed(client: Any, wanted: int) -> None:
    until = time.monotonic() + 30
    while (found := client.get("/api/status").json()["search"]["unindexed"]) != wanted:
        assert time.monotonic() < until, found
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("constraint", "spoil", "mend", "lacking"),
    [
        (
            "parts_type_check",
            "UPDATE turnlog.parts p SET type = 'bomb' FROM turnlog.messages m"
            " WHERE m.key = p.message_key AND m.external_id = 'bad-1'",
            "UPDATE turnlog.parts SET type = 'text' WHERE type = 'bomb'",
            1,
        ),
        (
            "sessions_relationship_check",
            "UPDATE turnlog.sessions SET relationship = 'bomb' WHERE external_id = 'bad'",
            "UPDATE turnlog.sessions SET relationship = NULL WHERE relationship = 'bomb'",
            2,
        ),
    ],
    ids=["of a message", "of a session"],
)
def test_a_row_that_a_copy_refuses_is_skipped_and_counted(
    new_hub: Hub, tmp_path: Path, caplog: pytest.LogCaptureFixture, constraint: str, spoil: str, mend: str, lacking: int
) -> None:
    changed = (
        "UPDATE turnlog.messages SET changed_seq = (SELECT max(seq) FROM turnlog.changes)"
        " WHERE external_id LIKE 'bad-%'"
    )
    ana, ben = new_hub.browser("Ana", "owner"), new_hub.browser("Ben")
    save_session(ana, "old", "walnut")
    assert find(ana, "walnut") == ["turnlog:old"]
    table = constraint.partition("_")[0]
    with psycopg.connect(new_hub.url) as database:
        database.execute(f"ALTER TABLE turnlog.{table} DROP CONSTRAINT {constraint}".encode())
    save_session(ana, "bad", "hazel")
    wait_for_unindexed(ana, 0)
    for statement, word in ((spoil, "filbert"), (mend, "almond")):
        with psycopg.connect(new_hub.url) as database:
            database.execute(statement.encode())
        save_session(ana, word, word)
        with psycopg.connect(new_hub.url) as database:
            database.execute(
                b"INSERT INTO turnlog.changes (team_key, session_key, kind, at)"
                b" SELECT team_key, key, 'session', 0 FROM turnlog.sessions WHERE external_id = 'bad'"
            )
            database.execute(changed.encode())
        save_session(ana, f"{word}2", word)
        until = time.monotonic() + 30
        while len(found := find(ana, word)) < 2:
            assert time.monotonic() < until, found
        assert find(ana, "walnut") == ["turnlog:old"]
        wait_for_unindexed(ana, lacking if word == "filbert" else 0)
        assert ben.get("/api/status").json()["search"]["unindexed"] == 0
        assert ana.get(f"/api/search?q={word}").json()["unindexed"] == (lacking if word == "filbert" else 0)
    assert find(ana, "hazel") == ["turnlog:bad"]
    logged = [each.getMessage() for each in caplog.records if each.name.startswith("turnlog")]
    assert not any("made anew" in each for each in logged)
    assert any(
        f"search lacks {lacking} messages that cannot be copied: CHECK constraint failed" in each for each in logged
    )
    assert not words_in(tmp_path, b"trial")


ZERO = "a\0b"


def test_a_zero_character_in_any_name_ends_no_search(new_hub: Hub) -> None:
    """PostgreSQL has none in texts, and SQLite looks nothing up that has one."""
    ana, ben = new_hub.browser("Ana", "owner"), new_hub.browser("Ben")
    for number, field in enumerate(("title", "cwd", "git_branch", "agent_version", "external_id")):
        facts: dict[str, Any] = {"external_id": f"s{number}", "title": "t", field: f"{ZERO}{number}"}
        answer = ben.post("/api/sessions", json=facts)
        assert answer.status_code in (201, 422), answer.text
    session_id = ben.post("/api/sessions", json={"external_id": "zeros"}).json()["id"]
    call: dict[str, Any] = {
        "type": "tool-call",
        "tool_call_id": "c",
        "tool_name": "Bash",
        "kind": "execute",
        "input_text": "{}",
    }
    named: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
        ({"id": ZERO}, {}),
        ({"model": ZERO}, {}),
        ({}, {"tool_name": ZERO}),
        ({}, {"tool_call_id": ZERO}),
        ({}, {"input_text": ZERO}),
    )
    for number, (message, part) in enumerate(named):
        said: dict[str, Any] = {"id": f"m{number}", "role": "assistant", **message, "parts": [{**call, **part}]}
        answer = ben.post(f"/api/sessions/{session_id}/messages", json={"messages": [said]})
        assert answer.status_code in (200, 201, 422), answer.text
    save_session(ana, "new", "walnut")
    assert find(ana, "walnut") == ["turnlog:new"]
    assert ana.get("/api/search?q=walnut").json()["unindexed"] == 0


def test_names_of_hidden_sessions_are_refused_as_those_of_none(new_hub: Hub) -> None:
    """Otherwise anybody could ask for the projects and models that others have, one name after the other."""
    ana, ben = new_hub.browser("Ana", "owner"), new_hub.browser("Ben")
    save_session(ana, "hidden", "walnut", cwd="/work/almond")
    save_session(ben, "own", "filbert")
    said = {"id": "h", "role": "assistant", "model": "cashew", "parts": [{"type": "text", "text": "pecan"}]}
    assert ana.post("/api/sessions/turnlog:hidden/messages", json={"messages": [said]}).status_code == 200
    assert find(ana, "model:cashew%20pecan") == ["turnlog:hidden"]
    assert find(ben, "filbert") == ["turnlog:own"]
    for query in ("model:{}", "-model:{}%20filbert", "project:{}", "filbert%20-project:{}"):
        for names in (("cashew", "absent"), ("almond", "absent")):
            answers = [ben.get(f"/api/search?q={query.format(name)}") for name in names]
            assert [answer.status_code for answer in answers] == [422, 422], query
            hidden, absent = (answer.text.replace(name, "") for answer, name in zip(answers, names, strict=True))
            assert hidden == absent
