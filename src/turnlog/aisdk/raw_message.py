"""A canonical message as raw JSON: its structure as objects, all contents as the exact JSON of the stored body.

Texts are copied from a body into a UI message and back without decoding them. The fields are those of `turnlog.model`
(a test compares them), and all are optional: fields that a UI message contains are removed here, so that what the AI
SDK has no field for remains.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.model.codec import decode_message, encode_known

RawField: TypeAlias = Raw | UnsetType
"""Exact JSON of one field; UNSET if it is missing."""


class _RawStruct(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    extra: RawField = msgspec.field(default=UNSET, name="$extra")


class RawProvider(_RawStruct, kw_only=True):
    """A `ProviderData`."""

    name: str
    model: RawField = UNSET
    opaque: dict[str, Raw] | UnsetType = UNSET


class _RawPartFields(_RawStruct, kw_only=True, tag_field="type"):
    id: RawField = UNSET
    provider: RawProvider | UnsetType = UNSET
    metadata: RawField = UNSET


class RawText(_RawPartFields, kw_only=True, tag="text"):
    """A `TextPart`."""

    text: RawField = UNSET
    citations: RawField = UNSET
    state: str | UnsetType = UNSET
    blob: RawField = UNSET


class RawReasoning(_RawPartFields, kw_only=True, tag="reasoning"):
    """A `ReasoningPart`."""

    text: RawField = UNSET
    redacted: RawField = UNSET
    state: str | UnsetType = UNSET
    duration_ms: RawField = UNSET
    blob: RawField = UNSET


class RawFile(_RawPartFields, kw_only=True, tag="file"):
    """A `FilePart`; `data` is a JSON string of base64."""

    media_type: RawField = UNSET
    filename: RawField = UNSET
    url: RawField = UNSET
    data: RawField = UNSET
    blob: RawField = UNSET


class RawSourceUrl(_RawPartFields, kw_only=True, tag="source-url"):
    """A `SourceUrlPart`."""

    source_id: RawField = UNSET
    url: RawField = UNSET
    title: RawField = UNSET


class RawSourceDocument(_RawPartFields, kw_only=True, tag="source-document"):
    """A `SourceDocumentPart`."""

    source_id: RawField = UNSET
    media_type: RawField = UNSET
    title: RawField = UNSET
    filename: RawField = UNSET


class RawData(_RawPartFields, kw_only=True, tag="data"):
    """A `DataPart`."""

    name: str | UnsetType = UNSET
    data: RawField = UNSET


class RawUnknown(_RawPartFields, kw_only=True, tag="unknown"):
    """An `UnknownPart`."""

    kind: str | UnsetType = UNSET
    data: RawField = UNSET


class RawApproval(_RawStruct, kw_only=True):
    """An `Approval`."""

    id: RawField = UNSET
    approved: bool | UnsetType | None = UNSET
    source: RawField = UNSET
    reason: RawField = UNSET
    metadata: RawField = UNSET


class RawToolCall(_RawPartFields, kw_only=True, tag="tool-call"):
    """A `ToolCallPart`."""

    tool_call_id: RawField = UNSET
    tool_name: RawField = UNSET
    kind: RawField = UNSET
    input: RawField = UNSET
    input_text: RawField = UNSET
    input_blob: RawField = UNSET
    state: str = "input-available"
    title: RawField = UNSET
    approval: RawApproval | UnsetType = UNSET
    provider_executed: bool | UnsetType = UNSET
    parent_tool_call_id: RawField = UNSET
    started_at: RawField = UNSET
    child_session_id: RawField = UNSET
    results: list[RawToolResult] | UnsetType = UNSET


RawPart: TypeAlias = (
    RawText | RawReasoning | RawToolCall | RawFile | RawSourceUrl | RawSourceDocument | RawData | RawUnknown
)


class RawToolResult(_RawStruct, kw_only=True):
    """A `ToolResult`."""

    id: RawField = UNSET
    status: str = "success"
    content: list[RawPart] | UnsetType = UNSET
    structured: RawField = UNSET
    error_text: RawField = UNSET
    exit_code: RawField = UNSET
    preliminary: bool | UnsetType = UNSET
    completed_at: RawField = UNSET
    duration_ms: RawField = UNSET
    spilled_to: RawField = UNSET
    sequence: RawField = UNSET
    metadata: RawField = UNSET


class RawMessage(_RawStruct, kw_only=True):
    """A `Message`."""

    id: str
    role: str
    parts: list[RawPart] | UnsetType = UNSET
    origin: RawField = UNSET
    created_at: RawField = UNSET
    completed_at: RawField = UNSET
    updated_at: RawField = UNSET
    model: RawField = UNSET
    requested_model: RawField = UNSET
    response_id: RawField = UNSET
    request_id: RawField = UNSET
    stop_reason: RawField = UNSET
    raw_stop_reason: RawField = UNSET
    usage: RawField = UNSET
    cost: RawField = UNSET
    error: RawField = UNSET
    provider: RawField = UNSET
    metadata: RawField = UNSET


_decoder = msgspec.json.Decoder(RawMessage)


def parse_raw_message(body: bytes | Raw) -> RawMessage:
    """Split a canonical body into fields. Raises msgspec.ValidationError if it is not one.

    A body with fields or kinds of parts that this version does not know is decoded with the model, which knows where to
    keep them.
    """
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError:
        return _decoder.decode(encode_known(decode_message(body)))


_part_decoder = msgspec.json.Decoder(RawPart)


def parse_raw_part(part: bytes | Raw) -> RawPart:
    """Split the canonical JSON of a part into fields. Raises msgspec.ValidationError if it is not one."""
    return _part_decoder.decode(part)
