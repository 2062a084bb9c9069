"""What the runtimes for agents of other frameworks share: their base, and a chat's calls and results for models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any, ClassVar, Final, Generic, TypeVar

from msgspec import Raw

from turnlog.arguments import refusal
from turnlog.chat.attachments import Attachments, LoadAttachment, WriteData
from turnlog.chat.runtime import FunctionRuntime, RunRequest
from turnlog.model import FilePart, Message, Part, TextPart, ToolCallPart, ToolResult, ToolState
from turnlog.model.lenient_json import parse_json
from turnlog.model.parts import ResultStatus
from turnlog.model.stream import Pause, StreamError, StreamEvent

AgentT = TypeVar("AgentT")


class FrameworkRuntime(FunctionRuntime, Generic[AgentT]):
    """Answers chats by an agent of another framework."""

    kind: ClassVar[type[Any]]
    """What its agents are."""
    expected: ClassVar[str]
    """The same in words."""

    provider: ClassVar[str] = ""
    """The provider of `turnlog.providers` whose ids of files the framework takes."""

    def __init__(
        self,
        agent: AgentT,
        *,
        load_file: LoadAttachment | None = None,
        write_data: WriteData | None = None,
        **options: Any,
    ) -> None:
        """Answer chats by this agent; other options are passed on to each of its runs.

        Args:
            agent: The agent.
            load_file: As that of `ProviderRuntime`.
            write_data: As that of `ProviderRuntime`.
            options: Those of the framework.

        Raises:
            TypeError: It is no agent of the framework.
        """
        if not isinstance(agent, self.kind):
            raise refusal(f"{type(self).__name__}: agent", agent, self.expected)
        super().__init__(self._answer_by_agent)
        self._agent = agent
        self._attachments = Attachments(self.provider, load_file, write_data)
        self._options = options

    async def _answer_by_agent(self, request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        attached = await self._attachments.in_history(request.history(), request)
        history = attached.messages
        if attached.refusal is not None:
            yield StreamError(error_text=attached.refusal, kind="prompt")
            return
        if waits(history):
            yield Pause(reason="approval")
            return
        async with aclosing(self._run_agent(request, history)) as events:
            async for event in events:
                yield event

    @abstractmethod
    def _run_agent(self, request: RunRequest, history: list[Message]) -> AsyncGenerator[StreamEvent, None]:
        """The events of one run, for a history without open permission requests."""


INTERRUPTED: Final = "The tool call was interrupted; there is no result."

DENIED: Final = "The tool call was denied."


def text_result(call_id: str, text: str, status: ResultStatus = "success") -> ToolResult:
    """A result whose output, or error, is a text; JSON is shown as JSON."""
    name = f"{call_id}:result"
    if status == "success":
        return ToolResult(id=name, content=(TextPart(text=text),))
    return ToolResult(id=name, status=status, error_text=text)


def content_result(call_id: str, content: Iterable[Part], text: str, status: ResultStatus = "success") -> ToolResult:
    """A result of several parts, such as texts and pictures; `text` is what an error says."""
    parts = tuple(content)
    if all(isinstance(part, TextPart) for part in parts) and len(parts) < 2:
        return text_result(call_id, text, status)
    return ToolResult(
        id=f"{call_id}:result", status=status, content=parts, error_text=None if status == "success" else text
    )


def result_parts(call: ToolCallPart) -> tuple[Part, ...]:
    """The parts of a call's outcome, if it has others than text; else none."""
    parts = call.results[-1].content if call.results else ()
    return parts if any(isinstance(part, FilePart) for part in parts) else ()


def arguments(text: str) -> dict[str, Any]:
    """The arguments of a call, as fields of `ToolInputAvailable`: JSON, or the text that is none."""
    try:
        parse_json(text)
    except (ValueError, RecursionError):
        return {"input_text": text}
    return {"input": Raw(text.encode())}


def outcome_text(call: ToolCallPart) -> str:
    """The text of a call's outcome for a model: its output or error, or that it was denied or interrupted."""
    last = call.results[-1] if call.results else None
    if last is None or last.status == "aborted":
        return INTERRUPTED
    if last.status == "denied":
        return last.error_text or DENIED
    return call.output_text or last.error_text or ""


def is_open(call: ToolCallPart) -> bool:
    """Whether a call waits for the page or its user, or has just been allowed to run."""
    return not call.results and call.state in (ToolState.APPROVAL_REQUESTED, ToolState.APPROVAL_RESPONDED)


def calls_of(messages: Iterable[Message]) -> list[ToolCallPart]:
    """The calls that run here, in order."""
    parts = [part for message in messages for part in message.parts]
    return [part for part in parts if isinstance(part, ToolCallPart) and not part.provider_executed]


def waits(history: list[Message]) -> bool:
    """Whether a permission request of the newest message has no answer yet."""
    return any(call.state is ToolState.APPROVAL_REQUESTED for call in calls_of(history[-1:]))


def decisions(history: list[Message]) -> dict[str, tuple[bool, str | None]]:
    """The page's answers to the permission requests of the newest message: id of the call -> whether, and why."""
    return {
        call.tool_call_id: (call.approval is not None and call.approval.approved is True, _reason(call))
        for call in calls_of(history[-1:])
        if call.state is ToolState.APPROVAL_RESPONDED and not call.results
    }


def _reason(call: ToolCallPart) -> str | None:
    return None if call.approval is None else call.approval.reason


def approval_id(call_id: str) -> str:
    """The id of a call's permission request."""
    return f"{call_id}:approval"
