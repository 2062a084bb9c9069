"""Makes a history fit for an API: exactly one result for each call, allowed ids and names, no empty messages (R-K22).

The rules are in docs/reference/providers.md; A5, C2, R1 and G3 there are why calls and results must match. Every change
is reported. An API's own differences are values of `RequestRules`, so that each repair is written once.

No API has a role for what the agent's harness said. Such a developer message is attached to the user message or tool
result before it; those before all others become system text. One that the model answered (a summary, the report of a
background task, "continue" between two answers) is a user message.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from turnlog.model import FilePart, Message, Origin, Part, ReasoningPart, TextPart, ToolCallPart, ToolResult
from turnlog.providers.base import Report, RequestOptions
from turnlog.providers.context import as_user
from turnlog.providers.files import FileLimits, fit_files, load_blobs
from turnlog.providers.request_parts import agent_fact, has_proof, only_carried, with_agent_fields


class RequestRules(msgspec.Struct, frozen=True, kw_only=True):
    """What an API demands of calls, files and the first message."""

    call_id_characters: str = r"\x20-\x7e"
    """As between the brackets of a regular expression."""
    call_id_length: int = 512
    tool_name_characters: str = r"a-zA-Z0-9_-"
    tool_name_first: str = r"a-zA-Z0-9_-"
    tool_name_length: int = 128
    sendable_data: Mapping[str, str] = {}
    """Data parts that the API accepts in results: name -> a field that must be a text."""
    begins_with_user: bool = False
    files: FileLimits = FileLimits()


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """A history that can be sent."""

    system: tuple[str, ...]
    """System texts in order, each once: the prompt, then leading developer texts."""
    messages: tuple[Message, ...]


def repair(messages: Iterable[Message], rules: RequestRules, options: RequestOptions, report: Report) -> Repaired:
    """Make a history fit for sending. Each change is reported."""
    # The order counts. Blobs come first, since results are compared by their content. Developer messages are attached
    # to results, so every call must have its one result before. Files come last, when it is known what is sent.
    prompts, rest = _split_system(with_agent_fields(load_blobs(messages, options, report)), options, report)
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
    """The system prompt, exactly once, and the other messages. The caller's prompt wins over the history's."""
    prompts = [options.system] if options.system is not None and options.system.strip() else []
    rest: list[Message] = []
    for message in messages:
        if message.role != "system":
            rest.append(message)
            continue
        text = "\n".join([part.text for part in message.parts if isinstance(part, TextPart)])
        # A history may hold the system prompt several times, and servers with a chat template refuse a second one (C1).
        if text in prompts or options.system is not None:
            report.mend("system-repeated", message.id, "left out: the system prompt is sent once")
        elif text.strip():
            if rest:
                report.mend("system-moved", message.id, "put with the system prompt")
            prompts.append(text)
    return prompts, rest


def without_failed_answers(messages: list[Message], report: Report) -> list[Message]:
    """The messages without answers that no model wrote: errors that the agent logged as answers, and its own texts."""
    kept: list[Message] = []
    for message in messages:
        if message.role != "assistant":
            kept.append(message)
        # An answer that failed halfway stays: the model said what came before the error.
        # Claude Code logs a failed request as an answer with the words of the error.
        elif message.error is not None and _says_only(message, message.error.text):
            report.mend("failed-answer", message.id, f"left out: {message.error.text[:80]}")
        elif message.origin is Origin.HARNESS:
            report.mend("failed-answer", message.id, "left out: the agent wrote it in the model's name")
        else:
            kept.append(message)
    return kept


def _says_only(message: Message, text: str) -> bool:
    return all(isinstance(part, TextPart) and (part.text in text or text in part.text) for part in message.parts)


def _with_proper_calls(messages: list[Message], rules: RequestRules, report: Report) -> list[Message]:
    """The messages with unique and allowed ids of calls, and allowed names of tools. A call is sent once."""
    seen: dict[str, ToolCallPart] = {}
    proper: list[Message] = []
    for message in messages:
        if not any(type(part) is ToolCallPart for part in message.parts):
            proper.append(message)
            continue
        parts: list[Part] = []
        for part in message.parts:
            if not isinstance(part, ToolCallPart):
                parts.append(part)
            elif part.tool_call_id in seen and _is_same_call(seen[part.tool_call_id], part):
                report.mend("duplicate-call", message.id, "left out: it occurs before", call=part.tool_call_id)
            # The result of the code contains what its call returned.
            elif part.parent_tool_call_id is not None:
                report.mend("nested-call", message.id, "left out: code made it, not the model", call=part.tool_call_id)
            else:
                parts.append(_proper_call(part, message, seen, rules, report))
        proper.append(message if parts == list(message.parts) else msgspec.structs.replace(message, parts=tuple(parts)))
    return proper


def _is_same_call(one: ToolCallPart, other: ToolCallPart) -> bool:
    """Whether it is a copy of the call. Some servers give different calls the same id; their parts differ."""
    return one.id is not None and one.id == other.id


def _proper_call(
    call: ToolCallPart, message: Message, seen: dict[str, ToolCallPart], rules: RequestRules, report: Report
) -> ToolCallPart:
    # A history of another provider may have ids that this API refuses.
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


def _proper_name(name: str, rules: RequestRules) -> str:
    if name and not re.match(f"[{rules.tool_name_first}]", name):
        name = f"_{name}"
    return _fit(name, rules.tool_name_characters, rules.tool_name_length) or "unknown"


def _proper_id(call_id: str, seen: dict[str, ToolCallPart], rules: RequestRules) -> str:
    """The id if the API allows it; else one made of it, the same in every request."""
    # Anthropic refuses two calls with one id in the whole request (A3), and not only within an answer.
    if call_id and call_id not in seen and call_id == _fit(call_id, rules.call_id_characters, rules.call_id_length):
        return call_id
    # The number of calls before it distinguishes two calls with one id.
    digest = hashlib.sha256(f"{call_id}\0{len(seen)}".encode(errors="replace")).hexdigest()[:12]
    stem = _fit(call_id, rules.call_id_characters, rules.call_id_length - len(digest) - 1)
    return f"{stem}_{digest}" if stem else f"call_{digest}"


def _fit(text: str, characters: str, length: int) -> str:
    return re.sub(f"[^{characters}]", "_", text)[:length]


def answer_calls(messages: Sequence[Message], options: RequestOptions, report: Report) -> list[Message]:
    """The messages with exactly one result for each call that the agent had to run."""
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
        # The provider wrote call and result into one answer, which goes back as it was.
        return msgspec.structs.replace(call, results=tuple(results[:1]))
    if not results:
        # A killed process leaves calls without a result, and every API refuses those (A5, C2, R1, G3).
        report.mend("unanswered-call", message.id, "a result was added that says so", call=call.tool_call_id)
        result = _aborted(call, options)
    else:
        result = _join(results, message, call, report)
        # A command without output is a success, but Anthropic refuses a blank text (A4).
        if all(isinstance(part, TextPart) and not part.text.strip() for part in result.content):
            report.mend("empty-result", message.id, "a text was added that says so", call=call.tool_call_id)
            result = msgspec.structs.replace(result, content=(TextPart(text=_instead(result, options)),))
    return msgspec.structs.replace(call, results=(result,))


def _choose(call: ToolCallPart, message: Message, later: Iterable[Message], report: Report) -> list[ToolResult]:
    """The results to send, in order of arrival. A repeated one counts once: a resumed log may hold it again."""
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
    """The outcome instead of progress, a late outcome instead of an abort, and the first of two aborts.

    The result of a background task is first its launch, which is preliminary, then its report. Where a later message
    contains the report, or the report is empty, the launch is the result.
    """
    final = [result for result in results if not result.preliminary]
    if len(final) < len(results):
        said_later = "\n".join([part.text for message in later for part in message.parts if isinstance(part, TextPart)])
        final = [result for result in final if _parts_of(result) and not _is_in(result.output_text, said_later)]
    found = final or [result for result in results if result.preliminary][-1:]
    # A call that Escape aborted may still report its outcome later.
    finished = [result for result in found if result.status != "aborted"]
    return finished or found[:1]


def _is_in(text: str, whole: str) -> bool:
    return bool(text) and text in whole


def _content(result: ToolResult) -> tuple[object, ...]:
    return (result.status, result.content, result.error_text)


def _join(results: list[ToolResult], message: Message, call: ToolCallPart, report: Report) -> ToolResult:
    """Several results as one, in order. Its status is that of the last one."""
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
    """The text for a result without one. Most APIs have no other way to say that a tool did not run."""
    texts = {"denied": options.denied_result, "aborted": options.aborted_result}
    return texts.get(result.status, options.empty_result)


def _aborted(call: ToolCallPart, options: RequestOptions) -> ToolResult:
    return ToolResult(
        id=f"{call.tool_call_id}:unanswered", status="aborted", content=(TextPart(text=options.aborted_result),)
    )


_ANSWERED = frozenset({Origin.COMPACTION, Origin.NOTIFICATION})


def attach_developer_messages(messages: Iterable[Message], report: Report) -> tuple[list[Message], list[str]]:
    """The messages without developer messages, and the texts of those before all others."""
    attached: list[Message] = []
    leading: list[Message] = []
    placed = _Attachments(attached)
    history = list(messages)
    for index, message in enumerate(history):
        if message.role != "developer":
            attached.append(message)
        # A summary and the report of a background task are turns that the model answers; anything else is read with the
        # turn before it.
        elif message.origin in _ANSWERED or _is_prompt(history, index):
            attached.append(as_user(message))
        elif not placed.add(message):
            report.mend("leading-developer", message.id, "sent as system text: nothing comes before it")
            leading.append(message)
    texts = ["\n".join(_texts(message)) for message in leading]
    files = [part for message in leading for part in message.parts if not isinstance(part, TextPart)]
    if files:
        _put_first(files, leading[0], attached)
    return attached, [text for text in texts if text.strip()]


def _is_prompt(history: Sequence[Message], index: int) -> bool:
    """Whether the model answered it: it is between two answers, and the first of them waited for no result."""
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


class _Attachments:
    """Puts developer messages with the messages before them."""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        self._before: dict[tuple[int, str | None], int] = {}
        """Place of a message and its call -> how many parts were put in front of its own: more follow them."""
        self._after: dict[tuple[int, str | None], int] = {}
        """The same of what was put behind it."""

    def add(self, message: Message) -> bool:
        """Add its parts to the last user message or tool result; False if there is none."""
        # After calls no user message may precede their results (A5, R1), so that a text behind a result goes into that
        # result.
        for index in reversed(range(len(self._messages))):
            earlier = self._messages[index]
            call = _answered_before(earlier, message.created_at)
            if earlier.role == "user":
                held = self._with((index, None), earlier.parts, _lines(message), message)
                self._messages[index] = msgspec.structs.replace(earlier, parts=held)
                return True
            if call is not None:
                held = self._with((index, call.tool_call_id), call.results[-1].content, _one_text(message), message)
                self._messages[index] = _with_content(earlier, call, held)
                return True
        return False

    def _with(
        self, place: tuple[int, str | None], held: tuple[Part, ...], added: tuple[Part, ...], message: Message
    ) -> tuple[Part, ...]:
        before = self._before.get(place, 0)
        after = self._after.get(place, 0)
        joins = place[1] is not None
        if _is_prepended(message):
            front = _joined(held[:before], added) if joins else (*held[:before], *added)
            self._before[place] = len(front)
            return (*front, *held[before:])
        start = len(held) - after
        end = _joined(held[start:], added) if joins else (*held[start:], *added)
        self._after[place] = len(end)
        return (*held[:start], *end)


def _joined(held: tuple[Part, ...], added: tuple[Part, ...]) -> tuple[Part, ...]:
    """Both, with the texts that meet as one: each has a newline at its end, and a result puts another between texts."""
    if not held or not added or not isinstance(held[-1], TextPart) or not isinstance(added[0], TextPart):
        return (*held, *added)
    return (*held[:-1], msgspec.structs.replace(held[-1], text=held[-1].text + added[0].text), *added[1:])


def _one_text(message: Message) -> tuple[Part, ...]:
    """Its lines, for a result."""
    joined: tuple[Part, ...] = ()
    for part in _lines(message):
        joined = _joined(joined, (part,))
    return joined


def _answered_before(message: Message, time: datetime | None) -> ToolCallPart | None:
    """The call whose result was the last one at that time; where times say nothing, the last call. None without any.

    What the harness says between the results of parallel calls belongs to the result right before it.
    """
    calls = [part for part in message.parts if isinstance(part, ToolCallPart) and _is_answered(part)]
    times = {call.tool_call_id: at for call in calls if (at := call.results[-1].completed_at) is not None}
    if len(times) < len(calls):
        return calls[-1] if calls else None
    earlier = [call for call in calls if time is not None and times[call.tool_call_id] <= time]
    return max(reversed(earlier or calls), key=lambda call: times[call.tool_call_id], default=None)


def _is_answered(part: Part) -> bool:
    """Whether a result can be added to. What the provider ran has its result inside the answer."""
    return isinstance(part, ToolCallPart) and not part.provider_executed and bool(part.results)


def _lines(message: Message) -> tuple[Part, ...]:
    """Its parts. Each text gets a newline at its end, which separates it from the next one."""
    return tuple(
        msgspec.structs.replace(part, text=part.text + "\n") if isinstance(part, TextPart) else part
        for part in message.parts
        if not isinstance(part, TextPart) or part.text.strip() or part.blob
    )


def _with_content(message: Message, call: ToolCallPart, content: tuple[Part, ...]) -> Message:
    result = msgspec.structs.replace(call.results[-1], content=content)
    call_now = msgspec.structs.replace(call, results=(*call.results[:-1], result))
    return msgspec.structs.replace(message, parts=tuple(call_now if part is call else part for part in message.parts))


def _is_prepended(message: Message) -> bool:
    """Whether the agent sends it before the user's text or the result, which klaude-code notes in its log."""
    return agent_fact(message.metadata, "attachment_position") == "prepend"


def _texts(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, TextPart)]


def _put_first(files: Sequence[Part], owner: Message, attached: list[Message]) -> None:
    """Put the files of leading developer messages into the first user message; system text cannot have files."""
    for index, message in enumerate(attached):
        if message.role == "user":
            attached[index] = msgspec.structs.replace(message, parts=(*files, *message.parts))
            return
    only_files = tuple(part for part in files if isinstance(part, FilePart))
    attached.insert(0, Message(id=owner.id, role="user", parts=only_files))


def _without_blanks(messages: list[Message], report: Report) -> list[Message]:
    """The messages without blank parts, and without messages that have no other parts."""
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
    """Whether a part has neither text nor anything for its provider."""
    if not isinstance(part, TextPart | ReasoningPart) or part.text.strip() or part.blob is not None:
        return False
    # Redacted thinking and sealed reasoning have no text, and their provider wants them back.
    return message.role == "user" or not has_proof(part)
