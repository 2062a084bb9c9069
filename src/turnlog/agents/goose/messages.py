"""What a row or line of Goose says -> messages, results and events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from zlib import crc32

from msgspec import Raw

from turnlog.agents.conversation import ConversationContext
from turnlog.agents.decoding import object_of, text_of, value_of
from turnlog.agents.goose import NAME
from turnlog.agents.goose.contents import (
    INDEX,
    Block,
    blocks_in,
    cost_of,
    part_of,
    result_of,
    usage_of,
    value_in,
)
from turnlog.agents.goose.facts import SUBAGENT
from turnlog.model import CompactionEvent, Message, MessageError, Origin, Part, TextPart

TYPE, MODEL = "type", "model"
"""Notes of a session: its type, and the model in its settings."""

_PARTS, _CALL, _THOUGHTS = "parts", "call", "thoughts"
"""Notes of the newest answer: how many parts it has, the place of its last call, and checksums of its thoughts."""

_LAST, _COMMAND, _COMPACTED = "last", "command", "compacted"
"""Notes of the newest row: whether it is an answer or a command; and whether rows left the model's context."""

_SECONDS = 10_000_000_000
"""Times above are in milliseconds."""

_CALLS = frozenset({"toolRequest", "frontendToolRequest"})
_THINKING = frozenset({"thinking", "reasoning", "redactedThinking"})

_NOTICES = frozenset(
    {
        "actionRequired",
        "contextLengthExceeded",
        "conversationCompacted",
        "summarizationRequested",
        "systemNotification",
        "toolConfirmationRequest",
    }
)
"""Blocks that were shown to the user and are not part of the conversation."""

_COMMAND_LINE: Final = re.compile(r"/[a-z][\w-]*(?:\s|$)")

_SUBAGENT_ID: Final = re.compile(r"Subagent ID: \S+\n\n")

Blocks = list[tuple[Block, Raw]]


class LoggedMessage(NamedTuple):
    """A row or line with a message."""

    identity: object
    role: str
    content: bytes | None
    """The JSON of its blocks."""
    created: object
    """Unix seconds, in some versions milliseconds."""
    metadata: dict[str, Any]

    @property
    def at(self) -> datetime | None:
        """When it was said."""
        if isinstance(self.created, bool) or not isinstance(self.created, int | float):
            return None
        seconds = self.created / 1000 if self.created > _SECONDS else self.created
        try:
            return datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            return None

    def message_id(self, session: str) -> str:
        """An id that all copies of a message have: forks keep the id and the time of a row."""
        if isinstance(self.identity, str) and self.identity:
            # Some local servers use few ids for all answers, so that the time belongs to it.
            return f"{self.identity}@{self.created}"
        return f"{session}@{self.created}.{crc32(self.content or b''):08x}"

    @property
    def is_for_user(self) -> bool:
        """Whether the user sees it."""
        return self.metadata.get("userVisible") is not False

    @property
    def is_for_model(self) -> bool:
        """Whether it is in the model's context."""
        return self.metadata.get("agentVisible") is not False


def read_message(context: ConversationContext, logged: LoggedMessage) -> None:
    """Add what a row says, and count it."""
    blocks = blocks_in(logged.content)
    if blocks is None:
        context.report("the message has no list of contents")
        context.changes.counts.unreadable += 1
        return
    results = [(block, raw) for block, raw in blocks if block.type == "toolResponse"]
    others = [(block, raw) for block, raw in blocks if block.type != "toolResponse"]
    _read_results(context, logged, results)
    notes = context.state.notes
    if not others:
        notes.pop(_LAST, None)
        context.changes.counts.results += bool(results)
        context.changes.counts.events += not results
    elif all(block.type in _NOTICES for block, _ in others):
        context.add_run_metadata(others[0][0].type)
    elif logged.role == "assistant":
        _read_answer(context, logged, others)
    elif logged.role == "user":
        _read_input(context, logged, others)
    else:
        context.add_record(logged.role, known=False)


def _read_results(context: ConversationContext, logged: LoggedMessage, results: Blocks) -> None:
    for number, (block, _) in enumerate(results):
        call = block.id or ""
        identity = f"{call}:{logged.message_id(context.external_id)}.{number}"
        context.add_result(call, result_of(block, identity, logged.at), record_ids=(identity,))


# -- what was said to the model


def _read_input(context: ConversationContext, logged: LoggedMessage, blocks: Blocks) -> None:
    identity, notes = logged.message_id(context.external_id), context.state.notes
    parts = tuple(part_of(block, raw, f"{identity}.{number}", logged.at) for number, (block, raw) in enumerate(blocks))
    origin = _origin_of(context, logged, parts)
    if origin is Origin.SUBAGENT_PROMPT:
        parts = tuple(_without_id(parts, identity))
    notes.pop(_LAST, None)
    notes.pop(_COMMAND, None)
    if origin is Origin.COMPACTION:
        notes.pop(_COMPACTED, None)
        context.add_event(CompactionEvent(id=f"{identity}.compaction", summary_message_id=identity))
        context.state.is_branched = True
    elif origin is Origin.COMMAND:
        notes[_COMMAND] = identity
    elif not logged.is_for_model and logged.is_for_user:
        notes[_COMPACTED] = identity
    is_typed = origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT, Origin.COMMAND)
    metadata: dict[str, Any] = {}
    if origin is Origin.COMMAND:
        name, _, arguments = _text(parts).partition(" ")
        metadata = {NAME: {"command": {"name": name, "arguments": arguments}}}
    context.add(
        Message(
            id=identity,
            role="user" if is_typed else "developer",
            parts=parts,
            origin=origin,
            created_at=logged.at,
            metadata=metadata,
        )
    )


def _origin_of(context: ConversationContext, logged: LoggedMessage, parts: tuple[Part, ...]) -> Origin:
    if not logged.is_for_user:
        # A compaction hides from the model what was said before, and writes a summary that is for the model alone.
        is_summary = _COMPACTED in context.state.notes and logged.metadata.get("turnContext") is not True
        return Origin.COMPACTION if is_summary else Origin.HARNESS
    if not logged.is_for_model and _COMMAND_LINE.match(_text(parts)):
        return Origin.COMMAND
    if context.state.notes.get(TYPE) == SUBAGENT and not context.state.turn:
        return Origin.SUBAGENT_PROMPT
    return Origin.PROMPT


def _without_id(parts: tuple[Part, ...], identity: str) -> Iterator[Part]:
    """The parts of a task, with the id that Goose writes before it as a part of its own."""
    first = parts[0] if parts else None
    found = _SUBAGENT_ID.match(first.text) if isinstance(first, TextPart) else None
    if found is None or not isinstance(first, TextPart):
        yield from parts
        return
    yield TextPart(id=f"{identity}.id", text=found[0], metadata={NAME: {"synthetic": True}})
    yield TextPart(id=first.id, text=first.text[found.end() :])
    yield from parts[1:]


def _text(parts: tuple[Part, ...]) -> str:
    return next((part.text for part in parts if isinstance(part, TextPart)), "")


# -- answers


def _read_answer(context: ConversationContext, logged: LoggedMessage, blocks: Blocks) -> None:
    identity, notes = logged.message_id(context.external_id), context.state.notes
    index = _index_in(blocks)
    is_joined = _goes_on(context, logged, blocks, index)
    first = int(notes.get(_PARTS, "0")) if is_joined else 0
    if is_joined and context.state.leaf is not None:
        identity = context.state.leaf
    shown = [(block, raw) for block, raw in blocks if block.type != "error"]
    thoughts = notes.get(_THOUGHTS, "").split() if is_joined else []
    # The row of each further call repeats the thoughts of the answer.
    shown = [(block, raw) for block, raw in shown if block.type not in _THINKING or _checksum(raw) not in thoughts]
    parts = tuple(
        part_of(block, raw, f"{identity}.{number}", logged.at) for number, (block, raw) in enumerate(shown, first)
    )
    message = _answer(context, logged, identity, parts, blocks)
    if is_joined:
        context.add_again(message)
    else:
        context.add(message)
    if not logged.is_for_model and logged.is_for_user and message.origin is None:
        notes[_COMPACTED] = identity
    notes[_PARTS] = str(first + len(parts))
    notes[_THOUGHTS] = " ".join([*thoughts, *(_checksum(raw) for block, raw in shown if block.type in _THINKING)])
    notes.pop(_COMMAND, None)
    notes[_LAST] = "call" if any(block.type in _CALLS for block, _ in blocks) else "text"
    if index is None:
        notes.pop(_CALL, None)
    else:
        notes[_CALL] = str(index)


def _answer(
    context: ConversationContext, logged: LoggedMessage, identity: str, parts: tuple[Part, ...], blocks: Blocks
) -> Message:
    inference, used = (object_of(logged.metadata.get(name)) for name in ("inference", "usage"))
    error = next((block for block, _ in blocks if block.type == "error"), None)
    origin = None
    if not logged.is_for_user:
        origin = Origin.HARNESS
    elif _COMMAND in context.state.notes and not inference:
        origin = Origin.COMMAND_OUTPUT
    kept = {name: value for name, value in {**inference, **used}.items() if name in _KEPT}
    model = text_of(inference.get("requestedModel")) or context.state.notes.get(MODEL) or None
    return Message(
        id=identity,
        role="assistant" if origin is None else "developer",
        parts=parts,
        origin=origin,
        created_at=logged.at,
        model=model if origin is None else None,
        usage=usage_of(used),
        cost=cost_of(used),
        error=None if error is None else MessageError(text=error.message or "", kind=_error_kind(blocks)),
        metadata={NAME: kept} if kept else {},
    )


def _checksum(raw: Raw) -> str:
    return f"{crc32(raw):08x}"


_KEPT = ("provider", "costSource", "elapsedMs", "timeToFirstTokenMs")
"""Facts about a call that are kept as metadata."""


def _error_kind(blocks: Blocks) -> str | None:
    raw = next((raw for block, raw in blocks if block.type == "error"), None)
    return None if raw is None else text_of(object_of(value_of(raw)).get("kind"))


def _index_in(blocks: Blocks) -> int | None:
    """The place of the last call of a row in the model's answer."""
    found = [value_in(block.meta).get(INDEX) for block, _ in blocks if block.type in _CALLS]
    return next((index for index in reversed(found) if isinstance(index, int)), None)


def _goes_on(context: ConversationContext, logged: LoggedMessage, blocks: Blocks, index: int | None) -> bool:
    """Whether a row holds further calls of the newest answer, and not those of a new one."""
    notes, kinds = context.state.notes, {block.type for block, _ in blocks}
    if "usage" in logged.metadata or context.state.step == 0:
        return False
    if index is not None:
        return kinds <= _CALLS | _THINKING and index > int(notes.get(_CALL, index))
    # Before 1.40 no call has its place: only those directly behind the text of their answer are known.
    return kinds <= _CALLS and notes.get(_LAST) == "text"
