"""The tool calls of one written stream: each has a state, and every event is a transition of it or is refused.

`ToolInputChunks` writes inputs and approvals, `ToolCallChunks` outputs and the end of open calls. Calls are independent
of each other (R-O6). `model.parts.TRANSITIONS` decides which state may follow which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from msgspec import UNSET, UnsetType

from turnlog.aisdk.base import ProviderMetadata
from turnlog.aisdk.chunks import (
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
    UIMessageChunk,
)
from turnlog.aisdk.parts import DynamicToolUIPart, ToolUIPart, UIMessage
from turnlog.aisdk.versions import SdkVersion, supports
from turnlog.aisdk.writer_parts import AddLoss, Chunks, RefusedEvent, input_of, metadata_of, output_of
from turnlog.model.parts import OPEN_STATES, STATE_OF_STATUS, ToolResult, ToolState, can_advance
from turnlog.model.stream import (
    ApprovalRequest,
    ApprovalResponse,
    ToolInputAvailable,
    ToolInputDelta,
    ToolInputStart,
    ToolOutput,
)


class SentCall:
    """One call as the client sees it."""

    __slots__ = (
        "approval_id",
        "approved",
        "dynamic",
        "final",
        "name",
        "provider_executed",
        "request_sent",
        "state",
        "text",
    )

    def __init__(self, name: str, *, dynamic: bool, provider_executed: bool, state: ToolState) -> None:
        self.name = name
        self.dynamic = dynamic
        self.provider_executed = provider_executed
        self.state = state
        self.text: list[str] = []
        self.final = False
        """Whether an output came that is not preliminary."""
        self.approval_id: str | None = None
        self.request_sent = False
        """Whether the client has received the approval request."""
        self.approved: bool | None = None


class ToolInputChunks:
    """The calls of one stream; each method returns the chunks of one event or raises RefusedEvent."""

    def __init__(
        self, release: SdkVersion, add_loss: AddLoss, *, dynamic: bool = True, continued: UIMessage | None = None
    ) -> None:
        """Write for a release and a kind of tool parts, continuing the calls of a message that is continued."""
        self._dynamic = dynamic
        self._add_loss = add_loss
        self._calls: dict[str, SentCall] = {}
        self._by_approval: dict[str, str] = {}
        self._has_approvals = supports(release, "approvals")
        self._has_live_approvals = supports(release, "automatic-approvals")
        self._has_reasons = supports(release, "approval-request-reason")
        self._has_preliminary = supports(release, "preliminary-output")
        self._has_result_metadata = supports(release, "result-metadata")
        # The client of 5 needs the flag again with each output.
        self._output_is_dynamic = release.major == 5
        for part in () if continued is None else continued.parts:
            if isinstance(part, ToolUIPart | DynamicToolUIPart):
                self._continue_call(part)

    def _continue_call(self, part: ToolUIPart | DynamicToolUIPart) -> None:
        state = ToolState(part.state)
        call = SentCall(
            part.tool_name,
            dynamic=isinstance(part, DynamicToolUIPart),
            provider_executed=part.provider_executed is True,
            state=state,
        )
        call.final = state not in OPEN_STATES and part.preliminary is not True
        if isinstance(part.raw_input, str):
            call.text.append(part.raw_input)
        if part.approval is not UNSET:
            call.approval_id, call.request_sent = part.approval.id, True
            call.approved = None if part.approval.approved is UNSET else part.approval.approved
            self._by_approval[part.approval.id] = part.tool_call_id
        self._calls[part.tool_call_id] = call

    @property
    def has_open_calls(self) -> bool:
        """Whether a call has neither an output nor an end."""
        return any(call.state in OPEN_STATES for call in self._calls.values())

    # Input

    def start_input(self, event: ToolInputStart) -> Chunks:
        """The arguments begin to arrive."""
        self._refuse_repeated(event.tool_call_id)
        call = self._begin(event.tool_call_id, event.tool_name, event.provider_executed, ToolState.INPUT_STREAMING)
        return [
            ToolInputStartChunk(
                tool_call_id=event.tool_call_id,
                tool_name=event.tool_name,
                provider_executed=if_true(event.provider_executed),
                dynamic=if_true(call.dynamic),
            )
        ]

    def add_input(self, event: ToolInputDelta) -> Chunks:
        """More text of the arguments."""
        call = self._known(event.tool_call_id)
        if call.state is not ToolState.INPUT_STREAMING:
            raise RefusedEvent(f"the input of call {event.tool_call_id!r} is complete")
        if not event.delta:
            return []
        call.text.append(event.delta)
        return [ToolInputDeltaChunk(tool_call_id=event.tool_call_id, input_text_delta=event.delta)]

    def complete_input(self, event: ToolInputAvailable) -> Chunks:
        """The complete arguments, with or without a beginning."""
        call = self._calls.get(event.tool_call_id)
        if call is not None and call.state is not ToolState.INPUT_STREAMING:
            raise RefusedEvent(f"call {event.tool_call_id!r} has its input already")
        value = input_of(event.input, event.input_text, "" if call is None else "".join(call.text))
        provider = metadata_of(event.provider)
        if call is None:
            state = ToolState.INPUT_AVAILABLE
            call = self._begin(event.tool_call_id, event.tool_name, event.provider_executed, state)
        # The name may differ from that of the start; since 6 the part follows it.
        call.name = event.tool_name
        call.provider_executed = call.provider_executed or event.provider_executed
        return [self._available(event.tool_call_id, call, value, provider)]

    def complete_inputs(self) -> Chunks:
        """End the input of all calls that still stream: a client looks for them only in the step where they began."""
        streaming = {key: call for key, call in self._calls.items() if call.state is ToolState.INPUT_STREAMING}
        return [self._complete(key, call) for key, call in streaming.items()]

    def _begin(self, tool_call_id: str, name: str, provider_executed: bool, state: ToolState) -> SentCall:
        call = SentCall(name, dynamic=self._dynamic, provider_executed=provider_executed, state=state)
        self._calls[tool_call_id] = call
        return call

    def _complete(self, tool_call_id: str, call: SentCall) -> UIMessageChunk:
        return self._available(tool_call_id, call, input_of(UNSET, None, "".join(call.text)), UNSET)

    def _available(
        self, tool_call_id: str, call: SentCall, value: Any, provider: ProviderMetadata | UnsetType
    ) -> UIMessageChunk:
        call.state = ToolState.INPUT_AVAILABLE
        call.text.clear()
        return ToolInputAvailableChunk(
            tool_call_id=tool_call_id,
            tool_name=call.name,
            input=value,
            provider_executed=if_true(call.provider_executed),
            provider_metadata=provider,
            dynamic=if_true(call.dynamic),
        )

    # Approvals

    def request(self, event: ApprovalRequest) -> Chunks:
        """The agent requests an approval. If no response can follow in the stream, it is sent at the end (pause)."""
        call = self._known(event.tool_call_id)
        if event.approval_id in self._by_approval:
            raise RefusedEvent(f"approval {event.approval_id!r} was asked for before")
        if call.state not in (ToolState.INPUT_STREAMING, ToolState.INPUT_AVAILABLE) or call.approval_id is not None:
            raise RefusedEvent(f"call {event.tool_call_id!r} waits for no approval")
        chunks = self._completed_input(event.tool_call_id, call)
        if not self._has_approvals:
            self._add_loss("approvals", "this release cannot ask whether a call may run")
            return chunks
        call.approval_id = event.approval_id
        self._by_approval[event.approval_id] = event.tool_call_id
        if event.reason is not None and not self._has_reasons:
            self._add_loss("approval-request-reason", "this release has no field for why the agent asks")
        # A client of 6 cannot receive the answer within the stream: there, the request is sent when the run pauses
        # (`leave_open_calls`).
        if self._has_live_approvals:
            chunks.append(self._send_request(event.tool_call_id, call, event.reason))
        return chunks

    def _send_request(self, tool_call_id: str, call: SentCall, reason: str | None = None) -> UIMessageChunk:
        call.state, call.request_sent = ToolState.APPROVAL_REQUESTED, True
        approval_id = call.approval_id = call.approval_id or tool_call_id
        self._by_approval[approval_id] = tool_call_id
        return ToolApprovalRequestChunk(
            approval_id=approval_id,
            tool_call_id=tool_call_id,
            reason=reason if reason is not None and self._has_reasons else UNSET,
        )

    def respond(self, event: ApprovalResponse) -> Chunks:
        """The request was answered."""
        tool_call_id = self._by_approval.get(event.approval_id)
        if tool_call_id is None:
            if not self._has_approvals:
                return []  # The loss was recorded at the request.
            raise RefusedEvent(f"approval {event.approval_id!r} was never asked for")
        call = self._calls[tool_call_id]
        if call.state not in (ToolState.INPUT_AVAILABLE, ToolState.APPROVAL_REQUESTED) or call.approved is not None:
            raise RefusedEvent(f"approval {event.approval_id!r} is no longer waited for")
        call.approved = event.approved
        if not self._has_live_approvals:
            if not call.request_sent:
                self._add_loss(
                    "automatic-approvals", "this release has no chunk for an answer; it never sees the question"
                )
            return []
        return [self._send_response(call, event.approved, event.reason)]

    def _send_response(self, call: SentCall, approved: bool, reason: str | None) -> UIMessageChunk:
        call.state, call.approved = ToolState.APPROVAL_RESPONDED, approved
        return ToolApprovalResponseChunk(
            approval_id=call.approval_id or "",
            approved=approved,
            reason=UNSET if reason is None else reason,
        )

    def _completed_input(self, tool_call_id: str, call: SentCall) -> Chunks:
        return [self._complete(tool_call_id, call)] if call.state is ToolState.INPUT_STREAMING else []

    def _known(self, tool_call_id: str) -> SentCall:
        call = self._calls.get(tool_call_id)
        if call is None:
            raise RefusedEvent(f"there is no call {tool_call_id!r}")
        return call

    def _refuse_repeated(self, tool_call_id: str) -> None:
        if tool_call_id in self._calls:
            raise RefusedEvent(f"call {tool_call_id!r} has begun before")


def if_true(flag: bool) -> bool | UnsetType:
    """A flag as a field that is left out if it is false."""
    return True if flag else UNSET


FAILED = "The tool failed."
ABORTED = "The tool call was aborted."
DENIED = "The tool call was denied."


class ToolCallChunks(ToolInputChunks):
    """The calls of one stream and their outcomes."""

    def add_output(self, event: ToolOutput) -> Chunks:
        """A result, of any status, final or not."""
        call, result = self._known(event.tool_call_id), event.result
        following = STATE_OF_STATUS.get(result.status)
        if following is None or not can_advance(call.state, following):
            raise RefusedEvent(f"call {event.tool_call_id!r} cannot go from {call.state} to {result.status}")
        # A preliminary output has the state of a final one, and a client would show it instead of the final one.
        if result.preliminary and (call.final or result.status != "success"):
            raise RefusedEvent(f"call {event.tool_call_id!r} can have no preliminary {result.status} now")
        if result.preliminary and not self._has_preliminary:
            self._add_loss("preliminary-output", "this release shows final outputs only")
            return []
        return self._outputs[result.status](self, event.tool_call_id, call, result)

    def _success(self, tool_call_id: str, call: SentCall, result: ToolResult) -> Chunks:
        if call.approved is False:
            raise RefusedEvent(f"call {tool_call_id!r} was not allowed to run")
        output = output_of(result)
        chunks = [*self._completed_input(tool_call_id, call), *self._settle_approval(call)]
        if call.final:
            self._add_loss(
                "several-results", "a call shows its last result; this one takes the place of an earlier one"
            )
        call.state, call.final = ToolState.OUTPUT_AVAILABLE, not result.preliminary
        chunks.append(
            ToolOutputAvailableChunk(
                tool_call_id=tool_call_id,
                output=output,
                provider_executed=if_true(call.provider_executed),
                dynamic=if_true(call.dynamic and self._output_is_dynamic),
                preliminary=if_true(result.preliminary),
            )
        )
        return chunks

    def _failure(self, tool_call_id: str, call: SentCall, result: ToolResult) -> Chunks:
        if call.approved is False:
            return self._denial(tool_call_id, call, result)
        if len(result.content) > sum(part.type == "text" for part in result.content):
            self._add_loss("error-content", "an error holds text only")
        return self._fail(tool_call_id, call, _reason(result, FAILED), ToolState.OUTPUT_ERROR)

    def _abortion(self, tool_call_id: str, call: SentCall, result: ToolResult) -> Chunks:
        if call.approved is False:
            return self._denial(tool_call_id, call, result)
        return self._fail(tool_call_id, call, _reason(result, ABORTED), ToolState.ABORTED)

    def _denial(self, tool_call_id: str, call: SentCall, result: ToolResult) -> Chunks:
        """A denial; in a release that cannot show one, an error with its text."""
        # Below it would become an error, which AI SDK 7 calls invalid on a denied call.
        if call.state is ToolState.OUTPUT_DENIED:
            raise RefusedEvent(f"call {tool_call_id!r} was denied already")
        is_shown = call.request_sent and call.approved is False
        if call.state not in OPEN_STATES or not (is_shown or self._has_live_approvals):
            feature = "automatic-approvals" if self._has_approvals else "approvals"
            self._add_loss(feature, "this release has no chunk for a denied call; it is shown as an error")
            return self._fail(tool_call_id, call, _reason(result, DENIED), ToolState.OUTPUT_ERROR)
        # Validators require an approval with `approved: false` on a denied part, so both are sent even if a rule of the
        # agent decided without asking.
        chunks = self._completed_input(tool_call_id, call)
        if not call.request_sent:
            chunks.append(self._send_request(tool_call_id, call))
        if call.approved is not False:
            chunks.append(self._send_response(call, False, _reason(result, DENIED)))
        call.state, call.final = ToolState.OUTPUT_DENIED, True
        chunks.append(ToolOutputDeniedChunk(tool_call_id=tool_call_id))
        return chunks

    def _fail(self, tool_call_id: str, call: SentCall, text: str, state: ToolState) -> Chunks:
        chunks = [*self._completed_input(tool_call_id, call), *self._settle_approval(call)]
        aborted = state is ToolState.ABORTED
        if aborted and not self._has_result_metadata:
            self._add_loss("result-metadata", "this release has no chunk for a call that was aborted and did not fail")
        if call.final:
            self._add_loss(
                "several-results", "a call shows its last result; this one takes the place of an earlier one"
            )
        call.state, call.final = state, True
        chunks.append(
            ToolOutputErrorChunk(
                tool_call_id=tool_call_id,
                error_text=text,
                provider_executed=if_true(call.provider_executed),
                dynamic=if_true(call.dynamic and self._output_is_dynamic),
                provider_metadata=ABORTED_METADATA if aborted and self._has_result_metadata else UNSET,
            )
        )
        return chunks

    def _settle_approval(self, call: SentCall) -> Chunks:
        """An output implies that the call was approved; a part may not have one while its request is open."""
        if not call.request_sent or call.approved is not None:
            return []
        if self._has_live_approvals:
            return [self._send_response(call, True, None)]
        raise RefusedEvent("the client was asked whether the call may run, and this release gets the answer only there")

    # The end

    def leave_open_calls(self) -> Chunks:
        """The run waits, or leaves calls to the client: complete inputs and send open approval requests."""
        chunks = self.complete_inputs()
        for key, call in self._calls.items():
            if call.state is ToolState.INPUT_AVAILABLE and call.approval_id is not None and call.approved is None:
                chunks.append(self._send_request(key, call))
        return chunks

    def abort_open_calls(self) -> Chunks:
        """The run is over: calls that wait will never have an output."""
        aborted = ToolResult(id="", status="aborted")
        waiting = [(key, call) for key, call in self._calls.items() if call.state in OPEN_STATES]
        return [chunk for key, call in waiting for chunk in self._abort(key, call, aborted)]

    def _abort(self, tool_call_id: str, call: SentCall, aborted: ToolResult) -> Chunks:
        if call.request_sent and call.approved is None:
            # The request is open, and no release can show that it is obsolete.
            return self._denial(tool_call_id, call, aborted) if self._has_live_approvals else []
        return self._abortion(tool_call_id, call, aborted)

    _outputs: ClassVar[dict[str, Callable[[ToolCallChunks, str, SentCall, ToolResult], Chunks]]] = {
        "success": _success,
        "error": _failure,
        "aborted": _abortion,
        "denied": _denial,
    }
    """Status of a result -> the method that writes it."""


ABORTED_METADATA: ProviderMetadata = {"turnlog": {"state": "aborted"}}


def _reason(result: ToolResult, default: str) -> str:
    return result.error_text or result.output_text or default
