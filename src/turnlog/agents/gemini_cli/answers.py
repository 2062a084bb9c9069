"""Records of type `gemini`: the thoughts, words and calls of one model call, with its tokens."""

from __future__ import annotations

import msgspec

from turnlog.agents.changes import Link, RecordRef
from turnlog.agents.gemini_cli import contents
from turnlog.agents.gemini_cli.calls import LoggedCall, call_part, is_answered
from turnlog.agents.gemini_cli.logged import Logged, Said, metadata_of
from turnlog.agents.gemini_cli.origins import RECEIVED, says_received
from turnlog.agents.gemini_cli.reading import Reading, aware_or_none
from turnlog.agents.gemini_cli.records import Record, Thought, Tokens
from turnlog.agents.gemini_cli.sources import session_id
from turnlog.agents.gemini_cli.state import Entry
from turnlog.model import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    Usage,
)

_TEXT, _FILES, _CALLS = 10_000, 15_000, 20_000
"""Block numbers: thoughts, then the text, files and calls. The log does not tell how they were interleaved."""


def tell_answer(reading: Reading, logged: Logged, said: Said, entry: Entry) -> None:
    """Tell of an answer; a checkpoint's copy only where it has what no record had."""
    record = logged.record
    message_id = reading.message_id(logged.key)
    repeats = logged.is_copy and entry.is_full
    parts: list[Part] = [] if repeats else _spoken_parts(record, said, message_id, entry)
    refs: list[RecordRef] = [(logged.position, logged.length, None)]
    for index, call in enumerate(said.calls):
        part = _tell_call(reading, call, f"{message_id}.{_CALLS + index}", logged)
        if repeats and part.provider is None and not part.results:
            continue
        parts.append(part)
        refs += [(call.position, call.length, result.id) for result in part.results]
    if repeats and not parts:
        return
    entry.is_full = entry.is_full or not logged.is_copy or bool(record.tokens or record.tool_calls or record.thoughts)
    entry.key = said.checksum
    is_cancelled = any(call.wire.status == "cancelled" for call in said.calls)
    entry.is_at_tool = is_cancelled or (record.tokens is not None and not said.calls)
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
    reading.add_message(logged.key, message, entry, tuple(refs))


def _spoken_parts(record: Record, said: Said, message_id: str, entry: Entry) -> list[Part]:
    """What was thought and said; what the CLI says in the model's place is no thought."""
    if entry.origin is Origin.HARNESS and says_received(said):
        return [TextPart(id=f"{message_id}.{_TEXT}", text=RECEIVED)]
    thoughts = [_thought_text(thought) for thought in record.thoughts or ()]
    if not thoughts:
        thoughts = [piece.part.text or "" for piece in said.pieces if piece.is_thought]
    parts: list[Part] = [
        ReasoningPart(id=f"{message_id}.{index}", text=text) for index, text in enumerate(thoughts) if text
    ]
    if said.text:
        parts.append(TextPart(id=f"{message_id}.{_TEXT}", text=said.text))
    rest = [piece for piece in said.pieces if piece.part.text is None and piece.part.function_call is None]
    parts += [contents.part_of(piece, f"{message_id}.{_FILES + index}") for index, piece in enumerate(rest)]
    return parts


def _thought_text(thought: Thought) -> str:
    """As the model wrote it, and as a checkpoint has it."""
    subject, description = thought.subject or "", thought.description or ""
    return f"**{subject}** {description}" if subject else description


def _tell_call(reading: Reading, call: LoggedCall, part_id: str, logged: Logged) -> ToolCallPart:
    """The call; its result comes with it unless the log has told one already, perhaps a longer one."""
    state = reading.state
    asked_at = None if logged.is_copy else aware_or_none(logged.record.timestamp)
    part = call_part(call, part_id, logged.record.model, asked_at)
    if is_answered(part):
        if call.id in state.answered:
            part = msgspec.structs.replace(part, results=())
        else:
            state.answered[call.id] = None
    if call.wire.agent_id is not None:
        link = Link(
            kind="subagent",
            parent_session_id=reading.session_id,
            child_session_id=session_id(call.wire.agent_id),
            tool_call_id=call.id,
            message_id=reading.message_id(logged.key),
        )
        if link not in reading.changes.links:
            reading.changes.links.append(link)
    return part


def usage_of(tokens: Tokens | None) -> Usage | None:
    """Tokens of one request in disjoint buckets: `input` counts the cached, `output` leaves out the thoughts."""
    if tokens is None:
        return None
    fresh = None if tokens.input is None else max(0, tokens.input - (tokens.cached or 0))
    return Usage(
        input=fresh,
        cache_read=tokens.cached,
        output=tokens.output,
        reasoning=tokens.thoughts,
        tool_prompt=tokens.tool,
    )


# -- results in messages of their own, and notes
