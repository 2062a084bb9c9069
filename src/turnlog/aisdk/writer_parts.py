"""The text and reasoning parts of one stream: in every lane one is open at a time, and it ends before the next begins.

A delta that comes after its part had to end opens another part, so that no text is lost and none gets into a part of
somebody else's.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from msgspec import UNSET, UnsetType

from turnlog.aisdk.base import ProviderMetadata
from turnlog.aisdk.chunks import (
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningStartChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
)
from turnlog.aisdk.writer_base import Chunks, Lose, RefusedEvent
from turnlog.aisdk.writer_values import metadata_of
from turnlog.model.stream import ReasoningDelta, ReasoningEnd, ReasoningStart, TextDelta, TextEnd, TextStart

Start: TypeAlias = TextStart | ReasoningStart
Delta: TypeAlias = TextDelta | ReasoningDelta
End: TypeAlias = TextEnd | ReasoningEnd
_Key: TypeAlias = tuple[str, str]
"""Kind of part and the id that its source gave it."""


class _Kind(NamedTuple):
    start: type[TextStartChunk | ReasoningStartChunk]
    delta: type[TextDeltaChunk | ReasoningDeltaChunk]
    end: type[TextEndChunk | ReasoningEndChunk]


_KINDS = {
    "text": _Kind(TextStartChunk, TextDeltaChunk, TextEndChunk),
    "reasoning": _Kind(ReasoningStartChunk, ReasoningDeltaChunk, ReasoningEndChunk),
}

_KIND_OF: dict[type, str] = {
    **dict.fromkeys((TextStart, TextDelta, TextEnd), "text"),
    **dict.fromkeys((ReasoningStart, ReasoningDelta, ReasoningEnd), "reasoning"),
}


class OpenPart:
    """A part that has begun and not ended."""

    __slots__ = ("chunk_id", "key", "lane", "metadata")

    def __init__(self, key: _Key, chunk_id: str, lane: str, metadata: ProviderMetadata | UnsetType) -> None:
        """Remember under which ids its source and its client know it."""
        self.key = key
        self.chunk_id = chunk_id
        self.lane = lane
        self.metadata = metadata


class OpenParts:
    """The open parts of one stream; each method gives the chunks of one event or raises RefusedEvent."""

    def __init__(self, lose: Lose, *, strict: bool) -> None:
        """Start with none; `strict` refuses what could be mended: a delta without a start, a start without an end."""
        self._lose = lose
        self._strict = strict
        self._by_key: dict[_Key, OpenPart] = {}
        self._by_lane: dict[str, OpenPart] = {}
        self._used_ids = dict[str, int]()
        """Id -> how many parts wanted it."""
        self._cut_short = set[_Key]()
        """Parts that ended because another began; their source may not know."""

    def text(self, source_id: str, lane: str) -> OpenPart | None:
        """The open text part of this id."""
        part = self._by_key.get(("text", source_id)) if type(source_id) is str else None
        return part if part is not None and part.lane == lane else None

    def growing(self, event: Start | Delta) -> TextDeltaChunk | ReasoningDeltaChunk | None:
        """A delta without text of the open part of an event, in the main lane."""
        key = (_KIND_OF[type(event)], event.id)
        part = self._by_key.get(key) if type(event.id) is str else None
        return None if part is None or part.lane else _KINDS[key[0]].delta(id=part.chunk_id, delta="")

    def start(self, event: Start, lane: str) -> Chunks:
        """A part begins."""
        key = (_KIND_OF[type(event)], event.id)
        metadata = metadata_of(event.provider)
        if key in self._by_key and self._strict:
            raise RefusedEvent(f"{key[0]} {event.id!r} is open")
        self._cut_short.discard(key)
        ended = self._end(self._by_key[key]) if key in self._by_key else []
        return [*ended, *self._open(key, lane, metadata)]

    def delta(self, event: Delta, lane: str) -> Chunks:
        """More text."""
        if not event.delta:
            return []
        key = (_KIND_OF[type(event)], event.id)
        if key not in self._by_key and key not in self._cut_short and self._strict:
            raise RefusedEvent(f"{key[0]} {event.id!r} is not open")
        chunks = Chunks()
        if key in self._by_key and self._by_key[key].lane != lane:
            chunks += self._end(self._by_key[key])
        if key not in self._by_key:
            chunks += self._open(key, lane, UNSET)
        chunks.append(_KINDS[key[0]].delta(id=self._by_key[key].chunk_id, delta=event.delta))
        return chunks

    def end(self, event: End, lane: str) -> Chunks:
        """A part is complete."""
        key = (_KIND_OF[type(event)], event.id)
        metadata = metadata_of(event.provider)
        if key in self._by_key:
            return self._end(self._by_key[key], metadata)
        if key not in self._cut_short:
            raise RefusedEvent(f"{key[0]} {event.id!r} is not open")
        if metadata is not UNSET:
            self._lose("part-metadata", "the part had to end before its provider told what it wants back")
        return []

    def end_lane(self, lane: str) -> Chunks:
        """Something else begins in a lane."""
        part = self._by_lane.get(lane)
        if part is None:
            return []
        self._cut_short.add(part.key)
        return self._end(part)

    def end_all(self) -> Chunks:
        """Something else begins, for all lanes."""
        return [chunk for lane in list(self._by_lane) for chunk in self.end_lane(lane)]

    def _open(self, key: _Key, lane: str, metadata: ProviderMetadata | UnsetType) -> Chunks:
        chunks = self.end_lane(lane)
        part = OpenPart(key, self._unused_id(key[1]), lane, metadata)
        self._by_key[key] = self._by_lane[lane] = part
        return [*chunks, _KINDS[key[0]].start(id=part.chunk_id, provider_metadata=metadata)]

    def _unused_id(self, wanted: str) -> str:
        """No id is used again after its end: pages keep parts by it."""
        chunk_id = wanted
        while chunk_id in self._used_ids:
            self._used_ids[wanted] += 1
            chunk_id = f"{wanted}~{self._used_ids[wanted]}"
        self._used_ids[chunk_id] = 1
        return chunk_id

    def _end(self, part: OpenPart, metadata: ProviderMetadata | UnsetType = UNSET) -> Chunks:
        if metadata is not UNSET and part.metadata is not UNSET:
            # The client replaces what the start said.
            before = part.metadata
            metadata = {name: before.get(name, {}) | metadata.get(name, {}) for name in before | metadata}
        del self._by_key[part.key]
        del self._by_lane[part.lane]
        return [_KINDS[part.key[0]].end(id=part.chunk_id, provider_metadata=metadata)]
