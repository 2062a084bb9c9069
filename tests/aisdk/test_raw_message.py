"""A raw message has the fields of the model, and encoding it gives the message back."""

from __future__ import annotations

import msgspec
import pytest

from turnlog.aisdk import raw_message
from turnlog.aisdk.raw_message import parse_raw_message
from turnlog.model import (
    Approval,
    DataPart,
    FilePart,
    Message,
    ProviderData,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    UnknownPart,
)
from turnlog.model.codec import decode_message, encode

PIECES_OF: dict[type[msgspec.Struct], type[msgspec.Struct]] = {
    Message: raw_message.RawMessage,
    TextPart: raw_message.RawText,
    ReasoningPart: raw_message.RawReasoning,
    ToolCallPart: raw_message.RawToolCall,
    ToolResult: raw_message.RawToolResult,
    FilePart: raw_message.RawFile,
    SourceUrlPart: raw_message.RawSourceUrl,
    SourceDocumentPart: raw_message.RawSourceDocument,
    DataPart: raw_message.RawData,
    UnknownPart: raw_message.RawUnknown,
    Approval: raw_message.RawApproval,
    ProviderData: raw_message.RawProvider,
}


@pytest.mark.parametrize("value", PIECES_OF, ids=lambda value: value.__name__)
def test_raw_structs_have_the_fields_of_the_model(value: type[msgspec.Struct]) -> None:
    taken = PIECES_OF[value]
    assert set(taken.__struct_encode_fields__) == set(value.__struct_encode_fields__)
    assert taken.__struct_config__.tag == value.__struct_config__.tag


def test_what_is_unknown_is_kept() -> None:
    body = (
        b'{"id":"m","role":"assistant","mood":"good","parts":[{"type":"hologram","depth":3},'
        b'{"type":"text","text":"hi","font":"serif"}]}'
    )
    again = decode_message(msgspec.json.encode(parse_raw_message(body)))
    assert encode(again) == encode(decode_message(body))
    for kept in (b"hologram", b"serif", b"mood"):
        assert kept in encode(again)


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        parse_raw_message(b'{"id":"m"}')
