"""None is unknown and never zero, in sums and in joins of readings."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from turnlog.model import Usage, sum_usage
from turnlog.model.usage import BUCKETS, Exactness, merge_usage

COUNTS = st.none() | st.integers(0, 50)
EXACTNESS = st.sampled_from(["exact", "lower_bound", "estimated"])

USAGES = st.builds(
    Usage,
    # A strategy for each field, by name.
    **{name: COUNTS for name in (*BUCKETS, "web_searches", "web_fetches")},
    service_tier=st.sampled_from([None, "standard", "priority"]),
    speed=st.sampled_from([None, "fast"]),
    exactness=EXACTNESS,
)
MAYBE = st.none() | USAGES


def test_buckets_are_disjoint_and_their_sum_is_the_total() -> None:
    usage = Usage(**dict(zip(BUCKETS, (1, 2, 4, 8, 16, 32, 64, 128), strict=True)))
    assert usage.buckets() == (1, 2, 4, 8, 16, 32, 64, 128)
    assert usage.total == 255


def test_a_usage_that_knows_nothing_has_no_total() -> None:
    assert Usage().total is None
    assert Usage(output=0).total == 0


@given(st.lists(MAYBE, max_size=6))
def test_a_sum_counts_what_it_does_not_know(usages: list[Usage | None]) -> None:
    total = sum_usage(usages)
    known = [usage for usage in usages if usage is not None and usage.total is not None]
    assert total.calls == len(usages)
    assert total.unknown_calls == len(usages) - len(known)
    assert total.usage.total == (sum(usage.total or 0 for usage in known) if known else None)
    for name in BUCKETS:
        counts = [count for usage in known if (count := getattr(usage, name)) is not None]
        assert getattr(total.usage, name) == (sum(counts) if counts else None)


@given(st.lists(USAGES, min_size=1, max_size=4))
def test_a_sum_is_as_exact_as_its_least_exact_part(usages: list[Usage]) -> None:
    order: list[Exactness] = ["exact", "lower_bound", "estimated"]
    known = [order.index(usage.exactness) for usage in usages if usage.total is not None]
    assert sum_usage(usages).usage.exactness == order[max(known, default=0)]


@given(MAYBE, MAYBE, MAYBE)
def test_joining_readings_of_one_call_is_a_join(one: Usage | None, two: Usage | None, three: Usage | None) -> None:
    assert merge_usage(one, two) == merge_usage(two, one)
    assert merge_usage(merge_usage(one, two), three) == merge_usage(one, merge_usage(two, three))
    assert merge_usage(one, one) == one
    joined = merge_usage(one, two)
    assert merge_usage(joined, two) == joined


@given(USAGES, USAGES)
def test_a_later_line_never_lowers_a_count_nor_forgets_one(one: Usage, two: Usage) -> None:
    joined = merge_usage(one, two)
    assert joined is not None
    for name in set(BUCKETS) - {"output", "reasoning"}:
        known = [getattr(usage, name) for usage in (one, two) if getattr(usage, name) is not None]
        assert getattr(joined, name) == max(known, default=None)
    produced = [(usage.output or 0) + (usage.reasoning or 0) for usage in (one, two, joined)]
    assert produced[2] == max(produced)


def test_output_split_into_reasoning_is_not_counted_twice() -> None:
    """a stream counts thoughts as output, the log separates them."""
    streamed, logged = Usage(input=5, output=64), Usage(input=5, output=44, reasoning=20)
    assert merge_usage(streamed, logged) == merge_usage(logged, streamed) == logged
    assert merge_usage(Usage(output=64), Usage(output=64, reasoning=0)) == Usage(output=64, reasoning=0)


def test_unknown_fields_are_joined_in_any_order() -> None:
    from msgspec import Raw

    readings = [Usage(input=1, extra={"x": Raw(value), "y": Raw(b"0")}) for value in (b"3", b"1", b"2")]
    joined: set[Any] = set()
    for first, second, third in permutations(readings):
        usage = merge_usage(merge_usage(first, second), third)
        assert usage is not None
        joined.add(tuple(sorted((name, bytes(raw)) for name, raw in usage.extra.items())))
    assert joined == {(("x", b"1"), ("y", b"0"))}
