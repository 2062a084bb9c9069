"""A model behind a chat: requests and responses of any provider's API, and the tools that the model may call.

The caller sends the requests, by a function that gets the body of a request and yields the bytes of the response. A
tool call without a tool here is left to the page (`addToolOutput`); one that needs permission waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from inspect import isawaitable
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from turnlog.arguments import checked, checked_fields
from turnlog.chat.attachments import Attachments, LoadAttachment, WriteData
from turnlog.chat.numbers import check_numbers, checked_numbers
from turnlog.chat.runtime import FunctionRuntime, RunRequest, is_async, require_generator, resolved
from turnlog.chat.runtimes.refusals import MOST_BYTES, hide_keys, refusal_text, shown, without_keys
from turnlog.model import Message, Part, TextPart, ToolCallPart, ToolResult, ToolState
from turnlog.model.merge import add_result
from turnlog.model.stream import (
    ApprovalRequest,
    Pause,
    RunFinish,
    RunStart,
    StepFinish,
    StreamError,
    StreamEvent,
    ToolInputAvailable,
    ToolInputDelta,
    ToolInputStart,
    ToolOutput,
)
from turnlog.model.usage import BUCKETS
from turnlog.providers import provider as provider_of_name
from turnlog.providers.base import Conversion, Provider, Repair, RequestLoss, RequestOptions
from turnlog.providers.streaming import ResponseStream

logger = logging.getLogger(__name__)

Send: TypeAlias = Callable[[dict[str, Any]], AsyncGenerator[bytes, None]]
"""Sends the body of a request (plain JSON) and yields the body of the response in chunks, cut anywhere."""


ToolFunction: TypeAlias = Callable[
    [ToolCallPart, RunRequest], Awaitable[ToolResult | str] | AsyncGenerator[ToolResult | str, None] | ToolResult | str
]
"""Gets the call and the request that it belongs to, with the user (`owner`) and `dependencies`. Returns the output, or
yields outputs: the last one is final, those before it are preliminary. What it raises is the error that the model and
the page get. A function that is not async runs in a thread, so that it does not hold up other chats."""


@checked_fields
class Tool(NamedTuple):
    """What runs when a model calls a tool. `RequestOptions.tools` describes it to the model."""

    run: ToolFunction
    needs_permission: bool = False
    """Whether every call needs the permission of the page's user."""


@checked_numbers
@checked_fields
class Limits(NamedTuple):
    """When an answer ends although the model would go on: with the stop reason `pause`, or an error for a time limit.

    None is no limit. Raises ValueError for a number that could not be one, such as 0 calls.
    """

    calls: int = 100
    """Model calls."""
    tokens: int | None = None
    """Tokens of all model calls, as far as the provider counts them. It is compared after each call."""
    seconds: float | None = None
    """For the whole answer."""
    tool_seconds: float | None = None
    """For one tool call; the model gets an error then, and goes on."""


@checked_numbers
@checked_fields
class Retry(NamedTuple):
    """How often a request is sent again that failed before any of its response came."""

    times: int = 2
    seconds: float = 0.5
    """Before the first time; twice as long before each next one."""


DEFAULT_LIMITS: Final = Limits()
DEFAULT_RETRY: Final = Retry()

Compact: TypeAlias = Callable[[list[Message], RunRequest], Awaitable[list[Message]] | list[Message]]
"""Gets the whole history before each model call, and returns what the model is sent of it. The chat stays whole."""


class LossReport(NamedTuple):
    """What a request does not carry of a chat, and what was changed so that the API accepts it."""

    request: RunRequest
    losses: tuple[RequestLoss, ...]
    repairs: tuple[Repair, ...]


LossFunction: TypeAlias = Callable[[LossReport], Awaitable[None] | None]

OptionsFunction: TypeAlias = Callable[[RunRequest], Awaitable[RequestOptions] | RequestOptions]
ToolsFunction: TypeAlias = Callable[[RunRequest], Awaitable[Mapping[str, Tool]] | Mapping[str, Tool]]


@checked
def keep_turns(turns: int) -> Compact:
    """A `compact` that sends the last turns: as many prompts of the user, and what follows them."""

    async def compact(history: list[Message], request: RunRequest) -> list[Message]:
        starts = [index for index, message in enumerate(history) if message.role == "user"]
        return history[starts[-turns] :] if len(starts) > turns else history

    check_numbers("keep_turns", turns=turns)
    return compact


class ProviderRuntime(FunctionRuntime):
    """Answers by a model, call after call, until it calls no more tools. The calls of one response run in parallel."""

    @checked
    def __init__(
        self,
        provider: str | Provider,
        options: RequestOptions | OptionsFunction,
        send: Send,
        tools: Mapping[str, Tool] | ToolsFunction | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
        retry: Retry = DEFAULT_RETRY,
        compact: Compact | None = None,
        load_file: LoadAttachment | None = None,
        write_data: WriteData | None = None,
        on_losses: LossFunction | None = None,
    ) -> None:
        """Answer chats by a model.

        Args:
            provider: The API, or its name (`turnlog.providers.provider_names`).
            options: The model, its system prompt, the tools in the provider's own form; or a function of the
                request that returns them; it may be async, as the next one.
            send: Sends a request.
            tools: What runs here, by the tool's name; or a function of the request that returns it.
            limits: When an answer ends at the latest: by default after 100 model calls.
            retry: How often a request that fails is sent again: by default twice, after 0.5 and 1 seconds.
            compact: Shortens what the model is sent (`keep_turns`); by default all of the chat is. It may be async.
            load_file: Loads a file that a page names by an address of the application (`/uploads/a.png`): gets the
                file and the request, with its `owner`; returns the bytes or None. Without it, the page gets an error.
            write_data: Returns the text or file that the model gets for a `data-…` part of the user's; None leaves it
                out. By default the model gets its JSON as text.
            on_losses: Called with what a request does not carry of the chat, and how it was repaired, as a
                `LossReport`: each loss and repair once. It may be async. The log has the same.

        Raises:
            ValueError: There is no API of this name.
            TypeError: An argument is none of these.
            ValueError: A tool has a name that no tool of the options has.
        """
        super().__init__(self._answer_by_model)
        # A named tuple is also made by its `_replace`, which checks nothing.
        check_numbers("Limits", **limits._asdict())
        check_numbers("Retry", **retry._asdict())
        require_generator(send, "send", "the bytes of the response")
        self._provider = provider_of_name(provider) if isinstance(provider, str) else provider
        self._options = options
        self._send_request = send
        self._tools: Mapping[str, Tool] | ToolsFunction = {} if tools is None else tools
        self._limits = limits
        self._retry = retry
        self._compact = compact
        self._attachments = Attachments(self._provider.name, load_file, write_data)
        self._losses = LossLog(on_losses)
        self._undescribed = set[str]()
        """Tools for whose names a line was logged."""
        if not callable(self._options) and not callable(self._tools):
            _check_names(self._options, self._tools)

    @property
    def asks_permission(self) -> bool:
        """Whether a tool is known to need the page's permission."""
        return not callable(self._tools) and any(tool.needs_permission for tool in self._tools.values())

    async def _answer_by_model(self, request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        options = await resolved(self._options(request)) if callable(self._options) else self._options
        _check_options(options)
        tools = await resolved(self._tools(request)) if callable(self._tools) else self._tools
        _check_tools(tools)
        self._note_names(options, tools)
        attached = await self._attachments.in_history(request.history(), request)
        if attached.refusal is not None:
            yield StreamError(error_text=attached.refusal, kind="prompt")
            return
        run = _Run(request, attached.messages, replace(options, stream=True), tools, self._limits.tool_seconds)
        async with aclosing(self._events(run)) as events, aclosing(_until(events, self._limits.seconds)) as timed:
            async for event in timed:
                yield event

    def _note_names(self, options: RequestOptions, tools: Mapping[str, Tool]) -> None:
        """Log once for each tool that the model was not shown: options may well depend on the user."""
        new = _undescribed(options, tools) - self._undescribed
        self._undescribed |= new
        for name in sorted(new):
            logger.warning("%s", _mismatch(name, options))

    async def _events(self, run: _Run) -> AsyncGenerator[StreamEvent, None]:
        history, request = run.history, run.request
        if request.continued is not None:
            async for event in run.run_allowed():
                yield event
            # The page has answered for some of the calls only: a model takes the results of all or none.
            if any(call.state is ToolState.APPROVAL_REQUESTED for call in _calls(history[-1])):
                yield Pause(reason="approval")
                return
        tokens = 0
        for _ in range(self._limits.calls):
            response = self._provider.open_stream(requested_model=run.options.model)
            ids = _CallIds(history)
            async for event in self._call_model(run, response):
                yield _with_message(ids.in_event(event), ids, response)
            message = ids.in_message(response.message)
            if message.error is not None:
                return
            history.append(message)
            async for event in run.run_calls():
                yield event
            last = _end_of(history[-1])
            if last is not None:
                yield last
                return
            tokens += _tokens(message)
            if self._limits.tokens is not None and tokens >= self._limits.tokens:
                break
        # Every call has its result, so the next prompt goes on from here.
        yield RunFinish(stop_reason="pause")

    async def _call_model(self, run: _Run, response: ResponseStream) -> AsyncIterator[StreamEvent]:
        """One model call, without the start and the end of a run: a run may take several."""
        sent = run.history if self._compact is None else await resolved(self._compact(list(run.history), run.request))
        made = self._provider.to_request(sent, run.options)
        await self._losses.report(made, run.request)
        body = made.body
        beginning = b""
        async with aclosing(self._chunks(body)) as chunks:
            async for chunk in chunks:
                if len(beginning) < MOST_BYTES:
                    beginning += chunk[: MOST_BYTES - len(beginning)]
                for event in response.feed(chunk):
                    if not isinstance(event, _OF_RUN):
                        yield _for_page(event)
        for event in response.finish():
            if not isinstance(event, _OF_RUN):
                yield _for_page(event)
        failed = response.message.error
        if failed is not None:
            # What is no stream of the provider's, such as the body of an HTTP error, says why; an answer says nothing.
            why = "" if response.message.parts else f"; the response begins with: {shown(beginning)}"
            logger.error("the provider's response failed: %s%s", shown(failed.text), why)

    async def _chunks(self, body: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        """The response, of a request that is sent again if it fails before anything came."""
        for tries_left in range(self._retry.times, -1, -1):
            has_begun = False
            try:
                async with aclosing(self._send_request(body)) as chunks:
                    async for chunk in chunks:
                        has_begun = True
                        yield chunk
                return
            except Exception as error:
                # What has come is on the page already: a second answer would be shown behind half of the first.
                is_last = has_begun or not tries_left or not _may_pass(error)
                await _log_failure(error, is_last=is_last)
                if is_last:
                    raise
            await asyncio.sleep(self._retry.seconds * 2 ** (self._retry.times - tries_left))


class LossLog:
    """Reports each loss and repair of the requests once: a request repeats what was lost of the one before it."""

    def __init__(self, on_losses: LossFunction | None) -> None:
        """Report to the log, and to a function of the application."""
        self._on_losses = on_losses
        self._known: dict[tuple[str | None, ...], None] = {}

    async def report(self, made: Conversion, request: RunRequest) -> None:
        """Report what is new; what the function raises is logged."""
        losses = tuple([loss for loss in made.losses if self._is_new(request.chat_id, loss)])
        repairs = tuple([repair for repair in made.repairs if self._is_new(request.chat_id, repair)])
        for loss in losses:
            logger.warning("not sent of chat %s: %s: %s", request.chat_id, loss.kind, shown(loss.detail))
        for repair in repairs:
            logger.info("repaired in a request of chat %s: %s: %s", request.chat_id, repair.kind, shown(repair.detail))
        if self._on_losses is None or not (losses or repairs):
            return
        try:
            await resolved(self._on_losses(LossReport(request, losses, repairs)))
        except Exception:
            logger.exception("on_losses failed for chat %s", request.chat_id)

    def _is_new(self, chat_id: str, change: RequestLoss | Repair) -> bool:
        key = (chat_id, change.kind, change.message_id, change.tool_call_id, change.detail)
        if key in self._known:
            return False
        self._known[key] = None
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return True


_MOST_KNOWN: Final = 20_000
"""Losses and repairs that are remembered as reported."""


async def _until(events: AsyncGenerator[StreamEvent, None], seconds: float | None) -> AsyncGenerator[StreamEvent, None]:
    """The events, and an error if they take longer than so many seconds."""
    if seconds is None:
        async for event in events:
            yield event
        return
    end = asyncio.get_running_loop().time() + seconds

    async def step() -> StreamEvent | None:
        return await anext(events, None)

    while True:
        waiting = asyncio.ensure_future(step())
        try:
            # `wait` cancels nothing: the page has the error before the request ends, which may take its time.
            await asyncio.wait([waiting], timeout=max(0.0, end - asyncio.get_running_loop().time()))
            if not waiting.done():
                yield StreamError(error_text=f"the answer took longer than {seconds} seconds", kind="timeout")
                return
        finally:
            if not waiting.done():
                waiting.cancel()
                await asyncio.wait([waiting])
        event = waiting.result()
        if event is None:
            return
        yield event


def _for_page(event: StreamEvent) -> StreamEvent:
    """The event; an error without the keys that a provider repeats in it."""
    if isinstance(event, StreamError):
        return replace(event, error_text=without_keys(event.error_text))
    return event


async def _log_failure(error: Exception, *, is_last: bool) -> None:
    """Log what the provider says about a request that failed. The exception itself is logged where the answer ends."""
    text = await refusal_text(error)
    hide_keys(error)
    if not is_last:
        logger.warning("a request failed and is sent again: %s%s", error, "" if text is None else f": {text}")
    elif text is not None:
        logger.error("the provider refused a request (%s): %s", error, text)


def _may_pass(error: Exception) -> bool:
    """Whether a request that failed so may succeed later: without an HTTP status, or with one that says so."""
    names = ("status_code", "status", "code")
    places = (error, getattr(error, "response", None))
    status = next(
        (found for place in places for name in names if isinstance(found := getattr(place, name, None), int)), None
    )
    return status is None or status in (408, 409, 425, 429) or status >= 500


def _tokens(message: Message) -> int:
    usage = message.usage
    return 0 if usage is None else sum(count or 0 for count in (getattr(usage, name) for name in BUCKETS))


def _check_options(options: object) -> None:
    if not isinstance(options, RequestOptions):
        raise TypeError(f"the options are RequestOptions(model=…), not {type(options).__name__}")


def _check_tools(tools: object) -> None:
    if not isinstance(tools, Mapping):
        raise TypeError(f"tools are a mapping from names to Tool(…), not {type(tools).__name__}")
    for name, tool in cast("Mapping[str, object]", tools).items():
        if not isinstance(tool, Tool):
            raise TypeError(f"the tool {name!r} is {type(tool).__name__}: write Tool(function)")


def _check_names(options: RequestOptions, tools: Mapping[str, Tool]) -> None:
    """Raise ValueError for a tool that no call can reach, if the request has tools at all."""
    unknown = sorted(_undescribed(options, tools))
    if unknown and options.tools:
        raise ValueError(_mismatch(unknown[0], options))


def _undescribed(options: RequestOptions, tools: Mapping[str, Tool]) -> set[str]:
    """The tools that are not described to the model."""
    return set(tools) - set(_names_in([*options.tools, options.extra]))


def _mismatch(name: str, options: RequestOptions) -> str:
    described = ", ".join(repr(each) for each in dict.fromkeys(_names_in(options.tools, ("name",)))) or "none"
    return f"the model cannot call the tool {name!r}: RequestOptions.tools describes {described}"


def _names_in(value: object, keys: tuple[str, ...] = ("name", "type")) -> Iterator[str]:
    """The names in descriptions of tools, whose form is the provider's; one that it knows may have only a type."""
    if isinstance(value, Mapping):
        for key, each in cast("Mapping[str, object]", value).items():
            if key in keys and isinstance(each, str):
                yield each
            elif key not in _SCHEMAS:
                yield from _names_in(each, keys)
    elif isinstance(value, list | tuple):
        for each in cast("Sequence[object]", value):
            yield from _names_in(each, keys)


_SCHEMAS: Final = ("input_schema", "parameters", "parametersJsonSchema")
"""Fields that hold the names of a tool's arguments."""


class _Run:
    """One answer: its request, its history, and the tools that run for it."""

    def __init__(
        self,
        request: RunRequest,
        history: list[Message],
        options: RequestOptions,
        tools: Mapping[str, Tool],
        seconds: float | None,
    ) -> None:
        self.request = request
        self.options = options
        self.history = history
        self._tools = tools
        self._seconds = seconds

    async def run_calls(self) -> AsyncGenerator[StreamEvent, None]:
        """Run the calls of the newest message, and request permission for those that need it."""
        to_run: list[tuple[Tool, ToolCallPart]] = []
        for call in _calls(self.history[-1]):
            tool = self._tools.get(call.tool_name)
            if call.results or call.provider_executed or tool is None:
                continue
            if tool.needs_permission:
                _replace_call(self.history, replace(call, state=ToolState.APPROVAL_REQUESTED))
                yield ApprovalRequest(approval_id=f"{call.tool_call_id}:approval", tool_call_id=call.tool_call_id)
                continue
            to_run.append((tool, call))
        async with aclosing(self._run_all(to_run)) as events:
            async for event in events:
                yield event

    async def run_allowed(self) -> AsyncGenerator[StreamEvent, None]:
        """Run the calls that the page has allowed, and deny the others."""
        to_run: list[tuple[Tool, ToolCallPart]] = []
        for call in _calls(self.history[-1]):
            if call.state is not ToolState.APPROVAL_RESPONDED or call.results:
                continue
            tool, approval = self._tools.get(call.tool_name), call.approval
            if tool is None or approval is None or approval.approved is not True:
                reason = None if approval is None else approval.reason
                denied = ToolResult(id=f"{call.tool_call_id}:result", status="denied", error_text=reason)
                yield _with_result(call, denied, self.history)
            else:
                to_run.append((tool, call))
        async with aclosing(self._run_all(to_run)) as events:
            async for event in events:
                yield event

    async def _run_all(self, calls: Sequence[tuple[Tool, ToolCallPart]]) -> AsyncGenerator[StreamEvent, None]:
        """Run calls in parallel; their outputs as they come."""
        outputs: asyncio.Queue[tuple[ToolCallPart, ToolResult]] = asyncio.Queue()
        tasks = [asyncio.create_task(self._run(tool, call, outputs)) for tool, call in calls]
        running = {call.tool_call_id: call for _, call in calls}
        try:
            while running:
                call, result = await outputs.get()
                if not result.preliminary:
                    del running[call.tool_call_id]
                yield _with_result(call, result, self.history)
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def _run(
        self, tool: Tool, call: ToolCallPart, outputs: asyncio.Queue[tuple[ToolCallPart, ToolResult]]
    ) -> None:
        """Put the outputs of a call into the queue, the final one last."""
        name = f"{call.tool_call_id}:result"
        last: ToolResult | str | None = None
        try:
            async with asyncio.timeout(self._seconds):
                async with aclosing(_outputs(tool.run, call, self.request)) as found:
                    async for is_final, output in found:
                        last = output
                        if not is_final:
                            await outputs.put((call, replace(_result(output, name), preliminary=True)))
            final = _result("" if last is None else last, name)
        except TimeoutError as error:
            reason = str(error) or f"the tool took longer than {self._seconds} seconds"
            final = _failure(name, call, error, reason)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The tool waited for something that was cancelled; the answer itself was not.
            final = _failure(name, call, error)
        except (Exception, SystemExit) as error:  # a command-line parser in a tool must not end the server
            final = _failure(name, call, error)
        await outputs.put((call, replace(final, preliminary=False)))


def _failure(name: str, call: ToolCallPart, error: BaseException, reason: str | None = None) -> ToolResult:
    """What the model and the page get of an exception in a tool; the log has its traceback."""
    logger.error("the tool %s failed", call.tool_name, exc_info=error)
    return ToolResult(id=name, status="error", error_text=f"{type(error).__name__}: {reason or error}")


async def _outputs(
    run: ToolFunction, call: ToolCallPart, request: RunRequest
) -> AsyncGenerator[tuple[bool, ToolResult | str], None]:
    """What a tool returns or yields, each with whether it is surely the last."""
    start: Callable[..., Any] = run if is_async(run) else partial(asyncio.to_thread, run)
    given = start(call, request)
    # What a plain function returned may itself be a coroutine or an async generator, as that of a lambda.
    while isawaitable(given):
        given = await given
    if isinstance(given, AsyncGenerator):
        async with aclosing(cast("AsyncGenerator[ToolResult | str, None]", given)) as yielded:
            async for output in yielded:
                yield False, output
    else:
        yield True, given


def _result(output: object, name: str) -> ToolResult:
    if isinstance(output, ToolResult):
        return output
    if not isinstance(output, str):
        raise TypeError(f"a tool returns text or a ToolResult, not {type(output).__name__}")
    return ToolResult(id=name, content=(TextPart(text=output),))


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


def _with_message(event: StreamEvent, ids: _CallIds, response: ResponseStream) -> StreamEvent:
    """The event; the end of a step with the message, since the chat keeps what the next request has to repeat."""
    if not isinstance(event, StepFinish) or response.message.error is not None:
        return event
    return replace(event, message=ids.in_message(response.message))


def _with_result(call: ToolCallPart, result: ToolResult, history: list[Message]) -> StreamEvent:
    if not result.preliminary:
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
