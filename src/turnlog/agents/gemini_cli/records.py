"""The shapes of Gemini CLI's records, as far as they are read: one struct for header, message and patch.

Every field has a default and nothing is required, because each version writes another subset. What is nested and has
a place of its own (messages of a list, calls, contents) stays raw, so that its offset can be told.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.amounts import Count
from turnlog.agents.decoding import clean_json
from turnlog.agents.jsonl import JsonLines


class _Wire(msgspec.Struct, rename="camel", gc=False):
    pass


class Thought(_Wire, gc=False):
    """One thought: Gemini's own summary, cut into its bold first line and the rest."""

    subject: str | None = None
    description: str | None = None


class Tokens(_Wire, gc=False):
    """`usageMetadata` of one request."""

    input: Count | None = None
    output: Count | None = None
    cached: Count | None = None
    thoughts: Count | None = None
    tool: Count | None = None


class Blob(_Wire, gc=False):
    """Bytes inside a message, in Base64, or a file elsewhere."""

    mime_type: str | None = None
    data: str | None = None
    file_uri: str | None = None
    display_name: str | None = None


class FunctionCall(_Wire, gc=False):
    """A call as the API has it."""

    id: str | None = None
    name: str | None = None
    args: Raw | UnsetType = UNSET


class FunctionResponse(_Wire, gc=False):
    """A result as the API has it."""

    id: str | None = None
    name: str | None = None
    response: Raw | UnsetType = UNSET
    parts: list[Raw] | None = None


class Part(_Wire, gc=False):
    """One part of the API's content: exactly one of its kinds is set."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    inline_data: Blob | None = None
    file_data: Blob | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None


class Call(_Wire, gc=False):
    """A tool call with its result, as the CLI's scheduler left it."""

    id: str | None = None
    name: str | None = None
    args: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    result_display: Raw | UnsetType = UNSET
    status: str | None = None
    timestamp: datetime | None = None
    agent_id: str | None = None
    display_name: str | None = None
    description: str | None = None


class Update(_Wire, gc=False):
    """The value of `$set`."""

    messages: list[Raw] | None = None
    session_id: str | None = None
    summary: str | None = None
    directories: list[str] | None = None
    start_time: datetime | None = None
    last_updated: datetime | None = None


class Record(_Wire, gc=False):
    """A line of a log, a message in a list, or a whole JSON file."""

    session_id: str | None = None
    project_hash: str | None = None
    start_time: datetime | None = None
    last_updated: datetime | None = None
    kind: str | None = None
    directories: list[str] | None = None
    summary: str | None = None
    messages: list[Raw] | None = None
    update: Raw | UnsetType = msgspec.field(default=UNSET, name="$set")
    rewind_to: str | None = msgspec.field(default=None, name="$rewindTo")
    id: str | None = None
    timestamp: datetime | None = None
    type: str | None = None
    content: Raw | UnsetType = UNSET
    display_content: Raw | UnsetType = UNSET
    thoughts: list[Thought] | None = None
    tokens: Tokens | None = None
    model: str | None = None
    tool_calls: list[Raw] | None = None


def _is_record(record: Record) -> bool:
    return record.session_id is not None or record.type is not None or record.update is not UNSET


LINES = JsonLines(
    Record, first_keys=("sessionId", "id", "type", "$set", "$rewindTo", "timestamp"), plausible=_is_record
)
"""Reads records out of lines, and one record out of JSON."""

CALLS = JsonLines(Call, first_keys=(), plausible=lambda call: call.id is not None)
"""Reads one call out of JSON."""

UPDATES = JsonLines(Update, first_keys=(), plausible=lambda update: True)
"""Reads a patch out of JSON."""


def compact(raw: Raw) -> Raw:
    """The same JSON without white space: a file of JSON is indented, and its calls are those of a log of lines."""
    return Raw(msgspec.json.format(clean_json(bytes(raw)), indent=-1))


def fields_of(json: bytes | Raw) -> dict[str, Raw]:
    """The fields of an object as exact JSON; none when it is no object."""
    try:
        return msgspec.json.decode(json, type=dict[str, Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
