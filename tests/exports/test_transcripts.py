"""A transcript database has what the store has, in the columns and messages that Inspect Scout reads."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from support.plain_agent import Log
from support.plain_history import answer, call, prompt
from support.plain_store import read_home
from turnlog.errors import ConflictError
from turnlog.exports.transcripts import write_transcripts
from turnlog.model import FilePart, ReasoningPart, TextPart, ToolCallPart, ToolResult, ToolState
from turnlog.server.sample import LOGS
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

# It has no types of its own.
pq: Any = import_module("pyarrow.parquet")

KEY = "sk-ant-api03-" + "Ab3dEf6hIj9kLm2nOp5q" * 4 + "xY-12345AA"

# The fields of inspect_ai's chat messages and contents, whose other fields a reader would drop without a word.
MESSAGE = {"id", "role", "content", "source", "metadata"}
FIELDS = {
    "system": MESSAGE,
    "user": MESSAGE,
    "assistant": MESSAGE | {"tool_calls", "model"},
    "tool": MESSAGE | {"tool_call_id", "function", "error"},
}
CALL = {"id", "function", "arguments", "type"}
CONTENT = {
    "text": {"type", "text"},
    "reasoning": {"type", "reasoning", "redacted"},
    "image": {"type", "image"},
    "document": {"type", "document", "filename", "mime_type"},
}


def transcripts(folder: Path) -> dict[str, dict[str, Any]]:
    rows = pq.read_table(folder / "transcripts.parquet").to_pylist()
    return {row["transcript_id"]: row | {"messages": json.loads(row["messages"])} for row in rows}


def calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    return message.get("tool_calls") or []


def test_every_message_call_and_result_of_the_sample_is_there(tmp_path: Path) -> None:
    sync(tmp_path / "turnlog.db", roots=[LOGS / name for name in ("claude-code", "codex", "opencode")])
    with open_store(tmp_path / "turnlog.db") as store:
        sessions = store.sessions(SessionFilter(subagents=True), limit=200).items
        write_transcripts(store, tmp_path / "made", [session.id for session in sessions])
        made = transcripts(tmp_path / "made")
        assert set(made) == {session.id for session in sessions}
        checked = 0
        for session in sessions:
            row = made[session.id]
            kept_messages = {message["id"]: message for message in row["messages"]}
            assert row["message_count"] == len(row["messages"]) == len(kept_messages)
            placed = [each for each in store.messages(session.id) if each.membership.fate in ("active", "compacted")]
            own = [message["id"] for message in row["messages"] if message["role"] != "tool"]
            assert own == [each.message.id for each in placed]
            for each in placed:
                parts = each.message.parts
                contents = kept_messages[each.message.id]["content"]
                listed = [{"type": "text", "text": contents}] if isinstance(contents, str) else contents
                texts = [part.text for part in parts if isinstance(part, TextPart)]
                assert [c["text"] for c in listed if c["type"] == "text" and c["text"]] == [
                    text for text in texts if text
                ]
                known = {part.tool_call_id: part for part in parts if isinstance(part, ToolCallPart)}
                assert [c["id"] for c in calls_of(kept_messages[each.message.id])] == list(known)
                for id, part in known.items():
                    result = kept_messages.get(f"{each.message.id}/{id}")
                    assert (result is None) == (not part.results and part.state is not ToolState.ABORTED)
                    checked += result is not None
        assert checked > 40
    for row in made.values():
        for message in row["messages"]:
            assert set(message) <= FIELDS[message["role"]]
            assert all(set(each) == CALL for each in calls_of(message))
            if not isinstance(message["content"], str):
                assert all(set(each) == CONTENT[each["type"]] for each in message["content"])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "plain").mkdir()
    log = Log(tmp_path / "plain", "s")
    log.message(prompt("u", f"walnut {KEY}", 1), turn=1)
    picture = FilePart(media_type="image/png", data=b"png", filename="a.png")
    log.message(
        answer(
            "a",
            2,
            ReasoningPart(text="hm"),
            call("ok", "Bash", {"command": "ls"}, ToolState.OUTPUT_AVAILABLE, _result("r1", "success", picture)),
            call("bad", "Bash", ["x"], ToolState.OUTPUT_ERROR, _result("r2", "error")),
            call("no", "Bash", {}, ToolState.OUTPUT_DENIED, _result("r3", "denied")),
            call("open", "Bash", {}, ToolState.INPUT_AVAILABLE),
            TextPart(text="then"),
        ),
        turn=1,
    )
    read_home(tmp_path / "turnlog.db", tmp_path / "plain")
    return tmp_path / "turnlog.db"


def _result(id: str, status: Any, *more: Any) -> ToolResult:
    return ToolResult(id=id, status=status, content=(TextPart(text=f"out of {id}"), *more))


def test_outcomes_are_distinguished_and_what_is_lost_is_counted(store: Path, tmp_path: Path) -> None:
    with open_store(store) as opened:
        written = write_transcripts(opened, tmp_path / "made", ["plain:s"])
    _, kept_messages, *tools = transcripts(tmp_path / "made")["plain:s"]["messages"]
    assert [part["type"] for part in kept_messages["content"]] == ["reasoning", "text"]
    assert [each["arguments"] for each in kept_messages["tool_calls"]] == [{"command": "ls"}, {"input": ["x"]}, {}, {}]
    assert kept_messages["metadata"]["input_tokens"] == 100
    assert [(tool["tool_call_id"], tool.get("error")) for tool in tools] == [
        ("ok", None),
        ("bad", {"type": "unknown", "message": "out of r2"}),
        ("no", {"type": "approval", "message": "out of r3"}),
    ]
    assert tools[0]["content"][1] == {"type": "image", "image": "data:image/png;base64,cG5n"}
    assert dict(written.losses) == {"order": 1}


def test_secrets_are_masked_and_a_folder_of_other_files_is_left_alone(store: Path, tmp_path: Path) -> None:
    with open_store(store) as opened:
        write_transcripts(opened, tmp_path / "made", ["plain:s"], redact=True)
        text = transcripts(tmp_path / "made")["plain:s"]["messages"][0]["content"]
        assert text.startswith("walnut [REDACTED:")
        (tmp_path / "made" / "mine.txt").write_text("x")
        with pytest.raises(ConflictError, match=r"mine\.txt"):
            write_transcripts(opened, tmp_path / "made", ["plain:s"])


def test_an_index_that_is_elsewhere_is_not_emptied(store: Path, tmp_path: Path) -> None:
    theirs, out = tmp_path / "theirs", tmp_path / "out"
    theirs.mkdir()
    (theirs / "a.idx").write_text("theirs")
    with open_store(store) as opened:
        write_transcripts(opened, out, [])
        (out / "_index").symlink_to(theirs)
        with pytest.raises(ConflictError, match="has _index, which no such export has written"):
            write_transcripts(opened, out, [])
    assert (theirs / "a.idx").read_text() == "theirs"


def test_only_what_scout_writes_goes_with_the_transcripts_before(store: Path, tmp_path: Path) -> None:
    index, elsewhere = tmp_path / "out" / "_index", tmp_path / "elsewhere.idx"
    elsewhere.write_text("theirs")
    with open_store(store) as opened:
        write_transcripts(opened, tmp_path / "out", [])
        index.mkdir()
        theirs = ("mine.idx", "index_mine.idx", "index_20261127T101112_a.txt", "notes.txt")
        scouts = ("index_20261127T101112_4f2Ka.idx", "_manifest_20261127T101112_9bc.enc.idx")
        for name in (*theirs, *scouts):
            (index / name).write_text("")
        (index / "index_20261127T101113_link.idx").symlink_to(elsewhere)
        write_transcripts(opened, tmp_path / "out", [])
    assert {each.name for each in index.iterdir()} == {*theirs, "index_20261127T101113_link.idx"}


def test_transcripts_of_others_that_come_while_ours_are_written_stay(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def come(done: int, total: int) -> None:
        (out / "transcripts.parquet").write_text("theirs")

    with open_store(store) as opened, pytest.raises(ConflictError, match=r"has transcripts\.parquet, which no such"):
        write_transcripts(opened, out, ["plain:s"], on_progress=come)
    assert [(each.name, each.read_text()) for each in out.iterdir()] == [("transcripts.parquet", "theirs")]


def test_transcripts_and_an_index_of_others_stay_as_they_are(store: Path, tmp_path: Path) -> None:
    others = tmp_path / "others"
    (others / "_index").mkdir(parents=True)
    (others / "_index" / "1.idx").write_text("theirs")
    with open_store(store) as opened:
        with pytest.raises(ConflictError, match="has _index, which no such export has written"):
            write_transcripts(opened, others, [])
        pq.write_table(import_module("pyarrow").table({"transcript_id": ["theirs"]}), others / "transcripts.parquet")
        before = (others / "transcripts.parquet").read_bytes()
        with pytest.raises(ConflictError, match=r"has transcripts\.parquet, which no such export has written"):
            write_transcripts(opened, others, [])
    assert (others / "transcripts.parquet").read_bytes() == before
    assert (others / "_index" / "1.idx").read_text() == "theirs"
