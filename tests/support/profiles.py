"""How thorough property tests are: `quick` for people, `thorough` where `CI` or `TURNLOG_TESTS=thorough` is set."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

THOROUGH = "CI" in os.environ or os.environ.get("TURNLOG_TESTS") == "thorough"

QUICK_SHARE = 4
"""A quick run tries this fraction of the examples; what it misses, CI finds."""


def examples(count: int) -> int:
    """The number of examples for a property that tries `count` of them in a thorough run; at least 5."""
    return count if THOROUGH else max(5, count // QUICK_SHARE)


def some_of(cases: Sequence[T], least: int = 2) -> list[T]:
    """All cases in a thorough run; otherwise a quarter of them, at least so many, which differ from run to run.

    Call it inside a test: processes that run tests side by side must collect the same ones.
    """
    return list(cases) if THOROUGH else random.sample(cases, min(len(cases), max(least, len(cases) // QUICK_SHARE)))


def of_view(cases: Sequence[T], view: int, views: int) -> list[T]:
    """All cases in a thorough run; otherwise those that fall to one of several views of them: each to one, drawn anew.

    Call it first in a test: every test of a run begins with one state of `random`, so each case falls to some view.
    """
    return list(cases) if THOROUGH else list(cases[(view + random.randrange(views)) % views :: views])


def load_profile() -> None:
    """Make this the profile of every property test that names no number of its own (hypothesis' default is 100)."""
    # How long one example may take says more about the machine than about the code.
    settings.register_profile("turnlog", deadline=None, max_examples=examples(100))
    settings.load_profile("turnlog")
