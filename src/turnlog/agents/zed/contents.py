"""What Zed's messages hold: texts, thoughts, calls, results and tokens -> parts, and its tools by kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.decoding import list_of, object_of, text_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.row_files import RowLine, row_of
from turnlog.agents.zed import NAME
from turnlog.agents.zed.database import message_of
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
    ToolState,
    UnknownPart,
    Usage,
)
from turnlog.model.parts import STATE_OF_STATUS

TOOL_KINDS: dict[str, ToolKind] = {
    "copy_path": ToolKind.EDIT,
    "create_directory": ToolKind.EDIT,
    "create_file": ToolKind.EDIT,
    "delete_path": ToolKind.DELETE,
    "diagnostics": ToolKind.READ,
    "edit_file": ToolKind.EDIT,
    "fetch": ToolKind.FETCH,
    "find_path": ToolKind.SEARCH,
    "grep": ToolKind.SEARCH,
    "list_directory": ToolKind.SEARCH,
    "move_path": ToolKind.MOVE,
    "read_file": ToolKind.READ,
    "spawn_agent": ToolKind.SUBAGENT,
    "terminal": ToolKind.EXECUTE,
    "thinking": ToolKind.THINK,
    "update_plan": ToolKind.THINK,
    "web_search": ToolKind.FETCH,
    "write_file": ToolKind.EDIT,
}
"""Tools that Zed offers to the model; any other, MCP's included, is of kind `other`."""

_EXIT_CODE: Final = re.compile(r"failed with exit code (?P<code>\d{1,3})\b")
_CANCELLED: Final = "Tool canceled by user"
_DENIED: Final = "Permission to run tool denied by user"

Json = dict[str, Any]


def user_parts(content: object, message_id: str) -> Iterator[Part]:
    """The parts of a prompt: what was typed, and what a mention stands for."""
    for number, block in enumerate(list_of(content)):
        part_id = f"{message_id}.{number}"
        kind, value = tagged(block)
        if kind == "Mention":
            mention = object_of(value)
            # Zed puts it in the place of a name that was typed.
            marks = {"synthetic": True, "attached": mention.get("uri")}
            yield TextPart(id=f"{part_id}.name", text=f"@{_mentioned(mention.get('uri'))}")
            yield TextPart(id=part_id, text=text_of(mention.get("content")) or "", metadata={NAME: marks})
        else:
            yield _content_part(kind, value, block, part_id)


def _mentioned(uri: object) -> str:
    """What a mention names: a rule or a thread by its name, an address as it is, a file without its folders."""
    kind, value = tagged(uri)
    fields = object_of(value)
    path = text_of(fields.get("abs_path")) or text_of(fields.get("path")) or ""
    file = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    return text_of(fields.get("name")) or text_of(fields.get("url")) or file or kind.lower() or "unknown"


def tagged(block: object) -> tuple[str, Any]:
    """The name and the value of a piece, which is an object with one field; a text is a name without a value."""
    if isinstance(block, str):
        return block, None
    fields = object_of(block)
    return next(iter(fields.items())) if len(fields) == 1 else ("", None)


def _content_part(kind: str, value: Any, block: object, part_id: str) -> Part:
    if kind == "Text" and isinstance(value, str):
        return TextPart(id=part_id, text=value)
    data = from_base64(text_of(object_of(value).get("source")) or "") if kind == "Image" else None
    if data:
        # Zed makes a PNG of every picture.
        return FilePart(id=part_id, media_type="image/png", data=data)
    return UnknownPart(id=part_id, kind=kind, data=Raw(msgspec.json.encode(block)))


def agent_parts(message: Json, message_id: str) -> Iterator[Part]:
    """The parts of an answer, with the results of its calls."""
    results = object_of(message.get("tool_results"))
    for number, block in enumerate(list_of(message.get("content"))):
        part_id = f"{message_id}.{number}"
        kind, value = tagged(block)
        if kind == "Thinking":
            yield thought(object_of(value), part_id)
        elif kind == "RedactedThinking":
            yield thought({"data": value}, part_id)
        elif kind == "ToolUse":
            called = object_of(value)
            yield call_part(called, object_of(results.get(str(called.get("id")))), part_id)
        else:
            yield _content_part(kind, value, block, part_id)


def thought(fields: Json, part_id: str) -> ReasoningPart:
    """A thought, with what its provider needs to accept it again."""
    opaque = {name: fields[name] for name in ("signature", "data") if fields.get(name)}
    text = text_of(fields.get("text")) or ""
    provider = ProviderData(name="unknown", opaque=opaque) if opaque else None
    return ReasoningPart(id=part_id, text=text, redacted=not text, provider=provider)


def call_part(called: Json, answered: Json, part_id: str) -> ToolCallPart:
    """A call with its result, if it has one."""
    name, given, typed = text_of(called.get("name")) or "", called.get("input"), text_of(called.get("raw_input"))
    # What a model wrote that is no JSON is the raw input alone.
    is_text = not given and typed is not None and typed != "{}"
    identity = text_of(called.get("id")) or part_id
    result = result_of(answered, identity) if answered else None
    return ToolCallPart(
        id=part_id,
        tool_call_id=identity,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=UNSET if is_text else Raw(msgspec.json.encode({} if given is None else given)),
        input_text=typed if is_text else None,
        state=ToolState.INPUT_AVAILABLE if result is None else STATE_OF_STATUS[result.status],
        results=() if result is None else (result,),
    )


# -- results


def result_of(answered: Json, call: str) -> ToolResult:
    """The result of a call. Its content is a text, an object with one, or a list of them."""
    identity = f"{call}.result"
    content: object = answered.get("content")
    pieces = list_of(content) or [content]
    parts = [_result_part(piece, f"{identity}.{number}") for number, piece in enumerate(pieces) if piece]
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    code = _EXIT_CODE.search(text) if answered.get("tool_name") == "terminal" else None
    status = _status_of(answered, text, failed=code is not None)
    return ToolResult(
        id=identity,
        status=status,
        content=tuple(parts),
        error_text=text or None if status != "success" else None,
        exit_code=None if code is None else int(code["code"]),
    )


def _result_part(piece: object, part_id: str) -> Part:
    if isinstance(piece, str):
        return TextPart(id=part_id, text=piece)
    fields = object_of(piece)
    if isinstance(fields.get("text"), str):
        return TextPart(id=part_id, text=fields["text"])
    return _content_part(*tagged(piece), piece, part_id)


def _status_of(answered: Mapping[str, Any], text: str, *, failed: bool) -> ResultStatus:
    if text.startswith(_DENIED):
        return "denied"
    if text.startswith(_CANCELLED):
        return "aborted"
    return "error" if answered.get("is_error") is True or failed else "success"


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """What a tool returned beside the text for the model, from the line of its answer; None if it is no object."""
    try:
        message = msgspec.json.decode(message_of(row_of(msgspec.json.decode(record, type=RowLine))))
    except UNREADABLE:
        return None
    agent = object_of(object_of(message).get("Agent"))
    output = object_of(object_of(agent.get("tool_results")).get(tool_call_id)).get("output")
    return Raw(msgspec.json.encode(output)) if isinstance(output, dict) else None


# -- tokens


def usage_of(counts: Json, provider: str | None) -> Usage | None:
    """The tokens of a thread in disjoint buckets; None if none were counted."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    found = [counts.get(name) for name in names]
    # True is an int in Python, and no number of tokens.
    known = [count if type(count) is int and 0 <= count <= 1 << 53 else 0 for count in found]
    if not any(known):
        return None
    fresh, read, written, output = known
    # Only Anthropic's counts tell what a cache held; those of others are inside the input.
    is_exact = provider == "anthropic" or bool(read or written)
    return Usage(
        input=fresh,
        cache_read=read if is_exact else None,
        cache_write=written if is_exact else None,
        output=output,
        exactness="exact" if is_exact else "estimated",
    )
