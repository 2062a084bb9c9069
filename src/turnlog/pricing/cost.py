"""What a model call costs, from its usage: exact integers of nano-dollars, rounded once.

Unknown is None, never zero: a model or a tariff without a known price, a usage without input or output, counts that
cannot be. A cache bucket that is None was not used. Which session is billed for a cost is up to the store.
"""

from __future__ import annotations

from datetime import UTC, datetime, time
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from turnlog.model import Cost, Usage
from turnlog.pricing import rules
from turnlog.pricing.snapshot import read_table
from turnlog.pricing.table import ModelPrices, Period, Rates

_MILLION = 1_000_000
_NANO = 1_000_000_000

MOST = 10**18
"""Nano-dollars that a call can cost: a billion dollars. A log that says more is wrong, and its cost is unknown."""

_ORDINARY = frozenset({None, "", "standard", "default", "auto", "on_demand"})
"""Words for a request's speed and service tier that leave it at the standard tariff."""

_ANYWHERE = frozenset({None, "", "global", "not_available"})
"""Words for a request's region that leave it at the standard prices."""


class _Units(NamedTuple):
    """Prices in nano-dollars for a million tokens; `web_search` for a million searches, None where not known."""

    above: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    cache_write_1h: int
    reasoning: int
    web_search: int | None


class _Prices(NamedTuple):
    """A period, ready to count with: units for short prompts, then for those above each threshold, highest first."""

    since: datetime | None
    daily: tuple[int, int] | None
    short: _Units
    long: tuple[_Units, ...]


def price_version() -> str:
    """The name of the prices in use: genai-prices' version and the revision of our rules (`Cost.price_version`)."""
    table = read_table()
    return f"genai-prices-{table.source}+rules.{table.rules}"


def price(
    usage: Usage | None, model: str | None, provider: str | None = None, at: datetime | None = None
) -> Cost | None:
    """The cost in US dollars, or None if it is not known (R-C22). Arguments as in `price_nanos`."""
    nanos = price_nanos(usage, model, provider, at)
    return None if nanos is None else Cost(amount=Decimal(nanos) / _NANO, price_version=price_version())


def price_nanos(
    usage: Usage | None, model: str | None, provider: str | None = None, at: datetime | None = None
) -> int | None:
    """The cost in nano-dollars, or None if it is not known.

    Args:
        usage: Tokens of one call. Input and output must be known; tiers depend on the length of a single prompt,
            so that a sum of many calls has no price of its own.
        model: Its name as the agent logged it.
        provider: Who served it, where that is known; else the model's name decides.
        at: When it was called (aware). None: the newest prices.
    """
    if usage is None or model is None or usage.input is None or usage.output is None:
        return None
    if usage.requests:
        return _price_of_requests(usage, model, provider, at)
    periods = _periods(model, provider, usage.service_tier, usage.speed, usage.region)
    prices = periods[0] if len(periods) == 1 and periods[0].since is None else _holding(periods, at)
    if prices is None:
        return None
    read = usage.cache_read or 0
    written = (usage.cache_write_5m or 0) + (usage.cache_write or 0)
    written_1h = usage.cache_write_1h or 0
    into = usage.input + (usage.tool_prompt or 0)
    reasoning = usage.reasoning or 0
    if min(into, read, written, written_1h, usage.output, reasoning) < 0:
        return None
    units = prices.short
    if prices.long:
        prompt = into + read + written + written_1h
        units = next((each for each in prices.long if prompt > each.above), units)
    total = (
        into * units.input
        + usage.output * units.output
        + read * units.cache_read
        + written * units.cache_write
        + written_1h * units.cache_write_1h
        + reasoning * units.reasoning
    )
    if usage.web_searches:
        if units.web_search is None:
            return None
        total += usage.web_searches * units.web_search
    nanos = (total + _MILLION // 2) // _MILLION
    return nanos if nanos <= MOST else None


def _price_of_requests(usage: Usage, model: str, provider: str | None, at: datetime | None) -> int | None:
    """The cost of an answer that several requests made: which rates hold is decided by each prompt."""
    tariff = {name: getattr(usage, name) for name in ("service_tier", "speed", "region")}
    requests = [replace(each, **tariff) for each in usage.requests]
    # The provider's own tools are counted for the answer as a whole.
    requests[0] = replace(requests[0], web_searches=usage.web_searches)
    costs = [price_nanos(each, model, provider, at) for each in requests]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) and sum(known) <= MOST else None


def _holding(periods: tuple[_Prices, ...], at: datetime | None) -> _Prices | None:
    """The last of the periods that holds at a time; without a time, the newest one of those that hold all day."""
    for prices in reversed(periods):
        if prices.daily is not None:
            if at is not None and _within(prices.daily, at):
                return prices
        elif at is None or prices.since is None or at >= prices.since:
            return prices
    return None


def _within(daily: tuple[int, int], at: datetime) -> bool:
    start, end = daily
    clock = at.astimezone(UTC)
    minute = clock.hour * 60 + clock.minute
    return start <= minute < end if start <= end else minute >= start or minute < end


@lru_cache(maxsize=4096)
def _periods(
    model: str, provider: str | None, service_tier: str | None, speed: str | None, region: str | None
) -> tuple[_Prices, ...]:
    """The periods of what a request asked for, empty when we know no price for it."""
    found = read_table().find(model, provider)
    tariff = _tariff(service_tier, speed)
    if found is None or tariff is None:
        return ()
    host, prices = found
    factor = _region_factor(host, prices, region)
    if factor is None:
        return ()
    return tuple(_counted(period, factor) for period in prices.tariffs.get(tariff, ()))


def _tariff(service_tier: str | None, speed: str | None) -> str | None:
    """The tariff that a request asked for; None if it asked for two at once, for which no price is published."""
    wanted = {word for word in (service_tier, speed) if word not in _ORDINARY and word is not None}
    if len(wanted) > 1:
        return None
    return wanted.pop() if wanted else "standard"


def _region_factor(host: str, prices: ModelPrices, region: str | None) -> Fraction | None:
    """What the choice of a region multiplies prices by: only Anthropic's own API has one, other hosts name models."""
    if region in _ANYWHERE or host != "anthropic" or prices.id in rules.WITHOUT_US_ONLY:
        return Fraction(1)
    return rules.US_ONLY if region == "us" else None


def _counted(period: Period, factor: Fraction) -> _Prices:
    since = None if period.since is None else datetime.combine(period.since, time(), UTC)
    long = tuple(_units(tier.rates, factor, tier.above) for tier in reversed(period.tiers))
    return _Prices(since, period.daily, _units(period.rates, factor), long)


def _units(rates: Rates, factor: Fraction, above: int = 0) -> _Units:
    return _Units(
        above=above,
        input=_nanos(rates.input, factor),
        output=_nanos(rates.output, factor),
        cache_read=_nanos(rates.cache_read, factor),
        cache_write=_nanos(rates.cache_write, factor),
        cache_write_1h=_nanos(rates.cache_write_1h, factor),
        reasoning=_nanos(rates.output if rates.reasoning is None else rates.reasoning, factor),
        # A fee is no price of a token, so a region does not change it; it is given per thousand.
        web_search=None if rates.web_search is None else _nanos(rates.web_search, Fraction(1000)),
    )


def _nanos(dollars: float, factor: Fraction) -> int:
    # The shortest text of the number is the published price, which its binary value is not.
    return round(Fraction(repr(dollars)) * factor * _NANO)
