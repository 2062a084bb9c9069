"""The chain of records: parents, branches, compactions, forks, the active leaf, and facts about the session."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from support.claude_files import (
    AGENT,
    SESSION,
    Gathered,
    Log,
    call,
    fold,
    gather,
    lines,
    read,
    session_source,
    sources,
    text,
)
from turnlog.agents.changes import Link
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    InterruptEvent,
    Origin,
    RecordEvent,
    RewindEvent,
    RunMetadataEvent,
)
from turnlog.model.tree import Compaction, Node, default_leaf, place

ROOT = f"claude-code:{SESSION}"
NOWHERE = "00000000-0000-0000-0000-000000000000"


def fates(gathered: Gathered, session: str = ROOT) -> dict[str, str]:
    """The fate of each message, worked out from the tree."""
    places = {message: found for (name, message), found in gathered.placements.items() if name == session}
    message_of = {record: message for message, found in places.items() for record in found.record_ids}
    nodes = [
        Node(
            id=message,
            parent=found.parent_id or message_of.get(found.parent_record or ""),
            position=found.position,
            sidecar=found.fate is Fate.SIDECAR,
        )
        for message, found in places.items()
    ]
    compactions = [
        Compaction(id=event.id, position=event.position, kept=frozenset(event.kept_message_ids))
        for event in events_of(gathered, CompactionEvent)
    ]
    leaf = gathered.sessions[session].active_leaf
    placed = place(nodes, default_leaf(nodes) if leaf is None else message_of.get(leaf), compactions)
    return {name: str(found.fate) for name, found in placed.items()}


def events_of(gathered: Gathered, kind: type[Any]) -> list[Any]:
    return [change.event for change in gathered.events.values() if isinstance(change.event, kind)]


def fact(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "sessionId": SESSION, **fields}


# Parents


def test_parents_are_messages_whatever_records_are_between() -> None:
    log = Log()
    prompt = log.user("go")
    snapshot = log.record("attachment", attachment={"type": "prompt_snapshot"})
    asked = log.assistant("msg_1", text("Look."), stop="tool_use")
    called = log.assistant("msg_1", call("t1"), stop="tool_use")
    hook = log.record("progress", data={"type": "hook_progress"})
    result = log.result("t1")
    notice = log.record("system", subtype="turn_duration", durationMs=5)
    gathered = fold(prompt, snapshot, asked, called, hook, result, notice, log.assistant("msg_2", text("Done.")))
    assert gathered.place(prompt["uuid"]).parent_id is None
    assert gathered.place("msg_1").parent_id == prompt["uuid"]
    assert gathered.place("msg_2").parent_id == "msg_1"
    assert gathered.events[hook["uuid"]].parent_id == "msg_1"
    assert set(fates(gathered).values()) == {"active"}
    assert not gathered.sessions[ROOT].has_branches


def test_injected_context_beside_results_makes_no_branch() -> None:
    log = Log()
    first = log.assistant("msg_1", call("t1"), stop="tool_use", apiBlockIndex=0)
    second = log.assistant("msg_1", call("t2"), stop="tool_use", apiBlockIndex=1)
    one = log.result("t1", parentUuid=first["uuid"])
    note = log.record("attachment", attachment={"type": "date"}, rendered=[{"content": "x"}])
    two = log.result("t2", parentUuid=second["uuid"])
    answer = log.assistant("msg_2", text("Done."))
    gathered = fold(first, second, one, note, two, answer)
    assert gathered.place(note["uuid"]).parent_id == "msg_1"
    assert gathered.place("msg_2").parent_id == note["uuid"]
    assert set(fates(gathered).values()) == {"active"}


def test_a_block_after_injected_context_continues_its_message() -> None:
    log = Log()
    first = log.assistant("msg_1", call("t1"), stop="tool_use", apiBlockIndex=0)
    note = log.record("attachment", attachment={"type": "date"}, rendered=[{"content": "x"}])
    second = log.assistant("msg_1", text("and"), stop="end_turn", apiBlockIndex=1)
    after = log.user("thanks")
    gathered = fold(first, note, second, after)
    assert len(gathered.messages["msg_1"].parts) == 2
    assert gathered.place(after["uuid"]).parent_id == note["uuid"]
    assert set(fates(gathered).values()) == {"active"}


def test_a_parent_that_is_long_gone_is_named_by_its_record() -> None:
    log = Log()
    first = log.user("first")
    records = [first, *(log.assistant(f"msg_{index}", text("x")) for index in range(200))]
    log.last = first["uuid"]
    back = log.user("again")
    gathered = fold(*records, back)
    place = gathered.place(back["uuid"])
    assert (place.parent_id, place.parent_record) == (None, first["uuid"])
    assert gathered.sessions[ROOT].has_branches
    (rewind,) = events_of(gathered, RewindEvent)
    assert (rewind.to_message_id, rewind.metadata) == (None, {"to_record": first["uuid"]})
    found = fates(gathered)
    assert found["msg_0"] == found["msg_199"] == "rewound"
    assert found[back["uuid"]] == found[first["uuid"]] == "active"


def test_a_parent_that_was_lost_with_its_line_is_the_message_before() -> None:
    log = Log()
    start, lost, answer = log.user("one"), log.user("two"), log.assistant("msg_1", text("A"))
    torn = lines(lost)[:-20] + b"\n"
    gathered = fold(start, torn, answer)
    assert gathered.counts.unreadable == 1
    assert gathered.place("msg_1").parent_id == start["uuid"]
    assert set(fates(gathered).values()) == {"active"}


def test_records_without_ids_follow_each_other() -> None:
    log = Log()
    records = [log.user("one"), log.assistant("msg_1", text("two")), log.user("three")]
    for record in records:
        del record["uuid"], record["parentUuid"]
    gathered = fold(*records)
    assert [place.parent_id for place in gathered.placements.values()] == [None, f"{ROOT}@0", "msg_1"]
    assert not gathered.sessions[ROOT].has_branches


# Branches


def test_a_prompt_on_an_older_message_is_a_rewind() -> None:
    log = Log()
    start, first = log.user("one"), log.assistant("msg_1", text("A1"))
    second, answer = log.user("two"), log.assistant("msg_2", text("A2"))
    log.last = first["uuid"]
    edited, branch = log.user("two, edited"), log.assistant("msg_3", text("A3"))
    gathered = fold(start, first, second, answer, edited, branch)
    (rewind,) = events_of(gathered, RewindEvent)
    assert rewind.to_message_id == "msg_1"
    assert gathered.sessions[ROOT].has_branches
    assert [name for name, fate in fates(gathered).items() if fate == "rewound"] == [second["uuid"], "msg_2"]
    assert (gathered.place(second["uuid"]).turn, gathered.place(edited["uuid"]).turn) == (2, 3)


def test_a_prompt_before_the_results_of_calls_that_it_stopped_is_no_rewind() -> None:
    """2.1.330 writes a waiting prompt that Escape sends before the results of the calls that Escape stops."""
    log = Log()
    start, first = log.user("one"), log.assistant("msg_1", call("toolu_1"), call("toolu_2"))
    waiting = log.user("two")
    log.last = first["uuid"]
    stopped = [log.result("toolu_1", "rejected", is_error=True), log.result("toolu_2", "rejected", is_error=True)]
    gathered = fold(start, first, waiting, *stopped, log.assistant("msg_2", text("A2")))
    assert events_of(gathered, RewindEvent) == []
    assert set(fates(gathered).values()) == {"active"}
    assert gathered.place("msg_2").parent_id == waiting["uuid"]


def test_a_prompt_without_a_parent_goes_back_to_the_start() -> None:
    log = Log()
    start, first = log.user("one"), log.assistant("msg_1", text("A1"))
    log.last = None
    again = log.user("one, again")
    gathered = fold(start, first, again)
    (rewind,) = events_of(gathered, RewindEvent)
    assert (rewind.to_message_id, rewind.metadata) == (None, {})
    assert fates(gathered) == {start["uuid"]: "rewound", "msg_1": "rewound", again["uuid"]: "active"}


def test_recorded_rewinds_leave_the_branch_that_the_client_went_on_with() -> None:
    """Double-Esc in the terminal, and `--resume-session-at`: the request after it repeats the active branch."""
    for scenario, lost in (("tui-rewind", {"Q2 second", "A2"}), ("branch", None)):
        gathered = read(sources("scenarios", scenario))
        assert len(events_of(gathered, RewindEvent)) == 1
        rewound = [gathered.messages[name] for name, fate in fates(gathered).items() if fate == "rewound"]
        words = {part.text for message in rewound for part in message.parts if part.type == "text"}
        assert words == lost if lost is not None else rewound


@pytest.mark.parametrize(
    "scenario", ["basic", "errors", "hooks", "images", "interrupt", "mcp", "subagent", "tools", "tui"]
)
def test_recorded_sessions_without_rewind_have_no_branch(scenario: str) -> None:
    gathered = read(sources("scenarios", scenario))
    assert events_of(gathered, RewindEvent) == []
    for session in gathered.sessions:
        assert "rewound" not in fates(gathered, session).values()


# The active leaf


def leaf_after(*records: dict[str, Any]) -> str | None:
    return fold(*records).sessions[ROOT].active_leaf


def test_the_newest_message_is_the_leaf_unless_another_is_named() -> None:
    log = Log()
    start, first = log.user("one"), log.assistant("msg_1", text("A1"))
    second = log.user("two")
    assert leaf_after(start, first, second) == second["uuid"]
    assert leaf_after(start, first, second, fact("last-prompt", leafUuid=second["uuid"])) == second["uuid"]
    back = fact("last-prompt", leafUuid=first["uuid"])
    assert leaf_after(start, first, second, back) == first["uuid"]
    assert fold(start, first, second, back).sessions[ROOT].has_branches
    assert leaf_after(start, first, back, second) == second["uuid"]


def test_a_pointer_to_a_record_still_to_be_written_is_passed_over() -> None:
    log = Log()
    start = log.user("one")
    ahead = fact("last-prompt", leafUuid="99999999-0000-4000-8000-000000000000")
    assert leaf_after(start, ahead) == start["uuid"]


def test_all_zeros_mean_the_start_but_not_right_after_a_branch() -> None:
    log = Log()
    start, first = log.user("one"), log.assistant("msg_1", text("A1"))
    zeros = fact("last-prompt", leafUuid=NOWHERE, explicit=True)
    assert leaf_after(start, first, zeros) == ""
    assert set(fates(fold(start, first, zeros)).values()) == {"rewound"}
    log.last = None
    again = log.user("one, again")
    assert leaf_after(start, first, again, zeros) == again["uuid"]


# Compactions


def test_a_compaction_has_its_summary_and_the_messages_that_stay() -> None:
    log = Log()
    start, old = log.user("one"), log.assistant("msg_1", text("A1"))
    second, kept = log.user("two"), log.assistant("msg_2", text("A2"))
    end = log.last
    log.last = None
    metadata = {
        "trigger": "auto",
        "preTokens": 156889,
        "postTokens": 2735,
        "preservedMessages": {"uuids": [kept["uuid"]]},
    }
    boundary = log.record("system", subtype="compact_boundary", logicalParentUuid=end, compactMetadata=metadata)
    summary = log.user("This session is being continued", isCompactSummary=True)
    after = log.user("three")
    gathered = fold(start, old, second, kept, boundary, summary, after)
    (event,) = events_of(gathered, CompactionEvent)
    assert (event.id, event.trigger) == (boundary["uuid"], "auto")
    assert (event.tokens_before, event.tokens_after) == (156889, 2735)
    assert (event.summary_message_id, event.kept_message_ids) == (summary["uuid"], ("msg_2",))
    assert gathered.messages[summary["uuid"]].origin is Origin.COMPACTION
    assert gathered.place(summary["uuid"]).parent_id == "msg_2"
    assert gathered.sessions[ROOT].has_branches
    assert fates(gathered) == {
        start["uuid"]: "compacted",
        "msg_1": "compacted",
        second["uuid"]: "compacted",
        "msg_2": "active",
        summary["uuid"]: "active",
        after["uuid"]: "active",
    }


@pytest.mark.parametrize(("direction", "summarized"), [("upto", {"Q1", "A1"}), ("from", {"Q2", "A2", "Q3", "A3"})])
def test_messages_summarized_by_the_user_are_compacted_not_rewound(direction: str, summarized: set[str]) -> None:
    """The request behind it has the summary and what stays (2.1.330)."""
    gathered = read(sources("versions", f"2.1.330-summarized-{direction}"))
    found = fates(gathered)
    assert "rewound" not in found.values()
    said = {
        part.text
        for name, message in gathered.messages.items()
        if found[name] == "compacted" and (message.role == "assistant" or message.origin is Origin.PROMPT)
        for part in message.parts
        if part.type == "text"
    }
    assert said == summarized


def test_a_summary_in_a_later_feed_completes_its_compaction() -> None:
    log = Log("2.0.30")
    start = log.user("one")
    log.last = None
    boundary = log.record("system", subtype="compact_boundary", logicalParentUuid=start["uuid"], compactMetadata={})
    summary = log.user("continued", isCompactSummary=True)
    first, second = lines(start, boundary), lines(summary)
    opened = AGENT.fold(session_source())
    changes = [opened.feed(first, 0)]
    changes.append(AGENT.fold(session_source(), opened.state()).feed(second, len(first)))
    (event,) = events_of(gather(*changes), CompactionEvent)
    assert event.summary_message_id == summary["uuid"]
    assert gather(*changes).as_json() == fold(start, boundary, summary).as_json()


def test_kept_messages_of_a_compaction_are_named_by_their_records() -> None:
    log = Log()
    metadata = {"preservedMessages": {"uuids": ["gone"], "allUuids": ["gone", "gone too"]}}
    boundary = log.record("system", subtype="compact_boundary", compactMetadata=metadata)
    (event,) = events_of(fold(boundary, log.user("next")), CompactionEvent)
    assert (event.kept_message_ids, event.metadata) == ((), {"kept_records": ["gone", "gone too"]})
    assert event.summary_message_id is None


# Forks and copies

ORIGIN = "22222222-2222-4222-8222-222222222222"


@pytest.mark.parametrize(
    "mark", [{"forkedFrom": {"sessionId": ORIGIN, "messageUuid": "x"}}, {"requestSessionId": ORIGIN}]
)
def test_copied_records_link_the_session_they_are_from(mark: dict[str, Any]) -> None:
    log = Log()
    copy, own = log.assistant("msg_1", text("A1"), **mark), log.assistant("msg_2", text("A2"))
    gathered = fold(copy, own)
    assert (gathered.place("msg_1").copied, gathered.place("msg_2").copied) == (True, False)
    assert list(gathered.links.values()) == [
        Link(kind="fork", parent_session_id=f"claude-code:{ORIGIN}", child_session_id=ROOT)
    ]


def test_a_record_of_another_session_is_a_copy() -> None:
    log = Log(sessionId=ORIGIN)
    assert fold(log.assistant("msg_1", text("A1"))).place("msg_1").copied


def test_copies_with_the_same_message_ids_are_one_message() -> None:
    """Up to 1.0.24 a resumed session copied its history: new record ids, same message ids."""
    gathered = read(sources("versions", "1.0.24"))
    sessions = {
        name: {message for (session, message) in gathered.placements if session == name} for name in gathered.sessions
    }
    shared = [one & other for one in sessions.values() for other in sessions.values() if one is not other]
    assert any(len([name for name in found if name.startswith("msg_")]) > 3 for found in shared)
    ids = [message.id for message in gathered.messages.values()]
    assert len(ids) == len(set(ids))


# Facts


def test_the_envelope_has_project_branch_version_and_times() -> None:
    """R-S22, R-C4: cwd, git branch, version, times of a session."""
    log = Log("2.1.20", gitBranch="")
    first = log.user("one")
    log.envelope |= {"version": "2.1.329", "gitBranch": "fix", "cwd": "/home/dev/proj/sub"}
    change = fold(first, log.user("two")).sessions[ROOT]
    assert (change.project_path, change.cwd) == ("/home/dev/proj", "/home/dev/proj/sub")
    assert (change.git_branch, change.agent_version) == ("fix", "2.1.329")
    assert change.first_at == datetime(2026, 11, 21, 10, 0, 1, tzinfo=UTC)
    assert change.last_at == datetime(2026, 11, 21, 10, 0, 2, tzinfo=UTC)


def test_head_is_no_branch() -> None:
    """Git says HEAD where none is checked out: the last branch that was is the session's."""
    log = Log("2.1.20", gitBranch="fix")
    first = log.user("one")
    log.envelope["gitBranch"] = "HEAD"
    last = log.user("two")
    assert fold(first, last).sessions[ROOT].git_branch == "fix"
    assert fold(last).sessions[ROOT].git_branch is None


def test_times_are_utc_whatever_zone_the_log_writes() -> None:
    log = Log()
    gathered = fold(
        log.user("one", timestamp="2026-11-21T12:00:00.000+02:00"), log.user("two", timestamp="2026-11-21T10:00:01")
    )
    times = [message.created_at for message in gathered.messages.values()]
    assert times == [datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC), datetime(2026, 11, 21, 10, 0, 1, tzinfo=UTC)]


def test_titles_by_where_they_are_from() -> None:
    log = Log()
    gathered = fold(
        log.user("  Fix\n the   bug " + "x" * 300),
        fact("ai-title", aiTitle="Generated"),
        fact("custom-title", customTitle="Mine"),
        fact("ai-title", aiTitle="Generated again"),
        log.user("Second prompt"),
    )
    titles = gathered.sessions[ROOT].titles
    assert titles.pop("prompt") == ("Fix the bug " + "x" * 300)[:199] + "…"
    assert titles == {"generated": "Generated again", "custom": "Mine"}


def test_the_tags_around_pasted_text_are_not_in_the_title() -> None:
    log = Log()
    pasted = 'Look:\n<pasted_content id="8bc0">\nline one\nline two\n</pasted_content>\nthere'
    assert fold(log.user(pasted)).sessions[ROOT].titles == {"prompt": "Look: line one line two there"}


@pytest.mark.parametrize("failure", ["Invalid API key · Please run /login", "API Error: 529 Overloaded"])
def test_a_failure_in_place_of_a_summary_titles_nothing(failure: str) -> None:
    prompt = Log("1.0.24").user("hello")
    held = {"type": "summary", "summary": failure, "leafUuid": prompt["uuid"]}
    gathered = fold(prompt, held)
    assert gathered.sessions[ROOT].titles == {"prompt": "hello"}


def test_a_summary_titles_the_session_that_holds_its_leaf() -> None:
    log = Log("1.0.128")
    prompt = log.user("one")
    known = {"type": "summary", "summary": "Here", "leafUuid": prompt["uuid"]}
    elsewhere = {"type": "summary", "summary": "Elsewhere", "leafUuid": "99999999-0000-4000-8000-000000000000"}
    gathered = fold(prompt, elsewhere, known)
    assert gathered.sessions[ROOT].titles["summary"] == "Here"
    data = [msgspec.json.decode(event.data) for event in events_of(gathered, RunMetadataEvent)]
    assert data == [{name: record[name] for name in ("summary", "leafUuid")} for record in (elsewhere, known)]


def test_the_agents_own_running_cost_is_reported() -> None:
    gathered = fold(fact("cost-state", totalCostUSD=0.5, modelUsage={}), fact("cost-state", totalCostUSD=0.75))
    assert gathered.sessions[ROOT].reported_cost == 0.75


def test_modes_and_durations_are_run_metadata() -> None:
    log = Log()
    gathered = fold(
        fact("permission-mode", permissionMode="plan"),
        log.record("system", subtype="turn_duration", durationMs=357, messageCount=20),
        fact("agent-name", agentName="mybranch"),
    )
    found = {event.kind: msgspec.json.decode(event.data) for event in events_of(gathered, RunMetadataEvent)}
    assert found == {
        "permission-mode": {"permissionMode": "plan"},
        "system/turn_duration": {"durationMs": 357, "messageCount": 20},
        "agent-name": {"agentName": "mybranch"},
    }
    assert gathered.sessions[ROOT].metadata == {"claude-code": {"agent_name": "mybranch"}}


def test_logs_of_requests_and_queues_are_records() -> None:
    gathered = fold(
        fact("api-request", id="r1", params={}),
        fact("queue-operation", operation="remove", content="later", reason="absorbed_mid_turn"),
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    )
    found = [(event.kind, event.known, event.data is not msgspec.UNSET) for event in events_of(gathered, RecordEvent)]
    assert found == [
        ("api-request", True, False),
        ("queue-operation", True, True),
        ("file-history-snapshot", True, False),
    ]


@pytest.mark.parametrize("record", [fact("hologram", beams=3), Log().record("system", subtype="hologram", beams=3)])
def test_a_record_of_an_unknown_kind_is_kept_as_one(record: dict[str, Any]) -> None:
    gathered = fold(record)
    (event,) = events_of(gathered, RecordEvent)
    assert not event.known
    assert event.kind in ("hologram", "system/hologram")
    assert msgspec.json.decode(event.data) == record
    assert gathered.counts.events == 1
    assert not gathered.diagnostics


def test_an_interrupt_names_what_it_stopped() -> None:
    log = Log()
    asked = log.assistant("msg_1", text("Once upon"), stop=None, isAbortedMidStream=True)
    stopped = log.user([text("[Request interrupted by user]")], interruptedMessageId="msg_1")
    after = log.assistant("msg_2", call("t1"), stop="tool_use")
    killed = log.result("t1", "[Request interrupted by user for tool use]", is_error=True)
    marker = log.user("[Request interrupted by user for tool use]")
    gathered = fold(asked, stopped, after, killed, marker)
    found = [(event.id, event.during, event.message_id) for event in events_of(gathered, InterruptEvent)]
    assert found == [(stopped["uuid"], "answer", "msg_1"), (marker["uuid"], "tool", "msg_2")]
    assert gathered.place("msg_2").parent_id == "msg_1"
    assert set(gathered.messages) == {"msg_1", "msg_2"}


def test_a_failed_request_and_a_failed_hook_are_errors() -> None:
    log = Log()
    error = {"message": "529 {...}", "status": 529, "formatted": "529 Overloaded"}
    gathered = fold(
        log.record("system", subtype="api_error", error=error, retryInMs=557.5, retryAttempt=1, maxRetries=10),
        log.record("system", subtype="stop_hook_summary", hookCount=1, hookErrors=["exit 1"]),
        log.record("system", subtype="stop_hook_summary", hookCount=1, hookErrors=[]),
    )
    api, hook = events_of(gathered, ErrorEvent)
    assert (api.error_text, api.kind, api.status) == ("529 Overloaded", "api", 529)
    assert api.metadata["claude-code"]["retry_attempt"] == 1
    assert api.will_retry
    assert (hook.error_text, hook.kind) == ("exit 1", "hook")
    assert len(events_of(gathered, RunMetadataEvent)) == 1
