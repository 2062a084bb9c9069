"""The one repair: a history as every provider takes it, whatever interrupts and damage left behind.

Messages in, messages out: afterwards only `user` and `assistant` messages remain, none of them empty, each call has a
unique id that the API allows and exactly one result, and the system text is apart. Each change is reported. What only
one API asks for (order of blocks, merged turns) is that provider's own business; the rules are in
docs/reference/providers.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from turnlog.model import Message, Origin, Part, ReasoningPart, TextPart, ToolCallPart
from turnlog.providers.base import Report, RequestOptions
from turnlog.providers.blobs import load_blobs
from turnlog.providers.carried import only_carried
from turnlog.providers.developer import attach_developer_messages
from turnlog.providers.files import FileLimits, fit_files
from turnlog.providers.reasoning import has_proof
from turnlog.providers.results import answer_calls


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
    prompts, rest = _split_system(load_blobs(messages, options, report), options, report)
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
