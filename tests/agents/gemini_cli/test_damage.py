"""A damaged log costs what is damaged, with its exact place, and nothing else (R-S34)."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from support.claude_files import gather
from support.gemini_files import (
    AGENT,
    SESSION,
    SESSION_ID,
    answer,
    call,
    checkpoint,
    fold,
    fold_json,
    header,
    lines,
    log_source,
    tokens,
    user,
)
from turnlog.agents import detect, fold_bytes
from turnlog.agents.base import SourceKind
from turnlog.model import TextPart, UnknownPart

GOOD = [header(), user("u", "hi"), answer("g", "yes", toolCalls=[call("c1")])]
DAMAGED = [
    b"{torn",
    b"\xff\xfe\x00\x01",
    b"[1, 2]",
    b"null",
    b'{"type": "user"',
    b'{"$set": 7}',
    b'{"$set": {"messages": 7}}',
    b'{"$set": {"messages": [7, {"type": "gemini"}, null]}}',
    b'{"type": "gemini", "id": "x", "toolCalls": [7, null, {"id": 3}], "tokens": {"input": -4, "output": "many"}}',
    b'{"type": "user", "id": "y", "content": {"parts": [1]}}',
    b'{"type": "user", "id": "z", "content": [1, null, {"text": 5}, {"inlineData": {"data": "%%"}}]}',
    b'{"$rewindTo": {}}',
]


@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_damaged_record_changes_nothing_else(damaged: bytes) -> None:
    whole = fold(*GOOD)
    found = fold(*GOOD, damaged)
    assert whole.messages.items() <= found.messages.items()
    told = len(found.diagnostics) + len(found.events) + len(found.messages)
    assert told > len(whole.diagnostics) + len(whole.events) + len(whole.messages)


def test_a_log_without_a_header_has_equal_positions_in_any_split() -> None:
    """R-C19: the header is damaged or late, and a `$set` stands before it."""
    before = lines({"$set": {"lastUpdated": "2026-11-21T10:00:00.000Z"}})
    whole = fold_bytes(AGENT, log_source(), before + lines(*GOOD))
    first = fold_bytes(AGENT, log_source(), before)
    (unnamed,) = first.sessions.values()
    assert unnamed.position > 0
    assert whole.sessions[unnamed.session_id].position == unnamed.position


def test_a_diagnostic_names_line_and_offset() -> None:
    data = lines(*GOOD, b"{torn", user("v", "more"))
    (found,) = fold_bytes(AGENT, log_source(), data).diagnostics
    assert (found.line, data[found.offset :][: found.length]) == (4, b"{torn")


def test_what_is_no_message_in_a_checkpoint_becomes_a_diagnostic() -> None:
    # A record that is no message, on purpose.
    gathered = fold(header(), checkpoint(user("u", "hi"), {"type": "oddity"}))
    (found,) = gathered.diagnostics
    assert found.json_path == "messages[1]"
    assert len(gathered.messages) == 1


def test_unknown_content_keeps_its_json() -> None:
    parts = fold(header(), user("u", [{"novelty": {"a": 1}}])).messages[f"{SESSION}:user:u"].parts
    assert isinstance(parts[0], UnknownPart)
    assert json.loads(bytes(parts[0].data)) == {"novelty": {"a": 1}}


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_truncated_json_file_gives_its_complete_messages(share: float) -> None:
    messages = [user(f"u{n}", f"text {n}") for n in range(10)]
    data = json.dumps(header(messages=messages), indent=2).encode()
    gathered = fold_json(data[: int(len(data) * share)])
    texts = [part.text for m in gathered.in_order(SESSION_ID) for part in m.parts if isinstance(part, TextPart)]
    assert texts == [f"text {n}" for n in range(len(texts))]
    assert len(texts) >= int(10 * share) - 2
    assert gathered.counts.unreadable == 1
    assert len(gathered.diagnostics) == 1


@pytest.mark.parametrize("data", [b"", b"   ", b"{", b"[]", b"nonsense", b'{"messages": [', b"\xff\xfe"])
def test_a_file_that_is_no_log_raises_nothing(data: bytes) -> None:
    gathered = fold_json(data)
    assert gathered.messages == {}
    assert gathered.counts.unreadable + gathered.counts.blank + gathered.counts.events == 1


def test_counts_of_a_file_of_json_hold_with_a_bad_message() -> None:
    gathered = fold_json(header(messages=[user("u", "hi"), 7, answer("g", "yes")]))
    assert (gathered.counts.messages, gathered.counts.events, gathered.counts.unreadable) == (2, 1, 1)


def test_broken_text_becomes_text_that_can_be_kept() -> None:
    gathered = fold(header(), b'{"id":"u","type":"user","content":[{"text":"a\\ud83c b\xff"}]}')
    (part,) = gathered.messages[f"{SESSION}:user:u"].parts
    assert isinstance(part, TextPart)
    assert part.text == "a\ufffd b\ufffd"


def test_two_records_on_one_line() -> None:
    glued = lines(user("u", "hi")).strip() + lines(answer("g", "yes")).strip()
    assert list(fold(header(), glued).messages) == [f"{SESSION}:user:u", f"{SESSION}:gemini:g"]


def test_a_damaged_log_of_prompts_becomes_diagnostics(tmp_path: Path) -> None:
    """Commands that no model saw are nowhere else."""
    path = tmp_path / "tmp/shop/logs.json"
    path.parent.mkdir(parents=True)
    typed = {
        "sessionId": SESSION,
        "messageId": 0,
        "type": "user",
        "message": "/quit",
        "timestamp": "2026-11-21T10:00:00Z",
    }
    path.write_text(json.dumps([typed, 7]))
    (source,) = AGENT.discover([tmp_path])
    gathered = gather(fold_bytes(AGENT, source, path.read_bytes()))
    assert [change.session_id for change in gathered.events.values()] == [SESSION_ID]
    assert (gathered.counts.events, gathered.counts.unreadable) == (1, 1)
    path.write_text("[")
    assert fold_bytes(AGENT, source, path.read_bytes()).counts.unreadable == 1


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("renamed.jsonl", lines(*GOOD), SourceKind.SESSION),
        ("renamed.json", json.dumps(header(messages=GOOD[1:]), indent=2).encode(), SourceKind.SESSION),
        ("x.jsonl", lines(header(kind="subagent"), *GOOD[1:]), SourceKind.SUBAGENT),
    ],
)
def test_a_log_is_known_under_another_name(tmp_path: Path, name: str, data: bytes, kind: SourceKind) -> None:
    """R-S21"""
    (tmp_path / name).write_bytes(data)
    found = detect(tmp_path / name)
    assert found.agent == "gemini-cli"
    assert found.source is not None
    assert found.source.kind is kind
    assert len(fold_bytes(AGENT, found.source, data).messages) == 2


def test_other_json_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "package.json"
    path.write_text('{"name": "shop", "version": "1.0.0"}')
    detection = AGENT.detect(path, path.read_bytes())
    assert detection.agent is None
    assert detection.reason


def test_impossible_token_counts_are_unknown_and_become_diagnostics() -> None:
    gathered = fold(header(), answer("g", "yes", tokens={**tokens(output=3), "input": -1}))
    usage = gathered.messages[f"{SESSION}:gemini:g"].usage
    assert usage is not None
    assert (usage.input, usage.output) == (None, 3)
    assert [found.json_path for found in gathered.diagnostics] == ["$.tokens.input"]


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"\0" * 64, b"\0\n\xef\xbb\xbf\n"])
def test_what_a_crash_or_an_editor_put_before_a_file_of_json_hides_nothing(before: bytes, tmp_path: Path) -> None:
    whole = json.dumps({**header(), "messages": [user("u", "hi"), answer("g", "yes")]}).encode()
    path = tmp_path / "copy.txt"
    path.write_bytes(before + whole)
    found = detect(path)
    assert (found.agent, found.version) == ("gemini-cli", "JSON")
    assert fold_json(before + whole).messages == fold_json(whole).messages


@pytest.mark.parametrize("is_json", [True, False])
def test_bytes_that_are_not_utf8_become_a_diagnostic_anywhere(is_json: bool) -> None:
    said = user("u", "caf#")
    data = json.dumps({**header(), "messages": [said]} if is_json else said).encode().replace(b"#", b"\xe9")
    found = fold_json(data) if is_json else fold(data)
    assert [(told.severity, "not UTF-8" in told.reason) for told in found.diagnostics] == [("note", True)]
    [message] = found.messages.values()
    assert [part.text for part in message.parts if isinstance(part, TextPart)] == ["caf\ufffd"]


@pytest.mark.parametrize(
    "damage", [b"\0" * 4096, b"\xff\xfe{[", b'{"id": "x", "toolCalls": [{"id": "c", "type": "user"}], "ty', b"}]}"]
)
def test_damage_in_the_middle_of_a_file_of_json_changes_nothing_else(damage: bytes) -> None:
    said = [json.dumps(record).encode() for record in (user("u", "hi"), answer("g", "yes"), user("v", "more"))]
    whole = json.dumps(header()).encode()[:-1] + b', "messages": [%s]}'
    sound = fold_json(whole % b",".join(said))
    found = fold_json(whole % b",".join((said[0], damage, *said[1:])))
    assert found.messages == sound.messages
    assert len(found.messages) == 3
    assert [(told.severity, told.line) for told in found.diagnostics] == [("error", 1)]


def test_a_file_of_json_that_is_hostile_is_not_looked_at_for_ever() -> None:
    data = json.dumps(header()).encode()[:-1] + b', "messages": [' + b'{"a":' * 200_000
    began = time.monotonic()
    assert fold_json(data).messages == {}
    assert time.monotonic() - began < 20
