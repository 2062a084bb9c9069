"""R-K12 to R-K20: what a screen gets of a history."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from support.replay_values import answer, call, image, interrupt, kinds, message, placed, result, user
from turnlog import read_session
from turnlog.model import (
    CompactionEvent,
    Cost,
    ErrorEvent,
    Fate,
    FilePart,
    HistoryEvent,
    Membership,
    MessageError,
    MessageEvent,
    ReasoningPart,
    RecordEvent,
    ResultStatus,
    RewindEvent,
    RunMetadataEvent,
    TextPart,
    ToolCallPart,
    ToolResult,
    Usage,
)
from turnlog.replay import (
    AnswerShown,
    DeveloperShown,
    ErrorShown,
    ImageShown,
    InterruptShown,
    ResponseMetadata,
    RewindShown,
    RunMetadataShown,
    ToolCallShown,
    ToolResultShown,
    UserShown,
    replay,
    response_metadata_of,
)

DATA = Path(__file__).parent.parent / "data"
KLAUDE = DATA / "klaude/versions/2.43.0/projects/home-dev-project/sessions"


def test_users_and_developers_are_shown_with_their_images() -> None:
    """R-K12"""
    picture, notes = image(), FilePart(media_type="text/plain", filename="notes.txt", data=b"x")
    typed, put_in = replay([user("look", picture, "here", notes), message("d", "developer", "be kind", picture)])
    assert typed == UserShown(message_id="u", text="look\nhere", images=(picture,), files=(notes,))
    assert put_in == DeveloperShown(message_id="d", text="be kind", images=(picture,))


def test_system_messages_are_not_shown() -> None:
    """R-K12"""
    assert replay([message("s", "system", "You are helpful.")]) == []


def test_an_answer_is_one_event_with_all_of_its_text() -> None:
    """R-K13"""
    shown = replay([user("go"), answer("one ", ReasoningPart(text="hm"), "two", call("c"), "\nthree", model="large")])
    assert kinds(shown) == ["user", "turn-start", "assistant", "tool-call"]
    assert shown[2] == AnswerShown(message_id="a", text="one two\nthree", reasoning="hm", model="large")


def test_an_answer_without_text_is_an_event_too() -> None:
    """R-K13"""
    assert kinds(replay([answer(call("c"))])) == ["turn-start", "assistant", "tool-call"]


def test_images_come_before_the_answer_they_are_in() -> None:
    """R-K14"""
    shown = replay([answer("see ", image("a.png"), "both", image("b.png"))])
    assert kinds(shown) == ["turn-start", "image", "image", "assistant"]
    assert [event.image.filename for event in shown if isinstance(event, ImageShown)] == ["a.png", "b.png"]


@pytest.mark.parametrize("arguments", ['{"b": 1,\n  "a": 1.50}', "[1, 2]", '""'])
def test_arguments_are_exactly_what_the_model_wrote(arguments: str) -> None:
    """R-K15"""
    (shown,) = [event for event in replay([answer(call("c", arguments))]) if isinstance(event, ToolCallShown)]
    assert (shown.tool_call_id, shown.tool_name, shown.arguments) == ("c", "Bash", arguments)


@pytest.mark.parametrize("arguments", ["", "{broken", "plain text"])
def test_arguments_that_are_no_json_are_shown_as_they_are(arguments: str) -> None:
    """R-K15"""
    part = ToolCallPart(tool_call_id="c", tool_name="Bash", input_text=arguments)
    (shown,) = [event for event in replay([answer(part)]) if isinstance(event, ToolCallShown)]
    assert shown.arguments == arguments


@pytest.mark.parametrize(
    ("outcome", "status"), [("success", "success"), ("error", "error"), ("aborted", "error"), ("denied", "error")]
)
def test_a_result_has_its_text_and_one_of_two_statuses(outcome: ResultStatus, status: str) -> None:
    """R-K16"""
    content = (TextPart(text="one"), image(), TextPart(text="two"))
    extras: dict[str, Any] = {
        "structured": Raw(b'{"type":"diff"}'),
        "metadata": {"klaude": {"side": 1}},
        "exit_code": 2,
    }
    (shown,) = [
        event
        for event in replay([answer(call("c")), result("c", outcome, *content, **extras)])
        if isinstance(event, ToolResultShown)
    ]
    assert (shown.result, shown.status, shown.outcome) == ("one\ntwo", status, outcome)
    assert (shown.structured, shown.metadata, shown.exit_code) == (Raw(b'{"type":"diff"}'), extras["metadata"], 2)
    assert (shown.images, shown.tool_name, shown.message_id) == ((image(),), "Bash", "a")


def test_parallel_calls_come_before_their_results() -> None:
    """R-K15, R-K16"""
    history = [answer(call("one"), call("two")), result("two"), result("one")]
    assert kinds(replay(history)) == ["turn-start", "assistant", "tool-call", "tool-call", "tool-result", "tool-result"]


def test_results_that_came_with_their_calls_come_after_all_calls() -> None:
    """R-K16"""
    answered = ToolCallPart(tool_call_id="c", tool_name="search", results=(ToolResult(id="r"),))
    assert kinds(replay([answer(answered, call("d"))])) == [
        "turn-start",
        "assistant",
        "tool-call",
        "tool-call",
        "tool-result",
    ]


ABORTED = {"stop_reason": "aborted"}

INTERRUPTED: dict[str, tuple[list[HistoryEvent], str]] = {
    "answer": ([answer("half", **ABORTED)], "assistant interrupt!"),
    "answer with a call": ([answer(call("c"), **ABORTED)], "assistant tool-call interrupt!"),
    "answer, at the end of its turn": (
        [answer(call("c"), **ABORTED), result("c"), RunMetadataEvent(id="t", kind="task")],
        "assistant tool-call tool-result interrupt! run-metadata",
    ),
    "result": ([answer(call("c")), result("c", "aborted")], "assistant tool-call tool-result interrupt!"),
    "result before others": (
        [answer(call("c"), call("d")), result("c", "aborted"), result("d")],
        "assistant tool-call tool-call tool-result interrupt! tool-result",
    ),
    "two results": (
        [answer(call("c"), call("d")), result("c", "aborted"), result("d", "aborted")],
        "assistant tool-call tool-call tool-result tool-result interrupt!",
    ),
    "answer and result": (
        [answer(call("c"), **ABORTED), result("c", "aborted")],
        "assistant tool-call tool-result interrupt!",
    ),
    "record": ([answer("half", **ABORTED), interrupt()], "assistant interrupt"),
    "result and record": (
        [answer(call("c")), result("c", "aborted"), RecordEvent(id="r", kind="x"), interrupt()],
        "assistant tool-call tool-result interrupt",
    ),
    "record before the result": (
        [answer(call("c")), interrupt(), result("c", "aborted")],
        "assistant tool-call interrupt tool-result",
    ),
    "two records": ([answer("half"), interrupt("one", derived=True), interrupt("two")], "assistant interrupt"),
    "record that names an earlier answer": (
        [answer("half", **ABORTED), user("stop"), interrupt(message_id="a")],
        "assistant user interrupt",
    ),
    "result that is late": (
        [answer(call("c"), **ABORTED), user("so?"), result("c", "aborted")],
        "assistant tool-call interrupt! user tool-result",
    ),
    "call that ran on in the background": (
        [answer(call("c")), result("c"), answer("done", id="b"), result("c", "aborted")],
        "assistant tool-call tool-result turn-start assistant tool-result",
    ),
    "call that was launched and ended later": (
        [answer(call("c")), result("c", preliminary=True), answer("done", id="b"), result("c", "aborted")],
        "assistant tool-call tool-result turn-start assistant tool-result",
    ),
    "call that had told of its progress": (
        [answer(call("c")), result("c", preliminary=True), result("c", "aborted")],
        "assistant tool-call tool-result tool-result interrupt!",
    ),
    "twice": (
        [answer("half", **ABORTED), user("again"), answer("half", id="b", **ABORTED)],
        "assistant interrupt! user turn-start assistant interrupt!",
    ),
    "nothing": ([answer(call("c"), stop_reason="tool_use"), result("c", "error")], "assistant tool-call tool-result"),
}


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interruption_is_shown_once_and_in_its_place(name: str) -> None:
    """R-K17, R-K9: an exclamation mark says that no record has it."""
    history, expected = INTERRUPTED[name]
    shown = replay(history)[1:]
    words = [
        f"{kind}!" if isinstance(event, InterruptShown) and event.derived else kind
        for event, kind in zip(shown, kinds(shown), strict=True)
    ]
    assert " ".join(words) == expected


def test_the_certain_record_of_an_interruption_is_shown() -> None:
    """R-K17"""
    shown = replay([answer("half"), interrupt("one", derived=True), interrupt("two", position=7)])
    assert [event.position for event in shown if isinstance(event, InterruptShown)] == [7]


TURNS: dict[str, tuple[list[HistoryEvent], str]] = {
    "nothing": ([answer("a")], "turn-start assistant"),
    "user": ([user("u"), answer("a")], "user turn-start assistant"),
    "developer": ([answer("a"), message("d", "developer", "d"), answer("b")], "developer turn-start assistant"),
    "tool": ([answer(call("c")), result("c"), answer("b")], "tool-call tool-result turn-start assistant"),
    "assistant": ([answer("a"), answer("b")], "assistant assistant"),
    "system": ([message("s", "system", "s"), answer("a")], "assistant"),
    "error": ([user("u"), ErrorEvent(id="e", error_text="no"), answer("a")], "user error assistant"),
    "facts": (
        [user("u"), RunMetadataEvent(id="m", kind="mode"), answer("a")],
        "user run-metadata turn-start assistant",
    ),
    "facts between answers": (
        [answer("a"), RunMetadataEvent(id="m", kind="mode"), answer("b")],
        "assistant run-metadata assistant",
    ),
}


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_starts_where_the_model_was_given_something(name: str) -> None:
    """R-K18"""
    history, expected = TURNS[name]
    assert " ".join(kinds(replay(history))).endswith(expected)
    assert name != "system" or kinds(replay(history)) == ["assistant"]


def test_errors_and_facts_are_shown() -> None:
    """R-K19"""
    failed = answer("sorry", error=MessageError(text="overloaded", kind="api", status=529))
    error, fact = (
        ErrorEvent(id="e", error_text="lost", kind="stream"),
        RunMetadataEvent(id="m", kind="TaskMetadataItem", data=Raw(b'{"cost":1}')),
    )
    shown = replay([error, fact, failed])
    assert shown[0] == ErrorShown(error_text="lost", kind="stream")
    assert shown[1] == RunMetadataShown(kind="TaskMetadataItem", data=Raw(b'{"cost":1}'))
    assert shown[-1] == ErrorShown(message_id="a", error_text="overloaded", kind="api", status=529)


def test_a_response_has_its_metadata_where_it_is_wanted() -> None:
    """R-K20"""
    usage, cost = Usage(input=3, output=5), Cost(amount=Decimal("0.5"))
    reported = answer("hi", usage=usage, stop_reason="stop", raw_stop_reason="end_turn", cost=cost, response_id="r")
    assert kinds(replay([reported])) == ["turn-start", "assistant"]
    shown = replay([reported, answer("silent", id="b")], response_metadata=True)
    assert kinds(shown) == ["turn-start", "assistant", "response-metadata", "assistant"]
    assert shown[2] == ResponseMetadata(
        message_id="a", usage=usage, stop_reason="stop", raw_stop_reason="end_turn", cost=cost, response_id="r"
    )
    assert shown[2] == response_metadata_of(reported.message)
    assert response_metadata_of(user("hi").message) is None


def test_compactions_and_rewinds_are_marks_and_other_records_are_not_shown() -> None:
    history = [
        CompactionEvent(id="c", trigger="auto", tokens_before=9),
        RewindEvent(id="r", to_message_id="u"),
        RecordEvent(id="x", kind="hologram"),
    ]
    compaction, rewind = replay(history)
    assert kinds([compaction]) == ["compaction"]
    assert rewind == RewindShown(message_id="u")


def test_turn_step_and_fate_are_the_sessions_own_on_every_event() -> None:
    """R-K12 to R-K19: a page of a replay has the numbers that the whole has."""

    def member(event: MessageEvent, turn: int, step: int | None, fate: Fate = Fate.ACTIVE) -> MessageEvent:
        place = Membership(session_id="s", message_id=event.message.id, position=0, turn=turn, step=step, fate=fate)
        return MessageEvent(message=event.message, membership=place)

    history = [
        member(user("go"), 4, None),
        member(answer(call("c")), 4, 1, Fate.REWOUND),
        member(message("v", "user", "next"), 5, None),
        result("c", "aborted"),
        ErrorEvent(id="e", error_text="no"),
    ]
    shown = replay(placed(history))
    assert [(kind, event.turn, event.step, event.fate) for kind, event in zip(kinds(shown), shown, strict=True)] == [
        ("user", 4, None, Fate.ACTIVE),
        ("turn-start", 4, 1, Fate.REWOUND),
        ("assistant", 4, 1, Fate.REWOUND),
        ("tool-call", 4, 1, Fate.REWOUND),
        ("user", 5, None, Fate.ACTIVE),
        ("tool-result", 4, 1, Fate.REWOUND),
        ("interrupt", 4, 1, Fate.REWOUND),
        ("error", 5, None, Fate.ACTIVE),
    ]
    assert [event.position for event in shown] == [0, 1, 1, 1, 2, 3, 3, 4]


def test_more_of_a_history_changes_nothing_that_was_shown() -> None:
    for log in sorted(KLAUDE.glob("*/events.jsonl")):
        events = read_session(log).events
        whole = replay(events)
        for end, event in enumerate(events):
            if isinstance(event, MessageEvent) and event.message.role in ("user", "assistant"):
                part = replay(events[:end])
                assert part == whole[: len(part)]


@pytest.mark.parametrize("version", ["1.9.0", "2.0.0", "2.43.0"])
def test_a_recorded_session_shows_each_call_with_its_result(version: str) -> None:
    """R-K12 to R-K19"""
    logs = sorted((DATA / "klaude/versions" / version).rglob("events.jsonl"))
    assert logs
    for log in logs:
        session = read_session(log)
        shown = replay(session.events)
        answers = [found for found in session.messages if found.role == "assistant"]
        calls = {event.tool_call_id for event in shown if isinstance(event, ToolCallShown)}
        assert kinds(shown).count("assistant") == len(answers)
        assert calls == {event.tool_call_id for event in shown if isinstance(event, ToolResultShown)}
        assert [event.position for event in shown] == sorted(event.position for event in shown)
