"""The parts of a message that is being read: how each chunk changes them, in every major version.

Mirrors `src/ui/process-ui-message-stream.ts` of ai 5.0.277, 6.0.326 and 7.0.173. Parts are frozen, so snapshots share
them with the reader. Deltas (text, tool input) wait in a `PendingChange` until the part is read.

A tool call is looked up by its id among the parts of the current step, for results also in earlier steps. Transitions
between states are not checked, because the AI SDK accepts any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from turnlog.aisdk import chunks as wire
from turnlog.aisdk.base import OptionalMetadata, OptionalText
from turnlog.aisdk.json_text import PartialJson, ends_in_half_character, join_surrogates
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
    ToolApproval,
    ToolUIPart,
    UICitation,
    UIMessagePart,
)
from turnlog.errors import StreamStateError


class PendingChange(Protocol):
    """A change of a part that is not applied yet."""

    def apply(self, part: Any) -> Any:
        """The part with everything received."""
        ...


class PartList:
    """Parts by index, and the beginning of the current step, after the last `step-start`."""

    def __init__(self, parts: Iterable[UIMessagePart] = ()) -> None:
        self._parts = list(parts)
        self._pending: dict[int, PendingChange] = {}
        starts = [index for index, part in enumerate(self._parts) if isinstance(part, StepStartUIPart)]
        self.step_start = starts[-1] + 1 if starts else 0

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index: int) -> UIMessagePart:
        if index in self._pending:
            self._parts[index] = self._pending.pop(index).apply(self._parts[index])
        return self._parts[index]

    def __setitem__(self, index: int, part: UIMessagePart) -> None:
        self._pending.pop(index, None)
        self._parts[index] = part

    def without_pending(self, index: int) -> UIMessagePart:
        """The part without its pending change."""
        return self._parts[index]

    # Applied at each delta, a text of n deltas would be copied n times.
    def defer(self, index: int, pending: PendingChange) -> None:
        """Apply `pending` when the part is read."""
        self._pending[index] = pending

    def push(self, part: UIMessagePart) -> int:
        """Append a part; return its index, which is valid until a reset."""
        self._parts.append(part)
        return len(self._parts) - 1

    def start_step(self) -> None:
        """Begin a step."""
        self.step_start = self.push(StepStartUIPart()) + 1

    def reset_step(self) -> bool:
        """Remove the parts of the current step; return whether there were any."""
        dropped = len(self._parts) > self.step_start
        del self._parts[self.step_start :]
        self._pending = {index: pending for index, pending in self._pending.items() if index < self.step_start}
        return dropped

    def snapshot(self) -> tuple[UIMessagePart, ...]:
        """All parts as they are now."""
        for index, pending in self._pending.items():
            self._parts[index] = pending.apply(self._parts[index])
        self._pending.clear()
        return tuple(self._parts)


class OpenText:
    """An open text or reasoning part, with deltas that are not applied yet."""

    __slots__ = ("_deltas", "_is_split", "index")

    def __init__(self, index: int) -> None:
        self.index = index
        self._deltas: list[str] = []
        self._is_split = False

    def add(self, delta: str) -> None:
        """Take a delta."""
        self._deltas.append(delta)
        # Servers in JavaScript cut text between the two UTF-16 halves of a character.
        if ends_in_half_character(delta):
            self._is_split = True

    def apply(self, part: Any) -> Any:
        """The part with all deltas."""
        text = part.text + "".join(self._deltas)
        self._deltas.clear()
        return replace(part, text=join_surrogates(text) if self._is_split else text)


class ContentReader:
    """The parts of a message that is being read, except tool parts. All methods return whether the message changed."""

    def __init__(self, parts: PartList, major: int) -> None:
        self._parts = parts
        self._major = major
        self._texts: dict[str, OpenText] = {}
        self._reasonings: dict[str, OpenText] = {}

    def close_parts(self) -> None:
        """Close all open text and reasoning parts."""
        self._texts.clear()
        self._reasonings.clear()

    def text_start(self, chunk: wire.TextStartChunk) -> bool:
        """Open a text part."""
        part = TextUIPart(text="", state="streaming", provider_metadata=chunk.provider_metadata)
        self._texts[chunk.id] = OpenText(self._parts.push(part))
        return True

    def reasoning_start(self, chunk: wire.ReasoningStartChunk) -> bool:
        """Open a reasoning part."""
        part = ReasoningUIPart(id=chunk.id, text="", state="streaming", provider_metadata=chunk.provider_metadata)
        self._reasonings[chunk.id] = OpenText(self._parts.push(part))
        return True

    def delta(self, chunk: wire.TextDeltaChunk | wire.ReasoningDeltaChunk) -> bool:
        """Add to a text or reasoning part."""
        opened = (self._texts if isinstance(chunk, wire.TextDeltaChunk) else self._reasonings).get(chunk.id)
        if opened is None:
            raise self._missing_start(chunk)
        opened.add(chunk.delta)
        self._parts.defer(opened.index, opened)
        if chunk.provider_metadata is not UNSET:
            self._change(opened, provider_metadata=chunk.provider_metadata)
        return True

    def text_end(self, chunk: wire.TextEndChunk) -> bool:
        """Complete a text part."""
        opened = self._texts.pop(chunk.id, None)
        if opened is None:
            raise self._missing_start(chunk)
        changes: dict[str, Any] = {"state": "done"}
        if self._major >= 7 and chunk.citations is not UNSET:
            changes["citations"] = tuple(_without_unknown_keys(citation) for citation in chunk.citations)
        if chunk.provider_metadata is not UNSET:
            changes["provider_metadata"] = chunk.provider_metadata
        self._change(opened, **changes)
        return True

    def reasoning_end(self, chunk: wire.ReasoningEndChunk) -> bool:
        """Complete a reasoning part."""
        opened = self._reasonings.pop(chunk.id, None)
        if opened is None:
            raise self._missing_start(chunk)
        self._change(opened, state="done")
        if chunk.provider_metadata is not UNSET:
            self._change(opened, provider_metadata=chunk.provider_metadata)
        return True

    def _change(self, opened: OpenText, **changes: Any) -> None:
        self._parts[opened.index] = replace(self._parts[opened.index], **changes)

    def source_url(self, chunk: wire.SourceUrlChunk) -> bool:
        """Add a web page."""
        self._parts.push(
            SourceUrlUIPart(
                source_id=chunk.source_id,
                url=chunk.url,
                title=chunk.title,
                provider_metadata=chunk.provider_metadata,
            )
        )
        return True

    def source_document(self, chunk: wire.SourceDocumentChunk) -> bool:
        """Add a document."""
        self._parts.push(
            SourceDocumentUIPart(
                source_id=chunk.source_id,
                media_type=chunk.media_type,
                title=chunk.title,
                filename=chunk.filename,
                provider_metadata=chunk.provider_metadata,
            )
        )
        return True

    def file(self, chunk: wire.FileChunk | wire.ReasoningFileChunk) -> bool:
        """Add a file."""
        struct = FileUIPart if isinstance(chunk, wire.FileChunk) else ReasoningFileUIPart
        # 5 has no metadata on the part of a streamed file.
        metadata = UNSET if self._major == 5 else chunk.provider_metadata
        self._parts.push(struct(media_type=chunk.media_type, url=chunk.url, provider_metadata=metadata))
        return True

    def custom(self, chunk: wire.CustomChunk) -> bool:
        """Add a provider's own content."""
        self._parts.push(CustomUIPart(kind=chunk.kind, provider_metadata=chunk.provider_metadata))
        return True

    def steering_message(self, chunk: wire.SteeringMessageChunk) -> bool:
        """Add a steering message."""
        self._parts.push(SteeringMessageUIPart(id=chunk.id, parts=chunk.parts))
        return True

    def data(self, chunk: wire.DataChunk) -> bool:
        """Add data, or replace the data with the same id; transient data is ignored."""
        if chunk.transient is True:
            return False
        index = None if chunk.id is UNSET else self._data_part(chunk)
        if index is None:
            self._parts.push(
                DataUIPart(type=chunk.type, data=chunk.data, id=chunk.id, transient=chunk.transient, extra=chunk.extra)
            )
        else:
            # New data replaces the old; the AI SDK does not merge it.
            self._parts[index] = replace(self._parts[index], data=chunk.data)
        return True

    def _data_part(self, chunk: wire.DataChunk) -> int | None:
        for index in range(len(self._parts)):
            part = self._parts.without_pending(index)
            if isinstance(part, DataUIPart) and part.type == chunk.type and part.id == chunk.id:
                return index
        return None

    def _missing_start(
        self,
        chunk: wire.TextDeltaChunk | wire.TextEndChunk | wire.ReasoningDeltaChunk | wire.ReasoningEndChunk,
    ) -> StreamStateError:
        kind = chunk.type.partition("-")[0]
        reason = (
            f'Received {chunk.type} for missing {kind} part with ID "{chunk.id}". '
            f'Ensure a "{kind}-start" chunk is sent before any "{chunk.type}" chunks.'
        )
        if self._major == 5:
            key: str = chunk.type
            if isinstance(chunk, wire.ReasoningEndChunk) and chunk.provider_metadata is not UNSET:
                key = "reasoning-end with metadata"
            reason = f"Cannot {_MISSING_START_5[key]}"
        return StreamStateError(reason, chunk_type=chunk.type, chunk_id=chunk.id)


_MISSING_START_5 = {
    "text-delta": "read properties of undefined (reading 'text')",
    "text-end": "set properties of undefined (setting 'state')",
    "reasoning-delta": "read properties of undefined (reading 'text')",
    "reasoning-end": "read properties of undefined (reading 'providerMetadata')",
    "reasoning-end with metadata": "set properties of undefined (setting 'providerMetadata')",
}
"""5 does not check this before it writes."""


def _without_unknown_keys(citation: UICitation) -> UICitation:
    """A citation as the client stores it; chunks of other kinds keep unknown keys."""
    return replace(citation, source=replace(citation.source, extra={}), extra={})


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
