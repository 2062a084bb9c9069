"""Import, re-sync, usage and start-up of `turnlog` beside agentsview, on the same logs, in turn, in one run.

    python benchmarks/sync.py --home HOME --agentsview PATH [--rounds 3] [--only cold noop usage startup]

HOME is a folder with `.claude/projects` in it, such as benchmarks/corpus.py writes; without --home a 300 MB one is
made. Every run gets that HOME, a data folder of its own and otherwise a bare environment. Where agentsview is not
found, only ours is measured, and the output says so. A ratio is printed with the bound it should keep.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from corpus import Corpus
from measure import Measurement, Summary, alternate, bare_environment, find_turnlog, run

from turnlog.sync.syncer import Syncer

HERE = Path(__file__).parent
SMALL_FILES = 10_000
LIGHT_COMMANDS = (
    ["--version"],
    ["--help"],
    ["sync", "--help"],
    ["sessions", "--help"],
    ["show", "--help"],
    ["search", "--help"],
    ["usage", "--help"],
    ["serve", "--help"],
    ["doctor", "--help"],
    ["db", "path"],
)


@dataclass(frozen=True)
class Setting:
    """What all parts of this benchmark share. `agentsview` is None where the peer is not installed."""

    home: Path
    work: Path
    turnlog: Path
    agentsview: Path | None
    rounds: int

    def ours(self, data: Path, *arguments: str, home: Path | None = None) -> Callable[[], Measurement]:
        environment = bare_environment(home or self.home, TURNLOG_DATA_DIR=data)
        return lambda: run([str(self.turnlog), *arguments], environment)

    def peers(self, data: Path, *arguments: str, home: Path | None = None) -> dict[str, Callable[[], Measurement]]:
        """The peer's attempt under its name, or nothing where it is not installed."""
        if self.agentsview is None:
            return {}
        switches = {"AGENTSVIEW_DATA_DIR": data, "AGENTSVIEW_NO_DAEMON": "1", "AGENTSVIEW_TELEMETRY_ENABLED": "0"}
        environment = bare_environment(home or self.home, DO_NOT_TRACK="1", **switches)
        command = [str(self.agentsview), *arguments]
        return {"agentsview": lambda: run(command, environment)}


def measure_cold(setting: Setting) -> None:
    """Import everything into an empty data folder."""
    our_data, peer_data = setting.work / "cold-turnlog", setting.work / "cold-agentsview"
    yardstick = [sys.executable, str(HERE / "yardstick.py"), str(setting.home), "--json"]
    size = json.loads(run(yardstick, bare_environment(setting.home)).output)["bytes"]
    attempts = {"yardstick": lambda: run(yardstick, bare_environment(setting.home))}
    attempts["turnlog"] = _afresh(our_data, setting.ours(our_data, "sync"))
    for name, attempt in setting.peers(peer_data, "sync").items():
        attempts[name] = _afresh(peer_data, attempt)
    results = alternate(attempts, setting.rounds)
    _print_results(f"cold sync of {size / 1e6:.0f} MB", results)
    ours = results["turnlog"]
    print(f"  turnlog: {size / 1e6 / ours.wall:.0f} MB/s wall, {size / 1e6 / ours.cpu:.0f} MB/s CPU")
    _print_ratio("yardstick / turnlog, wall", results["yardstick"].wall / ours.wall)
    _print_ratio("yardstick / turnlog, CPU", results["yardstick"].cpu / ours.cpu)
    _print_serial_share(ours)
    folding = min(8, (os.cpu_count() or 1) - 1)
    _print_ratio("turnlog peak memory, all processes, MB", (ours.peak_rss or 0) / 1e6, most=300 + 60 * folding)
    _print_sizes("turnlog", our_data, size)
    if peer := results.get("agentsview"):
        _print_ratio("agentsview / turnlog, wall", peer.wall / ours.wall)
        _print_ratio("agentsview / turnlog, CPU", peer.cpu / ours.cpu)
        _print_sizes("agentsview", peer_data, size)
        _print_ratio("turnlog / agentsview, bytes kept", _folder_size(our_data) / _folder_size(peer_data), most=1)


def measure_noop(setting: Setting) -> None:
    """Sync again where nothing changed: ten thousand small files, all known."""
    home = setting.work / "small-home"
    if not home.exists():
        Corpus(home, seed=11, end=datetime(2026, 11, 20, tzinfo=UTC)).write_small(SMALL_FILES)
    our_data, peer_data = setting.work / "noop-turnlog", setting.work / "noop-agentsview"
    attempts = {"turnlog": setting.ours(our_data, "sync", home=home)}
    attempts |= setting.peers(peer_data, "sync", home=home)
    _print_results(f"first sync of {SMALL_FILES} small files", alternate(attempts, 1))
    results = alternate(attempts, max(5, setting.rounds))
    _print_results(f"no-op sync of {SMALL_FILES} files", results)
    if peer := results.get("agentsview"):
        _print_ratio("turnlog / agentsview, wall", results["turnlog"].wall / peer.wall, most=0.5)
    os.environ["HOME"] = str(home)
    with Syncer(our_data / "turnlog.db") as syncer:
        ours, bare = _least_of_each([syncer.scan, lambda: _stat_below(home)])
    print(f"  in one process: a pass {ours * 1e3:.0f} ms of CPU, listing folders and stat {bare * 1e3:.0f} ms")
    _print_ratio("a pass / listing folders and stat, CPU", ours / bare)


def _least_of_each(attempts: Sequence[Callable[[], object]]) -> list[float]:
    """Seconds of CPU, the attempts in turn."""
    times: list[list[float]] = [[] for _ in attempts]
    for _ in range(15):
        for attempt, known in zip(attempts, times, strict=True):
            begun = time.thread_time()
            attempt()
            known.append(time.thread_time() - begun)
    return [min(each) for each in times]


def _stat_below(folder: Path | str) -> None:
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                _stat_below(entry.path)
            else:
                entry.stat(follow_symlinks=False)


def measure_usage(setting: Setting) -> None:
    """Tokens and cost a day, from a synced store: whole processes. The peer shows 30 days unless told --all."""
    our_data, peer_data = setting.work / "cold-turnlog", setting.work / "cold-agentsview"
    _ensure_synced(our_data, setting.ours(our_data, "sync"))
    for attempt in setting.peers(peer_data, "sync").values():
        _ensure_synced(peer_data, attempt)
    daily = ("usage", "daily", "--offline", "--no-sync", "--json")
    attempts = {"turnlog": setting.ours(our_data, "usage", "--json")}
    attempts |= setting.peers(peer_data, *daily)
    attempts |= {f"{name} --all": each for name, each in setting.peers(peer_data, *daily, "--all").items()}
    # The peer fills a cache file on its first call: what is compared is the second and later ones.
    alternate(attempts, 1)
    results = alternate(attempts, max(10, setting.rounds))
    _print_results("usage a day, whole process", results)
    for name in results.keys() - {"turnlog"}:
        _print_ratio(f"turnlog / {name}, wall", results["turnlog"].wall / results[name].wall, most=0.7)


def measure_startup(setting: Setting) -> None:
    """What the light commands cost above an empty Python."""
    environment = bare_environment(setting.home, TURNLOG_DATA_DIR=setting.work / "startup-turnlog")

    def attempt(command: list[str]) -> Callable[[], Measurement]:
        return lambda: run(command, environment, watch_memory=False)

    attempts = {"python -c pass": attempt([sys.executable, "-c", "pass"])}
    for arguments in LIGHT_COMMANDS:
        attempts[" ".join(["turnlog", *arguments])] = attempt([str(setting.turnlog), *arguments])
    results = alternate(attempts, max(10, setting.rounds))
    _print_results("start-up", results)
    bare = results.pop("python -c pass")
    for name, result in results.items():
        _print_ratio(f"{name}, ms over Python", (result.wall_median - bare.wall_median) * 1000, most=150)


PARTS: dict[str, Callable[[Setting], None]] = {
    "cold": measure_cold,
    "noop": measure_noop,
    "usage": measure_usage,
    "startup": measure_startup,
}


def _afresh(data: Path, attempt: Callable[[], Measurement]) -> Callable[[], Measurement]:
    def with_empty_folder() -> Measurement:
        shutil.rmtree(data, ignore_errors=True)
        return attempt()

    return with_empty_folder


def _ensure_synced(data: Path, sync: Callable[[], Measurement]) -> None:
    if not data.exists():
        sync()


def _folder_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _print_results(title: str, results: Mapping[str, Summary]) -> None:
    print(f"\n{title}")
    width = max(map(len, results))
    for name, result in results.items():
        print(f"  {name:{width}}  {result}")


def _print_ratio(name: str, value: float, *, least: float | None = None, most: float | None = None) -> None:
    bounds = [] if least is None else [(f">= {least:g}", value >= least)]
    bounds += [] if most is None else [(f"<= {most:g}", value <= most)]
    verdict = "".join(f"  ({bound}: {'kept' if kept else 'MISSED'})" for bound, kept in bounds)
    print(f"  {name}: {value:.2f}{verdict}")


def _print_serial_share(ours: Summary) -> None:
    """What cannot be shared among cores: the thread that writes the store.

    An import takes at least as long as this thread, and as all of its work divided among all cores.
    """
    serial = ours.first_thread or 0.0
    _print_ratio("serial share, CPU of the writing thread / CPU of all", serial / ours.cpu, most=0.3)
    for cores in (2, 4, 8, 16):
        print(f"    {cores} cores: {max(serial, ours.cpu / cores):.1f} s at least")


def _print_sizes(name: str, data: Path, source: int) -> None:
    total = _folder_size(data)
    print(f"  {name} keeps {total / 1e6:.1f} MB, {total / source:.2f} of the logs:")
    for path in sorted(data.rglob("*")):
        if path.is_file() and path.stat().st_size > 100_000:
            print(f"    {path.stat().st_size / 1e6:8.1f} MB  {path.relative_to(data)}")


def _find_agentsview(given: Path | None) -> Path | None:
    """The peer's own binary, not the Python script that pip puts before it: it shall not pay for a Python start."""
    found = str(given) if given else shutil.which("agentsview")
    if not found:
        return None
    script = Path(found).resolve()
    return next(script.parent.parent.glob("lib/python*/site-packages/agentsview/bin/agentsview"), script)


def _read_once(home: Path) -> None:
    """Bring every log into the page cache, so that the first to be measured does not pay for the disk."""
    for path in home.rglob("*.jsonl"):
        path.read_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure turnlog's sync, usage and start-up beside agentsview.")
    parser.add_argument("--home", type=Path, help="folder with .claude/projects; made when not given")
    parser.add_argument("--mb", type=float, default=300, help="size of the tree that is made, in millions of bytes")
    parser.add_argument("--work", type=Path, help="folder for data and generated logs; a temporary one when not given")
    parser.add_argument("--turnlog", type=Path, default=find_turnlog(), help="the command to measure")
    parser.add_argument("--agentsview", type=Path, help="the peer's command; looked for on PATH when not given")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each cold import; fast ones run more often")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    if options.turnlog is None:
        parser.error("turnlog is not installed beside this Python; give --turnlog")
    with tempfile.TemporaryDirectory(prefix="turnlog-benchmark-") as temporary:
        work: Path = (options.work or Path(temporary)).resolve()
        home: Path = (options.home or work / "home").resolve()
        if not home.exists():
            Corpus(home, seed=7, end=datetime(2026, 11, 20, 18, tzinfo=UTC)).write(options.mb, giant_megabytes=24)
        _read_once(home)
        peer = _find_agentsview(options.agentsview)
        if peer is None:
            print("agentsview is not installed: only turnlog is measured")
        setting = Setting(home, work, options.turnlog.absolute(), peer, options.rounds)
        for name in options.only:
            PARTS[name](setting)


if __name__ == "__main__":
    main()
