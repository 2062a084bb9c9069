"""Parts and chunks as values, and what each kind of part must and may have: taken as it is, or refused with its place.

The real `validateUIMessages` judges the same in `tests/conformance`; these need nothing but Python."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, TypeAlias, get_args

import msgspec
import pytest

from turnlog import aisdk
from turnlog.aisdk import encode, parse_ui_message, unusual_parts, validate_ui_messages
from turnlog.aisdk.base import UIValue
from turnlog.aisdk.chunks import CHUNK_TYPES, chunk_class
from turnlog.aisdk.parts import PART_TYPES, part_class
from turnlog.errors import ShapeError

HEAVY = ("click", "fastapi", "genai_prices", "pydantic", "rich", "sqlite3", "starlette", "uvicorn", "turnlog.store")


def test_importing_it_pulls_in_no_web_command_or_database_package() -> None:
    script = f"import sys, turnlog.aisdk; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(("kind", "struct"), [*PART_TYPES.items(), *CHUNK_TYPES.items()])
def test_the_class_has_the_type_of_its_json(kind: str, struct: type[UIValue]) -> None:
    assert struct.__dict__["type"] == kind


def test_every_part_and_chunk_of_the_unions_is_public() -> None:
    members = {*get_args(aisdk.UIMessagePart), *get_args(aisdk.UIMessageChunk)}
    assert {member.__name__ for member in members} <= set(aisdk.__all__)


def test_prefixes_lead_to_tools_and_data() -> None:
    assert part_class("tool-read") is aisdk.ToolUIPart
    assert part_class("data-") is aisdk.DataUIPart
    assert chunk_class("data-x") is aisdk.DataChunk
    assert part_class("tool-invocation") is aisdk.ToolUIPart
    assert part_class("image") is chunk_class("image") is None


def test_a_required_null_is_written_and_what_is_missing_is_not() -> None:
    chunk = aisdk.ToolOutputAvailableChunk(tool_call_id="c", output=None)
    assert msgspec.json.encode(chunk) == b'{"type":"tool-output-available","toolCallId":"c","output":null}'
    part = aisdk.TextUIPart(text="hi")
    assert msgspec.json.encode(part) == b'{"type":"text","text":"hi"}'


def test_names_come_from_the_type() -> None:
    tool = aisdk.ToolUIPart(type="tool-a-b", tool_call_id="c", state="input-available", input={})
    assert tool.tool_name == "a-b"
    assert aisdk.DataUIPart(type="data-x", data=None).name == aisdk.DataChunk(type="data-x", data=None).name == "x"
    assert aisdk.UnknownUIPart(value={"type": "image"}).type == "image"
    assert aisdk.UnknownChunk(value=[1]).type == ""


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
def test_a_part_with_missing_or_foreign_fields_is_refused_by_place(part: Json) -> None:
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
    """R-S8: what else is there is not of the message, as for the AI SDK."""
    [valid] = validate_ui_messages([message({**STEP, "id": "s"})], version=version)
    assert json.loads(encode(valid)) == message(STEP)


VERSIONS = (5, 6, 7)
METADATA = {"anthropic": {"signature": "s", "deep": [None, {"a": 1}]}}
for_every_version = pytest.mark.parametrize("version", VERSIONS)


def validated(part: dict[str, Any], version: int) -> Any:
    message = {"id": "m", "role": "assistant", "parts": [part]}
    return json.loads(encode(validate_ui_messages([message], version=version)))[0]["parts"][0]


def check_fields(version: int, required: dict[str, Any], optional: dict[str, Any], wrong: dict[str, Any]) -> None:
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
    check_fields(version, required, {"state": state, "providerMetadata": METADATA}, wrong)


@for_every_version
@pytest.mark.parametrize("state", ["streaming", "done"])
def test_a_reasoning_part(version: int, state: str) -> None:
    """R-S4."""
    required = {"type": "reasoning", "text": "thoughts"}
    wrong = {"text": ["a"], "state": "", "providerMetadata": []}
    check_fields(version, required, {"state": state, "providerMetadata": METADATA}, wrong)


@for_every_version
def test_a_source_url_part(version: int) -> None:
    """R-S5."""
    required = {"type": "source-url", "sourceId": "s", "url": "https://example.org"}
    check_fields(version, required, {"title": "A page", "providerMetadata": METADATA}, {"sourceId": 1, "title": {}})


@for_every_version
def test_a_source_document_part(version: int) -> None:
    """R-S6."""
    required = {"type": "source-document", "sourceId": "s", "mediaType": "application/pdf", "title": "A paper"}
    check_fields(version, required, {"filename": "a.pdf", "providerMetadata": METADATA}, {"title": 1, "filename": True})


@for_every_version
@pytest.mark.parametrize("url", ["http://h/a.png", "https://h/a.png", "data:image/png;base64,iVBORw0KGgo="])
def test_a_file_part(version: int, url: str) -> None:
    """R-S7."""
    required = {"type": "file", "mediaType": "image/png", "url": url}
    check_fields(version, required, {"filename": "a.png", "providerMetadata": METADATA}, {"mediaType": 1, "url": {}})


@for_every_version
def test_a_step_start_part(version: int) -> None:
    """R-S8: what else is in it does not come through."""
    check_fields(version, {"type": "step-start"}, {}, {})
    assert validated({"type": "step-start", "id": "s", "providerMetadata": METADATA}, version) == {"type": "step-start"}


OUTCOMES = {"output": {"a": 1}, "errorText": "no"}
TOOL_PARTS: dict[str, dict[str, Any]] = {
    "input-streaming": {},
    "input-available": {"input": {"a": 1}},
    "output-available": {"input": {"a": 1}, "output": "done"},
    "output-error": {"input": {"a": 1}, "errorText": "no"},
}


@for_every_version
@pytest.mark.parametrize("state", TOOL_PARTS)
@pytest.mark.parametrize("named", [{"type": "tool-read"}, {"type": "dynamic-tool", "toolName": "read"}])
def test_a_field_of_another_state(version: int, state: str, named: dict[str, str]) -> None:
    """R-S11: a call that is not answered has no output and no error, and an answer is one of them."""
    part = {**named, "toolCallId": "c", "state": state, **TOOL_PARTS[state]}
    assert validated(part, version) == part
    for name in OUTCOMES.keys() - part.keys():
        with pytest.raises(ShapeError, match=rf"parts\[0\]\.{name}"):
            validated({**part, name: OUTCOMES[name]}, version)


@pytest.mark.parametrize("version", [6, 7])
@pytest.mark.parametrize("state", ["input-streaming", "input-available", "approval-requested"])
def test_an_approval_of_another_state(version: int, state: str) -> None:
    """R-S11: the answer to a permission request is where one was given."""
    part = {"type": "tool-read", "toolCallId": "c", "input": 1, "approval": {"id": "a", "approved": True}}
    assert validated({**part, "state": "approval-responded"}, version) == {**part, "state": "approval-responded"}
    with pytest.raises(ShapeError, match=r"parts\[0\]\.approval"):
        validated({**part, "state": state}, version)


@pytest.mark.parametrize(("role", "kind"), [("system", "file"), ("user", "tool-read")])
def test_a_part_that_is_unusual_for_its_role_is_a_warning(role: str, kind: str) -> None:
    """R-S12: the message is valid nevertheless."""
    odd: dict[str, Any] = {"type": kind}
    if kind == "file":
        odd |= {"mediaType": "image/png", "url": "data:,"}
    else:
        odd |= {"toolCallId": "c", "state": "input-available", "input": {}}
    message = parse_ui_message({"id": "m", "role": role, "parts": [{"type": "text", "text": "a"}, odd]})
    assert unusual_parts(message) == [("$.parts[1]", role, kind)]


def test_an_assistant_message_may_have_any_part() -> None:
    parts = [{"type": "step-start"}, {"type": "data-x", "data": 1}]
    assert unusual_parts(parse_ui_message({"id": "m", "role": "assistant", "parts": parts})) == []
