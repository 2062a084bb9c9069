"""UI messages of ours -> the canonical history that they were made of: the inverse of `turnlog.aisdk.convert`.

Trusts `metadata.turnlog` and our data parts, so it is only for messages from a file or store of our own;
`turnlog.aisdk.receive` reads what comes from a browser. Part by part, what the UI message holds is put back into the
raw message that remained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.aisdk.convert_parts import OWN_MESSAGE, OWN_PART, shown_result
from turnlog.aisdk.json_text import output_text
from turnlog.aisdk.metadata import to_provider_keys
from turnlog.aisdk.raw_message import (
    RawData,
    RawFile,
    RawMessage,
    RawPart,
    RawProvider,
    RawReasoning,
    RawSourceDocument,
    RawSourceUrl,
    RawText,
    RawToolCall,
    RawUnknown,
    parse_raw_part,
)
from turnlog.model import Message
from turnlog.model.codec import decode_message

_NO_BYTES: Final = Raw(b'""')
_BASE64: Final = b";base64,"

Fields = dict[str, Raw]
"""A UI part, key by key."""


class MismatchError(Exception):
    """Message and metadata do not belong together: one of them was changed."""


class _TurnlogMetadata(msgspec.Struct):
    messages: list[RawMessage]


class _Metadata(msgspec.Struct):
    turnlog: _TurnlogMetadata | UnsetType = UNSET


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


def _restore(ui_parts: list[Fields], raw_messages: list[RawMessage]) -> Iterator[Message]:
    """Messages in the order of their parts; our own data parts are between them."""
    position = 0
    for message in raw_messages:
        while _type(ui_parts[position]) == OWN_MESSAGE:
            yield decode_message(ui_parts[position]["data"])
            position += 1
        if _type(ui_parts[position]) == "step-start" or not message.parts:
            # A part that only marks where a message begins, or replaces the parts of an empty one.
            position += 1
        if message.parts:
            mine = ui_parts[position : position + len(message.parts)]
            message.parts = [_restore_part(part, fields) for part, fields in zip(message.parts, mine, strict=True)]
            position += len(mine)
        yield decode_message(_encoder.encode(message))
    for fields in ui_parts[position:]:
        if _type(fields) != OWN_MESSAGE:
            raise MismatchError("there are more parts than the metadata tells of")
        yield decode_message(fields["data"])


def _restore_part(part: RawPart, fields: Fields) -> RawPart:
    kind = _type(fields)
    if kind == OWN_PART:
        return parse_raw_part(fields["data"])
    expected, restore = _RESTORERS[type(part)]
    if not kind.startswith(expected):
        raise MismatchError(f"a part {kind} stands where another should")
    restore(part, fields)
    return part


def _restore_text(part: RawText | RawReasoning, fields: Fields) -> None:
    part.text = fields["text"]
    _restore_provider(part.provider, fields.get("providerMetadata"))


def _restore_file(part: RawFile, fields: Fields) -> None:
    _restore_provider(part.provider, fields.get("providerMetadata"))
    if part.data is not UNSET and part.data == _NO_BYTES:
        part.data = Raw(b'"' + bytes(fields["url"]).partition(_BASE64)[2])
    elif part.data is UNSET and part.blob is UNSET:
        part.url = fields["url"]


def _restore_source_url(part: RawSourceUrl, fields: Fields) -> None:
    part.source_id, part.url = fields["sourceId"], fields["url"]
    part.title = fields.get("title", UNSET)
    _restore_provider(part.provider, fields.get("providerMetadata"))


def _restore_source_document(part: RawSourceDocument, fields: Fields) -> None:
    part.source_id, part.media_type, part.title = fields["sourceId"], fields["mediaType"], fields["title"]
    part.filename = fields.get("filename", UNSET)
    _restore_provider(part.provider, fields.get("providerMetadata"))


def _restore_data(part: RawData, fields: Fields) -> None:
    part.name, part.data = _type(fields).removeprefix("data-"), fields["data"]


def _restore_unknown(part: RawUnknown, fields: Fields) -> None:
    if part.data is UNSET:
        raise MismatchError(f"{_type(fields)} stands where nothing is known of it")


def _restore_call(part: RawToolCall, fields: Fields) -> None:
    if part.tool_call_id != fields["toolCallId"]:
        raise MismatchError("the call has another id")
    part.tool_name = fields["toolName"] if "toolName" in fields else _named(fields)
    if part.input is not UNSET:
        part.input = UNSET
    elif "input" in fields:
        part.input = fields["input"]
    _restore_provider(part.provider, fields.get("callProviderMetadata"))
    if "output" in fields:
        _restore_output(part, fields["output"])


def _restore_output(part: RawToolCall, output: Raw) -> None:
    result = shown_result(part)
    if result is None or not result.content:
        return
    content = result.content
    if len(content) == 1 and isinstance(content[0], RawText) and content[0].citations is UNSET:
        if content[0].text is UNSET:
            content[0].text = output_text(output)
        return
    ui_parts = msgspec.json.decode(output, type=list[Fields])
    result.content = [_restore_part(part, fields) for part, fields in zip(content, ui_parts, strict=True)]


def _restore_provider(provider: RawProvider | UnsetType, metadata: Raw | None) -> None:
    if provider is UNSET or provider.opaque is not UNSET or metadata is None:
        return
    keys = msgspec.json.decode(metadata, type=dict[str, Fields]).get(provider.name)
    if keys is not None:
        provider.opaque = to_provider_keys(provider.name, keys)


def _type(fields: Fields) -> str:
    return msgspec.json.decode(fields["type"], type=str)


def _named(fields: Fields) -> Raw:
    return Raw(msgspec.json.encode(_type(fields).removeprefix("tool-")))


_RESTORERS: dict[type[RawPart], tuple[str | tuple[str, ...], Callable[[Any, Fields], None]]] = {
    RawText: ("text", _restore_text),
    RawReasoning: ("reasoning", _restore_text),
    RawToolCall: (("dynamic-tool", "tool-"), _restore_call),
    RawFile: ("file", _restore_file),
    RawSourceUrl: ("source-url", _restore_source_url),
    RawSourceDocument: ("source-document", _restore_source_document),
    RawData: ("data-", _restore_data),
    RawUnknown: ("", _restore_unknown),
}
"""Kind of raw part -> the type of its UI part, and what restores it; a type ending in - is a prefix."""
