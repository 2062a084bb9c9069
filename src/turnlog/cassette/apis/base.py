"""What every API's module offers, and what they share: texts in pieces, counts where an API wants a number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from turnlog.cassette.conversation import PlayedConversation, Side
from turnlog.model import Message, ReasoningPart, TextPart, ToolCallPart, Usage
from turnlog.model.message import StopReason
from turnlog.providers.body import Json, objects

SIDES: dict[str, Side] = {"user": "user", "assistant": "assistant"}
"""Roles that speak; all others are the system's."""

_PIECE = 24
"""Characters of a delta."""


class Api(Protocol):
    """One API, as a server speaks it."""

    def read(self, body: Json, conversation: PlayedConversation, /) -> None:
        """Tell the conversation what a request says."""
        ...

    def wants_stream(self, body: Json, path: str, /) -> bool:
        """Whether the answer is to come as server-sent events; `path` is what was asked for, with its query."""
        ...

    def answer(self, message: Message, body: Json, /) -> Json:
        """The body of the response to a request."""
        ...

    def events(self, message: Message, body: Json, /) -> Iterator[Json | str]:
        """The events of the response, in order; a text is sent as it is."""
        ...

    def failure(self, reason: str, status: int, /) -> Json:
        """The body of an error."""
        ...


def pieces(text: str) -> list[str]:
    """A text as deltas bring it."""
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]


def stop_word(message: Message, words: Mapping[StopReason, str]) -> str:
    """The API's word for why the model stopped; calls wait for results, whatever the log says."""
    if message.stop_reason is not None and message.stop_reason in words:
        return words[message.stop_reason]
    return words["tool_use" if calls_of(message) else "stop"]


def calls_of(message: Message) -> list[ToolCallPart]:
    """The calls of an answer."""
    return [part for part in message.parts if isinstance(part, ToolCallPart)]


def text_of(message: Message) -> str:
    """All text of an answer, for an API that has one place for it."""
    return "".join([part.text for part in message.parts if isinstance(part, TextPart)])


def reasoning_of(message: Message) -> str:
    """All reasoning of an answer, as one text."""
    return "\n".join([part.text for part in message.parts if isinstance(part, ReasoningPart) and part.text])


def response_id(message: Message) -> str:
    """The id of the response."""
    return message.response_id or message.id


def model_of(message: Message, body: Json) -> str:
    """The model that answered; the one that is asked where the recording does not say."""
    return message.model or str(body.get("model") or "recorded")


def written(usage: Usage) -> int:
    """Tokens that went into a cache."""
    return sum(count or 0 for count in (usage.cache_write, usage.cache_write_5m, usage.cache_write_1h))


def prompt_tokens(usage: Usage) -> int:
    """Tokens of the whole prompt, for APIs that count the cache in."""
    return (usage.input or 0) + (usage.cache_read or 0) + written(usage)


def completion_tokens(usage: Usage) -> int:
    """Tokens of the whole answer, for APIs that count the reasoning in."""
    return (usage.output or 0) + (usage.reasoning or 0)


def blocks(content: Any) -> list[Json]:
    """A content that is a text or a list of blocks, as blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def openai_failure(reason: str, _status: int) -> Json:
    """The body of an error of OpenAI's APIs."""
    return {"error": {"message": reason, "type": "invalid_request_error", "param": None, "code": None}}
