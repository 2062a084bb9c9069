"""From the Messages API's token counts to disjoint buckets."""

from __future__ import annotations

from turnlog.agents.claude_code.records import WireUsage
from turnlog.model import Usage

_UNKNOWN_REGION = "not_available"


def usage_of(wire: WireUsage, *, final: bool) -> Usage:
    """Buckets of one model call.

    `output_tokens` contains the thinking tokens, which become `reasoning` where the log tells them (2.1.2x and
    later). Without a stop reason (`final` is False) the counts are those of the stream's start: Claude Code 1.0.24
    to 2.1.20 wrote such placeholders on most lines, and aborted streams have nothing better. They are lower bounds.
    """
    write_5m, write_1h, write = _cache_writes(wire)
    output, reasoning = _outputs(wire)
    server = wire.server_tool_use
    return Usage(
        input=wire.input_tokens,
        cache_read=wire.cache_read_input_tokens,
        cache_write_5m=write_5m,
        cache_write_1h=write_1h,
        cache_write=write,
        output=output,
        reasoning=reasoning,
        service_tier=wire.service_tier,
        speed=wire.speed,
        region=None if wire.inference_geo == _UNKNOWN_REGION else wire.inference_geo or None,
        web_searches=server.web_search_requests if server else None,
        web_fetches=server.web_fetch_requests if server else None,
        exactness="exact" if final else "lower_bound",
    )


def _cache_writes(wire: WireUsage) -> tuple[int | None, int | None, int | None]:
    """Cache writes by time to live: five minutes, one hour, not told."""
    split, total = wire.cache_creation, wire.cache_creation_input_tokens
    if split is None:
        return None, None, total
    told_5m, told_1h = split.ephemeral_5m_input_tokens, split.ephemeral_1h_input_tokens
    rest = (total or 0) - (told_5m or 0) - (told_1h or 0)
    return told_5m, told_1h, rest if rest > 0 else None


def _outputs(wire: WireUsage) -> tuple[int | None, int | None]:
    details, output = wire.output_tokens_details, wire.output_tokens
    thinking = details.thinking_tokens if details else None
    if thinking is None or output is None:
        return output, thinking
    return max(output - thinking, 0), thinking
