"""Codex's tools by kind and name, and how its outputs and items word the status of a call."""

from __future__ import annotations

import json
import math
import re
from typing import Annotated, Any, NamedTuple, cast

import msgspec

from turnlog.agents.codex import NAME
from turnlog.agents.codex.records import Duration
from turnlog.agents.hook_events import (
    HookFormat,
    read_call,
    read_permission_request,
    read_prompt,
    read_result,
    read_stop,
)
from turnlog.model import ResultStatus, ToolKind

TOOL_KINDS: dict[str, ToolKind] = {
    "apply_patch": ToolKind.EDIT,
    "close_agent": ToolKind.SUBAGENT,
    "exec": ToolKind.EXECUTE,
    "exec_command": ToolKind.EXECUTE,
    "grep_files": ToolKind.SEARCH,
    "image_generation": ToolKind.OTHER,
    "js_repl": ToolKind.EXECUTE,
    "list_agents": ToolKind.SUBAGENT,
    "list_dir": ToolKind.READ,
    "local_shell": ToolKind.EXECUTE,
    "read_file": ToolKind.READ,
    "request_user_input": ToolKind.ASK,
    "resume_agent": ToolKind.SUBAGENT,
    "send_input": ToolKind.SUBAGENT,
    "send_message": ToolKind.SUBAGENT,
    "followup_task": ToolKind.SUBAGENT,
    "interrupt_agent": ToolKind.SUBAGENT,
    "shell": ToolKind.EXECUTE,
    "shell_command": ToolKind.EXECUTE,
    "spawn_agent": ToolKind.SUBAGENT,
    "tool_search": ToolKind.SEARCH,
    "update_plan": ToolKind.THINK,
    "view_image": ToolKind.READ,
    "wait": ToolKind.EXECUTE,
    "wait_agent": ToolKind.SUBAGENT,
    "web_search": ToolKind.SEARCH,
    "write_stdin": ToolKind.EXECUTE,
}
"""Tools of the recorded versions. Any other tool, MCP's included, has the kind `other`."""

CODE_MODE = frozenset({"exec", "wait"})
"""Tools whose call runs code that calls other tools."""

SPAWN_TOOLS = frozenset({"spawn_agent"})


def tool_name(name: str, namespace: str | None) -> str:
    """The name of a tool; for an MCP tool with its server, as older versions wrote it."""
    if namespace is not None and namespace.startswith("mcp__"):
        return f"{namespace}__{name}"
    return name


def metadata_of(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts without those that are None."""
    return {name: value for name, value in facts.items() if value is not None}


# -- what hooks say (recorded with 0.169.0): whatever runs commands is called `Bash` there


EVENTS = {
    "UserPromptSubmit": read_prompt,
    "PreToolUse": read_call,
    "PostToolUse": read_result,
    "PermissionRequest": read_permission_request,
    "Stop": read_stop,
}

HOOK_FORMAT = HookFormat(NAME, EVENTS, {**TOOL_KINDS, "Bash": ToolKind.EXECUTE}, child="{agent}")


# -- how a call ended


_STATUS: dict[str, ResultStatus] = {
    "completed": "success",
    "success": "success",
    "failed": "error",
    "error": "error",
    "declined": "denied",
    "denied": "denied",
    "cancelled": "aborted",
    "aborted": "aborted",
    "interrupted": "aborted",
}
"""`status` of an item or event -> status of the result. `in_progress` and unknown words have none."""

_KILLED = -1
"""Exit code of a process that Codex itself ended."""


def status_of(word: str | None, exit_code: int | None) -> ResultStatus | None:
    """The status of an item or event by its word or exit code; None if it has neither."""
    status = _STATUS.get(word) if word is not None else None
    # `failed` with exit code -1: the command did not fail, Codex ended its process.
    if status == "error" and exit_code == _KILLED:
        return "aborted"
    if status is None and exit_code is not None:
        return _status_of_code(exit_code)
    return status


def _status_of_code(code: int) -> ResultStatus:
    if code == _KILLED:
        return "aborted"
    return "error" if code else "success"


def milliseconds_of(duration: Duration | str | None) -> int | None:
    """A duration in whole milliseconds."""
    if not isinstance(duration, Duration):
        return None
    return duration.secs * 1000 + duration.nanos // 1_000_000


# -- how a call ended, by the text of its output


class Verdict(NamedTuple):
    """How a call ended, by the text of its output."""

    status: ResultStatus = "success"
    exit_code: int | None = None
    duration_ms: int | None = None
    running: bool = False
    wrapped: WrappedOutput | None = None


class WrappedOutput(NamedTuple):
    """What a command printed, in JSON that Codex made of it: `{"output": …, "metadata": {"exit_code": …, …}}`.

    Clients of Codex leave out the metadata, make them null, or indent the JSON.
    """

    text: str
    others: dict[str, Any]
    """The other fields of the JSON."""
    is_repaired: bool = False
    """A number in them is beyond what can be stored, and became null."""


_SUCCESS = Verdict()

_RUNS = Verdict(running=True)

_WRAPPED = re.compile(r'\s*\{\s*"(?:output|metadata)"\s*:')
"""How JSON begins that may be a `WrappedOutput`."""

_ABORTED = re.compile(r"(?:Wall time: [\d.]+ seconds\n)?aborted(?: by user(?: after [\d.]+s)?)?\s*\Z")

_EXIT_CODE = re.compile(r"(?:.*\n){0,3}?(?:Exit code: |Process exited with code )(-?\d{1,10})\n")

_WALL_TIME = re.compile(r"(?:.*\n){0,3}?Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds\n")

_RUNNING = re.compile(r"(?:.*\n){0,3}?Process running with session ID ")

_DENIED = re.compile(
    r"(?:exec command|patch|tool call|\w+ call) rejected by (?:the )?user|rejected by user|user rejected "
    r"|Command blocked by PreToolUse hook: "
)

_REJECTED = r"""Rejected(\"rejected by user\")" }"""
"""How the output of a command that could not be started ends when the user denied it."""

_FAILED = (
    "unsupported call: ",
    "unsupported custom tool call: ",
    "apply_patch verification failed",
    "failed to parse function arguments",
    "failed in sandbox: ",
    "execution error: ",
    "exec_command failed",
    "write_stdin failed",
    "tool call error: ",
    "invalid agent id ",
    "Script failed\n",
    "request_user_input is unavailable in ",
    "unable to locate image at ",
    "image path ",
)

_HEAD = 256
"""Characters at the beginning of an output that can say how its call ended."""

_SCRIPT_RUNNING = "Script running "


def verdict_of(text: str) -> Verdict:
    """How a call ended, by the text of its output alone.

    `shell` and `apply_patch` return JSON up to 0.14x, newer tools return lines of facts before the output. Denials and
    failures in Codex's own words are at the beginning.
    """
    if _WRAPPED.match(text[:_HEAD]):
        found = _verdict_of_json(text)
        if found is not None:
            return found
    return _verdict_of_words(text)


def _verdict_of_words(text: str) -> Verdict:
    head = text[:_HEAD]
    match = _EXIT_CODE.match(head)
    if match is not None:
        code, seconds = int(match[1]), _WALL_TIME.match(head)
        return Verdict(_status_of_code(code), code, _milliseconds(None if seconds is None else float(seconds[1])))
    if _RUNNING.match(head) or head.startswith(_SCRIPT_RUNNING):
        return _RUNS
    if _ABORTED.match(head) and len(text) == len(head):
        return Verdict("aborted")
    if _DENIED.match(head) or (head.startswith("exec_command failed") and text.endswith(_REJECTED)):
        return Verdict("denied")
    return Verdict("error") if head.startswith(_FAILED) else _SUCCESS


class _CommandFacts(msgspec.Struct):
    exit_code: int | None
    """None: it was a number that no int holds."""
    duration_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None


def _verdict_of_json(text: str) -> Verdict | None:
    """How a call ended, by JSON of Codex. None for any other JSON, which a tool wrote itself."""
    try:
        fields, is_repaired = _fields_of(text)
        printed = fields.pop("output", None)
        wrapped = WrappedOutput(printed, fields, is_repaired) if isinstance(printed, str) else None
        if wrapped is not None and fields in ({}, {"metadata": None}):
            return _verdict_of_words(wrapped.text)._replace(wrapped=wrapped)
        facts = msgspec.convert(fields.get("metadata"), _CommandFacts)
    except (ValueError, RecursionError):
        return None
    return Verdict(
        "success" if facts.exit_code is None else _status_of_code(facts.exit_code),
        facts.exit_code,
        _milliseconds(facts.duration_seconds),
        wrapped=wrapped,
    )


def _milliseconds(seconds: float | None) -> int | None:
    """None also for 0: Codex rounds to a tenth of a second, or measures only how long it waited for the output."""
    return round(seconds * 1000) if seconds else None


def _fields_of(text: str) -> tuple[dict[str, Any], bool]:
    """The fields of a JSON object, and whether a number in it became null because no float holds it.

    Raises ValueError for anything else.
    """
    try:
        return msgspec.json.decode(text, type=dict[str, Any]), False
    except msgspec.ValidationError:
        # The object is sound, but msgspec reads no number like 1e400.
        found = json.loads(text, parse_float=_number_or_none, parse_constant=_number_or_none)
        if not isinstance(found, dict):
            raise
        return cast("dict[str, Any]", found), True


def _number_or_none(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None
