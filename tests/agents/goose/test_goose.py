"""Goose's sessions become what the script says that happened (R-C1)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import Gathered, gather
from support.format_page import FormatPage, named
from support.scripted import Recordings, answers, blocks, calls, in_order, in_pieces, scripted, tokens, used
from turnlog.agents import agent, detect
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.commands import prompted_command, resume_command
from turnlog.agents.goose.contents import TOOL_KINDS
from turnlog.agents.goose.database import IN_MESSAGE, KEYS, LEDGER, new_facts
from turnlog.agents.row_files import line_of
from turnlog.model import CompactionEvent, Fate, FilePart, Message, Origin, ReasoningPart, TextPart
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

AGENT = agent("goose")
RUNS = Recordings(AGENT, Path(__file__).parents[2] / "data" / "goose")
TOUR, OLDER, ANTHROPIC, FILES = "1.52.0/tour", "1.37.0/tour", "1.52.0/anthropic", "handwritten/files"


def session_at(case: str, number: int, kind: SourceKind = SourceKind.SESSION) -> Gathered:
    """What the rows of the session with this number bring, or what is known about it."""
    own = f"goose:20261126_{number}-"
    [source] = [one for one in RUNS.sources(case) if (one.session_id or "").startswith(own) and one.kind is kind]
    return gather(AGENT.fold(source).feed(RUNS.log_of(source), 0))


def facts_at(case: str, number: int) -> Gathered:
    return session_at(case, number, SourceKind.SIDECAR)


def fold(*rows: tuple[str, dict[str, Any]]) -> Gathered:
    """What a session of these rows brings."""
    source = Source(agent="goose", path="/g/sessions.db#s", root="/g", session_id="goose:s")
    return gather(AGENT.fold(source).feed(b"".join(line_of(*row) for row in rows), 0))


def texts(messages: list[Message]) -> list[tuple[str, Origin | None]]:
    return [(part.text, message.origin) for message in messages for part in message.parts if isinstance(part, TextPart)]


# -- a tour


def test_a_run_has_the_parts_and_tokens_of_the_script_in_their_order() -> None:
    """R-C5, R-K1: each call of an answer has a row of its own, and is one part of the answer all the same."""
    found = answers(session_at(TOUR, 1))[:5]
    turns = [*RUNS.script("1.52.0/main"), *RUNS.script("1.52.0/resume")]
    assert [blocks(message) for message in found] == scripted(turns)
    # What was thought is inside the output: no row counts it apart.
    assert [(*each[:3], 0) for each in tokens(turns)] == used(found)
    assert {message.model for message in found} == {"mock-model"}


def test_anthropics_tokens_and_signatures_are_kept() -> None:
    found = answers(session_at(ANTHROPIC, 1))
    turns = RUNS.script("1.52.0/anthropic")
    assert [blocks(message) for message in found] == scripted(turns)
    assert [message.usage and message.usage.cache_write for message in found] == [11, 11, 11, 11]
    assert [(*each[:3], 0) for each in tokens(turns)] == used(found)
    assert all(message.cost is not None and message.cost.kind == "reported" for message in found)
    thoughts = [part for message in found for part in message.parts if isinstance(part, ReasoningPart)]
    assert all(part.provider is not None and part.provider.opaque["signature"] for part in thoughts)


def test_results_say_how_their_commands_ended() -> None:
    """R-C8"""
    with_codes = {name: call.results for name, call in calls(in_order(session_at(TOUR, 1))).items()}
    assert {name: [(one.status, one.exit_code) for one in each] for name, each in with_codes.items()} == {
        "call_read1": [("success", 0)],
        "call_fail1": [("error", 3)],
        "call_par1": [("success", 0)],
        "call_par2": [("success", 0)],
    }
    edits = {name: call.results[0].status for name, call in calls(in_order(session_at(TOUR, 2))).items()}
    assert edits == {"call_write1": "success", "call_edit1": "success", "call_edit2": "error"}
    [declined] = calls(in_order(session_at(TOUR, 10))).values()
    assert declined.results[0].status == "denied"


def test_a_picture_that_a_tool_read_is_a_file() -> None:
    [call] = calls(in_order(session_at(TOUR, 6))).values()
    [picture] = [part for part in call.results[0].content if isinstance(part, FilePart)]
    assert (picture.media_type, (picture.data or b"")[:4]) == ("image/png", b"\x89PNG")


def test_the_object_of_a_result_is_read_from_its_row() -> None:
    [source] = [one for one in RUNS.sources(ANTHROPIC) if one.kind is SourceKind.SESSION]
    [line] = [one for one in RUNS.log_of(source).splitlines() if b"exit_code" in one and b"a_call_fail1" in one]
    found = AGENT.structured_result(line, "a_call_fail1")
    assert found is not None
    assert json.loads(bytes(found))["exit_code"] == 3
    assert AGENT.structured_result(line, "another") is None


def test_a_stopped_run_and_a_failed_request_leave_the_prompt() -> None:
    for number in (5, 7):
        found = session_at(TOUR, number)
        assert [message.origin for message in in_order(found)] == [Origin.PROMPT, Origin.HARNESS]
        assert found.diagnostics == []


# -- how sessions come out of each other


def test_a_subagent_is_linked_to_its_call() -> None:
    [link] = facts_at(TOUR, 4).links.values()
    assert (link.kind, link.tool_call_id, link.inferred) == ("subagent", "call_sub1", False)
    task, *_ = in_order(session_at(TOUR, 4))
    assert task.origin is Origin.SUBAGENT_PROMPT
    assert session_at(TOUR, 4).sessions[link.child_session_id].titles == {
        "prompt": "Look at README.md and say its title."
    }
    turns = json.loads((RUNS.folder / "1.52.0/sub.script.json").read_text())
    assert [blocks(message) for message in answers(session_at(TOUR, 4))] == scripted(turns["sub"])
    assert used(answers(session_at(TOUR, 3))) == list(tokens(turns["main"]))


def test_a_fork_shares_the_messages_of_its_origin(tmp_path: Path) -> None:
    with RUNS.stored(OLDER, tmp_path) as store:
        [fork] = [one for one in store.sessions(SessionFilter()).items if one.id.startswith("goose:20261126_8-")]
        [origin] = [one for one in store.sessions(SessionFilter()).items if one.id.startswith("goose:20261126_2-")]
        copied, own = ([one.message.id for one in store.messages(each.id)] for each in (fork, origin))
        assert copied[: len(own)] == own
        [relation] = store.session(fork.id).relationships
        assert (relation.kind, relation.parent_session_id, relation.inferred) == ("fork", origin.id, True)


def test_a_compaction_replaces_what_was_said_before() -> None:
    found = session_at(TOUR, 1)
    [event] = [each.event for each in found.events.values() if isinstance(each.event, CompactionEvent)]
    summary = found.messages[event.summary_message_id or ""]
    assert (summary.origin, blocks(summary)) == (
        Origin.COMPACTION,
        [("text", "Summary: the user asked about notes.txt.")],
    )
    assert [origin for _, origin in texts(in_order(found))][-6:] == [
        Origin.HARNESS,
        Origin.COMMAND,
        Origin.COMMAND_OUTPUT,
        Origin.PROMPT,
        Origin.HARNESS,
        None,
    ]


def test_a_prompt_that_a_compaction_repeats_is_said_once(tmp_path: Path) -> None:
    """Before the model got it, the history was too long: Goose hides the prompt and repeats it behind the summary."""
    found = session_at(TOUR, 9)
    again = [origin for text, origin in texts(in_order(found)) if text == "And what was the second line?"]
    assert again == [Origin.PROMPT, Origin.HARNESS]
    with RUNS.stored(TOUR, tmp_path) as store:
        [session] = [one for one in store.sessions(SessionFilter()).items if one.id.startswith("goose:20261126_9-")]
        fates = [one.membership.fate for one in store.messages(session.id)]
        assert fates == [Fate.COMPACTED] * 5 + [Fate.ACTIVE] * 5


# -- tokens of a session


def test_what_a_summary_cost_is_in_the_total() -> None:
    [session] = facts_at(TOUR, 1).sessions.values()
    [total] = session.totals.values()
    assert (total.task, total.calls, total.usage.input, total.usage.output) == ("compaction", 1, 2000, 40)


def test_tokens_that_are_written_before_their_message_count_once(tmp_path: Path) -> None:
    """1.52.0 writes what a call used, and then its message: a sync may come between."""
    home = shutil.copytree(RUNS.folder / ANTHROPIC, tmp_path / "home")
    database = home / "sessions/sessions.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM messages WHERE id >= (SELECT min(id) FROM messages WHERE role = 'assistant')")
        connection.execute("DELETE FROM usage_ledger WHERE id > (SELECT min(id) FROM usage_ledger)")
        for used in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
            connection.execute(f"UPDATE sessions SET accumulated_{used} = (SELECT {used} FROM usage_ledger)")
    sync(tmp_path / "store.db", roots=[home], agents=[AGENT])
    shutil.copyfile(RUNS.folder / ANTHROPIC / "sessions/sessions.db", database)
    (tmp_path / "whole").mkdir()
    with RUNS.stored(str(home), tmp_path) as store, RUNS.stored(ANTHROPIC, tmp_path / "whole") as whole:
        [session], [expected] = store.sessions(SessionFilter()).items, whole.sessions(SessionFilter()).items
    assert expected.usage.calls
    assert session.usage == expected.usage


@pytest.mark.parametrize("imported", [False, True])
def test_what_was_used_before_the_ledger_counts_once(imported: bool, tmp_path: Path) -> None:
    """1.52.0 goes on with a session of 1.37.0, or with an imported one, whose messages have their own tokens."""
    home = shutil.copytree(RUNS.folder / ANTHROPIC, tmp_path / "home")
    with closing(sqlite3.connect(home / "sessions/sessions.db")) as connection, connection:
        carried = "UPDATE usage_ledger SET model = NULL, cost_source = 'carried_forward' WHERE id = 1"
        connection.execute(carried)
        if not imported:
            connection.execute(
                "UPDATE messages SET metadata_json = json_remove(metadata_json, '$.usage')"
                " WHERE id = (SELECT min(id) FROM messages WHERE role = 'assistant')"
            )
    (tmp_path / "whole").mkdir()
    with RUNS.stored(str(home), tmp_path) as store, RUNS.stored(ANTHROPIC, tmp_path / "whole") as whole:
        [session], [expected] = store.sessions(SessionFilter()).items, whole.sessions(SessionFilter()).items
    assert session.usage.usage.total == expected.usage.usage.total
    assert [total.usage.exactness for total in session.totals] == ([] if imported else ["exact"])


def test_what_an_earlier_turnlog_left_out_as_carried_over_is_counted() -> None:
    """It noted of whatever was carried over that a message says it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        with closing(sqlite3.connect(RUNS.folder / ANTHROPIC / "sessions/sessions.db")) as recorded:
            recorded.backup(connection)
        connection.execute("UPDATE usage_ledger SET cost_source = 'carried_forward' WHERE id = 1")
        connection.execute("UPDATE messages SET metadata_json = json_remove(metadata_json, '$.usage')")
        [carried, *_] = connection.execute("SELECT * FROM usage_ledger ORDER BY id").fetchall()
        known = line_of(LEDGER, dict(carried), IN_MESSAGE)
        update = new_facts(connection, carried["session_id"], [known])
    [line, *_] = [line for line in update.lines if b"carried_forward" in line]
    assert line == line_of(LEDGER, dict(carried))


def test_a_version_that_counts_no_single_calls_has_a_total() -> None:
    [session] = facts_at(OLDER, 2).sessions.values()
    [total] = session.totals.values()
    assert (total.usage.input, total.usage.output, total.usage.exactness) == (4200, 102, "estimated")
    assert used(answers(session_at(OLDER, 2))) == []


def test_an_answer_whose_text_and_call_are_two_rows_is_one_message() -> None:
    """Which of the older rows with nothing but a call belong to one answer is unknown."""
    first, second, third, *_ = answers(session_at(OLDER, 2))
    assert blocks(first) == scripted(RUNS.script("1.52.0/edit"))[0][:2]
    assert [name for message in (second, third) for name, _ in blocks(message)] == ["tool", "tool"]


# -- files of older versions


def test_a_file_of_an_older_version_is_read() -> None:
    """By hand, after the source of 1.9."""
    found = RUNS.read(FILES)
    [session] = found.sessions.values()
    assert (session.session_id, session.cwd) == ("goose:20250325_200615", "/home/dev/work")
    assert session.titles == {"generated": "Look at the notes", "prompt": "What is in notes.txt?"}
    assert [message.origin for message in in_order(found)] == [Origin.PROMPT, None, None]
    results = {name: call.results[0] for name, call in calls(in_order(found)).items()}
    assert (results["call_a"].status, results["call_a"].output_text) == ("success", "alpha")
    assert (results["call_b"].status, results["call_b"].error_text) == ("error", "Execution failed: no such tool")
    [total] = session.totals.values()
    assert (total.usage.input, total.usage.output) == (1280, 40)
    assert found.counts.total == 5


# -- the database


@pytest.mark.parametrize("case", RUNS.cases)
def test_every_row_is_accounted_for_and_any_split_equals_the_whole(case: str) -> None:
    """R-S34"""
    for source in RUNS.sources(case):
        data = RUNS.log_of(source)
        whole = gather(AGENT.fold(source).feed(data, 0))
        assert whole.diagnostics == []
        assert whole.counts.total == data.count(b"\n")
        if source.appendable:
            assert in_pieces(AGENT, source, data).as_json() == whole.as_json()


def rows_in(database: Path) -> dict[str, list[dict[str, Any]]]:
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        return {
            table: [
                {name: row[name] for name in sorted(row.keys()) if row[name] is not None}
                for row in connection.execute(f"SELECT * FROM {table} ORDER BY id")
            ]
            for table in KEYS
        }


def test_restored_rows_are_those_of_the_database(tmp_path: Path) -> None:
    """R-S1"""
    RUNS.restored(TOUR, tmp_path)
    [restored] = (tmp_path / "restored").rglob("sessions.db")
    assert rows_in(restored) == rows_in(RUNS.folder / TOUR / "sessions/sessions.db")


def test_a_history_that_was_edited_keeps_what_was_said_before(tmp_path: Path) -> None:
    home = shutil.copytree(RUNS.folder / ANTHROPIC, tmp_path / "home")
    sync(tmp_path / "store.db", roots=[home], agents=[AGENT])
    with closing(sqlite3.connect(home / "sessions/sessions.db")) as connection, connection:
        connection.execute("DELETE FROM messages WHERE id > 6")
        connection.execute("UPDATE messages SET id = id + 20")
    with RUNS.stored(str(home), tmp_path) as store:
        [session] = store.sessions(SessionFilter()).items
        fates = [one.membership.fate for one in store.messages(session.id)]
    assert sorted(fates) == [Fate.ACTIVE] * 4 + [Fate.SUPERSEDED] * 2


def test_rows_of_an_answer_whose_first_row_was_deleted_stay_one_call(tmp_path: Path) -> None:
    """Goose itself deletes the last rows or all: a gap is somebody else's."""
    home = shutil.copytree(RUNS.folder / TOUR, tmp_path / "home")
    sync(tmp_path / "store.db", roots=[home], agents=[AGENT])
    with RUNS.stored(str(home), tmp_path) as store:
        before = {one.id: one.usage for one in store.sessions(SessionFilter(subagents=True)).items}
    with closing(sqlite3.connect(home / "sessions/sessions.db")) as connection, connection:
        (row,) = connection.execute("SELECT id FROM messages WHERE content_json LIKE '%call_write1%'").fetchone()
        connection.execute("DELETE FROM messages WHERE id = ?", (row,))
    with RUNS.stored(str(home), tmp_path) as store:
        assert {one.id: one.usage for one in store.sessions(SessionFilter(subagents=True)).items} == before


def test_files_and_databases_are_known_by_their_content(tmp_path: Path) -> None:
    """R-S21"""
    found = detect(RUNS.folder / TOUR / "sessions/sessions.db")
    assert (found.agent, found.version, len(found.sources)) == ("goose", "2", 10)
    assert detect(RUNS.folder / FILES / "sessions/20250325_200615.jsonl").agent == "goose"
    other = tmp_path / "sessions.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE sessions (id TEXT, working_dir TEXT)")
        connection.execute("CREATE TABLE messages (id TEXT)")
    assert detect(other).agent is None


@pytest.mark.parametrize("folder", ["sessions", "data/sessions"])
def test_a_variable_names_the_folder_above(folder: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RUNS.folder / ANTHROPIC / "sessions", home / "moved" / folder)
    monkeypatch.setenv("GOOSE_PATH_ROOT", str(home / "moved"))
    assert [source.kind for source in AGENT.discover()] == [
        SourceKind.SESSION,
        SourceKind.SIDECAR,
        SourceKind.SIDECAR,
    ]


def test_a_session_is_resumed_by_its_own_id() -> None:
    """The time behind it is turnlog's: the number of a day is the same on every machine."""
    assert AGENT.command is not None
    wanted = ["goose", "session", "--resume", "--session-id", "20261126_1"]
    assert resume_command(AGENT.command, "20261126_1-141643") == wanted
    assert prompted_command(AGENT.command, "20250325_200615") == [
        *("goose", "run", "--resume", "--session-id", "20250325_200615", "-i", "-")
    ]


def test_thoughts_that_the_row_of_each_call_repeats_are_shown_once() -> None:
    """As 1.52.0 logs an answer with thoughts and two calls; the third row is of another answer."""
    thought = {"type": "thinking", "thinking": "I try both.", "signature": ""}

    def row(number: int, index: int, *before: dict[str, Any], **metadata: Any) -> tuple[str, dict[str, Any]]:
        called = {"status": "success", "value": {"name": "shell", "arguments": {"command": f"echo {number}"}}}
        call = {"type": "toolRequest", "id": f"call_{number}", "toolCall": called}
        content = [*before, call | {"_meta": {"goose.toolCall.providerIndex": index}}]
        facts = {"message_id": f"m{number}", "role": "assistant", "created_timestamp": number}
        return "messages", facts | {"content_json": json.dumps(content), "metadata_json": json.dumps(metadata)}

    text = {"type": "text", "text": "Two at once."}
    used = {"inputTokens": 9, "outputTokens": 2}
    found = fold(row(1, 0, thought, text, usage=used), row(2, 1, thought), row(3, 0, thought, usage=used))
    first, second = in_order(found)
    assert [part.type for part in first.parts] == ["reasoning", "text", "tool-call", "tool-call"]
    assert [part.type for part in second.parts] == ["reasoning", "tool-call"]


def test_an_error_in_a_message_is_one_of_its_answer() -> None:
    """After the source: no recorded run has one."""
    content = [{"type": "error", "kind": "contextLengthExceeded", "message": "too long"}]
    row = {"message_id": "m", "role": "assistant", "content_json": json.dumps(content), "created_timestamp": 5}
    notice = [{"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Compacting"}]
    shown = row | {"message_id": "n", "content_json": json.dumps(notice)}
    found = fold(("messages", row), ("messages", shown))
    [message] = in_order(found)
    assert message.error is not None
    assert (message.error.text, message.error.kind) == ("too long", "contextLengthExceeded")
    assert [getattr(change.event, "kind", None) for change in found.events.values()] == ["systemNotification"]


# -- the page


def test_every_table_and_tool_is_on_the_page() -> None:
    """R-S23"""
    page = FormatPage("goose")
    assert sorted(name for cell, _ in page.rows("## Tables") for name in named(cell)) == sorted(KEYS)
    tools = {tool: kind for cell, kind in page.rows("### Tools") for tool in named(cell)}
    assert {tool: named(kind)[0] for tool, kind in tools.items()} == {
        name: kind.value for name, kind in TOOL_KINDS.items()
    }
