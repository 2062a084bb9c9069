"""Message bodies: canonical JSON, with large texts and all binary data moved out into blobs.

`externalize` and `resolve` are inverses. `structured` results are never part of a body; they stay in the archived
record. `frames` stores bodies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from turnlog.errors import NotFoundError
from turnlog.model import (
    BlobRef,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResult,
)
from turnlog.model.codec import decode_message, encode, encode_known, repair_text

TEXT_LIMIT = 65536
"""A text of more characters (JSON: bytes) becomes a blob."""

PREVIEW_LENGTH = 8000
"""Characters of a large text that the body keeps."""

LARGE = 8 << 20
"""Bytes from which on a content is hashed, compressed and written in pieces."""

_PIECE = 1 << 20

JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"


class ExternalContent(NamedTuple):
    """A large or binary content that is moved from a message to the blobs table."""

    sha256: bytes
    media_type: str | None
    size: int
    data: bytes | memoryview | str
    """Of a text the UTF-8, or the text itself where it is so large that two forms of it should not be in memory."""

    @property
    def is_large(self) -> bool:
        """Whether it should be handled in pieces."""
        return self.size >= LARGE

    def pieces(self) -> Iterator[bytes | memoryview]:
        """All its bytes, about a megabyte at a time."""
        return _pieces(self.data)


def _pieces(data: bytes | memoryview | str) -> Iterator[bytes | memoryview]:
    if isinstance(data, str):
        for start in range(0, len(data), _PIECE):
            yield repair_text(data[start : start + _PIECE]).encode()
        return
    view = memoryview(data)
    for start in range(0, len(view), _PIECE):
        yield view[start : start + _PIECE]


def pack(message: Message) -> bytes:
    """The JSON of a body, from an externalized message that may contain fields this version does not know."""
    return encode(message)


def pack_fresh(message: Message) -> bytes:
    """Like `pack`, for a message that an agent's module has just made, which contains nothing unknown."""
    return encode_known(message)


def decode(body: bytes) -> Message:
    """Decode the JSON of a body. Contents stay externalized."""
    return decode_message(body)


def externalize(message: Message, blobs: list[ExternalContent]) -> Message:
    """Replace large contents by previews and references; the contents are appended to `blobs`."""
    for part in message.parts:
        if _is_large(part):
            parts = tuple([_externalize_part(part, blobs) for part in message.parts])
            return msgspec.structs.replace(message, parts=parts)
    return message


def resolve(message: Message, load: Callable[[BlobRef], bytes]) -> Message:
    """Undo `externalize`; `load` returns the bytes of a reference. What it does not find stays a reference."""
    return msgspec.structs.replace(message, parts=tuple([_resolve_part(part, load) for part in message.parts]))


def _is_large(part: Part) -> bool:
    # This runs for every part of an import: plain loops, the most common kinds first.
    if isinstance(part, ToolCallPart):
        if _has_large_input(part):
            return True
        for result in part.results:
            if result.structured is not UNSET:
                return True
            for block in result.content:
                if _is_large(block):
                    return True
        return False
    if isinstance(part, TextPart | ReasoningPart):
        return len(part.text) > TEXT_LIMIT
    return isinstance(part, FilePart) and part.data is not None


def _has_large_input(part: ToolCallPart) -> bool:
    if part.input is not UNSET:
        return len(memoryview(part.input)) > TEXT_LIMIT
    return part.input_text is not None and len(part.input_text) > TEXT_LIMIT


def _externalize_part(part: Part, blobs: list[ExternalContent]) -> Part:
    if not _is_large(part):
        return part
    if isinstance(part, TextPart | ReasoningPart):
        return _externalize_text(part, blobs)
    if isinstance(part, FilePart):
        return _externalize_file(part, blobs)
    assert isinstance(part, ToolCallPart)
    results = tuple([_externalize_result(result, blobs) for result in part.results])
    part = msgspec.structs.replace(part, results=results)
    return _externalize_input(part, blobs) if _has_large_input(part) else part


def _externalize_text(part: TextPart | ReasoningPart, blobs: list[ExternalContent]) -> TextPart | ReasoningPart:
    reference = _add(blobs, _utf8(part.text), TEXT_TYPE)
    return msgspec.structs.replace(part, text=part.text[:PREVIEW_LENGTH], blob=reference)


def _externalize_file(part: FilePart, blobs: list[ExternalContent]) -> FilePart:
    assert part.data is not None
    return msgspec.structs.replace(part, data=None, blob=_add(blobs, part.data, part.media_type))


def _externalize_input(part: ToolCallPart, blobs: list[ExternalContent]) -> ToolCallPart:
    if part.input is not UNSET:
        data, kind = memoryview(part.input), JSON_TYPE
        preview = bytes(data[: PREVIEW_LENGTH * 4]).decode("utf-8", "ignore")[:PREVIEW_LENGTH]
    else:
        data, kind = _utf8(part.input_text or ""), TEXT_TYPE
        preview = repair_text((part.input_text or "")[:PREVIEW_LENGTH])
    reference = _add(blobs, data, kind)
    return msgspec.structs.replace(part, input=UNSET, input_text=preview, input_blob=reference)


def _externalize_result(result: ToolResult, blobs: list[ExternalContent]) -> ToolResult:
    content = tuple([_externalize_part(part, blobs) for part in result.content])
    return msgspec.structs.replace(result, content=content, structured=UNSET)


def _utf8(text: str) -> bytes | str:
    """The bytes of a text, which a large one has only piece by piece."""
    return text if len(text) >= LARGE else repair_text(text).encode()


def _add(blobs: list[ExternalContent], data: bytes | memoryview | str, media_type: str) -> BlobRef:
    digest, size = hashlib.sha256(), 0
    for piece in _pieces(data):
        digest.update(piece)
        size += len(piece)
    blobs.append(ExternalContent(digest.digest(), media_type, size, data))
    return BlobRef(sha256=digest.hexdigest(), size=size, media_type=media_type)


def _resolve_part(part: Part, load: Callable[[BlobRef], bytes]) -> Part:
    try:
        if isinstance(part, TextPart | ReasoningPart) and part.blob is not None:
            return msgspec.structs.replace(part, text=load(part.blob).decode(), blob=None)
        if isinstance(part, FilePart) and part.blob is not None:
            return msgspec.structs.replace(part, data=load(part.blob), blob=None)
        if isinstance(part, ToolCallPart):
            return _resolve_call(part, load)
    except NotFoundError:
        # On a hub, messages may come before their large contents: the preview and the reference stay.
        return part
    return part


def _resolve_call(part: ToolCallPart, load: Callable[[BlobRef], bytes]) -> ToolCallPart:
    results = tuple([_resolve_result(result, load) for result in part.results])
    reference = part.input_blob
    if reference is None:
        return msgspec.structs.replace(part, results=results) if results != part.results else part
    data = load(reference)
    if reference.media_type == JSON_TYPE:
        return msgspec.structs.replace(part, results=results, input=msgspec.Raw(data), input_text=None, input_blob=None)
    return msgspec.structs.replace(part, results=results, input_text=data.decode(), input_blob=None)


def _resolve_result(result: ToolResult, load: Callable[[BlobRef], bytes]) -> ToolResult:
    content = tuple([_resolve_part(part, load) for part in result.content])
    return result if content == result.content else msgspec.structs.replace(result, content=content)
