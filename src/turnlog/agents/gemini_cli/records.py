"""Gemini CLI's records: every known kind with its outcome, their shapes, and how they are decoded.

`docs/formats/gemini-cli.md` describes every kind and field; a test compares it with this module. One struct is for
headers, messages and patches alike. Every field has a default, because each version writes another subset. What is
nested and has a place of its own (messages of a list, calls, contents) stays raw, so that its offset can be found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count, clean_json
from turnlog.agents.jsonl import JsonLines


class RecordOutcome(StrEnum):
    """What a record turns into."""

    MESSAGE = "message"
    ERROR = "error"
    CHECKPOINT = "checkpoint"
    REWIND = "rewind"
    RUN_METADATA = "run metadata"
    RECORD = "record"


RECORD_KINDS: dict[str, RecordOutcome] = {
    "user": RecordOutcome.MESSAGE,
    "gemini": RecordOutcome.MESSAGE,
    "error": RecordOutcome.ERROR,
    "info": RecordOutcome.RECORD,
    "warning": RecordOutcome.RECORD,
    "header": RecordOutcome.RUN_METADATA,
    "$set/messages": RecordOutcome.CHECKPOINT,
    "$set/sessionId": RecordOutcome.RUN_METADATA,
    "$set/summary": RecordOutcome.RUN_METADATA,
    "$set/directories": RecordOutcome.RUN_METADATA,
    "$set/memoryScratchpad": RecordOutcome.RUN_METADATA,
    "$set/kind": RecordOutcome.RUN_METADATA,
    "$set/startTime": RecordOutcome.RUN_METADATA,
    "$set/projectHash": RecordOutcome.RUN_METADATA,
    "$set/lastUpdated": RecordOutcome.RUN_METADATA,
    "$rewindTo": RecordOutcome.REWIND,
    "logs.json": RecordOutcome.RUN_METADATA,
}
"""Kind -> outcome. A kind is a message's `type`; a patch is named by what it changes: `$set/messages`, `$rewindTo`."""

_PATCHES = tuple(kind.removeprefix("$set/") for kind in RECORD_KINDS if kind.startswith("$set/"))

MESSAGE_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
"""The `type` of every record that has an id and a place in the conversation."""


def kind_of_patch(names: Collection[str]) -> str:
    """The kind of a `$set` by the fields it has: its first in the table's order, else its first."""
    return f"$set/{next((name for name in _PATCHES if name in names), min(names, default=''))}"


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


class WirePart(_Wire, gc=False):
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


def locate_items(items: Sequence[Raw], json: bytes, position: int) -> Iterator[tuple[Raw, int, int]]:
    """Each item with its byte offset and its length in the file.

    Args:
        items: Raw values that `json` holds, in this order.
        json: A piece of the file.
        position: The byte offset of `json`.
    """
    start = 0
    for item in items:
        data = bytes(item)
        at = json.find(data, start)
        start = start if at < 0 else at + len(data)
        yield item, position + max(at, 0), len(data)


# -- damaged files of JSON: cut off while they were written, or damaged in the middle

_LIST = re.compile(r'"messages"\s*:\s*\[')
_SEPARATORS = " \t\r\n,"
_decoder = json.JSONDecoder(strict=False, parse_int=len, parse_float=len)

_SEARCH_LIMIT = 8
"""How many times its own length a damaged file is searched for messages, so that a huge one cannot stall a sync."""


def recover_messages(data: bytes) -> bytes:
    """The file up to its list of messages, with the complete messages only; empty when it has no such list."""
    text = data.decode("latin-1")
    start = _LIST.search(text)
    if start is None:
        return b""
    found = [data[first:end] for first, end in _complete_messages(text, start.end())]
    return data[: start.end()] + b",".join(found) + b"]}"


def _complete_messages(text: str, position: int) -> Iterator[tuple[int, int]]:
    """Where each complete message begins and ends.

    After the first damage an object counts only when it has the fields of a message: the search may have stopped
    inside a broken message, where a call or a part begins with a brace too.
    """
    is_damaged = False
    budget = _SEARCH_LIMIT * len(text)
    while 0 <= position < len(text) and budget > 0:
        if text[position] in _SEPARATORS:
            position += 1
            continue
        value, end, cost = _value_at(text, position)
        budget -= cost
        if end is None:
            is_damaged = True
            position = text.find("{", position + 1)
            continue
        if not is_damaged or _is_message(value):
            yield position, end
        position = end


def _value_at(text: str, position: int) -> tuple[Any, int | None, int]:
    """The value that begins here, its end (None: it has none), and the number of characters that were read."""
    try:
        value, end = _decoder.raw_decode(text, position)
    except json.JSONDecodeError as error:
        return None, None, max(error.pos - position, 1)
    except RecursionError:
        return None, None, len(text) - position
    return value, end, end - position


def _is_message(value: Any) -> bool:
    """Whether a value is a message and not a part of one."""
    return isinstance(value, dict) and "timestamp" in value and value.get("type") in MESSAGE_TYPES  # pyright: ignore[reportUnknownMemberType]  # any JSON
