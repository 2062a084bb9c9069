"""The latest of many matches: those that a page shows, and no more work for the others than to look at them."""

from __future__ import annotations

import time

from turnlog.store.search.blocks import DocumentEntry
from turnlog.store.search.matches import Match, newest_matches

MANY = 10_000


def match(number: int, created_at: int) -> Match:
    entry = DocumentEntry(part=0, field=0, flags=0, length=1, checksum=0)
    return Match(created_at, f"m{number:06}", 0, 0, MANY - number, number, entry, 0)


def test_a_great_many_of_one_time_are_looked_at_once_each() -> None:
    started = time.process_time()
    found, is_all, _ = newest_matches((match(number, -1) for number in range(MANY)), 3, None)
    assert time.process_time() - started < 2
    assert [each.message_id for each in found] == ["m009999", "m009998", "m009997"]
    assert not is_all


def test_what_came_before_a_place_is_left_out_and_none_comes_twice() -> None:
    matches = [match(number, -1) for number in range(5)]
    found, is_all, _ = newest_matches([*matches, *matches], 9, matches[3].position)
    assert [each.message_id for each in found] == ["m000002", "m000001", "m000000"]
    assert is_all
