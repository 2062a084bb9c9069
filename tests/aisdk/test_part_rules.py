"""What each kind of part must and may have: a row of the requirements each, with what is taken and what is refused.

The real `validateUIMessages` judges the same in `tests/conformance`; these need nothing but Python.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import pytest

from turnlog.aisdk import encode, parse_ui_message, validate_ui_messages
from turnlog.errors import ShapeError

Json: TypeAlias = dict[str, Any]

TEXT = {"type": "text", "text": "a"}
REASONING = {"type": "reasoning", "text": "hm"}
URL = {"type": "source-url", "sourceId": "s", "url": "https://example.org"}
DOCUMENT = {"type": "source-document", "sourceId": "s", "mediaType": "application/pdf", "title": "Paper"}
FILE = {"type": "file", "mediaType": "image/png", "url": "https://example.org/a.png"}
STEP = {"type": "step-start"}
CALL = {"type": "dynamic-tool", "toolName": "read", "toolCallId": "c"}
PROVIDER = {"providerMetadata": {"anthropic": {"signature": "x"}}}
NO_PROVIDER = {"providerMetadata": {"anthropic": "x"}}

STATES: dict[str, Json] = {
    "input-streaming": {},
    "input-available": {"input": 1},
    "approval-requested": {"input": 1, "approval": {"id": "p"}},
    "approval-responded": {"input": 1, "approval": {"id": "p", "approved": True, "reason": "fine"}},
    "output-available": {"input": 1, "output": 2},
    "output-error": {"input": 1, "errorText": "no"},
    "output-denied": {"input": 1, "approval": {"id": "p", "approved": False}},
}


def call(state: str, **fields: Any) -> Json:
    return {**CALL, "state": state, **STATES[state], **fields}


def without(part: Json, *names: str) -> Json:
    return {name: value for name, value in part.items() if name not in names}


def message(*parts: Json, **fields: Any) -> Json:
    return {"id": "m", "role": "assistant", "parts": list(parts), **fields}


TAKEN: dict[str, list[Json]] = {
    "R-S3": [TEXT, {**TEXT, "state": "streaming"}, {**TEXT, "state": "done"}, {**TEXT, "text": "", **PROVIDER}],
    "R-S4": [REASONING, {**REASONING, "state": "streaming"}, {**REASONING, "state": "done", **PROVIDER}],
    "R-S5": [URL, {**URL, "title": "Example"}, {**URL, **PROVIDER}],
    "R-S6": [DOCUMENT, {**DOCUMENT, "filename": "p.pdf"}, {**DOCUMENT, **PROVIDER}],
    "R-S7": [FILE, {**FILE, "filename": "a.png"}, {**FILE, "url": "data:image/png;base64,iVBO"}],
    "R-S8": [STEP],
    "R-S9": [call(state, title="Read", providerExecuted=True) for state in STATES],
    "R-S10": [
        *(call(state) for state in STATES),
        call("input-streaming", input={"pa": 1}),
        call("output-available", preliminary=True),
    ],
}

REFUSED: dict[str, list[Json]] = {
    "R-S3": [without(TEXT, "text"), {**TEXT, "text": 5}, {**TEXT, "state": "complete"}, {**TEXT, **NO_PROVIDER}],
    "R-S4": [without(REASONING, "text"), {**REASONING, "state": "x"}, {**REASONING, **NO_PROVIDER}],
    "R-S5": [without(URL, "sourceId"), without(URL, "url"), {**URL, "title": 1}, {**URL, **NO_PROVIDER}],
    "R-S6": [*(without(DOCUMENT, name) for name in ("sourceId", "mediaType", "title")), {**DOCUMENT, "filename": 1}],
    "R-S7": [without(FILE, "mediaType"), without(FILE, "url"), {**FILE, "filename": 1}],
    "R-S9": [without(call("input-available"), name) for name in ("toolName", "toolCallId", "state")],
    "R-S10": [
        {**CALL, "state": "running", "input": 1},
        without(call("approval-requested"), "approval"),
        call("approval-responded", approval={"id": "p"}),
        without(call("output-error"), "errorText"),
        call("output-denied", approval={"id": "p", "approved": True}),
    ],
    "R-S11": [
        call("input-available", output=2),
        call("input-available", errorText="no"),
        call("input-streaming", output=2),
        call("output-error", output=2),
        call("output-available", errorText="no"),
    ],
}


def cases(table: dict[str, list[Json]]) -> list[Any]:
    return [
        pytest.param(part, id=f"{row}-{number}") for row, parts in table.items() for number, part in enumerate(parts)
    ]


@pytest.mark.parametrize("part", cases(TAKEN))
def test_a_part_with_what_it_must_and_may_have_is_valid_and_comes_back(part: Json) -> None:
    original = message(part)
    [valid] = validate_ui_messages([original])
    assert json.loads(encode(valid)) == original
    assert json.loads(encode(parse_ui_message(original))) == original


@pytest.mark.parametrize("part", cases(REFUSED))
def test_a_part_without_what_it_must_have_or_with_what_is_anothers_is_refused_at_its_place(part: Json) -> None:
    with pytest.raises(ShapeError) as caught:
        validate_ui_messages([message(TEXT), message(TEXT, part)])
    assert caught.value.json_path.startswith("$[1].parts[1]")


@pytest.mark.parametrize("role", ["tool", "developer", "User", "", None])
def test_another_role_is_refused(role: str | None) -> None:
    """R-S1."""
    with pytest.raises(ShapeError):
        validate_ui_messages([message(TEXT, role=role)])


@pytest.mark.parametrize(
    "broken",
    [{"id": 5, "role": "user", "parts": []}, {"id": "m", "role": "user", "parts": {}}, {"id": "m", "role": "user"}],
)
def test_a_message_has_an_id_and_a_list_of_parts(broken: Json) -> None:
    """R-S1."""
    with pytest.raises(ShapeError):
        validate_ui_messages([broken])


@pytest.mark.parametrize("metadata", [None, 5, "a", [1], {"a": {"b": None}}])
def test_metadata_may_be_any_json(metadata: Any) -> None:
    """R-S1."""
    [valid] = validate_ui_messages([message(TEXT, metadata=metadata)])
    assert json.loads(encode(valid))["metadata"] == metadata


def test_a_data_part_has_a_name_and_any_data() -> None:
    """R-S2: `data-<name>`, `tool-<name>`."""
    for part in ({"type": "data-weather", "data": None}, {"type": "data-weather", "id": "w", "data": [1]}):
        assert validate_ui_messages([message(part)])
    assert validate_ui_messages([message({**without(call("output-available"), "toolName"), "type": "tool-read"})])


@pytest.mark.parametrize("version", [5, 6, 7])
def test_a_step_start_has_no_further_field(version: int) -> None:
    """R-S8: what else stands there is not of the message, as for the AI SDK."""
    [valid] = validate_ui_messages([message({**STEP, "id": "s"})], version=version)
    assert json.loads(encode(valid)) == message(STEP)
