"""What each kind of record becomes, on logs made by hand."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from support.claude_files import calls_of
from support.gemini_files import (
    SESSION,
    SESSION_ID,
    answer,
    call,
    checkpoint,
    fold,
    fold_json,
    header,
    message,
    response,
    tokens,
    user,
)
from turnlog.agents.base import SourceKind
from turnlog.model import (
    ErrorEvent,
    FilePart,
    InterruptEvent,
    Origin,
    ProviderData,
    ReasoningPart,
    RecordEvent,
    RunMetadataEvent,
    TextPart,
    ToolKind,
    ToolState,
    UnknownPart,
    Usage,
)

CONTEXT = user("ctx", "<session_context>\nThis is the Gemini CLI.\n- **Workspace Directories:**\n  - /home/dev/shop\n")


def test_tokens_are_disjoint() -> None:
    """R-C5: input counts the cached, output leaves out the thoughts; tool prompts are counted apart."""
    logged = tokens(input=1000, cached=400, output=50, thoughts=20, tool=7, total=1077)
    found = message(fold(header(), user("u", "hi"), answer("g", "yes", tokens=logged)), "gemini:g")
    assert found.usage == Usage(input=600, cache_read=400, output=50, reasoning=20, tool_prompt=7)
    assert found.usage is not None
    assert found.usage.total == logged["total"]


@pytest.mark.parametrize("logged", [None, {}])
def test_unknown_tokens_are_not_zero(logged: Any) -> None:
    """R-C5"""
    found = message(fold(header(), answer("g", "yes", tokens=logged)), "gemini:g").usage
    assert found is None or found.total is None


def test_a_message_that_is_written_again_is_one() -> None:
    """R-C4: the second line has the calls, and nothing is counted twice."""
    spent = tokens(input=10, output=5)
    thought = {"subject": "Look", "description": "at files"}
    first = answer("g", "I look.", tokens=spent, thoughts=[thought])
    gathered = fold(header(), user("u", "go"), first, {**first, "toolCalls": [call("c1")]})
    found = message(gathered, "gemini:g")
    assert [part.type for part in found.parts] == ["reasoning", "text", "tool-call"]
    assert [part.text for part in found.parts if isinstance(part, ReasoningPart)] == ["**Look** at files"]
    assert found.usage == Usage(input=10, cache_read=0, output=5, reasoning=0, tool_prompt=0)
    assert gathered.place(found.id).step == 1


def test_an_id_may_be_that_of_an_answer_and_of_its_results() -> None:
    results = user("g", [response("c1")])
    gathered = fold(header(), user("u", "go"), answer("g", toolCalls=[call("c1")]), results, answer("h", "fine"))
    assert [m.id.rpartition(":")[2] for m in gathered.in_order(SESSION_ID)] == ["u", "g", "h"]
    assert [len(found.results) for found in gathered.calls()] == [1]
    assert gathered.counts.results == 1


def test_a_result_that_only_its_own_message_has() -> None:
    gathered = fold(header(), answer("g", toolCalls=[call("c1", None)]), user("r", [response("c1", "late")]))
    (found,) = gathered.calls()
    assert [result.output_text for result in found.results] == ["late"]
    assert found.state is ToolState.OUTPUT_AVAILABLE


def test_text_beside_a_result_is_a_message_too() -> None:
    gathered = fold(header(), answer("g", toolCalls=[call("c1")]), user("r", [response("c1"), {"text": "go on"}]))
    found = message(gathered, "user:r")
    assert [part.text for part in found.parts if isinstance(part, TextPart)] == ["go on"]


@pytest.mark.parametrize(
    ("status", "text", "state"),
    [
        ("success", "ok", ToolState.OUTPUT_AVAILABLE),
        ("error", "File not found", ToolState.OUTPUT_ERROR),
        ("cancelled", "[Operation Cancelled] Reason: User cancelled the operation.", ToolState.ABORTED),
        ("cancelled", "[Operation Cancelled] Reason: User did not allow tool call", ToolState.OUTPUT_DENIED),
        ("error", "Tool execution denied by policy.", ToolState.OUTPUT_DENIED),
    ],
)
def test_a_call_ends_in_one_of_four_ways(status: str, text: str, state: ToolState) -> None:
    """R-K9: aborted is not failed is not denied."""
    key = "output" if status == "success" else "error"
    result = [{"functionResponse": {"id": "c1", "name": "glob", "response": {key: text}}}]
    (found,) = fold(header(), answer("g", toolCalls=[{**call("c1"), "status": status, "result": result}])).calls()
    assert found.state is state
    assert found.results[0].error_text == (None if status == "success" else text)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("executing", ToolState.INPUT_AVAILABLE),
        ("awaiting_approval", ToolState.APPROVAL_REQUESTED),
        ("cancelled", ToolState.ABORTED),
    ],
)
def test_a_call_without_a_result_has_the_state_of_its_status(status: str, state: ToolState) -> None:
    (found,) = fold(header(), answer("g", toolCalls=[call("c1", None, status=status)])).calls()
    assert (found.state, found.results) == (state, ())


def test_a_call_keeps_its_exact_input_and_kind() -> None:
    shell = call("c1", "Output: x\nExit Code: 3", name="run_shell_command", args={"b": 1, "a": [2.50]})
    (found,) = fold(header(), answer("g", toolCalls=[shell])).calls()
    assert isinstance(found.input_value(), dict)
    assert found.kind is ToolKind.EXECUTE
    assert (found.results[0].exit_code, found.results[0].status) == (3, "success")


def test_a_large_output_names_its_file() -> None:
    place = f"/home/dev/.gemini/tmp/shop/tool-outputs/session-{SESSION}/run_shell_command_c1.txt"
    text = f"Output too large. Showing first 8,000 characters. For full output see: {place}\nabc"
    (found,) = fold(header(), answer("g", toolCalls=[call("c1", text)])).calls()
    assert found.results[0].spilled_to == "run_shell_command_c1.txt"


def test_files_in_a_prompt() -> None:
    data = base64.b64encode(b"pixels").decode()
    content = [{"text": "see"}, {"inlineData": {"mimeType": "image/png", "data": data}}, {"newKind": 1}]
    parts = message(fold(header(), user("u", content)), "user:u").parts
    assert isinstance(parts[1], FilePart)
    assert parts[1].data == b"pixels"
    assert isinstance(parts[2], UnknownPart)
    assert parts[2].kind == "newKind"


def test_the_typed_text_is_kept_where_more_was_sent() -> None:
    sent = [{"text": "read @a"}, {"text": "\n--- Content"}]
    gathered = fold(header(), user("u", sent, displayContent=[{"text": "read @a"}]))
    assert message(gathered, "user:u").metadata == {"gemini-cli": {"display": "read @a"}}
    assert gathered.sessions[SESSION_ID].titles == {"prompt": "read @a"}


def test_the_contents_of_named_files_are_not_what_was_typed() -> None:
    sent = ["read @a", "\n--- Content from referenced files ---", "\nContent from @a:\n", "alpha"]
    parts = message(fold(header(), user("u", [{"text": text} for text in sent])), "user:u").parts
    assert [isinstance(part, TextPart) and part.is_synthetic for part in parts] == [False, True, True, True]


def test_the_context_is_the_harness_and_names_the_folder() -> None:
    gathered = fold(header(), CONTEXT, user("u", "hi"))
    found = message(gathered, "user:ctx")
    assert (found.role, found.origin) == ("developer", Origin.HARNESS)
    assert gathered.place(found.id).turn is None
    assert gathered.sessions[SESSION_ID].project_path == "/home/dev/shop"


def test_to_a_subagent_only_its_first_message_is_a_prompt() -> None:
    gathered = fold(
        header(kind="subagent"), user("u", "task"), answer("g", "no"), user("v", "go on"), kind=SourceKind.SUBAGENT
    )
    assert [m.origin for m in gathered.in_order(SESSION_ID)] == [Origin.SUBAGENT_PROMPT, None, Origin.HARNESS]


def test_notes_are_events() -> None:
    """R-K7"""
    notes = [
        {"id": "n1", "type": "info", "content": "Request cancelled."},
        {"id": "n2", "type": "info", "content": "Update available"},
        {"id": "n3", "type": "error", "content": "quota"},
        {"id": "n4", "type": "warning", "content": "slow"},
    ]
    gathered = fold(header(), user("u", "hi"), *notes)
    interrupt, info, error, warning = [change.event for key, change in gathered.events.items() if ":" in key]
    assert isinstance(interrupt, InterruptEvent)
    assert interrupt.message_id == f"{SESSION}:user:u"
    assert isinstance(info, RecordEvent)
    assert info.known
    assert isinstance(error, ErrorEvent)
    assert error.error_text == "quota"
    assert isinstance(warning, RecordEvent)
    assert warning.known


def test_patches_are_facts_about_the_session() -> None:
    """R-C3, R-C6"""
    patches = [{"$set": {"summary": "Shop tour"}}, {"$set": {"memoryScratchpad": {"a": 1}}}, {"$set": {"odd": 1}}]
    gathered = fold(header(), user("u", "hi"), {"$set": {"directories": ["/home/dev/shop"]}}, *patches)
    assert gathered.sessions[SESSION_ID].titles == {"prompt": "hi", "summary": "Shop tour"}
    assert gathered.sessions[SESSION_ID].cwd == "/home/dev/shop"
    kinds = [
        (e.kind, e.known if isinstance(e, RecordEvent) else True)
        for e in (c.event for c in gathered.events.values())
        if isinstance(e, RecordEvent | RunMetadataEvent)
    ]
    assert kinds[1:] == [
        ("$set/directories", True),
        ("$set/summary", True),
        ("$set/memoryScratchpad", True),
        ("$set/odd", False),
    ]


def test_an_unknown_type_is_kept_as_such() -> None:
    gathered = fold(header(), {"type": "novelty", "id": "x", "data": 1})
    events = [change.event for change in gathered.events.values()]
    assert [event.kind for event in events if isinstance(event, RecordEvent) and not event.known] == ["novelty"]


def test_a_signature_that_only_a_checkpoint_has_goes_to_its_call() -> None:
    bare = {"functionCall": {"id": "c1", "name": "glob", "args": {"pattern": "*"}}, "thoughtSignature": "c2ln"}
    gathered = fold(
        header(),
        user("u", "hi"),
        answer("g", "look", toolCalls=[call("c1")]),
        checkpoint(user("u", "hi"), answer("g", [{"text": "look"}, bare])),
    )
    (found,) = gathered.calls()
    assert found.provider == ProviderData(name="google", model="gemini-3.8-flash", opaque={"thoughtSignature": "c2ln"})
    assert len(message(gathered, "gemini:g").parts) == 2


def test_a_log_that_begins_with_a_checkpoint_is_read_from_it() -> None:
    """Another file with the fuller records may be gone."""
    bare = {"functionCall": {"id": "c1", "name": "glob", "args": {"pattern": "*"}}}
    thought = {"text": "**Look** at files", "thought": True}
    results = user("g_response", [response("c1")])
    gathered = fold(
        header(),
        checkpoint(
            CONTEXT,
            user("u", "hi"),
            answer("g", [thought, {"text": "so"}, bare]),
            results,
            user("r", [response("c1")]),
            answer("h", [{"text": "done"}]),
        ),
    )
    found = message(gathered, "gemini:g")
    assert [part.type for part in found.parts] == ["reasoning", "text", "tool-call"]
    assert len(calls_of(found)[0].results) == 1
    assert [gathered.place(m.id).turn for m in gathered.in_order(SESSION_ID)] == [None, 1, 1, 1]


def test_a_file_of_json_and_its_sibling_of_lines_say_the_same() -> None:
    records = [user("u", "hi"), answer("g", "yes", tokens=tokens(input=3), toolCalls=[call("c1")])]
    as_lines, as_json = fold(header(), *records), fold_json(header(messages=records))
    assert as_json.messages == as_lines.messages
    assert (as_json.counts.messages, as_json.counts.events) == (2, 1)


def test_a_whole_record_on_one_line() -> None:
    gathered = fold(header(messages=[user("u", "hi"), answer("g", "yes")]), user("v", "more"))
    assert [m.id.rpartition(":")[2] for m in gathered.in_order(SESSION_ID)] == ["u", "g", "v"]
    assert gathered.counts.events == 1
