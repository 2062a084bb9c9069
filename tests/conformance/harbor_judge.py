"""Asks ATIF's own validator about trajectories that were exported, with the files that they name.

    python3.12 -m venv /tmp/harbor && /tmp/harbor/bin/pip install harbor
    /tmp/harbor/bin/python tests/conformance/harbor_judge.py FILE…

The validator needs Python 3.12, so the tests ask the package `atif`, which has the same rules.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Print what the validator finds; exit code 1 if it refuses one."""
    validator = import_module("harbor.utils.trajectory_validator")
    refused = 0
    for path in map(Path, sys.argv[1:]):
        judge = validator.TrajectoryValidator()
        if not judge.validate(path):
            refused += 1
            print(path, *judge.errors, sep="\n  ")
    print(f"{len(sys.argv) - 1 - refused} trajectories are valid, {refused} are not")
    sys.exit(refused > 0)


if __name__ == "__main__":
    main()
