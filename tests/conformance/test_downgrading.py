"""What is left of a message or chunk for an older SDK is valid there, and every loss has a name."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from support.ai_sdk_judge import VERSIONS, Judge
from support.ai_sdk_messages import message
from support.ai_sdk_streams import any_chunk
from turnlog.aisdk import (
    FEATURES,
    FinishChunk,
    UIMessageChunk,
    downgrade_chunk,
    downgrade_ui_message,
    encode,
    parse_chunk,
    parse_ui_message,
    supports,
)
from turnlog.errors import ShapeError

OTHER_LOSSES = {"unknown-part", "unknown-chunk"}


def valid_messages(count: int, seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    found: list[dict[str, Any]] = []
    while len(found) < count:
        made = message(random)
        try:
            parse_ui_message(made, version=7)
        except ShapeError:
            continue
        found.append(made)
    return found


def valid_chunks(count: int, seed: int) -> list[UIMessageChunk]:
    random = Random(seed)
    found: list[UIMessageChunk] = []
    while len(found) < count:
        try:
            found.append(parse_chunk(any_chunk(random), version=7))
        except ShapeError:
            continue
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_a_downgraded_message_is_valid(judge: Judge, version: int) -> None:
    """R-S14."""
    items: list[Any] = []
    for made in valid_messages(400, 1):
        result = downgrade_ui_message(parse_ui_message(made), version=version)
        items.append({"messages": json.loads(encode(result.messages))})
        counted = Counter(loss.feature for loss in result.losses)
        assert set(counted.values()) <= {1}
        assert all(name in OTHER_LOSSES or not supports(version, name) for name in counted)
        if version == 7:
            assert result.losses == ()
            assert json.loads(encode(result.messages[0])) == made
    answers = judge.ask("validate", version, items)
    refused = [(item, answer["error"]) for item, answer in zip(items, answers, strict=True) if "error" in answer]
    assert refused == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_downgraded_chunk_is_taken(judge: Judge, version: int) -> None:
    items: list[bytes] = []
    for chunk in valid_chunks(600, 2):
        result = downgrade_chunk(chunk, version=version)
        assert all(loss.feature in OTHER_LOSSES or not supports(version, loss.feature) for loss in result.losses)
        items.extend(encode(kept) for kept in result.chunks)
    assert all(judge.ask("chunk", version, items))


def test_every_feature_that_a_release_lacks_is_a_loss_of_its_own() -> None:
    """Only what the newest lacks cannot be lost by going back."""
    seen: set[str] = set()
    for version in ("5.0.0", 5, "6.0.0", 6):
        for made in valid_messages(600, 4):
            seen |= {loss.feature for loss in downgrade_ui_message(parse_ui_message(made), version=version).losses}
        for chunk in [*valid_chunks(1200, 3), FinishChunk(finish_reason="interrupted")]:
            seen |= {loss.feature for loss in downgrade_chunk(chunk, version=version).losses}
    features = {name for name, first in FEATURES.items() if first != FEATURES["base"]}
    assert features - seen == {"finish-reason-unknown"}


def test_what_only_5_had_becomes_other() -> None:
    result = downgrade_chunk(FinishChunk(finish_reason="unknown"), version=7)
    assert result.chunks == (FinishChunk(finish_reason="other"),)
    assert [loss.feature for loss in result.losses] == ["finish-reason-unknown"]
