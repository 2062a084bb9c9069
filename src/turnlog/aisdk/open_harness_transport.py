"""One exchange with an Open Harness runtime: subscribe, send the user's message, give chunks until the run has ended.

The Python form of AI SDK's `ChatTransport`. What the events mean is in `turnlog.aisdk.open_harness`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from turnlog.aisdk.chunks import UIMessageChunk
from turnlog.aisdk.codec import encode
from turnlog.aisdk.json_text import parse_json
from turnlog.aisdk.open_harness import OpenHarnessAdapter, RuntimeEvent, TransportOptions
from turnlog.aisdk.parts import FileUIPart, TextUIPart, UIMessage
from turnlog.aisdk.versions import Version
from turnlog.aisdk.writer_values import Chunks
from turnlog.errors import ConversionError

logger = logging.getLogger(__name__)

NO_USER_MESSAGE = "No user message found"
NO_TEXT = "User message has no text content"

Unsubscribe = Callable[[], None]


class Runtime(Protocol):
    """What is asked of a runtime."""

    def subscribe(self, listener: Callable[[RuntimeEvent], None], /) -> Unsubscribe:
        """Call `listener` with every event, in order, in the event loop's thread, until unsubscribed."""
        ...

    def dispatch(self, command: dict[str, Any], /) -> Awaitable[None] | None:
        """Take a command, here `{"type": "send", "message": …, "parts": […]}`."""
        ...


class OpenHarnessTransport:
    """Chats with a runtime; every exchange has a stream, a subscription and a message id of its own (R-O17, R-O25)."""

    def __init__(self, runtime: Runtime, options: TransportOptions | None = None, *, version: Version = 7) -> None:
        """Use a runtime, for clients of a release of AI SDK."""
        self._runtime = runtime
        self._options = options or TransportOptions()
        self._version: Version = version

    async def send_messages(
        self, messages: Sequence[UIMessage], *, abort_signal: asyncio.Event | None = None
    ) -> AsyncGenerator[UIMessageChunk, None]:
        """Send the last user message, and give the chunks of the answer as its events arrive.

        Args:
            messages: The chat; all texts and files of its last user message are sent (R-O19).
            abort_signal: Ends the stream when it is set (R-O20).

        Raises:
            ConversionError: There is no user message, or no text in it.
        """
        command = _command(messages)
        adapter = OpenHarnessAdapter(self._version, self._options)
        queue: asyncio.Queue[_Item] = asyncio.Queue()
        # Before the command, so that no event is missed (R-O18).
        unsubscribe = self._runtime.subscribe(queue.put_nowait)
        tasks = [asyncio.ensure_future(self._dispatch(command, queue))]
        if abort_signal is not None:
            tasks.append(asyncio.ensure_future(_wait_for(abort_signal, queue)))
        try:
            while not adapter.closed:
                for chunk in _chunks_of(await queue.get(), adapter):
                    yield chunk
        finally:
            unsubscribe()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def reconnect_to_stream(self) -> None:
        """Nothing can be resumed: a run's events are not kept, and over HTTP the answer is 204 (R-O22)."""
        return None

    async def _dispatch(self, command: dict[str, Any], queue: asyncio.Queue[_Item]) -> None:
        try:
            waiting = self._runtime.dispatch(command)
            if inspect.isawaitable(waiting):
                await waiting
        except Exception as error:
            logger.exception("an Open Harness runtime refused a command")
            queue.put_nowait(_Failure(str(error) or type(error).__name__))


class _Failure(NamedTuple):
    """The command could not be dispatched."""

    text: str


class _Abortion(NamedTuple):
    """The abort signal was set."""


_Item: TypeAlias = RuntimeEvent | _Failure | _Abortion


def _chunks_of(item: _Item, adapter: OpenHarnessAdapter) -> Chunks:
    if isinstance(item, _Failure):
        return adapter.writer.fail(item.text)
    if isinstance(item, _Abortion):
        return adapter.writer.abort()
    return adapter.write(item)


async def _wait_for(abort_signal: asyncio.Event, queue: asyncio.Queue[_Item]) -> None:
    await abort_signal.wait()
    queue.put_nowait(_Abortion())


def _command(messages: Sequence[UIMessage]) -> dict[str, Any]:
    """What the runtime is sent: the text of the last user message, and its parts where files are among them."""
    last = next((message for message in reversed(messages) if message.role == "user"), None)
    if last is None:
        raise ConversionError(NO_USER_MESSAGE)
    text = "\n".join([part.text for part in last.parts if isinstance(part, TextUIPart)])
    if not text:
        raise ConversionError(NO_TEXT)
    sent = [part for part in last.parts if isinstance(part, TextUIPart | FileUIPart)]
    return {"type": "send", "message": text, "parts": parse_json(encode(sent))}
