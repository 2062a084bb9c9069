"""The parts of a message that is being read: how each chunk changes them, in every major version.

Mirrors `src/ui/process-ui-message-stream.ts` of ai 5.0.277, 6.0.326 and 7.0.173. Parts are frozen, so snapshots share
them with the reader. Deltas (text, tool input) wait in a `PendingChange` until the part is read. `reader_tools` has the
parts of tool calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from msgspec import UNSET
from msgspec.structs import replace

from turnlog.aisdk import chunks as wire
from turnlog.aisdk.json_text import ends_in_half_character, join_surrogates
from turnlog.aisdk.parts import (
    CustomUIPart,
    DataUIPart,
    FileUIPart,
    ReasoningFileUIPart,
    ReasoningUIPart,
    SourceDocumentUIPart,
    SourceUrlUIPart,
    SteeringMessageUIPart,
    StepStartUIPart,
    TextUIPart,
    UICitation,
    UIMessagePart,
)
from turnlog.errors import StreamStateError


class PendingChange(Protocol):
    """A change of a part that is not applied yet."""

    def apply(self, part: Any) -> Any:
        """The part with everything received."""
        ...


class PartList:
    """Parts by index, and the beginning of the current step, after the last `step-start`."""

    def __init__(self, parts: Iterable[UIMessagePart] = ()) -> None:
        self._parts = list(parts)
        self._pending: dict[int, PendingChange] = {}
        starts = [index for index, part in enumerate(self._parts) if isinstance(part, StepStartUIPart)]
        self.step_start = starts[-1] + 1 if starts else 0

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index: int) -> UIMessagePart:
        if index in self._pending:
            self._parts[index] = self._pending.pop(index).apply(self._parts[index])
        return self._parts[index]

    def __setitem__(self, index: int, part: UIMessagePart) -> None:
        self._pending.pop(index, None)
        self._parts[index] = part

    def without_pending(self, index: int) -> UIMessagePart:
        """The part without its pending change."""
        return self._parts[index]

    # Applied at each delta, a text of n deltas would be copied n times.
    def defer(self, index: int, pending: PendingChange) -> None:
        """Apply `pending` when the part is read."""
        self._pending[index] = pending

    def push(self, part: UIMessagePart) -> int:
        """Append a part; return its index, which is valid until a reset."""
        self._parts.append(part)
        return len(self._parts) - 1

    def start_step(self) -> None:
        """Begin a step."""
        self.step_start = self.push(StepStartUIPart()) + 1

    def reset_step(self) -> bool:
        """Remove the parts of the current step; return whether there were any."""
        dropped = len(self._parts) > self.step_start
        del self._parts[self.step_start :]
        self._pending = {index: pending for index, pending in self._pending.items() if index < self.step_start}
        return dropped

    def snapshot(self) -> tuple[UIMessagePart, ...]:
        """All parts as they are now."""
        for index, pending in self._pending.items():
            self._parts[index] = pending.apply(self._parts[index])
        self._pending.clear()
        return tuple(self._parts)


class OpenText:
    """An open text or reasoning part, with deltas that are not applied yet."""

    __slots__ = ("_deltas", "_is_split", "index")

    def __init__(self, index: int) -> None:
        self.index = index
        self._deltas: list[str] = []
        self._is_split = False

    def add(self, delta: str) -> None:
        """Take a delta."""
        self._deltas.append(delta)
        # Servers in JavaScript cut text between the two UTF-16 halves of a character.
        if ends_in_half_character(delta):
            self._is_split = True

    def apply(self, part: Any) -> Any:
        """The part with all deltas."""
        text = part.text + "".join(self._deltas)
        self._deltas.clear()
        return replace(part, text=join_surrogates(text) if self._is_split else text)


class ContentReader:
    """The parts of a message that is being read, except tool parts. All methods return whether the message changed."""

    def __init__(self, parts: PartList, major: int) -> None:
        self._parts = parts
        self._major = major
        self._texts: dict[str, OpenText] = {}
        self._reasonings: dict[str, OpenText] = {}

    def close_parts(self) -> None:
        """Close all open text and reasoning parts."""
        self._texts.clear()
        self._reasonings.clear()

    def text_start(self, chunk: wire.TextStartChunk) -> bool:
        """Open a text part."""
        part = TextUIPart(text="", state="streaming", provider_metadata=chunk.provider_metadata)
        self._texts[chunk.id] = OpenText(self._parts.push(part))
        return True

    def reasoning_start(self, chunk: wire.ReasoningStartChunk) -> bool:
        """Open a reasoning part."""
        part = ReasoningUIPart(id=chunk.id, text="", state="streaming", provider_metadata=chunk.provider_metadata)
        self._reasonings[chunk.id] = OpenText(self._parts.push(part))
        return True

    def delta(self, chunk: wire.TextDeltaChunk | wire.ReasoningDeltaChunk) -> bool:
        """Add to a text or reasoning part."""
        opened = (self._texts if isinstance(chunk, wire.TextDeltaChunk) else self._reasonings).get(chunk.id)
        if opened is None:
            raise self._missing_start(chunk)
        opened.add(chunk.delta)
        self._parts.defer(opened.index, opened)
        if chunk.provider_metadata is not UNSET:
            self._change(opened, provider_metadata=chunk.provider_metadata)
        return True

    def text_end(self, chunk: wire.TextEndChunk) -> bool:
        """Complete a text part."""
        opened = self._texts.pop(chunk.id, None)
        if opened is None:
            raise self._missing_start(chunk)
        changes: dict[str, Any] = {"state": "done"}
        # Citations came with 7.0.138; 5 and 6 have no field for them.
        if self._major >= 7 and chunk.citations is not UNSET:
            changes["citations"] = tuple(_without_unknown_keys(citation) for citation in chunk.citations)
        if chunk.provider_metadata is not UNSET:
            changes["provider_metadata"] = chunk.provider_metadata
        self._change(opened, **changes)
        return True

    def reasoning_end(self, chunk: wire.ReasoningEndChunk) -> bool:
        """Complete a reasoning part."""
        opened = self._reasonings.pop(chunk.id, None)
        if opened is None:
            raise self._missing_start(chunk)
        self._change(opened, state="done")
        if chunk.provider_metadata is not UNSET:
            self._change(opened, provider_metadata=chunk.provider_metadata)
        return True

    def _change(self, opened: OpenText, **changes: Any) -> None:
        self._parts[opened.index] = replace(self._parts[opened.index], **changes)

    def source_url(self, chunk: wire.SourceUrlChunk) -> bool:
        """Add a web page."""
        self._parts.push(
            SourceUrlUIPart(
                source_id=chunk.source_id,
                url=chunk.url,
                title=chunk.title,
                provider_metadata=chunk.provider_metadata,
            )
        )
        return True

    def source_document(self, chunk: wire.SourceDocumentChunk) -> bool:
        """Add a document."""
        self._parts.push(
            SourceDocumentUIPart(
                source_id=chunk.source_id,
                media_type=chunk.media_type,
                title=chunk.title,
                filename=chunk.filename,
                provider_metadata=chunk.provider_metadata,
            )
        )
        return True

    def file(self, chunk: wire.FileChunk | wire.ReasoningFileChunk) -> bool:
        """Add a file."""
        struct = FileUIPart if isinstance(chunk, wire.FileChunk) else ReasoningFileUIPart
        # 5 has no metadata on the part of a streamed file.
        metadata = UNSET if self._major == 5 else chunk.provider_metadata
        self._parts.push(struct(media_type=chunk.media_type, url=chunk.url, provider_metadata=metadata))
        return True

    def custom(self, chunk: wire.CustomChunk) -> bool:
        """Add a provider's own content."""
        self._parts.push(CustomUIPart(kind=chunk.kind, provider_metadata=chunk.provider_metadata))
        return True

    def steering_message(self, chunk: wire.SteeringMessageChunk) -> bool:
        """Add a steering message."""
        self._parts.push(SteeringMessageUIPart(id=chunk.id, parts=chunk.parts))
        return True

    def data(self, chunk: wire.DataChunk) -> bool:
        """Add data, or replace the data with the same id; transient data is ignored."""
        if chunk.transient is True:
            return False
        index = None if chunk.id is UNSET else self._data_part(chunk)
        if index is None:
            self._parts.push(
                DataUIPart(type=chunk.type, data=chunk.data, id=chunk.id, transient=chunk.transient, extra=chunk.extra)
            )
        else:
            # New data replaces the old; the AI SDK does not merge it.
            self._parts[index] = replace(self._parts[index], data=chunk.data)
        return True

    def _data_part(self, chunk: wire.DataChunk) -> int | None:
        for index in range(len(self._parts)):
            part = self._parts.without_pending(index)
            if isinstance(part, DataUIPart) and part.type == chunk.type and part.id == chunk.id:
                return index
        return None

    def _missing_start(
        self,
        chunk: wire.TextDeltaChunk | wire.TextEndChunk | wire.ReasoningDeltaChunk | wire.ReasoningEndChunk,
    ) -> StreamStateError:
        kind = chunk.type.partition("-")[0]
        reason = (
            f'Received {chunk.type} for missing {kind} part with ID "{chunk.id}". '
            f'Ensure a "{kind}-start" chunk is sent before any "{chunk.type}" chunks.'
        )
        if self._major == 5:
            key: str = chunk.type
            if isinstance(chunk, wire.ReasoningEndChunk) and chunk.provider_metadata is not UNSET:
                key = "reasoning-end with metadata"
            reason = f"Cannot {_MISSING_START_5[key]}"
        return StreamStateError(reason, chunk_type=chunk.type, chunk_id=chunk.id)


_MISSING_START_5 = {
    "text-delta": "read properties of undefined (reading 'text')",
    "text-end": "set properties of undefined (setting 'state')",
    "reasoning-delta": "read properties of undefined (reading 'text')",
    "reasoning-end": "read properties of undefined (reading 'providerMetadata')",
    "reasoning-end with metadata": "set properties of undefined (setting 'providerMetadata')",
}
"""5 does not check this before it writes."""


def _without_unknown_keys(citation: UICitation) -> UICitation:
    """A citation as the client stores it; chunks of other kinds keep unknown keys."""
    return replace(citation, source=replace(citation.source, extra={}), extra={})
