"""A stream that goes on with a message changes it as the real `readUIMessageStream` does."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from ai_sdk_judge import VERSIONS, Judge, as_javascript_has_it, sse
from ai_sdk_messages import message
from ai_sdk_streams import stream
from turnlog.aisdk import UIMessage, UIMessageReader, encode, parse_ui_message
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
    cases = [(stream(random), continued(random, version)) for _ in range(250)]
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
