"""Lines become messages: blocks of one answer, and the many kinds of text with role `user`."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from support.claude_files import SESSION, Log, call, calls_of, fold, read, sources, text
from turnlog.anthropic_api import STOP_REASONS
from turnlog.model import (
    Citation,
    Cost,
    DataPart,
    FilePart,
    MessageError,
    Origin,
    ProviderData,
    ReasoningPart,
    RecordEvent,
    SourceUrlPart,
    TextPart,
    ToolKind,
    ToolState,
    UnknownPart,
    Usage,
)

PIXEL = base64.b64encode(b"\x89PNG pixel").decode()
THINKING = {"type": "thinking", "thinking": "Hmm.", "signature": "c2ln"}


def texts(message: Any) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, TextPart)]


# Answers


def test_lines_of_one_message_with_results_between_are_one_message() -> None:
    """R-S15, R-S17: thinking, text and calls of one response are parts of one message, in the order of its blocks."""
    log = Log()
    prompt = log.user("go")
    thinking = log.assistant("msg_1", THINKING, stop="tool_use", apiBlockIndex=0, thinkingDurationMs=12)
    first = log.assistant("msg_1", call("toolu_1", command="ls"), stop="tool_use", apiBlockIndex=1)
    result = log.result("toolu_1", "a.txt", parentUuid=first["uuid"])
    second = log.assistant("msg_1", call("toolu_2", "Read", file_path="a.txt"), stop="tool_use", apiBlockIndex=3)
    late = log.assistant("msg_1", text("Reading."), stop="tool_use", apiBlockIndex=2, parentUuid=first["uuid"])
    gathered = fold(prompt, thinking, first, result, second, late)

    message = gathered.messages["msg_1"]
    assert [part.type for part in message.parts] == ["reasoning", "tool-call", "text", "tool-call"]
    assert [part.id for part in message.parts] == ["msg_1.0", "msg_1.1", "msg_1.2", "msg_1.3"]
    reasoning = message.parts[0]
    assert isinstance(reasoning, ReasoningPart)
    assert (reasoning.text, reasoning.duration_ms) == ("Hmm.", 12)
    assert reasoning.provider == ProviderData(name="anthropic", model="claude-opus-5-5", opaque={"signature": "c2ln"})
    assert message.created_at is not None
    assert message.completed_at is not None
    assert message.completed_at > message.created_at
    place = gathered.place("msg_1")
    assert [brought for *_, brought in place.records] == [0, 1, calls_of(message)[0].results[0].id, 3, 2]
    assert place.record_ids == tuple(record["uuid"] for record in (thinking, first, result, second, late))
    assert (place.turn, place.step) == (1, 1)


def test_lines_with_different_facts_agree_however_the_log_is_split() -> None:
    """R-S15: of two models that lines of one message name, the store's join and the fold keep the same."""
    log = Log()
    lines = [
        log.assistant("msg_1", THINKING, apiBlockIndex=0, requestedModel="claude-a"),
        log.assistant("msg_1", text("Done."), apiBlockIndex=1, requestedModel="claude-b"),
    ]
    assert fold(*lines).messages["msg_1"].requested_model == "claude-a"
    assert fold(*reversed(lines)).messages["msg_1"].requested_model == "claude-a"


def test_blocks_without_an_index_are_in_the_order_of_their_lines() -> None:
    log = Log("2.0.30")
    gathered = fold(
        log.assistant("msg_1", THINKING, stop=None),
        log.assistant("msg_1", text("Now."), stop=None),
        log.assistant("msg_1", call("toolu_1"), call("toolu_2"), stop="tool_use"),
    )
    message = gathered.messages["msg_1"]
    assert [part.id for part in message.parts] == ["msg_1.0", "msg_1.1", "msg_1.2", "msg_1.3"]
    assert [part.type for part in message.parts] == ["reasoning", "text", "tool-call", "tool-call"]


def test_a_repeated_block_is_one_part_with_its_longest_text() -> None:
    log = Log("1.0.24")
    gathered = fold(
        log.assistant("msg_1", text("Let me"), stop=None),
        log.assistant("msg_1", text("Let me look"), stop=None),
        log.assistant("msg_1", text("Let me look"), call("toolu_1"), stop=None),
        log.assistant("msg_1", call("toolu_1"), text("Other"), stop="tool_use"),
    )
    message = gathered.messages["msg_1"]
    assert [(part.type, part.id) for part in message.parts] == [
        ("text", "msg_1.0"),
        ("tool-call", "msg_1.1"),
        ("text", "msg_1.2"),
    ]
    assert texts(message) == ["Let me look", "Other"]


def test_an_assistant_message_without_an_id_has_that_of_its_record() -> None:
    log = Log()
    record = log.assistant("", text("hi"))
    del record["message"]["id"]
    assert list(fold(record).messages) == [record["uuid"]]


def test_a_call_keeps_its_name_input_and_start() -> None:
    """R-S16: name, id, input as the model wrote it, kind, and when it began."""
    log = Log()
    gathered = fold(
        log.assistant("msg_1", call("toolu_1", "Edit", file_path="ä.py", big=12345678901234567890123), stop=None)
    )
    (found,) = calls_of(gathered.messages["msg_1"])
    assert (found.tool_call_id, found.tool_name, found.kind) == ("toolu_1", "Edit", ToolKind.EDIT)
    assert found.input_value() == {"file_path": "ä.py", "big": 12345678901234567890123}
    assert found.state is ToolState.INPUT_AVAILABLE
    assert found.started_at == gathered.messages["msg_1"].created_at


def test_facts_of_the_response_are_on_the_message() -> None:
    """R-S22, R-C4: ids, models, stop reason, what the harness noted."""
    log = Log()
    record = log.assistant(
        "msg_1",
        text("hi"),
        stop="max_tokens",
        requestId="req_1",
        requestedModel="claude-opus-4",
        effort="high",
        attributionAgent="Explore",
    )
    message = fold(record).messages["msg_1"]
    assert (message.response_id, message.request_id) == ("msg_1", "req_1")
    assert (message.model, message.requested_model) == ("claude-opus-5-5", "claude-opus-4")
    assert (message.stop_reason, message.raw_stop_reason) == ("length", "max_tokens")
    assert message.metadata == {"claude-code": {"effort": "high", "agent": "Explore"}}
    assert message.origin is None


@pytest.mark.parametrize("efforts", [("high", "low"), ("low", "high")])
def test_facts_that_differ_are_those_that_the_store_keeps(efforts: tuple[str, str]) -> None:
    """R-C21: in one feed or in two."""
    log = Log()
    lines = [log.assistant("msg_1", text(each), effort=each) for each in efforts]
    assert fold(*lines).messages["msg_1"].metadata == {"claude-code": {"effort": "high"}}


def test_every_stop_reason_of_the_api_is_known_in_a_log() -> None:
    """R-C4: the log has the words of the Messages API."""
    log = Log()
    records = [log.assistant(f"msg_{word}", text("hi"), stop=word) for word in STOP_REASONS]
    messages = fold(*records).messages
    assert {word: messages[f"msg_{word}"].stop_reason for word in STOP_REASONS} == STOP_REASONS


def test_a_cost_that_old_versions_wrote_is_reported() -> None:
    log = Log("0.2.126")
    message = fold(log.assistant("msg_1", text("hi"), costUSD=0.002169)).messages["msg_1"]
    assert message.cost == Cost(amount=Decimal("0.002169"), kind="reported")


def test_redacted_and_withheld_thinking_keep_what_the_provider_needs_back() -> None:
    log = Log()
    redacted = {"type": "redacted_thinking", "data": "UkVE"}
    withheld = {"type": "thinking", "thinking": "", "signature": "c2ln"}
    first, second = fold(log.assistant("msg_1", redacted, withheld)).messages["msg_1"].parts
    assert isinstance(first, ReasoningPart)
    assert isinstance(second, ReasoningPart)
    assert (first.redacted, first.text, first.provider and first.provider.opaque) == (True, "", {"data": "UkVE"})
    assert (second.redacted, second.text, second.provider and second.provider.opaque) == (
        False,
        "",
        {"signature": "c2ln"},
    )


def test_citations_and_sources_are_parts() -> None:
    """R-S18: a search that the provider ran has its sources as parts of the call's result."""
    log = Log()
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}}
    found = {
        "type": "web_search_result",
        "title": "T",
        "url": "https://x.test",
        "encrypted_content": "ENC",
        "page_age": None,
    }
    answer = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [found]}
    cited = {
        "type": "text",
        "text": "It is.",
        "citations": [
            {
                "type": "web_search_result_location",
                "url": "https://x.test",
                "title": "T",
                "cited_text": "is",
                "encrypted_index": "E",
            }
        ],
    }
    gathered = fold(
        *(log.assistant("msg_1", block, apiBlockIndex=index) for index, block in enumerate((search, answer, cited)))
    )
    message = gathered.messages["msg_1"]
    (called,) = calls_of(message)
    assert called.provider_executed
    (result,) = called.results
    assert result.content == (
        SourceUrlPart(
            source_id="https://x.test",
            url="https://x.test",
            title="T",
            provider=ProviderData(name="anthropic", opaque={"encrypted_content": "ENC"}),
        ),
    )
    (said,) = [part for part in message.parts if isinstance(part, TextPart)]
    assert said.citations == (
        Citation(title="T", url="https://x.test", cited_text="is", metadata={"encrypted_index": "E"}),
    )
    assert [part.id for part in message.parts] == ["msg_1.0", "msg_1.2"]


def test_a_failed_server_tool_has_its_error() -> None:
    log = Log()
    search = {**call("srv_1", "web_search"), "type": "server_tool_use"}
    answer = {
        "type": "web_search_tool_result",
        "tool_use_id": "srv_1",
        "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
    }
    (called,) = fold(log.assistant("msg_1", search), log.assistant("msg_1", answer)).calls()
    assert (called.state, called.results[0].error_text) == (ToolState.OUTPUT_ERROR, "max_uses_exceeded")
    assert isinstance(called.results[0].content[0], DataPart)


def test_a_block_of_an_unknown_kind_keeps_its_exact_json() -> None:
    log = Log()
    novel = {"type": "hologram", "beams": [1, 2.50], "text": 5}
    message = fold(log.assistant("msg_1", novel, text("ok"))).messages["msg_1"]
    unknown, said = message.parts
    assert isinstance(unknown, UnknownPart)
    assert unknown.kind == "hologram"
    assert msgspec.json.decode(unknown.data) == novel
    assert isinstance(said, TextPart)


# Usage

FULL_USAGE = {
    "input_tokens": 13,
    "cache_creation_input_tokens": 100,
    "cache_read_input_tokens": 2000,
    "output_tokens": 77,
    "output_tokens_details": {"thinking_tokens": 30},
    "server_tool_use": {"web_search_requests": 5, "web_fetch_requests": 1},
    "service_tier": "standard",
    "cache_creation": {"ephemeral_1h_input_tokens": 40, "ephemeral_5m_input_tokens": 60},
    "inference_geo": "not_available",
    "speed": "fast",
}


def usage_of(usage: dict[str, Any], **fields: Any) -> Usage | None:
    return fold(Log().assistant("msg_1", text("hi"), usage=usage, **fields)).messages["msg_1"].usage


def test_usage_is_in_disjoint_buckets() -> None:
    """R-C5: input without the cache, both cache times apart, thinking out of the output."""
    usage = usage_of(FULL_USAGE)
    assert usage == Usage(
        input=13, cache_read=2000, cache_write_5m=60, cache_write_1h=40, output=47, reasoning=30,
        service_tier="standard", speed="fast", web_searches=5, web_fetches=1,
    )  # fmt: skip
    assert usage is not None
    assert usage.total == 13 + 2000 + 100 + 77


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 1, "output_tokens": 2}, Usage(input=1, output=2)),
        ({"input_tokens": 1, "cache_creation_input_tokens": 9}, Usage(input=1, cache_write=9)),
        (
            {
                "cache_creation_input_tokens": 9,
                "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 0},
            },
            Usage(cache_write_5m=4, cache_write_1h=0, cache_write=5),
        ),
        ({"output_tokens": 2, "inference_geo": "us"}, Usage(output=2, region="us")),
    ],
)
def test_missing_token_counts_are_unknown_not_zero(usage: dict[str, Any], expected: Usage) -> None:
    assert usage_of(usage) == expected


def test_a_final_count_replaces_a_placeholder_a_lower_bound() -> None:
    log = Log("1.0.128")
    opened = {"input_tokens": 10, "output_tokens": 1}
    placeholder = log.assistant("msg_1", text("a"), stop=None, usage=opened)
    grown = log.assistant("msg_1", text("b"), stop=None, usage={"input_tokens": 10, "output_tokens": 3})
    final = log.assistant("msg_1", text("c"), stop="end_turn", usage={"input_tokens": 10, "output_tokens": 300})
    assert fold(placeholder, grown).messages["msg_1"].usage == Usage(input=10, output=3, exactness="lower_bound")
    for order in ((placeholder, grown, final), (final, placeholder, grown)):
        assert fold(*order).messages["msg_1"].usage == Usage(input=10, output=300)


def test_an_assistant_message_that_was_stopped_is_aborted() -> None:
    log = Log()
    record = log.assistant(
        "msg_1", text("Once upon"), stop=None, isAbortedMidStream=True, usage={"input_tokens": 5, "output_tokens": 1}
    )
    message = fold(record).messages["msg_1"]
    assert (message.stop_reason, message.raw_stop_reason) == ("aborted", None)
    assert message.usage == Usage(input=5, output=1, exactness="lower_bound")


def test_an_api_error_in_place_of_a_message_is_no_model_call() -> None:
    log = Log()
    record = log.assistant(
        "5a56bf",
        text("API Error: 529 overloaded"),
        model="<synthetic>",
        stop="stop_sequence",
        isApiErrorMessage=True,
        error="server_error",
        apiErrorStatus=529,
    )
    gathered = fold(log.user("go"), record)
    message = gathered.messages["5a56bf"]
    assert message.error == MessageError(text="API Error: 529 overloaded", kind="server_error", status=529)
    assert (message.usage, message.model, message.stop_reason) == (None, None, "error")
    assert (message.role, message.origin) == ("assistant", Origin.HARNESS)
    assert gathered.place("5a56bf").step is None


def test_text_that_claude_code_wrote_as_the_assistant_is_its_own() -> None:
    log = Log()
    message = fold(
        log.assistant("c2c46c", text("No response requested."), model="<synthetic>", isApiErrorMessage=False)
    ).messages["c2c46c"]
    assert (message.origin, message.error, message.usage) == (Origin.HARNESS, None, None)


# Text with role user

CASES: list[tuple[str, dict[str, Any], Origin]] = [
    ("Fix the bug", {}, Origin.PROMPT),
    ("\ufeffFix the bug", {}, Origin.PROMPT),
    ("<b>is bold</b>?", {}, Origin.PROMPT),
    ("from Slack", {"origin": {"kind": "channel"}}, Origin.NOTIFICATION),
    ("typed", {"origin": {"kind": "human"}}, Origin.PROMPT),
    ("Caveat: ...", {"isMeta": True}, Origin.HARNESS),
    ("This session is being continued from a previous conversation", {"isCompactSummary": True}, Origin.COMPACTION),
    ("<task-notification>\n<task-id>a1</task-id>\n</task-notification>", {}, Origin.NOTIFICATION),
    ("<command-name>/model</command-name>\n<command-args>sonnet</command-args>", {}, Origin.COMMAND),
    ("<command-message>init is running…</command-message>\n<command-name>/init</command-name>", {}, Origin.COMMAND),
    *[
        ("<command-name>/compact</command-name> is what I ask about", {"promptSource": source}, Origin.PROMPT)
        for source in ("typed", "queued", "sdk")
    ],
    ("<local-command-stdout>Set model</local-command-stdout>", {}, Origin.COMMAND_OUTPUT),
    ("<local-command-stderr>no</local-command-stderr>", {}, Origin.COMMAND_OUTPUT),
    ("<local-command-caveat>The command below</local-command-caveat>", {}, Origin.HARNESS),
    ("<user-prompt-submit-hook>mind the gap</user-prompt-submit-hook>", {}, Origin.HARNESS),
    ("Stop hook feedback:\n- say one more word", {}, Origin.HARNESS),
    ("[Workflow harness — user request] The harness relays, verbatim and indented below,", {}, Origin.HARNESS),
    ("[Workflow harness — computed task] The task text below was computed", {}, Origin.PROMPT),
    ("check it", {"isMeta": True, "promptSource": "system", "turnOrigin": "scheduled"}, Origin.NOTIFICATION),
    ("Caveat: The messages below were generated by the user while running local commands. DO", {}, Origin.HARNESS),
    (
        "This session is being continued from a previous conversation that ran out of context. The",
        *({}, Origin.COMPACTION),
    ),
    ("Unknown slash command: rename", {}, Origin.COMMAND_OUTPUT),
    ("Is this a Caveat: The messages below", {}, Origin.PROMPT),
    ("<bash-input>echo hi</bash-input>", {}, Origin.SHELL),
    ("<bash-stdout>hi</bash-stdout><bash-stderr></bash-stderr>", {}, Origin.SHELL_OUTPUT),
    ("<system-reminder>be nice</system-reminder>", {}, Origin.HARNESS),
]
SAID = {Origin.PROMPT, Origin.COMMAND, Origin.SHELL}


@pytest.mark.parametrize(("words", "flags", "origin"), CASES)
@pytest.mark.parametrize("as_blocks", [False, True])
def test_what_a_user_record_really_is(words: str, flags: dict[str, Any], origin: Origin, as_blocks: bool) -> None:
    record = Log().user([text(words)] if as_blocks else words, **flags)
    (message,) = fold(record).messages.values()
    assert (message.id, message.origin) == (record["uuid"], origin)
    assert message.role == ("user" if origin in SAID else "developer")
    assert "".join(texts(message)) == words


def test_a_message_of_a_teammate_is_no_prompt() -> None:
    """2.1.330 writes what another agent of the team says without any flag, as a user's words."""
    gathered = read(sources("versions", "2.1.330-team"))
    main = gathered.in_order(f"claude-code:{SESSION}")
    assert [texts(message) for message in main if message.origin is Origin.PROMPT] == [
        ["Make a team"],
        ["Anything new"],
    ]
    notes = [message for message in main if message.origin is Origin.NOTIFICATION]
    assert [(message.role, "I am done" in texts(message)[0]) for message in notes] == [
        ("developer", True),
        ("developer", False),
    ]
    assert {gathered.place(message.id).turn for message in notes} == {1}


def test_a_scheduled_prompt_is_a_notification() -> None:
    """2.1.330 flags what `/loop` says every minute like what the harness injects; its source is the program."""
    gathered = read(sources("versions", "2.1.330-scheduled"))
    (said,) = [message for message in gathered.messages.values() if texts(message) == ["check it"]]
    assert (said.role, said.origin, gathered.place(said.id).turn) == ("developer", Origin.NOTIFICATION, 1)


def test_a_prompt_that_a_resume_copied_block_by_block_is_one_turn() -> None:
    """Up to 2.0.21 the copies have one time, and the flag of what a command stands for is lost."""
    log = Log("2.0.21")
    at: dict[str, Any] = {"timestamp": "2026-11-21T10:00:00.000Z"}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "UE5H"}}
    gathered = fold(
        log.user([text("What is this?")], **at),
        log.user([picture], **at),
        log.assistant("msg_1", text("A square."), **at),
        log.user([text("<command-message>greet</command-message><command-name>/greet</command-name>")], **at),
        log.user([text("Say hello.")], **at),
        log.assistant("msg_2", text("Hello."), **at),
        log.user([text("And now?")], **at),
    )
    found = [
        (message.origin, gathered.place(message.id).turn) for message in gathered.in_order(f"claude-code:{SESSION}")
    ]
    assert found == [
        (Origin.PROMPT, 1),
        (Origin.HARNESS, 1),
        (None, 1),
        (Origin.COMMAND, 2),
        (Origin.HARNESS, 2),
        (None, 2),
        (Origin.PROMPT, 3),
    ]


def test_commands_and_shell_escapes_have_what_was_typed() -> None:
    log = Log()
    command = log.user(
        "<command-name>/compact</command-name>\n<command-message>compact</command-message>\n"
        "<command-args>keep names</command-args>"
    )
    shell = log.user("<bash-input>echo bang</bash-input>")
    gathered = fold(command, shell)
    facts = [message.metadata["claude-code"] for message in gathered.messages.values()]
    assert facts == [
        {"command": {"name": "/compact", "arguments": "keep names"}},
        {"command": {"name": "!", "arguments": "echo bang"}},
    ]


def test_wrappers_glued_before_a_prompt_are_parts_of_their_own() -> None:
    """VS Code puts what is open and selected before the prompt."""
    wrapper = "<ide_opened_file>The user opened a.py</ide_opened_file>\n"
    (glued,) = fold(Log().user(wrapper + "Fix it")).messages.values()
    (apart,) = fold(Log().user([text(wrapper), text("Fix it")])).messages.values()
    for message in (glued, apart):
        injected, prompt = message.parts
        assert isinstance(injected, TextPart)
        assert isinstance(prompt, TextPart)
        assert (injected.text, prompt.text, message.origin) == (wrapper, "Fix it", Origin.PROMPT)
        assert (injected.metadata, prompt.metadata) == ({"claude-code": {"synthetic": True}}, {})
        assert [part.id for part in message.parts] == [f"{message.id}.0", f"{message.id}.1"]


def test_images_and_documents_of_a_prompt_are_files() -> None:
    content = [
        text("What is this?"),
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "dóc"}, "title": "d.txt"},
        {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cut…"}},
    ]
    gathered = fold(Log().user(content))
    (message,) = gathered.messages.values()
    _, image, document, linked, broken = message.parts
    assert image == FilePart(id=f"{message.id}.1", media_type="image/png", data=b"\x89PNG pixel")
    assert document == FilePart(id=f"{message.id}.2", media_type="text/plain", data="dóc".encode(), filename="d.txt")
    assert linked == FilePart(id=f"{message.id}.3", media_type="image/*", url="https://x.test/a.png")
    assert isinstance(broken, DataPart)
    assert msgspec.json.decode(broken.data) == content[4]


def test_a_prompt_of_images_alone_is_a_prompt() -> None:
    (message,) = fold(
        Log().user([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}])
    ).messages.values()
    assert message.origin is Origin.PROMPT


# What the harness adds


def test_an_attachment_that_the_model_got_is_a_message() -> None:
    log = Log()
    rendered = [{"content": "<system-reminder>\nToday is 2026-11-21.\n</system-reminder>"}]
    record = log.record(
        "attachment", attachment={"type": "date", "date": "2026-11-21"}, rendered=rendered, renderedRole="system"
    )
    (message,) = fold(record).messages.values()
    assert (message.role, message.origin, texts(message)) == ("developer", Origin.HARNESS, [rendered[0]["content"]])
    assert message.metadata == {"claude-code": {"attachment": "date"}}


def test_an_attachment_that_the_model_did_not_get_is_an_event() -> None:
    gathered = fold(Log().record("attachment", attachment={"type": "prompt_snapshot", "systemPrompt": ["long"]}))
    (change,) = gathered.events.values()
    assert isinstance(change.event, RecordEvent)
    assert (change.event.kind, change.event.known, change.event.data) == (
        "attachment/prompt_snapshot",
        True,
        msgspec.UNSET,
    )
    assert not gathered.messages


def test_a_new_kind_of_attachment_is_a_message_or_an_unknown_event() -> None:
    log = Log()
    rendered = log.record("attachment", attachment={"type": "weather"}, rendered=[{"content": "rain"}])
    bare = log.record("attachment", attachment={"type": "weather"})
    gathered = fold(rendered, bare)
    assert [texts(message) for message in gathered.messages.values()] == [["rain"]]
    (change,) = gathered.events.values()
    assert isinstance(change.event, RecordEvent)
    assert (change.event.kind, change.event.known) == ("attachment/weather", False)


@pytest.mark.parametrize("words", ["also this", "<bash-input>ls</bash-input> is what I ask about"])
def test_a_queued_command_is_the_prompt_that_it_was(words: str) -> None:
    log = Log()
    attachment = {"type": "queued_command", "prompt": words, "commandMode": "prompt", "origin": {"kind": "human"}}
    record = log.record(
        "attachment", attachment=attachment, rendered=[{"content": "<system-reminder>sent a new message…"}]
    )
    gathered = fold(log.user("go"), record)
    message = gathered.messages[record["uuid"]]
    assert (message.role, message.origin, texts(message)) == ("user", Origin.PROMPT, [words])
    assert gathered.place(message.id).turn == 2


def test_a_mentioned_file_is_text_or_image_also_where_it_was_not_rendered() -> None:
    log = Log("2.1.100")
    read = {"type": "text", "file": {"filePath": "/a.txt", "content": "alpha\n"}}
    picture = {"type": "image", "file": {"base64": PIXEL, "type": "image/png"}}
    gathered = fold(
        log.record("attachment", attachment={"type": "file", "filename": "/a.txt", "content": read}),
        log.record("attachment", attachment={"type": "file", "filename": "/p.png", "content": picture}),
    )
    first, second = gathered.messages.values()
    assert texts(first) == ["alpha\n"]
    assert second.parts == (
        FilePart(id=f"{second.id}.0", media_type="image/png", data=b"\x89PNG pixel", filename="/p.png"),
    )


def test_local_commands_of_system_records_are_messages_too() -> None:
    log = Log()
    run = log.record("system", subtype="local_command", content="<command-name>/clear</command-name>", level="info")
    out = log.record(
        "system", subtype="local_command", content="<local-command-stdout>ok</local-command-stdout>", level="info"
    )
    assert [message.origin for message in fold(run, out).messages.values()] == [Origin.COMMAND, Origin.COMMAND_OUTPUT]


def test_turns_begin_with_prompts_and_steps_are_model_calls() -> None:
    log = Log()
    gathered = fold(
        log.record("attachment", attachment={"type": "date"}, rendered=[{"content": "x"}]),
        log.user("one"),
        log.assistant("msg_1", call("t1"), stop="tool_use"),
        log.result("t1"),
        log.assistant("msg_2", text("done")),
        log.user("<bash-input>ls</bash-input>"),
        log.user("<bash-stdout>a</bash-stdout>"),
        log.assistant("msg_3", text("ok")),
        log.user("<task-notification>x</task-notification>"),
        log.assistant("msg_4", text("noted")),
    )
    turns = [
        (place.turn, place.step) for _, place in sorted(gathered.placements.items(), key=lambda item: item[1].position)
    ]
    assert turns == [(None, None), (1, None), (1, 1), (1, 2), (2, None), (2, None), (2, 1), (2, None), (2, 2)]
