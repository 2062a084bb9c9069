"""Calls as logs show them, with what they cost by the providers' own price lists (R-C22)."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from turnlog.model import Usage
from turnlog.pricing import price, price_nanos, price_version

AT = datetime(2026, 11, 10, 10, 0, 5, tzinfo=UTC)
OPUS, SONNET, HAIKU = "claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"


class Call(NamedTuple):
    model: str
    usage: Usage


def claude(model: str = OPUS, **changed: Any) -> Call:
    """The call that most cases vary."""
    buckets: dict[str, Any] = {"input": 10, "output": 300, "cache_write_5m": 1000, "cache_read": 5000}
    return Call(model, Usage(**{**buckets, **changed}))


def codex(model: str, input: int, cache_read: int, output: int, reasoning: int) -> Call:
    return Call(model, Usage(input=input, cache_read=cache_read, output=output - reasoning, reasoning=reasoning))


RESUMED = Call(OPUS, Usage(input=5, output=50, cache_read=7000, cache_write_5m=0))
SUBAGENT = Call(HAIKU, Usage(input=8, output=80, cache_read=900, cache_write_5m=0))
FIRST, SECOND = (6000, 4000, 500, 300), (3000, 9000, 400, 200)

CASES: dict[str, tuple[list[Call], str]] = {
    "c01 blocks with partial output": ([claude()], "0.0163"),
    "c02 blocks with the same usage": ([claude()], "0.0163"),
    "c03 no request id": ([claude()], "0.0163"),
    "c04 resume copies history": ([claude(), RESUMED], "0.021075"),
    "c05 subagent in both files": ([claude(), SUBAGENT], "0.016798"),
    "c06 subagent file only": ([claude(), SUBAGENT], "0.016798"),
    "c07 one-hour cache": ([claude(cache_write_5m=10_000, cache_write_1h=90_000)], "0.97255"),
    "c08 Sonnet above 200K": (
        [claude(SONNET, input=1000, output=2000, cache_write_5m=50_000, cache_read=200_000)],
        "0.546",
    ),
    "c09 synthetic message beside a real one": ([claude()], "0.0163"),
    "c10 fast mode": ([claude("claude-opus-4-6", speed="fast")], "0.0978"),
    "c11 web searches": ([claude(web_searches=5, web_fetches=1)], "0.0663"),
    "c12 truncated lines": ([claude()], "0.0163"),
    "c13 progress copies": ([claude(), SUBAGENT], "0.016798"),
    "c14 US-only inference": ([claude("claude-opus-4-6", region="us")], "0.01793"),
    "c15 two homes": ([claude(), RESUMED], "0.021075"),
    "x01 repeated counts": ([codex("gpt-5-codex", *FIRST), codex("gpt-5-codex", *SECOND)], "0.021875"),
    "x02 fork replay": ([codex("gpt-5-codex", *FIRST), codex("gpt-5-codex", *SECOND)], "0.021875"),
    "x03 spawned thread replay": ([codex("gpt-5-codex", *FIRST), codex("gpt-5-codex", *SECOND)], "0.021875"),
    "x04 no info": ([codex("gpt-5-codex", *FIRST)], "0.013"),
    "x05 model switch": ([codex("gpt-5-codex", *FIRST), codex("gpt-5-mini", *SECOND)], "0.014775"),
    "x06 totals only": ([codex("gpt-5-codex", *FIRST), codex("gpt-5-codex", *SECOND)], "0.021875"),
    "x07 archived copy": ([codex("gpt-5-codex", *FIRST)], "0.013"),
    "x08 archived only": ([codex("gpt-5-codex", *FIRST)], "0.013"),
    "x09 total reset": ([codex("gpt-5-codex", *FIRST), codex("gpt-5-codex", 3000, 0, 100, 50)], "0.01775"),
    "x10 usage without item": ([codex("gpt-5-codex", *FIRST)], "0.013"),
    "x11 gpt-5.2-codex": ([codex("gpt-5.2-codex", *FIRST)], "0.0182"),
}


@pytest.mark.parametrize(("calls", "dollars"), CASES.values(), ids=CASES.keys())
def test_calls_cost_what_the_price_lists_say(calls: list[Call], dollars: str) -> None:
    costs = [price(call.usage, call.model, at=AT) for call in calls]
    assert [cost for cost in costs if cost is None] == []
    assert sum((cost.amount for cost in costs if cost), Decimal()) == Decimal(dollars)


def test_a_synthetic_message_has_no_price_and_no_warning() -> None:
    assert price(Usage(input=0, output=0), "<synthetic>", at=AT) is None


def test_a_cost_says_what_it_was_priced_with() -> None:
    cost = price(claude().usage, OPUS, at=AT)
    assert cost is not None
    assert (cost.kind, cost.currency, cost.price_version) == ("priced", "USD", price_version())


@pytest.mark.parametrize("model", ["nothing-known", "claude-opus-9", "", "<synthetic>", "gpt-", "../..", "\ud800"])
def test_an_unknown_model_is_unknown_and_not_zero(model: str) -> None:
    """R-C22."""
    assert price(claude().usage, model, at=AT) is None


def test_a_known_model_at_an_unknown_provider_is_unknown() -> None:
    assert price_nanos(claude().usage, OPUS, "somebody-else", AT) is None


@pytest.mark.parametrize("usage", [None, Usage(), Usage(input=5), Usage(output=5), Usage(input=5, cache_read=3)])
def test_without_input_or_output_the_cost_is_unknown(usage: Usage | None) -> None:
    assert price(usage, OPUS, at=AT) is None


@pytest.mark.parametrize(
    "usage",
    [
        Usage(input=-1, output=5),
        Usage(input=5, output=-1),
        Usage(input=5, output=5, cache_read=-1),
        Usage(input=10**20, output=5),
        Usage(input=2**62, output=5),
    ],
)
def test_counts_that_cannot_be_cost_nobody_knows_what(usage: Usage) -> None:
    assert price_nanos(usage, OPUS, at=AT) is None


def test_no_tokens_cost_nothing() -> None:
    assert price_nanos(Usage(input=0, output=0), OPUS, at=AT) == 0


def test_a_cache_bucket_that_is_not_there_costs_nothing() -> None:
    assert price_nanos(Usage(input=10, output=300), OPUS, at=AT) == 10 * 5000 + 300 * 25_000


def test_cache_writes_of_unknown_time_to_live_are_priced_as_five_minutes() -> None:
    known, unknown = claude(), claude(cache_write_5m=None, cache_write=1000)
    assert price_nanos(unknown.usage, OPUS, at=AT) == price_nanos(known.usage, OPUS, at=AT)


@pytest.mark.parametrize(
    ("prompt", "nanos_per_input"), [(200_000, 3000), (200_001, 6000)], ids=["at the limit", "above it"]
)
def test_the_long_prompt_tier_of_sonnet_4_starts_above_its_limit(prompt: int, nanos_per_input: int) -> None:
    usage = Usage(input=prompt, output=0)
    assert price_nanos(usage, "claude-sonnet-4-20250514", at=AT) == prompt * nanos_per_input


def test_prices_are_those_of_the_day_of_the_call() -> None:
    usage = Usage(input=1_000_000, output=0)
    before, after = datetime(2026, 7, 29, 23, 59, tzinfo=UTC), datetime(2026, 7, 30, tzinfo=UTC)
    assert price_nanos(usage, "gpt-5.6-luna", at=before) == 2_000_000_000
    assert price_nanos(usage, "gpt-5.6-luna", at=after) == 400_000_000
    assert price_nanos(usage, "gpt-5.6-luna") == 400_000_000


def test_the_fast_mode_that_the_price_list_knows_is_used() -> None:
    usage = claude("claude-opus-5", speed="fast").usage
    assert price_nanos(usage, "claude-opus-5", at=AT) == 2 * 16_300_000


@pytest.mark.parametrize(
    "changed",
    [
        {"speed": "fast"},
        {"service_tier": "priority"},
        {"speed": "ludicrous"},
        {"speed": "fast", "service_tier": "batch"},
    ],
    ids=str,
)
def test_a_tariff_without_a_known_price_is_unknown(changed: dict[str, str]) -> None:
    assert price_nanos(claude(**changed).usage, OPUS, at=AT) is None


@pytest.mark.parametrize("words", [{"speed": "standard"}, {"service_tier": "standard"}, {"region": "not_available"}])
def test_ordinary_words_of_a_request_change_nothing(words: dict[str, str]) -> None:
    assert price_nanos(claude(**words).usage, OPUS, at=AT) == 16_300_000


def test_a_region_changes_no_price_of_the_models_that_cannot_choose_one() -> None:
    assert price_nanos(claude(region="us").usage, OPUS, at=AT) == 16_300_000


def test_a_region_changes_tokens_but_not_fees() -> None:
    usage = claude("claude-opus-4-6", region="us", web_searches=5).usage
    assert price_nanos(usage, "claude-opus-4-6", at=AT) == 17_930_000 + 50_000_000


def test_an_unknown_region_is_unknown() -> None:
    assert price_nanos(claude("claude-opus-4-6", region="moon").usage, "claude-opus-4-6", at=AT) is None


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("claude-opus-4-5@20251101", None),
        ("claude-opus-4-5@20251101", "vertex"),
        ("claude-opus-4-5-20251101[1m]", None),
        ("CLAUDE-OPUS-4-5", "Anthropic"),
        ("global.anthropic.claude-opus-4-5-20251101-v1:0", None),
        ("global.anthropic.claude-opus-4-5-20251101-v1:0", "anthropic"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/global.anthropic.claude-opus-4-5-20251101-v1:0", None),
        ("anthropic/claude-opus-4.5", None),
        ("anthropic/claude-opus-4.5", "openrouter"),
    ],
)
def test_a_model_is_known_by_the_names_of_its_hosts(model: str, provider: str | None) -> None:
    assert price_nanos(claude().usage, model, provider, AT) == 16_300_000
    one_hour = Usage(input=0, output=0, cache_write_1h=1000)
    assert price_nanos(one_hour, model, provider, AT) == 1000 * 10_000


def test_regional_inference_at_bedrock_has_its_own_price() -> None:
    usage = Usage(input=1000, output=0)
    assert price_nanos(usage, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", at=AT) == 1000 * 3300
    assert price_nanos(usage, "global.anthropic.claude-sonnet-4-5-20250929-v1:0", at=AT) == 1000 * 3000


def test_a_search_without_a_known_fee_makes_the_cost_unknown() -> None:
    usage = Usage(input=10, output=10, web_searches=1)
    assert price_nanos(usage, "kimi-k2", at=AT) is None


def test_off_peak_prices_hold_between_their_hours() -> None:
    usage = Usage(input=1_000_000, output=0)
    noon, night = (datetime(2026, 11, 10, hour, tzinfo=UTC) for hour in (12, 20))
    assert price_nanos(usage, "deepseek-chat", at=noon) != price_nanos(usage, "deepseek-chat", at=night)
    assert price_nanos(usage, "deepseek-chat") == price_nanos(usage, "deepseek-chat", at=night)
