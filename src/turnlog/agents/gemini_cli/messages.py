"""Records of type `user`, `gemini`, `info`, `error` and `warning`: what they hold, where it came from, what is new.

A record replaces the one with its id, and a checkpoint repeats all records with less in them. The store joins what is
read of one message, so a record of its own is added whole each time, and a checkpoint's copy only where it has what no
record had.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
from msgspec import Raw

from turnlog.agents.changes import Link, RecordRef
from turnlog.agents.decoding import fields_of, names_of, other_fields
from turnlog.agents.gemini_cli import NAME
from turnlog.agents.gemini_cli.fold_context import GeminiContext, GeminiEntry, aware_or_none
from turnlog.agents.gemini_cli.records import (
    RECORD_KINDS,
    ContentPart,
    FunctionResult,
    GeminiCall,
    GeminiRecord,
    RequestTokens,
    Thought,
    joined_text,
    parse_parts,
    provider_data,
    split_responses,
    to_part,
)
from turnlog.agents.gemini_cli.sources import session_id
from turnlog.agents.gemini_cli.tools import LoggedCall, parse_calls, result_of_response, to_tool_call
from turnlog.agents.handoffs import carried_origin, read_mark
from turnlog.model import (
    ErrorEvent,
    InterruptEvent,
    Message,
    Origin,
    Part,
    ReasoningPart,
    RecordEvent,
    TextPart,
    ToolCallPart,
    Usage,
)
from turnlog.model.session import title_from

SESSION_CONTEXT = "<session_context>"
"""How the message begins in which the CLI describes the folder and the machine to the model before the first prompt."""

_FIELDS = names_of(GeminiRecord)


# -- a message in the file
class LoggedMessage(NamedTuple):
    """A message in the file."""

    record: GeminiRecord
    json: bytes
    position: int
    length: int
    is_copy: bool = False
    """It is part of a checkpoint."""
    original: str | None = None
    """Of a copy under another id: the key of the message that it copies."""
    is_later_step: bool = False
    """It was split off another message, with which it counts as one record."""

    @property
    def key(self) -> str:
        """Names the message in its session. The id alone does not: an answer and its calls' results may share one."""
        record = self.record
        if self.original is not None:
            return self.original
        return f"{record.type}:{record.id}" if record.id is not None else f"{record.type}@{self.position}"


class MessageContent(NamedTuple):
    """What a message holds."""

    parts: list[ContentPart]
    responses: list[FunctionResult]
    calls: list[LoggedCall]
    text: str

    @property
    def checksum(self) -> int:
        """The same for a message and its copy under another id."""
        return content_crc(text_crc(self.text), self)


def text_crc(text: str) -> int:
    """The first half of a message's checksum: that of its text."""
    return crc32(text.encode(errors="replace"))


def content_crc(crc: int, content: MessageContent) -> int:
    """Continue the checksum of a text with the ids of the calls and results in a message."""
    calls = ",".join(sorted(call.id for call in content.calls))
    responses = ",".join(response.call_id for response in content.responses)
    return crc32(f"|{calls}|{responses}".encode(errors="replace"), crc)


def text_checksum(text: str) -> int:
    """The checksum of a message that holds nothing but a text."""
    return MessageContent([], [], [], text).checksum


def parse_content(logged: LoggedMessage) -> MessageContent:
    """The content of a message. Only answers have calls, and only messages of type `user` have their results."""
    parts = parse_parts(logged.record.content)
    responses: list[FunctionResult] = []
    if logged.record.type == "user":
        responses, parts = split_responses(parts)
    calls = parse_calls(logged.record, logged.json, logged.position, parts) if logged.record.type == "gemini" else []
    return MessageContent(parts, responses, calls, joined_text(parts))


def is_session_context(logged: LoggedMessage) -> bool:
    """Whether a message is the CLI's description of the folder and the machine, see `SESSION_CONTEXT`."""
    return logged.record.type == "user" and SESSION_CONTEXT.encode() in logged.json[:4096]


def metadata_of(logged: LoggedMessage, facts: dict[str, Any]) -> dict[str, Any]:
    """The agent's own facts about a message, with the record's fields that are not known.

    The JSON of a later step is that of its calls, whose fields belong to them.
    """
    if not logged.is_later_step and not logged.is_copy:
        facts = facts | other_fields(fields_of(logged.json), _FIELDS)
    return {NAME: facts} if facts else {}


# -- where a message came from


TURN_ORIGINS = frozenset({Origin.PROMPT, Origin.SHELL, Origin.SUBAGENT_PROMPT})
"""Origins that begin a turn."""

_SUBAGENT_REQUESTS = (
    "Your task is to do a deep investigation of the codebase to find all relevant files",
    "Your task is to answer the following question about Gemini CLI:\n<question>",
)
"""How the prompts begin that the CLI itself writes for its subagents `codebase_investigator` and `cli_help`."""

_SHELL = "I ran the following shell command:\n```sh\n"
_SUMMARY = "<state_snapshot>"
BEGINNINGS: dict[str, Origin] = {
    SESSION_CONTEXT: Origin.HARNESS,
    "[Function Response:": Origin.HARNESS,
    _SUMMARY: Origin.COMPACTION,
    _SHELL: Origin.SHELL,
    "User has manually exited Plan Mode. Switching to ": Origin.HARNESS,
    "Plan approved. Switching to ": Origin.HARNESS,
    "- **Workspace Directories:**\n": Origin.HARNESS,
    "I'm currently working in the following directories:\n": Origin.HARNESS,
    "Here is the user's editor context as a JSON object.": Origin.HARNESS,
    "Here is a summary of changes in the user's editor context": Origin.HARNESS,
    "System: Potential loop detected.": Origin.HARNESS,
    "System: Please continue.": Origin.HARNESS,
}
"""Beginning of a text -> its origin. Records of type `user` hold what a person typed and what the CLI puts in the
person's place; nothing but the wording distinguishes them."""

BINARY_NOTICE = "Binary content received. Proceeding with analysis."
"""The answer that the CLI writes in the model's place when a tool has read sound or video, before the model gets it."""

PLACEHOLDER = "[The previous response was interrupted before it completed.]"
"""The text by which 0.61 replaces an answer to results that was interrupted, when it writes the whole history again."""

_HOOK_CONTEXT = re.compile(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
_COMMAND = re.compile(re.escape(_SHELL) + r"(.*?)\n```\n\nThis produced the following result:\n", re.DOTALL)

SYNTHETIC: dict[str, Any] = {NAME: {"synthetic": True}}
"""Metadata of a text inside a prompt that nobody typed."""


class TextSegment(NamedTuple):
    """A stretch of a text."""

    text: str
    is_synthetic: bool
    """A hook added it."""


def split_hook_context(text: str) -> Iterator[TextSegment]:
    """The texts that hooks put before a prompt, one by one, and the rest."""
    start = 0
    while match := _HOOK_CONTEXT.match(text, start):
        yield TextSegment(match[0], True)
        start = match.end()
    if start < len(text) or not start:
        yield TextSegment(text[start:], False)


def strip_hook_context(text: str) -> str:
    """A text without the texts that hooks put before it."""
    return "".join(segment.text for segment in split_hook_context(text) if not segment.is_synthetic)


def typed_text(content: MessageContent) -> str:
    """The text of a message without what hooks added."""
    return "".join(strip_hook_context(part.wire.text or "") for part in content.parts if part.is_text)


def origin_of(logged: LoggedMessage, content: MessageContent, *, is_subagent: bool, is_begun: bool) -> Origin | None:
    """The origin of a message; None for an answer of the model.

    Args:
        logged: The message.
        content: Its content.
        is_subagent: Whether the session is a subagent's, where only the first message is a prompt.
        is_begun: Whether there was a prompt before it.
    """
    record = logged.record
    if record.type == "gemini":
        return Origin.HARNESS if record.tokens is None and is_binary_notice(content) else None
    typed = typed_text(content)
    if content.responses or record.type != "user" or (content.text and not typed):
        return Origin.HARNESS
    for beginning, origin in BEGINNINGS.items():
        if typed.startswith(beginning):
            return origin
    if not is_subagent:
        return Origin.HARNESS if is_subagent_request(typed) else Origin.PROMPT
    return Origin.HARNESS if is_begun else Origin.SUBAGENT_PROMPT


def is_binary_notice(content: MessageContent) -> bool:
    """Whether an answer is the CLI's own, see `BINARY_NOTICE`: it is logged as a thought."""
    return len(content.parts) == 1 and content.parts[0].is_thought and content.parts[0].wire.text == BINARY_NOTICE


def is_placeholder(record: GeminiRecord, content: MessageContent) -> bool:
    """Whether an answer only marks the place of an interrupted one, see `PLACEHOLDER`."""
    return record.type == "gemini" and record.tokens is None and content.text == PLACEHOLDER


def is_subagent_request(text: str) -> bool:
    """Whether the CLI wrote a text as the prompt of a subagent: 0.30 logs such prompts in the session itself."""
    return text.startswith(_SUBAGENT_REQUESTS)


def shell_command_in(text: str) -> dict[str, str] | None:
    """The shell command that a person ran, as it was typed; None if the text reports no such command."""
    found = _COMMAND.match(text)
    return None if found is None else {"name": "!", "arguments": re.sub(r"\\([\\`])", r"\1", found[1])}


# -- messages that no model wrote


_FILES_HEADING = "--- Content from referenced files ---"
"""From here on a prompt holds what the CLI inserted for each `@file`."""

_TITLE_ORIGINS = frozenset({Origin.PROMPT, Origin.SUBAGENT_PROMPT})
_FOLDER = re.compile(
    r"(?:Workspace Directories:\*\*|working in the (?:directory|following directories):)\s+(?:- )?(\S.*)"
)


def _add_input(context: GeminiContext, logged: LoggedMessage, content: MessageContent, entry: GeminiEntry) -> None:
    """Add a message that a person, the CLI or a hook wrote. A checkpoint's copy has nothing new."""
    if logged.is_copy and logged.key in context.state.entries:
        return
    entry.checksum, entry.is_full = content.checksum, not logged.is_copy
    message_id = context.message_id(logged.key)
    typed = typed_text(content)
    displayed = strip_hook_context(joined_text(parse_parts(logged.record.display_content)))
    message = Message(
        id=message_id,
        role="user" if entry.origin in TURN_ORIGINS else "developer",
        parts=tuple(_input_parts(content.parts, message_id)),
        origin=entry.origin,
        created_at=aware_or_none(logged.record.timestamp),
        metadata=metadata_of(logged, _input_facts(entry, typed, displayed)),
    )
    context.add_message(logged.key, message, entry, ((logged.position, logged.length, None),))
    if entry.origin in _TITLE_ORIGINS:
        _set_title(context, displayed or typed)
    elif content.text.startswith(SESSION_CONTEXT):
        _set_folder(context, content.text)


def _input_parts(parts: list[ContentPart], message_id: str) -> Iterator[Part]:
    number, is_inserted = 0, False
    for part in parts:
        if not part.is_text:
            yield to_part(part, f"{message_id}.{number}")
            number += 1
            continue
        for segment in split_hook_context(part.wire.text or ""):
            is_inserted = is_inserted or segment.text.strip() == _FILES_HEADING
            yield TextPart(
                id=f"{message_id}.{number}",
                text=segment.text,
                provider=provider_data(part, None),
                metadata=SYNTHETIC if is_inserted or segment.is_synthetic else {},
            )
            number += 1


def _input_facts(entry: GeminiEntry, typed: str, displayed: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"display": displayed} if displayed and displayed != typed else {}
    command = shell_command_in(typed) if entry.origin is Origin.SHELL else None
    return facts if command is None else facts | {"command": command}


def _set_title(context: GeminiContext, text: str) -> None:
    title = title_from(text)
    if title and not context.state.titled:
        context.session.titles["prompt"] = title
        context.state.titled = True


def _set_folder(context: GeminiContext, text: str) -> None:
    found = _FOLDER.search(text)
    if found is not None:
        context.set_folder(found[1].strip())


# -- answers of the model


_TEXT, _FILES, _CALLS = 10_000, 15_000, 20_000
"""Numbers of parts: thoughts from 0, then the text, files and calls. The log does not say how they were interleaved."""


def _add_answer(context: GeminiContext, logged: LoggedMessage, content: MessageContent, entry: GeminiEntry) -> None:
    """Add an answer; of a checkpoint's copy only what no record had."""
    record = logged.record
    message_id = context.message_id(logged.key)
    repeats = logged.is_copy and entry.is_full
    parts: list[Part] = [] if repeats else _answer_parts(record, content, message_id, entry)
    refs: list[RecordRef] = [(logged.position, logged.length, None)]
    for number, call in enumerate(content.calls):
        part = _read_call(context, call, f"{message_id}.{_CALLS + number}", logged)
        # A checkpoint has the signatures and results that records leave out, and nothing else that is new.
        if repeats and part.provider is None and not part.results:
            continue
        parts.append(part)
        refs += [(call.position, call.length, result.id) for result in part.results]
    if repeats and not parts:
        return
    entry.is_full = entry.is_full or not logged.is_copy or bool(record.tokens or record.tool_calls or record.thoughts)
    entry.checksum = content.checksum
    is_cancelled = any(call.wire.status == "cancelled" for call in content.calls)
    # Escape while a tool runs logs the answer without its calls (0.61), so a whole answer without calls may have some.
    entry.is_at_tool = is_cancelled or (record.tokens is not None and not content.calls)
    message = Message(
        id=message_id,
        role="assistant" if entry.origin is None else "developer",
        parts=tuple(parts),
        origin=entry.origin,
        created_at=None if repeats else aware_or_none(record.timestamp),
        model=record.model,
        usage=usage_of(record.tokens),
        metadata=metadata_of(logged, {}),
    )
    context.add_message(logged.key, message, entry, tuple(refs))


def _answer_parts(record: GeminiRecord, content: MessageContent, message_id: str, entry: GeminiEntry) -> list[Part]:
    """Thoughts, text and files. The CLI's own notice is logged as a thought and shown as a text."""
    if entry.origin is Origin.HARNESS and is_binary_notice(content):
        return [TextPart(id=f"{message_id}.{_TEXT}", text=BINARY_NOTICE)]
    thoughts = [_thought_text(thought) for thought in record.thoughts or ()]
    if not thoughts:
        # A checkpoint has the thoughts only as parts of the content.
        thoughts = [part.wire.text or "" for part in content.parts if part.is_thought]
    parts: list[Part] = [
        ReasoningPart(id=f"{message_id}.{number}", text=text) for number, text in enumerate(thoughts) if text
    ]
    if content.text:
        parts.append(TextPart(id=f"{message_id}.{_TEXT}", text=content.text))
    files = [part for part in content.parts if part.wire.text is None and part.wire.function_call is None]
    parts += [to_part(part, f"{message_id}.{_FILES + number}") for number, part in enumerate(files)]
    return parts


def _thought_text(thought: Thought) -> str:
    """The thought as the model wrote it, which is how a checkpoint has it."""
    subject, description = thought.subject or "", thought.description or ""
    return f"**{subject}** {description}" if subject else description


def _read_call(context: GeminiContext, call: LoggedCall, part_id: str, logged: LoggedMessage) -> ToolCallPart:
    """A call with its result, unless a record before had one already, which may have been longer."""
    state = context.state
    requested_at = None if logged.is_copy else aware_or_none(logged.record.timestamp)
    part = to_tool_call(call, part_id, logged.record.model, requested_at)
    if part.results:
        # Records and checkpoints repeat results, and may cut them: the first one counts.
        if call.id in state.finished_calls:
            part = msgspec.structs.replace(part, results=())
        else:
            state.finished_calls[call.id] = None
    if call.wire.agent_id is not None:
        link = Link(
            kind="subagent",
            parent_session_id=context.session_id,
            child_session_id=session_id(call.wire.agent_id),
            tool_call_id=call.id,
            message_id=context.message_id(logged.key),
        )
        if link not in context.changes.links:
            context.changes.links.append(link)
    return part


def usage_of(tokens: RequestTokens | None) -> Usage | None:
    """Tokens of one request in disjoint buckets. Gemini's `input` includes the cached ones, `output` no thoughts."""
    if tokens is None:
        return None
    uncached = None if tokens.input is None else max(0, tokens.input - (tokens.cached or 0))
    return Usage(
        input=uncached,
        cache_read=tokens.cached,
        output=tokens.output,
        reasoning=tokens.thoughts,
        tool_prompt=tokens.tool,
    )


# -- any message


_CANCELLED = "Request cancelled."


def read_message(
    context: GeminiContext, logged: LoggedMessage, content: MessageContent, *, origin: Origin | None = None
) -> bool:
    """Add a message and remember it. False if it is not one: only results, or a notice.

    Args:
        context: The feed.
        logged: The message.
        content: Its content.
        origin: Its origin, where its place in a list decides that.
    """
    record = logged.record
    carried = read_mark(record.turnlog)
    context.update_times(None if logged.is_copy or carried else record.timestamp)
    # A notice with a file holds what a tool has read, for the model to see: that is a message.
    is_notice = record.type not in ("user", "gemini") and not any(part.is_file for part in content.parts)
    if is_notice or is_placeholder(record, content):
        _read_notice(context, logged, content)
        return False
    _read_responses(context, logged, content)
    # Results of calls have role `user` in the API. No person wrote them.
    if record.type == "user" and content.responses and not content.parts:
        _remember(context, logged, GeminiEntry(logged.position, is_message=False, checksum=content.checksum))
        return False
    entry = context.state.entries.get(logged.key)
    if entry is None:
        if carried is not None and record.type != "gemini":
            origin = carried_origin(carried, TURN_ORIGINS)
        entry = _new_entry(context, logged, content, origin)
        entry.handed_over = carried is not None
    if record.type != "gemini":
        _add_input(context, logged, content, entry)
    else:
        _add_answer(context, logged, content, entry)
    _remember(context, logged, entry)
    return True


def _remember(context: GeminiContext, logged: LoggedMessage, entry: GeminiEntry) -> None:
    entries = context.state.entries
    known = entries.get(logged.key)
    if known is None or known.is_message == entry.is_message:
        entries[logged.key] = entry


def _new_entry(
    context: GeminiContext, logged: LoggedMessage, content: MessageContent, origin: Origin | None
) -> GeminiEntry:
    """The entry of a message that is new, with its turn and step."""
    state = context.state
    if origin is None and logged.record.turnlog is None:
        origin = origin_of(logged, content, is_subagent=context.is_subagent, is_begun=state.turn > 0)
    step = None
    if origin in TURN_ORIGINS:
        state.turn += 1
        state.step = 0
    elif logged.record.type == "gemini" and origin is None:
        state.step += 1
        step = state.step
    return GeminiEntry(logged.position, is_message=True, turn=state.turn or None, step=step, origin=origin)


def _read_responses(context: GeminiContext, logged: LoggedMessage, content: MessageContent) -> None:
    """Add results without their call: most are in the record of their call too, but not in every checkpoint."""
    state = context.state
    for response in content.responses:
        if response.call_id in state.finished_calls:
            continue
        state.finished_calls[response.call_id] = None
        at = None if logged.is_copy else aware_or_none(logged.record.timestamp)
        result = result_of_response(response, GeminiCall(name=response.name, timestamp=at))
        context.add_late_result(response.call_id, result, logged.position, logged.length)


def _read_notice(context: GeminiContext, logged: LoggedMessage, content: MessageContent) -> None:
    """Add an event for what the CLI showed to the user, or put in the place of an answer."""
    record, state = logged.record, context.state
    if logged.key in state.entries:
        return
    state.entries[logged.key] = GeminiEntry(logged.position, is_message=False, checksum=content.checksum)
    at = aware_or_none(record.timestamp)
    event_id = context.message_id(logged.key)
    place = logged.position, logged.length
    if record.type == "error":
        context.add_event(ErrorEvent(id=event_id, created_at=at, error_text=content.text, kind="cli"), *place)
    # Nothing but this notice marks an interrupt: records have no stop reason.
    elif content.text.strip() == _CANCELLED:
        leaf = None if state.leaf is None else context.message_id(state.leaf)
        during = "tool" if state.leaf is not None and state.entries[state.leaf].is_at_tool else "answer"
        context.add_event(InterruptEvent(id=event_id, created_at=at, during=during, message_id=leaf), *place)
    else:
        kind = record.type or ""
        known = kind in RECORD_KINDS
        context.add_event(
            RecordEvent(id=event_id, created_at=at, kind=kind, known=known, data=Raw(logged.json)), *place
        )
