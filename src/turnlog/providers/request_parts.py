"""What the requests of all providers share: calls and results as text or objects, reasoning, and parts no API takes.

Thinking, signatures and encrypted content go only to the model that wrote them (`is_own`). Another model reads the text
in its place. Agents' logs and AI SDK spell the keys of `ProviderData.opaque` differently; `proof` knows them all.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET

from turnlog.model import (
    DataPart,
    FilePart,
    Message,
    Part,
    ProviderData,
    ReasoningPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolResult,
)
from turnlog.model.lenient_json import parse_json
from turnlog.providers.base import LossKind, Report, same_model


def arguments_text(call: ToolCallPart) -> str:
    """The arguments exactly as the model wrote them, for APIs that take a string."""
    return call.input_text or "" if call.input is UNSET else bytes(call.input).decode(errors="replace")


def arguments_object(call: ToolCallPart) -> dict[str, Any]:
    """The arguments for APIs that take an object. Other JSON becomes `{"_value": …}`, broken JSON `{"_raw": …}`."""
    text = arguments_text(call)
    if not text.strip():
        return {}
    try:
        value: Any = parse_json(text)
    except (ValueError, RecursionError):
        return {"_raw": text}
    if value is None:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"_value": value}


def wrapped_arguments(call: ToolCallPart, message: Message, report: Report) -> dict[str, Any]:
    """`arguments_object` for a call that is sent; report it if they were wrapped."""
    value = arguments_object(call)
    for name in ("_raw", "_value"):
        if value.keys() == {name} and f'"{name}"' not in arguments_text(call):
            detail = f"its arguments are no object: sent as {name}"
            report.mend("wrapped-arguments", message.id, detail, call=call.tool_call_id)
    return value


def result_of(call: ToolCallPart) -> ToolResult:
    """The one result that a repaired call has."""
    return call.results[0]


def is_failed(result: ToolResult) -> bool:
    """Whether the result counts as failed, for an API that knows only success and failure."""
    return result.status != "success"


def with_agent_fields(messages: Iterable[Message]) -> list[Message]:
    """The messages, with results of commands in the JSON that the model got, if it got JSON.

    Codex up to 0.14x sent the exit code that way. Its results contain the output, and the other fields as metadata.
    """
    return [
        msgspec.structs.replace(message, parts=tuple([_call_with_agent_fields(part) for part in message.parts]))
        if any(isinstance(part, ToolCallPart) for part in message.parts)
        else message
        for message in messages
    ]


def _call_with_agent_fields(part: Part) -> Part:
    if not isinstance(part, ToolCallPart):
        return part
    return msgspec.structs.replace(part, results=tuple([_result_with_agent_fields(result) for result in part.results]))


def _result_with_agent_fields(result: ToolResult) -> ToolResult:
    fields = agent_fact(result.metadata, "output_fields")
    if not isinstance(fields, dict):
        return result
    text = msgspec.json.encode({"output": result.output_text, **fields}).decode()
    return msgspec.structs.replace(result, content=(TextPart(text=text),))


def result_text(result: ToolResult) -> str:
    """All text of a result."""
    return result.output_text


def result_files(result: ToolResult) -> list[FilePart]:
    """Images and files of a result, in order."""
    return [part for part in result.content if isinstance(part, FilePart)]


def lose_status(call: ToolCallPart, message: Message, report: Report) -> None:
    """Report that the API cannot mark a result as failed. The text of the result may say it."""
    result = result_of(call)
    if is_failed(result) and not result.id.endswith(":unanswered"):
        detail = f"the request has no place for the status {result.status}"
        report.lose("result-status", message.id, detail, call=call.tool_call_id)


def lose_citations(part: TextPart, message: Message, report: Report) -> None:
    """Report that the text is sent without its citations."""
    if part.citations:
        report.lose("citations", message.id, f"{len(part.citations)} citations are not sent", part=part.id)


def server_tool_text(call: ToolCallPart, message: Message, report: Report) -> str:
    """The call and result of a tool that another provider ran, as a text in their place."""
    report.lose("server-tool", message.id, f"{call.tool_name} is sent as text", call=call.tool_call_id, part=call.id)
    lines = [f"[{call.tool_name}: {arguments_text(call)}]"]
    for result in call.results:
        lines += [text for part in result.content if (text := _line_of(part))]
        lines += [result.error_text] if result.error_text else []
    return "\n".join(lines)


def _line_of(part: Part) -> str | None:
    if isinstance(part, TextPart):
        return part.text
    return f"{part.title or part.url} ({part.url})" if isinstance(part, SourceUrlPart) else None


def encoded(part: FilePart) -> str:
    """The bytes of a file in Base64."""
    return base64.b64encode(part.data or b"").decode()


def data_url(part: FilePart) -> str:
    """The file's web address, or its bytes as a `data:` URL."""
    return part.url if part.data is None and part.url is not None else f"data:{part.media_type};base64,{encoded(part)}"


def agent_fact(metadata: Mapping[str, Any], name: str) -> Any:
    """What an agent's log says under this name in a message's metadata, or None."""
    nested = [cast("Mapping[str, Any]", value) for value in metadata.values() if isinstance(value, Mapping)]
    return next((fact[name] for fact in (metadata, *nested) if name in fact), None)


def is_own(part: Part, message: Message, providers: frozenset[str] | None, model: str) -> bool:
    """Whether a part was written by this model, at one of these providers (None: at any).

    Where the log names no provider, only the model decides; where it names no model, as the AI SDK, the proof that the
    provider gave with the part. The format of a proof outweighs the provider's name, which may be that of a host that a
    router chose.
    """
    provider = provider_of(part, message)
    if provider is not None and providers is not None and not _is_of(provider, providers):
        return False
    maker = (part.provider.model if part.provider else None) or message.model
    if maker is None and provider is not None:
        maker = provider.model
    if maker is None:
        return providers is not None and has_proof(part) and part.provider is not None and part.provider.name != _UNTOLD
    return same_model(maker, model)


def provider_of(part: Part, message: Message) -> ProviderData | None:
    """The provider that made a part, as far as the log says."""
    return part.provider or message.provider


def _is_of(provider: ProviderData, providers: frozenset[str]) -> bool:
    written = provider.opaque.get("format")
    known = next((names for begin, names in _FORMATS if isinstance(written, str) and written.startswith(begin)), None)
    if known is not None:
        return bool(known & providers)
    return provider.name in providers or provider.name == _UNTOLD


def proof(part: Part, name: str) -> Any:
    """What the provider gave with a part under this name; None if it is missing or not what that provider gives."""
    if part.provider is None:
        return None
    opaque = part.provider.opaque
    fits = _FITTING.get(name, _is_text)
    found = next((opaque[spelling] for spelling in _SPELLINGS[name] if fits(opaque.get(spelling))), None)
    # A store keeps objects with their keys in order, and a request repeats the one before it byte for byte.
    return [dict(sorted(detail.items())) for detail in found] if name == "reasoning_details" and found else found


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_details(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(item, dict) for item in cast("list[Any]", value))


def _is_field(value: Any) -> bool:
    return value in REASONING_FIELDS


def has_proof(part: Part) -> bool:
    """Whether a part has something for its provider, even without text."""
    return part.provider is not None and any(proof(part, name) is not None for name in PROOFS)


def foreign_reasoning(part: ReasoningPart, message: Message, report: Report) -> str | None:
    """Another model's reasoning as the text to send in its place; None where it has no text. Both are losses."""
    if not part.text.strip():
        report.lose("reasoning-omitted", message.id, "withheld reasoning is not sent", part=part.id)
        return None
    report.lose("reasoning-as-text", message.id, "sent as text: not this model's own", part=part.id)
    return as_text(part)


def as_text(part: ReasoningPart) -> str:
    """Reasoning as text, for a model that did not write it."""
    return f"<thinking>\n{part.text}\n</thinking>"


_SPELLINGS: dict[str, tuple[str, ...]] = {
    "signature": ("signature",),
    "data": ("data", "redactedData"),
    "id": ("id", "itemId"),
    "encrypted_content": ("encrypted_content", "reasoningEncryptedContent"),
    "thought_signature": ("thought_signature", "thoughtSignature"),
    "reasoning_details": ("reasoning_details",),
    "reasoning_field": ("reasoning_field",),
    "format": ("format",),
    "phase": ("phase",),
    "summary": ("summary",),
    "file_id": ("file_id",),
}
"""Our name for what a provider wants back -> the API's own and the AI SDK's."""

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""Where servers that speak Chat Completions put an answer's reasoning."""

_FORMATS: tuple[tuple[str, frozenset[str]], ...] = (
    ("anthropic", frozenset({"anthropic", "openrouter"})),
    ("openai", frozenset({"openai", "azure", "openrouter"})),
    ("azure", frozenset({"openai", "azure", "openrouter"})),
    ("google", frozenset({"google", "gemini", "vertex", "googleVertex", "openrouter"})),
    ("xai", frozenset({"openrouter"})),
)
"""How the format of a proof begins (`anthropic`, `openai-responses-v1`) -> the providers that give such ones."""

_UNTOLD = "unknown"
"""The provider's name where a log has a proof and does not say whose."""

PROOFS = ("signature", "data", "encrypted_content", "thought_signature", "reasoning_details")

_FITTING: dict[str, Callable[[Any], bool]] = {"reasoning_details": _is_details, "reasoning_field": _is_field}

_NOT_CARRIED: dict[str, tuple[LossKind, str]] = {
    "source-url": ("source", "a source is not sent"),
    "source-document": ("source", "a source is not sent"),
    "data": ("data", "application data is not sent"),
    "unknown": ("unknown-part", "a part of unknown kind is not sent"),
}

_ONLY_ANSWERED: dict[str, tuple[LossKind, str]] = {
    "reasoning": ("unknown-part", "reasoning outside of an answer is not sent"),
    "tool-call": ("unknown-part", "a call outside of an answer is not sent"),
}
"""What no API has in a message of the user's, or in a result."""


def only_carried(messages: Iterable[Message], sendable: Mapping[str, str], report: Report) -> list[Message]:
    """The messages without parts that no request can carry.

    `sendable` lists the data parts that a result may have: name of the part -> a field that must be a text in it.
    Results of tools that the provider ran are left alone, because that provider takes them back.
    """
    return [_Carrying(message, sendable, report).carried() for message in messages]


class _Carrying:
    def __init__(self, message: Message, sendable: Mapping[str, str], report: Report) -> None:
        self._message = message
        self._sendable = sendable
        self._report = report

    def carried(self) -> Message:
        message = self._message
        if all(type(part) is TextPart for part in message.parts):
            return message
        parts = tuple(
            [self._with_results(part) if isinstance(part, ToolCallPart) else part for part in self._kept(message.parts)]
        )
        return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)

    def _with_results(self, call: ToolCallPart) -> ToolCallPart:
        if call.provider_executed:
            return call
        results = tuple([self._result(result, call) for result in call.results])
        return msgspec.structs.replace(call, results=results)

    def _result(self, result: ToolResult, call: ToolCallPart) -> ToolResult:
        return msgspec.structs.replace(result, content=self._kept(result.content, call.tool_call_id))

    def _kept(self, parts: tuple[Part, ...], call: str | None = None) -> tuple[Part, ...]:
        kept: list[Part] = []
        cited = {each.url for part in parts if isinstance(part, TextPart) for each in part.citations}
        is_answer = self._message.role == "assistant" and call is None
        for part in parts:
            refused = _NOT_CARRIED.get(part.type) or (None if is_answer else _ONLY_ANSWERED.get(part.type))
            if refused is None or (call and isinstance(part, DataPart) and self._is_sendable(part)):
                kept.append(part)
            # A page shows as a source what a text cites.
            elif not isinstance(part, SourceUrlPart) or part.url not in cited:
                kind, detail = refused
                self._report.lose(kind, self._message.id, detail, part=part.id, call=call)
        return tuple(kept)

    def _is_sendable(self, part: DataPart) -> bool:
        field = self._sendable.get(part.name)
        value = parse_json(bytes(part.data)) if field is not None else None
        return isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get(field or ""), str)
