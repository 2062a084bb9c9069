"""From OpenCode's token counts and costs to disjoint buckets."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from turnlog.agents.opencode.rows import Row, object_of
from turnlog.model import Cost, Usage

_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_INCLUDES_CACHED = (1, 0, 61)
"""Up to here `input` contains `cache.read`; 1.0.98 takes it out."""
_RELAYS = frozenset({"github-copilot", "openrouter"})
"""Providers whose own count of Claude's tokens contains the cached ones."""
_EXCLUDES_REASONING = (1, 3)
"""From here on `output` is without `reasoning`, where no total says it."""


def usage_of(
    tokens: object, version: str | None, *, provider: str | None = None, model: str | None = None
) -> Usage | None:
    """Buckets of one model call; None when nothing was counted.

    `input` contained the cached tokens up to 1.0.61, but for Claude's own APIs. Whether `output` contains `reasoning`
    changed between 1.2.20 (it does) and 1.18.33 (it does not); `total` tells, where there is one. OpenCode writes zeros
    before a call has ended and where a provider counts nothing.
    """
    if not isinstance(tokens, dict):
        return None
    wire = object_of(tokens)  # pyright: ignore[reportUnknownArgumentType]  # JSON of any shape
    cached = object_of(wire.get("cache"))
    counts: dict[str, Any] = {
        "input": _count(wire.get("input")),
        "cache_read": _count(cached.get("read")),
        "cache_write": _count(cached.get("write")),
        "output": _count(wire.get("output")),
        "reasoning": _count(wire.get("reasoning")),
    }
    if not any(counts.values()):
        return None
    total = _count(wire.get("total"))
    if total is None and _contains_cached(counts, version, provider, model):
        counts["input"] = (counts["input"] or 0) - (counts["cache_read"] or 0)
    if _contains_reasoning(counts, total, version):
        counts["output"] = (counts["output"] or 0) - (counts["reasoning"] or 0)
    return Usage(**counts)


def sum_tokens(parts: list[Row]) -> Row | None:
    """The tokens of a model call as its last `step-finish` part tells them."""
    found = [part.get("tokens") for part in parts if part.get("type") == "step-finish"]
    return object_of(found[-1]) if found else None


def cost_of(amount: object) -> Cost | None:
    """What OpenCode computed from its own price list in US dollars; it writes 0 where it knows no price."""
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not amount > 0:
        return None
    try:
        return Cost(amount=Decimal(repr(amount)), kind="reported")
    except InvalidOperation:
        return None


def _contains_cached(counts: dict[str, Any], version: str | None, provider: str | None, model: str | None) -> bool:
    """Anthropic's API, also at a cloud's, counts cached tokens apart, and alone tells what was written."""
    match = _VERSION.match(version or "")
    if (
        match is None
        or tuple(int(number or 0) for number in match.groups()) > _INCLUDES_CACHED
        or counts["cache_write"]
    ):
        return False
    if (counts["input"] or 0) < (counts["cache_read"] or 0):
        return False
    return provider in _RELAYS or "claude" not in (model or "")


def _contains_reasoning(counts: dict[str, Any], total: int | None, version: str | None) -> bool:
    output, reasoning = counts["output"] or 0, counts["reasoning"] or 0
    if not reasoning or reasoning > output:
        return False
    known = sum(count or 0 for count in counts.values())
    if total is not None and total in (known, known - reasoning):
        return total != known
    match = _VERSION.match(version or "")
    return match is not None and (int(match[1]), int(match[2])) < _EXCLUDES_REASONING


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 53:
        return None
    return int(value)
