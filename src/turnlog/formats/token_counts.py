"""Tokens as formats count them that have one number for all that went in, and one for all that came out."""

from __future__ import annotations

from turnlog.model import Usage


def prompt_tokens(usage: Usage) -> int | None:
    """All tokens that went in, with those of caches; None if none are known."""
    return added(usage.input, usage.cache_read, cache_writes(usage), usage.tool_prompt)


def completion_tokens(usage: Usage) -> int | None:
    """All tokens that came out, with those of reasoning; None if none are known."""
    return added(usage.output, usage.reasoning)


def cache_writes(usage: Usage) -> int | None:
    """All tokens that were written to a cache; None if none are known."""
    return added(usage.cache_write_5m, usage.cache_write_1h, usage.cache_write)


def added(*counts: int | None) -> int | None:
    """The sum of the counts that are known."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
