"""The API's contents (a text, a part, or a list of both) -> parts and results. What is not known keeps its JSON."""

from __future__ import annotations

import binascii
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import clean_json
from turnlog.agents.gemini_cli import records
from turnlog.agents.gemini_cli.records import compact, fields_of
from turnlog.model import DataPart, FilePart, Part, ProviderData, TextPart, UnknownPart

PROVIDER = "google"


class Piece(NamedTuple):
    """A part as it was logged, its exact JSON, and its rank in the content."""

    part: records.Part
    raw: Raw
    rank: int

    @property
    def is_thought(self) -> bool:
        """Whether the model thought it."""
        return bool(self.part.thought) and self.part.text is not None

    @property
    def is_text(self) -> bool:
        """Whether it was said."""
        return self.part.text is not None and not self.part.thought


class Response(NamedTuple):
    """What a call returned."""

    call_id: str
    name: str
    content: tuple[Part, ...]
    text: str
    is_error: bool


def pieces_of(content: Raw | UnsetType) -> list[Piece]:
    """The parts of a content."""
    if content is UNSET:
        return []
    data = clean_json(bytes(content)).strip()
    items = [Raw(data)]
    if data[:1] == b"[":
        items = msgspec.json.decode(data, type=list[Raw])
    return [Piece(_part_of(bytes(item)), item, index) for index, item in enumerate(items) if bytes(item) != b"null"]


def spoken_in(pieces: Iterable[Piece]) -> str:
    """All text that was said, as one."""
    return "".join([piece.part.text or "" for piece in pieces if piece.is_text])


def part_of(piece: Piece, part_id: str | None) -> Part:
    """The part that a piece becomes, when it is no thought, call or response."""
    part = piece.part
    if part.text is not None:
        return TextPart(id=part_id, text=part.text, provider=signature_of(piece, None))
    blob = part.inline_data or part.file_data
    found = _file_part(blob, part_id) if blob is not None else None
    return found or UnknownPart(id=part_id, kind=_kind_in(piece.raw), data=compact(piece.raw))


def signature_of(piece: Piece, model: str | None) -> ProviderData | None:
    """The proof without which the provider does not take a call or a thought back."""
    signature = piece.part.thought_signature
    return ProviderData(name=PROVIDER, model=model, opaque={"thoughtSignature": signature}) if signature else None


def responses_in(pieces: Iterable[Piece]) -> tuple[list[Response], list[Piece]]:
    """The results in a content, each with the files that follow it, and what is none."""
    found: list[Response] = []
    others: list[Piece] = []
    for piece in pieces:
        if piece.part.function_response is not None:
            found.append(_response_of(piece.part.function_response))
        elif found and (piece.part.inline_data or piece.part.file_data):
            found[-1] = found[-1]._replace(content=(*found[-1].content, part_of(piece, None)))
        else:
            others.append(piece)
    return found, others


def _response_of(response: records.FunctionResponse) -> Response:
    body = response.response
    raw = compact(body) if isinstance(body, Raw) else Raw(b"null")
    fields = fields_of(raw)
    is_error = "error" in fields and fields["error"] != Raw(b"null")
    text = _text_of(fields.get("error" if is_error else "output"))
    content: list[Part] = [] if text is None else [TextPart(text=text)]
    if text is None and body is not UNSET:
        content.append(DataPart(name=response.name or "response", data=raw))
    content += [part_of(piece, None) for item in response.parts or () for piece in pieces_of(item)]
    return Response(response.id or "", response.name or "", tuple(content), text or bytes(raw).decode(), is_error)


def _text_of(value: Raw | None) -> str | None:
    if value is None:
        return None
    data = bytes(value)
    return msgspec.json.decode(data, type=str) if data[:1] == b'"' else data.decode()


def _part_of(data: bytes) -> records.Part:
    try:
        if data[:1] == b'"':
            return records.Part(text=msgspec.json.decode(data, type=str))
        return msgspec.json.decode(data, type=records.Part)
    except msgspec.MsgspecError:
        return records.Part()


def _kind_in(raw: Raw) -> str:
    return next((name for name in fields_of(raw) if name != "thoughtSignature"), "part")


def _file_part(blob: records.Blob, part_id: str | None) -> FilePart | None:
    media_type = blob.mime_type or "application/octet-stream"
    if blob.file_uri is not None:
        return FilePart(id=part_id, media_type=media_type, url=blob.file_uri, filename=blob.display_name)
    try:
        data = binascii.a2b_base64(blob.data or "", strict_mode=True)
    except (binascii.Error, ValueError):
        return None
    return FilePart(id=part_id, media_type=media_type, data=data, filename=blob.display_name) if data else None
