"""Tests that only a thorough run has: `tests/thorough.txt` lists them, a line each, and they get the marker.

Each needs a second of the processor or more, or asks what a cheaper one of the quick run asks of fewer cases. A line is
a test's id below `tests/`; without brackets it is all cases of the test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

LIST = Path(__file__).parents[1] / "thorough.txt"


def listed() -> dict[str, set[str]]:
    """File below `tests/` -> tests in it, with or without a case."""
    found: dict[str, set[str]] = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            file, _, name = line.partition("::")
            found.setdefault(file, set()).add(name)
    return found


def mark(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of the list. Raises UsageError for a line of a file that has no such test any more."""
    known = listed()
    unseen = {file: set(names) for file, names in known.items()}
    files: set[str] = set()
    for item in items:
        file = item.path.relative_to(LIST.parent).as_posix() if item.path.is_relative_to(LIST.parent) else ""
        files.add(file)
        case = item.nodeid.partition("::")[2]
        for name in (case, case.partition("[")[0]):
            if name in known.get(file, ()):
                item.add_marker(pytest.mark.thorough)
                unseen[file].discard(name)
    # A file that was not read whole lacks tests.
    if not any("::" in str(argument) for argument in config.args) and not config.option.deselect:
        lost = sorted(f"{file}::{name}" for file in files for name in unseen.get(file, ()))
        if lost:
            raise pytest.UsageError(f"{LIST.name} names tests that are not there: {', '.join(lost)}")
