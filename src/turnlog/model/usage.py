"""Token counts in disjoint buckets, and money. None is unknown, never zero; sums say how much was unknown.

Every agent's quirk (cached tokens inside input, reasoning inside output) is undone in that agent's module, so
that here the sum of the buckets is the total.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Literal

import msgspec

from turnlog.model.base import Value

BUCKETS = (
    "input",
    "cache_read",
    "cache_write_5m",
    "cache_write_1h",
    "cache_write",
    "output",
    "reasoning",
    "tool_prompt",
)
"""The disjoint buckets, in the order in which they are stored and shown."""

Exactness = Literal["exact", "lower_bound", "estimated"]

_EXACTNESS_RANK: dict[Exactness, int] = {"exact": 0, "lower_bound": 1, "estimated": 2}


class Usage(Value, frozen=True, kw_only=True):
    """Tokens of one model call."""

    input: int | None = None
    """Prompt tokens that were neither read from nor written to a cache."""
    cache_read: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    cache_write: int | None = None
    """Cache writes whose time to live the log does not name."""
    output: int | None = None
    """Completion tokens without `reasoning`; with them where `reasoning` is None."""
    reasoning: int | None = None
    """Thinking tokens; None if they are inside `output` or unknown."""
    tool_prompt: int | None = None
    service_tier: str | None = None
    speed: str | None = None
    region: str | None = None
    web_searches: int | None = None
    web_fetches: int | None = None
    exactness: Exactness = "exact"
    requests: tuple[Usage, ...] = ()
    """The requests whose sum this is, where the provider made several for one answer: each has a price of its own."""

    @property
    def total(self) -> int | None:
        """Sum of all known buckets; None if none is known."""
        known = [count for count in self.buckets() if count is not None]
        return sum(known) if known else None

    def buckets(self) -> tuple[int | None, ...]:
        """The counts in the order of `BUCKETS`."""
        return (
            self.input,
            self.cache_read,
            self.cache_write_5m,
            self.cache_write_1h,
            self.cache_write,
            self.output,
            self.reasoning,
            self.tool_prompt,
        )


class SessionTotal(Value, frozen=True, kw_only=True):
    """Tokens that a log counts for a whole session and one model, where it has none of single calls."""

    model: str | None = None
    usage: Usage
    calls: int | None = None
    """How many calls it contains, as the agent counted them; None if the log does not say."""
    task: str | None = None
    """What the calls were for, if not for the conversation."""
    answer: str | None = None
    """The message of one of these calls, where another source of the session may have the tokens of all of them: once
    this message has its own, the total is left out. None: the total always counts."""


class UsageTotal(Value, frozen=True, kw_only=True):
    """A sum of usages that says what it does not contain."""

    usage: Usage = Usage()
    calls: int = 0
    unknown_calls: int = 0
    """Calls whose usage is not known at all; they are not in the sum."""
    covered_calls: int = 0
    """Calls without a usage of their own, whose tokens are in the totals of their session, and so in the sum."""


class Cost(Value, frozen=True, kw_only=True):
    """Money for one or more model calls.

    `reported` was written by the agent, `priced` was computed from usage and the prices named by `price_version`.
    """

    amount: Decimal
    currency: str = "USD"
    kind: Literal["reported", "priced"] = "priced"
    price_version: str | None = None


def merge_usage(one: Usage | None, other: Usage | None) -> Usage | None:
    """The larger of two counts of the same call, bucket by bucket (a later line of one message never lowers it).

    Output and reasoning are taken together, the larger sum, since one reading may hold in `output` what another tells
    apart; of equal sums the one that does.
    Associative, commutative and idempotent, so that the order in which lines are read does not matter.
    """
    if one is None or other is None or one == other:
        return one if other is None else other
    joined: dict[str, Any] = {name: _larger(getattr(one, name), getattr(other, name)) for name in (*BUCKETS, *_WEB)}
    joined["output"], joined["reasoning"] = max(_produced(one), _produced(other), key=_produced_rank)
    joined |= {name: _either(getattr(one, name), getattr(other, name)) for name in _WORDS}
    joined["requests"] = max(one.requests, other.requests, key=_requests_rank)
    joined["exactness"] = min(one.exactness, other.exactness, key=_EXACTNESS_RANK.__getitem__)
    names = {**one.extra, **other.extra}
    joined["extra"] = {
        name: min((each.extra[name] for each in (one, other) if name in each.extra), key=bytes) for name in names
    }
    return Usage(**joined)


def merge_total(one: SessionTotal, other: SessionTotal, *, is_ordered: bool = False) -> SessionTotal:
    """Merge two readings of the same total: the larger, because a count only grows. The order does not matter.

    An estimate is what no call has of the log's count, and shrinks when the tokens of a call become known. So of two
    estimates it is `other` where that is known to be the later one (`is_ordered`).
    """
    if is_ordered and one.usage.exactness == other.usage.exactness == "estimated":
        return other
    return max(one, other, key=lambda total: (total.usage.total or 0, msgspec.json.encode(total)))


def _produced(usage: Usage) -> tuple[int | None, int | None]:
    return usage.output, usage.reasoning


def _produced_rank(produced: tuple[int | None, int | None]) -> tuple[int, bool, int, bool]:
    output, reasoning = produced
    return ((output or 0) + (reasoning or 0), reasoning is not None, reasoning or 0, output is not None)


def _requests_rank(requests: tuple[Usage, ...]) -> tuple[int, bytes]:
    return sum(each.total or 0 for each in requests), msgspec.json.encode(requests)


def sum_usage(usages: Iterable[Usage | None]) -> UsageTotal:
    """Add up the usages of many calls; a call without usage is counted as unknown, not as zero."""
    totals: dict[str, Any] = {}
    calls = unknown = 0
    exactness: Exactness = "exact"
    for usage in usages:
        calls += 1
        if usage is None or usage.total is None:
            unknown += 1
            continue
        exactness = max(exactness, usage.exactness, key=_EXACTNESS_RANK.__getitem__)
        for name in (*BUCKETS, *_WEB):
            count = getattr(usage, name)
            if count is not None:
                totals[name] = totals.get(name, 0) + count
    return UsageTotal(usage=Usage(**totals, exactness=exactness), calls=calls, unknown_calls=unknown)


_WEB = ("web_searches", "web_fetches")
_WORDS = ("service_tier", "speed", "region")


def _larger(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def _either(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
