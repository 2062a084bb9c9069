"""Makes the price table from the installed genai-prices: the one module that imports it (0.2 to 0.7 s).

`python -m turnlog.pricing.generate` writes `prices.json` again (`make prices`). What cannot be priced from token
counts alone has no tariff, and so is unknown: models without a price for input and output, or with a fee a request.
They are listed all the same, so that their names lead to no other model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from importlib.metadata import version
from itertools import chain, product
from pathlib import Path

import msgspec
from genai_prices import types
from genai_prices.data_snapshot import get_snapshot

from turnlog.pricing import rules
from turnlog.pricing.table import Match, ModelPrices, Period, ProviderPrices, Rates, Tier

UnitPrice = Decimal | types.TieredPrices
UnitPrices = Mapping[str, UnitPrice]
"""genai-prices' name of a unit -> its price."""
Constraint = types.StartDateConstraint | types.TimeOfDateConstraint | None

TARIFFS = {
    ("speed", "fast"): "fast",
    ("service_tier", "fast"): "fast",
    ("service_tier", "flex"): "flex",
    ("service_tier", "priority"): "priority",
    ("processing", "batch"): "batch",
}
"""Which of genai-prices' variants we know how to ask for. Others (search types, routes) show in no log."""


def generate_table() -> bytes:
    """The price table as JSON, one model a line, so that a change of prices is a readable difference."""
    head = {"source": version("genai-prices"), "rules": rules.REVISION}
    providers = ",\n".join(_provider_text(_provider(provider)) for provider in get_snapshot().providers)
    return f'{_text(head)[:-1]},"providers":[\n{providers}\n]}}\n'.encode()


def _provider_text(provider: ProviderPrices) -> str:
    head = _text(msgspec.structs.replace(provider, models=())).replace('"models":[]', '"models":[\n{}\n]')
    return head.replace("{}", ",\n".join(_text(model) for model in provider.models), 1)


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _provider(provider: types.Provider) -> ProviderPrices:
    return ProviderPrices(
        id=provider.id,
        models=tuple(rules.with_rules(provider.id, _model(provider.id, model)) for model in provider.models),
        model_match=_match(provider.model_match),
        provider_match=_match(provider.provider_match),
        falls_back_on=tuple(provider.fallback_model_providers or ()),
    )


def _match(clause: types.MatchLogic | None) -> Match:
    ways = () if clause is None else _ways(clause)
    return tuple(way[0] if len(way) == 1 else way for way in ways)


def _ways(clause: types.MatchLogic) -> tuple[tuple[str, ...], ...]:
    """The ways to match a clause, each a list of tests of which all must pass."""
    match clause:
        case types.ClauseEquals():
            return (("=" + clause.equals.lower(),),)
        case types.ClauseStartsWith():
            return (("^" + clause.starts_with.lower(),),)
        case types.ClauseEndsWith():
            return (("$" + clause.ends_with.lower(),),)
        case types.ClauseContains():
            return (("~" + clause.contains.lower(),),)
        case types.ClauseRegex():
            return (("/" + clause.regex,),)
        case types.ClauseOr():
            return tuple(way for each in clause.or_ for way in _ways(each))
        case types.ClauseAnd():
            return tuple(tuple(chain(*ways)) for ways in product(*(_ways(each) for each in clause.and_)))


def _model(provider: str, model: types.ModelInfo) -> ModelPrices:
    conditions = model.prices if isinstance(model.prices, list) else [types.ConditionalPrice(prices=model.prices)]
    if not all(_is_priced_by_tokens(condition.prices) for condition in conditions):
        return ModelPrices(model.id, _match(model.match))
    defaults = rules.defaults_for(provider, model.id)
    tariffs = {"standard": _standard(conditions, defaults)}
    for name, variants in _variants(model).items():
        tariffs[name] = _tariff(conditions, variants, defaults)
    return ModelPrices(model.id, _match(model.match), tariffs)


def _is_priced_by_tokens(prices: types.ModelPrice) -> bool:
    units = _units(prices)
    return "input_mtok" in units and "output_mtok" in units and "requests_kcount" not in units


def _units(prices: types.ModelPrice) -> dict[str, UnitPrice]:
    return {unit: price for unit, price in vars(prices).items() if price is not None}


def _variants(model: types.ModelInfo) -> dict[str, list[types.PriceVariant]]:
    named: dict[str, list[types.PriceVariant]] = {}
    for variant in model.price_variants or ():
        tariff = TARIFFS.get(next(iter(variant.when.items()))) if len(variant.when) == 1 else None
        if tariff is not None:
            named.setdefault(tariff, []).append(variant)
    return named


def _standard(conditions: Sequence[types.ConditionalPrice], defaults: rules.Defaults) -> tuple[Period, ...]:
    """Dated periods by their start, then daily ones, which hold over all of them."""
    dated = [
        _period(_units_on(conditions, since), defaults, since)
        for since in _starts(each.constraint for each in conditions)
    ]
    daily = [
        _period(_units(each.prices), defaults, daily=_minutes(each.constraint))
        for each in conditions
        if isinstance(each.constraint, types.TimeOfDateConstraint)
    ]
    return (*_without_repeats(dated), *daily)


def _tariff(
    conditions: Sequence[types.ConditionalPrice], variants: Sequence[types.PriceVariant], defaults: rules.Defaults
) -> tuple[Period, ...]:
    """Periods of a variant: from its start on, its own prices over the standard ones of that time."""
    periods: list[Period] = []
    constraints = [each.constraint for each in (*conditions, *variants)]
    for since in _starts(constraints):
        active = [each for each in variants if _holds(each.constraint, since)]
        if active:
            units = _units_on(conditions, since)
            for variant in reversed(active):
                units |= _units(variant.prices)
            periods.append(_period(units, defaults, since))
    return _without_repeats(periods)


def _starts(constraints: Iterable[Constraint]) -> list[date | None]:
    dates = {constraint.start_date for constraint in constraints if isinstance(constraint, types.StartDateConstraint)}
    return [None, *sorted(dates)]


def _holds(constraint: Constraint, day: date | None) -> bool:
    """Whether a constraint of days is met on `day`; None is the day before all that are named."""
    if isinstance(constraint, types.StartDateConstraint):
        return day is not None and constraint.start_date <= day
    return constraint is None


def _units_on(conditions: Sequence[types.ConditionalPrice], day: date | None) -> dict[str, UnitPrice]:
    holding = [condition for condition in conditions if _holds(condition.constraint, day)]
    return _units((holding or conditions[:1])[-1].prices)


def _minutes(constraint: types.TimeOfDateConstraint) -> tuple[int, int]:
    times = (constraint.start_time, constraint.end_time)
    start, end = (time.hour * 60 + time.minute for time in times)
    return start, end


def _without_repeats(periods: Sequence[Period]) -> tuple[Period, ...]:
    """Without the periods that change nothing we count."""
    kept: list[Period] = []
    for period in periods:
        if not kept or (kept[-1].rates, kept[-1].tiers) != (period.rates, period.tiers):
            kept.append(period)
    return tuple(kept)


def _period(
    units: UnitPrices, defaults: rules.Defaults, since: date | None = None, daily: tuple[int, int] | None = None
) -> Period:
    starts = {tier.start for price in units.values() if isinstance(price, types.TieredPrices) for tier in price.tiers}
    tiers = (Tier(start, _rates(units, defaults, start)) for start in sorted(starts))
    return Period(rates=_rates(units, defaults), tiers=tuple(tiers), since=since, daily=daily)


def _rates(units: UnitPrices, defaults: rules.Defaults, above: int = -1) -> Rates:
    """All rates at a length of the prompt; a cache without a price of its own costs what input costs."""
    price = {unit: _price(each, above) for unit, each in units.items()}
    into = price["input_mtok"]
    written = price.get("cache_write_mtok", into * defaults.cache_write)
    written_1h = written if defaults.cache_write_1h is None else into * defaults.cache_write_1h
    return Rates(
        input=into,
        output=price["output_mtok"],
        cache_read=price.get("cache_read_mtok", into),
        cache_write=written,
        cache_write_1h=price.get("cache_write_1h_mtok", written_1h),
        web_search=price.get("web_searches_kcount", defaults.web_search),
        reasoning=price.get("output_reasoning_mtok"),
    )


def _price(price: UnitPrice, above: int) -> float:
    """US dollars as the shortest number; nine decimals keep every published price and drop noise of conversions."""
    if isinstance(price, types.TieredPrices):
        reached = [tier.price for tier in price.tiers if tier.start <= above]
        price = reached[-1] if reached else price.base
    return float(round(price, 9))


if __name__ == "__main__":
    Path(__file__).with_name("prices.json").write_bytes(generate_table())
