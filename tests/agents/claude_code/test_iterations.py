"""The requests behind one answer (`usage.iterations`): those of other models count by themselves."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from support.claude_files import SESSION, Log, fold, text
from turnlog.model import Fate, Usage
from turnlog.model.usage import merge_usage
from turnlog.pricing import price

SONNET = "claude-sonnet-4-5-20250929"


def request(kind: str, tokens: int, output: int, read: int = 0, **more: Any) -> dict[str, Any]:
    counts = {"input_tokens": tokens, "output_tokens": output, "cache_read_input_tokens": read}
    return {"type": kind, "cache_creation_input_tokens": 0, **counts, **more}


def answer(*iterations: dict[str, Any], read: int = 202_000) -> dict[str, Any]:
    return {**request("", 20, 50, read), "iterations": list(iterations)}


def test_an_advisor_is_a_model_call_beside_the_answer() -> None:
    usage = answer(
        request("message", 10, 20, 100_000),
        request("advisor_message", 50_000, 2000, model="claude-opus-4-6"),
        request("message", 10, 30, 102_000),
    )
    log = Log()
    blocks = [log.assistant("msg_1", text(words), usage=usage, model=SONNET, requestId="req_1") for words in "ab"]
    gathered = fold(log.user("Plan it"), *blocks)
    own, advisor = (message for message in gathered.in_order(f"claude-code:{SESSION}") if message.role == "assistant")
    assert own.usage is not None
    assert (own.usage.input, own.usage.cache_read, own.usage.output) == (20, 202_000, 50)
    assert (advisor.model, advisor.parts, advisor.request_id) == ("claude-opus-4-6", (), "req_1")
    assert advisor.usage is not None
    assert (advisor.usage.input, advisor.usage.output) == (50_000, 2000)
    assert gathered.place(advisor.id).fate is Fate.SIDECAR


def test_a_summary_by_the_provider_is_a_call_of_the_same_model() -> None:
    log = Log()
    usage = answer(request("compaction", 180_000, 3500), request("message", 20, 50, 202_000))
    gathered = fold(log.user("Go on"), log.assistant("msg_1", text("a"), usage=usage, model=SONNET))
    (other,) = (message for message in gathered.messages.values() if message.role == "assistant" and not message.parts)
    assert (other.model, other.usage and other.usage.input) == (SONNET, 180_000)


@pytest.mark.parametrize(
    ("reads", "cost"),
    [
        # In dollars: 3 and 15 for a million, 0.3 from the cache; 6, 22.5 and 0.6 above 200,000 tokens.
        ((100_000, 102_000), "0.061410"),
        ((202_000,), "0.122445"),
        ((1000, 201_000), "0.121965"),
    ],
)
def test_each_request_has_the_price_of_its_own_prompt(reads: tuple[int, ...], cost: str) -> None:
    counts = [(10, 20), (10, 30)] if len(reads) == 2 else [(20, 50)]
    requests = [request("message", *pair, read) for pair, read in zip(counts, reads, strict=True)]
    log = Log()
    record = log.assistant("msg_1", text("a"), usage=answer(*requests, read=sum(reads)), model=SONNET)
    message = fold(log.user("Go"), record).messages["msg_1"]
    priced = price(message.usage, SONNET)
    assert priced is not None
    assert priced.amount.quantize(Decimal("0.000001")) == Decimal(cost)


def test_requests_that_are_not_what_was_counted_are_left_out() -> None:
    log = Log()
    usage = answer(request("message", 1, 2), request("message", 3, 4))
    message = fold(log.user("Go"), log.assistant("msg_1", text("a"), usage=usage)).messages["msg_1"]
    assert message.usage is not None
    assert message.usage.requests == ()


def test_the_reading_with_more_tokens_has_the_requests() -> None:
    few = Usage(input=1, output=1, requests=(Usage(input=1, output=1),))
    many = Usage(input=3, output=2, requests=(Usage(input=1, output=1), Usage(input=2, output=1)))
    for joined in (merge_usage(few, many), merge_usage(many, few)):
        assert joined == many
