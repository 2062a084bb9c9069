"""The largest session of a home as a page of HTML, beside ectype-cli's, as whole processes in turn.

    python benchmarks/html_export.py --home HOME --ectype BIN [--rounds 7]

HOME holds `.claude` (see `corpus.py`); it is read into a store of its own first. ectype reads the log each time. Ours
has every tool output in it; how large both files are is printed, too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from measure import alternate, bare_environment, run

from turnlog.store import open_store


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the HTML of a large session beside ectype's.")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--ectype", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        environment = bare_environment(options.home.absolute(), TURNLOG_DATA_DIR=work)
        turnlog = [sys.executable, "-m", "turnlog"]
        run([*turnlog, "sync"], environment)
        session, size = largest(work / "turnlog.db")
        pages = {"turnlog": work / "turnlog.html", "ectype": work / "ectype.html"}
        ours = [*turnlog, "export", session, "--as", "html", "-o", str(pages["turnlog"])]
        ectype = [str(options.ectype), "export", session.partition(":")[2], "--format", "html", "--mode", "full"]
        theirs = [*ectype, "-o", str(pages["ectype"])]
        found = alternate(
            {"turnlog": lambda: run(ours, environment), "ectype": lambda: run(theirs, environment)}, options.rounds
        )
        print(f"{session}, {size / 1e6:.1f} MB")
        for name, summary in found.items():
            print(f"{name}: {summary}, {pages[name].stat().st_size / 1e6:.1f} MB")
    mine, peers = found["turnlog"], found["ectype"]
    walls, cpus = mine.wall_median / peers.wall_median, mine.cpu_median / peers.cpu_median
    print(f"turnlog / ectype: wall {walls:.2f}, CPU {cpus:.2f} (medians; at most 1.5)")


def largest(store_path: Path) -> tuple[str, int]:
    """The session whose log is the largest, and its bytes."""
    with open_store(store_path) as store:
        logs = [(source.size, source.session_id) for source in store.sources() if source.kind == "session"]
    size, session = max((size, session) for size, session in logs if session is not None)
    return session, size


if __name__ == "__main__":
    main()
