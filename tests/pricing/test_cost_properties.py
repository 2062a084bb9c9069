"""What holds for every usage: costs grow with tokens, add up, and agree with genai-prices where it knows all."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import genai_prices
import pytest
from genai_prices import types
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from support.profiles import some_of
from turnlog.model import Usage
from turnlog.model.usage import BUCKETS, sum_usage
from turnlog.pricing import price_nanos

AT = datetime(2026, 11, 10, tzinfo=UTC)
OPTIONAL = [name for name in BUCKETS if name not in ("input", "output")]
FLAT = ("claude-opus-4-5", "claude-haiku-4-5", "claude-opus-5-5", "gpt-5-codex")
TIERED = ("claude-sonnet-4-5", "claude-sonnet-4-20250514", "claude-haiku-5-5", "gpt-5.6-luna", "gemini-2.5-pro")

counts = st.integers(min_value=0, max_value=400_000)
optional = st.none() | counts


def usages() -> st.SearchStrategy[Usage]:
    known = {"input": counts, "output": counts}
    return st.builds(Usage, **{name: known.get(name, optional) for name in BUCKETS})


def nanos(usage: Usage, model: str) -> int:
    cost = price_nanos(usage, model, at=AT)
    assert cost is not None
    return cost


@given(usages(), st.sampled_from(BUCKETS), counts, st.sampled_from(FLAT + TIERED))
def test_more_tokens_never_cost_less(usage: Usage, bucket: str, more: int, model: str) -> None:
    buckets: dict[str, Any] = {name: getattr(usage, name) for name in BUCKETS}
    buckets[bucket] = (buckets[bucket] or 0) + more
    assert nanos(Usage(**buckets), model) >= nanos(usage, model) >= 0


@given(usages(), usages(), st.sampled_from(FLAT))
def test_costs_add_up_where_no_tier_depends_on_the_length_of_a_prompt(one: Usage, other: Usage, model: str) -> None:
    both = sum_usage([one, other]).usage
    assert abs(nanos(both, model) - nanos(one, model) - nanos(other, model)) <= 1


@given(usages(), st.sampled_from(OPTIONAL), st.sampled_from(FLAT + TIERED))
def test_a_bucket_of_zero_costs_as_much_as_one_that_is_not_there(usage: Usage, bucket: str, model: str) -> None:
    buckets: dict[str, Any] = {name: getattr(usage, name) for name in BUCKETS}
    zero: dict[str, Any] = {**buckets, bucket: 0}
    nothing: dict[str, Any] = {**buckets, bucket: None}
    assert nanos(Usage(**zero), model) == nanos(Usage(**nothing), model)


TIMES = [datetime(2025, 3, 1, 2, tzinfo=UTC), AT - timedelta(days=120, hours=4), AT, AT + timedelta(hours=20)]
PROMPTS = [(1000, 0, 0), (1000, 120_000, 10_000), (90_000, 150_000, 20_000), (400_000, 200_000, 50_000)]
CALLS = [(at, *prompt) for at, prompt in zip(TIMES, PROMPTS, strict=True)]
OURS = {"claude-sonnet-4-0", "claude-2", "claude-v1"}


def listed(provider: types.Provider) -> Iterator[tuple[str, types.ModelInfo]]:
    """The models of a provider by the ids that lead to one; a quick run takes some of them."""
    for model in some_of(provider.models, 5):
        with suppress(LookupError):
            yield model.id, get_snapshot().find_provider_model(model.id, provider, None, None)[1]


def is_ours(provider: str, model: str) -> bool:
    """Whether a rule of ours prices long prompts or cache writes of the model."""
    return model in OURS or ("claude" in model and provider != "anthropic")


@pytest.mark.parametrize("provider", get_snapshot().providers, ids=lambda provider: provider.id)
def test_prices_are_those_of_genai_prices_where_it_has_them(provider: types.Provider) -> None:
    for name, model in listed(provider):
        for at, into, read, written in [] if is_ours(provider.id, model.id) else CALLS:
            theirs = model.calc_price(
                genai_prices.Usage(
                    input_tokens=into + read + written,
                    cache_read_tokens=read,
                    cache_write_tokens=written,
                    output_tokens=777,
                ),
                provider,
                genai_request_timestamp=at,
            )
            prices = theirs.model_price
            usage = Usage(input=into, output=777, cache_read=read, cache_write=written)
            ours = price_nanos(usage, name, provider.id, at)
            if prices.input_mtok is None or prices.output_mtok is None or prices.requests_kcount is not None:
                assert ours is None, (name, at)
            else:
                assert ours is not None, (name, at)
                assert abs(ours - theirs.total_price * 10**9) <= 1, (name, at)
