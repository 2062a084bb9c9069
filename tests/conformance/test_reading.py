"""What our reader makes of a stream is what the real `readUIMessageStream` makes of it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from ai_sdk_judge import VERSIONS, Judge, as_javascript_has_it, sse
from ai_sdk_streams import stream
from turnlog.aisdk import UIMessage, UIMessageReader, encode
from turnlog.errors import ConversionError, ShapeError

STREAMS = 1700
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


@pytest.mark.parametrize("version", VERSIONS)
def test_generated_streams(judge: Judge, version: int) -> None:
    random = Random(SEED)
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
