"""Traces (OpenTelemetry) of sessions, as the protocol's own classes decode them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.plain_store import START, at
from support.provider_messages import assistant, call, result, user
from turnlog.formats.otel import OtelConversation, span_id, to_otel, to_protobuf, trace_id
from turnlog.model import Cost, Fate, Membership, Message, MessageError, Relationship, Session, ToolState, Usage

CHILD = "plain:child"


def conversation(*messages: Message, id: str = "plain:s", parent: str | None = None, **places: Any) -> OtelConversation:
    """A session of one turn; `places` are fields of memberships by message id."""
    links = () if parent is None else (Relationship(kind="subagent", parent_session_id=parent),)
    session = Session(id=id, agent="plain", external_id=id, created_at=START, relationships=links)
    cost = Cost(amount=Decimal("0.5"))
    placed = [
        (
            message,
            Membership(
                session_id=id, message_id=message.id, position=number, **({"turn": 1} | places.get(message.id, {}))
            ),
            cost if message.usage else None,
        )
        for number, message in enumerate(messages)
    ]
    return OtelConversation(session, placed)


CONVERSATION = (
    user("What is there?", id="u"),
    assistant(
        "I look.",
        call("c1", result("a.py", completed_at=at(3)), started_at=at(2), state=ToolState.OUTPUT_AVAILABLE),
        id="a",
        created_at=at(1),
        completed_at=at(2),
        usage=Usage(input=10, cache_read=200, cache_write=30, output=7, reasoning=5),
        stop_reason="tool_use",
    ),
    assistant("a.py", id="b", created_at=at(4), usage=Usage(input=1, output=2), stop_reason="stop"),
)


def spans(*conversations: OtelConversation, content: bool = False) -> list[Span]:
    made = to_otel(conversations, "plain:s", version="1", content=content)
    request = ExportTraceServiceRequest.FromString(to_protobuf(made))
    return [span for each in request.resource_spans for scope in each.scope_spans for span in scope.spans]


def facts(span: Span) -> dict[str, Any]:
    return {each.key: value(each.value) for each in span.attributes}


def value(found: AnyValue) -> Any:
    kind = found.WhichOneof("value")
    return [value(each) for each in found.array_value.values] if kind == "array_value" else getattr(found, str(kind))


def names(found: Sequence[Span]) -> list[str]:
    return [span.name.partition(" ")[0] for span in found]


def test_a_turn_is_a_span_with_its_calls_below_it() -> None:
    turn, first, tool, second = made = spans(conversation(*CONVERSATION))
    assert names(made) == ["invoke_agent", "chat", "execute_tool", "chat"]
    assert {span.trace_id.hex() for span in made} == {trace_id("plain:s")}
    assert turn.parent_span_id == b""
    assert first.parent_span_id == second.parent_span_id == turn.span_id
    assert tool.parent_span_id == first.span_id
    assert len({span.span_id for span in made}) == 4


def test_spans_have_the_times_of_the_log_and_say_where_they_are_inferred() -> None:
    turn, first, tool, second = spans(conversation(*CONVERSATION))

    def minutes(span: Span) -> tuple[float, float]:
        start = int(START.timestamp()) * 10**9
        return (span.start_time_unix_nano - start) / 60e9, (span.end_time_unix_nano - start) / 60e9

    assert [minutes(span) for span in (turn, first, tool, second)] == [(1, 4), (1, 2), (2, 3), (3, 4)]
    inferred = [facts(span).get("turnlog.times.inferred", False) for span in (first, tool, second)]
    assert inferred == [False, False, True]


def test_a_model_call_has_its_tokens_and_its_cost() -> None:
    found = facts(spans(conversation(*CONVERSATION))[1])
    usage = {name.removeprefix("gen_ai.usage."): found[name] for name in found if name.startswith("gen_ai.usage.")}
    assert usage == {
        "input_tokens": 240,
        "output_tokens": 12,
        "cache_read.input_tokens": 200,
        "cache_creation.input_tokens": 30,
        "reasoning.output_tokens": 5,
    }
    assert (found["turnlog.cost.usd"], found["gen_ai.response.finish_reasons"]) == (0.5, ["tool_call"])


def test_what_a_fork_copied_counts_no_tokens_again() -> None:
    found = facts(spans(conversation(*CONVERSATION, a={"is_billed": False}, b={"fate": Fate.REWOUND}))[1])
    assert not [name for name in found if "usage" in name or "cost" in name]
    assert found["turnlog.copied"] is True


def test_it_is_the_same_however_often_it_is_made() -> None:
    assert spans(conversation(*CONVERSATION)) == spans(conversation(*CONVERSATION))
    later = spans(conversation(*CONVERSATION, assistant("more", id="c", created_at=at(9))))
    assert [span.span_id for span in later[:4]] == [span.span_id for span in spans(conversation(*CONVERSATION))]


def test_a_subagent_is_below_the_call_that_started_it() -> None:
    parent = conversation(assistant(call("c1", child_session_id=CHILD), id="a", created_at=at(1)))
    child = conversation(user("find", id="f"), id=CHILD, parent="plain:s")
    made = spans(parent, child)
    assert made[-1].parent_span_id.hex() == span_id("plain:s", "a", "c1") == made[2].span_id.hex()
    assert made[-1].trace_id == made[0].trace_id


def test_content_is_there_only_if_requested() -> None:
    for span in spans(conversation(*CONVERSATION)):
        assert not {"gen_ai.input.messages", "gen_ai.output.messages"} & facts(span).keys()
        assert "gen_ai.tool.call.result" not in facts(span)
    turn, first, tool, second = [facts(span) for span in spans(conversation(*CONVERSATION), content=True)]
    input_messages = [{"role": "user", "parts": [{"type": "text", "content": "What is there?"}]}]
    assert json.loads(turn["gen_ai.input.messages"]) == json.loads(first["gen_ai.input.messages"]) == input_messages
    assert tool["gen_ai.tool.call.result"] == "a.py"
    (told,) = json.loads(second["gen_ai.input.messages"])
    assert told["parts"] == [{"type": "tool_call_response", "id": "c1", "response": "a.py"}]
    assert json.loads(second["gen_ai.output.messages"]) == json.loads(turn["gen_ai.output.messages"])


def test_what_failed_has_the_status_of_an_error_without_its_text() -> None:
    failed = call("c1", result("boom", status="error"), state=ToolState.OUTPUT_ERROR)
    denied = call("c2", state=ToolState.OUTPUT_DENIED)
    answer = assistant(failed, denied, id="a", error=MessageError(text="Overloaded", status=529))
    _, chat, tool, refused = spans(conversation(answer))
    assert [span.status.code for span in (chat, tool, refused)] == [2, 2, 0]
    assert (facts(chat)["error.type"], chat.status.message, tool.status.message) == ("529", "", "")
    assert spans(conversation(answer), content=True)[1].status.message == "Overloaded"


def test_times_that_run_backwards_make_no_span_that_ends_before_it_begins() -> None:
    messages = [assistant(str(n), id=str(n), created_at=START - timedelta(days=n)) for n in range(4)]
    for span in spans(conversation(*messages)):
        assert span.end_time_unix_nano >= span.start_time_unix_nano
