"""What every provider API has: the `Provider` value, the options of a request, and the report of its conversion.

A conversion changes nothing in silence. A `RequestLoss` is something of the history that the API cannot carry. A
`Repair` is a change that makes the API accept the history. Nothing here sends a request or needs an SDK.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from turnlog.arguments import check_fields, checked
from turnlog.errors import LossyConversionError
from turnlog.model import BlobRef, FilePart, Message
from turnlog.model.base import NamedFields, Value
from turnlog.model.codec import to_plain_json
from turnlog.providers.streaming import Assembler, ResponseStream, StreamReading

LossKind = Literal[
    "reasoning-omitted",
    "reasoning-as-text",
    "signature-omitted",
    "phase-omitted",
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
"""What a request can lose. `docs/reference/providers.md` says when each is reported."""

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
"""What can be repaired. `docs/reference/providers.md` names the rule of the API that asks for each."""

Dialect = Literal["deepseek", "kimi", "minimax", "qwen"]
"""Servers with the API of another provider, but with their own fields for reasoning."""

LoadBlob = Callable[[BlobRef], bytes]
"""Reads content that a store keeps outside the message. Raises a TurnlogError where it cannot."""

LoadFile = Callable[[FilePart], bytes | None]
"""Reads a file that the history names by its path (`file:` address). None where it is not there."""


class RequestLoss(Value, frozen=True, kw_only=True):
    """Something in the history that the request does not carry."""

    kind: LossKind
    message_id: str
    detail: str
    part_id: str | None = None
    tool_call_id: str | None = None


class Repair(Value, frozen=True, kw_only=True):
    """One change that was made so that the API accepts the history."""

    kind: RepairKind
    message_id: str
    detail: str
    tool_call_id: str | None = None


class RequestOptions(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedFields):
    """What the caller chooses for a request."""

    model: str
    """The model that gets the request. Reasoning goes back as reasoning only to the model that wrote it."""
    system: str | None = None
    """The system prompt. It replaces the system messages of the history."""
    tools: Sequence[Mapping[str, Any]] = ()
    """Tools in the provider's own JSON. They are passed on unchanged."""
    max_tokens: int | None = None
    stream: bool = False
    extra: Mapping[str, Any] = {}
    """More fields of the body. They override fields of the same name."""
    dialect: Dialect | None = None
    """None: chosen by the model's name (`dialect_of`)."""
    vision: bool = True
    """Whether the model accepts images and other files. If not, a text replaces each of them."""
    inline_budget: int = 8 * 1024 * 1024
    """How many bytes of Base64 all files of one request may have together. The newest files are kept."""
    cache_control: Mapping[str, Any] | None = None
    """For Anthropic, and Claude at OpenRouter: set on the last block of the system prompt and of the conversation."""
    load_blob: LoadBlob | None = None
    load_file: LoadFile | None = None
    """Without it, a file with a `file:` address is reported as missing."""
    empty_result: str = "(no output)"
    """The text of a result without content."""
    aborted_result: str = "The tool call was interrupted; there is no result."
    """The text for a call without a result, and for an aborted call without content."""
    denied_result: str = "Tool call execution denied."
    """The text for a denied call without a reason; AI SDK uses the same one."""

    def __post_init__(self) -> None:
        """Raise TypeError for a field of the wrong type."""
        check_fields(self)


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """A request body as plain JSON values, with everything that was lost or repaired."""

    body: dict[str, Any]
    losses: tuple[RequestLoss, ...] = ()
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
    """Builds the body of the request that continues a history.

    The messages are those that the model shall see, in order; `context.select_context` finds them in a session.

    Raises LossyConversionError, which has the `losses`, if `strict` and anything would be lost.
    """

    from_response: ResponseReader
    """Reads a whole response as an assistant message. The message of an error body has that `error`.

    Raises ShapeError if the body is not a response of this API.
    """

    assembler: Callable[[], Assembler]
    """Makes the assembler of one stream."""

    @checked
    def open_stream(self, *, requested_model: str | None = None) -> ResponseStream:
        """A response to feed as it arrives: with bytes of server-sent events cut anywhere, or with parsed events."""
        return ResponseStream(self.assembler(), lambda body: self.from_response(body, requested_model=requested_model))

    @checked
    def read_stream(
        self, pieces: Iterable[bytes | Mapping[str, Any]], *, requested_model: str | None = None
    ) -> StreamReading:
        """Iterate over the StreamEvents of a response; afterwards `message` is the same as that of the whole body."""
        return StreamReading(self.open_stream(requested_model=requested_model), pieces)


class Report:
    """Collects losses and repairs while a request is built."""

    def __init__(self) -> None:
        """Begin with none."""
        self.losses: list[RequestLoss] = []
        self.repairs: list[Repair] = []

    def lose(
        self, kind: LossKind, message_id: str, detail: str, *, part: str | None = None, call: str | None = None
    ) -> None:
        """Report something that the request does not carry."""
        self.losses.append(
            RequestLoss(kind=kind, message_id=message_id, detail=detail, part_id=part, tool_call_id=call)
        )

    def mend(self, kind: RepairKind, message_id: str, detail: str, *, call: str | None = None) -> None:
        """Report a change."""
        self.repairs.append(Repair(kind=kind, message_id=message_id, detail=detail, tool_call_id=call))

    def conversion(self, body: dict[str, Any], *, strict: bool) -> Conversion:
        """The body as plain JSON, with everything that was reported.

        Raises LossyConversionError if `strict` and anything was lost.
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
"""Beginning of a model's name -> its dialect. A namespace before the name does not count (`moonshotai/kimi-k2`)."""


def dialect_of(options: RequestOptions) -> Dialect | None:
    """The dialect that the caller chose, or the one of the model's name."""
    if options.dialect is not None:
        return options.dialect
    name = options.model.rpartition("/")[2].lower()
    return next((dialect for prefix, dialect in _DIALECTS if name.startswith(prefix)), None)


_DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$|-latest$")


def same_model(one: str, other: str) -> bool:
    """Whether two names mean one model: they are equal, or one of them adds the date of a snapshot.

    Two different dates are two models, whose signatures do not fit each other.
    """
    if one == other:
        return True
    bare, other_bare = _DATED.sub("", one), _DATED.sub("", other)
    return bare == other_bare and (bare in (one, other) or one.endswith("-latest") or other.endswith("-latest"))
