"""Content and files of a history as a provider accepts them.

`load_blobs` puts back the content that a store keeps outside its messages. Where it cannot be loaded, the preview is
sent and reported. `fit_files` replaces each file that the provider does not accept with a text that says so. An image's
type and size are read from its first bytes; nothing is decoded or scaled.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec import UNSET

from turnlog.errors import TurnlogError
from turnlog.model import BlobRef, FilePart, Message, Part, ReasoningPart, TextPart, ToolCallPart
from turnlog.providers.base import LossKind, Report, RequestOptions
from turnlog.providers.request_parts import proof

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
        if all(type(part) is TextPart and part.blob is None for part in message.parts):
            return message
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


_MIB = 1024 * 1024


class FileLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider takes."""

    images: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
    files: frozenset[str] = frozenset()
    """Media types besides images; `audio/*` means all of its kind."""
    file_addresses: bool = True
    """Whether a file may be an http(s) address; an image always may."""
    file_references: bool = False
    """Whether a file may be the id under which the provider has it."""
    image_references: bool = False
    image_bytes: int = 20 * _MIB
    """Of one image, in Base64."""
    file_bytes: int = 50 * _MIB
    image_pixels: int | None = None
    """Of the longer side."""
    whole_images: bool = False
    """Whether images of which the end is missing are not taken."""
    most_images: int = 500
    """In one request; the newest are sent."""
    many_images: int | None = None
    """More images than this in one request may have only `many_pixels`."""
    many_pixels: int | None = None


def fit_files(
    messages: Sequence[Message], limits: FileLimits, options: RequestOptions, report: Report
) -> list[Message]:
    """The messages with every file that the provider takes, and a text for every one that it does not."""
    fitting = _Fitting(limits, options, sum(_count_images(message) for message in messages))
    # From the newest backwards, so that the newest files get what room there is.
    fitted = [fitting.message(message) for message in reversed(messages)]
    report.losses += reversed(fitting.losses.losses)
    return fitted[::-1]


class _Refusal(msgspec.Struct, frozen=True):
    """Why a file is not sent."""

    kind: LossKind
    reason: str


_TITLES: dict[LossKind, str] = {
    "image-omitted": "image omitted from request",
    "image-unavailable": "image unavailable",
    "image-unsupported": "image not sent",
    "file-unsupported": "file not sent",
    "assistant-file": "file made by the model, not sent back",
}


class _Fitting:
    def __init__(self, limits: FileLimits, options: RequestOptions, images: int) -> None:
        self._limits = limits
        self._options = options
        self._room = options.inline_budget
        self._images = images
        self._images_left = limits.most_images
        self.losses = Report()

    def message(self, message: Message) -> Message:
        if all(type(part) is TextPart for part in message.parts):
            return message
        parts = self._parts(message.parts, message)
        return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)

    def _parts(self, parts: tuple[Part, ...], message: Message, call: str | None = None) -> tuple[Part, ...]:
        fitted = [self._part(part, message, call) for part in reversed(parts)][::-1]
        if message.role == "assistant" and call is None:
            fitted = [_apart(part, index, parts) for index, part in enumerate(fitted)]
        return tuple(fitted)

    def _part(self, part: Part, message: Message, call: str | None) -> Part:
        if isinstance(part, ToolCallPart):
            return self._call(part, message)
        if not isinstance(part, FilePart):
            return part
        text = _text_of(part) if not self._takes(part.media_type) else None
        if text is not None:
            return TextPart(id=part.id, text=text)
        part = _with_real_type(part)
        refusal = self._refusal(part, message, call)
        if refusal is None:
            return part
        self.losses.lose(refusal.kind, message.id, f"{_name(part)}: {refusal.reason}", part=part.id, call=call)
        return TextPart(id=part.id, text=_placeholder(part, refusal))

    def _call(self, call: ToolCallPart, message: Message) -> ToolCallPart:
        if call.provider_executed:
            return call
        results = tuple(
            msgspec.structs.replace(result, content=self._parts(result.content, message, call.tool_call_id))
            for result in reversed(call.results)
        )
        return msgspec.structs.replace(call, results=results[::-1])

    def _refusal(self, part: FilePart, message: Message, call: str | None) -> _Refusal | None:
        if message.role == "assistant" and call is None:
            return _Refusal("assistant-file", "a model does not get back what it made")
        if proof(part, "file_id") is not None:
            return self._check_reference(part)
        checks: tuple[Callable[[FilePart], _Refusal | None], ...] = (
            self._check_type,
            self._check_bytes,
            self._check_pixels,
            self._check_room,
        )
        return next((refusal for check in checks if (refusal := check(part)) is not None), None)

    def _check_type(self, part: FilePart) -> _Refusal | None:
        if not self._options.vision:
            kind: LossKind = "image-unsupported" if _is_image(part) else "file-unsupported"
            return _Refusal(kind, "the model does not take it")
        if part.data is None and not _is_web_address(part.url):
            kind = "image-unavailable" if _is_image(part) else "file-unsupported"
            return _Refusal(kind, "its bytes are not there")
        if part.data is None and not _is_image(part) and not self._limits.file_addresses:
            return _Refusal("file-unsupported", "its address is not taken in its place")
        if _is_image(part) and part.data is not None and image_type(part.data) is None:
            return _Refusal("image-unavailable", "its bytes are no image")
        if self._limits.whole_images and _is_image(part) and part.data is not None and is_cut(part.data):
            return _Refusal("image-unavailable", "the image is damaged: its end is missing")
        if not self._takes(part.media_type):
            kind = "image-unsupported" if _is_image(part) else "file-unsupported"
            return _Refusal(kind, f"{part.media_type} is not taken")
        return None

    def _check_reference(self, part: FilePart) -> _Refusal | None:
        """Of a file that the provider has, only its kind is known."""
        kind: LossKind = "image-unsupported" if _is_image(part) else "file-unsupported"
        if not self._options.vision:
            return _Refusal(kind, "the model does not take it")
        takes = self._limits.image_references if _is_image(part) else self._limits.file_references
        return None if takes else _Refusal(kind, "an id of a file is not taken in its place")

    def _takes(self, media_type: str) -> bool:
        major = media_type.partition("/")[0]
        known = self._limits.images | self._limits.files
        return media_type in known or f"{major}/*" in known or media_type == "image/*"

    def _check_bytes(self, part: FilePart) -> _Refusal | None:
        most = self._limits.image_bytes if _is_image(part) else self._limits.file_bytes
        size = _encoded_size(part)
        if size <= most:
            return None
        kind: LossKind = "image-omitted" if _is_image(part) else "file-unsupported"
        return _Refusal(kind, f"larger than {most // 1024} KB")

    def _check_pixels(self, part: FilePart) -> _Refusal | None:
        limits, size = self._limits, image_size(part.data) if part.data is not None and _is_image(part) else None
        most = limits.image_pixels
        if limits.many_images is not None and self._images > limits.many_images:
            most = limits.many_pixels
        if size is None or most is None or max(size) <= most:
            return None
        return _Refusal("image-omitted", f"{size[0]} x {size[1]} pixels, at most {most} are taken")

    def _check_room(self, part: FilePart) -> _Refusal | None:
        """What fits is a run of the newest: once one does not, no older one is sent."""
        if _is_image(part) and self._images_left == 0:
            return _Refusal("image-omitted", f"newer ones: at most {self._limits.most_images} images are taken")
        size = _encoded_size(part)
        if size <= self._room:
            self._room -= size
            self._images_left -= _is_image(part)
            return None
        self._room = 0
        kind: LossKind = "image-omitted" if _is_image(part) else "file-unsupported"
        return _Refusal(kind, "newer files have taken the room that a request has")


def _apart(fitted: Part, index: int, parts: tuple[Part, ...]) -> Part:
    """The text that replaces a file in an answer, on its own line: neighbouring texts of an answer are joined."""
    if fitted is parts[index] or not isinstance(fitted, TextPart):
        return fitted
    before = "\n" if index > 0 and isinstance(parts[index - 1], TextPart) else ""
    behind = "\n" if index + 1 < len(parts) and isinstance(parts[index + 1], TextPart) else ""
    return msgspec.structs.replace(fitted, text=f"{before}{fitted.text}{behind}")


def _count_images(message: Message) -> int:
    results = [result for part in message.parts if isinstance(part, ToolCallPart) for result in part.results]
    parts = [*message.parts, *(part for result in results for part in result.content)]
    return sum(isinstance(part, FilePart) and _is_image(part) for part in parts)


def _is_image(part: FilePart) -> bool:
    return part.media_type.startswith("image/")


def _is_web_address(url: str | None) -> bool:
    return url is not None and url.startswith(("http://", "https://"))


def _with_real_type(part: FilePart) -> FilePart:
    """What an image is called, corrected by its bytes: an API refuses a PNG that is said to be a JPEG."""
    kind = image_type(part.data) if part.data is not None and _is_image(part) else None
    return part if kind in (None, part.media_type) else msgspec.structs.replace(part, media_type=kind)


def _text_of(part: FilePart) -> str | None:
    """The content of a text file, for a provider that does not take it as a file."""
    if part.data is None or not part.media_type.startswith("text/"):
        return None
    text = part.data.decode(errors="replace")
    return f"[file {_name(part)}]\n{text}"


def _encoded_size(part: FilePart) -> int:
    return 0 if part.data is None else (len(part.data) + 2) // 3 * 4


def _name(part: FilePart) -> str:
    if part.filename:
        return part.filename
    return part.url if _is_web_address(part.url) and part.url is not None else part.media_type


def _placeholder(part: FilePart, refusal: _Refusal) -> str:
    size = len(part.data) if part.data is not None else part.blob.size if part.blob is not None else None
    shown_size = f" size={max(1, size // 1024)}KB" if size is not None else ""
    return f"[{_TITLES[refusal.kind]}: {refusal.reason}; source={_name(part)}{shown_size}]"


_SIGNATURES: tuple[tuple[bytes, int, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF87a", 0, "image/gif"),
    (b"GIF89a", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
    (b"ftypheic", 4, "image/heic"),
    (b"ftypmif1", 4, "image/heif"),
)
"""Bytes, their offset, and the type that begins so."""


def image_type(data: bytes) -> str | None:
    """The media type by the first bytes; None if they are not an image that any model takes."""
    return next((kind for magic, at, kind in _SIGNATURES if data.startswith(magic, at)), None)


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None where the format is not read here or the header is broken."""
    measure = _MEASURES.get(image_type(data) or "")
    if measure is None:
        return None
    try:
        return measure(data)
    except (struct.error, IndexError):
        return None


def _png(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """The frame header; C4, C8 and CC are other segments of the same range."""
    at = 2
    while at < len(data):
        marker, length = struct.unpack_from(">xBH", data, at)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + length
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    """Lossy, lossless and extended files have the size in different places."""
    chunk = data[12:16]
    if chunk == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if chunk == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    return None


_MEASURES: dict[str, Callable[[bytes], tuple[int, int] | None]] = {
    "image/png": _png,
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/webp": _webp,
}


def is_cut(data: bytes) -> bool:
    """Whether the end of an image is missing, as far as its format marks it. Bytes behind that are no damage."""
    has_end = _ENDS.get(image_type(data) or "")
    return has_end is not None and not has_end(data)


def _has_png_end(data: bytes) -> bool:
    return b"\0\0\0\0IEND\xaeB`\x82" in data


def _has_jpeg_end(data: bytes) -> bool:
    """Whether the mark of the end is behind the first scan: a small picture in a header has one of its own."""
    at = 2
    try:
        while at < len(data):
            marker, length = struct.unpack_from(">xBH", data, at)
            if marker == _JPEG_FILL:
                at += 1
                continue
            if marker == _JPEG_SCAN:
                return data.find(b"\xff\xd9", at + 2 + length) >= 0
            at += 2 + length
    except struct.error:
        return False
    return False


def _has_gif_end(data: bytes) -> bool:
    """Every block ends with a zero; the trailer is behind the last one."""
    return b"\0;" in data


def _has_webp_end(data: bytes) -> bool:
    return len(data) >= 8 + int.from_bytes(data[4:8], "little")


_JPEG_SCAN = 0xDA
_JPEG_FILL = 0xFF

_ENDS: dict[str, Callable[[bytes], bool]] = {
    "image/png": _has_png_end,
    "image/jpeg": _has_jpeg_end,
    "image/gif": _has_gif_end,
    "image/webp": _has_webp_end,
}
