"""Calls and their results: start, permission, output, exit code."""

from __future__ import annotations

import re
from zlib import crc32

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.copilot_cli import NAME
from turnlog.agents.copilot_cli.contents import file_parts
from turnlog.agents.copilot_cli.fold_context import CopilotContext
from turnlog.agents.copilot_cli.models import read_model_in_use
from turnlog.agents.copilot_cli.records import CopilotData, ToolError
from turnlog.agents.copilot_cli.state import CopilotPendingCall
from turnlog.agents.decoding import fields_of
from turnlog.model import (
    Approval,
    Message,
    Origin,
    Part,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
)

TOOL_KINDS: dict[str, ToolKind] = {
    "apply_patch": ToolKind.EDIT,
    "ask_user": ToolKind.ASK,
    "bash": ToolKind.EXECUTE,
    "create": ToolKind.EDIT,
    "edit": ToolKind.EDIT,
    "exit_plan_mode": ToolKind.SWITCH_MODE,
    "fetch_copilot_cli_documentation": ToolKind.FETCH,
    "glob": ToolKind.SEARCH,
    "grep": ToolKind.SEARCH,
    "list_agents": ToolKind.THINK,
    "list_bash": ToolKind.EXECUTE,
    "powershell": ToolKind.EXECUTE,
    "read_agent": ToolKind.THINK,
    "read_bash": ToolKind.EXECUTE,
    "read_powershell": ToolKind.EXECUTE,
    "report_intent": ToolKind.THINK,
    "rg": ToolKind.SEARCH,
    "session_store_sql": ToolKind.THINK,
    "sql": ToolKind.THINK,
    "stop_bash": ToolKind.EXECUTE,
    "stop_powershell": ToolKind.EXECUTE,
    "str_replace": ToolKind.EDIT,
    "str_replace_editor": ToolKind.EDIT,
    "task": ToolKind.SUBAGENT,
    "update_todo": ToolKind.THINK,
    "view": ToolKind.READ,
    "web_fetch": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
    "write_agent": ToolKind.THINK,
    "write_bash": ToolKind.EXECUTE,
}
"""Tools that the versions read offer to the model; any other is of kind `other`."""

_DENIED = frozenset({"denied", "rejected"})
"""`error.code` of a call that did not get permission."""

_EXIT_CODE = re.compile(r"(?:exit|completed with \S+) code (-?\d{1,10})>\s*\Z")
"""How the output of a command ends, in logs without `shellExecution`. A short secret is masked inside of words, too."""


def read_start(context: CopilotContext, data: CopilotData) -> None:
    """Read that a call begins to run."""
    call = context.state.calls.get(data.tool_call_id or "")
    _read_model(context, data, call)
    if call is None:
        context.report("no call has this id", "note", "$.data.toolCallId")
        context.add_record(known=True)
        return
    part = msgspec.structs.replace(_partial(call, data.tool_call_id or ""), started_at=context.created_at)
    context.extend_call(call, part)
    context.changes.counts.messages += 1


def _read_model(context: CopilotContext, data: CopilotData, call: CopilotPendingCall | None) -> None:
    """Read the model for which a tool runs. The result of a subagent's call may be written by the session itself."""
    if call is not None and call.agent == context.agent:
        read_model_in_use(context, data.model)


def read_permission(context: CopilotContext, data: CopilotData) -> None:
    """Read the answer to a permission request."""
    context.add_record(known=True)
    call = context.state.calls.get(data.tool_call_id or "")
    kind = None if data.result is None else data.result.kind
    if call is None or kind is None:
        return
    approval = Approval(
        id=data.request_id,
        # `cancelled` is neither: the question was withdrawn.
        approved=True if kind.startswith("approved") else False if kind.startswith("denied") else None,
        source=data.decision_source,
        reason=kind,
    )
    context.extend_call(call, msgspec.structs.replace(_partial(call, data.tool_call_id or ""), approval=approval))


def abort_calls(context: CopilotContext, agent: str | None) -> None:
    """Mark the calls of a conversation, or of all, as aborted: the program stopped before they had a result."""
    for call_id, call in list(context.state.calls.items()):
        if agent is None or call.agent == agent:
            context.extend_call(call, msgspec.structs.replace(_partial(call, call_id), state=ToolState.ABORTED))
            del context.state.calls[call_id]


def _partial(call: CopilotPendingCall, call_id: str) -> ToolCallPart:
    """What identifies a call, for a record that adds something to it."""
    return ToolCallPart(
        id=f"{call.message}.{call.part}",
        tool_call_id=call_id,
        tool_name=call.name,
        kind=TOOL_KINDS.get(call.name, ToolKind.OTHER),
    )


# -- results


def read_result(context: CopilotContext, data: CopilotData) -> None:
    """Read the result of a call, or the output of a command that the user ran with `!`."""
    if data.is_user_requested:
        _add_user_output(context, data)
        return
    call_id, text = data.tool_call_id or "", _text(data)
    _read_model(context, data, context.state.calls.get(call_id))
    exit_code = _exit_code(data, text)
    status = _status(data, exit_code)
    content: list[Part] = [TextPart(text=text)] if text else []
    if data.result is not None:
        content += file_parts(context, data.result.binary_results_for_llm or (), None, 0)
    result = ToolResult(
        # A fork copies the record with its id.
        id=context.record.id or f"{call_id}:{crc32(text.encode(errors='replace')):08x}",
        status=status,
        content=tuple(content),
        error_text=text if status != "success" else None,
        exit_code=exit_code,
        completed_at=context.created_at,
    )
    context.add_result(call_id, result)


def _add_user_output(context: CopilotContext, data: CopilotData) -> None:
    message_id, text = context.record_id(), _text(data)
    exit_code = _exit_code(data, text)
    context.add_message(
        Message(
            id=message_id,
            role="developer",
            parts=(TextPart(id=f"{message_id}.0", text=text),) if text else (),
            origin=Origin.SHELL_OUTPUT,
            created_at=context.created_at,
            metadata={NAME: {"exit_code": exit_code}} if exit_code is not None else {},
        )
    )


def _status(data: CopilotData, exit_code: int | None) -> ResultStatus:
    if data.success is not False:
        # A command that failed has `success: true`, because the tool itself did its work.
        return "error" if exit_code else "success"
    return "denied" if _error(data).code in _DENIED else "error"


def _text(data: CopilotData) -> str:
    if data.result is not None and data.result.content is not None:
        return data.result.content
    return _error(data).message or ""


def _error(data: CopilotData) -> ToolError:
    try:
        return ToolError() if data.error is UNSET else msgspec.json.decode(data.error, type=ToolError)
    except msgspec.MsgspecError:
        return ToolError()


def _exit_code(data: CopilotData, text: str) -> int | None:
    # 1.0.102 has the code in a field; what a command prints may look like the older ending.
    if data.shell_execution is not None:
        return data.shell_execution.exit_code
    # Only at the end, and not in a megabyte of output.
    written = _EXIT_CODE.search(text[-200:])
    return int(written[1]) if written else None


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The `data` of a record with a call's result; None if it has none."""
    data = fields_of(record).get("data")
    fields = {} if data is None else fields_of(data)
    is_outcome = "result" in fields or "error" in fields
    return data.copy() if data is not None and is_outcome and "toolCallId" in fields else None
