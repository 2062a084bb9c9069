"""Messages out of a log while it is being written (R-S32)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.errors import FormatError, TurnlogError
from turnlog.logs import extract_tool_calls, parse_log_file, parse_log_stream, read_session
from turnlog.model import Message, TextPart, ToolCallPart, ToolState

DATA = Path(__file__).parent.parent / "data" / "claude_code" / "scenarios"
LOGS = sorted(
    path
    for name in ("basic", "tools", "interrupt", "compact", "images", "subagent-sync")
    for path in (DATA / name / "projects").glob("*/*.jsonl")
)

PROMPT = (
    b'{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-11-20T10:00:00Z",'
    b'"message":{"role":"user","content":"h\xc3\xa9llo"}}'
)
CALL = (
    b'{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","timestamp":"2026-11-20T10:00:01Z",'
    b'"message":{"id":"m1","role":"assistant","model":"claude-opus-5-5","content":'
    b'[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"stop_reason":"tool_use"}}'
)
RESULT = (
    b'{"type":"user","uuid":"u3","parentUuid":"u2","sessionId":"s","timestamp":"2026-11-20T10:00:02Z",'
    b'"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a.txt"}]}}'
)


SIDECHAIN = b'"isSidechain": true'


async def pieces_of(pieces: Iterable[bytes | str]) -> AsyncIterator[bytes | str]:
    for piece in pieces:
        yield piece


def parse(pieces: Iterable[bytes | str], agent: str | None = None) -> list[Message]:
    async def collect() -> list[Message]:
        return [message async for message in parse_log_stream(pieces_of(pieces), agent)]

    return asyncio.run(collect())


def latest(messages: Iterable[Message]) -> dict[str, Message]:
    return {message.id: message for message in messages}


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def without_children(message: Message) -> Message:
    """A stream has no files beside it that would name the subagents."""
    parts = tuple(
        msgspec.structs.replace(part, child_session_id=None) if isinstance(part, ToolCallPart) else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


@pytest.mark.parametrize("log", LOGS, ids=lambda path: f"{path.parts[-4]}/{path.stem[:8]}")
@pytest.mark.parametrize("size", [61, 4096, 1 << 30])
def test_pieces_of_any_size_give_the_messages_of_the_file(log: Path, size: int) -> None:
    """R-S32: a line may be split over reads."""
    found = latest(parse(cut(log.read_bytes(), size)))
    for message in parse_log_file(log):
        assert without_children(found[message.id]) == without_children(message)


@given(st.lists(st.integers(0, len(PROMPT + CALL + RESULT) + 2), max_size=6))
def test_any_cut_gives_the_same(cuts: list[int]) -> None:
    """Also inside a character, and right before a newline."""
    data = b"\n".join((PROMPT, CALL, RESULT))
    edges = [0, *sorted(cuts), len(data)]
    found = latest(parse([data[start:end] for start, end in pairwise(edges)]))
    assert found == latest(parse([data]))
    assert [message.parts[0].type for message in found.values()] == ["text", "tool-call"]


def test_a_message_comes_as_soon_as_its_line_is_there() -> None:
    seen: list[tuple[int, list[str]]] = []

    async def read() -> None:
        sent = 0

        async def stream() -> AsyncIterator[bytes]:
            nonlocal sent
            for piece in (PROMPT[:50], PROMPT[50:], b"\n" + CALL, b"\n", RESULT + b"\n"):
                sent += 1
                yield piece

        async for message in parse_log_stream(stream()):
            calls = extract_tool_calls([message])
            seen.append((sent, [message.role, *(call.state for call in calls)]))

    asyncio.run(read())
    assert seen == [
        (3, ["user"]),
        (4, ["assistant", ToolState.INPUT_AVAILABLE]),
        (5, ["assistant", ToolState.OUTPUT_AVAILABLE]),
    ]


@pytest.mark.parametrize("tail", [b"", b"\n", b"\r\n", b"\n\n"])
def test_the_last_line_is_read_without_a_newline(tail: bytes) -> None:
    """R-S32: once, and only once it is complete."""
    messages = parse([PROMPT + b"\n" + CALL + tail])
    assert [message.role for message in messages] == ["user", "assistant"]


def test_a_line_that_ends_in_the_middle_is_no_message() -> None:
    messages = parse([PROMPT + b"\n" + CALL[:-20]])
    assert [message.role for message in messages] == ["user"]


def test_text_is_as_good_as_bytes() -> None:
    lines = [line.decode() + "\n" for line in (PROMPT, CALL, RESULT)]
    messages = latest(parse(lines))
    assert messages == latest(parse([PROMPT + b"\n" + CALL + b"\n" + RESULT]))
    text = next(iter(messages.values())).parts[0]
    assert isinstance(text, TextPart)
    assert text.text == "héllo"


def test_a_broken_line_stops_nothing() -> None:
    """R-S34."""
    messages = parse([PROMPT + b"\n{broken\n\xff\xfe\n" + CALL + b"\n"])
    assert [message.role for message in messages] == ["user", "assistant"]


def test_an_empty_stream_has_no_messages() -> None:
    assert parse([]) == parse([b"", b""]) == []


def test_what_no_agent_writes_is_an_error() -> None:
    with pytest.raises(FormatError, match="no agent"):
        parse([b"just text\n", b"and more"])
    with pytest.raises(FormatError, match="no agent"):
        parse([(b"x" * 99 + b"\n") * 2_000 for _ in range(20)])


def test_the_agent_can_be_named() -> None:
    nameless = PROMPT.replace(b'"sessionId":"s",', b"")
    with pytest.raises(FormatError):
        parse([nameless])
    assert [message.role for message in parse([nameless], "claude-code")] == ["user"]
    with pytest.raises(TurnlogError, match="no agent is named"):
        parse([PROMPT], "nobody")


def test_calls_are_in_the_order_of_their_messages() -> None:
    """R-S33."""
    messages = latest(parse([b"\n".join((PROMPT, CALL, RESULT, CALL.replace(b"m1", b"m2").replace(b"t1", b"t2")))]))
    calls = extract_tool_calls(messages.values())
    assert [(call.tool_call_id, call.tool_name, call.state) for call in calls] == [
        ("t1", "Bash", ToolState.OUTPUT_AVAILABLE),
        ("t2", "Bash", ToolState.INPUT_AVAILABLE),
    ]
    assert calls[0].input_value() == {"command": "ls"}
    assert calls[0].output_text == "a.txt"


@pytest.mark.parametrize("size", [61, 4096, 1 << 30])
def test_the_first_line_may_be_longer_than_what_is_looked_at_first(size: int) -> None:
    """R-S32: an image or a long prompt may begin a log."""
    long = PROMPT.replace(b"h\xc3\xa9llo", b"x" * 100_000)
    messages = latest(parse(cut(long + b"\n" + CALL + b"\n", size)))
    assert list(messages) == ["u1", "m1"]


def test_a_subagent_in_the_same_log_is_read_too() -> None:
    """Recorded with Claude Code 1.0.24, whose subagents have no files."""
    log = next(path for path in (DATA.parent / "versions/1.0.24").rglob("*.jsonl") if SIDECHAIN in path.read_bytes())
    history = read_session(log)
    all_messages = [*history.messages, *(message for child in history.children for message in child.messages)]
    assert len(all_messages) > len(history.messages)
    assert latest(parse([log.read_bytes()])).keys() == latest(all_messages).keys()
