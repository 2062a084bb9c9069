"""Histories as OpenAI Responses requests (R-K22, R-K27, R-K29)."""

import base64
from typing import Any

import pytest

from support.provider_messages import (
    MODEL,
    PNG,
    asking,
    assistant,
    call,
    developer,
    image,
    result,
    system,
    thinking,
    user,
)
from support.sdk_types import check_with_sdk
from turnlog.model import FilePart, Message, TextPart
from turnlog.model.base import ProviderData
from turnlog.providers import provider
from turnlog.providers.base import Conversion

PICTURE = {
    "type": "input_image",
    "image_url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}",
    "detail": "auto",
}


def convert(*messages: Message, **options: Any) -> Conversion:
    conversion = provider("responses").to_request(messages, asking(**options))
    check_with_sdk("responses", conversion.body)
    return conversion


def items(*messages: Message, **options: Any) -> list[dict[str, Any]]:
    return convert(*messages, **options).body["input"]


def user_item(*content: Any) -> dict[str, Any]:
    blocks = [{"type": "input_text", "text": part} if isinstance(part, str) else part for part in content]
    return {"type": "message", "role": "user", "content": blocks}


def output_text(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text}


def function(call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "Bash", "arguments": arguments}


def output(call_id: str, text: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def test_a_round_of_tools() -> None:
    """R-K27: a flat list."""
    history = [
        user("run both"),
        assistant("on it", call("c1", result("one"), input={"a": 1}), call("c2", result("two"))),
        developer("REMINDER"),
        assistant("done"),
    ]
    assert items(*history) == [
        user_item("run both"),
        output_text("on it"),
        function("c1", '{"a":1}'),
        function("c2"),
        output("c1", "one"),
        output("c2", "two\nREMINDER\n"),
        output_text("done"),
    ]


def test_order_is_kept() -> None:
    history = [user("q"), assistant("a", thinking("hm", "openai", encrypted_content="e", id="rs_1"), "b", "c")]
    reasoning = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "e",
    }
    assert items(*history)[1:] == [output_text("a"), reasoning, output_text("bc")]
    around = assistant("before", call("c1", result("r")), "after")
    assert items(user("q"), around)[1:] == [
        output_text("before"),
        function("c1"),
        output_text("after"),
        output("c1", "r"),
    ]


def test_reasoning_without_an_id_gets_the_same_each_time() -> None:
    history = [user("q"), assistant(thinking("", "openai", encrypted_content="e"), "a")]
    reasoning = items(*history)[1]
    assert reasoning["id"].startswith("rs_")
    assert reasoning["summary"] == []
    assert reasoning["encrypted_content"] == "e"
    assert items(*history)[1] == reasoning


def test_unsigned_reasoning_of_the_same_model_is_its_summary() -> None:
    reasoning = items(user("q"), assistant(thinking("hm"), "a"))[1]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert "encrypted_content" not in reasoning


def test_other_reasoning_is_text_where_it_was() -> None:
    conversion = convert(user("q"), assistant("a", thinking("hm", "anthropic", signature="s"), "b"))
    assert conversion.body["input"][1:] == [
        output_text("a"),
        output_text("<thinking>\nhm\n</thinking>"),
        output_text("b"),
    ]
    assert [loss.kind for loss in conversion.losses] == ["reasoning-as-text"]


def test_no_reasoning_without_what_it_led_to() -> None:
    conversion = convert(user("q"), assistant("a", thinking("hm", "openai", encrypted_content="e")), user("next"))
    assert conversion.body["input"] == [user_item("q"), output_text("a"), user_item("next")]
    assert [repair.kind for repair in conversion.repairs] == ["trailing-reasoning"]


def test_phases_go_back() -> None:
    def phase(name: str) -> ProviderData:
        return ProviderData(name="openai", opaque={"phase": name})

    history = assistant(
        TextPart(text="looking", provider=phase("commentary")), TextPart(text="found", provider=phase("final_answer"))
    )
    assert items(user("q"), history)[1:] == [
        {**output_text("looking"), "phase": "commentary"},
        {**output_text("found"), "phase": "final_answer"},
    ]


def test_an_agent_s_note_of_a_phase_goes_back() -> None:
    noted = assistant(TextPart(text="looking", metadata={"codex": {"phase": "commentary"}}))
    assert items(user("q"), noted)[1] == {**output_text("looking"), "phase": "commentary"}


def test_own_items_have_their_own_ids() -> None:
    def own(id: str) -> ProviderData:
        return ProviderData(name="openai", model=MODEL, opaque={"id": id})

    made = call("c1", result("r"), provider=own("fc_1"))
    history = assistant(TextPart(text="one", provider=own("msg_1")), TextPart(text="two"), made)
    assert items(user("q"), history)[1:4] == [
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [{"type": "output_text", "text": "one", "annotations": []}],
        },
        output_text("two"),
        {**function("c1"), "id": "fc_1"},
    ]
    assert "_1" not in repr(items(user("q"), history, model="another-model"))


def test_a_summary_beside_the_whole_thought_is_what_goes_back() -> None:
    thought = thinking("all of it", "openai", id="rs_1", summary="in short")
    assert items(user("q"), assistant(thought, "a"))[1]["summary"] == [{"type": "summary_text", "text": "in short"}]


@pytest.mark.parametrize("text", ["", "{broken", "[1,2]"])
def test_arguments_are_sent_as_they_were(text: str) -> None:
    assert items(assistant(call("c1", result("r"), input_text=text)))[0] == function("c1", text)


def test_a_free_form_tool_is_called_as_it_is_declared() -> None:
    patch = call("c1", result("done"), name="apply_patch", input_text="*** Begin Patch")
    tool = {"type": "custom", "name": "apply_patch"}
    assert items(assistant(patch), tools=[tool]) == [
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
    ]


def test_images_and_files() -> None:
    paper = FilePart(media_type="application/pdf", data=b"%PDF", filename="a.pdf")
    address = FilePart(media_type="application/pdf", url="https://example.org/a.pdf")
    sent = items(user("see", image(), paper, address), assistant(call("c1", result("look", image()))))
    assert sent[0] == user_item(
        "see",
        PICTURE,
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
        {"type": "input_file", "file_url": "https://example.org/a.pdf"},
    )
    assert sent[2] == output("c1", [{"type": "input_text", "text": "look"}, PICTURE])


def test_a_search_that_openai_ran() -> None:
    action = {"type": "search", "query": "e"}
    own = call("ws_1", name="web_search", input=action, provider_executed=True)
    assert items(user("q"), assistant(own, "a"))[1] == {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": action,
    }
    other = call("srvtoolu_1", result("found"), name="web_search", input=action, provider_executed=True)
    conversion = convert(user("q"), assistant(other, "a"))
    assert conversion.body["input"][1:] == [
        output_text('[web_search: {"type":"search","query":"e"}]\nfound'),
        output_text("a"),
    ]
    assert [loss.kind for loss in conversion.losses] == ["server-tool"]


def test_the_rest_of_the_body() -> None:
    tool = {"type": "function", "name": "Bash", "parameters": {"type": "object"}, "strict": False}
    history = [developer("first"), system("prompt"), user("q")]
    body = convert(*history, tools=[tool], max_tokens=10, extra={"reasoning": {"effort": "high"}}).body
    assert body == {
        "model": MODEL,
        "instructions": "prompt\n\nfirst",
        "input": [user_item("q")],
        "tools": [tool],
        "max_output_tokens": 10,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high"},
    }
