"""Messages for agents that hold less than others.

Some send the texts of an answer before its calls. Some have one text there, and one before the files of a result. Some
send no prompt that looks like one of their commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from turnlog.handoff.report import HandoffLoss
from turnlog.model import Message, Part, TextPart, ToolCallPart

_INTRODUCTION: Final = "The user wrote: "

_ONLY_FILES: Final = "(the output is the file)"


def texts_first(message: Message, losses: list[HandoffLoss]) -> Message:
    """The message with its calls at the end. A text that stood after a call is reported."""
    if message.role != "assistant":
        return message
    calls, others = _calls_and_others(message)
    first = next((at for at, part in enumerate(message.parts) if isinstance(part, ToolCallPart)), len(message.parts))
    for part in message.parts[first:]:
        if isinstance(part, TextPart):
            detail = "a text after a call is put before it"
            losses.append(HandoffLoss(kind="order", message_id=message.id, detail=detail))
    return msgspec.structs.replace(message, parts=(*others, *calls))


def flat(message: Message) -> Message:
    """The message with one text before its calls, and one before the files of each result."""
    if message.role != "assistant":
        return message
    calls, others = _calls_and_others(message)
    parts = (*_one_text(others, "\n\n"), *map(_flat_call, calls))
    return msgspec.structs.replace(message, parts=parts)


def _calls_and_others(message: Message) -> tuple[list[ToolCallPart], list[Part]]:
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    return calls, [part for part in message.parts if not isinstance(part, ToolCallPart)]


def introduced(message: Message, unsent: tuple[str, ...], losses: list[HandoffLoss]) -> Message:
    """The message with words before it if the agent would not send it as it is, which is reported."""
    said = "".join([part.text for part in message.parts if isinstance(part, TextPart)]).strip()
    if message.role == "assistant" or (said and not said.startswith(unsent)):
        return message
    detail = "the agent would not send it without words before it"
    losses.append(HandoffLoss(kind="introduced", message_id=message.id, detail=detail))
    return msgspec.structs.replace(message, parts=(TextPart(text=_INTRODUCTION), *message.parts))


def _flat_call(call: ToolCallPart) -> ToolCallPart:
    result = call.results[0]
    content = _one_text(result.content, "\n")
    if not any(isinstance(part, TextPart) for part in content):
        content = (TextPart(text=_ONLY_FILES), *content)
    return msgspec.structs.replace(call, results=(msgspec.structs.replace(result, content=content),))


def _one_text(parts: Sequence[Part], between: str) -> tuple[Part, ...]:
    """The texts as one, then all others."""
    texts = [part for part in parts if isinstance(part, TextPart)]
    others = [part for part in parts if not isinstance(part, TextPart)]
    if not texts:
        return tuple(others)
    return (msgspec.structs.replace(texts[0], text=between.join(part.text for part in texts)), *others)
