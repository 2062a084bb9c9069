"""How long an appended line takes until the watcher has it committed, in process, and what watching costs when idle.

    python benchmarks/watch.py HOME [--rounds 50] [--idle 60]

Reads HOME (nothing in it is changed) into a store of its own and measures the CPU time of watching it for a while. Then
appends a line to a copy of its largest log every 50 ms, and takes the time until the watcher's read has committed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path

from append import ten_lines

from turnlog.agents import agents
from turnlog.sync.syncer import Syncer
from turnlog.sync.watcher import Watcher


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the watcher, busy and idle.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--idle", type=float, default=60.0)
    options = parser.parse_args()
    root = options.home / ".claude"
    readers = [agent for agent in agents() if agent.name == "claude-code"]
    with tempfile.TemporaryDirectory() as folder:
        with (
            Syncer(Path(folder) / "idle.db", agents=readers) as syncer,
            Watcher(roots=[root], agents=readers) as watcher,
        ):
            started = time.process_time()
            watcher.cover()
            print(f"watches set in {time.process_time() - started:.3f} s of CPU, complete: {watcher.is_complete}")
            syncer.scan(roots=[root])
            started = time.process_time()
            watcher.wait(options.idle)
            print(f"idle: {time.process_time() - started:.4f} s of CPU in {options.idle:.0f} s")
            started = time.process_time()
            watcher.cover()
            syncer.scan(roots=[root])
            print(f"the pass of each minute: {time.process_time() - started:.3f} s of CPU")
        log = max((root / "projects").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
        copy = Path(folder) / ".claude" / "projects" / log.parent.name / log.name
        copy.parent.mkdir(parents=True)
        shutil.copyfile(log, copy)
        times = sorted(measure(copy, Path(folder) / "busy.db", options.rounds))
        p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
        print(f"a line committed: p50 {statistics.median(times) * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms")


def measure(log: Path, store: Path, rounds: int) -> list[float]:
    """Seconds of each round."""
    root, times = log.parents[2], list[float]()
    written: list[float] = []

    def write() -> None:
        with log.open("ab", buffering=0) as file:
            written.append(time.perf_counter())
            file.write(ten_lines(log.stem, f"watch{len(written):05d}")[0])

    def note(_sessions: object, _change: int) -> None:
        if written:
            times.append(time.perf_counter() - written[-1])

    with Syncer(store, on_saved=note) as syncer, Watcher(roots=[root]) as watcher:
        watcher.cover()
        syncer.scan(roots=[root])
        for number in range(rounds):
            threading.Timer(0.05, write).start()
            while len(times) <= number:
                watcher.read(syncer, watcher.wait(10).paths)
    return times


if __name__ == "__main__":
    main()
