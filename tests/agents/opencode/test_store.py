"""OpenCode's rows in a store: any schedule of passes, what goes away, restoring, forgetting, rebuilding, secrets."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.opencode_files import (
    AGENT,
    SECRET,
    Rows,
    dump,
    insert,
    recorded,
    store_contents,
    write_database,
    write_project_storage,
    write_storage,
)
from support.profiles import examples
from turnlog.errors import ConflictError
from turnlog.model import RewindEvent
from turnlog.store import open_store
from turnlog.store.archive import Archive
from turnlog.store.base import SessionFilter
from turnlog.store.connection import connect
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.store.sqlite.restore import restore_files
from turnlog.sync.rebuild import rebuild
from turnlog.sync.summary import SyncSummary
from turnlog.sync.syncer import sync

PARENT, CHILD = "opencode:ses_e0418e851ffeDgcuDS6WlCcMks", "opencode:ses_e0418cdcbffeluOcL3vmfKoyn0"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "opencode"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store" / "turnlog.db"


def read(store: Path, root: Path) -> SyncSummary:
    store.parent.mkdir(exist_ok=True)
    return sync(store, roots=[root], agents=[AGENT])


def until(rows: Rows, moment: int) -> Rows:
    """The rows that were there at a moment, in the state they had before they were last written."""
    found: Rows = {}
    for table, items in rows.items():
        found[table] = [row for row in items if row.get("time_created", 0) <= moment]
    for part in found["part"]:
        data = json.loads(part["data"])
        if part["time_updated"] > moment and data["type"] == "tool":
            data["state"] = {"status": "running", "input": {}, "time": {"start": part["time_created"]}}
            part |= {"data": json.dumps(data), "time_updated": part["time_created"]}
        elif part["time_updated"] > moment and data["type"] in ("text", "reasoning"):
            data |= {"text": "", "time": {"start": part["time_created"]}}
            part |= {"data": json.dumps(data), "time_updated": part["time_created"]}
    for message in found["message"]:
        data = json.loads(message["data"])
        if message["time_updated"] > moment and data["role"] == "assistant":
            data.pop("finish", None)
            data["time"].pop("completed", None)
            data |= {"cost": 0, "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}}
            message |= {"data": json.dumps(data), "time_updated": message["time_created"]}
    return found


# -- any schedule


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(["subagent", "compact", "basic-chat", "interrupt"]),
    moments=st.lists(st.floats(0, 1), max_size=4),
)
def test_any_schedule_of_passes_ends_in_the_same(
    tmp_path_factory: pytest.TempPathFactory, name: str, moments: list[float]
) -> None:
    """R-C19, R-C13"""
    folder = tmp_path_factory.mktemp("schedule")
    rows = {table: items for table, items in recorded("1.18.33", name).items() if not table.startswith("event")}
    times = [row["time_created"] for row in rows["part"]]
    first, last = min(times), max(row["time_updated"] for row in rows["part"])
    root, often, once = folder / "home", folder / "often" / "turnlog.db", folder / "once" / "turnlog.db"
    for share in sorted(moments):
        (root / "opencode.db").unlink(missing_ok=True)
        now = int(first + (last - first) * share)
        then = until(recorded("1.18.33", name), now) | _sessions_at(rows, now)
        write_database({table: rows for table, rows in then.items() if rows}, root / "opencode.db")
        read(often, root)
    (root / "opencode.db").unlink(missing_ok=True)
    write_database(rows, root / "opencode.db")
    read(often, root)
    read(once, root)
    assert store_contents(often) == store_contents(once)


def _sessions_at(rows: Rows, moment: int) -> Rows:
    """Sessions whose rows were written once more later."""
    sessions = [dict(row) for row in rows["session"] if row["time_created"] <= moment]
    for row in sessions:
        if row["time_updated"] > moment:
            row |= {"time_updated": row["time_created"], "title": "New session - 2026-11-21T00:00:00.000Z", "cost": 0}
    return {"session": sessions}


def test_a_second_pass_finds_nothing(root: Path, store: Path) -> None:
    """R-C19"""
    write_database(recorded("1.18.33", "subagent"), root / "opencode.db")
    assert read(store, root).changed == 2
    assert read(store, root).changed == 0


@pytest.mark.parametrize("order", [0, 1])
def test_storages_and_database_are_one_history(root: Path, store: Path, tmp_path: Path, order: int) -> None:
    """R-C13: whichever is read first, nothing is there twice."""
    rows = recorded("1.18.33", "basic-chat")
    writes = [
        lambda: write_storage(rows, root),
        lambda: write_project_storage(rows, root),
        lambda: write_database(rows, root / "opencode.db"),
    ]
    for write in writes[:: -1 if order else 1]:
        write()
        read(store, root)
    only = tmp_path / "only" / "turnlog.db"
    other = tmp_path / "other"
    write_database(rows, other / "opencode.db")
    read(only, other)
    assert store_contents(store) == store_contents(only)


def test_a_fork_pays_for_nothing_that_it_copied(root: Path, store: Path) -> None:
    rows = recorded("1.18.33", "basic-chat")
    write_database(rows, root / "opencode.db")
    read(store, root)
    with open_store(store) as opened:
        fork, original = opened.sessions(SessionFilter()).items
        assert (fork.counts.messages, fork.usage.calls) == (16, 2)
        assert (original.counts.messages, original.usage.calls) == (12, 10)
        (relationship,) = fork.relationships
        assert (relationship.kind, relationship.parent_session_id) == ("fork", original.id)
        assert relationship.inferred


# -- what goes away


def test_what_is_deleted_from_the_database_stays_as_retracted(root: Path, store: Path) -> None:
    path = write_database(recorded("1.2.20", "samples"), root / "opencode.db")
    read(store, root)
    with closing(sqlite3.connect(path)) as connection, connection:
        (session, last) = connection.execute("SELECT session_id, max(id) FROM message").fetchone()
        connection.execute("DELETE FROM part WHERE message_id = ?", (last,))
        connection.execute("DELETE FROM message WHERE id = ?", (last,))
    before = store_contents(store)
    assert read(store, root).changed == 1
    with open_store(store) as opened:
        fates = {placed.message.id: placed.membership.fate for placed in opened.messages(f"opencode:{session}")}
    assert {message for message, fate in fates.items() if fate == "retracted"} == {last}
    assert {session: len(history) for session, (_, history) in store_contents(store).items()} == {
        session: len(history) for session, (_, history) in before.items()
    }


def test_events_have_messages_that_no_sync_saw(root: Path, store: Path) -> None:
    rows = recorded("1.18.33", "interrupt")
    gone = rows["message"][-1]["id"]
    session = rows["message"][-1]["session_id"]
    rows["message"] = [row for row in rows["message"] if row["id"] != gone]
    rows["part"] = [row for row in rows["part"] if row["message_id"] != gone]
    last = max(row["seq"] for row in rows["event"])
    removal = json.dumps({"sessionID": session, "messageID": gone})
    rows["event"].append(
        {"id": "evt_9", "aggregate_id": session, "seq": last + 1, "type": "message.removed.1", "data": removal}
    )
    write_database(rows, root / "opencode.db")
    read(store, root)
    with open_store(store) as opened:
        placed = {item.message.id: item for item in opened.messages(f"opencode:{session}")}
    assert placed[gone].membership.fate == "retracted"
    assert placed[gone].message.parts


def test_an_event_without_a_number_does_not_stop_the_next_pass(root: Path, store: Path) -> None:
    rows = recorded("1.18.33", "interrupt")
    session = rows["message"][-1]["session_id"]
    odd = {"id": "evt_9", "aggregate_id": session, "seq": "soon", "type": "message.updated.1", "data": "{}"}
    rows["event"].append(odd)
    path = write_database(rows, root / "opencode.db")
    read(store, root)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE message SET time_updated = time_updated + 1, data = json_set(data, '$.new', 1)")
        connection.execute("UPDATE event_sequence SET seq = seq + 1")
    result = read(store, root)
    assert (result.problems, result.changed > 0) == ([], True)


def test_a_reverted_session_goes_back_and_forth(root: Path, store: Path) -> None:
    rows = recorded("1.2.20", "samples")
    session = rows["message"][0]["session_id"]
    prompts = [row["id"] for row in rows["message"] if json.loads(row["data"])["role"] == "user"]
    path = write_database(rows, root / "opencode.db")
    for count, revert in enumerate((None, {"messageID": prompts[0]}, None), 1):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(
                "UPDATE session SET revert = ?, time_updated = time_updated + ? WHERE id = ?",
                (json.dumps(revert) if revert else None, count, session),
            )
        read(store, root)
        with open_store(store) as opened:
            fates = {placed.membership.fate.value for placed in opened.messages(f"opencode:{session}")}
            history = opened.history(f"opencode:{session}")
            rewinds = [event for event in history if isinstance(event, RewindEvent)]
        assert fates == ({"rewound"} if revert else {"active"})
        assert bool(rewinds) == (count > 1)


def test_a_session_that_is_deleted_is_kept(root: Path, store: Path) -> None:
    path = write_database(recorded("1.18.33", "subagent"), root / "opencode.db")
    read(store, root)
    before = store_contents(store)
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, column in (("session", "id"), ("message", "session_id"), ("part", "session_id")):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (CHILD.partition(":")[2],))
    assert read(store, root).vanished == 1
    assert store_contents(store) == before


def test_a_database_that_cannot_be_read_is_a_problem_until_it_can(root: Path, store: Path) -> None:
    path = write_database(recorded("1.18.33", "subagent"), root / "opencode.db")
    whole = path.read_bytes()
    read(store, root)
    path.write_bytes(whole[:100] + b"\0" * (len(whole) - 100))
    summary = read(store, root)
    assert [problem.path for problem in summary.problems] == [str(path)]
    assert summary.vanished == 0
    path.write_bytes(whole)
    assert read(store, root).problems == []


# -- giving back, forgetting, making anew


def test_restored_rows_are_those_of_the_original(root: Path, store: Path, tmp_path: Path) -> None:
    """Of the session and its subagent, and of no other."""
    rows = recorded("1.18.33", "subagent")
    others = recorded("1.18.33", "interrupt")
    path = write_database(rows, root / "opencode.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, items in others.items():
            insert(connection, table, items)
    read(store, root)
    connection = connect(store)
    restored = restore_files(connection, PARENT, tmp_path / "back")
    again = restore_files(connection, PARENT, tmp_path / "back")
    connection.close()
    assert [file.path for file in restored] == [tmp_path / "back" / "opencode.db"] == [file.path for file in again]
    alone = write_database(rows, tmp_path / "alone.db")
    assert sorted(dump(restored[0].path)) == sorted(dump(alone))


def test_restored_files_are_those_of_the_original(root: Path, store: Path, tmp_path: Path) -> None:
    write_storage(recorded("1.18.33", "subagent"), root)
    read(store, root)
    connection = connect(store)
    restored = restore_files(connection, PARENT, tmp_path / "back")
    connection.close()
    wanted = {path.relative_to(root): path.read_bytes() for path in root.rglob("*.json")}
    assert {
        path.relative_to(tmp_path / "back"): path.read_bytes() for path in (tmp_path / "back").rglob("*.json")
    } == wanted
    assert len(restored) == len(wanted)


@pytest.mark.parametrize("kind", ["rows", "files"])
def test_restoring_follows_no_link_and_is_for_the_user_alone(
    root: Path, store: Path, tmp_path: Path, kind: str
) -> None:
    """C8: a database that a link leads to would be written into."""
    if kind == "rows":
        write_database(recorded("1.18.33", "subagent"), root / "opencode.db")
    else:
        write_storage(recorded("1.18.33", "subagent"), root)
    read(store, root)
    with closing(connect(store)) as connection:
        restored = restore_files(connection, PARENT, tmp_path / "back")
        assert {stat.S_IMODE(file.path.stat().st_mode) for file in restored} == {0o600}
        first = restored[0].path.relative_to(tmp_path / "back").parts[0]
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / first).symlink_to(tmp_path / "outside")
        with pytest.raises((OSError, ConflictError), match="symbolic link"):
            restore_files(connection, PARENT, tmp_path / "other")
    assert not (tmp_path / "outside").exists()


def test_forgetting_a_session_leaves_the_others(root: Path, store: Path) -> None:
    rows = recorded("1.18.33", "subagent")
    path = write_database(rows, root / "opencode.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, items in recorded("1.18.33", "interrupt").items():
            insert(connection, table, items)
    read(store, root)
    before = store_contents(store)
    forget_for_good(store, PARENT)
    after = store_contents(store)
    assert after == {session: value for session, value in before.items() if session not in (PARENT, CHILD)}
    assert read(store, root).messages == 0
    assert store_contents(store) == after


def test_a_rebuilt_store_has_the_same_history(root: Path, store: Path) -> None:
    path = write_database(recorded("1.18.33", "basic-chat"), root / "opencode.db")
    read(store, root)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE session SET title = 'named', time_updated = time_updated + 1")
    read(store, root)
    before = store_contents(store)
    path.unlink()
    rebuild(store, agents=[AGENT])
    assert store_contents(store) == before


# -- secrets, and leaving no traces


def test_no_secret_is_read(root: Path, store: Path) -> None:
    """Tokens, credentials and the secrets of shared sessions reach neither the store nor its archive nor its index."""
    write_database(recorded("1.18.33", "subagent"), root / "opencode.db", secrets=True)
    assert SECRET.encode() in (root / "opencode.db").read_bytes()
    (root / "auth.json").write_text(json.dumps({"key": SECRET}))
    share = root / "storage" / "session_share" / "ses_1.json"
    share.parent.mkdir(parents=True)
    share.write_text(json.dumps({"secret": SECRET}))
    assert read(store, root).messages > 0
    assert [file for file in store.parent.iterdir() if SECRET.encode() in file.read_bytes()] == []
    connection = connect(store)
    archived = list(_archived(connection))
    connection.close()
    assert archived
    assert [data for data in archived if SECRET.encode() in data] == []


def _archived(connection: sqlite3.Connection) -> Iterator[bytes]:
    archive = Archive(connection)
    for key, generation in connection.execute("SELECT source_key, generation FROM generations").fetchall():
        yield b"".join(archive.iter_bytes(key, generation))


def test_a_database_of_another_schema_is_a_problem_and_what_was_read_stays(root: Path, store: Path) -> None:
    path = write_database(recorded("1.18.33", "subagent"), root / "opencode.db")
    read(store, root)
    before = store_contents(store)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE part")
    summary = read(store, root)
    assert [(problem.path, problem.reason) for problem in summary.problems] == [
        (str(path), "a database of another schema: no table part")
    ]
    assert (summary.vanished, store_contents(store)) == (0, before)


def test_a_table_of_an_older_shape_is_read_too(root: Path, store: Path) -> None:
    """1.14 keeps `session_message` without the numbers that later versions sort it by."""
    rows = recorded("1.18.33", "basic-chat")
    [session] = [row for row in rows["session"] if row["parent_id"] is None][:1]
    extra = {"id": "evt_1", "session_id": session["id"], "type": "agent-switched", "data": "{}"}
    rows["session_message"] = [{**extra, "time_created": 1, "time_updated": 1}]
    write_database(rows, root / "opencode.db")
    summary = sync(store, roots=[root], agents=[AGENT])
    assert summary.problems == []
    with open_store(store) as opened:
        assert opened.session(f"opencode:{session['id']}").counts.messages > 0


def test_before_0_6_the_folder_of_a_session_comes_from_its_answers(root: Path, store: Path) -> None:
    write_project_storage(recorded("1.18.33", "basic-chat"), root)
    for path in root.rglob("session/info/*.json"):
        info = json.loads(path.read_text())
        del info["directory"]
        path.write_text(json.dumps({**info, "version": "0.5.29"}))
    assert read(store, root).problems == []
    with open_store(store) as opened:
        folders = {session.cwd for session in opened.sessions(SessionFilter(subagents=True)).items}
    assert len(folders) == 1
    assert None not in folders
