"""The shapes of Codex's records, as far as they are read: an envelope, and one struct for each family of payloads.

Decoding is typed and skips what is not declared, which is what makes context fast. Every field has a default and
nothing is required, because each version writes another subset. Names follow the log's own.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import Changes
from turnlog.agents.decoding import Count, LosslessDecoder, clean_json
from turnlog.agents.jsonl import UNREADABLE, JsonLines


class CodexLine(msgspec.Struct, gc=False):
    """A record's envelope. Logs of 2025 (up to 0.3x) have none: their records are the items themselves."""

    timestamp: datetime | None = None
    ordinal: int | None = None
    type: str = ""
    payload: Raw | UnsetType = UNSET
    record_type: str | None = None
    id: str | None = None


FIRST_KEYS = ("timestamp", "ordinal", "type", "id", "record_type")
"""Fields that a record begins with in the recorded versions."""


class CodexContent(msgspec.Struct, gc=False):
    """A content of a message, of reasoning or of an output."""

    type: str = ""
    text: str | None = None
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None
    filename: str | None = None
    annotations: list[Annotation] | None = None
    encrypted_content: str | None = None
    path: str | None = None


class Annotation(msgspec.Struct, gc=False):
    """A citation on a text."""

    type: str | None = None
    title: str | None = None
    url: str | None = None
    filename: str | None = None
    start_index: int | None = None
    end_index: int | None = None


class Passthrough(msgspec.Struct, gc=False):
    """Metadata of an item: its turn, and who wrote each of its contents (since 0.14x)."""

    turn_id: str | None = None
    content_item_kinds: list[str] | None = None


class OutputObject(msgspec.Struct, gc=False):
    """An output that is an object: the text for the model, and whether the tool succeeded."""

    content: str | None = None
    success: bool | None = None


class Item(msgspec.Struct, gc=False):
    """`response_item`: an item of the Responses API that the model got or wrote."""

    type: str = ""
    id: str | None = None
    role: str | None = None
    content: list[CodexContent] | str | None = None
    phase: str | None = None
    status: str | None = None
    summary: list[CodexContent] | None = None
    encrypted_content: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: Raw | UnsetType = UNSET
    call_id: str | None = None
    output: str | list[CodexContent] | OutputObject | None = None
    input: str | None = None
    action: Raw | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    result: str | None = None
    revised_prompt: str | None = None
    author: str | None = None
    recipient: str | None = None
    passthrough: Passthrough | None = msgspec.field(name="internal_chat_message_metadata_passthrough", default=None)
    # Records without an envelope: the first line of such a log.
    timestamp: datetime | None = None
    git: Git | None = None
    record_type: str | None = None
    turnlog: Any = None
    """The mark of an item that turnlog carried over (`agents.handoffs`)."""
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that no version seen so far writes (`CompleteItem`)."""


class CompleteItem(Item, gc=False, forbid_unknown_fields=True):
    """An item with all fields that were ever seen. Decoding fails for an item with another one."""

    execution: Raw | UnsetType = UNSET
    """Who runs a `tool_search_call`. It is not read."""


class CodexUsage(msgspec.Struct, gc=False, frozen=True, omit_defaults=True):
    """Token counts: `input_tokens` contains the cached ones, `output_tokens` the reasoning."""

    input_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    cache_write_input_tokens: Count | None = None
    output_tokens: Count | None = None
    reasoning_output_tokens: Count | None = None
    total_tokens: Count | None = None


class TokenInfo(msgspec.Struct, gc=False):
    """Running totals, and the counts of the newest response."""

    total_token_usage: CodexUsage | None = None
    last_token_usage: CodexUsage | None = None


class Duration(msgspec.Struct, gc=False):
    """A time span as Rust writes it."""

    secs: int = 0
    nanos: int = 0


class TurnItem(msgspec.Struct, gc=False):
    """The item of `item_completed`: an item as a user interface shows it, with status and times."""

    type: str = ""
    id: str | None = None
    content: list[CodexContent] | None = None
    summary_text: list[str] | None = None
    raw_content: list[str] | None = None
    text: str | None = None
    phase: str | None = None
    status: str | None = None
    exit_code: int | None = None
    aggregated_output: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    duration: Duration | str | None = None
    source: str | None = None
    command: Raw | UnsetType = UNSET
    cwd: Raw | UnsetType = UNSET
    changes: Raw | UnsetType = UNSET
    server: str | None = None
    tool: str | None = None
    namespace: str | None = None
    arguments: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    query: str | None = None
    action: Raw | UnsetType = UNSET
    path: str | None = None
    prompt: str | None = None
    receiver_thread_ids: list[str] | None = None
    agent_thread_id: str | None = None
    kind: str | None = None
    revised_prompt: str | None = None
    duration_ms: int | None = None


class CodexEvent(msgspec.Struct, gc=False):
    """`event_msg`: an event for a user interface."""

    type: str = ""
    message: str | None = None
    text: str | None = None
    phase: str | None = None
    images: list[str] | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    reason: str | None = None
    error: TurnError | str | None = None
    codex_error_info: Raw | UnsetType = UNSET
    num_turns: int | None = None
    info: TokenInfo | None = None
    item: TurnItem | None = None
    started_at_ms: int | None = None
    completed_at_ms: int | None = None
    duration_ms: int | None = None
    thread_name: str | None = None
    # The ends of calls, up to 0.14x.
    call_id: str | None = None
    exit_code: int | None = None
    aggregated_output: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    success: bool | None = None
    status: str | None = None
    duration: Duration | str | None = None
    result: Raw | UnsetType = UNSET
    invocation: Raw | UnsetType = UNSET
    query: str | None = None
    action: Raw | UnsetType = UNSET
    revised_prompt: str | None = None
    new_thread_id: str | None = None
    thread_settings: ThreadSettings | None = None
    service_tier: str | None = None


class ThreadSettings(msgspec.Struct, gc=False):
    """The settings of a thread, all of them. A tier that is missing is that of the account: the standard one."""

    model: str | None = None
    service_tier: str | None = None


class TurnError(msgspec.Struct, gc=False):
    """Why a turn failed."""

    message: str | None = None
    codex_error_info: Raw | UnsetType = UNSET


class UsageRecord(msgspec.Struct, gc=False):
    """`token_usage_record`: the tokens of one response, and the thread's total so far."""

    response_id: str | None = None
    usage: CodexUsage | None = None
    thread_token_usage: CodexUsage | None = None
    model: str | None = None
    service_tier: str | None = None


class Git(msgspec.Struct, gc=False):
    """The repository in which the thread began."""

    commit_hash: str | None = None
    branch: str | None = None
    repository_url: str | None = None


class HistoryBase(msgspec.Struct, gc=False):
    """How much of another thread's history a fork shares."""

    thread_id: str | None = None
    end_ordinal_exclusive: int | None = None


class Meta(msgspec.Struct, gc=False):
    """`session_meta`: which thread the log is. A fork by copy also has that of the copied thread."""

    id: str | None = None
    session_id: str | None = None
    timestamp: datetime | None = None
    cwd: str | None = None
    originator: str | None = None
    cli_version: str | None = None
    source: Any = None
    thread_source: str | None = None
    parent_thread_id: str | None = None
    agent_nickname: str | None = None
    agent_role: str | None = None
    model_provider: str | None = None
    history_mode: str | None = None
    forked_from_id: str | None = None
    forked_from_ordinal_exclusive: int | None = None
    history_base: HistoryBase | None = None
    git: Git | None = None
    turnlog: Any = None
    """The mark of a thread that turnlog wrote from another session (`agents.handoffs`)."""


class TurnContext(msgspec.Struct, gc=False):
    """`turn_context`: the model and settings of a turn."""

    turn_id: str | None = None
    cwd: str | None = None
    model: str | None = None
    effort: str | None = None
    service_tier: str | UnsetType | None = UNSET


class Compacted(msgspec.Struct, gc=False):
    """`compacted`: what replaces the history."""

    message: str | None = None
    replacement_history: list[Raw] | None = None
    compaction_response_id: str | None = None


class Communication(msgspec.Struct, gc=False):
    """`inter_agent_communication_metadata`, which comes before a message between agents."""

    trigger_turn: bool | None = None


PayloadT = TypeVar("PayloadT", bound=msgspec.Struct)

Report: TypeAlias = Callable[[str, Literal["error", "note"], str | None], None]
"""Takes a problem: reason, severity, JSON path in the record."""


def _is_record(record: CodexLine) -> bool:
    return bool(record.type or record.record_type) or (record.id is not None and record.timestamp is not None)


read_lines = JsonLines(CodexLine, first_keys=FIRST_KEYS, plausible=_is_record).read
"""Reads records out of bytes: see `turnlog.agents.jsonl.JsonLines.read`."""

decode_line = msgspec.json.Decoder(CodexLine).decode


class CodexPayload(Generic[PayloadT]):
    """Decodes payloads of one type of record."""

    def __init__(self, kind: type[PayloadT], complete: type[PayloadT] | None = None) -> None:
        self._kind = kind
        self.decode = (msgspec.json.Decoder(kind) if complete is None else LosslessDecoder(kind, complete)).decode
        """Decodes a valid payload; raises one of `UNREADABLE` for any other. The fold calls it directly, for speed."""
        self._tolerant = JsonLines(kind, first_keys=("type",), plausible=lambda record: True, complete=complete)

    def read(self, raw: Raw | bytes, report: Report) -> PayloadT:
        """The payload. What cannot be read of it is reported and left out."""
        try:
            return self.decode(raw)
        except UNREADABLE:
            return self.salvage(raw, report)

    def salvage(self, raw: Raw | bytes, report: Report) -> PayloadT:
        """The readable fields of an invalid payload. The others are reported."""
        found = self._tolerant.decode(bytes(raw))
        if isinstance(found, str):
            report(found, "error", "$.payload")
            return self._kind()
        for problem in found.problems:
            path = problem.json_path
            report(problem.reason, problem.severity, None if path is None else f"$.payload{path.removeprefix('$')}")
        return found.record


ITEMS = CodexPayload(Item, CompleteItem)
EVENTS = CodexPayload(CodexEvent)
decode_item = ITEMS.decode
decode_event = EVENTS.decode
read_item = ITEMS.read
read_usage_record = CodexPayload(UsageRecord).read
read_meta = CodexPayload(Meta).read
read_turn_context = CodexPayload(TurnContext).read
read_compacted = CodexPayload(Compacted).read
read_communication = CodexPayload(Communication).read


def clean(raw: Raw) -> Raw:
    """JSON that was not decoded with its record, made fit to be kept: bytes that are not UTF-8 are replaced."""
    data = bytes(raw)
    cleaned = clean_json(data)
    return raw if cleaned is data else Raw(cleaned)


def thread_named_in(data: bytes) -> str | None:
    """The thread of the first record that names one; None if no record does."""
    for record, *_ in read_lines(data, 0, 1, Changes()):
        if record.type == "session_meta" and isinstance(record.payload, Raw):
            try:
                return msgspec.json.decode(record.payload, type=Meta).id
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
        if not record.type and record.id is not None:
            return record.id
    return None
