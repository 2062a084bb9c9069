"""What feeds say becomes rows: once, whole, and no matter how often or in which pieces it is said."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.store_dump import differences
from support.toy_agent import ToyAgent, line
from support.toy_store import ToyStore
from turnlog.model import ToolCallPart
from turnlog.store import bodies, zstd
from turnlog.store.connection import connect, write_transaction
from turnlog.store.frames import BodyReader
from turnlog.store.packed_columns import unpack_records


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ToyStore]:
    with ToyStore(tmp_path) as found:
        yield found


def text(message: str, content: str = "x", *, block: int = 0, record: str | None = None, **fields: Any) -> bytes:
    return line(kind="text", id=record or f"r-{message}{block}", message=message, block=block, text=content, **fields)


def call(name: str, message: str = "m", *, block: int = 0, **fields: Any) -> bytes:
    return line(kind="call", id=f"r-{name}", message=message, block=block, call=name, tool="Bash", **fields)


def result(name: str, record: str, **fields: Any) -> bytes:
    return line(kind="result", id=record, call=name, **fields)


def body(store: ToyStore, message: str) -> Any:
    key = store.row("SELECT key FROM messages WHERE external_id = ?", message)
    return bodies.decode(BodyReader(store.connection).of(key))


def results_of(store: ToyStore, message: str = "m") -> dict[str, list[str]]:
    """Call -> the ids of its results."""
    parts = [part for part in body(store, message).parts if isinstance(part, ToolCallPart)]
    return {part.tool_call_id: [result.id for result in part.results] for part in parts}


def event_count(store: ToyStore) -> int:
    counted = store.session("s", "events")
    assert counted == store.row("SELECT count(*) FROM events")
    return counted


# -- late results


@pytest.mark.parametrize("is_before", [False, True])
def test_a_message_is_written_once_for_all_results_of_a_feed(store: ToyStore, *, is_before: bool) -> None:
    """R-S16: where it were written for each of thousands, the time would grow with their square."""
    late = [result("c", f"r{number:03}") for number in range(100)]
    for lines in [late, [call("c")]] if is_before else [[call("c")], late]:
        store.add("s.log", *lines)
    assert len(results_of(store)["c"]) == 100
    assert store.row("SELECT revision FROM messages") == 2
    store.dump()


# -- messages


def test_lines_of_one_message_are_one_message(store: ToyStore) -> None:
    """R-S15, R-S24: one row, its parts in order, however its lines arrive."""
    store.add("s.log", text("m", "one", tokens=[5, 1]))
    store.add("s.log", text("m", "two", block=1), text("other"))
    store.add("s.log", text("m", "three", block=2, tokens=[5, 9], stop="end"))
    assert [part.text for part in body(store, "m").parts] == ["one", "two", "three"]
    assert store.row("SELECT output, exactness FROM messages WHERE external_id = 'm'") == (9, "exact")
    assert store.rows("SELECT type, text_size FROM parts ORDER BY message_key, sequence")[:3] == [
        ("text", 3),
        ("text", 3),
        ("text", 5),
    ]
    assert store.session("s", "messages, calls, output, unknown_calls") == (2, 2, 9, 1)
    store.dump()


def test_a_line_that_is_read_again_changes_nothing(store: ToyStore) -> None:
    """R-C13: importing again updates, never duplicates: not even the revision or the change sequence of a message."""
    store.add("s.log", text("m", "one"), text("m", "two", block=1))
    before = store.row("SELECT revision, changed_seq, frame_key, body_size FROM messages")
    store.add("s.log", text("m", "one"), text("m", "two", block=1))
    assert store.row("SELECT revision, changed_seq, frame_key, body_size FROM messages") == before
    assert store.row("SELECT count(*) FROM messages") == 1


def test_a_grown_message_has_a_new_revision_and_a_later_position(store: ToyStore) -> None:
    store.add("s.log", text("m", "on"))
    first = store.row("SELECT revision, changed_seq FROM messages")
    store.add("s.log", text("m", "one"))
    second = store.row("SELECT revision, changed_seq FROM messages")
    assert second[0] == first[0] + 1
    assert second[1] > first[1]
    assert store.session("s", "changed_seq") == second[1] == store.row("SELECT max(seq) FROM changes")


def test_equal_ids_of_two_agents_do_not_collide(tmp_path: Path) -> None:
    """R-C13: (agent, external id) names a record."""

    class OtherAgent(ToyAgent):
        name = "other"

    with ToyStore(tmp_path) as store:
        store.add("s.log", text("m", "toy"))
        store.agent = OtherAgent()
        store.write("copy/s.log", text("m", "other"))
        store.read("copy/s.log")
        assert store.rows("SELECT agent, text_preview FROM messages ORDER BY 1") == [("other", "other"), ("toy", "toy")]


def test_what_a_log_says_again_in_a_copy_of_the_file_is_not_stored_twice(store: ToyStore) -> None:
    lines = (text("m"), call("c", "m", block=1), result("c", "r1"), line(kind="note", id="n"), b"broken\n")
    store.add("s.log", *lines)
    store.add("backup/s.log", *lines)
    assert store.session("s", "messages, events, calls, tool_calls") == (1, 1, 1, 1)
    assert store.row("SELECT count(*) FROM diagnostics") == 2, "each file tells of its own damage"
    store.dump()


def test_a_message_moves_to_the_day_and_model_of_a_later_line(store: ToyStore) -> None:
    store.add("s.log", text("m", at=1440, tokens=[1, 1]))
    store.add("s.log", text("m", block=1, at=0, model="opus", tokens=[1, 2]))
    rows = store.rows("SELECT o.name, u.calls, u.output, u.cost FROM usage u LEFT JOIN models o ON o.key = u.model_key")
    assert rows == [("opus", 1, 2, 3_000_000)]
    store.dump()


def test_a_role_that_is_none_is_refused_by_the_database(store: ToyStore) -> None:
    """R-S24: role CHECK; one message once; one place a message in a session."""
    store.add("s.log", text("m"))
    columns = "agent, external_id, role, changed_seq, body_size"
    for external_id, role in (("new", "wizard"), ("m", "user")):
        with pytest.raises(sqlite3.IntegrityError):
            store.rows(f"INSERT INTO messages ({columns}) VALUES ('toy', ?, ?, 0, 0)", external_id, role)
    again = "SELECT session_key, 99, message_key FROM memberships"
    with pytest.raises(sqlite3.IntegrityError):
        store.rows(f"INSERT INTO memberships (session_key, position, message_key) {again}")


# -- results


def test_a_late_result_finds_its_call(store: ToyStore) -> None:
    store.add("s.log", call("c"))
    store.add("s.log", result("c", "r1", status="error", text="no", at=1))
    assert results_of(store) == {"c": ["r1"]}
    assert store.row("SELECT tool_state, output_size FROM parts") == ("output-error", 2)
    assert store.session("s", "failed_tool_calls, events") == (1, 0)


def test_a_result_before_its_call_waits_for_it_as_an_event(store: ToyStore) -> None:
    store.add("s.log", result("c", "r1", approved=False, status="denied"))
    assert store.rows("SELECT type, kind FROM events") == [("tool-result", "orphan-result")]
    assert event_count(store) == 1
    store.add("s.log", call("c"))
    assert event_count(store) == 0
    assert results_of(store) == {"c": ["r1"]}
    (part,) = body(store, "m").parts
    assert part.state == "output-denied"
    assert part.approval.approved is False, "who refused it is not lost on the way"
    store.dump()


@pytest.mark.parametrize("order", [("a.log", "b.log"), ("b.log", "a.log")])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_result_finds_a_call_that_only_a_fork_has_kept(
    store: ToyStore, order: tuple[str, str], *, at_once: bool
) -> None:
    """The line with the call was lost in one log; which of the two is read first does not decide."""
    store.append("a.log", text("m"), result("c", "r1"))
    store.append("b.log", text("m"), call("c", block=1))
    for names in [order] if at_once else [(name,) for name in order]:
        store.read(*names)
    assert store.rows("SELECT 1 FROM events WHERE kind = 'orphan-result'") == []
    assert results_of(store) == {"c": ["r1"]}
    records = store.row(
        "SELECT records FROM memberships m JOIN sessions s ON s.key = session_key WHERE external_id = 'a'"
    )
    assert [kept[2] for kept in unpack_records(records)] == [0, "r1"]
    store.dump()


def test_an_orphan_stays_an_event(store: ToyStore) -> None:
    store.add("s.log", call("c"), result("gone", "r1"))
    store.add("s.log", call("d", "other"))
    assert event_count(store) == 1
    store.dump()


def test_a_call_that_answers_twice_keeps_both_answers(store: ToyStore) -> None:
    store.add("s.log", call("c"), result("c", "r1", at=1, text="launched"))
    store.add("s.log", result("c", "r2", at=9, status="error"))
    assert results_of(store) == {"c": ["r1", "r2"]}
    assert store.row("SELECT tool_state, duration_ms FROM parts") == ("output-error", None)


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (3,), (1, 2, 3), (1, 2, 3, 4)])
def test_of_two_calls_of_one_id_the_nearest_before_the_result_gets_it(store: ToyStore, cuts: tuple[int, ...]) -> None:
    """The fold has forgotten both; how the log was cut does not decide."""
    others = b"".join(call(f"other{number}", f"o{number}") for number in range(4))
    lines = [call("c", "m1"), call("c", "m2") + others, result("c", "r1"), others, call("c", "m3")]
    for start, end in zip((0, *cuts), (*cuts, len(lines)), strict=True):
        store.add("s.log", *lines[start:end])
    assert [results_of(store, message)["c"] for message in ("m1", "m2", "m3")] == [[], ["r1"], []]


def test_a_result_whose_message_does_not_hold_the_call_is_not_lost(store: ToyStore) -> None:
    """The line with the call was unreadable: the message is there, its call is not."""

    store.add("s.log", call("c"))
    store.connection.execute("UPDATE parts SET tool_call_id = 'another'")
    store.add("s.log", result("c", "r1"))
    assert store.rows("SELECT kind FROM events") == [("orphan-result",)]


# -- events, links, spills, diagnostics


def test_an_event_is_reported_once_and_its_last_word_counts(store: ToyStore) -> None:
    store.add("s.log", line(kind="compact", id="k", kept=["a"]))
    assert event_count(store) == 1
    store.add("s.log", line(kind="prompt", id="p", parent="k", message="m", summary=True))
    assert event_count(store) == 1
    event = zstd.decompress(store.row("SELECT body FROM events"))
    assert b'"summary_message_id":"m"' in event


def test_records_that_nobody_knows_are_events_of_their_own_kind(store: ToyStore) -> None:
    store.add("s.log", line(kind="earthquake"), line(kind="note"))
    assert store.rows("SELECT kind, known FROM events ORDER BY position") == [("earthquake", 0), ("note", 1)]


@pytest.mark.parametrize("spill_first", [True, False])
def test_a_spilled_output_changes_the_messages_that_preview_it(store: ToyStore, spill_first: bool) -> None:
    store.write("s.spills/out.txt", b"the whole output")
    if spill_first:
        store.read("s.spills/out.txt")
    store.add("s.log", call("c"), result("c", "r1", spill="out.txt", text="the wh\u2026"))
    store.add("t.log", call("c", "n"), result("c", "r2", spill="out.txt"))
    before = dict(store.rows("SELECT external_id, changed_seq FROM messages"))
    if not spill_first:
        store.read("s.spills/out.txt")
    after = dict(store.rows("SELECT external_id, changed_seq FROM messages"))
    assert (after["m"] > before["m"]) == (not spill_first)
    assert after["n"] == before["n"], "a file of that name in another session is another file"
    assert store.rows("SELECT session_id, name, size FROM spills") == [("toy:s", "out.txt", 16)]


def test_damage_is_reported_with_its_place(store: ToyStore) -> None:
    """R-S34: counted and reported with line numbers, the rest is read."""
    store.add("s.log", text("a"), b"broken\n", text("b"))
    store.add("s.log", b"\n", b'{"kind": 7}\n', text("c"))
    assert store.rows("SELECT line, offset, length, severity FROM diagnostics ORDER BY line") == [
        (2, len(text("a")), 6, "error"),
        (5, len(text("a") + b"broken\n" + text("b") + b"\n"), 11, "error"),
    ]
    assert store.row("SELECT lines FROM sources") == 6
    assert store.session("s", "messages") == 3


# -- session facts


def test_the_latest_word_about_a_session_counts_and_the_first_folder(store: ToyStore) -> None:
    """R-C6: title, folder, branch, version, times."""
    store.add("s.log", line(kind="prompt", id="p", message="m", text="please", at=5, cwd="/one", branch="main"))
    assert store.session("s", "title, title_source") == ("please", "prompt")
    store.add("s.log", line(kind="facts", version="2", branch="dev", at=3, mode="plan", cwd="/two"))
    store.add("s.log", line(kind="title", source="custom", text="mine"), line(kind="facts", mode="ask", at=9))
    assert store.session("s", "title, title_source, cwd, git_branch, agent_version") == (
        "mine",
        "custom",
        "/two",
        "dev",
        "2",
    )
    assert store.session("s", "(updated_at - created_at) / 60000") == 6
    assert store.row("SELECT p.path FROM sessions s JOIN projects p ON p.key = s.project_key") == "/one"
    assert store.session("s", "metadata") == '{"toy":{"mode":"ask","seen":{"ask":true,"plan":true}}}'


def test_a_forgotten_session_is_not_brought_back(store: ToyStore) -> None:
    store.connection.execute("INSERT INTO tombstones VALUES ('toy:s', 0)")
    store.add("s.log", call("c"), result("c", "r"), result("gone", "g"), line(kind="note"), line(kind="leaf", leaf="x"))
    store.write("s.spills/out.txt", b"x")
    store.read("s.spills/out.txt")
    assert store.row("SELECT count(*) FROM sessions") == 0
    assert store.row("SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM events)") == 0
    assert store.row("SELECT count(*) FROM spills") == 0


# -- blobs


def test_a_content_is_stored_once_however_many_hold_it(store: ToyStore) -> None:
    long = "0123456789" * 10_000
    store.add("s.log", text("a", long), text("b", long), call("c"), result("c", "r", text=long))
    assert store.row("SELECT count(*), sum(size) FROM blobs") == (1, 100_000)
    assert store.row("SELECT count(*) FROM blob_uses") == 3
    assert store.row("SELECT compressed, length(data) < 1000 FROM blobs") == (1, 1)


def test_a_content_that_no_message_uses_any_more_goes(store: ToyStore) -> None:
    """A streamed text that grew is not kept once for every size it had."""
    long = "0123456789" * 10_000
    store.add("s.log", text("a", long))
    store.add("s.log", text("b", long), text("a", long + "more"))
    assert store.row("SELECT count(*) FROM blobs") == 2, "the other message still uses the first"
    store.add("s.log", text("b", long + "more"))
    assert store.rows("SELECT size FROM blobs") == [(100_004,)]
    assert store.row("SELECT count(*) FROM blob_uses") == 2


# -- the change sequence


def test_every_commit_appends_to_the_change_sequence_what_it_touched(store: ToyStore) -> None:
    store.append("a.log", text("m1"))
    store.append("b.log", text("m2"))
    store.read("a.log", "b.log")
    store.add("b.log", text("m3"))
    rows = store.rows(
        "SELECT s.external_id, c.kind FROM changes c JOIN sessions s ON s.key = c.session_key ORDER BY c.seq"
    )
    assert rows == [("a", "session"), ("b", "session"), ("b", "session")]
    assert store.session("b", "changed_seq") == 3
    assert store.row("SELECT changed_seq FROM messages WHERE external_id = 'm3'") == 3


def test_a_pass_that_brings_nothing_changes_nothing(store: ToyStore) -> None:
    store.add("s.log", text("m"))
    before = store.dump()
    assert store.read("s.log").changed == 0
    assert store.row("SELECT max(seq) FROM changes") == 1
    assert differences(store.dump(), before) == []


def test_what_was_saved_is_reported(store: ToyStore) -> None:
    store.append("a.log", text("m1"), b"broken\n")
    store.append("b.log", text("m1"), text("m2"))
    found = store.read("a.log", "b.log")
    assert found.changed == 2
    assert found.saved.sessions == {"toy:a", "toy:b"}
    assert (len(found.saved.created), found.saved.messages, found.saved.diagnostics) == (2, 2, 1)
    assert found.saved.last_change == 2
    again = store.add("b.log", text("m2"), text("m3"))
    assert (again.saved.created, again.saved.messages, again.saved.last_change) == ([], 1, 3)


# -- deleting


def test_deleting_a_session_deletes_all_that_hangs_on_it(store: ToyStore) -> None:
    """R-S29: foreign keys are on where rows are deleted."""
    long = "0123456789" * 10_000
    store.add("s.log", text("m", long, tokens=[1, 1]), call("c"), line(kind="note"), b"broken\n")
    with write_transaction(connection := connect(store.path)):
        connection.execute("DELETE FROM sessions")
        connection.execute("DELETE FROM messages")
        connection.execute("DELETE FROM sources")
    connection.close()
    for table in ("memberships", "parts", "blob_uses", "events", "usage", "archive", "generations", "diagnostics"):
        assert store.row(f"SELECT count(*) FROM {table}") == 0, table


# -- indexes


@pytest.mark.parametrize(
    ("question", "index"),
    [
        ("SELECT 1 FROM messages WHERE role = 'user' ORDER BY created_at", "messages_by_role"),
        ("SELECT 1 FROM messages WHERE has_tool_calls = 1 ORDER BY created_at", "messages_with_tools"),
        ("SELECT 1 FROM parts WHERE tool_name = 'Bash' AND tool_state = 'output-error'", "parts_by_tool"),
        ("SELECT 1 FROM parts WHERE type = 'file' AND type NOT IN ('text', 'tool-call')", "parts_by_type"),
        ("SELECT 1 FROM parts WHERE message_key = 1 ORDER BY sequence", "PRIMARY KEY"),
        ("SELECT 1 FROM memberships WHERE session_key = 1 ORDER BY position", "PRIMARY KEY"),
        ("SELECT 1 FROM memberships WHERE message_key = 1", "memberships_by_message"),
        ("SELECT 1 FROM messages WHERE agent = 'a' AND external_id IN ('b', 'c')", "sqlite_autoindex_messages"),
        ("SELECT 1 FROM events WHERE kind = 'orphan-result' AND session_key = 1", "events_by_kind"),
        ("SELECT 1 FROM links WHERE child_id = 'c'", "PRIMARY KEY"),
        ("SELECT 1 FROM links WHERE parent_id = 'p'", "links_by_parent"),
        ("SELECT DISTINCT root FROM sources WHERE agent = 'a'", "sources_by_root"),
        (
            "SELECT path, size, mtime_ns, device, inode FROM sources WHERE problem IS NULL AND vanished_at IS NULL",
            "COVERING INDEX sources_as_read",
        ),
        (
            "SELECT path FROM sources WHERE problem IS NOT NULL AND vanished_at IS NULL",
            "COVERING INDEX sources_as_read",
        ),
        ("SELECT 1 FROM diagnostics WHERE severity = 'error'", "diagnostics_by_severity"),
        (
            "SELECT count(*), max(updated_at) FROM sessions WHERE project_key = 1 AND relationship IS NOT 'subagent'",
            "COVERING INDEX sessions_of_projects",
        ),
        ("SELECT 1 FROM messages WHERE billed_key = 1", "messages_by_billed"),
        ("SELECT 1 FROM archived_texts WHERE source_key = 1", "archived_texts_by_source"),
        ("SELECT 1 FROM runs WHERE session_id = 's'", "runs_by_session"),
        ("SELECT 1 FROM runs ORDER BY created_at DESC", "runs_by_creation"),
    ],
)
def test_questions_walk_an_index(store: ToyStore, question: str, index: str) -> None:
    """R-S27: by session, run, role, tool, type; and what writing itself looks up."""
    plan = " | ".join(row[3] for row in store.rows(f"EXPLAIN QUERY PLAN {question}"))
    assert index in plan, plan
    assert "TEMP B-TREE" not in plan
