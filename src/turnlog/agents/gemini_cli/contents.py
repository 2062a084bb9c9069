"""The API's contents: a text, a part, or a list of both. They become parts of the model, and function results.

A part of an unknown kind keeps its JSON.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import clean_json
from turnlog.agents.gemini_cli.records import Blob, FunctionResponse, WirePart, compact, fields_of
from turnlog.model import DataPart, FilePart, Part, ProviderData, TextPart, UnknownPart

PROVIDER = "google"


class ContentPart(NamedTuple):
    """A part as it was logged, its exact JSON, and its place in the content, counted from 0."""

    wire: WirePart
    raw: Raw
    number: int

    @property
    def is_thought(self) -> bool:
        """Whether it is reasoning."""
        return bool(self.wire.thought) and self.wire.text is not None

    @property
    def is_text(self) -> bool:
        """Whether it is visible text."""
        return self.wire.text is not None and not self.wire.thought

    @property
    def is_file(self) -> bool:
        """Whether it holds a file or names one."""
        return self.wire.inline_data is not None or self.wire.file_data is not None


class FunctionResult(NamedTuple):
    """What a call returned."""

    call_id: str
    name: str
    content: tuple[Part, ...]
    is_error: bool


def parse_parts(content: Raw | UnsetType) -> list[ContentPart]:
    """The parts of a content. A part that is not understood is empty, and has its JSON."""
    if content is UNSET:
        return []
    data = clean_json(bytes(content)).strip()
    items = [Raw(data)]
    if data[:1] == b"[":
        items = msgspec.json.decode(data, type=list[Raw])
    return [
        ContentPart(_decode_part(bytes(item)), item, number)
        for number, item in enumerate(items)
        if bytes(item) != b"null"
    ]


def joined_text(parts: Iterable[ContentPart]) -> str:
    """The visible text of all parts."""
    return "".join([part.wire.text or "" for part in parts if part.is_text])


def to_part(part: ContentPart, part_id: str | None) -> Part:
    """The part of the model for a text, a file or something unknown (not for a call or a response)."""
    wire = part.wire
    if wire.text is not None:
        return TextPart(id=part_id, text=wire.text, provider=provider_data(part, None))
    blob = wire.inline_data or wire.file_data
    found = _file_part(blob, part_id) if blob is not None else None
    return found or UnknownPart(id=part_id, kind=_kind_in(part.raw), data=compact(part.raw))


def provider_data(part: ContentPart, model: str | None) -> ProviderData | None:
    """The signature without which the API does not accept the part in a later request."""
    signature = part.wire.thought_signature
    return ProviderData(name=PROVIDER, model=model, opaque={"thoughtSignature": signature}) if signature else None


def split_responses(parts: Iterable[ContentPart]) -> tuple[list[FunctionResult], list[ContentPart]]:
    """The function results in a content, and the parts that belong to none.

    A tool that returns a file puts it behind its response, as a part of its own: it belongs to that result.
    """
    found: list[FunctionResult] = []
    others: list[ContentPart] = []
    for part in parts:
        if part.wire.function_response is not None:
            found.append(_function_result(part.wire.function_response))
        elif found and part.is_file:
            found[-1] = found[-1]._replace(content=(*found[-1].content, to_part(part, None)))
        else:
            others.append(part)
    return found, others


def _function_result(response: FunctionResponse) -> FunctionResult:
    body = response.response
    raw = compact(body) if isinstance(body, Raw) else Raw(b"null")
    fields = fields_of(raw)
    is_error = "error" in fields and fields["error"] != Raw(b"null")
    text = _text_of(fields.get("error" if is_error else "output"))
    content: list[Part] = [] if text is None else [TextPart(text=text)]
    if text is None and body is not UNSET:
        content.append(DataPart(name=response.name or "response", data=raw))
    content += [to_part(part, None) for item in response.parts or () for part in parse_parts(item)]
    return FunctionResult(response.id or "", response.name or "", tuple(content), is_error)


def _text_of(value: Raw | None) -> str | None:
    if value is None:
        return None
    data = bytes(value)
    return msgspec.json.decode(data, type=str) if data[:1] == b'"' else data.decode()


def _decode_part(data: bytes) -> WirePart:
    try:
        if data[:1] == b'"':
            return WirePart(text=msgspec.json.decode(data, type=str))
        return msgspec.json.decode(data, type=WirePart)
    except msgspec.MsgspecError:
        return WirePart()


def _kind_in(raw: Raw) -> str:
    return next((name for name in fields_of(raw) if name != "thoughtSignature"), "part")


def _file_part(blob: Blob, part_id: str | None) -> FilePart | None:
    media_type = blob.mime_type or "application/octet-stream"
    if blob.file_uri is not None:
        return FilePart(id=part_id, media_type=media_type, url=blob.file_uri, filename=blob.display_name)
    try:
        data = binascii.a2b_base64(blob.data or "", strict_mode=True)
    except (binascii.Error, ValueError):
        return None
    return FilePart(id=part_id, media_type=media_type, data=data, filename=blob.display_name) if data else None
