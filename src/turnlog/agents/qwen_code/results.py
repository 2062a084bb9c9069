"""Qwen Code's tools by kind, and the results of their calls."""

from __future__ import annotations

import re
from datetime import datetime
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import fields_of
from turnlog.agents.gemini_cli.records import FunctionResult
from turnlog.model import Part, ResultStatus, TextPart, ToolKind, ToolResult

TOOL_KINDS: dict[str, ToolKind] = {
    "agent": ToolKind.SUBAGENT,
    "ask_user_question": ToolKind.ASK,
    "edit": ToolKind.EDIT,
    "enter_plan_mode": ToolKind.SWITCH_MODE,
    "exit_plan_mode": ToolKind.SWITCH_MODE,
    "glob": ToolKind.SEARCH,
    "grep_search": ToolKind.SEARCH,
    "list_directory": ToolKind.SEARCH,
    "lsp": ToolKind.SEARCH,
    "monitor": ToolKind.EXECUTE,
    "notebook_edit": ToolKind.EDIT,
    "read_file": ToolKind.READ,
    "read_many_files": ToolKind.READ,
    "replace": ToolKind.EDIT,
    "run_shell_command": ToolKind.EXECUTE,
    "save_memory": ToolKind.THINK,
    "search_file_content": ToolKind.SEARCH,
    "skill": ToolKind.READ,
    "task": ToolKind.SUBAGENT,
    "todo_write": ToolKind.THINK,
    "tool_search": ToolKind.SEARCH,
    "web_fetch": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
    "write_file": ToolKind.EDIT,
}
"""Tools that the versions read offer to the model; any other, MCP's included, is of kind `other`."""

_REFUSED = ("User did not allow tool call", "denied by permission rules", "denied by host policy", "denied by hook")
"""Outputs of calls that the user, a rule or a hook refused (0.24.4)."""

_SPILLED = re.compile(
    r"\ATool output was too large and has been truncated\.\nThe full output has been saved to: ([^\n]+\.output)\n"
)
"""How the text of a result begins of which the model got the beginning and the end (0.24.4)."""

_EXIT_CODE = re.compile(r"^Exit Code: (\d{1,3})$", re.MULTILINE)


def make_result(
    call_id: str,
    name: str,
    response: FunctionResult,
    *,
    status: str | None,
    at: datetime | None,
    duration_ms: int | None,
    shown: Raw | UnsetType,
) -> ToolResult:
    """The result of a call.

    Args:
        call_id: The call.
        name: Its tool.
        response: What the model got.
        status: The word of Qwen Code's scheduler, if it has one.
        at: When the result was written.
        duration_ms: How long the call took, if that is known.
        shown: `resultDisplay`: what the terminal shows.
    """
    text = "\n".join([part.text for part in response.content if isinstance(part, TextPart)])
    found = status_of(status, text, is_error=response.is_error)
    content: tuple[Part, ...] = response.content
    return ToolResult(
        # Results have no id. A fork copies the record, so the id is made of the content and not of the offset.
        id=f"{call_id}:{crc32(text.encode(errors='replace')):08x}",
        status=found,
        content=content,
        error_text=text if found != "success" else None,
        exit_code=_exit_code(name, text, shown),
        completed_at=at,
        duration_ms=duration_ms,
        spilled_to=_spilled_to(text),
    )


def _spilled_to(text: str) -> str | None:
    """The name of the file that has the whole output; None if there is none. The path is not opened."""
    match = _SPILLED.match(text)
    return None if match is None else re.split(r"[/\\]", match[1])[-1]


def status_of(status: str | None, text: str, *, is_error: bool) -> ResultStatus:
    """The status of a result. Qwen Code writes `cancelled` for a refused call as well as for an interrupted one."""
    # The words alone prove nothing: a file that was read may contain them.
    if any(words in text for words in _REFUSED) and (is_error or status == "cancelled"):
        return "denied"
    if status == "cancelled" or (is_error and text.startswith("[Operation Cancelled]")):
        return "aborted"
    return "error" if is_error or status == "error" else "success"


def _exit_code(name: str, text: str, shown: Raw | UnsetType) -> int | None:
    """The exit code in `resultDisplay` (0.24), else the one that the text of a command's result names."""
    display = fields_of(shown)
    if "exitCode" in display:
        try:
            return msgspec.json.decode(display["exitCode"], type=int)
        except msgspec.MsgspecError:  # null, or what is no number of a size
            return None
    match = _EXIT_CODE.search(text) if name == "run_shell_command" else None
    return int(match[1]) if match else None


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The `resultDisplay` of a call, from the record with its result; None if there is none."""
    fields = fields_of(record)
    if "toolCalls" in fields:
        return _display_in_message(fields["toolCalls"], tool_call_id)
    result = fields_of(fields["toolCallResult"]) if "toolCallResult" in fields else fields
    found = result.get("resultDisplay", UNSET)
    return found.copy() if isinstance(found, Raw) else None


def _display_in_message(calls: Raw, tool_call_id: str) -> Raw | None:
    try:
        found = [fields_of(raw) for raw in msgspec.json.decode(calls, type=list[Raw])]
    except msgspec.MsgspecError:
        return None
    wanted = msgspec.json.encode(tool_call_id)
    return next(
        (call["resultDisplay"].copy() for call in found if call.get("id") == Raw(wanted) and "resultDisplay" in call),
        None,
    )
