"""What Codex's tools do, what they are called, and what became of a call, as its output or its twin tells it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from turnlog.agents.codex.records import Duration
from turnlog.model import ResultStatus, ToolKind

KINDS: dict[str, ToolKind] = {
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
"""The tools that the versions read offer to the model; any other, MCP's included, is of kind `other`."""

CODE_MODE = frozenset({"exec", "wait"})
"""Tools whose call runs code that calls other tools."""

SPAWN_TOOLS = frozenset({"spawn_agent"})

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
"""`status` of an item or an event -> ours. `in_progress` and what is not known say nothing."""

_KILLED = -1
"""Exit code of a process that Codex itself ended."""

_ABORTED = re.compile(r"(?:Wall time: [\d.]+ seconds\n)?aborted(?: by user(?: after [\d.]+s)?)?\s*\Z")
_EXIT_CODE = re.compile(r"(?:.*\n){0,3}?(?:Exit code: |Process exited with code )(-?\d{1,10})\n")
_RUNNING = re.compile(r"(?:.*\n){0,3}?Process running with session ID ")
_DENIED = re.compile(
    r"(?:exec command|patch|tool call|\w+ call) rejected by (?:the )?user|rejected by user|user rejected "
    r"|Command blocked by PreToolUse hook: "
)
_REJECTED = r"""Rejected(\"rejected by user\")" }"""
"""How the words of a command that could not be begun end where the user refused it."""

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
"""Characters in which an output says what became of its call."""

_SCRIPT_RUNNING = "Script running "


class _OldMetadata(msgspec.Struct):
    exit_code: int | None = None
    duration_seconds: float | None = None


class _OldOutput(msgspec.Struct):
    output: str | None = None
    metadata: _OldMetadata | None = None


class Verdict(NamedTuple):
    """What the text of an output tells of its call."""

    status: ResultStatus = "success"
    exit_code: int | None = None
    duration_ms: int | None = None
    running: bool = False


_SUCCESS = Verdict()
_RUNS = Verdict(running=True)


def tool_name(name: str, namespace: str | None) -> str:
    """The name of a tool; MCP's as older versions wrote it, server and tool in one."""
    if namespace is not None and namespace.startswith("mcp__"):
        return f"{namespace}__{name}"
    return name


def verdict_of(text: str) -> Verdict:
    """What became of a call, by the words of its output alone.

    `shell` answers with JSON, newer tools with lines of facts before the output. Refusals and failures that Codex
    itself words stand at the beginning.
    """
    head = text[:_HEAD]
    if head.startswith('{"output":') or head.startswith('{"metadata":'):
        found = _old_verdict(text)
        if found is not None:
            return found
    match = _EXIT_CODE.match(head)
    if match is not None:
        code = int(match[1])
        return Verdict(_status_of_code(code), code)
    if _RUNNING.match(head) or head.startswith(_SCRIPT_RUNNING):
        return _RUNS
    if _ABORTED.match(head) and len(text) == len(head):
        return Verdict("aborted")
    if _DENIED.match(head) or (head.startswith("exec_command failed") and text.endswith(_REJECTED)):
        return Verdict("denied")
    return Verdict("error") if head.startswith(_FAILED) else _SUCCESS


def status_of(word: str | None, exit_code: int | None) -> ResultStatus | None:
    """The status that an item tells; None when it tells none."""
    status = _STATUS.get(word) if word is not None else None
    if status == "error" and exit_code == _KILLED:
        return "aborted"
    if status is None and exit_code is not None:
        return _status_of_code(exit_code)
    return status


def milliseconds_of(duration: Duration | str | None) -> int | None:
    """A duration in whole milliseconds."""
    if not isinstance(duration, Duration):
        return None
    return duration.secs * 1000 + duration.nanos // 1_000_000


def _status_of_code(code: int) -> ResultStatus:
    if code == _KILLED:
        return "aborted"
    return "error" if code else "success"


def _old_verdict(text: str) -> Verdict | None:
    try:
        found = msgspec.json.decode(text, type=_OldOutput)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return None
    facts = found.metadata
    if facts is None or facts.exit_code is None:
        return None
    seconds = facts.duration_seconds
    return Verdict(
        _status_of_code(facts.exit_code), facts.exit_code, None if seconds is None else round(seconds * 1000)
    )


def metadata_of(facts: dict[str, Any]) -> dict[str, Any]:
    """Those of the facts that are known."""
    return {name: value for name, value in facts.items() if value is not None}
