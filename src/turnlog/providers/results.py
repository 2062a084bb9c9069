"""One answer a call: every API wants exactly one result for each call, right behind it.

A model call may have many results in a history (a launch and its report, progress and outcome, an abort and what came
of it after all) or none. Owns the choice among them; that it is sent in the right place is the providers' business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from turnlog.model import Message, Part, TextPart, ToolCallPart, ToolResult
from turnlog.providers.base import Report, RequestOptions


def answer_calls(messages: Sequence[Message], options: RequestOptions, report: Report) -> list[Message]:
    """The messages with exactly one result at each call that the agent had to answer."""
    answered: list[Message] = []
    for index, message in enumerate(messages):
        if not any(isinstance(part, ToolCallPart) for part in message.parts):
            answered.append(message)
            continue
        parts = [
            _answered(part, message, messages[index + 1 :], options, report) if isinstance(part, ToolCallPart) else part
            for part in message.parts
        ]
        answered.append(msgspec.structs.replace(message, parts=tuple(parts)))
    return answered


def _answered(
    call: ToolCallPart, message: Message, later: Iterable[Message], options: RequestOptions, report: Report
) -> ToolCallPart:
    results = _choose(call, message, later, report)
    if call.provider_executed:
        return msgspec.structs.replace(call, results=tuple(results[:1]))
    if not results:
        report.mend("unanswered-call", message.id, "a result was added that says so", call=call.tool_call_id)
        result = _aborted(call, options)
    else:
        result = _join(results, message, call, report)
        if all(isinstance(part, TextPart) and not part.text.strip() for part in result.content):
            report.mend("empty-result", message.id, "a text was added that says so", call=call.tool_call_id)
            result = msgspec.structs.replace(result, content=(TextPart(text=_instead(result, options)),))
    return msgspec.structs.replace(call, results=(result,))


def _choose(call: ToolCallPart, message: Message, later: Iterable[Message], report: Report) -> list[ToolResult]:
    """The results that count, in order of arrival, the same one only once."""
    found: list[ToolResult] = []
    for result in call.results:
        if any(known.id == result.id or _content(known) == _content(result) for known in found):
            report.mend("duplicate-result", message.id, f"result {result.id} was left out", call=call.tool_call_id)
        else:
            found.append(result)
    kept = _without_superseded(found, later)
    for result in found:
        if result not in kept:
            report.mend("superseded-result", message.id, f"result {result.id} was left out", call=call.tool_call_id)
    return kept


def _without_superseded(results: list[ToolResult], later: Iterable[Message]) -> list[ToolResult]:
    """Progress gives way to the outcome, an abort to what came of it after all; of two aborts the first was told.

    A report that a later message tells in full is not told twice, and one that says nothing tells less than the
    launch: then the launch is the answer.
    """
    final = [result for result in results if not result.preliminary]
    if len(final) < len(results):
        told = "\n".join([part.text for message in later for part in message.parts if isinstance(part, TextPart)])
        final = [result for result in final if _parts_of(result) and not _is_told(result.output_text, told)]
    found = final or [result for result in results if result.preliminary][-1:]
    finished = [result for result in found if result.status != "aborted"]
    return finished or found[:1]


def _is_told(text: str, told: str) -> bool:
    return bool(text) and text in told


def _content(result: ToolResult) -> tuple[object, ...]:
    return (result.status, result.content, result.error_text)


def _join(results: list[ToolResult], message: Message, call: ToolCallPart, report: Report) -> ToolResult:
    """Several answers as one, in order; it has failed when the last has."""
    if len(results) == 1:
        return msgspec.structs.replace(results[0], content=_parts_of(results[0]))
    report.mend("joined-results", message.id, f"{len(results)} results became one", call=call.tool_call_id)
    content = tuple(part for result in results for part in _parts_of(result))
    return msgspec.structs.replace(results[-1], content=content)


def _parts_of(result: ToolResult) -> tuple[Part, ...]:
    if result.content or not result.error_text:
        return result.content
    return (TextPart(text=result.error_text),)


def _instead(result: ToolResult, options: RequestOptions) -> str:
    """What a result without text says: most APIs cannot tell the model otherwise that its tool did not run."""
    told = {"denied": options.denied_result, "aborted": options.aborted_result}
    return told.get(result.status, options.empty_result)


def _aborted(call: ToolCallPart, options: RequestOptions) -> ToolResult:
    return ToolResult(
        id=f"{call.tool_call_id}:unanswered", status="aborted", content=(TextPart(text=options.aborted_result),)
    )
