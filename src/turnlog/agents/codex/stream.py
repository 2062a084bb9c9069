"""The fold of what `codex exec --json` prints: lines of a stream -> changes of the model.

Items become parts of messages, one message a model call as far as their order shows it. They have numbers of the run
and none of the rollout's ids, no times, no model and no prompt. The only token counts are the thread's running totals,
which belong to no message. Versions up to 0.43 printed events of the log instead; the lower half reads those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from zlib import crc32

from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import Link
from turnlog.agents.codex import NAME
from turnlog.agents.codex.record_kinds import RECORD_KINDS
from turnlog.agents.codex.records import CodexPayload
from turnlog.agents.codex.sources import session_id
from turnlog.agents.codex.stream_records import (
    CALL_ITEMS,
    EXEC_KINDS,
    EXEC_LINES,
    ITEM_STEPS,
    CodexStreamState,
    DeferredLine,
    ExecEvent,
    ExecItem,
    ExecLine,
    McpOutcome,
    current_message,
    forget_run,
    input_of,
    item_of,
    mcp_content,
    message_of,
    read_item,
    result_of,
    tool_name_of,
)
from turnlog.agents.codex.tools import SPAWN_TOOLS, milliseconds_of, status_of
from turnlog.agents.decoding import fields_of
from turnlog.agents.printed_stream import PrintedContext, PrintedFormat, kept_fields
from turnlog.model import (
    InterruptEvent,
    Part,
    ReasoningPart,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
)
from turnlog.model.parts import STATE_OF_STATUS
from turnlog.model.session import title_from


def _is_ours(line: ExecLine) -> bool:
    if line.msg is not UNSET:
        return _is_event(line)
    if _is_settings(line):
        return True
    if line.type == "thread.started":
        return line.thread_id is not None
    if line.type not in ITEM_STEPS or line.item is UNSET:
        return False
    item = read_item(line.item, lambda reason, severity, json_path: None)
    return f"item/{item.type}" in EXEC_KINDS


def _session_of(state: CodexStreamState, line: ExecLine, json: bytes) -> str | None:
    if _is_prompt(line):
        return _session_of_prompt(state, json)
    return line.thread_id if line.type == "thread.started" else None


def _begin_run(state: CodexStreamState, line: ExecLine) -> None:
    forget_run(state)


def _read_line(state: CodexStreamState, printed: PrintedContext, line: ExecLine) -> None:
    if _is_prompt(line) or line.msg is not UNSET:
        _read_event_line(state, printed, line)
        return
    kind = line.type
    if kind in ITEM_STEPS and line.item is not UNSET:
        _read_item(state, printed, line, read_item(line.item, printed.report))
        return
    # A turn ends the response: what follows belongs to another message.
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
    """Show a change of the plan as a separate call, though all are one item. The item's end repeats the last one."""
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


# -- up to 0.43
#
# The settings of the run, the prompt, then the events of the log. Events name calls as the model did, and each response
# ends with its tokens. No line names the thread, so a run is a separate session, identified by its first two lines.
# The thread's log has the same tokens, and nothing shows that it is the same thread. So the tokens are events here and
# belong to no message.


_SETTINGS = ("model", "provider", "approval", "sandbox", "workdir", "reasoning effort", "reasoning summaries")


_read_event = CodexPayload(ExecEvent).read


def _is_event(line: ExecLine) -> bool:
    """Whether a line is an event that only Codex prints."""
    return line.id is not None and f"event_msg/{_event_of(line).type}" in RECORD_KINDS


def _is_settings(line: ExecLine) -> bool:
    """Whether a line is the first of a run."""
    return not line.type and line.workdir is not None and line.sandbox is not None


def _is_prompt(line: ExecLine) -> bool:
    """Whether a line is the second of a run."""
    return not line.type and line.prompt is not None and line.msg is UNSET


def _defer_settings(state: CodexStreamState, line: ExecLine, json: bytes, position: int) -> bool:
    """Keep the first line of a run, whose session the second line decides. Returns whether it was one."""
    if not _is_settings(line):
        return False
    state.settings = DeferredLine(json.decode(errors="replace"), position, len(json), line.model, line.workdir)
    return True


def _session_of_prompt(state: CodexStreamState, json: bytes) -> str:
    """A session id made of the bytes of the settings and of the prompt."""
    settings = state.settings.json if state.settings is not None else ""
    return f"stream-{hashlib.sha256(settings.encode(errors='replace') + json).hexdigest()[:16]}"


def _read_event_line(state: CodexStreamState, printed: PrintedContext, line: ExecLine) -> None:
    """Read a line of this form."""
    if line.msg is UNSET:
        _read_prompt(state, printed, line)
        return
    event = _read_event(line.msg, printed.report)
    reader = _READERS.get(event.type)
    if reader is not None:
        reader(state, printed, event)
        return
    kind = f"event_msg/{event.type}"
    printed.add_record(kind, known=kind in RECORD_KINDS)
    printed.changes.counts.events += 1


def _event_of(line: ExecLine) -> ExecEvent:
    return ExecEvent() if line.msg is UNSET else _read_event(line.msg, lambda reason, severity, json_path: None)


def _read_prompt(state: CodexStreamState, printed: PrintedContext, line: ExecLine) -> None:
    _emit_settings(state, printed)
    text = line.prompt or ""
    message = printed.begin_prompt()
    printed.show(message, TextPart(id=message.next_part(), text=text))
    title = title_from(text)
    if title:
        printed.session.titles["prompt"] = title
    printed.changes.counts.messages += 1


def _emit_settings(state: CodexStreamState, printed: PrintedContext) -> None:
    """Emit the settings that were kept, at the position of their own line."""
    held, state.settings, state.model = state.settings, None, None
    if held is None:
        return
    here = printed.json, printed.position, printed.length
    printed.json, printed.position, printed.length = held.json.encode(), held.position, held.length
    fields = fields_of(printed.json)
    printed.add_fact("settings", kept_fields(fields, _SETTINGS))
    state.model = held.model
    printed.session.cwd = printed.session.project_path = held.folder
    printed.json, printed.position, printed.length = here


# -- its texts


def _read_text(state: CodexStreamState, printed: PrintedContext, event: ExecEvent) -> None:
    place = item_of(state, printed, "")
    is_thought = event.type != "agent_message"
    text = (event.text if is_thought else event.message) or ""
    part = ReasoningPart(id=place.part_id, text=text) if is_thought else TextPart(id=place.part_id, text=text)
    printed.show(place.message, part)
    printed.changes.counts.messages += 1


# -- its calls


def _begin(kind: ToolKind, name: str, *fields: str) -> Callable[[CodexStreamState, PrintedContext, ExecEvent], None]:
    """A reader of the event at a call's beginning: its tool, and the fields that are its input."""

    def read(state: CodexStreamState, printed: PrintedContext, event: ExecEvent) -> None:
        _show(state, printed, event, name, kind, _input_of(printed, fields))
        printed.changes.counts.messages += 1

    return read


def _end(kind: ToolKind, name: str, *fields: str) -> Callable[[CodexStreamState, PrintedContext, ExecEvent], None]:
    """A reader of the event at a call's end, which also shows a call whose beginning was not printed."""

    def read(state: CodexStreamState, printed: PrintedContext, event: ExecEvent) -> None:
        is_known = event.call_id in state.items
        _show(state, printed, event, name, kind, _input_of(printed, fields), _result_of(event))
        printed.changes.counts.results += is_known
        printed.changes.counts.messages += not is_known

    return read


def _input_of(printed: PrintedContext, names: tuple[str, ...]) -> Raw | UnsetType:
    fields = fields_of(fields_of(printed.json).get("msg", Raw(b"{}")))
    if names != ("invocation",):
        return kept_fields(fields, names)
    arguments = fields_of(fields.get("invocation", Raw(b"{}"))).get("arguments")
    return UNSET if arguments is None else Raw(bytes(arguments))


def _show(
    state: CodexStreamState,
    printed: PrintedContext,
    event: ExecEvent,
    name: str,
    kind: ToolKind,
    given: Raw | UnsetType,
    result: ToolResult | None = None,
) -> None:
    place = item_of(state, printed, event.call_id, call_id=event.call_id)
    called = event.invocation
    part = ToolCallPart(
        id=place.part_id,
        tool_call_id=place.call_id,
        tool_name=name if called is None else f"mcp__{called.server}__{called.tool}",
        kind=kind,
        input=given,
        state=ToolState.INPUT_AVAILABLE if result is None else STATE_OF_STATUS[result.status],
        provider_executed=name == "web_search",
        results=() if result is None else (result,),
    )
    printed.show(place.message, part, None if result is None else result.id)


def _result_of(event: ExecEvent) -> ToolResult:
    content, failure = _answer_of(event.result)
    if event.result is None:
        text = event.aggregated_output or (event.stdout or "") + (event.stderr or "")
        content = (TextPart(text=text),) if text else ()
    text = "\n".join([part.text for part in content if isinstance(part, TextPart)])
    status = _status_of(event, failure)
    return ToolResult(
        id=f"{event.call_id}:{crc32(text.encode(errors='replace')):08x}",
        status=status,
        content=content,
        error_text=(failure or text or None) if status != "success" else None,
        exit_code=event.exit_code,
        duration_ms=milliseconds_of(event.duration),
    )


def _answer_of(outcome: McpOutcome | None) -> tuple[tuple[Part, ...], str | None]:
    """The content of an MCP server's result, and why it failed."""
    if outcome is None:
        return (), None
    if outcome.ok is None:
        return (), outcome.err or ""
    content = mcp_content(outcome.ok.content or [])
    texts = [part.text for part in content if isinstance(part, TextPart)]
    return content, "\n".join(texts) if outcome.ok.is_error else None


def _status_of(event: ExecEvent, failure: str | None) -> ResultStatus:
    if failure is not None or event.success is False:
        return "error"
    return status_of(None, event.exit_code) or "success"


def _read_plan(state: CodexStreamState, printed: PrintedContext, event: ExecEvent) -> None:
    """Show a plan as the call of its tool, which no other event has. It has succeeded."""
    identity = f"plan@{printed.position}"
    place = item_of(state, printed, identity)
    result = ToolResult(id=f"{place.call_id}:done")
    part = ToolCallPart(
        id=place.part_id,
        tool_call_id=place.call_id,
        tool_name="update_plan",
        kind=ToolKind.THINK,
        input=_input_of(printed, ("explanation", "plan")),
        state=ToolState.OUTPUT_AVAILABLE,
        results=(result,),
    )
    printed.show(place.message, part, result.id)
    printed.changes.counts.messages += 1


# -- what belongs to no message


def _read_tokens(state: CodexStreamState, printed: PrintedContext, event: ExecEvent) -> None:
    """End a response. The counts are repeated around it; a repetition has nothing more to end."""
    state.open = None
    _read_fact(state, printed, event)


def _read_fact(state: CodexStreamState, printed: PrintedContext, event: ExecEvent) -> None:
    fields = fields_of(fields_of(printed.json).get("msg", Raw(b"{}")))
    fields.pop("type", None)
    printed.add_fact(f"event_msg/{event.type}", kept_fields(fields, tuple(fields)))
    printed.changes.counts.events += 1


def _read_error(state: CodexStreamState, printed: PrintedContext, event: ExecEvent) -> None:
    printed.add_error(event.message or "", f"event_msg/{event.type}")
    printed.changes.counts.events += 1


def _read_interrupt(state: CodexStreamState, printed: PrintedContext, event: ExecEvent) -> None:
    state.open = None
    printed.add_event(InterruptEvent(id=printed.own_id(), position=printed.position, message_id=printed.state.leaf))
    printed.changes.counts.events += 1


_READERS: dict[str, Callable[[CodexStreamState, PrintedContext, ExecEvent], None]] = {
    "agent_message": _read_text,
    "agent_reasoning": _read_text,
    "agent_reasoning_raw_content": _read_text,
    "exec_command_begin": _begin(ToolKind.EXECUTE, "exec_command", "command", "cwd"),
    "exec_command_end": _end(ToolKind.EXECUTE, "exec_command"),
    "patch_apply_begin": _begin(ToolKind.EDIT, "apply_patch", "changes"),
    "patch_apply_end": _end(ToolKind.EDIT, "apply_patch"),
    "mcp_tool_call_begin": _begin(ToolKind.OTHER, "mcp", "invocation"),
    "mcp_tool_call_end": _end(ToolKind.OTHER, "mcp", "invocation"),
    "web_search_begin": _begin(ToolKind.SEARCH, "web_search"),
    "web_search_end": _end(ToolKind.SEARCH, "web_search", "query"),
    "view_image_tool_call": _end(ToolKind.READ, "view_image", "path"),
    "plan_update": _read_plan,
    "token_count": _read_tokens,
    "task_started": _read_fact,
    "task_complete": _read_fact,
    "turn_aborted": _read_interrupt,
    "error": _read_error,
    "stream_error": _read_error,
}

EXEC_JSON = PrintedFormat(
    agent=NAME,
    lines=EXEC_LINES,
    state=CodexStreamState,
    is_ours=_is_ours,
    session_of=_session_of,
    begin_run=_begin_run,
    hold=_defer_settings,
    time_of=lambda line: None,
    read=_read_line,
)
"""What `codex exec --json` prints, today and up to 0.43."""
