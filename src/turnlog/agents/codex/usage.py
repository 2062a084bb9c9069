"""From the Responses API's token counts, single and cumulative, to disjoint buckets."""

from __future__ import annotations

from turnlog.agents.codex.records import TokenInfo, WireUsage
from turnlog.agents.codex.state import Totals
from turnlog.model import Usage


def usage_of(wire: WireUsage) -> Usage:
    """Buckets of one response: its input contains what was cached, its output what was thought."""
    return _buckets(totals_of(wire))


def totals_of(wire: WireUsage) -> Totals:
    """The counts as they are logged."""
    return Totals(
        wire.input_tokens,
        wire.cached_input_tokens,
        wire.cache_write_input_tokens,
        wire.output_tokens,
        wire.reasoning_output_tokens,
        wire.total_tokens,
    )


def usage_of_count(info: TokenInfo, before: Totals | None) -> Usage | None:
    """What the newest response cost, from a `token_count` whose total is another than before.

    That is what it tells of the last response; where it tells nothing, what the total grew by. None when neither
    says anything: after a compaction the total of the last is an estimate of the context, its buckets are zero.
    """
    last = info.last_token_usage
    if last is not None:
        return usage_of(last) if last.input_tokens or last.output_tokens else None
    if info.total_token_usage is None:
        return None
    now = totals_of(info.total_token_usage)
    return _buckets(now if before is None else _difference(now, before))


def _buckets(counts: Totals) -> Usage:
    return Usage(
        input=_without(counts.input, (counts.cached or 0) + (counts.written or 0)),
        cache_read=counts.cached,
        cache_write=counts.written,
        output=_without(counts.output, counts.reasoning or 0),
        reasoning=counts.reasoning,
    )


def _without(whole: int | None, part: int) -> int | None:
    return None if whole is None else max(whole - part, 0)


def _difference(now: Totals, before: Totals) -> Totals:
    """What came in between; all of it when the count began anew."""
    if (now.total or 0) < (before.total or 0):
        return now
    return Totals(
        _without(now.input, before.input or 0),
        _without(now.cached, before.cached or 0),
        _without(now.written, before.written or 0),
        _without(now.output, before.output or 0),
        _without(now.reasoning, before.reasoning or 0),
        None,
    )
