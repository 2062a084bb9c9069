"""How long ten appended lines take until they are committed and searchable, in process.

    python benchmarks/append.py HOME [--rounds 200]

Works on a copy of two logs of HOME: one of about the median size and the largest. Each round appends ten lines (a
prompt, an answer over several lines with calls, their results) and reads them through `Syncer.read`, which commits
the rows and the search documents; then a search must find them. Prints p50, p99 and the worst, for both files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
import uuid
from pathlib import Path

from turnlog.store.search.base import search_path
from turnlog.store.search.searcher import Searcher
from turnlog.sync.syncer import Syncer


def main() -> None:
    parser = argparse.ArgumentParser(description="Time ten appended lines until they are searchable.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    logs = sorted((options.home / ".claude" / "projects").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
    with tempfile.TemporaryDirectory() as folder:
        for name, log in (("median", logs[len(logs) // 2]), ("largest", logs[-1])):
            copy = Path(folder) / name / ".claude" / "projects" / log.parent.name / log.name
            copy.parent.mkdir(parents=True)
            shutil.copyfile(log, copy)
            times = measure(copy, Path(folder) / name / "turnlog.db", options.rounds)
            print(f"{name}: {log.stat().st_size / 1e6:.1f} MB, {report(times)}")


def measure(log: Path, store: Path, rounds: int) -> list[float]:
    """Seconds of each round."""
    times: list[float] = []
    with Syncer(store) as syncer:
        syncer.scan(roots=[log.parents[2]])
        for number in range(rounds):
            word = f"benchmark{number:05d}"
            with log.open("ab") as file:
                file.write(b"".join(ten_lines(log.stem, word)))
            started = time.perf_counter()
            syncer.read([log])
            times.append(time.perf_counter() - started)
            with Searcher(store, search_path(store)) as searcher:
                assert len(searcher.search(word).hits) > 0, word
    return times


def ten_lines(session: str, word: str) -> list[bytes]:
    """A prompt, an answer of three blocks with its results, and a last word, in the shape of version 2.1."""
    lines: list[bytes] = []
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    parent: str | None = None

    def add(kind: str, message: dict[str, object], **more: object) -> None:
        nonlocal parent
        identity = str(uuid.uuid4())
        record = {
            "parentUuid": parent,
            "isSidechain": False,
            "type": kind,
            "message": message,
            "uuid": identity,
            "timestamp": now,
            "sessionId": session,
            "cwd": "/home/dev/project",
            "version": "2.1.98",
            **more,
        }
        if parent is None:
            del record["parentUuid"]
        lines.append(json.dumps(record).encode() + b"\n")
        parent = identity

    add("user", {"role": "user", "content": f"please look at {word}"})
    for step in range(4):
        answer = {"id": f"msg_{word}{step}", "role": "assistant", "model": "claude-opus-4-5-20251101"}
        usage = {"input_tokens": 9, "output_tokens": 40, "cache_read_input_tokens": 9000}
        call = {"type": "tool_use", "id": f"toolu_{word}{step}", "name": "Bash", "input": {"command": f"rg {word}"}}
        add("assistant", {**answer, "content": [call], "stop_reason": "tool_use", "usage": usage})
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"found {word} " * 40}
        add("user", {"role": "user", "content": [result]})
    text = [{"type": "text", "text": f"That was {word}."}]
    final = {"id": f"msg_{word}-last", "role": "assistant", "model": "claude-opus-4-5-20251101", "content": text}
    add("assistant", {**final, "stop_reason": "end_turn", "usage": {"input_tokens": 9, "output_tokens": 12}})
    return lines


def report(times: list[float]) -> str:
    """The distribution in milliseconds."""
    ordered = sorted(times)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    p50 = statistics.median(ordered)
    times_shown = zip(("p50", "p99", "worst"), (p50, p99, ordered[-1]), strict=True)
    figures = ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in times_shown)
    return f"ten lines committed and searchable: {figures}"


if __name__ == "__main__":
    main()
