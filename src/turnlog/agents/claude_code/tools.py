"""Claude Code's tools by kind, and how its results are worded: status, approval, exit code, spilled output."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple
from zlib import crc32

from turnlog.agents.claude_code.records import Block, PermissionDecision, Record, ResultFacts
from turnlog.model import Approval, ResultStatus, ToolKind

SUBAGENT_TOOLS = frozenset({"Task", "Agent"})
"""`Task` up to 2.1.20, `Agent` since 2.1.100; the old name is still accepted."""

TOOL_KINDS: dict[str, ToolKind] = {
    "Agent": ToolKind.SUBAGENT,
    "AskUserQuestion": ToolKind.ASK,
    "Bash": ToolKind.EXECUTE,
    "BashOutput": ToolKind.EXECUTE,
    "Edit": ToolKind.EDIT,
    "EnterPlanMode": ToolKind.SWITCH_MODE,
    "ExitPlanMode": ToolKind.SWITCH_MODE,
    "Glob": ToolKind.SEARCH,
    "Grep": ToolKind.SEARCH,
    "KillShell": ToolKind.EXECUTE,
    "LS": ToolKind.SEARCH,
    "Monitor": ToolKind.EXECUTE,
    "MultiEdit": ToolKind.EDIT,
    "NotebookEdit": ToolKind.EDIT,
    "NotebookRead": ToolKind.READ,
    "PowerShell": ToolKind.EXECUTE,
    "Read": ToolKind.READ,
    "Task": ToolKind.SUBAGENT,
    "TaskOutput": ToolKind.READ,
    "TodoRead": ToolKind.THINK,
    "TodoWrite": ToolKind.THINK,
    "TaskCreate": ToolKind.THINK,
    "TaskGet": ToolKind.THINK,
    "TaskList": ToolKind.THINK,
    "TaskUpdate": ToolKind.THINK,
    "ToolSearch": ToolKind.SEARCH,
    "WebFetch": ToolKind.FETCH,
    "WebSearch": ToolKind.FETCH,
    "Workflow": ToolKind.SUBAGENT,
    "Write": ToolKind.EDIT,
    "code_execution": ToolKind.EXECUTE,
    "exit_plan_mode": ToolKind.SWITCH_MODE,
    "web_fetch": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
}
"""Tools of the recorded versions. Any other tool, MCP's included, has the kind `other`."""

_DENIED = re.compile(
    r"This command requires approval|Claude requested permissions to |Exit plan mode\?\Z"
    r"|Permission (?:to use|for) .* has been denied|PreToolUse:\S+ hook error: |\w+ operation blocked by hook:"
    r"|\w+ in '.*' was blocked\. For security, Claude Code "
)
"""How the results of denied calls begin: in a headless run without anybody to ask, by a rule, by a hook."""
_REJECTION = "The user doesn't want to "
_ABORTED = re.compile(
    r"\[Request interrupted by user for tool use\]|\[Tool call interrupted"
    r"|Exit code \d+\n(?:.*\n)?\[Request interrupted by user for tool use\]\Z",
    re.DOTALL,
)
"""The results of aborted calls; for a command, exit code and output come first (2.1.150)."""
_EXIT_CODE = re.compile(r"Exit code (\d{1,3})\b")
_ERROR_TAG = re.compile(r"\A<tool_use_error>(.*)</tool_use_error>\Z", re.DOTALL)
_SPILL = re.compile(r"\A<persisted-output>\n.*? saved to: ([^\n]+)")
_COMPARED_CHARACTERS = 128
"""Characters at either end of a text, and at the beginning of file data, that the id of a result covers."""


class SpilledOutput(NamedTuple):
    """Where a result says that its whole output was written. These are names; the path is never opened."""

    session: str
    name: str | None
    """File name; None when the path is not in a session's `tool-results` folder."""


def result_id(call_id: str, text: str, blocks: list[Block] | None) -> str:
    """The id of a result: the same in every copy of its record, though each copy has another uuid."""
    key = f"{len(text)}:{text[:_COMPARED_CHARACTERS]}:{text[-_COMPARED_CHARACTERS:]}"
    for block in blocks or ():
        data = block.source.data if block.source else None
        key += f":{block.type}" if data is None else f":{len(data)}:{data[:_COMPARED_CHARACTERS]}"
    return f"{call_id}:{crc32(key.encode(errors='replace')):08x}"


def status_of_success(facts: ResultFacts | None) -> ResultStatus:
    """The status of a result that is no error: `aborted` when its facts say that the tool was interrupted."""
    return "aborted" if facts is not None and facts.interrupted is True else "success"


def status_of_failure(
    record: Record, text: str, *, rejection: ResultStatus, rejection_before_run: ResultStatus
) -> ResultStatus:
    """The status of a result that is an error: `error`, `denied` or `aborted`.

    2.1.329 says it in fields: a denied call has a rejecting decision or never ran; `interrupted`, and a rejection by
    the user without either, mean Esc while the tool ran. Older versions use the same words for both, and since about
    2.1.200 the same `toolDenialKind`.

    Args:
        record: The result's record.
        text: The text of the result.
        rejection: What a rejection by the user means where no field says it: `denied` where the tool needed a
            permission, else `aborted`.
        rejection_before_run: What it means for a call that never ran: `aborted` where Esc has aborted another call of
            the same message, for which this one waited, else `denied`.
    """
    kind, decision = record.tool_denial_kind, record.permission_decision
    if kind == "interrupted" or (kind is None and _ABORTED.match(text)):
        return "aborted"
    if record.tool_denial_before_run and decision is None and kind == "user-rejected":
        return rejection_before_run
    if record.tool_denial_before_run or (decision is not None and decision.decision == "reject"):
        return "denied"
    if kind == "user-rejected" or text.startswith(_REJECTION):
        return rejection
    return "denied" if kind is not None or _DENIED.match(text) else "error"


def is_user_rejection(record: Record, content: object) -> bool:
    """Whether a failed result has the words that versions use for both a denial and Esc, and no field that says which.

    Up to about 2.1.290 no field says it.
    """
    is_decided = record.tool_denial_before_run or record.permission_decision is not None
    return not is_decided and isinstance(content, str) and content.startswith(_REJECTION)


def error_text_of(text: str) -> str:
    """The text of a failed result, without the tag around it."""
    match = _ERROR_TAG.match(text)
    return match[1] if match else text


def exit_code_of(text: str) -> int | None:
    """The exit code that a failed command's result begins with."""
    match = _EXIT_CODE.match(text)
    return int(match[1]) if match else None


def duration_of(facts: ResultFacts) -> int | None:
    """Milliseconds that the tool ran; None when its result does not say."""
    value, factor = facts.total_duration_ms, 1
    if value is None:
        value = facts.duration_ms
    if value is None:
        value, factor = facts.duration_seconds, 1000
    return round(value * factor) if type(value) in (int, float) else None


def approval_of(decision: PermissionDecision) -> Approval:
    """The approval that a recorded decision is."""
    details = {
        "reason_code": decision.reason_code,
        "rule_source": decision.rule_source,
        "grant_scope": decision.grant_scope,
    }
    known = {name: value for name, value in details.items() if value is not None}
    return Approval(
        approved=decision.decision == "accept" if decision.decision else None,
        source=decision.source,
        reason=decision.reason_type,
        metadata={"claude-code": known} if known else {},
    )


def spilled_output_of(text: str) -> SpilledOutput | None:
    """Where the whole output is, when `text` is only its preview; None when it is all."""
    match = _SPILL.match(text)
    if match is None:
        return None
    parts = PurePosixPath(match[1].strip().replace("\\", "/")).parts
    if len(parts) < 3 or parts[-2] != "tool-results" or ".." in parts:
        return SpilledOutput("", None)
    return SpilledOutput(parts[-3], parts[-1])
