"""Whatever a history holds: one interruption at most between answers, growing changes nothing, streams are read."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from support.profiles import examples
from support.replay_values import answer, call, interrupt, kinds, message, placed, result
from turnlog.aisdk.writer import ChunkWriter, write_chunks
from turnlog.model import ErrorEvent, HistoryEvent, MessageEvent, ResultStatus, RunMetadataEvent, StopReason
from turnlog.replay import ToolCallShown, ToolResultShown, iter_runs, model_view, replay, stream_run

STATUSES: list[ResultStatus] = ["success", "error", "aborted", "denied"]
STOPS: list[StopReason | None] = [None, "tool_use", "aborted", "error"]

ASIDE: list[HistoryEvent] = [
    interrupt("record"),
    interrupt("guess", derived=True),
    ErrorEvent(id="e", error_text="no"),
    RunMetadataEvent(id="m", kind="mode"),
]


@st.composite
def histories(draw: st.DrawFn) -> list[HistoryEvent]:
    """Answers with a call or two, whose results come late, twice, or never, in any order with everything else."""
    events: list[HistoryEvent] = []
    for number in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["user", "developer", "answer", "result", "aside"]))
        if kind == "answer":
            calls = [call(f"{number}.{index}") for index in range(draw(st.integers(0, 2)))]
            events.append(answer("said", *calls, id=f"a{number}", stop_reason=draw(st.sampled_from(STOPS))))
        elif kind == "result":
            owner, index = draw(st.integers(0, 8)), draw(st.integers(0, 1))
            events.append(result(f"{owner}.{index}", draw(st.sampled_from(STATUSES)), of=f"a{owner}"))
        elif kind == "aside":
            events.append(draw(st.sampled_from(ASIDE)))
        else:
            events.append(message(f"m{number}", "user" if kind == "user" else "developer", "words"))
    return placed(events)


def between_messages(shown: Iterable[str]) -> Iterable[list[str]]:
    stretch: list[str] = []
    for kind in shown:
        if kind in ("user", "assistant"):
            yield stretch
            stretch = []
        stretch.append(kind)
    yield stretch


@settings(max_examples=examples(100))
@given(histories())
def test_no_stretch_has_two_interruptions(history: list[HistoryEvent]) -> None:
    """R-K17"""
    assert all(stretch.count("interrupt") <= 1 for stretch in between_messages(kinds(replay(history))))


@settings(max_examples=examples(60))
@given(histories(), st.integers(0, 8))
def test_what_was_shown_of_a_history_stays_when_it_goes_on(history: list[HistoryEvent], size: int) -> None:
    """R-K12 to R-K19: up to the answer or the prompt that comes next."""
    ends = [
        index
        for index, event in enumerate(history)
        if index >= size and isinstance(event, MessageEvent) and event.message.role in ("user", "assistant")
    ]
    if ends:
        part = replay(history[: ends[0]])
        assert part == replay(history)[: len(part)]


@settings(max_examples=examples(100))
@given(histories())
def test_every_stream_is_read_and_ends_once(history: list[HistoryEvent]) -> None:
    for run in iter_runs(history):
        writer = ChunkWriter(strict=True)
        names = [
            str(chunk.__struct_config__.tag) for chunk in write_chunks((told for _, told in stream_run(run)), writer)
        ]
        assert names.count("finish") + names.count("abort") == 1


@settings(max_examples=examples(60))
@given(histories())
def test_the_models_view_has_a_result_for_each_call(history: list[HistoryEvent]) -> None:
    shown = replay(model_view(history).events)
    calls = {event.tool_call_id for event in shown if isinstance(event, ToolCallShown)}
    results = {event.tool_call_id for event in shown if isinstance(event, ToolResultShown)}
    assert calls == results
