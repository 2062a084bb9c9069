"""Money in a store: exact US dollars, what calls of known price cost together, and what an hour comes to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Literal

NANO: Final = 1_000_000_000
"""Nano-dollars in a dollar. Columns with money are integers of nano-dollars, so sums are exact."""


class Dollars(Decimal):
    """An exact amount of US dollars. In JSON it is a number (`to_json_number`), exact as far as a float is."""


def to_json_number(value: object) -> float:
    """`Dollars` as a JSON number; a hook of encoders. Raises NotImplementedError for other types, as msgspec expects.

    A float represents nano-dollars exactly for amounts below a million dollars.
    """
    if isinstance(value, Dollars):
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def counted(sums: Mapping[str, int]) -> int:
    """How many things have their own tokens: calls, and totals of sessions. The keys are those of `UsageTotals`."""
    return sums["calls"] - sums["unknown_calls"] - sums["covered_calls"] + sums["session_totals"]


def exactness_of(estimated: int, lower_bound: int, session_totals: int) -> Literal["exact", "lower_bound", "estimated"]:
    """How exact a sum is, given how many of its calls are estimated or a lower bound, and how many totals it has.

    A total of a session is what an agent counted beside the calls that its log shows. What is computed from tokens,
    such as a cost, is as exact as they are.
    """
    if estimated:
        return "estimated"
    return "lower_bound" if lower_bound else "estimated" if session_totals else "exact"


def dollars(nanos: int | Decimal) -> Dollars:
    """The amount of so many nano-dollars."""
    return Dollars(Decimal(nanos) / NANO)


def known_cost(sums: Mapping[str, int]) -> Dollars | None:
    """What calls with these sums cost; the keys are those of `UsageTotals`, in nano-dollars.

    No calls cost nothing. Calls of which none has a known price have an unknown cost, not 0.
    """
    is_priced = counted(sums) > sums["unpriced_calls"] or not (sums["calls"] or sums["session_totals"])
    return dollars(sums["cost"]) if is_priced else None


def per_hour(cost: Dollars | None, first: datetime, now: datetime) -> Dollars | None:
    """What an hour costs at the rate since a first call; None if the cost is unknown, or for less than a minute."""
    passed = now - first
    return None if cost is None or passed < _MINUTE else rounded(float(cost) / (passed / _MINUTE) * 60)


_MINUTE: Final = timedelta(minutes=1)


def rounded(amount: float) -> Dollars:
    """An amount that is only estimated."""
    return Dollars(f"{amount:.6f}")
