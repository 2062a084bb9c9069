"""Tool calls of one stream: each has a state, and every event is a step in it or is refused.

Knows what must come before: an output follows its whole input, a refusal its question. `model.tools.TRANSITIONS` is the
judge of the order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from msgspec import UNSET

from turnlog.aisdk.base import ProviderMetadata
from turnlog.aisdk.tool_chunks import ToolOutputAvailableChunk, ToolOutputDeniedChunk, ToolOutputErrorChunk
from turnlog.aisdk.writer_base import Chunks, RefusedEvent
from turnlog.aisdk.writer_inputs import Call, ToolInputs, if_true
from turnlog.aisdk.writer_values import output_of
from turnlog.model.parts import ToolResult
from turnlog.model.stream import ToolOutput
from turnlog.model.tools import OPEN_STATES, STATE_OF_STATUS, ToolState, can_advance

FAILED = "The tool failed."
ABORTED = "The tool call was aborted."
DENIED = "The tool call was denied."


class ToolCalls(ToolInputs):
    """The calls of one stream with what comes of them."""

    def add_output(self, event: ToolOutput) -> Chunks:
        """A result, of any status, final or not."""
        call, result = self._known(event.tool_call_id), event.result
        following = STATE_OF_STATUS.get(result.status)
        if following is None or not can_advance(call.state, following):
            raise RefusedEvent(f"call {event.tool_call_id!r} cannot go from {call.state} to {result.status}")
        if result.preliminary and (call.final or result.status != "success"):
            raise RefusedEvent(f"call {event.tool_call_id!r} can have no preliminary {result.status} now")
        if result.preliminary and not self._has_preliminary:
            self._lose("preliminary-output", "this release shows final outputs only")
            return []
        return self._outputs[result.status](self, event.tool_call_id, call, result)

    def _success(self, tool_call_id: str, call: Call, result: ToolResult) -> Chunks:
        if call.approved is False:
            raise RefusedEvent(f"call {tool_call_id!r} was not allowed to run")
        output = output_of(result)
        chunks = [*self._with_whole_input(tool_call_id, call), *self._settle_question(call)]
        if call.final:
            self._lose("several-results", "a call shows its last result; this one takes the place of an earlier one")
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

    def _failure(self, tool_call_id: str, call: Call, result: ToolResult) -> Chunks:
        if call.approved is False:
            return self._denial(tool_call_id, call, result)
        if len(result.content) > sum(part.type == "text" for part in result.content):
            self._lose("error-content", "an error holds text only")
        return self._fail(tool_call_id, call, _said(result, FAILED), ToolState.OUTPUT_ERROR)

    def _abortion(self, tool_call_id: str, call: Call, result: ToolResult) -> Chunks:
        if call.approved is False:
            return self._denial(tool_call_id, call, result)
        return self._fail(tool_call_id, call, _said(result, ABORTED), ToolState.ABORTED)

    def _denial(self, tool_call_id: str, call: Call, result: ToolResult) -> Chunks:
        """A refusal; where the client cannot be told who refused, it is an error that says so."""
        if call.state is ToolState.OUTPUT_DENIED:
            raise RefusedEvent(f"call {tool_call_id!r} was denied already")
        told = call.asked and call.approved is False
        if call.state not in OPEN_STATES or not (told or self._answers_live):
            feature = "automatic-approvals" if self._has_approvals else "approvals"
            self._lose(feature, "this release cannot be told that a call was denied; it is shown as an error")
            return self._fail(tool_call_id, call, _said(result, DENIED), ToolState.OUTPUT_ERROR)
        chunks = self._with_whole_input(tool_call_id, call)
        if not call.asked:
            chunks.append(self._ask(tool_call_id, call))
        if call.approved is not False:
            chunks.append(self._respond(call, False, _said(result, DENIED)))
        call.state, call.final = ToolState.OUTPUT_DENIED, True
        chunks.append(ToolOutputDeniedChunk(tool_call_id=tool_call_id))
        return chunks

    def _fail(self, tool_call_id: str, call: Call, text: str, state: ToolState) -> Chunks:
        chunks = [*self._with_whole_input(tool_call_id, call), *self._settle_question(call)]
        aborted = state is ToolState.ABORTED
        if aborted and not self._has_result_metadata:
            self._lose("result-metadata", "this release cannot be told that a call was aborted and did not fail")
        if call.final:
            self._lose("several-results", "a call shows its last result; this one takes the place of an earlier one")
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

    def _settle_question(self, call: Call) -> Chunks:
        """An output says that the call was allowed; a part may not have one while its question is open."""
        if not call.asked or call.approved is not None:
            return []
        if self._answers_live:
            return [self._respond(call, True, None)]
        raise RefusedEvent(
            "the client was asked whether the call may run, and this release hears the answer only there"
        )

    # The end

    def keep_waiting(self) -> Chunks:
        """The run waits, or left calls to the client: inputs are whole, open questions are asked."""
        chunks = self.complete_inputs()
        for key, call in self._calls.items():
            if call.state is ToolState.INPUT_AVAILABLE and call.approval_id is not None and call.approved is None:
                chunks.append(self._ask(key, call))
        return chunks

    def abort_waiting(self) -> Chunks:
        """The run is over: what waits will never have an output."""
        aborted = ToolResult(id="", status="aborted")
        waiting = [(key, call) for key, call in self._calls.items() if call.state in OPEN_STATES]
        return [chunk for key, call in waiting for chunk in self._abort(key, call, aborted)]

    def _abort(self, tool_call_id: str, call: Call, aborted: ToolResult) -> Chunks:
        if call.asked and call.approved is None:
            # Nobody has decided, and no release has a word for a question that is moot.
            return self._denial(tool_call_id, call, aborted) if self._answers_live else []
        return self._abortion(tool_call_id, call, aborted)

    _outputs: ClassVar[dict[str, Callable[[ToolCalls, str, Call, ToolResult], Chunks]]] = {
        "success": _success,
        "error": _failure,
        "aborted": _abortion,
        "denied": _denial,
    }
    """Status of a result -> what tells it."""


ABORTED_METADATA: ProviderMetadata = {"turnlog": {"state": "aborted"}}


def _said(result: ToolResult, default: str) -> str:
    return result.error_text or result.output_text or default
