"""What Grok Build's updates hold: texts, calls, results and tokens -> parts, and its tools by kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.decoding import clean_json, list_of, object_of, text_of, value_of
from turnlog.agents.grok_build.records import TurnUsage, Update, UpdateLine
from turnlog.agents.jsonl import UNREADABLE
from turnlog.model import (
    FilePart,
    Part,
    ReasoningPart,
    ResultStatus,
    StopReason,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    UnknownPart,
    Usage,
)

TOOL_KINDS: dict[str, ToolKind] = {
    "ask_user_question": ToolKind.ASK,
    "enter_plan_mode": ToolKind.SWITCH_MODE,
    "exit_plan_mode": ToolKind.SWITCH_MODE,
    "get_command_or_subagent_output": ToolKind.READ,
    "grep": ToolKind.SEARCH,
    "kill_command_or_subagent": ToolKind.EXECUTE,
    "list_dir": ToolKind.SEARCH,
    "monitor": ToolKind.EXECUTE,
    "read_file": ToolKind.READ,
    "run_terminal_command": ToolKind.EXECUTE,
    "search_replace": ToolKind.EDIT,
    "search_tool": ToolKind.SEARCH,
    "spawn_subagent": ToolKind.SUBAGENT,
    "todo_write": ToolKind.THINK,
    "web_fetch": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
    "write": ToolKind.EDIT,
}
"""Tools that the recorded version offers to the model; any other, MCP's included, is of kind `other`."""

STOP_REASONS: dict[str, StopReason] = {
    "cancelled": "aborted",
    "end_turn": "stop",
    "error": "error",
    "max_tokens": "length",
    "refusal": "refusal",
}
"""`stop_reason` of a turn -> why the model stopped."""

_STATUSES: dict[str, ResultStatus] = {"completed": "success", "failed": "error"}
"""Status of a call that has ended -> that of its result."""

_REFUSED = re.compile(r"Tool `[^`]*` was not executed: ")
_SUBAGENT = re.compile(r"^subagent_id: (?P<id>[\w-]+)$", re.MULTILINE)

_FOR_MODEL = ("tool_output_for_prompt", "output_for_prompt", "summary_for_prompt", "message", "text")
"""Fields of what a tool returned with the text that the model got."""


def time_of(milliseconds: int | None) -> datetime | None:
    """The time of a number of Unix milliseconds; None if it is none."""
    try:
        return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def chunk_part(update: Update, part_id: str, *, is_thought: bool = False) -> Part:
    """The part that a piece of a message is."""
    content = Raw(b"null") if isinstance(update.content, UnsetType) else update.content
    return _content_part(object_of(value_of(content)), part_id, is_thought=is_thought)


def _content_part(content: dict[str, Any], part_id: str, *, is_thought: bool = False) -> Part:
    text, kind = content.get("text"), str(content.get("type"))
    if kind == "text" and isinstance(text, str):
        return ReasoningPart(id=part_id, text=text) if is_thought else TextPart(id=part_id, text=text)
    data = text_of(content.get("data"))
    data = None if data is None else from_base64(data)
    if kind in ("image", "audio") and data is not None:
        return FilePart(id=part_id, media_type=text_of(content.get("mimeType")) or f"{kind}/*", data=data)
    return UnknownPart(id=part_id, kind=kind, data=Raw(msgspec.json.encode(content)))


def call_part(update: Update, part_id: str, at: datetime | None) -> ToolCallPart:
    """The call in an update."""
    name = (update.meta.tool.name if update.meta.tool is not None else None) or update.title or ""
    given = update.raw_input
    return ToolCallPart(
        id=part_id,
        tool_call_id=update.call_id or part_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=UNSET if isinstance(given, UnsetType) else Raw(clean_json(bytes(given))),
        started_at=at,
    )


# -- results


def result_of(update: Update, call_id: str, at: datetime | None) -> ToolResult | None:
    """The result in an update; None while the call runs."""
    status = _STATUSES.get(update.status or "")
    if status is None:
        return None
    identity = f"{call_id}.result"
    returned = {} if isinstance(update.raw_output, UnsetType) else object_of(value_of(update.raw_output))
    parts = tuple(_result_parts(update, returned, identity))
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    code = returned.get("exit_code")
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    if status == "error" and _REFUSED.match(text):
        status = "denied"
    elif status == "success" and (code or returned.get("timed_out") is True):
        status = "error"
    return ToolResult(
        id=identity,
        status=status,
        content=parts,
        error_text=text or None if status != "success" else None,
        exit_code=code,
        completed_at=at,
    )


def _result_parts(update: Update, returned: dict[str, Any], identity: str) -> Iterator[Part]:
    blocks = [] if isinstance(update.content, UnsetType) else list_of(value_of(update.content))
    # Blocks of the type `diff` are for the user; what the model got is in the text.
    shown = [object_of(block.get("content")) for block in map(object_of, blocks) if block.get("type") == "content"]
    if not shown:
        text = _text_in(returned)
        shown = [] if text is None else [{"type": "text", "text": text}]
    for number, content in enumerate(shown):
        yield _content_part(content, f"{identity}.{number}")


def _text_in(returned: dict[str, Any]) -> str | None:
    """The text that the model got; what a tool returned may be within the name of its outcome."""
    for facts in (returned, *map(object_of, returned.values())):
        found = next(filter(None, (text_of(facts.get(name)) for name in _FOR_MODEL)), None)
        if found is not None:
            return found
    return None


def subagent_in(update: Update) -> str | None:
    """The session of the subagent that a call has started."""
    returned = {} if isinstance(update.raw_output, UnsetType) else object_of(value_of(update.raw_output))
    named = text_of(returned.get("subagent_id"))
    found = _SUBAGENT.search(text_of(returned.get("text")) or "")
    return named or (found["id"] if found else None)


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """What a tool returned, from the line of its result; None if it is no object."""
    try:
        line = msgspec.json.decode(record, type=UpdateLine)
    except UNREADABLE:
        return None
    update = line.params.update if line.params is not None else Update()
    if update.call_id != tool_call_id or isinstance(update.raw_output, UnsetType):
        return None
    json = clean_json(bytes(update.raw_output))
    return Raw(json) if json.startswith(b"{") else None


# -- tokens


def usage_of(used: TurnUsage) -> Usage | None:
    """Tokens in disjoint buckets; None if none were counted."""
    prompt, output, cached, thought = (
        used.input_tokens,
        used.output_tokens,
        used.cached_read_tokens,
        used.reasoning_tokens,
    )
    if prompt is None and output is None:
        return None
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0)),
        cache_read=cached,
        output=None if output is None else max(0, output - (thought or 0)),
        reasoning=thought,
    )
