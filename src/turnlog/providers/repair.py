"""Developer messages never reach a provider as such (R-K22): they become part of what stands before them.

What the agent's harness injected is attached to the preceding user message or tool result. What stands before any
becomes the provider's system text. What the model is to answer (a summary, a background task's report, the harness's
own "go on") is the user's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec

from turnlog.model import FilePart, Message, Origin, Part, ReasoningPart, TextPart, ToolCallPart, ToolResult
from turnlog.providers.base import Report, RequestOptions
from turnlog.providers.blobs import load_blobs
from turnlog.providers.context import as_user
from turnlog.providers.files import FileLimits, fit_files
from turnlog.providers.reasoning import has_proof
from turnlog.providers.request_parts import agent_fact, as_told, only_carried

_ANSWERED = frozenset({Origin.COMPACTION, Origin.NOTIFICATION})


def attach_developer_messages(messages: Iterable[Message], report: Report) -> tuple[list[Message], list[str]]:
    """The messages without developer messages, and the texts of those that stood before all others."""
    attached: list[Message] = []
    leading: list[Message] = []
    history = list(messages)
    for index, message in enumerate(history):
        if message.role != "developer":
            attached.append(message)
        elif message.origin in _ANSWERED or _is_prompt(history, index):
            attached.append(as_user(message))
        elif not _attach(message, attached):
            report.mend("leading-developer", message.id, "sent as system text: nothing stands before it")
            leading.append(message)
    texts = ["\n".join(_texts(message)) for message in leading]
    files = [part for message in leading for part in message.parts if not isinstance(part, TextPart)]
    if files:
        _put_first(files, leading[0], attached)
    return attached, [text for text in texts if text.strip()]


def _is_prompt(history: Sequence[Message], index: int) -> bool:
    """Whether the harness made the model go on: it spoke between two answers, and no tool did."""
    if history[index].origin is not Origin.HARNESS:
        return False
    before = next((message for message in reversed(history[:index]) if message.role != "developer"), None)
    after = next((message for message in history[index + 1 :] if message.role != "developer"), None)
    return (
        before is not None
        and before.role == "assistant"
        and not any(_is_answered(part) for part in before.parts)
        and after is not None
        and after.role == "assistant"
    )


def _attach(message: Message, attached: list[Message]) -> bool:
    """Add it to the last message that a user or a tool wrote; False when there is none."""
    for index in reversed(range(len(attached))):
        earlier = attached[index]
        if earlier.role == "user":
            attached[index] = _with_parts(earlier, _lines(message), first=_is_prepended(message))
            return True
        call = next((part for part in reversed(earlier.parts) if _is_answered(part)), None)
        if call is not None:
            attached[index] = _with_result_parts(earlier, cast("ToolCallPart", call), _lines(message))
            return True
    return False


def _is_answered(part: Part) -> bool:
    return isinstance(part, ToolCallPart) and not part.provider_executed and bool(part.results)


def _lines(message: Message) -> tuple[Part, ...]:
    """Its parts, each text ended by a newline, so that it stands apart from its neighbours."""
    return tuple(
        msgspec.structs.replace(part, text=part.text + "\n") if isinstance(part, TextPart) else part
        for part in message.parts
        if not isinstance(part, TextPart) or part.text.strip() or part.blob
    )


def _with_parts(message: Message, parts: tuple[Part, ...], *, first: bool) -> Message:
    joined = (*parts, *message.parts) if first else (*message.parts, *parts)
    return msgspec.structs.replace(message, parts=joined)


def _with_result_parts(message: Message, call: ToolCallPart, parts: tuple[Part, ...]) -> Message:
    result = call.results[-1]
    result = msgspec.structs.replace(result, content=(*result.content, *parts))
    call_now = msgspec.structs.replace(call, results=(*call.results[:-1], result))
    return msgspec.structs.replace(message, parts=tuple(call_now if part is call else part for part in message.parts))


def _is_prepended(message: Message) -> bool:
    """Whether the agent asked for it in front of the user's own text, as klaude-code does."""
    return agent_fact(message.metadata, "attachment_position") == "prepend"


def _texts(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, TextPart)]


def _put_first(files: Sequence[Part], owner: Message, attached: list[Message]) -> None:
    """Files of leading developer messages: system text holds none, so the first user message takes them."""
    for index, message in enumerate(attached):
        if message.role == "user":
            attached[index] = _with_parts(message, tuple(files), first=True)
            return
    only_files = tuple(part for part in files if isinstance(part, FilePart))
    attached.insert(0, Message(id=owner.id, role="user", parts=only_files))


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


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What an API asks of calls and of the beginning."""

    call_id_characters: str = r"\x20-\x7e"
    """As in a regular expression's brackets."""
    call_id_length: int = 512
    tool_name_characters: str = r"a-zA-Z0-9_-"
    tool_name_first: str = r"a-zA-Z0-9_-"
    tool_name_length: int = 128
    sendable_data: Mapping[str, str] = {}
    """Names of data parts that the API takes in results, and the field that each must have."""
    begins_with_user: bool = False
    files: FileLimits = FileLimits()


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """A history that can be sent."""

    system: tuple[str, ...]
    """System texts in order, each once: the prompt, then leading developer texts."""
    messages: tuple[Message, ...]


def repair(messages: Iterable[Message], rules: Rules, options: RequestOptions, report: Report) -> Repaired:
    """Make a history fit for sending; tell each change to the report."""
    prompts, rest = _split_system(as_told(load_blobs(messages, options, report)), options, report)
    rest = without_failed_answers(rest, report)
    rest = _with_proper_calls(only_carried(rest, rules.sendable_data, report), rules, report)
    rest = answer_calls(rest, options, report)
    rest, leading = attach_developer_messages(rest, report)
    rest = fit_files(_without_blanks(rest, report), rules.files, options, report)
    if rules.begins_with_user and rest and rest[0].role != "user":
        report.mend("first-user", rest[0].id, "a user message was put before it: the API begins with the user")
        rest.insert(0, Message(id="first-user", role="user", parts=(TextPart(text="(continued)"),)))
    return Repaired(system=tuple(dict.fromkeys((*prompts, *leading))), messages=tuple(rest))


def _split_system(
    messages: Sequence[Message], options: RequestOptions, report: Report
) -> tuple[list[str], list[Message]]:
    """The system prompt exactly once, whether the caller, the history or both have it."""
    prompts = [options.system] if options.system is not None and options.system.strip() else []
    rest: list[Message] = []
    for message in messages:
        if message.role != "system":
            rest.append(message)
            continue
        text = "\n".join([part.text for part in message.parts if isinstance(part, TextPart)])
        if text in prompts or options.system is not None:
            report.mend("system-repeated", message.id, "left out: the system prompt is sent once")
        elif text.strip():
            if rest:
                report.mend("system-moved", message.id, "put with the system prompt")
            prompts.append(text)
    return prompts, rest


def without_failed_answers(messages: list[Message], report: Report) -> list[Message]:
    """What an agent logged in the place of an answer was never said by the model."""
    kept: list[Message] = []
    for message in messages:
        if message.role != "assistant":
            kept.append(message)
        elif message.error is not None and _says_only(message, message.error.text):
            report.mend("failed-answer", message.id, f"left out: {message.error.text[:80]}")
        elif message.origin is Origin.HARNESS:
            report.mend("failed-answer", message.id, "left out: the agent wrote it in the model's name")
        else:
            kept.append(message)
    return kept


def _says_only(message: Message, text: str) -> bool:
    return all(isinstance(part, TextPart) and (part.text in text or text in part.text) for part in message.parts)


def _with_proper_calls(messages: list[Message], rules: Rules, report: Report) -> list[Message]:
    """Calls with ids that are unique and allowed, and names that are allowed; the same call is not sent twice."""
    seen: dict[str, ToolCallPart] = {}
    proper: list[Message] = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            if not isinstance(part, ToolCallPart):
                parts.append(part)
            elif part.tool_call_id in seen and _is_same_call(seen[part.tool_call_id], part):
                report.mend("duplicate-call", message.id, "left out: it stands before", call=part.tool_call_id)
            elif part.parent_tool_call_id is not None:
                report.mend("nested-call", message.id, "left out: code made it, not the model", call=part.tool_call_id)
            else:
                parts.append(_proper_call(part, message, seen, rules, report))
        proper.append(message if parts == list(message.parts) else msgspec.structs.replace(message, parts=tuple(parts)))
    return proper


def _is_same_call(one: ToolCallPart, other: ToolCallPart) -> bool:
    """A copy of a call, not another call that a careless server gave the same id."""
    return one.id is not None and one.id == other.id


def _proper_call(
    call: ToolCallPart, message: Message, seen: dict[str, ToolCallPart], rules: Rules, report: Report
) -> ToolCallPart:
    call_id = _proper_id(call.tool_call_id, seen, rules)
    name = _proper_name(call.tool_name, rules)
    seen[call_id] = call
    if call_id != call.tool_call_id:
        report.mend("renamed-call", message.id, f"sent as {call_id}", call=call.tool_call_id)
    if name != call.tool_name:
        report.mend("renamed-tool", message.id, f"{call.tool_name!r} sent as {name}", call=call.tool_call_id)
    if (call_id, name) == (call.tool_call_id, call.tool_name):
        return call
    return msgspec.structs.replace(call, tool_call_id=call_id, tool_name=name)


def _proper_name(name: str, rules: Rules) -> str:
    if name and not re.match(f"[{rules.tool_name_first}]", name):
        name = f"_{name}"
    return _fit(name, rules.tool_name_characters, rules.tool_name_length) or "unknown"


def _proper_id(call_id: str, seen: dict[str, ToolCallPart], rules: Rules) -> str:
    """The id itself where it may be; else one made of it, the same each time."""
    if call_id and call_id not in seen and call_id == _fit(call_id, rules.call_id_characters, rules.call_id_length):
        return call_id
    digest = hashlib.sha256(f"{call_id}\0{len(seen)}".encode(errors="replace")).hexdigest()[:12]
    stem = _fit(call_id, rules.call_id_characters, rules.call_id_length - len(digest) - 1)
    return f"{stem}_{digest}" if stem else f"call_{digest}"


def _fit(text: str, characters: str, length: int) -> str:
    return re.sub(f"[^{characters}]", "_", text)[:length]


def _without_blanks(messages: list[Message], report: Report) -> list[Message]:
    """Messages without parts that say nothing, and without those that then have none."""
    kept: list[Message] = []
    for message in messages:
        parts = tuple(part for part in message.parts if not _is_blank(part, message))
        if parts:
            kept.append(message if len(parts) == len(message.parts) else msgspec.structs.replace(message, parts=parts))
        if not parts:
            report.mend("empty-message", message.id, "left out")
        elif len(parts) < len(message.parts):
            report.mend("blank-part", message.id, f"left out {len(message.parts) - len(parts)} without text")
    return kept


def _is_blank(part: Part, message: Message) -> bool:
    """Whether a part says nothing, and a provider has nothing to find in it either."""
    if not isinstance(part, TextPart | ReasoningPart) or part.text.strip() or part.blob is not None:
        return False
    return message.role == "user" or not has_proof(part)
