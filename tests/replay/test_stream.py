"""A history as `StreamEvent`s, which a writer turns into chunks that a chat page can read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from support.replay_values import answer, at, call, image, interrupt, message, result, user
from turnlog import read_session
from turnlog.aisdk.writer import ChunkWriter, write_chunks
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    HistoryEvent,
    MessageError,
    MessageEvent,
    ReasoningPart,
    RunMetadataEvent,
    SourceUrlPart,
    StreamEvent,
    TextPart,
    ToolCallPart,
    ToolResult,
    Usage,
)
from turnlog.model.stream import DataEvent, TextDelta
from turnlog.replay import ReplayRun, iter_runs, stream_run

DATA = Path(__file__).parent.parent / "data"


def events_of(history: list[HistoryEvent]) -> list[StreamEvent]:
    (run,) = iter_runs(history)
    return [event for _, event in stream_run(run)]


def kinds(stream: list[StreamEvent]) -> str:
    return " ".join(str(event.__struct_config__.tag) for event in stream)


def test_each_prompt_begins_a_run() -> None:
    history: list[HistoryEvent] = [
        message("s", "system", "prompt"),
        user("one"),
        message("d", "developer", "reminder"),
        message("v", "user", "more"),
        answer(call("c")),
        result("c"),
        message("w", "user", "next"),
        RunMetadataEvent(id="m", kind="mode"),
    ]
    first, second = iter_runs(history)
    assert [prompt.id for prompt in first.prompts] == ["u", "v"]
    assert [prompt.id for prompt in second.prompts] == ["w"]
    assert first.events[-2:] == (history[4], history[5])


def test_an_agent_that_began_by_itself_has_a_run_without_a_prompt() -> None:
    assert [run.prompts for run in iter_runs([answer("hello")])] == [()]
    assert list(iter_runs([RunMetadataEvent(id="m", kind="mode")])) == []


def test_a_run_is_reported_step_by_step() -> None:
    answered = answer(
        ReasoningPart(text="hm"),
        "I look",
        call("c"),
        image(),
        SourceUrlPart(source_id="1", url="https://example.org"),
        usage=Usage(input=1),
        stop_reason="tool_use",
    )
    stream = events_of([user("go"), answered, result("c"), result("gone"), answer("done", id="b", stop_reason="stop")])
    assert kinds(stream) == (
        "run-start step-start reasoning-start reasoning-delta reasoning-end text-start text-delta text-end"
        " tool-input-available file source tool-output step-finish"
        " step-start text-start text-delta text-end step-finish run-finish"
    )


def test_results_that_came_with_their_call_are_reported_with_it() -> None:
    part = ToolCallPart(
        tool_call_id="w", tool_name="search", provider_executed=True, results=(ToolResult(id="r"),), input=Raw(b"{}")
    )
    assert "tool-input-available tool-output text-start" in kinds(events_of([answer(part, "found")]))


def test_a_text_grows_in_pieces_over_the_time_it_took() -> None:
    text = "word " * 2_000
    (run,) = iter_runs([user("go", created_at=at(0)), replace(answer(text), created_at=at(8))])
    stream = list(stream_run(run, speed=4, longest_pause=10))
    deltas = [(delay, event.delta) for delay, event in stream if isinstance(event, TextDelta)]
    assert "".join(delta for _, delta in deltas) == text
    assert 50 < len(deltas) <= 200
    assert sum(delay for delay, _ in deltas) == pytest.approx(2)
    assert sum(delay for delay, _ in stream) == pytest.approx(2)


def test_a_result_is_waited_for() -> None:
    (run,) = iter_runs([replace(answer(call("c")), created_at=at(0)), replace(result("c"), created_at=at(2))])
    assert [delay for delay, event in stream_run(run) if event.__struct_config__.tag == "tool-output"] == [2]


ENDS: dict[str, tuple[list[HistoryEvent], str]] = {
    "an answer": ([answer("hi")], "step-finish run-finish"),
    "an error": ([answer("hi"), ErrorEvent(id="e", error_text="no")], "step-finish error run-finish"),
    "an answer that failed": ([answer(error=MessageError(text="no"))], "step-start step-finish error run-finish"),
    "an interruption": ([answer("hi", stop_reason="aborted")], "step-finish abort"),
    "an aborted call": ([answer(call("c")), result("c", "aborted"), interrupt()], "tool-output step-finish abort"),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_run_ends_as_it_did(name: str) -> None:
    history, end = ENDS[name]
    assert kinds(events_of(history)).endswith(end)


def test_what_a_run_survived_is_data() -> None:
    history: list[HistoryEvent] = [
        answer("half", stop_reason="aborted"),
        ErrorEvent(id="e", error_text="no"),
        CompactionEvent(id="c", trigger="auto"),
        answer("whole", id="b"),
    ]
    stream = events_of(history)
    data = {event.name: bytes(event.data) for event in stream if isinstance(event, DataEvent)}
    assert data == {"interrupt": b"{}", "error": b'{"errorText":"no"}', "compaction": b'{"trigger":"auto"}'}
    assert kinds(stream).endswith("run-finish")


LOGS = sorted((DATA / "klaude/versions").rglob("events.jsonl"))


def texts_of(run: ReplayRun) -> list[str]:
    answers = [event.message for event in run.events if isinstance(event, MessageEvent)]
    return [
        part.text
        for found in answers
        if found.role == "assistant"
        for part in found.parts
        if isinstance(part, TextPart) and part.text
    ]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.parts[-5])
def test_recorded_runs_become_streams_that_a_page_can_read(log: Path) -> None:
    """R-S19: nothing is refused, every stream ends once, every text arrives."""
    runs = list(iter_runs(read_session(log).events))
    assert runs
    for run in runs:
        writer = ChunkWriter(strict=True)
        chunks: list[Any] = list(write_chunks((event for _, event in stream_run(run)), writer))
        names = [str(chunk.__struct_config__.tag) for chunk in chunks]
        assert writer.skipped == 0
        assert names[-1] in ("finish", "abort")
        assert names.count("finish") + names.count("abort") == 1
        assert not any(pair == ("start-step", "start-step") for pair in pairwise(names))
        answered = "".join(chunk.delta for chunk in chunks if chunk.__struct_config__.tag == "text-delta")
        assert answered == "".join(texts_of(run))
