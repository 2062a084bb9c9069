"""Parts that no request carries: sources, application data, what nobody knows. Each is told as lost."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from turnlog.model import DataPart, Message, Part, ToolCallPart, ToolResult
from turnlog.providers.base import LossKind, Report

_NOT_CARRIED: dict[str, tuple[LossKind, str]] = {
    "source-url": ("source", "a source is not sent"),
    "source-document": ("source", "a source is not sent"),
    "data": ("data", "application data is not sent"),
    "unknown": ("unknown-part", "a part of unknown kind is not sent"),
}


def only_carried(messages: Iterable[Message], sendable: frozenset[str], report: Report) -> list[Message]:
    """The messages without parts that no request carries; `sendable` names the data that may stand in a result.

    What a provider itself brought as the result of its own tool stays: it may want it back.
    """
    return [_Carrying(message, sendable, report).carried() for message in messages]


class _Carrying:
    def __init__(self, message: Message, sendable: frozenset[str], report: Report) -> None:
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
        for part in parts:
            if part.type not in _NOT_CARRIED or (call and isinstance(part, DataPart) and part.name in self._sendable):
                kept.append(part)
            else:
                kind, detail = _NOT_CARRIED[part.type]
                self._report.lose(kind, self._message.id, detail, part=part.id, call=call)
        return tuple(kept)
