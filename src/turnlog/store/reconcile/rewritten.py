"""Messages that a file, written anew, has under the same ids with other contents.

`model.merge` joins readings of one record. It would mix the texts of a record that was edited, so here the file as it
is now decides. What a rewrite only leaves out stays in the message: Gemini CLI drops tokens and thoughts when it
resumes a session. These are pure functions over what folds return and the store holds, without a database.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence, Set
from typing import Any, NamedTuple

import msgspec

from turnlog.model import Message, ReasoningPart, TextPart, ToolCallPart, ToolResult
from turnlog.model.base import field_default
from turnlog.model.codec import encode
from turnlog.model.merge import PartKey, add_result, block_index, is_copied, merge_parts, part_key
from turnlog.model.parts import Part, ToolState
from turnlog.store.reconcile.responses import named


class Rewrite(NamedTuple):
    """How a file that was written anew has the parts of a message now. Each part of now is one part of before."""

    is_same: bool
    """It has all parts and results that the message had, grown or as they were, at their places."""
    is_edited: bool
    """It has something else in the place of a part, and what that said nowhere."""
    moved: Set[PartKey]
    """Parts whose words it has at another place, since others before them are gone or new; calls with another place or
    with results of other names."""

    @property
    def is_new(self) -> bool:
        """Whether the message must be made what the file says now: merging would mix or repeat its parts."""
        return self.is_edited or bool(self.moved)


def compare(before: Message, reading: Message) -> Rewrite:
    """How a reading of a file's newest generation has the parts of a stored message."""
    pairs = _Pairs(before.parts, reading.parts)
    is_there = [part_key(part) in pairs.in_place for part in pairs.left]
    known = {result.id for result in _results(reading)}
    is_whole = not pairs.left and all(result.id in known for result in _results(before))
    return Rewrite(is_whole and not pairs.moved, any(is_there), pairs.moved)


class _Pairs:
    """Parts of before, each with another part of now: what says the same comes before what has grown."""

    def __init__(self, before: Sequence[Part], now: Sequence[Part]) -> None:
        self.left = list(before)
        """Parts of before that now says nowhere."""
        self.moved = set[PartKey]()
        self.in_place = defaultdict[PartKey, list[Part]](list)
        """By key. A broken model may give several calls one id."""
        for part in now:
            if key := part_key(part):
                self.in_place[key].append(part)
        self._calls = dict[PartKey, dict[tuple[str, str], list[Part]]]()
        """Calls of one id, by what they asked for."""
        # Merging makes one of them.
        self.moved.update(key for key, parts in self.in_place.items() if len(parts) > 1)
        self._free = {id(part): part for part in now}
        self._find(self._same_in_place)
        if self.left:
            self._same = _by_words(self._free.values())
            self._find(self._same_elsewhere)
            self._find(self._grown_in_place)
            self._texts = _sorted_texts(self._free.values())
            self._find(self._grown_elsewhere)

    def _find(self, find: Callable[[Part], Part | None]) -> None:
        """Take parts of now for those of before that have none yet."""
        left = list[Part]()
        for part in self.left:
            now = find(part)
            if now is None:
                left.append(part)
                continue
            self._free.pop(id(now), None)
            key = part_key(part)
            if key and _has_moved(part, now):
                self.moved.add(key)
        self.left = left

    def _same_in_place(self, part: Part) -> Part | None:
        now = self._grown_in_place(part)
        return None if isinstance(part, TextPart | ReasoningPart) and now and _words(now) != _words(part) else now

    def _same_elsewhere(self, part: Part) -> Part | None:
        found = self._same.get(_words(part))
        return found.pop() if found and not isinstance(part, ToolCallPart) else None

    def _grown_in_place(self, part: Part) -> Part | None:
        return next((now for now in self._at_its_place(part) if id(now) in self._free and _keeps(part, now)), None)

    def _at_its_place(self, part: Part) -> Sequence[Part]:
        """Parts of now that may be this one, by its key and, of calls of one id, by what they ask for."""
        key = part_key(part)
        found = self.in_place.get(key, ()) if key else ()
        if (
            key is None
            or len(found) < 2
            or not isinstance(part, ToolCallPart)
            or part.state is ToolState.INPUT_STREAMING
        ):
            return found
        if key not in self._calls:
            asked = self._calls[key] = defaultdict(list)
            for call in found:
                if isinstance(call, ToolCallPart):
                    asked[_request(call)].append(call)
        return self._calls[key].get(_request(part), ())

    def _grown_elsewhere(self, part: Part) -> Part | None:
        if not isinstance(part, TextPart | ReasoningPart):
            return None
        texts = self._texts[part.type]
        index = bisect_left(texts, part.text, key=_text)
        return texts.pop(index) if index < len(texts) and texts[index].text.startswith(part.text) else None


def _by_words(parts: Iterable[Part]) -> dict[tuple[str, str | bytes], list[Part]]:
    found = defaultdict[tuple[str, str | bytes], list[Part]](list)
    for part in parts:
        found[_words(part)].append(part)
    return found


def _sorted_texts(parts: Iterable[Part]) -> dict[str, list[TextPart | ReasoningPart]]:
    found = defaultdict[str, list[TextPart | ReasoningPart]](list)
    for part in sorted((part for part in parts if isinstance(part, TextPart | ReasoningPart)), key=_text):
        found[part.type].append(part)
    return found


def _text(part: TextPart | ReasoningPart) -> str:
    return part.text


def _words(part: Part) -> tuple[str, str | bytes]:
    """What two parts have in common that say the same."""
    if isinstance(part, TextPart | ReasoningPart):
        return part.type, part.text
    return part.type, encode(msgspec.structs.replace(part, id=None))


def _has_moved(part: Part, now: Part) -> bool:
    """Whether a part has another place, or the results of a call other names, which tell their places."""
    if not isinstance(part, ToolCallPart) or not isinstance(now, ToolCallPart):
        return part_key(part) != part_key(now)
    names = {result.id for result in now.results}
    has_other_names = bool(names) and any(result.id not in names for result in part.results)
    return has_other_names or (not is_copied(now) and block_index(part) != block_index(now))


def as_it_is_now(
    stored: Message, reading: Message, *, moved: Container[PartKey | None], replaced: Container[object]
) -> Message:
    """The changed message as its file has it now, and what the file leaves out or another file adds.

    Args:
        stored: What is stored of it.
        reading: All that the file says of it now.
        moved: See `Rewrite`.
        replaced: Ids of the results that the file had before.
    """
    named = set(map(part_key, reading.parts)) - {None}
    others = [part for part in stored.parts if (key := part_key(part)) not in named and key not in moved]
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
    return named(message, f"{message.id}~{generation}")


def _results(message: Message) -> list[ToolResult]:
    return [result for part in message.parts if isinstance(part, ToolCallPart) for result in part.results]


def _keeps(part: Part, other: Part) -> bool:
    """Whether a part says what another reading of it says, or has grown from it."""
    if isinstance(part, ToolCallPart):
        return isinstance(other, ToolCallPart) and _keeps_call(part, other)
    if isinstance(part, TextPart | ReasoningPart):
        is_text = isinstance(other, TextPart | ReasoningPart)
        # A text that was still streaming when it was first read is the beginning of what it becomes.
        return is_text and part.type == other.type and other.text.startswith(part.text)
    return msgspec.structs.replace(part, id=None) == msgspec.structs.replace(other, id=None)


def _keeps_call(call: ToolCallPart, other: ToolCallPart) -> bool:
    if (call.tool_call_id, call.tool_name) != (other.tool_call_id, other.tool_name):
        return False
    # The input of a call that is still being made is a piece of what it becomes.
    if call.state is not ToolState.INPUT_STREAMING and call.input_value() != other.input_value():
        return False
    before, now = _final(call), _final(other)
    # A call without any result in the new file does not contradict the stored one: it leaves the result out.
    return not now or all(any(_keeps_result(result, later) for later in now) for result in before)


def _request(call: ToolCallPart) -> tuple[str, str]:
    """What a call asks for, whatever order its input is in."""
    return call.tool_name, json.dumps(call.input_value(), sort_keys=True)


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
