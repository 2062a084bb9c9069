"""OpenCode's tools by kind, and its `tool` parts: states, inputs, results, and the sessions that calls started.

Also what parts of any kind contain. A file is inline, as a `data:` address, or named by its address, which is not
opened.
"""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import UNSET

from turnlog.agents import hook_events
from turnlog.agents.decoding import json_of, list_of, object_of, other_fields, text_of
from turnlog.agents.handoffs import MARK, read_mark
from turnlog.agents.opencode import NAME
from turnlog.agents.opencode.rows import Row, to_datetime, to_int
from turnlog.model import (
    FilePart,
    Part,
    ProviderData,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
)

TOOL_KINDS: dict[str, ToolKind] = {
    "apply_patch": ToolKind.EDIT,
    "bash": ToolKind.EXECUTE,
    "codesearch": ToolKind.SEARCH,
    "edit": ToolKind.EDIT,
    "execute": ToolKind.EXECUTE,
    "glob": ToolKind.SEARCH,
    "grep": ToolKind.SEARCH,
    "list": ToolKind.SEARCH,
    "lsp": ToolKind.SEARCH,
    "multiedit": ToolKind.EDIT,
    "patch": ToolKind.EDIT,
    "plan_enter": ToolKind.SWITCH_MODE,
    "plan_exit": ToolKind.SWITCH_MODE,
    "question": ToolKind.ASK,
    "read": ToolKind.READ,
    "shell": ToolKind.EXECUTE,
    "skill": ToolKind.READ,
    "subagent": ToolKind.SUBAGENT,
    "task": ToolKind.SUBAGENT,
    "todoread": ToolKind.THINK,
    "todowrite": ToolKind.THINK,
    "webfetch": ToolKind.FETCH,
    "websearch": ToolKind.FETCH,
    "write": ToolKind.EDIT,
}
"""Tools that OpenCode offers to the model; any other, MCP's (`<server>_<tool>`) included, is of kind `other`."""


# -- what turnlog's own plugin for OpenCode (`plugin.js`) says, in the words that other agents' hooks use


EVENTS = {
    "prompt": hook_events.read_prompt,
    "text": hook_events.read_text_delta,
    "tool.before": hook_events.read_call,
    "tool.after": hook_events.read_result,
    "permission": hook_events.read_permission_request,
}

HOOK_FORMAT = hook_events.HookFormat(NAME, EVENTS, TOOL_KINDS)


# -- calls


_INVALID = "invalid"
"""The tool that OpenCode records for a call of an unknown tool, or with arguments that do not fit."""

_FINAL_STATUSES = ("completed", "error")

_FIELDS = frozenset({"id", "sessionID", "messageID", "type", "callID", "tool", "state", "metadata", MARK})

_STATE_FIELDS = frozenset(
    {"status", "input", "raw", "output", "title", "metadata", "time", "error", "errorType", "attachments"},
)


class ReadCall(NamedTuple):
    """The part for a call, when its result arrived (Unix milliseconds), and the id of the session that it started."""

    part: ToolCallPart
    ended_at: int | None
    child: str | None


def read_call(part: Row, part_id: str, model: str | None, *, is_over: bool) -> ReadCall:
    """The call in a `tool` part.

    Args:
        part: Its JSON.
        part_id: Its id in the model.
        model: The model that made the call.
        is_over: Whether the agent has continued since. A call that still runs then will never end: it was aborted.
    """
    state = object_of(part.get("state"))
    status = state.get("status")
    call_input = object_of(state.get("input"))
    facts = object_of(state.get("metadata"))
    time = object_of(state.get("time"))
    call_id = str(part.get("callID") or part_id)
    name = str(part.get("tool") or "")
    result = _result(call_id, name, state, facts, time, is_over=is_over)
    carried = read_mark(part.get(MARK))
    if result is not None and carried is not None and carried.status is not None:
        result = msgspec.structs.replace(result, status=carried.status)
    ended_at = None if result is None else to_int(time.get("end")) or None
    call = ToolCallPart(
        id=part_id,
        tool_call_id=call_id,
        # The input of `invalid` names the tool that the model called.
        tool_name=str(call_input.get("tool") or name) if name == _INVALID else name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        state=_state(status, result),
        title=text_of(state.get("title")),
        started_at=to_datetime(time.get("start")),
        provider_executed=object_of(part.get("metadata")).get("providerExecuted") is True,
        provider=provider_data(part.get("metadata"), model),
        results=() if result is None else (result,),
        metadata=_metadata(name, {} if status in _FINAL_STATUSES else facts, other_fields(part, _FIELDS)),
    )
    raw = state.get("raw")
    if status == "pending" and isinstance(raw, str) and raw and not call_input:
        call = msgspec.structs.replace(call, input_text=raw)
    elif "input" in state:
        call = msgspec.structs.replace(call, input=json_of(state["input"]))
    return ReadCall(call, ended_at, text_of(facts.get("sessionId")) or text_of(facts.get("sessionID")))


def metadata_of_result(part: Row) -> msgspec.Raw | None:
    """OpenCode's own facts about the result in a `tool` part, its `state.metadata`; None if there are none."""
    facts = object_of(object_of(part.get("state")).get("metadata"))
    return json_of(facts) if facts else None


def _state(status: object, result: ToolResult | None) -> ToolState:
    if result is not None:
        return {
            "success": ToolState.OUTPUT_AVAILABLE,
            "error": ToolState.OUTPUT_ERROR,
            "aborted": ToolState.ABORTED,
            "denied": ToolState.OUTPUT_DENIED,
        }[result.status]
    return ToolState.INPUT_STREAMING if status == "pending" else ToolState.INPUT_AVAILABLE


def _metadata(name: str, running: Row, others: dict[str, Any]) -> dict[str, Any]:
    """The call's own facts; `running` are those of a call that still runs, which has its output so far."""
    facts: Row = {**({"recorded_as": name} if name == _INVALID else {}), **others}
    if running.get("output"):
        facts["output"] = running["output"]
    return {NAME: facts} if facts else {}


# -- results


_DENIED_ERRORS = (
    "rejected permission",
    "permissionrejectederror",
    "permissioncorrectederror",
    "permissiondeniederror",
    "questionrejectederror",
    "specified a rule which prevents",
    "user dismissed",
)

_ABORTED_ERRORS = (
    "tool execution aborted",
    "tool execution interrupted",
    "tool execution was interrupted",
    "task cancelled",
    "aborted",
)

_STATUS_OF_ERROR: dict[str, ResultStatus] = {
    "permission.rejected": "denied",
    "tool.interrupted": "aborted",
    "aborted": "aborted",
}
"""The type of an error, which 2.x has, -> the status of its result. Of any other type its text decides."""

_STOPPED_OUTPUT = re.compile(
    r"<(?:bash|shell)_metadata>[^<]*\bUser aborted the command\b[^<]*</(?:bash|shell)_metadata>\s*\Z"
)
"""The end of the output of a command that the user stopped. OpenCode records its call as completed, without an exit
code."""

_STOPPED_OUTPUT_SIZE = 1024
"""Characters at the end of an output that are searched for it."""


def _result(call_id: str, name: str, state: Row, facts: Row, time: Row, *, is_over: bool) -> ToolResult | None:
    status = state.get("status")
    if status not in _FINAL_STATUSES and not is_over:
        return None
    error = text_of(state.get("error")) if status == "error" else None
    # OpenCode completes such a call with the error as its output.
    if name == _INVALID and status == "completed":
        error = text_of(object_of(state.get("input")).get("error")) or text_of(state.get("output"))
    text = text_of(state.get("output")) if status == "completed" else error or text_of(facts.get("output"))
    start, end = to_int(time.get("start")), to_int(time.get("end"))
    found = facts.get("exit")
    exit_code = found if type(found) is int else None
    # OpenCode completes a call whose command failed: the tool itself did its work.
    if error is None and status == "completed" and exit_code:
        error = text or f"exit code {exit_code}"
    compacted = time.get("compacted")
    return ToolResult(
        id=f"{call_id}:{status if status in _FINAL_STATUSES else 'aborted'}",
        status="aborted" if error is None and _is_stopped_by_user(text, exit_code) else _status(state, error),
        content=_content(call_id, text, state.get("attachments")),
        structured=json_of(facts) if facts else UNSET,
        error_text=error,
        spilled_to=spilled_to(text, facts),
        exit_code=exit_code,
        completed_at=to_datetime(time.get("end")),
        duration_ms=end - start if start and end >= start else None,
        metadata={NAME: own_facts} if (own_facts := _result_facts(state, compacted)) else {},
    )


def _result_facts(state: Row, compacted: object) -> dict[str, Any]:
    return {**({"compacted": compacted} if compacted else {}), **other_fields(state, _STATE_FIELDS)}


def _status(state: Row, error: str | None) -> ResultStatus:
    status = state.get("status")
    if status not in _FINAL_STATUSES:
        return "aborted"
    named = _STATUS_OF_ERROR.get(str(state.get("errorType"))) if status == "error" else None
    if named is not None:
        return named
    message = (error or "").lower()
    if status == "error" and any(phrase in message for phrase in _DENIED_ERRORS):
        return "denied"
    if status == "error" and message.startswith(_ABORTED_ERRORS):
        return "aborted"
    return "success" if error is None and status == "completed" else "error"


def _is_stopped_by_user(text: str | None, exit_code: int | None) -> bool:
    return text is not None and exit_code is None and _STOPPED_OUTPUT.search(text[-_STOPPED_OUTPUT_SIZE:]) is not None


def _content(call_id: str, text: str | None, attachments: object) -> tuple[Part, ...]:
    content: list[Part] = [] if text is None else [TextPart(id=f"{call_id}:0", text=text)]
    content += [
        file_part(object_of(attachment), f"{call_id}:{number}")
        for number, attachment in enumerate(list_of(attachments), 1)
    ]
    return tuple(content)


# -- spilled outputs


OUTPUTS = "tool-output"
"""The folder of spilled outputs."""

OUTPUT_NAME = re.compile(r"tool_(?P<time>[0-9a-f]{12})[0-9A-Za-z]*")

_OUTPUT_NOTE = re.compile(r"Full output saved to: (.+)")


def spilled_to(text: str | None, facts: Row) -> str | None:
    """The name of the file that has the whole of a result's output; None if it was not spilled.

    Args:
        text: The output in the result.
        facts: OpenCode's own facts about the result.
    """
    saved = text_of(facts.get("outputPath"))
    if saved is None and text is not None and (match := _OUTPUT_NOTE.search(text)):
        saved = match[1]
    path = PurePosixPath((saved or "").strip().replace("\\", "/"))
    return path.name if path.parent.name == OUTPUTS and OUTPUT_NAME.fullmatch(path.name) else None


# -- files, and what a provider needs to accept a part again


_INLINE = re.compile(r"data:([^;,]*)((?:;[^,;]*)*),", re.IGNORECASE)

_ANY_TYPE = "application/octet-stream"


def file_part(part: Row, part_id: str) -> FilePart:
    """The file in a `file` part or in an attachment of a result."""
    url, mime = part.get("url"), part.get("mime")
    name = part.get("filename")
    found: dict[str, Any] = {
        "id": part_id,
        "media_type": mime if isinstance(mime, str) and mime else _ANY_TYPE,
        "filename": name if isinstance(name, str) else None,
        "metadata": {NAME: {"source": part["source"]}} if part.get("source") else {},
    }
    address = url if isinstance(url, str) else ""
    data = _inline(address)
    return FilePart(**found, url=address) if data is None else FilePart(**found, data=data)


def _inline(url: str) -> bytes | None:
    match = _INLINE.match(url)
    if match is None:
        return None
    content = url[match.end() :]
    if not match[2].lower().endswith(";base64"):
        return unquote_to_bytes(content)
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return None


PROVIDER_NAMES = frozenset(
    {
        "amazon-bedrock",
        "anthropic",
        "azure",
        "bedrock",
        "copilot",
        "deepseek",
        "gateway",
        "google",
        "googleVertex",
        "groq",
        "mistral",
        "openai",
        "openaiCompatible",
        "openrouter",
        "vertex",
        "xai",
    }
)
"""Keys in a part's `metadata` that providers of the AI SDK use. Any other key with an object is a provider's too."""

_OWN_KEYS = frozenset({"compaction_continue", "providerExecuted", "interrupted", "title", "source"})
"""Keys that OpenCode itself uses."""


def provider_data(metadata: object, model: str | None) -> ProviderData | None:
    """The object of the first provider in a part's metadata that is not empty; None if there is none."""
    found = object_of(metadata)
    for name in sorted(found, key=lambda name: (name not in PROVIDER_NAMES, name)):
        opaque = object_of(found[name])
        if name not in _OWN_KEYS and any(opaque.values()):
            return ProviderData(name=name, model=model, opaque=opaque)
    return None
