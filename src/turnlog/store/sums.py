"""Sums as the store keeps them, as values of the model: money, and tokens that say what is not in them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from turnlog.model import Cost, Usage, UsageTotal
from turnlog.model.usage import BUCKETS
from turnlog.store.rows import NANO

_OFTEN_UNTOLD = frozenset({"cache_write", "reasoning", "tool_prompt"})
"""Buckets that many logs do not tell apart from others: a sum of zero says nothing there."""


def dollars(nanos: int, *, reported: bool = False, price_version: str | None = None) -> Cost:
    """Nano-dollars as a cost."""
    return Cost(amount=Decimal(nanos) / NANO, kind="reported" if reported else "priced", price_version=price_version)


def priced(nanos: int, calls: int, unknown_calls: int, unpriced_calls: int) -> Cost | None:
    """The cost of some calls; None when not one of them could be priced."""
    return dollars(nanos) if calls > unknown_calls + unpriced_calls else None


def usage_total(counts: Sequence[int], calls: int, unknown_calls: int, lower_bound_calls: int) -> UsageTotal:
    """The tokens of some calls, from their sums in the order of `BUCKETS`."""
    if calls == unknown_calls:
        return UsageTotal(calls=calls, unknown_calls=unknown_calls)
    known: dict[str, Any] = {
        name: None if count == 0 and name in _OFTEN_UNTOLD else count
        for name, count in zip(BUCKETS, counts, strict=True)
    }
    exactness = "lower_bound" if lower_bound_calls else "exact"
    return UsageTotal(usage=Usage(**known, exactness=exactness), calls=calls, unknown_calls=unknown_calls)
