"""What our reader makes of a stream is what the real `readUIMessageStream` makes of it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from support.ai_sdk_judge import VERSIONS, Judge, as_javascript_has_it, sse
from support.ai_sdk_streams import stream
from support.profiles import examples
from turnlog.aisdk import UIMessage, UIMessageReader, encode
from turnlog.errors import ConversionError, ShapeError
from turnlog.sse import SseDecoder

STREAMS = examples(1700)
"""For each version others."""
SEED = 20261121


def read_ours(texts: list[str], version: int, message: UIMessage | None, *, every: bool) -> dict[str, Any]:
    reader = UIMessageReader(message, version=version)
    last: UIMessage | None = None
    snapshots: list[UIMessage] = []
    count = 0
    failure: ConversionError | None = None
    try:
        for text in texts:
            if reader.feed(text):
                count += 1
                last = reader.message
                if every:
                    snapshots.append(last)
    except ConversionError as error:
        failure = error
    errors: list[Any] = [["error", text] for text in reader.error_texts]
    if isinstance(failure, ShapeError):
        errors.append("refused")
    elif failure is not None:
        errors.append(["thrown", str(failure)])
    return {
        "message": None if last is None else json.loads(encode(last)),
        "count": count,
        "snapshots": [json.loads(encode(snapshot)) for snapshot in snapshots],
        "errors": errors,
    }


def read_theirs(answer: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    return {
        "message": answer.get("message"),
        "count": answer["count"],
        "snapshots": answer["snapshots"],
        "errors": [_error_of(error) for error in answer["errors"]],
    }


def _error_of(error: dict[str, Any]) -> Any:
    if error["name"] in ("AI_TypeValidationError", "AI_JSONParseError"):
        return "refused"
    return [
        "error" if error["name"] == "Error" and "must be preceded" not in error["message"] else "thrown",
        error["message"],
    ]


NOISE = (": hi", "event: x", "id: 5", "retry: 10", "data", "", "data:", "foo", ":", "data:  ", "id: \0")
LINE_ENDS = ("\n", "\r\n", "\n\n", "\r")
ENDS = ("\n\n", "\r\n\r\n", "\r\r", "\n\n\n", "\r\n\n")


def badly_written(random: Random) -> str:
    """A stream as a server sends it that writes events in another way, perhaps not to its end."""
    written = random.choice(("", "", "\ufeff"))
    for text in [*stream(random), *random.choice(([], ["[DONE]"]))]:
        noise = random.choices(NOISE, k=random.choice((0, 0, 0, 1, 2)))
        written += "".join([line + random.choice(LINE_ENDS) for line in noise])
        text = text.replace(",", ",\ndata: ", 1) if random.random() < 0.1 else text
        written += random.choice(("data: ", "data:", "data:  ")) + text + random.choice(ENDS)
    return written[: -random.randrange(1, 5)] if random.random() < 0.1 else written


def received(written: str, random: Random) -> list[str]:
    """The events of a stream that comes in small pieces."""
    decoder, data, position, found = SseDecoder(), written.encode(), 0, list[str]()
    while position < len(data):
        size = random.randrange(1, 40)
        found += [event.decode() for event in decoder.feed(data[position : position + size]) if event != b"[DONE]"]
        position += size
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_streams_however_they_are_written(judge: Judge, version: int) -> None:
    random = Random(SEED + version)
    streams = [badly_written(random) for _ in range(examples(500))]
    for written, answer in zip(streams, judge.ask("read", version, [{"sse": each} for each in streams]), strict=True):
        texts = received(written, random)
        ours = as_javascript_has_it(read_ours(texts, version, None, every=False))
        assert ours == as_javascript_has_it(read_theirs(answer, texts)), written


@pytest.mark.parametrize("version", VERSIONS)
def test_generated_streams(judge: Judge, version: int) -> None:
    random = Random(SEED + version)
    streams = [stream(random) for _ in range(STREAMS)]
    items = [{"sse": sse(texts), "all": position % 10 == 0} for position, texts in enumerate(streams)]
    answers = judge.ask("read", version, items)
    differing: list[str] = []
    for position, (texts, answer) in enumerate(zip(streams, answers, strict=True)):
        ours = as_javascript_has_it(read_ours(texts, version, None, every=position % 10 == 0))
        theirs = as_javascript_has_it(read_theirs(answer, texts))
        if ours != theirs:
            differing.append(f"stream {position}\n{chr(10).join(texts)}\nours   {ours}\ntheirs {theirs}")
    assert len(differing) == 0, f"{len(differing)} of {STREAMS}\n" + "\n\n".join(differing[:3])
