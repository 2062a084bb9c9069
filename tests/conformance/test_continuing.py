"""A stream that goes on with a message changes it as the real `readUIMessageStream` does."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from support.ai_sdk_judge import VERSIONS, Judge, as_javascript_has_it, sse
from support.ai_sdk_messages import message
from support.ai_sdk_streams import stream
from support.profiles import examples
from turnlog.aisdk import StartChunk, UIMessage, UIMessageReader, encode, parse_chunk, parse_ui_message
from turnlog.errors import ConversionError, ShapeError

SEED = 20261124


def continued(random: Random, version: int) -> UIMessage:
    """A valid message to go on with."""
    while True:
        try:
            return parse_ui_message(message(random), version=version)
        except ShapeError:
            continue


@pytest.mark.parametrize("version", VERSIONS)
def test_going_on_with_a_message(judge: Judge, version: int) -> None:
    random = Random(SEED)
    cases = [(stream(random), continued(random, version)) for _ in range(examples(250))]
    items = [{"sse": sse(texts), "message": json.loads(encode(before))} for texts, before in cases]
    differing: list[str] = []
    for (texts, before), answer in zip(cases, judge.ask("read", version, items), strict=True):
        last: Any = None
        reader = UIMessageReader(before, version=version)
        try:
            for text in texts:
                if reader.feed(text):
                    last = json.loads(encode(reader.message))
        except ConversionError:
            pass
        if as_javascript_has_it(last) != as_javascript_has_it(answer.get("message")):
            differing.append(f"{encode(before)}\n{texts}\nours   {last}\ntheirs {answer}")
    assert len(differing) == 0, f"{len(differing)} differ\n" + "\n\n".join(differing[:2])


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_server_keeps(judge: Judge, version: int) -> None:
    """As `onFinish` gets it: it goes on with the same message, whatever id a `start` has."""
    random = Random(SEED + version)
    bodies: list[bytes] = []
    mine: list[dict[str, Any]] = []
    for _ in range(examples(400)):
        texts, before = stream(random), continued(random, version)
        kept = kept_of(texts, before, version)
        # A client takes keys out of a citation that it does not know; a server believes itself.
        if kept is not None and "zzz" not in "".join(texts):
            mine.append(kept)
            bodies.append(b'{"chunks":[%b],"messages":[%b]}' % (",".join(texts).encode(), encode(before)))
    assert len(mine) > examples(400) / 4
    for question, kept, answer in zip(bodies, mine, judge.ask("kept", version, bodies), strict=True):
        assert as_javascript_has_it(kept) == as_javascript_has_it(answer), question


def kept_of(texts: list[str], before: UIMessage, version: int) -> dict[str, Any] | None:
    """What our reader says at the end; None where a chunk ends it, which the server's own writer would not send."""
    goes_on = before.role == "assistant"
    begun = before if goes_on else UIMessage(id="made", role="assistant", parts=())
    reader = UIMessageReader(begun, version=version, reset_on_new_id=False)
    try:
        for text in texts:
            chunk = parse_chunk(text, version=version)
            if isinstance(chunk, StartChunk) and chunk.message_id is UNSET:
                # The real one's server says the id where nobody does.
                chunk = replace(chunk, message_id=begun.id)
            reader.feed(chunk)
    except ConversionError:
        return None
    message = reader.message
    expected: dict[str, Any] = {
        "message": json.loads(encode(message)),
        "isContinuation": goes_on and message.id == before.id,
        "isAborted": reader.aborted,
    }
    return expected if reader.finish_reason is None else expected | {"finishReason": reader.finish_reason}
