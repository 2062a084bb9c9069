"""What hooks reported holds until the log has it, whichever was read first; then nothing is left that the log has."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from support.followers import Follower, loaded
from support.hook_recordings import HOMES, NAMES, Recording, recording
from support.plain_store import PRICE_VERSION, price
from support.store_dump import Dump, check_integrity, differences, dump
from turnlog.agents.base import HOOKED_FROM, Agent, Source
from turnlog.model import Message, Origin, TextPart, ToolCallPart, ToolState
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.store.connection import connect
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.store.sqlite.restore import restore_files
from turnlog.sync.reader import SourceReader
from turnlog.sync.rebuild import rebuild

BEGINNINGS = ("PreToolUse", "BeforeTool", "tool.before")

ORDERS = ["hooks first", "log first", "together"]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def recorded(name: str) -> Recording:
    return recording(name)


def open_for_writing(path: Path) -> closing[sqlite3.Connection]:
    return closing(connect(path, checked=False))


def read(connection: sqlite3.Connection, agent: Agent, *sources: Source) -> None:
    assert SourceReader(connection, price, PRICE_VERSION).read([(agent, source) for source in sources]).problems == []


def contents_of(connection: sqlite3.Connection) -> Dump:
    """All that the store says, but what is about the spool itself."""
    check_integrity(connection)
    found = dump(connection)
    for table, part in {"messages": ":hook.", "bodies": ":hook.", "sources": "/spools/", "archive": "/spools/"}.items():
        found[table] = {key: row for key, row in found[table].items() if part not in key}
    return found


def let_go_of_the_stop(connection: sqlite3.Connection, recorded: Recording) -> None:
    """Take out what hooks alone know, to compare the rest."""
    left = connection.execute("SELECT kind, session_key FROM events WHERE position >= ?", (HOOKED_FROM,)).fetchall()
    assert [kind for kind, _ in left] == recorded.stays
    connection.execute("DELETE FROM events WHERE position >= ?", (HOOKED_FROM,))
    connection.executemany("UPDATE sessions SET events = events - 1 WHERE key = ?", [(key,) for _, key in left])


def contents_of_logs(recorded: Recording, tmp_path: Path) -> Dump:
    with open_for_writing(tmp_path / "clean.db") as connection:
        read(connection, recorded.agent, *recorded.logs())
        return contents_of(connection)


def spool(recorded: Recording, tmp_path: Path, lines: list[bytes] | None = None) -> Source:
    return recorded.write_spool(tmp_path / "spools", recorded.lines if lines is None else lines)


def text_of(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def shown(connection: sqlite3.Connection) -> Counter[tuple[str, str]]:
    """How often each text (by its beginning, since it may still grow) and each call is in the sessions."""
    found = connection.execute(
        "SELECT m.role, trim(substr(m.text_preview, 1, 20), ' ' || char(10)) FROM memberships s JOIN messages m"
        " ON m.key = s.message_key WHERE m.text_preview <> '' UNION ALL SELECT 'call', p.tool_call_id"
        " FROM memberships s JOIN parts p ON p.message_key = s.message_key WHERE p.tool_call_id IS NOT NULL"
        " AND p.tool_call_id NOT LIKE 'hook.%'"
    )
    return Counter(found.fetchall())


def test_a_session_is_there_before_its_log(name: str, recorded: Recording, tmp_path: Path) -> None:
    """R-C18."""
    path = tmp_path / "turnlog.db"
    with open_for_writing(path) as connection:
        read(connection, recorded.agent, spool(recorded, tmp_path))
    session_id = f"{recorded.agent.name}:{recorded.events[0]['session_id']}"
    with open_store(path) as opened:
        session = opened.session(session_id)
        messages = [placed.message for placed in opened.messages(session_id)]
    assert (session.cwd, session.metadata["known_from"]) == (recorded.events[0]["cwd"], "hooks")
    prompts = [text_of(message) for message in messages if message.origin is Origin.PROMPT]
    assert prompts == recorded.prompts
    calls = [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]
    begun = [event for event in recorded.events if event["hook_event_name"] in BEGINNINGS]
    assert [(call.tool_name, call.input_value()) for call in calls] == [
        (recorded.renamed.get(event["tool_name"], event["tool_name"]), event["tool_input"])
        for event in begun
        if not event.get("agent_id")
    ]
    ended = [call.output_text for call in calls if call.state is ToolState.OUTPUT_AVAILABLE]
    assert recorded.first_output in "".join(ended[:1])


@pytest.mark.parametrize("order", ORDERS)
def test_with_the_log_all_is_as_if_no_hook_had_reported_anything(
    recorded: Recording, order: str, tmp_path: Path
) -> None:
    """R-C20."""
    hooks, logs = [spool(recorded, tmp_path)], recorded.logs()
    groups = {"hooks first": [hooks, logs], "log first": [logs, hooks], "together": [[*logs, *hooks]]}[order]
    path = tmp_path / "turnlog.db"
    with open_for_writing(path) as connection:
        for group in groups:
            read(connection, recorded.agent, *group)
        let_go_of_the_stop(connection, recorded)
        assert differences(contents_of(connection), contents_of_logs(recorded, tmp_path)) == []
        assert connection.execute("SELECT count(*) FROM superseded").fetchone()[0] > 0
    rebuild(path, agents=[recorded.agent])
    with open_for_writing(path) as connection:
        shown_again = shown(connection)
    with open_for_writing(tmp_path / "clean.db") as connection:
        assert shown_again == shown(connection)


@pytest.mark.parametrize("late", [0, 60, 3000])
@pytest.mark.parametrize("name", HOMES)
def test_nothing_is_doubled_while_hooks_and_log_come_in_turns(recorded: Recording, late: int, tmp_path: Path) -> None:
    """R-C20: every line comes at its own time, those of the log some milliseconds late."""
    moved = recorded._replace(home=shutil.copytree(recorded.home, tmp_path / "home"))
    clean = contents_of_logs(moved, tmp_path)
    with open_for_writing(tmp_path / "clean.db") as connection:
        most = shown(connection)
    logs = {source.path: source for source in moved.logs()}
    steps = sorted([*spool_steps(moved), *log_steps(list(logs), late)], key=lambda step: step[0])
    with open_for_writing(tmp_path / "turnlog.db") as connection:
        bodies: list[bytes] = []
        for _, path, line in steps:
            if path is None:
                bodies.append(line)
                read(connection, moved.agent, spool(moved, tmp_path, bodies))
            else:
                with Path(path).open("ab") as file:
                    file.write(line)
                read(connection, moved.agent, logs[path])
            assert not shown(connection) - most, line
        read(connection, moved.agent, *logs.values())
        let_go_of_the_stop(connection, moved)
        assert differences(contents_of(connection), clean) == []


def spool_steps(recorded: Recording) -> list[tuple[float, str | None, bytes]]:
    return [(json.loads(line)["at"], None, line) for line in recorded.lines]


def log_steps(paths: list[str], late: int) -> list[tuple[float, str | None, bytes]]:
    """Take the lines out of the logs, each with the time when it was written."""
    steps: list[tuple[float, str | None, bytes]] = []
    for path in paths:
        if not path.endswith(".jsonl"):
            continue
        lines = Path(path).read_bytes().splitlines(keepends=True)
        Path(path).write_bytes(b"")
        at = 0.0
        for line in lines:
            moment = written_at(json.loads(line))
            at = max(at, at if moment is None else moment + late)
            steps.append((at, path, line))
    return steps


def written_at(record: dict[str, Any]) -> float | None:
    """The time in a record of a log, in Unix milliseconds."""
    if str(record.get("method")).endswith("session/update"):
        return record["params"]["_meta"]["agentTimestampMs"]
    if isinstance(record.get("time"), int):
        return record["time"]
    moment = record.get("timestamp") or record.get("lastUpdated")
    return datetime.fromisoformat(moment).timestamp() * 1000 if moment else None


def line_of(at: float, event: dict[str, Any]) -> bytes:
    return json.dumps({"at": at, "event": event}).encode() + b"\n"


def test_what_no_log_ever_has_stays(tmp_path: Path) -> None:
    """A prompt that another hook blocked reaches no log; what waits for an answer is not past either."""
    recorded = recording("claude-code")
    last = json.loads(recorded.lines[-1])
    later = last["at"] + 60_000
    events = [
        {"hook_event_name": "UserPromptSubmit", "prompt_id": "p-blocked", "prompt": "Delete everything"},
        {"hook_event_name": "Notification", "message": "Claude is waiting for your input"},
    ]
    session = {"session_id": last["event"]["session_id"]}
    lines = [line_of(later + number, {**event, **session}) for number, event in enumerate(events)]
    with open_for_writing(tmp_path / "turnlog.db") as connection:
        read(connection, recorded.agent, *recorded.logs(), spool(recorded, tmp_path, [*recorded.lines, *lines]))
        left = "SELECT m.text_preview FROM memberships s JOIN messages m ON m.key = s.message_key WHERE s.position >= ?"
        assert connection.execute(left, (HOOKED_FROM,)).fetchall() == [("Delete everything",)]
        waiting = connection.execute("SELECT kind FROM events WHERE position >= ?", (HOOKED_FROM,)).fetchall()
        assert waiting == [("hook:Notification",)]


def test_the_same_event_twice_is_one(recorded: Recording, tmp_path: Path) -> None:
    """A server may have taken an event whose sender got no answer, and spooled it."""
    doubled = [line for line in recorded.lines for _ in range(2)]
    sums: list[Counter[tuple[str, str]]] = []
    for name, lines in {"once": recorded.lines, "twice": doubled}.items():
        with open_for_writing(tmp_path / f"{name}.db") as connection:
            read(connection, recorded.agent, spool(recorded, tmp_path / name, lines))
            sums.append(shown(connection) + Counter(connection.execute("SELECT kind, position FROM events").fetchall()))
    assert sums[0] == sums[1]


def test_a_branch_in_the_log_is_none_of_the_hooks_business(tmp_path: Path) -> None:
    """What comes after all that the log has is no end of the active branch: that compaction is the log's."""
    recorded = recording("claude-code")
    lines = [line for line in recorded.lines if b"PreToolUse" not in line]
    with open_for_writing(tmp_path / "turnlog.db") as connection:
        last = json.loads(lines[-1])
        late = {**last["event"], "hook_event_name": "UserPromptSubmit", "prompt": "More"}
        read(connection, recorded.agent, *recorded.logs())
        fates = "SELECT m.external_id, s.fate FROM memberships s JOIN messages m ON m.key = s.message_key"
        before = set(connection.execute(fates).fetchall())
        read(connection, recorded.agent, spool(recorded, tmp_path, [*lines, line_of(last["at"] + 9e6, late)]))
        read(connection, recorded.agent, *recorded.logs())
        assert {("compacted",)} <= {row[1:] for row in before}
        assert before < set(connection.execute(fates).fetchall())


def test_what_hooks_reported_is_no_file_of_the_agents_home(tmp_path: Path) -> None:
    recorded = recording("codex")
    with open_for_writing(tmp_path / "turnlog.db") as connection:
        read(connection, recorded.agent, spool(recorded, tmp_path), *recorded.logs())
        restored = restore_files(connection, f"codex:{recorded.events[0]['session_id']}", tmp_path / "restored")
    assert [file.path.name for file in restored] == [Path(source.path).name for source in recorded.logs()]


def test_forgetting_a_session_takes_its_spool_along(tmp_path: Path) -> None:
    recorded = recording("codex")
    path = tmp_path / "turnlog.db"
    source = recorded.write_spool(tmp_path / "hooks", recorded.lines)
    with open_for_writing(path) as connection:
        read(connection, recorded.agent, source, *recorded.logs())
    forget_for_good(path, source.session_id or "")
    assert not Path(source.path).exists()
    with open_for_writing(path) as connection:
        for table in ("messages", "sources", "superseded", "archive", "events"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0, table


def test_a_page_that_follows_has_what_a_page_that_is_loaded_anew_has(recorded: Recording, tmp_path: Path) -> None:
    """R-C20, R-S39: while hooks report and while the log takes their place, nothing is doubled and nothing left."""
    path = tmp_path / "store.db"
    with open_for_writing(path) as connection:
        half = len(recorded.lines) // 2
        read(connection, recorded.agent, spool(recorded, tmp_path, recorded.lines[:half]))
        with open_store(path) as store:
            sessions = [session.id for session in store.sessions(SessionFilter(subagents=True)).items]
            followers = {session: Follower(store, session) for session in sessions}
            assert followers
            read(connection, recorded.agent, spool(recorded, tmp_path))
            for follower in followers.values():
                follower.follow()
            read(connection, recorded.agent, *recorded.logs())
            for session, follower in followers.items():
                follower.follow()
                assert (follower.messages, follower.rows, follower.events) == loaded(store, session)
