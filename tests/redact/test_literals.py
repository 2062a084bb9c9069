"""Literals are found in the same places with the package of the extra `hub` and without it."""

from __future__ import annotations

import random
import sys

import pytest

from turnlog.redact.literals import Contents, Places, shortest_beginnings

BOUNDARY = r"(?:(?<![A-Za-z0-9]..)|(?<=\\n..))"

LITERALS = ["ab", "ba", "abc", "cab", "sk-", "k-", "é!", "aab"]
"""They overlap, and one begins with another."""

PIECES = [*"abcsk-é! \n", "\\n", "\U0001f600", "\udc80"]


@pytest.mark.parametrize("boundary", ["", BOUNDARY])
def test_both_ways_find_the_same_places(boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    literals = shortest_beginnings(LITERALS)
    fast, contents = Places(literals, boundary), Contents(LITERALS)
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    slow, slow_contents = Places(literals, boundary), Contents(LITERALS)
    assert fast._automaton is not None  # pyright: ignore[reportPrivateUsage]  # else both were the same way
    assert slow._automaton is None  # pyright: ignore[reportPrivateUsage]  # as without the package
    chance = random.Random(3)
    found = 0
    for _ in range(3000):
        text = "".join(chance.choice(PIECES) for _ in range(12))
        assert fast.in_text(text) == slow.in_text(text), text
        assert contents.in_text(text) == slow_contents.in_text(text), text
        assert fast.in_text(text, 3) == slow.in_text(text, 3), text
        found += len(fast.in_text(text))
    assert found > 500


def test_a_literal_that_fails_its_boundary_hides_none_inside_it() -> None:
    found = Places(["ab", "b!"], r"(?<![A-Z]..)")
    assert found.in_text("Xab! ab!") == [(2, 1), (5, 0)]
