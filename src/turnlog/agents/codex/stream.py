"""The fold of what `codex exec --json` prints: lines of a stream -> changes of the model.

Items become parts of messages, one message a model call as far as their order shows it. They have numbers of the run
and none of the rollout's ids, no times, no model and no prompt. The only token counts are the thread's running totals,
which belong to no message. What versions up to 0.43 printed is read by `stream_events`.
"""

from __future__ import annotations

from zlib import crc32

from msgspec import UNSET

from turnlog.agents.changes import Link
from turnlog.agents.codex.records import fields_of
from turnlog.agents.codex.sources import NAME, session_id
from turnlog.agents.codex.stream_events import (
    defer_settings,
    is_event,
    is_prompt,
    is_settings,
    read_event_line,
    session_of_prompt,
)
from turnlog.agents.codex.stream_records import (
    CALL_ITEMS,
    EXEC_KINDS,
    EXEC_LINES,
    ITEM_STEPS,
    CodexStreamState,
    ExecItem,
    ExecLine,
    current_message,
    forget_run,
    input_of,
    item_of,
    message_of,
    read_item,
    result_of,
    tool_name_of,
)
from turnlog.agents.codex.tools import SPAWN_TOOLS
from turnlog.agents.printed_stream import PrintedContext, PrintedFormat, kept_fields
from turnlog.model import (
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
)
from turnlog.model.tools import STATE_OF_STATUS


def _is_ours(line: ExecLine) -> bool:
    if line.msg is not UNSET:
        return is_event(line)
    if is_settings(line):
        return True
    if line.type == "thread.started":
        return line.thread_id is not None
    if line.type not in ITEM_STEPS or line.item is UNSET:
        return False
    item = read_item(line.item, lambda reason, severity, json_path: None)
    return f"item/{item.type}" in EXEC_KINDS


def _session_of(state: CodexStreamState, line: ExecLine, json: bytes) -> str | None:
    if is_prompt(line):
        return session_of_prompt(state, json)
    return line.thread_id if line.type == "thread.started" else None


def _begin_run(state: CodexStreamState, line: ExecLine) -> None:
    forget_run(state)


def _read_line(state: CodexStreamState, printed: PrintedContext, line: ExecLine) -> None:
    if is_prompt(line) or line.msg is not UNSET:
        read_event_line(state, printed, line)
        return
    kind = line.type
    if kind in ITEM_STEPS and line.item is not UNSET:
        _read_item(state, printed, line, read_item(line.item, printed.report))
        return
    if kind.startswith("turn."):
        state.open = None
    if kind == "turn.started":
        printed.begin_turn()
    failure = line.message or (line.error.message if line.error else None)
    if kind in ("error", "turn.failed") and failure is not None:
        _add_failure(state, printed, kind, failure)
        return
    if kind in ("thread.started", "turn.completed"):
        printed.add_fact(kind, kept_fields(fields_of(printed.json), ("thread_id", "usage")))
    else:
        printed.add_record(kind, known=kind in EXEC_KINDS)
    printed.changes.counts.events += 1


def _add_failure(state: CodexStreamState, printed: PrintedContext, kind: str, text: str) -> None:
    """Add an error. The end of a turn repeats the error that ended it, which is skipped."""
    if kind == "turn.failed" and text == state.failure:
        printed.changes.counts.duplicates += 1
    else:
        printed.add_error(text, kind)
        printed.changes.counts.events += 1
    state.failure = text


def _read_item(state: CodexStreamState, printed: PrintedContext, line: ExecLine, item: ExecItem) -> None:
    counts = printed.changes.counts
    if item.type in ("agent_message", "reasoning"):
        _show_text(state, printed, line, item)
        counts.messages += 1
    elif item.type in CALL_ITEMS:
        known = item.id in state.items
        has_ended = _show_call(state, printed, line, item)
        counts.results += known and has_ended
        counts.messages += not (known and has_ended)
    elif item.type == "todo_list":
        _show_plan(state, printed, item)
    elif item.type == "error" and item.message is not None:
        printed.add_error(item.message, "item/error")
        counts.events += 1
    else:
        kind = f"item/{item.type}"
        printed.add_record(kind, known=kind in EXEC_KINDS)
        counts.events += 1


def _show_text(state: CodexStreamState, printed: PrintedContext, line: ExecLine, item: ExecItem) -> None:
    """Show text or reasoning. After a call that the agent ran it belongs to another response."""
    newest = current_message(state)
    open_item = item_of(state, printed, item.id, starts_anew=newest is not None and newest.called)
    done = "done" if line.type == "item.completed" else "streaming"
    kind = TextPart if item.type == "agent_message" else ReasoningPart
    printed.show(open_item.message, kind(id=open_item.part_id, text=item.text or "", state=done))


def _show_call(state: CodexStreamState, printed: PrintedContext, line: ExecLine, item: ExecItem) -> bool:
    """Show a call; return whether it has ended. After the end of another call it belongs to another response."""
    shape = CALL_ITEMS[item.type]
    newest = current_message(state)
    open_item = item_of(state, printed, item.id, starts_anew=newest is not None and newest.answered)
    has_ended = line.type == "item.completed" and item.status != "in_progress"
    result = result_of(open_item.call_id, item, has_ended=has_ended)
    message = message_of(state, open_item)
    if not shape.by_provider:
        message.called = True
        message.answered = message.answered or has_ended
    part = ToolCallPart(
        id=open_item.part_id,
        tool_call_id=open_item.call_id,
        tool_name=tool_name_of(item),
        kind=shape.kind,
        input=input_of(line, item, shape, has_ended=has_ended),
        state=ToolState.INPUT_AVAILABLE if result is None else STATE_OF_STATUS[result.status],
        provider_executed=shape.by_provider,
        results=() if result is None else (result,),
    )
    printed.show(message, part, None if result is None else result.id)
    _link_children(printed, item, has_ended=has_ended)
    return has_ended


def _link_children(printed: PrintedContext, item: ExecItem, *, has_ended: bool) -> None:
    if not has_ended or item.tool not in SPAWN_TOOLS:
        return
    for thread in item.receiver_thread_ids or ():
        link = Link(kind="subagent", parent_session_id=printed.session_id, child_session_id=session_id(thread))
        printed.changes.links.append(link)


def _show_plan(state: CodexStreamState, printed: PrintedContext, item: ExecItem) -> None:
    """Show a change of the plan as a call of its own, though all are one item. The item's end repeats the last one."""
    plan = kept_fields(fields_of(fields_of(printed.json)["item"]), ("items",))
    key = f"{item.id}:{crc32(b'' if plan is UNSET else bytes(plan)):08x}"
    if key == state.plan:
        printed.changes.counts.duplicates += 1
        return
    state.plan = key
    newest = current_message(state)
    open_item = item_of(state, printed, key, starts_anew=newest is not None and newest.answered)
    message = message_of(state, open_item)
    message.called = message.answered = True
    result = ToolResult(id=f"{open_item.call_id}:done")
    part = ToolCallPart(
        id=open_item.part_id,
        tool_call_id=open_item.call_id,
        tool_name=item.type,
        kind=ToolKind.THINK,
        input=plan,
        state=ToolState.OUTPUT_AVAILABLE,
        results=(result,),
    )
    printed.show(message, part, result.id)
    printed.changes.counts.messages += 1


EXEC_JSON = PrintedFormat(
    agent=NAME,
    lines=EXEC_LINES,
    state=CodexStreamState,
    is_ours=_is_ours,
    session_of=_session_of,
    begin_run=_begin_run,
    hold=defer_settings,
    time_of=lambda line: None,
    read=_read_line,
)
"""What `codex exec --json` prints, today and up to 0.43."""
