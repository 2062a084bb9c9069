"""CPU time of everyday commands as whole processes, over bare Python and beside another turnlog, in turn, in one run.

    python benchmarks/commands.py --home HOME [--beside OTHER/bin/turnlog] [--rounds 20]

HOME is a folder of logs such as benchmarks/corpus.py writes; without it one of 1,000 small files is made. Each turnlog
reads it into a store of its own first. A turnlog that brings its store up to date before it answers is also asked not
to: the difference is what freshness costs where nothing has changed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from corpus import Corpus
from measure import Measurement, Summary, alternate, bare_environment, find_turnlog, run

BARE = "python -c pass"
SMALL_FILES = 1000
GIVEN = (
    b'{"model": {"display_name": "Opus"}, "cost": {"total_cost_usd": 1.2}, "context_window": {"used_percentage": 42}}'
)
BOUND_OF_A_STATUS_LINE, BOUND_OF_FRESHNESS = 60, 100
"""Milliseconds over bare Python, and over the same command with `--no-sync`."""


@dataclass(frozen=True)
class Installed:
    """One turnlog, and its store of the logs."""

    command: Path
    environment: dict[str, str]
    session: str
    """The id of the newest session."""
    is_fresh: bool
    """Whether it reads new logs before it answers."""

    def commands(self) -> dict[str, list[str]]:
        asked = {
            "sessions": ["sessions"],
            "sessions --json": ["sessions", "--json"],
            "show": ["show", self.session],
            "search": ["search", "the"],
            "usage": ["usage"],
            "usage --json": ["usage", "--json"],
            "--help": ["--help"],
        }
        if not self.is_fresh:
            return asked
        found = {name: [*words, *([] if name == "--help" else ["--no-sync"])] for name, words in asked.items()}
        return found | {
            "insights": ["insights", "--no-sync"],
            "sessions, fresh": ["sessions"],
            "statusline": ["statusline"],
        }


def install(command: Path, home: Path, data: Path) -> Installed:
    """Read the logs into a store for this turnlog."""
    environment = bare_environment(home, TURNLOG_DATA_DIR=data)
    run([str(command), "sync"], environment, watch_memory=False)
    listed: dict[str, list[dict[str, str]]] = json.loads(
        run([str(command), "sessions", "--json"], environment, watch_memory=False).output
    )
    help_text = run([str(command), "sessions", "--help"], environment, watch_memory=False).output
    return Installed(command.absolute(), environment, listed["items"][0]["id"], "--no-sync" in help_text)


def attempt(
    command: Sequence[str], environment: dict[str, str], given: Path | None = None
) -> Callable[[], Measurement]:
    if given is None:
        return lambda: run(command, environment, watch_memory=False)
    return lambda: run(["sh", "-c", '"$0" "$@" < ' + str(given), *command], environment, watch_memory=False)


def measure(ours: Installed, other: Installed | None, rounds: int, given: Path) -> None:
    attempts = {BARE: attempt([sys.executable, "-c", "pass"], ours.environment)}
    theirs = {} if other is None else other.commands()
    for name, words in ours.commands().items():
        needs_input = given if name == "statusline" else None
        attempts[name] = attempt([str(ours.command), *words], ours.environment, needs_input)
        if other is not None and name in theirs:
            attempts[f"{name}, other"] = attempt([str(other.command), *theirs[name]], other.environment)
    alternate(attempts, 1)
    results = alternate(attempts, rounds)
    bare = milliseconds(results[BARE])
    print(f"{'':18}{'CPU ms':>9}{'over bare':>11}{'of the other':>14}")
    for name, result in results.items():
        if not name.endswith(", other"):
            beside = results.get(f"{name}, other")
            ratio = "" if beside is None else f"{milliseconds(result) / milliseconds(beside):14.2f}"
            print(f"{name:18}{milliseconds(result):9.1f}{milliseconds(result) - bare:11.1f}{ratio}")
    if "statusline" in results:
        line = milliseconds(results["statusline"]) - bare
        print(f"statusline over bare Python: {line:.1f} ms (<= {BOUND_OF_A_STATUS_LINE})")
        fresh = milliseconds(results["sessions, fresh"]) - milliseconds(results["sessions"])
        print(f"sessions over sessions --no-sync: {fresh:.1f} ms (<= {BOUND_OF_FRESHNESS})")


def milliseconds(result: Summary) -> float:
    return result.cpu_median * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure everyday commands beside bare Python and another turnlog.")
    parser.add_argument("--home", type=Path, help="folder with .claude/projects; made when not given")
    parser.add_argument("--turnlog", type=Path, default=find_turnlog(), help="the command to measure")
    parser.add_argument("--beside", type=Path, help="another turnlog, such as one of an earlier commit")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    if options.turnlog is None:
        parser.error("turnlog is not installed beside this Python; give --turnlog")
    # Bytecode that is older than its source would be compiled again by every process.
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(Path(__file__).parent.parent / "src")], check=True)
    with tempfile.TemporaryDirectory(prefix="turnlog-benchmark-") as temporary:
        work = Path(temporary)
        home: Path = (options.home or work / "home").resolve()
        if options.home is None:
            Corpus(home, seed=11, end=datetime(2026, 11, 20, tzinfo=UTC)).write_small(SMALL_FILES)
        given = work / "given.json"
        given.write_bytes(GIVEN)
        other = None if options.beside is None else install(options.beside, home, work / "other")
        measure(install(options.turnlog, home, work / "ours"), other, options.rounds, given)


if __name__ == "__main__":
    main()
