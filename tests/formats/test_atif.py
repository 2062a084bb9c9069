"""Trajectories (ATIF) of sessions: what is in which field, and that others' models of the format take all of them.

The judge is the PyPI package `atif`. `tests/conformance/harbor_judge.py` asks the format's own validator, which needs a
newer Python.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory as Judge

from support.provider_messages import PNG, assistant, call, developer, image, result, thinking, user
from support.recorded_sessions import recorded_history
from turnlog.errors import ConversionError
from turnlog.formats.atif import AtifConversation, AtifDocument, to_atif
from turnlog.logs import SessionHistory
from turnlog.model import (
    CompactionEvent,
    Cost,
    Fate,
    FilePart,
    HistoryEvent,
    Membership,
    Message,
    MessageEvent,
    Origin,
    Relationship,
    Session,
    TextPart,
    ToolResult,
    ToolResultEvent,
    Usage,
)

DATA = Path(__file__).parents[1] / "data"
CHILD = "plain:child"


def conversation(
    *messages: Message, events: Sequence[HistoryEvent] = (), id: str = "plain:s", parent: str | None = None, **more: Any
) -> AtifConversation:
    """A session of these messages; `more` are fates by message id."""
    links = () if parent is None else (Relationship(kind="subagent", parent_session_id=parent),)
    session = Session(
        id=id,
        agent="plain",
        external_id=id.partition(":")[2],
        agent_version="1.2",
        models=("large",),
        relationships=links,
    )
    placed = [
        (
            message,
            Membership(
                session_id=id, message_id=message.id, position=10 * number, fate=more.get(message.id, Fate.ACTIVE)
            ),
            None,
        )
        for number, message in enumerate(messages)
    ]
    return AtifConversation(session, placed, events, {"whole.txt": "all of it"}.get)


def judged(document: AtifDocument) -> Any:
    """The trajectory as JSON, after the judge has taken it."""
    made = document.to_json()
    Judge.model_validate_json(made)
    return json.loads(made)


def family(session: SessionHistory) -> list[AtifConversation]:
    places = {place.message_id: place for place in session.memberships}

    def read(name: str) -> str | None:
        return session.read_spill(name).decode(errors="replace")

    own = AtifConversation(
        session.session,
        [(message, places[message.id], None) for message in session.messages],
        [event for event in session.events if not _is_in_messages(event)],
        read if session.spills else dict[str, str]().get,
    )
    return [own, *[each for child in session.children for each in family(child)]]


def _is_in_messages(event: HistoryEvent) -> bool:
    return isinstance(event, MessageEvent) or (isinstance(event, ToolResultEvent) and event.message_id is not None)


def active(session: SessionHistory) -> list[str]:
    return [place.message_id for place in session.memberships if place.fate in (Fate.ACTIVE, Fate.COMPACTED)]


@cache
def recorded() -> dict[str, SessionHistory]:
    paths = sorted(path for kind in ("scenarios", "versions") for path in DATA.glob(f"*/{kind}/**/*.jsonl"))
    read = {str(path.relative_to(DATA)): recorded_history(path) for path in paths}
    return {name: session for name, session in read.items() if session is not None}


def test_every_recorded_session_is_a_trajectory() -> None:
    sessions = {name: session for name, session in recorded().items() if active(session)}
    assert {name.partition("/")[0] for name in sessions} >= {"claude_code", "codex", "gemini_cli", "klaude"}
    embedded = 0
    for session in sessions.values():
        made = judged(to_atif(family(session)))
        ids = [step["extra"]["message_id"] for step in made["steps"] if "message_id" in step.get("extra", {})]
        assert sorted(ids) == sorted(active(session))
        embedded += len(made.get("subagent_trajectories", []))
    assert embedded


def test_a_step_has_what_was_said_thought_called_and_returned() -> None:
    usage = Usage(input=10, cache_read=200, cache_write_5m=30, output=7, reasoning=5)
    answer = assistant(
        thinking("Hm."),
        "I look.",
        call("c1", result("a.py"), result("late", id="r2"), input={"command": "ls"}),
        usage=usage,
        cost=Cost(amount=Decimal("0.25"), kind="reported"),
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
    )
    prompt_step, developer_step, step = judged(
        to_atif([conversation(user("Look"), developer("It is Monday."), answer)])
    )["steps"]
    assert (prompt_step["source"], prompt_step["message"]) == ("user", "Look")
    assert (developer_step["source"], developer_step["message"]) == ("system", "It is Monday.")
    assert (step["source"], step["message"], step["reasoning_content"]) == ("agent", "I look.", "Hm.")
    assert step["timestamp"] == "2026-01-02T00:00:00Z"
    (made,) = step["tool_calls"]
    assert (made["tool_call_id"], made["function_name"], made["arguments"]) == ("c1", "Bash", {"command": "ls"})
    results = step["observation"]["results"]
    assert [(each["source_call_id"], each["content"]) for each in results] == [("c1", "a.py"), ("c1", "late")]
    metrics = step["metrics"]
    assert (metrics["prompt_tokens"], metrics["cached_tokens"], metrics["completion_tokens"]) == (240, 200, 12)
    assert (metrics["cost_usd"], metrics["extra"]["reasoning_tokens"]) == (0.25, 5)


def test_unknown_tokens_are_not_zero() -> None:
    step = judged(to_atif([conversation(assistant("ok", usage=None))]))["steps"][0]
    assert "metrics" not in step


def test_an_answer_that_no_model_gave_has_no_model_call() -> None:
    made = assistant("/clear done", origin=Origin.HARNESS, usage=Usage(output=3))
    step = judged(to_atif([conversation(made)]))["steps"][0]
    assert step["llm_call_count"] == 0
    assert "metrics" not in step


def test_what_is_no_object_is_the_field_of_one() -> None:
    for made, expected in ((call("c", input=["ls"]), ["ls"]), (call("c", input_text="*** Begin"), "*** Begin")):
        found = judged(to_atif([conversation(assistant(made))]))["steps"][0]["tool_calls"][0]
        assert found["arguments"] == {"input": expected}
        assert found["extra"]["arguments_are_input"] is True


def test_images_are_files_beside_it() -> None:
    document = to_atif([conversation(user("look", image()), assistant(call("c", result("seen", image()))))])
    first, second = judged(document)["steps"]
    (path,) = document.files
    assert document.files[path] == PNG
    shown = {"type": "image", "source": {"media_type": "image/png", "path": path}}
    assert first["message"] == [{"type": "text", "text": "look"}, shown]
    assert second["observation"]["results"][0]["content"][1] == shown


def test_a_whole_output_takes_the_place_of_its_preview() -> None:
    shown = result("all…", spilled_to="whole.txt")
    (step,) = judged(to_atif([conversation(assistant(call("c", shown)))]))["steps"]
    assert step["observation"]["results"][0]["content"] == "all of it"


def test_subagents_are_embedded_and_named_by_their_call() -> None:
    parent = conversation(user("go"), assistant(call("c1", result("done"), child_session_id=CHILD)))
    grandchild = conversation(user("deeper", id="g"), id="plain:grandchild", parent=CHILD)
    child = conversation(user("find", id="f"), assistant("found", id="h"), id=CHILD, parent="plain:s")
    made = judged(to_atif([parent, child, grandchild]))
    (inner,) = made["subagent_trajectories"]
    assert (inner["trajectory_id"], inner["session_id"], len(inner["steps"])) == (CHILD, "s", 2)
    assert inner["subagent_trajectories"][0]["trajectory_id"] == "plain:grandchild"
    (found,) = made["steps"][1]["observation"]["results"]
    assert found["subagent_trajectory_ref"] == [{"trajectory_id": CHILD, "session_id": CHILD}]


def test_a_result_without_a_call_is_a_step_of_its_own() -> None:
    orphan = ToolResultEvent(position=5, tool_call_id="gone", result=ToolResult(id="r", content=(TextPart(text="x"),)))
    steps = judged(to_atif([conversation(user("q"), assistant("a"), events=[orphan])]))["steps"]
    assert [step["step_id"] for step in steps] == [1, 2, 3]
    (found,) = steps[1]["observation"]["results"]
    assert (found["content"], found["extra"]["tool_call_id"]) == ("x", "gone")
    assert "source_call_id" not in found


def test_what_it_cannot_hold_is_reported() -> None:
    pdf = FilePart(media_type="application/pdf", filename="a.pdf", data=b"%PDF")
    signed = thinking("Hm.", "anthropic", signature="x")
    document = to_atif(
        [
            conversation(
                user("q", pdf),
                assistant("no", id="x"),
                assistant("text", signed, id="y"),
                events=[CompactionEvent(id="k", position=15)],
                x=Fate.REWOUND,
            )
        ]
    )
    assert {loss.kind for loss in document.losses} == {"file", "rewound", "order", "provider data", "compaction"}
    assert [step["message"] for step in judged(document)["steps"]] == ["q", "text"]
    assert "1 messages" in judged(document)["notes"]


def test_a_session_without_messages_is_none() -> None:
    with pytest.raises(ConversionError, match="no messages"):
        to_atif([conversation()])
