"""Files, sources and data of a stream: events that are one chunk, and hold no part open."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import UNSET

from turnlog.aisdk.chunks import DataChunk, FileChunk, SourceDocumentChunk, SourceUrlChunk
from turnlog.aisdk.versions import SdkVersion, supports
from turnlog.aisdk.writer_base import Lose, RefusedEvent
from turnlog.aisdk.writer_values import address_of, metadata_of, plain_json
from turnlog.model.parts import SourceUrlPart
from turnlog.model.stream import DataEvent, FileEvent, SourceEvent


class ToldData(NamedTuple):
    """A data chunk, and whether it is a new part of the message."""

    chunk: DataChunk
    is_part: bool


class Content:
    """Makes the chunks of one stream; each method raises RefusedEvent for what a client cannot use."""

    def __init__(self, release: SdkVersion, lose: Lose) -> None:
        """Write for a release."""
        self._lose = lose
        self._has_file_metadata = supports(release, "file-metadata")
        self._data_ids = set[tuple[str, str]]()

    def file(self, event: FileEvent) -> FileChunk:
        """A file, by an address that the client can reach."""
        address = address_of(event.file)
        if address is None:
            raise RefusedEvent("a client cannot reach the file: neither bytes nor an http(s) or data URL")
        metadata = metadata_of(event.file.provider)
        if event.file.filename is not None:
            self._lose("file-name", "a stream has no field for the name of a file")
        if metadata is not UNSET and not self._has_file_metadata:
            self._lose("file-metadata", "this release keeps no metadata on streamed files")
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

    def data(self, event: DataEvent) -> ToldData:
        """Data of the application; what comes again under its id takes the place of what was there."""
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
        return ToldData(chunk, is_part)
