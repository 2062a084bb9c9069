"""Claude Code's tools by kind, and what became of a call: its result's status, approval, exit code, spilled output."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple
from zlib import crc32

from turnlog.agents.claude_code.records import Block, PermissionDecision, Record, ResultFacts
from turnlog.model import Approval, ResultStatus, ToolKind

SUBAGENT_TOOLS = frozenset({"Task", "Agent"})
"""`Task` up to 2.1.20, `Agent` since 2.1.100; the old name is still accepted."""

KINDS: dict[str, ToolKind] = {
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
"""Tools that the versions read offer to the model; any other, MCP's included, is of kind `other`."""

_DENIED = re.compile(
    r"This command requires approval|Claude requested permissions to |Exit plan mode\?\Z"
    r"|Permission (?:to use|for) .* has been denied|PreToolUse:\S+ hook error: |\w+ operation blocked by hook:"
    r"|\w+ in '.*' was blocked\. For security, Claude Code "
)
"""How results begin that say no: of a headless run that can ask nobody, of a rule, of a hook."""
_REFUSED = "The user doesn't want to "
_ABORTED = re.compile(
    r"\[Request interrupted by user for tool use\]|\[Tool call interrupted"
    r"|Exit code \d+\n(?:.*\n)?\[Request interrupted by user for tool use\]\Z",
    re.DOTALL,
)
"""What was stopped while it ran; a command has its exit code and its output before that (2.1.150)."""
_EXIT_CODE = re.compile(r"Exit code (\d{1,3})\b")
_ERROR_TAG = re.compile(r"\A<tool_use_error>(.*)</tool_use_error>\Z", re.DOTALL)
_SPILL = re.compile(r"\A<persisted-output>\n.*? saved to: ([^\n]+)")
_EDGE = 128


class SpilledOutput(NamedTuple):
    """Where a result says that its whole output lies: names only, never a path that is followed."""

    session: str
    name: str | None
    """None when the path is not that of a file in a session's `tool-results` folder."""


def result_id(call_id: str, text: str, blocks: list[Block] | None) -> str:
    """An id that the same result has in every copy of its record, whatever uuid the copy got."""
    key = f"{len(text)}:{text[:_EDGE]}:{text[-_EDGE:]}"
    for block in blocks or ():
        data = block.source.data if block.source else None
        key += f":{block.type}" if data is None else f":{len(data)}:{data[:_EDGE]}"
    return f"{call_id}:{crc32(key.encode(errors='replace')):08x}"


def status_of_success(facts: ResultFacts | None) -> ResultStatus:
    """What became of a call whose result is no error: one that was interrupted says so in its facts."""
    return "aborted" if facts is not None and facts.interrupted is True else "success"


def status_of_failure(record: Record, text: str, *, no: ResultStatus, no_before_run: ResultStatus) -> ResultStatus:
    """Error, denied or aborted.

    2.1.329 says it in fields: a denial has a rejecting decision or never ran; `interrupted` and a user's no without
    either are Esc while the tool ran. Older versions have the same words for both, and those from about 2.1.200 on the
    same kind.

    Args:
        record: The result's record.
        text: The words of the result.
        no: What a user's no means where no field tells: `denied` where somebody was asked for leave, else `aborted`.
        no_before_run: What it means for a call that never ran: `aborted` where Esc has stopped another of the same
            answer, for which this one waited, else `denied`.
    """
    kind, decision = record.tool_denial_kind, record.permission_decision
    if kind == "interrupted" or (kind is None and _ABORTED.match(text)):
        return "aborted"
    if record.tool_denial_before_run and decision is None and kind == "user-rejected":
        return no_before_run
    if record.tool_denial_before_run or (decision is not None and decision.decision == "reject"):
        return "denied"
    if kind == "user-rejected" or text.startswith(_REFUSED):
        return no
    return "denied" if kind is not None or _DENIED.match(text) else "error"


def is_users_no(record: Record, content: object) -> bool:
    """Whether a result that is no success has the words that a refusal and Escape share, and no field beside them."""
    told = record.tool_denial_before_run or record.permission_decision is not None
    return not told and isinstance(content, str) and content.startswith(_REFUSED)


def error_text_of(text: str) -> str:
    """The words of a failed result, out of their tag."""
    match = _ERROR_TAG.match(text)
    return match[1] if match else text


def exit_code_of(text: str) -> int | None:
    """The exit code that a failed command's result begins with."""
    match = _EXIT_CODE.match(text)
    return int(match[1]) if match else None


def duration_of(facts: ResultFacts) -> int | None:
    """Milliseconds that the tool ran, where its result tells."""
    value, factor = facts.total_duration_ms, 1
    if value is None:
        value = facts.duration_ms
    if value is None:
        value, factor = facts.duration_seconds, 1000
    return round(value * factor) if type(value) in (int, float) else None


def approval_of(decision: PermissionDecision) -> Approval:
    """Who allowed or refused the call."""
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
    """Where the whole output lies, when `text` is only its preview."""
    match = _SPILL.match(text)
    if match is None:
        return None
    parts = PurePosixPath(match[1].strip().replace("\\", "/")).parts
    if len(parts) < 3 or parts[-2] != "tool-results" or ".." in parts:
        return SpilledOutput("", None)
    return SpilledOutput(parts[-3], parts[-1])
