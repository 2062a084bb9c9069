"""Which priority background processes have."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = (
    "import os, sys; from turnlog.platforms.processes import lower_priority; before = os.nice(0);"
    "[lower_priority(before + int(niceness)) for niceness in sys.argv[1:]]; print(os.nice(0) - before)"
)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no niceness")
def test_the_lowest_priority_holds_and_none_is_added_to_another() -> None:
    """The indexer of a server is started by the process that reads its logs: with both, it waited for minutes."""
    for niceness, wanted in ((["3"], 3), (["3", "3"], 3), (["4", "2"], 4), (["2", "4"], 4)):
        assert int(subprocess.check_output([sys.executable, "-c", SCRIPT, *niceness])) == wanted
