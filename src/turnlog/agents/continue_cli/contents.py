"""What Continue's messages are made of: texts, pictures, thoughts, calls, results and tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.continue_cli.records import CallState, CallUsage, ModelCall
from turnlog.agents.decoding import list_of, object_of, text_of, value_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.model import (
    FilePart,
    Part,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
    UnknownPart,
    Usage,
)
from turnlog.model.parts import STATE_OF_STATUS

TOOL_KINDS: dict[str, ToolKind] = {
    "AskQuestion": ToolKind.ASK,
    "Bash": ToolKind.EXECUTE,
    "CheckBackgroundJob": ToolKind.READ,
    "Checklist": ToolKind.THINK,
    "Edit": ToolKind.EDIT,
    "Fetch": ToolKind.FETCH,
    "List": ToolKind.SEARCH,
    "MultiEdit": ToolKind.EDIT,
    "Read": ToolKind.READ,
    "Search": ToolKind.SEARCH,
    "Skills": ToolKind.READ,
    "Subagent": ToolKind.SUBAGENT,
    "Write": ToolKind.EDIT,
    "builtin_create_new_file": ToolKind.EDIT,
    "builtin_edit_existing_file": ToolKind.EDIT,
    "builtin_fetch_url_content": ToolKind.FETCH,
    "builtin_file_glob_search": ToolKind.SEARCH,
    "builtin_grep_search": ToolKind.SEARCH,
    "builtin_ls": ToolKind.SEARCH,
    "builtin_read_currently_open_file": ToolKind.READ,
    "builtin_read_file": ToolKind.READ,
    "builtin_run_terminal_command": ToolKind.EXECUTE,
    "builtin_search_web": ToolKind.FETCH,
}
"""Tools of 1.5.47 and of the extension for editors; any other, MCP's included, is of kind `other`."""

_EXIT_CODE = re.compile(r"Error \(exit code (?P<code>\d{1,3})\)")

_DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)

_STATUSES: dict[str, ResultStatus] = {"done": "success", "errored": "error", "canceled": "aborted"}
"""Status of a call -> that of its result. Calls with another one still run."""

StructT = TypeVar("StructT", bound=msgspec.Struct)


def decoded(raw: Raw | UnsetType, kind: type[StructT]) -> StructT | None:
    """A value as a struct; None if it is none, or has another shape."""
    if isinstance(raw, UnsetType):
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except UNREADABLE:
        return None


def content_parts(content: Raw | UnsetType, message_id: str) -> Iterator[Part]:
    """The parts of a content: a text, or a list of texts and pictures."""
    value = None if isinstance(content, UnsetType) else value_of(content)
    if isinstance(value, str):
        if value:
            yield TextPart(id=f"{message_id}.0", text=value)
        return
    for number, block in enumerate(map(object_of, list_of(value))):
        yield _block_part(block, f"{message_id}.{number}")


def _block_part(block: dict[str, Any], part_id: str) -> Part:
    text, url = block.get("text"), text_of(object_of(block.get("imageUrl")).get("url"))
    if block.get("type") == "text" and isinstance(text, str):
        return TextPart(id=part_id, text=text)
    if url is not None:
        found = _DATA_URL.fullmatch(url)
        data = from_base64(found["data"]) if found else None
        if found and data is not None:
            return FilePart(id=part_id, media_type=found["type"], data=data)
        return FilePart(id=part_id, media_type="image/*", url=url)
    return UnknownPart(id=part_id, kind=str(block.get("type")), data=Raw(msgspec.json.encode(block)))


def call_parts(calls: Sequence[Raw], states: Sequence[Raw], message_id: str, first: int) -> Iterator[ToolCallPart]:
    """The calls of an answer, each with what became of it."""
    found = [state for raw in states if (state := decoded(raw, CallState)) is not None]
    by_call = {state.tool_call_id: state for state in found}
    for number, raw in enumerate(calls, first):
        call = decoded(raw, ModelCall)
        if call is not None:
            yield _call_part(call, by_call.get(call.id), f"{message_id}.{number}")


def _call_part(call: ModelCall, state: CallState | None, part_id: str) -> ToolCallPart:
    name = (call.function.name if call.function is not None else None) or ""
    text = call.function.arguments if call.function is not None else None
    value: Any = UNSET
    if text is not None:
        data = text.encode(errors="replace")
        try:
            msgspec.json.decode(data)
            value, text = Raw(data), None
        except UNREADABLE:
            pass
    identity = call.id or part_id
    result = None if state is None else result_of(state, identity)
    return ToolCallPart(
        id=part_id,
        tool_call_id=identity,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=value,
        input_text=text,
        state=ToolState.INPUT_AVAILABLE if result is None else STATE_OF_STATUS[result.status],
        results=() if result is None else (result,),
    )


def result_of(state: CallState, call_id: str) -> ToolResult | None:
    """The result of a call; None while it runs."""
    status = _STATUSES.get(state.status or "")
    if status is None:
        return None
    identity = f"{call_id}.result"
    texts = [piece.content for piece in state.output or () if piece.content]
    code = _EXIT_CODE.search(texts[0]) if texts and status == "error" else None
    return ToolResult(
        id=identity,
        status=status,
        content=tuple([TextPart(id=f"{identity}.{number}", text=text) for number, text in enumerate(texts)]),
        error_text="\n".join(texts) if status == "error" else None,
        exit_code=None if code is None else int(code["code"]),
    )


def usage_of(counted: CallUsage | None) -> Usage | None:
    """Tokens in disjoint buckets; None if none were counted."""
    if counted is None or not (counted.prompt_tokens or counted.completion_tokens):
        return None
    given, made = counted.prompt_tokens_details, counted.completion_tokens_details
    read = (given.cached_tokens or given.cache_read_tokens) if given is not None else None
    written = given.cache_write_tokens if given is not None else None
    thought = (made.reasoning_tokens or None) if made is not None else None
    prompt, output = counted.prompt_tokens, counted.completion_tokens
    return Usage(
        input=None if prompt is None else max(0, prompt - (read or 0) - (written or 0)),
        cache_read=read,
        cache_write=written,
        output=None if output is None else max(0, output - (thought or 0)),
        reasoning=thought,
    )
