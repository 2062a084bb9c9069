"""When the machine itself stood still: a virtual machine's host takes its processors away, for tenths of a second.

    python benchmarks/stalls.py [--seconds 30]

On each processor a thread sleeps a millisecond again and again and notes when it woke late: by so much anything that
ran there was late too, whatever it is. What is timed in milliseconds is told with and without these moments. Says
little where the measuring process itself must wait for its turn: start it with `chrt -r 5`. Linux only.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from types import TracebackType
from typing import Self

SLEEP_SECONDS = 0.001
LATE_SECONDS = 0.01
"""Later than this is a stall; less is what any timer does."""


class Stalls:
    """Notes stalls while it is entered. Times are those of `time.perf_counter`."""

    def __init__(self) -> None:
        self._found: list[tuple[float, float]] = []
        self._done = threading.Event()
        self._threads = [
            threading.Thread(target=self._watch, args=(processor,), daemon=True)
            for processor in os.sched_getaffinity(0)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def during(self, start: float, end: float) -> bool:
        """Whether a processor stood still at some time between these two."""
        return any(begun < end and ended > start for begun, ended in self._found[-1000:])

    @property
    def seconds(self) -> list[float]:
        """How long each stall was."""
        return [ended - begun for begun, ended in self._found]

    def _watch(self, processor: int) -> None:
        os.sched_setaffinity(0, {processor})
        while not self._done.is_set():
            before = time.perf_counter()
            time.sleep(SLEEP_SECONDS)
            after = time.perf_counter()
            if after - before > SLEEP_SECONDS + LATE_SECONDS:
                self._found.append((before + SLEEP_SECONDS, after))


def main() -> None:
    parser = argparse.ArgumentParser(description="Watch for moments in which the machine stands still.")
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    with Stalls() as stalls:
        time.sleep(options.seconds)
    found = stalls.seconds
    longest = f", {sum(found):.2f} s in all, the longest {max(found) * 1e3:.0f} ms" if found else ""
    print(f"{len(found)} stalls of more than {LATE_SECONDS * 1e3:.0f} ms in {options.seconds:.0f} s{longest}")


if __name__ == "__main__":
    main()
