"""The chunks from which a client builds a message that is complete so far: UIMessage -> chunks.

A page that comes back to a stream builds its message from nothing, also where the stream continues an older message.
These chunks are that older message. A call with an output gets its input as text: at a `tool-input-available` chunk a
page would run its tool once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET

from turnlog.aisdk.checks import known_chunks
from turnlog.aisdk.chunks import (
    CustomChunk,
    DataChunk,
    FileChunk,
    FinishStepChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningFileChunk,
    ReasoningStartChunk,
    SourceDocumentChunk,
    SourceUrlChunk,
    StartChunk,
    StartStepChunk,
    SteeringMessageChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputErrorChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
    UIMessageChunk,
)
from turnlog.aisdk.codec import to_plain
from turnlog.aisdk.downgrade import downgrade_chunk, downgrade_ui_message
from turnlog.aisdk.parts import (
    CustomUIPart,
    DataUIPart,
    DynamicToolUIPart,
    FileUIPart,
    ReasoningFileUIPart,
    ReasoningUIPart,
    SourceDocumentUIPart,
    SourceUrlUIPart,
    SteeringMessageUIPart,
    StepStartUIPart,
    TextUIPart,
    ToolUIPart,
    UIMessage,
    UIMessagePart,
)
from turnlog.aisdk.versions import SdkVersion, Version, sdk_version
from turnlog.arguments import checked

Chunks: TypeAlias = list[UIMessageChunk]


@checked
def message_chunks(message: UIMessage, *, version: Version = 7) -> list[UIMessageChunk]:
    """The chunks of an assistant message from its `start` to the end of its last step, without a `finish`."""
    release = sdk_version(version)
    shown = [each for each in downgrade_ui_message(message, version=release).messages if each.id == message.id]
    found: Chunks = [StartChunk(message_id=message.id, message_metadata=message.metadata)]
    in_step = False
    for index, part in enumerate(part for each in shown for part in each.parts):
        if isinstance(part, StepStartUIPart):
            found += [FinishStepChunk()] * in_step
            in_step = True
        found += _part(part, f"replayed-{index}", release)
    made = [*found, *[FinishStepChunk()] * in_step]
    return [shown for chunk in made for shown in downgrade_chunk(chunk, version=release).chunks]


def _part(part: UIMessagePart, part_id: str, release: SdkVersion) -> Chunks:
    if isinstance(part, ToolUIPart | DynamicToolUIPart):
        return _call(part, release)
    make = _PARTS.get(type(part))
    return [] if make is None else make(part, part_id)


def _text(part: TextUIPart, part_id: str) -> Chunks:
    return [
        TextStartChunk(id=part_id, provider_metadata=part.provider_metadata),
        *([TextDeltaChunk(id=part_id, delta=part.text)] if part.text else []),
        TextEndChunk(id=part_id, citations=part.citations),
    ]


def _reasoning(part: ReasoningUIPart, part_id: str) -> Chunks:
    own_id = part_id if part.id is UNSET else part.id
    return [
        ReasoningStartChunk(id=own_id, provider_metadata=part.provider_metadata),
        *([ReasoningDeltaChunk(id=own_id, delta=part.text)] if part.text else []),
        ReasoningEndChunk(id=own_id),
    ]


def _fields(chunk: type[Any], *names: str) -> Callable[[Any, str], Chunks]:
    """Makes the chunk that has the same fields as its part."""
    return lambda part, _: [chunk(**{name: getattr(part, name) for name in names})]


_PARTS: Final[Mapping[type, Callable[[Any, str], Chunks]]] = MappingProxyType(
    {
        StepStartUIPart: _fields(StartStepChunk),
        TextUIPart: _text,
        ReasoningUIPart: _reasoning,
        SourceUrlUIPart: _fields(SourceUrlChunk, "source_id", "url", "title", "provider_metadata"),
        SourceDocumentUIPart: _fields(
            SourceDocumentChunk, "source_id", "media_type", "title", "filename", "provider_metadata"
        ),
        FileUIPart: _fields(FileChunk, "url", "media_type", "provider_metadata"),
        ReasoningFileUIPart: _fields(ReasoningFileChunk, "url", "media_type", "provider_metadata"),
        CustomUIPart: _fields(CustomChunk, "kind", "provider_metadata"),
        SteeringMessageUIPart: _fields(SteeringMessageChunk, "id", "parts"),
        DataUIPart: _fields(DataChunk, "type", "data", "id"),
    }
)


# -- calls

_OPEN: Final = ("input-available", "approval-requested", "approval-responded")


def _call(part: ToolUIPart | DynamicToolUIPart, release: SdkVersion) -> Chunks:
    return [*_input(part), *_approval(part, release), *_outcome(part)]


def _input(part: ToolUIPart | DynamicToolUIPart) -> Chunks:
    dynamic = True if isinstance(part, DynamicToolUIPart) else UNSET
    facts: dict[str, Any] = {
        "tool_call_id": part.tool_call_id,
        "tool_name": part.tool_name,
        "provider_executed": part.provider_executed,
        "provider_metadata": part.call_provider_metadata,
        "dynamic": dynamic,
        "title": part.title,
        "tool_metadata": part.tool_metadata,
    }
    if part.state == "output-error" and (part.input is UNSET or isinstance(part, ToolUIPart)):
        # The client keeps the text of an input beside it in a failed call of a declared tool, and then refuses both.
        given = part.raw_input if part.input is UNSET else part.input
        return [ToolInputErrorChunk(**facts, input=None if given is UNSET else given, error_text=_error_text(part))]
    if part.state in _OPEN or part.state == "output-denied":
        return [ToolInputAvailableChunk(**facts, input=part.input)]
    is_partial = part.state == "input-streaming"
    text = part.raw_input if is_partial else msgspec.json.encode(to_plain(part.input)).decode()
    delta = ToolInputDeltaChunk(tool_call_id=part.tool_call_id, input_text_delta=text if isinstance(text, str) else "")
    return [ToolInputStartChunk(**facts, input_encoding=part.input_encoding if is_partial else UNSET), delta]


def _approval(part: ToolUIPart | DynamicToolUIPart, release: SdkVersion) -> Chunks:
    approval = part.approval
    if approval is UNSET:
        return []
    if approval.approved is True and ToolApprovalResponseChunk.type not in known_chunks(release):
        # The release has no chunk for the answer: the page would ask again.
        return []
    request = ToolApprovalRequestChunk(
        approval_id=approval.id,
        tool_call_id=part.tool_call_id,
        signature=approval.signature,
        approval_descriptor=approval.descriptor,
        input_schema_input=approval.input_schema_input,
        reason=approval.request_reason,
        is_automatic=approval.is_automatic,
    )
    if approval.approved is UNSET:
        return [request]
    answer = ToolApprovalResponseChunk(approval_id=approval.id, approved=approval.approved, reason=approval.reason)
    return [request, answer]


def _outcome(part: ToolUIPart | DynamicToolUIPart) -> Chunks:
    facts: dict[str, Any] = {
        "tool_call_id": part.tool_call_id,
        "provider_executed": part.provider_executed,
        "dynamic": True if isinstance(part, DynamicToolUIPart) else UNSET,
        "provider_metadata": part.result_provider_metadata,
        "tool_metadata": part.tool_metadata,
    }
    if part.state == "output-available":
        return [ToolOutputAvailableChunk(**facts, output=part.output, preliminary=part.preliminary)]
    if part.state == "output-error":
        return [ToolOutputErrorChunk(**facts, error_text=_error_text(part))]
    if part.state == "output-denied":
        return [ToolOutputDeniedChunk(tool_call_id=part.tool_call_id)]
    return []


def _error_text(part: ToolUIPart | DynamicToolUIPart) -> str:
    return "" if part.error_text is UNSET else part.error_text
