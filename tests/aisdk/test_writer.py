"""The writer: whatever the events say, the stream is valid, ends once, and nothing is left open."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from support.profiles import examples
from support.stream_events import STREAMS
from turnlog.aisdk import (
    ChunkWriter,
    UIMessageChunk,
    UIMessageReader,
    closing_chunks,
    encode,
    parse_chunk,
    parse_ui_message,
)
from turnlog.aisdk.chunks import TextStartChunk
from turnlog.aisdk.codec import encode_chunk
from turnlog.aisdk.writer import write_chunks
from turnlog.errors import StreamStateError
from turnlog.model import stream as events
from turnlog.model.base import ProviderData
from turnlog.model.parts import FilePart, SourceUrlPart, TextPart, ToolResult
from turnlog.model.usage import Usage

CALL = events.ToolInputAvailable(tool_call_id="c", tool_name="Bash", input=Raw(b"{}"))
APPROVAL_REQUEST = events.ApprovalRequest(approval_id="p", tool_call_id="c", reason="why")

ODD: Any = {"a": 1}
ODD_WORD: Any = "no such"
"""Fields of no type that was declared, as foreign runtimes build them."""


def output(**fields: Any) -> events.ToolOutput:
    return events.ToolOutput(tool_call_id="c", result=ToolResult(id="r", **fields))


def kinds(*given: events.StreamEvent, version: int = 7, **options: Any) -> list[str]:
    return [chunk.type for chunk in write_chunks(given, ChunkWriter(version, message_id="m", **options))]


def last_part(*given: events.StreamEvent, version: int = 7) -> dict[str, Any]:
    reader = UIMessageReader(version=version)
    for chunk in write_chunks(given, ChunkWriter(version, message_id="m")):
        reader.feed(chunk)
    message = reader.message
    parse_ui_message(encode(message), version=version)
    return json.loads(encode(message))["parts"][-1]


@pytest.mark.parametrize("version", [5, 6, 7, "5.0.0", "6.0.0", "6.0.100", "7.0.0"])
@given(stream=STREAMS)
@settings(max_examples=examples(60), deadline=None)
def test_any_events_make_a_valid_stream_and_a_valid_message(version: int | str, stream: list[tuple[Any, str]]) -> None:
    """R-O14 to R-O16, R-O24: also events that are broken, or come in no order."""
    logging.disable(logging.CRITICAL)
    writer = ChunkWriter(version, message_id="m")
    chunks = [chunk for event, lane in stream for chunk in writer.write(event, lane)] + writer.close()
    logging.disable(logging.NOTSET)
    assert writer.closed
    assert chunks[0].type == "start"
    assert chunks[-1].type in ("finish", "abort")
    reader = UIMessageReader(version=version)
    for chunk in chunks:
        reader.feed(parse_chunk(encode_chunk(chunk), version=version))
    message = json.loads(encode(reader.message))
    if writer.release.patch > 100:
        parse_ui_message(encode(reader.message), version=version)
    assert "streaming" not in [part.get("state") for part in message["parts"]]
    assert "input-streaming" not in [part.get("state") for part in message["parts"]]


def test_one_part_is_open_at_a_time_in_a_lane() -> None:
    """R-O16: a part ends before the next begins, and what comes late for it is a part of its own."""
    given = [
        events.TextStart(id="a"),
        events.TextDelta(id="a", delta="A"),
        events.ReasoningStart(id="r"),
        events.ReasoningDelta(id="r", delta="R"),
        events.TextDelta(id="a", delta="B"),
        events.TextEnd(id="a"),
        events.RunFinish(stop_reason="stop"),
    ]
    writer = ChunkWriter(7)
    chunks = list(write_chunks(given, writer))
    assert [chunk.type for chunk in chunks[1:-1]] == [
        *("text-start", "text-delta", "text-end"),
        *("reasoning-start", "reasoning-delta", "reasoning-end"),
        *("text-start", "text-delta", "text-end"),
    ]
    assert {chunk.id for chunk in chunks if isinstance(chunk, TextStartChunk)} == {"a", "a~2"}
    assert writer.losses == []


def test_lanes_stream_at_once_without_mixing() -> None:
    writer = ChunkWriter(7)
    reader = UIMessageReader()
    for number in range(3):
        for lane in "xy":
            for chunk in writer.write(events.TextDelta(id=lane, delta=f"{lane}{number}"), lane):
                reader.feed(chunk)
    for chunk in writer.close():
        reader.feed(chunk)
    assert [part["text"] for part in json.loads(encode(reader.message))["parts"]] == ["x0x1x2", "y0y1y2"]


def test_provider_metadata_of_start_and_end_of_a_part_is_joined() -> None:
    part = last_part(
        events.ReasoningStart(id="r", provider=ProviderData(name="openai", opaque={"id": "1"})),
        events.ReasoningEnd(id="r", provider=ProviderData(name="openai", opaque={"encrypted_content": "e"})),
    )
    assert part["providerMetadata"] == {"openai": {"itemId": "1", "reasoningEncryptedContent": "e"}}


def test_steps_end_before_others_begin() -> None:
    steps = [events.StepStart(model="m"), events.TextDelta(id="a", delta="A")] * 2
    assert kinds(*steps, events.RunFinish())[1:] == [
        *("start-step", "text-start", "text-delta", "text-end", "finish-step") * 2,
        "finish",
    ]


def test_a_call_goes_from_streamed_input_to_a_final_output() -> None:
    streamed = [
        events.ToolInputStart(tool_call_id="c", tool_name="Bash"),
        events.ToolInputDelta(tool_call_id="c", delta='{"command":"ls"}'),
    ]
    part = last_part(*streamed, output(content=(TextPart(text='["a"]'),), preliminary=True))
    assert (part["state"], part["input"], part["output"]) == ("output-available", {"command": "ls"}, ["a"])
    assert part["preliminary"] is True
    final = last_part(*streamed, output(content=(TextPart(text="x"),), preliminary=True), output())
    assert final["output"] is None
    assert "preliminary" not in final


@pytest.mark.parametrize("version", [5, 6, 7])
def test_what_waits_when_the_run_is_over_was_aborted(version: int) -> None:
    part = last_part(CALL, events.RunFinish(stop_reason="stop"), version=version)
    assert (part["state"], part["errorText"]) == ("output-error", "The tool call was aborted.")
    assert last_part(CALL, events.RunFinish(stop_reason="tool_use"), version=version)["state"] == "input-available"
    assert last_part(CALL, events.Pause(reason="input"), version=version)["state"] == "input-available"


@pytest.mark.parametrize(
    ("version", "state", "features"),
    [(5, "output-error", ["approvals"]), (6, "output-error", ["automatic-approvals"]), (7, "output-denied", [])],
)
def test_a_denied_call(version: int, state: str, features: list[str]) -> None:
    writer = ChunkWriter(version)
    list(write_chunks([CALL, output(status="denied", error_text="no")], writer))
    assert last_part(CALL, output(status="denied", error_text="no"), version=version)["state"] == state
    assert [loss.feature for loss in writer.losses] == features


@pytest.mark.parametrize("status", ["denied", "error", "aborted"])
def test_a_denied_call_stays_denied(status: str) -> None:
    """A part that was denied may have no output, of which its client would refuse the whole message."""
    refused = events.ApprovalResponse(approval_id="p", approved=False)
    given = [CALL, APPROVAL_REQUEST, refused, output(status="denied"), output(status=status)]
    assert last_part(*given)["state"] == "output-denied"
    writer = ChunkWriter(7)
    list(write_chunks(given, writer))
    assert writer.skipped == 1


def test_an_approval_request_is_sent_at_once_or_when_the_run_waits() -> None:
    answered = [
        CALL,
        APPROVAL_REQUEST,
        events.ApprovalResponse(approval_id="p", approved=True),
        output(),
        events.RunFinish(),
    ]
    kinds_sent = ["tool-approval-request", "tool-approval-response", "tool-output-available"]
    assert kinds(*answered, version=7)[2:-1] == kinds_sent
    assert kinds(*answered, version=6)[2:-1] == ["tool-output-available"]
    for version in (6, 7):
        part = last_part(CALL, APPROVAL_REQUEST, events.Pause(reason="approval"), version=version)
        assert part["state"] == "approval-requested"
    assert kinds(CALL, APPROVAL_REQUEST, events.Pause(reason="approval"), version=5)[2:] == ["finish"]


def test_a_continued_message_keeps_its_id_and_its_calls() -> None:
    approval = {"id": "p", "approved": False}
    part: dict[str, Any] = {
        "type": "dynamic-tool",
        "toolName": "Bash",
        "toolCallId": "c",
        "state": "approval-responded",
        "input": {},
    }
    message = parse_ui_message({"id": "old", "role": "assistant", "parts": [part | {"approval": approval}]}, version=6)
    chunks = list(write_chunks([output(status="denied")], ChunkWriter(6, continued=message)))
    assert [chunk.type for chunk in chunks] == ["start", "tool-output-denied", "finish"]
    assert json.loads(encode_chunk(chunks[0]))["messageId"] == "old"


def test_errors_close_everything_first_and_the_run_may_go_on() -> None:
    given = [events.TextDelta(id="a", delta="A"), CALL, events.StreamError(error_text=""), output(), events.RunFinish()]
    assert kinds(*given)[4:] == [
        "tool-input-available",
        "tool-output-error",
        "error",
        "tool-output-available",
        "finish",
    ]


def test_strict_raises_where_lenient_skips() -> None:
    """R-O23."""
    writer = ChunkWriter(7, strict=True)
    with pytest.raises(StreamStateError, match="not open"):
        writer.write(events.TextEnd(id="a"))
    lenient = ChunkWriter(7)
    assert lenient.write(events.TextEnd(id="a")) == []
    assert lenient.skipped == 1
    assert [loss.path for loss in lenient.losses] == ["$[0]"]


@pytest.mark.parametrize(
    "odd",
    [
        events.TextDelta(id=ODD, delta="x"),
        events.StepFinish(usage=Usage(input=1, exactness=ODD_WORD)),
        events.StepFinish(usage=Usage(region=ODD)),
        events.StepFinish(usage=Usage(extra={"foreign": Raw(b"{broken")})),
        events.FileEvent(file=FilePart(media_type=ODD, data=b"x")),
        events.SourceEvent(source=SourceUrlPart(source_id="s", url="https://example.com", title=ODD)),
        output(content=(TextPart(text=ODD),)),
        output(content=(ODD,)),
    ],
)
def test_what_is_wrong_inside_of_an_event_costs_this_event_alone(odd: events.StreamEvent) -> None:
    writer = ChunkWriter(7, message_id="m")
    chunks = list(write_chunks([events.StepStart(), CALL, odd, events.RunFinish()], writer))
    assert writer.skipped == 1
    assert [parse_chunk(encode_chunk(chunk)).type for chunk in chunks] == [
        *("start", "start-step", "tool-input-available"),
        *("tool-output-error", "finish-step", "finish"),
    ]


def test_half_a_character_in_an_input_is_kept() -> None:
    given = events.ToolInputAvailable(tool_call_id="c", tool_name="Bash", input=Raw(b'{"a":"\\ud83d"}'))
    assert last_part(given)["input"] == {"a": "\ud83d"}


@pytest.mark.parametrize("written", ["", " \n"])
def test_blank_arguments_are_none(written: str) -> None:
    given = events.ToolInputAvailable(tool_call_id="c", tool_name="Bash", input_text=written)
    assert last_part(given)["input"] == {}


def test_nothing_comes_after_the_end() -> None:
    writer = ChunkWriter(7)
    writer.abort("stopped")
    assert writer.write(events.TextDelta(id="a", delta="A")) == []
    assert writer.close() == []
    assert writer.skipped == 1


def test_usage_and_model_calls_are_metadata_of_the_message() -> None:
    writer = ChunkWriter(7)
    given = [events.StepStart(model="m", response_id="r"), events.RunFinish(metadata={"result": "ok"})]
    finish = json.loads(encode_chunk(list(write_chunks(given, writer))[-1]))
    assert finish["messageMetadata"] == {"result": "ok", "model": "m", "steps": [{"model": "m", "responseId": "r"}]}


OPEN_APPROVAL = events.ApprovalRequest(approval_id="p", tool_call_id="c")


def closed(chunks: list[UIMessageChunk], version: int) -> dict[str, Any]:
    """The message of a stream that was cut off behind these chunks."""
    reader = UIMessageReader(version=version)
    for chunk in [*chunks, *closing_chunks(chunks, version=version)]:
        reader.feed(chunk)
    assert closing_chunks([*chunks, *closing_chunks(chunks, version=version)], version=version) == []
    parse_ui_message(encode(reader.message), version=version)
    return json.loads(encode(reader.message))


@pytest.mark.parametrize("version", [5, 6, 7])
@given(stream=STREAMS, cut=st.integers(0, 60))
@settings(max_examples=examples(150), deadline=None)
def test_a_stream_that_is_cut_off_anywhere(version: int, stream: list[tuple[Any, str]], cut: int) -> None:
    logging.disable(logging.CRITICAL)
    writer = ChunkWriter(version, message_id="m")
    chunks = [chunk for event, lane in stream for chunk in writer.write(event, lane)] + writer.close()
    logging.disable(logging.NOTSET)
    states = [part.get("state") for part in closed(chunks[:cut], version)["parts"]]
    assert not {"streaming", "input-streaming"} & set(states)


@pytest.mark.parametrize(
    ("answer", "state"),
    [(None, "approval-requested"), (True, "output-error"), (False, "output-denied")],
)
def test_a_call_with_an_approval_request(answer: bool | None, state: str) -> None:
    """AI SDK calls an error invalid whose question nobody has answered: the page may still answer it."""
    writer = ChunkWriter(7, message_id="m")
    given = (
        [CALL, OPEN_APPROVAL]
        if answer is None
        else [CALL, OPEN_APPROVAL, events.ApprovalResponse(approval_id="p", approved=answer)]
    )
    chunks = [chunk for event in given for chunk in writer.write(event)]
    chunks += writer.write(events.Pause(reason="approval"))[:-1] if answer is None else []
    assert [part["state"] for part in closed(chunks, 7)["parts"]] == [state]
