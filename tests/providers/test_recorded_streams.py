"""Streams of one answer as five APIs write it, recorded from a scripted model, beside the body without a stream.

R-K28. The scripted model leaves reasoning out of bodies of Chat Completions, and a time out of that of Responses; there
they are written in as those servers have them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from support.provider_streams import byte_by_byte, plain
from turnlog.model import Message, ReasoningPart, TextPart, ToolCallPart
from turnlog.model.stream import StreamError
from turnlog.providers import provider, provider_names
from turnlog.providers.streaming import ResponseStream

DATA = Path(__file__).parent.parent / "data/provider_streams"
NAMES = provider_names()
ANSWER = "I'll start with a shell command, then say “hello” ✨."
THOUGHT = "First I look around. Ünïcode 🤔."


@cache
def recorded(name: str) -> bytes:
    return (DATA / f"{name}.sse").read_bytes()


@cache
def body(name: str) -> Message:
    return provider(name).from_response((DATA / f"{name}.json").read_bytes())


def written(message: Message) -> tuple[str, str, list[str]]:
    """Thought, text, and the names of the calls."""
    thoughts = "".join([part.text for part in message.parts if isinstance(part, ReasoningPart)])
    texts = "".join([part.text for part in message.parts if isinstance(part, TextPart)])
    return thoughts, texts, [part.tool_name for part in message.parts if isinstance(part, ToolCallPart)]


@pytest.mark.parametrize("name", NAMES)
def test_the_body_has_all_of_it(name: str) -> None:
    message = body(name)
    assert written(message) == (THOUGHT, ANSWER, ["exec_command", "read_file"])
    first, second = (part for part in message.parts if isinstance(part, ToolCallPart))
    assert first.input_value() == {"cmd": "echo \"two\"; printf 'café 你好\\n'", "n": [1, 2.5, None, True]}
    assert second.input_value() == {}
    assert (message.stop_reason, message.error) == ("tool_use", None)
    assert message.usage is not None
    assert message.usage.cache_read == 30


@pytest.mark.parametrize("name", NAMES)
def test_cut_at_every_byte_it_is_the_body(name: str) -> None:
    stream = provider(name).open_stream()
    byte_by_byte(stream, recorded(name))
    assert plain(stream.message) == plain(body(name))


@pytest.mark.parametrize("name", NAMES)
def test_at_every_byte_it_holds_what_came_and_never_less(name: str) -> None:
    stream, data = provider(name).open_stream(), recorded(name)
    before: tuple[str, str, list[str]] = ("", "", [])
    for index in range(len(data)):
        if stream.feed(data[index : index + 1]):
            now = written(stream.message)
            assert THOUGHT.startswith(now[0])
            assert ANSWER.startswith(now[1])
            assert all(len(new) >= len(old) for new, old in zip(now, before, strict=True))
            before = now
    stream.finish()
    assert before == written(body(name))


@pytest.mark.parametrize("name", NAMES)
def test_wherever_it_ends_early_that_is_reported(name: str) -> None:
    data = recorded(name)
    for end in range(0, len(data), 97):
        stream = provider(name).open_stream()
        found_events = [*stream.feed(data[:end]), *stream.finish()]
        if plain(stream.message) != plain(body(name)):
            assert is_complete(stream) or any(isinstance(event, StreamError) for event in found_events)


def is_complete(stream: ResponseStream) -> bool:
    """Chat Completions and Gemini say that all has come before they send the tokens."""
    message = stream.message
    return message.stop_reason == "tool_use" and written(message)[2] == ["exec_command", "read_file"]
