"""The annotations of parts and chunks, and the checks that are made of them for every version."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin

import msgspec
import pytest

from turnlog.aisdk import FEATURES, encode, parse_chunk, sdk_version, validate_ui_messages
from turnlog.aisdk.base import InStates, Since, UIValue
from turnlog.aisdk.checks import chunk_check, finish_reason_feature, known_finish_reasons, part_check
from turnlog.aisdk.chunks import CHUNK_TYPES, DataChunk, FinishReason
from turnlog.aisdk.parts import PART_TYPES, DataUIPart, ToolApproval, ToolPartState, ToolUIPart, UICitation
from turnlog.errors import ShapeError

STRUCTS: list[type[UIValue]] = [
    *PART_TYPES.values(),
    *CHUNK_TYPES.values(),
    *(ToolUIPart, DataUIPart, DataChunk, ToolApproval, UICitation),
]


def annotations_of(struct: type[UIValue]) -> list[Any]:
    hints = [field.type for field in msgspec.structs.fields(struct)]
    return [found for hint in hints if get_origin(hint) is Annotated for found in get_args(hint)[1:]]


@pytest.mark.parametrize("struct", STRUCTS)
def test_every_annotation_names_a_feature_and_states_that_there_are(struct: type[UIValue]) -> None:
    assert struct.feature in FEATURES
    for annotation in annotations_of(struct):
        if isinstance(annotation, Since):
            assert {annotation.feature, *annotation.values.values()} <= FEATURES.keys()
        if isinstance(annotation, InStates):
            assert set(annotation.states) <= set(get_args(ToolPartState))


def test_every_finish_reason_has_a_feature() -> None:
    assert all(finish_reason_feature(reason) in FEATURES for reason in get_args(FinishReason))
    assert "unknown" in known_finish_reasons(sdk_version(5))
    assert "unknown" not in known_finish_reasons(sdk_version(6))
    assert known_finish_reasons(sdk_version("5.0.91")) == frozenset()


def test_the_checks_of_a_version_are_made_once() -> None:
    assert part_check(7) is part_check(7)
    assert chunk_check(sdk_version(7)) is chunk_check(sdk_version("7.0.173"))


def test_a_later_field_is_an_unknown_key_to_an_older_validator() -> None:
    part = {"type": "tool-read", "toolCallId": "c", "state": "input-available", "input": 1, "title": "Read"}
    message = {"id": "m", "role": "assistant", "parts": [part]}
    kept = {
        version: "title" in msgspec.json.decode(encode(validate_ui_messages([message], version=version)))[0]["parts"][0]
        for version in (5, 6, 7)
    }
    assert kept == {5: False, 6: False, 7: True}


def test_a_later_field_ends_the_stream_of_an_older_client_once_it_is_sent() -> None:
    chunk = {"type": "tool-output-available", "toolCallId": "c", "output": 1, "preliminary": True}
    assert parse_chunk(chunk, version="5.0.11")
    with pytest.raises(ShapeError, match="preliminary"):
        parse_chunk(chunk, version="5.0.10")
