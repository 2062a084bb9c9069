"""The yardstick every import speed is judged by: read, split into lines and `orjson.loads` each one.

    python benchmarks/yardstick.py HOME [--json]

One process, one file in memory at a time, nothing kept. What a machine does in a second changes with its neighbours;
the ratio to this loop over the same bytes, taken in the same run, changes far less.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson


@dataclass(frozen=True)
class Yardstick:
    """What was read, and how long it took. Speeds are millions of bytes a second of CPU time."""

    files: int
    bytes: int
    lines: int
    unreadable_lines: int
    wall_seconds: float
    cpu_seconds: float

    @property
    def speed(self) -> float:
        return self.bytes / 1e6 / self.cpu_seconds


def decode_every_line(home: Path) -> Yardstick:
    """Decode each line of every `*.jsonl` below `home`. Lines that are no JSON are counted, not fatal."""
    paths = sorted(home.rglob("*.jsonl"))
    size = lines = unreadable = 0
    wall, cpu = time.perf_counter(), time.process_time()
    for path in paths:
        data = path.read_bytes()
        size += len(data)
        for line in data.split(b"\n"):
            if not line:
                continue
            lines += 1
            try:
                orjson.loads(line)
            except orjson.JSONDecodeError:
                unreadable += 1
    elapsed = time.perf_counter() - wall, time.process_time() - cpu
    return Yardstick(len(paths), size, lines, unreadable, *elapsed)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time read + split + orjson.loads over all logs below a folder.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    options = parser.parse_args()
    result = decode_every_line(options.home)
    if options.json:
        print(json.dumps(asdict(result)))
        return
    print(f"{result.files} files, {result.bytes / 1e6:.1f} MB, {result.lines} lines")
    print(f"{result.wall_seconds:.3f} s wall, {result.cpu_seconds:.3f} s CPU, {result.speed:.0f} MB/s")


if __name__ == "__main__":
    main()
