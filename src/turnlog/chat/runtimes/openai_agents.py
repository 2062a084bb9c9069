"""An agent of the OpenAI Agents SDK behind a chat.

Whatever model answers, the SDK reports it as events of the Responses API, which `turnlog.providers` reads; the chat
becomes items of that API. An approval needs the state of the run (`RunState`): it is kept with the message, and never
sent to a page.
"""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final, cast

from agents.items import HandoffOutputItem, ToolApprovalItem, ToolCallOutputItem
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.stream_events import RawResponsesStreamEvent, RunItemStreamEvent
from msgspec.structs import replace
from pydantic_core import to_json

from agents import Agent, Runner, RunResultStreaming, RunState
from turnlog.chat.conversion import PRIVATE_KEY, private_metadata
from turnlog.chat.runtime import RunRequest
from turnlog.chat.runtimes.frameworks import (
    FrameworkRuntime,
    approval_id,
    arguments,
    content_result,
    decisions,
    text_result,
)
from turnlog.model import FilePart, Message, Part, ProviderData, TextPart
from turnlog.model.stream import (
    ApprovalRequest,
    Pause,
    RunFinish,
    RunStart,
    StreamError,
    StreamEvent,
    ToolInputAvailable,
    ToolOutput,
)
from turnlog.providers import provider
from turnlog.providers.base import RequestOptions
from turnlog.providers.streaming import ResponseStream

_RESPONSES: Final = provider("responses")

_KEY: Final = "openaiAgents"

_OWN_ENDS = (RunStart, RunFinish, StreamError)
"""Not passed on: an answer is several responses, and the SDK raises what fails."""

_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")


class OpenAIAgentsRuntime(FrameworkRuntime[Agent[Any]]):
    """Answers chats by an agent of the OpenAI Agents SDK.

    The agent's `context` are the `dependencies` of the request. Options are those of `Runner.run_streamed`:
    `max_turns`, `run_config`, …
    """

    kind = Agent
    expected = "an Agent of the OpenAI Agents SDK"
    provider = "responses"

    async def _run_agent(self, request: RunRequest, history: list[Message]) -> AsyncGenerator[StreamEvent, None]:
        options = {"context": request.dependencies, **self._options}
        answers = decisions(history)
        state = await self._paused_state(request, answers, options["context"])
        if state is None:
            result = Runner.run_streamed(self._agent, cast("Any", to_input_items(history)), **options)
        else:
            # The state has the context of the run.
            del options["context"]
            result = Runner.run_streamed(self._agent, state, **options)
            yield RunStart(metadata={PRIVATE_KEY: {_KEY: None}})
        translator = _Translator({call_id: approved for call_id, (approved, _) in answers.items()})
        try:
            async for event in result.stream_events():
                for each in translator.translate(event):
                    yield each
        finally:
            result.cancel()
        for each in [*translator.rest(), *_end(result, translator)]:
            yield each

    async def _paused_state(
        self, request: RunRequest, answers: dict[str, tuple[bool, str | None]], context: Any
    ) -> RunState[Any] | None:
        """The state of the run that asked, with the page's answers; None if no run waits for them."""
        stored = private_metadata(request.continued).get(_KEY)
        if not answers or not isinstance(stored, dict):
            return None
        state = await RunState.from_json(
            self._agent, cast("dict[str, Any]", stored), context_override=context if context is not None else {}
        )
        for item in state.get_interruptions():
            approved, reason = answers.get(_call_id(item), (False, None))
            if approved:
                state.approve(item)
            else:
                state.reject(item, rejection_message=reason)
        return state


def to_input_items(history: Sequence[Message]) -> list[dict[str, Any]]:
    """A chat as input items of the Responses API."""
    model = next((message.model for message in reversed(history) if message.model), "")
    items = _RESPONSES.to_request(history, RequestOptions(model=model)).body["input"]
    # What other APIs answered has this id at the SDK, which is none.
    return [{k: v for k, v in item.items() if (k, v) != ("id", FAKE_RESPONSES_ID)} for item in items]


class _Translator:
    """Translates the events of one run."""

    def __init__(self, answers: dict[str, bool]) -> None:
        self.shown = set(answers)
        """Ids of the calls that the page knows."""
        self._answers = answers
        """Calls that the page was asked for -> whether they may run. Without those whose output was translated."""
        self._response: ResponseStream | None = None
        self._items: set[int] = set()
        """Places of the items of the running response that have ended."""

    def translate(self, event: object) -> list[StreamEvent]:
        """The stream events of one event; none for one that shows nothing."""
        if isinstance(event, RawResponsesStreamEvent):
            found = self._read(event.data.model_dump(mode="json", exclude_unset=True))
            self.shown |= {each.tool_call_id for each in found if isinstance(each, ToolInputAvailable)}
            return found
        if isinstance(event, RunItemStreamEvent) and isinstance(event.item, ToolCallOutputItem | HandoffOutputItem):
            return [self._output(event.item)]
        return []

    def rest(self) -> list[StreamEvent]:
        """Outputs of calls that were allowed or refused inside of a tool, where only the SDK sees them."""
        return [
            ToolOutput(tool_call_id=name, result=text_result(name, "", "success" if approved else "denied"))
            for name, approved in self._answers.items()
        ]

    def _read(self, data: dict[str, Any]) -> list[StreamEvent]:
        if self._response is None:
            self._response = _RESPONSES.open_stream()
            self._items.clear()
        kind = data.get("type")
        if kind == "response.output_item.done":
            self._items.add(data.get("output_index", 0))
        found: list[StreamEvent] = []
        if kind in _ENDS:
            # A model that does not stream gives all at once, at the end.
            for index, item in enumerate(data["response"].get("output") or ()):
                if index not in self._items:
                    done = {"type": "response.output_item.done", "output_index": index, "item": item}
                    found += self._response.feed(done)
        found += self._response.feed(data)
        if kind in _ENDS:
            found += self._response.finish()
            self._response = None
        return [each for each in found if not isinstance(each, _OWN_ENDS)]

    def _output(self, item: ToolCallOutputItem | HandoffOutputItem) -> ToolOutput:
        raw = cast("dict[str, Any]", item.raw_item)
        call_id = str(raw.get("call_id") or raw.get("id"))
        output: Any = item.output if isinstance(item, ToolCallOutputItem) else raw.get("output")
        text = output if isinstance(output, str) else to_json(output, fallback=str).decode()
        status = "success" if self._answers.pop(call_id, True) else "denied"
        # The model gets the item: several pieces, or the text that the SDK made of the output.
        sent: Any = raw.get("output")
        if isinstance(sent, list):
            content = [_content_part(piece) for piece in cast("list[dict[str, Any]]", sent)]
            return ToolOutput(tool_call_id=call_id, result=content_result(call_id, content, text, status))
        return ToolOutput(tool_call_id=call_id, result=text_result(call_id, text, status))


def _content_part(piece: dict[str, Any]) -> Part:
    """A piece of an output; one that is neither text nor a file is its JSON."""
    kind = piece.get("type")
    if kind == "input_text":
        return TextPart(text=str(piece.get("text", "")))
    if kind not in ("input_image", "input_file"):
        return TextPart(text=to_json(piece, fallback=str).decode())
    name = piece.get("filename")
    file = FilePart(
        media_type="image/*" if kind == "input_image" else "application/pdf",
        filename=name if isinstance(name, str) else None,
    )
    if isinstance(piece.get("file_id"), str):
        return replace(file, provider=ProviderData(name="openai", opaque={"file_id": piece["file_id"]}))
    address = str(piece.get("image_url") or piece.get("file_url") or piece.get("file_data") or "")
    found = _DATA_URL.fullmatch(address)
    if found is None and piece.get("file_data"):
        # Without a head, as the SDK takes it too.
        found = _DATA_URL.fullmatch(f"data:{file.media_type};base64,{address}")
    if found is None:
        return replace(file, url=address)
    return replace(file, media_type=found[1], data=base64.b64decode(found[2]))


_DATA_URL: Final = re.compile(r"data:([^;,]+);base64,([A-Za-z0-9+/]*={0,2})")


def _end(result: RunResultStreaming, translator: _Translator) -> list[StreamEvent]:
    """How the run ends: with an answer, or because it waits for the page."""
    if not result.interruptions:
        return [RunFinish(stop_reason="stop")]
    state = result.to_state().to_json(context_serializer=lambda _: {})
    _forget_contexts(state)
    requests: list[StreamEvent] = []
    for item in result.interruptions:
        call_id = _call_id(item)
        if call_id not in translator.shown:
            given = arguments(item.arguments or "{}")
            requests.append(ToolInputAvailable(tool_call_id=call_id, tool_name=item.name or "tool", **given))
        requests.append(ApprovalRequest(approval_id=approval_id(call_id), tool_call_id=call_id))
    return [*requests, RunStart(metadata={PRIVATE_KEY: {_KEY: state}}), Pause(reason="approval")]


def _forget_contexts(value: object) -> None:
    """Empty every context in a state: the next run gets that of its own request, and none is written down."""
    if isinstance(value, list):
        for each in cast("list[object]", value):
            _forget_contexts(each)
    elif isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        if "context_meta" in fields and isinstance(fields.get("context"), dict):
            fields["context"] = {}
        for each in fields.values():
            _forget_contexts(each)


def _call_id(item: ToolApprovalItem) -> str:
    raw = cast("object", item.raw_item)
    own = cast("dict[str, Any]", raw).get("id") if isinstance(raw, dict) else getattr(raw, "id", "")
    return str(item.call_id or own)
