"""Logs that name the session of another log, too: programs built on pi write `local`, `1` or `local-conv-1`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.pi_files import SESSION, answer, header, lines, record, user
from turnlog.agents import agent
from turnlog.agents.commands import resume_command
from turnlog.agents.pi.sources import external_id, is_unique, named_session
from turnlog.model import TextPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import Syncer, sync

PI = agent("pi")
TIME = "2026-11-22T20:00:00.000Z"
LATER = "2026-11-23T20:00:00.000Z"


def talk(topic: str, *, identity: str = "local", began: str = TIME, **fields: Any) -> list[dict[str, Any]]:
    reply = answer(2, {"type": "text", "text": f"{topic} answer"}, usage={"input": 5, "output": 1, "totalTokens": 6})
    return [header(id=identity, timestamp=began, **fields), user(f"{topic} question", 1), reply]


def write(home: Path, name: str, records: list[dict[str, Any]], project: str = "--home-dev-work--") -> Path:
    path = home / "sessions" / project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(*records))
    return path


def name(identity: str = "local", began: str = TIME) -> str:
    return f"{began.replace(':', '-').replace('.', '-')}_{identity}.jsonl"


def topics(tmp_path: Path, *homes: str) -> dict[str, list[str]]:
    """The first words of the texts of each session."""
    sync(tmp_path / "store.db", roots=[tmp_path / home for home in homes or (".pi",)], agents=[PI])
    found: dict[str, list[str]] = {}
    with open_store(tmp_path / "store.db") as store:
        for session in store.sessions(SessionFilter(subagents=True)).items:
            parts = [part for placed in store.messages(session.id) for part in placed.message.parts]
            found[session.id] = [part.text.split()[0] for part in parts if isinstance(part, TextPart)]
    return found


def calls(tmp_path: Path) -> int:
    with open_store(tmp_path / "store.db") as store:
        return store.usage("model").totals.calls


@pytest.mark.parametrize("identity", ["local", "1", "session", "local-conv-1", "00000000-0000-0000-0000-000000000000"])
def test_an_id_that_is_not_unique_has_the_time_of_its_session(identity: str, tmp_path: Path) -> None:
    write(tmp_path / ".pi", name(identity), talk("otter", identity=identity))
    write(tmp_path / ".pi", name(identity, LATER), talk("heron", identity=identity, began=LATER))
    found = topics(tmp_path)
    assert found == {
        f"pi:{identity}@2026-11-22T20-00-00-000Z": ["otter", "otter"],
        f"pi:{identity}@2026-11-23T20-00-00-000Z": ["heron", "heron"],
    }
    assert calls(tmp_path) == 2


@pytest.mark.parametrize("identity", ["local", SESSION])
@pytest.mark.parametrize("folders", [("a", "b"), ("a", "a")])
def test_two_conversations_of_one_id_are_two_sessions(identity: str, folders: tuple[str, str], tmp_path: Path) -> None:
    """Also with the same time, and with records that have the same ids and times."""
    began = (TIME, TIME) if folders[0] != folders[1] else (TIME, LATER)
    for topic, folder, at in zip(("otter", "heron"), folders, began, strict=True):
        write(tmp_path / ".pi", name(identity, at), talk(topic, identity=identity, began=at), folder)
    found = topics(tmp_path)
    assert sorted(found.values()) == [["heron", "heron"], ["otter", "otter"]]
    assert calls(tmp_path) == 2


def test_one_id_in_two_homes_is_two_sessions(tmp_path: Path) -> None:
    write(tmp_path / ".pi", "local-conv-1.jsonl", talk("otter", identity="local-conv-1"))
    write(tmp_path / "other" / ".pi", "local-conv-1.jsonl", talk("heron", identity="local-conv-1", began=LATER))
    assert sorted(topics(tmp_path, ".pi", "other/.pi").values()) == [["heron", "heron"], ["otter", "otter"]]


@pytest.mark.parametrize("identity", ["local", SESSION])
def test_a_copy_of_a_log_is_the_same_session(identity: str, tmp_path: Path) -> None:
    """Whatever its name says, and also if it goes on."""
    write(tmp_path / ".pi", name(identity), talk("otter", identity=identity))
    write(tmp_path / ".pi", name(identity, LATER), [*talk("otter", identity=identity), user("otter more", 3)])
    assert list(topics(tmp_path).values()) == [["otter", "otter", "otter"]]
    assert calls(tmp_path) == 1


def test_a_fork_shares_its_messages(tmp_path: Path) -> None:
    """Both have ids that are not unique; the fork names the file of its original."""
    original = write(tmp_path / ".pi", name("local"), talk("otter"))
    fork = talk("otter", identity="fork", began=LATER, parentSession=str(original))
    last = {**record("message", 3), "timestamp": LATER}
    last["message"] = {"role": "user", "content": "otter fork"}
    write(tmp_path / ".pi", name("fork", LATER), [*fork, last])
    assert len(topics(tmp_path)) == 2
    assert calls(tmp_path) == 1
    with open_store(tmp_path / "store.db") as store:
        relations = store.session("pi:fork@2026-11-23T20-00-00-000Z").relationships
    assert [(relation.kind, relation.parent_session_id) for relation in relations] == [
        ("fork", "pi:local@2026-11-22T20-00-00-000Z"),
    ]


def test_a_session_keeps_its_id_while_it_grows(tmp_path: Path) -> None:
    path = write(tmp_path / ".pi", name("local"), talk("otter")[:1])
    (before,) = [source.session_id for source in PI.find_sources(tmp_path / ".pi")]
    path.write_bytes(lines(*talk("otter")))
    assert [source.session_id for source in PI.find_sources(tmp_path / ".pi")] == [before]


def test_the_time_behind_an_id_is_not_given_to_the_program() -> None:
    assert PI.command is not None
    assert resume_command(PI.command, "local@2026-11-22T20-00-00-000Z") == ["pi", "--session", "local"]


@pytest.mark.parametrize(
    ("identity", "unique"),
    [
        *((SESSION, True), ("1f9d2a6b9c0d1234", True), ("01JDXQ4ZB7R6M3W9K2T5V8Y0AC", True)),
        *(("local", False), ("1", False), ("my-session-of-today", False), ("1111111111111111", False)),
    ],
)
def test_which_ids_mean_one_session(identity: str, unique: bool) -> None:
    assert is_unique(identity) is unique


def test_the_path_of_a_parent_names_it_also_where_it_is_not_there() -> None:
    path = "C:\\home\\sessions\\--x--\\2026-11-22T20-00-00-000Z_local.jsonl"
    assert named_session(path) == "local@2026-11-22T20-00-00-000Z"
    assert external_id(Path("notes.jsonl")) == "notes"


@pytest.mark.parametrize("identity", [SESSION, "local", "3f6f0b7c-1d6b-4a4e-8a51-f1c2d3e4f501"])
@pytest.mark.parametrize("began", [TIME, LATER])
def test_one_id_of_two_conversations_in_two_homes_is_two_sessions(began: str, identity: str, tmp_path: Path) -> None:
    """In one pass, and where the second home comes later; also with an earlier log, and after a rebuild."""
    homes = (".pi", "other/.pi")
    expected = [["heron", "heron"], ["otter", "otter"]]
    for place, both in (("once", True), ("apart", False)):
        folder = tmp_path / place
        write(folder / ".pi", name(identity, LATER), talk("heron", identity=identity, began=LATER))
        if not both:
            topics(folder, *homes)
        write(folder / "other" / ".pi", name(identity, began), talk("otter", identity=identity, began=began))
        found = topics(folder, *homes)
        assert sorted(found.values()) == expected
        assert calls(folder) == 2
        rebuild(folder / "store.db")
        assert topics(folder, *homes) == found


@pytest.mark.parametrize("identity", [SESSION, "local"])
def test_a_copy_in_another_home_is_the_same_session(identity: str, tmp_path: Path) -> None:
    write(tmp_path / ".pi", name(identity), talk("otter", identity=identity))
    more = [*talk("otter", identity=identity), user("otter more", 3)]
    write(tmp_path / "other" / ".pi", name(identity, LATER), more)
    assert list(topics(tmp_path, ".pi", "other/.pi").values()) == [["otter", "otter", "otter"]]
    assert calls(tmp_path) == 1


@pytest.mark.parametrize("identity", [SESSION, "local"])
def test_three_conversations_of_one_id_and_time_are_three_sessions(identity: str, tmp_path: Path) -> None:
    for topic in ("otter", "heron", "badger"):
        write(tmp_path / ".pi", name(identity), talk(topic, identity=identity), topic)
    assert sorted(topics(tmp_path).values()) == [[topic] * 2 for topic in ("badger", "heron", "otter")]


def test_a_log_that_has_only_a_header_is_told_apart_by_its_time(tmp_path: Path) -> None:
    """And keeps its session when it grows, and when the other log is gone."""
    other = write(tmp_path / ".pi", name(SESSION), talk("otter", identity=SESSION))
    second = talk("heron", identity=SESSION, began=LATER)
    path = write(tmp_path / ".pi", name(SESSION, LATER), second[:1], "second")
    topics(tmp_path)
    path.write_bytes(lines(*second))
    found = topics(tmp_path)
    assert sorted(found.values()) == [["heron", "heron"], ["otter", "otter"]]
    other.unlink()
    path.write_bytes(lines(*second, user("heron more", 3)))
    session = f"pi:{SESSION}@2026-11-23T20-00-00-000Z"
    for _ in range(2):
        assert topics(tmp_path) == {**found, session: ["heron"] * 3}
        rebuild(tmp_path / "store.db")


@pytest.mark.parametrize("identity", [SESSION, "local"])
def test_a_rebuild_parts_sessions_that_an_older_version_made_one(identity: str, tmp_path: Path) -> None:
    for topic, began in (("otter", TIME), ("heron", LATER)):
        write(tmp_path / ".pi", name(identity, began), talk(topic, identity=identity, began=began))
    fresh = topics(tmp_path)
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
        connection.execute("UPDATE sources SET session_id = ?", (f"pi:{identity}",))
    rebuild(tmp_path / "store.db")
    assert topics(tmp_path) == fresh


def test_a_new_log_of_another_home_is_told_apart_where_only_it_is_read(tmp_path: Path) -> None:
    """As when its folder is watched."""
    write(tmp_path / ".pi", name(SESSION), talk("otter", identity=SESSION))
    topics(tmp_path)
    write(tmp_path / "other" / ".pi", name(SESSION, LATER), talk("heron", identity=SESSION, began=LATER))
    with Syncer(tmp_path / "store.db", agents=[PI]) as syncer:
        syncer.read((), [(PI, source) for source in PI.discover([tmp_path / "other" / ".pi"])])
    assert sorted(topics(tmp_path).values()) == [["heron", "heron"], ["otter", "otter"]]
