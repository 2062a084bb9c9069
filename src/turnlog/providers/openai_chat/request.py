"""A history as the body of a Chat Completions request (`POST /v1/chat/completions`; R-K22, R-K23).

What servers that speak this API do differently is one table, `DIALECTS`. OpenRouter, too, writes its messages with
`ChatWriter`. Sources of the rules are in docs/reference/providers.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import msgspec

from turnlog.arguments import checked
from turnlog.model import FilePart, Message, Part, ReasoningPart, TextPart, ToolCallPart
from turnlog.providers import request_parts
from turnlog.providers.base import Conversion, Dialect, Report, RequestOptions, dialect_of
from turnlog.providers.files import FileLimits
from turnlog.providers.repair import RequestRules, repair
from turnlog.providers.request_parts import is_own, proof
from turnlog.providers.unsent import lose_phases, lose_unsent

WireMessage = dict[str, Any]


class ChatDialect(msgspec.Struct, frozen=True, kw_only=True):
    """One server's habits."""

    reasoning_field: str | None = None
    """Where a message carries reasoning; None: only where the message came with its own field."""
    missing_reasoning: str | None = None
    """The content of an answer with tool calls that has none; None: the field may be missing."""
    max_tokens_field: str = "max_tokens"
    text_lists: bool = False
    """Whether several texts of a message may be a list of parts."""


OPENAI = ChatDialect(max_tokens_field="max_completion_tokens", text_lists=True)

DIALECTS: dict[Dialect, ChatDialect] = {
    # With thinking on, an answer with tool calls is refused without the field; it may be empty.
    "deepseek": ChatDialect(reasoning_field="reasoning_content", missing_reasoning=""),
    # As DeepSeek, but an empty one counts as missing.
    "kimi": ChatDialect(reasoning_field="reasoning_content", missing_reasoning=" "),
    "minimax": ChatDialect(reasoning_field="reasoning_details", max_tokens_field="max_completion_tokens"),
    "qwen": ChatDialect(reasoning_field="reasoning_content"),
}

FILES = FileLimits(
    files=frozenset({"application/pdf", "audio/wav", "audio/mp3", "audio/mpeg", "audio/x-wav"}),
    file_addresses=False,
    file_references=True,
)

RULES = RequestRules(call_id_length=40, tool_name_length=64, files=FILES)


@checked
def to_request(messages: Sequence[Message], options: RequestOptions, *, strict: bool = False) -> Conversion:
    """The body of the request that continues a history. Raises as `Provider.to_request` says."""
    report = Report()
    repaired = repair(messages, RULES, options, report)
    named = dialect_of(options)
    dialect = DIALECTS[named] if named else OPENAI
    writer = _Writer(options.model, dialect, report)
    writer.add_system(repaired.system)
    for message in repaired.messages:
        writer.add(message)
    lose_unsent(repaired.messages, writer.messages, report)
    lose_phases(repaired.messages, report)
    return report.conversion(chat_body(writer.messages, options, dialect.max_tokens_field), strict=strict)


def chat_body(messages: list[WireMessage], options: RequestOptions, max_tokens_field: str) -> dict[str, Any]:
    """The body of a request with these messages."""
    return {
        "model": options.model,
        "messages": messages,
        **({"tools": [dict(tool) for tool in options.tools]} if options.tools else {}),
        **({max_tokens_field: options.max_tokens} if options.max_tokens is not None else {}),
        # Without the option, no chunk of a stream has the usage.
        **({"stream": True, "stream_options": {"include_usage": True}} if options.stream else {}),
        **options.extra,
    }


_ATTACHED = "Attached image(s) from tool result:"

_ONLY_ATTACHED = "(see the attached files)"

_AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


def _user_parts(part: Part) -> list[dict[str, Any]]:
    if isinstance(part, TextPart):
        return [_text(part.text)] if part.text.strip() else []
    return [_file(part)] if isinstance(part, FilePart) else []


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _tool_call(call: ToolCallPart) -> dict[str, Any]:
    function = {"name": call.tool_name, "arguments": request_parts.arguments_text(call)}
    return {"id": call.tool_call_id, "type": "function", "function": function}


def _file(part: FilePart) -> dict[str, Any]:
    if part.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": request_parts.data_url(part)}}
    file_id = request_parts.proof(part, "file_id")
    if file_id is not None:
        return {"type": "file", "file": {"file_id": file_id}}
    if part.media_type in _AUDIO_FORMATS:
        audio = {"data": request_parts.encoded(part), "format": _AUDIO_FORMATS[part.media_type]}
        return {"type": "input_audio", "input_audio": audio}
    return {
        "type": "file",
        "file": {"filename": part.filename or "file.pdf", "file_data": request_parts.data_url(part)},
    }


class ChatWriter(ABC):
    """Writes messages one after another."""

    def __init__(self, model: str, report: Report, *, text_lists: bool) -> None:
        """Begin with none; `text_lists`: several texts of a user stay separate parts."""
        self.model = model
        self.report = report
        self.messages: list[WireMessage] = []
        self._text_lists = text_lists

    @abstractmethod
    def reasoning_fields(self, message: Message) -> WireMessage:
        """Fields of an answer that carry its reasoning. Reports what is lost of it."""

    @abstractmethod
    def reasoning_text(self, part: ReasoningPart, message: Message) -> str | None:
        """What is said of reasoning in the text, in its place; None: nothing."""

    def add_system(self, texts: tuple[str, ...]) -> None:
        """The system text, once."""
        if texts:
            self.messages.append({"role": "system", "content": "\n\n".join(texts)})

    def add(self, message: Message) -> None:
        """Append what a message and the results of its calls become."""
        if message.role == "user":
            self._add_user(message)
            return
        calls = [part for part in message.parts if isinstance(part, ToolCallPart) and not part.provider_executed]
        fields = self.reasoning_fields(message)
        text = self._answer_text(message)
        if not text and not calls:
            if fields:
                self.report.mend("trailing-reasoning", message.id, "left out: nothing follows it")
            return
        # OpenAI's own answers have null next to calls (rule C3).
        answer: WireMessage = {"role": "assistant", "content": text or None, **fields}
        if calls:
            answer["tool_calls"] = [_tool_call(call) for call in calls]
        self.messages.append(answer)
        self._add_results(calls, message)

    def _add_user(self, message: Message) -> None:
        parts = [found for part in message.parts for found in _user_parts(part)]
        if parts:
            self.messages.append({"role": "user", "content": self._content(parts)})

    def _content(self, parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
        """A plain string where one says the same: not every server takes lists of texts."""
        only_text = all(part["type"] == "text" for part in parts)
        if only_text and (len(parts) == 1 or not self._text_lists):
            return "\n".join([part["text"] for part in parts])
        return parts

    def _answer_text(self, message: Message) -> str:
        """All text of an answer. Texts with reasoning or a call between them stay apart."""
        runs: list[list[str]] = [[]]
        for part in message.parts:
            text = self._text_in_place(part, message)
            if not isinstance(part, TextPart):
                runs += [[text], []] if text else [[]]
            elif text:
                runs[-1].append(text)
        return "\n\n".join([run for pieces in runs if (run := "".join(pieces)).strip()])

    def _text_in_place(self, part: Part, message: Message) -> str | None:
        if isinstance(part, TextPart):
            request_parts.lose_citations(part, message, self.report)
            return part.text
        if isinstance(part, ReasoningPart):
            return self.reasoning_text(part, message)
        if isinstance(part, ToolCallPart):
            return request_parts.server_tool_text(part, message, self.report) if part.provider_executed else None
        return None

    def _add_results(self, calls: list[ToolCallPart], message: Message) -> None:
        attached: list[dict[str, Any]] = []
        for call in calls:
            result = request_parts.result_of(call)
            files = request_parts.result_files(result)
            text = request_parts.result_text(result)
            request_parts.lose_status(call, message, self.report)
            content = text if text.strip() or not files else _ONLY_ATTACHED
            self.messages.append({"role": "tool", "tool_call_id": call.tool_call_id, "content": content})
            attached += [_file(part) for part in files]
        # A `tool` message contains only text, and the results of one answer must be adjacent (rule C2).
        if attached:
            self.messages.append({"role": "user", "content": [_text(_ATTACHED), *attached]})


class _Writer(ChatWriter):
    """Reasoning goes into the field it came from, or into the dialect's, if this very model made it."""

    def __init__(self, model: str, dialect: ChatDialect, report: Report) -> None:
        super().__init__(model, report, text_lists=dialect.text_lists)
        self._dialect = dialect

    def reasoning_text(self, part: ReasoningPart, message: Message) -> str | None:
        return None

    def reasoning_fields(self, message: Message) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for part in message.parts:
            if isinstance(part, ReasoningPart):
                self._carry(part, message, fields)
        field, missing = self._dialect.reasoning_field, self._dialect.missing_reasoning
        if field is not None and missing is not None and any(isinstance(part, ToolCallPart) for part in message.parts):
            fields.setdefault(field, missing)
        return fields

    def _carry(self, part: ReasoningPart, message: Message, fields: dict[str, Any]) -> None:
        field = self._field_of(part, message)
        if field is None:
            self.report.lose("reasoning-omitted", message.id, "the API has no place for it", part=part.id)
        elif field == "reasoning_details":
            details = proof(part, "reasoning_details") or [{"type": "reasoning.text", "text": part.text}]
            fields[field] = [*fields.get(field, []), *details]
        else:
            before = f"{fields[field]}\n" if field in fields else ""
            fields[field] = before + part.text

    def _field_of(self, part: ReasoningPart, message: Message) -> str | None:
        """The field for it; None if it is another model's, or was withheld."""
        if not is_own(part, message, None, self.model):
            return None
        if not part.text.strip():
            return "reasoning_details" if proof(part, "reasoning_details") else None
        field = proof(part, "reasoning_field")
        details = proof(part, "reasoning_details")
        return field or ("reasoning_details" if details else self._dialect.reasoning_field)
