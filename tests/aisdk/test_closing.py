"""A stream whose writer was killed ends as a message that its client takes, wherever it was cut off."""

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
from turnlog.aisdk import ChunkWriter, UIMessageChunk, UIMessageReader, closing_chunks, encode, parse_ui_message
from turnlog.model import stream as events

CALL = events.ToolInputAvailable(tool_call_id="c", tool_name="Bash", input=Raw(b"{}"))
ASKED = events.ApprovalRequest(approval_id="p", tool_call_id="c")


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
def test_a_call_that_was_asked_about(answer: bool | None, state: str) -> None:
    """AI SDK calls an error invalid whose question nobody has answered: the page may still answer it."""
    writer = ChunkWriter(7, message_id="m")
    given = (
        [CALL, ASKED] if answer is None else [CALL, ASKED, events.ApprovalResponse(approval_id="p", approved=answer)]
    )
    chunks = [chunk for event in given for chunk in writer.write(event)]
    chunks += writer.write(events.Pause(reason="approval"))[:-1] if answer is None else []
    assert [part["state"] for part in closed(chunks, 7)["parts"]] == [state]
