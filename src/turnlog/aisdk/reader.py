"""The reader: chunks -> UIMessage, with the semantics of each AI SDK version.

Mirrors `readUIMessageStream` and `src/ui/process-ui-message-stream.ts` of ai 5.0.277, 6.0.326 and 7.0.173: parts,
order, ids, merged metadata, partial tool inputs, and the error at the chunk where the original stops.
`turnlog.aisdk.chat_reader` mirrors what `useChat` shows of the same stream. Feeding is cheap; a message is built only
when it is read. `turnlog.aisdk.sse` reads the bytes of a stream.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from turnlog.aisdk import chunks as wire
from turnlog.aisdk.base import UIValue
from turnlog.aisdk.checks import known_chunks, known_finish_reasons
from turnlog.aisdk.codec import JsonInput, parse_chunk
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.reader_parts import ContentReader, PartList
from turnlog.aisdk.reader_tools import ToolReader
from turnlog.aisdk.versions import Version, sdk_version
from turnlog.arguments import checked
from turnlog.errors import ConversionError, ShapeError, StreamStateError

Chunk: TypeAlias = wire.UIMessageChunk | JsonInput
"""A chunk, its JSON text, or the result of a JSON parser."""


class ReadResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of reading a stream."""

    message: UIMessage
    """The message so far."""
    error: ConversionError | None = None
    """Why reading stopped before the end: a chunk that the client refuses (ShapeError) or that may not come here
    (StreamStateError)."""
    error_texts: tuple[str, ...] = ()
    """The texts of `error` chunks; reading continues after them."""
    finish_reason: str | None = None
    aborted: bool = False
    """Whether the server sent an `abort` chunk."""


class UIMessageReader:
    """Reads one stream, chunk by chunk.

    Args:
        message: The message that the stream continues, if its last one is an assistant message.
        version: The AI SDK version to mirror.
        reset_on_new_id: Begin an empty message if a `start` has another id than the message, as `readUIMessageStream`
            does. Pages (`ChatReader`) and servers, in what they pass to `onFinish`, continue the same message.
        reset_on_first_start: Begin an empty message at the first `start`, because the stream is a replay from the
            beginning.
    """

    @checked
    def __init__(
        self,
        message: UIMessage | None = None,
        *,
        version: Version = 7,
        reset_on_new_id: bool = True,
        reset_on_first_start: bool = False,
    ) -> None:
        self._release = sdk_version(version)
        self._major = self._release.major
        self._known = known_chunks(self._release)
        self._reset_on_new_id = reset_on_new_id
        self._reset_on_start = reset_on_first_start
        self._failure: ConversionError | None = None
        self.error_texts: list[str] = []
        """What `error` chunks said."""
        self.aborted = False
        """Whether an `abort` chunk came."""
        self.messages_begun = 0
        """How many messages were begun, the one that was given included."""
        if message is None or message.role != "assistant":
            message = UIMessage(id="" if message is None else message.id, role="assistant", parts=())
        self._begin(message)

    def _begin(self, message: UIMessage) -> None:
        self.messages_begun += 1
        self._message = message
        self._parts = PartList(message.parts)
        self._content = ContentReader(self._parts, self._major)
        self._tools = ToolReader(self._parts, self._major)
        self._handlers = self._make_handlers()
        self.finish_reason: str | None = None
        """Why the message ended, once it did."""

    def _make_handlers(self) -> dict[type, Callable[[Any], bool]]:
        content, tools = self._content, self._tools
        return {
            wire.StartChunk: self._start,
            wire.MessageMetadataChunk: self._message_metadata,
            wire.StartStepChunk: self._start_step,
            wire.FinishStepChunk: self._finish_step,
            wire.ResetStepChunk: self._reset_step,
            wire.FinishChunk: self._finish,
            wire.ErrorChunk: self._error,
            wire.AbortChunk: self._abort,
            wire.TextStartChunk: content.text_start,
            wire.TextDeltaChunk: content.delta,
            wire.TextEndChunk: content.text_end,
            wire.ReasoningStartChunk: content.reasoning_start,
            wire.ReasoningDeltaChunk: content.delta,
            wire.ReasoningEndChunk: content.reasoning_end,
            wire.SourceUrlChunk: content.source_url,
            wire.SourceDocumentChunk: content.source_document,
            wire.FileChunk: content.file,
            wire.ReasoningFileChunk: content.file,
            wire.CustomChunk: content.custom,
            wire.SteeringMessageChunk: content.steering_message,
            wire.DataChunk: content.data,
            wire.ToolInputStartChunk: tools.input_start,
            wire.ToolInputDeltaChunk: tools.input_delta,
            wire.ToolInputAvailableChunk: tools.input_available,
            wire.ToolInputErrorChunk: tools.input_error,
            wire.ToolApprovalRequestChunk: tools.approval_request,
            wire.ToolApprovalResponseChunk: tools.approval_response,
            wire.ToolOutputAvailableChunk: tools.output_available,
            wire.ToolOutputErrorChunk: tools.output_error,
            wire.ToolOutputDeniedChunk: tools.output_denied,
        }

    @property
    def message(self) -> UIMessage:
        """The message so far. The value never changes later; snapshots share parts."""
        base = self._message
        return UIMessage(
            id=base.id, role=base.role, parts=self._parts.snapshot(), metadata=base.metadata, extra=base.extra
        )

    def feed(self, chunk: Chunk) -> bool:
        """Process a chunk; return whether the AI SDK would render the message again.

        Raises:
            ShapeError: The client of this release would refuse the chunk and end the stream.
            StreamStateError: The chunk may not come here; the message is that of the AI SDK's own error. After either
                error, all further chunks raise it again.
        """
        if self._failure is not None:
            raise self._failure
        try:
            value = chunk if isinstance(chunk, UIValue) else parse_chunk(chunk, version=self._release)
            handler = self._handlers.get(type(value))
            if handler is None or not self._is_known(value):
                raise ShapeError(f"AI SDK {self._release} knows no such chunk: {value.type!r:.60}")
            return handler(value)
        except ConversionError as error:
            self._failure = error
            raise

    def result(self, error: ConversionError | None = None) -> ReadResult:
        """The result so far."""
        return ReadResult(
            message=self.message,
            error=error,
            error_texts=tuple(self.error_texts),
            finish_reason=self.finish_reason,
            aborted=self.aborted,
        )

    def _is_known(self, chunk: wire.UIMessageChunk) -> bool:
        if isinstance(chunk, wire.FinishChunk) and chunk.finish_reason is not UNSET:
            return chunk.finish_reason in known_finish_reasons(self._release)
        return chunk.type in self._known or isinstance(chunk, wire.DataChunk)

    def _start(self, chunk: wire.StartChunk) -> bool:
        known, named = self._message.id, chunk.message_id is not UNSET
        message_id = chunk.message_id if chunk.message_id is not UNSET else known
        resets = self._reset_on_start or (self._reset_on_new_id and message_id != known)
        self._reset_on_start = False
        if resets:
            self._begin(UIMessage(id=message_id, role="assistant", parts=()))
        self._message = replace(self._message, id=message_id)
        return self._merge(chunk.message_metadata) or named or resets

    def _message_metadata(self, chunk: wire.MessageMetadataChunk) -> bool:
        return self._merge(chunk.message_metadata)

    def _merge(self, metadata: Any) -> bool:
        self._message = replace(self._message, metadata=merge_metadata(self._message.metadata, metadata))
        return metadata is not UNSET and metadata is not None

    def _start_step(self, _chunk: wire.StartStepChunk) -> bool:
        self._parts.start_step()
        return False

    def _finish_step(self, _chunk: wire.FinishStepChunk) -> bool:
        # From 7 on only its end closes a part: a step may end within a part of another lane.
        if self._major < 7:
            self._content.close_parts()
        return False

    def _reset_step(self, _chunk: wire.ResetStepChunk) -> bool:
        self._content.close_parts()
        self._tools.forget_partial_calls()
        return self._parts.reset_step()

    def _finish(self, chunk: wire.FinishChunk) -> bool:
        if chunk.finish_reason is not UNSET:
            self.finish_reason = chunk.finish_reason
        return self._merge(chunk.message_metadata)

    def _error(self, chunk: wire.ErrorChunk) -> bool:
        self.error_texts.append(chunk.error_text)
        return False

    def _abort(self, _chunk: wire.AbortChunk) -> bool:
        self.aborted = True
        return False


@checked
def read_ui_message(chunks: Iterable[Chunk], *, message: UIMessage | None = None, version: Version = 7) -> ReadResult:
    """Read a whole stream. An error ends reading and is in the result, together with the message so far."""
    reader = UIMessageReader(message, version=version)
    try:
        for chunk in chunks:
            reader.feed(chunk)
    except ConversionError as error:
        return reader.result(error)
    return reader.result()


@checked
def iter_ui_messages(
    chunks: Iterable[Chunk], *, message: UIMessage | None = None, version: Version = 7
) -> Iterator[UIMessage]:
    """Yield the message after each chunk that changes it, like `readUIMessageStream`. Raises what `feed` raises."""
    reader = UIMessageReader(message, version=version)
    for chunk in chunks:
        if reader.feed(chunk):
            yield reader.message


@checked
async def aiter_ui_messages(
    chunks: AsyncIterable[Chunk], *, message: UIMessage | None = None, version: Version = 7
) -> AsyncIterator[UIMessage]:
    """Like `iter_ui_messages`, for chunks that are still arriving."""
    reader = UIMessageReader(message, version=version)
    async for chunk in chunks:
        if reader.feed(chunk):
            yield reader.message


# `mergeObjects` of the AI SDK leaves these keys out, because they reach JavaScript's prototypes.
_SKIPPED = frozenset({"__proto__", "constructor", "prototype"})


def merge_metadata(base: Any, update: Any) -> Any:
    """Merge an update into metadata; missing and null updates change nothing.

    Raises:
        StreamStateError: The metadata is text, a number or a boolean, and the update has keys.
    """
    if update is UNSET or update is None:
        return base
    if base is UNSET or base is None:
        return update
    return _merge(base, update)


def _merge(base: Any, update: Any) -> dict[str, Any]:
    merged = _as_object(base)
    changes = {key: item for key, item in _as_object(update).items() if key not in _SKIPPED}
    if changes and not isinstance(base, dict | list):
        # JavaScript throws at the first key of the update that it looks up in a value that is no object. The error
        # names that key.
        key = min(changes, key=_javascript_order)
        raise StreamStateError(
            f"Cannot use 'in' operator to search for '{key}' in {_javascript_text(base)}", chunk_type="message-metadata"
        )
    for key, item in changes.items():
        before = merged.get(key)
        merged[key] = _merge(before, item) if isinstance(before, dict) and isinstance(item, dict) else item
    return merged


def _javascript_order(key: str) -> tuple[bool, int]:
    """The order of an object's keys in JavaScript: array indexes first, the rest in the order of insertion."""
    is_position = key.isascii() and key.isdecimal() and str(int(key)) == key and int(key) < 2**32 - 1
    return (not is_position, int(key) if is_position else 0)


def _as_object(value: Any) -> dict[str, Any]:
    """The result of JavaScript's spread: texts and lists by index; numbers and booleans are empty."""
    if isinstance(value, dict):
        return dict(cast("dict[str, Any]", value))
    if isinstance(value, str):
        return {str(position): unit for position, unit in enumerate(_utf16_units(value))}
    if isinstance(value, list | tuple):
        return {str(position): item for position, item in enumerate(cast("list[Any]", value))}
    return {}


def _utf16_units(text: str) -> list[str]:
    data = text.encode("utf-16-le", "surrogatepass")
    return [data[start : start + 2].decode("utf-16-le", "surrogatepass") for start in range(0, len(data), 2)]


def _javascript_text(value: Any) -> str:
    """A value as JavaScript converts it to a string."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else _javascript_number(float(value))


def _javascript_number(value: float) -> str:
    # ECMAScript writes an exponent only outside of these bounds.
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return f"{Decimal(repr(value + 0.0)).normalize():f}"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    # Python pads an exponent to two digits, ECMAScript does not.
    return repr(value).replace("e-0", "e-")
