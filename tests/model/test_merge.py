"""`merge_messages` is a join, so that neither the split of the bytes nor the order of the files shows."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.profiles import examples
from turnlog.model import (
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolState,
    Usage,
)
from turnlog.model.base import ProviderData
from turnlog.model.codec import encode
from turnlog.model.merge import (
    OriginalBlocks,
    add_result,
    block_index,
    copy_part_id,
    merge_messages,
    merge_parts,
    with_numbers,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = st.none() | st.integers(0, 5).map(lambda minutes: START + timedelta(minutes=minutes))
WORDS = "the whole of what the model said"


def _reads(*fields: Any) -> Any:
    return st.sampled_from([None, *fields])


@st.composite
def texts(draw: st.DrawFn, number: int) -> TextPart:
    """A block that early versions wrote again and again, with more text each time."""
    length = draw(st.integers(0, len(WORDS)))
    done = length == len(WORDS)
    return TextPart(
        id=f"m.{number}", text=WORDS[:length], state="done" if done else draw(st.sampled_from(["streaming", "done"]))
    )


@st.composite
def thoughts(draw: st.DrawFn, number: int) -> ReasoningPart:
    signature = draw(_reads({"signature": "s"}))
    return ReasoningPart(
        id=f"m.{number}",
        text=draw(st.sampled_from(["", "hm"])),
        redacted=draw(st.booleans()),
        provider=ProviderData(name="anthropic", opaque=signature) if signature else None,
    )


@st.composite
def results(draw: st.DrawFn) -> ToolResult:
    number = draw(st.integers(0, 3))
    return ToolResult(
        id=f"r{number}",
        status=draw(st.sampled_from(["success", "error", "aborted", "denied"])) if number else "success",
        completed_at=draw(TIMES) if number == 1 else START + timedelta(seconds=number % 3),
        content=(TextPart(text=draw(st.sampled_from(["one", "two"]))),),
    )


@st.composite
def calls(draw: st.DrawFn, number: int) -> ToolCallPart:
    part = ToolCallPart(
        id=f"m.{number}",
        tool_call_id=f"c{number}",
        tool_name="Bash",
        input=msgspec.Raw(b'{"a":1}'),
        state=draw(st.sampled_from([state for state in ToolState if not state.startswith("output-a")])),
        started_at=draw(TIMES),
        title=draw(_reads("title")),
    )
    return reduce(add_result, draw(st.lists(results(), max_size=3)), part)


@st.composite
def readings(draw: st.DrawFn) -> Message:
    """What one feed may know of the message: some of its lines."""
    kinds = [thoughts(0), texts(1), calls(2), texts(3), calls(4)]
    chosen = draw(st.sets(st.integers(0, 4)))
    stop = draw(_reads("end_turn"))
    usage = draw(st.none() | st.builds(Usage, input=st.just(5), output=st.integers(0, 9)))
    if stop and usage is None:
        usage = Usage(input=5, output=9)
    return Message(
        id="m",
        role="assistant",
        parts=tuple([draw(kinds[number]) for number in sorted(chosen)]),
        created_at=draw(TIMES),
        completed_at=draw(TIMES),
        model=draw(_reads("opus", "sonnet")),
        raw_stop_reason=stop,
        stop_reason="stop" if stop else None,
        usage=usage,
        metadata=draw(st.sampled_from([{}, {"a": {"b": 1}}, {"a": {"c": 2}, "z": "x"}, {"a": "y"}, {"a": {"b": 3}}])),
        extra=draw(st.sampled_from([{}, {"new": msgspec.Raw(b"1")}, {"new": msgspec.Raw(b"2")}])),
    )


@settings(max_examples=examples(60))
@given(readings(), readings(), readings())
def test_the_order_and_the_grouping_of_readings_do_not_show(one: Message, two: Message, three: Message) -> None:
    whole = encode(merge_messages(merge_messages(one, two), three))
    for first, second, third in permutations((one, two, three)):
        assert encode(merge_messages(merge_messages(first, second), third)) == whole
        assert encode(merge_messages(first, merge_messages(second, third))) == whole


@given(readings(), readings())
def test_the_same_reading_again_changes_nothing(one: Message, two: Message) -> None:
    assert merge_messages(one, one) == one
    joined = merge_messages(one, two)
    assert encode(merge_messages(joined, one)) == encode(joined)
    assert encode(merge_messages(joined, joined)) == encode(joined)


@given(readings(), readings())
def test_no_block_is_lost_and_none_doubled(one: Message, two: Message) -> None:
    joined = merge_messages(one, two)
    ids = [part.id for part in joined.parts]
    assert sorted(ids, key=str) == ids == sorted({part.id for part in (*one.parts, *two.parts)}, key=str)
    for part in joined.parts:
        if isinstance(part, ToolCallPart):
            known = {found.id for each in (one, two) for found in _results(each, part.tool_call_id)}
            assert {result.id for result in part.results} == known
            assert len(part.results) == len(known)


def _results(message: Message, call: str) -> tuple[ToolResult, ...]:
    return next((p.results for p in message.parts if isinstance(p, ToolCallPart) and p.tool_call_id == call), ())


@st.composite
def copied_readings(draw: st.DrawFn) -> Message:
    """What one feed knows of a copy: some of its blocks, numbered in the order in which the copy lists them."""
    blocks: list[TextPart | ReasoningPart | ToolCallPart] = [
        ReasoningPart(text="hm", provider=ProviderData(name="anthropic", opaque={"signature": "s"})),
        TextPart(text="said"),
        *(
            ToolCallPart(tool_call_id=name, tool_name="t", started_at=START + timedelta(seconds=second))
            for second, name in enumerate("abc")
        ),
    ]
    is_partial = draw(st.booleans())
    calls = draw(st.permutations(blocks[2:])) if not is_partial else blocks[2:]
    listed = [*(draw(st.sets(st.sampled_from((0, 1)))) if is_partial else (0, 1)), *range(2, 5)]
    copy = [[*blocks[:2], *calls][number] for number in listed]
    known = draw(st.sets(st.sampled_from(range(len(copy)))))
    ids = [copy_part_id("m", number) if is_partial else f"m.{number}" for number in range(len(copy))]
    parts = [msgspec.structs.replace(copy[number], id=ids[number]) for number in sorted(known)]
    return Message(id="m", role="assistant", parts=tuple(parts))


@settings(max_examples=examples(100))
@given(copied_readings(), copied_readings(), copied_readings())
def test_copies_with_other_block_numbers_have_one_order(one: Message, two: Message, three: Message) -> None:
    """R-K4: whichever copy was read first, and in whatever pieces."""
    copies = (one, two, three)
    found = {encode(reduce(merge_messages, order)) for order in permutations(copies)}
    found.add(encode(merge_messages(copies[0], merge_messages(copies[1], copies[2]))))
    assert len(found) == 1
    parts = reduce(merge_messages, copies).parts
    assert len({part.id for part in parts}) == len(parts)


@settings(max_examples=examples(100))
@given(copied_readings(), copied_readings(), copied_readings(), st.permutations("abc"))
def test_numbered_as_in_the_original_the_parts_are_in_its_order(
    one: Message, two: Message, three: Message, order: list[str]
) -> None:
    """R-K4: whatever the copies list, in whatever order they were read."""
    original = {name: number for number, name in enumerate(order, 2)}
    found = {
        encode(with_numbers(reduce(merge_messages, copies), OriginalBlocks(original)))
        for copies in permutations((one, two, three))
    }
    assert len(found) == 1
    parts = with_numbers(reduce(merge_messages, (one, two, three)), OriginalBlocks(original)).parts
    calls = [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)]
    assert calls == sorted(calls, key=order.index)
    assert [part.id for part in parts if isinstance(part, ToolCallPart)] == [f"m.{original[name]}" for name in calls]
    assert len({part.id for part in parts}) == len(parts)


def test_a_copy_yields_to_the_numbers_of_the_original() -> None:
    blocks = [TextPart(text="said"), *(ToolCallPart(tool_call_id=name, tool_name="t") for name in "ab")]
    original = [msgspec.structs.replace(part, id=f"m.{number}") for number, part in enumerate(blocks)]
    copy = [msgspec.structs.replace(part, id=copy_part_id("m", number)) for number, part in enumerate(blocks[1:])]
    assert merge_parts(original, copy) == merge_parts(copy, original) == tuple(original)
    assert merge_parts(copy, copy[::-1]) == tuple(copy)


def test_thousands_of_parts_are_merged_in_time() -> None:
    """R-S23: where each were looked for among all others, it would take forty seconds."""
    one, other = (
        [TextPart(id=f"m.{number}", text=f"text {number}") for number in numbers]
        for numbers in (range(12_000), range(6_000, 18_000))
    )
    began = time.process_time()
    merged = merge_parts(one, other)
    assert time.process_time() - began < 5
    assert [part.id for part in merged] == [f"m.{number}" for number in range(18_000)]


def test_two_blocks_of_one_text_stay_two() -> None:
    """R-S15: a message may say the same twice; the number of a block shows whether it is the same one."""
    first = Message(id="m", role="assistant", parts=(TextPart(id="m.0", text="ok"),))
    second = Message(id="m", role="assistant", parts=(TextPart(id="m.2", text="ok"),))
    assert [part.id for part in merge_messages(first, second).parts] == ["m.0", "m.2"]


def test_two_calls_of_one_number_stand_in_one_order_whoever_came_first() -> None:
    """R-C13: logs of a scripted model, or of a broken one, use an id twice; the order of the files must not show."""
    calls = [ToolCallPart(id="m.3", tool_call_id=name, tool_name="t") for name in "ab"]
    one, two = (Message(id="m", role="assistant", parts=(call,)) for call in calls)
    assert merge_messages(one, two) == merge_messages(two, one)
    assert len(merge_messages(one, two).parts) == 2


def test_a_part_without_an_id_is_known_by_what_it_holds() -> None:
    plain, numbered = TextPart(text="ok"), TextPart(id="m.1", text="ok")
    assert merge_parts([plain], [numbered]) == merge_parts([numbered], [plain]) == (numbered,)
    assert merge_parts([plain], [plain]) == (plain,)
    assert merge_parts([plain], [TextPart(text="other")]) == (plain, TextPart(text="other"))


def test_a_signature_that_comes_with_a_later_line_is_kept() -> None:
    """R-K6: the signature of a thought, also when the thought itself was withheld."""
    signed = ReasoningPart(id="m.0", text="", provider=ProviderData(name="anthropic", opaque={"signature": "s"}))
    bare = ReasoningPart(id="m.0", text="")
    assert merge_parts([bare], [signed]) == merge_parts([signed], [bare]) == (signed,)


def test_a_text_that_was_read_to_its_end_is_no_longer_streaming() -> None:
    half, whole = TextPart(id="m.0", text="wh", state="streaming"), TextPart(id="m.0", text="whole")
    assert merge_parts([whole], [half]) == merge_parts([half], [whole]) == (whole,)


@pytest.mark.parametrize("state", ToolState)
def test_a_state_that_no_result_brought_survives_another_reading(state: ToolState) -> None:
    """R-K9: a call that was interrupted before it answered is aborted, however often its message is read."""
    declared = ToolCallPart(tool_call_id="c", tool_name="t", state=state)
    open_ = ToolCallPart(tool_call_id="c", tool_name="t", state=ToolState.INPUT_STREAMING, title="x")
    for joined in (merge_parts([declared], [open_]), merge_parts([open_], [declared])):
        assert isinstance(joined[0], ToolCallPart)
        assert joined[0].state is state


def test_what_the_model_wrote_holds_against_json_that_a_program_made_of_it() -> None:
    """A call has one input, whichever reading comes first."""
    made = ToolCallPart(id="m.c1", tool_call_id="c", tool_name="run", input=msgspec.Raw(b"{}"))
    wrote = ToolCallPart(id="m.1", tool_call_id="c", tool_name="run", input_text='{"broken')
    for first, then in ((made, wrote), (wrote, made)):
        [call] = merge_parts((first,), (then,))
        assert isinstance(call, ToolCallPart)
        assert (call.id, call.input, call.input_text) == ("m.1", msgspec.UNSET, '{"broken')


def test_results_are_in_the_order_in_which_they_arrived() -> None:
    late = ToolResult(id="a", status="success", completed_at=START + timedelta(minutes=2))
    early = ToolResult(id="b", status="error", completed_at=START)
    timeless = ToolResult(id="c", status="aborted")
    call = ToolCallPart(tool_call_id="c", tool_name="t")
    for order in permutations((late, early, timeless)):
        joined = reduce(add_result, order, call)
        assert [result.id for result in joined.results] == ["b", "a", "c"]
        assert joined.state is ToolState.ABORTED


def test_a_reading_with_a_stop_reason_has_the_final_counts() -> None:
    """R-K28: a placeholder written while the answer streamed never outweighs the final record."""
    streamed = Message(id="m", role="assistant", usage=Usage(input=9, output=1))
    final = Message(id="m", role="assistant", usage=Usage(input=7, output=4), raw_stop_reason="end_turn")
    assert merge_messages(streamed, final).usage == merge_messages(final, streamed).usage == final.usage


MODELS = (
    Message(id="m", role="assistant", model="a", metadata={"x": {"model_from": "session", "fact": 1}}),
    Message(id="m", role="assistant", model="b", metadata={"x": {"model_from": "TaskMetadataItem"}}),
    Message(id="m", role="assistant", model="c"),
)


@pytest.mark.parametrize("order", list(permutations(MODELS)), ids=lambda order: "".join(each.model for each in order))
def test_the_model_of_an_answer_wins_over_that_of_other_records(order: tuple[Message, ...]) -> None:
    """R-C22: and one that another record names against that of the session."""
    joined = reduce(merge_messages, order)
    assert (joined.model, joined.metadata) == ("c", {"x": {"fact": 1}})
    inferred = reduce(merge_messages, [each for each in order if each.model != "c"])
    assert (inferred.model, inferred.metadata) == ("b", {"x": {"model_from": "TaskMetadataItem", "fact": 1}})


def test_readings_with_text_that_json_cannot_hold_are_joined() -> None:
    one = Message(id="m", role="user", model="a\ud800", metadata={"x": "\udfff"})
    two = Message(id="m", role="user", model="b", metadata={"x": "y"})
    assert merge_messages(one, two) == merge_messages(two, one)


def test_messages_of_different_ids_are_not_joined() -> None:
    with pytest.raises(ValueError, match="cannot merge message b into a"):
        merge_messages(Message(id="a", role="user"), Message(id="b", role="user"))


def test_block_numbers() -> None:
    assert [block_index(TextPart(id=name, text="")) for name in ("m.7", "a.b.12")] == [7, 12]
    assert block_index(TextPart(id="m.7~1", text="")) == 7
    assert 10**6 < block_index(TextPart(id="m.c9", text="")) < block_index(TextPart(id="m.c10", text=""))
    assert block_index(TextPart(text="")) == block_index(TextPart(id="m.x", text="")) > 10**6
