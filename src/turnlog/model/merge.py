"""Joining two partial readings of one message.

Lines of one message arrive apart: interleaved with results, split over reads, copied into forks. `merge_messages`
is a join (associative, commutative, idempotent), so that any split of the bytes and any order of the files ends in
the same message. It holds for readings as a fold makes them: every part of a message that may be read in pieces has
an id (`<message id>.<block number>`), and a line with a stop reason has its usage.

Copies may number the blocks of a message in another way. One that leaves out blocks says so in its ids
(`copy_part_id`), which yield to those of the original. Two that list the same calls in different order cannot be told
apart here: each part has the smaller number, and parts of one number get different ids
(`<message id>.<block number>~<count>`). A store knows which copy is the original, and gives the parts the numbers that
they have there (`with_numbers`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard, TypeVar, cast

import msgspec

from turnlog.model.base import Value, field_default
from turnlog.model.codec import encode
from turnlog.model.message import MODEL_FROM, SESSION, Message
from turnlog.model.parts import Part, ReasoningPart, TextPart, ToolCallPart, ToolResult, ToolState, state_after
from turnlog.model.usage import merge_usage

T = TypeVar("T")

_STATE_RANK = {state: rank for rank, state in enumerate((*ToolState, ToolState.OUTPUT_DENIED))}
"""Of two states that readings declare without a result the later in a call's life holds; a refusal is for good."""


def merge_messages(one: Message, other: Message) -> Message:
    """Join two readings of the message `one.id`. Raises ValueError if the ids differ.

    Of two versions of a rewritten record the later one holds, and one that has a version holds against one that has
    none. Usage: a reading with a stop reason is final and wins; between two of the same rank the larger count wins.
    """
    if one.id != other.id:
        raise ValueError(f"cannot merge message {other.id} into {one.id}")
    if one == other:
        return one
    if one.updated_at != other.updated_at:
        return max(one, other, key=_version)
    final_one, final_other = one.raw_stop_reason is not None, other.raw_stop_reason is not None
    if final_one == final_other:
        usage = merge_usage(one.usage, other.usage)
    else:
        final, open_ = (one, other) if final_one else (other, one)
        usage = final.usage or open_.usage
    one, other = _without_weaker_model(one, other), _without_weaker_model(other, one)
    fields = _join_fields(one, other, skip=frozenset({"parts", "usage", "created_at", "completed_at"}))
    return Message(
        **fields,
        parts=merge_parts(one.parts, other.parts),
        usage=usage,
        created_at=_least(one.created_at, other.created_at),
        completed_at=_greatest(one.completed_at, other.completed_at),
    )


def _without_weaker_model(reading: Message, other: Message) -> Message:
    """A reading without its model, and without the mark of where it is from, if the other one knows it better."""
    if reading.model is None or other.model is None or _model_rank(reading) >= _model_rank(other):
        return reading
    metadata = {name: _without_mark(facts) for name, facts in reading.metadata.items()}
    kept = {name: facts for name, facts in metadata.items() if facts != {}}
    return msgspec.structs.replace(reading, model=None, metadata=kept)


def _without_mark(facts: Any) -> Any:
    if not isinstance(facts, dict):
        return facts
    return {key: value for key, value in cast("dict[str, Any]", facts).items() if key != MODEL_FROM}


_RANK_OF_OWN: Final = 2


def _model_rank(message: Message) -> int:
    """How well a model is known: from the facts of the session, from another record, or from the answer itself."""
    for facts in message.metadata.values():
        if isinstance(facts, dict) and MODEL_FROM in facts:
            return int(cast("dict[str, Any]", facts)[MODEL_FROM] != SESSION)
    return _RANK_OF_OWN


def _version(message: Message) -> tuple[bool, float]:
    updated = message.updated_at
    return (updated is not None, updated.timestamp() if updated else 0.0)


def merge_parts(one: Iterable[Part], other: Iterable[Part]) -> tuple[Part, ...]:
    """Union of two part lists, in block order (the number at the end of a part's id), no block twice."""
    merged = [_with_own_number(part) for part in one]
    others = [_with_own_number(part) for part in other]
    # A message may have thousands of parts. One without an id is known by what it says.
    are_named = all(map(part_key, (*merged, *others)))
    places: dict[PartKey | None, int] = {}
    for index, part in enumerate(merged):
        places.setdefault(part_key(part), index)
    for part in others:
        key = part_key(part)
        index = places.get(key) if are_named else _find(merged, part)
        if index is None:
            places[key] = len(merged)
            merged.append(part)
        else:
            merged[index] = _join_parts(merged[index], part)
    # A resume may copy a message without some of its blocks, so numbers in the copy are not those of the original.
    merged = _without_copied(merged)
    merged.sort(key=_place)
    counts = Counter(part.id for part in merged if part.id is not None)
    return tuple(_with_different_ids(merged) if len(counts) < counts.total() else merged)


PartKey: TypeAlias = tuple[str, str]
"""Two parts of a message with this in common are one part, whatever each says: type, and number or id of the call."""


def part_key(part: Part) -> PartKey | None:
    """What tells a part from others of its message; None for one without an id."""
    name = part.tool_call_id if isinstance(part, ToolCallPart) else _with_own_number(part).id
    return (part.type, name) if name else None


def are_numbered_apart(known: Message, reading: Message, merged: Message) -> bool:
    """Whether two readings of a message, merged, number a call differently, or two blocks alike.

    A copy that says that it leaves out blocks has numbers of its own, and does not count.
    """
    numbers = {call.tool_call_id: call.id for call in _numbered_calls(known)}
    return any(numbers.get(call.tool_call_id, call.id) != call.id for call in _numbered_calls(reading)) or any(
        part.id is not None and _COUNTED.search(part.id) for part in merged.parts
    )


def _calls(message: Message) -> Iterator[ToolCallPart]:
    return (part for part in message.parts if isinstance(part, ToolCallPart))


def _numbered_calls(message: Message) -> Iterator[ToolCallPart]:
    return (call for call in _calls(message) if not is_copied(call))


class OriginalBlocks(NamedTuple):
    """What a message has in its original."""

    calls: Mapping[str, int]
    """Tool call id -> number."""
    texts: Mapping[int, frozenset[str]] = MappingProxyType({})
    """Number -> the texts of the record that has the block."""


def with_numbers(message: Message, original: OriginalBlocks) -> Message:
    """The message with its calls numbered, and so ordered, as in its original; calls that only copies have come last.

    Other blocks keep their numbers. One of a copy that left out others before it, whose number is therefore that of
    another block in the original, is left out if the original says the same.

    Args:
        message: Readings of all copies, merged.
        original: What the original has.
    """
    calls = original.calls
    extra = sorted({call.tool_call_id for call in _calls(message)} - calls.keys())
    ids = {name: f"{message.id}.{number}" for name, number in calls.items()}
    ids |= {name: copy_part_id(message.id, number) for number, name in enumerate(extra)}
    parts = [
        msgspec.structs.replace(part, id=ids[part.tool_call_id])
        if isinstance(part, ToolCallPart)
        else _with_own_number(part)
        for part in message.parts
    ]
    own = [part for part in parts if _is_from_original(part, original)]
    parts = [part for part in parts if part in own or not any(_says_the_same(part, each) for each in own)]
    return msgspec.structs.replace(message, parts=tuple(_with_different_ids(sorted(parts, key=_place))))


def _is_from_original(part: Part, original: OriginalBlocks) -> bool:
    """Whether the original has this text or thought as its block of this number."""
    return isinstance(part, TextPart | ReasoningPart) and part.text in original.texts.get(block_index(part), ())


_COPY = "c"
"""Before the number of a block in a copy. It sorts after digits: of two ids the smaller is that in the original."""

_COUNTED = re.compile(rf"(?<=\.)({_COPY}?\d+)~\d+\Z")
_FIRST_COPY, _UNNUMBERED = 1 << 29, 1 << 30


def copy_part_id(message_id: str, number: int) -> str:
    """The id of a block in a copy that leaves out others, so that its number is not that of the original."""
    return f"{message_id}.{_COPY}{number}"


def block_index(part: Part) -> int:
    """The block number in a part id `<message id>.<number>`.

    A block that only a copy has comes after those of the original; a part without a number last, in order of arrival.
    """
    number = (part.id or "").rpartition(".")[2].partition("~")[0]
    if number.isdecimal():
        return int(number)
    copied = number.removeprefix(_COPY)
    return _FIRST_COPY + int(copied) if copied != number and copied.isdecimal() else _UNNUMBERED


def is_copied(part: Part) -> bool:
    """Whether the number of a part is that of a copy that leaves out others."""
    return _FIRST_COPY <= block_index(part) < _UNNUMBERED


def _without_copied(parts: list[Part]) -> list[Part]:
    """The parts without blocks of copies that the original has too. Calls are known by their ids already."""
    copied = [part for part in parts if is_copied(part)]
    originals = [part for part in parts if block_index(part) < _FIRST_COPY] if copied else []
    repeated = [part for part in copied if any(_says_the_same(part, original) for original in originals)]
    return [part for part in parts if part not in repeated] if repeated else parts


def _with_own_number(part: Part) -> Part:
    """The part as a reading has it: without the count that made its id different from another's."""
    if part.id is None or "~" not in part.id:
        return part
    return msgspec.structs.replace(part, id=_COUNTED.sub(r"\1", part.id))


def _with_different_ids(parts: Iterable[Part]) -> Iterable[Part]:
    seen: Counter[str] = Counter()
    for part in parts:
        count = 0 if part.id is None else seen[part.id]
        yield part if not count else msgspec.structs.replace(part, id=f"{part.id}~{count}")
        if part.id is not None:
            seen[part.id] += 1


def add_result(part: ToolCallPart, result: ToolResult) -> ToolCallPart:
    """The call with one more result and the state that follows from it; a result it has already changes nothing."""
    return add_results(part, (result,))


def add_results(part: ToolCallPart, results: Iterable[ToolResult]) -> ToolCallPart:
    """The call with more results, as `add_result` adds each of them; a call may have many thousand."""
    known = {known.id: known for known in part.results}
    is_changed = False
    for result in results:
        same = known.get(result.id)
        if same != result:
            known[result.id] = result if same is None else min(same, result, key=encode)
            is_changed = True
    if not is_changed:
        return part
    ordered = tuple(sorted(known.values(), key=arrival_order))
    return msgspec.structs.replace(part, results=ordered, state=_state(part.state, ordered))


def arrival_order(result: ToolResult) -> tuple[bool, float, str]:
    """Sorts results by the time they came, those whose time is not known last."""
    moment = result.completed_at
    return (moment is None, moment.timestamp() if moment else 0.0, result.id)


def _state(declared: ToolState, results: tuple[ToolResult, ...]) -> ToolState:
    """The state of a call: from its results, or the declared one if there are none (an interrupt)."""
    if not results or declared is ToolState.OUTPUT_DENIED:
        return declared
    return state_after(ToolState.INPUT_AVAILABLE, [result.status for result in results])


def _place(part: Part) -> tuple[int, str, str, str]:
    """Two calls with one number are not a block of the model, but need an order too."""
    index = block_index(part)
    call = part.tool_call_id if isinstance(part, ToolCallPart) else ""
    return (index, "", "", "") if part.id is None else (index, part.id, part.type, call)


def _find(parts: list[Part], wanted: Part) -> int | None:
    for index, part in enumerate(parts):
        if part.type == wanted.type and _is_same(part, wanted):
            return index
    return None


def _is_same(one: Part, other: Part) -> bool:
    if isinstance(one, ToolCallPart) and isinstance(other, ToolCallPart):
        return one.tool_call_id == other.tool_call_id
    if not one.id or not other.id:
        return _content(one) == _content(other)
    return one.id == other.id


def _says_the_same(one: Part, other: Part) -> bool:
    """Whether a copy's block is one of the original: both have the same words, and the same proof of a thought."""
    if isinstance(one, TextPart | ReasoningPart) and isinstance(other, TextPart | ReasoningPart):
        return (one.type, one.text, one.provider) == (other.type, other.text, other.provider)
    return not isinstance(one, ToolCallPart) and _content(one) == _content(other)


def _content(part: Part) -> Part:
    return msgspec.structs.replace(part, id=None)


def _join_parts(one: Part, other: Part) -> Part:
    if one == other:
        return one
    if isinstance(one, ToolCallPart) and isinstance(other, ToolCallPart):
        return _join_calls(one, other)
    if isinstance(one, TextPart | ReasoningPart) and isinstance(other, TextPart | ReasoningPart):
        return join_texts(one, other)
    return min(one, other, key=lambda part: (part.id is None, part.id or "", encode(part)))


def join_texts(one: TextPart | ReasoningPart, other: TextPart | ReasoningPart) -> TextPart | ReasoningPart:
    """Two readings of one block. Snapshots of a stream have more text each time: the longest is the whole.

    What only the other knows (the signature of a thought) is kept.
    """
    # Equal lengths are decided by the text, so that the order of merging does not matter.
    longest = max(one, other, key=lambda part: (len(part.text), part.text))
    fields = _join_fields(one, other, skip=frozenset({"text", "state", "blob"}))
    state = "done" if "done" in (one.state, other.state) else "streaming"
    return msgspec.structs.replace(longest, **fields, state=state)


def _join_calls(one: ToolCallPart, other: ToolCallPart) -> ToolCallPart:
    joined = ToolCallPart(**_join_fields(one, other, skip=frozenset({"results", "state"})))
    if joined.input_text is not None:
        # The model wrote no JSON: what another reading has is what the program made of it.
        joined = msgspec.structs.replace(joined, input=msgspec.UNSET)
    declared = max(_declared(one), _declared(other), key=_STATE_RANK.__getitem__)
    joined = msgspec.structs.replace(joined, state=declared)
    return add_results(joined, (*one.results, *other.results))


def _declared(part: ToolCallPart) -> ToolState:
    """The state that a reading gives of its own, and does not owe to its results."""
    if not part.results or part.state is ToolState.OUTPUT_DENIED:
        return part.state
    return ToolState.INPUT_AVAILABLE


def _join_fields(one: Value, other: Value, *, skip: frozenset[str]) -> dict[str, Any]:
    """Join field by field: a set value wins over the default, and the smaller of two different values, in any order."""
    joined: dict[str, Any] = {}
    for name, default in _defaults_of(type(one)):
        if name in skip:
            continue
        left, right = getattr(one, name), getattr(other, name)
        joined[name] = left if left == right else _join(left, right, default)
    return joined


@cache
def _defaults_of(kind: type[Value]) -> tuple[tuple[str, Any], ...]:
    """Name and default of each field; msgspec works its types out again whenever it is asked for fields."""
    return tuple([(field.name, field_default(field)) for field in msgspec.structs.fields(kind)])


def join_values(one: T | None, other: T | None) -> T | None:
    """Of two values of one field: the one that is set, else the smaller.

    A fold that joins the records of a message decides as the store does for two feeds. Otherwise the result would
    depend on where a log was split.
    """
    # Nearly all records of a message repeat its facts.
    if other is None or one == other:
        return one
    return _join(one, other, None)


def _join(left: Any, right: Any, default: Any) -> Any:
    if left is None or left == default:
        return right
    if right is None or right == default:
        return left
    if _is_mapping(left) and _is_mapping(right):
        return join_mappings(left, right)
    # Neither reading is known to be newer. Any choice is right if it does not depend on the order.
    return min(left, right, key=encode)


def _is_mapping(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def join_mappings(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Both, field by field as `merge_messages` joins metadata, sorted by name."""
    joined = dict(left)
    for key, value in right.items():
        joined[key] = value if key not in joined or joined[key] == value else _join(joined[key], value, None)
    return dict(sorted(joined.items()))


def _least(one: Any, other: Any) -> Any:
    return min((value for value in (one, other) if value is not None), default=None)


def _greatest(one: Any, other: Any) -> Any:
    return max((value for value in (one, other) if value is not None), default=None)
