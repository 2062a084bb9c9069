"""Gemini CLI's tools by kind, and what became of a call: status, exit code, spilled output."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from zlib import crc32

from turnlog.model import ResultStatus, ToolKind, ToolState

KINDS: dict[str, ToolKind] = {
    "activate_skill": ToolKind.READ,
    "ask_user": ToolKind.ASK,
    "cli_help": ToolKind.SUBAGENT,
    "codebase_investigator": ToolKind.SUBAGENT,
    "delegate_to_agent": ToolKind.SUBAGENT,
    "enter_plan_mode": ToolKind.SWITCH_MODE,
    "exit_plan_mode": ToolKind.SWITCH_MODE,
    "generalist": ToolKind.SUBAGENT,
    "get_internal_docs": ToolKind.READ,
    "glob": ToolKind.SEARCH,
    "google_web_search": ToolKind.FETCH,
    "grep_search": ToolKind.SEARCH,
    "invoke_agent": ToolKind.SUBAGENT,
    "list_background_processes": ToolKind.READ,
    "list_directory": ToolKind.SEARCH,
    "read_background_output": ToolKind.READ,
    "read_file": ToolKind.READ,
    "read_many_files": ToolKind.READ,
    "replace": ToolKind.EDIT,
    "run_shell_command": ToolKind.EXECUTE,
    "save_memory": ToolKind.THINK,
    "search_file_content": ToolKind.SEARCH,
    "update_topic": ToolKind.THINK,
    "web_fetch": ToolKind.FETCH,
    "write_file": ToolKind.EDIT,
    "write_todos": ToolKind.THINK,
}
"""Tools that the versions read offer to the model; any other, MCP's included, is of kind `other`."""

OPEN_STATES: dict[str, ToolState] = {
    "validating": ToolState.INPUT_AVAILABLE,
    "scheduled": ToolState.INPUT_AVAILABLE,
    "executing": ToolState.INPUT_AVAILABLE,
    "awaiting_approval": ToolState.APPROVAL_REQUESTED,
    "success": ToolState.OUTPUT_AVAILABLE,
    "error": ToolState.OUTPUT_ERROR,
    "cancelled": ToolState.ABORTED,
}
"""Where a call stands by its `status`, when it has no result."""

FINAL = frozenset({"success", "error", "cancelled"})

_REFUSED = ("did not allow tool call", "User denied execution", "denied by policy", "rejected by the user")
"""The first is 0.20's word for a no in the terminal, the second that of 0.30 to 0.61."""
_EXIT_CODE = re.compile(r"^(?:Exit Code|Command exited with code): (\d{1,3})\b", re.MULTILINE)
_SPILL = re.compile(r"For full output see: (\S+)")


def result_id(call_id: str, text: str) -> str:
    """An id that the same result has wherever the log repeats it."""
    return f"{call_id}:{crc32(text.encode(errors='replace')):08x}"


def status_of(status: str | None, text: str, *, is_error: bool) -> ResultStatus:
    """Success, error, denied or aborted: `cancelled` is the user's no as well as the user's Esc."""
    if status == "success" or (status is None and not is_error):
        return "success"
    if any(words in text for words in _REFUSED):
        return "denied"
    return "aborted" if status == "cancelled" or text.startswith("[Operation Cancelled]") else "error"


def exit_code_of(name: str, text: str) -> int | None:
    """The exit code of a shell command, which for Gemini CLI is no failure."""
    match = _EXIT_CODE.search(text) if name == "run_shell_command" else None
    return int(match[1]) if match else None


def spilled_to(text: str) -> str | None:
    """Name of the file with the whole output; its path is looked at, never followed."""
    match = _SPILL.search(text)
    parts = PurePosixPath(match[1].replace("\\", "/")).parts if match else ()
    return parts[-1] if len(parts) > 2 and parts[-3] == "tool-outputs" and ".." not in parts else None
