"""Checks that cost too much to be made for each question: their results are kept for some seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

_T = TypeVar("_T")

KEPT_SECONDS: Final = 5.0


class KeptCheck(Generic[_T]):
    """A check that is made when its last result is too old. Any number of threads may ask: one makes it, all wait."""

    def __init__(self, check: Callable[[], _T]) -> None:
        """Check nothing yet. An error of the check is raised, and not kept."""
        self._check = check
        self._lock = threading.Lock()
        self._kept: tuple[float, _T] | None = None

    def result(self) -> _T:
        """The result, which may be some seconds old."""
        with self._lock:
            if self._kept is None or time.monotonic() >= self._kept[0]:
                found = self._check()
                self._kept = (time.monotonic() + KEPT_SECONDS, found)
            return self._kept[1]
