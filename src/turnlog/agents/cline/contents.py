"""What Cline's messages are made of: blocks, results of calls, usage and cost."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.cline import NAME
from turnlog.agents.cline.records import ClineBlock, ClineMetrics, ToolAnswer
from turnlog.agents.decoding import clean_json
from turnlog.agents.jsonl import UNREADABLE
from turnlog.model import (
    Cost,
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
    Usage,
)

TOOL_KINDS: dict[str, ToolKind] = {
    "apply_patch": ToolKind.EDIT,
    "ask_question": ToolKind.ASK,
    "editor": ToolKind.EDIT,
    "fetch_web_content": ToolKind.FETCH,
    "read_files": ToolKind.READ,
    "run_commands": ToolKind.EXECUTE,
    "search_codebase": ToolKind.SEARCH,
    "skills": ToolKind.READ,
    "spawn_agent": ToolKind.SUBAGENT,
    "submit_and_exit": ToolKind.OTHER,
    "switch_to_act_mode": ToolKind.SWITCH_MODE,
    "team_run_task": ToolKind.SUBAGENT,
    "team_spawn_teammate": ToolKind.SUBAGENT,
}
"""Tools that 3.0.65 offers to the model; any other, MCP's included, is of kind `other`."""

_TYPED = re.compile(r'\A<user_input mode="(?P<mode>[^"]*)">(?P<text>.*)</user_input>\Z', re.DOTALL)
"""What Cline puts around what the user typed."""

_EXIT_CODE = re.compile(r"Command exited with code (\d{1,3})")

_ABORTED = "Command was aborted"
"""Words of a result of a command that the user stopped (3.0.65)."""

_REFUSED = ("was denied by the user", "User denied", "rejected by user")
"""Words of a result of a call that the user refused."""


def blocks_of(content: Raw | UnsetType) -> Iterator[tuple[ClineBlock, Raw]]:
    """The blocks of a content, each with its JSON; a content that is a text is one block."""
    if not isinstance(content, Raw):
        return
    json = clean_json(bytes(content))
    try:
        found: str | list[Raw] | None = msgspec.json.decode(json, type=str | list[Raw] | None)
    except UNREADABLE:
        yield ClineBlock(), Raw(json)
        return
    if isinstance(found, str):
        yield ClineBlock(type="text", text=found), content
        return
    for raw in found or ():
        try:
            yield msgspec.json.decode(raw, type=ClineBlock), raw
        except UNREADABLE:
            yield ClineBlock(), raw


def part_of(block: ClineBlock, raw: Raw, part_id: str, answerer: ProviderData | None = None) -> Part:
    """A block as a part, if it is neither a call nor a result; what is of no known kind keeps its JSON."""
    if block.type == "text" and block.text is not None:
        # The mode (`act`, `plan`) is put around the prompt when it is sent. Taking it off leaves what the user typed,
        # as the title shows it.
        typed = _TYPED.match(block.text)
        if typed is not None:
            return TextPart(id=part_id, text=typed["text"], metadata={NAME: {"mode": typed["mode"]}})
        return TextPart(id=part_id, text=block.text)
    if block.type == "thinking" and block.thinking is not None:
        return ReasoningPart(id=part_id, text=block.thinking, provider=_proof(answerer, signature=block.signature))
    if block.type == "redacted_thinking":
        return ReasoningPart(id=part_id, text="", redacted=True, provider=_proof(answerer, data=block.data))
    if block.type == "file":
        words = [one.text or "" for one, _ in blocks_of(block.content) if one.type == "text"]
        return TextPart(id=part_id, text="\n".join(words), metadata={NAME: {"synthetic": True, "path": block.path}})
    image = _image(block, part_id) if block.type == "image" else None
    return image or UnknownPart(id=part_id, kind=block.type, data=Raw(bytes(raw)))


def _proof(answerer: ProviderData | None, **facts: str | None) -> ProviderData | None:
    """What the provider needs to take a thought back; None if Cline kept nothing."""
    known = {name: value for name, value in facts.items() if value}
    return msgspec.structs.replace(answerer, opaque=known) if answerer is not None and known else None


def _image(block: ClineBlock, part_id: str) -> FilePart | None:
    try:
        data = base64.b64decode(block.data or "", validate=True)
    except (binascii.Error, ValueError):
        return None
    return FilePart(id=part_id, media_type=block.media_type or "image/*", data=data) if data else None


def call_of(block: ClineBlock, part_id: str, at: datetime | None) -> ToolCallPart:
    """A call in an answer."""
    name = block.name or ""
    return ToolCallPart(
        id=part_id,
        tool_call_id=block.id or part_id,
        tool_name=name,
        kind=TOOL_KINDS.get(name, ToolKind.OTHER),
        # The whole file is indented, and so are the arguments in it, which the model wrote without white space.
        input=Raw(msgspec.json.format(clean_json(bytes(block.input)), indent=-1)) if block.input else UNSET,
        started_at=at,
    )


# -- results


class _Outcome(NamedTuple):
    text: str
    error: str | None


def result_of(block: ClineBlock, identity: str, at: datetime | None) -> ToolResult:
    """The result of a call.

    Nothing but `success` in each of its answers says whether it failed. A call that asked for several things failed if
    one of them did.
    """
    parts, errors = list[Part](), list[str]()
    for number, (text, raw) in enumerate(_answers(block.content)):
        if raw is not None:
            parts.append(part_of(msgspec.json.decode(raw, type=ClineBlock), raw, f"{identity}.{number}"))
            continue
        parts.append(TextPart(id=f"{identity}.{number}", text=text.text))
        if text.error is not None:
            errors.append(text.error)
    status: ResultStatus = "error" if errors or block.is_error else "success"
    words = "\n".join(errors)
    if status == "error" and any(sign in words for sign in _REFUSED):
        status = "denied"
    elif status == "error" and _ABORTED in words:
        status = "aborted"
    # 3.0.65 has no field for the exit code: it is in the words of `error`.
    codes = [int(match[1]) for match in _EXIT_CODE.finditer(words)]
    return ToolResult(
        id=identity,
        status=status,
        content=tuple(parts),
        # The output says more than the error, which is one of its lines.
        error_text=None if status == "success" else "\n".join(_texts(parts)) or words,
        exit_code=next((code for code in codes if code), None)
        if TOOL_KINDS.get(block.name or "") is ToolKind.EXECUTE
        else None,
        completed_at=at,
    )


def _texts(parts: list[Part]) -> list[str]:
    return [part.text for part in parts if isinstance(part, TextPart)]


def _answers(content: Raw | UnsetType) -> Iterator[tuple[_Outcome, Raw | None]]:
    """The answers in a result: of a list each one, of a text that is one in JSON the same; else the text itself."""
    for block, raw in blocks_of(content):
        if block.type == "text" and block.text is not None:
            answer = _answer_of(block.text.encode(errors="replace")) if block.text.startswith("{") else None
            # A file that was read may be JSON too. Only an object with one of these two fields is Cline's envelope.
            is_answer = answer is not None and (answer.success is not None or answer.error is not None)
            yield (_outcome(answer) if answer is not None and is_answer else _Outcome(block.text, None)), None
        elif block.type:
            yield _Outcome("", None), raw
        else:
            answer = _answer_of(bytes(raw))
            listed = _listed_in(answer)
            if listed:
                # What is not text, as an image that was read, is in a list of blocks.
                yield from (
                    (_Outcome(one.text, None), None) if one.text else (_Outcome("", None), each) for one, each in listed
                )
                continue
            yield (
                (_outcome(answer) if answer is not None else _Outcome(bytes(raw).decode(errors="replace"), None)),
                None,
            )


def _listed_in(answer: ToolAnswer | None) -> list[tuple[ClineBlock, Raw]]:
    """The blocks of an answer whose result is a list of blocks, of which one is no text."""
    is_list = answer is not None and isinstance(answer.result, Raw) and bytes(answer.result).lstrip()[:1] == b"["
    blocks = list(blocks_of(answer.result)) if answer is not None and is_list else []
    known = all(block.type in ("text", "image") for block, _ in blocks)
    return blocks if known and any(block.type == "image" for block, _ in blocks) else []


def _answer_of(json: bytes) -> ToolAnswer | None:
    try:
        return msgspec.json.decode(json, type=ToolAnswer)
    except UNREADABLE:
        return None


def _outcome(answer: ToolAnswer) -> _Outcome:
    json = clean_json(bytes(answer.result)) if isinstance(answer.result, Raw) else b'""'
    try:
        text = msgspec.json.decode(json, type=str)
    except UNREADABLE:
        text = json.decode(errors="replace")
    failed = answer.success is False or (answer.success is None and answer.error is not None)
    error = (answer.error or text or "failed") if failed else None
    return _Outcome(text or error or "", error)


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The list of answers in the result of a call, from the message with it; None if it is a text."""
    try:
        content = msgspec.json.decode(clean_json(record), type=dict[str, Raw]).get("content", UNSET)
    except UNREADABLE:
        return None
    for block, _ in blocks_of(content):
        if block.tool_use_id == tool_call_id and isinstance(block.content, Raw):
            found = bytes(block.content).lstrip()
            return Raw(found) if found[:1] == b"[" else None
    return None


# -- usage, cost, times


def usage_of(metrics: ClineMetrics | None) -> Usage | None:
    """Tokens in disjoint buckets; None where nothing was counted. Thoughts are within `output`."""
    if metrics is None:
        return None
    read, written = metrics.cache_read_tokens or 0, metrics.cache_write_tokens or 0
    # A refused request and an answer of a provider that counts nothing have 0 everywhere, which is no measurement.
    if not any((metrics.input_tokens, metrics.output_tokens, read, written)):
        return None
    return Usage(
        # `inputTokens` counts the cached tokens again, with both APIs (1,511 = 1,200 + 300 + 11 in the recorded run).
        input=None if metrics.input_tokens is None else max(0, metrics.input_tokens - read - written),
        cache_read=metrics.cache_read_tokens,
        cache_write=metrics.cache_write_tokens or None,
        output=metrics.output_tokens,
    )


def cost_of(metrics: ClineMetrics | None) -> Cost | None:
    """The cost of a call in US dollars, as Cline computed it; it writes none where it knows no price."""
    if metrics is None or not metrics.cost:
        return None
    return Cost(amount=Decimal(repr(metrics.cost)), kind="reported")


def time_of(number: float | None) -> datetime | None:
    """A time in Unix milliseconds; None for what is no time."""
    try:
        return None if number is None else datetime.fromtimestamp(number / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
