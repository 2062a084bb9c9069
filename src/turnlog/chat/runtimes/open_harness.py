"""Open Harness behind a chat: as a runtime of `Chat`, and as AI SDK's `ChatTransport` in Python.

Both subscribe to an Open Harness runtime, send it the user's message, and pass on its events until the run has ended.
What the events mean is in `turnlog.chat.runtimes.open_harness_events`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol, TypeAlias

from turnlog.aisdk.chunks import UIMessageChunk
from turnlog.aisdk.codec import encode
from turnlog.aisdk.json_text import parse_json
from turnlog.aisdk.parts import FileUIPart, TextUIPart, UIMessage
from turnlog.aisdk.versions import Version
from turnlog.aisdk.writer import ChunkWriter
from turnlog.chat.runtime import FunctionRuntime, RunRequest
from turnlog.chat.runtimes.open_harness_events import EventTranslator, HarnessEvent, TransportOptions
from turnlog.errors import ConflictError, ConversionError
from turnlog.model.stream import StreamEvent

logger = logging.getLogger(__name__)

NO_USER_MESSAGE = "No user message found"
NO_TEXT = "User message has no text content"

Unsubscribe: TypeAlias = Callable[[], None]


class HarnessRuntime(Protocol):
    """What an Open Harness runtime has to offer."""

    def subscribe(self, listener: Callable[[HarnessEvent], None], /) -> Unsubscribe:
        """Call `listener` with every event, in order, in the event loop's thread, until unsubscribed."""
        ...

    def dispatch(self, command: dict[str, Any], /) -> Awaitable[None] | None:
        """Take a command, here `{"type": "send", "message": …, "parts": […]}`."""
        ...


class OpenHarnessRuntime(FunctionRuntime):
    """A `turnlog.chat.Runtime`: every answer of a chat is one run of its Open Harness runtime.

    Nodes that stream at once take turns in the message: no text gets into another node's part, and a part ends when
    another node's begins.
    """

    def __init__(self, open_runtime: Callable[[str], HarnessRuntime], options: TransportOptions | None = None) -> None:
        """Answer chats by Open Harness.

        Args:
            open_runtime: Returns the Open Harness runtime of a chat, by the chat's id. Two chats need two, since a
                runtime sends its events to everybody who has subscribed.
            options: What of a run gets into the stream. The chat makes the ids of messages.
        """
        super().__init__(self._answer_by_harness)
        self._open_runtime = open_runtime
        self._options = options or TransportOptions()

    async def send(self, request: RunRequest) -> None:
        """Send the last user message.

        Raises:
            ConversionError: There is no user message, or no text in it (R-O19).
            ConflictError: A run of the chat has not ended.
        """
        _command(request.messages)
        await super().send(request)

    async def resume(self, request: RunRequest) -> None:
        """Raise ConflictError: a run asks the page nothing."""
        raise ConflictError(f"the run of chat {request.chat_id} waits for no answer")

    async def _answer_by_harness(self, request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        translator = EventTranslator(self._options)
        runtime = self._open_runtime(request.chat_id)
        async with _exchange(runtime, _command(request.messages)) as items:
            while not translator.has_ended:
                item = await items.get()
                if isinstance(item, _Failure):
                    raise item.error
                if not isinstance(item, _Abortion):
                    for event in translator.translate(item):
                        yield event


class OpenHarnessAdapter:
    """Turns the events of one run into chunks; `closed` says whether the run's end has ended the stream.

    A node is a lane of its own: nodes that stream at once each have their open part, and no delta gets into another
    node's.
    """

    def __init__(self, version: Version = 7, options: TransportOptions | None = None, *, strict: bool = False) -> None:
        """Write for a release of AI SDK; `strict` raises StreamStateError for an event that would be skipped."""
        self.options = options or TransportOptions()
        self.writer = ChunkWriter(version, message_id=self.options.generate_message_id(), strict=strict)
        self._translator = EventTranslator(self.options, strict=strict)

    @property
    def closed(self) -> bool:
        """Whether the stream has ended."""
        return self.writer.closed

    def write(self, event: HarnessEvent) -> list[UIMessageChunk]:
        """The chunks of one event; none for one that is skipped (R-O14)."""
        if self.closed:
            return []
        events = self._translator.translate(event)
        node = event.get("nodeId") if events else None
        lane = node if isinstance(node, str) else ""
        return [chunk for each in events for chunk in self.writer.write(each, lane)]

    def close(self) -> list[UIMessageChunk]:
        """End the stream of a runtime that sends nothing more."""
        return self.writer.close()


class OpenHarnessTransport:
    """Exchanges messages with a runtime; every exchange has its own stream, subscription and message id (R-O17, R-O25).

    This is AI SDK's `ChatTransport`: it returns chunks and keeps nothing. `OpenHarnessRuntime` serves pages.
    """

    def __init__(
        self, runtime: HarnessRuntime, options: TransportOptions | None = None, *, version: Version = 7
    ) -> None:
        """Use a runtime, for clients of a release of AI SDK."""
        self._runtime = runtime
        self._options = options or TransportOptions()
        self._version: Version = version

    async def send_messages(
        self, messages: Sequence[UIMessage], *, abort_signal: asyncio.Event | None = None
    ) -> AsyncGenerator[UIMessageChunk, None]:
        """Send the last user message, and yield the chunks of the answer as its events arrive.

        Args:
            messages: The chat; all texts and files of its last user message are sent (R-O19).
            abort_signal: Ends the stream when it is set (R-O20).

        Raises:
            ConversionError: There is no user message, or no text in it.
        """
        command = _command(messages)
        adapter = OpenHarnessAdapter(self._version, self._options)
        async with _exchange(self._runtime, command, abort_signal) as items:
            while not adapter.closed:
                for chunk in _chunks_of(await items.get(), adapter):
                    yield chunk

    def reconnect_to_stream(self) -> None:
        """Return None: a run's events are not kept, so nothing can be resumed; over HTTP that is 204 (R-O22)."""
        return None


# -- one exchange with a runtime


class _Failure(NamedTuple):
    """The command could not be dispatched."""

    error: Exception


class _Abortion(NamedTuple):
    """The abort signal was set."""


_Item: TypeAlias = HarnessEvent | _Failure | _Abortion


@asynccontextmanager
async def _exchange(
    runtime: HarnessRuntime, command: dict[str, Any], abort_signal: asyncio.Event | None = None
) -> AsyncGenerator[asyncio.Queue[_Item], None]:
    """Subscribe, dispatch a command, and put what comes into a queue; leaving it unsubscribes (R-O18)."""
    items: asyncio.Queue[_Item] = asyncio.Queue()
    # Before the command is dispatched, so that no event is missed.
    unsubscribe = runtime.subscribe(items.put_nowait)
    tasks = [asyncio.ensure_future(_dispatch(runtime, command, items))]
    if abort_signal is not None:
        tasks.append(asyncio.ensure_future(_wait_for(abort_signal, items)))
    try:
        yield items
    finally:
        unsubscribe()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _dispatch(runtime: HarnessRuntime, command: dict[str, Any], items: asyncio.Queue[_Item]) -> None:
    try:
        waiting = runtime.dispatch(command)
        if inspect.isawaitable(waiting):
            await waiting
    except Exception as error:
        logger.exception("an Open Harness runtime refused a command")
        items.put_nowait(_Failure(error))


async def _wait_for(abort_signal: asyncio.Event, items: asyncio.Queue[_Item]) -> None:
    await abort_signal.wait()
    items.put_nowait(_Abortion())


def _chunks_of(item: _Item, adapter: OpenHarnessAdapter) -> list[UIMessageChunk]:
    if isinstance(item, _Failure):
        return adapter.writer.fail(str(item.error) or type(item.error).__name__)
    if isinstance(item, _Abortion):
        return adapter.writer.abort()
    return adapter.write(item)


def _command(messages: Sequence[UIMessage]) -> dict[str, Any]:
    """The command that sends the last user message: its text, and its parts, so that files are sent too."""
    last = next((message for message in reversed(messages) if message.role == "user"), None)
    if last is None:
        raise ConversionError(NO_USER_MESSAGE)
    text = "\n".join([part.text for part in last.parts if isinstance(part, TextUIPart)])
    if not text:
        raise ConversionError(NO_TEXT)
    sent = [part for part in last.parts if isinstance(part, TextUIPart | FileUIPart)]
    return {"type": "send", "message": text, "parts": parse_json(encode(sent))}
