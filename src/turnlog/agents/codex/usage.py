"""From the Responses API's token counts, single and cumulative, to disjoint buckets."""

from __future__ import annotations

from turnlog.agents.codex.records import TokenInfo, WireUsage
from turnlog.model import Usage


def usage_of(wire: WireUsage) -> Usage:
    """Buckets of one response: its input contains what was cached, its output what was thought."""
    cached, written, reasoning = wire.cached_input_tokens, wire.cache_write_input_tokens, wire.reasoning_output_tokens
    whole, output = wire.input_tokens, wire.output_tokens
    return Usage(
        input=None if whole is None else max(whole - (cached or 0) - (written or 0), 0),
        cache_read=cached,
        cache_write=written,
        output=None if output is None else max(output - (reasoning or 0), 0),
        reasoning=reasoning,
    )


def counts_key(wire: WireUsage) -> str:
    """What tells these counts from others, whichever version wrote them: since 0.14x zeros stand where nothing did."""
    return " ".join([str(getattr(wire, name) or 0) for name in wire.__struct_fields__])


def usage_of_count(info: TokenInfo, before: WireUsage | None) -> Usage | None:
    """What the newest response cost, from a `token_count` whose total is another than before.

    That is what it tells of the last response; where it tells nothing, what the total grew by. None when neither
    says anything: after a compaction the total of the last is an estimate of the context, its buckets are zero.
    """
    last, now = info.last_token_usage, info.total_token_usage
    if last is not None:
        return usage_of(last) if last.input_tokens or last.output_tokens else None
    if now is None:
        return None
    return usage_of(now if before is None else _difference(now, before))


def _difference(now: WireUsage, before: WireUsage) -> WireUsage:
    """What came in between; all of it when the count began anew."""
    if (now.total_tokens or 0) < (before.total_tokens or 0):
        return now
    return WireUsage(
        input_tokens=_grown(now.input_tokens, before.input_tokens),
        cached_input_tokens=_grown(now.cached_input_tokens, before.cached_input_tokens),
        cache_write_input_tokens=_grown(now.cache_write_input_tokens, before.cache_write_input_tokens),
        output_tokens=_grown(now.output_tokens, before.output_tokens),
        reasoning_output_tokens=_grown(now.reasoning_output_tokens, before.reasoning_output_tokens),
    )


def _grown(now: int | None, before: int | None) -> int | None:
    return None if now is None else max(now - (before or 0), 0)
