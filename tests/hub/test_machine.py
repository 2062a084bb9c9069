"""A machine and its hub: what leaves, what arrives, and what is taken back."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from support.hub_double import HubProcess, hub_process
from support.hub_machines import Box, log
from support.postgres_stores import PostgresDatabases
from support.store_answers import Questions, ask
from support.usage_days import days_that_differ
from turnlog.errors import ConflictError
from turnlog.hub.machine import client, pusher, redacting
from turnlog.hub.machine.client import HubClient, HubUnreachableError
from turnlog.hub.machine.pulling import PulledLogs
from turnlog.hub.machine.pusher import PushReport, StorePusher
from turnlog.hub.machine.state import MachineState
from turnlog.model import TextPart
from turnlog.redact import KnownValues, Learned, Redactor
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.store.feed.copies import MessagesNeededError
from turnlog.store.feed.hidden_ids import HiddenIds
from turnlog.store.feed.owners import Owner
from turnlog.store.feed.reading import Shared, read_batch, shared_messages, snapshot
from turnlog.store.feed.values import IDENTITY, KEYS, SHAPE, TABLES, ArchivedBytes, FeedBatch, FeedPosition, Row
from turnlog.store.postgres.search import SearchReplica
from turnlog.store.postgres.store import PostgresStore
from turnlog.store.postgres.visibility import HIDDEN as HIDDEN_TABLES

DATA = Path(__file__).parents[1] / "data"

RECORDED = sorted(case for agent in DATA.iterdir() if agent.is_dir() for case in agent.glob("*/*") if case.is_dir())[
    ::14
]

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"walnutpixels" * 50).decode()


@pytest.fixture(scope="module")
def place(databases: PostgresDatabases) -> Iterator[tuple[HubProcess, str]]:
    """A hub, and its database."""
    url = databases.url()
    with hub_process(url) as hub:
        yield hub, url


@pytest.fixture
def hub(place: tuple[HubProcess, str]) -> Iterator[HubProcess]:
    with psycopg.connect(place[1]) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'turnlog'").fetchall()
        kept = {"schema_version", "teams", "counters"}
        names = ", ".join(f"turnlog.{name}" for (name,) in tables if name not in kept)
        connection.execute(f"TRUNCATE {names}".encode())
        connection.execute("INSERT INTO turnlog.owners (team_key, key) VALUES (1, 1)")
        connection.execute("INSERT INTO turnlog.settings (team_key, name, value) VALUES (1, 'store id', 'x')")
    yield place[0]
    assert days_that_differ(place[1]) == []


@pytest.fixture
def hub_store(place: tuple[HubProcess, str], hub: HubProcess) -> Iterator[PostgresStore]:
    with PostgresStore(place[1]) as store:
        yield store


def dump(url: str) -> bytes:
    """Everything that the database says, with bodies decompressed."""
    from turnlog.store import zstd

    found: list[bytes] = []
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'turnlog'").fetchall()
        for (table,) in tables:
            for row in connection.execute(f"SELECT * FROM turnlog.{table}".encode()):
                for value in row:
                    if isinstance(value, bytes):
                        found.append(zstd.decompress(value) if zstd.is_frame(value) else value)
                    else:
                        found.append(str(value).encode())
    return b"\n".join(found)


def ids(store: PostgresStore) -> list[str]:
    return sorted(session.id for session in store.sessions(SessionFilter(subagents=True), limit=500).items)


def test_at_full_the_hub_says_what_the_machine_says(tmp_path: Path, hub: HubProcess, hub_store: PostgresStore) -> None:
    box = Box(tmp_path, hub)
    box.level("/", "full")
    box.sync(*RECORDED)
    with open_store(box.store_path) as store:
        everything = store.sessions(SessionFilter(subagents=True), limit=500).items
        for path in {session.project.path for session in everything if session.project is not None}:
            box.level(path, "full")
    assert set(box.plan().sessions.values()) <= {"full", "redacted"}
    box.push()
    with open_store(box.store_path) as store:
        questions = [question for question in Questions(store) if question.method in ("sessions", "messages", "links")]
        assert questions
        full = {session.id for session in everything if session.project is not None}
        assert full <= set(ids(hub_store))
        for question in Questions(store).of_messages():
            if question.kwargs.get("session_id") in full:
                if question.method == "records":  # their files have the machine in front
                    here, there = [
                        [record.data for record in each.records(*question.args, **question.kwargs)]
                        for each in (store, hub_store)
                    ]
                    assert here == there
                else:
                    assert ask(store, question) == ask(hub_store, question), question
    assert box.push().batches == 0


def test_at_metrics_no_title_path_or_word_leaves(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str]
) -> None:
    box = Box(tmp_path, hub)
    box.level("/", "metrics")
    log(box, "/home/ana/walnut-project", "walnut-session", "walnut prompt", "walnut answer", image=PIXEL)
    box.sync()
    with open_store(box.store_path) as store:
        store.annotate("claude-code:walnut-session", title="walnut title", note="walnut note", tags=["walnut"])
        local = store.usage("model")
    report = box.push()
    assert report.sessions == {"claude-code:walnut-session": "metrics"}
    said = dump(place[1])
    assert b"claude-sonnet-4-5" in said
    assert b"walnut" not in said.lower()
    assert hub_store.usage("model") == local
    (session,) = hub_store.sessions().items
    assert (session.title, session.cwd, session.counts.messages) == (None, None, 2)
    assert [placed.message.parts for placed in hub_store.messages(session.id)] == [(), ()]


def test_at_redacted_secrets_images_and_files_stay(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str]
) -> None:
    box = Box(tmp_path, hub)
    secret = f"token {SECRET} in " + "a long text " * 8000
    log(box, "/home/ana/app", "s1", f"my key is {SECRET}", secret, image=PIXEL)
    box.sync()
    report = box.push()
    assert sum(report.masked.values()) >= 2
    said = dump(place[1])
    assert SECRET.encode() not in said
    assert b"walnutpixels" not in said
    first, second = hub_store.messages("claude-code:s1")
    assert getattr(first.message.parts[0], "text", "").startswith("my key is [")
    assert getattr(first.message.parts[1], "text", "") == "[image/png, held back]"
    assert len(getattr(second.message.parts[0], "text", "")) > 80_000
    with pytest.raises(Exception, match="upload level is redacted"):
        box.logs("claude-code:s1")


def test_a_secret_known_by_its_name_is_masked_everywhere_else(
    tmp_path: Path,
    hub: HubProcess,
    hub_store: PostgresStore,
    place: tuple[HubProcess, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = Box(tmp_path, hub)
    monkeypatch.setattr(pusher, "MANY_MESSAGES", 1)
    log(box, "/home/ana/app", "s1", "Why is hunter2horse refused?", "DB_PASS=hunter2horse is what .env has")
    box.sync()
    assert box.push().batches == 2
    assert b"hunter2horse" not in dump(place[1])
    with open_store(box.store_path) as store:
        store.annotate("claude-code:s1", title="About hunter2horse", note="see hunter2horse")
    # Nothing of the session's messages is sent again.
    box.push()
    assert b"hunter2horse" not in dump(place[1])
    assert "About [REDACTED:password]" in str(hub_store.sessions().items)


def test_messages_without_secrets_are_looked_at_once(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, hub)
    log(box, "/home/ana/app", "s1", "a prompt", "an answer", f"my token {SECRET}", "another answer")
    box.sync()
    looked_at: list[bytes] = []
    learn = Redactor.learn

    def noted(self: Redactor, value: object) -> Learned:
        looked_at.append(bytes(value) if isinstance(value, msgspec.Raw) else b"")
        return learn(self, value)

    monkeypatch.setattr(Redactor, "learn", noted)

    def bodies_of(action: Callable[[], PushReport]) -> tuple[int, int]:
        looked_at.clear()
        report = action()
        return len([data for data in looked_at if b'"role"' in data]), sum(report.masked.values())

    assert bodies_of(box.plan) == (4, 1)
    assert bodies_of(box.push) == (1, 1)
    with MachineState(box.store_path) as state:
        state.generation += 1
    assert bodies_of(box.push) == (1, 1)
    # Another version may find what this one did not.
    monkeypatch.setattr(pusher, "rules_digest", lambda: "other rules")
    with MachineState(box.store_path) as state:
        state.generation += 1
    assert bodies_of(box.plan) == (4, 1)
    said = str([place.message for place in hub_store.messages("claude-code:s1")])
    assert "another answer" in said
    assert SECRET not in said


def test_nothing_leaves_if_taking_out_secrets_fails(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, hub)
    log(box, "/home/ana/app", "s1", "a prompt", "an answer")
    box.sync()

    def fail(*_: object) -> bytes:
        raise RuntimeError("the scanner failed")

    monkeypatch.setattr(redacting.Redactor, "redact_json", fail)
    with pytest.raises(RuntimeError, match="the scanner failed"):
        box.push()
    assert ids(hub_store) == []


@pytest.mark.parametrize("level", ["redacted", "metrics"])
def test_names_of_models_and_tools_leave_without_secrets(
    level: str, tmp_path: Path, hub: HubProcess, place: tuple[HubProcess, str]
) -> None:
    """Two that differ only in their secrets stay two."""
    box = Box(tmp_path, hub)
    box.level("/", level)
    path = log(box, "/home/ana/app", "s1", "one", "two", "three", "four")
    call: dict[str, object] = {"type": "tool_use", "id": "t1", "name": f"mcp__{SECRET}__x", "input": {}}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["message"] |= {"model": SECRET, "content": [*lines[1]["message"]["content"], call]}
    lines[3]["message"]["model"] = f"{SECRET[:-1]}z"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    box.sync()
    box.push()
    with psycopg.connect(place[1]) as connection:
        models = [name for (name,) in connection.execute("SELECT name FROM turnlog.models")]
        tools = [name for (name,) in connection.execute("SELECT tool_name FROM turnlog.parts WHERE tool_name <> ''")]
        tools += [name for (name,) in connection.execute("SELECT tool_name FROM turnlog.call_totals")]
    assert len({name for name in models if name != "claude-sonnet-4-5"}) >= 2
    assert tools
    assert not any(SECRET[:-1] in name for name in (*models, *tools))


def test_a_name_with_a_secret_is_another_for_another_person() -> None:
    """Without their key nobody finds which of some guesses it was; on each machine of a person it is the same name."""

    def models_of(key: HiddenIds) -> list[Row]:
        rows: dict[str, list[Row]] = {"models": [(1, SECRET), (2, f"{SECRET[:-1]}z"), (3, "claude-sonnet-4-5")]}
        batch = FeedBatch(FeedPosition(), FeedPosition(1), has_more=False, rows=rows)
        cleaner = redacting.Redacting(lambda sha256: b"", lambda digests: set(), KnownValues(), key)
        return cleaner.redact(batch, {}).rows["models"]

    found = models_of(HiddenIds.of_person("core", "ana"))
    assert found == models_of(HiddenIds.of_person("core", "ana"))
    other = models_of(HiddenIds.of_person("core", "ben"))
    assert len({name for _, name in (*found[:2], *other[:2])}) == 4
    assert found[2] == other[2] == (3, "claude-sonnet-4-5")
    assert SECRET[:-1] not in str((found, other))


def test_every_column_that_leaves_is_an_id_a_number_or_cleaned() -> None:
    cleaned = {
        (table, column)
        for kinds in (redacting.TEXTS, redacting.NAMES, redacting.JSON, redacting.PACKED, redacting.DROPPED)
        for table, columns in kinds.items()
        for column in columns
    }
    assert cleaned <= {(table, column) for table, columns in TABLES.items() for column in columns}
    words = ("title", "text", "note", "path", "cwd", "prompt", "command", "metadata", "result", "error", "problem")
    risky = {
        (table, column)
        for table, columns in TABLES.items()
        if table not in redacting.HELD_BACK
        for column in columns
        if any(word in column for word in words)
    }
    numbers = {("sessions", "titled_at"), ("sessions", "prompts"), ("sessions", "title_source"), ("parts", "text_size")}
    numbers |= {("usage", "tool_prompt"), ("messages", "tool_prompt"), ("sessions", "tool_prompt")}
    assert risky - cleaned <= numbers


def test_levels_decide_and_another_level_takes_back(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str]
) -> None:
    box = Box(tmp_path, hub)
    box.level("/home/ana/client", "none")
    box.level("/home/ana/own", "full")
    log(box, "/home/ana/client/deep", "s1", "hazel prompt", "hazel answer")
    path = log(box, "/home/ana/own", "s2", "almond prompt", "almond answer")
    box.sync()
    assert set(box.push().sessions) == {"claude-code:s2"}
    assert b"hazel" not in dump(place[1])
    assert path.read_bytes() in box_logs(box, "claude-code:s2")
    box.level("/home/ana/own", "metrics")
    box.level("/home/ana/client", "redacted")
    box.push()
    said = dump(place[1])
    assert b"hazel prompt" in said
    assert b"almond" not in said
    assert len(ids(hub_store)) == 2
    box.level("/home/ana/own", "none")
    box.push()
    assert ids(hub_store) == ["claude-code:s1"]


def resume(box: Box, path: Path, project: str, session: str, *texts: str) -> Path:
    """Write a log that begins with the messages of another one, and goes on with these."""
    own = log(box, project, session, *texts)
    known = [json.loads(line) | {"sessionId": session, "cwd": project} for line in path.read_text().splitlines()]
    new = [json.loads(line) for line in own.read_text().splitlines()]
    new[0]["parentUuid"] = known[-1]["uuid"]
    own.write_text("".join(f"{json.dumps(line)}\n" for line in known + new))
    return own


def shown_on(store: PostgresStore, session_id: str) -> list[str]:
    """The texts of a session, of which there are as many messages as it is said to have."""
    placed = list(store.messages(session_id))
    assert len(placed) == store.session(session_id).counts.messages
    return [part.text for each in placed for part in each.message.parts if isinstance(part, TextPart)]


@pytest.mark.parametrize("most", [1, 3000])
def test_secrets_go_with_the_session_that_let_them_leave(
    tmp_path: Path,
    hub: HubProcess,
    hub_store: PostgresStore,
    place: tuple[HubProcess, str],
    monkeypatch: pytest.MonkeyPatch,
    most: int,
) -> None:
    """Also where the messages that another session shares come in several batches."""
    monkeypatch.setattr(pusher, "MANY_MESSAGES", most)
    box = Box(tmp_path, hub)
    box.level("/home/ana/s2", "full")
    first = log(box, "/home/ana/s1", "s1", f"the token is {SECRET}", "two", "three")
    resume(box, first, "/home/ana/s2", "s2", "four", "five")
    box.sync()
    in_full = box.push().in_full
    assert {session: len(keys) for session, keys in in_full.items()} == {"claude-code:s1": 3}
    assert SECRET in shown_on(hub_store, "claude-code:s1")[0]
    with open_store(box.store_path) as store:
        store.forget("claude-code:s2")
    box.push()
    assert ids(hub_store) == ["claude-code:s1"]
    assert shown_on(hub_store, "claude-code:s1")[1:] == ["two", "three"]
    assert SECRET.encode() not in dump(place[1])
    assert box.push().batches == 0


@pytest.mark.parametrize("change", ["lowered", "forgotten", "shorter"])
def test_no_search_leads_to_words_that_are_no_longer_there(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, change: str
) -> None:
    """Searches for beginnings would say them letter by letter."""
    box = Box(tmp_path, hub)
    box.level("/", "full")
    box.level("/home/ana/s1", "full" if change == "lowered" else "redacted")
    texts = ["hazel", f"the token is {SECRET}", "three"]
    first = log(box, "/home/ana/s1", "s1", *texts)
    resume(box, first, "/home/ana/s2", "s2", "walnut")
    box.sync()
    box.push()
    with SearchReplica(hub_store, tmp_path / "copies") as copy:

        def found(query: str) -> list[str]:
            page = copy.sessions(query)
            assert page.total == len(page.sessions)
            return sorted(each.session_id for each in page.sessions)

        copy.follow()
        assert found(f"{SECRET[:10]}*") == ["claude-code:s1"]
        if change == "lowered":
            box.level("/home/ana/s1", "redacted")
            box.level("/home/ana/s2", "redacted")
        elif change == "forgotten":
            hub_store.forget("claude-code:s2")
        else:
            log(box, "/home/ana/s1", "s1", "hazel")
            (box.home / ".claude/projects/-home-ana-s2/s2.jsonl").unlink()
            with open_store(box.store_path) as store:
                store.forget("claude-code:s2")
            box.sync()
        if change != "forgotten":
            box.push()
        for _ in range(2):
            copy.follow()
            assert found(f"{SECRET[:10]}*") == []
            box.push()
        assert "claude-code:s1" in found("hazel")
        files = [path.read_bytes() for path in (tmp_path / "copies").rglob("*.db*")]
    assert not any(SECRET.lower().encode() in data.lower() for data in files)


def test_a_message_that_moves_to_another_session_is_found_there(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    """Its row need not change, so nothing else brings its words back."""
    box = Box(tmp_path, hub)
    box.level("/", "full")
    for session, texts in {"s1": ("hazel", "walnut"), "s2": ("oak",)}.items():
        log(box, "/home/ana/app", session, *texts)
    box.sync()
    box.push()
    with SearchReplica(hub_store, tmp_path / "copies") as copy:
        copy.follow()
        with sqlite3.connect(box.store_path) as store:
            keys = dict(store.execute("SELECT external_id, key FROM sessions").fetchall())
            (moved,) = store.execute("SELECT key FROM messages WHERE external_id = 'msg_s1_1'").fetchone()
            change = "INSERT INTO changes (session_key, kind, at) VALUES (?, 'session', 1)"
            numbers = {session: store.execute(change, (session,)).lastrowid for session in keys.values()}
            for session, number in numbers.items():
                store.execute("UPDATE sessions SET changed_seq = ? WHERE key = ?", (number, session))
            store.execute(
                "UPDATE memberships SET session_key = ?, position = 99, changed_seq = ? WHERE message_key = ?",
                (keys["s2"], numbers[keys["s2"]], moved),
            )
            store.execute("UPDATE messages SET billed_key = ? WHERE key = ?", (keys["s2"], moved))
        box.push()
        copy.follow()
        assert [hit.message_id for hit in copy.search("walnut").hits] == ["msg_s1_1"]


def test_a_message_that_is_superseded_stays(tmp_path: Path, hub: HubProcess, place: tuple[HubProcess, str]) -> None:
    box = Box(tmp_path, hub)
    log(box, "/home/ana/app", "s1", "hazel", "walnut")
    box.sync()
    box.push()
    with sqlite3.connect(box.store_path) as store:
        (session,) = store.execute("SELECT key FROM sessions").fetchone()
        change = "INSERT INTO changes (session_key, kind, at) VALUES (?, 'session', 1)"
        number = store.execute(change, (session,)).lastrowid
        store.execute("UPDATE sessions SET changed_seq = ?", (number,))
        names = {name for _, name, *_ in store.execute("PRAGMA table_info(memberships)")}
        columns = ", ".join(name for _, name, *_ in store.execute("PRAGMA table_info(superseded)") if name in names)
        last = "message_key = (SELECT max(key) FROM messages)"
        store.execute(f"INSERT INTO superseded ({columns}) SELECT {columns} FROM memberships WHERE {last}")
        store.execute(f"DELETE FROM memberships WHERE {last}")
    box.push()
    with psycopg.connect(place[1]) as connection:
        found = connection.execute(
            "SELECT m.external_id FROM turnlog.superseded s JOIN turnlog.messages m ON m.key = s.message_key"
            " JOIN turnlog.frames f ON f.key = -m.key"
        ).fetchall()
    assert found == [("msg_s1_1",)]


def test_a_message_that_is_superseded_is_found_nowhere(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    """A log has what a hook said before: it is billed to nobody any more, also where its row need not come again."""
    box = Box(tmp_path, hub)
    box.level("/", "full")
    log(box, "/home/ana/app", "s1", "hazel", "walnut")
    box.sync()
    box.push()
    with SearchReplica(hub_store, tmp_path / "copies") as copy:
        copy.follow()
        assert [hit.message_id for hit in copy.search("walnut").hits] == ["msg_s1_1"]
        with sqlite3.connect(box.store_path) as store:
            change = "INSERT INTO changes (session_key, kind, at) SELECT key, 'session', 1 FROM sessions"
            number = store.execute(change).lastrowid
            store.execute("UPDATE sessions SET changed_seq = ?", (number,))
            last = "message_key = (SELECT key FROM messages WHERE external_id = 'msg_s1_1')"
            names = {name for _, name, *_ in store.execute("PRAGMA table_info(memberships)")}
            columns = ", ".join(name for _, name, *_ in store.execute("PRAGMA table_info(superseded)") if name in names)
            store.execute(f"INSERT INTO superseded ({columns}) SELECT {columns} FROM memberships WHERE {last}")
            store.execute(f"DELETE FROM memberships WHERE {last}")
            store.execute("UPDATE messages SET billed_key = NULL WHERE external_id = 'msg_s1_1'")
        box.push()
        copy.follow()
        assert copy.search("walnut").hits == ()


def test_secrets_taken_back_stay_hidden_until_messages_come_again(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str]
) -> None:
    """Also where it has not sent them last."""
    laptop, desktop, tower = Box(tmp_path, hub), Box(tmp_path, hub, "desktop"), Box(tmp_path, hub, "tower")
    laptop.level("/", "full")
    texts = ["hazel", f"the token is {SECRET}", "three"]
    for box in (desktop, tower):
        log(box, "/home/ana/s1", "s1", *texts)
    first = log(laptop, "/home/ana/s1", "s1", *texts)
    resume(laptop, first, "/home/ana/s2", "s2", "four")
    first.unlink()
    for box in (desktop, tower, laptop):
        box.sync()
        box.push()
    assert SECRET in shown_on(hub_store, "claude-code:s1")[1]
    laptop.level("/", "none")
    laptop.push()
    assert ids(hub_store) == ["claude-code:s1"]
    assert len(list(hub_store.messages("claude-code:s1"))) == 3
    assert SECRET.encode() not in dump(place[1])
    # Nothing is new on the other machine.
    desktop.push()
    said = shown_on(hub_store, "claude-code:s1")
    assert (said[0], said[2]) == ("hazel", "three")
    assert said[1].startswith("the token is [")
    assert desktop.push().batches == 0


def test_sessions_that_go_on_elsewhere_at_a_higher_level_are_whole(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they share with the first ones did not leave, or left with less, or went again."""
    monkeypatch.setattr(pusher, "MANY_MESSAGES", 2)
    levels = {"none": "none", "metrics": "metrics", "redacted": "redacted", "back": "full", "forgotten": "full"}
    box = Box(tmp_path, hub)
    box.level("/", "full")
    secrets = {name: f"a {name} key {SECRET}" for name in levels}
    logs: dict[str, Path] = {}
    for name, level in levels.items():
        box.level(f"/home/ana/{name}", level)
        logs[name] = log(box, f"/home/ana/{name}", name, "one", "two", secrets[name])
    box.sync()
    box.push()
    box.level("/home/ana/back", "none")
    box.push()
    for name, path in logs.items():
        resume(box, path, "/home/ana/elsewhere", f"{name}-on", "four")
    box.sync()
    with open_store(box.store_path) as store:
        store.forget("claude-code:forgotten")
    box.push()
    for name in levels:
        assert shown_on(hub_store, f"claude-code:{name}-on") == ["one", "two", secrets[name], "four"]
    assert shown_on(hub_store, "claude-code:redacted") == ["one", "two", secrets["redacted"]]
    assert box.push().batches == 0


def test_a_continued_session_is_whole_though_the_first_is_forgotten(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine does not know that: the hub asks for what they share."""
    monkeypatch.setattr(pusher, "MANY_MESSAGES", 2)
    box = Box(tmp_path, hub)
    box.level("/", "full")
    logs = {name: log(box, f"/home/ana/{name}", name, "one", "two", "three") for name in ("forgotten", "whole")}
    box.sync()
    box.push()
    hub_store.forget("claude-code:forgotten")
    for name, path in logs.items():
        resume(box, path, "/home/ana/elsewhere", f"{name}-on", "four")
    box.sync()
    # Not what the hub has.
    assert box.push().messages < 2 + 2 * 3
    for name in logs:
        assert shown_on(hub_store, f"claude-code:{name}-on") == ["one", "two", "three", "four"]
    assert ids(hub_store) == ["claude-code:forgotten-on", "claude-code:whole", "claude-code:whole-on"]
    assert box.push().batches == 0


@pytest.mark.parametrize("comes_again", [False, True])
def test_a_forgotten_session_brings_no_secret_back(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str], *, comes_again: bool
) -> None:
    """The machine has it at `full`, and another one at `redacted` that shares the message."""
    box = Box(tmp_path, hub)
    box.level("/", "full")
    if not comes_again:
        box.level("/home/ana/second", "redacted")
    path = log(box, "/home/ana/first", "s1", "one", f"a key {SECRET}")
    box.sync()
    box.push()
    hub_store.forget("claude-code:s1")
    if comes_again:
        box.level("/home/ana/second", "redacted")
    resume(box, path, "/home/ana/second", "s2", "three")
    for text in ("", "more"):
        if text:
            log(box, "/home/ana/first", "s1", "one", f"a key {SECRET}", text)
        box.sync()
        box.push()
        assert ids(hub_store) == ["claude-code:s2"]
        (one, key, three) = shown_on(hub_store, "claude-code:s2")
        assert (one, three) == ("one", "three")
        assert key.startswith("a key")
        assert SECRET.encode() not in dump(place[1])
        assert box.push().batches == 0
        with MachineState(box.store_path) as state:
            state.generation += 1


def test_forgetting_on_the_hub_removes_a_secret_from_other_machines(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str]
) -> None:
    box = Box(tmp_path, hub)
    box.level("/", "full")
    box.level("/home/ana/second", "redacted")
    path = log(box, "/home/ana/first", "s1", "one", f"a key {SECRET}")
    resume(box, path, "/home/ana/second", "s2", "three")
    box.sync()
    box.push()
    assert shown_on(hub_store, "claude-code:s2") == ["one", f"a key {SECRET}", "three"]
    hub_store.forget("claude-code:s1")
    assert shown_on(hub_store, "claude-code:s2") == ["three"]
    assert SECRET.encode() not in dump(place[1])
    box.push()
    assert ids(hub_store) == ["claude-code:s2"]
    (one, key, three) = shown_on(hub_store, "claude-code:s2")
    assert (one, three) == ("one", "three")
    assert key.startswith("a key")
    assert SECRET.encode() not in dump(place[1])
    assert box.push().batches == 0


def test_a_hub_with_endless_requests_is_not_answered_for_ever(
    tmp_path: Path, hub: HubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, hub)
    log(box, "/home/ana/shop", "s1", "one")
    box.sync()
    asked: list[str] = []

    def ask_for_another(*_: object) -> None:
        asked.append(f"claude-code:s{len(asked) + 1}")
        if len(asked) < 20:
            raise MessagesNeededError(asked)

    monkeypatch.setattr(HubClient, "push", ask_for_another)
    with pytest.raises(ConflictError):
        box.push()
    assert len(asked) == 2


@pytest.mark.parametrize("level", ["none", "metrics", "redacted"])
def test_what_was_sent_without_an_answer_is_taken_back_too(
    tmp_path: Path, hub: HubProcess, place: tuple[HubProcess, str], monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    """The lid was closed after the hub had taken the batch."""
    box = Box(tmp_path, hub)
    box.level("/", "full")
    log(box, "/home/ana/shop", "s1", "walnut", f"a key {SECRET}")
    box.sync()
    push = HubClient.push

    def lose_the_answer(self: HubClient, *batch: Any) -> Any:
        push(self, *batch)
        raise HubUnreachableError("the answer is lost")

    with monkeypatch.context() as lost:
        lost.setattr(HubClient, "push", lose_the_answer)
        with pytest.raises(HubUnreachableError):
            box.push()
    assert b"walnut" in dump(place[1])
    # One that brings nothing new, and one that was never made.
    if level != "metrics":
        box.push()
    box.level("/", level)
    box.push()
    said = dump(place[1])
    assert (b"walnut" in said) is (level == "redacted")
    assert SECRET.encode() not in said
    assert box.push().batches == 0
    with MachineState(box.store_path) as state:
        assert state.sending() == {}


@pytest.mark.parametrize("level", ["none", "metrics", "redacted"])
def test_log_files_leave_at_the_level_of_now(
    tmp_path: Path, hub: HubProcess, place: tuple[HubProcess, str], monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    """Also those of a batch after which the hub was away, and of sessions that were to come with the next one."""
    monkeypatch.setattr(pusher, "MANY_MESSAGES", 2)
    box = Box(tmp_path, hub)
    box.level("/", "full")
    names = ("late", "lost", "came")  # the newest comes first
    for name in names:
        log(box, f"/home/ana/{name}", name, f"walnut {name}", f"a key {SECRET}")
    box.sync()
    sent: list[ArchivedBytes] = []

    def lose(self: HubClient, archived: list[ArchivedBytes]) -> None:
        sent.extend(archived)
        raise HubUnreachableError("no files now")

    monkeypatch.setattr(HubClient, "push_archived", lose)
    with pytest.raises(HubUnreachableError):
        box.push()
    assert [Path(each.path).stem for each in sent] == ["came"]
    box.level("/home/ana/came", level)
    box.level("/home/ana/late", level)
    with open_store(box.store_path) as store:
        store.forget("claude-code:lost")
    sent.clear()
    box.push()
    assert sent == []
    with psycopg.connect(place[1]) as connection:
        assert connection.execute("SELECT count(*) FROM turnlog.archive").fetchone() == (0,)
    said = dump(place[1])
    assert SECRET.encode() not in said
    assert b"walnut lost" not in said
    assert (b"walnut came" in said, b"walnut late" in said) == (level == "redacted", level == "redacted")


def test_sessions_continued_at_a_lower_level_leave_the_first_whole(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str]
) -> None:
    box = Box(tmp_path, hub)
    box.level("/", "full")
    path = log(box, "/home/ana/first", "s1", "one", f"a key {SECRET}")
    box.sync()
    box.push()
    for level in ("none", "metrics", "redacted"):
        box.level(f"/home/ana/{level}", level)
        resume(box, path, f"/home/ana/{level}", level, f"hazel {level} {SECRET[:-1]}9")
    for _ in range(2):
        box.sync()
        box.push()
        assert shown_on(hub_store, "claude-code:s1") == ["one", f"a key {SECRET}"]
        (*shared, own) = shown_on(hub_store, "claude-code:redacted")
        assert shared == ["one", f"a key {SECRET}"]
        assert own.startswith("hazel redacted")
        said = dump(place[1])
        assert all(word not in said for word in (f"{SECRET[:-1]}9".encode(), b"hazel none", b"hazel metrics"))
        # The same where all comes again.
        with MachineState(box.store_path) as state:
            state.generation += 1


def box_logs(box: Box, session_id: str) -> bytes:
    from turnlog.store import zstd

    return zstd.decompress(box.logs(session_id))


@pytest.mark.parametrize("hours", [24, -24])
def test_a_clock_that_was_wrong_holds_nothing_back(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    laptop = Box(tmp_path, hub)
    laptop.level("/", "full")
    first = log(laptop, "/home/ana/app", "s1", "hazel prompt", "hazel answer")
    right, right_ns = time.time, time.time_ns
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time", lambda: right() + hours * 3600)
        wrong.setattr(time, "time_ns", lambda: right_ns() + hours * 3600 * 10**9)
        laptop.sync()
        assert laptop.push().files == 1
    second = log(laptop, "/home/ana/app", "s2", "walnut prompt", "walnut answer")
    log(laptop, "/home/ana/app", "s1", "hazel prompt", "hazel answer", "more", "and more")
    laptop.sync()
    laptop.push()
    for name, path in (("s1", first), ("s2", second)):
        assert path.read_bytes() in box_logs(laptop, f"claude-code:{name}")
        assert hub_store.sources(f"claude-code:{name}")[0].size == path.stat().st_size
    assert laptop.push().batches == 0


def test_no_machine_brings_a_session_back_that_the_hub_forgot(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str]
) -> None:
    laptop, desktop = Box(tmp_path, hub), Box(tmp_path, hub, "desktop")
    for box in (laptop, desktop):
        log(box, "/home/ana/app", "s1", "hazel prompt", "hazel answer")
        log(box, "/home/ana/app", "s2", "other", "words")
        box.sync()
    laptop.push()
    with open_store(laptop.store_path) as store:
        store.forget("claude-code:s1")
    laptop.push()
    assert b"hazel" not in dump(place[1])
    desktop.push()
    assert ids(hub_store) == ["claude-code:s2"]
    assert b"hazel" not in dump(place[1])


def test_log_files_of_a_session_forgotten_on_the_hub_stay_away(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str]
) -> None:
    laptop, desktop = Box(tmp_path, hub), Box(tmp_path, hub, "desktop")
    for box in (laptop, desktop):
        box.level("/", "full")
        log(box, "/home/ana/hazelnuts", "s1", "hazel prompt", "hazel answer")
        other = log(box, "/home/ana/app", "s2", "other", "words")
        box.sync()
    laptop.push()
    assert b"hazel" in dump(place[1])
    hub_store.forget("claude-code:s1")
    assert b"hazel" not in dump(place[1])
    log(laptop, "/home/ana/hazelnuts", "s1", "hazel prompt", "hazel answer", "hazel again", "and more")
    laptop.sync()
    for box in (laptop, desktop):
        box.push()
        assert b"hazel" not in dump(place[1])
    assert ids(hub_store) == ["claude-code:s2"]
    assert other.read_bytes() in box_logs(laptop, "claude-code:s2")


def test_a_content_that_is_too_large_for_a_hub_holds_nothing_else_up(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnlog.hub.machine.pusher.LARGEST_CONTENT", 10)
    box = Box(tmp_path, hub)
    box.level("/", "full")
    log(box, "/home/ana/app", "s1", "a prompt", "an answer", image=PIXEL)
    box.sync()
    report = box.push()
    assert (report.too_large, report.contents, report.messages) == (1, 0, 2)
    log(box, "/home/ana/app", "s1", "a prompt", "an answer", "another one", image=PIXEL)
    box.sync()
    assert box.push().messages > 0
    assert hub_store.session("claude-code:s1").counts.messages == 3


def test_log_files_are_pulled_to_another_machine(tmp_path: Path, hub: HubProcess) -> None:
    box, other = Box(tmp_path, hub), Box(tmp_path, hub, "desktop")
    box.level("/", "full")
    path = log(box, "/home/ana/app", "s1", "a prompt", "an answer", image=PIXEL)
    box.sync()
    box.push()
    to = other.home / ".claude"
    packed = other.logs("claude-code:s1")
    ((written, size),) = PulledLogs(packed).write(to)
    assert written == to / path.relative_to(box.home / ".claude")
    assert written.read_bytes() == path.read_bytes()
    assert (size, written.stat().st_mode & 0o777) == (len(path.read_bytes()), 0o600)
    assert list(PulledLogs(packed).write(to)) == [(written, size)]
    written.write_text("other\n")
    with pytest.raises(ConflictError, match="other content"):
        list(PulledLogs(packed).write(to))


def test_the_same_session_on_two_machines_is_one_and_goes_on_from_either(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    laptop, desktop = Box(tmp_path, hub), Box(tmp_path, hub, "desktop")
    texts = ("one", "two", "three", "four")
    log(laptop, "/home/ana/app", "s1", *texts[:2])
    log(desktop, "/home/ana/app", "s1", *texts)
    for box in (laptop, desktop, laptop):
        box.sync()
        box.push()
    (session,) = hub_store.sessions().items
    assert (session.id, session.counts.messages) == ("claude-code:s1", 4)
    # An older copy that is sent again takes nothing away.
    with MachineState(laptop.store_path) as state:
        state.generation += 1
    laptop.push()
    assert hub_store.session("claude-code:s1").counts.messages == 4


def copies_at(tmp_path: Path, hub: HubProcess, **levels: str) -> list[Box]:
    """Machines of one person, each of which has pushed the same session at its level, in this order."""
    boxes: list[Box] = []
    for machine, level in levels.items():
        box = Box(tmp_path, hub, machine)
        box.level("/", level)
        log(box, "/home/ana/app", "s1", "one", "two", image=PIXEL)
        box.sync()
        box.push()
        boxes.append(box)
    return boxes


def on_hub(store: PostgresStore) -> tuple[str, int]:
    """The level of the session, and how many of its parts are images."""
    with store.reading() as connection:
        rows = connection.execute("SELECT level FROM session_owners WHERE session_key IS NOT NULL").fetchall()
    parts = [part for placed in store.messages("claude-code:s1") for part in placed.message.parts]
    return rows[0][0], sum(part.type == "file" for part in parts)


def test_of_equal_copies_the_one_of_the_higher_level_counts(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    _, desktop = copies_at(tmp_path, hub, laptop="full", desktop="redacted")
    assert on_hub(hub_store) == ("full", 1)
    # Also where everything comes again.
    with MachineState(desktop.store_path) as state:
        state.generation += 1
    desktop.push()
    assert on_hub(hub_store) == ("full", 1)


def test_a_copy_of_a_higher_level_is_taken_after_one_of_a_lower(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    copies_at(tmp_path, hub, desktop="redacted", laptop="full")
    assert on_hub(hub_store) == ("full", 1)


def test_a_lowered_level_removes_later_pushes_of_other_machines(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    laptop, _ = copies_at(tmp_path, hub, laptop="full", desktop="full")
    laptop.level("/", "redacted")
    laptop.push()
    assert on_hub(hub_store) == ("redacted", 0)
    assert hub_store.session("claude-code:s1").counts.messages == 2


def test_a_shorter_copy_whose_level_is_lowered_is_not_lost(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    laptop, desktop = copies_at(tmp_path, hub, laptop="full", desktop="full")
    log(desktop, "/home/ana/app", "s1", "one", "two", "three", "four", image=PIXEL)
    desktop.sync()
    desktop.push()
    laptop.level("/", "redacted")
    laptop.push()
    assert on_hub(hub_store) == ("redacted", 0)
    assert hub_store.session("claude-code:s1").counts.messages == 2


@pytest.mark.parametrize("low", ["none", "metrics", "redacted"])
def test_a_raised_level_takes_nothing_from_the_hub(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, low: str
) -> None:
    words = ["one", "two", "three", "four"]
    (laptop,) = copies_at(tmp_path, hub, laptop=low)
    desktop = Box(tmp_path, hub, "desktop")
    desktop.level("/", "full")
    log(desktop, "/home/ana/app", "s1", *words)
    desktop.sync()
    desktop.push()
    laptop.level("/", "full")
    laptop.push()
    # Also not what the other machine has more of; only its own numbers, which are under another id, go.
    assert ids(hub_store) == ["claude-code:s1"]
    assert shown_on(hub_store, "claude-code:s1") == words
    laptop.level("/", "none")
    laptop.push()
    assert ids(hub_store) == []


def test_a_raised_level_takes_numbers_sent_under_another_host_name(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (laptop,) = copies_at(tmp_path, hub, laptop="metrics")
    monkeypatch.setattr("platform.node", lambda: "renamed")
    laptop.level("/", "full")
    laptop.push()
    assert ids(hub_store) == ["claude-code:s1"]


def test_a_raised_level_leaves_the_numbers_of_another_machine(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    laptop, desktop = copies_at(tmp_path, hub, laptop="metrics", desktop="metrics")
    log(desktop, "/home/ana/app", "s1", "one", "two", "three", "four")
    desktop.sync()
    desktop.push()
    laptop.level("/", "full")
    laptop.push()
    assert sorted(session.counts.messages for session in hub_store.sessions().items) == [2, 4]


@pytest.mark.parametrize(("high", "lowered"), [("full", "redacted"), ("redacted", "metrics"), ("redacted", "none")])
def test_a_session_taken_back_is_sent_whole_by_the_next_machine(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, high: str, lowered: str
) -> None:
    """And not the end alone, which is all that it has not sent yet."""
    words = ["one", "two", "three", "four", "five", "six"]
    laptop, desktop = copies_at(tmp_path, hub, laptop=high, desktop=high)
    laptop.level("/", lowered)
    laptop.push()
    log(desktop, "/home/ana/app", "s1", *words, image=PIXEL)
    desktop.sync()
    desktop.push()
    parts = [part for placed in hub_store.messages("claude-code:s1") for part in placed.message.parts]
    assert [part.text for part in parts if isinstance(part, TextPart) and part.text in words] == words
    assert hub_store.session("claude-code:s1").counts.messages == 6
    # Once: after that it goes on where it is.
    log(desktop, "/home/ana/app", "s1", *words, "seven", image=PIXEL)
    desktop.sync()
    assert desktop.push().messages == 1
    assert hub_store.session("claude-code:s1").counts.messages == 7


def test_the_file_of_a_session_taken_back_elsewhere_stays_away(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str]
) -> None:
    """It was read again, and the session has not changed."""
    laptop, desktop = copies_at(tmp_path, hub, laptop="full", desktop="full")
    laptop.level("/", "none")
    laptop.push()
    with sqlite3.connect(desktop.store_path) as store:
        store.execute("UPDATE sources SET read_at = ?", (time.time_ns() // 1_000_000,))
    log(desktop, "/home/ana/app", "s2", "hazel")
    desktop.sync()
    desktop.push()
    assert ids(hub_store) == ["claude-code:s2"]
    with psycopg.connect(place[1]) as connection:
        rows = connection.execute("SELECT path FROM turnlog.sources").fetchall()
    assert [Path(path).stem for (path,) in rows] == ["s2"]


def test_a_machine_that_begins_again_brings_all_that_is_not_forgotten(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str]
) -> None:
    boxes = [Box(tmp_path, hub), Box(tmp_path, hub, "desktop")]
    for box in boxes:
        box.level("/", "full")
        for session in ("s1", "s2", "s3"):
            log(box, f"/home/ana/{session}", session, f"{session} hazel", "two")
        subagent(box, "/home/ana/s1", "s1", "a0")
        box.sync()
        box.push()
    laptop, desktop = boxes
    laptop.level("/", "none")
    laptop.push()
    assert ids(hub_store) == []
    assert b"claude-code:s3" in taken_back(place[1])
    # What is forgotten is kept out by itself.
    with open_store(laptop.store_path) as store:
        store.forget("claude-code:s3")
    laptop.push()
    assert b"claude-code:s2" in taken_back(place[1])
    assert b"claude-code:s3" not in taken_back(place[1])
    log(desktop, "/home/ana/s1", "s1", "s1 hazel", "two", "three")
    desktop.sync()
    desktop.push()
    assert ids(hub_store) == [f"claude-code:{name}" for name in ("s1", "s1.a0", "s2")]
    assert shown_on(hub_store, "claude-code:s1") == ["s1 hazel", "two", "three"]
    assert taken_back(place[1]) == b""


def test_no_word_remains_of_what_came_again_in_pieces(
    tmp_path: Path,
    hub: HubProcess,
    hub_store: PostgresStore,
    place: tuple[HubProcess, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box, words = Box(tmp_path, hub), {"s1": ["hazel", "willow"], "s2": ["elm", "oak"]}
    box.level("/", "full")
    monkeypatch.setattr(pusher, "MANY_MESSAGES", 1)
    for session, word in (("s1", ""), ("s2", ""), ("s1", "poplar"), ("s2", "beech"), ("s1", "maple")):
        words[session] += [word] if word else []
        log(box, f"/home/ana/{session}", session, *words[session])
        box.sync()
        box.push()
    with MachineState(box.store_path) as state:
        state.generation += 1
    box.push()
    assert [shown_on(hub_store, f"claude-code:{session}") for session in words] == [*words.values()]
    box.level("/", "none")
    box.push()
    said = dump(place[1]).decode(errors="replace")
    assert [word for word in (*words["s1"], *words["s2"]) if word in said] == []


def test_nothing_is_away_while_all_comes_again_in_pieces(
    tmp_path: Path,
    hub: HubProcess,
    hub_store: PostgresStore,
    place: tuple[HubProcess, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A push may be killed between two batches. Messages keep their keys, too."""
    monkeypatch.setattr(pusher, "MANY_MESSAGES", 1)
    box, words = Box(tmp_path, hub), {"s1": ["hazel", "willow"], "s2": ["elm", "oak"]}
    box.level("/", "full")
    for session, word in (("s1", ""), ("s2", ""), ("s1", "poplar"), ("s2", "beech"), ("s1", "maple")):
        words[session] += [word] if word else []
        log(box, f"/home/ana/{session}", session, *words[session])
        box.sync()
    box.push()
    seen: list[tuple[list[list[str]], list[tuple[int]]]] = []
    push = HubClient.push

    def look(self: HubClient, store: str, packed: bytes) -> client.Accepted:
        accepted = push(self, store, packed)
        with psycopg.connect(place[1]) as connection:
            keys = connection.execute("SELECT key FROM turnlog.messages ORDER BY key").fetchall()
        seen.append(([shown_on(hub_store, f"claude-code:{session}") for session in words], keys))
        return accepted

    monkeypatch.setattr(HubClient, "push", look)
    with MachineState(box.store_path) as state:
        state.generation += 1
    box.push()
    assert len(seen) == 7
    assert seen == [seen[0]] * 7
    assert seen[0][0] == [*words.values()]


def at_metrics(tmp_path: Path, hub: HubProcess, machine: str, *sessions: str) -> Box:
    box = Box(tmp_path, hub, machine)
    box.level("/", "metrics")
    for session in sessions:
        log(box, "/home/ana/app", session, "one", "two")
    box.sync()
    return box


def push_by_older(box: Box) -> None:
    """Push as a machine whose turnlog knows no secrets of ids."""
    asked = HubClient.position

    def position(self: HubClient, store: str) -> client.Progress:
        return asked(self, store)._replace(ids_secret="")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HubClient, "position", position)
        box.push()


def guessed(session_id: str) -> str:
    """The id at `metrics` that follows from what every member knows."""
    return HiddenIds.of_person("1", "ana").session(session_id)


def test_ids_at_metrics_cannot_be_guessed_from_what_members_know(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str]
) -> None:
    """The same on every machine of a person, though."""
    laptop, desktop = (at_metrics(tmp_path, hub, machine, "s1", "s2") for machine in ("laptop", "desktop"))
    laptop.push()
    first = ids(hub_store)
    desktop.push()
    assert ids(hub_store) == first
    assert len(first) == 2
    said = dump(place[1]).decode()
    known = HiddenIds.of_person("1", "ana")
    for text in ("s1", "s2", "s1-0", "msg_s1_1", "s2-0", "msg_s2_1"):
        assert known.hash(text) not in said
    secret = hub_store.ids_secret("ana")
    assert {HiddenIds.of_person("1", "ana", secret).session(f"claude-code:{each}") for each in ("s1", "s2")} == {*first}
    assert hub_store.ids_secret("ben") != secret
    assert "id_secrets" in HIDDEN_TABLES


def test_ids_that_could_be_guessed_are_taken_back_by_the_next_push(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, place: tuple[HubProcess, str]
) -> None:
    laptop, desktop = (at_metrics(tmp_path, hub, machine, "s1", "s2") for machine in ("laptop", "desktop"))
    for box in (laptop, desktop):
        push_by_older(box)
    assert ids(hub_store) == sorted(map(guessed, ("claude-code:s1", "claude-code:s2")))
    laptop.push()
    new = ids(hub_store)
    assert len(new) == 2
    assert not {*new} & {*map(guessed, ("claude-code:s1", "claude-code:s2"))}
    # One that is older still sends the earlier ids: they are left out, and come again when it is upgraded.
    log(desktop, "/home/ana/app", "s1", "one", "two", "three", "four")
    desktop.sync()
    push_by_older(desktop)
    push_by_older(desktop)
    assert ids(hub_store) == new
    desktop.push()
    assert ids(hub_store) == new
    assert sorted(session.counts.messages for session in hub_store.sessions().items) == [2, 4]
    with psycopg.connect(place[1]) as connection:
        messages = {name for (name,) in connection.execute("SELECT external_id FROM turnlog.messages")}
    assert len(messages) == 6
    assert not messages & {HiddenIds.of_person("1", "ana").hash(f"msg_{each}_1") for each in ("s1", "s2")}
    assert (laptop.push().batches, desktop.push().batches) == (0, 0)


@pytest.mark.parametrize("where", ["hub", "machine"])
@pytest.mark.parametrize("level", ["metrics", "full"])
def test_what_was_forgotten_under_an_earlier_id_stays_away(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, where: str, level: str
) -> None:
    laptop, desktop = (at_metrics(tmp_path, hub, machine, "s1", "s2") for machine in ("laptop", "desktop"))
    push_by_older(laptop)
    if where == "hub":
        hub_store.forget(guessed("claude-code:s1"))
    else:
        with open_store(laptop.store_path) as store:
            store.forget("claude-code:s1")
    for box in (laptop, desktop):
        box.level("/", level)
        box.push()
        assert len(ids(hub_store)) == 1
    assert guessed("claude-code:s1") not in ids(hub_store)


def test_an_older_machine_does_not_bring_back_a_forgotten_session(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    laptop, desktop = (at_metrics(tmp_path, hub, machine, "s1", "s2") for machine in ("laptop", "desktop"))
    laptop.push()
    with open_store(laptop.store_path) as store:
        store.forget("claude-code:s1")
    laptop.push()
    kept = ids(hub_store)
    assert len(kept) == 1
    push_by_older(desktop)
    assert ids(hub_store) == kept


def test_a_raised_level_takes_the_numbers_that_have_an_earlier_id(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    laptop = at_metrics(tmp_path, hub, "laptop", "s1")
    push_by_older(laptop)
    laptop.level("/", "full")
    laptop.push()
    assert ids(hub_store) == ["claude-code:s1"]


def test_the_files_of_a_session_that_is_forgotten_at_metrics_stay_away_too(
    tmp_path: Path,
    hub: HubProcess,
    hub_store: PostgresStore,
    place: tuple[HubProcess, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They come with the first batch, which need not name the session."""
    monkeypatch.setattr(pusher, "MANY_MESSAGES", 1)
    box = Box(tmp_path, hub)
    box.level("/", "metrics")
    for session, word in (("s0", "hazel"), ("s1", "willow"), ("s2", "poplar")):
        log(box, f"/home/ana/{session}", session, word, "two")
        box.sync()
        box.push()
    hub_store.forget(HiddenIds.of_person("1", "ana", hub_store.ids_secret("ana")).session("claude-code:s1"))
    box.level("/", "full")
    box.push()
    assert ids(hub_store) == ["claude-code:s0", "claude-code:s2"]
    said = dump(place[1])
    assert b"hazel" in said
    assert b"willow" not in said
    assert b"s1.jsonl" not in said


def test_the_file_of_a_new_subagent_of_a_forgotten_session_does_not_stay(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    """Where it came before the batch that says whose it is."""
    laptop, desktop = copies_at(tmp_path, hub, laptop="full", desktop="full")
    with open_store(laptop.store_path) as store:
        store.forget("claude-code:s1")
    laptop.push()
    subagent(desktop, "/home/ana/app", "s1", "a0")
    desktop.sync()
    with snapshot(desktop.store_path) as connection:
        second = read_batch(connection, FeedPosition())
    assert second is not None
    names: dict[str, dict[int, Row]] = {table: {} for table in IDENTITY}
    names["sources"] = second.names["sources"]
    rows = {"sources": second.rows["sources"]}
    first = FeedBatch(after=FeedPosition(), until=FeedPosition(0, 0, 1), has_more=True, rows=rows, names=names)
    second.after = first.until
    files: list[list[str]] = []
    for batch in (first, second):
        hub_store.take("ana/old", batch, Owner("ana", "desktop"))
        with hub_store.reading() as connection:
            files.append([Path(path).name for (path,) in connection.execute("SELECT path FROM sources").fetchall()])
    assert files == [["agent-a0.jsonl"], []]
    assert ids(hub_store) == []


def test_numbers_that_are_forgotten_leave_what_another_machine_sends_whole(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    laptop, desktop = Box(tmp_path, hub), Box(tmp_path, hub, "desktop")
    laptop.level("/", "full")
    desktop.level("/", "metrics")
    for box in (laptop, desktop):
        log(box, "/home/ana/s1", "s1", "one", "two")
        box.sync()
        box.push()
    with open_store(desktop.store_path) as store:
        store.forget("claude-code:s1")
    desktop.push()
    assert ids(hub_store) == ["claude-code:s1"]
    log(laptop, "/home/ana/s1", "s1", "one", "two", "three")
    laptop.sync()
    laptop.push()
    assert shown_on(hub_store, "claude-code:s1") == ["one", "two", "three"]


def test_where_all_have_one_level_nobody_asks_who_shares_a_message(
    tmp_path: Path, hub: HubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would read every place of every message of a long session for each new line of it."""
    asked: list[int] = []

    def note(connection: sqlite3.Connection, batch: FeedBatch) -> Shared:
        asked.append(len(batch.rows["messages"]))
        return shared_messages(connection, batch)

    monkeypatch.setattr(pusher, "shared_messages", note)
    box = Box(tmp_path, hub)
    log(box, "/home/ana/s1", "s1", "one", "two")
    box.sync()
    box.push()
    assert asked == []
    box.level("/home/ana/s2", "full")
    box.push()
    assert asked == [2]


def test_a_fork_does_not_come_back_whose_numbers_were_forgotten(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    boxes = [Box(tmp_path, hub), Box(tmp_path, hub, "desktop")]
    for box in boxes:
        box.level("/", "full")
        path = log(box, "/home/ana/s1", "s1", "one", "two", "three")
        if box is boxes[1]:
            grow_apart(path)
        box.sync()
        box.push()
    assert len(ids(hub_store)) == 2
    for box in boxes:
        box.level("/", "metrics")
        box.push()
    [hidden] = ids(hub_store)
    hub_store.forget(hidden)
    for box in boxes:
        box.level("/", "full")
        box.push()
    assert ids(hub_store) == []


def test_a_level_lowered_on_one_machine_after_another_removes_nothing(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    """Its own batch takes the other copy back, and has the session."""
    laptop, desktop = Box(tmp_path, hub), Box(tmp_path, hub, "desktop")
    for box in (laptop, desktop):
        box.level("/", "full")
        log(box, "/home/ana/s1", "s1", "one", "two")
        box.sync()
        box.push()
    for box in (laptop, desktop):
        box.level("/", "redacted")
        box.push()
        assert shown_on(hub_store, "claude-code:s1") == ["one", "two"]


def subagent(box: Box, project: str, session: str, name: str) -> None:
    """Write a subagent of a session, which says its name."""
    path = log(box, project, name, name)
    line = json.loads(path.read_text()) | {"isSidechain": True, "agentId": name, "sessionId": session}
    path.unlink()
    folder = path.parent / session / "subagents"
    folder.mkdir(parents=True)
    (folder / f"agent-{name}.jsonl").write_text(f"{json.dumps(line)}\n")


def taken_back(url: str) -> bytes:
    """What the hub keeps of the sessions that one machine has taken back, and another one may bring."""
    query = "SELECT value FROM turnlog.settings WHERE starts_with(name, 'taken back')"
    with psycopg.connect(url) as connection:
        return b"".join(value.encode() for (value,) in connection.execute(query).fetchall())


def grow_apart(path: Path) -> None:
    """Make the third message of a log another one than that of its copies."""
    path.write_text(path.read_text().replace('"s1-2"', '"apart"'))


def test_a_session_that_is_taken_back_and_parts_is_whole_in_both_copies(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    laptop, desktop = copies_at(tmp_path, hub, laptop="full", desktop="full")
    log(desktop, "/home/ana/app", "s1", "one", "two", "three", "four", image=PIXEL)
    desktop.sync()
    desktop.push()
    laptop.level("/", "redacted")
    grow_apart(log(laptop, "/home/ana/app", "s1", "one", "two", "other", image=PIXEL))
    laptop.sync()
    laptop.push()
    log(desktop, "/home/ana/app", "s1", "one", "two", "three", "four", "five", image=PIXEL)
    desktop.sync()
    desktop.push()
    for session in hub_store.sessions().items:
        shown = [placed.membership.position for placed in hub_store.messages(session.id)]
        assert len(shown) == hub_store.session(session.id).counts.messages
    assert sorted(session.counts.messages for session in hub_store.sessions().items) == [3, 5]


@pytest.mark.parametrize("lowered", ["none", "metrics"])
def test_a_fork_whose_level_is_lowered_is_taken_back_and_not_its_origin(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, lowered: str
) -> None:
    desktop, laptop = copies_at(tmp_path, hub, desktop="full", laptop="full")
    for box, word in ((desktop, "desktop's"), (laptop, "laptop's")):
        path = log(box, "/home/ana/app", "s1", "one", "two", word, image=PIXEL)
        if box is laptop:
            grow_apart(path)
        box.sync()
        box.push()
    before = {session.id for session in hub_store.sessions().items}
    assert len(before) == 2
    laptop.level("/", lowered)
    laptop.push()
    left = before & {session.id for session in hub_store.sessions().items}
    assert left == {"claude-code:s1"}
    parts = [part for placed in hub_store.messages("claude-code:s1") for part in placed.message.parts]
    assert "desktop's" in [part.text for part in parts if isinstance(part, TextPart)]


@pytest.mark.parametrize(("first", "then"), [("redacted", "metrics"), ("metrics", "full"), ("metrics", "redacted")])
def test_what_is_forgotten_on_the_hub_stays_so_at_another_level(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, first: str, then: str
) -> None:
    """Its id at `metrics` is another one."""
    laptop, other = Box(tmp_path, hub), Box(tmp_path, hub, "other", user="ben")
    for box, level in ((laptop, first), (other, then)):
        box.level("/", level)
        log(box, "/home/ana/app", "s1", "one", "two")
        log(box, "/home/ana/app", "s2", "three", "four")
        box.sync()
    laptop.push()
    forgotten = sorted(session.id for session in hub_store.sessions().items)[0]
    hub_store.forget(forgotten)
    laptop.level("/", then)
    laptop.push()
    assert hub_store.status().sessions == 1
    # Nobody else's session of the same id is kept out.
    other.push()
    assert hub_store.status().sessions == 3


def test_a_new_store_of_the_same_machine_may_send_less(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    (laptop,) = copies_at(tmp_path, hub, laptop="full")
    with MachineState(laptop.store_path) as state:
        connection = state.connection()
    laptop.store_path = laptop.store_path.parent / "new" / "turnlog.db"
    laptop.store_path.parent.mkdir()
    with MachineState(laptop.store_path) as state:
        state.connect(connection)
    laptop.level("/", "redacted")
    laptop.sync()
    laptop.push()
    assert on_hub(hub_store) == ("redacted", 0)


def test_the_later_of_diverging_copies_is_a_fork_billed_once(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    laptop, desktop = Box(tmp_path, hub), Box(tmp_path, hub, "desktop")
    log(laptop, "/home/ana/app", "s1", "one", "two", "three", "four", "five", "six")
    path = log(desktop, "/home/ana/app", "s1", "one", "two", "another", "way")
    path.write_text(path.read_text().replace("s1-2", "d1-2").replace("s1-3", "d1-3").replace("msg_s1_3", "msg_d1_3"))
    for box in (laptop, desktop):
        box.sync()
        box.push()
    fork = hub_store.session("claude-code:s1~desktop")
    assert hub_store.session("claude-code:s1").counts.messages == 6
    assert (fork.counts.messages, [link.relationship.kind for link in hub_store.relationships(fork.id)]) == (
        4,
        ["fork"],
    )
    # Three answers of the first, one that only the other one has.
    assert hub_store.usage("model").totals.calls == 4
    log(laptop, "/home/ana/app", "s1", "one", "two", "three", "four", "five", "six", "seven", "eight")
    with path.open("a") as file:
        file.write(path.read_text().splitlines()[-1].replace("d1-3", "d1-4").replace("msg_d1_3", "msg_d1_4") + "\n")
    for box in (laptop, desktop, laptop):
        box.sync()
        box.push()
    assert hub_store.session("claude-code:s1").counts.messages == 8
    assert hub_store.session("claude-code:s1~desktop").counts.messages == 5
    assert hub_store.usage("model").totals.calls == 6
    assert len(ids(hub_store)) == 2


def test_a_fork_goes_on_when_what_it_is_a_fork_of_is_forgotten(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    laptop, desktop = Box(tmp_path, hub), Box(tmp_path, hub, "desktop")
    log(laptop, "/home/ana/app", "s1", "one", "two", "three", "four")
    path = log(desktop, "/home/ana/app", "s1", "one", "two", "another", "way")
    path.write_text(path.read_text().replace("s1-2", "d1-2").replace("s1-3", "d1-3").replace("msg_s1_3", "msg_d1_3"))
    for box in (laptop, desktop):
        box.sync()
        box.push()
    hub_store.forget("claude-code:s1")
    assert hub_store.session("claude-code:s1~desktop").counts.messages == 4
    with path.open("a") as file:
        file.write(path.read_text().splitlines()[-1].replace("d1-3", "d1-4").replace("msg_d1_3", "msg_d1_4") + "\n")
    desktop.sync()
    desktop.push()
    assert hub_store.session("claude-code:s1~desktop").counts.messages == 5
    assert ids(hub_store) == ["claude-code:s1~desktop"]


def test_a_new_store_is_sent_whole_also_with_more_changes(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A push of it that is cut off goes on where it was."""
    monkeypatch.setattr(pusher, "MANY_MESSAGES", 2)
    box = Box(tmp_path, hub)
    log(box, "/home/ana/app", "s1", "one", "two")
    box.sync()
    box.push()
    for path in box.store_path.parent.glob("turnlog*"):
        path.unlink()
    for session in ("s0", "s2"):
        log(box, "/home/ana/app", session, "three", "four")
        box.sync()
    push, taken = HubClient.push, list[str]()

    def take_one(self: HubClient, *batch: Any) -> Any:
        if taken:
            raise HubUnreachableError("no more")
        taken.append("one")
        return push(self, *batch)

    with monkeypatch.context() as cut:
        cut.setattr(HubClient, "push", take_one)
        with pytest.raises(HubUnreachableError):
            box.push()
    assert box.push().messages == 2 * 3 - 2
    assert ids(hub_store) == ["claude-code:s0", "claude-code:s1", "claude-code:s2"]
    assert shown_on(hub_store, "claude-code:s0") == ["three", "four"]


def test_a_rebuilt_store_and_a_new_one_replace_what_they_replace(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    from turnlog.sync.rebuild import rebuild

    box = Box(tmp_path, hub)
    for number in range(3):
        log(box, "/home/ana/app", f"s{number}", "a prompt", "an answer")
    box.sync()
    box.push()
    rebuild(box.store_path, ignore)
    box.push()
    assert len(ids(hub_store)) == 3
    box.store_path.unlink()
    for name in ("turnlog.db-wal", "turnlog.db-shm"):
        box.store_path.with_name(name).unlink(missing_ok=True)
    log(box, "/home/ana/app", "s0", "a prompt", "an answer", "a second prompt", "a second answer")
    box.sync()
    box.push()
    assert hub_store.session("claude-code:s0").counts.messages == 4
    assert [session.counts.messages for session in hub_store.sessions().items] == [4, 2, 2]
    assert box.push().batches == 0


@pytest.mark.parametrize(("shape", "older"), [(SHAPE - 1, "machine"), (SHAPE + 1, "hub")])
def test_the_older_of_two_unequal_versions_is_named_without_loss(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore, monkeypatch: pytest.MonkeyPatch, shape: int, older: str
) -> None:
    laptop = Box(tmp_path, hub)
    log(laptop, "/home/ana/app", "s1", "hazel prompt", "hazel answer")
    laptop.sync()
    with monkeypatch.context() as other:
        other.setattr(client, "SHAPE", shape)
        wanted = {
            "machine": "this machine has an older turnlog",
            "hub": "older than this machine's turnlog: upgrade the hub",
        }
        with pytest.raises(client.HubRefusedError, match=wanted[older]):
            laptop.push()
    assert ids(hub_store) == []
    laptop.push()
    assert ids(hub_store) == ["claude-code:s1"]


def test_another_table_column_or_field_of_batches_has_another_number() -> None:
    said = msgspec.json.encode((TABLES, KEYS, IDENTITY, FeedBatch.__struct_fields__, FeedPosition._fields))
    # Whoever changes this gives `SHAPE` the next number: programs of before send, and take, what they know.
    assert (SHAPE, hashlib.sha256(said).hexdigest()[:12]) == (1, "81e051820c65")


def test_a_hub_that_is_away_harms_nothing(tmp_path: Path, hub: HubProcess, hub_store: PostgresStore) -> None:
    box = Box(tmp_path, hub)
    log(box, "/home/ana/app", "s1", "a prompt", "an answer")
    box.sync()
    with MachineState(box.store_path) as state, pytest.raises(HubUnreachableError, match="cannot reach the hub"):
        StorePusher(box.store_path, state, HubClient("http://127.0.0.1:9", "x", seconds=0)).push()
    box.push()
    assert ids(hub_store) == ["claude-code:s1"]


def ignore(done: int, total: int) -> None:
    """Progress of no interest."""


def test_a_raised_level_brings_the_project_too(tmp_path: Path, hub: HubProcess, hub_store: PostgresStore) -> None:
    box = Box(tmp_path, hub)
    box.level("/", "metrics")
    log(box, "/home/ana/app", "s1", "a prompt", "an answer")
    box.sync()
    box.push()
    for level in ("redacted", "full", "metrics", "full"):
        box.level("/", level)
        box.push()
        (session,) = hub_store.sessions().items
        assert session.project is not None, level
        assert (session.project.path == "/home/ana/app") == (level != "metrics")
        assert [project.path for project in hub_store.projects()] == [session.project.path]


@pytest.mark.timeout(150)
def test_two_machines_have_a_session_whose_id_somebody_else_has(
    tmp_path: Path, hub: HubProcess, hub_store: PostgresStore
) -> None:
    """It has another id on the hub than on the machines, which the hub asks for it by theirs."""
    boxes = [
        Box(tmp_path, hub, "tower", user="ben"),
        Box(tmp_path, hub, "laptop"),
        Box(tmp_path, hub, "desktop"),
    ]
    for box in boxes:
        log(box, "/home/ana/app", "s1", "one", "two")
        box.sync()
        box.push()
    assert ids(hub_store) == ["claude-code:s1", "claude-code:s1~ana"]
    log(boxes[2], "/home/ana/app", "s1", "one", "two", "three", "four")
    for box in boxes[::-1]:
        box.sync()
        box.push()
    assert hub_store.session("claude-code:s1~ana").counts.messages == 4
    assert hub_store.session("claude-code:s1").counts.messages == 2
