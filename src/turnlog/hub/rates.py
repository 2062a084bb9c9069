"""How often somebody may ask, or try secrets: buckets of requests that fill up again."""

from __future__ import annotations

import hashlib
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


class WrongSecrets:
    """Counts secrets that prove nothing, by address: each once, as a browser shows its cookie with every request.

    Any thread may use it.
    """

    def __init__(self, rates: RequestRates) -> None:
        """Count in these buckets of addresses."""
        self._rates = rates
        self._lock = threading.Lock()
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        """Digests of an address and what it has shown; the longest unused first."""

    def take(self, address: str, shown: str) -> float:
        """Seconds that this address has to wait; 0 if it may try this secret now, or has been told that it is wrong."""
        seen = hashlib.sha256(f"{address}\0{shown}".encode(errors="surrogatepass")).digest()
        with self._lock:
            if seen in self._seen:
                self._seen.move_to_end(seen)
                return 0.0
        wait = self._rates.take(address)
        if not wait:
            with self._lock:
                self._seen[seen] = None
                while len(self._seen) > _MOST_KEYS:
                    self._seen.popitem(last=False)
        return wait
