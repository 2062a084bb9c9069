"""What a page shows of an answer. `tests/conformance/test_chats.py` asks the real one about thousands of them."""

from __future__ import annotations

from typing import Any

import pytest

from turnlog.aisdk import ChatReader, TextUIPart, UIMessage, read_chat, read_ui_message
from turnlog.errors import ShapeError, StreamStateError

PROMPT = UIMessage(id="u1", role="user", parts=(TextUIPart(text="Hi"),))
ANSWER = UIMessage(id="a1", role="assistant", parts=(TextUIPart(text="Hm"),))


def start(message_id: str | None = None) -> dict[str, Any]:
    return {"type": "start"} if message_id is None else {"type": "start", "messageId": message_id}


def text(name: str, content: str) -> list[dict[str, Any]]:
    return [{"type": "text-start", "id": name}, {"type": "text-delta", "id": name, "delta": content}]


ERROR = {"type": "error", "errorText": "busy"}


def shown(messages: list[UIMessage] | tuple[UIMessage, ...]) -> list[tuple[str, list[str]]]:
    return [(message.id, [part.text for part in message.parts if isinstance(part, TextUIPart)]) for message in messages]


def test_an_error_ends_the_answer_of_a_page_not_of_a_stream() -> None:
    """R-S13"""
    chunks = [start("a1"), *text("t", "one"), ERROR, *text("u", "two")]
    chat = read_chat(chunks, [PROMPT])
    assert shown(chat.messages) == [("u1", ["Hi"]), ("a1", ["one"])]
    assert (chat.error_text, chat.error) == ("busy", None)
    stream = read_ui_message(chunks)
    assert shown([stream.message]) == [("a1", ["one", "two"])]
    assert stream.error_texts == ("busy",)


@pytest.mark.parametrize("version", [5, 6, 7])
def test_a_second_start_goes_on_with_the_parts_of_the_first_on_a_page(version: int) -> None:
    chunks = [start("a1"), *text("t", "one"), start("a2"), *text("u", "two")]
    chat = read_chat(chunks, [PROMPT], version=version)
    assert shown(chat.messages) == [("u1", ["Hi"]), ("a1", ["one"]), ("a2", ["one", "two"])]
    assert shown([read_ui_message(chunks, version=version).message]) == [("a2", ["two"])]


@pytest.mark.parametrize(("version", "second"), [(5, ["one", "two"]), (6, ["two"]), (7, ["two"])])
def test_a_resumed_stream_begins_a_second_message_from_6_on(version: int, second: list[str]) -> None:
    chunks = [start("a1"), *text("t", "one"), start("a2"), *text("u", "two")]
    chat = read_chat(chunks, [PROMPT], trigger="resume-stream", version=version)
    assert shown(chat.messages) == [("u1", ["Hi"]), ("a1", ["one"]), ("a2", second)]


def test_a_replay_takes_the_place_of_what_was_shown_of_the_answer() -> None:
    chat = read_chat([start("a1"), *text("t", "whole")], [PROMPT, ANSWER], trigger="resume-stream")
    assert shown(chat.messages) == [("u1", ["Hi"]), ("a1", ["whole"])]


def test_an_answer_goes_on_with_the_last_message_of_the_assistant() -> None:
    chat = read_chat([start("a1"), *text("t", "more")], [PROMPT, ANSWER])
    assert shown(chat.messages) == [("u1", ["Hi"]), ("a1", ["Hm", "more"])]


def test_an_answer_to_an_earlier_message_stays_in_its_place() -> None:
    later = UIMessage(id="u2", role="user", parts=())
    chat = read_chat([start("a9"), *text("t", "more")], [PROMPT, ANSWER, later], message_id="a1")
    assert shown(chat.messages) == [("u1", ["Hi"]), ("a9", ["Hm", "more"]), ("u2", [])]


def test_a_stream_that_names_no_message_fills_the_one_that_the_page_made() -> None:
    reader = ChatReader([PROMPT], new_id="made")
    assert [reader.feed(chunk) for chunk in (start(), *text("t", "one"))] == [False, True, True]
    assert shown(reader.messages) == [("u1", ["Hi"]), ("made", ["one"])]


@pytest.mark.parametrize(
    ("chunk", "kind"), [({"type": "no-such"}, ShapeError), ({"type": "text-end", "id": "x"}, StreamStateError)]
)
def test_a_chunk_that_cannot_be_read_is_the_error_of_the_page(chunk: dict[str, Any], kind: type[Exception]) -> None:
    reader = ChatReader([PROMPT])
    for each in (start("a1"), *text("t", "one"), chunk, *text("u", "two")):
        reader.feed(each)
    result = reader.result()
    assert shown(result.messages) == [("u1", ["Hi"]), ("a1", ["one"])]
    assert isinstance(result.error, kind)
    assert result.error_text == str(result.error)
