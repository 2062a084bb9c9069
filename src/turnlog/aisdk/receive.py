"""UI messages -> canonical history: turnlog's own messages are restored, all others are read as untrusted input.

A message from a browser or another program cannot contain anything that only turnlog may write: turnlog's metadata and
data parts are left out and reported, and URLs are kept as text and never opened. What the canonical model has no field
for is kept in `metadata["aisdk"]` (`turnlog.aisdk.metadata`), and `turnlog.aisdk.convert` writes it again.

`restore_messages` is the exact inverse of `convert`: part by part, the content of the UI message is put back into the
raw message in `metadata.turnlog`. It trusts that metadata, so use it only for turnlog's own files and stores.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.aisdk.base import UIValue
from turnlog.aisdk.codec import encode, to_plain
from turnlog.aisdk.convert_parts import OWN_MESSAGE, OWN_PART, RESERVED, shown_result
from turnlog.aisdk.json_text import is_json_string, output_text, parse_output
from turnlog.aisdk.metadata import SdkExtras, provider_of, to_provider_keys
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
    ToolApproval,
    ToolUIPart,
    UICitation,
    UIMessage,
    UIMessagePart,
    UnknownUIPart,
    UrlCitationSource,
)
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
from turnlog.aisdk.versions import Loss
from turnlog.aisdk.view import step_id
from turnlog.arguments import checked
from turnlog.model import (
    Approval,
    Citation,
    DataPart,
    FilePart,
    Message,
    Origin,
    Part,
    ReasoningPart,
    ResultStatus,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolState,
    UnknownPart,
)
from turnlog.model.codec import decode_message, repair_text, to_json


class Received(NamedTuple):
    """Canonical messages, and what they lack of the UI messages."""

    messages: list[Message]
    losses: list[Loss]


@checked
def from_ui_messages(messages: Iterable[UIMessage], *, trusted: bool = False) -> Received:
    """The canonical messages of UI messages, one for each model call.

    Args:
        messages: As `parse_ui_messages` returns them.
        trusted: Whether turnlog wrote them (a file of `to_ui_messages`), so that `metadata.turnlog` is trusted. Never
            for messages from a browser.
    """
    losses: list[Loss] = []
    reader = UntrustedReader(losses)
    found: list[Message] = []
    for number, message in enumerate(messages):
        restored = _restored(message, number, losses) if trusted else None
        found += reader.read(message, number) if restored is None else restored
    return Received(found, losses)


def _restored(message: UIMessage, number: int, losses: list[Loss]) -> list[Message] | None:
    """The original messages; None if turnlog did not make the UI message, or it was changed."""
    try:
        return restore_messages(encode(message))
    except MismatchError as error:
        losses.append(Loss(feature="metadata", path=f"$[{number}]", reason=str(error)))
        return None


class UntrustedReader:
    """Reads untrusted UI messages; losses are appended to the list."""

    def __init__(self, losses: list[Loss]) -> None:
        """Append losses to this list."""
        self._losses = losses
        self._place = "$"

    def read(self, message: UIMessage, number: int) -> list[Message]:
        """The canonical messages of a UI message: one for each model call of an assistant message, otherwise one.

        Args:
            message: The UI message.
            number: Its index in the request, for the losses.
        """
        self._place = f"$[{number}]"
        if not message.id:
            # Messages without an id are identified by their index: a page sends all of them each time.
            message = msgspec.structs.replace(message, id=f"message-{number + 1}")
        extras = self._sdk_extras(message)
        if message.role != "assistant":
            origin = Origin.PROMPT if message.role == "user" else None
            parts = tuple(self._parts(message.parts))
            return [
                Message(id=message.id, role=message.role, origin=origin, parts=parts, metadata=extras.to_metadata())
            ]
        return self._steps(message, extras)

    def _sdk_extras(self, message: UIMessage) -> SdkExtras:
        metadata = message.metadata
        if isinstance(metadata, dict) and "turnlog" in metadata:
            self._add_loss("metadata", "only turnlog itself may write this")
            metadata = {key: value for key, value in cast("dict[str, Any]", metadata).items() if key != "turnlog"}
        if metadata is UNSET or metadata == {}:
            return SdkExtras()
        return SdkExtras(metadata=Raw(to_json(to_plain(metadata))))

    def _steps(self, message: UIMessage, extras: SdkExtras) -> list[Message]:
        """One message for each model call, and the steering messages between them."""
        found: list[Message] = []
        parts: list[UIMessagePart] = []
        number = 0

        def close() -> None:
            nonlocal number
            # A message without parts is one model call; two step marks in sequence are none.
            if parts or not number:
                number += 1
                made = tuple(self._parts(parts))
                metadata = extras.to_metadata() if number == 1 else {}
                found.append(Message(id=step_id(message.id, number), role="assistant", parts=made, metadata=metadata))
                parts.clear()

        for part in message.parts:
            if isinstance(part, StepStartUIPart):
                if parts:
                    close()
            elif isinstance(part, SteeringMessageUIPart):
                if parts:
                    close()
                steered = tuple(self._parts(part.parts))
                found.append(Message(id=part.id, role="user", origin=Origin.PROMPT, parts=steered))
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
            self._add_loss("unknown-keys", f"{', '.join(sorted(part.extra))} of a {part.type} part")
        if isinstance(part, ToolUIPart | DynamicToolUIPart):
            if part.raw_input is not UNSET and part.input is not UNSET:
                self._add_loss("raw-input", "the text of an input whose JSON is known")
            if part.input_encoding is not UNSET:
                self._add_loss("input-encoding", "how the text of an input is to be read")
            return tool_call_of(part)
        if isinstance(part, DataUIPart):
            return self._data(part)
        reader = _READERS.get(type(part))
        if reader is None:
            extras = SdkExtras(ui_part=not isinstance(part, UnknownUIPart))
            return UnknownPart(kind=part.type, data=to_json(to_plain(part)), metadata=extras.to_metadata())
        return reader(part)

    def _data(self, part: DataUIPart) -> Part | None:
        # Read as turnlog's own, they would let a page put any message into a history.
        if part.name.startswith(RESERVED):
            self._add_loss("own-data", f"only turnlog itself may write {part.type}")
            return None
        return DataPart(id=value_or_none(part.id), name=part.name, data=to_json(to_plain(part.data)))

    def _add_loss(self, feature: str, reason: str) -> None:
        self._losses.append(Loss(feature=feature, path=self._place, reason=reason))


ToolPart = ToolUIPart | DynamicToolUIPart

ValueT = TypeVar("ValueT")

_DATA_URL: Final = re.compile(r"data:[^,]*;base64,([A-Za-z0-9+/]*={0,2})", re.IGNORECASE)

_ADDRESS: Final = re.compile(r"(https?:|data:)", re.IGNORECASE)


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
        extras = SdkExtras(ui_part=part.provider_reference is not UNSET)
        return UnknownPart(kind="file", data=to_json(to_plain(part)), metadata=extras.to_metadata())
    data = _inline_bytes(part)
    if data is None:
        return FilePart(media_type=part.media_type, filename=name, url=part.url, provider=provider)
    return FilePart(media_type=part.media_type, filename=name, data=data, provider=provider)


def _inline_bytes(part: FileUIPart) -> bytes | None:
    """The bytes in a data URL that has only data and the part's own media type."""
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
"""Kind of UI part -> its reader; parts without a reader are kept unchanged."""


def value_or_none(value: ValueT | UnsetType) -> ValueT | None:
    """The value, with None for UNSET."""
    return None if value is UNSET else value


_STATUS_OF_STATE: dict[str, ResultStatus] = {
    "output-available": "success",
    "output-error": "error",
    "output-denied": "denied",
}


def tool_call_of(part: ToolPart) -> ToolCallPart:
    """The call of a tool part, with its result if there is one."""
    status = "aborted" if _is_aborted(part) else _STATUS_OF_STATE.get(part.state)
    text, value = _input(part)
    return ToolCallPart(
        tool_call_id=part.tool_call_id,
        tool_name=part.tool_name,
        input=value,
        input_text=text,
        state=ToolState.ABORTED if status == "aborted" else ToolState(part.state),
        title=value_or_none(part.title),
        approval=None if part.approval is UNSET else _approval(part.approval),
        provider_executed=part.provider_executed is True,
        results=() if status is None else (_result(part, status),),
        provider=provider_of(part.call_provider_metadata),
        metadata=_sdk_extras(part).to_metadata(),
    )


def _is_aborted(part: ToolPart) -> bool:
    """Whether `convert_parts` or the writer marked a failed call as aborted. The mark is harmless if others set it."""
    sources = (part.call_provider_metadata, part.result_provider_metadata)
    return part.state == "output-error" and any(
        metadata is not UNSET and metadata.get("turnlog") == {"state": "aborted"} for metadata in sources
    )


def _input(part: ToolPart) -> tuple[str | None, Raw | UnsetType]:
    """The input: JSON if it is complete and valid, otherwise text."""
    if part.input is not UNSET:
        return None, to_json(to_plain(part.input))
    # Up to 7.0.118 an input that is no valid JSON comes as `rawInput` alone.
    if isinstance(part.raw_input, str):
        return part.raw_input, UNSET
    return None, UNSET if part.raw_input is UNSET else to_json(to_plain(part.raw_input))


def _result(part: ToolPart, status: ResultStatus) -> ToolResult:
    name = f"{part.tool_call_id}:result"
    if status in ("error", "aborted"):
        return ToolResult(id=name, status=status, error_text=value_or_none(part.error_text))
    if status == "denied":
        reason = None if part.approval is UNSET else value_or_none(part.approval.reason)
        return ToolResult(id=name, status=status, error_text=reason)
    text, extras = _output_text(to_plain(part.output))
    return ToolResult(
        id=name,
        content=() if text is None else (TextPart(text=text),),
        preliminary=part.preliminary is True,
        metadata=extras.to_metadata(),
    )


def _output_text(output: Any) -> tuple[str | None, SdkExtras]:
    """The text of an output; a mark says if it looks like JSON but was a string."""
    if output is None or output is UNSET:
        return None, SdkExtras()
    if isinstance(output, str):
        text = repair_text(output)
        return text, SdkExtras(text_output=parse_output(Raw(msgspec.json.encode(text))) is not None)
    return bytes(to_json(output)).decode(), SdkExtras()


def _approval(approval: ToolApproval) -> Approval:
    fields = {
        "signature": approval.signature,
        "descriptor": approval.descriptor,
        "inputSchemaInput": approval.input_schema_input,
        "requestReason": approval.request_reason,
        "isAutomatic": approval.is_automatic,
    }
    return Approval(
        id=approval.id,
        approved=value_or_none(approval.approved),
        reason=value_or_none(approval.reason),
        metadata=SdkExtras(fields=_set(fields)).to_metadata(),
    )


def _sdk_extras(part: ToolPart) -> SdkExtras:
    fields = {"toolMetadata": part.tool_metadata, "resultProviderMetadata": part.result_provider_metadata}
    return SdkExtras(named=isinstance(part, ToolUIPart), fields=_set(fields))


def _set(fields: dict[str, Any]) -> dict[str, Raw]:
    return {name: to_json(to_plain(value)) for name, value in fields.items() if value is not UNSET}


_NO_BYTES: Final = Raw(b'""')

_BASE64: Final = b";base64,"

Fields = dict[str, Raw]
"""A UI part, key by key."""


class MismatchError(Exception):
    """Message and metadata do not match: one of them was changed."""


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
    """The canonical messages from which a UI message was made, in order; None if it has no metadata of turnlog.

    Raises MismatchError if metadata and parts do not match.
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
    """Restore messages in the order of their parts; turnlog's own data parts are between them."""
    position = 0
    for message in raw_messages:
        while _type(ui_parts[position]) == OWN_MESSAGE:
            yield decode_message(ui_parts[position]["data"])
            position += 1
        if _type(ui_parts[position]) == "step-start" or not message.parts:
            # A part that marks the beginning of a message, or takes the place of the parts of an empty one.
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
        raise MismatchError(f"there is a part {kind} where another should be")
    restore(part, fields)
    return part


def _restore_text(part: RawText | RawReasoning, fields: Fields) -> None:
    part.text = fields["text"]
    _restore_provider(part.provider, fields.get("providerMetadata"))


def _restore_file(part: RawFile, fields: Fields) -> None:
    _restore_provider(part.provider, fields.get("providerMetadata"))
    # The conversion has moved the bytes into the URL and left this mark.
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
        raise MismatchError(f"{_type(fields)} is where no such part is known")


def _restore_call(part: RawToolCall, fields: Fields) -> None:
    if part.tool_call_id != fields["toolCallId"]:
        raise MismatchError("the call has another id")
    part.tool_name = fields["toolName"] if "toolName" in fields else _named(fields)
    if is_json_string(part.input):
        part.input = Raw(msgspec.json.decode(part.input, type=str).encode())
    elif part.input is not UNSET:
        part.input = UNSET  # `NO_INPUT`
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
