"""Converts a message or chunk for an older AI SDK: what that release lacks is replaced or left out, and reported.

This never fails: the result is valid for the release, and each feature that it lacks is exactly one loss, however often
the message uses it. Unknown keys do not count as a feature; releases ignore them or, formerly, refused them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from turnlog.aisdk import chunks as wire
from turnlog.aisdk.base import UIValue
from turnlog.aisdk.checks import finish_reason_feature, known_chunks, missing_fields
from turnlog.aisdk.codec import to_plain
from turnlog.aisdk.parts import (
    CustomUIPart,
    DataUIPart,
    DynamicToolUIPart,
    ReasoningFileUIPart,
    SteeringMessageUIPart,
    TextUIPart,
    ToolApproval,
    ToolUIPart,
    UIMessage,
    UIMessagePart,
    UnknownUIPart,
)
from turnlog.aisdk.versions import Loss, SdkVersion, Version, sdk_version, supports
from turnlog.arguments import checked, refusal

DENIED = "Tool call execution denied."
"""The error text of a denied call without a reason, in a release without approvals."""

_AS_DATA: frozenset[type[UIValue]] = frozenset(
    {ReasoningFileUIPart, CustomUIPart, wire.ReasoningFileChunk, wire.CustomChunk, wire.SteeringMessageChunk}
)
"""Types that become `data-<type>` if their feature is missing."""


class DowngradedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message, or several if a steering message became a separate message."""

    messages: tuple[UIMessage, ...]
    losses: tuple[Loss, ...] = ()


class DowngradedChunk(msgspec.Struct, frozen=True, kw_only=True):
    """The chunks to send instead; empty if the release has no equivalent."""

    chunks: tuple[wire.UIMessageChunk, ...]
    losses: tuple[Loss, ...] = ()


@checked
def downgrade_ui_message(message: UIMessage, *, version: Version) -> DowngradedMessage:
    """Convert a message for a release (R-S14)."""
    losses = _Losses(sdk_version(version))
    parts = [_part(part, losses, f"$.parts[{index}]") for index, part in enumerate(message.parts)]
    messages = _split_at_steering(replace(message, parts=tuple(parts)), losses)
    return DowngradedMessage(messages=messages, losses=losses.all())


def downgrade_chunk(chunk: wire.UIMessageChunk, *, version: Version) -> DowngradedChunk:
    """Convert a chunk for the client of a release. Each chunk is converted alone; no order is needed."""
    if not isinstance(chunk, UIValue):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may have no types
        raise refusal("chunk", chunk, "a chunk, as of parse_chunk(…)")
    release = sdk_version(version)
    losses = _Losses(release)
    if isinstance(chunk, wire.UnknownChunk):
        losses.add("unknown-chunk", "$", "left out")
        return DowngradedChunk(chunks=(), losses=losses.all())
    if not isinstance(chunk, wire.DataChunk) and chunk.type not in known_chunks(release):
        chunks = _replaced(chunk, losses)
    else:
        chunks = (_without_unknown_keys(_known_fields(chunk, losses), losses),)
    return DowngradedChunk(chunks=chunks, losses=losses.all())


class _Losses:
    """The losses so far, one per feature."""

    def __init__(self, release: SdkVersion) -> None:
        self.release = release
        self.missing = missing_fields(release)
        self._by_feature: dict[str, Loss] = {}

    def lacks(self, feature: str) -> bool:
        return not supports(self.release, feature)

    def add(self, feature: str, path: str, reason: str) -> None:
        self._by_feature.setdefault(feature, Loss(feature=feature, path=path, reason=reason))

    def all(self) -> tuple[Loss, ...]:
        return tuple(self._by_feature.values())


def _part(part: UIMessagePart, losses: _Losses, path: str) -> UIMessagePart:
    if isinstance(part, UnknownUIPart):
        losses.add("unknown-part", path, "became a data part")
        return DataUIPart(type="data-unknown", data=part.value)
    if type(part) in _AS_DATA and losses.lacks(part.feature):
        losses.add(part.feature, path, "became a data part")
        return DataUIPart(type=f"data-{part.type}", data=_content(part))
    if isinstance(part, ToolUIPart | DynamicToolUIPart):
        part = _tool(part, losses, path)
        return _without_fields(part, losses.missing(type(part), part.state), losses, path)
    return _without_fields(part, losses.missing(type(part), None), losses, path)


def _tool(part: ToolUIPart | DynamicToolUIPart, losses: _Losses, path: str) -> ToolUIPart | DynamicToolUIPart:
    if part.approval is UNSET:
        return part
    # A release with approvals may lack some of their fields.
    if not losses.lacks("approvals"):
        approval = _without_fields(part.approval, losses.missing(ToolApproval, part.state), losses, f"{path}.approval")
        return replace(part, approval=approval)
    losses.add("approvals", f"{path}.approval", "left out; a call that waited is shown without the question")
    changes: dict[str, Any] = {"approval": UNSET}
    if part.state in ("approval-requested", "approval-responded"):
        changes["state"] = "input-available"
    elif part.state == "output-denied":
        changes |= {"state": "output-error", "error_text": part.approval.reason or DENIED}
    return replace(part, **changes)


def _without_fields(value: Any, fields: dict[str, str], losses: _Losses, path: str) -> Any:
    """The value without the fields that the release lacks; `fields` has the features."""
    used = {name: feature for name, feature in fields.items() if getattr(value, name) is not UNSET}
    for name, feature in used.items():
        losses.add(feature, f"{path}.{_json_name(value, name)}", "left out")
    return replace(value, **dict.fromkeys(used, UNSET)) if used else value


def _json_name(value: UIValue, name: str) -> str:
    return value.__struct_encode_fields__[value.__struct_fields__.index(name)]


def _content(value: UIValue) -> dict[str, Any]:
    """The JSON of a part without its type."""
    return {key: item for key, item in to_plain(value).items() if key != "type"}


def _split_at_steering(message: UIMessage, losses: _Losses) -> tuple[UIMessage, ...]:
    """Split a message at its steering messages, which become messages in between; new ids are derived from its id."""
    if not losses.lacks("steering-messages"):
        return (message,)
    messages: list[UIMessage] = []
    segment: list[UIMessagePart] = []
    for index, part in enumerate(message.parts):
        if not isinstance(part, SteeringMessageUIPart):
            segment.append(part)
            continue
        losses.add("steering-messages", f"$.parts[{index}]", "became a separate message")
        messages.extend(_segment(message, segment, len(messages)))
        # Keys that are unknown here might have a meaning in a separate message.
        known = [replace(steered, extra={}) for steered in part.parts]
        parts = [_part(steered, losses, f"$.parts[{index}].parts[{place}]") for place, steered in enumerate(known)]
        # No version accepts a user message without parts.
        messages.extend([UIMessage(id=part.id, role="user", parts=tuple(parts))] if parts else [])
        segment = []
    messages.extend(_segment(message, segment, len(messages)))
    return tuple(messages) or (_empty(message),)


def _segment(message: UIMessage, parts: list[UIMessagePart], before: int) -> list[UIMessage]:
    if not parts:
        return []
    name = message.id if before == 0 else f"{message.id}-{before}"
    return [replace(message, id=name, parts=tuple(parts))]


def _empty(message: UIMessage) -> UIMessage:
    """A message of which nothing is left; only assistant messages may have no parts."""
    return replace(message, parts=() if message.role == "assistant" else (TextUIPart(text=""),))


def _replaced(chunk: wire.TaggedChunk, losses: _Losses) -> tuple[wire.UIMessageChunk, ...]:
    """The replacement for a chunk whose type the release does not know."""
    losses.add(chunk.feature, "$", _REPLACED_AS.get(type(chunk), "left out"))
    if type(chunk) in _AS_DATA:
        return (wire.DataChunk(type=f"data-{chunk.type}", data=_content(chunk)),)
    replacement = _REPLACEMENTS.get(type(chunk))
    return () if replacement is None else tuple(replacement(chunk, losses))


def _denied(chunk: wire.ToolOutputDeniedChunk, _losses: _Losses) -> list[wire.UIMessageChunk]:
    return [wire.ToolOutputErrorChunk(tool_call_id=chunk.tool_call_id, error_text=DENIED)]


def _input_error(chunk: wire.ToolInputErrorChunk, losses: _Losses) -> list[wire.UIMessageChunk]:
    shared = {
        name: getattr(chunk, name)
        for name in ("tool_call_id", "tool_name", "input", "provider_executed", "provider_metadata", "dynamic")
    }
    available = wire.ToolInputAvailableChunk(**shared, title=chunk.title, tool_metadata=chunk.tool_metadata)
    error = wire.ToolOutputErrorChunk(
        tool_call_id=chunk.tool_call_id, error_text=chunk.error_text, dynamic=chunk.dynamic
    )
    return [_known_fields(available, losses), error]


_REPLACEMENTS: dict[type, Callable[[Any, _Losses], list[wire.UIMessageChunk]]] = {
    wire.ToolOutputDeniedChunk: _denied,
    wire.ToolInputErrorChunk: _input_error,
}
_REPLACED_AS: dict[type, str] = {
    **dict.fromkeys(_AS_DATA, "became a data chunk"),
    wire.ToolOutputDeniedChunk: "became an error of the tool",
    wire.ToolInputErrorChunk: "became a call and its error",
}


def _known_fields(chunk: wire.TaggedChunk | wire.DataChunk, losses: _Losses) -> Any:
    chunk = _without_fields(chunk, losses.missing(type(chunk), None), losses, "$")
    if isinstance(chunk, wire.FinishChunk) and chunk.finish_reason is not UNSET:
        feature = finish_reason_feature(chunk.finish_reason)
        if losses.lacks(feature):
            losses.add(feature, "$.finishReason", "became other")
            return replace(chunk, finish_reason="other")
    return chunk


def _without_unknown_keys(chunk: Any, losses: _Losses) -> Any:
    if not chunk.extra or not losses.lacks("unknown-keys"):
        return chunk
    losses.add("unknown-keys", f"$.{next(iter(chunk.extra))}", "left out")
    return replace(chunk, extra={})
