"""The backend of a `useChat` page: a request in, a stream out, and the chat saved while it is answered.

`Chat` is what a route of any framework calls; the routes are in `turnlog.chat.http`. A runtime makes the events, a
keeper has the messages, and a run goes on whether or not anybody reads it. The message that is being made is saved
every `SAVE_SECONDS`, each time in a form that could be its last. Who may see which chat is up to the routes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, Final, Literal

from msgspec import UNSET
from msgspec.structs import replace

from turnlog.aisdk.chunks import UIMessageChunk
from turnlog.aisdk.downgrade import downgrade_ui_message
from turnlog.aisdk.parts import (
    DynamicToolUIPart,
    ReasoningUIPart,
    TextUIPart,
    ToolUIPart,
    UIMessage,
    UIMessagePart,
)
from turnlog.aisdk.pump import ErrorText, no_details
from turnlog.aisdk.reader import UIMessageReader
from turnlog.aisdk.versions import Version, sdk_version
from turnlog.aisdk.writer import ChunkWriter, generate_message_id
from turnlog.aisdk.writer_tools import ABORTED, ABORTED_METADATA
from turnlog.chat.keepers import ChatKeeper, MemoryKeeper
from turnlog.chat.requests import ChatRequest, own_metadata_left_out, parse_chat_request, take_in
from turnlog.chat.runtime import Answer, AnswerRuntime, RunRequest, Runtime
from turnlog.chat.streams import Streams
from turnlog.model.stream import StreamEvent


class AnswerBuilder:
    """Takes the events of one run; `message` is what they came to."""

    def __init__(
        self, message_id: str, continued: UIMessage | None = None, *, tools: Literal["dynamic", "named"] = "dynamic"
    ) -> None:
        """Begin a message, or go on with one."""
        self._writer = ChunkWriter(7, message_id=message_id, continued=continued, tools=tools)
        self._reader = UIMessageReader(continued, version=7)
        self.begun = False
        """Whether there is anything to keep."""

    def add(self, event: StreamEvent) -> None:
        """Take an event."""
        self._read(self._writer.write(event))

    def end(self) -> None:
        """The run has ended."""
        self._read(self._writer.close())

    def fail(self) -> None:
        """The run broke down."""
        self._read(self._writer.fail())

    def abort(self) -> None:
        """The run was stopped."""
        self._read(self._writer.abort())

    @property
    def message(self) -> UIMessage:
        """The message; while the run goes on, as if it had been killed now."""
        message = self._reader.message
        return message if self._writer.closed else settle(message)

    def _read(self, chunks: list[UIMessageChunk]) -> None:
        for chunk in chunks:
            self.begun = True
            self._reader.feed(chunk)


def settle(message: UIMessage) -> UIMessage:
    """The message as it would be if nothing followed: valid, with nothing in it that still runs."""
    return replace(message, parts=tuple(_settled(part) for part in message.parts))


def _settled(part: UIMessagePart) -> UIMessagePart:
    if isinstance(part, TextUIPart | ReasoningUIPart):
        return replace(part, state="done") if part.state == "streaming" else part
    if isinstance(part, ToolUIPart | DynamicToolUIPart) and part.state in _RUNNING:
        return _stopped(part)
    return part


_RUNNING = ("input-streaming", "input-available", "approval-responded")


def _stopped(part: ToolUIPart | DynamicToolUIPart) -> UIMessagePart:
    if part.approval is not UNSET and part.approval.approved is False:
        return replace(part, state="output-denied")
    # The text of an input is only wanted where there is no input.
    raw_input = part.raw_input if part.input is UNSET else UNSET
    return replace(
        part,
        state="output-error",
        raw_input=raw_input,
        input_encoding=UNSET,
        error_text=ABORTED,
        result_provider_metadata=ABORTED_METADATA,
    )


logger = logging.getLogger(__name__)

SAVE_SECONDS: Final = 0.5
"""How often a message that is being made is saved."""

ABORT_SECONDS: Final = 10.0
"""So long a runtime may take to stop."""

_TRIES: Final = 3


class Chat:
    """The chats of a server. Use one per process, on one event loop, and `close` it at the end."""

    def __init__(
        self,
        runtime: Runtime | Answer,
        keeper: ChatKeeper | None = None,
        streams: Streams | None = None,
        *,
        tools: Literal["dynamic", "named"] = "dynamic",
        error_text: ErrorText = no_details,
    ) -> None:
        """Put a backend together.

        Args:
            runtime: What answers: a runtime, or an async generator function that gets a `RunRequest`.
            keeper: Where the messages are; by default in memory.
            streams: Where running answers are; by default in memory. With a store in a file, other processes can
                resume and stop them.
            tools: `dynamic-tool` parts, or `tool-<name>` parts for pages that declare their tools.
            error_text: What the page reads of an exception of the runtime; "An error occurred." by default.
        """
        self._runtime: Runtime = AnswerRuntime(runtime) if callable(runtime) else runtime
        self._keeper: ChatKeeper = MemoryKeeper() if keeper is None else keeper
        self._streams = Streams() if streams is None else streams
        self._tools: Literal["dynamic", "named"] = tools
        self._error_text = error_text

    async def post(self, data: bytes | str, *, version: Version = 7) -> AsyncGenerator[bytes, None]:
        """Take the body of a request in and begin to answer it; the bytes of the stream.

        Raises:
            ShapeError: It is no such body (answer 400).
            Exception: As `answer`.
        """
        return await self.answer(parse_chat_request(data, version=version), version=version)

    async def answer(self, request: ChatRequest, *, version: Version = 7) -> AsyncGenerator[bytes, None]:
        """Begin to answer a request; the bytes of the stream.

        Raises:
            ShapeError: It does not fit the chat (400).
            NotFoundError: It is about a message that the chat does not have (404).
            ConflictError: The chat is being answered (409).
            Exception: What the keeper raised; nothing was begun.
        """
        stream_id = await self._streams.reserve(request.chat_id, version)
        try:
            run = await self._take_in(request)
        except BaseException:
            await self._streams.discard(stream_id)
            raise
        message_id = generate_message_id() if run.continued is None else run.continued.id
        writer = ChunkWriter(version, message_id=message_id, continued=run.continued, tools=self._tools)
        builder = AnswerBuilder(message_id, run.continued, tools=self._tools)
        self._streams.run(stream_id, self._answer(run, builder), writer, error_text=self._error_text)
        return await self._streams.subscribe(stream_id)

    async def resume(self, chat_id: str) -> AsyncGenerator[bytes, None] | None:
        """The stream that the chat is in the middle of, from its start on; None (answer 204) where there is none."""
        return await self._streams.resume(chat_id)

    async def stop(self, chat_id: str) -> bool:
        """End the answer that runs, in a valid way, and wait until it is kept; say whether one ran."""
        return await self._streams.stop(chat_id)

    async def messages(self, chat_id: str, *, version: Version = 7) -> list[UIMessage]:
        """The messages of a chat, for a page to begin with (`useChat({messages})`)."""
        release = sdk_version(version)
        stored = [own_metadata_left_out(message) for message in await self._keeper.load(chat_id)]
        if release.major == 7:
            return stored
        return [shown for message in stored for shown in downgrade_ui_message(message, version=release).messages]

    async def close(self) -> None:
        """End everything that runs, and keep it."""
        await self._streams.close()

    async def _take_in(self, request: ChatRequest) -> RunRequest:
        chat_id = request.chat_id
        turn = take_in(await self._keeper.load(chat_id), request)
        changed = turn.messages[-1:] if turn.changed else []
        if changed or turn.retracted:
            await self._keeper.save(chat_id, changed, [message.id for message in turn.retracted])
        return RunRequest(chat_id=chat_id, messages=tuple(turn.messages), continued=turn.continued, body=request.body)

    async def _answer(self, run: RunRequest, builder: AnswerBuilder) -> AsyncGenerator[StreamEvent, None]:
        """The events of a run; what they come to is kept when this ends, however it does."""
        saving = asyncio.create_task(self._save_often(run.chat_id, builder))
        try:
            async with self._runtime.subscribe(run.chat_id) as told:
                begin = self._runtime.send if run.continued is None else self._runtime.resume
                await begin(run)
                async for event in told:
                    builder.add(event)
                    yield event
            builder.end()
        except (asyncio.CancelledError, GeneratorExit):
            # Whoever stops a run cancels it. Closed without that, it has told its end before.
            builder.abort()
            raise
        except Exception:
            builder.fail()
            raise
        finally:
            await _undisturbed(self._end(run.chat_id, builder, saving))

    async def _end(self, chat_id: str, builder: AnswerBuilder, saving: asyncio.Task[None]) -> None:
        saving.cancel()
        await asyncio.wait([saving])
        await self._end_run(chat_id)
        await self._save_last(chat_id, builder.message)

    async def _end_run(self, chat_id: str) -> None:
        try:
            async with asyncio.timeout(ABORT_SECONDS):
                await self._runtime.abort(chat_id)
        except Exception:
            logger.exception("the run of chat %s could not be ended", chat_id)

    async def _save_often(self, chat_id: str, builder: AnswerBuilder) -> None:
        saved: UIMessage | None = None
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            if builder.begun and (message := builder.message) != saved and await self._save(chat_id, message):
                saved = message

    async def _save_last(self, chat_id: str, message: UIMessage) -> None:
        for number in range(_TRIES):
            if await self._save(chat_id, message):
                return
            await asyncio.sleep(SAVE_SECONDS * number)

    async def _save(self, chat_id: str, message: UIMessage) -> bool:
        try:
            await self._keeper.save(chat_id, [message])
        except Exception:
            logger.exception("a message of chat %s could not be saved; it is tried again", chat_id)
            return False
        return True


async def _undisturbed(work: Coroutine[Any, Any, None]) -> None:
    """Do all of it, also where this is cancelled meanwhile: who stops an answer that has just ended stops nothing."""
    doing = asyncio.create_task(work)
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        raise
