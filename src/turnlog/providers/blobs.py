"""Whole contents for a history that a store has shortened: previews become texts again, references bytes.

Where the bytes cannot be had, a preview is sent as it is and reported; a missing image is told by `files`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec import UNSET

from turnlog.errors import TurnlogError
from turnlog.model import BlobRef, FilePart, Message, Part, ReasoningPart, TextPart, ToolCallPart
from turnlog.providers.base import Report, RequestOptions

TextT = TypeVar("TextT", TextPart, ReasoningPart)


def load_blobs(messages: Iterable[Message], options: RequestOptions, report: Report) -> list[Message]:
    """The messages with every content in its place, as far as `options.load_blob` has it."""
    loader = _Loader(options, report)
    return [loader.message(message) for message in messages]


class _Loader:
    def __init__(self, options: RequestOptions, report: Report) -> None:
        self._load = options.load_blob
        self._load_file = options.load_file
        self._report = report

    def message(self, message: Message) -> Message:
        parts = tuple([self._part(part, message) for part in message.parts])
        return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)

    def _part(self, part: Part, message: Message) -> Part:
        if isinstance(part, ToolCallPart):
            return self._call(part, message)
        if isinstance(part, TextPart):
            return self._text(part, message)
        if isinstance(part, ReasoningPart):
            return self._text(part, message)
        return self._file(part) if isinstance(part, FilePart) else part

    def _text(self, part: TextT, message: Message) -> TextT:
        data = self._whole(part.blob, part.id, message)
        return part if data is None else msgspec.structs.replace(part, text=data.decode(errors="replace"), blob=None)

    def _call(self, call: ToolCallPart, message: Message) -> ToolCallPart:
        results = tuple(
            msgspec.structs.replace(result, content=tuple([self._part(part, message) for part in result.content]))
            for result in call.results
        )
        call = msgspec.structs.replace(call, results=results)
        data = self._whole(call.input_blob, call.id, message)
        if data is None or call.input_blob is None:
            return call
        if call.input_blob.media_type == "application/json":
            return msgspec.structs.replace(call, input=msgspec.Raw(data), input_text=None, input_blob=None)
        text = data.decode(errors="replace")
        return msgspec.structs.replace(call, input=UNSET, input_text=text, input_blob=None)

    def _file(self, part: FilePart) -> FilePart:
        if part.blob is not None:
            data = self._load_or_none(part.blob)
        elif self._load_file is not None and part.url is not None and part.url.startswith("file:"):
            data = self._load_file(part)
        else:
            data = _data_of_url(part.url)
        return part if data is None else msgspec.structs.replace(part, data=data, blob=None, url=None)

    def _whole(self, blob: BlobRef | None, part_id: str | None, message: Message) -> bytes | None:
        if blob is None:
            return None
        data = self._load_or_none(blob)
        if data is None:
            self._report.lose("preview-only", message.id, f"only a preview of {blob.size} bytes is sent", part=part_id)
        return data

    def _load_or_none(self, blob: BlobRef | None) -> bytes | None:
        if blob is None or self._load is None:
            return None
        try:
            return self._load(blob)
        except TurnlogError:
            return None


def _data_of_url(url: str | None) -> bytes | None:
    """The bytes of a `data:` URL in Base64."""
    if url is None or not url.startswith("data:"):
        return None
    head, _, content = url.partition(",")
    if not head.endswith(";base64"):
        return None
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error:
        return None
