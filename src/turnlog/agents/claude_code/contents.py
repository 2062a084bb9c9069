"""The contents of records: blocks -> parts, token counts -> usage, and the meaning of texts in results.

A block of an unknown type keeps its exact JSON.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from zlib import crc32

from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.records import (
    ApiCounts,
    ApiUsage,
    BlockCitation,
    ClaudeRecord,
    ContentBlock,
    PermissionDecision,
    ResultFacts,
)
from turnlog.agents.decoding import clean_json
from turnlog.anthropic_api import UNKNOWN_REGION
from turnlog.model import (
    Approval,
    Citation,
    DataPart,
    FilePart,
    Part,
    ProviderData,
    ReasoningPart,
    ResultStatus,
    SourceUrlPart,
    TextPart,
    ToolKind,
    UnknownPart,
    Usage,
)

# -- content blocks of the Messages API

PROVIDER = "anthropic"

CALL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})

REASONING_BLOCKS = frozenset({"thinking", "redacted_thinking"})

DATA_BLOCKS = frozenset({"tool_reference", "fallback"})
"""Known blocks without a part type of their own: a `DataPart` holds their JSON."""

RawBlock = Callable[[], Raw]
"""Returns the exact JSON of a block. It is called only where the JSON is kept, because finding it costs a decode."""


def part_of(block: ContentBlock, part_id: str | None, raw: RawBlock) -> Part:
    """The part of a block in any message or tool result. Blocks of calls and results are not for this function."""
    kind = block.type
    if kind == "text" and block.text is not None:
        return text_part(block, part_id)
    if kind in ("image", "document"):
        # An image that is only named (a `file` source, or data that is cut off) has no bytes to show.
        return _file_part(block, part_id) or DataPart(id=part_id, name=kind, data=raw())
    if kind in DATA_BLOCKS:
        return DataPart(id=part_id, name=kind, data=raw())
    if kind == "web_search_result" and block.url is not None:
        return source_part(block, part_id)
    return UnknownPart(id=part_id, kind=kind, data=raw())


def text_part(block: ContentBlock, part_id: str | None) -> TextPart:
    """The part of a `text` block, with its citations."""
    citations = tuple([_citation(citation) for citation in block.citations]) if block.citations else ()
    return TextPart(id=part_id, text=block.text or "", citations=citations)


def reasoning_part(block: ContentBlock, part_id: str, model: str | None, duration_ms: int | None) -> ReasoningPart:
    """The part of a `thinking` or `redacted_thinking` block.

    `provider` has the signature: without it the API does not accept the thinking when it is sent back.
    """
    redacted = block.type == "redacted_thinking"
    # A redacted thought is only its encrypted `data`; others have text and a `signature`.
    name, proof = ("data", block.data) if redacted else ("signature", block.signature)
    return ReasoningPart(
        id=part_id,
        text=block.thinking or "",
        redacted=redacted,
        duration_ms=duration_ms,
        provider=ProviderData(name=PROVIDER, model=model, opaque={name: proof}) if proof is not None else None,
    )


def source_part(block: ContentBlock, part_id: str | None) -> SourceUrlPart:
    """The source part of a `web_search_result` block: a hit of a search that the provider ran."""
    opaque = {"encrypted_content": block.encrypted_content, "page_age": block.page_age}
    known = {name: value for name, value in opaque.items() if value is not None}
    return SourceUrlPart(
        id=part_id,
        source_id=block.url or "",
        url=block.url or "",
        title=block.title,
        provider=ProviderData(name=PROVIDER, opaque=known) if known else None,
    )


def exact_input(raw: Raw | UnsetType) -> tuple[Raw | UnsetType, bool]:
    """A call's input as exact JSON, and whether bytes that are not UTF-8 were replaced in it."""
    if raw is UNSET:
        return UNSET, False
    data = bytes(raw)
    clean = clean_json(data)
    return (raw, False) if clean is data else (Raw(clean), True)


def text_of(content: str | list[ContentBlock] | ContentBlock | None) -> str:
    """The text of a content: that of its text blocks, joined by newlines."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join([block.text for block in content if block.type == "text" and block.text is not None])
    return ""


def _citation(citation: BlockCitation) -> Citation:
    encrypted = citation.encrypted_index
    metadata: dict[str, Any] = {"encrypted_index": encrypted} if encrypted is not None else {}
    return Citation(
        title=citation.title,
        url=citation.url,
        document=citation.document_title,
        cited_text=citation.cited_text,
        start_index=citation.start_char_index,
        end_index=citation.end_char_index,
        metadata=metadata,
    )


def _file_part(block: ContentBlock, part_id: str | None) -> FilePart | None:
    source = block.source
    if source is None:
        return None
    if source.type == "url" and source.url is not None:
        media_type = source.media_type or ("image/*" if block.type == "image" else "application/octet-stream")
        return FilePart(id=part_id, media_type=media_type, url=source.url, filename=block.title)
    if source.data is None or source.media_type is None:
        return None
    if source.type == "text":
        return FilePart(id=part_id, media_type=source.media_type, data=source.data.encode(), filename=block.title)
    data = from_base64(source.data)
    if data is None:
        return None
    return FilePart(id=part_id, media_type=source.media_type, data=data, filename=block.title)


def from_base64(text: str) -> bytes | None:
    """The bytes of a Base64 text; None if it is cut off or not Base64."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return None


# -- token counts


def usage_of(wire: ApiUsage, *, final: bool) -> Usage:
    """The usage of one model call, in disjoint buckets.

    `output_tokens` contains the thinking tokens, which become `reasoning` where the log has them (since 2.1.2x).
    `final`: the line has a stop reason. Without one the counts are those of the stream's start and so lower bounds:
    Claude Code 1.0.24 to 2.1.20 wrote such counts on most lines, and an aborted stream never has others.
    """
    server = wire.server_tool_use
    counts = _counts_of(wire)
    return Usage(
        **counts,
        requests=_requests_of(wire, counts),
        service_tier=wire.service_tier,
        speed=wire.speed,
        region=None if wire.inference_geo == UNKNOWN_REGION else wire.inference_geo or None,
        web_searches=server.web_search_requests if server else None,
        web_fetches=server.web_fetch_requests if server else None,
        exactness="exact" if final else "lower_bound",
    )


OWN_REQUEST = "message"
"""The type of the requests that the model of an answer made for it: the counts of the answer are their sum."""


def other_requests_of(wire: ApiUsage, *, final: bool) -> list[tuple[str | None, Usage]]:
    """The requests behind an answer whose tokens are not in its counts, each with its model if that is another one.

    `advisor_message` is an answer of another model to this one, `compaction` the summary that a provider wrote.
    """
    return [
        (each.model, Usage(**_counts_of(each), exactness="exact" if final else "lower_bound"))
        for each in wire.iterations or ()
        if each.type not in (None, OWN_REQUEST)
    ]


def _requests_of(wire: ApiUsage, counts: dict[str, Any]) -> tuple[Usage, ...]:
    """The requests whose sum the counts are; none where it was only one, or where they are another sum."""
    own = [each for each in wire.iterations or () if each.type == OWN_REQUEST]
    if len(own) < 2:
        return ()
    requests = tuple([Usage(**_counts_of(each)) for each in own])
    totals = Usage(**counts)
    prompts = [sum(filter(None, _prompt_of(each))) for each in (*requests, totals)]
    outputs = [(each.output or 0) + (each.reasoning or 0) for each in (*requests, totals)]
    is_sum = sum(prompts[:-1]) == prompts[-1] and sum(outputs[:-1]) == outputs[-1]
    return requests if is_sum else ()


def _prompt_of(usage: Usage) -> tuple[int | None, ...]:
    return usage.input, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h, usage.cache_write


def _counts_of(wire: ApiCounts) -> dict[str, Any]:
    write_5m, write_1h, write = _cache_writes(wire)
    output, reasoning = _outputs(wire)
    return {
        "input": wire.input_tokens,
        "cache_read": wire.cache_read_input_tokens,
        "cache_write_5m": write_5m,
        "cache_write_1h": write_1h,
        "cache_write": write,
        "output": output,
        "reasoning": reasoning,
    }


def _cache_writes(wire: ApiCounts) -> tuple[int | None, int | None, int | None]:
    """Tokens written to the cache for five minutes, for one hour, and for a time that is not known."""
    split, total = wire.cache_creation, wire.cache_creation_input_tokens
    if split is None:
        return None, None, total
    write_5m, write_1h = split.ephemeral_5m_input_tokens, split.ephemeral_1h_input_tokens
    # What the split leaves of the total has a time to live that is not known.
    rest = (total or 0) - (write_5m or 0) - (write_1h or 0)
    return write_5m, write_1h, rest if rest > 0 else None


def _outputs(wire: ApiCounts) -> tuple[int | None, int | None]:
    details, output = wire.output_tokens_details, wire.output_tokens
    thinking = details.thinking_tokens if details else None
    # Before 2.1.2x the output contains the thinking, and nothing separates them.
    if thinking is None or output is None:
        return output, thinking
    return max(output - thinking, 0), thinking


# -- tools, and the words of their results

SUBAGENT_TOOLS = frozenset({"Task", "Agent"})
"""`Task` up to 2.1.20, `Agent` since 2.1.100; the old name is still accepted."""

TOOL_KINDS: dict[str, ToolKind] = {
    "Agent": ToolKind.SUBAGENT,
    "AskUserQuestion": ToolKind.ASK,
    "Bash": ToolKind.EXECUTE,
    "BashOutput": ToolKind.EXECUTE,
    "Edit": ToolKind.EDIT,
    "EnterPlanMode": ToolKind.SWITCH_MODE,
    "ExitPlanMode": ToolKind.SWITCH_MODE,
    "Glob": ToolKind.SEARCH,
    "Grep": ToolKind.SEARCH,
    "KillShell": ToolKind.EXECUTE,
    "LS": ToolKind.SEARCH,
    "Monitor": ToolKind.EXECUTE,
    "MultiEdit": ToolKind.EDIT,
    "NotebookEdit": ToolKind.EDIT,
    "NotebookRead": ToolKind.READ,
    "PowerShell": ToolKind.EXECUTE,
    "Read": ToolKind.READ,
    "Task": ToolKind.SUBAGENT,
    "TaskOutput": ToolKind.READ,
    "TodoRead": ToolKind.THINK,
    "TodoWrite": ToolKind.THINK,
    "TaskCreate": ToolKind.THINK,
    "TaskGet": ToolKind.THINK,
    "TaskList": ToolKind.THINK,
    "TaskUpdate": ToolKind.THINK,
    "ToolSearch": ToolKind.SEARCH,
    "WebFetch": ToolKind.FETCH,
    "WebSearch": ToolKind.FETCH,
    "Workflow": ToolKind.SUBAGENT,
    "Write": ToolKind.EDIT,
    "code_execution": ToolKind.EXECUTE,
    "exit_plan_mode": ToolKind.SWITCH_MODE,
    "web_fetch": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
}
"""Tools of the recorded versions. Any other tool, MCP's included, has the kind `other`."""

_COMPARED_CHARACTERS = 128
"""Characters at either end of a text, and at the beginning of file data, that the id of a result covers."""


def result_id(call_id: str, text: str, blocks: list[ContentBlock] | None) -> str:
    """The id of a result: the same in every copy of its record, though each copy has another uuid."""
    key = f"{len(text)}:{text[:_COMPARED_CHARACTERS]}:{text[-_COMPARED_CHARACTERS:]}"
    for block in blocks or ():
        data = block.source.data if block.source else None
        key += f":{block.type}" if data is None else f":{len(data)}:{data[:_COMPARED_CHARACTERS]}"
    return f"{call_id}:{crc32(key.encode(errors='replace')):08x}"


def status_of_success(facts: ResultFacts | None) -> ResultStatus:
    """The status of a result that is no error: `aborted` when its facts say that the tool was interrupted."""
    return "aborted" if facts is not None and facts.interrupted is True else "success"


_REJECTION = "The user doesn't want to "

_DENIED = re.compile(
    r"This command requires approval|Claude requested permissions to |Exit plan mode\?\Z"
    r"|Permission (?:to use|for) .* has been denied|PreToolUse:\S+ hook error: |\w+ operation blocked by hook:"
    r"|\w+ in '.*' was blocked\. For security, Claude Code "
)
"""How the results of denied calls begin: in a headless run without anybody to ask, by a rule, by a hook."""

_ABORTED = re.compile(
    r"\[Request interrupted by user for tool use\]|\[Tool call interrupted"
    r"|Exit code \d+\n(?:.*\n)?\[Request interrupted by user for tool use\]\Z",
    re.DOTALL,
)
"""The results of aborted calls; for a command, exit code and output come first (2.1.150)."""


def status_of_failure(
    record: ClaudeRecord, text: str, *, rejection: ResultStatus, rejection_before_run: ResultStatus
) -> ResultStatus:
    """The status of a result that is an error: `error`, `denied` or `aborted`.

    2.1.329 says it in fields: a denied call has a rejecting decision or never ran; `interrupted`, and a rejection by
    the user without either, mean Esc while the tool ran. Older versions use the same words for both, and since about
    2.1.200 the same `toolDenialKind`.

    Args:
        record: The result's record.
        text: The text of the result.
        rejection: What a rejection by the user means where no field says it: `denied` where the tool needed a
            permission, else `aborted`.
        rejection_before_run: What it means for a call that never ran: `aborted` where Esc has aborted another call of
            the same message, for which this one waited, else `denied`.
    """
    # The order matters: fields say it exactly, words only of versions without the fields.
    kind, decision = record.tool_denial_kind, record.permission_decision
    if kind == "interrupted" or (kind is None and _ABORTED.match(text)):
        return "aborted"
    if record.tool_denial_before_run and decision is None and kind == "user-rejected":
        return rejection_before_run
    if record.tool_denial_before_run or (decision is not None and decision.decision == "reject"):
        return "denied"
    if kind == "user-rejected" or text.startswith(_REJECTION):
        return rejection
    return "denied" if kind is not None or _DENIED.match(text) else "error"


def is_user_rejection(record: ClaudeRecord, content: object) -> bool:
    """Whether a failed result has the words that versions use for both a denial and Esc, and no field that says which.

    Up to about 2.1.290 no field says it.
    """
    is_decided = record.tool_denial_before_run or record.permission_decision is not None
    return not is_decided and isinstance(content, str) and content.startswith(_REJECTION)


_ERROR_TAG = re.compile(r"\A<tool_use_error>(.*)</tool_use_error>\Z", re.DOTALL)


def error_text_of(text: str) -> str:
    """The text of a failed result, without the tag around it."""
    match = _ERROR_TAG.match(text)
    return match[1] if match else text


_EXIT_CODE = re.compile(r"Exit code (\d{1,3})\b")


def exit_code_of(text: str) -> int | None:
    """The exit code that a failed command's result begins with."""
    match = _EXIT_CODE.match(text)
    return int(match[1]) if match else None


def duration_of(facts: ResultFacts) -> int | None:
    """Milliseconds that the tool ran; None if its result does not say."""
    # Subagents have `totalDurationMs`, WebSearch `durationSeconds`, some other tools `durationMs`.
    value, factor = facts.total_duration_ms, 1
    if value is None:
        value = facts.duration_ms
    if value is None:
        value, factor = facts.duration_seconds, 1000
    return round(value * factor) if type(value) in (int, float) else None


def approval_of(decision: PermissionDecision) -> Approval:
    """The approval that a recorded decision is."""
    details = {
        "reason_code": decision.reason_code,
        "rule_source": decision.rule_source,
        "grant_scope": decision.grant_scope,
    }
    known = {name: value for name, value in details.items() if value is not None}
    return Approval(
        approved=decision.decision == "accept" if decision.decision else None,
        source=decision.source,
        reason=decision.reason_type,
        metadata={"claude-code": known} if known else {},
    )


_SPILL = re.compile(r"\A<persisted-output>\n.*? saved to: ([^\n]+)")


class SpilledOutput(NamedTuple):
    """Where a result says that its whole output was written. These are names; the path is never opened."""

    session: str
    name: str | None
    """File name; None if the path is not in a session's `tool-results` folder."""


def spilled_output_of(text: str) -> SpilledOutput | None:
    """Where the whole output is, when `text` is only its preview; None if it is all."""
    match = _SPILL.match(text)
    if match is None:
        return None
    parts = PurePosixPath(match[1].strip().replace("\\", "/")).parts
    # The path is what the log says: it is compared by its names, and never followed out of the session's folder.
    if len(parts) < 3 or parts[-2] != "tool-results" or ".." in parts:
        return SpilledOutput("", None)
    return SpilledOutput(parts[-3], parts[-1])
