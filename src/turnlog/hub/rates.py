"""How often somebody may ask: buckets of requests that fill up again."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_MOST_KEYS: Final = 10_000


class RequestRates:
    """Buckets by key (a person, a machine, an address). Any thread may use it."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Every bucket holds `burst` requests and gets `per_second` more."""
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Key -> what was left, and when; the longest unused first."""

    def take(self, key: str, cost: float = 1.0) -> float:
        """Seconds that this one has to wait; 0 if it may ask now, which then counts."""
        with self._lock:
            at = self._clock()
            left, since = self._buckets.pop(key, (self._burst, at))
            left = min(self._burst, left + (at - since) * self._per_second)
            wait = 0.0 if left >= cost else (cost - left) / self._per_second
            self._buckets[key] = (left if wait else left - cost, at)
            while len(self._buckets) > _MOST_KEYS:
                self._buckets.popitem(last=False)
            return wait
