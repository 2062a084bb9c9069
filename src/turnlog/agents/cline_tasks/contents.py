"""What a task's messages are made of: blocks as in Anthropic's API, calls in the text of older versions, prompts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.claude_code.contents import from_base64
from turnlog.agents.conversation import blocks_of
from turnlog.agents.decoding import clean_json, object_of, text_of
from turnlog.agents.jsonl import UNREADABLE
from turnlog.model import (
    Cost,
    FilePart,
    Part,
    ReasoningPart,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    UnknownPart,
    Usage,
)

TOOL_KINDS: dict[str, ToolKind] = {
    "access_mcp_resource": ToolKind.FETCH,
    "apply_diff": ToolKind.EDIT,
    "apply_patch": ToolKind.EDIT,
    "ask_followup_question": ToolKind.ASK,
    "attempt_completion": ToolKind.OTHER,
    "browser_action": ToolKind.FETCH,
    "codebase_search": ToolKind.SEARCH,
    "condense": ToolKind.THINK,
    "edit_file": ToolKind.EDIT,
    "execute_command": ToolKind.EXECUTE,
    "fetch_instructions": ToolKind.READ,
    "focus_chain": ToolKind.THINK,
    "generate_image": ToolKind.OTHER,
    "insert_content": ToolKind.EDIT,
    "list_code_definition_names": ToolKind.SEARCH,
    "list_files": ToolKind.READ,
    "load_mcp_documentation": ToolKind.READ,
    "new_rule": ToolKind.EDIT,
    "new_task": ToolKind.SUBAGENT,
    "plan_mode_respond": ToolKind.OTHER,
    "read_command_output": ToolKind.EXECUTE,
    "read_file": ToolKind.READ,
    "replace_in_file": ToolKind.EDIT,
    "report_bug": ToolKind.OTHER,
    "run_slash_command": ToolKind.OTHER,
    "search_and_replace": ToolKind.EDIT,
    "search_files": ToolKind.SEARCH,
    "search_replace": ToolKind.EDIT,
    "skill": ToolKind.READ,
    "summarize_task": ToolKind.THINK,
    "switch_mode": ToolKind.SWITCH_MODE,
    "update_todo_list": ToolKind.THINK,
    "use_mcp_tool": ToolKind.OTHER,
    "use_skill": ToolKind.READ,
    "use_subagents": ToolKind.SUBAGENT,
    "web_fetch": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
    "write_to_file": ToolKind.EDIT,
}
"""Tools of the family, which are also the elements that count as calls in a text; others are of kind `other`."""

_CALL = re.compile(rf"<(?P<name>{'|'.join(TOOL_KINDS)})>(?P<body>.*?)(?:</(?P=name)>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<(?P<name>\w+)>(?P<value>.*?)</(?P=name)>", re.DOTALL)
_THOUGHT = re.compile(r"\A\s*<thinking>(?P<text>.*?)(?:</thinking>|\Z)", re.DOTALL)

_ENVIRONMENT = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
_TYPED = re.compile(
    r"<(?P<tag>task|user_message|feedback|answer)>\s?(?P<text>.*?)\s?</(?P=tag)>(?P<rest>.*)\Z", re.DOTALL
)
"""The tags around what the user typed."""

_HEADER = re.compile(r"\A\[(?P<name>\w+)(?: (?:for|to|in|on) .*?)?\] Result:\s*", re.DOTALL)
"""How the text of a result begins in versions whose calls are text."""

_OWN_WORDS = ("[TASK RESUMPTION]", "[ERROR]", "Note: ", "[NOTE]", "[Response interrupted", "# task_progress ")
"""How texts of the role `user` begin that the extension writes."""

_DENIED = ("The user denied this operation", "The user denied this tool", "rejected by the user", "User denied")
_FAILED = (
    *("The tool execution failed", "Error ", "Error:", "<error>", '{"status":"error"', "Failed to "),
    *("Tool [", "The content could not be", "Command execution failed"),
)
_EXIT_CODE = re.compile(r"(?:Exit code|exit code|exited with (?:code|exit code)):? *(?P<code>\d{1,3})\b")

_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((?P<path>[^\n]+?)\)")
_MODEL = re.compile(r"<model>(?P<name>[^<\n]+)</model>")


def time_of(milliseconds: object) -> datetime | None:
    """The time of a number of Unix milliseconds; None if it is none."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or milliseconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


class TaskBlock(msgspec.Struct):
    """A block of a content."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    summary: Any = None
    id: str | None = None
    name: str | None = None
    input: Raw | UnsetType = UNSET
    tool_use_id: str | None = None
    content: Raw | UnsetType = UNSET
    is_error: bool | None = None
    source: Any = None


# -- answers


def answer_parts(blocks: list[tuple[TaskBlock, Raw]], message_id: str, at: datetime | None) -> list[Part]:
    """The parts of an answer. In older versions calls are elements in the text."""
    parts: list[Part] = []
    for block, raw in blocks:
        if block.type == "text" and block.text is not None:
            _add_text(parts, block.text, message_id, at)
        else:
            parts.append(_answer_part(block, raw, f"{message_id}.{len(parts)}", at))
    return parts


def _answer_part(block: TaskBlock, raw: Raw, part_id: str, at: datetime | None) -> Part:
    if block.type in ("thinking", "redacted_thinking", "reasoning"):
        text = block.thinking or block.text or ""
        return ReasoningPart(id=part_id, text=text, redacted=not text)
    if block.type == "tool_use":
        name = block.name or ""
        given = Raw(b"{}") if isinstance(block.input, UnsetType) else Raw(clean_json(bytes(block.input)))
        return _call(part_id, block.id or part_id, name, given, at)
    return image_part(block, part_id) or UnknownPart(id=part_id, kind=block.type, data=Raw(clean_json(bytes(raw))))


def _call(part_id: str, identity: str, name: str, given: Raw, at: datetime | None) -> ToolCallPart:
    return ToolCallPart(
        id=part_id,
        tool_call_id=identity,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        input=given,
        started_at=at,
    )


def _add_text(parts: list[Part], text: str, message_id: str, at: datetime | None) -> None:
    thought = _THOUGHT.match(text)
    if thought is not None:
        parts.append(ReasoningPart(id=f"{message_id}.{len(parts)}", text=thought["text"].strip()))
        text = text[thought.end() :]
    place = 0
    for match in _CALL.finditer(text):
        _add_words(parts, text[place : match.start()], message_id)
        given = {found["name"]: found["value"].strip("\n") for found in _PARAMETER.finditer(match["body"])}
        part_id = f"{message_id}.{len(parts)}"
        parts.append(_call(part_id, part_id, match["name"], Raw(msgspec.json.encode(given)), at))
        place = match.end()
    _add_words(parts, text[place:], message_id)


def _add_words(parts: list[Part], text: str, message_id: str) -> None:
    if text.strip():
        parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=text.strip("\n")))


def image_part(block: TaskBlock, part_id: str) -> FilePart | None:
    """An image or a document; None for any other block."""
    source = object_of(block.source)
    if block.type not in ("image", "document"):
        return None
    media_type = text_of(source.get("media_type")) or "image/*"
    url, data = text_of(source.get("url")), text_of(source.get("data"))
    content = from_base64(data) if data is not None else None
    if content:
        return FilePart(id=part_id, media_type=media_type, data=content)
    return FilePart(id=part_id, media_type=media_type, url=url) if url is not None else None


# -- what the user and the tools said


class UserMessageContent(NamedTuple):
    """The content of a message of the role `user`."""

    results: list[tuple[str | None, ToolResult]]
    """Results, each with its call; None where the text only names the tool: that is in the metadata of the result."""
    parts: list[Part]
    is_typed: bool
    folder: str | None
    model: str | None


TOOL = "tool"
"""In the metadata of a result: the tool whose call it answers, where no id names the call."""


def user_content(
    agent: str, blocks: list[tuple[TaskBlock, Raw]], message_id: str, at: datetime | None
) -> UserMessageContent:
    """Take the content of a message apart: results of calls, what was typed, and what the extension added."""
    results: list[tuple[str | None, ToolResult]] = []
    parts: list[Part] = []
    is_typed = False
    texts = [block.text or "" for block, _ in blocks if block.type == "text"]
    for block, raw in blocks:
        if block.type == "tool_result":
            results.append((block.tool_use_id, _result_of(block, f"{message_id}.r{len(results)}", at)))
        elif block.type != "text":
            part_id = f"{message_id}.{len(parts)}"
            unknown = UnknownPart(id=part_id, kind=block.type, data=Raw(clean_json(bytes(raw))))
            parts.append(image_part(block, part_id) or unknown)
        elif (header := _HEADER.match(block.text or "")) is not None:
            identity = f"{message_id}.r{len(results)}"
            result = _text_result((block.text or "")[header.end() :], header["name"], identity, at)
            results.append((None, msgspec.structs.replace(result, metadata={agent: {TOOL: header["name"]}})))
        elif results and results[-1][0] is None and not _is_users_text(block.text or ""):
            # The text of a result is in the block behind its header.
            last = results[-1][1]
            tool = str(object_of(last.metadata.get(agent)).get(TOOL))
            longer = _text_result("\n".join([last.output_text, block.text or ""]).strip("\n"), tool, last.id, at)
            results[-1] = (None, msgspec.structs.replace(longer, metadata=last.metadata))
        else:
            is_typed |= _add_users_text(agent, parts, block.text or "", message_id)
    whole = "\n".join(texts)
    folder, model = _FOLDER.search(whole), _MODEL.search(whole)
    return UserMessageContent(
        results,
        parts,
        is_typed,
        None if folder is None else folder["path"],
        None if model is None else model["name"].strip(),
    )


def _is_users_text(text: str) -> bool:
    """Whether a text behind that of a result is not a piece of it."""
    return text.lstrip().startswith(("<environment_details>", "<task>", *_OWN_WORDS)) or any(
        mark in text for mark in ("<user_message>", "<feedback>")
    )


def _add_users_text(agent: str, parts: list[Part], text: str, message_id: str) -> bool:
    """Add a text of the user; whether it was typed."""
    typed = _TYPED.search(_ENVIRONMENT.sub("", text))
    added = [match[0] for match in _ENVIRONMENT.finditer(text)]
    words = _ENVIRONMENT.sub("", text).strip("\n")
    is_own = typed is None and words.lstrip().startswith(_OWN_WORDS)
    if typed is not None:
        parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=typed["text"]))
        added = [typed["rest"].strip(), *added]
    elif is_own:
        added = [words, *added]
    elif words.strip():
        parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=words))
    for each in filter(None, added):
        parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=each, metadata={agent: {"synthetic": True}}))
    return typed is not None or (not is_own and bool(words.strip()))


def _result_of(block: TaskBlock, identity: str, at: datetime | None) -> ToolResult:
    content: list[Part] = []
    for number, (inner, raw) in enumerate(blocks_of(block.content, TaskBlock)):
        part_id = f"{identity}.{number}"
        if inner.type == "text":
            content.append(TextPart(id=part_id, text=inner.text or ""))
        else:
            unknown = UnknownPart(id=part_id, kind=inner.type, data=Raw(clean_json(bytes(raw))))
            content.append(image_part(inner, part_id) or unknown)
    text = "\n".join([part.text for part in content if isinstance(part, TextPart)])
    judged = _judged(text, identity, at, is_error=block.is_error is True)
    return msgspec.structs.replace(judged, content=tuple(content))


def _text_result(text: str, tool: str, identity: str, at: datetime | None) -> ToolResult:
    judged = _judged(text, identity, at, is_error=False)
    code = judged.exit_code if TOOL_KINDS.get(tool) is ToolKind.EXECUTE else None
    content = (TextPart(id=f"{identity}.0", text=text),) if text else ()
    return msgspec.structs.replace(judged, content=content, exit_code=code)


def _judged(text: str, identity: str, at: datetime | None, *, is_error: bool) -> ToolResult:
    """A result without its content. Nothing but its text says how a call ended, if it has no mark of an error."""
    start = text.lstrip()
    match = _EXIT_CODE.search(text) if start.startswith(("Command", "Exit code")) else None
    code = None if match is None else int(match["code"])
    status: ResultStatus = "success"
    if any(words in start[:200] for words in _DENIED):
        status = "denied"
    elif is_error or code or start.startswith(_FAILED):
        status = "error"
    return ToolResult(
        id=identity,
        status=status,
        error_text=None if status == "success" else text or status,
        exit_code=code,
        completed_at=at,
    )


# -- requests


class ApiRequest(msgspec.Struct, rename="camel"):
    """What the extension writes of a request (`api_req_started`)."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cache_writes: int | None = None
    cache_reads: int | None = None
    cost: float | None = None
    cancel_reason: str | None = None
    streaming_failed_message: str | None = None
    api_protocol: str | None = None


def request_in(text: str | None) -> ApiRequest | None:
    """The JSON in the text of a request; None if it cannot be read."""
    try:
        return msgspec.json.decode((text or "").encode(errors="replace"), type=ApiRequest)
    except UNREADABLE:
        return None


_MOST = 1 << 53


_WHOLE_INPUT = frozenset({"openai"})
"""The provider of Cline 3.82 whose input contains what was read from a cache: any server with OpenAI's chat API."""


def usage_of(request: ApiRequest, provider: str | None = None) -> Usage | None:
    """Tokens in disjoint buckets; None where nothing was counted.

    Cline and older versions of the others count input without what was read from a cache or written to it, except for
    `_WHOLE_INPUT`. Versions that name the protocol of the API count all input together; which one does, no version
    says, so it is estimated.
    """
    read, written = _count(request.cache_reads), _count(request.cache_writes)
    given, output = _count(request.tokens_in), _count(request.tokens_out)
    if not any((given, output, read, written)):
        return None
    cached = (read or 0) + (written or 0)
    is_known = provider in _WHOLE_INPUT
    is_whole = (is_known or request.api_protocol is not None) and given is not None and given >= cached > 0
    return Usage(
        input=given - cached if is_whole and given is not None else given,
        cache_read=read,
        cache_write=written or None,
        output=output,
        exactness="estimated" if is_whole and not is_known else "exact",
    )


def _count(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= _MOST else None


def cost_of(amount: float | None) -> Cost | None:
    """The cost that the extension computed, in US dollars; None where it knows no price."""
    if not amount or not 0 < amount < 1e9:
        return None
    return Cost(amount=Decimal(repr(amount)), kind="reported")


class TaskMetrics(msgspec.Struct):
    """Tokens of an answer, in newer versions of Cline."""

    tokens: dict[str, int] | None = None
    cost: float | None = None


def metrics_usage(metrics: TaskMetrics | None) -> Usage | None:
    """Tokens in disjoint buckets: `prompt` contains what was read from a cache."""
    tokens = metrics.tokens if metrics is not None else None
    if not tokens or not any(tokens.values()):
        return None
    cached = _count(tokens.get("cached"))
    prompt = _count(tokens.get("prompt"))
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0)),
        cache_read=cached,
        output=_count(tokens.get("completion")),
    )


def last_call(open_calls: dict[str, str], tool: str) -> str | None:
    """The newest call of a tool that has no result, among calls by their id."""
    return next((call for call, name in reversed(open_calls.items()) if name == tool), None)


def texts_of(parts: list[Part]) -> Iterator[str]:
    """The texts among parts that were typed."""
    return (part.text for part in parts if isinstance(part, TextPart) and not part.is_synthetic)
