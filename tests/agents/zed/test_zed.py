"""Zed's threads become messages, as its own program reads them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import Gathered, gather
from support.format_page import FormatPage, named
from support.scripted import answers, blocks, calls, in_order, in_pieces
from support.zed_files import text_of, write_home, write_rows
from turnlog.agents import agent, detect
from turnlog.agents.base import Source, SourceKind, reads_rows
from turnlog.agents.zed.contents import TOOL_KINDS, user_parts
from turnlog.model import Fate, FilePart, Origin, ReasoningPart, TextPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

AGENT = agent("zed")
TOUR = Path(__file__).parents[2] / "data/zed/handwritten/tour"
MAIN, CHILD, OLD = (f"9a1c7e52-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
ROWS: list[dict[str, Any]] = json.loads((TOUR / "threads.json").read_text())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The folder of Zed's data."""
    write_home(TOUR, tmp_path / "zed")
    return tmp_path / "zed"


def log_of(source: Source) -> bytes:
    assert reads_rows(AGENT, source)
    return b"".join(AGENT.read_rows(source, ()).lines)


def threads(data: Path) -> dict[str, Source]:
    found = [source for source in AGENT.discover([data]) if source.kind is SourceKind.SESSION]
    return {(source.session_id or "").removeprefix("zed:"): source for source in found}


def read(data: Path, thread: str) -> Gathered:
    source = threads(data)[thread]
    return gather(AGENT.fold(source).feed(log_of(source), 0))


def test_a_prompt_has_what_was_typed_and_what_it_mentions(data: Path) -> None:
    found = read(data, MAIN)
    prompt, *_ = in_order(found)
    assert [text for _, text in blocks(prompt)] == [
        "Please read ",
        "@notes.txt",
        "alpha\nbeta\n",
        " and tell me what is in it.",
    ]
    texts = [part for part in prompt.parts if isinstance(part, TextPart)]
    assert [(part.is_synthetic, part.is_attached) for part in texts] == [
        *[(False, False)] * 2,
        (True, True),
        (False, False),
    ]
    assert texts[2].metadata["zed"]["attached"] == {"File": {"abs_path": "/home/dev/work/notes.txt"}}
    [picture] = [part for part in prompt.parts if isinstance(part, FilePart)]
    assert (picture.media_type, (picture.data or b"")[:4]) == ("image/png", b"\x89PNG")
    [session] = found.sessions.values()
    assert session.titles["prompt"] == "Please read @notes.txt and tell me what is in it."


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ({"Directory": {"abs_path": "C:\\\\work\\\\docs\\\\"}}, "@docs"),
        ({"Symbol": {"abs_path": "/w/a.py", "name": "main"}}, "@main"),
        ({"Fetch": {"url": "https://example.com/a"}}, "@https://example.com/a"),
        ("PastedImage", "@pastedimage"),
        ({"Selection": {"abs_path": None}}, "@selection"),
        (None, "@unknown"),
    ],
)
def test_a_mention_has_a_name(uri: object, name: str) -> None:
    named, _ = user_parts([{"Mention": {"uri": uri, "content": "x"}}], "m")
    assert isinstance(named, TextPart)
    assert named.text == name


def test_answers_have_their_parts_in_order(data: Path) -> None:
    found = answers(read(data, MAIN))
    assert blocks(found[0]) == [
        ("thinking", "I should look at the notes file first."),
        ("text", "I will read the notes."),
        ("tool", ("read_file", "toolu_read1", {"path": "work/notes.txt"})),
    ]
    assert [name for name, _ in blocks(found[1])] == ["text", "tool", "tool"]
    assert {message.model for message in found} == {"claude-sonnet-4-5"}
    thoughts = [part for message in found for part in message.parts if isinstance(part, ReasoningPart)]
    assert [(part.redacted, part.provider and part.provider.opaque) for part in thoughts] == [
        (False, {"signature": "c2ln"}),
        (True, {"data": "ZW5j"}),
    ]


def test_results_say_how_their_calls_ended(data: Path) -> None:
    """R-C8"""
    found = {name: call.results for name, call in calls(in_order(read(data, MAIN))).items()}
    assert {name: [(one.status, one.exit_code) for one in each] for name, each in found.items()} == {
        "toolu_read1": [("success", None)],
        "toolu_par1": [("success", None)],
        "toolu_fail1": [("error", 3)],
        "toolu_edit1": [("success", None)],
        "toolu_rm1": [("denied", None)],
        "toolu_sub1": [("success", None)],
        "toolu_stop1": [("aborted", None)],
        "toolu_odd1": [],
    }
    assert calls(in_order(read(data, MAIN)))["toolu_odd1"].input_value() == "{not json"


def test_what_a_tool_returned_beside_its_text_is_its_object(data: Path) -> None:
    [line] = [one for one in log_of(threads(data)[MAIN]).splitlines() if b"toolu_edit1" in one]
    found = AGENT.structured_result(line, "toolu_edit1")
    assert found is not None
    assert json.loads(bytes(found))["diff"] == "-beta\n+BETA"
    assert AGENT.structured_result(line, "toolu_rm1") is None


def test_a_subagent_is_linked_to_its_call(data: Path) -> None:
    [link] = read(data, MAIN).links.values()
    assert (link.kind, link.child_session_id, link.tool_call_id) == ("subagent", f"zed:{CHILD}", "toolu_sub1")
    [other] = read(data, CHILD).links.values()
    assert (other.parent_session_id, other.child_session_id) == (f"zed:{MAIN}", f"zed:{CHILD}")
    assert in_order(read(data, CHILD))[0].origin is Origin.SUBAGENT_PROMPT


def test_tokens_are_those_of_the_thread(data: Path) -> None:
    """Only counts of Anthropic tell what a cache held."""
    [main], [child] = (next(iter(read(data, one).sessions.values())).totals.values() for one in (MAIN, CHILD))
    usage = main.usage
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output) == (1200, 4100, 300, 180)
    assert (main.model, usage.exactness) == ("claude-sonnet-4-5", "exact")
    assert (child.usage.input, child.usage.cache_read, child.usage.exactness) == (300, None, "estimated")
    assert next(iter(read(data, OLD).sessions.values())).totals == {}


def test_a_thread_of_an_older_version_is_read(data: Path) -> None:
    prompt, answer = in_order(read(data, OLD))
    assert blocks(prompt) == [("text", "What is in main.rs?")]
    assert blocks(answer) == [
        ("thinking", "I look."),
        ("text", "I read it."),
        ("tool", ("read_file", "tu1", {"path": "main.rs"})),
    ]
    assert calls([answer])["tu1"].results[0].output_text == "fn main() {}"


def test_every_line_is_accounted_for_and_any_split_equals_the_whole(data: Path) -> None:
    """R-S34"""
    for source in threads(data).values():
        lines = log_of(source)
        whole = gather(AGENT.fold(source).feed(lines, 0))
        assert whole.diagnostics == []
        assert whole.counts.total == lines.count(b"\n")
        assert in_pieces(AGENT, source, lines).as_json() == whole.as_json()


def test_a_thread_that_cannot_be_decompressed_is_reported(data: Path) -> None:
    with closing(sqlite3.connect(data / "threads/threads.db")) as connection, connection:
        connection.execute("UPDATE threads SET data = x'28b52ffd00' WHERE id = ?", (MAIN,))
    found = read(data, MAIN)
    assert [one.reason for one in found.diagnostics] == ["the thread cannot be decompressed or is no JSON"]


def test_a_thread_that_grows_and_is_cut_keeps_what_was_said(data: Path, tmp_path: Path) -> None:
    """A prompt that is edited takes what follows it out of the thread."""
    sync(tmp_path / "store.db", roots=[data], agents=[AGENT])
    thread = ROWS[0]["data"] | {"messages": ROWS[0]["data"]["messages"][:3]}
    write_rows(data, [ROWS[0] | {"data": thread, "updated_at": "2026-05-04T10:00:00Z"}])
    sync(tmp_path / "store.db", roots=[data], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        fates = [one.membership.fate for one in store.messages(f"zed:{MAIN}")]
    assert sorted(fates) == [Fate.ACTIVE] * 3 + [Fate.SUPERSEDED] * 4


def test_restored_rows_hold_the_same_threads(data: Path, tmp_path: Path) -> None:
    """R-S1: the JSON is the same to the byte. It is not compressed again, which Zed reads too."""
    sync(tmp_path / "store.db", roots=[data], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        for session in store.sessions(SessionFilter(subagents=True)).items:
            store.restore(session.id, tmp_path / "restored")
    with closing(sqlite3.connect(tmp_path / "restored/threads/threads.db")) as connection:
        connection.row_factory = sqlite3.Row
        found = [dict(row) for row in connection.execute("SELECT * FROM threads ORDER BY id")]
    for row, wanted in zip(found, ROWS, strict=True):
        assert row["data"] == text_of(wanted)
        assert row["data_type"] == "json"
        for name in wanted.keys() - {"data", "data_type"}:
            assert row[name] == wanted[name]


def test_a_database_is_known_by_its_table(data: Path, tmp_path: Path) -> None:
    """R-S21"""
    found = detect(data / "threads/threads.db")
    assert (found.agent, len(found.sources)) == ("zed", 3)
    other = tmp_path / "threads.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE threads (id TEXT, data BLOB)")
    assert detect(other).agent is None


def test_every_tool_is_on_the_page() -> None:
    """R-S23"""
    rows = FormatPage("zed").rows("### Tools")
    tools = {tool: named(kind)[0] for cell, kind in rows for tool in named(cell)}
    assert tools == {name: kind.value for name, kind in TOOL_KINDS.items()}
