"""Parts that no request carries: sources, application data, what is unknown or misplaced. Each is told as lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from turnlog.model import DataPart, Message, Part, ToolCallPart, ToolResult
from turnlog.model.codec import parse_json
from turnlog.providers.base import LossKind, Report

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
