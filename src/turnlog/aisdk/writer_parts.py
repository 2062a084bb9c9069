"""The content of a written message except tool calls (steps, text and reasoning, files, sources, data), and its JSON.

Text and reasoning: one part is open at a time in each lane, and it ends before the next begins. A delta that arrives
after its part had to end opens another part, so no text is lost and none ends up in a part of another lane.

The functions at the end turn values of `StreamEvent`s into the JSON of chunks. What a browser does not accept as JSON
never gets into a chunk.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, NamedTuple, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.aisdk.base import ProviderMetadata
from turnlog.aisdk.chunks import (
    DataChunk,
    FileChunk,
    FinishReason,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningStartChunk,
    SourceDocumentChunk,
    SourceUrlChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
    UIMessageChunk,
)
from turnlog.aisdk.codec import to_plain
from turnlog.aisdk.json_text import holds_unsafe_key, may_hold_unsafe_key, parse_json, parse_output, without_unsafe_keys
from turnlog.aisdk.metadata import to_sdk_keys
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.versions import SdkVersion, supports
from turnlog.model.base import ProviderData, RawJson
from turnlog.model.codec import encode
from turnlog.model.message import StopReason
from turnlog.model.parts import FilePart, Part, SourceUrlPart, TextPart, ToolResult
from turnlog.model.stream import (
    DataEvent,
    FileEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    SourceEvent,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from turnlog.model.usage import Usage, sum_usage

Chunks: TypeAlias = list[UIMessageChunk]

AddLoss: TypeAlias = Callable[[str, str], None]
"""Records a loss at the current event: feature, reason."""


class RefusedEvent(Exception):
    """An event is impossible in its place."""


class UnusableValue(ValueError):
    """An event contains a value that no chunk can carry."""


FAILED: Final = "An error occurred."
"""The error text for a client if there is none, or none that it may see."""

FINISH_REASONS: dict[StopReason, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "context_window": "length",
    "tool_use": "tool-calls",
    "error": "error",
    "aborted": "other",
    "pause": "other",
    "refusal": "content-filter",
    "content_filter": "content-filter",
}
"""Stop reason -> the AI SDK's finish reason. It has fewer, so `metadata.steps` keeps the original."""

Start: TypeAlias = TextStart | ReasoningStart

Delta: TypeAlias = TextDelta | ReasoningDelta

End: TypeAlias = TextEnd | ReasoningEnd


class Steps:
    """The model calls of one stream, one entry per step: `model, responseId, stopReason, rawStopReason, usage`."""

    def __init__(self, continued: UIMessage | None = None) -> None:
        """Continue after the steps of a message that is continued."""
        # The message comes from a page, so its metadata may be any JSON.
        metadata: Any = None if continued is None else to_plain(continued.metadata)
        before = cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}
        steps = before.get("steps")
        self._before = cast("list[Any]", steps) if isinstance(steps, list) else []
        self._usage_before = _usage(before.get("usage"))
        self._steps: list[dict[str, Any]] = []

    def start(self, event: StepStart) -> None:
        """A model call begins."""
        fields = {"model": event.model, "responseId": event.response_id}
        self._steps.append({name: value for name, value in fields.items() if value is not None})

    def finish(self, event: StepFinish) -> None:
        """The newest call ends. Raises RefusedEvent if there is none, or for a usage that cannot be added."""
        if not self._steps:
            raise RefusedEvent("no step has begun")
        if event.usage is not None:
            # It is encoded and added up when the message ends, and nothing can be refused then.
            usage_json(event.usage)
            try:
                sum_usage([event.usage])
            except (KeyError, TypeError) as error:
                raise RefusedEvent(f"no usage: {error}") from error
        fields = {"stopReason": event.stop_reason, "rawStopReason": event.raw_stop_reason, "usage": event.usage}
        self._steps[-1] |= {name: value for name, value in fields.items() if value is not None}

    def abort(self) -> None:
        """The newest call was stopped from outside, whatever it reported (R-K10)."""
        if self._steps:
            self._steps[-1]["stopReason"] = "aborted"

    def metadata(self, of_run: Usage | None = None) -> dict[str, Any]:
        """`steps`, the last `model` and the `usage` of the whole message, as far as known.

        Args:
            of_run: The usage that the run reported; without it, the sum of its steps.
        """
        usage = self._usage(of_run)
        found: dict[str, Any] = {} if usage is None else {"usage": usage_json(usage)}
        if any(self._steps):
            steps = [{name: _plain(value) for name, value in step.items()} for step in self._steps]
            found["steps"] = [*self._before, *steps]
        models = [step["model"] for step in self._steps if "model" in step]
        return found | ({"model": models[-1]} if models else {})

    def _usage(self, of_run: Usage | None) -> Usage | None:
        total = sum_usage([step.get("usage") for step in self._steps])
        usage = of_run or (total.usage if total.calls > total.unknown_calls else None)
        if usage is None or self._usage_before is None:
            return usage
        return sum_usage([self._usage_before, usage]).usage


def _plain(value: Any) -> Any:
    return usage_json(value) if isinstance(value, Usage) else value


def _usage(value: Any) -> Usage | None:
    try:
        return msgspec.convert(value, Usage | None)
    except msgspec.ValidationError:
        return None


_Key: TypeAlias = tuple[str, str]
"""Kind of part and its id in the source."""


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
        """Keep the ids of the part in the source and at the client."""
        self.key = key
        self.chunk_id = chunk_id
        self.lane = lane
        self.metadata = metadata


class OpenParts:
    """The open parts of one stream; each method returns the chunks of an event or raises RefusedEvent."""

    def __init__(self, add_loss: AddLoss, *, strict: bool) -> None:
        """Begin with none; `strict` refuses what can be repaired: a delta without a start, a start without an end."""
        self._add_loss = add_loss
        self._strict = strict
        self._by_key: dict[_Key, OpenPart] = {}
        self._by_lane: dict[str, OpenPart] = {}
        self._used_ids = dict[str, int]()
        """Id -> how many parts wanted it."""
        self._cut_short = set[_Key]()
        """Parts that ended because another began; their source may not know."""

    def text(self, source_id: str, lane: str) -> OpenPart | None:
        """The open text part with this id."""
        # This comes before `check_fields`: an id of another type may not be hashable.
        part = self._by_key.get(("text", source_id)) if type(source_id) is str else None
        return part if part is not None and part.lane == lane else None

    def open_delta(self, event: Start | Delta) -> TextDeltaChunk | ReasoningDeltaChunk | None:
        """A delta chunk without text for the open part of an event, in the main lane."""
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
        """More text for a part."""
        if not event.delta:
            return []
        key = (_KIND_OF[type(event)], event.id)
        if key not in self._by_key and key not in self._cut_short and self._strict:
            raise RefusedEvent(f"{key[0]} {event.id!r} is not open")
        chunks = Chunks()
        # A client knows a part by its id alone, so two lanes cannot both write to it.
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
            self._add_loss("part-metadata", "the part had to end before the data that its provider needs again arrived")
        return []

    def end_lane(self, lane: str) -> Chunks:
        """Something else begins in a lane: end its part."""
        part = self._by_lane.get(lane)
        if part is None:
            return []
        # The source does not know that its part had to end: a later delta opens another part, and its end is no error.
        self._cut_short.add(part.key)
        return self._end(part)

    def end_all(self) -> Chunks:
        """Something else begins: end the parts of all lanes."""
        return [chunk for lane in list(self._by_lane) for chunk in self.end_lane(lane)]

    def _open(self, key: _Key, lane: str, metadata: ProviderMetadata | UnsetType) -> Chunks:
        chunks = self.end_lane(lane)
        part = OpenPart(key, self._unused_id(key[1]), lane, metadata)
        self._by_key[key] = self._by_lane[lane] = part
        return [*chunks, _KINDS[key[0]].start(id=part.chunk_id, provider_metadata=metadata)]

    def _unused_id(self, wanted: str) -> str:
        """An id that was not used before: pages identify parts by it."""
        chunk_id = wanted
        while chunk_id in self._used_ids:
            self._used_ids[wanted] += 1
            chunk_id = f"{wanted}~{self._used_ids[wanted]}"
        self._used_ids[chunk_id] = 1
        return chunk_id

    def _end(self, part: OpenPart, metadata: ProviderMetadata | UnsetType = UNSET) -> Chunks:
        if metadata is not UNSET and part.metadata is not UNSET:
            # The client replaces the metadata of the start.
            before = part.metadata
            metadata = {name: before.get(name, {}) | metadata.get(name, {}) for name in before | metadata}
        del self._by_key[part.key]
        del self._by_lane[part.lane]
        return [_KINDS[part.key[0]].end(id=part.chunk_id, provider_metadata=metadata)]


class DataUpdate(NamedTuple):
    """A data chunk, and whether it is a new part of the message."""

    chunk: DataChunk
    is_part: bool


class ContentChunks:
    """Makes the chunks of one stream; each method raises RefusedEvent for values that a client cannot use."""

    def __init__(self, release: SdkVersion, add_loss: AddLoss) -> None:
        """Write for a release."""
        self._add_loss = add_loss
        self._has_file_metadata = supports(release, "file-metadata")
        self._data_ids = set[tuple[str, str]]()

    def file(self, event: FileEvent) -> FileChunk:
        """A file, by a URL that the client can reach."""
        address = address_of(event.file)
        if address is None:
            raise RefusedEvent("a client cannot reach the file: neither bytes nor an http(s) or data URL")
        metadata = metadata_of(event.file.provider)
        if event.file.filename is not None:
            self._add_loss("file-name", "a stream has no field for the name of a file")
        if metadata is not UNSET and not self._has_file_metadata:
            self._add_loss("file-metadata", "this release keeps no metadata on streamed files")
            metadata = UNSET
        return FileChunk(url=address, media_type=event.file.media_type, provider_metadata=metadata)

    def source(self, event: SourceEvent) -> SourceUrlChunk | SourceDocumentChunk:
        """A page or a document that was used."""
        source, metadata = event.source, metadata_of(event.source.provider)
        if isinstance(source, SourceUrlPart):
            title = UNSET if source.title is None else source.title
            return SourceUrlChunk(source_id=source.source_id, url=source.url, title=title, provider_metadata=metadata)
        return SourceDocumentChunk(
            source_id=source.source_id,
            media_type=source.media_type,
            title=source.title,
            filename=UNSET if source.filename is None else source.filename,
            provider_metadata=metadata,
        )

    def data(self, event: DataEvent) -> DataUpdate:
        """Data of the application; data with the same id replaces earlier data."""
        data = plain_json(event.data)
        name = None if event.id is None else (event.name, event.id)
        is_part = not event.transient and name not in self._data_ids
        if is_part and name is not None:
            self._data_ids.add(name)
        chunk = DataChunk(
            type=f"data-{event.name}",
            data=data,
            id=UNSET if event.id is None else event.id,
            transient=True if event.transient else UNSET,
        )
        return DataUpdate(chunk, is_part)


_ADDRESS = re.compile(r"https?://[^/\s]|data:[^,]*,", re.IGNORECASE)


def plain_json(value: Any) -> Any:
    """Any JSON without the keys that end a stream in the browser; exact JSON stays exact if possible."""
    if isinstance(value, Raw):
        return _checked_json(value)
    try:
        return without_unsafe_keys(msgspec.to_builtins(value, str_keys=True))
    except (TypeError, ValueError, RecursionError) as error:
        raise UnusableValue(f"no JSON: {error}") from error


def _checked_json(raw: Raw) -> Any:
    """The same JSON if it is valid, without forbidden keys."""
    data = bytes(raw)
    try:
        value = _decode(data)
    except (ValueError, RecursionError) as error:
        raise UnusableValue(f"no JSON: {error}") from error
    if may_hold_unsafe_key(data) and holds_unsafe_key(value):
        return without_unsafe_keys(value)
    return raw


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:  # half a character is JSON to a browser
        return parse_json(data)


def input_of(exact: RawJson, text: str | None, streamed: str) -> Any:
    """The input of a call: its JSON, otherwise its text, otherwise what was streamed. Empty becomes an empty object."""
    if exact is not UNSET:
        return plain_json(exact)
    if text is not None and text.strip():
        return text
    if text is not None or not streamed.strip():
        return {}
    try:
        return without_unsafe_keys(parse_json(streamed))
    except (ValueError, RecursionError):
        return streamed


def output_of(result: ToolResult) -> Any:
    """The output of a tool: JSON is parsed, other text stays as it is, several contents are a list of UI parts (R-H8).

    Without content, the structured outcome is the output.
    """
    if not result.content:
        return None if result.structured is UNSET else plain_json(result.structured)
    first = result.content[0]
    if len(result.content) > 1 or not isinstance(first, TextPart) or first.citations:
        return [_content_of(part) for part in result.content]
    parsed = parse_output(Raw(encode(first.text)))
    return first.text if parsed is None else plain_json(parsed.value)


def _content_of(part: Part) -> dict[str, Any]:
    """A part in an output, as the part of a UI message."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    address = address_of(part) if isinstance(part, FilePart) else None
    if isinstance(part, FilePart) and address is not None:
        name = {} if part.filename is None else {"filename": part.filename}
        return {"type": "file", "mediaType": part.media_type, "url": address, **name}
    return {"type": "data-turnlog-part", "data": plain_json(Raw(encode(part)))}


def metadata_of(provider: ProviderData | None) -> ProviderMetadata | UnsetType:
    """The provider metadata under the provider's name, with the AI SDK's keys."""
    if provider is None or not provider.opaque:
        return UNSET
    fields = to_sdk_keys(provider.name, provider.opaque)
    return cast("ProviderMetadata", plain_json({provider.name: provider.opaque if fields is None else fields})) or UNSET


def address_of(file: FilePart) -> str | None:
    """The http(s) or data URL from which a browser gets a file; None if there is none."""
    if file.data is not None:
        return f"data:{file.media_type};base64,{base64.b64encode(file.data).decode('ascii')}"
    return file.url if file.url is not None and _ADDRESS.match(file.url) else None


def usage_json(usage: Usage) -> dict[str, Any]:
    """A usage as JSON, including fields that this version does not know. Raises UnusableValue if that is not JSON."""
    return cast("dict[str, Any]", to_plain(plain_json(Raw(encode(usage)))))


def check_fields(event: msgspec.Struct) -> None:
    """Raise UnusableValue if a field does not have its declared type, at any depth. Other programs build events."""
    for name, classes, holds_values in _field_classes(type(event)):
        value: object = getattr(event, name)
        if not isinstance(value, classes):
            raise UnusableValue(f"{name} cannot be {_named(type(value))}: expected {' or '.join(map(_named, classes))}")
        if holds_values:
            _check_inside(name, value)


def _check_inside(name: str, value: object) -> None:
    if isinstance(value, msgspec.Struct):
        check_fields(value)
    elif isinstance(value, tuple):
        for item in cast("tuple[object, ...]", value):
            if not isinstance(item, msgspec.Struct):
                raise UnusableValue(f"{name} cannot hold {_named(type(item))}")
            check_fields(item)


def _named(kind: type[Any]) -> str:
    return "None" if kind is type(None) else kind.__name__


@cache
def _field_classes(event: type[msgspec.Struct]) -> tuple[tuple[str, tuple[type, ...], bool], ...]:
    """For each field its name, its types, and whether its values have fields."""
    hints = get_type_hints(event)
    classes = {name: tuple(_classes(hints[name])) for name in event.__struct_fields__}
    return tuple(
        (name, types, any(issubclass(found, msgspec.Struct | tuple) for found in types))
        for name, types in classes.items()
    )


def _classes(hint: Any) -> list[type]:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return [found for option in get_args(hint) for found in _classes(option)]
    if origin is Literal:
        return [type(option) for option in get_args(hint)]
    if hint is Any:
        return [object]
    return [origin or hint]
