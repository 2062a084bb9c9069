"""What answers a chat: the protocol of runtimes, and the runtime that calls a function.

A runtime knows an agent, a provider or a script, and emits stream events. It has one run of a chat at a time. Streams,
messages and where they are kept are up to the endpoint.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

from turnlog.aisdk.base import UIValue
from turnlog.aisdk.parts import TextUIPart, UIMessage
from turnlog.arguments import check_fields, refusal
from turnlog.chat.conversion import to_canonical
from turnlog.errors import ConflictError
from turnlog.model import Message, Ownership
from turnlog.model.stream import (
    Abort,
    Pause,
    RunFinish,
    StepFinish,
    StepStart,
    StreamError,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
)

_MAX_WAITING: Final = 256
"""A source that is so many events ahead lets the listeners run first."""


class RunRequest(UIValue, frozen=True, kw_only=True):
    """What is to be answered.

    The texts and files of the user, the page's approvals and outcomes, and `body` come from the client; everything else
    is the server's own.
    """

    chat_id: str
    messages: tuple[UIMessage, ...]
    """The chat; its last message is to be answered or continued."""
    continued: UIMessage | None = None
    """The assistant message to continue, with the page's approvals and outcomes of calls: the last of `messages`."""
    body: dict[str, Any] = {}
    """Other fields that the page sent."""
    owner: Ownership = Ownership()
    """Who asks, as the server knows them; every name is None without `owner=`."""
    dependencies: Any = None
    """What the server gives to its answers and tools (`dependencies=`): a database, a client, the request."""

    def __post_init__(self) -> None:
        """Raise TypeError for a field of the wrong type."""
        check_fields(self)

    @property
    def prompt(self) -> str:
        """The texts of the newest user message, joined by newlines; empty if there is none."""
        for message in reversed(self.messages):
            if message.role == "user":
                return "\n".join([part.text for part in message.parts if isinstance(part, TextUIPart)])
        return ""

    def history(self) -> list[Message]:
        """`messages` as canonical ones, one a model call: exactly what the models said and were sent.

        This is where a request is converted, and the only place: call it once.
        """
        return [step for message in self.messages for step in to_canonical(message)]


class Runtime(Protocol):
    """Runs chats. All methods are called on one event loop.

    First comes `subscribe`, so that no event is missed, then `send` or `resume`. A run ends with `RunFinish`, `Pause`
    (it waits for the page), `StreamError` or `Abort`; so do its subscriptions. What the next run of the chat needs (the
    agent's own session, for instance) can be put into `RunStart.metadata`: it comes back in the metadata of the
    assistant message, in `RunRequest.messages`, also after a restart of the server.
    """

    def subscribe(self, chat_id: str) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Listen to the chat's run: to the rest of the running one, or else to the next one.

        No event is missed once the context is entered; leaving it ends the listening, not the run. The iterator ends
        with the run, and raises what the run raised.
        """
        ...

    async def send(self, request: RunRequest) -> None:
        """Begin to answer the last message of the request; return once the run has begun.

        Raises:
            ConflictError: A run of the chat has not ended.
            Exception: It cannot begin. The page is sent an error; the exception is logged.
        """
        ...

    async def resume(self, request: RunRequest) -> None:
        """Continue `request.continued` after its run paused; otherwise as `send`."""
        ...

    async def abort(self, chat_id: str) -> None:
        """Stop the chat's run and wait until it has ended, its last event `Abort`; does nothing if none runs."""
        ...


class _End(NamedTuple):
    error: BaseException | None


class Listeners:
    """Who listens to which chat. A run never waits for its listeners."""

    def __init__(self) -> None:
        """Begin without listeners."""
        self._queues: dict[str, list[asyncio.Queue[StreamEvent | _End]]] = {}

    @asynccontextmanager
    async def subscribe(self, chat_id: str) -> AsyncGenerator[AsyncIterator[StreamEvent], None]:
        """Listen until `end`."""
        queue: asyncio.Queue[StreamEvent | _End] = asyncio.Queue()
        self._queues.setdefault(chat_id, []).append(queue)
        try:
            yield _iter_queue(queue)
        finally:
            self._queues[chat_id].remove(queue)
            if not self._queues[chat_id]:
                del self._queues[chat_id]

    async def publish(self, chat_id: str, event: StreamEvent) -> None:
        """Send an event to all listeners; let them run if they are far behind."""
        self.publish_now(chat_id, event)
        if any(queue.qsize() >= _MAX_WAITING for queue in self._queues.get(chat_id, ())):
            await asyncio.sleep(0)

    def publish_now(self, chat_id: str, event: StreamEvent) -> None:
        """Send an event to all listeners without letting them run."""
        for queue in self._queues.get(chat_id, ()):
            queue.put_nowait(event)

    def end(self, chat_id: str, error: BaseException | None = None) -> None:
        """End the iterators of all listeners; with an error, they raise it."""
        for queue in self._queues.get(chat_id, ()):
            queue.put_nowait(_End(error))


async def _iter_queue(queue: asyncio.Queue[StreamEvent | _End]) -> AsyncIterator[StreamEvent]:
    while not isinstance(event := await queue.get(), _End):
        yield event
    if event.error is not None:
        raise event.error


AnswerFunction: TypeAlias = Callable[[RunRequest], AsyncGenerator[StreamEvent | str, None]]
"""An async generator function that yields the events of one run, or pieces of its text; it is closed when the run is
aborted."""


ResultT = TypeVar("ResultT")


async def resolved(returned: Awaitable[ResultT] | ResultT) -> ResultT:
    """What a function of the caller returned, which may be async or plain."""
    return await cast("Awaitable[ResultT]", returned) if inspect.isawaitable(returned) else cast("ResultT", returned)


def is_async(function: object) -> bool:
    """Whether a function, or an object that is called like one, is known to be async before it is called."""
    forms = (function, getattr(function, "__call__", None))  # noqa: B004  # an object may be called like a function
    return any(inspect.iscoroutinefunction(form) or inspect.isasyncgenfunction(form) for form in forms)


def require_generator(answer: object, name: str = "answer", pieces: str = "the pieces of the answer") -> None:
    """Raise TypeError for what is no async generator function."""
    if not callable(answer):
        raise refusal(name, answer, "an async generator function")
    functions = (answer, getattr(answer, "__call__", None))  # noqa: B004  # an object may be called like a function
    if any(map(inspect.isasyncgenfunction, functions)):
        return
    # A function may return a generator that another one makes: its annotation says so.
    if _returns_async(answer):
        return
    name = getattr(answer, "__qualname__", type(answer).__name__)
    raise TypeError(f"{name} is no async generator function: write `async def` and `yield` {pieces}")


def _returns_async(function: Callable[..., object]) -> bool:
    """Whether a function's annotation promises an async iterable; also where it cannot be resolved."""
    try:
        returned = get_type_hints(function).get("return")
    except (NameError, TypeError):
        return True
    kind = get_origin(returned) or returned
    return isinstance(kind, type) and issubclass(kind, AsyncIterable)


class _Text:
    """Pieces of text among the events of an answer, as text parts."""

    def __init__(self) -> None:
        self._open: str | None = None
        self._parts = 0
        self._in_step = False
        self._has_events = False
        self._is_ended = False

    def events(self, yielded: object) -> list[StreamEvent]:
        """The events of what an answer yielded."""
        if isinstance(yielded, str):
            begin = self._begin()
            return [*begin, TextDelta(id=self._open or "", delta=yielded)]
        if not isinstance(yielded, get_args(StreamEvent)):
            raise TypeError(f"an answer yielded {type(yielded).__name__}: expected text or a StreamEvent")
        event = cast("StreamEvent", yielded)
        self._has_events = True
        if isinstance(event, StepStart | StepFinish):
            self._in_step = isinstance(event, StepStart)
        self._is_ended = isinstance(event, RunFinish | Pause | StreamError | Abort)
        return [*self._close(), event]

    def end(self) -> list[StreamEvent]:
        """What ends an answer of text, or of nothing at all, that did not end itself."""
        is_complete = self._parts > 0 or not self._has_events
        return [*self._close(), RunFinish(stop_reason="stop")] if is_complete and not self._is_ended else []

    def _begin(self) -> list[StreamEvent]:
        if self._open is not None:
            return []
        self._parts += 1
        self._open = f"text-{self._parts}"
        start: list[StreamEvent] = [] if self._in_step else [StepStart()]
        self._in_step = True
        return [*start, TextStart(id=self._open)]

    def _close(self) -> list[StreamEvent]:
        if self._open is None:
            return []
        ended, self._open = self._open, None
        return [TextEnd(id=ended)]


class FunctionRuntime:
    """The runtime whose runs are the calls of one function, also to continue a message (`request.continued`)."""

    def __init__(self, answer: AnswerFunction) -> None:
        """Answer every request by this function.

        Raises:
            TypeError: It is no async generator function.
        """
        require_generator(answer)
        self._answer = answer
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._listeners = Listeners()

    def subscribe(self, chat_id: str) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Listen to the chat's run."""
        return self._listeners.subscribe(chat_id)

    async def send(self, request: RunRequest) -> None:
        """Call the function. Raises ConflictError if its last call for this chat has not ended."""
        chat_id = request.chat_id
        if chat_id in self._runs:
            raise ConflictError(f"chat {chat_id} is being answered")
        run = self._runs[chat_id] = asyncio.create_task(self._run(request))
        run.add_done_callback(lambda run: self._end(chat_id, run))

    async def resume(self, request: RunRequest) -> None:
        """Call the function, as `send` does."""
        await self.send(request)

    async def abort(self, chat_id: str) -> None:
        """Close the chat's call."""
        run = self._runs.get(chat_id)
        if run is not None:
            run.cancel()
            await asyncio.wait([run])

    async def _run(self, request: RunRequest) -> None:
        text = _Text()
        async with aclosing(self._answer(request)) as yielded:
            async for each in yielded:
                for event in text.events(each):
                    await self._listeners.publish(request.chat_id, event)
        for event in text.end():
            await self._listeners.publish(request.chat_id, event)

    def _end(self, chat_id: str, run: asyncio.Task[None]) -> None:
        # A callback, not the end of `_run`: a task that is cancelled before its first step never runs.
        del self._runs[chat_id]
        if run.cancelled():
            self._listeners.publish_now(chat_id, Abort())
        self._listeners.end(chat_id, None if run.cancelled() else run.exception())
