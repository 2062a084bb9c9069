"""Time making pages of UI messages beside `orjson.loads` of the same bodies, in turn, in one process.

    python benchmarks/ui_messages.py --home /tmp/bench/home [--rounds 7] [--json]

Every session below the home is read once; its messages are encoded as a store keeps them, and cut into pages. A page
is `to_ui_json(bodies)` as one JSON array, with `metadata.turnlog`. The ratio should keep below 2.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from turnlog.aisdk.convert import to_ui_json
from turnlog.logs import discover, read_session
from turnlog.model.codec import encode

PAGE = 50
BOUND = 2.0
VIEWS: dict[str, dict[str, object]] = {
    "as it is by default": {},
    "a UI message a step": {"merge_steps": False},
    "for AI SDK 5": {"version": 5},
}

Pages = list[list[bytes]]


def read_pages(home: Path) -> Pages:
    """Bodies of all sessions of a home, so many a page."""
    pages: Pages = []
    for source in discover([home, home / ".claude"]):
        if source.kind == "session":
            bodies = [encode(message) for message in read_session(source.path).messages]
            pages += [bodies[start : start + PAGE] for start in range(0, len(bodies), PAGE)]
    return pages


def decode(pages: Pages) -> None:
    """The yardstick."""
    for page in pages:
        for body in page:
            orjson.loads(body)


def convert(pages: Pages, view: dict[str, Any]) -> None:
    """What is judged."""
    for page in pages:
        to_ui_json(page, **view).to_json()


def seconds(work: Callable[[], None]) -> float:
    """CPU time of this process."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description="Time UI messages beside orjson.loads of the same bodies.")
    parser.add_argument("--home", type=Path, required=True, help="an agent's home, as corpus.py writes it")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    options = parser.parse_args()
    pages = read_pages(options.home)
    size = sum(len(body) for page in pages for body in page)
    figures: dict[str, float] = {}
    for name, view in VIEWS.items():
        ratios: list[float] = []
        for _ in range(options.rounds):
            yardstick = seconds(lambda: decode(pages))
            ratios.append(seconds(lambda view=view: convert(pages, view)) / yardstick)
        figures[name] = round(statistics.median(ratios), 2)
    if options.json:
        print(json.dumps({"bytes": size, "messages": sum(map(len, pages)), "ratios": figures}))
        return
    print(f"{sum(map(len, pages))} messages, {size / 1e6:.1f} MB, pages of {PAGE}")
    for name, ratio in figures.items():
        print(f"{name:24} {ratio:5.2f} x orjson.loads (bound {BOUND})")


if __name__ == "__main__":
    main()
