"""Parts of the canonical model -> parts of a UI message.

What a UI part says is taken out of its piece, so that the pieces that remain are what AI SDK cannot say; `restore`
is the way back. A part that AI SDK has no kind for is `data-turnlog-part`, with its canonical JSON.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw

from turnlog.aisdk.content_shapes import citation as check_citation
from turnlog.aisdk.losses import Loss
from turnlog.aisdk.marks import KEY, marks_of
from turnlog.aisdk.options import View
from turnlog.aisdk.pieces import (
    DataPieces,
    FilePieces,
    PartPieces,
    ProviderPieces,
    ReasoningPieces,
    SourceDocumentPieces,
    SourceUrlPieces,
    TextPieces,
    UnknownPieces,
)
from turnlog.aisdk.provider_names import to_sdk_words
from turnlog.errors import ShapeError
from turnlog.model import BlobRef, Citation

UIPartJson = dict[str, Any]
"""A UI part on its way into JSON: plain values and exact JSON."""

RESERVED: Final = "turnlog-"
"""How the names of our own data parts begin; an application's data of such a name is not shown under it."""

OWN_PART: Final = "data-turnlog-part"
OWN_MESSAGE: Final = "data-turnlog-message"

_ADDRESS = re.compile(rb'"(?:https?://[^/\s"\\]|data:[^"\\]*,)', re.IGNORECASE)
"""Addresses that AI SDK takes for a file."""

_UI_PARTS = {"custom": "custom-content", "file": "provider-reference"}
"""Kinds of UI parts that are kept as they are -> the feature that a version needs for them, if it is not called so."""


class PartWriter:
    """Makes UI parts, and notes what is lost on the way at `place`."""

    def __init__(self, view: View, losses: list[Loss]) -> None:
        """Write for a view; losses are added to the list."""
        self.view = view
        self.losses = losses
        self.place: tuple[int, int] = (0, 0)
        """Numbers of the message and of its part."""
        self._citations = "citations" in view.features

    def lose(self, feature: str, reason: str) -> None:
        """Note a loss where the writer stands."""
        message, part = self.place
        self.losses.append(Loss(feature=feature, path=f"$[{message}].parts[{part}]", reason=reason))

    def text(self, part: TextPieces) -> UIPartJson:
        """Text; a preview where the whole is a blob."""
        said: UIPartJson = {"type": "text", "text": part.text}
        if part.citations is not UNSET:
            self._add_citations(said, part.citations)
        return self._finish_text(part, said)

    def reasoning(self, part: ReasoningPieces) -> UIPartJson:
        """Reasoning, with the signature that its provider wants back."""
        return self._finish_text(part, {"type": "reasoning", "text": part.text})

    def file(self, part: FilePieces) -> UIPartJson:
        """A file by its address, or with its bytes in a data URL."""
        address = self._address(part)
        if address is None:
            self.lose("file-address", "AI SDK takes http(s) and data URLs only; the file is told of as data")
            return self.own_part(part)
        said: UIPartJson = {"type": "file", "mediaType": part.media_type, "url": address}
        if part.filename is not UNSET:
            said["filename"] = part.filename
        add_provider(said, "providerMetadata", part.provider)
        return said

    def source_url(self, part: SourceUrlPieces) -> UIPartJson:
        """A web page."""
        said: UIPartJson = {"type": "source-url", "sourceId": part.source_id, "url": part.url}
        if part.title is not UNSET:
            said["title"] = part.title
        part.source_id = part.url = part.title = UNSET
        add_provider(said, "providerMetadata", part.provider)
        return said

    def source_document(self, part: SourceDocumentPieces) -> UIPartJson:
        """A document."""
        said: UIPartJson = {
            "type": "source-document",
            "sourceId": part.source_id,
            "mediaType": part.media_type,
            "title": part.title,
        }
        if part.filename is not UNSET:
            said["filename"] = part.filename
        part.source_id = part.media_type = part.title = part.filename = UNSET
        add_provider(said, "providerMetadata", part.provider)
        return said

    def data(self, part: DataPieces) -> UIPartJson:
        """An application's data under its name."""
        if part.name is UNSET or part.name.startswith(RESERVED):
            return self.own_part(part)
        said: UIPartJson = {"type": f"data-{part.name}", "data": part.data}
        if part.id is not UNSET:
            said["id"] = part.id
        part.name = part.data = UNSET
        return said

    def unknown(self, part: UnknownPieces) -> UIPartJson:
        """A kind that only a newer AI SDK has, or that nobody knows."""
        if part.metadata is not UNSET and part.data is not UNSET and marks_of(part.metadata).ui_part:
            feature = _UI_PARTS.get(str(part.kind), str(part.kind))
            if feature in self.view.features:
                return cast("UIPartJson", part.data)
            self.lose(feature, f"AI SDK {self.view.version} does not know it; it is told of as data")
        return self.own_part(part)

    def own_part(self, part: PartPieces) -> UIPartJson:
        """Any part as data of ours, whole."""
        whole = Raw(msgspec.json.encode(part))
        for name in part.__struct_fields__:
            setattr(part, name, UNSET)
        return {"type": OWN_PART, "data": whole}

    def _finish_text(self, part: TextPieces | ReasoningPieces, said: UIPartJson) -> UIPartJson:
        part.text = UNSET
        if part.state is not UNSET:
            said["state"] = part.state
        if part.provider is not UNSET:
            add_provider(said, "providerMetadata", part.provider)
        if part.blob is not UNSET:
            self.lose("large-text", "only a preview is shown; the whole is a blob of the store")
        return said

    def _add_citations(self, said: UIPartJson, citations: Raw) -> None:
        if not self._citations:
            self.lose("citations", f"AI SDK {self.view.version} has no citations on text")
            return
        found = [_citation(citation) for citation in msgspec.json.decode(citations, type=list[Citation])]
        told = [citation for citation in found if citation is not None]
        if told:
            said["citations"] = told

    def _address(self, part: FilePieces) -> Raw | str | None:
        if part.data is not UNSET and part.media_type is not UNSET:
            data, part.data = memoryview(part.data)[1:], Raw(b'""')
            return Raw(b'"data:%b;base64,%b' % (bytes(memoryview(part.media_type)[1:-1]), data))
        if part.blob is not UNSET and self.view.blob_url is not None:
            return self.view.blob_url(msgspec.json.decode(part.blob, type=BlobRef))
        if part.url is not UNSET and _ADDRESS.match(part.url):
            url, part.url = part.url, UNSET
            return url
        return None


def add_provider(said: UIPartJson, key: str, provider: ProviderPieces | msgspec.UnsetType) -> None:
    """Say what the provider wants back under its name; taken out of the pieces where it can be put back."""
    if provider is UNSET or not provider.opaque:
        return
    words = to_sdk_words(provider.name, provider.opaque)
    if words is None:
        words = provider.opaque
    else:
        provider.opaque = UNSET
    said[key] = {provider.name: words}


def _citation(citation: Citation) -> UIPartJson | None:
    """A citation in AI SDK's words, its own where it said it; None where it has no source that can be named."""
    try:
        return cast("UIPartJson", check_citation(citation.metadata[KEY]))
    except (KeyError, ShapeError):
        pass
    if not citation.url:
        return None
    source: UIPartJson = {"type": "source", "sourceType": "url", "id": citation.url, "url": citation.url}
    if citation.title is not None:
        source["title"] = citation.title
    said: UIPartJson = {"source": source}
    optional = {
        "startIndex": citation.start_index,
        "endIndex": citation.end_index,
        "citedText": citation.cited_text,
    }
    return said | {name: value for name, value in optional.items() if value is not None}
