"""The message of an answer whose server was killed: what is stored of it, and what its stream has more.

The stored message is saved now and then and has the canonical steps of the answer; the stream has every frame that a
page was shown. Both are beginnings of the same answer, so the longer one is right about the page, and the stored one
about what the page is not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from turnlog.aisdk.chunks import UIMessageChunk
from turnlog.aisdk.downgrade import downgrade_ui_message
from turnlog.aisdk.parts import DynamicToolUIPart, ReasoningUIPart, TextUIPart, ToolUIPart, UIMessage
from turnlog.aisdk.reader import read_ui_message
from turnlog.aisdk.versions import Version
from turnlog.aisdk.writer_tools import ABORTED
from turnlog.chat.canonical import exact_steps, with_steps
from turnlog.chat.conversion import to_canonical
from turnlog.model import Message, Part, ReasoningPart, TextPart


def recovered_message(
    stored: Sequence[UIMessage], chunks: Iterable[UIMessageChunk], *, version: Version
) -> UIMessage | None:
    """The message to save; None if what is stored has everything, or the stream has no message.

    Args:
        stored: The messages of the chat.
        chunks: Those of the stream, with chunks that end it.
        version: For which AI SDK they are written.
    """
    shown = read_ui_message(chunks, version=version).message
    if not shown.id or not shown.parts:
        return None
    known = next((message for message in stored if message.id == shown.id), None)
    if known is None:
        return with_steps(shown, exact_steps(shown))
    if _length(_as_shown(known, version)) >= _length(shown):
        return None
    return with_steps(shown, exact_steps(shown, [_without_cut(step, shown) for step in to_canonical(known)]))


def _as_shown(message: UIMessage, version: Version) -> UIMessage:
    """The message as a page of this release has it."""
    shown = downgrade_ui_message(message, version=version).messages
    return next((each for each in shown if each.id == message.id), message)


def _length(message: UIMessage) -> int:
    """How far an answer has come: characters, parts, and calls that have their outcome."""
    return sum(map(_length_of, message.parts))


def _length_of(part: object) -> int:
    if isinstance(part, TextUIPart | ReasoningUIPart):
        return 1 + len(part.text)
    if isinstance(part, ToolUIPart | DynamicToolUIPart):
        return 1 + (part.state.startswith("output-") and part.error_text != ABORTED)
    return 1


def _without_cut(step: Message, shown: UIMessage) -> Message:
    """The stored step without a text that the stream has more of: the longer one takes its place."""
    texts = [part.text for part in shown.parts if isinstance(part, TextUIPart | ReasoningUIPart)]

    def is_cut(part: Part) -> bool:
        if not isinstance(part, TextPart | ReasoningPart) or part.text in texts:
            return False
        return any(text.startswith(part.text) for text in texts)

    return replace(step, parts=tuple(part for part in step.parts if not is_cut(part)))
