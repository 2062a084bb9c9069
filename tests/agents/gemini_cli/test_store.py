"""Real logs through the whole way in: any order, any growth, and files that are rewritten whole (R-C13)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from support.gemini_files import AGENT, DATA, SESSION, answer, call, header, lines, tokens, user
from support.plain_store import PRICE_VERSION, price
from support.store_dump import Dump, check_integrity, differences, dump
from turnlog.agents.base import Agent, Source
from turnlog.logs import read_session
from turnlog.model import MessageEvent, TextPart, ToolCallPart, ToolResultEvent
from turnlog.store import open_store
from turnlog.store.connection import connect
from turnlog.store.sqlite.restore import restore_files
from turnlog.sync.reader import SourceReader
from turnlog.sync.rebuild import rebuild

# Streams lie in no home.
CASES = sorted(case for group in DATA.iterdir() for case in group.iterdir() if group.name != "streams")
APPENDS = 8


def found(home: Path) -> list[tuple[Agent, Source]]:
    return [(AGENT, source) for source in AGENT.discover([home])]


def sync(store: Path, home: Path, random: Random | None = None) -> Dump:
    connection = connect(store, checked=False)
    try:
        sources = found(home)
        if random is not None:
            random.shuffle(sources)
        for source in sources:
            assert SourceReader(connection, price, PRICE_VERSION).read([source]).problems == []
        check_integrity(connection)
        return dump(connection)
    finally:
        connection.close()


def without_passes(dumped: Dump) -> Dump:
    return {table: rows for table, rows in dumped.items() if table not in {"sources", "archive"}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_a_home_read_as_it_grew_in_any_order_is_the_home_read_at_once(case: Path, tmp_path: Path) -> None:
    home = tmp_path / "gemini"
    shutil.copytree(case, home)
    whole = sync(tmp_path / "whole.db", home, Random(1))
    logs = {Path(source.path): Path(source.path).read_bytes() for _, source in found(home) if source.appendable}
    chance = Random(2)
    cuts = {path: sorted(chance.randint(0, len(data)) for _ in range(APPENDS)) for path, data in logs.items()}
    for step in range(APPENDS):
        for path, data in logs.items():
            path.write_bytes(data[: cuts[path][step]])
        sync(tmp_path / "grown.db", home, chance)
    for path, data in logs.items():
        path.write_bytes(data)
    grown = sync(tmp_path / "grown.db", home, chance)
    assert differences(without_passes(grown), without_passes(whole)) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_every_log_comes_back_byte_for_byte(case: Path, tmp_path: Path) -> None:
    shutil.copytree(case, tmp_path / "gemini")
    wanted = {source.path: Path(source.path).read_bytes() for _, source in found(tmp_path / "gemini")}
    sync(tmp_path / "store.db", tmp_path / "gemini")
    shutil.rmtree(tmp_path / "gemini")
    connection = connect(tmp_path / "store.db")
    try:
        sessions = [row[0] for row in connection.execute("SELECT agent || ':' || external_id FROM sessions")]
        restored = {
            file.source: file.path.read_bytes()
            for number, session in enumerate(sessions)
            for file in restore_files(connection, session, tmp_path / "back" / str(number))
        }
    finally:
        connection.close()
    assert restored == wanted


# -- files of JSON, rewritten whole


@pytest.fixture
def gemini(tmp_path: Path) -> Path:
    (tmp_path / "gemini/tmp/shop/chats").mkdir(parents=True)
    return tmp_path / "gemini"


class Rewritten:
    """A session's file of JSON, and the store that follows it."""

    def __init__(self, home: Path, tmp_path: Path) -> None:
        self.home = home
        self.store = tmp_path / "store.db"
        self.path = home / "tmp/shop/chats/session-2026-11-21T10-00-11111111.json"
        self.minute = 0

    def write(self, *messages: object) -> None:
        self.minute += 1
        record = header(messages=list(messages), lastUpdated=f"2026-11-21T10:{self.minute:02d}:00.000Z")
        self.path.write_text(json.dumps(record, indent=2))
        sync(self.store, self.home)

    def rows(self) -> Iterator[tuple[str, str, int | None]]:
        connection = sqlite3.connect(self.store)
        yield from connection.execute(
            "SELECT m.external_id, s.fate, m.output FROM memberships s JOIN messages m ON m.key = s.message_key"
            " ORDER BY s.position"
        ).fetchall()
        connection.close()

    def fates(self) -> dict[str, str]:
        return {name.rpartition(":")[2]: fate for name, fate, _ in self.rows()}


ONE, TWO = (
    user("u1", "one"),
    answer("g1", "a", tokens=tokens(output=5), thoughts=[{"subject": "S", "description": "d"}]),
)


def test_a_rewrite_doubles_nothing(gemini: Path, tmp_path: Path) -> None:
    log = Rewritten(gemini, tmp_path)
    log.write(ONE)
    log.write(ONE, TWO)
    log.write(ONE, {**TWO, "toolCalls": [call("c1", None, status="executing")]}, user("u2", "two"))
    log.write(ONE, {**TWO, "toolCalls": [call("c1")]}, user("u2", "two"))
    assert log.fates() == {"u1": "active", "g1": "active", "u2": "active"}
    assert [row[2] for row in log.rows()] == [None, 5, None]


def test_what_a_rewrite_drops_stays(gemini: Path, tmp_path: Path) -> None:
    """Tokens and thoughts of a message, and messages as a whole."""
    log = Rewritten(gemini, tmp_path)
    log.write(ONE, TWO, user("u2", "two"), answer("g2", "b"))
    log.write(ONE, answer("g1", "a"), user("u3", "three"))
    assert log.fates() == {"u1": "active", "g1": "active", "u2": "rewound", "g2": "rewound", "u3": "active"}
    assert [row[2] for row in log.rows()][1] == 5


def test_a_session_goes_on_in_a_log_of_lines(gemini: Path, tmp_path: Path) -> None:
    """A new version converts the file and leaves the old one where it is."""
    log = Rewritten(gemini, tmp_path)
    log.write(ONE, TWO)
    log.path.with_suffix(".jsonl").write_bytes(
        lines(header(lastUpdated="2026-11-21T10:30:00.000Z"), ONE, TWO, user("u2", "two"), answer("g2", "b"))
    )
    for seed in range(3):
        log.store = tmp_path / f"store{seed}.db"
        sync(log.store, gemini, Random(seed))
        assert log.fates() == {"u1": "active", "g1": "active", "u2": "active", "g2": "active"}


def test_a_second_file_of_a_session_without_a_conversation_changes_nothing(gemini: Path, tmp_path: Path) -> None:
    context = user("ctx", "<session_context> here")
    first = gemini / "tmp/shop/chats/session-2026-11-21T10-00-11111111.jsonl"
    second = gemini / "tmp/shop/chats/session-2026-11-21T11-00-11111111.jsonl"
    first.write_bytes(lines(header(), context, ONE, TWO, user("u2", "bad"), {"$rewindTo": "u2"}))
    later = {"startTime": "2026-11-21T11:00:00.000Z", "lastUpdated": "2026-11-21T11:00:00.000Z"}
    second.write_bytes(lines(header(**later), {"$set": {"messages": [context]}}))
    log = Rewritten(gemini, tmp_path)
    for seed in range(3):
        log.store = tmp_path / f"store{seed}.db"
        sync(log.store, gemini, Random(seed))
        assert log.fates() == {"ctx": "active", "u1": "active", "g1": "active", "u2": "rewound"}
    assert SESSION in first.read_text()


def test_a_session_rebuilt_without_originals_keeps_its_folder(tmp_path: Path) -> None:
    """R-C6: what names the folder lies beside the logs and is in no archive."""
    home, store = tmp_path / "gemini", tmp_path / "store.db"
    shutil.copytree(DATA / "scenarios" / "basic", home)
    sync(store, home)
    with open_store(store) as reading:
        before = {session.id: (session.project, session.cwd) for session in reading.sessions().items}
    assert all(project is not None and cwd is not None for project, cwd in before.values())
    shutil.rmtree(home)
    rebuild(store, agents=[AGENT])
    with open_store(store) as reading:
        assert {session.id: (session.project, session.cwd) for session in reading.sessions().items} == before


def test_messages_before_the_first_clear_come_before_the_rest(tmp_path: Path) -> None:
    """0.20 to 0.34 begin another file under the same id; both begin at the same offset. Also when made anew."""
    home, store = tmp_path / "gemini", tmp_path / "store.db"
    shutil.copytree(DATA / "versions" / "0.20.0-cleared", home)
    wanted = [
        ("First thing", "rewound"),
        ("Answer number Y0.", "rewound"),
        ("Second thing", "rewound"),
        ("Answer number Y1.", "rewound"),
        ("Third thing", "active"),
        ("Answer number Y2.", "active"),
    ]
    for seed in range(3):
        sync(store, home, Random(seed))
        assert said_in(store) == wanted
    shutil.rmtree(home)
    rebuild(store, agents=[AGENT])
    assert said_in(store) == wanted


def test_a_session_whose_history_was_shortened_goes_on_in_the_next_file(tmp_path: Path) -> None:
    """0.20 begins another file under the same id then, and nothing in it says what came before."""
    home = tmp_path / "gemini"
    shutil.copytree(DATA / "versions" / "0.20.0-shortened", home)
    for seed in range(3):
        store = tmp_path / f"store{seed}.db"
        sync(store, home, Random(seed))
        with open_store(store) as reading:
            (session,) = reading.sessions().items
            places = [placed.membership for placed in reading.messages(session.id)]
        assert (session.title, session.counts.turns) == ("Say one", 8)
        assert [place.turn for place in places] == sorted(place.turn or 0 for place in places)
        assert {place.fate for place in places} == {"active"}


def test_no_link_leads_to_an_earlier_file(tmp_path: Path) -> None:
    """R-S20: nothing outside of the root is read."""
    home = tmp_path / "gemini"
    shutil.copytree(DATA / "versions" / "0.20.0-shortened", home)
    (first,) = home.rglob("session-2026-11-22T14-02-*.json")
    first.rename(tmp_path / first.name)
    first.symlink_to(tmp_path / first.name)
    sync(tmp_path / "store.db", home)
    with open_store(tmp_path / "store.db") as reading:
        (session,) = reading.sessions().items
        assert (session.title, session.counts.turns) == ("Say five", 4)


def said_in(store: Path) -> list[tuple[str, str]]:
    with open_store(store) as reading:
        (session,) = reading.sessions().items
        return [
            (part.text, placed.membership.fate)
            for placed in reading.messages(session.id)
            for part in placed.message.parts
            if isinstance(part, TextPart)
        ]


def test_a_result_comes_behind_its_call_and_before_the_next_answer(tmp_path: Path) -> None:
    """R-S19: places begin with the minute of the file's name, those of results as those of messages."""
    home = tmp_path / "home"
    shutil.copytree(DATA / "scenarios" / "basic", home)
    sync(tmp_path / "history.db", home)
    log = next(path for path in home.rglob("session-*.jsonl") if b"run_shell_command" in path.read_bytes())
    alone = read_session(log)
    with open_store(tmp_path / "history.db") as store:
        stored = store.history(alone.session.id)
    for events in (alone.events, stored):
        calls: set[str] = set()
        answered = 0
        for event in events:
            if isinstance(event, MessageEvent):
                assert len(calls) == answered, "an answer before the results of the one before it"
                calls |= {part.tool_call_id for part in event.message.parts if isinstance(part, ToolCallPart)}
            elif isinstance(event, ToolResultEvent):
                assert event.tool_call_id in calls
                assert event.records
                answered += 1
        assert answered == len(calls) > 5
