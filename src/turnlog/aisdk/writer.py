"""`StreamEvent`s -> chunks of a UI message stream for one release of AI SDK.

Whatever the events say, the chunks are in an order that the client accepts: parts end before others start, deltas
belong to open parts, calls go through their states, and the stream ends once, with everything closed. An event that
makes no sense is logged, skipped and told in `losses`; with `strict` it raises instead. Encoding is in
`turnlog.aisdk.sse`, iterating over live sources in `turnlog.aisdk.streaming`.
"""

from __future__ import annotations

import logging
import secrets
import string
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, cast

from msgspec import Struct

from turnlog.aisdk.chunks import ReasoningDeltaChunk, TextDeltaChunk, UIMessageChunk
from turnlog.aisdk.losses import Loss
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.versions import Version, sdk_version
from turnlog.aisdk.writer_base import FAILED, Chunks, RefusedEvent
from turnlog.aisdk.writer_message import HANDLERS, MessageTeller
from turnlog.aisdk.writer_parts import Delta, Start
from turnlog.aisdk.writer_values import UnusableValue, check_fields
from turnlog.errors import StreamStateError
from turnlog.model import stream as events
from turnlog.model.stream import StreamEvent, TextDelta

logger = logging.getLogger(__name__)

MOST_LOSSES = 1_000
"""So many losses are kept; `ChunkWriter.skipped` counts on."""

_ID_LETTERS = string.ascii_letters + string.digits


def generate_message_id() -> str:
    """A new id as AI SDK makes them: `msg_` and 16 letters or digits, and nothing that a URL path would split."""
    return "msg_" + "".join([secrets.choice(_ID_LETTERS) for _ in range(16)])


class ChunkWriter:
    """Turns the events of one stream into the chunks of one message.

    `write` an event, send its chunks, and `close` at the end; `closed` tells that a terminal event has done it. A
    *lane* is a source of its own inside the stream (a node of a flow, a subagent): one part is open at a time in each.
    """

    def __init__(
        self,
        version: Version = 7,
        *,
        message_id: str | None = None,
        generate_id: Callable[[], str] = generate_message_id,
        continued: UIMessage | None = None,
        tools: Literal["dynamic", "named"] = "dynamic",
        strict: bool = False,
    ) -> None:
        """Write for a release of AI SDK.

        Args:
            version: The client's: 5, 6, 7 or an exact release. A client of another major may refuse the stream.
            message_id: Wins over the id that the source names; without both, `generate_id` makes one.
            generate_id: Makes the id of the message where nobody gave one.
            continued: The assistant message at the end of the client's request, whose id and calls go on.
            tools: `dynamic-tool` parts, or `tool-<name>` parts for pages that declare their tools.
            strict: Raise StreamStateError where an event would be skipped (R-O23).
        """
        self.release = sdk_version(version)
        self.losses: list[Loss] = []
        """What could not be told to the client, at the number of its event; at most `MOST_LOSSES`."""
        self.skipped = 0
        """How many events made no sense."""
        self._strict = strict
        self._event = -1
        self._message = MessageTeller(
            self.release,
            self._lose,
            message_id=message_id,
            generate_id=generate_id,
            continued=continued,
            dynamic=tools == "dynamic",
            strict=strict,
        )

    @property
    def closed(self) -> bool:
        """Whether the stream has ended."""
        return self._message.closed

    @property
    def message_id(self) -> str | None:
        """The id of the message, once the stream has begun."""
        return self._message.message_id

    def write(self, event: StreamEvent, lane: str = "") -> Chunks:
        """The chunks of one event; none for one that is skipped or says nothing new."""
        message = self._message
        if type(event) is TextDelta and not message.closed:
            part = message.parts.text(event.id, lane)
            if part is not None and type(event.delta) is str and event.delta:
                self._event += 1
                return [TextDeltaChunk(id=part.chunk_id, delta=event.delta)]
        return self._write_any(event, lane)

    def growing(self, event: Start | Delta) -> TextDeltaChunk | ReasoningDeltaChunk | None:
        """A delta without text of the part of an event, if it is open now: others tell the same of its next deltas."""
        return None if self.closed else self._message.parts.growing(event)

    def pass_by(self, number: int) -> None:
        """So many deltas of an open part were told without `write`."""
        self._event += number

    def close(self) -> Chunks:
        """End the stream whose source is exhausted; does nothing where it has ended already."""
        if self.closed:
            return []
        self._message.exhausted()
        return self._message.taken()

    def fail(self, error_text: str = FAILED) -> Chunks:
        """End the stream whose source has broken down."""
        return [*self.write(events.StreamError(error_text=error_text)), *self.close()]

    def abort(self, reason: str | None = None) -> Chunks:
        """End the stream that was stopped from outside."""
        return self.write(events.Abort(reason=reason)) if not self.closed else []

    # The way of an event

    def _write_any(self, event: StreamEvent, lane: str) -> Chunks:
        self._event += 1
        kind = type(event)
        try:
            if self.closed:
                raise RefusedEvent("the stream has ended")
            handler = HANDLERS.get(kind)
            if handler is None:
                raise RefusedEvent(f"{kind.__name__} is no event of a stream")
            check_fields(cast("Struct", event))
            handler(self._message, event, lane)
        except (RefusedEvent, UnusableValue) as refusal:
            self._refuse(event, str(refusal))
        except Exception as error:  # A source may build anything; no event may end the stream.
            self._refuse(event, f"{type(error).__name__}: {error}")
        return self._message.taken()

    def _refuse(self, event: object, reason: str) -> None:
        name = type(event).__name__
        logger.warning("event %d (%s) of a stream was skipped: %s", self._event, name, reason)
        self.skipped += 1
        if self._strict:
            raise StreamStateError(f"event {self._event} ({name}): {reason}", chunk_type=name)
        self._lose("event", f"{name} was skipped: {reason}")

    def _lose(self, feature: str, reason: str) -> None:
        if len(self.losses) < MOST_LOSSES:
            self.losses.append(Loss(feature=feature, path=f"$[{self._event}]", reason=reason))


def write_chunks(stream: Iterable[StreamEvent], writer: ChunkWriter) -> Iterator[UIMessageChunk]:
    """The chunks of events that are at hand, to the end of the stream."""
    for event in stream:
        yield from writer.write(event)
        if writer.closed:
            return
    yield from writer.close()
