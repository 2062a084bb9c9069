"""The page's types of a hub are those of the hub's schemas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCHEMA = Path(__file__).parents[2] / "web" / "src" / "hub" / "schema.ts"


def test_the_page_has_the_types_of_this_hub() -> None:
    """Else: `python -m turnlog.hub.typescript > web/src/hub/schema.ts`."""
    command = [sys.executable, "-m", "turnlog.hub.typescript"]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert SCHEMA.read_text(encoding="utf-8") == made
