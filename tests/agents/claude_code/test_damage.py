"""A damaged log costs what is damaged, with its exact place, and nothing else (R-S34)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.claude_files import AGENT, SESSION, Log, call, fold, gather, lines, session_source, sources, text
from support.profiles import examples
from turnlog.agents import fold_bytes
from turnlog.agents.base import Source
from turnlog.agents.changes import Changes
from turnlog.model import TextPart, ToolCallPart


def count(changes: Changes) -> int:
    return sum(getattr(changes.counts, name) for name in changes.counts.__struct_fields__)


def test_diagnostics_name_line_and_offset_in_the_whole_file() -> None:
    """R-S34: also in a later feed, where offset and line go on from the first."""
    log = Log()
    first = lines(log.user("one"), b"{torn", log.assistant("msg_1", text("two")))
    second = lines(log.user("three"), b"\x00\x00", b"[]")
    opened = AGENT.fold(session_source())
    opened.feed(first, 0)
    changes = AGENT.fold(session_source(), opened.state()).feed(second, len(first))
    whole = fold_bytes(AGENT, session_source(), first + second)
    places = [(found.line, found.offset, found.length) for found in whole.diagnostics]
    start = len(first) + second.index(b"\n") + 1
    assert places[0] == (2, len(first.splitlines(keepends=True)[0]), 5)
    assert [line for line, *_ in places] == [2, 5, 6]
    assert [(found.line, found.offset, found.length) for found in changes.diagnostics] == places[1:]
    assert places[1] == (5, start, 2)
    assert (whole.counts.unreadable, whole.counts.blank) == (2, 1)


def test_wrong_shapes_cost_a_field_not_the_message() -> None:
    """R-S34: wrong shape."""
    log = Log()
    record = log.assistant("msg_1", text("kept"), usage={"input_tokens": "many", "output_tokens": 2})
    record["gitBranch"] = {"name": "main"}
    gathered = fold(record)
    message = gathered.messages["msg_1"]
    assert [part.text for part in message.parts if isinstance(part, TextPart)] == ["kept"]
    assert message.usage is not None
    assert (message.usage.input, message.usage.output) == (None, 2)
    assert [(found.json_path, found.severity) for found in gathered.diagnostics] == [
        ("$.gitBranch", "error"),
        ("$.message.usage.input_tokens", "error"),
    ]


@pytest.mark.parametrize("kind", ["user", "assistant", "attachment", "system", "progress"])
def test_a_record_of_a_known_type_without_its_content_is_an_event(kind: str) -> None:
    gathered = fold(Log().record(kind))
    assert len(gathered.events) == 1
    assert gathered.counts.events == 1
    assert not gathered.messages


@pytest.mark.parametrize("content", [None, "", [], [{}], ["just text"], [5, None], {"type": "text"}, 7])
@pytest.mark.parametrize("kind", ["user", "assistant"])
def test_any_content_is_read(kind: str, content: Any) -> None:
    record = Log().record(kind, message={"id": "m", "role": kind, "content": content})
    gathered = fold(record)
    assert sum(getattr(gathered.counts, name) for name in gathered.counts.__struct_fields__) == 1


def test_lone_surrogates_in_texts_and_inputs_are_replaced() -> None:
    log = Log()
    asked = (
        lines(log.assistant("msg_1", text("a"), call("t1", command="b")))
        .replace(b'"a"', rb'"a\ud800"')
        .replace(b'"b"', rb'"b\udfff"')
    )
    gathered = gather(fold_bytes(AGENT, session_source(), asked))
    said, called = gathered.messages["msg_1"].parts
    assert isinstance(said, TextPart)
    assert isinstance(called, ToolCallPart)
    assert (said.text, called.input_value()) == ("a\ufffd", {"command": "b\ufffd"})
    assert [found.severity for found in gathered.diagnostics] == ["note"]


def test_bytes_of_an_input_that_are_not_utf8_are_replaced() -> None:
    log = Log()
    asked = lines(log.assistant("msg_1", call("t1", command="b_"))).replace(b"b_", b"b\xff")
    gathered = gather(fold_bytes(AGENT, session_source(), asked))
    assert gathered.calls()[0].input_value() == {"command": "b\ufffd"}
    (found,) = gathered.diagnostics
    assert (found.severity, found.line) == ("note", 1)


def test_an_escaped_emoji_in_an_input_stays_as_it_was_written() -> None:
    log = Log()
    asked = lines(log.assistant("msg_1", call("t1", command="b_"))).replace(b"b_", rb"\ud83d\ude00")
    gathered = gather(fold_bytes(AGENT, session_source(), asked))
    assert gathered.calls()[0].input_value() == {"command": "😀"}
    assert not gathered.diagnostics


def test_a_last_line_is_one_line_also_without_its_newline() -> None:
    """The newline that comes later is passed over by whoever feeds."""
    log = Log()
    data = lines(log.user("one"), log.assistant("msg_1", text("two")), b"{torn")
    whole = gather(fold_bytes(AGENT, session_source(), data)).as_json()
    for cut in (data.index(b"\n"), len(data) - len(b"\n{torn\n")):
        opened = AGENT.fold(session_source())
        first = opened.feed(data[:cut], 0)
        resumed = AGENT.fold(session_source(), opened.state())
        assert gather(first, resumed.feed(data[cut + 1 :], cut + 1)).as_json() == whole


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n\r\n"])
def test_an_empty_log_is_nothing(data: bytes) -> None:
    """Claude Code 2.0.30 leaves one behind when a session cannot be resumed."""
    changes = fold_bytes(AGENT, session_source(), data)
    assert not changes.sessions
    assert not changes.diagnostics


def test_a_log_that_names_no_session_has_the_name_of_its_file() -> None:
    """A subagent's file of 2.0.x says only in its records whose it is; an id is never empty."""
    record = Log().user("hi", sessionId=None)
    changes = fold_bytes(
        AGENT, Source(agent="claude-code", path="/home/dev/agent-a1.jsonl", root="/home/dev"), lines(record)
    )
    assert list(changes.sessions) == ["claude-code:agent-a1"]


LOGS = [source for source in sources("scenarios", "basic") if SESSION in source.path] + [
    source for source in sources("versions", "1.0.128") if source.path.endswith("6fd.jsonl")
]


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(LOGS), st.integers(0, 2**32), st.integers(1, 12))
def test_random_damage_never_stops_a_reading(log: Any, seed: int, hits: int) -> None:
    """R-S34: any bytes overwritten, cut out or doubled."""
    chance = random.Random(seed)
    data = bytearray(Path(log.path).read_bytes())
    for _ in range(hits):
        at, length = chance.randrange(len(data)), chance.randrange(1, 60)
        data[at : at + length] = chance.choice([b"", b"\x00" * length, b"\xff\xfe", b'{"type":"user"}', b"\n", b"}}"])
    changes = fold_bytes(AGENT, log, bytes(data))
    assert count(changes) >= data.count(b"\n") - hits
    for found in changes.diagnostics:
        assert 0 <= found.offset <= found.offset + found.length <= len(data)
        assert found.line == data.count(b"\n", 0, found.offset) + 1


def test_a_line_of_a_hundred_megabytes_is_read() -> None:
    log = Log()
    big = lines(log.user("x" * 100_000_000))
    changes = fold_bytes(AGENT, session_source(), big + lines(log.assistant("msg_1", text("ok"))))
    assert len(changes.messages) == 2
    assert not changes.diagnostics
