"""A canonical message as raw JSON: its structure as objects, every content as the exact JSON of the stored body.

Texts are moved from a body into a UI message and back without being decoded. The fields are those of `turnlog.model`
(a test compares them) and all may be missing: a field that a UI message holds is removed here, and what remains is what
AI SDK has no field for.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.model.codec import decode_message, encode_known

Piece: TypeAlias = Raw | UnsetType
"""Exact JSON of one field; UNSET where it is not there."""


class _Pieces(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    extra: Piece = msgspec.field(default=UNSET, name="$extra")


class ProviderPieces(_Pieces, kw_only=True):
    """A `ProviderData`."""

    name: str
    model: Piece = UNSET
    opaque: dict[str, Raw] | UnsetType = UNSET


class _PartPieces(_Pieces, kw_only=True, tag_field="type"):
    id: Piece = UNSET
    provider: ProviderPieces | UnsetType = UNSET
    metadata: Piece = UNSET


class TextPieces(_PartPieces, kw_only=True, tag="text"):
    """A `TextPart`."""

    text: Piece = UNSET
    citations: Piece = UNSET
    state: str | UnsetType = UNSET
    blob: Piece = UNSET


class ReasoningPieces(_PartPieces, kw_only=True, tag="reasoning"):
    """A `ReasoningPart`."""

    text: Piece = UNSET
    redacted: Piece = UNSET
    state: str | UnsetType = UNSET
    duration_ms: Piece = UNSET
    blob: Piece = UNSET


class FilePieces(_PartPieces, kw_only=True, tag="file"):
    """A `FilePart`; `data` is a JSON string of base64."""

    media_type: Piece = UNSET
    filename: Piece = UNSET
    url: Piece = UNSET
    data: Piece = UNSET
    blob: Piece = UNSET


class SourceUrlPieces(_PartPieces, kw_only=True, tag="source-url"):
    """A `SourceUrlPart`."""

    source_id: Piece = UNSET
    url: Piece = UNSET
    title: Piece = UNSET


class SourceDocumentPieces(_PartPieces, kw_only=True, tag="source-document"):
    """A `SourceDocumentPart`."""

    source_id: Piece = UNSET
    media_type: Piece = UNSET
    title: Piece = UNSET
    filename: Piece = UNSET


class DataPieces(_PartPieces, kw_only=True, tag="data"):
    """A `DataPart`."""

    name: str | UnsetType = UNSET
    data: Piece = UNSET


class UnknownPieces(_PartPieces, kw_only=True, tag="unknown"):
    """An `UnknownPart`."""

    kind: str | UnsetType = UNSET
    data: Piece = UNSET


class ApprovalPieces(_Pieces, kw_only=True):
    """An `Approval`."""

    id: Piece = UNSET
    approved: bool | UnsetType | None = UNSET
    source: Piece = UNSET
    reason: Piece = UNSET
    metadata: Piece = UNSET


class CallPieces(_PartPieces, kw_only=True, tag="tool-call"):
    """A `ToolCallPart`."""

    tool_call_id: Piece = UNSET
    tool_name: Piece = UNSET
    kind: Piece = UNSET
    input: Piece = UNSET
    input_text: Piece = UNSET
    input_blob: Piece = UNSET
    state: str = "input-available"
    title: Piece = UNSET
    approval: ApprovalPieces | UnsetType = UNSET
    provider_executed: bool | UnsetType = UNSET
    parent_tool_call_id: Piece = UNSET
    started_at: Piece = UNSET
    child_session_id: Piece = UNSET
    results: list[ResultPieces] | UnsetType = UNSET


PartPieces: TypeAlias = (
    TextPieces
    | ReasoningPieces
    | CallPieces
    | FilePieces
    | SourceUrlPieces
    | SourceDocumentPieces
    | DataPieces
    | UnknownPieces
)


class ResultPieces(_Pieces, kw_only=True):
    """A `ToolResult`."""

    id: Piece = UNSET
    status: str = "success"
    content: list[PartPieces] | UnsetType = UNSET
    structured: Piece = UNSET
    error_text: Piece = UNSET
    exit_code: Piece = UNSET
    preliminary: bool | UnsetType = UNSET
    completed_at: Piece = UNSET
    duration_ms: Piece = UNSET
    spilled_to: Piece = UNSET
    sequence: Piece = UNSET
    metadata: Piece = UNSET


class MessagePieces(_Pieces, kw_only=True):
    """A `Message`."""

    id: str
    role: str
    parts: list[PartPieces] | UnsetType = UNSET
    origin: Piece = UNSET
    created_at: Piece = UNSET
    completed_at: Piece = UNSET
    updated_at: Piece = UNSET
    model: Piece = UNSET
    requested_model: Piece = UNSET
    response_id: Piece = UNSET
    request_id: Piece = UNSET
    stop_reason: Piece = UNSET
    raw_stop_reason: Piece = UNSET
    usage: Piece = UNSET
    cost: Piece = UNSET
    error: Piece = UNSET
    provider: Piece = UNSET
    metadata: Piece = UNSET


_decoder = msgspec.json.Decoder(MessagePieces)


def parse_pieces(body: bytes | Raw) -> MessagePieces:
    """Take a canonical body apart; raise msgspec.ValidationError when it is none.

    A body with fields or kinds of parts that this version does not know takes the careful way through the model,
    which knows where to keep them.
    """
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError:
        return _decoder.decode(encode_known(decode_message(body)))


_part_decoder = msgspec.json.Decoder(PartPieces)


def parse_part_pieces(part: bytes | Raw) -> PartPieces:
    """Take the canonical JSON of one part apart; raise msgspec.ValidationError when it is none."""
    return _part_decoder.decode(part)
