"""Records without a message that are written late, and histories that a compaction writes again: no branch begins."""

from __future__ import annotations

from typing import Any

import pytest

from support.claude_files import SESSION, Log, call, fold, text
from turnlog.model import CompactionEvent, Fate, RecordEvent
from turnlog.store.reconcile.merge import messages_of_records, place_messages

Record = dict[str, Any]


def fates(*records: Record) -> dict[str, str]:
    """What is said -> the fate of its message."""
    gathered = fold(*records)
    places = {name: place for (_, name), place in gathered.placements.items()}
    events = [*gathered.events.values()]
    leaf = gathered.sessions[f"claude-code:{SESSION}"].active_leaf
    placed = place_messages(places, events, messages_of_records(places, events), leaf)
    return {
        part.text: placed[name].fate
        for name, message in gathered.messages.items()
        for part in message.parts
        if part.type == "text"
    }


HOOK = {"type": "hook_success", "hookName": "Stop", "hookEvent": "Stop", "content": "ok", "stdout": "ok", "exitCode": 0}
LATE: list[Any] = [
    pytest.param("system", {"subtype": "stop_hook_summary", "hookErrors": []}, id="summary of hooks"),
    pytest.param("system", {"subtype": "stop_hook_summary", "hookErrors": ["failed"]}, id="failed hooks"),
    pytest.param("system", {"subtype": "turn_duration", "durationMs": 1000}, id="duration"),
    pytest.param("system", {"subtype": "away_summary", "content": "a recap"}, id="recap"),
    pytest.param("system", {"subtype": "not_known_yet"}, id="unknown"),
    pytest.param("attachment", {"attachment": HOOK}, id="hook"),
    pytest.param("attachment", {"attachment": HOOK, "rendered": [{"content": "a hook said"}]}, id="words of a hook"),
    pytest.param("progress", {"data": {"type": "hook_progress", "command": "lint"}, "toolUseID": "t"}, id="progress"),
]


@pytest.mark.parametrize(("kind", "fields"), LATE)
@pytest.mark.parametrize("turns", [1, 2])
def test_what_was_answered_before_a_late_record_is_not_rewound(kind: str, fields: Record, turns: int) -> None:
    log = Log("2.1.260")
    first = log.user("first")
    records = [first, log.assistant("msg_1", text("delivered"))]
    if turns == 2:
        records += [log.user("between"), log.assistant("msg_2", text("delivered too"))]
    late = log.record(kind, **{"parentUuid": first["uuid"], **fields})
    found = fates(*records, late, log.user("second"), log.assistant("msg_3", text("end")))
    assert set(found.values()) <= {Fate.ACTIVE, Fate.SIDECAR}


def test_a_prompt_after_context_goes_back_to_where_the_context_hangs() -> None:
    """Claude Code writes the model and the date before a prompt (2.1.329), also before one after a rewind."""
    log = Log()
    records = [log.user("first"), log.assistant("msg_1", text("one"))]
    answer = log.last
    records += [log.user("old"), log.assistant("msg_2", text("old too"))]
    records.append(log.record("attachment", parentUuid=answer, attachment={"type": "model"}))
    records += [log.user("new"), log.assistant("msg_3", text("new too"))]
    found = fates(*records)
    assert [words for words, fate in found.items() if fate == Fate.REWOUND] == ["old", "old too"]


OPENING = {
    "hookName": "SessionStart:resume",
    "hookEvent": "SessionStart",
    "content": "ok",
    "stdout": "ok",
    "exitCode": 0,
}


@pytest.mark.parametrize("event", ["SessionStart", "Setup", "UserPromptSubmit"])
@pytest.mark.parametrize("kind", ["hook_success", "hook_additional_context", "progress"])
def test_hooks_that_run_before_a_prompt_go_back_with_it(event: str, kind: str) -> None:
    """A resume at an older message runs the hooks of `SessionStart` there."""
    log = Log()
    records = [log.user("first"), log.assistant("msg_1", text("one"))]
    answer = log.last
    records += [log.user("old"), log.assistant("msg_2", text("old too"))]
    facts = {**OPENING, "hookEvent": event, "type": "hook_progress" if kind == "progress" else kind}
    field = {"data": facts} if kind == "progress" else {"attachment": facts}
    records.append(log.record("progress" if field.get("data") else "attachment", parentUuid=answer, **field))
    records += [log.user("new"), log.assistant("msg_3", text("new too"))]
    found = fates(*records)
    assert [words for words, fate in found.items() if fate == Fate.REWOUND] == ["old", "old too"]


def test_the_answer_of_a_hook_that_runs_on_its_own_may_be_late() -> None:
    log = Log()
    first = log.user("first")
    facts = {**OPENING, "type": "async_hook_response"}
    late = [
        log.assistant("msg_1", text("delivered")),
        log.record("attachment", parentUuid=first["uuid"], attachment=facts),
    ]
    found = fates(first, *late, log.user("second"), log.assistant("msg_2", text("end")))
    assert set(found.values()) == {Fate.ACTIVE}


def test_a_recap_is_a_message_beside_the_conversation() -> None:
    log = Log("2.1.260")
    records = [log.user("first"), log.assistant("msg_1", text("one"))]
    recap = log.record("system", subtype="away_summary", content="You asked first")
    after = log.user("second")
    gathered = fold(*records, recap, after)
    assert gathered.place(recap["uuid"]).fate is Fate.SIDECAR
    assert gathered.place(after["uuid"]).parent_id == "msg_1"
    assert gathered.messages[recap["uuid"]].role == "developer"
    empty = log.record("system", subtype="away_summary")
    assert isinstance(fold(empty).events[empty["uuid"]].event, RecordEvent)


@pytest.mark.parametrize("length", [1, 40])
@pytest.mark.parametrize("hangs_on", ["summary of hooks", "last copy"])
def test_a_second_compaction_in_one_process_compacts_and_rewinds_nothing(length: int, hangs_on: str) -> None:
    """It writes the history from before the first one again, which the fold may have forgotten (2.1.260)."""
    log = Log("2.1.260")
    old: list[Record] = []
    for number in range(length):
        old += [log.user(f"Q{number}"), log.assistant(f"msg_{number}", call(f"toolu_{number}"), text(f"A{number}"))]
        old.append(log.result(f"toolu_{number}"))

    def compact(summary: str, kept: str | None) -> list[Record]:
        tail = log.last
        log.last = None
        metadata = {"trigger": "manual", "preservedSegment": {"headUuid": kept, "tailUuid": tail}}
        boundary = log.record("system", subtype="compact_boundary", logicalParentUuid=tail, compactMetadata=metadata)
        return [boundary, log.user(summary, isCompactSummary=True)]

    records = [*old, *compact("summary one", old[-2]["uuid"])]
    records += [log.user("then"), log.assistant("msg_then", text("stays"))]
    kept = log.last
    records += old
    log.last = old[-2]["uuid"]
    if hangs_on == "summary of hooks":
        records.append(log.record("system", subtype="stop_hook_summary"))
    records += compact("summary two", kept)
    records += [log.user("last"), log.assistant("msg_last", text("end"))]
    found = fates(*records)
    assert {words for words, fate in found.items() if fate == Fate.ACTIVE} == {"stays", "summary two", "last", "end"}
    assert {fate for fate in found.values()} == {Fate.ACTIVE, Fate.COMPACTED}
    events = [each.event for each in fold(*records).events.values() if isinstance(each.event, CompactionEvent)]
    assert [event.kept_message_ids for event in events] == [(f"msg_{length - 1}",), ("msg_then",)]
    last = fold(*records).place("msg_last")
    assert last.turn == length + 2
