"""Titles that stand in the file of another session (versions up to 2.0): the store brings them to their own."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

from support.claude_files import AGENT, SESSION, Log, lines, text
from turnlog.store import open_store
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

OTHER = "22222222-2222-4222-8222-222222222222"


def logs() -> tuple[bytes, bytes]:
    """A session, and another whose file begins with the first one's title."""
    log = Log("1.0.35")
    records = [log.user("Hello"), log.assistant("msg_1", text("Hi."))]
    later = Log("1.0.35", sessionId=OTHER)
    later.count = 10
    title = {"type": "summary", "summary": "A greeting", "leafUuid": records[-1]["uuid"]}
    return lines(*records), lines(title, later.user("Something else"))


def titles(store: Path) -> dict[str, tuple[str | None, str | None]]:
    with open_store(store) as opened:
        return {found.external_id: (found.title, found.title_source) for found in opened.sessions().items}


def write(home: Path, name: str, data: bytes) -> None:
    folder = home / "projects" / "-home-dev-proj"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_bytes(data)


def read(folder: Path) -> None:
    sync(folder / "turnlog.db", roots=[folder / "home"], agents=[AGENT])


EXPECTED: dict[str, Any] = {SESSION: ("A greeting", "summary"), OTHER: ("Something else", "prompt")}


def test_a_session_has_the_title_that_is_in_another_file(tmp_path: Path) -> None:
    """R-C6: in whatever order the files are read, and when everything is made anew."""
    files = dict(zip((SESSION, OTHER), logs(), strict=True))
    for number, order in enumerate([*permutations(files), None]):
        folder = tmp_path / str(number)
        for name in order or files:
            write(folder / "home", name, files[name])
            if order is not None:
                read(folder)
        read(folder)
        assert titles(folder / "turnlog.db") == EXPECTED
        rebuild(folder / "turnlog.db")
        assert titles(folder / "turnlog.db") == EXPECTED


def test_the_title_is_of_a_conversation_that_ended_there(tmp_path: Path) -> None:
    """Once it goes on, what it was called is the title of its beginning: as if all had been read at once."""
    one, other = logs()
    log = Log("1.0.35")
    log.count = 2
    write(tmp_path / "home", SESSION, one)
    write(tmp_path / "home", OTHER, other)
    read(tmp_path)
    write(tmp_path / "home", SESSION, one + lines(log.user("More")))
    read(tmp_path)
    assert titles(tmp_path / "turnlog.db")[SESSION] == ("Hello", "prompt")


def test_a_rewritten_file_without_a_title_removes_it(tmp_path: Path) -> None:
    one, other = logs()
    write(tmp_path / "home", SESSION, one)
    write(tmp_path / "home", OTHER, other)
    read(tmp_path)
    write(tmp_path / "home", OTHER, other[other.index(b"\n") + 1 :])
    read(tmp_path)
    assert titles(tmp_path / "turnlog.db")[SESSION] == ("Hello", "prompt")


def test_a_forgotten_leaf_titles_no_other_session(tmp_path: Path) -> None:
    one, other = logs()
    write(tmp_path / "home", SESSION, one)
    write(tmp_path / "home", OTHER, other)
    read(tmp_path)
    forget_for_good(tmp_path / "turnlog.db", f"claude-code:{OTHER}")
    read(tmp_path)
    assert titles(tmp_path / "turnlog.db") == {SESSION: ("Hello", "prompt")}
    assert b"A greeting" not in (tmp_path / "turnlog.db").read_bytes()


def test_a_file_of_nothing_but_titles_is_no_session_in_the_list(tmp_path: Path) -> None:
    """Each start that comes to nothing leaves one."""
    one, other = logs()
    write(tmp_path / "home", SESSION, one)
    write(tmp_path / "home", OTHER, other[: other.index(b"\n") + 1])
    read(tmp_path)
    assert titles(tmp_path / "turnlog.db") == {SESSION: ("A greeting", "summary")}
    with open_store(tmp_path / "turnlog.db") as opened:
        assert opened.session(f"claude-code:{OTHER}").counts.events == 1
