"""What of a message goes into columns (R-S25, R-S26) and totals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from operator import itemgetter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.model_values import values_of
from turnlog.model import (
    Cost,
    DataPart,
    FilePart,
    Message,
    MessageError,
    Origin,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
    Usage,
)
from turnlog.store.rows import (
    CALL_COLUMNS,
    MESSAGE_COUNTS,
    PLAIN_COLUMNS,
    USAGE_COUNTS,
    message_buckets,
    message_columns,
    message_facts,
    milliseconds,
    moment,
    nanos,
    quarter_hour_of,
    usage_counts,
)

START = datetime(2026, 5, 1, 23, 59, 59, 999_000, tzinfo=UTC)


def assistant(*parts: Any, **fields: Any) -> Message:
    return Message(id="m", role="assistant", parts=parts, **fields)


def counts(message: Message) -> dict[str, int]:
    """What the message counts as, without what it does not."""
    found = dict(zip(MESSAGE_COUNTS, message_facts(message).counts, strict=True))
    return {name: int(count) for name, count in found.items() if count}


def paid(message: Message, cost: int | None = None) -> dict[str, int] | None:
    found = usage_counts(message, cost)
    return (
        None if found is None else {name: int(count) for name, count in zip(USAGE_COUNTS, found, strict=True) if count}
    )


def all_of(part: Any) -> dict[str, Any]:
    """All columns of a part's row."""
    facts = message_facts(assistant(part))
    columns, rows = (CALL_COLUMNS, facts.calls) if facts.calls else (PLAIN_COLUMNS, facts.plain)
    return dict(zip(columns, rows[0], strict=True))


def row_of(part: Any) -> dict[str, Any]:
    """The columns of a part that say something."""
    row = all_of(part)
    assert row.pop("sequence") == 0
    return {name: value for name, value in row.items() if value not in (None, 0)}


# Bounds are naive: Hypothesis adds the zone.
@given(st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.just(UTC)))  # noqa: DTZ001  # `timezones` adds the zone
def test_a_time_is_kept_to_the_millisecond(time: datetime) -> None:
    value = milliseconds(time)
    assert value is not None
    kept = moment(value)
    assert kept is not None
    assert kept.tzinfo is UTC
    assert timedelta(0) <= time - kept < timedelta(milliseconds=1)
    assert milliseconds(kept) == value


def test_times_of_any_zone_are_the_same_time() -> None:
    assert milliseconds(START) == milliseconds(START.astimezone(timezone(timedelta(hours=5, minutes=45))))
    assert milliseconds(None) is None
    assert moment(None) is None


def test_a_quarter_hour_is_whole() -> None:
    last = milliseconds(START)
    assert last is not None
    midnight = ((START.date() - datetime(1970, 1, 1, tzinfo=UTC).date()).days + 1) * 96
    assert quarter_hour_of(last + 1) == quarter_hour_of(last) + 1 == midnight
    assert quarter_hour_of(None) == 0
    assert quarter_hour_of(-1) == -1


@pytest.mark.parametrize(
    ("amount", "kept"),
    [
        (None, None),
        (Decimal("0.000000001"), 1),
        (0.1, 100_000_000),
        (Decimal("-1.5"), None),
        (Decimal(0), 0),
        (Decimal("1E+300"), None),
        (1e300, None),
        (float("nan"), None),
        (float("-inf"), None),
        (Decimal("NaN"), None),
    ],
)
def test_money_is_kept_in_nano_dollars_and_what_is_none_is_not_known(amount: Any, kept: int | None) -> None:
    assert nanos(amount) == kept


def test_the_preview_is_the_first_200_characters_of_the_text_parts() -> None:
    """R-S25: characters, not bytes; text parts only."""
    parts = (ReasoningPart(text="thinking"), TextPart(text="\u6f22" * 150), FilePart(media_type="x", data=b"1"))
    preview = message_facts(assistant(*parts, TextPart(text="b" * 150))).preview
    assert preview == "\u6f22" * 150 + "\n" + "b" * 49
    assert len(preview) == 200
    assert message_facts(assistant()).preview == ""


def test_the_preview_of_a_prompt_is_what_was_typed() -> None:
    put_in = TextPart(text="Called the Read tool", metadata={"plain": {"synthetic": True}})
    assert message_facts(assistant(put_in, TextPart(text="What is in it?"))).preview == "What is in it?"
    assert message_facts(assistant(put_in)).preview == "Called the Read tool"


def test_flags_say_what_a_message_holds() -> None:
    """R-S25: has_tool_calls, has_reasoning, has_files."""
    call = ToolCallPart(tool_call_id="c", tool_name="t")
    facts = [message_facts(assistant(*parts)) for parts in ((), (call,), (ReasoningPart(text=""),))]
    assert [(f.has_tool_calls, f.has_reasoning, f.has_files) for f in facts] == [
        (False, False, False),
        (True, False, False),
        (False, True, False),
    ]
    image = FilePart(media_type="image/png", data=b"1")
    shown = ToolCallPart(tool_call_id="c", tool_name="t", results=(ToolResult(id="r", content=(image, image)),))
    assert message_facts(assistant(shown)).has_files
    assert counts(assistant(shown, image)) == {"messages": 1, "steps": 1, "tool_calls": 1, "files": 3}


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (Message(id="m", role="user"), {"messages": 1}),
        (Message(id="m", role="user", origin=Origin.PROMPT), {"messages": 1, "prompts": 1}),
        (Message(id="m", role="user", origin=Origin.COMMAND), {"messages": 1, "prompts": 1}),
        (Message(id="m", role="user", origin=Origin.SUBAGENT_PROMPT), {"messages": 1, "prompts": 1}),
        (Message(id="m", role="user", origin=Origin.COMMAND_OUTPUT), {"messages": 1}),
        (Message(id="m", role="developer", origin=Origin.HARNESS), {"messages": 1}),
        (assistant(), {"messages": 1, "steps": 1}),
        (assistant(error=MessageError(text="overloaded")), {"messages": 1}),
        (assistant(error=MessageError(text="overloaded"), usage=Usage(input=0, output=0)), {"messages": 1}),
        (assistant(error=MessageError(text="terminated"), usage=Usage(input=9)), {"messages": 1, "steps": 1}),
        (assistant(origin=Origin.HARNESS), {"messages": 1}),
    ],
)
def test_what_counts_as_a_prompt_and_as_a_step(message: Message, found: dict[str, int]) -> None:
    assert counts(message) == found


@pytest.mark.parametrize("state", ToolState)
def test_only_errors_are_counted_as_failures(state: ToolState) -> None:
    """R-S41: tool usage counts and failures, by the state of the call. Denied and aborted are no failures."""
    failed = state is ToolState.OUTPUT_ERROR
    call = ToolCallPart(tool_call_id="c", tool_name="t", state=state)
    assert counts(assistant(call)).get("failed_tool_calls", 0) == failed
    assert row_of(call)["tool_state"] == state


def test_the_row_of_a_call() -> None:
    """R-S26: name, id, state, timing, sizes, the file it touched."""
    first = ToolResult(id="1", content=(TextPart(text="12345"),), completed_at=START, preliminary=True)
    last = ToolResult(
        id="2", content=(TextPart(text="678"),), completed_at=START + timedelta(seconds=2), exit_code=0, spilled_to="x"
    )
    call = ToolCallPart(
        tool_call_id="c",
        tool_name="Read",
        kind=ToolKind.READ,
        input=msgspec.Raw(b'{"file_path":"/a"}'),
        started_at=START - timedelta(seconds=1),
        state=ToolState.OUTPUT_AVAILABLE,
        results=(first, last),
    )
    started = milliseconds(call.started_at)
    assert started is not None
    row = row_of(call)
    assert row == {
        "type": "tool-call",
        "tool_name": "Read",
        "tool_kind": "read",
        "tool_call_id": "c",
        "tool_state": "output-available",
        "path": "/a",
        "spill": "x",
        "text_size": 18,
        "output_size": 8,
        "started_at": started,
        "completed_at": started + 3000,
        "duration_ms": 3000,
    }
    assert all_of(call)["exit_code"] == 0


def test_what_the_agent_says_of_a_duration_counts_before_the_clock() -> None:
    result = ToolResult(id="1", completed_at=START + timedelta(seconds=5), duration_ms=1200)
    call = ToolCallPart(tool_call_id="c", tool_name="t", started_at=START, results=(result,))
    assert row_of(call)["duration_ms"] == 1200
    backwards = msgspec.structs.replace(call, results=(ToolResult(id="1", completed_at=START - timedelta(hours=1)),))
    assert all_of(backwards)["duration_ms"] == 0


@pytest.mark.parametrize(
    ("kind", "written", "path"),
    [
        (ToolKind.READ, '{"file_path":"/a"}', "/a"),
        (ToolKind.EDIT, '{"notebook_path":"/n","path":null}', "/n"),
        (ToolKind.READ, '{"filePath":"/b"}', "/b"),
        (ToolKind.READ, '{"file_path":"/a","path":7}', "/a"),
        (ToolKind.READ, '{"file_path":["/a"],"filename":"/c"}', "/c"),
        (ToolKind.READ, '{"file_path":""}', None),
        (ToolKind.READ, "[1]", None),
        (ToolKind.READ, '"text"', None),
        (ToolKind.EXECUTE, '{"path":"/a"}', None),
        (ToolKind.EDIT, '{"file_path":"/large","content":"' + "x" * 100_000 + '"}', "/large"),
    ],
)
def test_the_file_that_a_call_touched(kind: ToolKind, written: str, path: str | None) -> None:
    call = ToolCallPart(tool_call_id="c", tool_name="t", kind=kind, input=msgspec.Raw(written.encode()))
    assert row_of(call).get("path") == path


def test_the_rows_of_other_parts() -> None:
    assert row_of(TextPart(text="\u6f22\u5b57")) == {"type": "text", "text_size": 2}
    assert row_of(FilePart(media_type="image/png", data=b"12345")) == {
        "type": "file",
        "media_type": "image/png",
        "text_size": 5,
    }
    assert row_of(DataPart(name="n", data=msgspec.Raw(b"1"))) == {"type": "data"}


def test_usage_of_a_call_and_what_is_not_known_of_it() -> None:
    known = assistant(usage=Usage(input=3, output=4, exactness="lower_bound"))
    assert paid(known, 9) == {"calls": 1, "input": 3, "output": 4, "lower_bound": 1, "cost": 9}
    assert paid(known) == {"calls": 1, "unpriced_calls": 1, "input": 3, "output": 4, "lower_bound": 1}
    for nothing in (None, Usage(), Usage(web_searches=1)):
        assert paid(assistant(usage=nothing)) == {"calls": 1, "unknown_calls": 1}
    for nothing in (None, Usage(), Usage(input=0, output=0)):
        assert paid(assistant(error=MessageError(text="x"), usage=nothing)) is None
    # The provider has charged for an answer that broke off.
    assert paid(assistant(error=MessageError(text="x"), usage=Usage(input=1)), 9) == {"calls": 1, "input": 1, "cost": 9}
    assert paid(Message(id="m", role="user", usage=Usage(input=1))) is None
    assert message_buckets(assistant())[-1] is None


@pytest.mark.parametrize("count", [1 << 54, -(1 << 60), 10**40])
def test_a_number_that_no_column_holds_is_not_known(count: int) -> None:
    """A broken log must not make its whole session unreadable, nor a sum of the others wrong."""
    assert paid(assistant(usage=Usage(input=count))) == {"calls": 1, "unknown_calls": 1}
    assert paid(assistant(usage=Usage(input=count, output=2)), 5) == {"calls": 1, "output": 2, "cost": 5}
    result = ToolResult(id="r", exit_code=count, duration_ms=count)
    row = row_of(ToolCallPart(tool_call_id="c", tool_name="t", results=(result,)))
    assert "exit_code" not in row
    assert "duration_ms" not in row


def test_less_than_nothing_is_not_known_but_an_exit_code_may_be() -> None:
    """A hub refuses the rows of a machine that say it, so no store has any."""
    spent = assistant(usage=Usage(input=-1, output=2), cost=Cost(amount=Decimal(-1), kind="reported"))
    assert paid(spent, 5) == {"calls": 1, "output": 2, "cost": 5}
    assert message_columns(spent, message_facts(spent), None, message_buckets(spent)).what[-1] is None
    result = ToolResult(id="r", exit_code=-15, duration_ms=-1)
    row = row_of(ToolCallPart(tool_call_id="c", tool_name="t", results=(result,)))
    assert row["exit_code"] == -15
    assert "duration_ms" not in row


@given(values_of(Message))
def test_every_message_has_its_rows(message: Message) -> None:
    """R-S16: the number of tool calls is that of the tool parts."""
    facts = message_facts(message)
    rows = sorted([*facts.plain, *facts.calls], key=itemgetter(0))
    assert [row[:2] for row in rows] == [(number, part.type) for number, part in enumerate(message.parts)]
    assert {len(row) for row in facts.plain} <= {len(PLAIN_COLUMNS)}
    assert {len(row) for row in facts.calls} <= {len(CALL_COLUMNS)}
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    assert counts(message).get("tool_calls", 0) == len(calls)
    usage_counts(message, None)


def test_a_reported_cost_is_no_priced_one() -> None:
    """R-C7: both are kept, apart from each other."""
    message = assistant(usage=Usage(input=1), cost=Cost(amount=Decimal("0.5"), kind="reported"))
    assert paid(message) == {"calls": 1, "unpriced_calls": 1, "input": 1}


@pytest.mark.parametrize(
    ("origin", "name", "arguments", "preview"),
    [
        (Origin.COMMAND, "/compact", "keep the names", "/compact keep the names"),
        (Origin.COMMAND, "/model", "", "/model"),
        (Origin.SHELL, "!", "ls -l", "! ls -l"),
        (Origin.COMMAND, "", "", "<wrapped>"),
        (Origin.PROMPT, "/compact", "", "<wrapped>"),
    ],
)
def test_a_preview_shows_a_command_as_it_was_typed(origin: Origin, name: str, arguments: str, preview: str) -> None:
    """The text itself keeps the tags that the agent put around it."""
    message = Message(
        id="m",
        role="user",
        origin=origin,
        parts=(TextPart(text="<wrapped>"),),
        metadata={"other": "no mapping", "toy": {"command": {"name": name, "arguments": arguments}}},
    )
    assert message_facts(message).preview == preview
