"""A Pydantic AI agent behind a chat.

The chat becomes the agent's own message history, and the events of its run become stream events. Tools that require
approval, and tools that the page runs, end a run; the agent continues with the page's answers (`DeferredToolResults`).
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from itertools import count
from typing import Any, Final, TypeAlias, cast

from msgspec.structs import replace
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolDenied, messages
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import ReinjectSystemPrompt
from pydantic_ai.usage import RequestUsage
from pydantic_core import to_jsonable_python

from turnlog.chat.runtime import RunRequest
from turnlog.chat.runtimes.frameworks import (
    FrameworkRuntime,
    approval_id,
    arguments,
    content_result,
    decisions,
    is_open,
    outcome_text,
    result_parts,
)
from turnlog.model import (
    FilePart,
    Message,
    Part,
    ProviderData,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolCallPart,
    Usage,
)
from turnlog.model.lenient_json import parse_json
from turnlog.model.parts import ResultStatus
from turnlog.model.stream import (
    ApprovalRequest,
    FileEvent,
    Pause,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    RunFinish,
    StepFinish,
    StepStart,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputAvailable,
    ToolInputDelta,
    ToolInputStart,
    ToolOutput,
)
from turnlog.providers.request_parts import proof

_STOPS: Final[dict[str, StopReason]] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_call": "tool_use",
    "error": "error",
}

_STATUSES: Final[dict[str, ResultStatus]] = {
    "failed": "error",
    "retried": "error",
    "denied": "denied",
    "interrupted": "aborted",
}

_URLS: Final = {"image": messages.ImageUrl, "audio": messages.AudioUrl, "video": messages.VideoUrl}

_UNNAMED: Final = "pydantic-ai"
"""The provider's name for what a part has to go back with, where Pydantic AI does not name it."""


class PydanticAIRuntime(FrameworkRuntime[AbstractAgent[Any, Any]]):
    """Answers chats by a Pydantic AI agent.

    The agent's `deps` are the `dependencies` of the request. Options are those of `agent.iter`: `usage_limits`,
    `model_settings`, …
    """

    kind = AbstractAgent
    expected = "an Agent of pydantic_ai"

    async def _run_agent(self, request: RunRequest, history: list[Message]) -> AsyncGenerator[StreamEvent, None]:
        async with self._agent.iter(**self._run_options(history, request)) as run:
            translator = _Translator()
            async for node in run:
                if Agent.is_model_request_node(node):
                    translator.begin_step()
                    async with node.stream(run.ctx) as stream:
                        async for event in stream:
                            # The model's name is known once something came of it.
                            for each in translator.translate(event, stream.response.model_name):
                                yield each
                    yield _step_finish(stream.response)
                elif Agent.is_call_tools_node(node):
                    async with node.stream(run.ctx) as events:
                        async for event in events:
                            for each in translator.translate(event):
                                yield each
            for each in _end(cast("Any", run.result)):
                yield each

    def _run_options(self, history: list[Message], request: RunRequest) -> dict[str, Any]:
        """The arguments of the run. What the caller chose wins."""
        answers = {
            call_id: True if approved else ToolDenied(reason) if reason else ToolDenied()
            for call_id, (approved, reason) in decisions(history).items()
        }
        return {
            "message_history": to_model_messages(history),
            "deferred_tool_results": DeferredToolResults(approvals=cast("Any", answers)) if answers else None,
            "deps": request.dependencies,
            "output_type": [self._agent.output_type, DeferredToolRequests],
            # The chat keeps no system prompts: they are the agent's.
            "capabilities": [ReinjectSystemPrompt()],
            **self._options,
        }


# -- the history


def to_model_messages(history: Iterable[Message]) -> list[messages.ModelMessage]:
    """A chat as Pydantic AI's message history. Calls that wait for the page's permission have no result in it."""
    found: list[messages.ModelMessage] = []
    for message in history:
        if message.role == "user":
            found.append(messages.ModelRequest(parts=[messages.UserPromptPart(content=_prompt(message))]))
        elif message.role == "assistant":
            found += _answer(message)
        else:
            text = "\n".join([part.text for part in message.parts if isinstance(part, TextPart)])
            found.append(messages.ModelRequest(parts=[messages.SystemPromptPart(content=text)]))
    return found


def _prompt(message: Message) -> str | list[messages.UserContent]:
    contents = [content for part in message.parts for content in _user_content(part)]
    if len(contents) == 1 and isinstance(contents[0], str):
        return contents[0]
    return contents


def _user_content(part: object) -> list[messages.UserContent]:
    if isinstance(part, TextPart):
        return [part.text]
    if not isinstance(part, FilePart):
        return []
    if part.data is not None:
        return [messages.BinaryContent(part.data, media_type=part.media_type)]
    file_id = proof(part, "file_id")
    if file_id is not None and part.provider is not None:
        named: Any = part.provider.name
        return [messages.UploadedFile(file_id, provider_name=named, media_type=part.media_type)]
    kind = _URLS.get(part.media_type.partition("/")[0], messages.DocumentUrl)
    return [kind(part.url, media_type=part.media_type)] if part.url is not None else []


def _answer(message: Message) -> list[messages.ModelMessage]:
    """One model call: the response, and the results of its calls."""
    parts = [made for part in message.parts for made in _response_parts(part)]
    if not parts:
        return []
    response = messages.ModelResponse(parts=parts, model_name=message.model, provider_response_id=message.response_id)
    calls = [cast("ToolCallPart", part) for part in message.parts if _is_answered(part)]
    returns: list[messages.ModelRequestPart] = [_return(call) for call in calls]
    returns += [messages.UserPromptPart(content=said) for call in calls if (said := _said(call))]
    return [response, messages.ModelRequest(parts=returns)] if returns else [response]


def _is_answered(part: object) -> bool:
    return isinstance(part, ToolCallPart) and not part.provider_executed and not is_open(part)


def _said(call: ToolCallPart) -> list[messages.UserContent]:
    """What a tool said beside its output (`ToolReturn.content`)."""
    content = call.results[-1].content if call.results else ()
    return [made for part in content if _UNNAMED in part.metadata for made in _user_content(part)]


def _returned(call: ToolCallPart) -> Any:
    """The output of a call: a text, or a list if there are files in it."""
    last = call.results[-1].content if call.results else ()
    own = [part for part in last if _UNNAMED not in part.metadata]
    if len(own) == len(last) and not result_parts(call):
        return outcome_text(call)
    found = [made for part in own for made in _user_content(part)]
    return found[0] if len(found) == 1 else found


def _return(call: ToolCallPart) -> messages.ToolReturnPart:
    status = call.results[-1].status if call.results else "aborted"
    outcome = {"success": "success", "error": "failed", "denied": "denied", "aborted": "interrupted"}[status]
    return messages.ToolReturnPart(
        tool_name=call.tool_name,
        content=_returned(call),
        tool_call_id=call.tool_call_id,
        outcome=cast("Any", outcome),
    )


def _response_parts(part: object) -> list[messages.ModelResponsePart]:
    if isinstance(part, TextPart):
        return [messages.TextPart(part.text, **_own(part.provider, "id"))] if part.text else []
    if isinstance(part, ReasoningPart):
        return [messages.ThinkingPart(part.text, **_own(part.provider, "id", "signature"))]
    if isinstance(part, FilePart) and part.data is not None:
        return [messages.FilePart(messages.BinaryContent(part.data, media_type=part.media_type))]
    if not isinstance(part, ToolCallPart):
        return []
    args = part.input_text or "" if part.input_text is not None else bytes(cast("bytes", part.input)).decode()
    named: dict[str, Any] = {"tool_name": part.tool_name, "tool_call_id": part.tool_call_id}
    own = _own(part.provider, "id")
    if not part.provider_executed:
        return [messages.ToolCallPart(args=args, **named, **own)]
    returned = messages.NativeToolReturnPart(
        content=_value(outcome_text(part)), **named, provider_name=own.get("provider_name")
    )
    return [messages.NativeToolCallPart(args=args, **named, **own), returned]


def _own(provider: ProviderData | None, *names: str) -> dict[str, Any]:
    """What the provider wants back with a part, as the fields of Pydantic AI's part."""
    if provider is None:
        return {}
    found: dict[str, Any] = {name: provider.opaque.get(name) for name in names}
    named = {} if provider.name == _UNNAMED else {"provider_name": provider.name}
    return {**found, **named, "provider_details": provider.opaque.get("details")}


def _value(text: str) -> Any:
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return text


# -- the events

_Events: TypeAlias = Sequence[StreamEvent]


class _Translator:
    """Translates the events of one run."""

    def __init__(self) -> None:
        self._names = count(1)
        self._open: dict[int, str] = {}
        """Index of a part of the running response -> its id."""
        self._has_begun = True
        """Whether the step of the running response has begun."""
        self._handlers: dict[type, Callable[[Any], _Events]] = {
            messages.PartStartEvent: self._start,
            messages.PartDeltaEvent: self._delta,
            messages.PartEndEvent: self._end,
            messages.FunctionToolResultEvent: self._result,
            messages.OutputToolResultEvent: self._result,
        }

    def begin_step(self) -> None:
        """Begin with another response."""
        self._open.clear()
        self._has_begun = False

    def translate(self, event: object, model: str | None = None) -> _Events:
        """The stream events of one event; none for one that shows nothing."""
        start = [] if self._has_begun else [StepStart(model=model or None)]
        self._has_begun = True
        handler = self._handlers.get(type(event))
        return start if handler is None else [*start, *handler(event)]

    def _start(self, event: messages.PartStartEvent) -> _Events:
        part = event.part
        name = self._open[event.index] = f"part-{next(self._names)}"
        if isinstance(part, messages.TextPart):
            return [TextStart(id=name), *_more(TextDelta, name, part.content)]
        if isinstance(part, messages.ThinkingPart):
            return [ReasoningStart(id=name), *_more(ReasoningDelta, name, part.content)]
        if isinstance(part, messages.ToolCallPart | messages.NativeToolCallPart):
            self._open[event.index] = part.tool_call_id
            executed = isinstance(part, messages.NativeToolCallPart)
            start = ToolInputStart(tool_call_id=part.tool_call_id, tool_name=part.tool_name, provider_executed=executed)
            return [start, *self._arguments(event.index, part.args)]
        return []

    def _delta(self, event: messages.PartDeltaEvent) -> _Events:
        delta, name = event.delta, self._open.get(event.index)
        if name is None:
            return []
        if isinstance(delta, messages.TextPartDelta):
            return _more(TextDelta, name, delta.content_delta)
        if isinstance(delta, messages.ThinkingPartDelta):
            return _more(ReasoningDelta, name, delta.content_delta)
        return self._arguments(event.index, delta.args_delta) if isinstance(delta, messages.ToolCallPartDelta) else []

    def _arguments(self, index: int, args: object) -> _Events:
        # Whole objects come with the end of the part.
        return [ToolInputDelta(tool_call_id=self._open[index], delta=args)] if isinstance(args, str) and args else []

    def _end(self, event: messages.PartEndEvent) -> _Events:
        part, name = event.part, self._open.get(event.index, "")
        if isinstance(part, messages.TextPart):
            return [TextEnd(id=name, provider=_provider(part))]
        if isinstance(part, messages.ThinkingPart):
            return [ReasoningEnd(id=name, provider=_provider(part, signature=part.signature))]
        if isinstance(part, messages.ToolCallPart | messages.NativeToolCallPart):
            return [_available(part)]
        if isinstance(part, messages.NativeToolReturnPart):
            return [_output(part)]
        if isinstance(part, messages.FilePart):
            return [FileEvent(file=FilePart(media_type=part.content.media_type, data=part.content.data))]
        return []

    def _result(self, event: messages.FunctionToolResultEvent | messages.OutputToolResultEvent) -> _Events:
        return [_output(event.part, getattr(event, "content", None))]


def _more(kind: type[TextDelta | ReasoningDelta], name: str, text: str | None) -> _Events:
    return [kind(id=name, delta=text)] if text else []


def _available(part: messages.ToolCallPart | messages.NativeToolCallPart) -> ToolInputAvailable:
    args = part.args if isinstance(part.args, str) and part.args.strip() else part.args_as_json_str()
    return ToolInputAvailable(
        tool_call_id=part.tool_call_id,
        tool_name=part.tool_name,
        **arguments(args),
        provider_executed=isinstance(part, messages.NativeToolCallPart),
        provider=_provider(part),
    )


def _output(part: messages.ToolReturnPart | messages.NativeToolReturnPart, said: object = None) -> ToolOutput:
    """The output of a call, and what its tool said beside it."""
    text = part.model_response_str(wrap_if_error=False)
    status = _STATUSES.get(part.outcome, "success")
    content: list[Part] = [TextPart(text=text)] if text and not part.files else []
    if part.files:
        content = [_content_part(item) for item in part.content_items(mode="str", wrap_if_error=False)]
    beside: list[Any] = [said] if isinstance(said, str) else list(cast("Sequence[Any]", said or ()))
    content += [replace(_content_part(item), metadata={_UNNAMED: {"beside": True}}) for item in beside]
    result = content_result(part.tool_call_id, content, text, status)
    return ToolOutput(tool_call_id=part.tool_call_id, result=result)


def _content_part(item: Any) -> TextPart | FilePart:
    """A piece of a tool's output; what only Pydantic AI knows (a mark for a cache) is its JSON."""
    if isinstance(item, str):
        return TextPart(text=item)
    if isinstance(item, messages.BinaryContent):
        return FilePart(media_type=item.media_type, data=item.data)
    if isinstance(item, messages.UploadedFile):
        kept = ProviderData(name=item.provider_name, opaque={"file_id": item.file_id})
        return FilePart(media_type=item.media_type, provider=kept)
    if isinstance(item, messages.ImageUrl | messages.AudioUrl | messages.VideoUrl | messages.DocumentUrl):
        return FilePart(media_type=item.media_type, url=item.url)
    content = getattr(item, "content", None)
    return TextPart(text=content if isinstance(content, str) else json.dumps(to_jsonable_python(item)))


def _provider(part: Any, **more: Any) -> ProviderData | None:
    """What the provider wants back with a part."""
    given: dict[str, Any] = {"id": part.id, "details": to_jsonable_python(part.provider_details), **more}
    opaque = {name: value for name, value in given.items() if value}
    return ProviderData(name=part.provider_name or _UNNAMED, opaque=opaque) if opaque else None


def _step_finish(response: messages.ModelResponse) -> StepFinish:
    calls = any(isinstance(part, messages.ToolCallPart) for part in response.parts)
    reason = _STOPS.get(response.finish_reason or "", "tool_use" if calls else "stop")
    return StepFinish(stop_reason=reason, raw_stop_reason=response.finish_reason, usage=_usage(response.usage))


def _usage(usage: RequestUsage) -> Usage | None:
    """Disjoint buckets: the cache is inside of the input, reasoning inside of the output."""
    if not usage.input_tokens and not usage.output_tokens:
        return None
    reasoning = usage.output_reasoning_tokens or None
    return Usage(
        input=max(usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens, 0),
        cache_read=usage.cache_read_tokens or None,
        cache_write=usage.cache_write_tokens or None,
        output=max(usage.output_tokens - (reasoning or 0), 0),
        reasoning=reasoning,
    )


def _end(result: Any) -> _Events:
    """How the run ends: with an answer, or because it waits for the page."""
    output = result.output
    if not isinstance(output, DeferredToolRequests):
        return [RunFinish(stop_reason=_STOPS.get(result.response.finish_reason or "", "stop"))]
    requests = [
        ApprovalRequest(approval_id=approval_id(call.tool_call_id), tool_call_id=call.tool_call_id)
        for call in output.approvals
    ]
    return [*requests, Pause(reason="approval") if requests else RunFinish(stop_reason="tool_use")]
