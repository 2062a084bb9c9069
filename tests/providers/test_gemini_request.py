"""Histories as Gemini requests (R-K22, R-K26, R-K29)."""

import base64
from typing import Any

import pytest

from support.provider_messages import PNG, asking, assistant, call, developer, image, result, system, thinking, user
from support.sdk_types import check_with_sdk
from turnlog.model import FilePart, Message, TextPart
from turnlog.model.base import ProviderData
from turnlog.providers import provider
from turnlog.providers.base import Conversion

OLD = "gemini-2.5-pro"
NEW = "gemini-3.1-pro"
PICTURE = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}}
UNSIGNED = "skip_thought_signature_validator"


def convert(*messages: Message, model: str = OLD, **options: Any) -> Conversion:
    conversion = provider("gemini").to_request(messages, asking(model, **options))
    check_with_sdk("gemini", conversion.body)
    return conversion


def contents(*messages: Message, model: str = OLD, **options: Any) -> list[dict[str, Any]]:
    return convert(*messages, model=model, **options).body["contents"]


def user_turn(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model_turn(*parts: Any) -> dict[str, Any]:
    return {**user_turn(*parts), "role": "model"}


def function(args: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "Bash", "args": args or {}}, **fields}


def response(text: str, key: str = "output", **fields: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": "Bash", "response": {key: text}, **fields}}


def signed(signature: str, model: str = NEW) -> ProviderData:
    return ProviderData(name="google", model=model, opaque={"thought_signature": signature})


def test_a_round_of_tools() -> None:
    """R-K26: calls without ids, answered by name and order in one content."""
    history = [
        user("run both"),
        assistant("on it", call("c1", result("one"), input={"a": 1}), call("c2", result("bad", status="error"))),
        developer("REMINDER"),
        user("next"),
        assistant("done"),
    ]
    assert contents(*history) == [
        user_turn("run both"),
        model_turn("on it", function({"a": 1}), function()),
        user_turn(response("one"), response("bad\nREMINDER\n", "error")),
        user_turn("next"),
        model_turn("done"),
    ]


def test_signatures_go_back_to_the_model_that_made_them() -> None:
    """R-K26."""
    history = [
        user("q"),
        assistant(
            thinking("hm", "google", model=NEW, thought_signature="dA=="),
            TextPart(text="a", provider=signed("dQ==")),
            call("c1", result("r"), provider=signed("dg==")),
            TextPart(text="", provider=signed("dw==")),
            model=NEW,
        ),
    ]
    assert contents(*history, model=NEW)[1] == model_turn(
        {"text": "hm", "thought": True, "thoughtSignature": "dA=="},
        {"text": "a", "thoughtSignature": "dQ=="},
        function(thoughtSignature="dg=="),
        {"text": "", "thoughtSignature": "dw=="},
    )
    conversion = convert(*history, model="gemini-3.5-pro")
    assert conversion.body["contents"][1] == model_turn(
        "<thinking>\nhm\n</thinking>", "a", function(thoughtSignature=UNSIGNED)
    )
    assert [loss.kind for loss in conversion.losses] == ["reasoning-as-text", *3 * ["signature-omitted"]]
    assert [repair.kind for repair in conversion.repairs] == ["added-signature"]


def test_unsigned_thinking_of_the_same_model_is_a_thought() -> None:
    history = [user("q"), assistant(thinking("hm"), "a", model=OLD)]
    assert contents(*history)[1] == model_turn({"text": "hm", "thought": True}, "a")


def test_the_first_call_of_a_step_says_that_it_is_not_signed() -> None:
    history = [
        user("q"),
        assistant(call("c1", result("1")), call("c2", result("2"))),
        assistant(call("c3", result("3"))),
    ]
    new = contents(*history, model=NEW)
    assert new[1] == model_turn(function(thoughtSignature=UNSIGNED), function())
    assert new[3] == model_turn(function(thoughtSignature=UNSIGNED))
    assert UNSIGNED not in repr(contents(*history, model=OLD))


def test_order_is_kept() -> None:
    conversion = convert(user("q"), assistant("a", thinking("hm", "anthropic", signature="s"), "b"))
    assert conversion.body["contents"][1] == model_turn("a", "<thinking>\nhm\n</thinking>", "b")


def test_nothing_follows_the_last_thought() -> None:
    conversion = convert(user("q"), assistant("a", thinking("hm"), model=OLD), user("next"))
    assert conversion.body["contents"] == [user_turn("q"), model_turn("a"), user_turn("next")]
    assert [repair.kind for repair in conversion.repairs] == ["trailing-reasoning"]


def test_no_model_content_follows_another() -> None:
    conversion = convert(user("q"), assistant("a"), assistant(call("c1", result("r")), id="a2"))
    assert conversion.body["contents"] == [user_turn("q"), model_turn("a", function()), user_turn(response("r"))]
    assert [repair.kind for repair in conversion.repairs] == ["merged-messages"]


def test_images_in_results() -> None:
    history = [user("see", image()), assistant(call("c1", result("look", image())))]
    assert contents(*history, model=NEW)[0] == user_turn("see", PICTURE)
    assert contents(*history, model=NEW)[2] == user_turn(response("look", parts=[PICTURE]))
    assert contents(*history, model=OLD)[2:] == [user_turn(response("look")), user_turn("Tool result image:", PICTURE)]


def test_a_file_that_no_response_holds_comes_behind() -> None:
    sound = FilePart(media_type="audio/wav", data=b"x")
    history = [user("q"), assistant(call("c1", result("listen", sound)))]
    behind = {"inlineData": {"mimeType": "audio/wav", "data": "eA=="}}
    assert contents(*history, model=NEW)[2:] == [user_turn(response("listen")), user_turn("Tool result image:", behind)]


def test_an_address_is_a_file_of_its_own() -> None:
    address = FilePart(media_type="image/png", url="https://example.org/a.png")
    file_data = {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}}
    assert contents(user("see", address)) == [user_turn("see", file_data)]


@pytest.mark.parametrize(("text", "args"), [("", {}), ("{broken", {"_raw": "{broken"}), ("[1,2]", {"_value": [1, 2]})])
def test_arguments_are_an_object(text: str, args: dict[str, Any]) -> None:
    assert contents(user("q"), assistant(call("c1", result("r"), input_text=text)))[1] == model_turn(function(args))


def test_names_begin_as_the_api_wants() -> None:
    sent = contents(user("q"), assistant(call("c1", result("r"), name="3d-view")))
    assert sent[1]["parts"][0]["functionCall"]["name"] == "_3d-view"
    assert sent[2]["parts"][0]["functionResponse"]["name"] == "_3d-view"


def test_the_rest_of_the_body() -> None:
    tool = {"functionDeclarations": [{"name": "Bash", "description": "run"}]}
    history = [developer("first"), system("prompt"), user("q")]
    body = convert(*history, tools=[tool], max_tokens=10, extra={"toolConfig": {}}).body
    assert body == {
        "systemInstruction": {"parts": [{"text": "prompt"}, {"text": "first"}]},
        "contents": [user_turn("q")],
        "tools": [tool],
        "generationConfig": {"maxOutputTokens": 10},
        "toolConfig": {},
    }
