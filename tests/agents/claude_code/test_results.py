"""Results of tool calls: which call they answer, how it ended, and what is taken out of the agent's own account."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from support.claude_files import (
    AGENT,
    SESSION,
    Gathered,
    Log,
    call,
    calls_of,
    fold,
    gather,
    lines,
    read,
    session_source,
    sources,
    text,
)
from turnlog.agents.base import SourceKind
from turnlog.agents.changes import Changes, Link
from turnlog.model import (
    Approval,
    DataPart,
    FilePart,
    Origin,
    ResultStatus,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolState,
)

DENIED = "The user doesn't want to proceed with this tool use. The tool use was rejected"
ROOT = f"claude-code:{SESSION}"


def answered(content: Any = "done", *, is_error: bool | None = None, tool: str = "Bash", **fields: Any) -> ToolCallPart:
    """A call with one result of that content."""
    log = Log()
    gathered = fold(
        log.assistant("msg_1", call("toolu_1", tool), stop="tool_use", requestedModel="claude-opus-5-5"),
        log.result("toolu_1", content, is_error=is_error, **fields),
    )
    (found,) = gathered.calls()
    return found


def result_of(*args: Any, **fields: Any) -> ToolResult:
    (result,) = answered(*args, **fields).results
    return result


def test_a_result_has_its_text_its_time_and_its_status() -> None:
    """R-S16: output and timing."""
    found = answered("a.txt\n", is_error=False)
    (result,) = found.results
    assert (found.state, result.status, result.output_text) == (ToolState.OUTPUT_AVAILABLE, "success", "a.txt\n")
    assert result.completed_at is not None
    assert found.started_at is not None
    assert result.completed_at > found.started_at
    assert (result.error_text, result.exit_code, result.preliminary) == (None, None, False)


def test_blocks_of_a_result_keep_their_order() -> None:
    reference = {"type": "tool_reference", "tool_name": "CronCreate"}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "UE5H"}}
    found = result_of([image, text("[Image: source: a.png]"), reference])
    picture, note, tool = found.content
    assert picture == FilePart(media_type="image/png", data=b"PNG")
    assert note == TextPart(text="[Image: source: a.png]")
    assert isinstance(tool, DataPart)
    assert (tool.name, msgspec.json.decode(tool.data)) == ("tool_reference", reference)


REJECTED = {"permissionDecision": {"decision": "reject", "source": "config", "reasonCode": "bashMiss"}}
ENDINGS: list[tuple[str, dict[str, Any], ResultStatus, ToolState]] = [
    ("Exit code 3\noops", {}, "error", ToolState.OUTPUT_ERROR),
    ("<tool_use_error>Error: No such tool available</tool_use_error>", {}, "error", ToolState.OUTPUT_ERROR),
    (DENIED, {}, "denied", ToolState.OUTPUT_DENIED),
    (DENIED, {"toolDenialKind": "user-rejected", "toolDenialBeforeRun": True}, "denied", ToolState.OUTPUT_DENIED),
    (DENIED, {"toolDenialKind": "user-rejected"}, "aborted", ToolState.ABORTED),
    ("This command requires approval", {}, "denied", ToolState.OUTPUT_DENIED),
    ("PreToolUse:Bash hook error: [./check]: no", {}, "denied", ToolState.OUTPUT_DENIED),
    ("Bash operation blocked by hook:\n- [./check]: no", {}, "denied", ToolState.OUTPUT_DENIED),
    ("Permission to use Bash with command rm has been denied.", {}, "denied", ToolState.OUTPUT_DENIED),
    ("Exit plan mode?", {}, "denied", ToolState.OUTPUT_DENIED),
    ("Needs approval", {"toolDenialKind": "user-rejected", **REJECTED}, "denied", ToolState.OUTPUT_DENIED),
    ("[Request interrupted by user for tool use]", {}, "aborted", ToolState.ABORTED),
    ("Exit code 137\n[Request interrupted by user for tool use]", {}, "aborted", ToolState.ABORTED),
    ("Exit code 137\n1\n2\n[Request interrupted by user for tool use]", {}, "aborted", ToolState.ABORTED),
    ("Exit code 1\n[Request interrupted by user for tool use] was logged", {}, "error", ToolState.OUTPUT_ERROR),
    ("[Tool call interrupted: the session ended", {"toolDenialKind": "interrupted"}, "aborted", ToolState.ABORTED),
]


@pytest.mark.parametrize(("words", "fields", "status", "state"), ENDINGS)
def test_failed_is_not_aborted_is_not_denied(
    words: str, fields: dict[str, Any], status: ResultStatus, state: ToolState
) -> None:
    found = answered(words, is_error=True, **fields)
    assert (found.results[0].status, found.state) == (status, state)


RULE = {"toolDenialKind": "permission-rule"}
USER = {"toolDenialKind": "user-rejected"}
OLDER_ENDINGS: list[tuple[str, str, dict[str, Any], ResultStatus]] = [
    ("default", DENIED, {}, "denied"),
    ("default", DENIED, USER, "denied"),
    ("plan", DENIED, USER, "denied"),
    ("bypassPermissions", DENIED, {}, "aborted"),
    ("bypassPermissions", DENIED, USER, "aborted"),
    ("bypassPermissions", "PreToolUse:Bash hook error: [./check]: no", RULE, "denied"),
    ("bypassPermissions", "the hook's own words", RULE, "denied"),
    ("default", "Claude requested permissions to write to /a, but you haven't granted it yet.", USER, "denied"),
    ("default", "touch in '/a/b' was blocked. For security, Claude Code may only write to files in", {}, "denied"),
    ("default", "touch: cannot touch 'a' was blocked", {}, "error"),
]


@pytest.mark.parametrize(("mode", "words", "fields", "status"), OLDER_ENDINGS)
def test_denials_and_interruptions_differ_also_before_fields_say_which(
    mode: str, words: str, fields: dict[str, Any], status: ResultStatus
) -> None:
    """R-K9: 2.1.150 to 2.1.290 have the same words, and later the same kind, for a no and for Escape."""
    log = Log("2.1.215")
    gathered = fold(
        log.user("Do it", permissionMode=mode),
        log.assistant("msg_1", call("toolu_1"), stop="tool_use"),
        log.result("toolu_1", words, is_error=True, **fields),
        log.user("[Request interrupted by user for tool use]"),
    )
    (found,) = gathered.calls()
    assert found.results[0].status == status


ASKED = {
    "toolu_run1": (ToolState.ABORTED, None),
    "toolu_den1": (ToolState.OUTPUT_DENIED, False),
    "toolu_den2": (ToolState.OUTPUT_DENIED, False),
    "toolu_ok1": (ToolState.OUTPUT_AVAILABLE, None),
}
"""In a terminal that asks for leave: Escape on a command that runs, Escape at the question, a no, and a yes."""


@pytest.mark.parametrize("version", ["2.1.150-escape", "2.1.260-escape"])
def test_escape_on_a_running_tool_is_no_denied_permission(version: str) -> None:
    """R-K9: 2.1.150 has other words for it, later versions the interrupt behind it, which names the message."""
    found = {
        made.tool_call_id: (made.state, made.approval.approved if made.approval else None)
        for made in read(sources("versions", version)).calls()
    }
    assert found == ASKED


def test_a_call_that_waits_for_another_is_not_refused_by_escape() -> None:
    """R-K9: 2.1.330 in a terminal that asks for leave. Nobody was asked of the last, which never ran."""
    found = {
        made.tool_call_id: (made.state, made.approval.approved if made.approval else None)
        for made in read(sources("versions", "2.1.330-parallel")).calls()
    }
    assert found == {
        "toolu_p1": (ToolState.OUTPUT_AVAILABLE, True),
        "toolu_p2": (ToolState.ABORTED, None),
        "toolu_p3": (ToolState.ABORTED, None),
    }


def test_a_rejection_is_deferred_until_a_later_record_decides_it() -> None:
    log = Log("2.1.260")
    refused = [
        log.user("Do it", permissionMode="default"),
        log.assistant("msg_1", call("toolu_1"), stop="tool_use"),
        log.result("toolu_1", DENIED, is_error=True),
    ]
    assert fold(*refused).calls()[0].state is ToolState.INPUT_AVAILABLE
    for following, state in (
        (log.user("[Request interrupted by user for tool use]", interruptedMessageId="msg_1"), ToolState.ABORTED),
        (log.user("[Request interrupted by user for tool use]"), ToolState.OUTPUT_DENIED),
        (log.user("Then not"), ToolState.OUTPUT_DENIED),
        (log.assistant("msg_2", text("Then not.")), ToolState.OUTPUT_DENIED),
    ):
        for feeds in ([[*refused, following]], [refused, [following]]):
            (found,) = fed(*feeds).calls()
            assert found.state is state


def test_a_command_that_was_interrupted_is_aborted_without_an_error() -> None:
    assert result_of("1\n2", toolUseResult={"stdout": "1\n2", "interrupted": True}).status == "aborted"


def test_an_error_has_its_words_and_its_exit_code() -> None:
    failed = result_of("Exit code 127\nnot found", is_error=True)
    assert (failed.error_text, failed.exit_code) == ("Exit code 127\nnot found", 127)
    tagged = result_of("<tool_use_error>No such tool</tool_use_error>", is_error=True)
    assert (tagged.error_text, tagged.exit_code) == ("No such tool", None)


def test_the_approval_of_a_call_is_on_the_call() -> None:
    decision = {"decision": "accept", "source": "user_temporary", "reasonType": "rule", "grantScope": "once"}
    assert answered(permissionDecision=decision).approval == Approval(
        approved=True, source="user_temporary", reason="rule", metadata={"claude-code": {"grant_scope": "once"}}
    )
    refused = answered(DENIED, is_error=True, toolDenialKind="user-rejected", toolDenialBeforeRun=True)
    assert refused.approval == Approval(approved=False, source="user-rejected")
    assert answered().approval is None


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        ({"durationMs": 41}, 41),
        ({"totalDurationMs": 187}, 187),
        ({"durationSeconds": 1.5}, 1500),
        ({"durationMs": "x"}, None),
    ],
)
def test_how_long_a_tool_ran_comes_from_the_agents_account(account: dict[str, Any], expected: int | None) -> None:
    assert result_of(toolUseResult=account).duration_ms == expected


def test_searches_of_another_model_are_counted_on_the_result() -> None:
    assert result_of(tool="WebSearch", toolUseResult={"query": "q", "searchCount": 2}).metadata == {
        "claude-code": {"searches": 2}
    }


@pytest.mark.parametrize(
    "account", ["Error: no", [{"type": "text"}], 5, None, True, {"status": 7, "agentId": 5, "isAsync": "?"}]
)
def test_any_shape_of_the_agents_account_is_passed_over(account: Any) -> None:
    log = Log()
    gathered = fold(log.assistant("msg_1", call("toolu_1")), log.result("toolu_1", toolUseResult=account))
    assert len(gathered.calls()[0].results) == 1
    assert not gathered.diagnostics
    assert not gathered.links


def test_the_agents_account_is_read_from_the_record() -> None:
    """The fold leaves `toolUseResult` where it is; `structured_result` reads it."""
    log = Log()
    account = {"stdout": "ü", "n": [1, 2.5]}
    (record,) = lines(log.result("toolu_1", toolUseResult=account)).splitlines()
    found = AGENT.structured_result(record, "toolu_1")
    assert found is not None
    assert msgspec.json.decode(found) == account
    assert AGENT.structured_result(record, "toolu_2") is None
    assert AGENT.structured_result(lines(log.result("toolu_1")), "toolu_1") is None
    assert AGENT.structured_result(b"{torn", "toolu_1") is None
    copied = lines(
        log.record("progress", data={"type": "agent_progress", "message": log.result("t", toolUseResult=[1])})
    )
    nested = AGENT.structured_result(copied, "t")
    assert nested is not None
    assert bytes(nested) == b"[1]"


def test_results_of_several_calls_and_text_in_one_record() -> None:
    log = Log("1.0.24")
    blocks = [
        {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
        text("and remember this"),
        {"type": "tool_result", "tool_use_id": "t2", "content": [text("two")]},
    ]
    asked = log.assistant("msg_1", call("t1"), call("t2"), stop="tool_use")
    record = log.user(blocks)
    gathered = fold(asked, record)
    assert [found.results[0].output_text for found in gathered.calls()] == ["one", "two"]
    beside = gathered.messages[record["uuid"]]
    assert [part.text for part in beside.parts if isinstance(part, TextPart)] == ["and remember this"]
    assert (gathered.counts.messages, gathered.counts.results) == (1, 1)


def test_the_same_result_in_a_copy_with_a_new_uuid_has_the_same_id() -> None:
    """Up to 1.0.24 a resumed session copied its history under new record ids."""
    first, copy = result_of("same"), result_of("same", uuid="99999999-0000-4000-8000-000000000001")
    assert first.id == copy.id
    assert first.id.startswith("toolu_1:")
    assert result_of("other").id != first.id


def test_a_repeated_record_is_counted_and_changes_nothing() -> None:
    log = Log()
    asked, result = log.assistant("msg_1", call("t1")), log.result("t1")
    gathered = fold(asked, result, result)
    assert len(gathered.calls()[0].results) == 1
    assert gathered.counts.duplicates == 1


def test_a_result_after_its_call_was_fed_is_joined_by_its_id() -> None:
    log = Log()
    asked = lines(log.assistant("msg_1", call("t1"), stop="tool_use"))
    result = lines(log.result("t1", permissionDecision={"decision": "accept", "source": "config"}))
    fold_of_log = AGENT.fold(session_source())
    first = fold_of_log.feed(asked, 0)
    resumed = AGENT.fold(session_source(), fold_of_log.state())
    second = resumed.feed(result, len(asked))
    (late,) = second.results
    assert (late.message_id, late.tool_call_id, late.position) == ("msg_1", "t1", len(asked))
    assert late.approval == Approval(approved=True, source="config")
    whole = gather(AGENT.fold(session_source()).feed(asked + result, 0))
    assert gather(first, second).as_json() == whole.as_json()


def test_a_result_without_its_call_is_an_orphan() -> None:
    gathered = fold(Log().result("toolu_lost"))
    (orphan,) = gathered.late
    assert (orphan.tool_call_id, orphan.message_id) == ("toolu_lost", None)


# Spilled outputs

SPILL = "<persisted-output>\nOutput too large (340.7KB). Full output saved to: {}\n\nPreview (first 2KB):\n1\n2"


def spilled(path: str) -> tuple[str | None, list[str]]:
    log = Log()
    gathered = fold(log.assistant("msg_1", call("t1")), log.result("t1", SPILL.format(path)))
    return gathered.calls()[0].results[0].spilled_to, [found.severity for found in gathered.diagnostics]


@pytest.mark.parametrize(
    "path",
    [
        f"/home/dev/.claude/projects/-home-dev-proj/{SESSION}/tool-results/b8vcrgm1a.txt",
        f"C:\\Users\\dev\\.claude\\projects\\-c-proj\\{SESSION}\\tool-results\\b8vcrgm1a.txt",
    ],
)
def test_a_spilled_output_is_known_by_its_name(path: str) -> None:
    assert spilled(path) == ("b8vcrgm1a.txt", [])


@pytest.mark.parametrize("path", ["/etc/passwd", f"/x/{SESSION}/tool-results/../../../secret", "relative.txt", ""])
def test_a_path_outside_the_sessions_folder_is_never_taken(path: str) -> None:
    """No path in a log is followed; one that claims to lie elsewhere is told."""
    name, told = spilled(path)
    assert name is None
    assert told == ["note"] if path else told == []


def test_an_output_in_another_sessions_folder_is_noted() -> None:
    path = "/x/22222222-2222-4222-8222-222222222222/tool-results/a.txt"
    assert spilled(path) == ("a.txt", ["note"])


def test_a_fork_names_the_spilled_output_of_its_origin() -> None:
    origin = "22222222-2222-4222-8222-222222222222"
    log = Log()
    gathered = fold(
        log.assistant("msg_1", call("t1"), requestSessionId=origin),
        log.result("t1", SPILL.format(f"/x/{origin}/tool-results/a.txt")),
    )
    assert gathered.calls()[0].results[0].spilled_to == "a.txt"
    assert not gathered.diagnostics


# Subagents

LAUNCH = {"isAsync": True, "status": "async_launched", "agentId": "a1", "outputFile": "/tmp/x"}
REPORT = (
    "<task-notification>\n<task-id>a1</task-id>\n<tool-use-id>t1</tool-use-id>\n<output-file>/tmp/x</output-file>\n"
    "<status>completed</status>\n<summary>Agent done</summary>\n<result>There are <b>2</b> files.</result>\n"
    "<usage><total_tokens>109</total_tokens></usage>\n</task-notification>"
)


def link(**fields: Any) -> Link:
    return Link(kind="subagent", parent_session_id=ROOT, child_session_id=f"{ROOT}.a1", **fields)


def test_a_subagents_result_links_it_to_the_call() -> None:
    """R-C10: which call started which session."""
    log = Log()
    account = {"status": "completed", "agentId": "a1", "totalDurationMs": 338}
    gathered = fold(log.assistant("msg_1", call("t1", "Task")), log.result("t1", "2 files", toolUseResult=account))
    assert list(gathered.links.values()) == [link(tool_call_id="t1", message_id="msg_1")]
    (result,) = gathered.calls()[0].results
    assert (result.preliminary, result.duration_ms) == (False, 338)


@pytest.mark.parametrize("report", [REPORT, REPORT.replace("<tool-use-id>t1</tool-use-id>\n", "")])
@pytest.mark.parametrize("queued", [False, True])
def test_a_background_agent_has_two_results(report: str, queued: bool) -> None:
    """R-C10: launched, then its report, which the model gets as a notification."""
    log = Log()
    records = [
        log.assistant("msg_1", call("t1", "Agent", prompt="count"), stop="tool_use"),
        log.result("t1", "Async agent launched successfully.", toolUseResult=LAUNCH),
        log.assistant("msg_2", text("Waiting.")),
    ]
    if queued:
        attachment = {"type": "queued_command", "prompt": report, "commandMode": "task-notification"}
        records.append(log.record("attachment", attachment=attachment, rendered=[{"content": "[SYSTEM NOTIFICATION…"}]))
    else:
        records.append(log.user(report, origin={"kind": "task-notification"}))
    gathered = fold(*records)
    (found,) = gathered.calls()
    launched, reported = found.results
    assert (launched.preliminary, reported.preliminary) == (True, False)
    assert (reported.status, reported.output_text) == ("success", "There are <b>2</b> files.")
    assert found.output_text == "There are <b>2</b> files."
    notification = gathered.messages[records[-1]["uuid"]]
    assert (notification.origin, notification.role) == (Origin.NOTIFICATION, "developer")
    assert gathered.links[("subagent", ROOT, f"{ROOT}.a1")].tool_call_id == "t1"


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ("completed", "success"),
        ("failed", "error"),
        ("killed", "aborted"),
        ("stopped", "aborted"),
        ("new word", "success"),
    ],
)
def test_a_background_command_reports_how_it_ended(told: str, status: ResultStatus) -> None:
    log = Log()
    tags = {"task-id": "b9", "status": told, "summary": "exit code 0"}
    inner = "\n".join(f"<{name}>{value}</{name}>" for name, value in tags.items())
    report = f"<task-notification>\n{inner}\n</task-notification>"
    gathered = fold(
        log.assistant("msg_1", call("t1")),
        log.result("t1", "Command running in background with ID: b9", toolUseResult={"backgroundTaskId": "b9"}),
        log.user(report),
    )
    launched, reported = gathered.calls()[0].results
    assert launched.preliminary
    assert (reported.status, reported.output_text) == (status, "exit code 0")


def test_a_workflow_has_its_result_when_it_ends() -> None:
    """Recorded with 2.1.330: it was killed with its process and begun again."""
    gathered = read(sources("versions", "2.1.330-workflow"))
    results = {
        made.tool_call_id: [(result.preliminary, result.status) for result in made.results]
        for made in gathered.calls()
        if made.tool_name == "Workflow"
    }
    assert results == {
        "toolu_wf": [(True, "success"), (False, "aborted")],
        "toolu_wf2": [(True, "success"), (False, "success")],
    }


def test_reports_in_one_record_are_results_of_their_calls() -> None:
    """R-K9, R-C10: 2.1.330 tells a waiting subagent of several of its own in one record, which is flagged as meta."""
    gathered = read(sources("versions", "2.1.330-nested"))
    calls = {made.tool_call_id: made for made in gathered.calls()}
    found = {
        name: [(result.preliminary, result.status) for result in calls[name].results]
        for name in ("toolu_nA1", "toolu_nA2", "toolu_nA3")
    }
    assert list(found.values()) == [[(True, "success"), (False, "success")]] * 3
    texts = [calls[name].results[-1].output_text for name in found]
    assert texts == ["B done.", "E done <b>with tags</b> & more.", "F done."]
    origins = [message.origin for message in gathered.messages.values() if "task-notification" in str(message.parts)]
    assert origins == [Origin.NOTIFICATION] * 3


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("a &lt;b&gt; &amp;amp; &amp; c", "a <b> &amp; & c"),
        ("a <b> &amp; c", "a <b> &amp; c"),
        ("a & b &amp; c", "a & b &amp; c"),
    ],
)
def test_what_a_report_quotes_is_unescaped_where_it_was_escaped(written: str, said: str) -> None:
    """Recorded: 2.1.120 to 2.1.330 escape, 2.1.33 to 2.1.76 do not."""
    log = Log()
    report = REPORT.replace("There are <b>2</b> files.", written)
    gathered = fold(log.assistant("msg_1", call("t1", "Agent")), log.user(report, origin={"kind": "task-notification"}))
    assert gathered.calls()[0].output_text == said


def test_a_monitor_continues_after_its_first_result() -> None:
    gathered = read(sources("versions", "2.1.330-background"))
    (found,) = [made for made in gathered.calls() if made.tool_name == "Monitor"]
    assert [result.preliminary for result in found.results] == [True, False]
    assert found.output_text == 'Monitor "watch" stream ended'
    events = [message for message in gathered.messages.values() if "<event>" in str(message.parts)]
    assert {message.origin for message in events} == {Origin.NOTIFICATION}


def test_a_copied_calls_subagent_belongs_to_the_session_that_ran_it() -> None:
    origin = "22222222-2222-4222-8222-222222222222"
    log = Log()
    gathered = fold(
        log.assistant("msg_1", call("t1", "Task"), requestSessionId=origin),
        log.result("t1", toolUseResult={"status": "completed", "agentId": "a1"}),
    )
    assert ("subagent", f"claude-code:{origin}", f"claude-code:{origin}.a1") in gathered.links


def test_progress_may_be_the_only_copy_of_a_subagent() -> None:
    """R-C10: messages of the child session, in the parent's log."""
    log, child = Log("2.1.50"), Log("2.1.50")
    asked = log.assistant("msg_1", call("t1", "Task", prompt="count"), stop="tool_use")
    prompt, answer = child.user("count", uuid="c-1"), child.assistant("msg_c", call("t9"), stop="tool_use", uuid="c-2")
    for record in (prompt, answer):
        del record["parentUuid"], record["isSidechain"], record["sessionId"]
    steps = [
        log.record(
            "progress", data={"type": "agent_progress", "agentId": "a1", "message": record}, parentToolUseID="t1"
        )
        for record in (prompt, answer)
    ]
    result = log.result("t1", "2 files")
    gathered = fold(asked, *steps, result, log.assistant("msg_2", text("done")))
    assert [message.id for message in gathered.in_order(f"{ROOT}.a1")] == ["c-1", "msg_c"]
    assert [message.id for message in gathered.in_order(ROOT)] == ["msg_1", "msg_2"]
    assert gathered.messages["c-1"].origin is Origin.SUBAGENT_PROMPT
    assert gathered.links[("subagent", ROOT, f"{ROOT}.a1")].tool_call_id == "t1"
    assert gathered.place("msg_2").parent_id == "msg_1"
    assert not any(change.has_branches for change in gathered.sessions.values())


def test_a_broken_copy_in_progress_is_a_diagnostic() -> None:
    log = Log()
    gathered = fold(log.record("progress", data={"type": "agent_progress", "agentId": "a1", "message": {"type": 5}}))
    assert [found.json_path for found in gathered.diagnostics] == ["$.data.message"]
    assert gathered.counts.events == 1


def test_a_sidechain_in_the_parents_file_is_a_session_of_its_own() -> None:
    """Up to 1.0.x: no agent id; the call is the open one with the same prompt."""
    log, side = Log("1.0.24"), Log("1.0.24", isSidechain=True)
    asked = log.assistant(
        "msg_1", call("t1", "Task", prompt="other"), call("t2", "Task", prompt="count"), stop="tool_use"
    )
    root = side.user("count", uuid="s-1")
    answer = side.assistant("msg_s", text("2 files"), uuid="s-2")
    gathered = fold(asked, root, answer, log.result("t2", "2 files"))
    child = f"{ROOT}.s-1"
    assert [message.id for message in gathered.in_order(child)] == ["s-1", "msg_s"]
    assert gathered.messages["s-1"].origin is Origin.SUBAGENT_PROMPT
    (found,) = gathered.links.values()
    assert (found.child_session_id, found.tool_call_id, found.message_id, found.inferred) == (
        child,
        "t2",
        "msg_1",
        True,
    )
    assert (gathered.place("msg_s").turn, gathered.place("msg_s").step) == (1, 1)


def test_a_subagents_file_names_its_parent() -> None:
    """R-C10: 2.0.x files lie beside the sessions, and only their records say whose they are."""
    log = Log("2.0.30", isSidechain=True, agentId="a1")
    gathered = fold(log.user("count"), log.assistant("msg_1", text("2")), kind=SourceKind.SUBAGENT)
    assert set(gathered.sessions) == {f"{ROOT}.a1"}
    assert list(gathered.links.values()) == [link(inferred=True)]
    assert gathered.sessions[f"{ROOT}.a1"].titles == {"prompt": "count"}


def test_warm_ups_are_sidecars_of_the_conversation() -> None:
    log = Log("2.0.30", isSidechain=True, agentId="a1")
    gathered = fold(log.user("Warmup"), log.assistant("msg_1", text("Hi.")), kind=SourceKind.SUBAGENT)
    assert {place.fate for place in gathered.placements.values()} == {"sidecar"}


def test_parallel_calls_each_have_their_own_result() -> None:
    log = Log()
    prompt = log.user("go")
    first = log.assistant("msg_1", call("t1"), stop="tool_use", apiBlockIndex=0)
    second = log.assistant("msg_1", call("t2"), stop="tool_use", apiBlockIndex=1)
    later, sooner = (
        log.result("t2", "two", parentUuid=second["uuid"]),
        log.result("t1", "one", parentUuid=first["uuid"]),
    )
    gathered = fold(prompt, first, second, later, sooner, log.assistant("msg_2", text("both")))
    assert [found.results[0].output_text for found in calls_of(gathered.messages["msg_1"])] == ["one", "two"]
    assert gathered.place("msg_2").parent_id == "msg_1"
    assert not gathered.sessions[ROOT].has_branches


def fed(*feeds: list[dict[str, Any]]) -> Gathered:
    """What feeds of one log bring, the fold being put away between them."""
    pieces, state, offset = list[Changes](), None, 0
    for records in feeds:
        reading = AGENT.fold(session_source(), state)
        pieces.append(reading.feed(lines(*records), offset))
        state, offset = reading.state(), offset + len(lines(*records))
    return gather(*pieces)


def test_a_call_without_a_result_is_aborted_when_the_next_turn_begins() -> None:
    """R-S16: up to 2.1.33 nothing in the log says that the agent was stopped while its tool ran."""
    log = Log()
    written = [
        log.user("go"),
        log.assistant("msg_1", call("toolu_1"), stop="tool_use"),
        log.assistant("msg_1", call("toolu_2"), stop="tool_use"),
        log.result("toolu_2", "done"),
        log.user("go on"),
    ]
    for feeds in ([written], [[record] for record in written]):
        states = {found.tool_call_id: found.state for found in fed(*feeds).calls()}
        assert states == {"toolu_1": ToolState.ABORTED, "toolu_2": ToolState.OUTPUT_AVAILABLE}
    assert next(found.state for found in fed(written[:4]).calls()) is ToolState.INPUT_AVAILABLE


def test_an_aborted_call_may_still_get_its_result() -> None:
    log = Log()
    written = [
        log.assistant("msg_1", call("toolu_1"), stop="tool_use"),
        log.user("meanwhile"),
        log.result("toolu_1", "late"),
    ]
    for feeds in ([written], [[record] for record in written]):
        (found,) = fed(*feeds).calls()
        assert (found.state, found.output_text) == (ToolState.OUTPUT_AVAILABLE, "late")


def test_a_call_that_runs_in_the_background_is_not_aborted() -> None:
    log = Log()
    gathered = fold(
        log.assistant("msg_1", call("toolu_1"), stop="tool_use"),
        log.result("toolu_1", "running", toolUseResult={"backgroundTaskId": "b1"}),
        log.user("meanwhile"),
    )
    (found,) = gathered.calls()
    assert found.state is ToolState.OUTPUT_AVAILABLE
