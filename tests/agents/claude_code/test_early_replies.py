"""Logs that begin with the model's answer: the prompt was written later, and was said before."""

from __future__ import annotations

from typing import Any

import pytest

from support.claude_files import SESSION, Gathered, Log, call, fold, read, sources, text
from turnlog.model import Message, Origin, RewindEvent, TextPart

ROOT = f"claude-code:{SESSION}"


def said(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def rewinds(gathered: Gathered) -> list[str]:
    return [name for name, change in gathered.events.items() if isinstance(change.event, RewindEvent)]


def chain(gathered: Gathered, message_id: str) -> list[str]:
    """The message and all that it hangs under, as words."""
    found = [said(gathered.messages[message_id])]
    parent = gathered.place(message_id).parent_id
    return found if parent is None else [*chain(gathered, parent), *found]


@pytest.mark.parametrize(
    ("case", "prompt", "answer", "between"),
    [("2.1.120-early", "Touch two files", "Touch.", 1), ("2.1.300-early", "Run the slow one", "Slow one.", 9)],
)
def test_the_first_prompt_comes_before_a_reply_that_was_written_earlier(
    case: str, prompt: str, answer: str, between: int
) -> None:
    """R-K4: order, turn and parents are those of the conversation, not of the file."""
    gathered = read(sources("versions", case))
    (session_id,) = gathered.sessions
    messages = gathered.in_order(session_id)
    places = [gathered.placements[session_id, message.id] for message in messages]
    assert messages[0].origin is Origin.PROMPT
    assert [message.origin for message in messages[1 : between + 1]] == [Origin.HARNESS] * between
    assert [said(messages[0]), said(messages[between + 1])] == [prompt, answer]
    assert {place.turn for place in places[: between + 2]} == {1}
    assert places[between + 1].step == 1
    assert chain(gathered, messages[between + 1].id) == [said(message) for message in messages[: between + 2]]
    assert rewinds(gathered) == []
    assert gathered.sessions[session_id].titles["prompt"] == prompt


def early_log(**prompt: Any) -> tuple[Log, list[dict[str, Any]]]:
    """A fact, an answer, and the prompt that was written behind it."""
    log = Log()
    asked = log.user("one", **prompt)
    answered = log.assistant("msg_1", text("two"), call("t1"), stop="tool_use")
    return log, [{"type": "mode", "mode": "normal", "sessionId": SESSION}, answered, asked]


def test_later_messages_follow_the_reply() -> None:
    log, records = early_log()
    last = [log.result("t1"), log.assistant("msg_2", text("three")), log.user("four")]
    gathered = fold(*records, *last)
    assert [said(message) for message in gathered.in_order(ROOT)] == ["one", "two", "three", "four"]
    assert [gathered.place(name).step for name in ("msg_1", "msg_2")] == [1, 2]
    assert [message.origin for message in gathered.in_order(ROOT)].count(Origin.PROMPT) == 2
    assert rewinds(gathered) == []


def test_calls_of_the_reply_are_not_aborted_by_its_prompt() -> None:
    _, records = early_log()
    (found,) = fold(*records).calls()
    assert found.state == "input-available"


def test_a_later_prompt_without_a_parent_is_a_rewind() -> None:
    """Also where the line with the first prompt was lost."""
    log, records = early_log()
    again = log.user("instead", parentUuid=None)
    gathered = fold(*records[:2], again)
    assert [said(message) for message in gathered.in_order(ROOT)] == ["two", "instead"]
    assert len(rewinds(gathered)) == 1
