"""Names of tests are short enough to read at a glance when one fails."""

from __future__ import annotations

import re
from pathlib import Path

LONGEST = 70


def test_names_of_tests_are_short() -> None:
    files = Path(__file__).parent.rglob("test_*.py")
    names = {f"{file.name}::{name}" for file in files for name in re.findall(r"def (test_\w+)", file.read_text())}
    assert {name for name in names if len(name.partition("::")[2]) > LONGEST} == set()
