"""The contents of Hermes Agent's rows: texts, thoughts, calls and results -> parts, and its tools by kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.decoding import clean_json, value_of
from turnlog.model import (
    FilePart,
    Part,
    ProviderData,
    ReasoningPart,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    UnknownPart,
)

TOOL_KINDS: dict[str, ToolKind] = {
    "browser_back": ToolKind.FETCH,
    "browser_click": ToolKind.FETCH,
    "browser_console": ToolKind.FETCH,
    "browser_get_images": ToolKind.FETCH,
    "browser_navigate": ToolKind.FETCH,
    "browser_press": ToolKind.FETCH,
    "browser_scroll": ToolKind.FETCH,
    "browser_snapshot": ToolKind.FETCH,
    "browser_type": ToolKind.FETCH,
    "browser_vision": ToolKind.FETCH,
    "clarify": ToolKind.ASK,
    "delegate_task": ToolKind.SUBAGENT,
    "execute_code": ToolKind.EXECUTE,
    "memory": ToolKind.THINK,
    "patch": ToolKind.EDIT,
    "process": ToolKind.EXECUTE,
    "read_file": ToolKind.READ,
    "search_files": ToolKind.SEARCH,
    "session_search": ToolKind.SEARCH,
    "skill_view": ToolKind.READ,
    "skills_list": ToolKind.SEARCH,
    "terminal": ToolKind.EXECUTE,
    "todo": ToolKind.THINK,
    "vision_analyze": ToolKind.READ,
    "web_extract": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
    "write_file": ToolKind.EDIT,
}
"""Tools that the recorded versions offer to the model; any other, MCP's included, is of kind `other`."""

_STRUCTURED = "\x00json:"
"""How a content begins that is JSON: a list of parts, as in OpenAI's API."""

_DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)

_OPAQUE = ("reasoning_details", "codex_reasoning_items", "codex_message_items")
"""Columns with JSON that a provider needs to accept an answer again."""

_REFUSED = frozenset({"blocked", "approval_required"})
_INTERRUPTED = "[Command interrupted]"


def time_of(seconds: object) -> datetime | None:
    """The time of a number of Unix seconds; None if it is none."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


class _Url(msgspec.Struct):
    url: str | None = None


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    image_url: _Url | None = None


def content_parts(content: object, message_id: str, first: int = 0) -> Iterator[Part]:
    """The parts of a content, numbered from `first`: a text, or a list of parts."""
    text = "" if content is None else str(content)
    if not text.startswith(_STRUCTURED):
        if text:
            yield TextPart(id=f"{message_id}.{first}", text=text)
        return
    for number, raw in enumerate(_items(text.removeprefix(_STRUCTURED)), first):
        yield _block_part(raw, f"{message_id}.{number}")


def _items(text: str) -> list[Raw]:
    try:
        return msgspec.json.decode(text.encode(errors="replace"), type=list[Raw])
    except (msgspec.MsgspecError, RecursionError):
        return [Raw(msgspec.json.encode(text))]


def _block_part(raw: Raw, part_id: str) -> Part:
    try:
        block = msgspec.json.decode(raw, type=_Block)
    except (msgspec.MsgspecError, RecursionError):
        return UnknownPart(id=part_id, kind="", data=raw.copy())
    if block.type == "text" and block.text is not None:
        return TextPart(id=part_id, text=block.text)
    url = block.image_url.url if block.image_url is not None else None
    if block.type == "image_url" and url:
        found = _DATA_URL.fullmatch(url)
        data = from_base64(found["data"]) if found else None
        if found and data is not None:
            return FilePart(id=part_id, media_type=found["type"], data=data)
        if not found:
            return FilePart(id=part_id, media_type="image/*", url=url)
    return UnknownPart(id=part_id, kind=block.type, data=raw.copy())


def reasoning_part(row: dict[str, Any], part_id: str, model: str | None) -> ReasoningPart | None:
    """The thoughts of an answer, with what its provider needs to accept them again; None if there are none."""
    # The recorded runs hold the same thought in both columns.
    text = row.get("reasoning_content") or row.get("reasoning")
    opaque = {name: _json_in(row[name]) for name in _OPAQUE if row.get(name)}
    if not text and not opaque:
        return None
    # No row names the provider, only the totals of the session do.
    provider = ProviderData(name="unknown", model=model, opaque=opaque) if opaque else None
    return ReasoningPart(id=part_id, text=str(text or ""), redacted=not text, provider=provider)


def _json_in(text: object) -> Any:
    data = str(text).encode(errors="replace")
    try:
        msgspec.json.decode(data, type=Raw)
    except (msgspec.MsgspecError, RecursionError):
        return str(text)
    return value_of(data)


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | Raw | None = None


class _Call(msgspec.Struct):
    id: str | None = None
    function: _Function | None = None


def call_parts(text: object, message_id: str, first: int, at: datetime | None) -> Iterator[Part]:
    """The calls in the column `tool_calls`, numbered from `first`."""
    for number, raw in enumerate(_items(str(text)), first):
        part_id = f"{message_id}.{number}"
        try:
            call = msgspec.json.decode(raw, type=_Call)
        except (msgspec.MsgspecError, RecursionError):
            yield UnknownPart(id=part_id, kind="tool_call", data=raw.copy())
            continue
        name = (call.function.name if call.function is not None else None) or ""
        value, text_of_input = _input_of(call.function)
        yield ToolCallPart(
            id=part_id,
            tool_call_id=call.id or part_id,
            tool_name=name,
            kind=TOOL_KINDS.get(name, ToolKind.OTHER),
            input=value,
            input_text=text_of_input,
            started_at=at,
        )


def _input_of(function: _Function | None) -> tuple[Any, str | None]:
    """The input as exact JSON, or as a text if it is none."""
    arguments = function.arguments if function is not None else None
    if arguments is None:
        return UNSET, None
    if isinstance(arguments, Raw):
        return Raw(clean_json(bytes(arguments))), None
    # The arguments are a string in OpenAI's API, and a model may write one that is no JSON.
    data = arguments.encode(errors="replace")
    try:
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return UNSET, arguments
    return Raw(data), None


class _Outcome(msgspec.Struct):
    exit_code: int | None = None
    error: Any = None
    status: Any = None
    success: Any = None
    output: Any = None


def result_of(row: dict[str, Any], call_id: str) -> ToolResult:
    """The result in a row of role `tool`. Most texts are a JSON object that says how the call ended."""
    text = str(row.get("content") or "")
    # A compaction writes results again, so the id is made of the content and not of the row's number.
    identity = f"{call_id}:{crc32(text.encode(errors='replace')):08x}"
    outcome = _outcome_of(text)
    status = _status_of(outcome)
    return ToolResult(
        id=identity,
        status=status,
        content=tuple(content_parts(text, identity)),
        error_text=_error_text(outcome, text) if status != "success" else None,
        exit_code=outcome.exit_code,
        completed_at=time_of(row.get("timestamp")),
    )


def _outcome_of(text: str) -> _Outcome:
    # A file that was read is its own text, whatever it contains.
    if not text.startswith("{"):
        return _Outcome()
    try:
        return msgspec.json.decode(text.encode(errors="replace"), type=_Outcome)
    except (msgspec.MsgspecError, RecursionError):
        return _Outcome()


def _status_of(outcome: _Outcome) -> ResultStatus:
    # Before the others: a refusal may carry an `error` as well.
    if outcome.status in _REFUSED:
        return "denied"
    if isinstance(outcome.output, str) and outcome.output.endswith(_INTERRUPTED):
        return "aborted"
    has_failed = outcome.error or outcome.success is False or outcome.exit_code not in (None, 0)
    return "error" if has_failed else "success"


def _error_text(outcome: _Outcome, text: str) -> str:
    reported = outcome.error or outcome.output
    return reported if isinstance(reported, str) and reported else text


def structured_result(line: bytes) -> Raw | None:
    """The object that the text of a result is, from the line of its row; None if it is none."""
    try:
        row = msgspec.json.decode(line, type=dict[str, Raw]).get("row", Raw(b"{}"))
        text = msgspec.json.decode(row, type=dict[str, Any]).get("content")
        if not isinstance(text, str) or not text.startswith("{"):
            return None
        msgspec.json.decode(text, type=dict[str, Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return Raw(text.encode())
