"""What the writers of all provider APIs share: arguments and results as text or objects, and parts no API takes."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET

from turnlog.model import DataPart, FilePart, Message, Part, SourceUrlPart, TextPart, ToolCallPart, ToolResult
from turnlog.model.codec import parse_json
from turnlog.providers.base import LossKind, Report


def agent_fact(metadata: Mapping[str, Any], name: str) -> Any:
    """A fact that any agent noted under this name, or None."""
    nested = [cast("Mapping[str, Any]", value) for value in metadata.values() if isinstance(value, Mapping)]
    return next((fact[name] for fact in (metadata, *nested) if name in fact), None)


def arguments_text(call: ToolCallPart) -> str:
    """The arguments exactly as the model wrote them, for APIs that take a string."""
    return call.input_text or "" if call.input is UNSET else bytes(call.input).decode(errors="replace")


def arguments_object(call: ToolCallPart) -> dict[str, Any]:
    """The arguments for APIs that take an object: what is none is wrapped (`_value`; `_raw` when it is no JSON)."""
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
    """`arguments_object` for a call that is sent; tell where they were wrapped."""
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
    """Whether an API that tells only failure from success is to be told of a failure."""
    return result.status != "success"


def as_told(messages: Iterable[Message]) -> list[Message]:
    """The messages with the results of commands in the JSON in which the model was told them, where it was.

    Codex up to 0.14x told the exit code that way. Its results hold what was printed, and the other fields as metadata.
    """
    return [
        msgspec.structs.replace(message, parts=tuple([_told_call(part) for part in message.parts]))
        if any(isinstance(part, ToolCallPart) for part in message.parts)
        else message
        for message in messages
    ]


def _told_call(part: Part) -> Part:
    if not isinstance(part, ToolCallPart):
        return part
    return msgspec.structs.replace(part, results=tuple([_told_result(result) for result in part.results]))


def _told_result(result: ToolResult) -> ToolResult:
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
    """Tell that an API without a mark for failed results cannot say that this one is; its text may."""
    result = result_of(call)
    if is_failed(result) and not result.id.endswith(":unanswered"):
        detail = f"that the result is {result.status} is not told"
        report.lose("result-status", message.id, detail, call=call.tool_call_id)


def lose_citations(part: TextPart, message: Message, report: Report) -> None:
    """Tell that the text goes without its citations."""
    if part.citations:
        report.lose("citations", message.id, f"{len(part.citations)} citations are not sent", part=part.id)


def server_tool_text(call: ToolCallPart, message: Message, report: Report) -> str:
    """A tool that another provider ran, as text in place."""
    report.lose("server-tool", message.id, f"{call.tool_name} is told as text", call=call.tool_call_id, part=call.id)
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
    """The messages without parts that no request carries.

    `sendable` tells which data may stand in a result: by name, the field that must be a text in it.

    What a provider itself brought as the result of its own tool stays: it may want it back.
    """
    return [_Carrying(message, sendable, report).carried() for message in messages]


class _Carrying:
    def __init__(self, message: Message, sendable: Mapping[str, str], report: Report) -> None:
        self._message = message
        self._sendable = sendable
        self._report = report

    def carried(self) -> Message:
        message = self._message
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
        is_answer = self._message.role == "assistant" and call is None
        for part in parts:
            refused = _NOT_CARRIED.get(part.type) or (None if is_answer else _ONLY_ANSWERED.get(part.type))
            if refused is None or (call and isinstance(part, DataPart) and self._is_sendable(part)):
                kept.append(part)
            else:
                kind, detail = refused
                self._report.lose(kind, self._message.id, detail, part=part.id, call=call)
        return tuple(kept)

    def _is_sendable(self, part: DataPart) -> bool:
        field = self._sendable.get(part.name)
        value = parse_json(bytes(part.data)) if field is not None else None
        return isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get(field or ""), str)
