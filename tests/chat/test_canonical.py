"""The canonical messages of an answer, and the UI message that carries them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from turnlog.aisdk import encode, parse_ui_message
from turnlog.aisdk.convert import to_ui_messages
from turnlog.aisdk.parts import UIMessage
from turnlog.chat.canonical import with_decisions, with_steps
from turnlog.chat.conversion import to_canonical
from turnlog.chat.endpoint import AnswerBuilder
from turnlog.chat.requests import merge_client_results
from turnlog.model import Citation, FilePart, Message, ProviderData, TextPart, ToolCallPart, ToolResult, ToolState
from turnlog.model.stream import (
    RunFinish,
    StepFinish,
    StepStart,
    StreamEvent,
    TextDelta,
    TextStart,
    ToolInputAvailable,
    ToolOutput,
)

INPUT = b'{"city": "Rome",  "n": 1.0, "a": "\\u00e9", "a": 2}'
SEEN = ToolResult(id="r", content=(TextPart(text='{"a":1,"a":2}'), FilePart(media_type="image/png", data=b"png")))


def stored(message: UIMessage) -> UIMessage:
    """The message as a keeper reads it again."""
    return parse_ui_message(encode(message), strict=False)


def answer_of(*events: StreamEvent) -> UIMessage:
    builder = AnswerBuilder("a")
    for event in events:
        builder.add(event)
    return builder.message


def test_what_a_tool_got_and_gave_is_carried_exactly() -> None:
    call = ToolInputAvailable(tool_call_id="c", tool_name="look", input=Raw(INPUT))
    message = answer_of(StepStart(model="m"), call, ToolOutput(tool_call_id="c", result=SEEN), RunFinish())
    (step,) = to_canonical(stored(message))
    (part,) = step.parts
    assert isinstance(part, ToolCallPart)
    assert bytes(part.input) == INPUT  # pyright: ignore[reportArgumentType]  # it has one
    assert (part.results, part.state) == ((SEEN,), ToolState.OUTPUT_AVAILABLE)


@pytest.mark.parametrize("text", ['{"a": 1}', "null", '"a"', " a\n", "", "1.0", '{"b":1,"a":2}'])
def test_a_text_is_carried_exactly(text: str) -> None:
    call = ToolInputAvailable(tool_call_id="c", tool_name="look", input=Raw(b"{}"))
    result = ToolResult(id="r", content=(TextPart(text=text),))
    message = answer_of(StepStart(), call, ToolOutput(tool_call_id="c", result=result), RunFinish())
    (part,) = to_canonical(stored(message))[0].parts
    assert isinstance(part, ToolCallPart)
    assert part.results == (result,)


def test_facts_of_the_model_are_carried_and_facts_of_the_page_stay() -> None:
    cited = Citation(url="https://e.com", metadata={"encrypted_index": "I"})
    said = TextPart(id="m.0", text="Hi", citations=(cited,), provider=ProviderData(name="p", opaque={"id": "i"}))
    message = answer_of(
        StepStart(model="m"),
        TextStart(id="t"),
        TextDelta(id="t", delta="Hi"),
        StepFinish(stop_reason="stop", message=Message(id="m", role="assistant", model="m", parts=(said,))),
        RunFinish(),
    )
    (step,) = to_canonical(stored(message))
    assert (step.id, step.model, step.parts) == ("a~1", "m", (said,))


def test_a_call_that_the_run_left_behind_is_aborted_however_it_was_known() -> None:
    call = ToolCallPart(tool_call_id="c", tool_name="look", input=Raw(INPUT))
    builder = AnswerBuilder("a")
    builder.add(StepStart(model="m"))
    builder.add(ToolInputAvailable(tool_call_id="c", tool_name="look", input=Raw(INPUT)))
    builder.add(StepFinish(message=Message(id="m", role="assistant", parts=(call,))))
    builder.abort()
    (part,) = to_canonical(stored(builder.message))[0].parts
    assert isinstance(part, ToolCallPart)
    assert (part.state, bytes(part.input)) == (ToolState.ABORTED, INPUT)  # pyright: ignore[reportArgumentType]


def test_a_page_decides_on_its_calls_and_changes_nothing_else() -> None:
    asked = ToolCallPart(tool_call_id="c", tool_name="look", input=Raw(INPUT))
    done = ToolCallPart(
        tool_call_id="d", tool_name="see", input=Raw(INPUT), state=ToolState.OUTPUT_AVAILABLE, results=(SEEN,)
    )
    steps = [Message(id="a~1", role="assistant", parts=(done, asked))]
    kept = with_steps(to_ui_messages(steps).messages[0], steps)
    sent: dict[str, Any] = json.loads(encode(kept))
    for part in sent["parts"][1:]:
        part |= {"state": "output-available", "output": {"b": 1}, "input": {"city": "forged"}}
    merged = merge_client_results(kept, parse_ui_message(json.dumps(sent), strict=False))
    (step,) = to_canonical(stored(with_decisions(kept, merged)))
    first, second = step.parts
    assert first == done
    assert isinstance(second, ToolCallPart)
    assert bytes(second.input) == INPUT  # pyright: ignore[reportArgumentType]  # it has one
    assert second.results[0].content == (TextPart(text='{"b":1}'),)


def test_a_message_is_converted_once_as_long_as_somebody_holds_it() -> None:
    steps = [Message(id="a~1", role="assistant", parts=(TextPart(text="Hi"),))]
    kept = with_steps(to_ui_messages(steps).messages[0], steps)
    (first,), (again,) = to_canonical(kept), to_canonical(kept)
    assert first is again
    (copy,) = to_canonical(stored(kept))
    assert copy == first
    assert copy is not first
