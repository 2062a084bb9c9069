"""Calls inside of calls: what code that the model wrote called in its turn (code mode).

Only the user interface was told of them, with ids that match no call: position and turn say inside of which they ran.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from turnlog.agents.codex.answers import add_call, image_result
from turnlog.agents.codex.lines import clean
from turnlog.agents.codex.reading import Reading
from turnlog.agents.codex.records import TurnItem
from turnlog.agents.codex.state import OpenCall
from turnlog.agents.codex.tools import CODE_MODE, milliseconds_of
from turnlog.agents.decoding import raw_at
from turnlog.model import DataPart, Part, ResultStatus, TextPart, ToolResult

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
    call.input = _input_of(reading)
    result = ToolResult(
        id=f"{item.id}:item",
        status=status,
        content=_content_of(reading, item),
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


def _input_of(reading: Reading) -> Raw:
    fields = msgspec.json.decode(raw_at(reading.payload, "item"), type=dict[str, Raw])
    given = {name: fields[name] for name in _INPUTS if name in fields}
    if given.keys() == {"arguments"}:
        return given["arguments"]
    return Raw(msgspec.json.encode(given))


def _content_of(reading: Reading, item: TurnItem) -> tuple[Part, ...]:
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
