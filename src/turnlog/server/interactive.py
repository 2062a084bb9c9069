"""Agents that answer a prompt of the page and ask it for permission, without a screen.

What they need of chats is imported with this module, when the first of them starts.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from turnlog.aisdk.parts import DynamicToolUIPart, TextUIPart, ToolApproval, UIMessage
from turnlog.chat.conversion import SESSION_KEY
from turnlog.chat.runtime import RunRequest
from turnlog.chat.runtimes import AgentCommand, AgentRuntime
from turnlog.model.stream import ApprovalRequest, Pause, RunStart, StreamError, StreamEvent, ToolInputAvailable
from turnlog.server.responses import PermissionRequest

logger = logging.getLogger(__name__)

_GRACE_SECONDS = 2.0
"""How long an interactive agent has for each way of stopping it."""


class OpenRequest(NamedTuple):
    """A permission request that nobody has answered yet."""

    request: PermissionRequest
    requested_at: datetime


class InteractiveRuns:
    """The event loop on which interactive runs are, in its own thread."""

    def __init__(self, store_path: Path) -> None:
        """Start the event loop. The runs are recorded in the store."""
        self._store_path = store_path
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run_loop, args=(self._loop,), name="turnlog-prompts", daemon=True)
        self._thread.start()

    def begin(
        self, session_id: str, command: AgentCommand, prompt: str, on_request: Callable[[], None]
    ) -> InteractiveRun:
        """Start the agent that the command starts in the session's folder."""
        runtime = AgentRuntime(command, store_path=self._store_path, grace_seconds=_GRACE_SECONDS)
        return InteractiveRun(self._loop, runtime, session_id, prompt, on_request)

    def close(self) -> None:
        """End the event loop; every run must have ended."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


class _Response(NamedTuple):
    request: PermissionRequest
    allow: bool
    reason: str | None


class InteractiveRun:
    """An agent at work that requests permission from the page. Public methods may be called from any thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        runtime: AgentRuntime,
        session_id: str,
        prompt: str,
        on_request: Callable[[], None],
    ) -> None:
        """Begin to answer the prompt; `on_request` is called for each permission request, on any thread."""
        self._loop = loop
        self._runtime = runtime
        self._session_id = session_id
        self._on_request = on_request
        self._lock = threading.Lock()
        self._requests: dict[str, OpenRequest] = {}
        self._calls: dict[str, ToolInputAvailable] = {}
        self._responses: asyncio.Queue[_Response | None] = asyncio.Queue()
        self._problem: str | None = None
        self._is_paused = self._is_stopped = False
        self.has_begun = False
        """Whether the agent has said that it continues the session."""
        self._ended: Future[None] = asyncio.run_coroutine_threadsafe(self._run(prompt), loop)

    @property
    def permission_requests(self) -> tuple[OpenRequest, ...]:
        """The open requests, oldest first."""
        with self._lock:
            return tuple(self._requests.values())

    def answer(self, request_id: str, *, allow: bool, reason: str | None) -> bool:
        """Answer a permission request; False if it is not open."""
        with self._lock:
            request = self._requests.pop(request_id, None)
        if request is not None:
            self._put(_Response(request.request, allow, reason))
        return request is not None

    def wait(self) -> str | None:
        """Wait for its end; return why it failed, None if it did not or was stopped."""
        try:
            self._ended.result()
        except Exception as error:  # Any: otherwise the session would count as running for ever.
            logger.warning("a prompt of %s failed", self._session_id, exc_info=error)
            self._problem = str(error) or type(error).__name__
        return None if self._is_stopped else self._problem

    def stop(self) -> None:
        """Stop the agent and wait for its end."""
        self._is_stopped = self.has_begun = True
        self._put(None)
        asyncio.run_coroutine_threadsafe(self._runtime.abort(self._session_id), self._loop).result()
        self.wait()

    def _put(self, response: _Response | None) -> None:
        self._loop.call_soon_threadsafe(self._responses.put_nowait, response)

    # -- on the event loop

    async def _run(self, prompt: str) -> None:
        request = _run_request(self._session_id, prompt)
        try:
            await self._follow(request)
            while self._is_paused:
                response = await self._responses.get()
                if response is None or self._is_stopped:
                    break
                await self._follow(_continued(request, response))
        finally:
            await self._runtime.release(self._session_id)
            await self._runtime.close()

    async def _follow(self, request: RunRequest) -> None:
        self._is_paused = False
        async with self._runtime.subscribe(self._session_id) as events:
            await (self._runtime.resume(request) if request.continued else self._runtime.send(request))
            async for event in events:
                self._apply(event)

    def _apply(self, event: StreamEvent) -> None:
        match event:
            case RunStart():
                self.has_begun = True
            case ToolInputAvailable():
                self._calls[event.tool_call_id] = event
            case ApprovalRequest():
                request = self._permission_request(event)
                with self._lock:
                    self._requests[request.id] = OpenRequest(request, datetime.now(UTC))
                self._on_request()
            case Pause():
                self._is_paused = True
            case StreamError():
                self._problem = event.error_text
            case _:
                return

    def _permission_request(self, event: ApprovalRequest) -> PermissionRequest:
        call = self._calls.get(event.tool_call_id)
        return PermissionRequest(
            id=event.approval_id,
            tool_call_id=event.tool_call_id,
            tool_name=None if call is None else call.tool_name,
            input=None if call is None or call.input is UNSET else call.input,
            reason=event.reason,
        )


def _run_request(session_id: str, prompt: str) -> RunRequest:
    """The request that continues the session, as a chat would make it."""
    before = UIMessage(id="before", role="assistant", parts=(), metadata={SESSION_KEY: session_id})
    question = UIMessage(id="prompt", role="user", parts=(TextUIPart(text=prompt),))
    return RunRequest(chat_id=session_id, messages=(before, question))


def _continued(run: RunRequest, response: _Response) -> RunRequest:
    """The request that continues a run with the answer to a permission request, as a chat would make it."""
    request = response.request
    approval = ToolApproval(id=request.id, approved=response.allow, reason=response.reason or UNSET)
    part = DynamicToolUIPart(
        tool_call_id=request.tool_call_id,
        tool_name=request.tool_name or "",
        state="approval-responded",
        approval=approval,
    )
    message = UIMessage(id="answer", role="assistant", parts=(part,))
    return msgspec.structs.replace(run, messages=(*run.messages, message), continued=message)
