"""A model behind a chat: requests and responses of any provider's API, and the tools that the model may call.

The caller sends the requests, by a function that gets the body of a request and yields the bytes of the response. A
tool call without a tool here is left to the page (`addToolOutput`); one that needs permission waits for it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from turnlog.chat.runtime import FunctionRuntime, RunRequest
from turnlog.model import Message, Part, TextPart, ToolCallPart, ToolResult, ToolState
from turnlog.model.merge import add_result
from turnlog.model.stream import (
    ApprovalRequest,
    Pause,
    RunFinish,
    RunStart,
    StreamEvent,
    ToolInputAvailable,
    ToolInputDelta,
    ToolInputStart,
    ToolOutput,
)
from turnlog.providers import provider as provider_of_name
from turnlog.providers.base import Provider, RequestOptions
from turnlog.providers.streaming import ResponseStream

Send: TypeAlias = Callable[[dict[str, Any]], AsyncGenerator[bytes, None]]
"""Sends the body of a request (plain JSON) and yields the body of the response in chunks, cut anywhere."""

MAX_CALLS: Final = 100
"""How many model calls one answer may take."""


class Tool(NamedTuple):
    """What runs when a model calls a tool. `RequestOptions.tools` describes it to the model."""

    run: Callable[[ToolCallPart], Awaitable[ToolResult | str]]
    """Returns the output; what it raises is the error that the model and the page get."""
    needs_permission: bool = False
    """Whether every call needs the permission of the page's user."""


class ProviderRuntime(FunctionRuntime):
    """Answers by a model, call after call, until it calls no more tools."""

    def __init__(
        self, provider: str | Provider, options: RequestOptions, send: Send, tools: Mapping[str, Tool] | None = None
    ) -> None:
        """Answer chats by a model.

        Args:
            provider: The API, or its name (`turnlog.providers.provider_names`).
            options: The model, its system prompt, the tools in the provider's own form.
            send: Sends a request.
            tools: What runs here, by the tool's name.

        Raises:
            KeyError: There is no API of this name.
        """
        super().__init__(self._answer_by_model)
        self._provider = provider_of_name(provider) if isinstance(provider, str) else provider
        self._options = replace(options, stream=True)
        self._send_request = send
        self._tools = {} if tools is None else dict(tools)

    async def _answer_by_model(self, request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        history = request.history()
        if request.continued is not None:
            async for event in self._run_allowed(history):
                yield event
            if any(call.state is ToolState.APPROVAL_REQUESTED for call in _calls(history[-1])):
                yield Pause(reason="approval")
                return
        for _ in range(MAX_CALLS):
            response = self._provider.open_stream(requested_model=self._options.model)
            ids = _CallIds(history)
            async for event in self._call_model(history, response):
                yield ids.in_event(event)
            message = ids.in_message(response.message)
            if message.error is not None:
                return
            history.append(message)
            async for event in self._run_calls(history):
                yield event
            last = _end_of(history[-1])
            if last is not None:
                yield last
                return
        yield RunFinish(stop_reason="pause")

    async def _call_model(self, history: Sequence[Message], response: ResponseStream) -> AsyncIterator[StreamEvent]:
        """One model call, without the start and the end of a run: a run may take several."""
        body = self._provider.to_request(history, self._options).body
        async with aclosing(self._send_request(body)) as chunks:
            async for chunk in chunks:
                for event in response.feed(chunk):
                    if not isinstance(event, _OF_RUN):
                        yield event
        for event in response.finish():
            if not isinstance(event, _OF_RUN):
                yield event

    async def _run_calls(self, history: list[Message]) -> AsyncIterator[StreamEvent]:
        """Run the calls of the newest message, and request permission for those that need it."""
        for call in _calls(history[-1]):
            tool = self._tools.get(call.tool_name)
            if call.results or call.provider_executed or tool is None:
                continue
            if tool.needs_permission:
                _replace_call(history, replace(call, state=ToolState.APPROVAL_REQUESTED))
                yield ApprovalRequest(approval_id=f"{call.tool_call_id}:approval", tool_call_id=call.tool_call_id)
                continue
            yield await _run(tool, call, history)

    async def _run_allowed(self, history: list[Message]) -> AsyncIterator[StreamEvent]:
        """Run the calls that the page has allowed, and deny the others."""
        for call in _calls(history[-1]):
            if call.state is not ToolState.APPROVAL_RESPONDED or call.results:
                continue
            tool, approval = self._tools.get(call.tool_name), call.approval
            if tool is None or approval is None or approval.approved is not True:
                reason = None if approval is None else approval.reason
                denied = ToolResult(id=f"{call.tool_call_id}:result", status="denied", error_text=reason)
                yield _with_result(call, denied, history)
            else:
                yield await _run(tool, call, history)


class _CallIds:
    """Unique ids for the calls of one response.

    Some APIs give calls no ids. They are made from the id of the response then, which may be missing too, so that two
    calls of a chat could have the same.
    """

    def __init__(self, history: Sequence[Message]) -> None:
        self._taken = {call.tool_call_id for message in history for call in _calls(message)}
        self._new: dict[str, str] = {}

    def in_event(self, event: StreamEvent) -> StreamEvent:
        if isinstance(event, _OF_CALL) and event.tool_call_id in self._taken:
            return replace(event, tool_call_id=self._name(event.tool_call_id))
        return event

    def in_message(self, message: Message) -> Message:
        if all(call.tool_call_id not in self._taken for call in _calls(message)):
            return message
        return replace(message, parts=tuple([self._in_part(part) for part in message.parts]))

    def _in_part(self, part: Part) -> Part:
        if isinstance(part, ToolCallPart) and part.tool_call_id in self._taken:
            return replace(part, tool_call_id=self._name(part.tool_call_id))
        return part

    def _name(self, call_id: str) -> str:
        free = (name for number in count(2) if (name := f"{call_id}~{number}") not in self._taken)
        return self._new.get(call_id) or self._new.setdefault(call_id, next(free))


_OF_RUN = (RunStart, RunFinish)
_OF_CALL = (ToolInputStart, ToolInputDelta, ToolInputAvailable, ToolOutput)


async def _run(tool: Tool, call: ToolCallPart, history: list[Message]) -> StreamEvent:
    name = f"{call.tool_call_id}:result"
    try:
        output = await tool.run(call)
    except Exception as error:
        output = ToolResult(id=name, status="error", error_text=f"{type(error).__name__}: {error}")
    if isinstance(output, str):
        output = ToolResult(id=name, content=(TextPart(text=output),))
    return _with_result(call, output, history)


def _with_result(call: ToolCallPart, result: ToolResult, history: list[Message]) -> StreamEvent:
    _replace_call(history, add_result(call, result))
    return ToolOutput(tool_call_id=call.tool_call_id, result=result)


def _replace_call(history: list[Message], call: ToolCallPart) -> None:
    """Replace a call of the newest message."""
    last = history[-1]
    parts = [
        call if isinstance(part, ToolCallPart) and part.tool_call_id == call.tool_call_id else part
        for part in last.parts
    ]
    history[-1] = replace(last, parts=tuple(parts))


def _calls(message: Message) -> list[ToolCallPart]:
    return [part for part in message.parts if isinstance(part, ToolCallPart)]


def _end_of(message: Message) -> StreamEvent | None:
    """How the run ends after this message; None if the model is to be called again."""
    calls = [call for call in _calls(message) if not call.provider_executed]
    if not calls:
        return RunFinish(stop_reason=message.stop_reason)
    if any(call.state is ToolState.APPROVAL_REQUESTED for call in calls):
        return Pause(reason="approval")
    return None if all(call.results for call in calls) else RunFinish(stop_reason="tool_use")
