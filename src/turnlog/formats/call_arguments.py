"""The input of a tool call for formats in which arguments are an object."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw

from turnlog.model import ToolCallPart


class CallArguments(NamedTuple):
    """An object, as exact JSON."""

    json: Raw
    is_wrapped: bool
    """The model sent something else, which is the only field of the object: `input`."""


def call_arguments(call: ToolCallPart) -> CallArguments:
    """The arguments of a call."""
    if call.input is not UNSET and bytes(call.input).lstrip()[:1] == b"{":
        return CallArguments(Raw(call.input), is_wrapped=False)
    whole = b"null" if call.input is UNSET else bytes(call.input)
    value = whole if call.input_text is None else msgspec.json.encode(call.input_text)
    return CallArguments(Raw(b'{"input":%b}' % value), is_wrapped=True)
