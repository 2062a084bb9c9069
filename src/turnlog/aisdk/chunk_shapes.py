"""Which chunks a release knows, and the fields of each: tables, and the checks made of them.

Chunks follow the client of an exact release (`Field.feature`), because a stream meets whatever release the page has.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from turnlog.aisdk import checks
from turnlog.aisdk.base import type_of
from turnlog.aisdk.checks import Check, Field
from turnlog.aisdk.content_shapes import PROVIDER_METADATA, citation, steering_parts
from turnlog.aisdk.shapes import DATA_PART, PARTS
from turnlog.aisdk.versions import SdkVersion, supports
from turnlog.errors import ShapeError

FINISH_REASONS = {
    "stop": "finish-reason",
    "length": "finish-reason",
    "content-filter": "finish-reason",
    "tool-calls": "finish-reason",
    "error": "finish-reason",
    "other": "finish-reason",
    "unknown": "finish-reason-unknown",
    "interrupted": "finish-reason-interrupted",
}
"""Why a message ended -> the feature of it."""

_ID = Field("id", checks.text, required=True)
_CALL_ID = Field("toolCallId", checks.text, required=True)
_PROVIDER_EXECUTED = Field("providerExecuted", checks.flag)
_DYNAMIC = Field("dynamic", checks.flag)
_TITLE = Field("title", checks.text, feature="tool-title")
_TOOL_METADATA = Field("toolMetadata", checks.record, feature="tool-metadata")
_OUTPUT_METADATA = Field("providerMetadata", checks.metadata, feature="result-metadata")
_TEXT_CHUNK = (_ID, PROVIDER_METADATA)
_DELTA_CHUNK = (_ID, Field("delta", checks.text, required=True), PROVIDER_METADATA)
_FILE_CHUNK = (Field("url", checks.text, required=True), Field("mediaType", checks.text, required=True))
_TOOL_CHUNK = (
    _CALL_ID,
    Field("toolName", checks.text, required=True),
    _PROVIDER_EXECUTED,
    _DYNAMIC,
    _TITLE,
    _TOOL_METADATA,
)

CHUNKS: dict[str, tuple[str, tuple[Field, ...]]] = {
    "start": ("base", (Field("messageId", checks.text), Field("messageMetadata", checks.anything))),
    "message-metadata": ("base", (Field("messageMetadata", checks.anything, required=True),)),
    "start-step": ("base", ()),
    "finish-step": ("base", ()),
    "reset-step": ("reset-step", ()),
    "text-start": ("base", _TEXT_CHUNK),
    "text-delta": ("base", _DELTA_CHUNK),
    "text-end": ("base", (*_TEXT_CHUNK, Field("citations", checks.array_of(citation), feature="citations"))),
    "reasoning-start": ("base", _TEXT_CHUNK),
    "reasoning-delta": ("base", _DELTA_CHUNK),
    "reasoning-end": ("base", _TEXT_CHUNK),
    "tool-input-start": (
        "base",
        (
            *_TOOL_CHUNK,
            Field("providerMetadata", checks.metadata, feature="streamed-call-metadata"),
            Field("inputEncoding", checks.one_of("json", "text"), feature="input-encoding"),
        ),
    ),
    "tool-input-delta": ("base", (_CALL_ID, Field("inputTextDelta", checks.text, required=True))),
    "tool-input-available": (
        "base",
        (*_TOOL_CHUNK, Field("input", checks.anything, required=True), PROVIDER_METADATA),
    ),
    "tool-input-error": (
        "tool-input-error",
        (
            *_TOOL_CHUNK,
            Field("input", checks.anything, required=True),
            Field("errorText", checks.text, required=True),
            PROVIDER_METADATA,
        ),
    ),
    "tool-approval-request": (
        "approvals",
        (
            Field("approvalId", checks.text, required=True),
            _CALL_ID,
            Field("signature", checks.text, feature="approval-signature"),
            Field("approvalDescriptor", checks.anything, feature="approval-descriptor"),
            Field("inputSchemaInput", checks.anything, feature="approval-schema-input"),
            Field("reason", checks.text, feature="approval-request-reason"),
            Field("isAutomatic", checks.flag, feature="automatic-approvals"),
        ),
    ),
    "tool-approval-response": (
        "automatic-approvals",
        (
            Field("approvalId", checks.text, required=True),
            Field("approved", checks.flag, required=True),
            Field("reason", checks.text),
            _PROVIDER_EXECUTED,
            PROVIDER_METADATA,
        ),
    ),
    "tool-output-available": (
        "base",
        (
            _CALL_ID,
            Field("output", checks.anything, required=True),
            _PROVIDER_EXECUTED,
            _DYNAMIC,
            Field("preliminary", checks.flag, feature="preliminary-output"),
            _OUTPUT_METADATA,
            _TOOL_METADATA,
        ),
    ),
    "tool-output-error": (
        "base",
        (
            _CALL_ID,
            Field("errorText", checks.text, required=True),
            _PROVIDER_EXECUTED,
            _DYNAMIC,
            _OUTPUT_METADATA,
            _TOOL_METADATA,
        ),
    ),
    "tool-output-denied": ("approvals", (_CALL_ID,)),
    "source-url": ("base", PARTS["source-url"][1]),
    "source-document": ("base", PARTS["source-document"][1]),
    "file": ("base", (*_FILE_CHUNK, PROVIDER_METADATA)),
    "reasoning-file": ("reasoning-file", (*_FILE_CHUNK, PROVIDER_METADATA)),
    "custom": ("custom-content", PARTS["custom"][1]),
    "steering-message": (
        "steering-messages",
        (_ID, Field("parts", steering_parts("keep"), required=True)),
    ),
    "error": ("base", (Field("errorText", checks.text, required=True),)),
    "abort": ("base", (Field("reason", checks.text, feature="abort-reason"),)),
    "finish": (
        "base",
        (
            Field("finishReason", checks.one_of(*FINISH_REASONS), feature="finish-reason"),
            Field("messageMetadata", checks.anything),
        ),
    ),
}
"""Chunk type -> the feature that brought it, and its fields beside `type`."""

DATA_CHUNK = (*DATA_PART, Field("transient", checks.flag))


@cache
def chunk_check(release: SdkVersion) -> Check:
    """What a chunk must be for the client of a release.

    Keys that the release does not know are kept and not looked at; before "unknown-keys" they are an error.
    """
    foreign: checks.Foreign = "keep" if supports(release, "unknown-keys") else "refuse"

    def compiled(fields: Iterable[Field]) -> Check:
        known = {field.name: field for field in fields if supports(release, field.feature)}
        if "finishReason" in known:
            reasons = checks.one_of(*known_finish_reasons(release))
            known["finishReason"] = known["finishReason"]._replace(check=reasons)
        known["type"] = Field("type", checks.text, required=True)
        return checks.object_of(known, foreign)

    by_type = {name: compiled(fields) for name, (feature, fields) in CHUNKS.items() if supports(release, feature)}
    data = compiled(DATA_CHUNK)

    def check(value: Any) -> Any:
        name = type_of(value)
        chosen = data if name.startswith("data-") else by_type.get(name)
        if chosen is None:
            raise ShapeError(f"unknown chunk type {name!r:.60}", json_path="$.type")
        return chosen(value)

    return check


@cache
def known_chunks(release: SdkVersion) -> frozenset[str]:
    """The chunk types of a release, without `data-<name>`."""
    return frozenset(name for name, (feature, _) in CHUNKS.items() if supports(release, feature))


@cache
def known_finish_reasons(release: SdkVersion) -> frozenset[str]:
    """The finish reasons of a release."""
    return frozenset(reason for reason, feature in FINISH_REASONS.items() if supports(release, feature))
