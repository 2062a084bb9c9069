"""Tool parts of anybody's UI messages -> canonical tool calls, each state with the result that it tells of."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.aisdk.building import to_plain
from turnlog.aisdk.marks import Marks
from turnlog.aisdk.outputs import parse_output
from turnlog.aisdk.parts import DynamicToolUIPart, ToolApproval, ToolUIPart
from turnlog.aisdk.provider_names import provider_of
from turnlog.model import Approval, ResultStatus, TextPart, ToolCallPart, ToolResult, ToolState
from turnlog.model.codec import repair_text, to_json

ToolPart = ToolUIPart | DynamicToolUIPart
ValueT = TypeVar("ValueT")

_STATUS_OF_STATE: dict[str, ResultStatus] = {
    "output-available": "success",
    "output-error": "error",
    "output-denied": "denied",
}


def call_of(part: ToolPart) -> ToolCallPart:
    """The call that a tool part tells of, with its result where it has one."""
    status = "aborted" if _is_aborted(part) else _STATUS_OF_STATE.get(part.state)
    text, value = _input(part)
    return ToolCallPart(
        tool_call_id=part.tool_call_id,
        tool_name=part.tool_name,
        input=value,
        input_text=text,
        state=ToolState.ABORTED if status == "aborted" else ToolState(part.state),
        title=_or_none(part.title),
        approval=None if part.approval is UNSET else _approval(part.approval),
        provider_executed=part.provider_executed is True,
        results=() if status is None else (_result(part, status),),
        provider=provider_of(part.call_provider_metadata),
        metadata=_marks(part).to_metadata(),
    )


def _is_aborted(part: ToolPart) -> bool:
    """Whether a failed call is one that `to_calls` or the writer says was aborted; this may be believed of anybody."""
    told = (part.call_provider_metadata, part.result_provider_metadata)
    return part.state == "output-error" and any(
        metadata is not UNSET and metadata.get("turnlog") == {"state": "aborted"} for metadata in told
    )


def _input(part: ToolPart) -> tuple[str | None, Raw | UnsetType]:
    """The input as text where it is not whole or no JSON, and else as JSON."""
    if part.input is not UNSET:
        return None, to_json(to_plain(part.input))
    if isinstance(part.raw_input, str):
        return part.raw_input, UNSET
    return None, UNSET if part.raw_input is UNSET else to_json(to_plain(part.raw_input))


def _result(part: ToolPart, status: ResultStatus) -> ToolResult:
    name = f"{part.tool_call_id}:result"
    if status in ("error", "aborted"):
        return ToolResult(id=name, status=status, error_text=_or_none(part.error_text))
    if status == "denied":
        reason = None if part.approval is UNSET else _or_none(part.approval.reason)
        return ToolResult(id=name, status=status, error_text=reason)
    text, marks = _output_text(to_plain(part.output))
    return ToolResult(
        id=name,
        content=() if text is None else (TextPart(text=text),),
        preliminary=part.preliminary is True,
        metadata=marks.to_metadata(),
    )


def _output_text(output: Any) -> tuple[str | None, Marks]:
    """The text that stands for an output; marked where it would be taken for JSON and is none, or the reverse."""
    if output is None or output is UNSET:
        return None, Marks()
    if isinstance(output, str):
        text = repair_text(output)
        return text, Marks(text_output=parse_output(Raw(msgspec.json.encode(text))) is not None)
    return bytes(to_json(output)).decode(), Marks()


def _approval(approval: ToolApproval) -> Approval:
    fields = {
        "signature": approval.signature,
        "descriptor": approval.descriptor,
        "inputSchemaInput": approval.input_schema_input,
        "requestReason": approval.request_reason,
        "isAutomatic": approval.is_automatic,
    }
    return Approval(
        id=approval.id,
        approved=_or_none(approval.approved),
        reason=_or_none(approval.reason),
        metadata=Marks(fields=_set(fields)).to_metadata(),
    )


def _marks(part: ToolPart) -> Marks:
    fields = {"toolMetadata": part.tool_metadata, "resultProviderMetadata": part.result_provider_metadata}
    return Marks(named=isinstance(part, ToolUIPart), fields=_set(fields))


def _set(fields: dict[str, Any]) -> dict[str, Raw]:
    return {name: to_json(to_plain(value)) for name, value in fields.items() if value is not UNSET}


def _or_none(value: ValueT | UnsetType) -> ValueT | None:
    return None if value is UNSET else value
