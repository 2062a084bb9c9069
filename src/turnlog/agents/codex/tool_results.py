"""Results of tool calls: outputs for the model, what events add to them, and calls inside of calls.

The output is what the model got. An item (`item_completed` with the call's id) or event (up to 0.14x) tells how the
call ended. It mostly comes before the output and has status, exit code, times and the structured outcome; the two
become one result. One that comes after the output tells how a command ended that had continued in the background. One
whose output never comes is a separate result.
"""

from __future__ import annotations

from zlib import crc32

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.changes import ResultChange
from turnlog.agents.codex import NAME
from turnlog.agents.codex.assistant_messages import add_call, image_result
from turnlog.agents.codex.fold_context import CodexContext, CountedAs
from turnlog.agents.codex.records import CodexContent, CodexEvent, Item, OutputObject, TurnItem, clean
from turnlog.agents.codex.responses_api import part_of, text_of
from turnlog.agents.codex.state import CallOutcome, CodexPendingCall
from turnlog.agents.codex.tools import CODE_MODE, SPAWN_TOOLS, milliseconds_of, status_of, verdict_of
from turnlog.agents.decoding import raw_at
from turnlog.model import DataPart, Part, ResultStatus, TextPart, ToolResult, ToolState

_KEPT_CHARACTERS = 1 << 20
"""Characters of an outcome's output that are kept in case the call's own output never comes. A longer one is cut, and
a note says so."""

_COMPARED_CHARACTERS = 128
"""Characters at either end of an output that the id of a result covers."""
_SPAWN_KINDS = (None, "started")
"""Kinds of `SubAgentActivity` whose sender started an agent. Of the others any agent may be the sender."""

_DECIDED_BY_USER = ("aborted", "denied")
"""Statuses in an output that no outcome overrules: the user decided them."""

_IMAGE_ATTACHED = "attached local image path"
"""Output of `view_image` up to about 0.9x: the image follows in a message with role `user`."""


class _Spawned(msgspec.Struct):
    agent_id: str | None = None


def read_output(context: CodexContext, item: Item) -> None:
    """Read `function_call_output` or one of the other outputs: the result of a call, joined with its outcome."""
    call_id = item.call_id or item.id or context.position_id()
    output = item.output
    text = output_text(output)
    verdict = verdict_of(text)
    status, exit_code, duration = verdict.status, verdict.exit_code, verdict.duration_ms
    if isinstance(output, OutputObject) and output.success is False and status == "success":
        status = "error"
    wrapped = verdict.wrapped
    shown = text if wrapped is None else wrapped.text
    if wrapped is not None and wrapped.is_repaired:
        context.report("a number beyond the range of a float became null", json_path="$.payload.output")
    call = context.state.calls.get(call_id)
    record = (context.position, context.length)
    if call is not None:
        outcome, call.outcome = call.outcome, None
        if outcome is not None:
            # The outcome knows the exit code; of the output only the text can be judged.
            known = status_of(outcome.status, outcome.exit_code)
            status = known if known is not None and status not in _DECIDED_BY_USER else status
            exit_code = outcome.exit_code if outcome.exit_code is not None else exit_code
            duration = outcome.duration_ms if outcome.duration_ms is not None else duration
            # The record of the outcome has the details that `structured_result` returns.
            record = (outcome.position, outcome.length)
        call.has_output, call.running, call.aborted = True, verdict.running, status == "aborted"
        # Calls inside of code name no outer call. The time of the code's output decides which code made them.
        if call.started_at is not None and call.ended_at is None and context.written_at is not None:
            call.ended_at = context.written_at.timestamp()
        # Where no event links the child, only the output of `spawn_agent` names it.
        if call.name in SPAWN_TOOLS:
            _link_spawned(context, call_id, text)
        if text == _IMAGE_ATTACHED:
            context.state.attached_images += 1
    content = parts_of_output(context, output) if isinstance(output, list) else (TextPart(text=shown),)
    # A request can repeat the JSON where it was all of the output.
    fields = {NAME: {"output_fields": wrapped.others}} if wrapped is not None and len(content) == 1 else {}
    result = ToolResult(
        id=f"{call_id}:{_checksum(text)}",
        status=status,
        content=content,
        error_text=shown if status == "error" else None,
        exit_code=exit_code,
        preliminary=verdict.running,
        completed_at=context.written_at,
        duration_ms=duration,
        metadata=fields,
    )
    add_result(context, call_id, call, result, record)
    context.changes.counts.results += 1


def read_search_output(context: CodexContext, item: Item) -> None:
    """Read `tool_search_output`: the tools that were found."""
    call_id = item.call_id or item.id or context.position_id()
    raw = clean(item.tools) if isinstance(item.tools, Raw) else Raw(b"[]")
    result = ToolResult(
        id=f"{call_id}:{_checksum(bytes(raw).decode(errors='replace'))}",
        status=status_of(item.status, None) or "success",
        content=(DataPart(name="tools", data=raw),),
        completed_at=context.written_at,
    )
    call = context.state.calls.get(call_id)
    if call is not None:
        call.has_output = True
    add_result(context, call_id, call, result, (context.position, context.length))
    context.changes.counts.results += 1


def add_result(
    context: CodexContext, call_id: str, call: CodexPendingCall | None, result: ToolResult, record: tuple[int, int]
) -> None:
    """Add a result to its call's draft, or leave it to the store.

    `record` is the offset and length of the record that brought the result.
    """
    here = (context.position, context.length)
    draft = context.draft_of(call.message_id) if call is not None else None
    if draft is not None:
        draft.pending.has_output = True
        draft.records.append((*record, result.id))
        if record != here:
            # The outcome came first: this record comes after others that were read since.
            draft.records.append((*here, None))
            draft.in_order = False
    known = context.calls.get(call_id)
    if known is not None and draft is known.draft:
        known.add_result(result)
        return
    context.changes.results.append(
        ResultChange(
            session_id=context.session_id,
            tool_call_id=call_id,
            result=result,
            position=record[0],
            record=record,
            message_id=call.message_id if call is not None else None,
        )
    )


# -- how a call ended, in the other stream


def read_call_item(context: CodexContext, item: TurnItem) -> CountedAs:
    """Read an `item_completed` whose item is a call that has ended."""
    if item.id is None:
        return "events"
    _link_agents(context, item)
    call = context.state.calls.get(item.id)
    # A `web_search_call` or `image_generation_call` follows and has all of it, unless code made the call.
    if item.type in SERVER_ITEMS and not is_code_running(context):
        return "events"
    status = status_of(item.status, item.exit_code)
    if call is not None:
        outcome = CallOutcome(
            context.position,
            context.length,
            item.status,
            item.exit_code,
            milliseconds_of(item.duration),
            output_of(item),
        )
        _add_outcome(context, item.id, call, outcome)
        return "results"
    return "results" if add_nested_call(context, item, status or "success") else "events"


def read_call_event(context: CodexContext, event: CodexEvent) -> CountedAs:
    """Read an event at the end of a call (up to 0.14x)."""
    call = context.state.calls.get(event.call_id or "")
    if event.call_id is None or call is None:
        return "events"
    if event.new_thread_id is not None:
        context.link("subagent", context.external_id, event.new_thread_id, event.call_id)
    status = event.status
    if status is None and event.success is not None:
        status = "completed" if event.success else "failed"
    output = event.aggregated_output or event.stdout
    outcome = CallOutcome(
        context.position, context.length, status, event.exit_code, milliseconds_of(event.duration), output
    )
    _add_outcome(context, event.call_id, call, outcome)
    return "results"


def _add_outcome(context: CodexContext, call_id: str, call: CodexPendingCall, outcome: CallOutcome) -> None:
    # `item_completed` and `…_end` events mostly come before the output, which is what the model got: wait for it.
    if not call.has_output:
        if outcome.output is not None:
            outcome.output = outcome.output[:_KEPT_CHARACTERS]
        call.outcome = outcome
        return
    # `exec_command` had returned while the process ran, or the turn ended first: only this record knows the end.
    if call.running or (call.aborted and outcome.output):
        call.running = False
        _add_outcome_as_result(context, call_id, call, outcome)
    else:
        draft = context.draft_of(call.message_id)
        if draft is not None:
            draft.records.append((context.position, context.length, None))


def _add_outcome_as_result(context: CodexContext, call_id: str, call: CodexPendingCall, outcome: CallOutcome) -> None:
    """Add a result that only an item or event has."""
    if outcome.output is not None and len(outcome.output) >= _KEPT_CHARACTERS:
        context.report(f"the call {call_id} never got its output: the one of its item is cut here", "note")
    status: ResultStatus = "aborted" if call.aborted else status_of(outcome.status, outcome.exit_code) or "success"
    result = ToolResult(
        id=f"{call_id}:item",
        status=status,
        content=(TextPart(text=outcome.output),) if outcome.output else (),
        error_text=outcome.output if status == "error" else None,
        exit_code=outcome.exit_code,
        completed_at=context.written_at,
        duration_ms=outcome.duration_ms,
    )
    add_result(context, call_id, call, result, (outcome.position, outcome.length))


def end_calls(context: CodexContext, *, aborted: bool) -> bool:
    """End the calls of a turn that have no output. A call with an outcome gets a result of that.

    `aborted`: the calls without an outcome are aborted. Returns whether there were any.
    """
    any_aborted = False
    for call_id, call in context.state.calls.items():
        if call.has_output:
            continue
        outcome, call.outcome = call.outcome, None
        if outcome is not None:
            call.has_output = True
            _add_outcome_as_result(context, call_id, call, outcome)
        elif aborted:
            call.has_output = call.aborted = any_aborted = True
            _abort(context, call_id, call)
    return any_aborted


def _abort(context: CodexContext, call_id: str, call: CodexPendingCall) -> None:
    """Set a call's state to aborted: no result will come."""
    known = context.calls.get(call_id)
    draft = context.draft_of(call.message_id)
    if draft is None:
        return
    if known is None or known.draft is not draft:
        known = add_call(context, draft, call_id, call.name, call.number)
        known.started_at = None
    known.state = ToolState.ABORTED


# -- calls inside of calls: what code that the model wrote called (code mode)
#
# Only events name them, with ids that match no call. Position and turn say which code made them.

NESTED: dict[str, str] = {
    "CommandExecution": "exec_command",
    "FileChange": "apply_patch",
    "ImageView": "view_image",
    "ImageGeneration": "image_generation",
    "WebSearch": "web_search",
    "Sleep": "sleep",
}
"""Type of an item that is a call -> name of its tool. Items of MCP tools and of agents have the name themselves."""

SERVER_ITEMS = frozenset({"WebSearch", "ImageGeneration"})
"""Calls that the provider ran, unless code made them: a `response_item` with all of it follows."""

_INPUTS = ("command", "cwd", "changes", "arguments", "query", "action", "path", "prompt", "duration_ms")
"""Fields of an item that are its call's input."""


def add_nested_call(context: CodexContext, item: TurnItem, status: ResultStatus) -> bool:
    """Add a call that only an item records, to the message of the code that ran then or the newest assistant message.

    Returns whether it was added. What a person ran (`source: user_shell`) is in the message that follows.
    """
    state = context.state
    name = _name_of(item)
    if name is None or item.source == "user_shell":
        return False
    outer_id, outer = _running_code(context)
    message_id = outer.message_id if outer is not None else state.assistant_message
    draft = context.draft_of(message_id) if message_id is not None else None
    if draft is None or item.id is None:
        return False
    call = add_call(context, draft, item.id, name)
    call.parent = outer_id
    call.input = _nested_input(context)
    result = ToolResult(
        id=f"{item.id}:item",
        status=status,
        content=_nested_content(context, item),
        error_text=output_of(item) if status == "error" else None,
        exit_code=item.exit_code,
        completed_at=context.written_at,
        duration_ms=milliseconds_of(item.duration),
    )
    call.add_result(result)
    draft.records.append((context.position, context.length, result.id))
    state.remember_call(item.id, CodexPendingCall(draft.id, name, call.number, has_output=True))
    return True


def is_code_running(context: CodexContext) -> bool:
    """Whether a call that runs code has not ended."""
    return _is_running(_running_code(context)[1])


def _running_code(context: CodexContext) -> tuple[str | None, CodexPendingCall | None]:
    """The code that made the current item's call: id and call, both None if there is none.

    Codes run one after the other. So it is the first that began before the call and had no output then. Where all had
    their output, it is the newest that continues in the background, else the newest.
    """
    newest: tuple[str | None, CodexPendingCall | None] = (None, None)
    for call_id, call in context.state.calls.items():
        if call.name in CODE_MODE and _is_before(call, context.item_started):
            if not _had_result(call, context.item_started):
                return call_id, call
            if call.running or not _is_running(newest[1]):
                newest = call_id, call
    return newest


def _is_before(call: CodexPendingCall, moment: float | None) -> bool:
    return call.started_at is None or moment is None or call.started_at <= moment


def _had_result(call: CodexPendingCall, moment: float | None) -> bool:
    """Whether the call had its output at that moment. What it started may end long after it."""
    return call.has_output and (call.ended_at is None or moment is None or call.ended_at <= moment)


def _is_running(call: CodexPendingCall | None) -> bool:
    return call is not None and (call.running or not call.has_output)


def _name_of(item: TurnItem) -> str | None:
    if item.type == "McpToolCall":
        return f"mcp__{item.server}__{item.tool}"
    if item.tool is not None:
        return item.tool
    return NESTED.get(item.type)


def _nested_input(context: CodexContext) -> Raw:
    fields = msgspec.json.decode(raw_at(context.payload, "item"), type=dict[str, Raw])
    given = {name: fields[name] for name in _INPUTS if name in fields}
    if given.keys() == {"arguments"}:
        return given["arguments"]
    return Raw(msgspec.json.encode(given))


def _nested_content(context: CodexContext, item: TurnItem) -> tuple[Part, ...]:
    if item.type == "ImageGeneration" and isinstance(item.result, Raw):
        encoded = _as_text(item.result)
        return image_result(context, item.id or "", encoded).content if encoded else ()
    output = output_of(item)
    if output:
        return (TextPart(text=output),)
    result = item.result if isinstance(item.result, Raw) else item.error
    if isinstance(result, Raw) and bytes(result) != b"null":
        return (DataPart(name="result", data=clean(result)),)
    return ()


def _as_text(raw: Raw) -> str | None:
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def output_of(item: TurnItem) -> str | None:
    """All that a call printed; None if the item does not have it."""
    if item.aggregated_output is not None:
        return item.aggregated_output
    printed = [text for text in (item.stdout, item.stderr) if text]
    return "".join(printed) if printed else None


# -- subagents


def _link_spawned(context: CodexContext, call_id: str, text: str) -> None:
    try:
        spawned = msgspec.json.decode(text, type=_Spawned)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return
    if spawned.agent_id:
        context.link("subagent", context.external_id, spawned.agent_id, call_id)


def _link_agents(context: CodexContext, item: TurnItem) -> None:
    call_id = item.id
    if item.type == "CollabAgentToolCall" and item.tool in ("spawn_agent", "spawnAgent"):
        for child in item.receiver_thread_ids or ():
            context.link("subagent", context.external_id, child, call_id)
    elif item.type == "SubAgentActivity" and item.kind in _SPAWN_KINDS and item.agent_thread_id is not None:
        known = call_id in context.state.calls
        context.link("subagent", context.external_id, item.agent_thread_id, call_id if known else None)


# -- outputs


def output_text(output: str | list[CodexContent] | OutputObject | None) -> str:
    """The text of an output."""
    return output.content or "" if isinstance(output, OutputObject) else text_of(output)


def parts_of_output(context: CodexContext, output: list[CodexContent]) -> tuple[Part, ...]:
    """The parts of an output that is a list."""
    payload = context.payload
    parts = [part_of(piece, None, lambda at=at: raw_at(payload, "output", at)) for at, piece in enumerate(output)]
    return tuple([_unwrapped(part) if isinstance(part, TextPart) else part for part in parts])


def _unwrapped(part: TextPart) -> TextPart:
    wrapped = verdict_of(part.text).wrapped
    return part if wrapped is None else msgspec.structs.replace(part, text=wrapped.text)


def _checksum(text: str) -> str:
    key = f"{len(text)}:{text[:_COMPARED_CHARACTERS]}:{text[-_COMPARED_CHARACTERS:]}"
    return f"{crc32(key.encode(errors='replace')):08x}"


# -- structured results


class _ItemOfRecord(msgspec.Struct):
    type: str = ""
    item: Raw | msgspec.UnsetType = UNSET


class _Record(msgspec.Struct):
    payload: _ItemOfRecord | None = None


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The item, or the event, with a call's outcome; None for any other record."""
    try:
        found = msgspec.json.decode(record, type=_Record)
        if found.payload is None:
            return None
        if isinstance(found.payload.item, Raw):
            return found.payload.item.copy()
        if not found.payload.type.endswith("_end"):
            return None
        return raw_at(record, "payload")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
