"""Messages that a file, written anew, has under the same ids with other contents.

`model.merge` joins readings of one record. It would mix the texts of a record that was edited, so here the file as it
is now decides. What a rewrite only leaves out stays in the message: Gemini CLI drops tokens and thoughts when it
resumes a session. These are pure functions over what folds return and the store holds, without a database.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import msgspec

from turnlog.model import Message, ReasoningPart, TextPart, ToolCallPart, ToolResult
from turnlog.model.base import field_default
from turnlog.model.merge import add_result, merge_parts
from turnlog.model.parts import Part, ToolState


def says_all(reading: Message, stored: Message) -> bool:
    """Whether a reading has every part and every result of the stored message, grown or as it was."""
    known = {result.id for result in _results(reading)}
    has_results = all(result.id in known for result in _results(stored))
    return has_results and all(any(_keeps(part, other) for other in reading.parts) for part in stored.parts)


def is_edited(before: Message, reading: Message) -> bool:
    """Whether a part of the message says something else in all that its file has of it now."""
    return any(
        any(_is_same_part(part, other) for other in reading.parts)
        and not any(_keeps(part, other) for other in reading.parts)
        for part in before.parts
    )


def is_renumbered(before: Message, reading: Message) -> bool:
    """Whether the file has a part of the message at another place now, since others before it are gone or new.

    Calls are known by their ids, at any place.
    """
    now = {(type(part), part.id): part for part in reading.parts}
    return any(
        not isinstance(part, ToolCallPart)
        and part.id is not None
        and not ((other := now.get((type(part), part.id))) and _keeps(part, other))
        and any(_content(part) == _content(other) for other in reading.parts)
        for part in before.parts
    )


def _content(part: Part) -> Part:
    return msgspec.structs.replace(part, id=None)


def as_it_is_now(stored: Message, reading: Message, replaced: Container[object]) -> Message:
    """The changed message as its file has it now, and what the file leaves out or another file adds.

    Args:
        stored: What is stored of it.
        reading: All that the file says of it now.
        replaced: Ids of the results that the file had before.
    """
    others = [
        part for part in stored.parts if not any(_is_same_part(part, new) or _keeps(part, new) for new in reading.parts)
    ]
    calls = {part.tool_call_id: part for part in stored.parts if isinstance(part, ToolCallPart)}
    parts = [
        _with_results(part, calls[part.tool_call_id].results, replaced)
        if isinstance(part, ToolCallPart) and part.tool_call_id in calls
        else part
        for part in reading.parts
    ]
    # Gemini CLI drops tokens and thoughts when it resumes a session. So a field that the file no longer has keeps its
    # stored value.
    facts: dict[str, Any] = {
        field.name: value
        for field in msgspec.structs.fields(Message)
        if (value := getattr(reading, field.name)) != field_default(field)
    }
    return msgspec.structs.replace(stored, **{**facts, "parts": merge_parts(parts, others)})


def set_aside(message: Message, generation: int) -> Message:
    """What a generation of the file said, as a separate message: `<id>~<generation>`."""
    name = f"{message.id}~{generation}"
    prefix = f"{message.id}."
    parts = tuple(
        msgspec.structs.replace(part, id=f"{name}.{part.id.removeprefix(prefix)}")
        if part.id is not None and part.id.startswith(prefix)
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, id=name, parts=parts)


def _results(message: Message) -> list[ToolResult]:
    return [result for part in message.parts if isinstance(part, ToolCallPart) for result in part.results]


def _is_same_part(part: Part, other: Part) -> bool:
    """Whether two readings mean one part, whatever it says."""
    if isinstance(part, ToolCallPart) and isinstance(other, ToolCallPart):
        return part.tool_call_id == other.tool_call_id
    return part.id is not None and (type(part), part.id) == (type(other), other.id)


def _keeps(part: Part, other: Part) -> bool:
    """Whether a part says what another reading of it says, or has grown from it."""
    if isinstance(part, ToolCallPart):
        return isinstance(other, ToolCallPart) and _keeps_call(part, other)
    if isinstance(part, TextPart | ReasoningPart):
        is_text = isinstance(other, TextPart | ReasoningPart)
        # A text that was still streaming when it was first read is the beginning of what it becomes.
        return is_text and part.type == other.type and other.text.startswith(part.text)
    return _content(part) == _content(other)


def _keeps_call(call: ToolCallPart, other: ToolCallPart) -> bool:
    if (call.tool_call_id, call.tool_name) != (other.tool_call_id, other.tool_name):
        return False
    # The input of a call that is still being made is a piece of what it becomes.
    if call.state is not ToolState.INPUT_STREAMING and call.input_value() != other.input_value():
        return False
    before, now = _final(call), _final(other)
    # A call without any result in the new file does not contradict the stored one: it leaves the result out.
    return not now or all(any(_keeps_result(result, later) for later in now) for result in before)


def _final(call: ToolCallPart) -> list[ToolResult]:
    return [result for result in call.results if not result.preliminary]


def _keeps_result(result: ToolResult, other: ToolResult) -> bool:
    if result.id == other.id:
        return other.output_text.startswith(result.output_text)
    return other.output_text == result.output_text


def _with_results(call: ToolCallPart, stored: Iterable[ToolResult], replaced: Container[object]) -> ToolCallPart:
    known = {result.id for result in call.results}
    for result in stored:
        # A result that this file had before is replaced by the one that it has now. One from another file stays.
        if result.id not in known and not (known and result.id in replaced):
            call = add_result(call, result)
    return call
