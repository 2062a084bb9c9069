"""Gemini CLI's records: every known kind with its outcome, their shapes, how they are decoded, and their contents.

`docs/formats/gemini-cli.md` describes every kind and field; a test compares it with this module. One struct is for
headers, messages and patches alike. Every field has a default, because each version writes another subset. What is
nested and has its own place (messages of a list, calls, contents) stays raw, so that its offset can be found.
"""

from __future__ import annotations

import binascii
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import Count, clean_json, fields_of
from turnlog.agents.jsonl import JsonLines
from turnlog.model import DataPart, FilePart, Part, ProviderData, TextPart, UnknownPart


class GeminiRecordOutcome(StrEnum):
    """What a record turns into."""

    MESSAGE = "message"
    ERROR = "error"
    CHECKPOINT = "checkpoint"
    REWIND = "rewind"
    RUN_METADATA = "run metadata"
    RECORD = "record"


RECORD_KINDS: dict[str, GeminiRecordOutcome] = {
    "user": GeminiRecordOutcome.MESSAGE,
    "gemini": GeminiRecordOutcome.MESSAGE,
    "error": GeminiRecordOutcome.ERROR,
    "info": GeminiRecordOutcome.RECORD,
    "warning": GeminiRecordOutcome.RECORD,
    "header": GeminiRecordOutcome.RUN_METADATA,
    "$set/messages": GeminiRecordOutcome.CHECKPOINT,
    "$set/sessionId": GeminiRecordOutcome.RUN_METADATA,
    "$set/summary": GeminiRecordOutcome.RUN_METADATA,
    "$set/directories": GeminiRecordOutcome.RUN_METADATA,
    "$set/memoryScratchpad": GeminiRecordOutcome.RUN_METADATA,
    "$set/kind": GeminiRecordOutcome.RUN_METADATA,
    "$set/startTime": GeminiRecordOutcome.RUN_METADATA,
    "$set/projectHash": GeminiRecordOutcome.RUN_METADATA,
    "$set/lastUpdated": GeminiRecordOutcome.RUN_METADATA,
    "$rewindTo": GeminiRecordOutcome.REWIND,
    "logs.json": GeminiRecordOutcome.RUN_METADATA,
}
"""Kind -> outcome. A kind is a message's `type`; a patch is named by what it changes: `$set/messages`, `$rewindTo`."""

_PATCHES = tuple(kind.removeprefix("$set/") for kind in RECORD_KINDS if kind.startswith("$set/"))

MESSAGE_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
"""The `type` of every record that has an id and a place in the conversation."""


def is_message(fields: Mapping[str, Any]) -> bool:
    """Whether an object is a message and not a part of one."""
    return "timestamp" in fields and fields.get("type") in MESSAGE_TYPES


def kind_of_patch(names: Collection[str]) -> str:
    """The kind of a `$set` by the fields it has: its first in the table's order, else its first."""
    return f"$set/{next((name for name in _PATCHES if name in names), min(names, default=''))}"


# -- shapes


class _Wire(msgspec.Struct, rename="camel", gc=False):
    pass


class GeminiRecord(_Wire, gc=False):
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
    tokens: RequestTokens | None = None
    model: str | None = None
    tool_calls: list[Raw] | None = None
    turnlog: Any = None
    """The mark of what turnlog carried over from another session (`agents.handoffs`)."""


class RecordUpdate(_Wire, gc=False):
    """The value of `$set`."""

    messages: list[Raw] | None = None
    session_id: str | None = None
    summary: str | None = None
    directories: list[str] | None = None
    start_time: datetime | None = None
    last_updated: datetime | None = None


class Thought(_Wire, gc=False):
    """One thought: Gemini's own summary, cut into its bold first line and the rest."""

    subject: str | None = None
    description: str | None = None


class RequestTokens(_Wire, gc=False):
    """`usageMetadata` of one request."""

    input: Count | None = None
    output: Count | None = None
    cached: Count | None = None
    thoughts: Count | None = None
    tool: Count | None = None


class GeminiCall(_Wire, gc=False):
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
    turnlog: Any = None
    """The mark of a call that turnlog carried over: the status of its result."""


class WirePart(_Wire, gc=False):
    """One part of the API's content: exactly one of its kinds is set."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    inline_data: GeminiBlob | None = None
    file_data: GeminiBlob | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None


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


class GeminiBlob(_Wire, gc=False):
    """Bytes inside a message, in Base64, or a file elsewhere."""

    mime_type: str | None = None
    data: str | None = None
    file_uri: str | None = None
    display_name: str | None = None


# -- decoding


def _is_record(record: GeminiRecord) -> bool:
    return record.session_id is not None or record.type is not None or record.update is not UNSET


LINES = JsonLines(
    GeminiRecord, first_keys=("sessionId", "id", "type", "$set", "$rewindTo", "timestamp"), plausible=_is_record
)
"""Reads records out of lines, and one record out of JSON."""

CALLS = JsonLines(GeminiCall, first_keys=(), plausible=lambda call: call.id is not None)
"""Reads one call out of JSON."""

UPDATES = JsonLines(RecordUpdate, first_keys=(), plausible=lambda update: True)
"""Reads a patch out of JSON."""


def compact(raw: Raw) -> Raw:
    """The same JSON without white space: a file of JSON is indented, and its calls are those of a log of lines."""
    return Raw(msgspec.json.format(clean_json(bytes(raw)), indent=-1))


# -- the API's contents: a text, a part, or a list of both
#
# They become parts of the model, and function results. A part of an unknown kind keeps its JSON.


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

    A tool that returns a file puts it after its response, as a separate part: it belongs to that result.
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


def _file_part(blob: GeminiBlob, part_id: str | None) -> FilePart | None:
    media_type = blob.mime_type or "application/octet-stream"
    if blob.file_uri is not None:
        return FilePart(id=part_id, media_type=media_type, url=blob.file_uri, filename=blob.display_name)
    try:
        data = binascii.a2b_base64(blob.data or "", strict_mode=True)
    except (binascii.Error, ValueError):
        return None
    return FilePart(id=part_id, media_type=media_type, data=data, filename=blob.display_name) if data else None
