"""The `Provider` value, the options of a request, and the report of what a conversion lost or changed.

Nothing is left out or changed in silence: what the API cannot hold is a `Loss`, what was changed so that the API
accepts the history is a `Repair`. Sends nothing and needs no SDK.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from turnlog.errors import LossyConversionError
from turnlog.model import BlobRef, FilePart, Message
from turnlog.model.base import Value
from turnlog.model.codec import to_plain_json
from turnlog.providers.streaming import Assembler, ResponseStream, StreamReading

LossKind = Literal[
    "reasoning-omitted",
    "reasoning-as-text",
    "image-omitted",
    "image-unavailable",
    "image-unsupported",
    "file-unsupported",
    "assistant-file",
    "citations",
    "source",
    "data",
    "unknown-part",
    "server-tool",
    "result-status",
    "preview-only",
]
"""What a request can lose. `docs/reference/providers.md` says when each is told."""

RepairKind = Literal[
    "left-out",
    "failed-answer",
    "system-moved",
    "system-repeated",
    "leading-developer",
    "unanswered-call",
    "orphan-result",
    "duplicate-result",
    "superseded-result",
    "joined-results",
    "empty-result",
    "duplicate-call",
    "nested-call",
    "renamed-call",
    "renamed-tool",
    "wrapped-arguments",
    "blank-part",
    "empty-message",
    "trailing-reasoning",
    "trailing-space",
    "merged-messages",
    "first-user",
    "added-signature",
]
"""What may be mended. `docs/reference/providers.md` says why each API wants it."""

Dialect = Literal["deepseek", "kimi", "minimax", "qwen"]
"""Servers that speak another provider's API with fields of their own for reasoning."""

LoadBlob = Callable[[BlobRef], bytes]
"""Gives the bytes of a content that a store keeps outside the message."""

LoadFile = Callable[[FilePart], bytes | None]
"""Gives the bytes of a file that the history knows by its path on a machine; None where they cannot be had."""


class Loss(Value, frozen=True, kw_only=True):
    """Something of the history that the request does not carry."""

    kind: LossKind
    message_id: str
    detail: str
    part_id: str | None = None
    tool_call_id: str | None = None


class Repair(Value, frozen=True, kw_only=True):
    """Something that was changed so that the API takes the history."""

    kind: RepairKind
    message_id: str
    detail: str
    tool_call_id: str | None = None


class RequestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller decides about a request."""

    model: str
    """The model that is asked. Reasoning goes back as reasoning only to the model that made it."""
    system: str | None = None
    """The system prompt; it takes the place of system messages in the history."""
    tools: Sequence[Mapping[str, Any]] = ()
    """Tools in the provider's own form, passed on as they are."""
    max_tokens: int | None = None
    stream: bool = False
    extra: Mapping[str, Any] = {}
    """Further fields of the body; they take precedence over what is built."""
    dialect: Dialect | None = None
    """None: told by the model's name (`dialect_of`)."""
    vision: bool = True
    """Whether the model takes images and other files; if not, a text says what was there."""
    inline_budget: int = 8 * 1024 * 1024
    """Bytes (Base64) of images and files in one request. The newest are sent, as far as they fit."""
    cache_control: Mapping[str, Any] | None = None
    """Anthropic, and OpenRouter for Claude: put on the last block of the system prompt and of the conversation."""
    load_blob: LoadBlob | None = None
    load_file: LoadFile | None = None
    """Asked for files with a `file:` address; without it such a file is told as missing."""
    empty_result: str = "(no output)"
    """Text of a result that has none."""
    aborted_result: str = "The tool call was interrupted; there is no result."
    """Text of the result of a call that was never answered, or was aborted without a word."""
    denied_result: str = "Tool call execution denied."
    """Text of the result of a call that was refused without a reason; AI SDK says the same."""


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """A request body (plain JSON values), and what it cost to make it."""

    body: dict[str, Any]
    losses: tuple[Loss, ...] = ()
    repairs: tuple[Repair, ...] = ()


class RequestBuilder(Protocol):
    """`Provider.to_request`."""

    def __call__(self, messages: Sequence[Message], options: RequestOptions, *, strict: bool = False) -> Conversion:
        """The body of the request that continues a history."""
        ...


class ResponseReader(Protocol):
    """`Provider.from_response`."""

    def __call__(self, body: bytes | str | Mapping[str, Any], *, requested_model: str | None = None) -> Message:
        """The assistant message of a whole response."""
        ...


@dataclass(frozen=True, kw_only=True)
class Provider:
    """One provider API: a history as a request, a response as a message, whole or as a stream."""

    name: str
    """As in commands: `anthropic`, `openai-chat`, `openrouter`, `responses`, `gemini`."""

    to_request: RequestBuilder
    """The body of the request that continues a history.

    Takes the messages that the model shall see, in order (`context.select_context` takes them from a session), and the
    options. With `strict=True` it raises LossyConversionError, with its `losses`, instead of losing anything.
    """

    from_response: ResponseReader
    """The assistant message of a whole response; an error body gives a message with its `error`.

    Raises ShapeError when the body is no response of this API.
    """

    assembler: Callable[[], Assembler]
    """Makes what puts the events of one stream together."""

    def open_stream(self, *, requested_model: str | None = None) -> ResponseStream:
        """A response that is fed as it comes: bytes of SSE cut anywhere, or parsed events."""
        return ResponseStream(self.assembler(), lambda body: self.from_response(body, requested_model=requested_model))

    def read_stream(
        self, pieces: Iterable[bytes | Mapping[str, Any]], *, requested_model: str | None = None
    ) -> StreamReading:
        """The StreamEvents of a response stream, by iteration; then its `message`, that of the whole body."""
        return StreamReading(self.open_stream(requested_model=requested_model), pieces)


class Report:
    """Collects losses and repairs while a request is built."""

    def __init__(self) -> None:
        """Begin with none."""
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []

    def lose(
        self, kind: LossKind, message_id: str, detail: str, *, part: str | None = None, call: str | None = None
    ) -> None:
        """Tell of something that the request does not carry."""
        self.losses.append(Loss(kind=kind, message_id=message_id, detail=detail, part_id=part, tool_call_id=call))

    def mend(self, kind: RepairKind, message_id: str, detail: str, *, call: str | None = None) -> None:
        """Tell of something that was changed."""
        self.repairs.append(Repair(kind=kind, message_id=message_id, detail=detail, tool_call_id=call))

    def conversion(self, body: dict[str, Any], *, strict: bool) -> Conversion:
        """The body as JSON can hold it, with all that was told.

        Raises LossyConversionError when `strict` and anything was lost.
        """
        if strict and self.losses:
            first = self.losses[0]
            more = f", and {len(self.losses) - 1} more" if len(self.losses) > 1 else ""
            raise LossyConversionError(
                f"message {first.message_id}: {first.kind}: {first.detail}{more}", losses=tuple(self.losses)
            )
        return Conversion(body=to_plain_json(body), losses=tuple(self.losses), repairs=tuple(self.repairs))


_DIALECTS: tuple[tuple[str, Dialect], ...] = (
    ("deepseek", "deepseek"),
    ("kimi", "kimi"),
    ("moonshot", "kimi"),
    ("minimax", "minimax"),
    ("qwen", "qwen"),
    ("qwq", "qwen"),
)
"""How the names of models begin, behind a namespace (`moonshotai/kimi-k2`)."""


def dialect_of(options: RequestOptions) -> Dialect | None:
    """The dialect that the caller names, else the one that the model's name tells."""
    if options.dialect is not None:
        return options.dialect
    name = options.model.rpartition("/")[2].lower()
    return next((dialect for prefix, dialect in _DIALECTS if name.startswith(prefix)), None)


_DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$|-latest$")


def same_model(one: str, other: str) -> bool:
    """Whether two names mean one model: equal, or one is the other with the date of its snapshot."""
    if one == other:
        return True
    bare, other_bare = _DATED.sub("", one), _DATED.sub("", other)
    return bare == other_bare and (bare in (one, other) or one.endswith("-latest") or other.endswith("-latest"))
