"""Sums of tokens as people read them: behind what they lack, and unknown instead of a zero that nobody counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.cli import formatting
from turnlog.store.usage_report import UsageTotals

if TYPE_CHECKING:
    from turnlog.model.usage import Exactness

KINDS = ("Input", "Cache write", "Cache read", "Output")
"""What `token_sums` returns."""


def token_sums(totals: UsageTotals) -> tuple[str, ...]:
    """`≈ 12.9k`, `≥ 4.75k`, or unknown, for each of `KINDS`."""
    # Of a session that is counted as a whole, only the last time is known to be one at which tokens were used.
    read: Exactness = "estimated" if totals.exactness == "estimated" or totals.session_totals else "exact"

    def shown(number: int, exactness: Exactness = read, is_told: bool = True) -> str:
        if not (totals.has_tokens and is_told):
            return formatting.UNKNOWN
        return (formatting.mark(exactness, totals.unknown_calls) if number else "") + formatting.tokens(number)

    return (
        shown(totals.input + totals.tool_prompt),
        shown(totals.cache_write_5m + totals.cache_write_1h + totals.cache_write, is_told=totals.tells_cache),
        shown(totals.cache_read, is_told=totals.tells_cache),
        shown(totals.output + totals.reasoning, totals.exactness),
    )
