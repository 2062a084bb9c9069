"""Fields that only one agent tells, and that a coming version may bring, are kept as metadata (R-C11)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support import claude_files, codex_files, gemini_files, klaude_files, opencode_files
from turnlog.agents.changes import Changes
from turnlog.agents.claude_code import records as claude_records
from turnlog.agents.claude_code.records import CompleteRecord
from turnlog.agents.codex import records as codex_records
from turnlog.agents.decoding import names_of, other_fields
from turnlog.model import Message, ToolCallPart

NEWS: dict[str, Any] = {"colour": "red", "nested": {"deep": [1, None]}, "nothing": None, "large": "x" * 5000}
KEPT = {"colour": "red", "nested": {"deep": [1, None]}, "large": {"bytes": 5002}}


def test_what_is_known_is_left_out_and_of_what_is_large_the_size_is_kept() -> None:
    """R-C11"""
    assert other_fields({"id": "1", **NEWS}, frozenset({"id"})) == {"other_fields": KEPT}
    assert other_fields({"id": "1"}, frozenset({"id"})) == {}


def test_claude_code_keeps_them_on_messages() -> None:
    """R-C11"""
    log = claude_files.Log()
    records = [
        log.user("Hi", **NEWS),
        log.assistant("a", claude_files.text("Hm"), effort="high", **NEWS),
        log.assistant("a", claude_files.call("c"), **NEWS),
    ]
    assert [message.metadata for message in claude_files.fold(*records).messages.values()] == [
        {"claude-code": {"other_fields": KEPT}},
        {"claude-code": {"effort": "high", "other_fields": KEPT}},
    ]


def test_lines_of_one_answer_may_differ_in_them_and_be_read_apart() -> None:
    """R-C11: nothing is lost of what they agree on or only one has; of two values the same stays."""
    log = claude_files.Log()
    words = ("one", "two", "three")
    news: list[dict[str, Any]] = [
        {"shared": {"same": 1, word: True}, "number": number, word: number} for number, word in enumerate(words)
    ]
    records = [log.assistant("a", claude_files.text(word), **each) for word, each in zip(words, news, strict=True)]
    kept = {"number": 0, "shared": {"same": 1, "one": True, "two": True, "three": True}, "one": 0, "two": 1, "three": 2}
    at_once = claude_files.fold(*records)
    fold, offset, pieces = claude_files.AGENT.fold(claude_files.session_source(), None), 0, list[Changes]()
    for line in claude_files.lines(*records).splitlines(keepends=True):
        pieces.append(fold.feed(line, offset))
        offset += len(line)
    apart = claude_files.gather(*reversed(pieces))
    assert [message.metadata for message in at_once.messages.values()] == [{"claude-code": {"other_fields": kept}}]
    assert at_once.messages["a"].metadata == apart.messages["a"].metadata


def test_codex_keeps_them_on_messages() -> None:
    """R-C11"""
    found = codex_files.fold(
        codex_files.meta(),
        codex_files.prompt("Hi", **NEWS),
        codex_files.answer("Hm", **NEWS),
        codex_files.call("c", **NEWS),
    )
    assert [message.metadata for message in found.messages.values()] == [{"codex": {"other_fields": KEPT}}] * 2


@pytest.mark.parametrize(
    ("page", "read", "complete"),
    [
        ("claude-code", claude_records.ClaudeRecord, CompleteRecord),
        ("codex", codex_records.Item, codex_records.CompleteItem),
    ],
)
def test_fields_that_are_known_and_not_read_are_on_the_page(
    page: str, read: type[msgspec.Struct], complete: type[msgspec.Struct]
) -> None:
    """R-S23"""
    text = (Path(__file__).parents[2] / "docs/formats" / f"{page}.md").read_text()
    listed = re.findall(r"`(\w+)`", text.split("Known, and not read here:", 1)[1].split("\n\n", 1)[0])
    assert sorted(listed) == sorted(names_of(complete) - names_of(read))


def test_gemini_cli_keeps_them_on_messages_and_calls() -> None:
    """R-C11"""
    call: dict[str, Any] = {"id": "c", "name": "read_file", "args": {}, "status": "success", "result": [], **NEWS}
    user: dict[str, Any] = {"id": "u", "timestamp": "2026-11-21T10:00:00Z", "type": "user", "content": "Hi", **NEWS}
    answer = {**user, "id": "g", "type": "gemini", "toolCalls": [call]}
    found = gemini_files.fold(gemini_files.header(), user, answer)
    messages = list(found.messages.values())
    assert [message.metadata["gemini-cli"] for message in messages] == [{"other_fields": KEPT}] * 2
    assert found.calls()[0].metadata == {"gemini-cli": {"other_fields": KEPT}}


def test_klaude_keeps_them_on_messages_and_results() -> None:
    """R-C11"""
    found = klaude_files.fold(
        klaude_files.user("u", "Hi", **NEWS),
        klaude_files.answer("a", klaude_files.call("c"), phase="final", **NEWS),
        klaude_files.result("c", **NEWS),
    )
    prompt, answer = found.messages.values()
    assert prompt.metadata == {"klaude": {"other_fields": KEPT}}
    assert answer.metadata == {"klaude": {"phase": "final", "other_fields": KEPT}}
    assert calls_of(answer)[0].results[0].metadata == {"klaude": {"other_fields": KEPT}}


def test_opencode_keeps_them_on_messages_parts_and_results(tmp_path: Path) -> None:
    """R-C11"""
    created = 1_800_000_000_000
    ids = {"session_id": "ses_1", "time_created": created, "time_updated": created}
    info = {"role": "assistant", "time": {"created": created, "completed": created}, **NEWS}
    state = {"status": "completed", "input": {}, "output": "ok", "time": {"start": created, "end": created}, **NEWS}
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "Hi", **NEWS},
        {"type": "reasoning", "text": "Hm", **NEWS},
        {"type": "tool", "callID": "c", "tool": "bash", "state": state, **NEWS},
    ]
    rows: opencode_files.Rows = {
        "session": [{"id": "ses_1", "project_id": "p", "version": "1.18.33", **ids}],
        "message": [{"id": "msg_1", **ids, "data": json.dumps(info)}],
        "part": [
            {"id": f"prt_{number}", "message_id": "msg_1", **ids, "data": json.dumps(part)}
            for number, part in enumerate(parts)
        ],
    }
    (message,) = opencode_files.read_rows(rows, tmp_path).messages.values()
    assert {name: message.metadata["opencode"][name] for name in NEWS} == NEWS
    assert [part.metadata["opencode"] for part in message.parts] == [{"other_fields": KEPT}] * 3
    assert calls_of(message)[0].results[0].metadata == {"opencode": {"other_fields": KEPT}}


def calls_of(message: Message) -> list[ToolCallPart]:
    return [part for part in message.parts if isinstance(part, ToolCallPart)]
