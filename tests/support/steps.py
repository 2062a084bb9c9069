"""Times the steps of `make test` and its like, and prints what each took, and the dearest files of tests.

`steps.py run NAME COMMAND…` runs one, `steps.py report` prints all. They leave what they measure in the folder
that `TURNLOG_COSTS` names; without it, a command is run and not measured.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

FOLDER = "TURNLOG_COSTS"

_DEAREST = 10


def run(name: str, command: Sequence[str]) -> int:
    """Run a step; its exit code."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        os.execvp(command[0], list(command))
    start = time.time()
    code = subprocess.call(command)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    measured = {
        "name": name,
        "start": start,
        "end": time.time(),
        "cpu": used.ru_utime + used.ru_stime,
        "largest": used.ru_maxrss * 1024,  # in KiB on Linux
        "code": code,
    }
    Path(folder, f"step-{name}.json").write_text(json.dumps(measured))
    return code


def report(folder: Path) -> str:
    """All steps of a folder, and the files of tests that took most."""
    steps = sorted(
        (json.loads(path.read_text()) for path in folder.glob("step-*.json")), key=lambda step: step["start"]
    )
    files: Counter[str] = Counter()
    for path in folder.glob("files-*.json"):
        files.update(json.loads(path.read_text()))
    wall = max((step["end"] for step in steps), default=0) - min((step["start"] for step in steps), default=0)
    cpu = sum(step["cpu"] for step in steps)
    lines = [f"{'step':<20}{'wall s':>8}{'CPU s':>8}{'largest process':>18}"]
    for step in steps:
        failed = "" if step["code"] == 0 else f"  failed with {step['code']}"
        seconds = step["end"] - step["start"]
        lines.append(f"{step['name']:<20}{seconds:>8.0f}{step['cpu']:>8.0f}{step['largest'] / 1e6:>15.0f} MB{failed}")
    lines += [f"{'all':<20}{wall:>8.0f}{cpu:>8.0f}", "", f"{'dearest test files':<58}{'CPU s':>8}"]
    lines += [f"{file:<58}{seconds:>8.1f}" for file, seconds in files.most_common(_DEAREST)]
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        sys.exit(run(sys.argv[2], sys.argv[3:]))
    print(report(Path(os.environ[FOLDER])))
