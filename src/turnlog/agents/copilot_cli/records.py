"""The shapes of Copilot CLI's records, and how they are decoded.

Every record is `{type, data, id, timestamp, parentId, agentId?}`. Its `data` is decoded apart from it, so that a field
of another shape leaves the rest of the record.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.copilot_cli.record_kinds import RECORD_KINDS
from turnlog.agents.decoding import Count
from turnlog.agents.jsonl import JsonLines


class CopilotRecord(msgspec.Struct, rename="camel", gc=False):
    """A line."""

    type: str = ""
    data: Raw | UnsetType = UNSET
    id: str | None = None
    timestamp: datetime | None = None
    agent_id: str | None = None
    """The subagent that the record is of; None for the session itself."""


class CopilotUsage(msgspec.Struct, rename="camel", gc=False):
    """Tokens of one model call, or of several. `input_tokens` includes both kinds of cached tokens."""

    model: str | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    api_call_id: str | None = None
    finish_reason: str | None = None
    model_provider: str | None = None
    provider_type: str | None = None


class ModelMetric(msgspec.Struct, gc=False):
    """What a session has used of one model."""

    usage: CopilotUsage | None = None


class Folder(msgspec.Struct, rename="camel", gc=False):
    """Where a session works."""

    cwd: str | None = None
    branch: str | None = None
    head_commit: str | None = None


class ToolRequest(msgspec.Struct, rename="camel", gc=False):
    """A call in an answer."""

    tool_call_id: str = ""
    name: str = ""
    arguments: Raw | UnsetType = UNSET
    tool_title: str | None = None


class ReasoningBlock(msgspec.Struct, gc=False):
    """A thought as the provider gave it: of Anthropic with a signature, of OpenAI with encrypted content."""

    type: str = ""
    id: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    encrypted_content: str | None = None
    summary: list[ReasoningText] | None = None


class ReasoningText(msgspec.Struct, gc=False):
    """A piece of a thought's summary."""

    text: str | None = None


class ReasoningBlocks(msgspec.Struct, gc=False):
    """The thoughts of an answer, as the provider gave them."""

    provider: str | None = None
    blocks: list[ReasoningBlock] | None = None


class CopilotFile(msgspec.Struct, rename="camel", gc=False):
    """An attachment, or what a tool gave the model besides text. Its bytes are here, or in a record before it."""

    type: str = ""
    path: str | None = None
    display_name: str | None = None
    mime_type: str | None = None
    asset_id: str | None = None
    data: str | None = None
    description: str | None = None


class Result(msgspec.Struct, rename="camel", gc=False):
    """The output of a tool, or the answer to a permission request."""

    content: str | None = None
    binary_results_for_llm: list[Raw] | None = None
    kind: str | None = None


class ToolError(msgspec.Struct, gc=False):
    """Why a tool failed."""

    message: str | None = None
    code: str | None = None


class ShellExecution(msgspec.Struct, rename="camel", gc=False):
    """How a command ended."""

    exit_code: int | None = None


class CopilotData(msgspec.Struct, rename="camel", gc=False):
    """The data of any record. Every field has a default, because each kind and version writes another subset."""

    session_id: str | None = None
    copilot_version: str | None = None
    selected_model: str | None = None
    context: Folder | None = None
    cwd: str | None = None
    branch: str | None = None
    head_commit: str | None = None
    new_model: str | None = None
    previous_model: str | None = None
    current_model: str | None = None
    content: str | None = None
    transformed_content: str | None = None
    source: str | None = None
    is_autopilot_continuation: bool | None = None
    attachments: list[Raw] | None = None
    role: str | None = None
    model: str | None = None
    interaction_id: str | None = None
    api_call_id: str | None = None
    chunk_index: int | None = None
    tool_requests: list[ToolRequest] | None = None
    reasoning_text: str | None = None
    reasoning_opaque: str | None = None
    encrypted_content: str | None = None
    reasoning_blocks: ReasoningBlocks | None = None
    output_tokens: Count | None = None
    parent_tool_call_id: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    arguments: Raw | UnsetType = UNSET
    success: bool | None = None
    is_user_requested: bool | None = None
    result: Result | None = None
    error: Raw | UnsetType = UNSET
    shell_execution: ShellExecution | None = None
    agent_display_name: str | None = None
    request_id: str | None = None
    decision_source: str | None = None
    usage: CopilotUsage | None = None
    model_metrics: dict[str, ModelMetric] | None = None
    summary_content: str | None = None
    compaction_tokens_used: CopilotUsage | None = None
    pre_compaction_tokens: Count | None = None
    post_compaction_tokens: Count | None = None
    trigger: str | None = None
    message: str | None = None
    info_type: str | None = None
    error_type: str | None = None
    status_code: int | None = None
    asset_id: str | None = None
    data: str | None = None


UNUSED = frozenset(
    {
        *("agentMode", "clientRequestId", "delivery", "messageId", "metadata", "originatingMessageId", "contentBlocks"),
        *("parentAgentTaskId", "providerId", "rte", "serviceRequestId", "supportedNativeDocumentMimeTypes", "turnId"),
        *("kind", "requestId", "phase"),
    }
)
"""Fields of messages that are known and say nothing about the conversation; the archive has them."""


def _is_record(record: CopilotRecord) -> bool:
    return record.type in RECORD_KINDS


LINES = JsonLines(CopilotRecord, first_keys=("type",), plausible=_is_record)
"""Decodes lines."""

DATA = JsonLines(CopilotData, first_keys=(), plausible=lambda data: True)
"""Decodes the data of a record."""

FILE = JsonLines(CopilotFile, first_keys=(), plausible=lambda file: True)
"""Decodes a file in the data of a record."""
