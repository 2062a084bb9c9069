"""UI messages of anybody -> canonical messages: from a browser, from another program.

Nothing in them is believed that only turnlog may say: our metadata and our data parts are left out and reported, and
addresses are kept as text and never followed. What the canonical model has no field for is kept in
`metadata["aisdk"]` (`turnlog.aisdk.marks`), and `turnlog.aisdk.convert` says it again.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from msgspec import UNSET, Raw, UnsetType

from turnlog.aisdk.base import UIValue
from turnlog.aisdk.bubbles import step_id
from turnlog.aisdk.building import to_plain
from turnlog.aisdk.foreign_calls import call_of
from turnlog.aisdk.losses import Loss
from turnlog.aisdk.marks import Marks
from turnlog.aisdk.parts import (
    DataUIPart,
    DynamicToolUIPart,
    FileUIPart,
    ReasoningUIPart,
    SourceDocumentUIPart,
    SourceUrlUIPart,
    SteeringMessageUIPart,
    StepStartUIPart,
    TextUIPart,
    ToolUIPart,
    UICitation,
    UIMessage,
    UIMessagePart,
    UnknownUIPart,
    UrlCitationSource,
)
from turnlog.aisdk.provider_names import provider_of
from turnlog.aisdk.to_parts import RESERVED
from turnlog.model import (
    Citation,
    DataPart,
    FilePart,
    Message,
    Origin,
    Part,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    UnknownPart,
)
from turnlog.model.codec import to_json

_DATA_URL: Final = re.compile(r"data:[^,]*;base64,([A-Za-z0-9+/]*={0,2})", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"(https?:|data:)", re.IGNORECASE)

ValueT = TypeVar("ValueT")


class ForeignReader:
    """Reads UI messages that nobody vouches for; losses are added to the list."""

    def __init__(self, losses: list[Loss]) -> None:
        """Note losses in this list."""
        self._losses = losses
        self._place = "$"

    def read(self, message: UIMessage, number: int) -> list[Message]:
        """The canonical messages of one UI message: one for each model call of an assistant, else one.

        Args:
            message: What came.
            number: Its place among those that came, for the losses.
        """
        self._place = f"$[{number}]"
        marks = self._marks(message)
        if message.role != "assistant":
            origin = Origin.PROMPT if message.role == "user" else None
            parts = tuple(self._parts(message.parts))
            return [Message(id=message.id, role=message.role, origin=origin, parts=parts, metadata=marks.to_metadata())]
        return self._steps(message, marks)

    def _marks(self, message: UIMessage) -> Marks:
        metadata = message.metadata
        if isinstance(metadata, dict) and "turnlog" in metadata:
            self._lose("metadata", "only turnlog itself may say this")
            metadata = {key: value for key, value in cast("dict[str, Any]", metadata).items() if key != "turnlog"}
        if metadata is UNSET or metadata == {}:
            return Marks()
        return Marks(metadata=Raw(to_json(to_plain(metadata))))

    def _steps(self, message: UIMessage, marks: Marks) -> list[Message]:
        """One message a model call, and what the user said between them."""
        found: list[Message] = []
        parts: list[UIMessagePart] = []
        number = 0

        def close() -> None:
            nonlocal number
            if parts or not number:
                number += 1
                made = tuple(self._parts(parts))
                metadata = marks.to_metadata() if number == 1 else {}
                found.append(Message(id=step_id(message.id, number), role="assistant", parts=made, metadata=metadata))
                parts.clear()

        for part in message.parts:
            if isinstance(part, StepStartUIPart):
                if parts:
                    close()
            elif isinstance(part, SteeringMessageUIPart):
                if parts:
                    close()
                said = tuple(self._parts(part.parts))
                found.append(Message(id=part.id, role="user", origin=Origin.PROMPT, parts=said))
            else:
                parts.append(part)
        if parts or not found:
            close()
        return found

    def _parts(self, parts: tuple[UIMessagePart, ...] | list[UIMessagePart]) -> list[Part]:
        place, found = self._place, list[Part]()
        for number, part in enumerate(parts):
            self._place = f"{place}.parts[{number}]"
            made = self._part(part)
            if made is not None:
                found.append(made)
        self._place = place
        return found

    def _part(self, part: UIMessagePart) -> Part | None:
        if part.extra:
            self._lose("unknown-keys", f"{', '.join(sorted(part.extra))} of a {part.type} part")
        if isinstance(part, ToolUIPart | DynamicToolUIPart):
            if part.raw_input is not UNSET and part.input is not UNSET:
                self._lose("raw-input", "the text of an input whose JSON is told")
            if part.input_encoding is not UNSET:
                self._lose("input-encoding", "how the text of an input is to be read")
            return call_of(part)
        if isinstance(part, DataUIPart):
            return self._data(part)
        reader = _READERS.get(type(part))
        if reader is None:
            marks = Marks(ui_part=not isinstance(part, UnknownUIPart))
            return UnknownPart(kind=part.type, data=to_json(to_plain(part)), metadata=marks.to_metadata())
        return reader(part)

    def _data(self, part: DataUIPart) -> Part | None:
        if part.name.startswith(RESERVED):
            self._lose("own-data", f"only turnlog itself may say {part.type}")
            return None
        return DataPart(id=value_or_none(part.id), name=part.name, data=to_json(to_plain(part.data)))

    def _lose(self, feature: str, reason: str) -> None:
        self._losses.append(Loss(feature=feature, path=self._place, reason=reason))


def value_or_none(value: ValueT | UnsetType) -> ValueT | None:
    """The value; None where there is none."""
    return None if value is UNSET else value


def _text(part: TextUIPart) -> Part:
    citations = () if part.citations is UNSET else tuple(_citation(citation) for citation in part.citations)
    return TextPart(
        text=part.text,
        state="done" if part.state is UNSET else part.state,
        citations=citations,
        provider=provider_of(part.provider_metadata),
    )


def _citation(citation: UICitation) -> Citation:
    source = citation.source
    url = source.url if isinstance(source, UrlCitationSource) else None
    start, end = citation.start_index, citation.end_index
    return Citation(
        title=value_or_none(source.title),
        url=url,
        document=None if url is not None else source.id,
        cited_text=value_or_none(citation.cited_text),
        start_index=None if start is UNSET else int(start),
        end_index=None if end is UNSET else int(end),
        metadata={"aisdk": to_plain(citation)},
    )


def _reasoning(part: ReasoningUIPart) -> Part:
    provider = provider_of(part.provider_metadata)
    return ReasoningPart(
        id=value_or_none(part.id),
        text=part.text,
        redacted=provider is not None and "data" in provider.opaque and not part.text,
        state="done" if part.state is UNSET else part.state,
        provider=provider,
    )


def _file(part: FileUIPart) -> Part:
    provider = provider_of(part.provider_metadata)
    name = value_or_none(part.filename)
    if not _ADDRESS.match(part.url) or part.provider_reference is not UNSET:
        marks = Marks(ui_part=part.provider_reference is not UNSET)
        return UnknownPart(kind="file", data=to_json(to_plain(part)), metadata=marks.to_metadata())
    data = _inline_bytes(part)
    if data is None:
        return FilePart(media_type=part.media_type, filename=name, url=part.url, provider=provider)
    return FilePart(media_type=part.media_type, filename=name, data=data, provider=provider)


def _inline_bytes(part: FileUIPart) -> bytes | None:
    """The bytes in a data URL that says nothing but them and the part's own media type."""
    found = _DATA_URL.fullmatch(part.url)
    if found is None or not part.url.startswith(f"data:{part.media_type};base64,"):
        return None
    try:
        return base64.b64decode(found[1], validate=True)
    except binascii.Error:
        return None


def _source_url(part: SourceUrlUIPart) -> Part:
    return SourceUrlPart(
        source_id=part.source_id,
        url=part.url,
        title=value_or_none(part.title),
        provider=provider_of(part.provider_metadata),
    )


def _source_document(part: SourceDocumentUIPart) -> Part:
    return SourceDocumentPart(
        source_id=part.source_id,
        media_type=part.media_type,
        title=part.title,
        filename=value_or_none(part.filename),
        provider=provider_of(part.provider_metadata),
    )


_READERS: dict[type[UIValue], Callable[[Any], Part]] = {
    TextUIPart: _text,
    ReasoningUIPart: _reasoning,
    FileUIPart: _file,
    SourceUrlUIPart: _source_url,
    SourceDocumentUIPart: _source_document,
}
"""Kind of UI part -> what it becomes; what has no reader is kept as it is."""
