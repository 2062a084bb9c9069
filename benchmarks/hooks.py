"""What a hook costs the agent that starts it, and how long what it tells takes to a browser.

    python benchmarks/hooks.py [--rounds 60]

Starts `python -c pass`, the same without site packages (`-I -S`), and the hook's command with and without a server, in
turn, so that a noisy neighbour hits all of them. Then follows a session's event stream and takes the time from the
start of the command to the event with its content.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from live import SERVER, Stream, ask, serving, wait_for
from measure import bare_environment

from turnlog.hooks import send

SESSION = "11111111-1111-4111-8111-111111111111"


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the command of hooks.")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, alone = Path(folder), Path(folder) / "alone"
        command = [sys.executable, "-c", SERVER, str(home / "turnlog.db")]
        with serving(command, bare_environment(home), "/api/status") as port:
            wait_for((home / send.SOCKET).exists)
            costs(options.rounds, home, alone)
            latency(options.rounds, home, port)


def costs(rounds: int, home: Path, alone: Path) -> None:
    hook = [sys.executable, "-I", "-S", send.__file__, "claude"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "python -I -S -c pass": [sys.executable, "-I", "-S", "-c", "pass"],
        "the hook, to a server": [*hook, str(home)],
        "the hook, to its spool": [*hook, str(alone)],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds):
        for name in random.sample(list(commands), len(commands)):
            times[name].append(timed(commands[name], event(f"cost{number}", "x" * 2000)))
    bare = statistics.median(times["python -c pass"])
    for name, found in times.items():
        median, slowest = statistics.median(found), sorted(found)[int(len(found) * 0.95)]
        print(f"{name}: {median:.1f} ms, 95 % {slowest:.1f} ms; over bare Python {median - bare:+.1f} ms", flush=True)


def latency(rounds: int, home: Path, port: int) -> None:
    hook = [sys.executable, "-I", "-S", send.__file__, "claude", str(home)]
    session = quote(f"claude-code:{SESSION}", safe="")
    timed(hook, event("first", "hello"))
    wait_for(lambda: ask(port, f"/api/sessions/{session}").status == 200)
    stream = Stream(port, f"/api/sessions/{session}/events")
    found: list[float] = []
    for number in range(rounds):
        word = f"hooked{time.monotonic_ns()}x{number}"
        stream.forget()
        started = time.perf_counter()
        timed(hook, event(word, word))
        at = stream.wait(word)
        assert at is not None, "the event did not arrive"
        found.append((at - started) * 1e3)
        time.sleep(0.05)
    found.sort()
    p99 = found[min(len(found) - 1, int(len(found) * 0.99))]
    print(f"start of the hook to the event with its content: p50 {statistics.median(found):.1f} ms, p99 {p99:.1f} ms")


def event(name: str, prompt: str) -> bytes:
    fields = {"hook_event_name": "UserPromptSubmit", "session_id": SESSION, "prompt_id": name, "prompt": prompt}
    return json.dumps({**fields, "cwd": os.fspath(Path.cwd())}).encode()


def timed(command: list[str], payload: bytes) -> float:
    """Milliseconds of a whole process."""
    started = time.perf_counter()
    subprocess.run(command, input=payload, check=True)
    return (time.perf_counter() - started) * 1e3


if __name__ == "__main__":
    main()
