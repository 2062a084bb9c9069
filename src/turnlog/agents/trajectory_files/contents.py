"""What steps are made of: texts, images, calls, results and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import (
    aware,
    clean_json,
    fields_of,
    list_of,
    object_of,
    other_fields,
    small_object,
    text_of,
    value_of,
)
from turnlog.agents.trajectory_files import NAME
from turnlog.agents.trajectory_files.records import StepCall, StepMetrics, StepRecord, StepResult
from turnlog.model import (
    Approval,
    Cost,
    FilePart,
    MessageError,
    Part,
    ReasoningPart,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
    UnknownPart,
    Usage,
)

_NAMES: dict[ToolKind, str] = {
    ToolKind.EXECUTE: "bash bash_command execute_bash execute exec exec_command run run_command shell run_in_terminal"
    " run_shell_command run_terminal_cmd shell_command terminal execute_command local_shell ipython python write_stdin",
    ToolKind.READ: "read read_file view view_file open cat read_many_files",
    ToolKind.EDIT: "edit edit_file write write_file create create_file multiedit notebookedit replace apply_patch"
    " str_replace str_replace_editor str_replace_based_edit_tool insert patch",
    ToolKind.SEARCH: "grep glob ls list list_files list_directory search search_files find toolsearch"
    " search_file_content codebase_search",
    ToolKind.FETCH: "webfetch web_fetch websearch web_search fetch google_web_search",
    ToolKind.SUBAGENT: "task agent spawn_agent subagent delegate",
    ToolKind.THINK: "think todowrite todo_write update_plan plan",
    ToolKind.ASK: "askuserquestion ask_user request_user_input question",
}

TOOL_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""Names of tools, in small letters, as agents of many kinds have them; any other is of kind `other`."""

_WRITES = ("cache_write_tokens", "cache_creation_input_tokens", "cache_write_input_tokens", "cache_write")
_THOUGHTS = ("reasoning_tokens", "reasoning_output_tokens", "thoughts_tokens", "reasoning")
"""What programs call these counts in the `extra` of metrics, where the format has no field for them."""

_STATUSES: dict[str, ResultStatus] = {
    "success": "success",
    "error": "error",
    "aborted": "aborted",
    "denied": "denied",
}

_FAILED = ("is_error", "tool_result_is_error")

_CALL_FACTS = frozenset(
    [
        "kind",
        "state",
        "title",
        "started_at",
        "provider_executed",
        "parent_tool_call_id",
        "approval",
        "arguments_are_input",
    ]
)
_RESULT_FACTS = frozenset(
    ["status", "error_text", "exit_code", "preliminary", "completed_at", "duration_ms", "tool_call_id", "tool_name"]
)
"""What turnlog writes into `extra`, and reads again."""

EnumT = TypeVar("EnumT", bound=StrEnum)


def own_metadata(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts as metadata; empty if there are none."""
    known = {name: value for name, value in facts.items() if value not in (None, {}, [])}
    return {NAME: known} if known else {}


def extra_of(raw: Raw | UnsetType, read: frozenset[str] = frozenset()) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of an `extra` that are read, and all others as they are kept in metadata."""
    small = small_object(raw)
    if small is not None:
        # Nearly all of them are empty, or have nothing but what is read.
        if small.keys() <= read:
            return small, {}
        return (
            {name: value for name, value in small.items() if name in read},
            {name: value for name, value in small.items() if name not in read and value is not None},
        )
    fields = fields_of(raw)
    known = {name: value_of(value) for name, value in fields.items() if name in read}
    return known, other_fields(fields, read).get("other_fields", {})


def time_of(text: object) -> datetime | None:
    """The time in a text, UTC where it names no zone; None if it is none."""
    try:
        return aware(datetime.fromisoformat(text)) if isinstance(text, str) else None
    except ValueError:
        return None


def member(kind: type[EnumT], value: object) -> EnumT | None:
    """The member of an enumeration with this value; None if it has none."""
    try:
        return kind(value)
    except ValueError:
        return None


def count_of(facts: Mapping[str, Any], *names: str) -> int | None:
    """The first of these fields that is a plausible number of tokens, milliseconds or the like."""
    found = (facts.get(name) for name in names)
    return next((value for value in found if type(value) is int and 0 <= value <= 1 << 53), None)


# -- texts, images, sounds


def content_parts(content: Raw | UnsetType, owner: str, files: Mapping[str, bytes]) -> list[Part]:
    """The parts of a content: a text, or a list of texts, images and sounds."""
    value = None if isinstance(content, UnsetType) else _value(content)
    if isinstance(value, str):
        return [TextPart(id=f"{owner}.0", text=value)] if value else []
    if value is None or value == []:
        return []
    items = list_of(value) or [value]
    return [_content_part(item, f"{owner}.{number}", files) for number, item in enumerate(items)]


def _value(raw: Raw) -> Any:
    """The value of a content, of any size; a text that is not valid stays readable."""
    try:
        return msgspec.json.decode(clean_json(bytes(raw)))
    except (msgspec.DecodeError, RecursionError):
        return value_of(raw)


def _content_part(item: object, part_id: str, files: Mapping[str, bytes]) -> Part:
    fields = object_of(item)
    text, source = fields.get("text"), object_of(fields.get("source"))
    if fields.get("type") == "text" and isinstance(text, str):
        return TextPart(id=part_id, text=text)
    path, media_type = text_of(source.get("path")), text_of(source.get("media_type"))
    if fields.get("type") in ("image", "audio") and path is not None:
        kind = media_type or f"{fields['type']}/*"
        facts = own_metadata({"path": path, "duration_sec": source.get("duration_sec")})
        if path in files:
            return FilePart(id=part_id, media_type=kind, data=files[path], metadata=facts)
        return FilePart(id=part_id, media_type=kind, url=path, metadata=facts)
    return UnknownPart(
        id=part_id, kind=str(fields.get("type", "content")), data=Raw(msgspec.json.encode(fields or item))
    )


# -- calls and results


def call_part(call: StepCall, part_id: str, at: datetime | None) -> ToolCallPart:
    """A call of a step at this time. Without an id in its record its place is its id."""
    facts, others = extra_of(call.extra, _CALL_FACTS)
    arguments: Any = UNSET if isinstance(call.arguments, UnsetType) else Raw(clean_json(bytes(call.arguments)))
    text: str | None = None
    if facts.get("arguments_are_input") is True:
        arguments = fields_of(arguments).get("input", arguments)
        value = _value(arguments)
        arguments, text = (UNSET, value) if isinstance(value, str) else (arguments, None)
    name = call.function_name or ""
    approval = object_of(facts.get("approval"))
    return ToolCallPart(
        id=part_id,
        tool_call_id=call.tool_call_id or part_id,
        tool_name=name,
        kind=member(ToolKind, facts.get("kind")) or TOOL_KINDS.get(name.lower(), ToolKind.OTHER),
        input=arguments,
        input_text=text,
        state=member(ToolState, facts.get("state")) or ToolState.INPUT_AVAILABLE,
        title=text_of(facts.get("title")),
        started_at=time_of(facts.get("started_at")) or at,
        provider_executed=facts.get("provider_executed") is True,
        parent_tool_call_id=text_of(facts.get("parent_tool_call_id")),
        approval=_approval(approval) if approval else None,
        metadata=own_metadata(others),
    )


def _approval(facts: Mapping[str, Any]) -> Approval:
    approved = facts.get("approved")
    return Approval(
        id=text_of(facts.get("id")),
        approved=approved if isinstance(approved, bool) else None,
        source=text_of(facts.get("source")),
        reason=text_of(facts.get("reason")),
        metadata=object_of(facts.get("metadata")),
    )


def result_of(result: StepResult, identity: str, files: Mapping[str, bytes]) -> ToolResult:
    """A result. It has failed if its `extra` says so, which the format itself cannot."""
    facts, others = extra_of(result.extra, _RESULT_FACTS)
    content = tuple(content_parts(result.content, identity, files))
    status: ResultStatus = _STATUSES.get(str(facts.get("status")), "success")
    if "status" not in facts and any(others.get(name) is True for name in _FAILED):
        status = "error"
    error = text_of(facts.get("error_text"))
    if error is None and status == "error":
        error = "\n".join([part.text for part in content if isinstance(part, TextPart)]) or None
    code = facts.get("exit_code")
    return ToolResult(
        id=identity,
        status=status,
        content=content,
        error_text=error,
        exit_code=code if type(code) is int and abs(code) < 1 << 32 else None,
        preliminary=facts.get("preliminary") is True,
        completed_at=time_of(facts.get("completed_at")),
        duration_ms=count_of(facts, "duration_ms"),
        metadata=own_metadata(others),
    )


def orphan_call(result: StepResult) -> tuple[str | None, str | None]:
    """The call of a result whose step cannot name it, and its tool: turnlog writes both into `extra`."""
    facts, _ = extra_of(result.extra, _RESULT_FACTS)
    return text_of(facts.get("tool_call_id")), text_of(facts.get("tool_name"))


# -- thoughts, tokens, errors


def thought_parts(step: StepRecord, message_id: str) -> list[Part]:
    """The reasoning of a step, which the format has before everything else."""
    text = step.reasoning_content
    return [ReasoningPart(id=f"{message_id}.thought", text=text)] if text else []


def usage_of(metrics: StepMetrics | None) -> Usage | None:
    """Tokens in disjoint buckets; None if none are known. What a step does not say is not known."""
    if metrics is None:
        return None
    extra = small_object(metrics.extra)
    if extra is None:
        extra = {name: value_of(raw) for name, raw in fields_of(metrics.extra).items()}
    return tokens_of(metrics.prompt_tokens, metrics.completion_tokens, metrics.cached_tokens, extra)


def tokens_of(
    prompt: int | None, completion: int | None, cached: int | None, extra: Mapping[str, Any] | None = None
) -> Usage | None:
    """Tokens in disjoint buckets: `prompt` contains `cached` and what was written to a cache."""
    facts = extra or {}
    written, thought = count_of(facts, *_WRITES), count_of(facts, *_THOUGHTS)
    if prompt is None and completion is None and cached is None:
        return None
    exactness = facts.get("exactness")
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0) - (written or 0)),
        cache_read=cached,
        cache_write=written,
        output=None if completion is None else max(0, completion - (thought or 0)),
        reasoning=thought,
        service_tier=text_of(facts.get("service_tier")),
        exactness=exactness if exactness in ("lower_bound", "estimated") else "exact",
    )


def cost_of(metrics: StepMetrics | None) -> Cost | None:
    """What the program says that a step cost; None for a price that turnlog computed, which it does again."""
    if metrics is None or metrics.cost_usd is None or is_priced(metrics.extra):
        return None
    return Cost(amount=Decimal(repr(metrics.cost_usd)), kind="reported")


def is_priced(extra: Raw | UnsetType) -> bool:
    """Whether turnlog computed the cost beside this `extra`."""
    kind = fields_of(extra).get("cost_kind")
    return kind is not None and value_of(kind) == "priced"


def error_of(fact: object) -> MessageError | None:
    """A failed model call, as turnlog writes it."""
    fields = object_of(fact)
    text, status = text_of(fields.get("text")), fields.get("status")
    if text is None:
        return None
    return MessageError(
        text=text, kind=text_of(fields.get("kind")), status=status if type(status) is int and status < 1000 else None
    )
