"""What each part must and may have, row by row: taken as it is, or refused with the place and the reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from turnlog.aisdk import encode, validate_ui_messages
from turnlog.errors import ShapeError

VERSIONS = (5, 6, 7)
METADATA = {"anthropic": {"signature": "s", "deep": [None, {"a": 1}]}}
for_every_version = pytest.mark.parametrize("version", VERSIONS)


def validated(part: dict[str, Any], version: int) -> Any:
    message = {"id": "m", "role": "assistant", "parts": [part]}
    return json.loads(encode(validate_ui_messages([message], version=version)))[0]["parts"][0]


def check(version: int, required: dict[str, Any], optional: dict[str, Any], wrong: dict[str, Any]) -> None:
    """It is taken with all of its fields or the required ones, and refused without one or with a wrong one."""
    whole = {**required, **optional}
    assert validated(whole, version) == whole
    assert validated(required, version) == required
    for name in required.keys() - {"type"}:
        with pytest.raises(ShapeError, match=rf"missing \(at \$\[0\]\.parts\[0\]\.{name}\)"):
            validated({key: value for key, value in whole.items() if key != name}, version)
    for name, value in wrong.items():
        with pytest.raises(ShapeError, match=rf"parts\[0\]\.{name}"):
            validated({**whole, name: value}, version)
    for name in whole.keys() - {"type"}:
        with pytest.raises(ShapeError, match=rf"parts\[0\]\.{name}"):
            validated({**whole, name: None}, version)


@for_every_version
@pytest.mark.parametrize("state", ["streaming", "done"])
def test_a_text_part(version: int, state: str) -> None:
    """R-S3."""
    required = {"type": "text", "text": "words"}
    wrong = {"text": 5, "state": "half", "providerMetadata": {"anthropic": 1}}
    check(version, required, {"state": state, "providerMetadata": METADATA}, wrong)


@for_every_version
@pytest.mark.parametrize("state", ["streaming", "done"])
def test_a_reasoning_part(version: int, state: str) -> None:
    """R-S4."""
    required = {"type": "reasoning", "text": "thoughts"}
    wrong = {"text": ["a"], "state": "", "providerMetadata": []}
    check(version, required, {"state": state, "providerMetadata": METADATA}, wrong)


@for_every_version
def test_a_source_url_part(version: int) -> None:
    """R-S5."""
    required = {"type": "source-url", "sourceId": "s", "url": "https://example.org"}
    check(version, required, {"title": "A page", "providerMetadata": METADATA}, {"sourceId": 1, "title": {}})


@for_every_version
def test_a_source_document_part(version: int) -> None:
    """R-S6."""
    required = {"type": "source-document", "sourceId": "s", "mediaType": "application/pdf", "title": "A paper"}
    check(version, required, {"filename": "a.pdf", "providerMetadata": METADATA}, {"title": 1, "filename": True})


@for_every_version
@pytest.mark.parametrize("url", ["http://h/a.png", "https://h/a.png", "data:image/png;base64,iVBORw0KGgo="])
def test_a_file_part(version: int, url: str) -> None:
    """R-S7."""
    required = {"type": "file", "mediaType": "image/png", "url": url}
    check(version, required, {"filename": "a.png", "providerMetadata": METADATA}, {"mediaType": 1, "url": {}})


@for_every_version
def test_a_step_start_part(version: int) -> None:
    """R-S8: what else stands in it does not come through."""
    check(version, {"type": "step-start"}, {}, {})
    assert validated({"type": "step-start", "id": "s", "providerMetadata": METADATA}, version) == {"type": "step-start"}


OUTCOMES = {"output": {"a": 1}, "errorText": "no"}
STATES: dict[str, dict[str, Any]] = {
    "input-streaming": {},
    "input-available": {"input": {"a": 1}},
    "output-available": {"input": {"a": 1}, "output": "done"},
    "output-error": {"input": {"a": 1}, "errorText": "no"},
}


@for_every_version
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("named", [{"type": "tool-read"}, {"type": "dynamic-tool", "toolName": "read"}])
def test_a_field_of_another_state(version: int, state: str, named: dict[str, str]) -> None:
    """R-S11: a call that is not answered has no output and no error, and an answer is one of them."""
    part = {**named, "toolCallId": "c", "state": state, **STATES[state]}
    assert validated(part, version) == part
    for name in OUTCOMES.keys() - part.keys():
        with pytest.raises(ShapeError, match=rf"parts\[0\]\.{name}"):
            validated({**part, name: OUTCOMES[name]}, version)


@pytest.mark.parametrize("version", [6, 7])
@pytest.mark.parametrize("state", ["input-streaming", "input-available", "approval-requested"])
def test_an_approval_of_another_state(version: int, state: str) -> None:
    """R-S11: an answer to the question of leave stands where one was given."""
    part = {"type": "tool-read", "toolCallId": "c", "input": 1, "approval": {"id": "a", "approved": True}}
    assert validated({**part, "state": "approval-responded"}, version) == {**part, "state": "approval-responded"}
    with pytest.raises(ShapeError, match=r"parts\[0\]\.approval"):
        validated({**part, "state": state}, version)
