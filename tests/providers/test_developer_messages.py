"""Developer messages become part of what precedes them (R-K22)."""

from datetime import UTC, datetime

import pytest

from support.provider_messages import assistant, call, developer, image, result, user
from turnlog.model import FilePart, Message, Origin, Part, TextPart, ToolCallPart
from turnlog.providers.base import Report
from turnlog.providers.repair import attach_developer_messages


def attached(*messages: Message) -> list[tuple[str, list[str]]]:
    """Role and contents of each message; a call's contents are its result's."""
    made, leading = attach_developer_messages(messages, Report())
    assert leading == []
    return [(message.role, [word for part in message.parts for word in words(part)]) for message in made]


def words(part: Part) -> list[str]:
    if isinstance(part, ToolCallPart):
        return [f"= {word}" for found in part.results for inner in found.content for word in words(inner)]
    return [part.text if isinstance(part, TextPart) else part.type]


def test_to_the_user_message_before_it() -> None:
    assert attached(user("q"), developer("one", image()), developer("two"), assistant("a")) == [
        ("user", ["q", "one\n", "file", "two\n"]),
        ("assistant", ["a"]),
    ]


def test_to_the_last_result_before_it() -> None:
    history = [user("q"), assistant(call("c1", result("1")), call("c2", result("2"))), developer("remember", image())]
    assert attached(*history)[1] == ("assistant", ["= 1", "= 2", "= remember\n", "= file"])


def test_past_an_answer_back_to_the_user() -> None:
    assert attached(user("q"), assistant("a"), developer("late"), user("next")) == [
        ("user", ["q", "late\n"]),
        ("assistant", ["a"]),
        ("user", ["next"]),
    ]


@pytest.mark.parametrize(
    "metadata", [{"attachment_position": "prepend"}, {"klaude": {"attachment_position": "prepend"}}]
)
def test_in_front_where_the_agent_says_so(metadata: dict[str, object]) -> None:
    assert attached(user("q"), developer("before", metadata=metadata), developer("after")) == [
        ("user", ["before\n", "q", "after\n"])
    ]


def test_in_front_of_a_result_in_the_order_they_came() -> None:
    before = {"attachment_position": "prepend"}
    history = [
        user("q"),
        developer("one", metadata=before),
        developer("two", image(), metadata=before),
        assistant(call("c1", result("1")), call("c2", result("2"))),
        developer("after"),
        developer("three", metadata=before),
        developer("four", metadata=before),
    ]
    assert attached(*history) == [
        ("user", ["one\n", "two\n", "file", "q"]),
        ("assistant", ["= 1", "= three\nfour\n", "= 2", "= after\n"]),
    ]


@pytest.mark.parametrize(("seconds", "last"), [((2, 1), 0), ((1, 2), 1), ((1, 1), 1), ((2, None), 1)])
def test_to_the_result_that_came_last(seconds: tuple[int | None, ...], last: int) -> None:
    """Parallel calls end in any order."""
    times = [None if second is None else datetime(2026, 11, 21, second=second, tzinfo=UTC) for second in seconds]
    calls = [call(f"c{place}", result("r", completed_at=time)) for place, time in enumerate(times)]
    (_, words_of_calls) = attached(user("q"), assistant(*calls), developer("late"))[1]
    assert words_of_calls == [["= r", "= late\n", "= r"], ["= r", "= r", "= late\n"]][last]


def test_not_to_what_the_provider_itself_ran() -> None:
    search = call("c1", result("1"), provider_executed=True)
    assert attached(user("q"), assistant(search), developer("late"))[0] == ("user", ["q", "late\n"])


@pytest.mark.parametrize("origin", [Origin.COMPACTION, Origin.NOTIFICATION])
def test_what_the_model_is_to_answer_is_the_user_s(origin: Origin) -> None:
    assert attached(user("q"), assistant("a"), developer("told", origin=origin), assistant("b"))[2] == (
        "user",
        ["told"],
    )


def test_what_made_the_model_go_on_is_the_user_s() -> None:
    go_on = developer("go on", origin=Origin.HARNESS)
    assert attached(user("q"), assistant("a"), go_on, assistant("b"))[2] == ("user", ["go on"])
    assert attached(user("q"), assistant("a"), go_on, user("next"))[0] == ("user", ["q", "go on\n"])
    assert attached(user("q"), assistant(call("c1", result("1"))), go_on, assistant("b"))[1][1] == ["= 1", "= go on\n"]


def test_leading_text_becomes_the_system_s_and_is_reported() -> None:
    report = Report()
    made, leading = attach_developer_messages([developer("first", id="d1"), developer(" "), user("q")], report)
    assert leading == ["first"]
    assert made == [user("q")]
    assert [(repair.kind, repair.message_id) for repair in report.repairs] == [
        ("leading-developer", "d1"),
        ("leading-developer", "d"),
    ]


def test_leading_images_are_the_first_user_s() -> None:
    made, leading = attach_developer_messages([developer("see", image()), assistant("a"), user("q")], Report())
    assert leading == ["see"]
    assert [type(part) for part in made[1].parts] == [FilePart, TextPart]
    alone, _ = attach_developer_messages([developer(image())], Report())
    assert [message.role for message in alone] == ["user"]
