"""What the page about an agent's format says in its tables, for the tests that hold it against the code."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "formats"


class FormatPage:
    """The page about one agent, by the name of its file."""

    def __init__(self, name: str) -> None:
        self.text = (PAGES / f"{name}.md").read_text()

    def rows(self, heading: str, table: int = 0) -> list[tuple[str, ...]]:
        """The rows of a table below a heading, cell by cell, without its head."""
        section = self.text.split(f"{heading}\n", 1)[1].split("\n#", 1)[0]
        lines = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)[table].splitlines()
        return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines[2:]]


def named(cell: str) -> list[str]:
    """What a cell names as code."""
    return re.findall(r"`([^`]+)`", cell)
