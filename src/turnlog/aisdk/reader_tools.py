"""The tool parts of a message that is being read: how each chunk changes them, in every major version.

Mirrors `src/ui/process-ui-message-stream.ts` of ai 5.0.277, 6.0.326 and 7.0.173. A tool call is looked up by its id
among the parts of the current step, for results also in earlier steps. Transitions between states are not checked,
because the AI SDK accepts any order.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from turnlog.aisdk import chunks as wire
from turnlog.aisdk.base import OptionalMetadata, OptionalText
from turnlog.aisdk.json_text import PartialJson
from turnlog.aisdk.parts import (
    DynamicToolUIPart,
    ToolApproval,
    ToolUIPart,
)
from turnlog.aisdk.reader_parts import PartList
from turnlog.errors import StreamStateError

ToolPart: TypeAlias = ToolUIPart | DynamicToolUIPart

_Kind: TypeAlias = type[ToolUIPart] | type[DynamicToolUIPart] | tuple[type[ToolUIPart], type[DynamicToolUIPart]]

_BOTH = (ToolUIPart, DynamicToolUIPart)

_OUTPUT_STATES = ("output-available", "output-error")

_NO_CALL_5 = "tool-output-error must be preceded by a tool-input-available"


class ToolReader:
    """The tool parts of a message that is being read."""

    def __init__(self, parts: PartList, major: int) -> None:
        """Continue the calls of the current step whose input has not ended."""
        self._parts = parts
        self._major = major
        self._partial: dict[str, _PartialCall] = {}
        for index in range(parts.step_start, len(parts)):
            part = parts[index]
            if isinstance(part, ToolPart) and part.state == "input-streaming":
                self._partial[part.tool_call_id] = self._resumed(part)

    def forget_partial_calls(self) -> None:
        """Close all calls with partial input."""
        self._partial.clear()

    def input_start(self, chunk: wire.ToolInputStartChunk) -> bool:
        """Begin a call."""
        dynamic = chunk.dynamic is True
        call = _PartialCall(chunk.tool_name, dynamic=dynamic, major=self._major)
        update = ToolUpdate(
            tool_call_id=chunk.tool_call_id,
            tool_name=chunk.tool_name,
            state="input-streaming",
            provider_executed=chunk.provider_executed,
        )
        if self._major > 5:
            call.input_encoding = update.input_encoding = chunk.input_encoding
            call.title = update.title = chunk.title
            call.tool_metadata = update.tool_metadata = chunk.tool_metadata
            update.provider_metadata = chunk.provider_metadata
        self._partial[chunk.tool_call_id] = call
        self._put(update, dynamic=dynamic)
        return True

    def input_delta(self, chunk: wire.ToolInputDeltaChunk) -> bool:
        """Take more text of a call's input."""
        call = self._partial.get(chunk.tool_call_id)
        if call is None:
            raise self._missing_start(chunk.tool_call_id)
        call.json.feed(chunk.input_text_delta)
        index = call.index
        # The usual delta: nothing has changed the part since the last one, so its text may wait until the part is read.
        # Otherwise the update goes the long way, which also removes what the AI SDK removes at each update.
        if index is not None and index >= self._parts.step_start and self._parts.without_pending(index) is call.part:
            self._parts.defer(index, call)
            return True
        call.index = self._put(
            ToolUpdate(
                tool_call_id=chunk.tool_call_id,
                tool_name=call.tool_name,
                state="input-streaming",
                input=call.input(),
                raw_input=call.json.text,
                input_encoding=call.input_encoding,
                title=call.title,
                tool_metadata=call.tool_metadata,
            ),
            dynamic=call.dynamic,
        )
        # A part that a delta has rebuilt has no rawInput, so none may be set before the next delta.
        part = self._parts.without_pending(call.index)
        call.part = part if isinstance(part, ToolPart) else None
        return True

    def input_available(self, chunk: wire.ToolInputAvailableChunk) -> bool:
        """Show a call with its whole input."""
        update = ToolUpdate(
            tool_call_id=chunk.tool_call_id,
            tool_name=chunk.tool_name,
            state="input-available",
            input=chunk.input,
            provider_executed=chunk.provider_executed,
            provider_metadata=chunk.provider_metadata,
            title=chunk.title,
            tool_metadata=chunk.tool_metadata,
        )
        self._put(update, dynamic=chunk.dynamic is True)
        return True

    def input_error(self, chunk: wire.ToolInputErrorChunk) -> bool:
        """Show a call whose input is invalid."""
        dynamic = chunk.dynamic is True
        # 5 follows the chunk. Since 6 a call that has a part keeps its kind.
        if self._major > 5:
            existing = self._in_step(chunk.tool_call_id, _BOTH)
            if existing is not None:
                dynamic = isinstance(self._parts[existing], DynamicToolUIPart)
        update = ToolUpdate(
            tool_call_id=chunk.tool_call_id,
            tool_name=chunk.tool_name,
            state="output-error",
            error_text=chunk.error_text,
            provider_executed=chunk.provider_executed,
            provider_metadata=chunk.provider_metadata,
            tool_metadata=chunk.tool_metadata,
        )
        # 7.0.119 moved the broken input of a declared tool from `rawInput` to `input`.
        if dynamic or self._major >= 7:
            update.input = chunk.input
        else:
            update.raw_input = chunk.input
        self._put(update, dynamic=dynamic)
        return True

    def approval_request(self, chunk: wire.ToolApprovalRequestChunk) -> bool:
        """Request an approval for a call."""
        index, part = self._call_part(chunk.tool_call_id)
        approval = ToolApproval(
            id=chunk.approval_id,
            descriptor=UNSET if chunk.approval_descriptor is None else chunk.approval_descriptor,
            input_schema_input=chunk.input_schema_input,
            request_reason=chunk.reason if self._major >= 7 else UNSET,
            is_automatic=True if self._major >= 7 and chunk.is_automatic is True else UNSET,
            signature=chunk.signature,
        )
        self._parts[index] = replace(part, state="approval-requested", approval=approval)
        return True

    def approval_response(self, chunk: wire.ToolApprovalResponseChunk) -> bool:
        """Answer an approval request, given its id."""
        index, part, approval = self._by_approval_id(chunk.approval_id)
        changes: dict[str, Any] = {"approved": chunk.approved}
        if chunk.reason is not UNSET:
            changes["reason"] = chunk.reason
        part = replace(part, state="approval-responded", approval=replace(approval, **changes))
        if chunk.provider_executed is not UNSET:
            part = replace(part, provider_executed=chunk.provider_executed)
        if chunk.provider_metadata is not UNSET:
            part = replace(part, call_provider_metadata=chunk.provider_metadata)
        self._parts[index] = part
        return True

    def output_denied(self, chunk: wire.ToolOutputDeniedChunk) -> bool:
        """Show that a call was denied."""
        index, part = self._call_part(chunk.tool_call_id)
        self._parts[index] = replace(part, state="output-denied")
        return True

    def output_available(self, chunk: wire.ToolOutputAvailableChunk) -> bool:
        """Show the output of a call."""
        index, part = self._result_part(chunk)
        update = self._result(part, "output-available", chunk)
        update.output = chunk.output
        update.preliminary = chunk.preliminary
        # 5 copies it only for static tools.
        if self._major == 5 and isinstance(part, DynamicToolUIPart):
            update.provider_executed = UNSET
        self._parts[index] = updated_part(part, update, self._major)
        return True

    def output_error(self, chunk: wire.ToolOutputErrorChunk) -> bool:
        """Show that a call failed."""
        index, part = self._result_part(chunk)
        update = self._result(part, "output-error", chunk)
        update.error_text = chunk.error_text
        # Each update removes the fields that it does not name; the SDK also copies this one explicitly.
        if isinstance(part, ToolUIPart):
            update.raw_input = part.raw_input
        self._parts[index] = updated_part(part, update, self._major)
        return True

    def _result(
        self, part: ToolPart, state: str, chunk: wire.ToolOutputAvailableChunk | wire.ToolOutputErrorChunk
    ) -> ToolUpdate:
        return ToolUpdate(
            tool_call_id=part.tool_call_id,
            tool_name=part.tool_name,
            state=state,
            input=part.input,
            provider_executed=chunk.provider_executed,
            provider_metadata=chunk.provider_metadata,
            tool_metadata=chunk.tool_metadata,
        )

    def _put(self, update: ToolUpdate, *, dynamic: bool) -> int:
        """Replace the part of this kind and call in the current step, or append one; return its index."""
        index = self._in_step(update.tool_call_id, DynamicToolUIPart if dynamic else ToolUIPart)
        if index is None:
            return self._parts.push(new_part(update, self._major, dynamic=dynamic))
        part = self._parts[index]
        assert isinstance(part, ToolPart)
        self._parts[index] = updated_part(part, update, self._major)
        return index

    def _in_step(self, tool_call_id: str, kind: _Kind) -> int | None:
        """The index of the first part of this kind and call in the current step."""
        for index in range(self._parts.step_start, len(self._parts)):
            part = self._parts.without_pending(index)
            if isinstance(part, kind) and part.tool_call_id == tool_call_id:
                return index
        return None

    def _anywhere(self, tool_call_id: str, kind: _Kind) -> int | None:
        """The same, or else the last one in the whole message."""
        index = self._in_step(tool_call_id, kind)
        if index is not None:
            return index
        for index in range(len(self._parts) - 1, -1, -1):
            part = self._parts.without_pending(index)
            if isinstance(part, kind) and part.tool_call_id == tool_call_id:
                return index
        return None

    def _call_part(self, tool_call_id: str, kind: _Kind = _BOTH) -> tuple[int, ToolPart]:
        index = self._anywhere(tool_call_id, kind)
        if index is None:
            reason = _NO_CALL_5 if self._major == 5 else f'No tool invocation found for tool call ID "{tool_call_id}".'
            raise StreamStateError(reason, chunk_type="tool-invocation", chunk_id=tool_call_id)
        part = self._parts[index]
        assert isinstance(part, ToolPart)
        return index, part

    def _result_part(self, chunk: wire.ToolOutputAvailableChunk | wire.ToolOutputErrorChunk) -> tuple[int, ToolPart]:
        """The call to which a result belongs. In 5 the chunk must repeat that it is dynamic."""
        if self._major > 5:
            return self._call_part(chunk.tool_call_id)
        return self._call_part(chunk.tool_call_id, DynamicToolUIPart if chunk.dynamic is True else ToolUIPart)

    def _by_approval_id(self, approval_id: str) -> tuple[int, ToolPart, ToolApproval]:
        for index in range(len(self._parts)):
            part = self._parts[index]
            if isinstance(part, ToolPart) and part.approval is not UNSET and part.approval.id == approval_id:
                return index, part, part.approval
        reason = f'No tool invocation found for approval ID "{approval_id}".'
        raise StreamStateError(reason, chunk_type="tool-approval-response", chunk_id=approval_id)

    def _missing_start(self, tool_call_id: str) -> StreamStateError:
        reason = (
            "Cannot read properties of undefined (reading 'text')"
            if self._major == 5
            else f'Received tool-input-delta for missing tool call with ID "{tool_call_id}". '
            'Ensure a "tool-input-start" chunk is sent before any "tool-input-delta" chunks.'
        )
        return StreamStateError(reason, chunk_type="tool-input-delta", chunk_id=tool_call_id)

    def _resumed(self, part: ToolPart) -> _PartialCall:
        text = part.raw_input if isinstance(part.raw_input, str) else ""
        dynamic = isinstance(part, DynamicToolUIPart)
        call = _PartialCall(part.tool_name, dynamic=dynamic, major=self._major, text=text)
        if self._major > 5:
            call.input_encoding = part.input_encoding
            call.title = part.title
            call.tool_metadata = part.tool_metadata
        return call


class _PartialCall:
    """A call with partial input, and the part that shows it."""

    def __init__(self, tool_name: str, *, dynamic: bool, major: int, text: str = "") -> None:
        self.tool_name = tool_name
        self.dynamic = dynamic
        self.json = PartialJson(text, version=major)
        self.input_encoding: Any = UNSET
        self.title: OptionalText = UNSET
        self.tool_metadata: Any = UNSET
        self.index: int | None = None
        self.part: ToolPart | None = None

    def input(self) -> Any:
        """The input so far."""
        return self.json.text if self.input_encoding == "text" else self.json.value()

    def apply(self, part: Any) -> Any:
        """The part with the input so far."""
        self.part = replace(part, input=self.input(), raw_input=self.json.text)
        return self.part


class ToolUpdate(msgspec.Struct, kw_only=True):
    """A change of a tool part. Fields that are not set are removed from the part, except for the last four."""

    tool_call_id: str
    tool_name: str
    state: str
    input: Any = UNSET
    raw_input: Any = UNSET
    input_encoding: OptionalText = UNSET
    output: Any = UNSET
    error_text: OptionalText = UNSET
    preliminary: Any = UNSET
    provider_executed: Any = UNSET
    provider_metadata: OptionalMetadata = UNSET
    title: OptionalText = UNSET
    tool_metadata: Any = UNSET


def updated_part(part: ToolPart, update: ToolUpdate, major: int) -> ToolPart:
    """The part after an update, by the rules of a major version."""
    executed = update.provider_executed
    changes: dict[str, Any] = {
        "state": update.state,
        "input": update.input,
        "raw_input": update.raw_input,
        "output": update.output,
        "error_text": update.error_text,
        "preliminary": update.preliminary,
        "provider_executed": part.provider_executed if executed is UNSET else executed,
    }
    if isinstance(part, DynamicToolUIPart):
        changes["tool_name"] = update.tool_name
    if major > 5:
        changes |= _changes_since_6(part, update)
    # 5 takes the metadata of a call from `tool-input-available` alone.
    elif update.provider_metadata is not UNSET and update.state == "input-available":
        changes["call_provider_metadata"] = update.provider_metadata
    return replace(part, **changes)


def _changes_since_6(part: ToolPart, update: ToolUpdate) -> dict[str, Any]:
    changes: dict[str, Any] = {"input_encoding": update.input_encoding}
    if isinstance(part, ToolUIPart):
        changes["type"] = f"tool-{update.tool_name}"
    if update.title is not UNSET:
        changes["title"] = update.title
    if update.tool_metadata is not UNSET:
        changes["tool_metadata"] = update.tool_metadata
    if update.provider_metadata is not UNSET:
        changes[_metadata_field(update.state)] = update.provider_metadata
    return changes


def new_part(update: ToolUpdate, major: int, *, dynamic: bool) -> ToolPart:
    """A new part for a call in its step. A dynamic one begins without its raw input."""
    fields: dict[str, Any] = {
        "tool_call_id": update.tool_call_id,
        "state": update.state,
        "input": update.input,
        "output": update.output,
        "error_text": update.error_text,
        "preliminary": update.preliminary,
        "provider_executed": update.provider_executed,
    }
    if major > 5:
        fields["input_encoding"] = update.input_encoding
        fields["title"] = update.title
        fields["tool_metadata"] = update.tool_metadata
    holder = "call_provider_metadata" if major == 5 else _metadata_field(update.state)
    fields[holder] = update.provider_metadata
    if dynamic:
        return DynamicToolUIPart(tool_name=update.tool_name, **fields)
    return ToolUIPart(type=f"tool-{update.tool_name}", raw_input=update.raw_input, **fields)


def _metadata_field(state: str) -> str:
    return "result_provider_metadata" if state in _OUTPUT_STATES else "call_provider_metadata"
