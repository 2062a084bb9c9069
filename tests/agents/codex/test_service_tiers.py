"""The service tier of a response, from the records that have it."""

from __future__ import annotations

import pytest

from support.claude_files import Gathered
from support.codex_files import OTHER, THREAD, answer, counts, event, fold, line, meta, prompt, token_count
from turnlog.pricing import price

CONTEXT = {"turn_id": "t1", "model": "gpt-5.5"}
USED = counts(100_000, 0, 10_000, 0)


def settings(tier: str | None, thread: str = THREAD) -> bytes:
    chosen = {"model": "gpt-5.5"} if tier is None else {"model": "gpt-5.5", "service_tier": tier}
    return event("thread_settings_applied", thread_id=thread, thread_settings=chosen)


def record(tier: str | None) -> bytes:
    more = {} if tier is None else {"service_tier": tier}
    return line("token_usage_record", {"response_id": "resp_1", "usage": USED, **more})


def context(**more: str | None) -> bytes:
    return line("turn_context", {**CONTEXT, **more})


COUNT = token_count(USED, USED)


def tiers(found: Gathered) -> list[str | None]:
    messages = [message for message in found.in_order(f"codex:{THREAD}") if message.usage is not None]
    return [message.usage.service_tier for message in messages if message.usage is not None]


CASES: dict[str, tuple[list[bytes], str | None]] = {
    "none": ([context(), prompt("q"), answer("a"), COUNT], None),
    "settings": ([context(), settings("priority"), prompt("q"), answer("a"), COUNT], "priority"),
    "settings-before-the-turn": ([settings("fast"), context(), prompt("q"), answer("a"), COUNT], "fast"),
    "settings-without-a-tier": ([settings("fast"), settings(None), context(), prompt("q"), answer("a"), COUNT], None),
    "settings-of-another-thread": ([context(), settings("fast", OTHER), prompt("q"), answer("a"), COUNT], None),
    "top-level": ([event("thread_settings_applied", service_tier="flex"), context(), answer("a"), COUNT], "flex"),
    "turn-context": ([context(service_tier="flex"), prompt("q"), answer("a"), COUNT], "flex"),
    "turn-context-null": ([settings("fast"), context(service_tier=None), prompt("q"), answer("a"), COUNT], None),
    "record": ([context(), prompt("q"), answer("a"), record("flex")], "flex"),
    "record-over-settings": ([settings("priority"), context(), answer("a"), record("default")], "default"),
    "settings-while-it-is-under-way": ([context(), prompt("q"), answer("a"), settings("fast"), COUNT], None),
    "settings-before-its-record": ([settings("fast"), context(), answer("a"), settings(None), record(None)], "fast"),
    "record-without": ([settings("priority"), context(), answer("a"), record(None)], "priority"),
}


@pytest.mark.parametrize(("lines", "tier"), CASES.values(), ids=CASES)
def test_a_response_has_the_tier_of_its_request(lines: list[bytes], tier: str | None) -> None:
    """R-C22"""
    assert tiers(fold(meta(), *lines)) == [tier]


@pytest.mark.parametrize(
    ("tier", "dollars"),
    [(None, 0.8), ("default", 0.8), ("priority", 2.0), ("fast", 2.0), ("flex", 0.4), ("batch", 0.4), ("scale", None)],
)
def test_a_price_depends_on_the_tier(tier: str | None, dollars: float | None) -> None:
    """R-C22: gpt-5.5 costs 5 and 30 dollars a million tokens; a tier without a known price has none."""
    found = fold(meta(), context(), prompt("q"), answer("a"), record(tier))
    usage = next(message.usage for message in found.in_order(f"codex:{THREAD}") if message.usage is not None)
    cost = price(usage, "gpt-5.5", "openai")
    assert (None if cost is None else float(cost.amount)) == dollars


SETTLED = event("thread_settings_applied", thread_settings={"model": "gpt-5.4", "service_tier": "flex"})


@pytest.mark.parametrize(
    ("lines", "model"),
    [
        ([SETTLED, prompt("q"), answer("a"), COUNT], "gpt-5.4"),
        ([SETTLED, context(), prompt("q"), answer("a"), COUNT], "gpt-5.5"),
        ([context(), SETTLED, prompt("q"), answer("a"), COUNT], "gpt-5.5"),
        ([prompt("q"), answer("a"), line("token_usage_record", {"usage": USED, "model": "gpt-5.4"})], "gpt-5.4"),
    ],
    ids=["settings", "turn", "turn-that-goes-on", "record"],
)
def test_a_response_without_a_turn_has_the_model_of_other_records(lines: list[bytes], model: str) -> None:
    """R-C22"""
    found = fold(meta(), *lines)
    assert [message.model for message in found.in_order(f"codex:{THREAD}") if message.usage] == [model]
