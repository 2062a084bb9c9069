"""What gptme's messages hold: thoughts, texts and calls in one text, and results in the words of the program."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.jsonl import UNREADABLE
from turnlog.model import ResultStatus, ToolKind

TOOL_KINDS: dict[str, ToolKind] = {
    "append": ToolKind.EDIT,
    "browser": ToolKind.FETCH,
    "computer": ToolKind.OTHER,
    "gh": ToolKind.EXECUTE,
    "ipython": ToolKind.EXECUTE,
    "morph": ToolKind.EDIT,
    "patch": ToolKind.EDIT,
    "patch_many": ToolKind.EDIT,
    "python": ToolKind.EXECUTE,
    "rag": ToolKind.SEARCH,
    "read": ToolKind.READ,
    "recall": ToolKind.SEARCH,
    "save": ToolKind.EDIT,
    "shell": ToolKind.EXECUTE,
    "subagent": ToolKind.SUBAGENT,
    "tmux": ToolKind.EXECUTE,
    "todo": ToolKind.THINK,
    "todoread": ToolKind.THINK,
    "todowrite": ToolKind.THINK,
    "vision": ToolKind.READ,
}
"""Tools of 0.28.3 and 0.35.1; any other, MCP's included, is of kind `other`."""

_IN_TEXT = frozenset({*TOOL_KINDS, "complete", "memory"})
"""The names that a block of code has which is a call."""

_THOUGHT = re.compile(r"\A\s*<(?P<tag>think(?:ing)?)>\n?(?P<text>.*?)\n?</(?P=tag)>\s*", re.DOTALL)
_CALL = re.compile(r"^@(?P<name>\w+)\((?P<id>[\w.:-]+)\): (?P<input>\{.*)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(?P<name>\w+)(?P<argument>[^\n`]*)\n(?P<body>.*?)\n```[ ]*$", re.MULTILINE | re.DOTALL)
_XML = re.compile(
    r"^<tool-use>\s*<(?P<name>\w+)(?: args='(?P<argument>[^']*)')?>\n?(?P<body>.*?)\n?</(?P=name)>\s*</tool-use>[ ]*$",
    re.MULTILINE | re.DOTALL,
)
"""A call in the format `xml`."""
_EXIT_CODE = re.compile(r"^Return code: (?P<code>\d{1,3})$", re.MULTILINE)
_STOPPED = ("Interrupted by user", "Command interrupted", "Aborted", "Operation interrupted")
_FAILED = ("Error", "Failed", "Tool '", "Patch failed", "Atomic patch aborted", "Save aborted", "Append aborted")
_REFUSED = (
    "Declined by user",
    "Execution declined by user",
    "Operation skipped",
    "Operation aborted: user",
    "Copied to clipboard, execution skipped",
    "No changes made, execution skipped",
    "Help shown, please re-run",
    "Unknown response: ",
    "Edited content was not confirmed",
    "Save aborted: user",
    "Append aborted: user",
    "hashline_edit: operation cancelled by user",
    "Read blocked by guardrail",
    "Blocked by guardrail",
    "No confirmation hook",
)
"""What the program says in place of a result where a person, or a rule, does not let it make the call."""

_decoder = json.JSONDecoder(strict=False)


class AnswerPiece(NamedTuple):
    """A piece of an answer."""

    kind: str
    """`thinking`, `text`, `call`, or `block` of code that is a call."""
    text: str
    name: str = ""
    call_id: str | None = None
    input: Any = UNSET


def pieces_of(content: str) -> list[AnswerPiece]:
    """The thoughts, texts and calls of an answer, in their order."""
    found: list[AnswerPiece] = []
    thought = _THOUGHT.match(content)
    if thought is not None:
        found.append(AnswerPiece("thinking", thought["text"]))
        content = content[thought.end() :]
    found += _calls_in(content)
    return [piece for piece in found if piece.kind != "text" or piece.text.strip()]


def _calls_in(content: str) -> list[AnswerPiece]:
    call = _CALL.search(content)
    if call is None:
        return _blocks_in(content)
    try:
        _, end = _decoder.raw_decode(call["input"])
    except (ValueError, RecursionError):
        return [AnswerPiece("text", content)]
    text = call["input"][:end]
    before = [AnswerPiece("text", content[: call.start()].rstrip("\n"))]
    made = AnswerPiece("call", text, call["name"], call["id"], _exact(text))
    return [*before, made, *_calls_in(content[call.start("input") + end :])]


def _blocks_in(content: str) -> list[AnswerPiece]:
    """The blocks that are calls: elements, or code whose language is a tool, with its argument behind it."""
    found: list[AnswerPiece] = []
    at = 0
    for block in sorted([*_BLOCK.finditer(content), *_XML.finditer(content)], key=re.Match[str].start):
        if block["name"] not in _IN_TEXT or block.start() < at:
            continue
        argument = (block["argument"] or "").strip()
        value = {"content": block["body"]} | ({"args": argument.split()} if argument else {})
        found += [AnswerPiece("text", content[at : block.start()].rstrip("\n"))]
        found.append(AnswerPiece("block", block[0], block["name"], None, Raw(msgspec.json.encode(value))))
        at = block.end()
    return [*found, AnswerPiece("text", content[at:])]


def _exact(text: str) -> Any:
    data = text.encode(errors="replace")
    try:
        msgspec.json.decode(data)
    except UNREADABLE:
        return UNSET
    return Raw(data)


class Outcome(NamedTuple):
    """How a call ended, by the words of its result."""

    status: ResultStatus
    exit_code: int | None


def outcome_of(text: str) -> Outcome:
    """How a call ended. No field says so."""
    code = _EXIT_CODE.search(text)
    exit_code = None if code is None else int(code["code"])
    if "\n" not in text.strip() and text.startswith(_REFUSED):
        return Outcome("denied", exit_code)
    if text.startswith(_STOPPED):
        return Outcome("aborted", exit_code)
    if exit_code or text.startswith(_FAILED):
        return Outcome("error", exit_code)
    return Outcome("success", exit_code)
