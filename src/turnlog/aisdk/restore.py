"""UI messages of ours -> the canonical history that they were made of: the inverse of `turnlog.aisdk.convert`.

Believes what `metadata.turnlog` and our data parts say, so it is only for messages that came out of a place of our
own; what comes from a browser is `turnlog.aisdk.receive`'s. Part by part, what the UI message says is put back into
the pieces that remained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.aisdk.convert_parts import OWN_MESSAGE, OWN_PART, shown_result
from turnlog.aisdk.json_text import output_text
from turnlog.aisdk.metadata import to_own_words
from turnlog.aisdk.raw_message import (
    CallPieces,
    DataPieces,
    FilePieces,
    MessagePieces,
    PartPieces,
    ProviderPieces,
    ReasoningPieces,
    SourceDocumentPieces,
    SourceUrlPieces,
    TextPieces,
    UnknownPieces,
    parse_part_pieces,
)
from turnlog.model import Message
from turnlog.model.codec import decode_message

_NO_BYTES: Final = Raw(b'""')
_BASE64: Final = b";base64,"

Fields = dict[str, Raw]
"""A UI part, key by key."""


class MismatchError(Exception):
    """The message does not say what its metadata was written for: somebody changed one of them."""


class _Own(msgspec.Struct):
    messages: list[MessagePieces]


class _Metadata(msgspec.Struct):
    turnlog: _Own | UnsetType = UNSET


class _UIMessage(msgspec.Struct):
    parts: list[Fields]
    metadata: _Metadata | UnsetType = UNSET


_decoder = msgspec.json.Decoder(_UIMessage)
_encoder = msgspec.json.Encoder()


def restore_messages(ui_message: bytes | Raw) -> list[Message] | None:
    """The canonical messages that a UI message was made of, in order; None when it holds no metadata of ours.

    Raises MismatchError when metadata and parts do not belong together.
    """
    try:
        decoded = _decoder.decode(ui_message)
    except msgspec.ValidationError as error:
        if b'"turnlog"' not in bytes(ui_message):
            return None
        raise MismatchError(str(error)) from error
    if decoded.metadata is UNSET or decoded.metadata.turnlog is UNSET:
        return None
    try:
        return list(_restore(decoded.parts, decoded.metadata.turnlog.messages))
    except (msgspec.ValidationError, KeyError, IndexError, ValueError) as error:
        raise MismatchError(f"its parts are not those of its metadata: {error}") from error


def _restore(said: list[Fields], remains: list[MessagePieces]) -> Iterator[Message]:
    """Messages in the order of their parts; data of ours stands between them."""
    place = 0
    for message in remains:
        while _type(said[place]) == OWN_MESSAGE:
            yield decode_message(said[place]["data"])
            place += 1
        if _type(said[place]) == "step-start" or not message.parts:
            # A part that only says where a message begins, or stands in for the parts it has not.
            place += 1
        if message.parts:
            mine = said[place : place + len(message.parts)]
            message.parts = [_put(part, fields) for part, fields in zip(message.parts, mine, strict=True)]
            place += len(mine)
        yield decode_message(_encoder.encode(message))
    for fields in said[place:]:
        if _type(fields) != OWN_MESSAGE:
            raise MismatchError("there are more parts than the metadata tells of")
        yield decode_message(fields["data"])


def _put(part: PartPieces, fields: Fields) -> PartPieces:
    kind = _type(fields)
    if kind == OWN_PART:
        return parse_part_pieces(fields["data"])
    expected, put = _PUTTERS[type(part)]
    if not kind.startswith(expected):
        raise MismatchError(f"a part {kind} stands where another should")
    put(part, fields)
    return part


def _put_text(part: TextPieces | ReasoningPieces, fields: Fields) -> None:
    part.text = fields["text"]
    _put_provider(part.provider, fields.get("providerMetadata"))


def _put_file(part: FilePieces, fields: Fields) -> None:
    _put_provider(part.provider, fields.get("providerMetadata"))
    if part.data is not UNSET and part.data == _NO_BYTES:
        part.data = Raw(b'"' + bytes(fields["url"]).partition(_BASE64)[2])
    elif part.data is UNSET and part.blob is UNSET:
        part.url = fields["url"]


def _put_source_url(part: SourceUrlPieces, fields: Fields) -> None:
    part.source_id, part.url = fields["sourceId"], fields["url"]
    part.title = fields.get("title", UNSET)
    _put_provider(part.provider, fields.get("providerMetadata"))


def _put_source_document(part: SourceDocumentPieces, fields: Fields) -> None:
    part.source_id, part.media_type, part.title = fields["sourceId"], fields["mediaType"], fields["title"]
    part.filename = fields.get("filename", UNSET)
    _put_provider(part.provider, fields.get("providerMetadata"))


def _put_data(part: DataPieces, fields: Fields) -> None:
    part.name, part.data = _type(fields).removeprefix("data-"), fields["data"]


def _put_unknown(part: UnknownPieces, fields: Fields) -> None:
    if part.data is UNSET:
        raise MismatchError(f"{_type(fields)} stands where nothing is known of it")


def _put_call(part: CallPieces, fields: Fields) -> None:
    if part.tool_call_id != fields["toolCallId"]:
        raise MismatchError("the call has another id")
    part.tool_name = fields["toolName"] if "toolName" in fields else _named(fields)
    if part.input is not UNSET:
        part.input = UNSET
    elif "input" in fields:
        part.input = fields["input"]
    _put_provider(part.provider, fields.get("callProviderMetadata"))
    if "output" in fields:
        _put_output(part, fields["output"])


def _put_output(part: CallPieces, output: Raw) -> None:
    result = shown_result(part)
    if result is None or not result.content:
        return
    content = result.content
    if len(content) == 1 and isinstance(content[0], TextPieces) and content[0].citations is UNSET:
        if content[0].text is UNSET:
            content[0].text = output_text(output)
        return
    said = msgspec.json.decode(output, type=list[Fields])
    result.content = [_put(piece, fields) for piece, fields in zip(content, said, strict=True)]


def _put_provider(provider: ProviderPieces | UnsetType, metadata: Raw | None) -> None:
    if provider is UNSET or provider.opaque is not UNSET or metadata is None:
        return
    words = msgspec.json.decode(metadata, type=dict[str, Fields]).get(provider.name)
    if words is not None:
        provider.opaque = to_own_words(provider.name, words)


def _type(fields: Fields) -> str:
    return msgspec.json.decode(fields["type"], type=str)


def _named(fields: Fields) -> Raw:
    return Raw(msgspec.json.encode(_type(fields).removeprefix("tool-")))


_PUTTERS: dict[type[PartPieces], tuple[str | tuple[str, ...], Callable[[Any, Fields], None]]] = {
    TextPieces: ("text", _put_text),
    ReasoningPieces: ("reasoning", _put_text),
    CallPieces: (("dynamic-tool", "tool-"), _put_call),
    FilePieces: ("file", _put_file),
    SourceUrlPieces: ("source-url", _put_source_url),
    SourceDocumentPieces: ("source-document", _put_source_document),
    DataPieces: ("data-", _put_data),
    UnknownPieces: ("", _put_unknown),
}
"""Kind of piece -> the UI part that says it, and how what that says is put back; a type ending in - is a prefix."""
