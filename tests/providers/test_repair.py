"""The one repair: whatever interrupts and damage left behind becomes a history that every API takes."""

from typing import Any

import pytest

from support.provider_messages import asking, assistant, call, developer, image, result, system, thinking, user
from turnlog.model import Message, MessageError, Origin, TextPart, ToolCallPart
from turnlog.providers.base import Report
from turnlog.providers.repair import Repaired, RequestRules, repair


def repaired(*messages: Message, rules: RequestRules | None = None, **options: Any) -> tuple[Repaired, list[str]]:
    """The repaired history, and the kinds of repairs."""
    report = Report()
    made = repair(messages, rules or RequestRules(), asking(**options), report)
    assert report.losses == []
    return made, [found.kind for found in report.repairs]


def only_call(made: Repaired) -> ToolCallPart:
    (found,) = [part for message in made.messages for part in message.parts if isinstance(part, ToolCallPart)]
    return found


def texts(made: Repaired) -> list[list[str]]:
    return [[part.text for part in message.parts if isinstance(part, TextPart)] for message in made.messages]


def test_what_is_in_order_stays_as_it_is() -> None:
    history = (user("q", image()), assistant(thinking("hm"), "a", call("c1", result("r"))), assistant("b", id="a2"))
    assert repaired(*history) == (Repaired(system=(), messages=history), [])


def test_an_unanswered_call_gets_a_result_that_says_so() -> None:
    made, kinds = repaired(user("q"), assistant(call("c1"), call("c2", result("r"))), aborted_result="stopped")
    first, second = made.messages[1].parts
    assert isinstance(first, ToolCallPart)
    assert isinstance(second, ToolCallPart)
    assert [(found.status, found.output_text) for found in first.results] == [("aborted", "stopped")]
    assert second.output_text == "r"
    assert kinds == ["unanswered-call"]


def test_the_same_result_twice_is_sent_once() -> None:
    made, kinds = repaired(user("q"), assistant(call("c1", result("r", id="r1"), result("r", id="r2"))))
    assert only_call(made).output_text == "r"
    assert kinds == ["duplicate-result"]


def test_several_answers_become_one_in_order() -> None:
    made, kinds = repaired(user("q"), assistant(call("c1", result("one"), result("two", status="error"))))
    answer = only_call(made).results
    assert [(found.status, found.output_text) for found in answer] == [("error", "one\ntwo")]
    assert kinds == ["joined-results"]


@pytest.mark.parametrize("superseded", [{"status": "aborted"}, {"preliminary": True}])
def test_the_outcome_counts(superseded: dict[str, Any]) -> None:
    made, kinds = repaired(user("q"), assistant(call("c1", result("at first", **superseded), result("in the end"))))
    assert only_call(made).output_text == "in the end"
    assert kinds == ["superseded-result"]


def test_of_two_aborts_the_first_was_sent() -> None:
    made, kinds = repaired(
        user("q"), assistant(call("c1", result("stopped", status="aborted"), result("later", status="aborted")))
    )
    assert only_call(made).output_text == "stopped"
    assert kinds == ["superseded-result"]


def test_a_report_that_a_message_has_is_not_reported_twice() -> None:
    task = call("c1", result("launched", preliminary=True), result("the report"))
    report = developer("<task>the report</task>", origin=Origin.NOTIFICATION)
    made, kinds = repaired(user("q"), assistant(task), assistant("waiting"), report, assistant("I see"))
    assert only_call(made).results[0].output_text == "launched"
    assert made.messages[3].role == "user"
    assert texts(made)[3] == ["<task>the report</task>"]
    assert kinds == ["superseded-result"]


def test_an_outcome_that_says_nothing_does_not_count() -> None:
    made, kinds = repaired(user("q"), assistant(call("c1", result("launched", preliminary=True), result())))
    assert only_call(made).results[0].output_text == "launched"
    assert kinds == ["superseded-result"]


def test_progress_without_an_outcome_is_the_answer() -> None:
    made, _ = repaired(user("q"), assistant(call("c1", result("1", preliminary=True), result("2", preliminary=True))))
    assert only_call(made).results[0].output_text == "2"


@pytest.mark.parametrize("answer", [result(), result(""), result(" \n")])
def test_an_empty_result_says_that_it_is_empty(answer: Any) -> None:
    made, kinds = repaired(user("q"), assistant(call("c1", answer)), empty_result="nothing")
    assert only_call(made).output_text == "nothing"
    assert kinds == ["empty-result"]


@pytest.mark.parametrize(
    ("status", "wording"), [("denied", "no"), ("aborted", "stopped"), ("success", "nothing"), ("error", "nothing")]
)
def test_a_tool_that_did_not_run_is_not_sent_as_one_without_output(status: Any, wording: str) -> None:
    made, kinds = repaired(
        user("q"),
        assistant(call("c1", result(status=status))),
        empty_result="nothing",
        aborted_result="stopped",
        denied_result="no",
    )
    assert only_call(made).output_text == wording
    assert kinds == ["empty-result"]


def test_a_result_without_content_says_its_error() -> None:
    made, kinds = repaired(user("q"), assistant(call("c1", result(status="error", error_text="boom"))))
    assert (only_call(made).output_text, kinds) == ("boom", [])


def test_the_same_call_is_sent_once() -> None:
    twice = call("c1", result("r"))
    made, kinds = repaired(user("q"), assistant("a", twice), assistant("b", twice, id="a2"))
    assert only_call(made).output_text == "r"
    assert kinds == ["duplicate-call"]


def test_ids_are_made_unique_and_fit_the_api() -> None:
    rules = RequestRules(call_id_characters="a-z0-9_", call_id_length=20)
    one = call("functions.bash:0", result("1"))
    other = call("c1", result("2"))
    another = ToolCallPart(tool_call_id="c1", tool_name="Bash", results=(result("3"),))
    made, kinds = repaired(user("q"), assistant(one, other), assistant(another, id="a2"), rules=rules)
    ids = [part.tool_call_id for message in made.messages for part in message.parts if isinstance(part, ToolCallPart)]
    assert len(set(ids)) == 3
    assert ids[1] == "c1"
    assert all(len(call_id) <= 20 and call_id.replace("_", "").isalnum() for call_id in ids)
    assert kinds == ["renamed-call", "renamed-call"]
    assert repaired(user("q"), assistant(one, other), assistant(another, id="a2"), rules=rules)[0] == made


def test_names_fit_the_api() -> None:
    made, kinds = repaired(user("q"), assistant(call("c1", result("r"), name="mcp.tool/é")))
    assert (only_call(made).tool_name, kinds) == ("mcp_tool__", ["renamed-tool"])
    assert only_call(repaired(user("q"), assistant(call("c1", result("r"), name="")))[0]).tool_name == "unknown"


def test_messages_that_say_nothing_are_left_out() -> None:
    made, kinds = repaired(user(""), user("q", " "), assistant(), assistant(thinking(" ")), assistant("", "a"))
    assert texts(made) == [["q"], ["a"]]
    assert kinds == ["empty-message", "blank-part", "empty-message", "empty-message", "blank-part"]


def test_a_withheld_thought_is_not_nothing() -> None:
    made, _ = repaired(user("q"), assistant(thinking("", "anthropic", signature="s"), "a"))
    assert len(made.messages[1].parts) == 2


def test_what_no_model_said_is_left_out() -> None:
    failed = assistant("API Error: 529", error=MessageError(text="API Error: 529 overloaded"))
    filler = assistant("No response requested.", origin=Origin.HARNESS)
    cut = assistant("half an answer", error=MessageError(text="connection lost"))
    made, kinds = repaired(user("q"), failed, filler, cut)
    assert texts(made) == [["q"], ["half an answer"]]
    assert kinds == ["failed-answer", "failed-answer"]


def test_the_system_prompt_appears_apart_and_once() -> None:
    made, kinds = repaired(system("one"), user("q"), system("two"), system("one"), assistant("a"))
    assert made.system == ("one", "two")
    assert kinds == ["system-moved", "system-repeated"]


def test_the_callers_system_prompt_takes_the_place_of_the_history_s() -> None:
    made, kinds = repaired(system("one"), user("q"), system="mine")
    assert (made.system, kinds) == (("mine",), ["system-repeated"])


def test_an_api_that_begins_with_the_user_gets_one() -> None:
    made, kinds = repaired(assistant("a"), user("q"), rules=RequestRules(begins_with_user=True))
    assert [message.role for message in made.messages] == ["user", "assistant", "user"]
    assert kinds == ["first-user"]
    assert repaired(assistant("a"))[1] == []
    assert repaired(rules=RequestRules(begins_with_user=True)) == (Repaired(system=(), messages=()), [])
