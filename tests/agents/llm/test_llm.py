"""llm's conversations become what the script says that happened (R-C1)."""

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
from turnlog.agents.llm.database import KEYS
from turnlog.agents.llm.fold import usage_of
from turnlog.agents.row_files import line_of
from turnlog.model import FilePart, Origin, ReasoningPart
from turnlog.store.base import SessionFilter

AGENT = agent("llm")
RUNS = Recordings(AGENT, Path(__file__).parents[2] / "data" / "llm")
TOUR = "0.36/tour"
TOOLS = "llm:01m8btfmhjhq60bjwsbdresnw2"
OLDER = "01m8cxdktj8xfk7jg9srdbcvtg"


def of_session(session: str) -> Gathered:
    [source] = [one for one in RUNS.sources(TOUR) if one.session_id == session and one.kind is SourceKind.SESSION]
    return gather(AGENT.fold(source).feed(RUNS.log_of(source), 0))


def session_of(words: str) -> Gathered:
    """The conversation whose first prompt is this."""
    with sqlite3.connect(RUNS.folder / TOUR / "logs.db") as connection:
        [(identity,)] = connection.execute("SELECT id FROM threads WHERE name = ?", (words,))
    return of_session(f"llm:{identity}")


def fold(*rows: tuple[str, dict[str, Any], str | None]) -> Gathered:
    """What a conversation of these rows brings."""
    source = Source(agent="llm", path="/l/logs.db#c", root="/l", session_id="llm:c")
    return gather(AGENT.fold(source).feed(b"".join(line_of(*row) for row in rows), 0))


def test_a_run_has_the_parts_and_tokens_of_the_script_in_their_order() -> None:
    """R-C5, R-K1: input includes cached tokens, output thoughts. The text of thoughts is not kept."""
    found = answers(of_session(TOOLS))
    turns = [*RUNS.script("0.36/main"), *RUNS.script("0.36/resume")]
    told = [[block for block in blocks(message) if block[0] != "thinking"] for message in found]
    assert told == scripted(turns, without=frozenset({"thinking"}))
    assert used(found) == list(tokens(turns))
    [thought] = [part for message in found for part in message.parts if isinstance(part, ReasoningPart)]
    assert thought.redacted


def test_results_are_those_of_the_tools() -> None:
    """R-C8"""
    found = {name: call.results for name, call in calls(answers(of_session(TOOLS))).items()}
    assert {name: [(one.status, one.output_text, one.error_text) for one in each] for name, each in found.items()} == {
        "call_v1": [("success", "0.36", None)],
        "call_b1": [("error", "Error: no such thing", "ValueError: no such thing")],
    }


def test_a_system_prompt_is_the_programs_and_a_picture_a_file() -> None:
    first, *_ = in_order(of_session(TOOLS))
    assert (first.origin, blocks(first)) == (Origin.HARNESS, [("text", "Be short.")])
    prompt, _ = in_order(session_of("What is it?"))
    [picture] = [part for part in prompt.parts if isinstance(part, FilePart)]
    assert (picture.media_type, picture.filename) == ("image/png", "/home/dev/work/p.png")


def test_an_answer_that_was_not_streamed_has_its_tokens() -> None:
    found = session_of("Plain.")
    assert used(answers(found)) == list(tokens(RUNS.script("0.36/plain")))


def test_anthropic_counts_cached_tokens_beside_the_input() -> None:
    details = {"cache_read_input_tokens": 300, "cache_creation_input_tokens": 11}
    usage = usage_of({"input_tokens": 1200, "output_tokens": 45, "token_details": json.dumps(details)})
    assert usage is not None
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output) == (1200, 300, 11, 45)
    assert usage_of({"input_tokens": None, "output_tokens": None}) is None


def test_a_run_of_an_older_version_is_what_the_script_says() -> None:
    """R-C5, R-C8: 0.27.1 has the other tables alone. What the program put behind thoughts is not in them."""
    [source] = [
        one
        for one in RUNS.sources("0.27.1/tour")
        if one.session_id == f"llm:{OLDER}" and one.kind is SourceKind.SESSION
    ]
    found = in_order(gather(AGENT.fold(source).feed(RUNS.log_of(source), 0)))
    turns = [*RUNS.script("0.27.1/main"), *RUNS.script("0.27.1/resume")]
    told = [
        [block for block in blocks(message) if block[0] != "thinking"]
        for message in found
        if message.role == "assistant"
    ]
    assert told == scripted(turns, without=frozenset({"thinking"}))
    assert used(found) == list(tokens(turns))
    results = {name: call.results[0] for name, call in calls(found).items()}
    assert {name: (one.status, one.output_text) for name, one in results.items()} == {
        "call_v1": ("success", "0.27.1"),
        "call_b1": ("error", "Error: no such thing"),
    }


def test_responses_of_older_versions_are_read() -> None:
    """By hand, in the tables of 0.27: results and calls belong to the response that follows them."""
    at = "2025-08-12T10:00:00+00:00"
    first = {"id": "r1", "model": "m", "prompt": "Hi", "system": "Be short.", "response": "I look.", "datetime_utc": at}
    made = {"id": 1, "response_id": "r1", "name": "f", "arguments": '{"a": 1}', "tool_call_id": "c1"}
    got = {"id": 1, "response_id": "r2", "name": "f", "output": "one", "tool_call_id": "c1"}
    last = {"id": "r2", "model": "m", "prompt": "", "response": "Done.", "input_tokens": 9, "output_tokens": 4}
    picture = {"id": "a", "type": "image/png", "content": b"\x89PNG"}
    found = fold(
        ("attachments", picture, "prompt"),
        ("prompt_attachments", {"response_id": "r1", "attachment_id": "a", "order": 0}, None),
        ("tool_calls", made, None),
        ("responses", first, None),
        ("tool_results", got, None),
        ("responses", last, None),
    )
    told = in_order(found)
    assert [message.origin for message in told] == [Origin.HARNESS, Origin.PROMPT, None, None]
    assert [blocks(message) for message in told[2:]] == [
        [("text", "I look."), ("tool", ("f", "c1", {"a": 1}))],
        [("text", "Done.")],
    ]
    assert [result.output_text for result in calls(told)["c1"].results] == ["one"]
    [file] = [part for part in told[1].parts if isinstance(part, FilePart)]
    assert file.data == b"\x89PNG"
    assert found.diagnostics == []


@pytest.mark.parametrize("case", RUNS.cases)
def test_every_row_is_accounted_for_and_any_split_equals_the_whole(case: str) -> None:
    """R-S34"""
    for source in RUNS.sources(case):
        data = RUNS.log_of(source)
        whole = gather(AGENT.fold(source).feed(data, 0))
        assert whole.diagnostics == []
        if source.appendable:
            assert in_pieces(AGENT, source, data).as_json() == whole.as_json()
            # Messages and results of one call come out of its one row.
            assert data.count(b"\n") == whole.counts.events + whole.counts.messages


def rows_in(database: Path) -> dict[str, list[dict[str, Any]]]:
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        found = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return {
            table: [
                {name: row[name] for name in sorted(row.keys()) if row[name] is not None}
                for row in connection.execute(f'SELECT * FROM {table} ORDER BY "{keys[0]}"')
            ]
            for table, keys in KEYS.items()
            if table in found
        }


def test_restored_rows_are_those_of_the_database(tmp_path: Path) -> None:
    """R-S1"""
    RUNS.restored(TOUR, tmp_path)
    [restored] = (tmp_path / "restored").rglob("logs.db")
    wanted, found = rows_in(RUNS.folder / TOUR / "logs.db"), rows_in(restored)
    assert {table: rows for table, rows in found.items() if rows} == {
        table: rows for table, rows in wanted.items() if rows
    }


def test_a_conversation_grows(tmp_path: Path) -> None:
    """A name that the user changes is no new message."""
    with RUNS.stored(TOUR, tmp_path) as store:
        session = store.session(TOOLS)
        assert (session.title, session.models) == ("What version?", ("mock-model",))
        assert (session.usage.usage.input, session.usage.usage.cache_read, session.usage.calls) == (4200, 3000, 3)
        assert len(list(store.sessions(SessionFilter()).items)) == 3


def test_a_database_is_known_by_its_tables(tmp_path: Path) -> None:
    """R-S21"""
    found = detect(RUNS.folder / TOUR / "logs.db")
    assert (found.agent, found.version, len(found.sources)) == ("llm", "2", 3)
    other = tmp_path / "logs.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE conversations (id TEXT)")
        connection.execute("CREATE TABLE responses (id TEXT)")
    assert detect(other).agent is None


def test_a_variable_names_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RUNS.folder / TOUR, home / "moved")
    monkeypatch.setenv("LLM_USER_PATH", str(home / "moved"))
    assert list(AGENT.roots()) == [home / "moved"]


def test_a_conversation_is_resumed_by_its_id() -> None:
    assert AGENT.command is not None
    assert resume_command(AGENT.command, "01m8") == ["llm", "chat", "--cid", "01m8"]
    assert prompted_command(AGENT.command, "01m8") == ["llm", "--cid", "01m8"]


def test_every_table_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    tables = [name for cell, _ in FormatPage("llm").rows("## Tables") for name in named(cell)]
    assert sorted(tables) == sorted(KEYS)
