"""A session's messages as every agent can hold them, with a report of what changes on the way.

What the agent itself said to its model stays behind: the next agent has its own words. Reasoning never travels with
signatures or encrypted content; its text does if it is asked for. `providers.repair` closes and orders calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec
from msgspec import UNSET

from turnlog.agents.handoffs import HandoffWriter
from turnlog.errors import TurnlogError
from turnlog.handoff.flattening import flat, introduced, texts_first
from turnlog.handoff.numbers import has_inexact_number
from turnlog.handoff.report import HandoffLoss, LossKind
from turnlog.model import BlobRef, FilePart, Message, Origin, Part, ReasoningPart, TextPart, ToolCallPart, ToolResult
from turnlog.providers.base import Report, RequestOptions
from turnlog.providers.files import FileLimits
from turnlog.providers.repair import RequestRules, repair
from turnlog.providers.request_parts import as_text, lose_citations, server_tool_text

Reasoning = Literal["omit", "text"]

LONGEST_TEXT: Final = 400_000
"""Bytes of one text; a model's context holds few of these. A longer one is cut, whatever an agent would do with it."""

_RULES: Final = RequestRules(
    # What every API accepts, since an agent may use any.
    call_id_characters="a-zA-Z0-9_-",
    call_id_length=64,
    tool_name_first="a-zA-Z_",
    tool_name_length=64,
    begins_with_user=True,
    files=FileLimits(
        images=frozenset({"image/png", "image/jpeg", "image/webp"}),
        file_addresses=False,
        image_bytes=5 * 1024 * 1024,
        image_pixels=8000,
        # Codex puts words in the place of such an image, and an API refuses the whole request.
        whole_images=True,
        most_images=100,
    ),
)

_INJECTED: Final = frozenset({None, Origin.HARNESS, Origin.COMMAND_OUTPUT})
"""Origins of developer messages that stay behind. A user's shell, reports and summaries are part of the talk."""

_ORIGIN_NAMES: Final[Mapping[Origin | None, str]] = {Origin.COMMAND_OUTPUT: "output of a command of the agent"}

_LOSSES: Final[Mapping[str, LossKind | None]] = {
    # Of `providers.base.LossKind`
    "image-omitted": "file",
    "image-unavailable": "file",
    "image-unsupported": "file",
    "file-unsupported": "file",
    "assistant-file": "file",
    "citations": "part",
    "source": "part",
    "data": "part",
    "unknown-part": "part",
    "server-tool": "server-tool",
    "preview-only": "output-cut",
    # Of `providers.base.RepairKind`
    "failed-answer": "message",
    "left-out": "message",
    "unanswered-call": "unanswered",
    "duplicate-result": "result",
    "superseded-result": "result",
    "joined-results": "result",
    "empty-result": "result",
    "duplicate-call": "result",
    "nested-call": "nested-call",
    "renamed-call": "renamed",
    "renamed-tool": "renamed",
    "empty-message": None,
    "blank-part": None,
    "first-user": "introduced",
    "leading-developer": "message",
}
"""What `providers.repair` reports -> what it is here; None for what nobody misses, `part` for all others."""


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that every agent can hold, and what was lost."""

    messages: tuple[Message, ...]
    losses: tuple[HandoffLoss, ...]


Transcript = Callable[[str], str]
"""Session id of a subagent -> its transcript as a text."""


def convert(
    messages: Iterable[Message],
    writer: HandoffWriter,
    load_blob: Callable[[BlobRef], bytes],
    *,
    reasoning: Reasoning,
    transcript: Transcript | None,
) -> Converted:
    """Make messages such that every agent can hold them. Texts of more than `LONGEST_TEXT` bytes are not loaded."""
    losses: list[HandoffLoss] = []
    prepared = [
        _Preparation(message, losses, load_blob, reasoning, transcript, takes_text=writer.takes_text).message()
        for message in messages
        if _is_carried(message, losses)
    ]
    report = Report()
    options = RequestOptions(model="", load_blob=load_blob, aborted_result=writer.unanswered)
    # An agent sends what it holds to a model's API: what these refuse (calls without results, results twice) is
    # repaired here as it is in a request.
    repaired = repair(prepared, _RULES, options, report).messages
    for item in (*report.losses, *report.repairs):
        kind = _LOSSES.get(item.kind, "part")
        if kind is not None:
            losses.append(
                HandoffLoss(kind=kind, message_id=item.message_id, detail=item.detail, tool_call_id=item.tool_call_id)
            )
    ordered = [texts_first(message, losses) for message in repaired] if writer.texts_first else repaired
    kept = list(map(flat, ordered)) if writer.is_flat else ordered
    unsent = writer.unsent
    sent = kept if unsent is None else [introduced(message, unsent, losses) for message in kept]
    return Converted(messages=_bare(sent), losses=tuple(losses))


def _is_carried(message: Message, losses: list[HandoffLoss]) -> bool:
    is_injected = message.role == "system" or (message.role == "developer" and message.origin in _INJECTED)
    if is_injected:
        named = _ORIGIN_NAMES.get(message.origin, "injected context")
        detail = "the system prompt" if message.role == "system" else named
        losses.append(HandoffLoss(kind="injected", message_id=message.id, detail=detail))
    return not is_injected


class _Preparation:
    """One message before its calls are put in order."""

    def __init__(
        self,
        message: Message,
        losses: list[HandoffLoss],
        load_blob: Callable[[BlobRef], bytes],
        reasoning: Reasoning,
        transcript: Transcript | None,
        *,
        takes_text: bool,
    ) -> None:
        self._message = message
        self._losses = losses
        self._load_blob = load_blob
        self._reasoning = reasoning
        self._transcript = transcript
        self._takes_text = takes_text
        self._report = Report()

    def message(self) -> Message:
        parts = tuple([made for part in self._message.parts for made in self._part(part)])
        self._losses += [
            HandoffLoss(kind=_LOSSES[loss.kind] or "part", message_id=loss.message_id, detail=loss.detail)
            for loss in self._report.losses
        ]
        return msgspec.structs.replace(self._message, parts=parts)

    def _lose(self, kind: LossKind, detail: str, call: str | None = None) -> None:
        self._losses.append(HandoffLoss(kind=kind, message_id=self._message.id, detail=detail, tool_call_id=call))

    def _part(self, part: Part) -> list[Part]:
        if isinstance(part, ReasoningPart):
            return self._reasoning_part(part)
        if isinstance(part, TextPart):
            if part.is_synthetic and not part.is_attached:
                self._lose("injected", "what the agent put around the prompt")
                return []
            lose_citations(part, self._message, self._report)
            return [self._text(part, None)]
        if isinstance(part, ToolCallPart):
            call = self._call(part)
            if not part.provider_executed:
                return [call]
            return [TextPart(id=part.id, text=server_tool_text(call, self._message, self._report))]
        return [self._file(part) if isinstance(part, FilePart) else part]

    def _file(self, part: FilePart, call: str | None = None) -> Part:
        """The file, or a note in the place of one that is only on the web: no agent has a place for its address."""
        if part.data is not None or part.blob is not None or not (part.url or "").startswith(("http:", "https:")):
            return part
        self._lose("file", f"{part.media_type} at {part.url}", call)
        return TextPart(id=part.id, text=f"[{part.media_type} at {part.url}]")

    def _reasoning_part(self, part: ReasoningPart) -> list[Part]:
        if self._reasoning == "text" and (part.text.strip() or part.blob):
            self._lose("reasoning-as-text", "reasoning")
            whole = self._text(TextPart(text=part.text, blob=part.blob), None)
            return [TextPart(id=part.id, text=as_text(ReasoningPart(text=whole.text)))]
        self._lose("reasoning", "reasoning" if part.text else "reasoning that the provider withheld")
        return []

    def _text(self, part: TextPart, call: str | None) -> TextPart:
        """The whole text, or its beginning where it is too long for any model."""
        size = part.blob.size if part.blob else len(part.text) if len(part.text) > LONGEST_TEXT else 0
        if size > LONGEST_TEXT:
            kept = part.text[:LONGEST_TEXT]
            self._lose("output-cut", f"only the first {len(kept):,} characters of {size:,} bytes", call)
            note = f"\n[… the rest of {size:,} bytes was left out]"
            return msgspec.structs.replace(part, text=kept + note, blob=None)
        if part.blob is None:
            return part
        try:
            text = self._load_blob(part.blob).decode(errors="replace")
        except TurnlogError:
            self._lose("output-cut", f"only the first {len(part.text):,} characters of {size:,} bytes", call)
            text = part.text
        return msgspec.structs.replace(part, text=text, blob=None)

    def _call(self, call: ToolCallPart) -> ToolCallPart:
        results = [self._result(result, call.tool_call_id) for result in call.results]
        if call.child_session_id is not None:
            results = self._with_transcript(call, call.child_session_id, results)
        return msgspec.structs.replace(self._with_input(call), results=tuple(results))

    def _with_transcript(self, call: ToolCallPart, child: str, results: list[ToolResult]) -> list[ToolResult]:
        if self._transcript is None:
            self._lose("subagent", f"{child}: its result is carried", call.tool_call_id)
            return results
        text = self._text(TextPart(text=self._transcript(child)), call.tool_call_id)
        if not results:
            return [ToolResult(id=f"{call.tool_call_id}:transcript", status="aborted", content=(text,))]
        # The last result of a subagent in the background only says how it ended: what the call gave is before it.
        at = max((number for number, result in enumerate(results) if result.content), default=len(results) - 1)
        results[at] = msgspec.structs.replace(results[at], content=(*results[at].content, text))
        return results

    def _result(self, result: ToolResult, call: str) -> ToolResult:
        content = tuple([self._content(part, call) for part in result.content])
        # An agent's own fields are in its own words; the next agent gets what the model got.
        return msgspec.structs.replace(result, content=content, metadata={})

    def _content(self, part: Part, call: str) -> Part:
        if isinstance(part, TextPart):
            return self._text(part, call)
        return self._file(part, call) if isinstance(part, FilePart) else part

    def _with_input(self, call: ToolCallPart) -> ToolCallPart:
        """The call with its whole input, as a JSON object where it is JSON."""
        if call.input_blob is not None:
            if call.input_blob.size > LONGEST_TEXT:
                self._lose("output-cut", f"an input of {call.input_blob.size:,} bytes", call.tool_call_id)
                cut = {"_cut": (call.input_text or bytes(call.input or b"").decode(errors="replace"))[:LONGEST_TEXT]}
                return msgspec.structs.replace(
                    call, input=msgspec.Raw(msgspec.json.encode(cut)), input_text=None, input_blob=None
                )
            return call
        if call.input is not UNSET and bytes(call.input)[:1] != b"{":
            return self._wrapped(call, {"_value": msgspec.Raw(call.input)})
        if call.input is UNSET and call.input_text is not None and not self._takes_text:
            return self._wrapped(call, {"_raw": call.input_text})
        if call.input is not UNSET and not self._takes_text and has_inexact_number(bytes(call.input)):
            self._lose(
                "number", f"the input of {call.tool_name} has a number that JavaScript rounds", call.tool_call_id
            )
        return call

    def _wrapped(self, call: ToolCallPart, value: Mapping[str, object]) -> ToolCallPart:
        detail = f"the input of {call.tool_name} is no object: it is put under {next(iter(value))!r}"
        self._lose("input", detail, call.tool_call_id)
        return msgspec.structs.replace(call, input=msgspec.Raw(msgspec.json.encode(value)), input_text=None)


def _bare(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without what belongs to their provider."""
    return tuple(
        [
            msgspec.structs.replace(
                message,
                provider=None,
                parts=tuple([msgspec.structs.replace(part, provider=None) for part in message.parts]),
            )
            for message in messages
        ]
    )
