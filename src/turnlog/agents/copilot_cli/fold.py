"""The fold of one Copilot CLI log: a record for each event of a session and of its subagents.

Records are appended. Only a rewind writes the file anew, without what it took back, which is another generation of the
source. A record that cannot be read does not affect the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
from msgspec import UNSET, UnsetType

from turnlog.agents.base import Source
from turnlog.agents.copilot_cli import NAME
from turnlog.agents.copilot_cli.contents import usage_of
from turnlog.agents.copilot_cli.fold_context import CopilotContext
from turnlog.agents.copilot_cli.messages import (
    add_late_usage,
    add_unanswered,
    read_answer,
    read_notification,
    read_system,
    read_user,
    read_user_command,
)
from turnlog.agents.copilot_cli.models import (
    model_of_answer,
    read_choice,
    read_last_models,
    read_model_in_use,
    read_run,
)
from turnlog.agents.copilot_cli.record_kinds import RECORD_KINDS
from turnlog.agents.copilot_cli.records import DATA, LINES, CopilotData, CopilotRecord, CopilotUsage, Folder
from turnlog.agents.copilot_cli.sources import session_id
from turnlog.agents.copilot_cli.state import (
    MAIN,
    MOST_ASSETS,
    MOST_USAGES,
    CopilotPendingUsage,
    CopilotState,
    decode_state,
    encode_state,
)
from turnlog.agents.copilot_cli.tools import abort_calls, read_permission, read_result, read_start
from turnlog.agents.decoding import branch_of, clean_json, keep_newest, value_of
from turnlog.agents.line_fold import LineFold
from turnlog.model import CompactionEvent, ErrorEvent, InterruptEvent, Message, Origin, SessionTotal, TextPart
from turnlog.model.session import title_from

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FORKED_INTO = re.compile(rf"Forked this session into .* \((?P<child>{_UUID})\)\.", re.DOTALL)
_FORKED_FROM = re.compile(rf"Forked from .* \((?P<parent>{_UUID})\) as .* \((?P<child>{_UUID})\)\.", re.DOTALL)
"""The words of `session.info` of kind `fork`, in the parent and in the fork: no other record names the sessions."""


class CopilotFold(LineFold[CopilotState, CopilotContext, CopilotRecord]):
    """Reads one session's log."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        super().__init__(source, decode_state(state) if state is not None else CopilotState(), encode_state, LINES)

    def begin(self, data: bytes, offset: int) -> CopilotContext:
        """See `LineFold.begin`."""
        # Only the first record names the session, and a feed may begin behind it: the source has the id.
        return CopilotContext(self._state, (self._source.session_id or "").partition(":")[2])

    def read(self, context: CopilotContext, record: CopilotRecord) -> None:
        """See `LineFold.read`."""
        _read(context, record)


def _read(context: CopilotContext, record: CopilotRecord) -> None:
    context.record, context.agent = record, record.agent_id or MAIN
    reader = _READERS.get(record.type)
    if reader is None:
        context.update_times()
        context.add_record(known=record.type in RECORD_KINDS)
        return
    context.data_json = b"{}" if isinstance(record.data, UnsetType) else clean_json(bytes(record.data))
    found = DATA.decode(context.data_json)
    if isinstance(found, str):
        context.report(f"data: {found}", json_path="$.data")
        context.add_record(known=True)
        return
    context.report_problems(found.problems, "$.data")
    if record.agent_id is None and found.record.parent_tool_call_id is not None:
        # Before there was an `agentId`, only the call that started a subagent marked its records.
        context.agent = found.record.parent_tool_call_id
    # A fork's file begins with the parent's records and their times. `session.start` is written first and has the
    # fork's own.
    if record.type == "session.start":
        context.state.started_at = context.created_at
    context.update_times()
    reader(context, found.record)


# -- the session


def _read_start(context: CopilotContext, data: CopilotData) -> None:
    if data.copilot_version:
        context.state.version = context.session.agent_version = data.copilot_version
    # `session.resume` has the same data: a session may go on in another folder.
    _set_folder(context, data.context or Folder())
    read_run(context, data)
    context.add_run_metadata()


def _read_context(context: CopilotContext, data: CopilotData) -> None:
    _set_folder(context, Folder(cwd=data.cwd, branch=data.branch, head_commit=data.head_commit))
    context.add_run_metadata()


def _set_folder(context: CopilotContext, folder: Folder) -> None:
    if context.agent != MAIN or folder.cwd is None:
        return
    state, change = context.state, context.session
    # The project is where the session began; `cwd` follows it to other folders.
    if change.project_path is None:
        change.project_path, change.project_at = folder.cwd, context.created_at
    change.cwd, change.git_branch, change.git_commit = folder.cwd, branch_of(folder.branch), folder.head_commit
    state.cwd, state.branch = folder.cwd, change.git_branch


def _read_info(context: CopilotContext, data: CopilotData) -> None:
    """Read a note. One says that this session was forked, or is a fork."""
    context.add_record(known=True)
    if data.info_type != "fork":
        return
    own = context.external_id
    # A fork copies these notes too: that of its parent's other forks is older than itself.
    into = _FORKED_INTO.fullmatch(data.message or "")
    if into is not None and not context.is_copied:
        context.link("fork", parent=session_id(own), child=session_id(into["child"]))
    came = _FORKED_FROM.fullmatch(data.message or "")
    if came is not None and came["child"] == own:
        context.link("fork", parent=session_id(came["parent"]), child=session_id(own))


def _read_shutdown(context: CopilotContext, data: CopilotData) -> None:
    """Read the end of a run. What it says of tokens counts only where no call has a usage."""
    abort_calls(context, None)
    read_last_models(context, data)
    context.add_run_metadata()
    if context.state.has_usages:
        return
    metrics = {model: metric.usage for model, metric in (data.model_metrics or {}).items() if metric.usage is not None}
    # Answers whose model is not known are in the total of one of the models, and leave it once.
    unnamed = context.state.outputs.get("", 0)
    for model, run in sorted(metrics.items()):
        counted = context.state.outputs.get(model, 0) + (unnamed if len(metrics) == 1 else 0)
        used = _whole_session(context, model, run, counted)
        usage = usage_of(used)
        if usage is None:
            continue
        # Answers without a usage count their own output, with reasoning in it: the total is what is left after them.
        left = max(0, (used.output_tokens or 0) - context.state.outputs.get(model, 0))
        left, unnamed = max(0, left - unnamed), max(0, unnamed - left)
        reasoning = used.reasoning_tokens if left >= (used.reasoning_tokens or 0) > 0 else None
        rest = msgspec.structs.replace(usage, output=left - (reasoning or 0), reasoning=reasoning)
        # A total only grows: of two readings the larger counts.
        context.add_total(model, SessionTotal(model=model, usage=rest))


def _whole_session(context: CopilotContext, model: str, run: CopilotUsage, counted: int) -> CopilotUsage:
    """What the session has used of a model when a run ends that says `run`.

    1.0.75 repeats what the runs before used, 1.0.45 does not. A sum for the whole session has at least the output that
    its answers have `counted`.
    """
    before = context.state.used.get(model)
    whole = run if before is None or (run.output_tokens or 0) >= counted else _sum(before, run)
    context.state.used[model] = whole
    return whole


def _sum(one: CopilotUsage, other: CopilotUsage) -> CopilotUsage:
    def added(known: int | None, more: int | None) -> int | None:
        return more if known is None else known + (more or 0)

    return CopilotUsage(
        input_tokens=added(one.input_tokens, other.input_tokens),
        output_tokens=added(one.output_tokens, other.output_tokens),
        cache_read_tokens=added(one.cache_read_tokens, other.cache_read_tokens),
        cache_write_tokens=added(one.cache_write_tokens, other.cache_write_tokens),
        reasoning_tokens=added(one.reasoning_tokens, other.reasoning_tokens),
    )


# -- model calls that no answer shows


def _read_usage(context: CopilotContext, data: CopilotData) -> None:
    """Read the usage of a model call, which is written before the answer; one behind its answer is its own, too."""
    usage = data.usage
    if usage is not None:
        context.state.has_usages = True
        # `apiCallId` is all that joins the record to the answer behind it.
        if usage.api_call_id is not None:
            pending = CopilotPendingUsage(usage, context.position, context.length, context.agent, context.record_id())
            if usage.api_call_id == context.conversation.answer_call:
                add_late_usage(context, pending)
            else:
                keep_newest(context.state.usages, usage.api_call_id, pending, MOST_USAGES)
    context.add_run_metadata()


def _read_call_end(context: CopilotContext, data: CopilotData) -> None:
    """Read the end of a model call. Of an answer that was cut off and asked for again there are only the tokens."""
    for call, pending in list(context.state.usages.items()):
        if pending.agent == context.agent:
            del context.state.usages[call]
            add_unanswered(context, call, pending)
    context.add_run_metadata()


def _read_compaction_start(context: CopilotContext, data: CopilotData) -> None:
    if context.agent == MAIN:
        context.state.compacting = []
    context.add_record(known=True)


def _read_compaction(context: CopilotContext, data: CopilotData) -> None:
    """Read a compaction: the summary replaces what came before it began. A failed one replaces nothing."""
    kept, context.state.compacting = context.state.compacting or [], None
    if not data.success or not data.summary_content or context.agent != MAIN:
        context.add_record(known=True)
        return
    # The record's id is the same in a fork; the event is of this file alone.
    summary_id = f"{context.record_id()}.summary"
    context.add_event(
        CompactionEvent(
            id=context.position_id(),
            created_at=context.created_at,
            trigger=data.trigger,
            summary_message_id=summary_id,
            kept_message_ids=tuple(kept),
            tokens_before=data.pre_compaction_tokens,
            tokens_after=data.post_compaction_tokens,
        )
    )
    used = data.compaction_tokens_used
    chosen = model_of_answer(context, summary_id, None if used is None else used.model, 0)
    facts = chosen.pop("metadata", None)
    # The model wrote the summary in its own call, whose usage no other record has.
    context.add_beside(
        Message(
            id=summary_id,
            role="assistant",
            parts=(TextPart(id=f"{summary_id}.0", text=data.summary_content),),
            origin=Origin.COMPACTION,
            usage=usage_of(used),
            metadata={} if facts is None else {NAME: facts},
            created_at=context.created_at,
            **chosen,
        )
    )
    context.state.branched = True


# -- interruptions and failures


def _read_abort(context: CopilotContext, data: CopilotData) -> None:
    conversation = context.conversation
    # The record does not say what was stopped. A call that has no result yet was running.
    is_running = any(call.agent == context.agent for call in context.state.calls.values())
    context.add_event(
        InterruptEvent(
            id=context.position_id(),
            created_at=context.created_at,
            during="tool" if is_running else "answer",
            message_id=conversation.leaf,
        )
    )
    abort_calls(context, context.agent)


def _read_error(context: CopilotContext, data: CopilotData) -> None:
    context.add_event(
        ErrorEvent(
            id=context.position_id(),
            created_at=context.created_at,
            error_text=data.message or "",
            kind=data.error_type,
            status=data.status_code,
        )
    )


# -- subagents


def _read_subagent_start(context: CopilotContext, data: CopilotData) -> None:
    """Read that a call started a subagent, whose records are in the same file."""
    call = context.state.calls.get(data.tool_call_id or "")
    if context.agent == MAIN and data.tool_call_id is not None:
        context.agent = data.tool_call_id
        context.update_times()
    context.link(
        "subagent",
        parent=context.session_of(MAIN if call is None else call.agent),
        child=context.session_id,
        call=data.tool_call_id,
        message=None if call is None else call.message,
    )
    if title := title_from(data.agent_display_name or ""):
        context.session.titles["generated"] = title
    read_model_in_use(context, data.model)
    context.add_run_metadata()


def _read_subagent_end(context: CopilotContext, data: CopilotData) -> None:
    """Read that a subagent has ended. Calls that have no result then were stopped with it."""
    if context.agent == MAIN and data.tool_call_id is not None:
        context.agent = data.tool_call_id
    abort_calls(context, context.agent)
    if context.record.type == "subagent.failed":
        text = value_of(data.error) if data.error is not UNSET else ""
        context.add_event(
            ErrorEvent(id=context.position_id(), created_at=context.created_at, error_text=str(text), kind="subagent")
        )
    else:
        context.add_run_metadata()


# -- everything else


def _read_asset(context: CopilotContext, data: CopilotData) -> None:
    """Read the bytes of a file: the record after it names them."""
    if data.asset_id is not None and data.data is not None:
        keep_newest(context.state.assets, data.asset_id, data.data, MOST_ASSETS)
    context.add_record(known=True)


def _read_choice(context: CopilotContext, data: CopilotData) -> None:
    read_choice(context, data)
    context.add_run_metadata()


def _read_configured(context: CopilotContext, data: CopilotData) -> None:
    """Read how a subagent is set up."""
    read_model_in_use(context, data.model)
    context.add_record(known=True)


_READERS: dict[str, Callable[[CopilotContext, CopilotData], None]] = {
    "abort": _read_abort,
    "assistant.message": read_answer,
    "assistant.turn_end": _read_call_end,
    "permission.completed": read_permission,
    "session.binary_asset": _read_asset,
    "session.compaction_complete": _read_compaction,
    "session.compaction_start": _read_compaction_start,
    "session.context_changed": _read_context,
    "session.error": _read_error,
    "session.info": _read_info,
    "session.model_change": _read_choice,
    "session.resume": _read_start,
    "session.shutdown": _read_shutdown,
    "session.start": _read_start,
    "session.usage_record": _read_usage,
    "subagent.completed": _read_subagent_end,
    "subagent.configured": _read_configured,
    "subagent.failed": _read_subagent_end,
    "subagent.started": _read_subagent_start,
    "system.message": read_system,
    "system.notification": read_notification,
    "tool.execution_complete": read_result,
    "tool.execution_start": read_start,
    "tool.user_requested": read_user_command,
    "user.message": read_user,
}
