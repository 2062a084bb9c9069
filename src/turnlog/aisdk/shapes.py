"""Which parts and tool states a version knows, and the fields of each: tables, and the checks made of them.

Messages follow the validator of a major version at its newest release (`Field.since`). What a release can show is
another question (`Field.feature`): 6 shows the title of a tool, and its validator takes it out.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from turnlog.aisdk import checks
from turnlog.aisdk.base import type_of
from turnlog.aisdk.checks import Check, Field, Fields
from turnlog.aisdk.content_shapes import PROVIDER_METADATA, citation, named, steering_parts
from turnlog.errors import ShapeError

_TEXT_STATE = Field("state", checks.one_of("streaming", "done"))

PARTS: dict[str, tuple[int, tuple[Field, ...]]] = {
    "text": (
        5,
        (
            Field("text", checks.text, required=True),
            Field("citations", checks.array_of(citation), since=7, feature="citations"),
            _TEXT_STATE,
            PROVIDER_METADATA,
        ),
    ),
    "reasoning": (
        5,
        (
            Field("id", checks.text, feature="reasoning-id"),
            Field("text", checks.text, required=True),
            _TEXT_STATE,
            PROVIDER_METADATA,
        ),
    ),
    "source-url": (
        5,
        (
            Field("sourceId", checks.text, required=True),
            Field("url", checks.text, required=True),
            Field("title", checks.text),
            PROVIDER_METADATA,
        ),
    ),
    "source-document": (
        5,
        (
            Field("sourceId", checks.text, required=True),
            Field("mediaType", checks.text, required=True),
            Field("title", checks.text, required=True),
            Field("filename", checks.text),
            PROVIDER_METADATA,
        ),
    ),
    "file": (
        5,
        (
            Field("mediaType", checks.text, required=True),
            Field("filename", checks.text),
            Field("url", checks.text, required=True),
            Field("providerReference", checks.texts, since=7, feature="provider-reference"),
            PROVIDER_METADATA,
        ),
    ),
    "step-start": (5, ()),
    "reasoning-file": (
        7,
        (
            Field("mediaType", checks.text, required=True),
            Field("url", checks.text, required=True),
            PROVIDER_METADATA,
        ),
    ),
    "custom": (7, (Field("kind", checks.text, required=True), PROVIDER_METADATA)),
    "steering-message": (
        7,
        (
            Field("id", checks.text, required=True),
            Field("parts", steering_parts("drop"), required=True),
        ),
    ),
}
"""Part type -> the major version that brought it, and its fields beside `type` (R-S2 to R-S8, R-S14)."""

DATA_PART = (Field("id", checks.text), Field("data", checks.anything, required=True))


_APPROVAL_REQUEST = (
    Field("id", checks.text, required=True),
    Field("descriptor", checks.anything, since=6, feature="approval-descriptor"),
    Field("requestReason", checks.text, since=7, feature="approval-request-reason"),
    Field("isAutomatic", checks.flag, since=7, feature="automatic-approvals"),
    Field("signature", checks.text, since=6, feature="approval-signature"),
    Field("inputSchemaInput", checks.anything, since=6, feature="approval-schema-input"),
)
_REASON = Field("reason", checks.text)

APPROVALS: dict[str, tuple[Field, ...]] = {
    "none": (),
    "requested": (*_APPROVAL_REQUEST, Field("approved", checks.never), Field("reason", checks.never)),
    "responded": (*_APPROVAL_REQUEST, Field("approved", checks.flag, required=True), _REASON),
    "granted": (*_APPROVAL_REQUEST, Field("approved", checks.one_of(True), required=True), _REASON),
    "denied": (*_APPROVAL_REQUEST, Field("approved", checks.one_of(False), required=True), _REASON),
}
"""What an approval holds, by how far it has come; "none" must not be there at all."""


class ToolStateShape(NamedTuple):
    """What a tool part holds in one state, beside what it holds in all of them."""

    approval: str = "none"
    """Key of `APPROVALS`."""
    approval_required: bool = False
    input_required: bool = True
    fields: tuple[Field, ...] = ()


_RESULT_METADATA = Field("resultProviderMetadata", checks.metadata, since=6, feature="result-metadata")

TOOL_STATES: dict[str, ToolStateShape] = {
    "input-streaming": ToolStateShape(
        input_required=False,
        fields=(
            Field("rawInput", checks.text, feature="raw-input"),
            Field("inputEncoding", checks.one_of("json", "text"), since=6, feature="input-encoding"),
            Field("callProviderMetadata", checks.metadata, since=6, feature="streamed-call-metadata"),
        ),
    ),
    "input-available": ToolStateShape(),
    "approval-requested": ToolStateShape(approval="requested", approval_required=True),
    "approval-responded": ToolStateShape(approval="responded", approval_required=True),
    "output-available": ToolStateShape(
        approval="granted",
        fields=(
            Field("output", checks.anything, required=True),
            Field("preliminary", checks.flag, feature="preliminary-output"),
            _RESULT_METADATA,
        ),
    ),
    "output-error": ToolStateShape(
        approval="granted",
        input_required=False,
        fields=(
            Field("errorText", checks.text, required=True),
            Field("rawInput", checks.anything),
            _RESULT_METADATA,
        ),
    ),
    "output-denied": ToolStateShape(approval="denied", approval_required=True),
}
"""The states of tool parts (R-S10). What belongs to another state is an error (R-S11)."""

_TOOL_FIELDS = (
    Field("type", checks.text, required=True),
    Field("toolCallId", checks.text, required=True),
    Field("state", checks.text, required=True),
    Field("providerExecuted", checks.flag),
    Field("title", checks.text, since=7, feature="tool-title"),
    Field("toolMetadata", checks.record, since=6, feature="tool-metadata"),
    Field("output", checks.never),
    Field("errorText", checks.never),
)
_DYNAMIC_TOOL_FIELDS = (
    Field("toolName", checks.text, required=True),
    Field("dynamic", checks.one_of(False), feature="unavailable-tool"),
)


def _approval_field(state: ToolStateShape, major: int) -> Field:
    if state.approval == "none":
        return Field("approval", checks.never)
    check = checks.object_of(_known_to(major, APPROVALS[state.approval]))
    return Field("approval", check, required=state.approval_required, feature="approvals")


def _tool_state_fields(name: str, major: int, *, dynamic: bool) -> Fields:
    state = TOOL_STATES[name]
    fields = [
        *_TOOL_FIELDS,
        Field("input", checks.anything, required=state.input_required),
        *([] if name == "input-streaming" else [Field("callProviderMetadata", checks.metadata)]),
        *([] if dynamic and major == 5 else [_approval_field(state, major)]),
        *(_DYNAMIC_TOOL_FIELDS if dynamic else ()),
        *state.fields,
    ]
    return _known_to(major, fields)


def _tool_check(major: int, *, dynamic: bool) -> Check:
    # 5 accepts approvals of declared tools, although it never asks for any.
    names = [name for name, state in TOOL_STATES.items() if not (dynamic and major == 5 and state.approval_required)]
    states = {name: checks.object_of(_tool_state_fields(name, major, dynamic=dynamic)) for name in names}
    return checks.chosen_by("state", states, "unknown state of a tool")


def _known_to(major: int, fields: Iterable[Field]) -> Fields:
    return named(field for field in fields if field.since <= major)


@cache
def part_check(major: int) -> Check:
    """What a part must be for the validator of a major version; the check takes foreign keys out."""
    kind = Field("type", checks.text, required=True)
    by_type = {
        name: checks.object_of(_known_to(major, (kind, *fields)))
        for name, (since, fields) in PARTS.items()
        if since <= major
    }
    by_type["dynamic-tool"] = _tool_check(major, dynamic=True)
    tool = _tool_check(major, dynamic=False)
    data = checks.object_of(named((kind, *DATA_PART)))

    def check(value: Any) -> Any:
        name = type_of(value)
        chosen = data if name.startswith("data-") else tool if name.startswith("tool-") else by_type.get(name)
        if chosen is None:
            raise ShapeError(f"unknown part type {name!r:.60}", json_path="$.type")
        return chosen(value)

    return check


@cache
def message_check(major: int) -> Check:
    """What a message must be for the validator of a major version (R-S1)."""
    fields = (
        Field("id", checks.text, required=True),
        Field("role", checks.one_of("system", "user", "assistant"), required=True),
        Field("metadata", checks.anything),
        Field("parts", checks.array_of(part_check(major)), required=True),
    )
    check_fields = checks.object_of(named(fields))

    def check(value: Any) -> Any:
        message = check_fields(value)
        if not message["parts"] and message["role"] != "assistant":
            raise ShapeError("message must contain at least one part", json_path="$.parts")
        return message

    return check
