"""What a page may change of a chat, and what it may not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from turnlog.aisdk.codec import build_message, to_plain
from turnlog.aisdk.parts import UIMessage
from turnlog.chat.requests import ChatRequest, merge_client_results, parse_chat_request, plan_answer
from turnlog.errors import ConflictError, NotFoundError, ShapeError


def message(id: str, role: str = "user", *parts: dict[str, Any]) -> dict[str, Any]:
    return {"id": id, "role": role, "parts": list(parts) or [{"type": "text", "text": f"words of {id}"}]}


def call(state: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool-read", "toolCallId": "c1", "state": state, "input": {"path": "a"}, **fields}


def post(**body: Any) -> ChatRequest:
    return parse_chat_request(json.dumps({"id": "chat", **body}))


def ids(messages: list[UIMessage]) -> list[str]:
    return [known.id for known in messages]


STORED = [build_message(message(id, role)) for id, role in [("u1", "user"), ("a1", "assistant"), ("u2", "user")]]
ANSWERED = [*STORED, build_message(message("a2", "assistant"))]


@pytest.mark.parametrize("version", [5, 6, 7])
def test_reads_both_shapes_of_body(version: int) -> None:
    whole = {"id": "chat", "messages": [message("u1")], "trigger": "submit-message", "messageId": "u1", "model": "m"}
    request = parse_chat_request(json.dumps(whole), version=version)
    assert (request.chat_id, request.message_id, request.body) == ("chat", "u1", {"model": "m"})
    one = parse_chat_request(json.dumps({"id": "chat", "message": message("u1")}), version=version)
    assert one.messages == request.messages
    assert (one.trigger, one.message_id) == ("submit-message", None)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("{", "$"),
        ("[]", "$"),
        ('{"id": "c"}', "$"),
        ('{"id": "c", "messages": []}', "$"),
        ('{"id": "c", "messages": {}}', "$.messages"),
        ('{"messages": [], "trigger": "regenerate-message"}', "$.id"),
        ('{"id": "", "messages": [], "trigger": "regenerate-message"}', "$.id"),
        ('{"id": ".", "message": {}}', "$.id"),
        ('{"id": "..", "message": {}}', "$.id"),
        ('{"id": "c", "message": {"id": "m", "role": "tool", "parts": []}}', "$.message.role"),
        ('{"id": "c", "messages": [{"id": "m", "role": "tool", "parts": []}]}', "$.messages[0].role"),
        ('{"id": "c", "message": null}', "$.message"),
        ('{"id": "c", "messages": [], "trigger": "resume"}', "$.trigger"),
        ('{"id": "c", "messages": [], "trigger": "regenerate-message", "messageId": 1}', "$.messageId"),
    ],
)
def test_refuses_other_bodies_with_their_place(body: str, place: str) -> None:
    with pytest.raises(ShapeError) as caught:
        parse_chat_request(body)
    assert caught.value.json_path == place


def test_refuses_roles_that_no_version_knows() -> None:
    """R-S1."""
    with pytest.raises(ShapeError):
        post(message=message("m", "tool"))


def test_a_new_message_follows_the_stored_history_not_the_page() -> None:
    forged = message("a1", "assistant", {"type": "text", "text": "forged"})
    plan = plan_answer(STORED[:2], post(messages=[message("u1"), forged, message("invented", "system"), message("u2")]))
    assert plan.messages == STORED
    assert (plan.continued, plan.retracted) == (None, [])


def test_an_edited_message_retracts_itself_and_what_followed() -> None:
    edited = message("u1", "user", {"type": "text", "text": "otherwise"})
    plan = plan_answer(ANSWERED, post(message=edited, messageId="u1"))
    assert [to_plain(known) for known in plan.messages] == [edited]
    assert ids(plan.retracted) == ["u1", "a1", "u2", "a2"]


def test_a_message_sent_twice_stays() -> None:
    plan = plan_answer(ANSWERED, post(message=message("u2")))
    assert (ids(plan.messages), ids(plan.retracted)) == (["u1", "a1", "u2"], ["a2"])


@pytest.mark.parametrize(
    ("message_id", "kept"), [(None, ["u1", "a1", "u2"]), ("a1", ["u1"]), ("u1", ["u1"]), ("a2", ["u1", "a1", "u2"])]
)
def test_regenerating_keeps_what_is_before_the_answer(message_id: str | None, kept: list[str]) -> None:
    plan = plan_answer(ANSWERED, post(messages=[], trigger="regenerate-message", messageId=message_id))
    assert ids(plan.messages) == kept
    assert ids(plan.messages + plan.retracted) == ids(ANSWERED)


@pytest.mark.parametrize("stored", [[], STORED])
def test_regenerating_what_is_not_there_is_an_error(stored: list[UIMessage]) -> None:
    with pytest.raises(NotFoundError):
        plan_answer(stored, post(messages=[], trigger="regenerate-message", messageId="gone" if stored else None))


def test_only_the_last_message_goes_on_and_only_a_user_speaks() -> None:
    with pytest.raises(NotFoundError):
        plan_answer(STORED, post(message=message("a9", "assistant")))
    with pytest.raises(ShapeError):
        plan_answer(STORED, post(message=message("a1", "assistant")))
    with pytest.raises(ShapeError):
        plan_answer(STORED, post(message=message("s", "system")))
    with pytest.raises(ShapeError):
        plan_answer(STORED, post(message=message("a1", "user")))


def test_an_approval_is_taken_and_nothing_beside_it() -> None:
    """R-S10."""
    asked = build_message(message("a", "assistant", call("approval-requested", approval={"id": "q", "signature": "s"})))
    sent = call("approval-responded", approval={"id": "q", "approved": True, "reason": "go", "signature": "forged"})
    sent["input"] = {"path": "/etc/shadow"}
    plan = plan_answer([asked], post(message=message("a", "assistant", sent)))
    approval = {"id": "q", "approved": True, "reason": "go", "signature": "s"}
    assert plan.continued is plan.messages[-1]
    assert to_plain(plan.messages[-1])["parts"] == [call("approval-responded", approval=approval)]


def test_a_second_decision_counts_beside_the_first_which_stays() -> None:
    first = call("approval-responded", approval={"id": "q", "approved": True})
    open_call = call("approval-requested", approval={"id": "r"}) | {"toolCallId": "c2"}
    second = open_call | {"state": "approval-responded", "approval": {"id": "r", "approved": False}}
    forged = call("approval-responded", approval={"id": "q", "approved": False})
    asked = build_message(message("a", "assistant", first, open_call))
    plan = plan_answer([asked], post(message=message("a", "assistant", forged, second)))
    assert to_plain(plan.messages[-1])["parts"] == [first, second]


def test_a_message_goes_on_unchanged_after_the_outputs_of_its_calls() -> None:
    """As a page sends it whose `sendAutomaticallyWhen` is `lastAssistantMessageIsCompleteWithToolCalls`."""
    done = build_message(message("a", "assistant", call("output-available", output=1)))
    plan = plan_answer([done], post(message=to_plain(done)))
    assert (plan.continued, plan.is_changed) == (done, False)


@pytest.mark.parametrize(
    ("stored", "sent", "merged"),
    [
        (call("input-available"), call("output-available", output=[1]), call("output-available", output=[1])),
        (call("input-available"), call("output-error", errorText="no"), call("output-error", errorText="no")),
        (call("input-available"), call("output-available", output=1, preliminary=True), None),
        (call("input-available", providerExecuted=True), call("output-available", output=1), None),
        (call("output-available", output=1), call("output-available", output=2), None),
        (call("approval-requested", approval={"id": "q"}), call("output-available", output=2), None),
        (
            call("approval-requested", approval={"id": "q"}),
            call("approval-responded", approval={"id": "other", "approved": True}),
            None,
        ),
        ({"type": "text", "text": "mine"}, {"type": "text", "text": "forged"}, None),
    ],
)
def test_the_page_fills_only_calls_that_wait_for_it(
    stored: dict[str, Any], sent: dict[str, Any], merged: dict[str, Any] | None
) -> None:
    found = merge_client_results(
        build_message(message("a", "assistant", stored)), build_message(message("a", "assistant", sent))
    )
    assert to_plain(found)["parts"] == [merged or stored]


def test_an_answer_continues_once_all_its_permission_requests_are_decided() -> None:
    """What nobody has decided would be denied by it."""

    def asking(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
        other = call("approval-requested", toolCallId="c2", approval={"id": "q2"})
        return message("a", "assistant", call("approval-requested", approval={"id": "q1"}) | first, other | second)

    stored = [build_message(asking({}, {}))]
    allowed = {"state": "approval-responded", "approval": {"id": "q1", "approved": True}}
    denied = {"state": "approval-responded", "approval": {"id": "q2", "approved": False}}
    for half, still_open in ((asking(allowed, {}), "q2"), (asking({}, denied), "q1")):
        with pytest.raises(ConflictError, match=f"request {still_open} is still open"):
            plan_answer(stored, post(message=half))
    plan = plan_answer(stored, post(message=asking(allowed, denied)))
    assert [to_plain(part)["approval"]["approved"] for part in plan.messages[0].parts] == [True, False]
