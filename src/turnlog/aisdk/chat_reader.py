"""The messages that `useChat` shows while an answer arrives.

Mirrors `AbstractChat` (`src/ui/chat.ts`) of ai 5.0.277, 6.0.326 and 7.0.173, on which `useChat` is built. It reduces
chunks like `readUIMessageStream` (`turnlog.aisdk.reader`) and differs in these points:

- An `error` chunk ends the answer. `readUIMessageStream` continues after it.
- A second `start` with another id continues the parts so far under the new id. The page then shows two messages, the
  second with the parts of the first. Only a resumed stream begins an empty message, from AI SDK 6 on.
- The message becomes one of the chat's messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from turnlog.aisdk.parts import DynamicToolUIPart, ToolUIPart, UIMessage
from turnlog.aisdk.reader import Chunk, UIMessageReader
from turnlog.aisdk.versions import Version, sdk_version
from turnlog.arguments import checked
from turnlog.errors import ConversionError

ChatTrigger: TypeAlias = Literal["submit-message", "regenerate-message", "resume-stream"]
"""Why a page requests an answer, as in `ChatTransport`."""


class ChatResult(msgspec.Struct, frozen=True, kw_only=True):
    """A chat after an answer."""

    messages: tuple[UIMessage, ...]
    """All messages that the page shows."""
    error_text: str | None = None
    """The page's error: the text of an `error` chunk, or why a chunk could not be read. Earlier content stays."""
    error: ConversionError | None = None
    """The error for a chunk that the client refuses (ShapeError) or that may not come here (StreamStateError)."""
    finish_reason: str | None = None


class ChatReader:
    """Reads one answer into a chat, chunk by chunk.

    Args:
        messages: The chat when the request is sent, including the new prompt.
        trigger: The purpose of the request.
        message_id: The id of a submitted message that is not the last one of the chat.
        new_id: The id of the answer until the stream has one; a page generates it.
        version: The AI SDK version to mirror.
    """

    @checked
    def __init__(
        self,
        messages: Iterable[UIMessage] = (),
        *,
        trigger: ChatTrigger = "submit-message",
        message_id: str | None = None,
        new_id: str = "",
        version: Version = 7,
    ) -> None:
        self._messages = list(messages)
        self._major = sdk_version(version).major
        is_replay = trigger == "resume-stream" and self._major > 5
        index = self._requested_index(trigger, message_id)
        continued = self._continued(None if index is None else self._messages[index], trigger)
        self._replaced_id = self._earlier_answer(index)
        self._reader = UIMessageReader(
            continued or UIMessage(id=new_id, role="assistant", parts=()),
            version=version,
            reset_on_new_id=is_replay,
            reset_on_first_start=is_replay,
        )
        self._pushed: int | None = None
        """The index of the message that was added and not written since. It is the one that chunks change."""
        self.error_text: str | None = None
        """Why the answer ended early; no further chunk counts then."""
        self.error: ConversionError | None = None
        """See `ChatResult.error`."""

    @property
    def messages(self) -> list[UIMessage]:
        """The messages as the page shows them now."""
        shown = list(self._messages)
        if self._pushed is not None:
            shown[self._pushed] = self._reader.message
        return shown

    def feed(self, chunk: Chunk) -> bool:
        """Process a chunk; return whether the page renders the message again. Chunks after an error are ignored."""
        if self.error_text is not None:
            return False
        before = None if self._pushed is None else self._reader.message
        begun = self._reader.messages_begun
        try:
            changed = self._reader.feed(chunk)
        except ConversionError as error:
            self.error, self.error_text = error, str(error)
            return False
        # The page keeps what it shows when another message begins: it becomes one of the messages before.
        if self._pushed is not None and before is not None and self._reader.messages_begun > begun:
            self._messages[self._pushed], self._pushed = before, None
        if self._reader.error_texts:
            self.error_text = self._reader.error_texts[0]
        if changed:
            self._write()
        return changed

    def result(self) -> ChatResult:
        """The result so far."""
        return ChatResult(
            messages=tuple(self.messages),
            error_text=self.error_text,
            error=self.error,
            finish_reason=self._reader.finish_reason,
        )

    def _requested_index(self, trigger: ChatTrigger, message_id: str | None) -> int | None:
        """The index of the message to answer or to continue."""
        if trigger == "submit-message" and message_id is not None:
            found = (index for index, message in enumerate(self._messages) if message.id == message_id)
            return next(found, len(self._messages) - 1 if self._messages else None)
        return len(self._messages) - 1 if self._messages else None

    def _continued(self, message: UIMessage | None, trigger: ChatTrigger) -> UIMessage | None:
        """The message that the answer continues; None for a new one."""
        if message is None or message.role != "assistant":
            return None
        if trigger == "resume-stream":
            return message if any(_is_unfinished(part, self._major) for part in message.parts) else None
        # AI SDK 6 stopped continuing the message before the one that is regenerated.
        return None if trigger == "regenerate-message" and self._major > 5 else message

    def _earlier_answer(self, index: int | None) -> str | None:
        """The id of an answer that is not the last message; a message with another id replaces it."""
        if index is None or index == len(self._messages) - 1 or self._messages[index].role != "assistant":
            return None
        return self._messages[index].id

    def _write(self) -> None:
        """Put the message into the chat like the AI SDK: append the object that chunks change, or replace by a copy."""
        message = self._reader.message
        index = self._last_with(message.id, message)
        if index is None and self._replaced_id is not None:
            index = self._last_with(self._replaced_id, message)
        if index is None:
            self._messages.append(message)
            self._pushed = len(self._messages) - 1
            return
        self._messages[index] = message
        self._pushed = None if index == self._pushed else self._pushed

    def _last_with(self, message_id: str, current: UIMessage) -> int | None:
        """The index of the last message with an id; the message that chunks change has its current id."""
        for index in reversed(range(len(self._messages))):
            if (current if index == self._pushed else self._messages[index]).id == message_id:
                return index
        return None


def _is_unfinished(part: object, major: int) -> bool:
    """Whether a resumed stream may begin with the rest of a call."""
    if not isinstance(part, ToolUIPart | DynamicToolUIPart):
        return False
    if part.state == "input-streaming" or major < 7:
        return part.state == "input-streaming"
    return part.state == "approval-responded" or (part.state == "input-available" and part.provider_executed is True)


@checked
def read_chat(
    chunks: Iterable[Chunk],
    messages: Iterable[UIMessage] = (),
    *,
    trigger: ChatTrigger = "submit-message",
    message_id: str | None = None,
    new_id: str = "",
    version: Version = 7,
) -> ChatResult:
    """Read a whole answer into a chat, as `ChatReader` does chunk by chunk."""
    reader = ChatReader(messages, trigger=trigger, message_id=message_id, new_id=new_id, version=version)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.result()
