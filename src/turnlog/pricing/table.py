"""The price table: what each provider asks for each model, since when, and from how long a prompt on.

Values as `prices.json` holds them, and how a provider and a model are found by the names that logs use. Prices are
US dollars per million tokens (web searches: per thousand); counting money in integers is `turnlog.pricing.cost`'s.
The shape follows genai-prices, with everything resolved that does not depend on a request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from functools import cached_property
from typing import TypeAlias

import msgspec

Match: TypeAlias = tuple[str | tuple[str, ...], ...]
"""Which names are meant: any of these tests, or all of an inner tuple. A test is a sign and a text: `=` equal,
`^` starts, `$` ends, `~` contains, `/` regular expression."""


class Rates(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What one token of each kind costs, in US dollars per million. Nothing is left to fall back on but `reasoning`."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    """For five minutes, and where the time to live is not known."""
    cache_write_1h: float
    web_search: float | None = None
    """US dollars per thousand searches; None where the price is not known."""
    reasoning: float | None = None
    """None: the price of output."""


class Tier(msgspec.Struct, frozen=True, array_like=True):
    """The rates of a whole request whose prompt, cached tokens included, is longer than `above` tokens."""

    above: int
    rates: Rates


class Period(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rates for a time: from a day on (UTC, None: always), or on every day between two minutes of it."""

    rates: Rates
    tiers: tuple[Tier, ...] = ()
    """By rising `above`."""
    since: date | None = None
    daily: tuple[int, int] | None = None


class ModelPrices(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a provider asks for a model."""

    id: str
    match: Match
    tariffs: dict[str, tuple[Period, ...]] = {}
    """`standard`, and those a request may ask for (`fast`, `batch`, …); empty when tokens alone do not tell the price.
    Of the periods of a tariff, the last one that holds at the time of a request counts."""


class ProviderPrices(msgspec.Struct, frozen=True, omit_defaults=True):
    """A provider and its models. The two matches say which model names and which provider names lead here."""

    id: str
    models: tuple[ModelPrices, ...]
    model_match: Match = ()
    provider_match: Match = ()
    falls_back_on: tuple[str, ...] = ()
    """Providers whose prices hold for the models that this one does not list itself."""

    def find(self, name: str) -> ModelPrices | None:
        """The first model that goes by this name (lower case)."""
        return next((model for model in self.models if matches(model.match, name)), None)


class _Header(msgspec.Struct, frozen=True):
    id: str
    models: msgspec.Raw
    model_match: Match = ()
    provider_match: Match = ()
    falls_back_on: tuple[str, ...] = ()


class PriceTable(msgspec.Struct, frozen=True, dict=True):
    """All providers, each decoded when it is first asked for: a log names few of them."""

    source: str
    """Version of genai-prices that it was made from."""
    rules: int
    """Revision of our rules on top (`turnlog.pricing.rules`)."""
    providers: tuple[msgspec.Raw, ...]

    @cached_property
    def headers(self) -> dict[str, _Header]:
        """The providers by id, without their models."""
        return {header.id: header for header in (msgspec.json.decode(raw, type=_Header) for raw in self.providers)}

    def provider(self, provider_id: str) -> ProviderPrices:
        """The provider with this id, with its models. Raises KeyError if there is none."""
        header = self.headers[provider_id]
        models = msgspec.json.decode(header.models, type=tuple[ModelPrices, ...])
        return ProviderPrices(header.id, models, header.model_match, header.provider_match, header.falls_back_on)

    def find(self, model: str, provider: str | None = None) -> tuple[str, ModelPrices] | None:
        """Where `model` is priced: the provider's id and the model's prices; None if it is not known.

        A named provider decides; a name that only one kind of host uses (Bedrock's, OpenRouter's) tells its own.
        """
        for name in _spellings(model):
            for provider_id in self._candidates(name, provider):
                found = self.provider(provider_id).find(name)
                if found is not None:
                    return provider_id, found
        return None

    def _candidates(self, name: str, provider: str | None) -> Iterator[str]:
        """The ids of the providers to look at, in turn."""
        hosts = [host for shape, host in _HOSTS if shape.search(name) and host in self.headers]
        if provider is None:
            yield from hosts
            yield from (id for id, header in self.headers.items() if matches(header.model_match, name))
            return
        named = self._named(provider)
        if named is not None:
            yield named.id
            yield from (id for id in named.falls_back_on if id in self.headers)
            yield from hosts

    def _named(self, provider: str) -> _Header | None:
        wanted = provider.lower().strip()
        if wanted in self.headers:
            return self.headers[wanted]
        return next((header for header in self.headers.values() if matches(header.provider_match, wanted)), None)


_HOSTS = (
    # Bedrock: `us.anthropic.claude-…-v1:0`, or the ARN of an inference profile that ends in such a name.
    (re.compile(r"^(?:[a-z-]+\.)?(?:anthropic|amazon|meta|mistral|cohere|deepseek|openai|qwen)\."), "aws"),
    (re.compile(r"^glm-"), "zai"),
    (re.compile(r"^[\w.-]+/[\w.:-]+$"), "openrouter"),
)
"""Names that show who serves the model, and that provider's id."""

_ARN = re.compile(r"^arn:aws[\w-]*:bedrock:.*/")
_CONTEXT_MARK = re.compile(r"\[\d+m\]$")
_COMPACT_DATE = re.compile(r"-(20\d\d)(\d\d)(\d\d)(?=-|:|$)")


def _spellings(model: str) -> Iterator[str]:
    """The ways in which a table may list the model of a log: without Claude Code's `[1m]`, with a dashed date."""
    name = _CONTEXT_MARK.sub("", _ARN.sub("", model.strip().lower()))
    yield name
    dashed = _COMPACT_DATE.sub(r"-\1-\2-\3", name)
    if dashed != name:
        yield dashed


def matches(match: Match, name: str) -> bool:
    """Whether a name (lower case) is one that `match` means."""
    return any(all(_passes(test, name) for test in ((each,) if isinstance(each, str) else each)) for each in match)


def _passes(test: str, name: str) -> bool:
    return _TESTS[test[0]](test[1:], name)


_TESTS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda text, name: name == text,
    "^": lambda text, name: name.startswith(text),
    "$": lambda text, name: name.endswith(text),
    "~": lambda text, name: text in name,
    "/": lambda text, name: re.search(text, name) is not None,
}
