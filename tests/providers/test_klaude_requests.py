"""Sessions of klaude-code, from its lines to the request that goes on with them, at each provider.

klaude-code names no API beside what a model thought: the model's name and the signature's format show whose it is.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.klaude_files import SESSION, answer, call, lines, record, result, text, user
from support.provider_rules import check_rules
from support.sdk_types import check_with_sdk
from turnlog.logs import read_session
from turnlog.providers import provider, provider_names
from turnlog.providers.base import Conversion, RequestOptions
from turnlog.providers.context import select_context

MODELS = {
    "anthropic": "claude-x",
    "openai-chat": "deepseek-x",
    "openrouter": "anthropic/claude-x",
    "responses": "gpt-x",
    "gemini": "gemini-3-x",
}
FORMATS = {
    "anthropic": "anthropic",
    "openrouter": "anthropic-claude-v1",
    "responses": "openai-responses-v1",
    "gemini": "google",
}


def convert(tmp_path: Path, name: str, *records: Any, model: str | None = None) -> Conversion:
    """The request that goes on with a session of these records."""
    log = tmp_path / f".klaude/projects/p/sessions/{SESSION}/events.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes(lines(*records))
    context = select_context(read_session(log))
    made = provider(name).to_request(context.messages, RequestOptions(model=model or MODELS[name]))
    check_rules(name, made.body)
    check_with_sdk(name, made.body)
    return msgspec.structs.replace(made, repairs=(*context.repairs, *made.repairs))


def thought(words: str, model: str | None, **fields: Any) -> dict[str, Any]:
    return {"type": "thinking_text", "text": words, "model_id": model, **fields}


def signature(name: str, model: str | None = None, *, told: bool = True) -> dict[str, Any]:
    """A signature of the target model at this provider."""
    made = {"type": "thinking_signature", "signature": "c2ln", "model_id": model or MODELS[name]}
    return {**made, "format": FORMATS[name]} if told else made


def answered(made: Conversion) -> Any:
    """What the answer became: the items, blocks, parts or the message behind the question."""
    body = made.body
    if "input" in body:
        return body["input"][1:]
    if "contents" in body:
        return body["contents"][1]["parts"]
    message = body["messages"][1]
    return message["content"] if isinstance(message["content"], list) else message


SIGNED: dict[str, Any] = {
    "anthropic": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "a"}],
    "openrouter": {
        "role": "assistant",
        "content": "a",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "format": "anthropic-claude-v1"}
        ],
    },
    "gemini": [{"text": "hm", "thought": True, "thoughtSignature": "c2ln"}, {"text": "a"}],
}


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("name", SIGNED)
def test_signed_thinking_goes_back_to_its_model(tmp_path: Path, name: str, told: bool) -> None:
    """R-K6, R-K24, R-K25, R-K26."""
    made = convert(
        tmp_path, name, user("u", "q"), answer("a", thought("hm", MODELS[name]), signature(name, told=told), text("a"))
    )
    expected = copy.deepcopy(SIGNED[name])
    if name == "openrouter" and not told:
        del expected["reasoning_details"][0]["format"]
    assert answered(made) == expected
    assert made.losses == ()


MINIMAX = {"reasoning_field": "reasoning_details", "format": "MiniMax-response-v1"}

DETAILS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "a phase": ("gpt-x", answer("a", text("said"), phase="commentary"), ["commentary"]),
    "a phase of a call": ("gpt-x", answer("a", call("c1"), phase="commentary"), ["commentary"]),
    "a phase that is not known": ("gpt-x", answer("a", text("said"), phase="musing"), ["musing"]),
    "a signature after a call": ("gemini-3-x", answer("a", call("c1"), signature("gemini")), ["c2ln"]),
    "one without a format": ("gemini-3-x", answer("a", call("c1"), signature("gemini", told=False)), ["c2ln"]),
    "a signature after a text": ("gemini-3-x", answer("a", text("said"), signature("gemini")), ["c2ln"]),
    "details of MiniMax": (
        "minimax-x",
        answer("a", thought("hm", "minimax-x", id="text-1", **MINIMAX), text("said"), call("c1")),
        ["text-1", "MiniMax-response-v1"],
    ),
    "sealed details of MiniMax": (
        "minimax-x",
        answer(
            "a",
            thought("hm", "minimax-x", id="text-1", **MINIMAX),
            signature("gemini", "minimax-x", told=False) | {"id": "sealed-1", "format": "MiniMax-response-v1"},
            text("said"),
        ),
        ["text-1", "c2ln", "sealed-1", "MiniMax-response-v1"],
    ),
}
CARRIED = {
    ("a phase", "responses"),
    ("a signature after a call", "gemini"),
    ("one without a format", "gemini"),
    ("a signature after a text", "gemini"),
    ("details of MiniMax", "openai-chat"),
    ("sealed details of MiniMax", "openai-chat"),
    ("details of MiniMax", "openrouter"),
    ("sealed details of MiniMax", "openrouter"),
}
"""Where the model's own API gets it back. Everywhere else it is reported as a loss."""


@pytest.mark.parametrize("is_same", [True, False], ids=["same model", "another model"])
@pytest.mark.parametrize("name", provider_names())
@pytest.mark.parametrize("detail", DETAILS)
def test_no_detail_of_klaude_code_vanishes(tmp_path: Path, detail: str, name: str, is_same: bool) -> None:
    """R-K24, R-K26: it is sent, or `--strict` refuses."""
    model, said, words = DETAILS[detail]
    made = convert(tmp_path, name, user("u", "q"), said, result("c1"), model=model if is_same else MODELS[name])
    is_carried = all(word in repr(made.body) for word in words)
    assert is_carried or made.losses
    if is_same or MODELS[name] == model:
        assert is_carried == (((detail, name) in CARRIED) and not made.losses)


@pytest.mark.parametrize("name", ["anthropic", "responses", "gemini"])
def test_reasoning_at_the_end_hides_no_loss_before_it(tmp_path: Path, name: str) -> None:
    """R-K26: what is mended at the end of an answer says nothing of what its beginning has lost."""
    sealed = signature("gemini", "minimax-x", told=False) | {"id": "sealed-1", "format": "MiniMax-response-v1"}
    begun = (thought("hm", "minimax-x", id="text-1", **MINIMAX), sealed, text("said"))
    made = convert(tmp_path, name, user("u", "q"), answer("a", *begun, thought("so", "minimax-x")), model="minimax-x")
    assert [repair.kind for repair in made.repairs] == ["trailing-reasoning"]
    assert [loss.kind for loss in made.losses] == ["signature-omitted"]


@pytest.mark.parametrize("told", [True, False])
def test_what_openai_sealed_goes_back_sealed(tmp_path: Path, told: bool) -> None:
    """R-K6, R-K27: klaude-code calls it a signature."""
    made = convert(
        tmp_path,
        "responses",
        user("u", "q"),
        answer("a", thought("hm", "gpt-x", id="rs_1"), signature("responses", told=told), text("a")),
    )
    assert answered(made)[0] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "c2ln",
    }
    assert made.losses == ()


def test_behind_openrouter_it_is_an_encrypted_detail(tmp_path: Path) -> None:
    """R-K24."""
    sealed = {**signature("responses"), "model_id": "openai/gpt-x"}
    made = convert(
        tmp_path,
        "openrouter",
        user("u", "q"),
        answer("a", thought("hm", "openai/gpt-x"), sealed, text("a")),
        model="openai/gpt-x",
    )
    assert answered(made)["reasoning_details"] == [
        {"type": "reasoning.summary", "summary": "hm", "format": "openai-responses-v1"},
        {"type": "reasoning.encrypted", "data": "c2ln", "format": "openai-responses-v1"},
    ]


@pytest.mark.parametrize("name", ["anthropic", "responses"])
def test_a_signature_without_its_thought_is_kept(tmp_path: Path, name: str) -> None:
    """R-K6."""
    made = convert(tmp_path, name, user("u", "q"), answer("a", signature(name), text("a")))
    kept = answered(made)[0]
    assert kept.get("signature") == "c2ln" or kept.get("encrypted_content") == "c2ln"
    assert made.losses == ()


def test_gemini_gets_a_call_with_the_signature_that_came_before_it(tmp_path: Path) -> None:
    """R-K26."""
    message = answer("a", thought("hm", "gemini-3-x"), signature("gemini"), call("c1", '{"b":1}'))
    made = convert(tmp_path, "gemini", user("u", "q"), message, result("c1"))
    assert answered(made)[-1] == {"functionCall": {"name": "Bash", "args": {"b": 1}}, "thoughtSignature": "c2ln"}
    assert made.repairs == ()


@pytest.mark.parametrize("name", provider_names())
def test_another_model_reads_thinking_and_no_signature(tmp_path: Path, name: str) -> None:
    """R-K24, R-K25, R-K26, R-K27."""
    sealed = {"type": "thinking_signature", "signature": "U0VDUkVU", "model_id": "another", "format": "anthropic"}
    made = convert(tmp_path, name, user("u", "q"), answer("a", thought("hm", "another"), sealed, text("a")))
    assert "U0VDUkVU" not in repr(made.body)
    assert [loss.kind for loss in made.losses] == [
        "reasoning-omitted" if name == "openai-chat" else "reasoning-as-text"
    ]


def test_a_signature_of_another_format_is_not_sent(tmp_path: Path) -> None:
    """R-K25: what made it has the model's name, and is another provider."""
    sealed = {**signature("anthropic"), "format": "google"}
    made = convert(tmp_path, "anthropic", user("u", "q"), answer("a", thought("hm", "claude-x"), sealed, text("a")))
    assert [loss.kind for loss in made.losses] == ["reasoning-as-text"]


def test_reasoning_goes_back_into_its_field(tmp_path: Path) -> None:
    """R-K24."""
    message = answer("a", thought("hm", "deepseek-x", reasoning_field="reasoning"), text("a"))
    made = convert(tmp_path, "openai-chat", user("u", "q"), message)
    assert answered(made) == {"role": "assistant", "content": "a", "reasoning": "hm"}


@pytest.mark.parametrize("name", provider_names())
def test_developer_text_is_where_klaude_code_puts_it(tmp_path: Path, name: str) -> None:
    """R-K22, R-K23."""

    def developer(identity: str, words: str, **data: Any) -> dict[str, Any]:
        return record("DeveloperMessage", id=identity, role="developer", parts=[text(words)], **data)

    made = convert(
        tmp_path,
        name,
        developer("d0", "LEADING"),
        user("u", "ASKED"),
        developer("d1", "BEFORE", attachment_position="prepend"),
        developer("d2", "BEHIND"),
        answer("a", call("c1")),
        result("c1", output="OUTPUT"),
        developer("d3", "REMINDER"),
    )
    told = repr(made.body)
    assert told.count("LEADING") == 1
    places = [told.index(word) for word in ("BEFORE", "ASKED", "BEHIND", "OUTPUT", "REMINDER")]
    assert places == sorted(places)
    assert [repair.kind for repair in made.repairs if repair.kind != "added-signature"] == ["leading-developer"]


@pytest.mark.parametrize("name", provider_names())
def test_two_developer_texts_before_a_result_keep_their_order(tmp_path: Path, name: str) -> None:
    """R-K22: `attachment_position` counts at results as at prompts."""

    def developer(identity: str, words: str, position: str) -> dict[str, Any]:
        return record("DeveloperMessage", id=identity, parts=[text(words)], attachment_position=position)

    made = convert(
        tmp_path,
        name,
        user("u", "ASKED"),
        developer("d1", "FIRST", "prepend"),
        developer("d2", "LAST", "append"),
        developer("d3", "SECOND", "prepend"),
        answer("a", call("c1")),
        result("c1", output="OUTPUT"),
        developer("d4", "AFTER", "append"),
        developer("d5", "ONE", "prepend"),
        developer("d6", "TWO", "prepend"),
    )
    told = repr(made.body)
    expected = ["FIRST", "SECOND", "ASKED", "LAST", "ONE", "TWO", "OUTPUT", "AFTER"]
    assert sorted(expected, key=told.index) == expected
    assert made.losses == ()


def test_developer_texts_of_a_result_are_joined_as_klaude_code_joins_them(tmp_path: Path) -> None:
    """R-K22: each text ends with a newline, and one more stands before and behind the output."""

    def developer(words: str, position: str) -> dict[str, Any]:
        return record("DeveloperMessage", id=words, parts=[text(words)], attachment_position=position)

    texts = [developer(word, "prepend") for word in ("ONE", "TWO")] + [developer(word, "append") for word in "AB"]
    answered = (answer("a", call("c1")), result("c1", output="OUTPUT"))
    made = convert(tmp_path, "openai-chat", user("u", "ASKED"), *answered, *texts)
    assert made.body["messages"][-1]["content"] == "ONE\nTWO\n\nOUTPUT\nA\nB\n"


@pytest.mark.parametrize("name", provider_names())
def test_what_comes_between_parallel_results_stays_with_the_one_before_it(tmp_path: Path, name: str) -> None:
    """R-K22: the most recent result."""

    def at(second: int, made: dict[str, Any]) -> dict[str, Any]:
        return made | {"data": made["data"] | {"created_at": f"2026-11-21T10:00:{second:02}.000000"}}

    made = convert(
        tmp_path,
        name,
        at(1, user("u", "ASKED")),
        at(2, answer("a", call("c1"), call("c2"), call("c3"))),
        at(3, result("c1", output="FIRST")),
        at(4, record("DeveloperMessage", id="d1", parts=[text("BETWEEN")])),
        at(5, result("c3", output="THIRD")),
        at(6, result("c2", output="SECOND")),
        at(7, record("DeveloperMessage", id="d2", parts=[text("BEHIND")])),
    )
    told = repr(made.body)
    expected = ["ASKED", "FIRST", "BETWEEN", "SECOND", "BEHIND", "THIRD"]
    assert sorted(expected, key=told.index) == expected


def test_of_two_signatures_of_a_call_the_last_one_is_sent(tmp_path: Path) -> None:
    """R-K6, R-K26: as klaude-code does; the first is kept as a signature without a thought."""
    signed = signature("gemini")
    message = answer("a", call("c1"), signed, signed | {"signature": "bGFzdA=="})
    made = convert(tmp_path, "gemini", user("u", "q"), message, result("c1"))
    assert [part["thoughtSignature"] for part in answered(made)] == ["c2ln", "bGFzdA=="]
    assert answered(made)[-1]["functionCall"]["name"] == "Bash"


@pytest.mark.parametrize("name", provider_names())
def test_what_a_rewind_says_is_read_by_the_model(tmp_path: Path, name: str) -> None:
    """R-K22: klaude-code sends a rewind's rationale and note as a developer message; what was rewound is not sent."""
    made = convert(
        tmp_path,
        name,
        user("u", "ASKED"),
        record("DeveloperMessage", id="d", parts=[text("<system-reminder>Checkpoint 0</system-reminder>")]),
        answer("a", text("UNDONE")),
        record("RewindEntry", checkpoint_id=0, note="THE NOTE", rationale="THE RATIONALE"),
        answer("b", text("DONE")),
    )
    told = repr(made.body)
    assert "UNDONE" not in told
    expected = ["ASKED", "Checkpoint 0", "THE RATIONALE", "THE NOTE", "DONE"]
    assert sorted(expected, key=told.index) == expected
    (left_out,) = [repair for repair in made.repairs if repair.kind == "left-out"]
    assert (left_out.message_id, left_out.detail.partition(" by ")[0]) == ("a", "rewound")
    assert left_out.detail.endswith(".reminder")


def test_a_retracted_prompt_names_its_cause(tmp_path: Path) -> None:
    made = convert(
        tmp_path,
        "anthropic",
        user("u", "q"),
        answer("a", text("a")),
        user("v", "OOPS"),
        record("RetractEntry", retracted_text="OOPS", retracted_line=2),
        user("w", "again"),
    )
    assert "OOPS" not in repr(made.body)
    (left_out,) = [repair for repair in made.repairs if repair.kind == "left-out"]
    assert left_out.message_id == "v"
    assert left_out.detail.startswith(f"retracted by {SESSION}@")


@pytest.mark.parametrize("signed", ["call", "text"])
def test_gemini_gets_a_signature_back_on_the_part_before_it(tmp_path: Path, signed: str) -> None:
    """R-K26: Gemini signs calls and texts, and klaude-code logs the signature behind them."""
    part = call("c1", '{"b":1}') if signed == "call" else text("said")
    message = answer("a", thought("hm", "gemini-3-x"), part, signature("gemini"), *([call("c1")] * (signed == "text")))
    made = convert(tmp_path, "gemini", user("u", "q"), message, result("c1"))
    found = answered(made)
    assert found[0] == {"text": "hm", "thought": True}
    expected = {"functionCall": {"name": "Bash", "args": {"b": 1}}} if signed == "call" else {"text": "said"}
    assert found[1] == {**expected, "thoughtSignature": "c2ln"}
    assert made.losses == ()
    assert [repair.kind for repair in made.repairs] == ([] if signed == "call" else ["added-signature"])


def test_each_parallel_call_has_its_own_signature(tmp_path: Path) -> None:
    """R-K26."""
    other = {**signature("gemini"), "signature": "b3RoZXI="}
    message = answer("a", call("c1"), signature("gemini"), call("c2"), other)
    made = convert(tmp_path, "gemini", user("u", "q"), message, result("c1"), result("c2"))
    assert [part["thoughtSignature"] for part in answered(made)] == ["c2ln", "b3RoZXI="]
    assert made.losses == ()


def test_minimax_gets_its_reasoning_details_back(tmp_path: Path) -> None:
    """R-K24: with the format and id of each, and the sealed ones."""
    told = {"reasoning_field": "reasoning_details", "format": "MiniMax-response-v1"}
    message = answer(
        "a",
        thought("hm", "MiniMax-M2.5", id="r1", **told),
        {
            "type": "thinking_signature",
            "signature": "sealed",
            "id": "r2",
            "model_id": "MiniMax-M2.5",
            "format": told["format"],
        },
        thought("so", "MiniMax-M2.5", id="r3", **told),
        text("a"),
    )
    made = convert(tmp_path, "openai-chat", user("u", "q"), message, model="MiniMax-M2.5")
    form = "MiniMax-response-v1"
    assert answered(made) == {
        "role": "assistant",
        "content": "a",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "hm", "id": "r1", "format": form, "index": 0},
            {"type": "reasoning.encrypted", "data": "sealed", "id": "r2", "format": form, "index": 1},
            {"type": "reasoning.text", "text": "so", "id": "r3", "format": form, "index": 2},
        ],
    }
    assert made.losses == ()


def test_a_sealed_detail_alone_goes_back_too(tmp_path: Path) -> None:
    """R-K24."""
    told = {"reasoning_field": "reasoning_details", "format": "MiniMax-response-v1"}
    sealed = {"type": "thinking_signature", "signature": "sealed", "model_id": "MiniMax-M2.5", "format": told["format"]}
    message = answer("a", sealed, text("a"), thought("hm", "MiniMax-M2.5", **told), call("c1"))
    made = convert(tmp_path, "openai-chat", user("u", "q"), message, result("c1"), model="MiniMax-M2.5")
    assert [detail.get("data", detail.get("text")) for detail in answered(made)["reasoning_details"]] == [
        "sealed",
        "hm",
    ]
    assert made.losses == ()


def test_another_model_reads_the_text_of_reasoning_details(tmp_path: Path) -> None:
    message = answer("a", thought("hm", "MiniMax-M2.5", reasoning_field="reasoning_details"), text("a"))
    made = convert(tmp_path, "anthropic", user("u", "q"), message)
    assert answered(made)[0]["text"] == "<thinking>\nhm\n</thinking>"
    assert [loss.kind for loss in made.losses] == ["reasoning-as-text"]


@pytest.mark.parametrize("phase", ["commentary", "final_answer"])
def test_the_phase_of_an_answer_goes_back(tmp_path: Path, phase: str) -> None:
    """R-K26, R-K27."""
    made = convert(tmp_path, "responses", user("u", "q"), answer("a", text("a"), phase=phase), user("v", "more"))
    assert answered(made)[0] == {"type": "message", "role": "assistant", "content": "a", "phase": phase}


@pytest.mark.parametrize("name", provider_names())
def test_damage_is_mended_at_every_provider(tmp_path: Path, name: str) -> None:
    """R-K22, R-K29: unanswered calls, results of none, two results of one, answers that say nothing."""
    made = convert(
        tmp_path,
        name,
        user("u", "q"),
        answer("a", call("c1"), call("c2")),
        result("c2"),
        result("c2", output="more"),
        result("lost"),
        answer("b", stop_reason="aborted"),
        user("v", "again"),
        answer("e", stop_reason="error"),
    )
    kinds = {repair.kind for repair in made.repairs}
    assert {"unanswered-call", "joined-results", "orphan-result", "empty-message"} <= kinds
