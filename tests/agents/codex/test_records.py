"""What single records do to a history: duplicates, results, borders of responses, rollbacks, damage, hostile input."""

from __future__ import annotations

import json

import msgspec
import pytest

from support.claude_files import Gathered, gather
from support.codex_files import (
    AGENT,
    OTHER,
    THREAD,
    answer,
    call,
    completed,
    counts,
    event,
    fold,
    item,
    line,
    meta,
    output,
    prompt,
    source,
    token_count,
    usage_record,
)
from turnlog.agents import fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    RecordEvent,
    RewindEvent,
    TextPart,
    ToolCallPart,
    ToolState,
)
from turnlog.providers import provider, provider_names
from turnlog.providers.base import RequestOptions
from turnlog.store.reconcile.merge import messages_of_records, place_messages

_MILLISECONDS = 1795255200_000
"""The time of the lines here."""

SESSION = f"codex:{THREAD}"
CONTEXT = line("turn_context", {"turn_id": "t1", "model": "gpt-5.5"})


def texts(gathered: Gathered) -> list[str]:
    parts = [part for message in gathered.in_order(SESSION) for part in message.parts]
    return [part.text for part in parts if isinstance(part, TextPart | ReasoningPart)]


def the_call(gathered: Gathered) -> ToolCallPart:
    [found] = gathered.calls()
    return found


def answers(gathered: Gathered) -> list[Message]:
    return [message for message in gathered.in_order(SESSION) if message.role == "assistant"]


# -- duplicate records


def test_what_both_streams_have_is_shown_once_in_either_order() -> None:
    """R-C3"""
    told = fold(
        meta(), prompt("a"), event("user_message", message="a"), event("agent_message", message="b"), answer("b")
    )
    asked = fold(
        meta(), prompt("a"), event("user_message", message="a"), answer("b"), event("agent_message", message="b")
    )
    assert texts(told) == texts(asked) == ["a", "b"]


def test_what_only_events_have_is_shown() -> None:
    """An item that was lost with a damaged line is in its duplicate."""
    gathered = fold(
        meta(),
        event("user_message", message="a"),
        completed("Reasoning", id="rs_1", summary_text=["thought"], raw_content=[]),
        completed("AgentMessage", id="msg_1", content=[{"type": "Text", "text": "b"}]),
    )
    assert texts(gathered) == ["a", "thought", "b"]
    assert [message.origin for message in gathered.in_order(SESSION)] == [Origin.PROMPT, None]


def test_the_fuller_of_two_thoughts_wins() -> None:
    gathered = fold(
        meta(),
        completed("Reasoning", id="rs_1", summary_text=["short"], raw_content=["the whole thought"]),
        item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "short"}], encrypted_content="x"),
    )
    [message] = answers(gathered)
    [part] = message.parts
    assert isinstance(part, ReasoningPart)
    assert part.text == "the whole thought"
    assert part.provider is not None


def test_sections_of_a_thought_are_one_part() -> None:
    sections = [{"type": "summary_text", "text": text} for text in ("first", "second")]
    gathered = fold(
        meta(),
        event("agent_reasoning", text="first"),
        event("agent_reasoning", text="second"),
        item("reasoning", summary=sections),
        answer("b"),
    )
    assert texts(gathered) == ["first\n\nsecond", "b"]


def test_the_same_text_twice_is_two_messages() -> None:
    gathered = fold(meta(), prompt("a"), answer("ok"), prompt("a"), answer("ok"))
    assert texts(gathered) == ["a", "ok", "a", "ok"]


# -- borders of responses


def test_a_response_ends_with_its_tokens() -> None:
    """R-S15"""
    gathered = fold(
        meta(history_mode="paginated"),
        call("c1"),
        usage_record("r1", counts(100, 0, 10, 0)),
        call("c2"),
        call("c3"),
        usage_record("r2", counts(200, 50, 20, 5)),
        token_count(counts(300, 50, 30, 5), counts(200, 50, 20, 5)),
    )
    assert [
        [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)] for message in answers(gathered)
    ] == [["c1"], ["c2", "c3"]]
    assert [(message.response_id, message.usage and message.usage.buckets()[:2]) for message in answers(gathered)] == [
        ("r1", (100, 0)),
        ("r2", (150, 50)),
    ]


def test_without_tokens_a_response_ends_where_the_model_speaks_again() -> None:
    gathered = fold(meta(), call("c1"), call("c2"), output("c1", "1"), output("c2", "2"), call("c3"), output("c3", "3"))
    assert [len(message.parts) for message in answers(gathered)] == [2, 1]


def test_the_model_may_change_with_each_turn() -> None:
    other = line("turn_context", {"turn_id": "t2", "model": "gpt-5-mini"})
    gathered = fold(meta(), CONTEXT, prompt("a"), answer("b"), other, prompt("c"), answer("d"))
    assert [message.model for message in answers(gathered)] == ["gpt-5.5", "gpt-5-mini"]


# -- results


@pytest.mark.parametrize(
    ("text", "state", "code"),
    [
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nx", ToolState.OUTPUT_AVAILABLE, 0),
        ("Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 3\nOutput:\n", ToolState.OUTPUT_ERROR, 3),
        (json.dumps({"output": "x", "metadata": {"exit_code": 7, "duration_seconds": 0.5}}), ToolState.OUTPUT_ERROR, 7),
        ("unsupported call: x", ToolState.OUTPUT_ERROR, None),
        ("aborted", ToolState.ABORTED, None),
        ("aborted by user after 2.5s", ToolState.ABORTED, None),
        ("Wall time: 4.7 seconds\naborted by user", ToolState.ABORTED, None),
        ("exec command rejected by user", ToolState.OUTPUT_DENIED, None),
        ("patch rejected by user", ToolState.OUTPUT_DENIED, None),
        (
            r'exec_command failed: CreateProcess { message: "Rejected(\"rejected by user\")" }',
            ToolState.OUTPUT_DENIED,
            None,
        ),
        ('exec_command failed: CreateProcess { message: "No such file" }', ToolState.OUTPUT_ERROR, None),
        ("aborted by user is what the file says", ToolState.OUTPUT_AVAILABLE, None),
    ],
)
def test_the_text_of_an_output_decides_the_status_of_its_call(text: str, state: ToolState, code: int | None) -> None:
    """R-K9, R-C8: stopped is not failed is not refused."""
    found = the_call(fold(meta(), call("c1"), output("c1", text)))
    assert (found.state, found.results[0].exit_code) == (state, code)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("Exit code: 0\nWall time: 2.5 seconds\nOutput:\nx", 2500),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nx", None),
        ("Chunk ID: a\nWall time: 0.0000 seconds\nProcess exited with code 0\nOutput:\n", None),
        ("Chunk ID: a\nWall time: 0.3016 seconds\nProcess exited with code 3\nOutput:\n", 302),
        ("Chunk ID: a\nWall time: 10 seconds\nProcess running with session ID 7\nOutput:\n", None),
        ("cat notes\nWall time: 5 seconds\n", None),
    ],
)
def test_the_text_of_an_output_has_the_time_of_its_command(text: str, milliseconds: int | None) -> None:
    """A command that goes on has none, nor has a text that looks like one; no command takes no time."""
    found = the_call(fold(meta(), call("c1"), output("c1", text)))
    assert found.results[0].duration_ms == milliseconds


@pytest.mark.parametrize(
    ("status", "code", "state"),
    [
        ("completed", 0, ToolState.OUTPUT_AVAILABLE),
        ("failed", 2, ToolState.OUTPUT_ERROR),
        ("declined", None, ToolState.OUTPUT_DENIED),
        ("failed", -1, ToolState.ABORTED),
    ],
)
def test_the_item_of_a_call_has_its_status(status: str, code: int | None, state: ToolState) -> None:
    duplicate = completed(
        "CommandExecution", id="c1", status=status, exit_code=code, duration={"secs": 1, "nanos": 5 * 10**8}
    )
    found = the_call(fold(meta(), call("c1"), duplicate, output("c1", "said")))
    [result] = found.results
    assert (found.state, result.exit_code, result.duration_ms, result.output_text) == (state, code, 1500, "said")


def test_an_item_without_an_output_is_the_result_at_the_end_of_the_turn() -> None:
    duplicate = completed("CommandExecution", id="c1", status="completed", exit_code=0, aggregated_output="done")
    found = the_call(fold(meta(), call("c1"), duplicate, event("task_complete", turn_id="t1")))
    assert (found.state, found.output_text) == (ToolState.OUTPUT_AVAILABLE, "done")


def test_a_long_output_that_only_the_item_has_is_whole() -> None:
    words = "word " * 20_000
    duplicate = completed("CommandExecution", id="c1", status="completed", exit_code=0, aggregated_output=words)
    found = the_call(fold(meta(), call("c1"), duplicate, event("task_complete", turn_id="t1")))
    assert found.output_text == words


def test_an_output_that_only_the_item_has_is_cut_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.agents.codex.tool_results._KEPT_CHARACTERS", 10)
    duplicate = completed("CommandExecution", id="c1", status="completed", exit_code=0, aggregated_output="x" * 11)
    gathered = fold(meta(), call("c1"), duplicate, event("task_complete", turn_id="t1"))
    assert the_call(gathered).output_text == "x" * 10
    assert [(found.severity, "c1" in found.reason) for found in gathered.diagnostics] == [("note", True)]


def test_a_background_command_gets_its_final_result_later() -> None:
    running = output("c1", "Chunk ID: a\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\n")
    duplicate = completed("CommandExecution", id="c1", status="completed", exit_code=0, aggregated_output="done")
    found = the_call(fold(meta(), call("c1"), running, duplicate))
    assert [result.preliminary for result in found.results] == [True, False]
    assert found.output_text == "done"


def test_a_command_that_was_left_running_has_the_output_so_far() -> None:
    running = output("c1", "Chunk ID: a\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\nready\n")
    found = the_call(fold(meta(), call("c1"), running, prompt("Go on")))
    assert [result.preliminary for result in found.results] == [True]
    assert found.output_text.endswith("Output:\nready\n")


@pytest.mark.parametrize("printed", ['one\nWord and "quotes"\n', "", "café\n\x07"])
def test_the_output_in_the_json_of_a_command_is_its_text(printed: str) -> None:
    """R-S22, R-K27: what was printed can be read and found, and the model is told what it was told."""
    told = msgspec.json.encode({"output": printed, "metadata": {"exit_code": 3, "duration_seconds": 0.5}}).decode()
    gathered = fold(meta(), prompt("Run it"), call("c1", "shell"), output("c1", told))
    found = the_call(gathered)
    [result] = found.results
    assert (found.output_text, result.error_text) == (printed, printed)
    assert (result.exit_code, result.duration_ms) == (3, 500)
    for name in provider_names():
        body = provider(name).to_request(gathered.in_order(SESSION), RequestOptions(model="other")).body
        assert json.dumps(told, ensure_ascii=False).encode() in msgspec.json.encode(body), name


@pytest.mark.parametrize("fields", [{}, {"metadata": None}])
@pytest.mark.parametrize("is_list", [False, True])
def test_json_of_a_command_without_facts_is_its_output(fields: dict[str, None], is_list: bool) -> None:
    """R-S22, R-K27"""
    told = msgspec.json.encode({"output": "one\nWord\n", **fields}).decode()
    content = [{"type": "input_text", "text": told}] if is_list else told
    gathered = fold(meta(), prompt("Run it"), call("c1", "shell"), output("c1", content))
    found = the_call(gathered)
    assert (found.state, found.output_text) == (ToolState.OUTPUT_AVAILABLE, "one\nWord\n")
    for name in provider_names():
        body = provider(name).to_request(gathered.in_order(SESSION), RequestOptions(model="other")).body
        assert json.dumps(told, ensure_ascii=False).encode() in msgspec.json.encode(body), name


def test_words_of_codex_in_json_without_facts_say_how_the_call_ended() -> None:
    told = json.dumps({"output": "exec command rejected by user"}, indent=1)
    found = the_call(fold(meta(), call("c1", "shell"), output("c1", told)))
    assert (found.state, found.output_text) == (ToolState.OUTPUT_DENIED, "exec command rejected by user")


@pytest.mark.parametrize(
    ("metadata", "state", "code"),
    [
        ('{"exit_code": 3, "duration_seconds": 1e400}', ToolState.OUTPUT_ERROR, 3),
        ('{"exit_code": 0, "duration_seconds": 0.5, "load": [-1e999]}', ToolState.OUTPUT_AVAILABLE, 0),
        ('{"exit_code": 1e400}', ToolState.OUTPUT_AVAILABLE, None),
        ("1e400", ToolState.OUTPUT_AVAILABLE, None),
    ],
)
def test_a_number_that_no_float_holds_does_not_hide_the_output(
    metadata: str, state: ToolState, code: int | None
) -> None:
    """R-S22: the number becomes null, and a diagnostic says so."""
    gathered = fold(meta(), call("c1", "shell"), output("c1", f'{{"output": "one\\nWord\\n", "metadata": {metadata}}}'))
    found = the_call(gathered)
    assert (found.output_text, found.state, found.results[0].exit_code) == ("one\nWord\n", state, code)
    [diagnostic] = gathered.diagnostics
    assert (diagnostic.json_path, diagnostic.severity) == ("$.payload.output", "error")
    msgspec.json.encode(found)


@pytest.mark.parametrize(
    "text",
    [
        '{"output": "x", "error": null}',
        '{"output": "x", "metadata": {"pages": 2}}',
        '{"output": {"a": 1}, "metadata": {"exit_code": 0}}',
        '{"output": "cut',
    ],
)
def test_other_json_of_a_tool_stays_as_it_is(text: str) -> None:
    found = the_call(fold(meta(), call("c1", "mcp__server__tool"), output("c1", text)))
    assert (found.output_text, found.results[0].metadata) == (text, {})


def test_calls_of_a_killed_turn_are_aborted() -> None:
    found = the_call(fold(meta(), call("c1"), event("task_started", turn_id="t2")))
    assert (found.state, found.results) == (ToolState.ABORTED, ())


def test_calls_of_a_killed_run_are_aborted_where_no_record_begins_a_turn() -> None:
    """Up to 0.8x the next prompt is all that tells."""
    gathered = fold(meta(), prompt("a"), call("c1"), call("c2"), output("c1", "done"), prompt("b"))
    states = [found.state for found in gathered.calls()]
    assert states == [ToolState.OUTPUT_AVAILABLE, ToolState.ABORTED]


def test_text_of_codex_itself_is_no_assistant_message() -> None:
    gathered = fold(meta(), prompt("a"), event("agent_message", message="Compact task completed"))
    assert answers(gathered) == []
    events = [change.event for change in gathered.events.values()]
    assert [found.kind for found in events if isinstance(found, RecordEvent)] == ["event_msg/agent_message"]


def test_an_output_without_a_call_is_kept() -> None:
    gathered = fold(meta(), output("gone", "text"))
    assert [change.tool_call_id for change in gathered.late] == ["gone"]


def test_arguments_that_are_not_json_are_kept_as_text() -> None:
    found = the_call(fold(meta(), call("c1", arguments="{broken")))
    assert found.input_value() == "{broken"


# -- what happened


def test_an_interrupt_is_an_event_and_other_ends_are_not() -> None:
    stopped = fold(meta(), call("c1"), event("turn_aborted", reason="interrupted"))
    [stop] = [change.event for change in stopped.events.values() if isinstance(change.event, InterruptEvent)]
    assert stop.during == "tool"
    assert the_call(stopped).state is ToolState.ABORTED
    replaced = fold(meta(), event("turn_aborted", reason="replaced"))
    assert not [change for change in replaced.events.values() if isinstance(change.event, InterruptEvent)]


def test_a_failed_turn_is_an_error() -> None:
    gathered = fold(meta(), event("task_complete", error={"message": "boom", "codex_error_info": "other"}))
    [failure] = [change.event for change in gathered.events.values() if isinstance(change.event, ErrorEvent)]
    assert (failure.error_text, failure.kind) == ("boom", "other")


def test_a_rollback_removes_the_last_turns_from_the_active_branch() -> None:
    """R-S19: the lines stay, their messages are rewound."""
    first = (meta(), prompt("one"), answer("1"), prompt("two"), answer("2"), prompt("three"), answer("3"))
    for more, active in (((), ["one", "1"]), ((prompt("four"), answer("4")), ["one", "1", "four", "4"])):
        gathered = fold(*first, event("thread_rolled_back", num_turns=2), *more)
        [rewind] = [change.event for change in gathered.events.values() if isinstance(change.event, RewindEvent)]
        placements = {name: place for (_, name), place in gathered.placements.items()}
        assert rewind.to_message_id == gathered.in_order(SESSION)[1].id
        leaf = gathered.sessions[SESSION].active_leaf
        events = list(gathered.events.values())
        placed = place_messages(placements, events, messages_of_records(placements, events), leaf)
        standing = [message for message in gathered.in_order(SESSION) if placed[message.id].fate is Fate.ACTIVE]
        assert [part.text for message in standing for part in message.parts if isinstance(part, TextPart)] == active


def test_a_copy_in_a_fork_is_the_same_message() -> None:
    """R-C13: without ids, with new times, behind another header."""
    history = (CONTEXT, prompt("a"), answer("b"), token_count(counts(9, 0, 1, 0), counts(9, 0, 1, 0)))
    parent = fold(meta(), *history)
    later = "2026-11-21T11:00:00.000Z"
    own = (line("turn_context", {"turn_id": "01a1ffff-0000-7000-8000-000000000001"}), prompt("a"), answer("c"))
    header = meta(id=OTHER, timestamp=later, forked_from_id=THREAD)
    copy = gather(fold_bytes(AGENT, source(OTHER), header + b"".join((*history, *own)).replace(b"T10:00", b"T11:00")))
    assert set(parent.messages) < set(copy.messages)
    assert [place.copied for place in copy.placements.values()] == [True, True, False, False]
    assert len(copy.messages) == 4


# -- damage


def test_unknown_records_are_events_and_damaged_ones_diagnostics() -> None:
    """R-S34"""
    gathered = fold(meta(), line("news", {"a": 1}), event("news"), item("news"), b'{"type": "response_item", "payl\n')
    kinds = [change.event.kind for change in gathered.events.values() if isinstance(change.event, RecordEvent)]
    assert kinds == ["news", "event_msg/news", "response_item/news"]
    assert [found.severity for found in gathered.diagnostics] == ["error"]
    assert gathered.counts.unreadable == 1


def test_a_field_of_another_shape_changes_nothing_else() -> None:
    gathered = fold(
        meta(),
        prompt("a"),
        item("message", role="assistant", content=[{"type": "output_text", "text": "b"}], status={"odd": 1}),
    )
    assert texts(gathered) == ["a", "b"]
    assert [found.json_path for found in gathered.diagnostics] == ["$.payload.status"]


def test_a_thread_has_the_name_in_the_index() -> None:
    """R-C6: the last one; a thread without a log is none for its name alone."""
    index = Source(agent="codex", path="/x/session_index.jsonl", root="/x", kind=SourceKind.SIDECAR)
    data = b'{"id":"%s","thread_name":"old"}\n{"id":"%s","thread_name":"new"}\n' % (THREAD.encode(), THREAD.encode())
    changes = fold_bytes(AGENT, index, data)
    assert [(found.record_id, found.title) for found in changes.leaf_titles] == [(SESSION, "old"), (SESSION, "new")]
    assert (changes.sessions, changes.counts.events) == ({}, 2)


def test_the_marks_around_an_image_are_not_what_was_typed() -> None:
    texts = ['<image name=[Image #1] path="/tmp/pic.png">', "</image>", "What is on it?"]
    pieces = [{"type": "input_text", "text": text} for text in texts]
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    content = [pieces[0], image, *pieces[1:]]
    gathered = fold(meta(), item("message", role="user", content=content))
    [parts] = [found.parts for found in gathered.messages.values() if found.origin is Origin.PROMPT]
    assert [part.is_synthetic for part in parts if isinstance(part, TextPart)] == [True, True, False]
    assert gathered.sessions[SESSION].titles == {"prompt": "What is on it?"}


def test_events_of_another_thread_are_not_this_ones() -> None:
    """R-C4: a review is a thread of its own, and the log that asked for it hears all that it does."""
    heard = [
        {"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": "Review it"}]},
        {"type": "Reasoning", "id": "rs_1", "summary_text": ["Hm"]},
        {"type": "CommandExecution", "id": "c1", "command": ["git", "diff"], "aggregated_output": "x", "exit_code": 0},
        {"type": "AgentMessage", "id": "msg_1", "content": [{"type": "Text", "text": "found"}]},
    ]
    told = [event("item_completed", item=item, thread_id=OTHER) for item in heard]
    gathered = fold(meta(), prompt("a"), *told, answer("b"))
    assert texts(gathered) == ["a", "b"]
    found = [change.event for change in gathered.events.values() if isinstance(change.event, RecordEvent)]
    assert [(record.kind, record.known) for record in found] == [
        (f"event_msg/item_completed/{item['type']}", True) for item in heard
    ]


def test_a_prompt_during_a_review_is_the_reviewers() -> None:
    """R-C4: up to 0.14x; a rollback does not count it either."""
    gathered = fold(
        meta(),
        prompt("a"),
        answer("b"),
        event("entered_review_mode", user_facing_hint="Review it"),
        event("user_message", message="Review it"),
        event("exited_review_mode"),
        prompt("c"),
        event("thread_rolled_back", num_turns=1),
        prompt("d"),
    )
    assert texts(gathered) == ["a", "b", "c", "d"]
    (rewind,) = [change.event for change in gathered.events.values() if isinstance(change.event, RewindEvent)]
    assert rewind.to_message_id == gathered.in_order(SESSION)[1].id


def test_the_same_words_before_and_after_a_compaction_are_two_messages() -> None:
    """R-C4: within one turn, where messages have no ids."""
    summary = line("compacted", {"message": "They said hi."})
    gathered = fold(meta(), prompt("a"), answer("Go on."), summary, answer("Go on."), summary, answer("Go on."))
    assert texts(gathered) == ["a", "Go on.", "They said hi.", "Go on.", "They said hi.", "Go on."]


def review(*heard: bytes) -> tuple[bytes, ...]:
    """What stands between the beginning and the end of a review, and those."""
    return (event("entered_review_mode"), *heard, event("exited_review_mode"))


def test_events_of_a_reviewing_thread_are_only_in_its_own_log() -> None:
    """R-C5: from 0.5x to 0.14x its tokens were told here too, by its own totals."""
    first, second, reviewed = counts(100, 0, 20, 0), counts(200, 0, 40, 0), counts(70, 0, 7, 0)
    asked = event("user_message", message="Review it")
    gathered = fold(
        meta(),
        prompt("a"),
        answer("b"),
        token_count(first, first),
        *review(asked, asked, event("agent_reasoning", text="Hm"), token_count(reviewed, reviewed)),
        prompt("c"),
        token_count(first, first),
        answer("d"),
        token_count(second, first),
    )
    assert texts(gathered) == ["a", "b", "c", "d"]
    assert [message.usage.total for message in answers(gathered) if message.usage is not None] == [120, 120]


def test_a_review_in_the_thread_itself_is_shown_and_billed_here() -> None:
    """R-C5: up to 0.49 nothing but events tells of it, and the totals go on."""
    first, second = counts(100, 0, 20, 0), counts(200, 0, 40, 0)
    heard = review(token_count(first, first), event("agent_reasoning", text="Hm"), token_count(second, first))
    gathered = fold(meta(), prompt("a"), answer("b"), token_count(first, first), *heard, prompt("c"))
    assert texts(gathered) == ["a", "b", "Hm", "c"]
    assert [message.usage.total for message in answers(gathered) if message.usage is not None] == [120, 120]


def test_a_review_that_was_killed_ends_where_the_thread_goes_on() -> None:
    asked = event("user_message", message="Review it")
    gathered = fold(
        meta(), prompt("a"), event("entered_review_mode"), asked, prompt("b"), event("agent_message", message="c")
    )
    assert texts(gathered) == ["a", "b", "c"]


def test_an_image_that_a_tool_attached_is_no_prompt() -> None:
    """R-C4: up to about 0.9x it followed the outputs, as a message of the user's role."""
    image = item("message", role="user", content=[{"type": "input_image", "image_url": "data:image/png;base64,aGk="}])
    seen = "attached local image path"
    gathered = fold(
        meta(), prompt("a"), call("c1", "view_image"), output("c1", seen), call("c2"), output("c2", "x"), image, image
    )
    origins = [message.origin for message in gathered.in_order(SESSION) if message.role != "assistant"]
    assert origins == [Origin.PROMPT, Origin.HARNESS, Origin.PROMPT]


def test_a_response_continues_after_an_output_if_tokens_come_first() -> None:
    """R-C3: up to about 0.4x each call is written with its output, and `turn_context` is the border."""
    first, second = counts(100, 0, 20, 0), counts(200, 0, 40, 0)
    gathered = fold(
        meta(),
        prompt("a"),
        token_count(first, first),
        *(call("c1"), output("c1", "x"), item("reasoning", summary=[{"type": "summary_text", "text": "Hm"}])),
        *(call("c2"), output("c2", "y"), answer("b")),
        line("turn_context", {"model": "m"}),
        token_count(second, first),
        answer("c"),
    )
    assert [len(message.parts) for message in answers(gathered)] == [4, 1]


def test_an_attempt_that_broke_off_is_a_message_of_its_own() -> None:
    """R-C3: its totals are those of before."""
    told = counts(100, 0, 20, 0)
    gathered = fold(
        meta(history_mode="paginated"),
        prompt("a"),
        answer("b"),
        usage_record("r1", told),
        token_count(told, told),
        answer("Part of"),
        token_count(told, counts(0, 0, 0, 0)),
        answer("c"),
        usage_record("r2", told),
    )
    assert texts(gathered) == ["a", "b", "Part of", "c"]
    assert [message.usage is not None for message in answers(gathered)] == [True, False, True]


def test_a_call_without_an_output_is_aborted_when_the_next_response_begins() -> None:
    """R-K9: up to about 0.9x a response that broke off was logged with calls that nobody ran."""
    context = line("turn_context", {"model": "m"})
    gathered = fold(meta(), prompt("a"), context, call("c1"), context, call("c2"), output("c2", "x"), answer("b"))
    states = [part.state for message in answers(gathered) for part in message.parts if isinstance(part, ToolCallPart)]
    assert states == [ToolState.ABORTED, ToolState.OUTPUT_AVAILABLE]


def test_a_summary_has_the_tokens_before_it() -> None:
    """R-C5: up to 0.14x no item told the summary, only its tokens and `compacted`."""
    first, second = counts(100, 0, 20, 0), counts(300, 0, 30, 0)
    told = [token_count(first, first), token_count(second, None), token_count(second, counts(0, 0, 0, 0))]
    gathered = fold(meta(), prompt("a"), answer("b"), *told, line("compacted", {"message": "They said b."}))
    assert [message.origin for message in answers(gathered)] == [None, Origin.COMPACTION]
    assert [message.usage.total for message in answers(gathered) if message.usage is not None] == [120, 210]
    assert texts(gathered) == ["a", "b", "They said b."]


def test_the_text_in_place_of_the_spawning_output_is_the_subagents_own() -> None:
    """R-C4: the message of the call is the parent's as well, and there it has the parent's output."""
    own, told = "01a1fbaa-0000-7000-8000-000000000009", "You are the newly spawned agent. The history was forked."
    source_of = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD}}}
    copied = (meta(), prompt("a"), call("c1", "spawn_agent"))
    parent = fold_bytes(AGENT, source(), b"".join((*copied, output("c1", '{"agent_id": "x"}'))))
    facts = {"id": own, "forked_from_id": THREAD, "source": source_of}
    child = fold_bytes(AGENT, source(own), b"".join((meta(**facts), *copied, output("c1", told), prompt("b"))))
    gathered = gather(parent, child)
    (spawning,) = [part for message in answers(gathered) for part in message.parts if isinstance(part, ToolCallPart)]
    assert [result.output_text for result in spawning.results] == ['{"agent_id": "x"}']
    said = [(message.role, message.origin) for message in gathered.in_order(f"codex:{own}")]
    assert said[-2:] == [("developer", Origin.HARNESS), ("user", Origin.SUBAGENT_PROMPT)]


def test_a_command_belongs_to_the_code_that_was_running_when_it_began() -> None:
    """R-C3: code runs in turn, and a command may end when other code runs, or none."""

    def code(call_id: str, at: str) -> bytes:
        return item("custom_tool_call", at, name="exec", input="", call_id=call_id)

    def done(call_id: str, at: str) -> bytes:
        return item("custom_tool_call_output", at, call_id=call_id, output="Script completed")

    def ran(name: str, began: int) -> bytes:
        told = {"type": "CommandExecution", "id": name, "command": [name], "exit_code": 0, "aggregated_output": ""}
        return event("item_completed", item=told, started_at_ms=_MILLISECONDS + began)

    minute = "2026-11-21T10:00:0"
    gathered = fold(
        *(meta(), prompt("a"), code("c1", f"{minute}1Z"), code("c2", f"{minute}1Z"), ran("first", 1100)),
        *(done("c1", f"{minute}2Z"), ran("second", 2100), done("c2", f"{minute}3Z")),
        *(code("c3", f"{minute}4Z"), ran("late", 2500), ran("third", 4100), done("c3", f"{minute}5Z")),
    )
    calls = [part for message in answers(gathered) for part in message.parts if isinstance(part, ToolCallPart)]
    parents = {call.tool_call_id: call.parent_tool_call_id for call in calls if call.parent_tool_call_id}
    assert parents == {"first": "c1", "second": "c2", "late": "c2", "third": "c3"}


def test_prompts_kept_by_a_compaction_are_found_by_their_text() -> None:
    """R-C5: up to 0.15x they have none or new ones; of prompts of the same words as many as were kept, the newest."""
    kept = [
        {"type": "message", "role": "user", "id": name, "content": [{"type": "input_text", "text": text}]}
        for name, text in ((None, "b"), ("msg_new", "b"), (None, "S"))
    ]
    summary = line("compacted", {"message": "S", "replacement_history": kept})
    said = [told for text in ("a", "b", "b", "b") for told in (prompt(text), answer(f"to {text}"))]
    gathered = fold(meta(), *said, summary, prompt("c"))
    (compaction,) = [found.event for found in gathered.events.values() if isinstance(found.event, CompactionEvent)]
    told = [message.id for message in gathered.in_order(SESSION) if message.role == "user"]
    assert [name for name in told if name in compaction.kept_message_ids] == told[2:4]
