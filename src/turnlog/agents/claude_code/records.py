"""The shapes of what Claude Code writes, as far as they are read: one struct for a line of a log, one for a stream's.

Decoding is typed and skips what is not declared, which is what makes it fast. Every field has a default and nothing is
required, because each version writes another subset. Names follow the record's own, in snake case.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.record_kinds import STREAM_TYPES, TYPES
from turnlog.agents.decoding import Count, Money
from turnlog.agents.jsonl import JsonLines

# -- a line of a log


class _Wire(msgspec.Struct, rename="camel", gc=False):
    pass


class ClaudeRecord(_Wire, gc=False):
    """One line of a log."""

    parent_uuid: str | UnsetType | None = UNSET
    is_sidechain: bool | None = None
    cwd: str | None = None
    session_id: str | None = None
    version: str | None = None
    git_branch: str | None = None
    type: str = ""
    message: ApiMessage | None = None
    request_id: str | None = None
    tool_use_result: ResultFacts | str | list[Raw] | int | float | bool | None = None
    uuid: str | None = None
    timestamp: datetime | None = None
    agent_id: str | None = None
    api_block_index: Count | None = None
    requested_model: str | None = None
    request_session_id: str | None = None
    forked_from: ClaudeForkedFrom | None = None
    turnlog: Any = None
    """The mark of a record that turnlog carried over (`agents.handoffs`)."""
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    prompt_source: str | None = None
    permission_mode: str | None = None
    origin: PromptOrigin | None = None
    interrupted_message_id: str | None = None
    permission_decision: PermissionDecision | None = None
    tool_denial_kind: str | None = None
    tool_denial_before_run: bool | None = None
    is_api_error_message: bool | None = None
    api_error_status: int | None = None
    is_aborted_mid_stream: bool | None = None
    error: str | ApiFailure | None = None
    thinking_duration_ms: int | None = None
    effort: str | None = None
    attribution_agent: str | None = None
    attribution_skill: str | None = None
    attribution_mcp_server: str | None = None
    cost_usd: Money | None = msgspec.field(name="costUSD", default=None)
    subtype: str | None = None
    content: str | list[ContentBlock] | None = None
    logical_parent_uuid: str | None = None
    compact_metadata: CompactMetadata | None = None
    retry_attempt: int | None = None
    max_retries: int | None = None
    retry_in_ms: float | None = None
    hook_errors: list[Any] | None = None
    attachment: Attachment | None = None
    rendered: list[Rendered] | None = None
    data: ProgressData | None = None
    parent_tool_use_id: str | None = msgspec.field(name="parentToolUseID", default=None)
    summary: str | None = None
    leaf_uuid: str | None = None
    explicit: bool | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    total_cost_usd: Money | None = msgspec.field(name="totalCostUSD", default=None)
    others: dict[str, Any] | None = msgspec.field(name="", default=None)
    """Metadata: the fields that no version seen so far writes (`CompleteRecord`)."""

    @property
    def kind(self) -> str:
        """The record's kind, as in `record_kinds.RECORD_KINDS`: its type, and its subtype where it has one."""
        if self.type == "system" and self.subtype:
            return f"system/{self.subtype}"
        if self.type == "attachment" and self.attachment:
            return f"attachment/{self.attachment.type}"
        if self.type == "progress" and self.data:
            return f"progress/{self.data.type}"
        return self.type


class ResultFacts(_Wire, gc=False):
    """Fields of `toolUseResult` of any tool. Each may be of any type, and counts only when it has the expected one."""

    agent_id: Any = None
    is_async: Any = None
    background_task_id: Any = None
    task_id: Any = None
    run_id: Any = None
    timeout_ms: Any = None
    interrupted: Any = None
    duration_ms: Any = None
    total_duration_ms: Any = None
    duration_seconds: Any = None
    search_count: Any = None


class PermissionDecision(_Wire, gc=False):
    """Who let a tool run or refused it."""

    decision: str | None = None
    source: str | None = None
    reason_type: str | None = None
    reason_code: str | None = None
    rule_source: str | None = None
    grant_scope: str | None = None


class PromptOrigin(_Wire, gc=False):
    """Who wrote a user record."""

    kind: str | None = None


class ClaudeForkedFrom(_Wire, gc=False):
    """The record that a copy by `/branch` was made from."""

    session_id: str | None = None
    message_uuid: str | None = None


class CompactMetadata(_Wire, gc=False):
    """How a compaction went."""

    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    messages_summarized: int | None = None
    preserved_messages: PreservedMessages | None = None
    preserved_segment: PreservedSegment | None = None


class PreservedSegment(_Wire, gc=False):
    """The first and the last record of those that stay in the context after a compaction."""

    head_uuid: str | None = None
    tail_uuid: str | None = None


class PreservedMessages(_Wire, gc=False):
    """Records that stay in the context after a compaction."""

    uuids: list[str] | None = None
    all_uuids: list[str] | None = None


class ApiFailure(_Wire, gc=False):
    """The error of a `system/api_error` record."""

    message: str | None = None
    formatted: str | None = None
    status: int | None = None


class Attachment(_Wire, gc=False):
    """Context that Claude Code injected with a prompt. The fields of one type are of any type in another."""

    type: str = ""
    hook_event: str | None = None
    prompt: str | list[ContentBlock] | None = None
    command_mode: str | None = None
    origin: PromptOrigin | None = None
    filename: str | None = None
    content: AttachedContent | str | list[Raw] | None = None
    path: Any = None
    snippet: Any = None
    text: Any = None
    plan_content: Any = None
    plan_file_path: Any = None
    added_blocks: Any = None
    added_lines: Any = None
    removed_names: Any = None
    removed_types: Any = None


class AttachedContent(_Wire, gc=False):
    """The content of a `file` attachment, or of a `nested_memory`."""

    type: str | None = None
    file: AttachedFile | None = None
    content: Any = None


class AttachedFile(_Wire, gc=False):
    """A file that the user mentioned with `@`."""

    file_path: str | None = None
    content: str | None = None
    base64: str | None = None
    type: str | None = None


class Rendered(msgspec.Struct, gc=False):
    """The text of an attachment as the model got it."""

    content: str | list[ContentBlock] | None = None


class ProgressData(_Wire, gc=False):
    """The data of a `progress` record; for `agent_progress` with a copy of a subagent's record."""

    type: str = ""
    hook_event: str | None = None
    agent_id: str | None = None
    message: Raw | UnsetType = UNSET


# -- the message of the Messages API inside a line


class ApiMessage(msgspec.Struct, gc=False):
    """The message of the Messages API inside a record: whole, or one block of it."""

    model: str | None = None
    id: str | None = None
    role: str | None = None
    content: str | list[ContentBlock] | None = None
    stop_reason: str | None = None
    usage: ApiUsage | None = None


class ContentBlock(msgspec.Struct, gc=False, omit_defaults=True):
    """A content block of the Messages API of any type, also inside of a tool's result."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    tool_use_id: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw | UnsetType = UNSET
    content: str | list[ContentBlock] | ContentBlock | None = None
    is_error: bool | None = None
    data: str | None = None
    source: FileSource | None = None
    title: str | None = None
    citations: list[BlockCitation] | None = None
    url: str | None = None
    encrypted_content: str | None = None
    page_age: str | None = None
    error_code: str | None = None


class BlockCitation(msgspec.Struct, gc=False):
    """A citation on a text block."""

    type: str | None = None
    title: str | None = None
    url: str | None = None
    document_title: str | None = None
    cited_text: str | None = None
    start_char_index: int | None = None
    end_char_index: int | None = None
    encrypted_index: str | None = None


class FileSource(msgspec.Struct, gc=False, omit_defaults=True):
    """Where an image or a document comes from."""

    type: str | None = None
    media_type: str | None = None
    data: str | None = None
    url: str | None = None


class ApiCounts(msgspec.Struct, gc=False):
    """The tokens of one request, or of all requests for an answer."""

    input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation: CacheCreation | None = None
    output_tokens: Count | None = None
    output_tokens_details: OutputDetails | None = None


class ApiUsage(ApiCounts, gc=False):
    """Tokens as the Messages API counts them."""

    server_tool_use: ServerToolUse | None = None
    service_tier: str | None = None
    speed: str | None = None
    inference_geo: str | None = None
    iterations: list[ApiIteration] | None = None


class ApiIteration(ApiCounts, gc=False):
    """One request of those that the provider made for one answer."""

    type: str | None = None
    model: str | None = None


class CacheCreation(msgspec.Struct, gc=False):
    """Tokens written to the cache, by time to live."""

    ephemeral_5m_input_tokens: Count | None = None
    ephemeral_1h_input_tokens: Count | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """What the output tokens were spent on."""

    thinking_tokens: Count | None = None


class ServerToolUse(msgspec.Struct, gc=False):
    """How often the provider's own tools ran."""

    web_search_requests: Count | None = None
    web_fetch_requests: Count | None = None


# -- a line of a stream


class StreamRecord(msgspec.Struct, gc=False):
    """One line of a stream, or of input for `--input-format stream-json`."""

    type: str = ""
    subtype: str | None = None
    message: ApiMessage | str | None = None
    """A string in `system/permission_denied`."""
    event: ApiEvent | str | None = None
    """A string, a name, in a notice for the screen."""
    session_id: str | None = None
    uuid: str | None = None
    timestamp: datetime | None = None
    parent_tool_use_id: str | None = None
    agent_id: str | None = None
    request_id: str | None = None
    thinking_duration_ms: int | None = None
    aborted: bool | None = None
    error: Any = None
    error_status: int | None = None
    is_synthetic: bool | None = msgspec.field(name="isSynthetic", default=None)
    tool_result_meta: list[ResultFact] | None = None
    tool_use_result: ResultFacts | str | list[Raw] | int | float | bool | None = None
    cwd: str | None = None
    claude_code_version: str | None = None
    compact_metadata: StreamCompaction | None = None
    logical_parent_uuid: str | None = None
    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: float | None = None
    task_id: str | None = None
    tool_use_id: str | None = None
    total_cost_usd: Money | None = None
    title: str | None = None

    @property
    def wire_message(self) -> ApiMessage | None:
        """The message of the Messages API, if the line has one."""
        return self.message if isinstance(self.message, ApiMessage) else None

    @property
    def kind(self) -> str:
        """The line's kind, as in `STREAM_KINDS`."""
        return f"{self.type}/{self.subtype}" if self.subtype else self.type


class ApiEvent(msgspec.Struct, gc=False):
    """An event of the Messages API's stream."""

    type: str = ""
    index: int | None = None
    message: ApiMessage | None = None
    content_block: ContentBlock | None = None
    delta: ApiEventDelta | None = None
    usage: ApiUsage | None = None


class ApiEventDelta(msgspec.Struct, gc=False):
    """A text that is added to a block, or why the message ended."""

    text: str | None = None
    thinking: str | None = None
    stop_reason: str | None = None


class StreamCompaction(msgspec.Struct, gc=False):
    """How a compaction went."""

    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    preserved_messages: StreamPreserved | None = None

    def as_logged(self) -> CompactMetadata:
        """The same as the log has it."""
        kept = self.preserved_messages
        return CompactMetadata(
            trigger=self.trigger,
            pre_tokens=self.pre_tokens,
            post_tokens=self.post_tokens,
            preserved_messages=PreservedMessages(uuids=kept.uuids, all_uuids=kept.all_uuids) if kept else None,
        )


class StreamPreserved(msgspec.Struct, gc=False):
    """Records that stay in the context after a compaction."""

    uuids: list[str] | None = None
    all_uuids: list[str] | None = None


class StreamDecision(msgspec.Struct, gc=False):
    """Who let a tool run or refused it."""

    decision: str | None = None
    source: str | None = None
    reason_type: str | None = None
    reason_code: str | None = None
    rule_source: str | None = None
    grant_scope: str | None = None

    def as_logged(self) -> PermissionDecision:
        """The same as the log has it."""
        return PermissionDecision(**msgspec.structs.asdict(self))


class ResultFact(msgspec.Struct, gc=False):
    """Facts about a tool's result, outside of its message."""

    id: str | None = None
    permission_decision: StreamDecision | None = None
    non_execution_kind: str | None = None


# -- lines -> records

_LOG_FIRST_KEYS = ("parentUuid", "type", "uuid", "sessionId", "isSidechain", "message", "timestamp", "summary")
"""Fields that a record begins with in the recorded versions."""

_FIELDS_NOT_READ = """
    agentName apiErrorType apiRefusalCategory apiRefusalExplanation atis attributionMcpTool backup base cacheControl
    commandRun commandUuid deliveryId durationMs entrypoint failedHookErrorIndexes failedResponseHadNoToolCall hash
    hasOutput hasUnknownModelCost hookAdditionalContext hookCount hookInfos id imagePasteIds isDisplayOnly
    isSnapshotUpdate isVisibleInTranscriptOnly joinedNoticeLengths joinedNoticeOwn joinedNoticeRunIds keep
    lastPrompt level madeBy mcpCallNotReadOnly mcpMeta messageCount messageId mode modelRestriction modelUsage
    operation originalModel params perTurnEffort preventedContinuation promptCacheRequested promptId querySource
    queuePriority queueSkipAttachments queueSkipSlashCommands queueTranscriptOnly reason refusedMessageId
    refusedUserMessageUuid refusingModel renderedBesideToolResult renderedInHumanTurn renderedRole
    repeatsCompactSummary requestDigest requestRef sandboxed scheduledFireId scheduledTaskId serverClassifierRequest
    session_id sessionKind shape shapeHash slug snapshot snapshotMessageId source sourceToolAssistantUUID
    sourceToolUseID startTime stopReason summarizedTurnPromptUuids summarizeMetadata tail thinkingDisplay
    toolEndsTurn toolInputStreamMs tools toolUseID totalAPIDuration totalAPIDurationWithoutRetries totalDuration
    totalLinesAdded totalLinesRemoved totalToolDuration trackingPath turnAttributionKey turnCompanion turnOrigin
    turnPosition userType wakeupSource
"""
"""Fields that were seen and are not decoded. Where one is needed, it is read from the record's JSON."""

# Fields are declared as raw JSON, so that they cost a look and no decode.
_FIELDS = [
    (f"not_read_{name}", Raw | UnsetType, msgspec.field(name=name, default=UNSET)) for name in _FIELDS_NOT_READ.split()
]

CompleteRecord = cast(
    "type[ClaudeRecord]",
    msgspec.defstruct("CompleteRecord", _FIELDS, bases=(ClaudeRecord,), gc=False, forbid_unknown_fields=True),
)
"""A record with all fields that were ever seen. Decoding fails for a record with another one, which then keeps it."""


def _is_record(record: ClaudeRecord) -> bool:
    return record.type in TYPES


read_lines = JsonLines(ClaudeRecord, first_keys=_LOG_FIRST_KEYS, plausible=_is_record, complete=CompleteRecord).read
"""Reads records out of a log's bytes: see `turnlog.agents.jsonl.JsonLines.read`."""

_STREAM_FIRST_KEYS = (
    *("type", "subtype", "message", "event", "session_id", "parent_tool_use_id", "uuid", "duration_api_ms"),
)


def _is_stream_record(record: StreamRecord) -> bool:
    return record.type in STREAM_TYPES


read_stream_lines = JsonLines(StreamRecord, first_keys=_STREAM_FIRST_KEYS, plausible=_is_stream_record).read
"""The same of a stream."""

decode_record = msgspec.json.Decoder(ClaudeRecord).decode
