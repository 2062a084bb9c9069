"""Time commands as whole processes: wall clock, CPU and peak memory of everything they start.

    python benchmarks/measure.py --repeat 5 "turnlog sessions --json"
    python benchmarks/measure.py --repeat 5 "turnlog usage --json" "agentsview usage daily --offline --no-sync --json"

With two commands the runs alternate, so that a noisy neighbour hits both, and the ratios first / second are printed.
CPU time is what the kernel accounts to the command and to every descendant that was waited for. Memory is the largest
sum of resident sizes in the process tree at one instant, polled; shared pages count in each process. The CPU time of
the command's first thread is that of the last poll. Linux only.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Measurement:
    """One run. Seconds and bytes; `peak_rss` and `first_thread` are None where the process was not watched."""

    wall: float
    cpu: float
    peak_rss: int | None
    output: str
    first_thread: float | None = None
    """CPU seconds of the thread that the command began with."""


class CommandFailed(Exception):
    """A measured command ended with a status other than 0: its time would mean nothing."""


class Watch:
    """Polls the resident size of a process and all its descendants, and its first thread, until told to stop."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.peak = 0
        self.first_thread = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _poll(self) -> None:
        while True:
            sizes = [_resident_bytes(pid) for pid in process_tree(self.pid)]
            # A process's own high-water mark shows what happened between two polls.
            self.peak = max([self.peak, sum(now for now, _ in sizes), *(highest for _, highest in sizes)])
            self.first_thread = max(self.first_thread, _thread_seconds(self.pid))
            if self._done.wait(POLL_SECONDS):
                return


def process_tree(root: int) -> list[int]:
    found, waiting = list[int](), [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            waiting += [int(child) for child in _read_or_empty(children).split()]
    return found


def _resident_bytes(pid: int) -> tuple[int, int]:
    """Resident size now and at its highest; zeros for a process that is gone."""
    fields = dict(line.split(":", 1) for line in _read_or_empty(Path(f"/proc/{pid}/status")).splitlines())
    now, highest = (int(fields.get(name, "0 kB").split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, highest


def _thread_seconds(pid: int) -> float:
    """CPU time of the first thread of a process, in user mode and in the kernel; 0 for a process that is gone."""
    # The fields follow the command's name, which may hold anything but ends with the last bracket.
    fields = _read_or_empty(Path(f"/proc/{pid}/task/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _read_or_empty(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def run(command: Sequence[str], environment: Mapping[str, str], *, watch_memory: bool = True) -> Measurement:
    """Run `command` to its end. Raises `CommandFailed` with the tail of what it said where it fails."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=complaints
        )
        watch = Watch(process.pid) if watch_memory else None
        if watch:
            watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if watch:
            watch.stop()
        output.seek(0)
        said = output.read().decode(errors="replace")
        if process.returncode:
            complaints.seek(0)
            tail = complaints.read().decode(errors="replace")[-2_000:] or said[-2_000:]
            raise CommandFailed(f"{shlex.join(command)} ended with {process.returncode}:\n{tail}")
    cpu = usage.ru_utime + usage.ru_stime
    return Measurement(wall, cpu, watch and watch.peak, said, watch and watch.first_thread)


@dataclass(frozen=True)
class Summary:
    """Several runs of one command: the least and the median of their times, the most of their memory."""

    wall: float
    wall_median: float
    cpu: float
    cpu_median: float
    peak_rss: int | None
    runs: int
    first_thread: float | None = None
    """Of the run that took the least CPU time."""

    def __str__(self) -> str:
        memory = "" if self.peak_rss is None else f", peak {self.peak_rss / 1e6:.0f} MB"
        return (
            f"wall {self.wall:.3f} s (median {self.wall_median:.3f}), "
            f"CPU {self.cpu:.3f} s (median {self.cpu_median:.3f}){memory}, {self.runs} runs"
        )


def summarize(runs: Sequence[Measurement]) -> Summary:
    walls, cpus = [each.wall for each in runs], [each.cpu for each in runs]
    peaks = [each.peak_rss for each in runs if each.peak_rss is not None]
    first_thread = min(runs, key=lambda each: each.cpu).first_thread
    middle = statistics.median(walls), statistics.median(cpus)
    return Summary(min(walls), middle[0], min(cpus), middle[1], max(peaks, default=None), len(runs), first_thread)


def alternate(attempts: Mapping[str, Callable[[], Measurement]], rounds: int) -> dict[str, Summary]:
    """Run every attempt once a round, in turn, and sum each up."""
    runs = {name: list[Measurement]() for name in attempts}
    for _ in range(rounds):
        for name, attempt in attempts.items():
            runs[name].append(attempt())
    return {name: summarize(measured) for name, measured in runs.items()}


def bare_environment(home: Path, **settings: str | Path) -> dict[str, str]:
    """An environment with nothing of the caller's but the search paths, so that no run reads real logs or settings."""
    bare = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TZ": "UTC"}
    bare |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return bare | {name: str(value) for name, value in settings.items()}


def find_turnlog() -> Path | None:
    """The command that is installed beside this Python, else one on the PATH; None without either."""
    beside = Path(sysconfig.get_path("scripts")) / "turnlog"
    found = str(beside) if beside.exists() else shutil.which("turnlog")
    return Path(found) if found else None


def main() -> None:
    parser = argparse.ArgumentParser(description="Time one command, or two in turn, as whole processes.")
    parser.add_argument("commands", nargs="+", metavar="COMMAND", help="one or two, each quoted as in a shell")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    if len(options.commands) > 2:
        parser.error("one or two commands")

    def attempt(command: str) -> Callable[[], Measurement]:
        return lambda: run(shlex.split(command), os.environ)

    results = alternate({command: attempt(command) for command in options.commands}, options.repeat)
    for command, result in results.items():
        print(f"{command}\n  {result}")
    if len(results) == 2:
        first, second = results.values()
        walls = first.wall / second.wall, first.wall_median / second.wall_median
        cpus = first.cpu / second.cpu, first.cpu_median / second.cpu_median
        print("first / second: wall {:.2f} (median {:.2f}), CPU {:.2f} (median {:.2f})".format(*walls, *cpus))


if __name__ == "__main__":
    main()
