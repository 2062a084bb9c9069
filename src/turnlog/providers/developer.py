"""Developer messages never reach a provider as such (R-K22): they become part of what stands before them.

What the agent's harness injected is attached to the preceding user message or tool result. What stands before any
becomes the provider's system text. What the model is to answer (a summary, a background task's report, the harness's
own "go on") is the user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import msgspec

from turnlog.model import FilePart, Message, Origin, Part, TextPart, ToolCallPart
from turnlog.providers.base import Report
from turnlog.providers.context import as_user
from turnlog.providers.wire import agent_fact

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
