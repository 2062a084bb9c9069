"""Calls inside of calls: what code that the model wrote called in its turn (code mode).

Only the user interface was told of them, with ids that match no call: position and turn say inside of which they ran.
"""

from __future__ import annotations

from zlib import crc32

import msgspec
from msgspec import UNSET, Raw

from turnlog.agents.changes import ResultChange
from turnlog.agents.codex.assistant_messages import add_call, image_result
from turnlog.agents.codex.fold_context import Reading, Told
from turnlog.agents.codex.records import Content, Event, Item, OutputObject, TurnItem, clean
from turnlog.agents.codex.responses_api import part_of, text_of
from turnlog.agents.codex.state import OpenCall, Outcome
from turnlog.agents.codex.tools import CODE_MODE, SPAWN_TOOLS, milliseconds_of, status_of, verdict_of
from turnlog.agents.decoding import raw_at
from turnlog.model import DataPart, Part, ResultStatus, TextPart, ToolResult, ToolState

NESTED: dict[str, str] = {
    "CommandExecution": "exec_command",
    "FileChange": "apply_patch",
    "ImageView": "view_image",
    "ImageGeneration": "image_generation",
    "WebSearch": "web_search",
    "Sleep": "sleep",
}
"""Items that are calls -> the tool's name. Those of MCP and of agents name theirs."""

SERVER_ITEMS = frozenset({"WebSearch", "ImageGeneration"})
"""Calls that the provider ran, unless code did: their own `response_item` follows and has all of it."""

_INPUTS = ("command", "cwd", "changes", "arguments", "query", "action", "path", "prompt", "duration_ms")
"""Fields of an item that say what its call was to do."""


def add_nested(reading: Reading, item: TurnItem, status: ResultStatus) -> bool:
    """An item without a call of its id ran inside the newest code, or belongs to the newest answer of its turn.

    What a person ran (`source: user_shell`) is told by the message that follows.
    """
    state = reading.state
    name = _name_of(item)
    if name is None or item.source == "user_shell":
        return False
    outer_id, outer = _running_code(reading)
    message_id = outer.message_id if outer is not None else state.answer
    draft = reading.draft_of(message_id) if message_id is not None else None
    if draft is None or item.id is None:
        return False
    call = add_call(reading, draft, item.id, name)
    call.parent = outer_id
    call.input = _nested_input(reading)
    result = ToolResult(
        id=f"{item.id}:item",
        status=status,
        content=_nested_content(reading, item),
        error_text=output_of(item) if status == "error" else None,
        exit_code=item.exit_code,
        completed_at=reading.at,
        duration_ms=milliseconds_of(item.duration),
    )
    call.add_result(result)
    draft.records.append((reading.position, reading.length, result.id))
    state.remember_call(item.id, OpenCall(draft.id, name, call.number, answered=True))
    return True


def is_code_running(reading: Reading) -> bool:
    """Whether a call that runs code is under way."""
    return _is_running(_running_code(reading)[1])


def _running_code(reading: Reading) -> tuple[str | None, OpenCall | None]:
    """The code that made a call, of what began before it: the first without an answer then, as code runs in turn.

    Where all of it was answered, the newest that goes on in the background, else the newest.
    """
    newest: tuple[str | None, OpenCall | None] = (None, None)
    for call_id, call in reading.state.calls.items():
        if call.name in CODE_MODE and _is_before(call, reading.item_began):
            if not _was_answered(call, reading.item_began):
                return call_id, call
            if call.running or not _is_running(newest[1]):
                newest = call_id, call
    return newest


def _is_before(call: OpenCall, moment: float | None) -> bool:
    return call.began is None or moment is None or call.began <= moment


def _was_answered(call: OpenCall, moment: float | None) -> bool:
    """Whether the call had an answer at that moment: what it began may end long behind it."""
    return call.answered and (call.ended is None or moment is None or call.ended <= moment)


def _is_running(call: OpenCall | None) -> bool:
    return call is not None and (call.running or not call.answered)


def _name_of(item: TurnItem) -> str | None:
    if item.type == "McpToolCall":
        return f"mcp__{item.server}__{item.tool}"
    if item.tool is not None:
        return item.tool
    return NESTED.get(item.type)


def _nested_input(reading: Reading) -> Raw:
    fields = msgspec.json.decode(raw_at(reading.payload, "item"), type=dict[str, Raw])
    given = {name: fields[name] for name in _INPUTS if name in fields}
    if given.keys() == {"arguments"}:
        return given["arguments"]
    return Raw(msgspec.json.encode(given))


def _nested_content(reading: Reading, item: TurnItem) -> tuple[Part, ...]:
    if item.type == "ImageGeneration" and isinstance(item.result, Raw):
        encoded = _as_text(item.result)
        return image_result(reading, item.id or "", encoded).content if encoded else ()
    output = output_of(item)
    if output:
        return (TextPart(text=output),)
    told = item.result if isinstance(item.result, Raw) else item.error
    if isinstance(told, Raw) and bytes(told) != b"null":
        return (DataPart(name="result", data=clean(told)),)
    return ()


def _as_text(raw: Raw) -> str | None:
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def output_of(item: TurnItem) -> str | None:
    """All that a call printed; None where the item has none of it."""
    if item.aggregated_output is not None:
        return item.aggregated_output
    told = [text for text in (item.stdout, item.stderr) if text]
    return "".join(told) if told else None


_KEPT_OUTPUT = 4096
"""Characters of a twin's output that wait for the call's own."""

_EDGE = 128

_BEGINS = (None, "started")
"""Kinds of what a subagent does that tell who started it: any of a team may ask or interrupt another."""

_LAST = ("aborted", "denied")
"""What an output says of its call and no twin gainsays: the user did it."""

_ATTACHED = "attached local image path"
"""What `view_image` answers up to about 0.9x: the image follows, as a message of the user's role."""


class _Spawned(msgspec.Struct):
    agent_id: str | None = None


def read_output(reading: Reading, item: Item) -> None:
    """`function_call_output` and its like."""
    call_id = item.call_id or item.id or reading.own_id()
    output = item.output
    text = output_text(output)
    verdict = verdict_of(text)
    status, exit_code, duration = verdict.status, verdict.exit_code, verdict.duration_ms
    if isinstance(output, OutputObject) and output.success is False and status == "success":
        status = "error"
    call = reading.state.calls.get(call_id)
    record = (reading.position, reading.length)
    if call is not None:
        outcome, call.outcome = call.outcome, None
        if outcome is not None:
            told = status_of(outcome.status, outcome.exit_code)
            status = told if told is not None and status not in _LAST else status
            exit_code = outcome.exit_code if outcome.exit_code is not None else exit_code
            duration = outcome.duration_ms if outcome.duration_ms is not None else duration
            record = (outcome.position, outcome.length)
        call.answered, call.running, call.aborted = True, verdict.running, status == "aborted"
        if call.began is not None and call.ended is None and reading.at is not None:
            call.ended = reading.at.timestamp()
        if call.name in SPAWN_TOOLS:
            _link_spawned(reading, call_id, text)
        if text == _ATTACHED:
            reading.state.attached += 1
    result = ToolResult(
        id=f"{call_id}:{_checksum(text)}",
        status=status,
        content=_parts_of(reading, output) if isinstance(output, list) else (TextPart(text=text),),
        error_text=text if status == "error" else None,
        exit_code=exit_code,
        preliminary=verdict.running,
        completed_at=reading.at,
        duration_ms=duration,
    )
    add_result(reading, call_id, call, result, record)
    reading.changes.counts.results += 1


def read_search_output(reading: Reading, item: Item) -> None:
    """`tool_search_output`: the tools that were found."""
    call_id = item.call_id or item.id or reading.own_id()
    raw = clean(item.tools) if isinstance(item.tools, Raw) else Raw(b"[]")
    result = ToolResult(
        id=f"{call_id}:{_checksum(bytes(raw).decode(errors='replace'))}",
        status=status_of(item.status, None) or "success",
        content=(DataPart(name="tools", data=raw),),
        completed_at=reading.at,
    )
    call = reading.state.calls.get(call_id)
    if call is not None:
        call.answered = True
    add_result(reading, call_id, call, result, (reading.position, reading.length))
    reading.changes.counts.results += 1


def add_result(
    reading: Reading, call_id: str, call: OpenCall | None, result: ToolResult, record: tuple[int, int]
) -> None:
    """Give a result to its call: to its draft, or for the store to join. `record` is what brought it."""
    here = (reading.position, reading.length)
    draft = reading.draft_of(call.message_id) if call is not None else None
    if draft is not None:
        draft.open.answered = True
        draft.records.append((*record, result.id))
        if record != here:
            draft.records.append((*here, None))
            draft.in_order = False
    known = reading.calls.get(call_id)
    if known is not None and draft is known.draft:
        known.add_result(result)
        return
    reading.changes.results.append(
        ResultChange(
            session_id=reading.session_id,
            tool_call_id=call_id,
            result=result,
            position=record[0],
            record=record,
            message_id=call.message_id if call is not None else None,
        )
    )


# -- twins


def read_call_item(reading: Reading, item: TurnItem) -> Told:
    """An item that is a call, when it is over."""
    if item.id is None:
        return "events"
    _link_agents(reading, item)
    call = reading.state.calls.get(item.id)
    if item.type in SERVER_ITEMS and not is_code_running(reading):
        return "events"
    status = status_of(item.status, item.exit_code)
    if call is not None:
        outcome = Outcome(
            reading.position,
            reading.length,
            item.status,
            item.exit_code,
            milliseconds_of(item.duration),
            output_of(item),
        )
        _note_outcome(reading, item.id, call, outcome)
        return "results"
    return "results" if add_nested(reading, item, status or "success") else "events"


def read_call_event(reading: Reading, event: Event) -> Told:
    """The end of a call as versions up to 0.14x told it."""
    call = reading.state.calls.get(event.call_id or "")
    if event.call_id is None or call is None:
        return "events"
    if event.new_thread_id is not None:
        reading.link("subagent", reading.external_id, event.new_thread_id, event.call_id)
    status = event.status
    if status is None and event.success is not None:
        status = "completed" if event.success else "failed"
    output = event.aggregated_output or event.stdout
    outcome = Outcome(
        reading.position, reading.length, status, event.exit_code, milliseconds_of(event.duration), output
    )
    _note_outcome(reading, event.call_id, call, outcome)
    return "results"


def _note_outcome(reading: Reading, call_id: str, call: OpenCall, outcome: Outcome) -> None:
    if not call.answered:
        if outcome.output is not None:
            outcome.output = outcome.output[:_KEPT_OUTPUT]
        call.outcome = outcome
        return
    if call.running or (call.aborted and outcome.output):
        call.running = False
        _add_alone(reading, call_id, call, outcome)
    else:
        draft = reading.draft_of(call.message_id)
        if draft is not None:
            draft.records.append((reading.position, reading.length, None))


def _add_alone(reading: Reading, call_id: str, call: OpenCall, outcome: Outcome) -> None:
    """A result that is told by a twin only."""
    status: ResultStatus = "aborted" if call.aborted else status_of(outcome.status, outcome.exit_code) or "success"
    result = ToolResult(
        id=f"{call_id}:item",
        status=status,
        content=(TextPart(text=outcome.output),) if outcome.output else (),
        error_text=outcome.output if status == "error" else None,
        exit_code=outcome.exit_code,
        completed_at=reading.at,
        duration_ms=outcome.duration_ms,
    )
    add_result(reading, call_id, call, result, (outcome.position, outcome.length))


def end_calls(reading: Reading, *, aborted: bool) -> bool:
    """A turn is over: what was told of calls without an output is all there is. With `aborted` the others end too.

    Returns whether there were such others.
    """
    any_aborted = False
    for call_id, call in reading.state.calls.items():
        if call.answered:
            continue
        outcome, call.outcome = call.outcome, None
        if outcome is not None:
            call.answered = True
            _add_alone(reading, call_id, call, outcome)
        elif aborted:
            call.answered = call.aborted = any_aborted = True
            _abort(reading, call_id, call)
    return any_aborted


def _abort(reading: Reading, call_id: str, call: OpenCall) -> None:
    """Nobody will answer the call any more."""
    known = reading.calls.get(call_id)
    draft = reading.draft_of(call.message_id)
    if draft is None:
        return
    if known is None or known.draft is not draft:
        known = add_call(reading, draft, call_id, call.name, call.number)
        known.started_at = None
    known.state = ToolState.ABORTED


# -- subagents


def _link_spawned(reading: Reading, call_id: str, text: str) -> None:
    try:
        spawned = msgspec.json.decode(text, type=_Spawned)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return
    if spawned.agent_id:
        reading.link("subagent", reading.external_id, spawned.agent_id, call_id)


def _link_agents(reading: Reading, item: TurnItem) -> None:
    call_id = item.id
    if item.type == "CollabAgentToolCall" and item.tool in ("spawn_agent", "spawnAgent"):
        for child in item.receiver_thread_ids or ():
            reading.link("subagent", reading.external_id, child, call_id)
    elif item.type == "SubAgentActivity" and item.kind in _BEGINS and item.agent_thread_id is not None:
        known = call_id in reading.state.calls
        reading.link("subagent", reading.external_id, item.agent_thread_id, call_id if known else None)


# -- outputs


def output_text(output: str | list[Content] | OutputObject | None) -> str:
    """All text of an output."""
    return output.content or "" if isinstance(output, OutputObject) else text_of(output)


def _parts_of(reading: Reading, output: list[Content]) -> tuple[Part, ...]:
    payload = reading.payload
    return tuple([part_of(piece, None, lambda at=at: raw_at(payload, "output", at)) for at, piece in enumerate(output)])


def _checksum(text: str) -> str:
    key = f"{len(text)}:{text[:_EDGE]}:{text[-_EDGE:]}"
    return f"{crc32(key.encode(errors='replace')):08x}"


# -- structured results


class _ItemOfRecord(msgspec.Struct):
    type: str = ""
    item: Raw | msgspec.UnsetType = UNSET


class _Record(msgspec.Struct):
    payload: _ItemOfRecord | None = None


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """The item, or the event, that told of the call's outcome besides its output; None where only that is logged."""
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
