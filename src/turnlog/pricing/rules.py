"""Prices that genai-prices does not have: each with what it is and where it comes from.

They yield to genai-prices: a price that it has is never replaced. Raise `REVISION` when one changes, so that
costs say by which rules they were made.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from turnlog.pricing.table import ModelPrices, Period, Rates, Tier

REVISION = 1


class Defaults(NamedTuple):
    """What a model's list may leave out. Caches in units of the input price, searches in US dollars per thousand."""

    cache_write: float = 1.0
    cache_write_1h: float | None = None
    """None: the same as any cache write."""
    web_search: float | None = None


def defaults_for(provider: str, model: str) -> Defaults:
    """Claude's cache writes cost the same share of the input price at every host (Anthropic, prompt caching).

    The fee of the web search tool is Anthropic's own; it holds also for the models that are listed without it.
    """
    if "claude" not in model:
        return Defaults()
    return Defaults(cache_write=1.25, cache_write_1h=2.0, web_search=10.0 if provider == "anthropic" else None)


LONG_PROMPTS = {("anthropic", "claude-sonnet-4-0"): 200_000}
"""Models whose whole request costs more above so many prompt tokens: twice for what goes in, 1.5 times for what
comes out (Anthropic, long context; 1M context beta of Sonnet 4, May 2025 to April 2026)."""

FAST_FACTORS = {("anthropic", "claude-opus-4-6"): 6}
"""Fast mode in units of the standard prices, for all kinds of tokens (Anthropic, fast mode)."""

US_ONLY = Fraction(11, 10)
"""What `inference_geo: us` multiplies every price of a token by (Anthropic, data residency)."""

WITHOUT_US_ONLY = frozenset(
    {
        "claude-v1",
        "claude-2",
        "claude-3-haiku",
        "claude-3-sonnet",
        "claude-3-opus-latest",
        "claude-3-5-haiku-latest",
        "claude-3-5-sonnet",
        "claude-3-7-sonnet-latest",
        "claude-opus-4-0",
        "claude-opus-4-1",
        "claude-opus-4-5",
        "claude-sonnet-4-0",
        "claude-sonnet-4-5",
        "claude-haiku-4-5",
    }
)
"""Models from before the choice of a region (Opus 4.6 was the first to have it): their price does not depend on it."""


def with_rules(provider: str, model: ModelPrices) -> ModelPrices:
    """The model's prices with the rules for it, in the places that its provider's list leaves open."""
    tariffs = dict(model.tariffs)
    above = LONG_PROMPTS.get((provider, model.id))
    if above is not None:
        tariffs = {name: tuple(_with_long_prompts(period, above) for period in tariffs[name]) for name in tariffs}
    factor = FAST_FACTORS.get((provider, model.id))
    if factor is not None and "standard" in tariffs and "fast" not in tariffs:
        tariffs["fast"] = tuple(_multiplied(period, factor) for period in tariffs["standard"])
    return ModelPrices(model.id, model.match, tariffs)


def _with_long_prompts(period: Period, above: int) -> Period:
    if period.tiers:
        return period
    rates = _scaled(period.rates, 2, 1.5)
    return Period(period.rates, (Tier(above, rates),), period.since, period.daily)


def _multiplied(period: Period, factor: float) -> Period:
    tiers = tuple(Tier(tier.above, _scaled(tier.rates, factor, factor)) for tier in period.tiers)
    return Period(_scaled(period.rates, factor, factor), tiers, period.since, period.daily)


def _scaled(rates: Rates, into: float, out: float) -> Rates:
    return Rates(
        input=rates.input * into,
        output=rates.output * out,
        cache_read=round(rates.cache_read * into, 9),
        cache_write=rates.cache_write * into,
        cache_write_1h=rates.cache_write_1h * into,
        web_search=rates.web_search,
        reasoning=None if rates.reasoning is None else rates.reasoning * out,
    )
