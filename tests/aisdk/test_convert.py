"""History -> UI messages: what a page shows of every kind of part and every state of a call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.model_values import values_of
from turnlog.aisdk import DynamicToolUIPart, validate_ui_messages
from turnlog.aisdk import encode as encode_ui
from turnlog.aisdk.convert import to_ui_json, to_ui_messages
from turnlog.aisdk.receive import from_ui_messages, restore_messages
from turnlog.model import (
    Approval,
    BlobRef,
    Citation,
    DataPart,
    ErrorEvent,
    FilePart,
    Message,
    MessageEvent,
    Origin,
    ProviderData,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
    ToolState,
    UnknownPart,
)
from turnlog.model.codec import decode_message, encode, to_json

STEP = {"type": "step-start"}


def answer(*parts: Any, id: str = "a1") -> Message:
    return Message(id=id, role="assistant", parts=parts)


def prompt(text: str, id: str = "u1") -> Message:
    return Message(id=id, role="user", origin=Origin.PROMPT, parts=(TextPart(text=text),))


def reminder(text: str, id: str = "d1") -> Message:
    return Message(id=id, role="developer", origin=Origin.HARNESS, parts=(TextPart(text=text),))


def call(id: str = "tc1", name: str = "search", state: str = "output-available", **more: Any) -> ToolCallPart:
    more.setdefault("input", to_json({"query": "test"}))
    return ToolCallPart(tool_call_id=id, tool_name=name, state=ToolState(state), **more)


def result(text: str | None = None, status: Any = "success", id: str = "r", **more: Any) -> ToolResult:
    content = () if text is None else (TextPart(text=text),)
    return ToolResult(id=id, status=status, content=content, **more)


def shown(*messages: Message, **options: Any) -> list[dict[str, Any]]:
    return json.loads(to_ui_json([encode(message) for message in messages], **options).to_json())


def part_of(part: Any, **options: Any) -> dict[str, Any]:
    """The UI part of one part of an answer."""
    (message,) = shown(answer(part), **options)
    step, ui_part = message["parts"]
    assert step == STEP
    return ui_part


def losses(*messages: Message, **options: Any) -> list[tuple[str, str]]:
    found = to_ui_json([encode(message) for message in messages], **options).losses
    return [(loss.feature, loss.path) for loss in found]


def tool(**fields: Any) -> dict[str, Any]:
    return {
        "type": "dynamic-tool",
        "toolName": "search",
        "toolCallId": "tc1",
        "input": {"query": "test"},
        **fields,
    }


def test_a_call_and_its_result_are_one_part() -> None:
    """R-H1, R-H2, R-H3."""
    messages = shown(prompt("find it"), answer(TextPart(text="I look."), call(results=(result('{"hits": 3}'),))))
    assert [(message["id"], message["role"]) for message in messages] == [("u1", "user"), ("a1", "assistant")]
    assert messages[0]["parts"] == [{"type": "text", "text": "find it"}]
    ui_part = tool(state="output-available", output={"hits": 3})
    assert messages[1]["parts"] == [STEP, {"type": "text", "text": "I look."}, ui_part]


def test_a_call_without_a_result_has_no_output() -> None:
    """R-H4, R-H5."""
    assert part_of(call(state="input-available")) == tool(state="input-available")


def test_results_can_be_left_out() -> None:
    """R-H5, R-H11."""
    message = answer(call(results=(result("3"),)))
    assert part_of(message.parts[0], merge_tool_results=False) == tool(state="input-available")
    assert losses(message, merge_tool_results=False) == [("tool-results", "$[0].parts[0]")]


def test_an_answer_of_calls_alone_has_no_text() -> None:
    """R-H6."""
    (message,) = shown(answer(call(state="input-available")))
    assert [part["type"] for part in message["parts"]] == ["step-start", "dynamic-tool"]


def test_parallel_calls_keep_their_order_and_their_own_results() -> None:
    """R-H7: whatever came first."""
    late, early = result("late", id="r1"), result("early", id="r2")
    first = call("tc1", results=(late,))
    second = call("tc2", "calculate", results=(early,))
    (message,) = shown(answer(TextPart(text="Let me search and calculate..."), first, second))
    ui_part = [(part.get("toolCallId"), part.get("output")) for part in message["parts"][1:]]
    assert ui_part == [(None, None), ("tc1", "late"), ("tc2", "early")]


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("invalid json string", "invalid json string"),
        ('{"a": [1, {"b": null}]}', {"a": [1, {"b": None}]}),
        (" \n[1, 2]\n", [1, 2]),
        ("42", 42),
        ("-1.5e3", -1500.0),
        ("true", True),
        ("null", None),
        ('"quoted"', "quoted"),
        ("", ""),
        ("  ", "  "),
        ("[INFO] started]", "[INFO] started]"),
        ('{"torn": ', '{"torn": '),
        ("42 apples", "42 apples"),
        ("007", "007"),
        ("truely", "truely"),
        ("NaN", "NaN"),
        ("12345678901234567890", "12345678901234567890"),
        ('{"__proto__": {"admin": true}}', '{"__proto__": {"admin": true}}'),
        ('{"big": 1e999}', '{"big": 1e999}'),
        ("[" * 5000 + "]" * 5000, "[" * 5000 + "]" * 5000),
        ("tabs\tand “quotes”\u0000 \U0001f600", "tabs\tand “quotes”\u0000 \U0001f600"),
    ],
    ids=lambda value: str(value)[:12] or "empty",
)
def test_json_is_parsed_and_any_other_text_stays(text: str, output: Any) -> None:
    """R-H8: scalars are JSON too; what JavaScript would change or refuse stays text."""
    assert part_of(call(results=(result(text),))) == tool(state="output-available", output=output)


def test_a_result_without_content_is_null_and_not_missing() -> None:
    assert part_of(call(results=(result(),))) == tool(state="output-available", output=None)
    assert part_of(call()) == tool(state="output-available", output=None)


def test_an_output_of_several_things_is_a_list_of_parts() -> None:
    content = (TextPart(text="here"), FilePart(media_type="image/png", data=b"\x89PNG"), TextPart(text="[1]"))
    output = part_of(call(results=(ToolResult(id="r", content=content),)))["output"]
    image = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw=="}
    assert output == [{"type": "text", "text": "here"}, image, {"type": "text", "text": "[1]"}]


def test_the_final_result_wins_over_preliminary_ones() -> None:
    preliminary = result("half", id="r1", preliminary=True)
    assert part_of(call(results=(preliminary,))) == tool(state="output-available", output="half", preliminary=True)
    report = result("whole", id="r2")
    assert part_of(call(results=(report, preliminary))) == tool(state="output-available", output="whole")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (result(status="error", error_text="no such file"), "no such file"),
        (result("exit 1", status="error"), "exit 1"),
        (result(status="error"), "The tool failed."),
        (None, "The tool failed."),
    ],
)
def test_a_failed_call_has_an_error_text(given: ToolResult | None, text: str) -> None:
    """R-H4, R-S10."""
    part = call(state="output-error", results=(given,) if given else ())
    assert part_of(part) == tool(state="output-error", errorText=text)


def test_aborted_is_an_error_with_a_name() -> None:
    part = call(state="aborted", results=(result(status="aborted"),))
    ui_part = tool(state="output-error", errorText="The tool call was aborted.")
    assert part_of(part) == ui_part | {"callProviderMetadata": {"turnlog": {"state": "aborted"}}}


def test_a_denied_call_names_the_approval_that_was_refused() -> None:
    """R-S10, R-S14: 5 knows no approvals."""
    refused = (result("the user said no", status="denied"),)
    part = call(state="output-denied", results=refused)
    denial = {"id": "tc1", "approved": False, "reason": "the user said no"}
    assert part_of(part) == tool(state="output-denied", approval=denial)
    assert part_of(part, version=5) == tool(state="output-error", errorText="the user said no")
    assert losses(answer(part), version=5) == [("approvals", "$[0].parts[0]")]
    named = call(state="output-denied", results=refused, approval=Approval(id="ap", approved=False, reason="never"))
    assert part_of(named)["approval"] == {"id": "ap", "approved": False, "reason": "never"}
    silent = call(state="output-denied", approval=Approval(id="ap", approved=False))
    assert part_of(silent)["approval"] == {"id": "ap", "approved": False}


@pytest.mark.parametrize(
    ("state", "approval", "ui_part"),
    [
        ("approval-requested", None, {"id": "tc1"}),
        ("approval-requested", Approval(id="ap"), {"id": "ap"}),
        (
            "approval-responded",
            Approval(id="ap", approved=True, reason="ok"),
            {"id": "ap", "approved": True, "reason": "ok"},
        ),
        ("approval-responded", Approval(approved=False), {"id": "tc1", "approved": False}),
    ],
)
def test_open_approvals(state: str, approval: Approval | None, ui_part: dict[str, Any]) -> None:
    """R-S10, R-S14."""
    part = call(state=state, approval=approval)
    assert part_of(part) == tool(state=state, approval=ui_part)
    assert part_of(part, version=5) == tool(state="input-available")
    assert losses(answer(part), version=5) == [("approvals", "$[0].parts[0]")]


def test_an_approval_is_shown_where_a_person_decided() -> None:
    approved_call = call(approval=Approval(id="ap", approved=True), results=(result("ok"),))
    assert part_of(approved_call) == tool(
        state="output-available", output="ok", approval={"id": "ap", "approved": True}
    )
    by_rule = call(approval=Approval(approved=True, source="config"), results=(result("ok"),))
    assert part_of(by_rule) == tool(state="output-available", output="ok")


def test_input_that_is_no_json_is_its_text_and_no_input_is_an_empty_object() -> None:
    broken = ToolCallPart(tool_call_id="tc1", tool_name="search", input_text='{"que')
    assert part_of(broken) == tool(state="input-available", input='{"que')
    for written in (None, "", " \n"):
        none = ToolCallPart(tool_call_id="tc1", tool_name="search", input_text=written)
        assert part_of(none) == tool(state="input-available", input={})
        answer = Message(id="a1", role="assistant", parts=(none,))
        assert from_ui_messages(to_ui_messages([answer]).messages, trusted=True).messages == [answer]


def test_input_that_still_streams() -> None:
    part = ToolCallPart(tool_call_id="tc1", tool_name="search", input_text='{"que', state=ToolState.INPUT_STREAMING)
    ui_part = {"type": "dynamic-tool", "toolName": "search", "toolCallId": "tc1", "state": "input-streaming"}
    assert part_of(part) == ui_part | {"rawInput": '{"que'}
    assert part_of(part, version="6.0.100") == ui_part
    assert losses(answer(part), version="6.0.100") == [("raw-input", "$[0].parts[0]")]


@pytest.mark.parametrize("version", [5, "6.0.38", 6, 7])
def test_provider_data_is_kept_where_a_release_has_no_field_for_it(version: int | str) -> None:
    """Validators take out of a message what their release does not know."""
    provider = ProviderData(name="openai", opaque={"item_id": "i"})
    given = answer(ToolCallPart(tool_call_id="c", tool_name="Bash", state=ToolState.INPUT_STREAMING, provider=provider))
    [message] = to_ui_messages([given], version=version).messages
    fields = json.loads(encode_ui(validate_ui_messages([message], version=version)))[0]
    assert ("callProviderMetadata" in fields["parts"][-1]) is (version in (6, 7))
    assert restore_messages(json.dumps(fields).encode()) == [given]


def test_tools_can_be_named_and_titled() -> None:
    part = call("tc1", "my-search", title="Search the web", provider_executed=True, results=(result("ok"),))
    ui_part = part_of(part, tools="named")
    assert (ui_part["type"], ui_part["title"], ui_part["providerExecuted"]) == (
        "tool-my-search",
        "Search the web",
        True,
    )
    assert "toolName" not in ui_part
    assert "title" not in part_of(part, version=5)
    assert losses(answer(part), version=5) == [("tool-title", "$[0].parts[0]")]


def test_reasoning_can_be_left_out() -> None:
    """R-H10."""
    message = answer(ReasoningPart(text="hm"), TextPart(text="Yes."))
    assert [part["type"] for part in shown(message)[0]["parts"]] == ["step-start", "reasoning", "text"]
    assert [part["type"] for part in shown(message, include_reasoning=False)[0]["parts"]] == ["step-start", "text"]
    assert losses(message, include_reasoning=False) == [("reasoning", "$[0]")]


@pytest.mark.parametrize(
    ("provider", "metadata"),
    [
        (ProviderData(name="anthropic", opaque={"signature": "sig"}), {"anthropic": {"signature": "sig"}}),
        (ProviderData(name="anthropic", opaque={"data": "xyz"}), {"anthropic": {"redactedData": "xyz"}}),
        (ProviderData(name="mine", opaque={"a": [1]}), {"mine": {"a": [1]}}),
        (ProviderData(name="anthropic", opaque={}), None),
    ],
)
def test_signatures_are_in_the_words_of_ai_sdk(provider: ProviderData, metadata: Any) -> None:
    ui_part = part_of(ReasoningPart(text="hm", provider=provider))
    assert ui_part.get("providerMetadata") == metadata
    assert part_of(call(state="input-available", provider=provider)).get("callProviderMetadata") == metadata


def test_sources_files_and_data() -> None:
    """R-S5 to R-S7."""
    page = SourceUrlPart(source_id="s1", url="https://example.org", title="Example")
    assert part_of(page) == {"type": "source-url", "sourceId": "s1", "url": "https://example.org", "title": "Example"}
    paper = SourceDocumentPart(source_id="s2", media_type="application/pdf", title="Paper", filename="p.pdf")
    assert part_of(paper) == {
        "type": "source-document",
        "sourceId": "s2",
        "mediaType": "application/pdf",
        "title": "Paper",
        "filename": "p.pdf",
    }
    file = FilePart(media_type="text/plain", filename="a.txt", data=b"hi")
    assert part_of(file) == {
        "type": "file",
        "mediaType": "text/plain",
        "url": "data:text/plain;base64,aGk=",
        "filename": "a.txt",
    }
    weather = DataPart(id="w1", name="weather", data=to_json({"sun": True}))
    assert part_of(weather) == {"type": "data-weather", "data": {"sun": True}, "id": "w1"}


@pytest.mark.parametrize("url", ["file:///etc/passwd", "img.png", "javascript:alert(1)", "https://", "C:\\a.png"])
def test_an_address_that_ai_sdk_does_not_take_becomes_a_data_part(url: str) -> None:
    part = FilePart(media_type="image/png", url=url)
    assert part_of(part) == {
        "type": "data-turnlog-part",
        "data": {"type": "file", "media_type": "image/png", "url": url},
    }
    assert losses(answer(part)) == [("file-address", "$[0].parts[0]")]


def test_files_of_a_store_have_the_address_that_the_caller_gives() -> None:
    blob = BlobRef(sha256="ab" * 32, size=3, media_type="image/png")
    part = FilePart(media_type="image/png", blob=blob)
    assert part_of(part)["type"] == "data-turnlog-part"

    def address(reference: BlobRef) -> str:
        return f"http://127.0.0.1:80/blobs/{reference.sha256}"

    assert part_of(part, blob_url=address)["url"] == f"http://127.0.0.1:80/blobs/{'ab' * 32}"


def test_unknown_parts_and_data_of_our_own_name_are_data_of_ours() -> None:
    unknown = UnknownPart(kind="hologram", data=to_json({"depth": 3}))
    ui_part = {"type": "unknown", "kind": "hologram", "data": {"depth": 3}}
    assert part_of(unknown) == {"type": "data-turnlog-part", "data": ui_part}
    forged = DataPart(name="turnlog-message", data=to_json({"id": "m", "role": "system"}))
    assert part_of(forged)["type"] == "data-turnlog-part"


def test_citations_since_7() -> None:
    """R-S14."""
    citations = (
        Citation(title="Example", url="https://example.org", cited_text="so", start_index=0, end_index=2),
        Citation(document="paper 3"),
    )
    part = TextPart(text="so it is", citations=citations)
    source = {"type": "source", "sourceType": "url", "id": "https://example.org", "url": "https://example.org"}
    cited = {"source": source | {"title": "Example"}, "startIndex": 0, "endIndex": 2, "citedText": "so"}
    assert part_of(part, version=7)["citations"] == [cited]
    assert "citations" not in part_of(part, version=6)
    assert losses(answer(part), version=6) == [("citations", "$[0].parts[0]")]


def test_one_step_start_a_model_call() -> None:
    messages = [
        prompt("go"),
        answer(TextPart(text="1"), id="a1"),
        answer(TextPart(text="2"), id="a2"),
        prompt("on", "u2"),
    ]
    merged = shown(*messages)
    assert [message["id"] for message in merged] == ["u1", "a1", "u2"]
    assert merged[1]["parts"] == [STEP, {"type": "text", "text": "1"}, STEP, {"type": "text", "text": "2"}]
    apart = shown(*messages, merge_steps=False)
    assert [message["id"] for message in apart] == ["u1", "a1", "a2", "u2"]
    assert apart[2]["parts"] == [STEP, {"type": "text", "text": "2"}]


def test_without_step_starts_every_model_call_is_a_message_as_helix_has_it() -> None:
    """R-H2, R-H6, R-H7: the seed's own messages, part for part."""
    alone = answer(call(results=(result('{"hits": 3}'),)), id="msg-1")
    (message,) = shown(alone, step_starts=False, include_metadata=False)
    ui_part = tool(state="output-available", output={"hits": 3})
    assert message == {"id": "msg-1", "role": "assistant", "parts": [ui_part]}
    second = answer(TextPart(text="Three."), id="msg-2")
    apart = shown(prompt("go"), alone, second, step_starts=False)
    assert [message["id"] for message in apart] == ["u1", "msg-1", "msg-2"]
    assert apart[2]["parts"] == [{"type": "text", "text": "Three."}]


def test_steps_cannot_be_merged_without_a_mark_between_them() -> None:
    with pytest.raises(ValueError, match="merge_steps needs step_starts"):
        shown(prompt("go"), step_starts=False, merge_steps=True)


@given(st.lists(values_of(Message), max_size=3))
def test_a_history_without_step_starts_comes_back_as_it_was(messages: list[Message]) -> None:
    """R-S13"""
    with_starts = to_ui_messages(messages)
    without = to_ui_messages(messages, step_starts=False)
    assert not [part for message in without.messages for part in message.parts if part.type == "step-start"]
    wanted = from_ui_messages(with_starts.messages, trusted=True).messages
    assert from_ui_messages(without.messages, trusted=True).messages == wanted


def test_messages_without_parts_are_valid() -> None:
    """R-H17: only an assistant may say nothing."""
    assert shown(answer())[0]["parts"] == [STEP]
    assert shown(Message(id="u", role="user"))[0]["parts"] == [{"type": "text", "text": ""}]
    assert shown(Message(id="s", role="system"))[0]["parts"] == [{"type": "text", "text": ""}]


def test_ids_are_the_same_on_every_call_or_made_by_the_caller() -> None:
    """R-H12: the index counts UI messages."""
    messages = [prompt("go"), answer(id="a1"), answer(id="a2"), prompt("on", "u2")]
    assert shown(*messages) == shown(*messages)

    def numbered(index: int, message: Message) -> str:
        return f"{index}-{message.role}-{message.id}"

    assert [m["id"] for m in shown(*messages, generate_id=numbered)] == ["0-user-u1", "1-assistant-a1", "2-user-u2"]


class TestWhatTheHarnessSaid:
    def test_is_data_of_its_neighbour(self) -> None:
        first, middle, last = reminder("be nice", "d1"), reminder("go on", "d2"), reminder("enough", "d3")
        messages = shown(first, prompt("go"), answer(id="a1"), middle, answer(id="a2"), last)
        kinds = [[part["type"] for part in message["parts"]] for message in messages]
        data = "data-turnlog-message"
        assert kinds == [[data, "text"], ["step-start", data, "step-start", data]]
        assert [message["id"] for message in messages] == ["u1", "a1"]
        assert messages[0]["parts"][0]["data"] == json.loads(encode(first))

    def test_alone_is_a_message_of_data(self) -> None:
        (message,) = shown(reminder("be nice"))
        assert (message["id"], message["role"], len(message["parts"])) == ("d1", "assistant", 1)

    @pytest.mark.parametrize("role", ["user", "system"])
    def test_is_a_message_of_its_own_by_option(self, role: Any) -> None:
        messages = shown(answer(id="a1"), reminder("be nice"), answer(id="a2"), developer=role)
        assert [(message["id"], message["role"]) for message in messages][1] == ("d1", role)
        assert len(messages) == 3

    def test_is_left_out_by_option(self) -> None:
        messages = [answer(id="a1"), reminder("be nice"), answer(id="a2")]
        assert len(shown(*messages, developer="omit")) == 1
        assert losses(*messages, developer="omit") == [("developer-messages", "$[1]")]


def test_metadata_keeps_what_ai_sdk_has_no_field_for_and_may_be_left_out() -> None:
    message = Message(id="a", role="assistant", model="large", parts=(TextPart(id="a.0", text="hi"),))
    own = {"id": "a", "role": "assistant", "model": "large", "parts": [{"type": "text", "id": "a.0"}]}
    assert shown(message)[0]["metadata"] == {"turnlog": {"messages": [own]}}
    assert "metadata" not in shown(message, include_metadata=False)[0]
    assert losses(message, include_metadata=False) == [("metadata", "$[0]")]


def test_previews_are_owned_up_to() -> None:
    blob = BlobRef(sha256="ab" * 32, size=70000)
    large = answer(
        TextPart(text="begin", blob=blob),
        ToolCallPart(tool_call_id="t", tool_name="n", input_text="{", input_blob=blob),
        call(results=(ToolResult(id="r", content=(TextPart(text="[1, 2]", blob=blob),)),)),
    )
    assert [part.get("output") for part in shown(large)[0]["parts"]][-1] == "[1, 2]"
    assert losses(large) == [("large-text", f"$[0].parts[{number}]") for number in range(3)]


def test_calls_name_the_sessions_that_they_started() -> None:
    found = to_ui_json([encode(answer(call()))], children={"tc1": "claude-code:child"})
    (message,) = json.loads(found.to_json())
    (remains,) = message["metadata"]["turnlog"]["messages"]
    assert remains["parts"][0]["child_session_id"] == "claude-code:child"


def test_a_version_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(ValueError, match="4"):
        to_ui_json([], version=4)


@pytest.mark.parametrize("version", [5, 6, 7])
@given(st.lists(values_of(Message), min_size=1, max_size=3))
def test_every_history_is_valid(version: int, messages: list[Message]) -> None:
    """R-H17, R-S14: writing for an older version degrades, and never fails."""
    known = [decode_message(encode(message)) for message in messages]
    assert validate_ui_messages(encode_ui(to_ui_messages(known, version=version).messages), version=version)


def test_results_that_arrive_on_their_own_are_joined() -> None:
    """R-H7, R-H9."""
    message = answer(call("tc1", state="input-available"), call("tc2", state="input-available"))
    history = [
        MessageEvent(message=message),
        ToolResultEvent(tool_call_id="tc2", result=result("second", id="r2")),
        ErrorEvent(id="e", error_text="overloaded"),
        ToolResultEvent(tool_call_id="tc1", result=result("first", id="r1")),
        ToolResultEvent(tool_call_id="gone", result=result("late", id="r3")),
    ]
    found = to_ui_messages(history)
    (ui_part,) = found.messages
    assert [part.output for part in ui_part.parts if isinstance(part, DynamicToolUIPart)] == ["first", "second"]
    assert [loss.feature for loss in found.losses] == ["orphan-result"]
    assert "gone" in found.losses[0].reason
