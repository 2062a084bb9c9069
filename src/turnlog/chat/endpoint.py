"""The backend of a `useChat` page: a request in, a stream out, and the chat saved while it is answered.

`Chat` is what a route of any framework calls; the routes are in `turnlog.chat.http`. A runtime makes the events, a
keeper has the messages, and a run goes on whether or not anybody reads it. The message that is being made is saved
every `SAVE_SECONDS`, each time in a form that could be its last. Who may see which chat is up to the routes.
"""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from msgspec import UNSET
from msgspec.structs import replace

from turnlog.aisdk.chunks import StartStepChunk, UIMessageChunk
from turnlog.aisdk.downgrade import downgrade_ui_message
from turnlog.aisdk.message_chunks import message_chunks
from turnlog.aisdk.parts import (
    DynamicToolUIPart,
    ReasoningUIPart,
    StepStartUIPart,
    TextUIPart,
    ToolUIPart,
    UIMessage,
    UIMessagePart,
)
from turnlog.aisdk.reader import UIMessageReader
from turnlog.aisdk.streaming import ErrorText, generic_error_text
from turnlog.aisdk.versions import Version, sdk_version
from turnlog.aisdk.writer import ChunkWriter, generate_message_id
from turnlog.aisdk.writer_tools import ABORTED, ABORTED_METADATA
from turnlog.arguments import checked
from turnlog.chat.canonical import StepRecord, exact_steps, with_steps
from turnlog.chat.conversion import for_pages, to_canonical, without_own_metadata
from turnlog.chat.keepers import AnswerRecorder, ChatDirectory, ChatKeeper, ChatPage, MemoryKeeper, StoredChat
from turnlog.chat.recovery import recovered_message
from turnlog.chat.requests import AnswerPlan, ChatRequest, has_decision, parse_chat_request, plan_answer
from turnlog.chat.runtime import AnswerFunction, FunctionRuntime, RunRequest, Runtime, resolved
from turnlog.chat.streams import POLL_SECONDS, RunningMessage, Streams
from turnlog.errors import ConflictError, NotFoundError
from turnlog.model import Ownership
from turnlog.model.stream import Abort, ApprovalRequest, RunFinish, StreamError, StreamEvent
from turnlog.store.session_state import AnswerOutcome

logger = logging.getLogger(__name__)

SAVE_SECONDS: Final = 0.5
"""How often the message that is being made is saved."""

ABORT_SECONDS: Final = 10.0
"""How long a runtime may take to stop."""

_SAVE_TRIES: Final = 3

RELOAD_SECONDS: Final = 10.0
"""How long after it was given the messages a page may resume the stream of the one that was left out of them."""

_NO_APPROVALS: Final = (
    "AI SDK 5 has no approvals: a call of a tool that asks for permission waits for ever. Use version=6"
)


class FinishedAnswer(NamedTuple):
    """An answer that has ended and is saved."""

    request: RunRequest
    message: UIMessage
    """The whole message, also what was there before it was continued."""
    outcome: AnswerOutcome


FinishFunction: TypeAlias = Callable[[FinishedAnswer], Awaitable[None] | None]


class Chat:
    """The chats of a server. Use one per process, on one event loop, and `close` it at the end."""

    @checked(
        runtime=None,
        keeper="NativeKeeper(path), MemoryKeeper() or an object with load and save",
        on_finish="a function that gets a FinishedAnswer",
    )
    def __init__(
        self,
        runtime: Runtime | AnswerFunction,
        keeper: ChatKeeper | None = None,
        streams: Streams | None = None,
        *,
        tools: Literal["dynamic", "named"] = "dynamic",
        error_text: ErrorText = generic_error_text,
        on_finish: FinishFunction | None = None,
        when_busy: Literal["replace", "refuse"] = "replace",
    ) -> None:
        """Put a backend together.

        Args:
            runtime: What answers: a runtime, or an async generator function that gets a `RunRequest`.
            keeper: Where the messages are; by default in memory.
            streams: Where running answers are; by default in memory. With a store in a file, other processes can
                resume and stop them.
            tools: `dynamic-tool` parts, or `tool-<name>` parts for pages that declare their tools.
            error_text: What the page is sent for an exception of the runtime; "An error occurred." by default.
            on_finish: Called with every answer once it has ended and is saved; it may be async. What it raises is
                logged.
            when_busy: What a request does to the running answer of its chat. `replace` stops it, keeps what was shown
                and goes on, as a page expects that stops, edits or regenerates; `refuse` is a ConflictError.

        Raises:
            TypeError: The runtime, the keeper or the streams are not what they must be.
        """
        self._runtime = _runtime_of(runtime)
        self._on_finish = on_finish
        self._keeper: ChatKeeper = MemoryKeeper() if keeper is None else keeper
        self._streams = Streams() if streams is None else streams
        self._tools: Literal["dynamic", "named"] = tools
        self._error_text = error_text
        self._replaces = when_busy == "replace"
        self._left_out: dict[str, list[tuple[str, float]]] = {}
        """Chat -> the streams whose message pages were not given, because they resume the stream, and when."""
        self._has_warned = False
        """Whether it was said that AI SDK 5 has no approvals."""

    # `owner` is whoever asks: a chat that is somebody else's is a NotFoundError, as if it did not exist. It needs a
    # keeper that knows owners (`ChatDirectory`). None is an app of one user: it has the chats that nobody owns, so that
    # a store that serves both shows no user's chats to everybody. `Ownership()` has all of them.

    @checked
    async def post(
        self, data: bytes | str, *, version: Version = 7, owner: Ownership | None = None, dependencies: Any = None
    ) -> AsyncGenerator[bytes, None]:
        """Parse the body of a request and begin to answer it; the bytes of the stream.

        Raises:
            ShapeError: It is no such body (HTTP 400).
            Exception: As `answer`.
        """
        request = parse_chat_request(data, version=version)
        return await self.answer(request, version=version, owner=owner, dependencies=dependencies)

    @checked
    async def answer(
        self, request: ChatRequest, *, version: Version = 7, owner: Ownership | None = None, dependencies: Any = None
    ) -> AsyncGenerator[bytes, None]:
        """Begin to answer a request; the bytes of the stream.

        The chat's stream is reserved first, so that of two requests at once only one reads and changes the chat. An
        answer that runs is stopped before (`when_busy`), unless the request cannot be answered anyway.

        Args:
            request: What the page sent.
            version: The page's AI SDK.
            owner: Who asks; a new chat becomes theirs.
            dependencies: Anything that the runtime and its tools get as `RunRequest.dependencies`.

        Raises:
            ShapeError: It does not fit the chat (HTTP 400).
            NotFoundError: It is about a message that the chat does not have, or the chat is somebody else's (HTTP 404).
            ConflictError: The chat is being answered and `when_busy` is `refuse`, a permission request is open or was
                answered before, or the chat was deleted (HTTP 409).
            Exception: What the keeper raised; nothing was begun.
        """
        await self._check(request.chat_id, owner)
        stream_id = await self._reserve(request, version, owner)
        try:
            plan = plan_answer(await resolved(self._keeper.load(request.chat_id)), request)
            if owner is not None:
                await resolved(self.directory.claim(request.chat_id, owner))
            await self._save_plan(request.chat_id, plan)
        except BaseException:
            await self._streams.discard(stream_id)
            raise
        run = RunRequest(
            chat_id=request.chat_id,
            messages=tuple(plan.messages),
            continued=plan.continued,
            body=request.body,
            owner=owner or Ownership(),
            dependencies=dependencies,
        )
        return await self._start(stream_id, run, version)

    @checked
    async def resume(self, chat_id: str, *, owner: Ownership | None = None) -> AsyncGenerator[bytes, None] | None:
        """The chat's running stream, from the start of its message; None (HTTP 204) if there is none."""
        await self._check(chat_id, owner)
        stream = await self._streams.resume(chat_id, recover=self._recover)
        left_out = self._take_left_out(chat_id)
        if stream is None and left_out is not None:
            # It has ended since the page was given the other messages.
            with suppress(NotFoundError):
                stream = await self._streams.subscribe(left_out)
        return stream

    @checked
    async def stop(self, chat_id: str, *, owner: Ownership | None = None) -> bool:
        """End the running answer in a valid way, and wait until it is saved; whether one ran."""
        await self._check(chat_id, owner)
        return await self._streams.stop(chat_id, recover=self._recover)

    @checked
    async def chats(self, *, owner: Ownership | None = None, limit: int = 50, cursor: str | None = None) -> ChatPage:
        """The owner's chats, the last changed first; by default those that nobody owns.

        Raises ValueError for a cursor that is none.
        """
        return await resolved(self.directory.chats(owner, limit=limit, cursor=cursor))

    @checked
    async def rename(self, chat_id: str, title: str | None, *, owner: Ownership | None = None) -> StoredChat:
        """Give a chat a title; None takes it away again. Raises NotFoundError."""
        return await resolved(self.directory.rename(chat_id, title, owner))

    @checked
    async def delete(self, chat_id: str, *, owner: Ownership | None = None) -> None:
        """End the running answer, and remove the chat for good: its id cannot be used again. Raises NotFoundError."""
        await self._check(chat_id, owner)
        await self._streams.stop(chat_id, recover=self._recover)
        await resolved(self.directory.delete(chat_id, owner))
        await self._streams.delete(chat_id)

    @checked
    async def messages(self, chat_id: str, *, version: Version = 7, owner: Ownership | None = None) -> list[UIMessage]:
        """The messages of a chat, for a page to begin with (`useChat({messages, resume: true})`).

        The message that is being made is left out: the page gets all of it from the stream that it resumes. Older
        clients (5.0.100, 6.0.100, 7.0.0) add the stream to a message that they have, and would show its text twice.
        """
        await self._check(chat_id, owner)
        release = sdk_version(version)
        running = await self._running_message(chat_id)
        loaded = await resolved(self._keeper.load(chat_id))
        if running is not None and any(message.id == running.message_id for message in loaded):
            self._note_left_out(chat_id, running.stream_id)
            loaded = [message for message in loaded if message.id != running.message_id]
        stored = [without_own_metadata(message) for message in loaded]
        if release.major == 7:
            return stored
        return [shown for message in stored for shown in downgrade_ui_message(message, version=release).messages]

    async def close(self) -> None:
        """End everything that runs, and save it."""
        await self._streams.close()

    @property
    def directory(self) -> ChatDirectory:
        """The keeper, if it knows whose chats are; raises TypeError otherwise."""
        if not isinstance(self._keeper, ChatDirectory):
            name = type(self._keeper).__name__
            raise TypeError(f"{name} neither lists chats nor knows their owners: use NativeKeeper(path)")
        return self._keeper

    def check_version(self, version: Version) -> None:
        """Warn if pages of this version cannot do what the runtime may ask of them."""
        if sdk_version(version).major == 5 and getattr(self._runtime, "asks_permission", False):
            self._has_warned = True
            warnings.warn(_NO_APPROVALS, stacklevel=3)

    def _note_question(self, version: Version) -> None:
        """Log once if a page is asked that cannot answer: only the runtime knew that it would ask."""
        if sdk_version(version).major == 5 and not self._has_warned:
            self._has_warned = True
            logger.warning(_NO_APPROVALS)

    async def _reserve(self, request: ChatRequest, version: Version, owner: Ownership | None) -> str:
        """Reserve the chat's stream; an answer that runs is ended first."""
        chat_id = request.chat_id
        while True:
            try:
                return await self._streams.reserve(chat_id, version, recover=self._recover)
            except ConflictError:
                # A decision that comes while an answer runs comes a second time: it must not end the run that it began.
                if not self._replaces or has_decision(request):
                    raise
            stored = await resolved(self._keeper.load(chat_id))
            if not stored:
                # The first request of a new chat has not said yet whose it is.
                await asyncio.sleep(POLL_SECONDS)
                continue
            await self._check(chat_id, owner)
            # What cannot be answered ends nothing; what is not known yet may be in the answer that runs.
            with suppress(NotFoundError):
                plan_answer(stored, request)
            await self._streams.stop(chat_id, recover=self._recover)

    async def _running_message(self, chat_id: str) -> RunningMessage | None:
        try:
            return await self._streams.running_message(chat_id, recover=self._recover)
        except Exception:
            # What was said before can be read without the store of streams.
            logger.exception("it is not known whether chat %s is being answered", chat_id)
            return None

    def _note_left_out(self, chat_id: str, stream_id: str) -> None:
        since = time.monotonic() - RELOAD_SECONDS
        self._left_out = {chat: noted for chat, noted in self._left_out.items() if noted[-1][1] > since}
        self._left_out.setdefault(chat_id, []).append((stream_id, time.monotonic()))

    def _take_left_out(self, chat_id: str) -> str | None:
        """The stream of a message that was left out for a page that has not resumed since."""
        noted = self._left_out.get(chat_id)
        if not noted:
            return None
        stream_id, at = noted.pop()
        if not noted:
            del self._left_out[chat_id]
        return stream_id if at > time.monotonic() - RELOAD_SECONDS else None

    async def _check(self, chat_id: str, owner: Ownership | None) -> None:
        if owner is not None or isinstance(self._keeper, ChatDirectory):
            await resolved(self.directory.check(chat_id, owner))

    async def _save_plan(self, chat_id: str, plan: AnswerPlan) -> None:
        """Save the question before it is answered."""
        changed = plan.messages[-1:] if plan.is_changed else []
        if changed or plan.retracted:
            await resolved(self._keeper.save(chat_id, changed, [message.id for message in plan.retracted]))
        if plan.continued is not None or not plan.is_changed:
            # The message that was the last one when the previous answer ended may be so again.
            await self._record(chat_id, None)

    async def _start(self, stream_id: str, run: RunRequest, version: Version) -> AsyncGenerator[bytes, None]:
        """Start a run as the reserved stream."""
        continued = run.continued
        message_id = generate_message_id() if continued is None else continued.id
        builder = AnswerBuilder(message_id, continued, tools=self._tools)
        writer = ChunkWriter(version, message_id=message_id, continued=continued, tools=self._tools)
        # The page that sent the request has what the message had before; one that comes back builds it from nothing.
        replayed = [] if continued is None else message_chunks(without_own_metadata(continued), version=version)
        source = self._answer(run, builder, version)
        self._streams.run(stream_id, source, writer, error_text=self._error_text, replayed=replayed)
        return await self._streams.subscribe(stream_id, len(replayed))

    # -- a run

    async def _answer(
        self, run: RunRequest, builder: AnswerBuilder, version: Version
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of a run. The message that they make is saved when this ends, however it ends."""
        saving = asyncio.create_task(self._save_often(run.chat_id, builder))
        outcome: AnswerOutcome = "failed"
        try:
            async with self._runtime.subscribe(run.chat_id) as events:
                begin = self._runtime.send if run.continued is None else self._runtime.resume
                await begin(run)
                async for event in events:
                    if isinstance(event, ApprovalRequest):
                        self._note_question(version)
                    builder.add(event)
                    yield for_pages(event)
            builder.end()
            outcome = builder.outcome
        except (asyncio.CancelledError, GeneratorExit):
            # A stop cancels the run. A generator that is closed without that has ended before.
            outcome = builder.outcome if builder.has_ended else "stopped"
            builder.abort()
            raise
        except Exception:
            builder.fail()
            raise
        finally:
            await _run_to_end(self._end(run, builder, saving, outcome))

    async def _end(
        self, run: RunRequest, builder: AnswerBuilder, saving: asyncio.Task[None], outcome: AnswerOutcome
    ) -> None:
        saving.cancel()
        await asyncio.wait([saving])
        await self._abort_run(run.chat_id)
        await self._save_last(run.chat_id, builder.message)
        await self._record(run.chat_id, outcome)
        if self._on_finish is not None:
            try:
                await resolved(self._on_finish(FinishedAnswer(run, builder.message, outcome)))
            except Exception:
                logger.exception("on_finish failed for chat %s", run.chat_id)

    async def _abort_run(self, chat_id: str) -> None:
        try:
            async with asyncio.timeout(ABORT_SECONDS):
                await self._runtime.abort(chat_id)
        except Exception:
            logger.exception("the run of chat %s could not be ended", chat_id)

    async def _recover(self, chat_id: str, chunks: list[UIMessageChunk], version: str) -> None:
        """Save what pages were shown of an answer whose server was killed."""
        for number in range(_SAVE_TRIES):
            try:
                stored = await resolved(self._keeper.load(chat_id))
                message = recovered_message(stored, chunks, version=version)
                if message is not None:
                    await resolved(self._keeper.save(chat_id, [message]))
            except Exception:
                logger.exception("an answer of chat %s that a killed server left could not be saved", chat_id)
                await asyncio.sleep(SAVE_SECONDS * number)
            else:
                return

    # -- saving

    async def _record(self, chat_id: str, outcome: AnswerOutcome | None) -> None:
        if not isinstance(self._keeper, AnswerRecorder):
            return
        try:
            await resolved(self._keeper.record_answer(chat_id, outcome))
        except Exception:
            logger.exception("the end of an answer of chat %s could not be recorded", chat_id)

    async def _save_often(self, chat_id: str, builder: AnswerBuilder) -> None:
        saved: UIMessage | None = None
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            if builder.has_begun and (message := builder.message) != saved and await self._save(chat_id, message):
                saved = message

    async def _save_last(self, chat_id: str, message: UIMessage) -> None:
        for number in range(_SAVE_TRIES):
            if await self._save(chat_id, message):
                return
            await asyncio.sleep(SAVE_SECONDS * number)

    async def _save(self, chat_id: str, message: UIMessage) -> bool:
        try:
            await resolved(self._keeper.save(chat_id, [message]))
        except Exception:
            logger.exception("a message of chat %s could not be saved; it is tried again", chat_id)
            return False
        return True


async def _run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run something to its end even if this task is cancelled meanwhile: a stop may come while an answer is ending."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _runtime_of(given: object) -> Runtime:
    """The runtime that was given, or that of a function; raise TypeError with what is wrong."""
    missing = [name for name in ("subscribe", "send", "resume", "abort") if not callable(getattr(given, name, None))]
    if not missing and not isinstance(given, type):
        return cast("Runtime", given)
    wrapper = _wrapper_of(given)
    if callable(given) and not isinstance(given, type) and wrapper is None:
        return FunctionRuntime(cast("AnswerFunction", given))
    name = f"the class {given.__name__} itself" if isinstance(given, type) else type(given).__name__
    raise TypeError(
        f"runtime cannot be {name}: expected "
        + (f"{wrapper}(…)" if wrapper else "an async generator function, or a runtime such as ProviderRuntime(…)")
    )


_WRAPPERS: Final = {
    "agents": "OpenAIAgentsRuntime",
    "langchain_core": "LangChainRuntime",
    "langgraph": "LangChainRuntime",
    "pydantic_ai": "PydanticAIRuntime",
}
"""Package of a framework -> the runtime for its agents."""


def _wrapper_of(given: object) -> str | None:
    """The runtime for an agent of another framework; None for anything else."""
    packages = [base.__module__.partition(".")[0] for base in type(given).__mro__]
    return next((_WRAPPERS[package] for package in packages if package in _WRAPPERS), None)


# -- the message


class AnswerBuilder:
    """Builds the message of one run from its events; `message` is whole and valid at any time.

    It is built for the newest AI SDK, which can say the most, whatever version the page has: an older page's stream has
    a writer of its own.
    """

    def __init__(
        self, message_id: str, continued: UIMessage | None = None, *, tools: Literal["dynamic", "named"] = "dynamic"
    ) -> None:
        """Begin a message, or continue one."""
        self._writer = ChunkWriter(7, message_id=message_id, continued=continued, tools=tools)
        self._reader = UIMessageReader(continued, version=7)
        self._stored = [] if continued is None else to_canonical(continued)
        self._record = StepRecord()
        parts = () if continued is None else continued.parts
        self._steps = sum(isinstance(part, StepStartUIPart) for part in parts)
        self.has_begun = False
        """Whether there is anything to save."""

        self._ending: AnswerOutcome = "finished"

    def add(self, event: StreamEvent) -> None:
        """Apply an event."""
        if isinstance(event, Abort | StreamError):
            self._ending = "stopped" if isinstance(event, Abort) else "failed"
        elif isinstance(event, RunFinish) and event.stop_reason == "error":
            self._ending = "failed"
        self._record.add(event, self._steps - 1)
        self._read(self._writer.write(event))

    def end(self) -> None:
        """End the message: the run has ended."""
        self._read(self._writer.close())

    def fail(self) -> None:
        """End the message: the run failed."""
        self._read(self._writer.fail())

    def abort(self) -> None:
        """End the message: the run was stopped."""
        self._read(self._writer.abort())

    @property
    def has_ended(self) -> bool:
        """Whether the events have ended the message."""
        return self._writer.closed

    @property
    def outcome(self) -> AnswerOutcome:
        """How the message ended, as far as its events say."""
        return self._ending

    @property
    def message(self) -> UIMessage:
        """The message; while the run goes on, as if it had been killed now."""
        message = self._reader.message
        shown = message if self._writer.closed else settle(message)
        return with_steps(shown, exact_steps(shown, self._stored, self._record))

    def _read(self, chunks: list[UIMessageChunk]) -> None:
        for chunk in chunks:
            self.has_begun = True
            self._steps += isinstance(chunk, StartStepChunk)
            self._reader.feed(chunk)


def settle(message: UIMessage) -> UIMessage:
    """The message as it would be if nothing followed: valid, with nothing in it that still runs."""
    return replace(message, parts=tuple(_settle_part(part) for part in message.parts))


def _settle_part(part: UIMessagePart) -> UIMessagePart:
    if isinstance(part, TextUIPart | ReasoningUIPart):
        return replace(part, state="done") if part.state == "streaming" else part
    if isinstance(part, ToolUIPart | DynamicToolUIPart) and part.state in _RUNNING:
        return _stop_call(part)
    return part


_RUNNING = ("input-streaming", "input-available", "approval-responded")
"""Without `approval-requested`: the user may still answer, and the run continues with that."""


def _stop_call(part: ToolUIPart | DynamicToolUIPart) -> UIMessagePart:
    # Refused, and killed before the refusal was written down as its outcome.
    if part.approval is not UNSET and part.approval.approved is False:
        return replace(part, state="output-denied")
    # AI SDK accepts `rawInput` only in a part without `input`.
    raw_input = part.raw_input if part.input is UNSET else UNSET
    return replace(
        part,
        state="output-error",
        raw_input=raw_input,
        input_encoding=UNSET,
        error_text=ABORTED,
        result_provider_metadata=ABORTED_METADATA,
    )
